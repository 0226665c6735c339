//! The report of an exploration, as it is sent to clients.

use std::cmp::Ordering;

use pml_model::name::{printable, truncate_text};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{CapturedCall, DryRunEffect, RunFailure};
use crate::problem::ErrorCode;

/// Characters of a result in the text: three paths with results stay below 600 tokens.
const RESULT_CHARACTERS: usize = 160;
/// Characters of a message in the text.
const MESSAGE_CHARACTERS: usize = 160;
/// Warnings and effects of one path that the text lists.
const MOST_LISTED: usize = 2;
/// Failed paths that the text tells; the data has all.
const MOST_FAILED: usize = 3;

/// Ways to serve an intent, each tried.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exploration {
    /// The id that traces of its paths refer to; absent if nothing is learned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exploration_id: Option<String>,
    /// The intent.
    pub intent: String,
    /// How many paths were tried.
    pub paths_explored: usize,
    /// The paths that returned, best first.
    pub viable_paths: Vec<ViablePath>,
    /// The paths that failed.
    pub failed_paths: Vec<FailedPath>,
    /// What holds for the exploration as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Every call of every path.
    pub trace: ExplorationTrace,
}

/// A path that returned.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ViablePath {
    /// The id to run it with: `explorePath` of `pml_execute`.
    pub path_id: String,
    /// The tools, in an order in which they can be called.
    pub path: Vec<String>,
    /// The probability that it does what was asked, from 0 to 1.
    pub confidence: f64,
    /// How many calls were really made.
    pub real_executions: usize,
    /// How many calls were answered with made-up values.
    pub mocked_executions: usize,
    /// What it returned; it may contain made-up values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub result: Option<Box<RawValue>>,
    /// The results of real calls, and what stood in for the others.
    pub outputs: Vec<PathOutput>,
    /// What running it would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<DryRunEffect>,
    /// What the request does not say and was made up: give it in `context` to run the path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// How often it was chosen for a similar intent and worked.
    #[serde(skip_serializing_if = "is_zero")]
    pub worked_before: u64,
    /// What to know before running it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How often each tool was called before, and how often it failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ToolHistory>,
    /// The DAG document.
    #[schema(value_type = Object)]
    pub dag_structure: Value,
    /// What speaks for it beside its confidence.
    #[serde(skip)]
    pub standing: PathStanding,
}

impl ViablePath {
    /// Compares two paths; the better one is the lesser.
    pub(crate) fn best_first(&self, other: &ViablePath) -> Ordering {
        self.standing.cmp(&other.standing).then(other.confidence.total_cmp(&self.confidence))
    }
}

/// What speaks for a path that returned, beside its confidence: the best first. How a request reads as a whole says more
/// than how well single tools fit its steps, unless calls that were really made say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathStanding {
    /// It serves the request as a whole, and nothing is missing.
    Whole,
    /// It was put together step by step, and some of its calls were really made.
    Tried,
    /// It serves the request as a whole, but something is missing or speaks against it.
    WholeWithGaps,
    /// It was put together step by step, and all its results are made up.
    MadeUp,
}

/// The answer of one call.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathOutput {
    /// The tool.
    pub tool: String,
    /// Whether the answer was made up.
    pub mocked: bool,
    /// The answer, shortened.
    pub preview: String,
}

/// What is known of earlier calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolHistory {
    /// The tool.
    pub tool: String,
    /// Its calls.
    pub calls: u64,
    /// Those that failed by its fault.
    pub failures: u64,
}

/// A path that failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedPath {
    /// The tools, in an order in which they can be called.
    pub path: Vec<String>,
    /// The tool at which it failed; absent where no call was to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_point: Option<String>,
    /// The code of the failure.
    #[schema(value_type = String)]
    pub code: ErrorCode,
    /// Why it failed.
    pub error: String,
    /// The answers up to there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<PathOutput>,
}

/// Every call of every path.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplorationTrace {
    /// Always true: such calls count as no run.
    pub exploratory: bool,
    /// The share of calls that were not really made.
    pub mock_ratio: f64,
    /// The calls, path by path.
    pub task_results: Vec<ExploredCall>,
}

/// One call of an exploration.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExploredCall {
    /// The number of its path, in the order in which they were tried.
    pub path: usize,
    /// The tool.
    pub tool: String,
    /// The arguments.
    #[schema(value_type = Object)]
    pub args: Box<RawValue>,
    /// Whether it succeeded.
    pub success: bool,
    /// Whether the answer was made up.
    pub mocked: bool,
    /// How long the answer took, in milliseconds.
    pub duration_ms: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ExploredCall {
    /// A call of the path with this number.
    pub(crate) fn new(path: usize, call: &CapturedCall) -> ExploredCall {
        ExploredCall {
            path,
            tool: format!("{}:{}", call.server, call.tool),
            args: call.args.clone(),
            success: call.error.is_none(),
            mocked: !call.is_real(),
            duration_ms: call.duration_ms,
        }
    }
}

impl PathOutput {
    /// The answer of a call, shortened.
    pub(crate) fn new(call: &CapturedCall) -> PathOutput {
        let answer = call.response.as_ref().or(call.mock_response.as_ref());
        let failed = |error: &RunFailure| format!("failed: {}", error.message);
        let text = answer.map(|answer| answer.get().to_owned()).or(call.error.as_ref().map(failed));
        PathOutput {
            tool: format!("{}:{}", call.server, call.tool),
            mocked: !call.is_real(),
            preview: truncate_text(&text.unwrap_or_default(), RESULT_CHARACTERS),
        }
    }
}

impl Exploration {
    /// The exploration as a short text to choose from. `label` tells how each path is called.
    pub fn text(&self, label: impl Fn(&ViablePath) -> String) -> String {
        let noun = if self.paths_explored == 1 { "path" } else { "paths" };
        let mut text = format!("{} {noun} explored, {} viable", self.paths_explored, self.viable_paths.len());
        for (number, path) in (1..).zip(&self.viable_paths) {
            text.push_str(&format!("\n{number}. {}", path.text(&label(path))));
        }
        for path in self.failed_paths.iter().take(MOST_FAILED) {
            let at = path.failure_point.as_deref().map(|at| format!(" at {at}")).unwrap_or_default();
            let error = printable(&truncate_text(&path.error, MESSAGE_CHARACTERS));
            text.push_str(&format!("\nfailed: {}{at}: {error}", path.path.join(" → ")));
        }
        let more = self.failed_paths.len().saturating_sub(MOST_FAILED);
        if more > 0 {
            text.push_str(&format!("\nfailed: {more} more"));
        }
        for warning in self.warnings.iter().take(MOST_LISTED) {
            text.push_str(&format!("\nnote: {}", printable(&truncate_text(warning, MESSAGE_CHARACTERS))));
        }
        text
    }
}

impl ViablePath {
    fn text(&self, label: &str) -> String {
        let mut text = format!(
            "{} ({:.2}; {} real, {} mocked{}){label}",
            self.path.join(" → "),
            self.confidence,
            self.real_executions,
            self.mocked_executions,
            if self.worked_before > 0 { "; chosen before, and it worked" } else { "" },
        );
        if let Some(result) = &self.result {
            let result = printable(&truncate_text(result.get(), RESULT_CHARACTERS));
            let mark = if self.mocked_executions > 0 { " (partly made up)" } else { "" };
            text.push_str(&format!("\n   returns{mark}: {result}"));
        }
        for effect in self.effects.iter().take(MOST_LISTED) {
            text.push_str(&format!("\n   {}", printable(&truncate_text(&effect.text, MESSAGE_CHARACTERS))));
        }
        for warning in self.warnings.iter().take(MOST_LISTED) {
            text.push_str(&format!("\n   note: {}", printable(&truncate_text(warning, MESSAGE_CHARACTERS))));
        }
        let failing = self.history.iter().filter(|history| history.failures > 0);
        for history in failing.take(MOST_LISTED) {
            let ToolHistory { tool, calls, failures } = history;
            text.push_str(&format!("\n   {tool} failed {failures} of {calls} times before"));
        }
        text
    }
}
