//! `/api/approvals`: what waits for a person's word, and giving it.
//!
//! Whether an answer counts depends on who gives it: a person in a session, or a program with the bearer token.
//! That is decided in `flow`; here it is only said which of them it was.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use pml_mcp::server::access::Admitted;
use pml_model::question::Question;
use pml_model::{Principal, RunId};
use serde::Serialize;
use serde_json::json;

use super::{is_json, json_of, not_json, refuse};
use crate::app::App;
use crate::clock::now_ms;
use crate::flow::{self, By, Open, Said};
use crate::problem::{Code, Problem};

/// What an answer may have.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// The path that people who have signed in may use, and all below it.
pub const PATH: &str = "/api/approvals";

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/approvals", get(list)).route("/api/approvals/{run}/{question}", post(answer))
}

/// A question, as it is listed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    workflow_id: &'a str,
    question_id: &'a str,
    session: &'a str,
    intent: &'a str,
    asked_at: i64,
    expires_at: Option<i64>,
    question: &'a Question,
}

async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Response {
    let open = match flow::asking(&app).await {
        Ok(open) => open,
        Err(problem) => return refuse(&problem),
    };
    let listed: Vec<Listed<'_>> =
        open.iter().filter(|open| open.principal == principal).map(Listed::from).collect();
    super::listed(&headers, &json!({ "approvals": listed }))
}

impl<'a> From<&'a Open> for Listed<'a> {
    fn from(open: &'a Open) -> Listed<'a> {
        Listed {
            workflow_id: open.run.as_str(),
            question_id: &open.question_id,
            session: &open.session,
            intent: &open.intent,
            asked_at: open.asked_at,
            expires_at: open.expires_at,
            question: &open.question,
        }
    }
}

async fn answer(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    Path((run, question_id)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !is_json(&headers) {
        return not_json();
    }
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        let text = format!("the body is larger than {MAX_BODY_BYTES} bytes");
        return refuse(&Problem::new(Code::TooLarge, text));
    };
    match take(&app, &admitted, &run, &question_id, &body).await {
        Ok(()) => json_of(StatusCode::OK, &json!({ "status": "answered" })),
        Err(problem) => refuse(&problem),
    }
}

async fn take(
    app: &Arc<App>,
    admitted: &Admitted,
    run: &str,
    question_id: &str,
    body: &[u8],
) -> Result<(), Problem> {
    let said: Said = serde_json::from_slice(body).map_err(|error| {
        Problem::new(Code::InvalidRequest, format!("the body cannot be read: {error}")).hint(SHAPE)
    })?;
    let unknown = || Problem::new(Code::UnknownRun, "there is no such run");
    let run = RunId::parse(run).map_err(|_| unknown())?;
    let principal = admitted.principal().ok_or_else(unknown)?;
    let by = match admitted {
        Admitted::Session(_) => By::Dashboard,
        Admitted::Token(_) | Admitted::Key(..) | Admitted::Open => By::Api,
    };
    // Somebody else's run is told from none at all by nothing.
    let asked = flow::open_question(app, principal, &run).await?.filter(|(name, _)| name == question_id);
    let answer = said.to(asked.as_ref().map(|(_, question)| question), now_ms())?;
    flow::answer(app, &run, question_id, answer, &by).await
}

const SHAPE: &str = "send `{\"approved\": true}`, or `false` with a `reason`; to calls in doubt \
                     `{\"calls\": [{\"call\": 1, \"verdict\": \"again\"}]}`";
