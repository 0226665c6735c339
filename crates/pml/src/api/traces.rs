//! `/api/traces` and `/api/trace`: the traces that capabilities were learned from, and those that clients send of runs
//! that they made themselves.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::get;
use pml_mcp::server::ClientIdentity;
use pml_model::trace::Trace;
use pml_model::{CapabilityId, Principal, TraceId};
use pml_store::{TraceOrder, TraceQuery};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{OpenApi, ToSchema};

use super::extract::{ApiJson, ApiPath, ApiQuery};
use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::flow;
use crate::problem::{ErrorCode, Problem};

/// The traces on one page, unless the client says otherwise, and at most; other sizes are clamped.
const PAGE: u32 = 20;
const LARGEST_PAGE: u32 = 200;

#[derive(OpenApi)]
#[openapi(paths(all, take, of_capability, show))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/traces", get(all).post(take))
        .route("/api/traces/{capability}", get(of_capability))
        .route("/api/trace/{id}", get(show))
}

/// Which traces to list.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TracesQuery {
    /// `newest` (the default) or `priority`: the most surprising first.
    order: Option<String>,
    /// The size of the page; 20 by default, 200 at most.
    limit: Option<u32>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
}

impl TracesQuery {
    /// The query for the traces of one capability, or of all where `capability` is `None`.
    fn into_trace_filter(self, capability: Option<CapabilityId>) -> Result<TraceQuery, Problem> {
        let order = match self.order.as_deref() {
            None | Some("newest") => TraceOrder::Newest,
            Some("priority") => TraceOrder::Priority,
            Some(_) => {
                return Err(Problem::new(
                    ErrorCode::InvalidRequest,
                    "`order` is neither `newest` nor `priority`",
                ));
            }
        };
        let limit = self.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
        let after = self.cursor.as_deref().map(TraceId::from_text);
        Ok(TraceQuery { capability, order, limit, after })
    }
}

/// A page of traces.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TracePageReply {
    schema_version: u32,
    #[schema(value_type = Vec<Object>)]
    traces: Vec<Trace>,
    /// The cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl From<flow::TracePage> for TracePageReply {
    fn from(page: flow::TracePage) -> TracePageReply {
        let next_cursor = page.next.map(|next| next.to_string());
        TracePageReply { schema_version: SCHEMA_VERSION, traces: page.traces, next_cursor }
    }
}

/// Lists all traces.
#[utoipa::path(get, path = "/api/traces", tag = "learning", params(TracesQuery), responses((status = 200, body = TracePageReply)))]
async fn all(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiQuery(page): ApiQuery<TracesQuery>,
) -> Result<Reply<TracePageReply>, Problem> {
    let found = flow::page_of_traces(&app, &principal, page.into_trace_filter(None)?).await?;
    Ok(Reply(found.into()))
}

/// Traces of runs that a client made itself.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TracesBody {
    /// In the order of their positions, 256 at most.
    #[schema(value_type = Vec<Object>)]
    traces: Vec<Box<RawValue>>,
}

/// What became of them.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TakenTracesReply {
    schema_version: u32,
    /// One for each trace that was taken, in order.
    results: Vec<TakenTraceItem>,
    /// The position of the first trace that is missing: it and those after it have to be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<i64>,
}

/// What became of one of them.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TakenTraceItem {
    /// The position of the trace.
    seq: u64,
    /// `stored`, or `repeated` if it was taken before.
    status: String,
    /// The capability that it counts for.
    #[serde(skip_serializing_if = "Option::is_none")]
    capability_id: Option<String>,
    /// Why it teaches nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

impl From<flow::TraceReceipt> for TakenTraceItem {
    fn from(receipt: flow::TraceReceipt) -> TakenTraceItem {
        TakenTraceItem {
            seq: receipt.seq,
            status: if receipt.repeated { "repeated" } else { "stored" }.to_owned(),
            capability_id: receipt.capability.map(|id| id.to_string()),
            warning: receipt.warning,
        }
    }
}

/// Takes the traces of runs that a client made itself.
#[utoipa::path(post, path = "/api/traces", tag = "learning", request_body = TracesBody, responses((status = 200, body = TakenTracesReply)))]
async fn take(
    State(app): State<Arc<App>>,
    Extension(client): Extension<ClientIdentity>,
    ApiJson(body): ApiJson<TracesBody>,
) -> Result<Reply<TakenTracesReply>, Problem> {
    let taken = flow::take_client_traces(&app, &client.principal, client.key, &body.traces).await?;
    Ok(Reply(TakenTracesReply {
        schema_version: SCHEMA_VERSION,
        results: taken.receipts.into_iter().map(TakenTraceItem::from).collect(),
        expected: taken.expected,
    }))
}

/// Lists the traces of a capability.
#[utoipa::path(get, path = "/api/traces/{capability}", tag = "learning", params(("capability" = String, Path, description = "The name or the id"), TracesQuery), responses((status = 200, body = TracePageReply)))]
async fn of_capability(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(capability): ApiPath<String>,
    ApiQuery(page): ApiQuery<TracesQuery>,
) -> Result<Reply<TracePageReply>, Problem> {
    let id = match CapabilityId::parse(&capability) {
        Ok(id) => id,
        Err(_) => flow::capability(&app, &principal, &capability).await?.procedure.id,
    };
    let filter = page.into_trace_filter(Some(id))?;
    let first_page = filter.after.is_none();
    let found = flow::page_of_traces(&app, &principal, filter).await?;
    if found.traces.is_empty() && first_page {
        // A deleted capability keeps its traces; one without either is not there, or is somebody else's.
        flow::capability(&app, &principal, &capability).await?;
    }
    Ok(Reply(found.into()))
}

/// A trace.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TraceReply {
    schema_version: u32,
    #[schema(value_type = Object)]
    trace: Trace,
}

/// Shows one trace.
#[utoipa::path(get, path = "/api/trace/{id}", tag = "learning", params(("id" = String, Path, description = "The id of the trace")), responses((status = 200, body = TraceReply)))]
async fn show(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(id): ApiPath<String>,
) -> Result<Reply<TraceReply>, Problem> {
    let trace = flow::trace(&app, &principal, &id).await?;
    Ok(Reply(TraceReply { schema_version: SCHEMA_VERSION, trace }))
}
