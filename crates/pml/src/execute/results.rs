//! Looks into a run: its tasks as they stand, and their results in full.

use std::sync::Arc;

use pml_model::question::Question;
use pml_model::{Principal, RunId, RunState};
use serde::Serialize;
use serde_json::Value;

use super::journal::{Delivered, History};
use super::no_run;
use super::observe::Observer;
use super::plan::Plan;
use super::report::{Task, TaskStatus};
use super::resume::understood;
use crate::app::{App, blocking};
use crate::problem::{Code, Problem};

/// A run in a few words.
#[derive(Debug)]
pub struct Overview {
    /// How it stands.
    pub state: RunState,
    /// Its calls so far.
    pub tasks: Vec<Task>,
    /// What it asks, under its name.
    pub question: Option<(String, Question)>,
}

/// Which part of which result is wanted.
#[derive(Debug)]
pub struct Wanted {
    /// `n2` (the latest call there), `n2#1` (the first), or the number of a call.
    pub task: String,
    /// From which byte.
    pub offset: usize,
    /// How many bytes at most.
    pub limit: usize,
    /// Indented, if it is JSON.
    pub pretty: bool,
}

/// A part of a result.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// What became of the task.
    pub status: TaskStatus,
    /// As it was asked for.
    pub task_id: String,
    /// The part.
    pub content: String,
    /// Where it begins.
    pub offset: usize,
    /// Where the rest begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    /// The size of the whole.
    pub total_bytes: usize,
}

/// How a run stands, call by call.
///
/// # Errors
/// There is no such run, or its records are no longer kept.
pub async fn overview(app: &App, principal: &Principal, id: &RunId) -> Result<Overview, Problem> {
    let (store, whose, run) = (app.store.clone(), principal.clone(), id.clone());
    let recorded = blocking(move || store.load(&whose, &run)).await.map_err(|error| told(id, error))?;
    let (plan, history) = understood(&recorded)?;
    let mut observer = Observer::new(Arc::new(plan));
    observer.remember(&history);
    Ok(Overview { state: recorded.run.state, tasks: observer.tasks(), question: recorded.question })
}

/// A part of the result of a task.
///
/// # Errors
/// There is no such run or task, the task has no result, or results are no longer kept.
pub async fn result(app: &App, principal: &Principal, id: &RunId, wanted: &Wanted) -> Result<Page, Problem> {
    let (store, whose, run) = (app.store.clone(), principal.clone(), id.clone());
    let recorded = blocking(move || store.load(&whose, &run)).await.map_err(|error| told(id, error))?;
    let (plan, history) = understood(&recorded)?;
    let (status, text) = find(&plan, &history, &wanted.task)?;
    let text = match serde_json::from_str::<Value>(&text) {
        Ok(value) if wanted.pretty => serde_json::to_string_pretty(&value).unwrap_or(text),
        _ => text,
    };
    Ok(page(&text, status, wanted))
}

fn told(id: &RunId, error: pml_store::Error) -> Problem {
    match error {
        pml_store::Error::NoRun { .. } => no_run(id),
        pml_store::Error::Expired { .. } => {
            Problem::new(Code::Gone, format!("the results of run `{id}` have expired and are no longer kept"))
                .hint("`runs.keep_results` in pml.toml says how long they are")
        }
        other => other.into(),
    }
}

/// The result of a task, or its error, as text.
fn find(plan: &Plan, history: &History, task: &str) -> Result<(TaskStatus, String), Problem> {
    let call = number(plan, history, task).ok_or_else(|| {
        let mut known: Vec<&str> = history.calls.iter().filter_map(|call| call.node.as_deref()).collect();
        known.dedup();
        let hint = match known.is_empty() {
            true => "the run has called nothing yet".to_owned(),
            false => format!("it has {}", known.join(", ")),
        };
        Problem::new(
            Code::InvalidRequest,
            format!("the run has no task `{}`", pml_model::name::printable(task)),
        )
        .hint(hint)
    })?;
    let ended = history.deliveries.iter().rev().find(|(_, what)| what.call() == Some(call));
    match ended {
        Some((_, Delivered::Result { value, .. })) => Ok((TaskStatus::Success, value.get().to_owned())),
        Some((_, Delivered::Error { error, .. })) => {
            let status = if error.unknown { TaskStatus::Unknown } else { TaskStatus::Error };
            Ok((status, serde_json::to_string(error).expect("an error is plain data")))
        }
        Some((_, Delivered::Timer { .. })) | None => {
            Err(Problem::new(Code::InvalidRequest, format!("task `{task}` has no result yet"))
                .hint("wait for the run with `pml_continue`"))
        }
    }
}

/// The number of the call that is meant.
fn number(plan: &Plan, history: &History, task: &str) -> Option<u32> {
    if let Ok(call) = task.parse::<u32>() {
        return (1..=history.calls.len()).contains(&(call as usize)).then_some(call);
    }
    let (name, which) = match task.rsplit_once('#') {
        Some((name, which)) => (name, Some(which.parse::<usize>().ok()?)),
        None => (task, None),
    };
    let node = plan.node_of_task(name);
    let there = history.calls.iter().enumerate().filter(|(_, call)| call.node.as_deref() == Some(&*node));
    let calls: Vec<u32> = there.filter_map(|(index, _)| u32::try_from(index + 1).ok()).collect();
    match which {
        Some(which) => calls.get(which.checked_sub(1)?).copied(),
        None => calls.last().copied(),
    }
}

/// A part that begins and ends where characters do.
fn page(text: &str, status: TaskStatus, wanted: &Wanted) -> Page {
    let offset = start_of_character(text, wanted.offset);
    let mut end = start_of_character(text, offset.saturating_add(wanted.limit));
    if end == offset {
        // Not even one character fits; without it nobody would ever get further.
        end += text[offset..].chars().next().map_or(0, char::len_utf8);
    }
    Page {
        status,
        task_id: wanted.task.clone(),
        content: text[offset..end].to_owned(),
        offset,
        next_offset: (end < text.len()).then_some(end),
        total_bytes: text.len(),
    }
}

/// Where the character begins that has this byte; the end of the text where there is none.
fn start_of_character(text: &str, byte: usize) -> usize {
    let byte = byte.min(text.len());
    (0..=byte).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, offset: usize, limit: usize) -> Page {
        page(text, TaskStatus::Success, &Wanted { task: "n1".to_owned(), offset, limit, pretty: false })
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
