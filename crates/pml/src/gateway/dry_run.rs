//! Dry runs through `pml_execute`: their options and their reply.

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::server::IncomingRequest;
use pml_model::ToolId;
use pml_model::name::truncate_text;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::reply::{refusal_result, tool_result};
use super::suggestions::suggestions_result;
use crate::app::App;
use crate::flow::{self, DEFAULT_BRANCH_RUNS, DryRunOptions, DryRunOutcome, MAX_BRANCH_RUNS};
use crate::planning::RunRequest;
use crate::problem::{ErrorCode, Problem};
use crate::report::{DryRunMode, DryRunReport};

/// The lines of one section of a reply; the structured report has all.
const MAX_LINES: usize = 6;
/// The characters of a result that the reply shows; the structured report has all.
const RESULT_CHARACTERS: usize = 4_000;

/// `options.dryRun`: `true`, or how.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum DryRunArgument {
    Flag(bool),
    Options(DryRunArguments),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DryRunArguments {
    #[serde(default)]
    mode: DryRunModeName,
    #[serde(default, alias = "exploreBranches")]
    explore: bool,
    #[serde(alias = "max_branches")]
    max_branches: Option<u32>,
    #[serde(default)]
    seed: u64,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum DryRunModeName {
    Mocked,
    #[default]
    Hybrid,
}

impl DryRunArgument {
    /// How to run dry; `None` for `false`.
    pub(super) fn options(
        &self,
        mocks: Option<Value>,
        timeout_ms: Option<u64>,
    ) -> Result<Option<DryRunOptions>, Problem> {
        let timeout = timeout_ms.map(Duration::from_millis);
        let given = match self {
            DryRunArgument::Flag(false) => return Ok(None),
            DryRunArgument::Flag(true) => {
                return Ok(Some(DryRunOptions { mocks, timeout, ..DryRunOptions::default() }));
            }
            DryRunArgument::Options(given) => given,
        };
        let most = given.max_branches.unwrap_or(DEFAULT_BRANCH_RUNS);
        if most == 0 || most > MAX_BRANCH_RUNS {
            let text = format!("`maxBranches` is {most} and must be between 1 and {MAX_BRANCH_RUNS}");
            return Err(Problem::new(ErrorCode::InvalidArguments, text));
        }
        let mode = match given.mode {
            DryRunModeName::Mocked => DryRunMode::Mocked,
            DryRunModeName::Hybrid => DryRunMode::Hybrid,
        };
        let explores = given.explore || given.max_branches.is_some();
        Ok(Some(DryRunOptions {
            mode,
            mocks,
            explore_branches: explores.then_some(most),
            seed: given.seed,
            timeout,
            ..DryRunOptions::default()
        }))
    }
}

/// Runs a request dry and tells what it would do.
pub(super) async fn answer(
    app: &Arc<App>,
    asked: RunRequest,
    options: DryRunOptions,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
    request: &IncomingRequest,
) -> Box<RawValue> {
    let intent = asked.intent.clone();
    let outcome = tokio::select! {
        outcome = flow::dry_run(app, asked, options, visible) => outcome,
        () = request.cancel.cancelled() => {
            return Problem::new(ErrorCode::Cancelled, "the dry run was cancelled").to_tool_result();
        }
    };
    match outcome {
        Ok(DryRunOutcome::Report(report)) => {
            let body = json!({ "status": "dry_run", "result": report.result, "error": report.error, "report": report });
            tool_result(&text(&report), &without_nulls(body), &[], false)
        }
        Ok(DryRunOutcome::Refused(refused)) => refusal_result(&refused),
        Ok(DryRunOutcome::Suggested(suggested)) => {
            suggestions_result(&intent, &suggested, &flow::readiness_notes(app))
        }
        Err(problem) => problem.to_tool_result(),
    }
}

fn without_nulls(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    body
}

/// The report in a few lines.
fn text(report: &DryRunReport) -> String {
    let mut lines = Vec::new();
    match (&report.result, &report.error) {
        (_, Some(error)) => lines.push(format!("Dry run: it would fail: {}: {}", error.code, error.message)),
        (Some(result), None) => {
            lines
                .push(format!("Dry run: it would return {}", truncate_text(result.get(), RESULT_CHARACTERS)));
        }
        (None, None) => lines.push("Dry run: it would return nothing".to_owned()),
    }
    section(&mut lines, "Effects", report.effects.iter().map(|effect| effect.text.as_str()));
    section(&mut lines, "Made up", report.warnings.iter().map(|warning| warning.message.as_str()));
    let real = report.captured_calls.iter().filter(|call| call.is_real()).count();
    lines.push(format!("Calls: {}, {real} of them real", report.captured_calls.len()));
    if let Some(cost) = &report.estimated_cost {
        lines.push(format!("Estimated cost: {cost}"));
    }
    let untaken = report.branches.uncovered.iter().map(|branch| {
        format!("{} `{}` {}", branch.place(), truncate_text(&branch.condition, 60), branch.outcome)
    });
    let untaken: Vec<String> = untaken.collect();
    section(&mut lines, "Branches not taken", untaken.iter().map(String::as_str));
    let call = confirming_call(&report.id, &report.missing);
    lines.push(format!("Nothing was changed. To run it for real: pml_execute {call}"));
    lines.join("\n")
}

/// The arguments of `pml_execute` that run what was tried. `missing` values are for the caller to fill in.
pub(super) fn confirming_call(id: &str, missing: &[String]) -> String {
    let context = match missing.is_empty() {
        true => String::new(),
        false => {
            let open = missing.iter().map(|name| format!("{}: …", Value::from(name.as_str())));
            format!(r#", "context": {{{}}}"#, open.collect::<Vec<_>>().join(", "))
        }
    };
    format!(r#"{{"explorePath": "{id}", "confirm": true{context}}}"#)
}

fn section<'t>(lines: &mut Vec<String>, title: &str, texts: impl Iterator<Item = &'t str>) {
    let texts: Vec<&str> = texts.collect();
    if texts.is_empty() {
        return;
    }
    lines.push(format!("{title}:"));
    lines.extend(texts.iter().take(MAX_LINES).map(|text| format!("- {}", truncate_text(text, 160))));
    if texts.len() > MAX_LINES {
        lines.push(format!("- and {} more", texts.len() - MAX_LINES));
    }
}
