//! Run statuses and refusals as tool results for clients.

use pml_model::json::{Fields, raw};
use pml_model::name::truncate_text;
use pml_model::question::{Answerer, LayerResult, Question};
use pml_model::remote::ExecuteLocally;
use pml_model::{RunId, RunState};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls::CallSummary;
use super::run_resources;
use crate::approve::words;
use crate::planning::PlanRefusal;
use crate::report::{CallReport, RunFailure, RunProgress, RunReport, RunStatus};
use crate::suggest::SuggestedDag;

/// The number of characters of a result in the text; the structured content has all of it.
const TEXT_CHARACTERS: usize = 16 * 1024;
/// The number of characters of a program's own message about its progress.
const PROGRESS_CHARACTERS: usize = 200;
/// The number of tasks of a DAG whose outcomes a reply lists.
const MOST_OUTCOMES: usize = 10;

/// The tool result for a program that was refused.
pub(super) fn refusal_result(refused: &PlanRefusal) -> Box<RawValue> {
    let mut error = serde_json::to_value(&refused.problem).unwrap_or_default();
    if let Some(line) = refused.line {
        error["line"] = line.into();
    }
    let mut text = match refused.line {
        Some(line) => format!("not run: line {line}: {}", refused.problem),
        None => format!("not run: {}", refused.problem),
    };
    if refused.reasons.len() > 1 {
        text.push_str(&format!("\nall {} reasons:\n{}", refused.reasons.len(), refused.reasons.join("\n")));
    }
    tool_result(&text, &json!({ "status": "failed", "error": error }), &[], true)
}

/// The tool result for a program that the client has to run itself.
pub(super) fn locally_result(local: &ExecuteLocally) -> Box<RawValue> {
    let text = format!(
        "execute_locally: {} on your machine; run the program there and send its trace to `/api/traces` with the \
         workflowId {}",
        local.client_tools.join(", "),
        local.workflow_id
    );
    let mut body = serde_json::to_value(local).unwrap_or_default();
    body["status"] = "execute_locally".into();
    tool_result(&text, &body, &[], false)
}

/// A suggested DAG as text for a model.
pub(super) fn dag_text(dag: &SuggestedDag) -> String {
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

/// The tool result for the status of a run.
pub(super) fn status_result(id: &RunId, standing: &RunStatus) -> Box<RawValue> {
    match standing {
        RunStatus::Finished(report) => report_result(id, report),
        RunStatus::Running(progress) => {
            let text = format!(
                "{id} is running, {}. Call `pml_continue` with it to wait again.",
                progress_text(progress)
            );
            tool_result(
                &text,
                &json!({ "status": "running", "workflowId": id, "progress": progress }),
                &[],
                false,
            )
        }
        RunStatus::Interrupted => {
            let text = format!(
                "{id} was interrupted and nobody works on it yet. It is taken up again by itself, or with `pml runs resume {id}`."
            );
            tool_result(&text, &json!({ "status": "running", "workflowId": id }), &[], false)
        }
        RunStatus::Elsewhere => {
            let text = format!("{id} goes on in another process. Call `pml_continue` with it to wait again.");
            tool_result(&text, &json!({ "status": "running", "workflowId": id }), &[], false)
        }
        RunStatus::Waiting { question: Some((name, question)), in_flight, .. } => {
            question_result(id, name, question, *in_flight)
        }
        RunStatus::Waiting { question: None, wake_at, .. } => {
            let text = format!("{id} sleeps until its timer is due. Call `pml_continue` with it later.");
            let body = json!({ "status": "running", "workflowId": id, "wakeAt": wake_at });
            tool_result(&text, &body, &[], false)
        }
    }
}

/// How far a run is that goes on, in a few words; nothing for one that asks something or is over.
pub(super) fn progress_of(standing: &RunStatus) -> String {
    match standing {
        RunStatus::Running(progress) => progress_text(progress),
        RunStatus::Interrupted => "it was interrupted and is taken up again by itself".to_owned(),
        RunStatus::Elsewhere => "it goes on in another process".to_owned(),
        RunStatus::Waiting { question: None, .. } => "it sleeps until its timer is due".to_owned(),
        RunStatus::Waiting { question: Some(_), .. } | RunStatus::Finished(_) => String::new(),
    }
}

/// What the program reports of its own progress, and its calls.
fn progress_text(progress: &RunProgress) -> String {
    let calls = format!("{} of {} calls ended", progress.ended, progress.calls);
    let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let done = progress.done.map(|done| format!("{done}{total} done"));
    let message = progress.message.as_deref().map(|said| truncate_text(said, PROGRESS_CHARACTERS));
    done.into_iter().chain(message).chain([calls]).collect::<Vec<_>>().join(", ")
}

/// The tool result for a run that is over.
pub(super) fn report_result(id: &RunId, report: &RunReport) -> Box<RawValue> {
    if report.state == RunState::Done { success_result(id, report) } else { failure_result(id, report) }
}

/// The tool result for the client that called a tool or a capability by name, from the status of the run its call became.
pub(super) fn of_direct_call(id: &RunId, standing: &RunStatus) -> Box<RawValue> {
    let (status, text) = match standing {
        RunStatus::Finished(report) => match (report.tool_result(), report.state) {
            (Some(result), _) => return result.to_owned(),
            (None, RunState::Done) => return capability_result(id, report),
            (None, _) => ("failed", failure_text(id, report)),
        },
        RunStatus::Waiting { question: Some((_, question)), in_flight, .. } => {
            ("approval_required", format!("approval_required: {}", question_text(id, question, *in_flight)))
        }
        RunStatus::Waiting { question: None, .. }
        | RunStatus::Running(_)
        | RunStatus::Interrupted
        | RunStatus::Elsewhere => (
            "running",
            format!("running: {id} is not over yet. Call `pml_continue` with it to wait for the result."),
        ),
    };
    raw(&json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
        "_meta": { "pml/workflowId": id, "pml/status": status },
    }))
}

/// The tool result of a capability that was called as a tool.
fn capability_result(id: &RunId, report: &RunReport) -> Box<RawValue> {
    let result = report.result.as_deref().map_or("null", RawValue::get);
    raw(&json!({
        "content": [{ "type": "text", "text": result }],
        "structuredContent": { "result": report.result },
        "_meta": { "pml/workflowId": id },
    }))
}

/// The question of a run, and how to answer it.
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
        Question::SignIn { .. } => text.push_str(
            "\nTell your user. Then call `pml_continue` with the `workflowId` to wait, with `approved` true to try again, or \
             with `approved` false to go on without these calls.",
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

fn question_result(id: &RunId, name: &str, question: &Question, in_flight: usize) -> Box<RawValue> {
    let text = question_text(id, question, in_flight);
    let mut body = json!({ "workflowId": id, "questionId": name, "inFlight": in_flight });
    match question {
        Question::Layer(layer) => {
            body["status"] = "layer_complete".into();
            body["layer"] = serde_json::to_value(layer).unwrap_or_default();
        }
        Question::InDoubt { .. } | Question::Approval(_) | Question::SignIn { .. } => {
            body["status"] = "approval_required".into();
            body["question"] = serde_json::to_value(question).unwrap_or_default();
        }
    }
    tool_result(&text, &body, &[], false)
}

fn success_result(id: &RunId, report: &RunReport) -> Box<RawValue> {
    let result = report.result.as_ref().map_or("null", |result| result.get());
    let mut body = Fields::default();
    body.set("status", raw(&"success"));
    body.set("workflowId", raw(id));
    body.set("result", report.result.clone().unwrap_or_else(|| raw(&Value::Null)));
    let calls = CallSummary::new(&report.tasks);
    body.set("tasks", raw(&calls.tasks(task_summary)));
    if let Some(counts) = calls.counts() {
        body.set("calls", raw(&counts));
    }
    if !report.outcomes.is_empty() {
        // Previews are left out: `pml_get_task_result` returns the results.
        let brief = |one: &LayerResult| LayerResult { result_preview: None, ..one.clone() };
        body.set("outcomes", raw(&listed_outcomes(&report.outcomes).map(brief).collect::<Vec<_>>()));
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
        if hit.ahead {
            body.set("prepared", raw(&true));
        }
    }
    if let Some(speculated) = calls.speculated() {
        body.set("speculated", raw(&speculated));
    }
    if !report.next.is_empty() {
        body.set("next", raw(&report.next));
    }
    if !report.withheld.is_empty() {
        body.set("withheld", raw(&report.withheld));
    }
    if !report.lifted.is_empty() {
        body.set("parametersMade", raw(&report.lifted));
    }
    if report.console_cut {
        body.set("consoleCut", raw(&true));
    }
    if !report.warnings.is_empty() {
        body.set("warnings", raw(&report.warnings));
    }
    let mut text = truncate_text(result, TEXT_CHARACTERS);
    let whole = (text.len() < result.len()).then(|| result_link(id, result.len()));
    let content: Vec<&RawValue> = report.contents().chain(whole.as_deref()).collect();
    if text.len() < result.len() {
        text.push_str(&format!(
            "\n… {} bytes in all: pml_get_task_result {{\"workflow_id\":\"{id}\",\"task_id\":\"result\"}} pages through them, and so does the resource {}?offset=0&limit=65536",
            result.len(),
            run_resources::result_uri(id)
        ));
    }
    let about_calls = calls.text(id);
    if !about_calls.is_empty() {
        text.push_str(&format!("\n{about_calls}"));
    }
    if let Some(hit) = &report.cache_hit {
        let kept = if hit.ahead { "prepared before it was asked for" } else { "kept by an earlier run" };
        text.push_str(&format!(
            "\nnot run: this result was {kept}, {} ago; `\"options\": {{\"cache\": false}}` runs it anew",
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
    if !report.lifted.is_empty() {
        let names = report.lifted.join("`, `");
        text.push_str(&format!(
            "\nlearned; values written into the program became parameters: `{names}` (give them in `context`, or say them)"
        ));
    }
    result_of(&text, &body.to_raw(), &content, false)
}

/// The link to the whole result of a run, of which the text shows only the beginning.
fn result_link(id: &RunId, size_bytes: usize) -> Box<RawValue> {
    raw(&json!({
        "type": "resource_link",
        "uri": run_resources::result_uri(id),
        "name": format!("result of {id}"),
        "description": "The whole result; `?offset=0&limit=65536` reads a page of it.",
        "mimeType": "application/json",
        "size": size_bytes,
    }))
}

/// The result of `pml_abort`. A run that was aborted as requested is no error of that call.
pub(super) fn abort_result(id: &RunId, standing: &RunStatus) -> Box<RawValue> {
    match standing {
        RunStatus::Finished(report) if report.state == RunState::Aborted => {
            over_without_result(id, report, false)
        }
        other => status_result(id, other),
    }
}

/// Why a run failed.
pub(super) fn failure_text(id: &RunId, report: &RunReport) -> String {
    let fallback = RunFailure::nothing_known();
    let error = report.error.as_ref().unwrap_or(&fallback);
    let place = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let mut text = format!("{}: {}{place}", error.code, error.message);
    if let Some(hint) = &error.hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    let calls = CallSummary::new(&report.tasks);
    for line in [calls.text(id), calls.finished_text().unwrap_or_default()] {
        if !line.is_empty() {
            text.push_str(&format!("\n{line}"));
        }
    }
    text.push_str(&format!("\nrun: {id}"));
    text
}

fn failure_result(id: &RunId, report: &RunReport) -> Box<RawValue> {
    over_without_result(id, report, true)
}

fn over_without_result(id: &RunId, report: &RunReport, is_error: bool) -> Box<RawValue> {
    let text = failure_text(id, report);
    let fallback = RunFailure::nothing_known();
    let error = report.error.as_ref().unwrap_or(&fallback);
    let calls = CallSummary::new(&report.tasks);
    let tasks = calls.tasks(|task| serde_json::to_value(task).unwrap_or_default());
    let mut body = json!({
        "status": "failed", "workflowId": id, "error": error, "tasks": tasks, "console": report.console,
    });
    if let Some(counts) = calls.counts() {
        body["calls"] = counts;
    }
    if report.console_cut {
        body["consoleCut"] = true.into();
    }
    if !report.outcomes.is_empty() {
        let listed: Vec<&LayerResult> = listed_outcomes(&report.outcomes).collect();
        body["outcomes"] = serde_json::to_value(listed).unwrap_or_default();
    }
    tool_result(&text, &body, &[], is_error)
}

/// The outcomes that a reply lists: all of a few, else those of the tasks that failed.
fn listed_outcomes(outcomes: &[LayerResult]) -> impl Iterator<Item = &LayerResult> {
    let is_short = outcomes.len() <= MOST_OUTCOMES;
    outcomes.iter().filter(move |one| is_short || one.status != "success").take(MOST_OUTCOMES)
}

/// A successful call of a run.
fn task_summary(task: &CallReport) -> Value {
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

/// A tool result with this text and structured content.
pub(super) fn result_of(text: &str, body: &RawValue, content: &[&RawValue], is_error: bool) -> Box<RawValue> {
    let first = raw(&json!({ "type": "text", "text": text }));
    let all: Vec<&RawValue> = std::iter::once(&*first).chain(content.iter().copied()).collect();
    let mut result = Fields::default();
    result.set("content", raw(&all));
    result.set("structuredContent", body.to_owned());
    result.set("isError", raw(&is_error));
    result.to_raw()
}
