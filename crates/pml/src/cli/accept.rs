//! `pml accept`: a person's word for a command, and for tools that appeared or changed.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Args;
use pml_model::ToolId;
use pml_model::name::printable;

use super::execute::confirmed;
use super::{Here, list, out};
use crate::accepted::{self, Accepted};
use crate::app::{App, Role};
use crate::catalogue::HeldBack;
use crate::config;
use crate::problem::{Code, Problem, unknown_server};
use crate::sanitise::Sanitiser;

/// Arguments of `pml accept`.
#[derive(Debug, Args)]
pub(super) struct Accept {
    /// The server, or one of its tools
    #[arg(value_name = "SERVER[:TOOL]")]
    what: String,
    /// Accept without a prompt
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(here: &Here, accept: &Accept) -> Result<ExitCode, Problem> {
    let app = here.open(Role::Command).await?;
    let done = accepted(here, &app, accept).await;
    app.close().await;
    done
}

async fn accepted(here: &Here, app: &App, accept: &Accept) -> Result<ExitCode, Problem> {
    let config = app.config();
    let (name, tool) = match accept.what.split_once(':') {
        Some((server, _)) => (server, Some(tool_id(&accept.what)?)),
        None => (accept.what.as_str(), None),
    };
    let Some(server) = config.servers.iter().find(|server| server.name.as_str() == name) else {
        return Err(unknown_server(name, config.servers.iter().map(|server| server.name.as_str())));
    };
    let waiting = waiting(app, server, tool.as_ref())?;
    if !waiting.is_empty() && !is_wanted(here, &waiting, accept.yes).await? {
        out::note("nothing was accepted");
        return Ok(ExitCode::FAILURE);
    }
    if tool.is_none() {
        Accepted::open(&app.settings.paths).accept(std::iter::once(config::launch_digest(server)))?;
    }
    let by = if accept.yes { "pml accept --yes" } else { "pml accept" };
    let other = accepted::definitions((&app.tools, &app.store, &app.principal), server, &waiting, by).await?;
    if let Some(id) = other.first() {
        let text = format!("`{id}` changed once more while it was shown, and was not accepted");
        return Err(Problem::new(Code::ToolChanged, text).hint("run `pml accept` again"));
    }
    tell(here, server, tool.as_ref(), &waiting);
    Ok(ExitCode::SUCCESS)
}

fn tool_id(text: &str) -> Result<ToolId, Problem> {
    ToolId::parse(text).map_err(|error| Problem::new(Code::InvalidRequest, error.to_string()))
}

/// The tools that wait for this word.
fn waiting(app: &App, server: &config::Server, tool: Option<&ToolId>) -> Result<Vec<HeldBack>, Problem> {
    let snapshot = app.tools.snapshot();
    let Some(id) = tool else {
        let of_server = |held: &&HeldBack| held.id.server == server.name && held.why.waits();
        return Ok(snapshot.held_back.iter().filter(of_server).cloned().collect());
    };
    match snapshot.held(id) {
        Some(held) if held.why.waits() => Ok(vec![held.clone()]),
        // Also that it is there and waits for nothing, or that there is no such tool.
        _ => snapshot.tool(id).map(|_| Vec::new()),
    }
}

/// Shows what is to be accepted and asks, unless it was said already.
async fn is_wanted(here: &Here, waiting: &[HeldBack], yes: bool) -> Result<bool, Problem> {
    if !here.json {
        waiting.iter().for_each(show);
    }
    if yes {
        return Ok(true);
    }
    if here.json || !std::io::stdin().is_terminal() {
        let text = format!("{} tools wait to be accepted, and there is no terminal to ask at", waiting.len());
        return Err(Problem::new(Code::InvalidRequest, text).hint("look at them, then add `--yes`"));
    }
    Ok(confirmed("use them from now on?").await == Some(true))
}

fn show(held: &HeldBack) {
    let id = printable(&held.id.to_string());
    out::line(format!("{}{id}{}  {}", out::BOLD, out::RESET, printable(&held.why.to_string())));
    list::show_lines(&held.difference());
}

fn tell(here: &Here, server: &config::Server, tool: Option<&ToolId>, waiting: &[HeldBack]) {
    let how = list::how(&server.declared, &Sanitiser::new(server.secrets.iter().cloned()));
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
