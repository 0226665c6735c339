//! The HTTP API beside MCP, for the operator's own programs and pages.
//!
//! `POST /api/analyse` analyses a program (`{"code": "…"}`) or a DAG document (`{"dagStructure": {…}}`) without
//! running it. `/api/approvals` lists and answers the questions that wait for a person, `/api/quarantine` lists and
//! accepts the quarantined tools. `/api/capabilities` and `/api/traces` serve what was learned, `/api/graph` the
//! graph of tools and capabilities, `/api/mocks` the recorded results. Authentication happens in front of every route, not here.

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
use pml_analysis::render::ComplaintReport;
use pml_model::Digest;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::app::App;
use crate::flow::{self, AnalysisOutcome};
use crate::problem::{ErrorCode, Problem};

/// The largest body of a request to analyse or create something, in bytes: more than the longest program or document,
/// even if every character is escaped.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// All routes of the HTTP API.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/api/analyse", post(analyse))
        .merge(approvals::router())
        .merge(capabilities::router())
        .merge(graph::router())
        .merge(quarantine::router())
        .with_state(app)
}

/// The body of `POST /api/analyse`: exactly one of the two fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AnalyseRequest<'a> {
    code: Option<String>,
    #[serde(borrow)]
    dag_structure: Option<&'a RawValue>,
}

/// The response of `POST /api/analyse`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnalyseResponse<A> {
    schema_version: u32,
    #[serde(flatten)]
    analysis: A,
}

async fn analyse(State(app): State<Arc<App>>, body: Body) -> Response {
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return problem_response(&Problem::new(
            ErrorCode::TooLarge,
            format!("the body is larger than {MAX_BODY_BYTES} bytes"),
        ));
    };
    let request: AnalyseRequest<'_> = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return problem_response(&bad(format!("the body cannot be read: {error}"))),
    };
    let analysed = match (request.code, request.dag_structure) {
        (Some(code), None) => flow::analyse(&app, code).await,
        (None, Some(dag)) => flow::analyse_dag(&app, dag.get().to_owned()).await,
        _ => return problem_response(&bad("give either `code` or `dagStructure`".to_owned())),
    };
    match analysed {
        AnalysisOutcome::Program(analysis) => {
            json_response(StatusCode::OK, &AnalyseResponse { schema_version: 1, analysis })
        }
        AnalysisOutcome::Dag(analysis) => {
            json_response(StatusCode::OK, &AnalyseResponse { schema_version: 1, analysis })
        }
        AnalysisOutcome::NotUnderstood(report) => not_understood(&report),
    }
}

fn bad(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, message)
        .hint("send `{\"code\": \"…\"}` or `{\"dagStructure\": {…}}`")
}

fn not_understood(report: &ComplaintReport) -> Response {
    json_response(StatusCode::UNPROCESSABLE_ENTITY, &json!({ "schemaVersion": 1, "error": report }))
}

fn json_response(status: StatusCode, body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).expect("our own shapes have string keys only");
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

/// A list with an `ETag`. Pages poll it, so a client that has the same list already gets 304 without a body.
fn list_response(headers: &HeaderMap, body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).expect("our own shapes have string keys only");
    let tag = format!("\"{}\"", Digest::of(&body));
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    ([(CONTENT_TYPE, "application/json".to_owned()), (ETAG, tag)], body).into_response()
}

fn not_json_response() -> Response {
    let problem = Problem::new(ErrorCode::InvalidRequest, "the body must be `application/json`");
    json_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, &json!({ "error": problem }))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn problem_response(problem: &Problem) -> Response {
    json_response(problem.http_status(), &json!({ "schemaVersion": 1, "error": problem }))
}
