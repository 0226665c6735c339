//! The HTTP API beside MCP, for programs and pages of the operator's own.
//!
//! `POST /api/analyse` says what a program (`{"code": "…"}`) or a DAG document (`{"dagStructure": {…}}`) would do;
//! nothing is run. `/api/approvals` is what waits for a person, `/api/quarantine` the tools that
//! do; `/api/capabilities` and `/api/traces` are what was learned, `/api/graph` how it hangs together. Who may ask is decided in front of every route, not
//! here.

pub mod approvals;
mod capabilities;
mod graph;
pub mod quarantine;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use pml_analysis::render::Report;
use pml_model::Digest;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::app::App;
use crate::flow::{self, Analysed};
use crate::problem::{Code, Problem};

/// What a request may have: more than the longest program or document, however its characters are escaped.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// The routes.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/api/analyse", post(analyse))
        .merge(approvals::router())
        .merge(capabilities::router())
        .merge(graph::router())
        .merge(quarantine::router())
        .with_state(app)
}

/// What is to be analysed: one of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Request<'a> {
    code: Option<String>,
    #[serde(borrow)]
    dag_structure: Option<&'a RawValue>,
}

/// The answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<A> {
    schema_version: u32,
    #[serde(flatten)]
    analysis: A,
}

async fn analyse(State(app): State<Arc<App>>, body: Body) -> Response {
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return problem(&Problem::new(
            Code::TooLarge,
            format!("the body is larger than {MAX_BODY_BYTES} bytes"),
        ));
    };
    let request: Request<'_> = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return problem(&bad(format!("the body cannot be read: {error}"))),
    };
    let analysed = match (request.code, request.dag_structure) {
        (Some(code), None) => flow::analyse(&app, code).await,
        (None, Some(dag)) => flow::analyse_dag(&app, dag.get().to_owned()).await,
        _ => return problem(&bad("give either `code` or `dagStructure`".to_owned())),
    };
    match analysed {
        Analysed::Program(analysis) => json_of(StatusCode::OK, &Answer { schema_version: 1, analysis }),
        Analysed::Dag(analysis) => json_of(StatusCode::OK, &Answer { schema_version: 1, analysis }),
        Analysed::NotUnderstood(report) => not_understood(&report),
    }
}

fn bad(message: String) -> Problem {
    Problem::new(Code::InvalidRequest, message).hint("send `{\"code\": \"…\"}` or `{\"dagStructure\": {…}}`")
}

fn problem(problem: &Problem) -> Response {
    let status =
        if problem.code == Code::TooLarge { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
    json_of(status, &json!({ "schemaVersion": 1, "error": problem }))
}

fn not_understood(report: &Report) -> Response {
    json_of(StatusCode::UNPROCESSABLE_ENTITY, &json!({ "schemaVersion": 1, "error": report }))
}

fn json_of(status: StatusCode, body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).expect("our own shapes have string keys only");
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

/// A list that pages ask for again and again: whoever has it already is told no more than that.
fn listed(headers: &HeaderMap, body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).expect("our own shapes have string keys only");
    let tag = format!("\"{}\"", Digest::of(&body));
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    ([(CONTENT_TYPE, "application/json".to_owned()), (ETAG, tag)], body).into_response()
}

fn not_json() -> Response {
    let problem = Problem::new(Code::InvalidRequest, "the body must be `application/json`");
    json_of(StatusCode::UNSUPPORTED_MEDIA_TYPE, &json!({ "error": problem }))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn refuse(problem: &Problem) -> Response {
    let status = match problem.code {
        Code::UnknownRun | Code::UnknownTool | Code::UnknownServer | Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyAnswered | Code::ToolChanged => StatusCode::CONFLICT,
        Code::Gone => StatusCode::GONE,
        Code::Denied => StatusCode::FORBIDDEN,
        Code::InvalidRequest | Code::InvalidArguments | Code::InvalidProgram => StatusCode::BAD_REQUEST,
        Code::Busy | Code::StorageBusy => StatusCode::SERVICE_UNAVAILABLE,
        Code::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        Code::TooManyQuestions => StatusCode::TOO_MANY_REQUESTS,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    json_of(status, &json!({ "schemaVersion": 1, "error": problem }))
}
