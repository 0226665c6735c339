//! `pml accept`: a person accepts a server's command, or tools that appeared or changed.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Args;
use pml_model::ToolId;
use pml_model::name::printable;

use super::ask::read_confirmation;
use super::{CommandContext, list, out};
use crate::accepted::{self, AcceptedCommands};
use crate::app::{App, ProcessRole};
use crate::catalogue::QuarantinedTool;
use crate::config;
use crate::problem::{ErrorCode, Problem, unknown_server};
use crate::sanitise::Sanitiser;

/// Arguments of `pml accept`.
#[derive(Debug, Args)]
pub(super) struct AcceptArgs {
    /// The server, or one of its tools
    #[arg(value_name = "SERVER[:TOOL]")]
    what: String,
    /// Accept without a prompt
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(here: &CommandContext, accept: &AcceptArgs) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let done = accept_tools(here, &app, accept).await;
    app.close().await;
    done
}

async fn accept_tools(here: &CommandContext, app: &App, accept: &AcceptArgs) -> Result<ExitCode, Problem> {
    let config = app.config();
    let (name, tool) = match accept.what.split_once(':') {
        Some((server, _)) => (server, Some(tool_id(&accept.what)?)),
        None => (accept.what.as_str(), None),
    };
    let Some(server) = config.servers.iter().find(|server| server.name.as_str() == name) else {
        return Err(unknown_server(name, config.servers.iter().map(|server| server.name.as_str())));
    };
    let waiting = tools_to_accept(app, server, tool.as_ref())?;
    if !waiting.is_empty() && !confirm_acceptance(here, &waiting, accept.yes).await? {
        out::note("nothing was accepted");
        return Ok(ExitCode::FAILURE);
    }
    if tool.is_none() {
        AcceptedCommands::open(&app.settings.paths).accept(std::iter::once(config::launch_digest(server)))?;
    }
    let by = if accept.yes { "pml accept --yes" } else { "pml accept" };
    let other =
        accepted::accept_definitions((&app.tools, &app.store, &app.principal), server, &waiting, by).await?;
    if let Some(id) = other.first() {
        let text = format!("`{id}` changed once more while it was shown, and was not accepted");
        return Err(Problem::new(ErrorCode::ToolChanged, text).hint("run `pml accept` again"));
    }
    tell(here, server, tool.as_ref(), &waiting);
    Ok(ExitCode::SUCCESS)
}

fn tool_id(text: &str) -> Result<ToolId, Problem> {
    ToolId::parse(text).map_err(|error| Problem::new(ErrorCode::InvalidRequest, error.to_string()))
}

/// The quarantined tools that this command would accept.
fn tools_to_accept(
    app: &App,
    server: &config::ServerConfig,
    tool: Option<&ToolId>,
) -> Result<Vec<QuarantinedTool>, Problem> {
    let snapshot = app.tools.snapshot();
    let Some(id) = tool else {
        let of_server =
            |held: &&QuarantinedTool| held.id.server == server.name && held.reason.needs_acceptance();
        return Ok(snapshot.quarantined.iter().filter(of_server).cloned().collect());
    };
    match snapshot.find_quarantined(id) {
        Some(held) if held.reason.needs_acceptance() => Ok(vec![held.clone()]),
        // An empty list for a tool that is not quarantined; an error where there is no such tool.
        _ => snapshot.tool(id).map(|_| Vec::new()),
    }
}

/// Shows the tools to be accepted and asks for confirmation, unless `--yes` was given.
async fn confirm_acceptance(
    here: &CommandContext,
    waiting: &[QuarantinedTool],
    yes: bool,
) -> Result<bool, Problem> {
    if !here.json {
        waiting.iter().for_each(show);
    }
    if yes {
        return Ok(true);
    }
    if here.json || !std::io::stdin().is_terminal() {
        let text = format!("{} tools wait to be accepted, and there is no terminal to ask at", waiting.len());
        return Err(Problem::new(ErrorCode::InvalidRequest, text).hint("look at them, then add `--yes`"));
    }
    Ok(read_confirmation("use them from now on?").await == Some(true))
}

fn show(held: &QuarantinedTool) {
    let id = printable(&held.id.to_string());
    out::line(format!("{}{id}{}  {}", out::BOLD, out::RESET, printable(&held.reason.to_string())));
    list::show_lines(&held.difference());
}

fn tell(
    here: &CommandContext,
    server: &config::ServerConfig,
    tool: Option<&ToolId>,
    waiting: &[QuarantinedTool],
) {
    let how = list::describe_transport(&server.declared, &Sanitiser::new(server.secrets.iter().cloned()));
    let tools: Vec<String> = waiting.iter().map(|held| printable(&held.id.to_string())).collect();
    if here.json {
        out::json(&serde_json::json!({ "accepted": server.name, "how": how, "tools": tools }));
        return;
    }
    match tool {
        None => out::line(format!("accepted `{}`: {how}", server.name)),
        Some(tool) if tools.is_empty() => {
            out::line(format!("`{}` waits for nothing", printable(&tool.to_string())));
        }
        Some(_) => {}
    }
    tools.iter().for_each(|tool| out::line(format!("accepted the tool `{tool}` as shown")));
}
