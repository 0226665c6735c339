//! `pml serve` until its database can be reached: it listens and says that it is not ready, and opens the database when
//! that is there. Supervisors and load balancers then see a gateway that waits, and not one that fails again and again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use pml_mcp::server::http;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{CommandContext, out};
use crate::app::{App, ProcessRole};
use crate::problem::{ErrorCode, Problem};
use crate::settings::AppSettings;

/// 2 s: the pause between two attempts to open the database. Each attempt itself tries for some seconds.
const PAUSE: Duration = Duration::from_secs(2);

/// Listens, and opens the database. `listen` overrides the configured address. `None` if the program was asked to stop
/// meanwhile.
pub(super) async fn listen_and_open(
    here: &CommandContext,
    listen: Option<SocketAddr>,
) -> Result<Option<(Arc<App>, TcpListener)>, Problem> {
    let settings = AppSettings::load(here.paths.clone(), here.env.clone(), here.cwd.clone())?;
    if settings.config().store.is_none() {
        // A file is there or will never be.
        let app = here.open_app(ProcessRole::Gateway).await?;
        let listener = bind(listen.unwrap_or(app.config().serve.listen)).await?;
        return Ok(Some((app, listener)));
    }
    let listener = bind(listen.unwrap_or(settings.config().serve.listen)).await?;
    let (listener, second) = duplicate(listener)?;
    let opened = CancellationToken::new();
    let waiting = http::serve(second, waiting_router(), opened.clone());
    let opening = async {
        let app = open(here).await;
        opened.cancel();
        app
    };
    let ((), app) = tokio::join!(waiting, opening);
    Ok(app?.map(|app| (app, listener)))
}

async fn open(here: &CommandContext) -> Result<Option<Arc<App>>, Problem> {
    loop {
        let problem = tokio::select! {
            opened = here.open_app(ProcessRole::Gateway) => match opened {
                Ok(app) => return Ok(Some(app)),
                Err(problem) if is_unreachable(&problem) => problem,
                Err(problem) => return Err(problem),
            },
            () = wait_for_shutdown() => return Ok(None),
        };
        out::note(format!("{}; waiting for it", problem.message));
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = wait_for_shutdown() => return Ok(None),
        }
    }
}

fn is_unreachable(problem: &Problem) -> bool {
    let cause = std::error::Error::source(problem);
    let cause = cause.and_then(|cause| cause.downcast_ref::<pml_store::Error>());
    matches!(cause, Some(pml_store::Error::Unreachable { .. }))
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Problem> {
    TcpListener::bind(address).await.map_err(|error| in_use(address, &error))
}

/// A second handle of the same listener: connections that wait when the first one stops are served by the other.
fn duplicate(listener: TcpListener) -> Result<(TcpListener, TcpListener), Problem> {
    let both = || {
        let first = listener.into_std()?;
        let second = first.try_clone()?;
        Ok::<_, std::io::Error>((TcpListener::from_std(first)?, TcpListener::from_std(second)?))
    };
    both().map_err(|error| Problem::new(ErrorCode::Config, format!("cannot listen: {error}")))
}

/// Alive, and not ready: whoever asks for more is told to come back.
fn waiting_router() -> Router {
    let alive = || async { ([("content-type", "application/json")], r#"{"status":"ok"}"#) };
    Router::new().route("/health", get(alive)).fallback(not_ready)
}

async fn not_ready() -> Response {
    let problem = Problem::new(ErrorCode::Storage, "the database of this gateway cannot be reached")
        .hint("try again, or use another gateway")
        .retry_after(PAUSE.as_secs());
    let body = serde_json::json!({ "schemaVersion": 1, "error": problem }).to_string();
    let headers = [("content-type", "application/json"), ("retry-after", "2"), ("connection", "close")];
    (StatusCode::SERVICE_UNAVAILABLE, headers, body).into_response()
}

/// Returns when the process is asked to stop.
pub(super) async fn wait_for_shutdown() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = signal(SignalKind::terminate());
        let hang_up = signal(SignalKind::hangup());
        if let (Ok(mut terminate), Ok(mut hang_up)) = (terminate, hang_up) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn in_use(address: SocketAddr, error: &std::io::Error) -> Problem {
    let problem = Problem::new(ErrorCode::Config, format!("cannot listen on {address}: {error}"));
    if error.kind() == std::io::ErrorKind::AddrInUse {
        let hint =
            "another `pml serve` may be running; stop it, or choose a port with `--listen 127.0.0.1:0`";
        return problem.hint(hint);
    }
    problem.hint("choose another address with `--listen` or `serve.listen` in pml.toml")
}
