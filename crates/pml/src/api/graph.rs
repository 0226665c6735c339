//! `/api/graph`: the graph of tools and capabilities, as data and as a map.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use pml_model::Principal;
use serde::{Deserialize, Serialize};
use utoipa::{OpenApi, ToSchema};

use super::extract::ApiQuery;
use super::reply::{Reply, SCHEMA_VERSION, list_response};
use crate::app::App;
use crate::flow::{self, GraphWays};
use crate::knowledge::graph::{GraphLayout, GraphView, LayoutNode, NodeDetails};
use crate::problem::{ErrorCode, Problem};

#[derive(OpenApi)]
#[openapi(paths(graph, layout, node, search, ways))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/graph", get(graph))
        .route("/api/graph/layout", get(layout))
        .route("/api/graph/node", get(node))
        .route("/api/graph/search", get(search))
        .route("/api/graph/ways", get(ways))
}

/// The whole graph.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GraphReply {
    schema_version: u32,
    #[serde(flatten)]
    graph: GraphView,
}

/// Shows the whole graph.
#[utoipa::path(get, path = "/api/graph", tag = "graph", responses((status = 200, body = GraphReply)))]
async fn graph(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Result<Reply<GraphReply>, Problem> {
    let graph = flow::graph(&app, &principal).await?;
    Ok(Reply(GraphReply { schema_version: SCHEMA_VERSION, graph }))
}

/// The longest list of communities to open, in bytes.
const MAX_QUERY_BYTES: usize = 16 * 1024;

/// The graph as a map.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GraphLayoutReply {
    schema_version: u32,
    #[serde(flatten)]
    layout: GraphLayout,
}

/// Shows the graph as a map with positions, the same every time. More than 300 nodes: communities are closed.
#[utoipa::path(get, path = "/api/graph/layout", tag = "graph", params(("expand" = Option<Vec<String>>, Query, description = "The ids of the communities to open, or `all`; repeated, or separated by commas")), responses(
    (status = 200, body = GraphLayoutReply),
    (status = 304, description = "The same as the `ETag` in `If-None-Match`"),
))]
async fn layout(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let layout = flow::graph_layout(&app, &principal, expanded(&query.unwrap_or_default())?).await?;
    Ok(list_response(&headers, &GraphLayoutReply { schema_version: SCHEMA_VERSION, layout }))
}

/// The communities to open. serde's queries have no repeated parameters.
fn expanded(query: &str) -> Result<BTreeSet<String>, Problem> {
    if query.len() > MAX_QUERY_BYTES {
        let text = format!("the query is longer than {MAX_QUERY_BYTES} bytes");
        return Err(Problem::new(ErrorCode::InvalidRequest, text).hint("`expand=all` opens all communities"));
    }
    let given = url::form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "expand");
    Ok(given.flat_map(|(_, ids)| ids.split(',').map(str::to_owned).collect::<Vec<_>>()).collect())
}

/// Which node to show.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct GraphNodeQuery {
    /// `server:tool`, or the id or the name of a capability.
    id: String,
}

/// A tool or capability.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GraphNodeReply {
    schema_version: u32,
    #[serde(flatten)]
    node: NodeDetails,
}

/// Shows a tool or capability with its schemas, its neighbours, and why they are neighbours.
#[utoipa::path(get, path = "/api/graph/node", tag = "graph", params(GraphNodeQuery), responses((status = 200, body = GraphNodeReply)))]
async fn node(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiQuery(wanted): ApiQuery<GraphNodeQuery>,
) -> Result<Reply<GraphNodeReply>, Problem> {
    let node = flow::graph_node(&app, &principal, &wanted.id).await?;
    Ok(Reply(GraphNodeReply { schema_version: SCHEMA_VERSION, node }))
}

/// Which nodes to find.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct GraphSearchQuery {
    /// Words that the name must contain.
    q: String,
}

/// The nodes that were found, best first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GraphSearchReply {
    schema_version: u32,
    items: Vec<LayoutNode>,
}

/// Finds tools and capabilities by their names, at most 50.
#[utoipa::path(get, path = "/api/graph/search", tag = "graph", params(GraphSearchQuery), responses((status = 200, body = GraphSearchReply)))]
async fn search(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiQuery(wanted): ApiQuery<GraphSearchQuery>,
) -> Result<Reply<GraphSearchReply>, Problem> {
    let items = flow::find_graph_nodes(&app, &principal, wanted.q).await?;
    Ok(Reply(GraphSearchReply { schema_version: SCHEMA_VERSION, items }))
}

/// The two ends of a way.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct GraphWaysQuery {
    /// `server:tool`, or the id or the name of a capability.
    from: String,
    /// `server:tool`, or the id or the name of a capability.
    to: String,
}

/// The ways between two nodes, best first, and the schemas of both.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GraphWaysReply {
    schema_version: u32,
    #[serde(flatten)]
    found: GraphWays,
}

/// Finds the ways between two tools or capabilities.
#[utoipa::path(get, path = "/api/graph/ways", tag = "graph", params(GraphWaysQuery), responses((status = 200, body = GraphWaysReply)))]
async fn ways(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiQuery(ends): ApiQuery<GraphWaysQuery>,
) -> Result<Reply<GraphWaysReply>, Problem> {
    let found = flow::graph_ways(&app, &principal, &ends.from, &ends.to).await?;
    Ok(Reply(GraphWaysReply { schema_version: SCHEMA_VERSION, found }))
}
