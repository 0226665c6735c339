//! `/api/cache`: how many results are cached, what was invalidated and why, and dropping all of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::get;
use pml_model::Principal;
use pml_store::CacheInvalidation;
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::flow;
use crate::problem::Problem;

/// The invalidations that are listed.
const LISTED: u32 = 200;

#[derive(OpenApi)]
#[openapi(paths(show, drop_all))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/cache", get(show).delete(drop_all))
}

/// The cached results, and what was invalidated.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CacheReply {
    schema_version: u32,
    /// The number of cached results.
    entries: u64,
    /// How often they were used.
    hits: u64,
    /// What was invalidated, latest first, at most 200.
    items: Vec<CacheInvalidationItem>,
}

/// Cached results that were invalidated.
#[derive(Serialize, ToSchema)]
struct CacheInvalidationItem {
    at: i64,
    /// The reason, in words.
    reason: String,
    /// The id of a capability, `all` or `expired`.
    scope: String,
    /// The number of results.
    entries: u64,
}

impl From<CacheInvalidation> for CacheInvalidationItem {
    fn from(dropped: CacheInvalidation) -> CacheInvalidationItem {
        CacheInvalidationItem {
            at: dropped.at,
            reason: dropped.reason,
            scope: dropped.scope,
            entries: dropped.entries,
        }
    }
}

/// Counts the cached results and lists what was invalidated.
#[utoipa::path(get, path = "/api/cache", tag = "learning", responses((status = 200, body = CacheReply)))]
async fn show(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Result<Reply<CacheReply>, Problem> {
    let usage = flow::whole_cache_usage(&app, &principal).await?;
    let items = flow::cache_drop_log(&app, &principal, LISTED).await?;
    Ok(Reply(CacheReply {
        schema_version: SCHEMA_VERSION,
        entries: usage.entries,
        hits: usage.hit_count,
        items: items.into_iter().map(CacheInvalidationItem::from).collect(),
    }))
}

/// How many results were dropped.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DroppedReply {
    schema_version: u32,
    dropped: u64,
}

/// Drops all cached results.
#[utoipa::path(delete, path = "/api/cache", tag = "learning", responses((status = 200, body = DroppedReply)))]
async fn drop_all(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Result<Reply<DroppedReply>, Problem> {
    let dropped = flow::drop_results(&app, &principal).await?;
    Ok(Reply(DroppedReply { schema_version: SCHEMA_VERSION, dropped }))
}
