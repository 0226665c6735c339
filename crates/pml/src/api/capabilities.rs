//! `/api/capabilities` and `/api/traces`: what was learned, and from what.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use pml_model::capability::{CacheChange, State as CapabilityState};
use pml_model::json::empty_object;
use pml_model::{CapabilityId, Principal, ToolId, TraceId};
use pml_store::{Capabilities, Order, Traces};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::{MAX_BODY_BYTES, json_of, refuse};
use crate::app::App;
use crate::flow::{self, NewCapability};
use crate::plan::Pause;
use crate::planning::Asked;
use crate::problem::{Code, Problem};

/// The most of anything on one page.
const MOST: u32 = 200;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/capabilities", get(list).post(create))
        .route("/api/capabilities/{name}", get(show).delete(delete))
        .route("/api/capabilities/{name}/rename", post(rename))
        .route("/api/capabilities/{name}/merge", post(merge))
        .route("/api/capabilities/{name}/forget-intent", post(forget_intent))
        .route("/api/capabilities/{name}/cache", post(keep))
        .route("/api/traces", get(all_traces))
        .route("/api/traces/{capability}", get(traces))
        .route("/api/trace/{id}", get(trace))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listing {
    state: Option<CapabilityState>,
    #[serde(default)]
    recent: bool,
    limit: Option<u32>,
    offset: Option<u32>,
}

async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Query(listing): Query<Listing>,
) -> Response {
    let wanted = Capabilities {
        state: listing.state,
        recent: listing.recent,
        limit: listing.limit.unwrap_or(50).min(MOST),
        offset: listing.offset.unwrap_or(0),
    };
    answer("capabilities", flow::capabilities(&app, &principal, wanted).await)
}

async fn show(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
) -> Response {
    answer("capability", flow::record(&app, &principal, &name).await)
}

/// A capability to be made: one of the three.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct New {
    intent: String,
    name: Option<String>,
    code: Option<String>,
    dag_structure: Option<Box<RawValue>>,
    tool_id: Option<String>,
    default_args: Option<Box<RawValue>>,
}

impl New {
    fn work(&mut self) -> Result<Asked, Problem> {
        match (self.code.take(), self.dag_structure.take(), self.tool_id.take()) {
            (Some(code), None, None) => Ok(Asked::Code(code)),
            (None, Some(dag), None) => Ok(Asked::Dag { document: dag.get().to_owned(), pause: Pause::None }),
            (None, None, Some(tool)) => Ok(Asked::Tool {
                tool: ToolId::parse(&tool)
                    .map_err(|error| Problem::new(Code::UnknownTool, error.to_string()))?,
                defaults: self.default_args.take().unwrap_or_else(empty_object),
            }),
            _ => Err(Problem::new(Code::InvalidRequest, "give one of `code`, `dagStructure` and `toolId`")),
        }
    }
}

async fn create(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    body: Body,
) -> Response {
    let made = async {
        let mut new: New = read(body).await?;
        let work = new.work()?;
        let new = NewCapability { work, intent: new.intent, name: new.name };
        let id = flow::make_capability(&app, &principal, new).await?;
        flow::capability(&app, &principal, id.as_str()).await
    };
    answer("capability", made.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct To {
    name: String,
}

async fn rename(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    body: Body,
) -> Response {
    let renamed = async {
        let to: To = read(body).await?;
        let id = flow::rename_capability(&app, &principal, &name, &to.name).await?;
        flow::capability(&app, &principal, id.as_str()).await
    };
    answer("capability", renamed.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct From {
    from: String,
}

async fn merge(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    body: Body,
) -> Response {
    let merged = async {
        let other: From = read(body).await?;
        let id = flow::merge_capabilities(&app, &principal, &name, &other.from).await?;
        flow::capability(&app, &principal, id.as_str()).await
    };
    answer("capability", merged.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Served {
    intent: String,
}

async fn forget_intent(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    body: Body,
) -> Response {
    let forgotten = async {
        let served: Served = read(body).await?;
        let id = flow::forget_intent(&app, &principal, &name, &served.intent).await?;
        flow::capability(&app, &principal, id.as_str()).await
    };
    answer("capability", forgotten.await)
}

async fn keep(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    body: Body,
) -> Response {
    let kept = async {
        let change: CacheChange = read(body).await?;
        let kept = flow::keep_results(&app, &principal, &name, &change).await?;
        flow::record(&app, &principal, kept.procedure.id.as_str()).await
    };
    answer("capability", kept.await)
}

async fn delete(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
) -> Response {
    answer("deleted", flow::delete_capability(&app, &principal, &name).await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    order: Option<String>,
    limit: Option<u32>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

impl Page {
    /// The traces that are asked for: of one capability, or all.
    fn of(self, capability: Option<CapabilityId>) -> Result<Traces, Problem> {
        let order = match self.order.as_deref() {
            None | Some("newest") => Order::Newest,
            Some("priority") => Order::Priority,
            Some(_) => {
                return Err(Problem::new(Code::InvalidRequest, "`order` is neither `newest` nor `priority`"));
            }
        };
        let limit = self.limit.unwrap_or(20).clamp(1, MOST);
        let after = self.cursor.as_deref().map(TraceId::written);
        Ok(Traces { capability, order, limit, after })
    }
}

async fn all_traces(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Query(page): Query<Page>,
) -> Response {
    let found = async { flow::page_of_traces(&app, &principal, page.of(None)?).await };
    page_of_traces(found.await)
}

async fn traces(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(capability): Path<String>,
    Query(page): Query<Page>,
) -> Response {
    let found = async {
        let id = match CapabilityId::parse(&capability) {
            Ok(id) => id,
            Err(_) => flow::capability(&app, &principal, &capability).await?.procedure.id,
        };
        flow::page_of_traces(&app, &principal, page.of(Some(id))?).await
    };
    page_of_traces(found.await)
}

fn page_of_traces(found: Result<flow::PageOfTraces, Problem>) -> Response {
    match found {
        Ok(page) => {
            let mut body = json!({ "schemaVersion": 1, "traces": page.traces });
            if let Some(next) = page.next {
                body["nextCursor"] = json!(next);
            }
            json_of(StatusCode::OK, &body)
        }
        Err(problem) => refuse(&problem),
    }
}

async fn trace(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Response {
    answer("trace", flow::trace(&app, &principal, &id).await)
}

async fn read<T: for<'de> Deserialize<'de>>(body: Body) -> Result<T, Problem> {
    let too_large =
        |_| Problem::new(Code::TooLarge, format!("the body is larger than {MAX_BODY_BYTES} bytes"));
    let body = to_bytes(body, MAX_BODY_BYTES).await.map_err(too_large)?;
    serde_json::from_slice(&body)
        .map_err(|error| Problem::new(Code::InvalidRequest, format!("the body cannot be read: {error}")))
}

fn answer<T: Serialize>(what: &str, found: Result<T, Problem>) -> Response {
    match found {
        Ok(found) => json_of(StatusCode::OK, &json!({ "schemaVersion": 1, what: found })),
        Err(problem) => refuse(&problem),
    }
}
