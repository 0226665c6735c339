//! `pml runs`: lists, shows, answers, resumes and replays runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use pml_model::name::{printable, truncate_text};
use pml_model::question::ResolvedDoubt;
use pml_model::{RunId, RunState};
use pml_store::{RunQuery, RunRow};
use serde_json::json;

use super::answer::{self, ApproveArgs, DenyArgs, parse_resolution, resolve_doubts};
use super::follow::{parse_run_argument, resume_and_follow};
use super::run_output::{print_calls_in_doubt, print_question, print_status};
use super::run_table::{format_time, run_table, status_text};
use super::watch::WatchArgs;
use super::{CommandContext, analyse, out};
use crate::app::{App, ProcessRole};
use crate::execute::replay::{Recording, ReplayOutcome};
use crate::flow;
use crate::problem::{ErrorCode, Problem};
use crate::report::{CallReport, OperationReport, RunReport, RunStatus};

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub(super) enum RunsCommand {
    /// List runs, newest first
    List(ListRunsArgs),
    /// Watch what happens to runs, live
    Watch(WatchArgs),
    /// Show a run: calls, executed path, result
    Show(ShowRunArgs),
    /// Resume a run that is interrupted or sleeps
    Resume(ResumeRunArgs),
    /// Approve what a run asks for, and resume it
    Approve(ApproveArgs),
    /// Deny what a run asks for
    Deny(DenyArgs),
    /// Continue a DAG after a layer
    Continue {
        /// The run
        id: String,
    },
    /// Pause a DAG before its next layer
    Pause {
        /// The run, started with `decisionPoints: "manual"`
        id: String,
    },
    /// End a run
    Abort {
        /// The run
        id: String,
        /// The reason, kept with the run
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Replay a run from its journal, offline
    Replay(ReplayRunArgs),
    /// Export a run to a file that `replay` reads
    Export {
        /// The run
        id: String,
        /// The file [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Arguments of `pml runs list`.
#[derive(Debug, Args)]
pub(super) struct ListRunsArgs {
    /// Only runs in this state
    #[arg(long, value_parser = state())]
    state: Option<RunState>,
    /// The number of runs
    #[arg(long, default_value_t = 20)]
    limit: u32,
    /// Only runs that began before this one
    #[arg(long, value_name = "ID")]
    before: Option<String>,
}

/// Arguments of `pml runs show`.
#[derive(Debug, Args)]
pub(super) struct ShowRunArgs {
    /// The run
    id: String,
    /// Show the calls on a timeline
    #[arg(long)]
    timeline: bool,
}

/// Arguments of `pml runs resume`.
#[derive(Debug, Args)]
pub(super) struct ResumeRunArgs {
    /// The run
    id: String,
    /// Resolve a call in doubt: N=again sends it again, N=failed fails it, N=JSON is its result
    #[arg(long = "call", value_name = "N=WHAT")]
    calls: Vec<String>,
}

/// Arguments of `pml runs replay`.
#[derive(Debug, Args)]
pub(super) struct ReplayRunArgs {
    /// The run, or a file that `pml runs export` wrote
    run: String,
    /// A changed program to try on the same record
    #[arg(long, value_name = "FILE")]
    code: Option<PathBuf>,
}

pub(super) async fn run(here: &CommandContext, runs: RunsCommand) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let done = match runs {
        RunsCommand::List(list) => self::list(here, &app, list).await,
        RunsCommand::Watch(watch) => super::watch::watch(here, &app, &watch).await,
        RunsCommand::Show(show) => show_run(here, &app, &show).await,
        RunsCommand::Resume(resume) => self::resume(here, &app, &resume).await,
        RunsCommand::Approve(approve) => answer::approve(here, &app, &approve).await,
        RunsCommand::Deny(deny) => answer::deny(here, &app, &deny).await,
        RunsCommand::Continue { id } => answer::continue_after_layer(here, &app, &id).await,
        RunsCommand::Pause { id } => pause(here, &app, &id).await,
        RunsCommand::Abort { id, reason } => abort(here, &app, &id, &reason).await,
        RunsCommand::Replay(replay) => self::replay(here, &app, &replay).await,
        RunsCommand::Export { id, output } => export(here, &app, &id, output.as_deref()).await,
    };
    app.close().await;
    done
}

async fn list(here: &CommandContext, app: &App, list: ListRunsArgs) -> Result<ExitCode, Problem> {
    let filter = RunQuery {
        state: list.state,
        before: list.before.as_deref().map(parse_run_argument).transpose()?,
        limit: list.limit,
    };
    let rows = app.store.runs(&app.principal, &filter).await?;
    if here.json {
        out::json(&rows.iter().map(row_json).collect::<Vec<_>>());
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        out::note("no runs yet; `pml execute --code FILE` makes one");
        return Ok(ExitCode::SUCCESS);
    }
    out::line(run_table(&rows));
    Ok(ExitCode::SUCCESS)
}

/// A parser for the name of a run state.
fn state() -> impl TypedValueParser<Value = RunState> {
    let words = PossibleValuesParser::new(RunState::ALL.map(RunState::as_str));
    words.map(|word| RunState::parse(&word).expect("only the words for states are possible"))
}

pub(super) fn row_json(row: &RunRow) -> serde_json::Value {
    json!({
        "workflowId": row.id, "state": row.state, "intent": row.intent, "kind": row.kind.as_str(),
        "codeHash": row.code_hash, "calls": row.calls, "errorCode": row.error_code, "createdAt": row.created_at,
        "updatedAt": row.updated_at, "endedAt": row.ended_at, "wakeAt": row.wake_at, "questionId": row.question_id,
    })
}

async fn find_run(app: &App, id: &RunId) -> Result<RunRow, Problem> {
    app.store.run(&app.principal, id).await?.ok_or_else(|| crate::execute::no_run(id))
}

async fn show_run(here: &CommandContext, app: &App, show: &ShowRunArgs) -> Result<ExitCode, Problem> {
    let id = parse_run_argument(&show.id)?;
    let row = find_run(app, &id).await?;
    let recording = match flow::recording(app, &app.principal, &id).await {
        Ok(recording) => Some(recording),
        Err(problem) if row.purged_at.is_some() => {
            tracing::debug!(%problem, "only its row is left");
            None
        }
        Err(problem) => return Err(problem),
    };
    if here.json {
        let mut shown = row_json(&row);
        shown["recording"] = serde_json::to_value(&recording).unwrap_or_default();
        out::json(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    out::line(format!("{}{}{}  {}", out::BOLD, row.id, out::RESET, status_text(&row)));
    out::line(format!("  for    {}", printable(&row.intent)));
    out::line(format!("  begun  {}", format_time(row.created_at)));
    if let Some(ended) = row.ended_at {
        out::line(format!("  ended  {} after {} ms", format_time(ended), ended - row.created_at));
    }
    let Some(recording) = recording else {
        out::note("its journal and results are no longer kept");
        return Ok(ExitCode::SUCCESS);
    };
    match &recording.report {
        Some(report) => show_report(report, show.timeline),
        None => out::note(format!("{} calls are in its journal", row.calls.max(recording.calls()))),
    }
    if let RunStatus::Waiting { question: Some((_, question)), .. } =
        flow::run_status(app, &app.principal, &id).await?
    {
        print_question(here, &id, &question);
    }
    Ok(ExitCode::SUCCESS)
}

fn show_report(report: &RunReport, timeline: bool) {
    let path: Vec<String> = report.path.nodes.iter().map(ToString::to_string).collect();
    if !path.is_empty() {
        out::line(format!("  path   {}", path.join(" → ")));
    }
    for decided in &report.path.decisions {
        let times = if decided.times > 1 { format!(" ×{}", decided.times) } else { String::new() };
        out::line(format!("  {}  {}{times}", decided.node, decided.outcome));
    }
    for turns in &report.path.loops {
        out::line(format!("  {}  {} turns", turns.node, turns.turns));
    }
    if !report.tasks.is_empty() || !report.operations.is_empty() {
        out::line("");
        let span = (report.started_at, report.ended_at.max(report.started_at + 1));
        let cells: Vec<Vec<String>> = steps(report).iter().map(|step| step.cells(span, timeline)).collect();
        let last = if timeline { "time" } else { "result" };
        out::line(out::table(&["call", "node", "tool", "status", "ms", last], &cells));
    }
    for line in &report.console {
        out::line(format!("{}│{} {}", out::CYAN, out::RESET, printable(&line.text)));
    }
    out::line("");
    match (&report.result, &report.error) {
        (Some(result), _) => out::line(printable(&truncate_text(result.get(), 2_000))),
        (None, Some(error)) => {
            let line = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
            out::line(format!(
                "{}{}{}: {}{line}",
                out::BOLD_RED,
                error.code,
                out::RESET,
                printable(&error.message)
            ));
        }
        (None, None) => {}
    }
}

/// The width of the timeline in columns.
const TIMELINE: i64 = 40;

/// A call or an operation of a run.
enum ReportStep<'r> {
    Call(&'r CallReport),
    Operation(&'r OperationReport),
}

/// The calls and operations of a run, in the order they began.
fn steps(report: &RunReport) -> Vec<ReportStep<'_>> {
    let calls = report.tasks.iter().map(|task| (task.call, ReportStep::Call(task)));
    let operations = report.operations.iter().map(|done| (done.after, ReportStep::Operation(done)));
    let mut steps: Vec<(u32, ReportStep<'_>)> = calls.chain(operations).collect();
    // An operation comes after the last call that was requested before it.
    steps.sort_by_key(|(after, _)| *after);
    steps.into_iter().map(|(_, step)| step).collect()
}

impl ReportStep<'_> {
    fn at(&self) -> i64 {
        match self {
            ReportStep::Call(task) => task.issued_at,
            ReportStep::Operation(operation) => operation.at,
        }
    }

    /// How long before the program asked for it a call was under way, at least.
    fn saved_ms(&self) -> i64 {
        match self {
            ReportStep::Call(task) => i64::try_from(task.saved_ms.unwrap_or(0)).unwrap_or(0),
            ReportStep::Operation(_) => 0,
        }
    }

    fn cells(&self, span: (i64, i64), timeline: bool) -> Vec<String> {
        let (call, node, tool, capability) = match self {
            ReportStep::Call(task) => (task.call.to_string(), task.node_id, &task.tool, &task.capability),
            ReportStep::Operation(done) => (String::new(), done.node_id, &done.tool, &done.capability),
        };
        let (status, ms, took_ms, result) = match self {
            ReportStep::Call(task) => (
                call_status(task),
                task.execution_time_ms.map(|ms| ms.to_string()).unwrap_or_default(),
                task.execution_time_ms.unwrap_or(0),
                task.result_preview.as_deref().unwrap_or_default(),
            ),
            ReportStep::Operation(done) => (
                Some("pure".to_owned()),
                done.execution_time_us.map(|us| format!("{:.3}", us as f64 / 1_000.0)).unwrap_or_default(),
                i64::try_from(done.execution_time_us.unwrap_or(0) / 1_000).unwrap_or(i64::MAX),
                done.result_preview.as_str(),
            ),
        };
        let last = match timeline {
            true => bar(self.at(), (self.saved_ms(), took_ms), span),
            false => printable(&truncate_text(result, 60)),
        };
        let tool = match capability {
            Some(capability) => format!("{tool} in {}", printable(capability)),
            None => tool.clone(),
        };
        let node = node.map(|node| node.to_string()).unwrap_or_default();
        vec![call, node, tool, status.unwrap_or_default(), ms, last]
    }
}

/// The bar of a step: light where its call was under way before the program asked for it.
fn bar(at: i64, (ahead_ms, took_ms): (i64, i64), (from, to): (i64, i64)) -> String {
    let place = |at: i64| ((at - from).clamp(0, to - from) * TIMELINE / (to - from)).clamp(0, TIMELINE - 1);
    let (ahead, begin, end) = (place(at - ahead_ms), place(at), place(at.saturating_add(took_ms)));
    let width = |columns: i64| usize::try_from(columns).unwrap_or(0);
    let (blank, light, bar) = (width(ahead), width(begin - ahead), width(end - begin + 1));
    format!("{}{}{}", " ".repeat(blank), "░".repeat(light), "█".repeat(bar))
}

/// The status of a call, and whether it was made ahead or by the dry run that was confirmed, or why not.
fn call_status(task: &CallReport) -> Option<String> {
    let status = serde_json::to_value(task.status).ok()?.as_str()?.to_owned();
    Some(match (task.speculated, task.age_ms, &task.not_ahead) {
        (true, Some(_), _) => format!("{status}, from the dry run"),
        (true, None, _) => format!("{status}, ahead"),
        (false, _, Some(reason)) => format!("{status}, not ahead: {reason}"),
        (false, _, None) => status,
    })
}

async fn resume(here: &CommandContext, app: &Arc<App>, resume: &ResumeRunArgs) -> Result<ExitCode, Problem> {
    let id = parse_run_argument(&resume.id)?;
    let said: Vec<ResolvedDoubt> =
        resume.calls.iter().map(|text| parse_resolution(text)).collect::<Result<_, _>>()?;
    let answered = !said.is_empty();
    if answered {
        resolve_doubts(here, app, &id, said).await?;
    }
    resume_and_follow(here, app, &id, answered).await
}

async fn pause(here: &CommandContext, app: &Arc<App>, id: &str) -> Result<ExitCode, Problem> {
    let id = parse_run_argument(id)?;
    flow::pause(app, &app.principal, &id).await?;
    let standing = flow::run_status(app, &app.principal, &id).await?;
    if here.json || matches!(standing, RunStatus::Finished(_) | RunStatus::Waiting { .. }) {
        print_status(here, &id, &standing, None);
    } else {
        out::line(format!("{id} waits before its next layer; `pml runs continue {id}` goes on with it"));
    }
    Ok(ExitCode::SUCCESS)
}

async fn abort(here: &CommandContext, app: &Arc<App>, id: &str, reason: &str) -> Result<ExitCode, Problem> {
    let id = parse_run_argument(id)?;
    let status = flow::abort(app, &app.principal, &id, reason).await?;
    match &status {
        // What was asked for is no error.
        RunStatus::Finished(report) if report.state == RunState::Aborted && !here.json => {
            out::note(format!("aborted run `{id}`"));
            report.error.iter().for_each(print_calls_in_doubt);
        }
        status => {
            print_status(here, &id, status, None);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn replay(here: &CommandContext, app: &App, replay: &ReplayRunArgs) -> Result<ExitCode, Problem> {
    let recording = match RunId::parse(&replay.run) {
        Ok(id) => flow::recording(app, &app.principal, &id).await?,
        Err(_) => {
            let (_, text) = analyse::read_source(here, Path::new(&replay.run))?;
            Recording::parse(&text)?
        }
    };
    let code = match &replay.code {
        Some(file) => Some(analyse::read_source(here, file)?.1),
        None => None,
    };
    let replayed = flow::replay(app, &app.principal, &recording, code).await?;
    if here.json {
        out::json(&replayed);
    } else {
        match &replayed {
            ReplayOutcome::Same { report } => {
                show_report(report, false);
                out::note(format!(
                    "{}the same{}: every call and the result are as recorded",
                    out::GREEN,
                    out::RESET
                ));
            }
            ReplayOutcome::Differs { report, .. } => {
                show_report(report, false);
                out::note(format!(
                    "{}another end{}: the calls are as recorded, the result is not",
                    out::YELLOW,
                    out::RESET
                ));
            }
            ReplayOutcome::Unfinished { report } => {
                show_report(report, false);
                out::note("the record ends here");
            }
            ReplayOutcome::Diverged { divergence } => {
                out::note(format!("{}diverged{}: {divergence}", out::BOLD_RED, out::RESET));
            }
        }
    }
    let fine = matches!(replayed, ReplayOutcome::Same { .. } | ReplayOutcome::Unfinished { .. });
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn export(
    here: &CommandContext,
    app: &App,
    id: &str,
    output: Option<&Path>,
) -> Result<ExitCode, Problem> {
    let recording = flow::recording(app, &app.principal, &parse_run_argument(id)?).await?;
    let Some(output) = output else {
        out::json(&recording);
        return Ok(ExitCode::SUCCESS);
    };
    let path = here.cwd.join(output);
    let text = serde_json::to_string_pretty(&recording).expect("a recording is plain data");
    std::fs::write(&path, text + "\n").map_err(|error| {
        Problem::new(
            ErrorCode::InvalidRequest,
            format!("cannot write `{}`: {error}", printable(&path.display().to_string())),
        )
    })?;
    out::note(format!("written to {}; it holds the run's values as they were", output.display()));
    Ok(ExitCode::SUCCESS)
}
