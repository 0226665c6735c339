//! Prints the status, the question and the result of a run.

use std::process::ExitCode;

use pml_model::json::Fields;
use pml_model::name::printable;
use pml_model::question::Question;
use pml_model::{RunId, RunState};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{CommandContext, out};
use crate::approve::words;
use crate::report::{RunFailure, RunReport, RunStatus};

/// Prints the status of a run.
pub(super) fn print_status(
    here: &CommandContext,
    id: &RunId,
    standing: &RunStatus,
    source: Option<(&str, &str)>,
) -> ExitCode {
    let note = |text: &str, body: Value| {
        if here.json {
            out::json(&body);
        } else {
            out::note(text);
        }
    };
    match standing {
        RunStatus::Finished(report) => return print_report(here, id, report, source),
        RunStatus::Waiting { question: Some((_, question)), .. } => {
            print_question(here, id, question);
            return ExitCode::FAILURE;
        }
        RunStatus::Waiting { question: None, wake_at, .. } => note(
            "it sleeps; a running `pml serve` or `pml stdio` wakes it, or `pml runs resume`",
            json!({ "status": "running", "workflowId": id, "wakeAt": wake_at }),
        ),
        RunStatus::Running(progress) => note(
            &format!("running: {} of {} calls ended", progress.ended, progress.calls),
            json!({ "status": "running", "workflowId": id, "progress": progress }),
        ),
        RunStatus::Interrupted => {
            note(
                "it was interrupted; `pml runs resume` goes on with it",
                json!({ "status": "interrupted", "workflowId": id }),
            );
            return ExitCode::FAILURE;
        }
        RunStatus::Elsewhere => {
            note("another process has the run", json!({ "status": "running", "workflowId": id }));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn print_report(
    here: &CommandContext,
    id: &RunId,
    report: &RunReport,
    source: Option<(&str, &str)>,
) -> ExitCode {
    if here.json {
        let mut shown = serde_json::to_value(report).unwrap_or_default();
        shown["workflowId"] = json!(id);
        out::json(&shown);
    } else if let Some(result) = report.tool_result() {
        print_result(here, result);
    } else if let Some(result) = &report.result {
        out::line(pretty(result));
        if let Some(hit) = &report.cache_hit {
            out::note(format!(
                "not run: this result was kept by an earlier run, {} ago; `--no-cache` runs it anew",
                words::age(hit.age_ms)
            ));
        }
        for warning in &report.warnings {
            out::note(format!("{}warning{}: {}", out::YELLOW, out::RESET, printable(warning)));
        }
    } else {
        let fallback = RunFailure::nothing_known();
        let error = report.error.as_ref().unwrap_or(&fallback);
        print_failure(error, source);
    }
    if report.state == RunState::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A string as it is, any other value as indented JSON.
fn pretty(result: &RawValue) -> String {
    match serde_json::from_str::<Value>(result.get()) {
        Ok(Value::String(text)) => printable(&text),
        Ok(value) if value.is_object() || value.is_array() => {
            serde_json::to_string_pretty(&value).unwrap_or_else(|_| result.get().to_owned())
        }
        _ => result.get().to_owned(),
    }
}

fn print_failure(error: &RunFailure, source: Option<(&str, &str)>) {
    out::note(format!("{}error{}: {}: {}", out::BOLD_RED, out::RESET, error.code, printable(&error.message)));
    if let Some((name, code)) = source {
        print_excerpt(name, code, error.line);
    } else if let Some(line) = error.line {
        out::note(format!("  at line {line}"));
    }
    if let Some(hint) = &error.hint {
        out::note(format!("{}hint{}: {}", out::CYAN, out::RESET, printable(hint)));
    }
    print_calls_in_doubt(error);
}

/// Names the calls that were sent and have no end.
pub(super) fn print_calls_in_doubt(error: &RunFailure) {
    if !error.in_doubt.is_empty() {
        out::note(format!("whether these calls acted is not known: {:?}", error.in_doubt));
    }
}

/// Prints the line of a program that a message is about.
pub(super) fn print_excerpt(name: &str, code: &str, line: Option<u32>) {
    let Some(number) = line else { return };
    let text = code.lines().nth(number.saturating_sub(1) as usize).unwrap_or_default();
    out::note(format!("{}  --> {}:{number}{}", out::DIM, printable(name), out::RESET));
    out::note(format!("{}{number:>4} │{} {}", out::DIM, out::RESET, printable(text)));
}

/// Prints the question of a run.
pub(super) fn print_question(here: &CommandContext, id: &RunId, question: &Question) {
    if here.json {
        return out::json(&json!({ "status": "approval_required", "workflowId": id, "question": question }));
    }
    out::note(format!("the run {}", words::question(question)));
    let hint = match question {
        Question::InDoubt { .. } => format!(
            "look what happened, then say so: `pml runs resume {id} --call N=again`, `N=failed` or `N='{{…}}'` (its result)"
        ),
        Question::SignIn { calls } => format!(
            "`pml login {}`; then the run goes on by itself, or now with `pml runs approve {id}`, and without these calls \
             with `pml runs deny {id}`",
            words::servers_of(calls).join("`, `pml login ")
        ),
        Question::Approval(_) => format!("say so with `pml runs approve {id}` or `pml runs deny {id}`"),
        Question::Layer(_) => {
            format!("go on with `pml runs continue {id}`, or end it with `pml runs abort {id}`")
        }
    };
    out::note(format!("{}hint{}: {hint}", out::CYAN, out::RESET));
}

/// Prints a tool result for a person: its text, or the structured value where it has no text.
pub(super) fn print_result(here: &CommandContext, result: &RawValue) {
    if here.json {
        return out::line(result.get());
    }
    let fields = Fields::parse(result.get()).unwrap_or_default();
    let content: Vec<Value> = fields.read("content").unwrap_or_default();
    for part in &content {
        match (part["type"].as_str(), part["text"].as_str()) {
            (Some("text"), Some(text)) => out::line(printable(text)),
            (Some(kind), _) => {
                let size = part["data"]
                    .as_str()
                    .map(|data| format!(", {} bytes in base64", data.len()))
                    .unwrap_or_default();
                let uri = part["uri"]
                    .as_str()
                    .or(part["resource"]["uri"].as_str())
                    .map(|uri| format!(" {uri}"))
                    .unwrap_or_default();
                out::line(format!("[{kind}{uri}{size}]"));
            }
            _ => {}
        }
    }
    if content.is_empty()
        && let Some(structured) = fields.get("structuredContent")
    {
        out::line(structured.get());
    }
}
