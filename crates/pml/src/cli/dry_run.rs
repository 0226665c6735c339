//! `pml execute --dry-run`: its options and its report.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use pml_model::name::{printable, truncate_text};
use serde_json::Value;

use super::{CommandContext, analyse, out};
use crate::flow::{DEFAULT_BRANCH_RUNS, DryRunOptions};
use crate::problem::{ErrorCode, Problem};
use crate::report::{CapturedCall, DryRunMode, DryRunReport, DryRunStatus, ValueOrigin};

/// The calls that the report lists; `--json` has all.
const MAX_CALLS: usize = 40;

/// Options of a dry run.
#[derive(Debug, Args)]
pub(super) struct DryRunArgs {
    /// Show what it would do, and change nothing: tools that only read are called, others are made up
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: call no tool at all
    #[arg(long, requires = "dry_run")]
    mocked: bool,
    /// With --dry-run: answers and arguments to use, JSON: {"tools": {"server:tool": result}, "args": {…}}
    #[arg(long, requires = "dry_run", value_name = "FILE")]
    mocks: Option<PathBuf>,
    /// With --dry-run: run it with other made-up values until every branch was taken
    #[arg(long, requires = "dry_run")]
    explore_branches: bool,
    /// With --dry-run: the seed of made-up values
    #[arg(long, requires = "dry_run", value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl DryRunArgs {
    /// How to run dry; `None` if it is a real run.
    pub(super) fn options(
        &self,
        here: &CommandContext,
        timeout_ms: Option<u64>,
    ) -> Result<Option<DryRunOptions>, Problem> {
        if !self.dry_run {
            return Ok(None);
        }
        let mocks = match &self.mocks {
            Some(file) => {
                let (name, text) = analyse::read_source(here, file)?;
                let mocks: Value = serde_json::from_str(&text).map_err(|error| {
                    Problem::new(ErrorCode::InvalidRequest, format!("`{name}` is not JSON: {error}"))
                        .hint(r#"write {"tools": {"server:tool": result}}"#)
                })?;
                Some(mocks)
            }
            None => None,
        };
        Ok(Some(DryRunOptions {
            mode: if self.mocked { DryRunMode::Mocked } else { DryRunMode::Hybrid },
            mocks,
            explore_branches: self.explore_branches.then_some(DEFAULT_BRANCH_RUNS),
            seed: self.seed,
            timeout: timeout_ms.map(Duration::from_millis),
            ..DryRunOptions::default()
        }))
    }
}

/// Prints what a program would do.
pub(super) fn print_report(here: &CommandContext, report: &DryRunReport) -> ExitCode {
    if here.json {
        out::json(report);
    } else {
        print_lines(report);
    }
    match report.status {
        DryRunStatus::Success => ExitCode::SUCCESS,
        DryRunStatus::Failed => ExitCode::FAILURE,
    }
}

fn print_lines(report: &DryRunReport) {
    title("effects");
    if report.effects.is_empty() {
        out::line("  none");
    }
    for effect in &report.effects {
        let mark = if effect.tainted { " (depends on made-up values)" } else { "" };
        out::line(format!("  {}{mark}", effect.text));
    }
    if !report.warnings.is_empty() {
        title("warnings");
        report.warnings.iter().for_each(|warning| out::line(format!("  {}", printable(&warning.message))));
    }
    title("calls");
    report.captured_calls.iter().take(MAX_CALLS).for_each(|call| out::line(format!("  {}", call_line(call))));
    if report.captured_calls.len() > MAX_CALLS {
        out::line(format!("  and {} more; --json shows all", report.captured_calls.len() - MAX_CALLS));
    }
    if let Some(cost) = &report.estimated_cost {
        title("estimated cost");
        out::line(format!("  {cost}"));
    }
    print_branches(report);
    match (&report.result, &report.error) {
        (_, Some(error)) => {
            title("it would fail");
            out::line(format!("  {}: {}", error.code, printable(&error.message)));
        }
        (result, None) => {
            title("it would return");
            out::line(printable(result.as_ref().map_or("null", |result| result.get())));
        }
    }
    out::note("nothing was changed; run the same without --dry-run to do it");
}

fn print_branches(report: &DryRunReport) {
    let branches = &report.branches;
    if branches.covered.is_empty() && branches.uncovered.is_empty() {
        return;
    }
    title(&format!("branches ({} taken, {} not)", branches.covered.len(), branches.uncovered.len()));
    for branch in &branches.uncovered {
        let reach = branch.reached_by.as_deref().unwrap_or_default();
        out::line(format!("  {}, {}: {}", branch.place(), printable(&branch.outcome), printable(reach)));
    }
    for path in &report.paths {
        out::line(format!("  if {}:", printable(&path.because.join(" and "))));
        path.effects.iter().for_each(|effect| out::line(format!("    {effect}")));
    }
}

fn title(text: &str) {
    out::line(format!("{}{text}{}", out::BOLD, out::RESET));
}

fn call_line(call: &CapturedCall) -> String {
    let answered = match call.origin {
        ValueOrigin::Real => "real",
        ValueOrigin::Given => "given",
        ValueOrigin::Recorded => "recorded before",
        ValueOrigin::Connector | ValueOrigin::Schema | ValueOrigin::Placeholder => "made up",
        ValueOrigin::Overlay => "pretended",
    };
    let line = call.line.map(|line| format!("line {line} ")).unwrap_or_default();
    let told = match (&call.error, call.response.as_ref().or(call.mock_response.as_ref())) {
        (Some(error), _) => format!("{}: {}", error.code, error.message),
        (None, Some(value)) => value.get().to_owned(),
        (None, None) => "no answer".to_owned(),
    };
    printable(&format!(
        "{line}{}:{} {} → {answered}: {}",
        call.server,
        call.tool,
        truncate_text(call.args.get(), 80),
        truncate_text(&told, 100)
    ))
}
