//! `GET /api/audit`: the log of questions, answers and decisions.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::get;
use pml_model::Principal;
use pml_store::AuditEntry;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{OpenApi, ToSchema};

use super::extract::{ApiQuery, bad_cursor, page_size};
use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::problem::Problem;

/// The entries on one page, unless the client says otherwise, and at most.
const PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 200;

#[derive(OpenApi)]
#[openapi(paths(list))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/audit", get(list))
}

/// Which entries to list.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditQuery {
    /// The size of the page, from 1 to 200; 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// A page of the audit log, newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditPage {
    schema_version: u32,
    items: Vec<AuditItem>,
    /// The cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An entry of the audit log.
#[derive(Serialize, ToSchema)]
struct AuditItem {
    /// Its number, from 1 without gaps over all principals.
    entry: i64,
    at: i64,
    /// The run it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// The kind of event.
    kind: String,
    /// Details.
    #[schema(value_type = Object)]
    body: Box<RawValue>,
    /// The keyed hash of this entry and all before it.
    hash: String,
}

impl From<AuditEntry> for AuditItem {
    fn from(entry: AuditEntry) -> AuditItem {
        AuditItem {
            entry: entry.seq,
            at: entry.at,
            run: entry.run.map(|run| run.to_string()),
            kind: entry.kind,
            body: entry.body,
            hash: entry.hash,
        }
    }
}

/// Lists the audit log, newest first.
#[utoipa::path(get, path = "/api/audit", tag = "approvals", params(AuditQuery), responses((status = 200, body = AuditPage)))]
async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiQuery(query): ApiQuery<AuditQuery>,
) -> Result<Reply<AuditPage>, Problem> {
    let limit = page_size(query.limit, PAGE, LARGEST_PAGE)?;
    let before = query.cursor.map(|cursor| cursor.parse::<i64>().map_err(|_| bad_cursor())).transpose()?;
    let before = before.unwrap_or(i64::MAX);
    let mut entries = app.store.audit_entries_before(&principal, before, limit + 1).await?;
    let more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    let next_cursor = entries.last().filter(|_| more).map(|last| last.seq.to_string());
    let items = entries.into_iter().map(AuditItem::from).collect();
    Ok(Reply(AuditPage { schema_version: SCHEMA_VERSION, items, next_cursor }))
}
