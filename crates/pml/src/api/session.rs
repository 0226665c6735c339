//! `GET /api/session`: who the sender of a request is, for pages that have to decide what to offer.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::get;
use pml_mcp::server::access::Admission;
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::passphrase;
use crate::problem::Problem;

#[derive(OpenApi)]
#[openapi(paths(session))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/session", get(session))
}

/// The reply of `GET /api/session`.
///
/// It never holds the CSRF token: every server on this host receives the cookie, and could ask for the token with it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionInfo {
    schema_version: u32,
    /// How the request was admitted.
    role: Role,
    /// Whether there is a passphrase to sign in with; `pml passphrase` sets it.
    passphrase_set: bool,
    /// The version of PML.
    version: &'static str,
    /// Whom the request acts for.
    principal: String,
    /// The role of the key, or of the person who is signed in; absent for the operator's own token and link.
    #[serde(skip_serializing_if = "Option::is_none")]
    granted_role: Option<&'static str>,
}

/// How a request was admitted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Role {
    /// By the link that `pml serve` prints: may read.
    Viewer,
    /// By signing in with the passphrase.
    Person,
    /// By the bearer token or a key.
    Program,
}

/// Tells who the sender of the request is.
#[utoipa::path(get, path = "/api/session", tag = "access", responses((status = 200, body = SessionInfo)))]
async fn session(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admission>,
) -> Result<Reply<SessionInfo>, Problem> {
    let role = match &admitted {
        Admission::Session(_) => Role::Person,
        Admission::Token(_) | Admission::Key(..) => Role::Program,
        Admission::Viewer(_) | Admission::Open => Role::Viewer,
    };
    let passphrase_set = passphrase::is_set(&app.settings.paths, &app.store)? || !app.people.is_empty();
    let principal = admitted.principal().unwrap_or(&app.principal).0.clone();
    let version = env!("PML_VERSION");
    let granted_role = match &admitted {
        Admission::Key(_, key) => app.keys.role(Some(*key)),
        Admission::Session(person) => app.people.role(person),
        Admission::Token(_) | Admission::Viewer(_) | Admission::Open => None,
    };
    let granted_role = granted_role.map(pml_model::Role::as_str);
    Ok(Reply(SessionInfo {
        schema_version: SCHEMA_VERSION,
        role,
        passphrase_set,
        version,
        principal,
        granted_role,
    }))
}
