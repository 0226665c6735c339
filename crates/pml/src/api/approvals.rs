//! `/api/approvals`: lists the questions that wait for a person, and takes their answers.
//!
//! Whether an answer counts depends on who gives it: a person in a session, or a program with the bearer token.
//! `flow` decides that; this module only reports which of the two it was.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, State};
use axum::http::header::ETAG;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use pml_mcp::server::access::Admission;
use pml_model::question::Question;
use pml_model::{Digest, Principal, RunId};
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::extract::{ApiPath, is_json};
use super::reply::{
    SCHEMA_VERSION, is_known, json_response, not_json_response, not_modified_response, problem_response,
};
use crate::app::App;
use crate::clock::now_ms;
use crate::flow::{self, AnswerChannel, AnswerInput, OpenQuestion};
use crate::problem::{ErrorCode, Problem};

/// The largest body of an answer, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

#[derive(OpenApi)]
#[openapi(paths(list, answer))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/approvals", get(list)).route("/api/approvals/{run}/{question}", post(answer))
}

/// An open question, as listed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ApprovalListItem<'a> {
    workflow_id: &'a str,
    question_id: &'a str,
    session: &'a str,
    intent: &'a str,
    asked_at: i64,
    expires_at: Option<i64>,
    #[schema(value_type = Object)]
    question: &'a Question,
}

/// The open questions, oldest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ApprovalsReply<'a> {
    schema_version: u32,
    approvals: Vec<ApprovalListItem<'a>>,
}

/// Lists the open questions.
#[utoipa::path(get, path = "/api/approvals", tag = "approvals", responses((status = 200, body = ApprovalsReply), (status = 304, description = "The list is the one that the client has")))]
async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Response {
    match open_list(&app, &principal, &headers).await {
        Ok(response) => response,
        Err(problem) => problem_response(&problem),
    }
}

async fn open_list(app: &App, principal: &Principal, headers: &HeaderMap) -> Result<Response, Problem> {
    // Every open page asks every few seconds, and questions are sealed and may be large.
    let mark = flow::open_questions_mark(app, principal).await?;
    // Another version may give the same questions another shape.
    let shape = format!("{} {}", env!("PML_VERSION"), mark.digest);
    let tag = format!("\"{}\"", Digest::of(shape.as_bytes()));
    if is_known(headers, &tag) {
        return Ok(not_modified_response(&tag));
    }
    let open = flow::open_questions(app, principal).await?;
    let approvals: Vec<_> = open.iter().map(ApprovalListItem::from).collect();
    let is_whole = approvals.len() == mark.runs;
    let mut response =
        json_response(StatusCode::OK, &ApprovalsReply { schema_version: SCHEMA_VERSION, approvals });
    // A question that could not be opened this time must be asked for again.
    if is_whole && let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

impl<'a> From<&'a OpenQuestion> for ApprovalListItem<'a> {
    fn from(open: &'a OpenQuestion) -> ApprovalListItem<'a> {
        ApprovalListItem {
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

/// Whether the answer was stored.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AnsweredReply {
    schema_version: u32,
    /// `answered`.
    status: &'static str,
}

/// Answers a question.
#[utoipa::path(post, path = "/api/approvals/{run}/{question}", tag = "approvals", params(("run" = String, Path, description = "The id of the run"), ("question" = String, Path, description = "The id of the question")), request_body = AnswerInput, responses((status = 200, body = AnsweredReply)))]
async fn answer(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admission>,
    ApiPath((run, question_id)): ApiPath<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !is_json(&headers) {
        return not_json_response();
    }
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        let text = format!("the body is larger than {MAX_BODY_BYTES} bytes");
        return problem_response(&Problem::new(ErrorCode::TooLarge, text));
    };
    match store_answer(&app, &admitted, &run, &question_id, &body).await {
        Ok(()) => json_response(
            StatusCode::OK,
            &AnsweredReply { schema_version: SCHEMA_VERSION, status: "answered" },
        ),
        Err(problem) => problem_response(&problem),
    }
}

async fn store_answer(
    app: &Arc<App>,
    admitted: &Admission,
    run: &str,
    question_id: &str,
    body: &[u8],
) -> Result<(), Problem> {
    let said: AnswerInput = serde_json::from_slice(body).map_err(|error| {
        Problem::new(ErrorCode::InvalidRequest, format!("the body cannot be read: {error}")).hint(SHAPE)
    })?;
    let unknown = || Problem::new(ErrorCode::UnknownRun, "there is no such run");
    let run = RunId::parse(run).map_err(|_| unknown())?;
    let principal = admitted.principal().ok_or_else(unknown)?;
    let by = match admitted {
        Admission::Session(person) => AnswerChannel::Dashboard { person: person.clone() },
        // Access is refused in front of the routes; an answer of a viewer must not count even if that were lost.
        Admission::Viewer(_) => return Err(Problem::new(ErrorCode::Denied, "a viewer cannot answer")),
        Admission::Token(_) | Admission::Key(..) | Admission::Open => AnswerChannel::Api,
    };
    // A run of another principal looks exactly like one that does not exist (404).
    let asked = flow::open_question(app, principal, &run).await?.filter(|(name, _)| name == question_id);
    let answer = said.into_answer(asked.as_ref().map(|(_, question)| question), now_ms())?;
    flow::answer(app, &run, question_id, answer, &by).await
}

const SHAPE: &str = "send `{\"approved\": true}`, or `false` with a `reason`; to calls in doubt \
                     `{\"calls\": [{\"call\": 1, \"verdict\": \"again\"}]}`";
