//! `pml runs watch`: what happens to runs, live in the terminal, in whichever process they run.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use pml_model::name::{printable, truncate_text};
use pml_model::{RunId, RunState};
use pml_store::RunRow;

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
    let ended = async || begun(app, run.as_ref()).await.map(|(_, ended)| ended);
    tokio::select! {
        code = follow(here.json, &mut reader, run.is_some(), ended) => code,
        () = wait_for_shutdown() => Ok(ExitCode::SUCCESS),
    }
}

/// Prints what is so now. The exit code if the run that is watched has ended already.
async fn begin(here: &CommandContext, app: &App, run: Option<&RunId>) -> Result<Option<ExitCode>, Problem> {
    let (rows, ended) = begun(app, run).await?;
    if !here.json && !rows.is_empty() {
        out::line(run_table(&rows));
    }
    if ended.is_none() {
        out::note(match run {
            Some(_) => "watching the run; press Ctrl-C to stop",
            None => "watching for runs; press Ctrl-C to stop",
        });
    }
    Ok(ended)
}

/// The runs that are watched as they are now, and the exit code if the only one has ended.
async fn begun(app: &App, run: Option<&RunId>) -> Result<(Vec<RunRow>, Option<ExitCode>), Problem> {
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
    let ended = rows.iter().find(|row| run.is_some() && row.ended_at.is_some());
    let ended = ended.map(|row| exit_code(row.state));
    Ok((rows, ended))
}

/// Prints events. Where some are missing, `ended` tells whether the end of the only run was among them.
async fn follow(
    json: bool,
    reader: &mut FeedReader,
    one_run: bool,
    ended: impl AsyncFn() -> Result<Option<ExitCode>, Problem>,
) -> Result<ExitCode, Problem> {
    loop {
        match reader.next().await {
            FeedDelivery::Events(events) => {
                for event in &events {
                    print(json, event);
                    if let (FeedEvent::RunEnd { status, .. }, true) = (&event.event, one_run) {
                        return Ok(exit_code(*status));
                    }
                }
            }
            FeedDelivery::Reset => {
                out::note("some events were not shown: there were too many");
                if one_run && let Some(code) = ended().await? {
                    return Ok(code);
                }
            }
            FeedDelivery::Closed => return Ok(ExitCode::SUCCESS),
        }
    }
}

fn exit_code(state: RunState) -> ExitCode {
    if state == RunState::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(json: bool, published: &PublishedEvent) {
    if json {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pml_model::Principal;

    use super::*;
    use crate::events::EventFeed;

    /// More events than the feed keeps.
    const TOO_MANY: usize = 10_000;

    #[tokio::test]
    async fn a_run_whose_end_was_missed_is_looked_up() {
        let feed = EventFeed::new();
        let (ours, run) = (Principal::local(), RunId::new(1));
        let mut reader = feed.subscribe(ours.clone(), Some(run.clone()), None);
        let publish = |event: fn() -> FeedEvent| feed.publish(&ours, &run, 1, event);
        publish(|| FeedEvent::RunEnd {
            status: RunState::Failed,
            duration_ms: 1,
            calls: 0,
            failed_calls: None,
            capability: None,
            error: None,
        });
        for _ in 0..TOO_MANY {
            publish(|| FeedEvent::Log { level: "log", text: String::new() });
        }
        let asked = AtomicUsize::new(0);
        let ended = async || {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(Some(ExitCode::FAILURE))
        };
        let code = follow(true, &mut reader, true, ended).await.unwrap();
        assert_eq!((format!("{code:?}"), asked.into_inner()), (format!("{:?}", ExitCode::FAILURE), 1));
    }
}
