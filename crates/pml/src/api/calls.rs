//! `/api/runs/{id}/calls`: the calls of a run page by page, and the contents of one call.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::get;
use pml_model::Principal;
use pml_model::json::raw;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::{OpenApi, ToSchema};

use super::extract::{ApiPath, ApiQuery, bad_cursor, page_size};
use super::reply::{Reply, SCHEMA_VERSION};
use super::runs::{Preview, parse_run};
use crate::app::App;
use crate::execute::{PastCall, PastCallStatus};
use crate::flow;
use crate::problem::{ErrorCode, Problem};

/// The calls on one page, unless the client says otherwise, and at most.
const PAGE: u32 = 200;
const LARGEST_PAGE: u32 = 2_000;
/// 4 MB: the bytes of the arguments and of the result of one call that are shown.
const MAX_CONTENT_BYTES: usize = 4 * 1024 * 1024;

#[derive(OpenApi)]
#[openapi(paths(list, show))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/runs/{id}/calls", get(list)).route("/api/runs/{id}/calls/{call}", get(show))
}

/// Which calls to list.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CallsQuery {
    /// The size of the page, from 1 to 2000; 200 by default.
    #[param(minimum = 1, maximum = 2000)]
    limit: Option<u32>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// A page of calls, in the order of issue.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CallPage {
    schema_version: u32,
    items: Vec<CallItem>,
    /// The cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A call of a run.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CallItem {
    /// The number of the call, in the order of issue.
    call: u32,
    /// The node that makes the call: `n2`, or `n3/n1` for node `n1` of the capability that `n3` calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_id: Option<String>,
    /// The call of a capability that this call is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<CallParent>,
    tool: String,
    started_at: i64,
    /// Absent while it has no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<i64>,
    status: CallStatusName,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallError>,
    /// How often it was sent again.
    retries: u32,
    /// Whether it was made before the program asked for it.
    speculated: bool,
    /// Whether its result is that of an earlier dry run.
    cached: bool,
    /// Real runs have no mocked calls: always false.
    mocked: bool,
    /// How much sooner its result was there because it was made ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_ms: Option<u64>,
    /// Why it was not made ahead, if something kept it from being: `stands behind n2, which may change it`.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_ahead: Option<String>,
    /// The layer of the DAG, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    layer: Option<u32>,
    argument_bytes: usize,
    result_bytes: usize,
}

/// The call of a capability that a call is part of.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CallParent {
    /// The number of that call of the capability: calls with the same one belong together.
    frame: u32,
    /// The node that calls the capability.
    node_id: String,
    /// The name of the capability.
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<String>,
}

/// The status of a call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CallStatusName {
    Ok,
    Error,
    /// It waits for approval, or the run waits.
    Waiting,
    Running,
    /// It was sent, and whether the tool acted is not known.
    InDoubt,
    /// The run ended first.
    Cancelled,
}

/// The error of a call.
#[derive(Serialize, ToSchema)]
struct CallError {
    code: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl From<PastCall> for CallItem {
    fn from(past: PastCall) -> CallItem {
        CallItem {
            call: past.call,
            node_id: past.node,
            parent: past.parent.map(|parent| CallParent {
                frame: parent.frame,
                node_id: parent.node,
                capability: parent.name,
            }),
            tool: past.tool,
            started_at: past.issued_at,
            duration_ms: past.ended_at.map(|ended| (ended - past.issued_at).max(0)),
            status: match past.status {
                PastCallStatus::Ok => CallStatusName::Ok,
                PastCallStatus::Error => CallStatusName::Error,
                PastCallStatus::Waiting => CallStatusName::Waiting,
                PastCallStatus::Running => CallStatusName::Running,
                PastCallStatus::InDoubt => CallStatusName::InDoubt,
                PastCallStatus::Cancelled => CallStatusName::Cancelled,
            },
            error: past.error.map(|error| CallError {
                code: error.code.to_string(),
                message: error.message,
                hint: error.hint,
            }),
            retries: past.retries,
            speculated: past.saved_ms.is_some(),
            cached: past.age_ms.is_some(),
            mocked: false,
            saved_ms: past.saved_ms,
            not_ahead: past.not_ahead.map(|reason| reason.to_string()),
            layer: past.layer,
            argument_bytes: past.argument_bytes,
            result_bytes: past.result_bytes,
        }
    }
}

/// Lists the calls of a run, in the order of issue.
#[utoipa::path(get, path = "/api/runs/{id}/calls", tag = "runs", params(("id" = String, Path, description = "The id of the run"), CallsQuery), responses((status = 200, body = CallPage)))]
async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(id): ApiPath<String>,
    ApiQuery(query): ApiQuery<CallsQuery>,
) -> Result<Reply<CallPage>, Problem> {
    let id = parse_run(&id)?;
    let limit = page_size(query.limit, PAGE, LARGEST_PAGE)?;
    // The cursor is the number of the last call, so that a page never reads what was before it.
    let after = query.cursor.map(|cursor| cursor.parse::<u32>().map_err(|_| bad_cursor()));
    let (calls, more) =
        flow::run_calls(&app, &principal, &id, after.transpose()?.unwrap_or(0), limit).await?;
    let next_cursor = calls.last().filter(|_| more).map(|last| last.call.to_string());
    let items = calls.into_iter().map(CallItem::from).collect();
    Ok(Reply(CallPage { schema_version: SCHEMA_VERSION, items, next_cursor }))
}

/// The contents of a call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CallReply {
    schema_version: u32,
    #[serde(flatten)]
    item: CallItem,
    /// The arguments; the beginning of their JSON text where that is truncated.
    #[schema(value_type = Value)]
    arguments: Box<RawValue>,
    /// The result; the beginning of its JSON text where that is truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    result: Option<Box<RawValue>>,
    /// Which of them are truncated.
    truncated: TruncatedContents,
}

/// Which contents of a call are truncated.
#[derive(Serialize, ToSchema)]
struct TruncatedContents {
    arguments: bool,
    result: bool,
}

/// Shows the arguments and the result of one call.
#[utoipa::path(get, path = "/api/runs/{id}/calls/{call}", tag = "runs", params(("id" = String, Path, description = "The id of the run"), ("call" = u32, Path, description = "The number of the call, from 1")), responses((status = 200, body = CallReply)))]
async fn show(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath((id, call)): ApiPath<(String, String)>,
) -> Result<Reply<CallReply>, Problem> {
    let id = parse_run(&id)?;
    let call = call.parse().map_err(|_| Problem::new(ErrorCode::NotFound, "there is no such call"))?;
    let contents = flow::run_call(&app, &principal, &id, call).await?;
    let arguments = RawValue::from_string(contents.arguments).unwrap_or_else(|error| {
        tracing::warn!(%id, call, %error, "the arguments of a call are no JSON");
        raw(&Value::Null)
    });
    let arguments = Preview::new(&arguments, MAX_CONTENT_BYTES);
    let result = contents.result.map(|result| Preview::new(&result, MAX_CONTENT_BYTES));
    let truncated = TruncatedContents {
        arguments: arguments.truncated,
        result: result.as_ref().is_some_and(|result| result.truncated),
    };
    Ok(Reply(CallReply {
        schema_version: SCHEMA_VERSION,
        item: CallItem::from(contents.call),
        arguments: arguments.preview,
        result: result.map(|result| result.preview),
        truncated,
    }))
}
