//! `POST /api/discover`: what is found for an intent, and what `pml_execute` would do with it.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::post;
use pml_mcp::server::ClientIdentity;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{OpenApi, ToSchema};

use super::extract::ApiJson;
use super::reply::{Reply, SCHEMA_VERSION};
use super::runs::CapabilityName;
use crate::app::App;
use crate::discover::{DiscoverRequest, DiscoverResult, MAX_LIMIT, RelatedSuggestion, default_limit};
use crate::flow;
use crate::problem::{ErrorCode, Problem};
use crate::suggest::SuggestedDag;

#[derive(OpenApi)]
#[openapi(paths(discover))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/discover", post(discover))
}

/// What to look for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DiscoverBody {
    /// The intent, in your words.
    #[schema(min_length = 1)]
    intent: String,
    /// The number of results, from 1 to 100; 10 by default.
    #[schema(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// What was found.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DiscoverReply {
    schema_version: u32,
    /// Tools and capabilities, best first, each with the reasons why it was found.
    results: Vec<DiscoverResult>,
    /// The number of results without the limit.
    total: usize,
    /// What belongs to the results without being among them, at most five.
    suggestions: Vec<RelatedSuggestion>,
    /// Why results may be incomplete.
    notes: Vec<String>,
    /// A DAG of tools that could serve the intent, with its confidence and what it lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<SuggestedDag>,
    /// The capability that `pml_execute` would run for the intent alone, or the likeliest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_run: Option<WouldRun>,
}

/// A capability that would run.
#[derive(Serialize, ToSchema)]
struct WouldRun {
    capability: CapabilityName,
    /// The arguments it would run with.
    #[schema(value_type = Object)]
    arguments: Map<String, Value>,
    /// Whether it would run.
    ready: bool,
    /// What keeps it from running.
    reasons: Vec<String>,
}

/// Finds tools and capabilities for an intent; nothing is run.
#[utoipa::path(post, path = "/api/discover", tag = "discovery", request_body = DiscoverBody, responses((status = 200, body = DiscoverReply)))]
async fn discover(
    State(app): State<Arc<App>>,
    Extension(client): Extension<ClientIdentity>,
    ApiJson(body): ApiJson<DiscoverBody>,
) -> Result<Reply<DiscoverReply>, Problem> {
    let limit = body.limit.unwrap_or_else(default_limit);
    if limit == 0 || limit > MAX_LIMIT {
        let text = format!("`limit` is {limit} and must be between 1 and {MAX_LIMIT}");
        return Err(Problem::new(ErrorCode::InvalidRequest, text));
    }
    let request = DiscoverRequest::new(body.intent, limit);
    let (principal, reach) = (client.principal, app.keys.reach(client.key));
    let page = flow::discover(&app, (&principal, None), &request, |tool| reach.holds(&tool.id)).await?;
    let preview = flow::preview_execute(&app, &principal, &request.intent, |tool| reach.holds(tool)).await?;
    let would_run = preview.capability.map(|capability| WouldRun {
        capability: CapabilityName { id: capability.id.to_string(), name: capability.name },
        arguments: capability.arguments,
        ready: capability.obstacles.is_empty(),
        reasons: capability.obstacles,
    });
    Ok(Reply(DiscoverReply {
        schema_version: SCHEMA_VERSION,
        results: page.results,
        total: page.total,
        suggestions: page.suggestions,
        notes: page.notes,
        suggestion: preview.suggested_dag,
        would_run,
    }))
}
