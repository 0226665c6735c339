//! `pml login` and `pml logout`: a person signs in to a remote server, or out.

use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use pml_auth::Scopes;
use pml_model::name::printable;
use tokio_util::sync::CancellationToken;

use super::{CommandContext, out};
use crate::app::{App, ProcessRole};
use crate::config::{Env, ServerConfig};
use crate::flow::{self, AnswerChannel};
use crate::problem::{Problem, unknown_server};
use crate::sign_in::{self, SignInPrompt, SignInRequest, SignInWay};

/// Arguments of `pml login`.
#[derive(Debug, Args)]
pub(super) struct LoginArgs {
    /// The name of the server
    server: String,
    /// Sign in on another device, such as a phone, by a code
    #[arg(long, conflicts_with = "no_browser")]
    device: bool,
    /// Print the address to open instead of starting a browser
    #[arg(long)]
    no_browser: bool,
    /// Ask for this scope too
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
}

/// Arguments of `pml logout`.
#[derive(Debug, Args)]
pub(super) struct LogoutArgs {
    /// The name of the server
    server: String,
}

pub(super) async fn login(here: &CommandContext, login: &LoginArgs) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let done = login_with(here, &app, login).await;
    app.close().await;
    done.map(|()| ExitCode::SUCCESS)
}

async fn login_with(here: &CommandContext, app: &Arc<App>, login: &LoginArgs) -> Result<(), Problem> {
    let config = app.config();
    let server = configured(&config.servers, &login.server)?;
    let browser = if login.no_browser { None } else { browser(&here.env) };
    let way = match (login.device, &browser) {
        (true, _) => SignInWay::Device,
        (false, None) if !login.no_browser => SignInWay::DeviceIfPossible,
        (false, _) => SignInWay::Browser,
    };
    let scopes = Scopes::of(login.scope.iter().flat_map(|scopes| scopes.split_ascii_whitespace()));
    let request = SignInRequest { server, principal: &app.principal, scopes, way };
    let signed_in = sign_in::sign_in(&app.store, request, |prompt| match prompt {
        SignInPrompt::Open { issuer, url } => {
            out::note(format!(
                "sign in to `{}` at {issuer}: open this address in a browser of this machine",
                server.name
            ));
            out::note(url.as_str());
            if let Some(program) = &browser {
                open_browser(program, url.as_str());
            }
        }
        SignInPrompt::Type { issuer, url, code } => {
            out::note(format!("sign in to `{}` at {issuer}: open this address on any device", server.name));
            out::note(printable(url));
            out::note(format!("and compare or type this code: {}", printable(code)));
        }
    })
    .await?;
    let resumed = flow::note_sign_in(app, server.name.as_str(), &AnswerChannel::Shell).await?;
    let listed = list_tools(app, server).await;
    if let Err(problem) = &listed {
        out::error(problem);
    }
    let tokens = signed_in.tokens.as_ref();
    let granted = tokens.and_then(|tokens| tokens.scopes.clone()).unwrap_or(signed_in.asked);
    if here.json {
        out::json(&serde_json::json!({
            "server": server.name, "issuer": signed_in.issuer, "scopes": granted,
            "expiresAt": tokens.and_then(|tokens| tokens.expires_at),
            "renews": tokens.is_some_and(|tokens| tokens.refresh.is_some()),
            "tools": listed.ok(),
            "resumed": resumed,
        }));
        return Ok(());
    }
    let tools = listed.map_or_else(|_| String::new(), |tools| format!(": {tools} tools"));
    out::line(format!("signed in to `{}`{tools}", server.name));
    for run in resumed {
        out::line(format!("  run {run} goes on"));
    }
    if !granted.is_empty() {
        out::line(format!("  scopes: {}", printable(&granted.to_string())));
    }
    if tokens.is_some_and(|tokens| tokens.refresh.is_none() && tokens.expires_at.is_some()) {
        out::note(
            "the authorization server gave no token to renew the sign-in with: `pml login` is needed when it ends",
        );
    }
    Ok(())
}

/// Connects to a server once, so that its tools are known; how many it has.
async fn list_tools(app: &App, server: &ServerConfig) -> Result<usize, Problem> {
    let Some(slot) = app.tools.servers.get(&server.name) else { return Ok(0) };
    let deadline = Instant::now() + server.start_timeout;
    slot.connection(deadline, &CancellationToken::new()).await.map_err(|unavailable| unavailable.0)?;
    app.tools.wait_until_listed(&slot).await;
    Ok(app.tools.snapshot().tools_of(&server.name).count())
}

pub(super) async fn logout(here: &CommandContext, logout: &LogoutArgs) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let config = app.config();
    let done = match configured(&config.servers, &logout.server) {
        Ok(server) => sign_in::sign_out(&app.store, &app.principal, server).await,
        Err(problem) => Err(problem),
    };
    app.close().await;
    let revoked = done?;
    let name = &logout.server;
    if here.json {
        out::json(&serde_json::json!({
            "server": name, "signedOut": revoked.is_some(), "revoked": revoked.as_ref().is_some_and(Result::is_ok),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    match revoked {
        None => out::line(format!("nobody was signed in to `{name}`")),
        Some(Ok(())) => out::line(format!("signed out of `{name}`")),
        Some(Err(why)) => {
            out::line(format!("signed out of `{name}`: PML has no tokens of it any more"));
            out::note(format!("they were not revoked and work until they expire: {}", printable(&why)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn configured<'a>(servers: &'a [ServerConfig], name: &str) -> Result<&'a ServerConfig, Problem> {
    let found = servers.iter().find(|server| server.name.as_str() == name);
    found.ok_or_else(|| unknown_server(name, servers.iter().map(|server| server.name.as_str())))
}

/// The program that opens an address for the person at this machine; `None` on a machine without a screen.
fn browser(env: &Env) -> Option<String> {
    if let Some(program) = env.get("BROWSER").and_then(|programs| programs.split(':').next())
        && !program.is_empty()
    {
        return Some(program.to_owned());
    }
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env.get(name).is_some());
    match std::env::consts::OS {
        "macos" => Some("open".to_owned()),
        "windows" => Some("explorer".to_owned()),
        _ => has_screen.then(|| "xdg-open".to_owned()),
    }
}

/// Starts a program on an address. What it says would only stand between the lines of this command.
fn open_browser(program: &str, url: &str) {
    let mut command = std::process::Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        out::note(format!("`{program}` cannot be started ({error}); open the address yourself"));
    }
}
