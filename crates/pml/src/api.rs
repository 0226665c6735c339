//! The HTTP API beside MCP, for the operator's own programs and pages.
//!
//! One module per resource; `openapi` describes all of them in one document. Authentication happens in front of every
//! route, not here. The routes reach the stages through `flow` alone.

mod analyse;
mod approvals;
mod audit;
mod cache;
mod calls;
mod capabilities;
mod discover;
mod events;
mod execute;
mod explore;
mod extract;
mod graph;
mod metrics;
mod mocks;
mod openapi;
mod policy;
mod quarantine;
mod ready;
mod reply;
mod roles;
mod rules;
mod runs;
mod savings;
mod servers;
mod session;
mod span;
mod traces;
mod versions;
mod views;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::any;

use crate::app::App;

pub use roles::{ROUTE_ROLES, check_role};

/// The paths that browser sessions open, besides all below them.
pub const SESSION_PATHS: [&str; 3] = ["/api", "/events", "/metrics"];

/// The path that needs no credential.
pub const OPEN_PATHS: [&str; 1] = ["/ready"];

/// The POSTs that change nothing, so that viewers may send them.
pub const READING_POSTS: [&str; 2] = ["/api/analyse", "/api/discover"];

/// All routes of the HTTP API.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .merge(analyse::router())
        .merge(approvals::router())
        .merge(audit::router())
        .merge(cache::router())
        .merge(calls::router())
        .merge(capabilities::router())
        .merge(discover::router())
        .merge(events::router())
        .merge(execute::router())
        .merge(explore::router())
        .merge(graph::router())
        .merge(metrics::router())
        .merge(mocks::router())
        .merge(openapi::router())
        .merge(policy::router())
        .merge(quarantine::router())
        .merge(ready::router())
        .merge(rules::router())
        .merge(runs::router())
        .merge(savings::router())
        .merge(servers::router())
        .merge(session::router())
        .merge(traces::router())
        .merge(versions::router())
        .merge(views::router())
        .method_not_allowed_fallback(reply::no_method)
        .route("/api/{*other}", any(reply::no_route))
        .layer(from_fn_with_state(Arc::clone(&app), span::in_request_span))
        .with_state(app)
}
