//! `pml runs watch`: what happens to runs, live in the terminal, in whichever process they run.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use pml_model::name::{printable, truncate_text};
use pml_model::{RunId, RunState};

use super::follow::parse_run_argument;
use super::run_table::run_table;
use super::starting::wait_for_shutdown;
use super::{CommandContext, out};
use crate::app::App;
use crate::events::{FeedDelivery, FeedEvent, FeedReader, PublishedEvent};
use crate::execute;
use crate::problem::Problem;

/// The characters of a text that a line shows.
const TEXT_CHARACTERS: usize = 100;
/// The characters of a run id that a line shows; the rest tells no two runs of a day apart.
const ID_CHARACTERS: usize = 12;

/// Arguments of `pml runs watch`.
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// Only this run, until it ends
    id: Option<String>,
}

/// Prints events until the command is interrupted, or the run has ended.
pub(super) async fn watch(
    here: &CommandContext,
    app: &Arc<App>,
    watch: &WatchArgs,
) -> Result<ExitCode, Problem> {
    let run = watch.id.as_deref().map(parse_run_argument).transpose()?;
    app.spawn_task(execute::follow_runs_task(Arc::clone(&app.runs)));
    let mut reader = app.runs.feed.subscribe(app.principal.clone(), run.clone(), None);
    app.runs.feed.wait_until_following().await;
    if let Some(ended) = begin(here, app, run.as_ref()).await? {
        return Ok(ended);
    }
    tokio::select! {
        code = follow(here, &mut reader, run.as_ref()) => Ok(code),
        () = wait_for_shutdown() => Ok(ExitCode::SUCCESS),
    }
}

/// Prints what is so now. The exit code if the run that is watched has ended already.
async fn begin(here: &CommandContext, app: &App, run: Option<&RunId>) -> Result<Option<ExitCode>, Problem> {
    let rows = match run {
        Some(id) => {
            let row = app.store.run(&app.principal, id).await?.ok_or_else(|| execute::no_run(id))?;
            vec![row]
        }
        None => {
            let open = app.store.open_runs().await?.runs;
            open.into_iter().map(|open| open.run).filter(|row| row.principal == app.principal).collect()
        }
    };
    if !here.json && !rows.is_empty() {
        out::line(run_table(&rows));
    }
    let ended = rows.iter().find(|row| run.is_some() && row.ended_at.is_some());
    if ended.is_none() {
        out::note(match run {
            Some(_) => "watching the run; press Ctrl-C to stop",
            None => "watching for runs; press Ctrl-C to stop",
        });
    }
    Ok(ended.map(|row| exit_code(row.state)))
}

async fn follow(here: &CommandContext, reader: &mut FeedReader, run: Option<&RunId>) -> ExitCode {
    loop {
        match reader.next().await {
            FeedDelivery::Events(events) => {
                for event in &events {
                    print(here, event);
                    if let (FeedEvent::RunEnd { status, .. }, Some(_)) = (&event.event, run) {
                        return exit_code(*status);
                    }
                }
            }
            FeedDelivery::Reset => out::note("some events were not shown: there were too many"),
            FeedDelivery::Closed => return ExitCode::SUCCESS,
        }
    }
}

fn exit_code(state: RunState) -> ExitCode {
    if state == RunState::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(here: &CommandContext, published: &PublishedEvent) {
    if here.json {
        // One line each, so that a program can read them as they come.
        let name = published.event.name();
        return out::line(published.data.replacen('{', &format!("{{\"event\":\"{name}\","), 1));
    }
    let (colour, text) = described(&published.event);
    let id: String = published.run.as_str().chars().take(ID_CHARACTERS).collect();
    out::line(format!(
        "{dim}{}{reset}  {id}  {colour}{:<17}{reset}  {}",
        clock_time(published.at),
        published.event.name(),
        printable(&truncate_text(&text.replace('\n', " "), TEXT_CHARACTERS)),
        dim = out::DIM,
        reset = out::RESET,
    ));
}

/// The time of the day, with milliseconds.
fn clock_time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map(|at| at.strftime("%H:%M:%S%.3f").to_string())
        .unwrap_or_else(|_| ms.to_string())
}

/// The colour of an event and its text.
fn described(event: &FeedEvent) -> (&'static str, String) {
    match event {
        FeedEvent::RunStart(run) => {
            let again = if run.resumed { "goes on: " } else { "" };
            (out::BOLD, format!("{again}{} ({})", run.intent, run.kind))
        }
        FeedEvent::TaskStart { call, tool, .. } => (out::DIM, format!("{call:>4}  {tool}")),
        FeedEvent::TaskComplete(done) => {
            let preview = done.result_preview.as_deref().unwrap_or_default();
            let ahead = if done.speculated { " (read ahead)" } else { "" };
            let colour = if done.status == "ok" { out::GREEN } else { out::BOLD_RED };
            (colour, format!("{:>4}  {}  {} ms{ahead}  {preview}", done.call, done.tool, done.duration_ms))
        }
        FeedEvent::LayerComplete { layer, layers } => {
            (out::GREEN, format!("layer {} of {layers}", layer + 1))
        }
        FeedEvent::DecisionRequired(question) | FeedEvent::ApprovalRequired(question) => {
            (out::YELLOW, question.summary.clone())
        }
        FeedEvent::Progress { status, calls, ended, message, .. } => {
            let message = message.as_deref().unwrap_or_default();
            (out::DIM, format!("{status}, {ended} of {calls} calls  {message}"))
        }
        FeedEvent::Log { level, text } => (out::CYAN, format!("{level}: {text}")),
        FeedEvent::CapabilityStart { capability, .. } => (out::DIM, capability.name.clone()),
        FeedEvent::CapabilityEnd { capability, status, duration_ms, .. } => {
            let colour = if *status == "ok" { out::GREEN } else { out::BOLD_RED };
            (colour, format!("{}  {duration_ms} ms", capability.name))
        }
        FeedEvent::CapabilityHint { name, .. } => (out::DIM, name.clone().unwrap_or_default()),
        FeedEvent::RunEnd { status, duration_ms, calls, error, .. } => {
            let colour = if *status == RunState::Done { out::GREEN } else { out::BOLD_RED };
            let why = error.as_ref().map(|error| format!("  {} {}", error.code, error.message));
            (colour, format!("{status}, {calls} calls, {duration_ms} ms{}", why.unwrap_or_default()))
        }
    }
}
