//! How runs stand, as clients are told of it.

use pml_model::json::{Fields, raw};
use pml_model::name::shortened;
use pml_model::question::{Answerer, LayerResult, Question};
use pml_model::{RunId, RunState};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::approve::words;
use crate::flow::Suggested;
use crate::planning::Refused;
use crate::report::{Failure, Report, Standing, Task};
use crate::suggest::SuggestedDag;

/// How much of a result the text says; the structured content has all of it.
const TEXT_CHARACTERS: usize = 20_000;

/// A program that is not run, as the client is told of it.
pub(super) fn refusal(refused: &Refused) -> Box<RawValue> {
    let mut error = serde_json::to_value(&refused.problem).unwrap_or_default();
    if let Some(line) = refused.line {
        error["line"] = line.into();
    }
    let mut text = match refused.line {
        Some(line) => format!("not run: line {line}: {}", refused.problem),
        None => format!("not run: {}", refused.problem),
    };
    if refused.all.len() > 1 {
        text.push_str(&format!("\nall {} reasons:\n{}", refused.all.len(), refused.all.join("\n")));
    }
    tool_result(&text, &json!({ "status": "failed", "error": error }), &[], true)
}

/// What could be run instead of nothing, as the client is told of it.
pub(super) fn suggestions(suggested: &Suggested) -> Box<RawValue> {
    let mut text = format!("nothing was run: {}", suggested.because);
    for (place, candidate) in suggested.candidates.iter().enumerate() {
        text.push_str(&format!(
            "\n{} [{:.2}] {}",
            candidate.name, candidate.confidence, candidate.description
        ));
        let takes = candidate.parameters["properties"].as_object();
        let names: Vec<&str> = takes.into_iter().flat_map(|all| all.keys().map(String::as_str)).collect();
        if !names.is_empty() {
            text.push_str(&format!(" (takes {})", names.join(", ")));
        }
        if let Some(contradicted) = &candidate.contradiction {
            text.push_str(&format!(
                "\n  not for this: it is fixed to `{}`, and the intent says `{}`",
                contradicted.constant, contradicted.intent_says
            ));
        }
        if let Some(program) = candidate.program.as_ref().filter(|_| place == 0) {
            text.push_str(&format!("\n  its program, to be sent with the other value in it:\n{program}"));
        }
        // Of the others it is enough to know that they are there.
        for missing in candidate.missing.iter().filter(|_| place == 0) {
            text.push_str(&format!("\n  needed: {}", missing.why));
        }
    }
    let runnable = suggested.candidates.iter().find(|candidate| candidate.contradiction.is_none());
    if let Some(first) = runnable {
        text.push_str(&format!(
            "\nRun one with {{\"implementation\": {{\"type\": \"capability\", \"id\": \"{}\"}}, \"context\": {{…}}}}.",
            first.name
        ));
    }
    if let Some(earlier) = &suggested.earlier {
        text.push_str(&format!(
            "\nAn earlier result, {} old, for \"{}\" (similarity {:.2}): {}",
            words::age(earlier.age_ms),
            earlier.intent,
            earlier.similarity,
            shortened(earlier.result.get(), TEXT_CHARACTERS)
        ));
    }
    if let Some(dag) = &suggested.suggested_dag {
        text.push_str(&format!("\n{}", of_dag(dag)));
    }
    let tools: Vec<&str> = suggested.tools.iter().map(|tool| tool.signature.as_str()).collect();
    if !tools.is_empty() {
        text.push_str(&format!("\nTools:\n{}", tools.join("\n")));
    }
    tool_result(&text, &suggested.body(), &[], false)
}

/// A DAG that could serve, as a model reads it.
pub(super) fn of_dag(dag: &SuggestedDag) -> String {
    let mut text = format!("Suggested DAG [{:.2}]: {}\n{}", dag.confidence, dag.rationale, dag.dag_structure);
    for path in &dag.dependency_paths {
        text.push_str(&format!("\n  {} → {}: {}", path.from, path.to, path.explanation));
    }
    for missing in &dag.missing {
        text.push_str(&format!("\n  needed: `{}` of {}", missing.name, missing.task));
    }
    if let Some(warning) = &dag.warning {
        text.push_str(&format!("\n  mind: {warning}"));
    }
    text
}

/// How a run stands, as the client is told of it.
pub(super) fn reply(id: &RunId, standing: &Standing) -> Box<RawValue> {
    match standing {
        Standing::Over(report) => over(id, report),
        Standing::Running(progress) => {
            let text = format!(
                "{id} is running, {} of {} calls ended. Call `pml_continue` with it to wait again.",
                progress.ended, progress.calls
            );
            tool_result(
                &text,
                &json!({ "status": "running", "workflowId": id, "progress": progress }),
                &[],
                false,
            )
        }
        Standing::Interrupted => {
            let text = format!(
                "{id} was interrupted and nobody works on it yet. It is taken up again by itself, or with `pml runs resume {id}`."
            );
            tool_result(&text, &json!({ "status": "running", "workflowId": id }), &[], false)
        }
        Standing::Elsewhere => {
            let text = format!("{id} goes on in another process. Call `pml_continue` with it to wait again.");
            tool_result(&text, &json!({ "status": "running", "workflowId": id }), &[], false)
        }
        Standing::Waiting { question: Some((name, question)), in_flight, .. } => {
            asks(id, name, question, *in_flight)
        }
        Standing::Waiting { question: None, wake_at, .. } => {
            let text = format!("{id} sleeps until its timer is due. Call `pml_continue` with it later.");
            let body = json!({ "status": "running", "workflowId": id, "wakeAt": wake_at });
            tool_result(&text, &body, &[], false)
        }
    }
}

/// A run that is over, as the client is told of it.
pub(super) fn over(id: &RunId, report: &Report) -> Box<RawValue> {
    if report.state == RunState::Done { success(id, report) } else { failed(id, report) }
}

/// What a run asks, and what to do about it.
pub(super) fn question_text(id: &RunId, question: &Question, in_flight: usize) -> String {
    let mut text = format!("{id} {}", words::question(question));
    match question {
        Question::InDoubt { by: Answerer::Human, .. } => text.push_str(&format!(
            "\nA person has to say what became of each, in the dashboard or with `pml runs resume {id} --call N=again`."
        )),
        Question::InDoubt { .. } => text.push_str(
            "\nAsk your user what became of each, then call `pml_continue` with `answer: {calls: [{call, verdict}]}`; the \
             verdict is `again`, `failed`, or `done` with its `result`.",
        ),
        Question::Approval(asked) if asked.by == Answerer::Human => text.push_str(&format!(
            "\nA person has to answer, in the dashboard or with `pml runs approve {id}`. Call `pml_continue` with the \
             `workflowId` to wait for it."
        )),
        Question::Approval(_) => text.push_str(
            "\nAsk your user, then call `pml_continue` with the `workflowId` and `approved` true or false.",
        ),
        Question::Layer(_) => text.push_str(
            "\nCall `pml_continue` to go on, `pml_replan` to put other tasks in place of the next, `pml_abort` to end.",
        ),
    }
    if in_flight > 0 {
        text.push_str(&format!("\n{in_flight} calls are still under way."));
    }
    text
}

fn asks(id: &RunId, name: &str, question: &Question, in_flight: usize) -> Box<RawValue> {
    let text = question_text(id, question, in_flight);
    let mut body = json!({ "workflowId": id, "questionId": name, "inFlight": in_flight });
    match question {
        Question::Layer(layer) => {
            body["status"] = "layer_complete".into();
            body["layer"] = serde_json::to_value(layer).unwrap_or_default();
        }
        Question::InDoubt { .. } | Question::Approval(_) => {
            body["status"] = "approval_required".into();
            body["question"] = serde_json::to_value(question).unwrap_or_default();
        }
    }
    tool_result(&text, &body, &[], false)
}

fn success(id: &RunId, report: &Report) -> Box<RawValue> {
    let result = report.result.as_ref().map_or("null", |result| result.get());
    let mut body = Fields::default();
    body.set("status", raw(&"success"));
    body.set("workflowId", raw(id));
    body.set("result", report.result.clone().unwrap_or_else(|| raw(&Value::Null)));
    body.set("tasks", raw(&report.tasks.iter().map(brief).collect::<Vec<_>>()));
    if !report.outcomes.is_empty() {
        // What they gave is asked for where it is wanted.
        let brief = |one: &LayerResult| LayerResult { result_preview: None, ..one.clone() };
        body.set("outcomes", raw(&report.outcomes.iter().map(brief).collect::<Vec<_>>()));
    }
    if !report.console.is_empty() {
        body.set("console", raw(&report.console));
    }
    if let Some(capability) = &report.capability_id {
        body.set("capabilityId", raw(capability));
    }
    if let Some(hit) = &report.cache_hit {
        body.set("cacheHit", raw(&hit.kind));
        body.set("cacheAgeMs", raw(&hit.age_ms));
    }
    if !report.next.is_empty() {
        body.set("next", raw(&report.next));
    }
    if !report.withheld.is_empty() {
        body.set("withheld", raw(&report.withheld));
    }
    if report.console_cut {
        body.set("consoleCut", raw(&true));
    }
    if !report.warnings.is_empty() {
        body.set("warnings", raw(&report.warnings));
    }
    let content: Vec<&RawValue> = report.contents().collect();
    let mut text = shortened(result, TEXT_CHARACTERS);
    if let Some(hit) = &report.cache_hit {
        text.push_str(&format!(
            "\nnot run: this result was kept by an earlier run, {} ago; `\"options\": {{\"cache\": false}}` runs it anew",
            words::age(hit.age_ms)
        ));
    }
    for warning in &report.warnings {
        text.push_str(&format!("\nwarning: {warning}"));
    }
    if !report.withheld.is_empty() {
        let names = report.withheld.join("`, `");
        text.push_str(&format!(
            "\nnot remembered, because it looks like a secret: `{names}`; it has to be given each time"
        ));
    }
    result_of(&text, &body.to_raw(), &content, false)
}

/// The answer to `pml_abort`. A run that ended as it was asked to is no error of that call.
pub(super) fn aborted(id: &RunId, standing: &Standing) -> Box<RawValue> {
    match standing {
        Standing::Over(report) if report.state == RunState::Aborted => over_without_result(id, report, false),
        other => reply(id, other),
    }
}

/// Why a run has no result.
pub(super) fn failure_text(id: &RunId, report: &Report) -> String {
    let fallback = Failure::nothing_known();
    let error = report.error.as_ref().unwrap_or(&fallback);
    let place = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let mut text = format!("{}: {}{place}", error.code, error.message);
    if let Some(hint) = &error.hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    if !report.tasks.is_empty() {
        let done = report.tasks.iter().map(|task| format!("{} {}", task.tool, word(task)));
        text.push_str(&format!("\ncalls so far: {}", done.collect::<Vec<_>>().join(", ")));
    }
    text.push_str(&format!("\nrun: {id}"));
    text
}

fn failed(id: &RunId, report: &Report) -> Box<RawValue> {
    over_without_result(id, report, true)
}

fn over_without_result(id: &RunId, report: &Report, is_error: bool) -> Box<RawValue> {
    let text = failure_text(id, report);
    let fallback = Failure::nothing_known();
    let error = report.error.as_ref().unwrap_or(&fallback);
    let mut body = json!({
        "status": "failed", "workflowId": id, "error": error, "tasks": report.tasks, "console": report.console,
    });
    if report.console_cut {
        body["consoleCut"] = true.into();
    }
    if !report.outcomes.is_empty() {
        body["outcomes"] = serde_json::to_value(&report.outcomes).unwrap_or_default();
    }
    tool_result(&text, &body, &[], is_error)
}

fn word(task: &Task) -> String {
    serde_json::to_value(task.status)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// A call of a run that went well.
fn brief(task: &Task) -> Value {
    let mut told = json!({ "nodeId": task.node_id, "tool": task.tool, "status": task.status, "executionTimeMs": task.execution_time_ms });
    if let Some(id) = &task.task_id {
        told["taskId"] = id.as_str().into();
    }
    if let Some(capability) = &task.capability {
        told["capability"] = capability.as_str().into();
    }
    told
}

pub(super) fn tool_result(text: &str, body: &Value, content: &[&RawValue], is_error: bool) -> Box<RawValue> {
    result_of(text, &raw(body), content, is_error)
}

fn result_of(text: &str, body: &RawValue, content: &[&RawValue], is_error: bool) -> Box<RawValue> {
    let first = raw(&json!({ "type": "text", "text": text }));
    let all: Vec<&RawValue> = std::iter::once(&*first).chain(content.iter().copied()).collect();
    let mut result = Fields::default();
    result.set("content", raw(&all));
    result.set("structuredContent", body.to_owned());
    result.set("isError", raw(&is_error));
    result.to_raw()
}
