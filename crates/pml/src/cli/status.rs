//! `pml status`: what is under way, what waits for a person, and the servers with their sign-ins.

use std::process::ExitCode;

use clap::Args;
use pml_model::RunState;
use pml_store::{RunQuery, RunRow};
use serde_json::json;

use super::list::{configured_servers, server_table};
use super::run_table::run_table;
use super::runs::row_json;
use super::{CommandContext, out};
use crate::app::{App, ProcessRole};
use crate::problem::{Problem, unknown_server};

/// The number of runs of one state that are shown; `pml runs list --state` shows the rest.
const SHOWN_RUNS: u32 = 20;
/// The states of runs that are not over.
const UNDER_WAY: [RunState; 3] = [RunState::Waiting, RunState::Running, RunState::Interrupted];

/// Arguments of `pml status`.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Show this server alone
    server: Option<String>,
}

pub(super) async fn run(here: &CommandContext, args: &StatusArgs) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let shown = match &args.server {
        Some(server) => show_server(here, &app, server).await,
        None => show_all(here, &app).await,
    };
    app.close().await;
    shown.map(|()| ExitCode::SUCCESS)
}

async fn show_server(here: &CommandContext, app: &App, name: &str) -> Result<(), Problem> {
    let mut rows = configured_servers(app).await?;
    if !rows.iter().any(|row| row.name == name) {
        return Err(unknown_server(name, rows.iter().map(|row| row.name.as_str())));
    }
    rows.retain(|row| row.name == name);
    match here.json {
        true => out::json(&rows),
        false => out::line(server_table(&rows)),
    }
    Ok(())
}

async fn show_all(here: &CommandContext, app: &App) -> Result<(), Problem> {
    let mut runs: Vec<RunRow> = Vec::new();
    for state in UNDER_WAY {
        let query = RunQuery { state: Some(state), before: None, limit: SHOWN_RUNS };
        runs.extend(app.store.runs(&app.principal, &query).await?);
    }
    let asking = runs.iter().filter(|run| run.question_id.is_some()).count();
    let servers = configured_servers(app).await?;
    if here.json {
        let runs: Vec<_> = runs.iter().map(row_json).collect();
        out::json(&json!({ "runs": runs, "waitingForAnswer": asking, "servers": servers }));
        return Ok(());
    }
    if runs.is_empty() {
        out::line("no run is under way");
    } else {
        out::line(run_table(&runs));
    }
    if asking > 0 {
        out::note(
            "`pml runs show ID` shows what a run asks, `pml runs approve ID` and `pml runs deny ID` answer it",
        );
    }
    if servers.is_empty() {
        out::note("no server is configured; `pml add NAME -- COMMAND` adds one");
    } else {
        out::line(server_table(&servers));
    }
    for server in servers.iter().filter(|server| needs_sign_in(server.sign_in)) {
        out::note(format!("`pml login {}` signs in to it again", server.name));
    }
    Ok(())
}

fn needs_sign_in(state: Option<&str>) -> bool {
    use crate::sign_in::SignInState;
    [SignInState::Ended, SignInState::ScopesMissing].iter().any(|needed| state == Some(needed.as_str()))
}
