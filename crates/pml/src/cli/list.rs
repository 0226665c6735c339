//! `pml list`: servers, their state and their tools.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use pml_model::ServerName;
use pml_model::name::printable;
use pml_store::{CatalogueChange, PublishedServerState};
use serde::Serialize;

use super::{CommandContext, out};
use crate::accepted::AcceptedCommands;
use crate::app::{App, ProcessRole};
use crate::catalogue::{QuarantinedTool, difference};
use crate::clock::now_ms;
use crate::config::{self, DeclaredTransport, ServerTransport};
use crate::problem::{Problem, unknown_server};
use crate::sanitise::Sanitiser;
use crate::sign_in::{self, SignInState};

/// Arguments of `pml list`.
#[derive(Debug, Args)]
pub(super) struct ListServersArgs {
    /// Show the tools of this server
    server: Option<String>,
    /// Show changed definitions with their differences
    #[arg(long)]
    changes: bool,
}

/// A server, as `pml list` and `pml status` show it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerRow {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) tools: usize,
    pub(super) how: String,
    /// The sign-in to it, for a server that people sign in to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sign_in: Option<&'static str>,
}

pub(super) async fn run(here: &CommandContext, list: &ListServersArgs) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let printed = match (&list.server, list.changes) {
        (_, true) => changes(here, &app).await,
        (Some(server), false) => tools(here, &app, server).await,
        (None, false) => servers(here, &app).await,
    };
    app.close().await;
    printed.map(|()| ExitCode::SUCCESS)
}

/// The configured servers, in the order of the configuration.
pub(super) async fn configured_servers(app: &App) -> Result<Vec<ServerRow>, Problem> {
    let snapshot = app.tools.snapshot();
    let states = live_states(app).await?;
    let config = app.config();
    let sanitiser = app.knowledge.memory.sanitiser();
    let accepted = AcceptedCommands::open(&app.settings.paths).read()?;
    let mut rows = Vec::new();
    for server in &config.servers {
        let live = states.get(&server.name);
        let held = matches!(server.transport, ServerTransport::Stdio { .. })
            && !accepted.contains(&config::launch_digest(server));
        let state = match live {
            _ if !server.enabled => "disabled".to_owned(),
            Some(state) => sanitiser
                .clean_text(&format!("{} in process {}", state.state, state.process.pid))
                .into_owned(),
            None if held => "not started yet".to_owned(),
            None => "not running".to_owned(),
        };
        let sign_in = sign_in::state(&app.store, &app.principal, server).await?;
        // A server of which nobody knows that it wants a sign-in mostly wants none.
        let sign_in = sign_in.filter(|state| *state != SignInState::None).map(SignInState::as_str);
        rows.push(ServerRow {
            name: server.name.to_string(),
            state,
            tools: snapshot.tools_of(&server.name).count(),
            how: describe_transport(&server.declared, &sanitiser),
            sign_in,
        });
    }
    Ok(rows)
}

async fn servers(here: &CommandContext, app: &App) -> Result<(), Problem> {
    let snapshot = app.tools.snapshot();
    let config = app.config();
    let mut rows = configured_servers(app).await?;
    for server in snapshot.servers.iter().filter(|server| app.tools.builtin(server.name.as_str()).is_some()) {
        rows.push(ServerRow {
            name: server.name.to_string(),
            state: "built in".to_owned(),
            tools: snapshot.tools_of(&server.name).count(),
            how: server.description.clone().unwrap_or_default(),
            sign_in: None,
        });
    }
    for (name, why) in &snapshot.disabled_servers {
        rows.push(ServerRow {
            name: name.clone(),
            state: "off".to_owned(),
            tools: 0,
            how: why.message.clone(),
            sign_in: None,
        });
    }
    if here.json {
        let left_out: Vec<String> = config.findings.problems.iter().map(ToString::to_string).collect();
        let held_back: Vec<String> =
            snapshot.quarantined.iter().map(|held| format!("{}: {}", held.id, held.reason)).collect();
        out::json(
            &serde_json::json!({ "servers": rows, "leftOut": left_out, "heldBack": held_back, "untrusted": config.findings.untrusted }),
        );
        return Ok(());
    }
    out::line(server_table(&rows));
    for problem in &config.findings.problems {
        out::line(format!("{}left out{}: {problem}", out::YELLOW, out::RESET));
    }
    snapshot.quarantined.iter().for_each(show_held);
    for path in &config.findings.untrusted {
        out::line(format!(
            "{}not trusted{}: {}; `pml trust` makes it count",
            out::YELLOW,
            out::RESET,
            path.display()
        ));
    }
    Ok(())
}

/// A table of servers.
pub(super) fn server_table(rows: &[ServerRow]) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let state = [Some(row.state.as_str()), row.sign_in].into_iter().flatten().collect::<Vec<_>>();
            vec![row.name.clone(), state.join(", "), row.tools.to_string(), row.how.clone()]
        })
        .collect();
    out::table(&["SERVER", "STATE", "TOOLS", "HOW"], &cells)
}

/// Prints a quarantined tool, the reason, and the command that accepts it.
fn show_held(held: &QuarantinedTool) {
    let id = printable(&held.id.to_string());
    let way_out =
        if held.reason.needs_acceptance() { format!("; `pml accept {id}` shows it") } else { String::new() };
    let why = printable(&held.reason.to_string());
    out::line(format!("{}held back{}: {id}: {why}{way_out}", out::YELLOW, out::RESET));
}

/// The server states that running gateways publish; the best one where several do.
async fn live_states(app: &App) -> Result<BTreeMap<ServerName, PublishedServerState>, Problem> {
    let now = now_ms();
    let mut best: BTreeMap<ServerName, PublishedServerState> = BTreeMap::new();
    for state in app.store.server_states(&app.principal, now).await? {
        let better = best.get(&state.server).is_none_or(|known| !known.state.starts_with("ready"));
        if better {
            best.insert(state.server.clone(), state);
        }
    }
    Ok(best)
}

/// How a server is started or reached, with secrets removed.
pub(super) fn describe_transport(declared: &DeclaredTransport, sanitiser: &Sanitiser) -> String {
    let text = match declared {
        DeclaredTransport::Stdio { command, args, .. } => {
            [std::slice::from_ref(command), args].concat().join(" ")
        }
        DeclaredTransport::Http { url, .. } => url.clone(),
    };
    printable(&sanitiser.clean_text(&text))
}

async fn tools(here: &CommandContext, app: &App, server: &str) -> Result<(), Problem> {
    let snapshot = app.tools.snapshot();
    let known = || snapshot.servers.iter().map(|known| known.name.as_str());
    let Some(server) = snapshot.servers.iter().find(|known| known.name.as_str() == server) else {
        let off = snapshot.disabled_servers.get(server).cloned();
        return Err(off.unwrap_or_else(|| unknown_server(server, known())));
    };
    let tools: Vec<_> = snapshot.tools_of(&server.name).collect();
    let held = || snapshot.quarantined.iter().filter(|held| held.id.server == server.name);
    if here.json {
        let all: Vec<_> = tools
            .iter()
            .map(|tool| serde_json::json!({ "id": tool.id, "name": tool.exposed_name, "identifier": tool.identifier, "digest": tool.definition.digest, "definition": tool.definition.raw }))
            .chain(held().map(|held| serde_json::json!({ "id": held.id, "heldBack": held.reason.to_string(), "digest": held.definition.digest, "definition": held.definition.raw })))
            .collect();
        out::json(&all);
        return Ok(());
    }
    let cells: Vec<Vec<String>> = tools
        .iter()
        .map(|tool| {
            let reads = if tool.definition.annotations.read_only_hint == Some(true) { "reads" } else { "" };
            let description = tool.definition.description.as_deref().unwrap_or_default();
            let first: String =
                description.trim().lines().next().unwrap_or_default().chars().take(70).collect();
            vec![printable(&tool.id.to_string()), reads.to_owned(), printable(&first)]
        })
        .collect();
    if !server.tools_known {
        let state = match live_states(app).await?.remove(&server.name) {
            Some(state) => format!("{} in process {}", state.state, state.process.pid),
            None => "not running".to_owned(),
        };
        out::line(format!("`{}` is {state} and has not listed its tools yet", server.name));
        return Ok(());
    }
    out::line(out::table(&["TOOL", "CLAIMS", "DESCRIPTION"], &cells));
    held().for_each(show_held);
    Ok(())
}

/// The number of changes that `--changes` shows, newest first.
const SHOWN_CHANGES: u32 = 50;

async fn changes(here: &CommandContext, app: &App) -> Result<(), Problem> {
    let changes = app.store.recent_catalogue_changes(&app.principal, SHOWN_CHANGES).await?;
    if here.json {
        let all: Vec<_> = changes
            .iter()
            .map(|change| serde_json::json!({ "tool": change.tool, "before": change.before, "after": change.after, "at": change.at }))
            .collect();
        out::json(&all);
        return Ok(());
    }
    if changes.is_empty() {
        out::line("no definition has changed");
    }
    for change in changes {
        show_change(app, &change).await?;
    }
    Ok(())
}

async fn show_change(app: &App, change: &CatalogueChange) -> Result<(), Problem> {
    let when = jiff::Timestamp::from_millisecond(change.at)
        .map_or_else(|_| "?".to_owned(), |time| time.strftime("%F %T UTC").to_string());
    let short = |digest: &Option<pml_model::Digest>| {
        digest.as_ref().map_or_else(|| "–".to_owned(), |digest| digest.short().to_owned())
    };
    let id = printable(&change.tool.to_string());
    out::line(format!(
        "{when}  {}{id}{}  {} → {}",
        out::BOLD,
        out::RESET,
        short(&change.before),
        short(&change.after)
    ));
    let history = app.store.definition_history(&app.principal, &change.tool).await?;
    let known = |digest: &Option<pml_model::Digest>| {
        let known = history.iter().find(|known| Some(&known.digest) == digest.as_ref())?;
        known.definition.as_ref()
    };
    if let (Some(before), Some(after)) = (known(&change.before), known(&change.after)) {
        show_lines(&difference(before, after));
    }
    Ok(())
}

/// Prints text from a server, line by line, made printable.
pub(super) fn show_lines(text: &str) {
    text.lines().for_each(|line| out::line(printable(line)));
}
