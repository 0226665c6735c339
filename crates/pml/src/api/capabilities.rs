//! `/api/capabilities`: the learned capabilities.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::{get, post};
use pml_mcp::server::access::Admission;
use pml_model::capability::{
    CacheChange, Capability, CapabilityIntent, CapabilityOrigin, CapabilityState, ToolUse,
};
use pml_model::json::empty_object;
use pml_model::{Principal, Role, ToolId, Visibility};
use pml_store::CapabilityQuery;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::{OpenApi, ToSchema};

use super::extract::{ApiJson, ApiPath, ApiQuery, bad_cursor};
use super::reply::{Reply, SCHEMA_VERSION};
use super::roles;
use crate::app::App;
use crate::flow::{self, NewCapability, TakenName};
use crate::plan::Pause;
use crate::planning::Work;
use crate::problem::{ErrorCode, Problem};

/// The capabilities on one page, unless the client says otherwise, and at most; other sizes are clamped.
const PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 200;

#[derive(OpenApi)]
#[openapi(paths(list, create, show, delete, rename, merge, forget_intent, change_cache, publish))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/capabilities", get(list).post(create))
        .route("/api/capabilities/{name}", get(show).delete(delete))
        .route("/api/capabilities/{name}/rename", post(rename))
        .route("/api/capabilities/{name}/merge", post(merge))
        .route("/api/capabilities/{name}/forget-intent", post(forget_intent))
        .route("/api/capabilities/{name}/cache", post(change_cache))
        .route("/api/capabilities/{name}/publish", post(publish))
}

/// Which capabilities to list.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CapabilitiesQuery {
    /// Only those in this state: `planned`, `active` or `degraded`.
    #[param(value_type = Option<String>)]
    state: Option<CapabilityState>,
    /// The latest used first.
    #[serde(default)]
    recent: bool,
    /// The size of the page; 50 by default, 200 at most.
    limit: Option<u32>,
    /// The number of capabilities to skip.
    offset: Option<u32>,
    /// The `nextCursor` of the previous page, in place of `offset`.
    cursor: Option<String>,
    /// Those that others published, by name, in place of one's own.
    #[serde(default)]
    published: bool,
}

/// A page of capabilities.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CapabilityPage {
    schema_version: u32,
    capabilities: Vec<CapabilityItem>,
    /// The cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A capability, as listed: without its source, its structure and what was learned of its paths.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CapabilityItem {
    id: String,
    /// Unique among those of its owner.
    name: String,
    description: String,
    /// `planned`, `active` or `degraded`.
    state: &'static str,
    /// Why it is degraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    degraded_because: Option<String>,
    /// `emergent`, `manual`, `explored` or `imported`.
    #[schema(value_type = String)]
    origin: CapabilityOrigin,
    tools_used: Vec<CapabilityTool>,
    /// The intents of its runs, most recent first.
    intents: Vec<IntentItem>,
    /// Uses, cached results included.
    usage_count: u64,
    success_count: u64,
    failure_count: u64,
    /// The mean of its successful runs; beyond ten runs later ones count more.
    avg_duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used: Option<i64>,
    created_at: i64,
    /// Whether a run of it that a person approved has succeeded.
    approved: bool,
    /// Whose it is.
    owner: String,
    /// Who sees it: `private`, `project`, `org` or `public`.
    #[schema(value_type = String)]
    visibility: Visibility,
}

/// A tool that a capability calls.
#[derive(Serialize, ToSchema)]
struct CapabilityTool {
    /// `server:tool`.
    id: String,
}

/// An intent that a capability was run for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct IntentItem {
    text: String,
    /// Successful runs for it.
    count: u64,
    first_at: i64,
    last_at: i64,
}

impl From<Capability> for CapabilityItem {
    fn from(capability: Capability) -> CapabilityItem {
        let Capability { procedure, statistics, .. } = capability;
        let tool = |used: ToolUse| CapabilityTool { id: used.id };
        let intent = |intent: CapabilityIntent| IntentItem {
            text: intent.text,
            count: intent.count,
            first_at: intent.first_at,
            last_at: intent.last_at,
        };
        CapabilityItem {
            id: procedure.id.to_string(),
            name: capability.name,
            description: procedure.description,
            state: capability.state.as_str(),
            degraded_because: capability.degraded_because,
            origin: procedure.origin,
            tools_used: procedure.tools_used.into_iter().map(tool).collect(),
            intents: capability.intents.into_iter().map(intent).collect(),
            usage_count: statistics.usage_count,
            success_count: statistics.success_count,
            failure_count: statistics.failure_count,
            avg_duration_ms: statistics.avg_duration_ms,
            last_used: statistics.last_used,
            created_at: capability.created_at,
            approved: capability.approved,
            owner: procedure.owner.0,
            visibility: capability.visibility,
        }
    }
}

/// Lists capabilities.
#[utoipa::path(get, path = "/api/capabilities", tag = "capabilities", params(CapabilitiesQuery), responses((status = 200, body = CapabilityPage)))]
async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiQuery(listing): ApiQuery<CapabilitiesQuery>,
) -> Result<Reply<CapabilityPage>, Problem> {
    let limit = listing.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let offset = match (listing.offset, listing.cursor) {
        (offset, None) => offset.unwrap_or(0),
        (None, Some(cursor)) => cursor.parse().map_err(|_| bad_cursor())?,
        (Some(_), Some(_)) => {
            return Err(Problem::new(ErrorCode::InvalidRequest, "give either `offset` or `cursor`"));
        }
    };
    let wanted = CapabilityQuery { state: listing.state, recent: listing.recent, limit: limit + 1, offset };
    let mut found = match listing.published {
        false => flow::capabilities(&app, &principal, wanted).await?,
        true => {
            let mut published = flow::published_capabilities(&app, &principal).await?;
            published.retain(|one| listing.state.is_none_or(|state| one.state == state));
            published.into_iter().skip(offset as usize).take(limit as usize + 1).collect()
        }
    };
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = more.then(|| offset.saturating_add(limit).to_string());
    let capabilities = found.into_iter().map(CapabilityItem::from).collect();
    Ok(Reply(CapabilityPage { schema_version: SCHEMA_VERSION, capabilities, next_cursor }))
}

/// A capability.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CapabilityReply {
    schema_version: u32,
    /// The procedure, its parameters, and what was learned of it.
    #[schema(value_type = Object)]
    capability: Value,
}

impl CapabilityReply {
    fn new(capability: impl Serialize) -> Reply<CapabilityReply> {
        Reply(CapabilityReply { schema_version: SCHEMA_VERSION, capability: json!(capability) })
    }
}

/// Shows one capability, by name or id.
#[utoipa::path(get, path = "/api/capabilities/{name}", tag = "capabilities", params(("name" = String, Path, description = "The name or the id")), responses((status = 200, body = CapabilityReply)))]
async fn show(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
) -> Result<Reply<CapabilityReply>, Problem> {
    Ok(CapabilityReply::new(flow::visible_capability(&app, &principal, &name).await?))
}

/// A capability to create: exactly one of `code`, `dagStructure` and `toolId`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateCapabilityBody {
    /// What it is for.
    intent: String,
    name: Option<String>,
    /// Whether a capability that has the name becomes an earlier version.
    #[serde(default)]
    new_version: bool,
    /// A program in TypeScript.
    code: Option<String>,
    /// A DAG document.
    #[schema(value_type = Option<Object>)]
    dag_structure: Option<Box<RawValue>>,
    /// A tool, as `server:tool`.
    tool_id: Option<String>,
    /// Arguments of the tool that its callers may leave out.
    #[schema(value_type = Option<Object>)]
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

/// Creates a capability without running it.
#[utoipa::path(post, path = "/api/capabilities", tag = "capabilities", request_body = CreateCapabilityBody, responses((status = 200, body = CapabilityReply)))]
async fn create(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiJson(mut new): ApiJson<CreateCapabilityBody>,
) -> Result<Reply<CapabilityReply>, Problem> {
    let work = new.work()?;
    let taken = TakenName::wished(new.new_version);
    let new = NewCapability { work, intent: new.intent, name: new.name, taken };
    let id = flow::make_capability(&app, &principal, new).await?;
    Ok(CapabilityReply::new(flow::capability(&app, &principal, id.as_str()).await?))
}

/// The new name of a capability.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RenameCapabilityBody {
    name: String,
    /// Whether a capability that has the name becomes an earlier version.
    #[serde(default)]
    new_version: bool,
}

/// Renames a capability.
#[utoipa::path(post, path = "/api/capabilities/{name}/rename", tag = "capabilities", params(("name" = String, Path, description = "The name or the id")), request_body = RenameCapabilityBody, responses((status = 200, body = CapabilityReply)))]
async fn rename(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
    ApiJson(to): ApiJson<RenameCapabilityBody>,
) -> Result<Reply<CapabilityReply>, Problem> {
    let taken = TakenName::wished(to.new_version);
    let id = flow::rename_capability(&app, &principal, &name, &to.name, taken).await?;
    Ok(CapabilityReply::new(flow::capability(&app, &principal, id.as_str()).await?))
}

/// The capability that is merged into another one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MergeCapabilitiesBody {
    /// Its name or id.
    from: String,
}

/// Merges another capability into this one.
#[utoipa::path(post, path = "/api/capabilities/{name}/merge", tag = "capabilities", params(("name" = String, Path, description = "The name or the id")), request_body = MergeCapabilitiesBody, responses((status = 200, body = CapabilityReply)))]
async fn merge(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
    ApiJson(other): ApiJson<MergeCapabilitiesBody>,
) -> Result<Reply<CapabilityReply>, Problem> {
    let id = flow::merge_capabilities(&app, &principal, &name, &other.from).await?;
    Ok(CapabilityReply::new(flow::capability(&app, &principal, id.as_str()).await?))
}

/// An intent that was learned wrongly.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ForgetIntentBody {
    intent: String,
}

/// Removes an intent that was learned wrongly.
#[utoipa::path(post, path = "/api/capabilities/{name}/forget-intent", tag = "capabilities", params(("name" = String, Path, description = "The name or the id")), request_body = ForgetIntentBody, responses((status = 200, body = CapabilityReply)))]
async fn forget_intent(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
    ApiJson(served): ApiJson<ForgetIntentBody>,
) -> Result<Reply<CapabilityReply>, Problem> {
    let id = flow::forget_intent(&app, &principal, &name, &served.intent).await?;
    Ok(CapabilityReply::new(flow::capability(&app, &principal, id.as_str()).await?))
}

/// Changes how the results of a capability are cached.
#[utoipa::path(post, path = "/api/capabilities/{name}/cache", tag = "capabilities", params(("name" = String, Path, description = "The name or the id")), request_body = Object, responses((status = 200, body = CapabilityReply)))]
async fn change_cache(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
    ApiJson(change): ApiJson<CacheChange>,
) -> Result<Reply<CapabilityReply>, Problem> {
    let kept = flow::configure_result_cache(&app, &principal, &name, &change).await?;
    let record = flow::capability_record(&app, &principal, kept.procedure.id.as_str()).await?;
    Ok(CapabilityReply::new(record))
}

/// Who is to see a capability.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PublishBody {
    /// `private`, `project`, `org` or `public`.
    #[schema(value_type = String)]
    visibility: Visibility,
    /// Its owner, if an admin publishes another's.
    owner: Option<String>,
}

/// Publishes a capability to a project, an organisation or everybody, or takes it back.
#[utoipa::path(post, path = "/api/capabilities/{name}/publish", tag = "capabilities", params(("name" = String, Path, description = "The name or the id")), request_body = PublishBody, responses((status = 200, body = CapabilityReply)))]
async fn publish(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    admission: Option<Extension<Admission>>,
    ApiPath(name): ApiPath<String>,
    ApiJson(to): ApiJson<PublishBody>,
) -> Result<Reply<CapabilityReply>, Problem> {
    let owner = to.owner.map_or_else(|| principal.clone(), Principal);
    let is_admin = admission.is_some_and(|Extension(by)| roles::role_of(&app, &by) == Some(Role::Admin));
    if owner != principal && !is_admin {
        return Err(Problem::new(ErrorCode::Denied, "only an admin publishes what belongs to others")
            .hint("leave `owner` out to publish your own"));
    }
    let found = flow::publish_capability(&app, &owner, &name, to.visibility, &principal).await?;
    let record = flow::capability_record(&app, &owner, found.procedure.id.as_str()).await?;
    Ok(CapabilityReply::new(record))
}

/// A capability that was deleted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeletedCapabilityReply {
    schema_version: u32,
    /// Its id.
    deleted: String,
}

/// Deletes a capability; its traces stay.
#[utoipa::path(delete, path = "/api/capabilities/{name}", tag = "capabilities", params(("name" = String, Path, description = "The name or the id")), responses((status = 200, body = DeletedCapabilityReply)))]
async fn delete(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
) -> Result<Reply<DeletedCapabilityReply>, Problem> {
    let deleted = flow::delete_capability(&app, &principal, &name).await?.to_string();
    Ok(Reply(DeletedCapabilityReply { schema_version: SCHEMA_VERSION, deleted }))
}
