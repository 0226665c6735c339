//! Reads a run: the status of its tasks, and their complete results.

use std::sync::Arc;

use pml_model::question::{LayerResult, Question};
use pml_model::{Principal, RunId, RunState};
use serde::Serialize;
use serde_json::Value;

use super::RunRegistry;
use super::dag::{DagRun, DagTasks};
use super::delivery::RunDelivery;
use super::journal::{History, decode_recorded};
use super::no_run;
use super::observe::Observer;
use crate::problem::{ErrorCode, Problem};
use crate::report::{CallReport, CapabilityResult, RunReport, TaskStatus};

/// The details of a run.
#[derive(Debug)]
pub struct RunDetails {
    /// The state of the run.
    pub state: RunState,
    /// The calls so far.
    pub tasks: Vec<CallReport>,
    /// The outcomes of the tasks of a DAG so far.
    pub outcomes: Vec<LayerResult>,
    /// The called capabilities without their results; known once the run has ended.
    pub called: Vec<CapabilityResult>,
    /// The open question, with its id.
    pub question: Option<(String, Question)>,
}

/// A request for a part of a result.
#[derive(Debug)]
pub struct ResultRequest {
    /// The task: `n2` (the latest call there), `n2#1` (the first), `n3/n1` (a call within the capability that is called
    /// at `n3`), the number of a call, the id of a task of a DAG, or `result`.
    pub task: String,
    /// The first byte.
    pub offset: usize,
    /// The number of bytes at most.
    pub limit: usize,
    /// Whether to indent JSON.
    pub pretty: bool,
}

/// The names of the run's own result. A task of a DAG may take the first name; the second always means the run.
const OWN_RESULT: [&str; 2] = ["result", "$result"];

/// A part of a result.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultPage {
    /// The outcome of the task.
    pub status: TaskStatus,
    /// The task id of the request.
    pub task_id: String,
    /// The text of this part.
    pub content: String,
    /// The offset of this part, in bytes.
    pub offset: usize,
    /// The offset of the next part; `None` at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    /// The size of the complete result.
    pub total_bytes: usize,
}

/// The status of a run, call by call.
///
/// # Errors
/// There is no such run, or its records are no longer kept.
pub async fn overview(runs: &RunRegistry, principal: &Principal, id: &RunId) -> Result<RunDetails, Problem> {
    let recorded = runs.store.load_run(principal, id).await.map_err(|error| told(id, error))?;
    let (plan, history) = decode_recorded(&recorded)?;
    let plan = Arc::new(plan);
    let mut observer = Observer::new(Arc::clone(&plan));
    observer.restore(&history);
    let outcomes = DagRun::restore(&plan, &history).map(|dag| dag.outcomes()).unwrap_or_default();
    let without_result = |called: CapabilityResult| CapabilityResult { result: None, ..called };
    let called = over(&recorded).map(|report| report.called).unwrap_or_default();
    Ok(RunDetails {
        state: recorded.run.state,
        tasks: observer.call_reports(),
        outcomes,
        called: called.into_iter().map(without_result).collect(),
        question: recorded.question,
    })
}

/// The tasks of a DAG run and their status.
///
/// # Errors
/// The run is not a DAG, or its record cannot be read.
pub fn dag_tasks(recorded: &pml_store::RunRecord) -> Result<DagTasks, Problem> {
    let (plan, history) = decode_recorded(recorded)?;
    let plan = Arc::new(plan);
    let dag = DagRun::restore(&plan, &history).ok_or_else(|| {
        Problem::new(ErrorCode::InvalidRequest, format!("run `{}` has no tasks", recorded.run.id))
    })?;
    Ok(dag.into_tasks())
}

/// A part of the result of a task.
///
/// # Errors
/// There is no such run or task, the task has no result, or results are no longer kept.
pub async fn result_page(
    runs: &RunRegistry,
    principal: &Principal,
    id: &RunId,
    wanted: &ResultRequest,
) -> Result<ResultPage, Problem> {
    let recorded = runs.store.load_run(principal, id).await.map_err(|error| told(id, error))?;
    let (plan, history) = decode_recorded(&recorded)?;
    let plan = Arc::new(plan);
    let dag = DagRun::restore(&plan, &history);
    let (status, text) = match &dag {
        Some(dag) if dag.ids().any(|id| id == wanted.task) => of_task(dag, &wanted.task)?,
        _ if OWN_RESULT.contains(&wanted.task.as_str()) => own(over(&recorded).as_ref(), &wanted.task)?,
        // The id names a call, not a task.
        Some(dag) if dag.result(&wanted.task).is_none() && number(&history, &wanted.task).is_some() => {
            find(&history, &[], &wanted.task)?
        }
        Some(dag) => of_task(dag, &wanted.task)?,
        None => {
            let called = over(&recorded).map(|report| report.called).unwrap_or_default();
            find(&history, &called, &wanted.task)?
        }
    };
    let text = match serde_json::from_str::<Value>(&text) {
        Ok(value) if wanted.pretty => serde_json::to_string_pretty(&value).unwrap_or(text),
        _ => text,
    };
    Ok(page(&text, status, wanted))
}

/// The report of a finished run.
fn over(recorded: &pml_store::RunRecord) -> Option<RunReport> {
    serde_json::from_slice(recorded.outcome.as_deref()?).ok()
}

/// The result of the run itself.
fn own(over: Option<&RunReport>, task: &str) -> Result<(TaskStatus, String), Problem> {
    let report = over.ok_or_else(|| not_yet(task))?;
    match (&report.result, &report.error) {
        (Some(result), _) => Ok((TaskStatus::Success, result.get().to_owned())),
        (None, Some(error)) => {
            Ok((TaskStatus::Error, serde_json::to_string(error).expect("an error is plain data")))
        }
        (None, None) => Err(not_yet(task)),
    }
}

/// The result of a called capability.
fn of_capability(called: &CapabilityResult) -> Result<(TaskStatus, String), Problem> {
    let task = &called.task_id;
    match (&called.result, &called.error) {
        (Some(result), _) => Ok((called.status, result.get().to_owned())),
        (None, Some(error)) => {
            Ok((called.status, serde_json::to_string(error).expect("an error is plain data")))
        }
        (None, None) if called.status == TaskStatus::Success => {
            let text = format!("what `{}` returned at `{task}` was too large to be kept", called.capability);
            Err(Problem::new(ErrorCode::TooLarge, text)
                .hint("return it from the program, or ask for the calls within it"))
        }
        (None, None) => Err(not_yet(task)),
    }
}

pub(super) fn told(id: &RunId, error: pml_store::Error) -> Problem {
    match error {
        pml_store::Error::UnknownRun { .. } => no_run(id),
        pml_store::Error::RecordsExpired { .. } => Problem::new(
            ErrorCode::Gone,
            format!("the results of run `{id}` have expired and are no longer kept"),
        )
        .hint("`runs.keep_results` in pml.toml says how long they are"),
        other => other.into(),
    }
}

/// The result or error of a tool or capability call, as text.
fn find(history: &History, called: &[CapabilityResult], task: &str) -> Result<(TaskStatus, String), Problem> {
    let call = number(history, task);
    if call.is_none()
        && let Some(called) = called.iter().rev().find(|called| is_at(&called.task_id, task))
    {
        return of_capability(called);
    }
    let call = call.ok_or_else(|| {
        let tools = history.calls.iter().filter_map(|call| call.node.as_deref());
        let mut known: Vec<&str> = tools.chain(called.iter().map(|called| called.task_id.as_str())).collect();
        known.dedup();
        let hint = match known.is_empty() {
            true => "the run has called nothing yet".to_owned(),
            false => format!("it has {}", known.join(", ")),
        };
        Problem::new(
            ErrorCode::InvalidRequest,
            format!("the run has no task `{}`", pml_model::name::printable(task)),
        )
        .hint(hint)
    })?;
    let ended = history.deliveries.iter().rev().find(|(_, what)| what.call() == Some(call));
    match ended {
        Some((_, RunDelivery::Result { value, .. })) => Ok((TaskStatus::Success, value.get().to_owned())),
        Some((_, RunDelivery::Error { error, .. })) => {
            let status = if error.unknown { TaskStatus::Unknown } else { TaskStatus::Error };
            Ok((status, serde_json::to_string(error).expect("an error is plain data")))
        }
        Some((
            _,
            RunDelivery::Timer { .. }
            | RunDelivery::Frame { .. }
            | RunDelivery::Layer { .. }
            | RunDelivery::Pause,
        ))
        | None => Err(not_yet(task)),
    }
}

fn not_yet(task: &str) -> Problem {
    Problem::new(
        ErrorCode::InvalidRequest,
        format!("task `{}` has no result yet", pml_model::name::printable(task)),
    )
    .hint("wait for the run with `pml_continue`")
}

/// The result or error of a task of a DAG, as text.
fn of_task(dag: &DagRun, task: &str) -> Result<(TaskStatus, String), Problem> {
    match dag.result(task) {
        Some(Ok(value)) => Ok((TaskStatus::Success, value.get().to_owned())),
        Some(Err(error)) => {
            let status = if error.unknown { TaskStatus::Unknown } else { TaskStatus::Error };
            Ok((status, serde_json::to_string(error).expect("an error is plain data")))
        }
        None if dag.ids().any(|id| id == task) => Err(not_yet(task)),
        None => {
            let known: Vec<&str> = dag.ids().take(20).collect();
            Err(Problem::new(
                ErrorCode::InvalidRequest,
                format!("the run has no task `{}`", pml_model::name::printable(task)),
            )
            .hint(format!("it has {}", known.join(", "))))
        }
    }
}

/// Whether `id` is `task`, or one of several at that place.
fn is_at(id: &str, task: &str) -> bool {
    id == task || id.split_once('#').is_some_and(|(place, _)| place == task)
}

/// The number of the call that `task` names.
fn number(history: &History, task: &str) -> Option<u32> {
    if let Ok(call) = task.parse::<u32>() {
        return (1..=history.calls.len()).contains(&(call as usize)).then_some(call);
    }
    let (name, which) = match task.rsplit_once('#') {
        Some((name, which)) => (name, Some(which.parse::<usize>().ok()?)),
        None => (task, None),
    };
    let there = history.calls.iter().enumerate().filter(|(_, call)| call.node.as_deref() == Some(name));
    let calls: Vec<u32> = there.filter_map(|(index, _)| u32::try_from(index + 1).ok()).collect();
    match which {
        Some(which) => calls.get(which.checked_sub(1)?).copied(),
        None => calls.last().copied(),
    }
}

/// A part that starts and ends at character boundaries.
fn page(text: &str, status: TaskStatus, wanted: &ResultRequest) -> ResultPage {
    let boundary =
        |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let offset = boundary(wanted.offset);
    let mut end = boundary(offset.saturating_add(wanted.limit));
    if end == offset {
        // Not even one character fits the limit; without this the client would never get further.
        end += text[offset..].chars().next().map_or(0, char::len_utf8);
    }
    ResultPage {
        status,
        task_id: wanted.task.clone(),
        content: text[offset..end].to_owned(),
        offset,
        next_offset: (end < text.len()).then_some(end),
        total_bytes: text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, offset: usize, limit: usize) -> ResultPage {
        page(
            text,
            TaskStatus::Success,
            &ResultRequest { task: "n1".to_owned(), offset, limit, pretty: false },
        )
    }

    #[test]
    fn pages_put_together_are_the_whole_whatever_their_size() {
        let text = "a\u{e9}\u{20ac}\u{1f600}z".repeat(7);
        for limit in 1..=text.len() + 1 {
            let (mut whole, mut offset) = (String::new(), Some(0));
            while let Some(at) = offset {
                let page = read(&text, at, limit);
                assert!(!page.content.is_empty() && page.total_bytes == text.len());
                whole.push_str(&page.content);
                offset = page.next_offset;
            }
            assert_eq!(whole, text, "{limit}");
        }
    }

    #[test]
    fn a_page_past_the_end_is_empty() {
        let past = read("abc", 10, 5);
        assert_eq!((past.content.as_str(), past.next_offset), ("", None));
        assert_eq!(read("", 0, 5).next_offset, None);
    }
}
