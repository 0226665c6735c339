//! `pml serve` and `pml stdio`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use clap::Args;
use pml_mcp::server::access::{self, AccessRules};
use pml_mcp::server::{ClientIdentity, McpServer, body, http};
use pml_model::question::Answerer;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{CommandContext, out, starting};
use crate::api;
use crate::app::{App, ProcessRole};
use crate::config::{self, Expose, Secret};
use crate::dashboard::{self, DashboardSessions};
use crate::flow;
use crate::gateway::Gateway;
use crate::keys;
use crate::problem::{ErrorCode, Problem};

/// The request bodies that are accepted. Routes with smaller limits check those themselves.
const BODIES: body::BodyRules = body::BodyRules {
    forms: &[dashboard::LOGIN],
    form_bytes: dashboard::MAX_FORM_BYTES,
    json_bytes: pml_mcp::MAX_MESSAGE_BYTES,
};

/// Arguments of `pml serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// The address and port, instead of `serve.listen`
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    exposure: ExposeArgs,
}

/// Arguments of `pml stdio`.
#[derive(Debug, Args)]
pub(super) struct StdioArgs {
    /// The file with the client's key, made by `pml keys create`
    #[arg(long, value_name = "PATH")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    exposure: ExposeArgs,
}

#[derive(Debug, Args)]
struct ExposeArgs {
    /// The tools that clients see: meta, full, or a list such as fs:read,git:*,wordCount; instead of `expose`
    #[arg(long, value_name = "WHAT", value_parser = expose)]
    expose: Option<Expose>,
}

fn expose(text: &str) -> Result<Expose, String> {
    match text {
        "meta" => Ok(Expose::Meta),
        "full" => Ok(Expose::Full),
        names => {
            let names: Vec<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
            match names.iter().find(|name| !name.contains(':') && !flow::is_capability_name(name)) {
                Some(word) => Err(format!(
                    "`{word}` is neither meta, full, a tool such as fs:read or fs:*, nor the name of a capability"
                )),
                None => Ok(Expose::Only(names)),
            }
        }
    }
}

/// Says which exposed capabilities do not exist or have not worked yet: they are listed as soon as they have.
async fn note_unlisted(app: &App, expose: Option<&Expose>) {
    let config = app.config();
    let Expose::Only(names) = expose.unwrap_or(&config.expose) else { return };
    let Ok(listed) = flow::exposed_capabilities(app, &app.principal, names).await else { return };
    for name in names.iter().filter(|name| !name.contains(':')) {
        if !listed.iter().any(|capability| capability.name == *name) {
            out::note(format!("`{name}` is not listed yet: no capability of this name has worked"));
        }
    }
}

pub(super) async fn serve(here: &CommandContext, serve: ServeArgs) -> Result<ExitCode, Problem> {
    let Some((app, listener)) = starting::listen_and_open(here, serve.listen).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let settings = app.config().serve.clone();
    let address = listener.local_addr().unwrap_or(serve.listen.unwrap_or(settings.listen));
    let token = config::load_token(&app.settings.paths)?;
    let access = AccessRules::new(address.ip(), &settings.hosts, &settings.origins)
        .with_port(address.port())
        .with_token(token.reveal(), app.principal.clone())
        .with_open_paths(&["/health"])
        .with_open_paths(&api::OPEN_PATHS)
        .with_open_paths(&dashboard::OPEN)
        .with_open_paths(&dashboard::PAGES);
    let sessions = Arc::new(DashboardSessions::new(
        app.settings.paths.clone(),
        app.store.clone(),
        app.principal.clone(),
        Arc::clone(&app.people),
    )?);
    let link = format!("http://{}{}", reachable(address), sessions.viewer_path()?);
    let (signed_in, known) = (Arc::clone(&sessions), Arc::clone(&app));
    let access = access.with_keys(move |key| known.keys.find(key).map(|key| (key.principal.clone(), key.id)));
    let access = access.with_sessions(&api::SESSION_PATHS, &api::READING_POSTS, move |effect, headers| {
        signed_in.authenticate(effect, headers)
    });
    let stop = CancellationToken::new();
    let gateway = Gateway::new(Arc::clone(&app), serve.exposure.expose.clone(), Answerer::Human);
    let server = McpServer::new(Arc::new(gateway));
    let router = Router::new()
        .route("/health", get(|| async { ([("content-type", "application/json")], r#"{"status":"ok"}"#) }))
        .merge(api::router(Arc::clone(&app)))
        .merge(dashboard::router(sessions))
        .merge(http::router(server.clone(), stop.clone()))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), api::check_role))
        .layer(axum::middleware::from_fn_with_state(Arc::new(BODIES), body::receive_body))
        .layer(axum::middleware::from_fn_with_state(Arc::new(access), access::check_access))
        .layer(axum::middleware::from_fn(dashboard::add_security_headers));
    greet(&app, address, token.reveal(), &link, serve.exposure.expose.as_ref());
    note_unlisted(&app, serve.exposure.expose.as_ref()).await;
    let serving = http::serve(listener, router, stop.clone());
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => {}
        () = starting::wait_for_shutdown() => {
            out::note("stopping");
            // First, so that unfinished runs are left to the next process instead of being cancelled with their
            // requests.
            app.suspend_runs().await;
            stop.cancel();
            serving.await;
        }
    }
    server.close().await;
    app.close().await;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn stdio(here: &CommandContext, stdio: StdioArgs) -> Result<ExitCode, Problem> {
    let presented = stdio.key_file.map(|path| keys::read_key_file(&here.cwd.join(path))).transpose()?;
    let app = here.open_app(ProcessRole::Gateway).await?;
    let stop = CancellationToken::new();
    let identity = match identity(&app, presented.as_ref()) {
        Ok(identity) => identity,
        Err(problem) => {
            app.close().await;
            return Err(problem);
        }
    };
    warn(&app);
    let gateway = Gateway::new(Arc::clone(&app), stdio.exposure.expose, Answerer::Client);
    let serving = pml_mcp::server::stdio::serve(McpServer::new(Arc::new(gateway)), identity, stop.clone());
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => {}
        () = starting::wait_for_shutdown() => {
            // First, so that unfinished runs are left to the next process instead of being cancelled with their
            // requests.
            app.suspend_runs().await;
            stop.cancel();
            serving.await;
        }
    }
    app.close().await;
    Ok(ExitCode::SUCCESS)
}

/// The identity of a `pml stdio` client, from the key it presents, if any.
fn identity(app: &App, presented: Option<&Secret>) -> Result<ClientIdentity, Problem> {
    let Some(presented) = presented else { return Ok(ClientIdentity::from(app.principal.clone())) };
    let key = app.keys.find(presented.reveal()).ok_or_else(|| {
        Problem::new(ErrorCode::Denied, "the key in the key file is not known here, or was revoked")
            .hint("`pml keys list` shows the keys there are; `pml keys create` makes a new one")
    })?;
    Ok(ClientIdentity { principal: key.principal.clone(), key: Some(key.id) })
}

/// Logs the warnings that do not prevent a start.
fn warn(app: &App) {
    for warning in &app.config().findings.warnings {
        tracing::warn!("{}; {}", warning.message, warning.hint);
    }
}

/// The address by which this machine reaches a listener on all of its addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(any) if any.ip().is_unspecified() => ([127, 0, 0, 1], any.port()).into(),
        SocketAddr::V6(any) if any.ip().is_unspecified() => {
            (std::net::Ipv6Addr::LOCALHOST, any.port()).into()
        }
        one => one,
    }
}

fn greet(app: &App, address: SocketAddr, token: &str, link: &str, expose: Option<&Expose>) {
    let snapshot = app.tools.snapshot();
    let url = format!("http://{address}/mcp");
    let program =
        std::env::current_exe().map_or_else(|_| "pml".to_owned(), |path| path.display().to_string());
    let http = json!({ "mcpServers": { "pml": { "type": "http", "url": url, "headers": { "Authorization": format!("Bearer {token}") } } } });
    let stdio = json!({ "mcpServers": { "pml": { "command": program, "args": ["stdio"] } } });
    let pretty = |value: &serde_json::Value| serde_json::to_string_pretty(value).unwrap_or_default();
    out::line(format!(
        "{bold}PML {} serves {} tools of {} servers at {url}{reset}",
        env!("PML_VERSION"),
        snapshot.tools.len(),
        snapshot.servers.len(),
        bold = out::BOLD,
        reset = out::RESET
    ));
    out::line(format!("\nDashboard: {link}"));
    out::line("\nFor a client that speaks HTTP:");
    out::line(pretty(&http));
    out::line("\nFor a client that starts its servers itself:");
    out::line(pretty(&stdio));
    if *expose.unwrap_or(&app.config().expose) == Expose::Meta {
        out::line(
            "\nClients are shown PML's own tools and reach all others through them. To list every tool as well:\n\
             `--expose full`, or `expose = \"full\"` in pml.toml.",
        );
    }
    warn(app);
    for problem in &app.config().findings.problems {
        out::note(format!("{}left out{}: {problem}", out::YELLOW, out::RESET));
    }
    for path in &app.config().findings.untrusted {
        out::note(format!(
            "{}not trusted{}: {}; run `pml trust` in its directory to use it",
            out::YELLOW,
            out::RESET,
            path.display()
        ));
    }
    out::line("\nPress Ctrl-C to stop.");
}
