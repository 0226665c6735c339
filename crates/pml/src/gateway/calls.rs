//! The calls of a run in a reply: a few are listed, many are summarised. `pml_get_task_result` lists them all.

use std::collections::BTreeMap;

use pml_model::RunId;
use serde::Serialize;
use serde_json::{Value, json};

use crate::report::{CallReport, TaskStatus};

/// The number of calls that a reply lists one by one; of more it has a summary.
const MOST_LISTED: usize = 10;
/// The number of failed calls in a summary.
const MOST_FAILURES: usize = 3;
/// The number of slowest calls in a summary.
const SLOWEST: usize = 3;
/// The number of tools whose calls are counted; the others are counted together.
const MOST_TOOLS: usize = 8;

/// The calls of a run, as a reply shows them.
pub(super) struct CallSummary<'r> {
    calls: &'r [CallReport],
    /// The failures first, then the others that are worth a look.
    shown: Vec<&'r CallReport>,
}

/// The number of calls of a tool, by status.
type StatusCounts = BTreeMap<&'static str, usize>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallCounts<'r> {
    total: usize,
    by_tool: BTreeMap<&'r str, StatusCounts>,
}

impl<'r> CallSummary<'r> {
    pub(super) fn new(calls: &'r [CallReport]) -> CallSummary<'r> {
        if calls.len() <= MOST_LISTED {
            return CallSummary { calls, shown: calls.iter().collect() };
        }
        let failed = calls.iter().filter(|call| is_failure(call)).take(MOST_FAILURES);
        let mut slowest: Vec<&CallReport> = calls.iter().filter(|call| !is_failure(call)).collect();
        slowest.sort_by_key(|call| std::cmp::Reverse(call.execution_time_ms));
        CallSummary { calls, shown: failed.chain(slowest.into_iter().take(SLOWEST)).collect() }
    }

    /// Whether calls are left out.
    pub(super) fn is_summary(&self) -> bool {
        self.shown.len() < self.calls.len()
    }

    /// The listed calls, each as `task` renders it.
    pub(super) fn tasks(&self, task: impl Fn(&CallReport) -> Value) -> Vec<Value> {
        self.shown.iter().map(|call| task(call)).collect()
    }

    /// How many calls there were, by tool and status; `None` if all of them are listed.
    pub(super) fn counts(&self) -> Option<Value> {
        let counts = CallCounts { total: self.calls.len(), by_tool: self.by_tool() };
        self.is_summary().then(|| json!(counts))
    }

    /// How many calls were made before the program asked for them, and how much time that saved; of those that a dry run
    /// made, how many and how old the oldest is.
    pub(super) fn speculated(&self) -> Option<Value> {
        let ahead = self.calls.iter().filter(|call| call.speculated);
        let saved_ms: u64 = ahead.clone().filter_map(|call| call.saved_ms).sum();
        let ages: Vec<u64> = ahead.clone().filter_map(|call| call.age_ms).collect();
        let calls = ahead.count();
        let mut told = json!({ "calls": calls, "savedMs": saved_ms });
        if let Some(oldest_ms) = ages.iter().max() {
            told["fromDryRun"] = json!(ages.len());
            told["oldestMs"] = json!(oldest_ms);
        }
        (calls > 0).then_some(told)
    }

    fn by_tool(&self) -> BTreeMap<&'r str, StatusCounts> {
        let mut all: BTreeMap<&str, StatusCounts> = BTreeMap::new();
        for call in self.calls {
            *all.entry(&call.tool).or_default().entry(status_word(call.status)).or_default() += 1;
        }
        if all.len() <= MOST_TOOLS {
            return all;
        }
        let mut ranked: Vec<(&str, StatusCounts)> = all.into_iter().collect();
        // Tools with failures are named first, then those with most calls.
        let order = |counts: &StatusCounts| (counts.len() > 1, counts.values().sum::<usize>());
        ranked.sort_by_key(|(_, counts)| std::cmp::Reverse(order(counts)));
        let mut others = StatusCounts::new();
        for (status, count) in ranked.split_off(MOST_TOOLS).into_iter().flat_map(|(_, counts)| counts) {
            *others.entry(status).or_default() += count;
        }
        ranked.into_iter().chain(std::iter::once(("others", others))).collect()
    }

    /// The failures and the counts, in a few words; empty if there is nothing to say beside the result of a success.
    pub(super) fn text(&self, id: &RunId) -> String {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.failures_text());
        if self.is_summary() {
            let counts =
                self.by_tool().into_iter().map(|(tool, counts)| format!("{tool} {}", counts_text(&counts)));
            let counts = counts.collect::<Vec<_>>().join(", ");
            lines.push(format!("{} calls: {counts}", self.calls.len()));
            let slow = self.shown.iter().filter(|call| !is_failure(call));
            let slow: Vec<String> = slow.map(|call| format!("{} {} ms", place(call), millis(call))).collect();
            lines.push(format!(
                "slowest: {}; all: pml_get_task_result {{\"workflow_id\":\"{id}\"}}",
                slow.join(", ")
            ));
        }
        lines.join("\n")
    }

    /// The failed calls, each with its error; `None` if there are none.
    fn failures_text(&self) -> Option<String> {
        let failed: Vec<&CallReport> = self.calls.iter().filter(|call| is_failure(call)).collect();
        let told = |call: &&CallReport| {
            let why = call.result_preview.as_deref().map(first_line).filter(|why| !why.is_empty());
            format!("{}{}", place(call), why.map(|why| format!(": {why}")).unwrap_or_default())
        };
        let mut lines: Vec<String> = failed.iter().take(MOST_FAILURES).map(told).collect();
        if failed.len() > MOST_FAILURES {
            lines.push(format!("{} more", failed.len() - MOST_FAILURES));
        }
        (!failed.is_empty())
            .then(|| format!("{} of {} calls failed: {}", failed.len(), self.calls.len(), lines.join("; ")))
    }

    /// What a failed run has done, by tool; `None` if no call succeeded.
    pub(super) fn finished_text(&self) -> Option<String> {
        let mut done: BTreeMap<&str, usize> = BTreeMap::new();
        for call in self.calls.iter().filter(|call| call.status == TaskStatus::Success) {
            *done.entry(&call.tool).or_default() += 1;
        }
        let named: Vec<String> = done
            .iter()
            .take(MOST_TOOLS)
            .map(|(tool, times)| if *times == 1 { (*tool).to_owned() } else { format!("{tool} × {times}") })
            .collect();
        (!named.is_empty()).then(|| format!("finished: {}", named.join(", ")))
    }
}

/// The longest error of a call in a summary, in characters.
const ERROR_CHARACTERS: usize = 120;

fn first_line(preview: &str) -> String {
    let line = crate::approve::words::visible(preview);
    pml_model::name::truncate_text(line.lines().next().unwrap_or_default(), ERROR_CHARACTERS)
}

/// The tool of a call and its place in the program.
fn place(call: &CallReport) -> String {
    let node = || call.node_id.map(|node| node.to_string());
    match call.task_id.clone().or_else(node) {
        Some(place) => format!("{} ({place})", call.tool),
        None => call.tool.clone(),
    }
}

fn millis(call: &CallReport) -> i64 {
    call.execution_time_ms.unwrap_or_default()
}

fn counts_text(counts: &StatusCounts) -> String {
    let counts: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    counts.join(" + ")
}

pub(super) fn is_failure(call: &CallReport) -> bool {
    matches!(call.status, TaskStatus::Error | TaskStatus::Unknown)
}

fn status_word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Success => "success",
        TaskStatus::Error => "error",
        TaskStatus::Cancelled => "cancelled",
        TaskStatus::Unknown => "unknown",
    }
}
