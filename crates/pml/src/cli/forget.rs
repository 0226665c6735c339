//! `pml forget`: forgets runs and what came of them.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use pml_model::{Principal, RunId};
use pml_store::{ForgetScope, ForgottenCounts};
use serde_json::json;

use super::ask::read_confirmation;
use super::{CommandContext, out};
use crate::clock::now_ms;
use crate::problem::{ErrorCode, Problem};

/// Arguments of `pml forget`.
#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// This run
    #[arg(
        long,
        value_name = "ID",
        required_unless_present_any = ["user", "since", "before"],
        conflicts_with_all = ["user", "since", "before"]
    )]
    run: Option<String>,
    /// Everything of this person, or their runs of the given time
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Runs created at this time or later: a date (`2026-11-30`, UTC) or a time (`2026-11-30T12:00:00Z`)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Runs created before this time
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(here: &CommandContext, forget: ForgetArgs) -> Result<ExitCode, Problem> {
    let scope = scope(&forget)?;
    let store = here.open_store().await?;
    let counts = store.count_forgettable(&scope).await?;
    let is_nothing = counts.runs == 0 && counts.traces == 0;
    if let (Some(run), true) = (&scope.run, is_nothing) {
        let text = format!("there is no run `{run}`");
        return Err(
            Problem::new(ErrorCode::UnknownRun, text).hint("`pml runs list` shows the runs there are")
        );
    }
    if !forget.yes && !confirm(here, counts).await? {
        return Ok(ExitCode::FAILURE);
    }
    let forgotten = store.forget(&scope, now_ms()).await?;
    show(here, forgotten);
    Ok(ExitCode::SUCCESS)
}

fn scope(forget: &ForgetArgs) -> Result<ForgetScope, Problem> {
    let run = forget.run.as_deref().map(|run| {
        RunId::parse(run).map_err(|error| Problem::new(ErrorCode::InvalidRequest, error.to_string()))
    });
    let scope = ForgetScope {
        run: run.transpose()?,
        user: forget.user.clone().map(Principal),
        since: forget.since.as_deref().map(time).transpose()?,
        before: forget.before.as_deref().map(time).transpose()?,
    };
    if let (Some(since), Some(before)) = (scope.since, scope.before)
        && since >= before
    {
        return Err(Problem::new(ErrorCode::InvalidRequest, "`--since` is not before `--before`")
            .hint("give an earlier `--since`, or a later `--before`"));
    }
    Ok(scope)
}

/// A time, or the beginning of a day (UTC), in milliseconds since the Unix epoch.
fn time(text: &str) -> Result<i64, Problem> {
    let at = text.parse::<Timestamp>().or_else(|_| {
        let day = text.parse::<Date>()?;
        day.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp())
    });
    at.map(Timestamp::as_millisecond).map_err(|_| {
        Problem::new(ErrorCode::InvalidRequest, format!("`{text}` is no date and no time"))
            .hint("write it as `2026-11-30` or `2026-11-30T12:00:00Z`")
    })
}

async fn confirm(here: &CommandContext, counts: ForgottenCounts) -> Result<bool, Problem> {
    let what = format!(
        "This forgets {} runs and {} traces, with everything that was learned from them. It cannot be undone.",
        counts.runs, counts.traces
    );
    if here.json || !std::io::stdin().is_terminal() {
        return Err(Problem::new(ErrorCode::Denied, what).hint("give `--yes` to do it"));
    }
    out::note(what);
    Ok(read_confirmation("forget them?").await == Some(true))
}

fn show(here: &CommandContext, forgotten: ForgottenCounts) {
    let ForgottenCounts { runs, traces, capabilities, mocks, cached_results } = forgotten;
    if here.json {
        return out::json(&json!({
            "runs": runs, "traces": traces, "capabilities": capabilities, "mocks": mocks,
            "cachedResults": cached_results,
        }));
    }
    out::line(format!(
        "forgotten: {runs} runs, {traces} traces, {capabilities} capabilities, {mocks} recorded results, \
         {cached_results} cached results"
    ));
    out::line("What is left was learned anew. The audit log keeps its entries and notes this one.");
}
