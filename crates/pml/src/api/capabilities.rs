//! `/api/capabilities` and `/api/traces`: the learned capabilities and the traces they were learned from.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use pml_model::capability::{CacheChange, CapabilityState};
use pml_model::json::empty_object;
use pml_model::{CapabilityId, Principal, ToolId, TraceId};
use pml_store::{CapabilityQuery, TraceOrder, TraceQuery};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::{MAX_BODY_BYTES, json_response, problem_response};
use crate::app::App;
use crate::flow::{self, NewCapability};
use crate::plan::Pause;
use crate::planning::Work;
use crate::problem::{ErrorCode, Problem};

/// The largest `limit` of a list; larger values are clamped.
const MOST: u32 = 200;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/capabilities", get(list).post(create))
        .route("/api/capabilities/{name}", get(show).delete(delete))
        .route("/api/capabilities/{name}/rename", post(rename))
        .route("/api/capabilities/{name}/merge", post(merge))
        .route("/api/capabilities/{name}/forget-intent", post(forget_intent))
        .route("/api/capabilities/{name}/cache", post(change_cache))
        .route("/api/traces", get(all_traces))
        .route("/api/traces/{capability}", get(traces))
        .route("/api/trace/{id}", get(trace))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CapabilitiesQuery {
    state: Option<CapabilityState>,
    #[serde(default)]
    recent: bool,
    limit: Option<u32>,
    offset: Option<u32>,
}

async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Query(listing): Query<CapabilitiesQuery>,
) -> Response {
    let wanted = CapabilityQuery {
        state: listing.state,
        recent: listing.recent,
        limit: listing.limit.unwrap_or(50).min(MOST),
        offset: listing.offset.unwrap_or(0),
    };
    result_response("capabilities", flow::capabilities(&app, &principal, wanted).await)
}

async fn show(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
) -> Response {
    result_response("capability", flow::capability_record(&app, &principal, &name).await)
}

/// The body that creates a capability: exactly one of `code`, `dagStructure` and `toolId`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateCapabilityBody {
    intent: String,
    name: Option<String>,
    code: Option<String>,
    dag_structure: Option<Box<RawValue>>,
    tool_id: Option<String>,
    default_args: Option<Box<RawValue>>,
}

impl CreateCapabilityBody {
    fn work(&mut self) -> Result<Work, Problem> {
        match (self.code.take(), self.dag_structure.take(), self.tool_id.take()) {
            (Some(code), None, None) => Ok(Work::Code(code)),
            (None, Some(dag), None) => Ok(Work::Dag { document: dag.get().to_owned(), pause: Pause::None }),
            (None, None, Some(tool)) => Ok(Work::Tool {
                tool: ToolId::parse(&tool)
                    .map_err(|error| Problem::new(ErrorCode::UnknownTool, error.to_string()))?,
                defaults: self.default_args.take().unwrap_or_else(empty_object),
            }),
            _ => Err(Problem::new(
                ErrorCode::InvalidRequest,
                "give one of `code`, `dagStructure` and `toolId`",
            )),
        }
    }
}

async fn create(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    body: Body,
) -> Response {
    let made = async {
        let mut new: CreateCapabilityBody = read(body).await?;
        let work = new.work()?;
        let new = NewCapability { work, intent: new.intent, name: new.name };
        let id = flow::make_capability(&app, &principal, new).await?;
        flow::capability(&app, &principal, id.as_str()).await
    };
    result_response("capability", made.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RenameCapabilityBody {
    name: String,
}

async fn rename(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    body: Body,
) -> Response {
    let renamed = async {
        let to: RenameCapabilityBody = read(body).await?;
        let id = flow::rename_capability(&app, &principal, &name, &to.name).await?;
        flow::capability(&app, &principal, id.as_str()).await
    };
    result_response("capability", renamed.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MergeCapabilitiesBody {
    from: String,
}

async fn merge(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    body: Body,
) -> Response {
    let merged = async {
        let other: MergeCapabilitiesBody = read(body).await?;
        let id = flow::merge_capabilities(&app, &principal, &name, &other.from).await?;
        flow::capability(&app, &principal, id.as_str()).await
    };
    result_response("capability", merged.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForgetIntentBody {
    intent: String,
}

async fn forget_intent(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    body: Body,
) -> Response {
    let forgotten = async {
        let served: ForgetIntentBody = read(body).await?;
        let id = flow::forget_intent(&app, &principal, &name, &served.intent).await?;
        flow::capability(&app, &principal, id.as_str()).await
    };
    result_response("capability", forgotten.await)
}

async fn change_cache(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    body: Body,
) -> Response {
    let kept = async {
        let change: CacheChange = read(body).await?;
        let kept = flow::configure_result_cache(&app, &principal, &name, &change).await?;
        flow::capability_record(&app, &principal, kept.procedure.id.as_str()).await
    };
    result_response("capability", kept.await)
}

async fn delete(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
) -> Response {
    result_response("deleted", flow::delete_capability(&app, &principal, &name).await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TracesQuery {
    order: Option<String>,
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
        let limit = self.limit.unwrap_or(20).clamp(1, MOST);
        let after = self.cursor.as_deref().map(TraceId::from_text);
        Ok(TraceQuery { capability, order, limit, after })
    }
}

async fn all_traces(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Query(page): Query<TracesQuery>,
) -> Response {
    let found = async { flow::page_of_traces(&app, &principal, page.into_trace_filter(None)?).await };
    page_of_traces(found.await)
}

async fn traces(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(capability): Path<String>,
    Query(page): Query<TracesQuery>,
) -> Response {
    let found = async {
        let id = match CapabilityId::parse(&capability) {
            Ok(id) => id,
            Err(_) => flow::capability(&app, &principal, &capability).await?.procedure.id,
        };
        flow::page_of_traces(&app, &principal, page.into_trace_filter(Some(id))?).await
    };
    page_of_traces(found.await)
}

fn page_of_traces(found: Result<flow::TracePage, Problem>) -> Response {
    match found {
        Ok(page) => {
            let mut body = json!({ "schemaVersion": 1, "traces": page.traces });
            if let Some(next) = page.next {
                body["nextCursor"] = json!(next);
            }
            json_response(StatusCode::OK, &body)
        }
        Err(problem) => problem_response(&problem),
    }
}

async fn trace(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Response {
    result_response("trace", flow::trace(&app, &principal, &id).await)
}

async fn read<T: for<'de> Deserialize<'de>>(body: Body) -> Result<T, Problem> {
    let too_large =
        |_| Problem::new(ErrorCode::TooLarge, format!("the body is larger than {MAX_BODY_BYTES} bytes"));
    let body = to_bytes(body, MAX_BODY_BYTES).await.map_err(too_large)?;
    serde_json::from_slice(&body)
        .map_err(|error| Problem::new(ErrorCode::InvalidRequest, format!("the body cannot be read: {error}")))
}

fn result_response<T: Serialize>(what: &str, found: Result<T, Problem>) -> Response {
    match found {
        Ok(found) => json_response(StatusCode::OK, &json!({ "schemaVersion": 1, what: found })),
        Err(problem) => problem_response(&problem),
    }
}
