//! The tool graph: which tool can feed which, what followed what, what contains what.
//!
//! It is built from the schemas of the tools and from traces, and rebuilt when either changes. Prediction and ranking
//! use it, and people can look at it.

mod map;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use pml_graph::graph::closeness::{CloseNode, closest_nodes};
use pml_graph::graph::fields::{self, FieldsDefinition};
use pml_graph::graph::insights::{GraphInsights, capability_groups};
use pml_graph::graph::provides::{InputCoverage, ProvidesIndex};
use pml_graph::graph::{self, EdgeSource, EdgeType, GraphNodeKind, TypedGraph, paths};
use pml_model::json::{raw, strip_hidden_characters};
use pml_model::trace::{EdgeKind, is_operation};
use pml_store::LearnedEdge;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::memory::{IndexedCapability, ObservedSchemas};
use crate::catalogue::{CatalogueTool, ToolSnapshot};
pub use map::{EndSchemas, GraphLayout, LayoutCommunity, LayoutEdge, LayoutNode, Neighbour, NodeDetails};

/// The number of paths that are returned.
const WAYS: usize = 3;

/// The inputs of a graph: the tools, their observed schemas, and the version of the capabilities.
pub(super) type GraphInputs = (Arc<ToolSnapshot>, Arc<ObservedSchemas>, i64);

/// A community of the graph that most of some nodes are in.
#[derive(Debug)]
pub(crate) struct DominantCommunity<'n> {
    /// The first of these nodes that is in it.
    pub(crate) likeliest: &'n str,
    /// Its share of these nodes, from 0 to 1.
    pub(crate) share: f64,
    /// All its nodes, the most important ones first.
    pub(crate) members: Vec<&'n str>,
}

/// The relations between tools and capabilities at one moment.
#[derive(Debug)]
pub(crate) struct ToolGraph {
    of: GraphInputs,
    graph: TypedGraph,
    /// The relations of pure operations. They are kept apart from the graph, so that they do not influence ranking,
    /// prediction or suggestion.
    operations: TypedGraph,
    provides: Arc<ProvidesIndex>,
    insights: GraphInsights,
    names: HashMap<String, String>,
    /// The map of the graph, drawn when it is first looked at.
    map: OnceLock<map::NamedMap>,
    /// The map with every community closed.
    closed: OnceLock<GraphLayout>,
}

impl ToolGraph {
    /// The graph of these inputs. Which tool can feed which is taken from the graph `before` if it is of the same tools: it takes
    /// most of the time, and every learned run makes a new graph.
    pub(super) fn new(
        of: GraphInputs,
        before: Option<&ToolGraph>,
        capabilities: &[Arc<IndexedCapability>],
        edges: Vec<LearnedEdge>,
    ) -> ToolGraph {
        let (snapshot, observed, _) = &of;
        let same_tools = before
            .filter(|before| Arc::ptr_eq(&before.of.0, snapshot) && Arc::ptr_eq(&before.of.1, observed));
        let provides = match same_tools {
            Some(before) => Arc::clone(&before.provides),
            None => {
                let tools = snapshot.tools.iter().map(|tool| fields_of(tool, observed));
                Arc::new(ProvidesIndex::build(tools))
            }
        };
        let (mut graph, mut operations) = (TypedGraph::default(), TypedGraph::default());
        let ids: Vec<String> = snapshot.tools.iter().map(|tool| tool.id.to_string()).collect();
        ids.iter().for_each(|id| graph.insert_node(id, GraphNodeKind::Tool));
        graph.update_provides_edges(&provides, &ids);
        let mut names = HashMap::new();
        for known in capabilities {
            let id = known.id.to_string();
            graph.insert_node(&id, GraphNodeKind::Capability);
            for tool in &known.tools {
                if graph.node_kind(&tool.id).is_some() {
                    graph.observe_edge(
                        &id,
                        &tool.id,
                        EdgeType::Contains,
                        known.statistics.usage_count.max(1),
                    );
                }
            }
            names.insert(id, known.name.clone());
        }
        for edge in edges {
            let kind = match edge.kind {
                EdgeKind::Dependency => EdgeType::Dependency,
                EdgeKind::Sequence => EdgeType::Sequence,
                EdgeKind::Contains => EdgeType::Contains,
                // The next request of a session is no part of the same procedure.
                EdgeKind::Follows => continue,
            };
            if graph.node_kind(&edge.from).is_some() && graph.node_kind(&edge.to).is_some() {
                graph.set_edge_count(&edge.from, &edge.to, kind, edge.count);
            } else if let [Some(from), Some(to)] = [&edge.from, &edge.to].map(|end| kind_of(end, &graph)) {
                operations.insert_node(&edge.from, from);
                operations.insert_node(&edge.to, to);
                operations.set_edge_count(&edge.from, &edge.to, kind, edge.count);
            }
        }
        let insights = GraphInsights::compute(&graph);
        ToolGraph {
            of,
            graph,
            operations,
            provides,
            insights,
            names,
            map: OnceLock::new(),
            closed: OnceLock::new(),
        }
    }

    /// Whether it was built from the same inputs.
    pub(super) fn is_of(&self, of: &GraphInputs) -> bool {
        Arc::ptr_eq(&self.of.0, &of.0) && Arc::ptr_eq(&self.of.1, &of.1) && self.of.2 == of.2
    }

    /// The nodes close to those just used, given most recent last.
    pub(crate) fn related_to(&self, used: &[&str]) -> Vec<CloseNode> {
        closest_nodes(&self.graph, &self.insights.snapshot, used)
    }

    /// The community that has the largest share of these nodes by their weights; `None` if the graph has none of them.
    pub(crate) fn dominant_community<'n>(
        &'n self,
        weights: &[(&'n str, f64)],
    ) -> Option<DominantCommunity<'n>> {
        let snapshot = &self.insights.snapshot;
        let mut shares: BTreeMap<usize, f64> = BTreeMap::new();
        let known: Vec<(&str, f64, usize)> = weights
            .iter()
            .filter_map(|(id, weight)| {
                Some((*id, *weight, self.insights.communities[snapshot.node_index(id)?]))
            })
            .collect();
        for (_, weight, community) in &known {
            *shares.entry(*community).or_default() += weight;
        }
        let all: f64 = shares.values().sum();
        let (community, share) =
            shares.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        let (likeliest, ..) = known.into_iter().find(|(.., of)| *of == community)?;
        let mut members = self.insights.community(likeliest);
        members.sort_by(|one, other| {
            self.insights.importance(other).total_cmp(&self.insights.importance(one)).then(one.cmp(other))
        });
        Some(DominantCommunity { likeliest, share: if all > 0.0 { share / all } else { 0.0 }, members })
    }

    /// The tools from which this one could best get what it needs.
    pub(crate) fn best_sources(&self, id: &str) -> Vec<&str> {
        self.provides.best_sources(id)
    }

    /// The fields of the tools, and which tool can feed which.
    pub(crate) fn provides(&self) -> &ProvidesIndex {
        &self.provides
    }

    /// The path in the results of one tool, such as `user.id`, that could fill a parameter of another.
    pub(crate) fn feeding_path(&self, from: &str, to: &str, parameter: &str) -> Option<String> {
        let link = self.provides.link_between(from, to)?;
        link.mapping.into_iter().find(|mapping| mapping.to == parameter).map(|mapping| mapping.from)
    }

    /// The display name of a node.
    pub(crate) fn name<'n>(&'n self, id: &'n str) -> &'n str {
        self.names.get(id).map_or(id, String::as_str)
    }

    /// The complete graph, for display.
    pub(crate) fn view(&self) -> GraphView {
        let (capabilities, clusters) = capability_groups(&self.graph);
        let groups: HashMap<&str, usize> =
            capabilities.iter().map(String::as_str).zip(clusters.of_node.iter().copied()).collect();
        let snapshot = &self.insights.snapshot;
        let nodes = snapshot.ids.iter().enumerate().map(|(node, id)| GraphViewNode {
            id: id.clone(),
            name: self.name(id).to_owned(),
            kind: word(snapshot.kinds[node]),
            importance: self.insights.importance[node],
            community: Some(self.insights.communities[node]),
            group: groups.get(id.as_str()).copied(),
        });
        let computed = self.operations.snapshot();
        let operations = computed.ids.iter().zip(&computed.kinds).filter(|(id, _)| is_operation(id));
        let operations = operations.map(|(id, kind)| GraphViewNode {
            id: id.clone(),
            name: id.clone(),
            kind: word(*kind),
            importance: 0.0,
            community: None,
            group: None,
        });
        let walked = self.graph.edges().into_iter().chain(self.operations.edges());
        let walked = walked.map(|edge| self.told(&edge, false));
        let known = snapshot.ids.iter().flat_map(|to| {
            let missing = |from: &&str| !self.is_walked(from, to);
            self.provides.best_sources(to).into_iter().filter(missing).map(move |from| (from, to.as_str()))
        });
        let known = known.map(|(from, to)| self.told(&could_feed(from, to), false));
        GraphView { nodes: nodes.chain(operations).collect(), edges: walked.chain(known).collect() }
    }

    /// Whether the `provides` edge is among those that are walked: there are many more than that.
    fn is_walked(&self, from: &str, to: &str) -> bool {
        self.graph.edges_between(from, to).iter().any(|edge| edge.kind == EdgeType::Provides)
    }

    /// An edge for display; with the schemas of both ends if requested.
    fn told(&self, edge: &graph::GraphEdge<'_>, with_schemas: bool) -> GraphViewEdge {
        let link = (edge.kind == EdgeType::Provides)
            .then(|| self.provides.link_between(edge.from, edge.to))
            .flatten();
        GraphViewEdge {
            from: edge.from.to_owned(),
            to: edge.to.to_owned(),
            kind: map::edge_word(edge.kind),
            source: match edge.source {
                EdgeSource::Observed => "observed",
                EdgeSource::Inferred => "inferred",
                EdgeSource::Template => "template",
            },
            count: edge.count,
            weight: edge.weight(),
            coverage: link.as_ref().map(|link| match link.coverage {
                InputCoverage::Strict => "strict",
                InputCoverage::Partial => "partial",
                InputCoverage::Optional => "optional",
            }),
            schemas: link.as_ref().filter(|_| with_schemas).and_then(|_| self.schemas(edge.from, edge.to)),
            mapping: link
                .into_iter()
                .flat_map(|link| link.mapping)
                .map(|mapping| GraphViewMapping {
                    from: mapping.from,
                    to: mapping.to,
                    how: mapping.basis.describe(),
                })
                .collect(),
        }
    }

    /// The output schema of the one tool and the input schema of the other.
    fn schemas(&self, from: &str, to: &str) -> Option<EdgeSchemas> {
        let (snapshot, observed, _) = &self.of;
        let tool = |id: &str| snapshot.index_of(id).map(|place| &snapshot.tools[place]);
        let output = output_of(tool(from)?, observed).map(|schema| strip_hidden_characters(&schema));
        Some(EdgeSchemas { output, input: strip_hidden_characters(&tool(to)?.definition.input_schema) })
    }

    /// The most likely paths within `graph`, best first.
    fn ways_in(
        &self,
        graph: &TypedGraph,
        snapshot: &graph::GraphSnapshot,
        from: &str,
        to: &str,
    ) -> Option<Vec<GraphViewPath>> {
        let found =
            paths::best_paths(&snapshot.directed, snapshot.node_index(from)?, snapshot.node_index(to)?, WAYS);
        let edge = |ends: &[usize]| {
            let between = graph.edges_between(&snapshot.ids[ends[0]], &snapshot.ids[ends[1]]);
            let best = between.iter().max_by(|one, other| one.weight().total_cmp(&other.weight()))?;
            Some(self.told(best, true))
        };
        let way = |path: paths::GraphPath| GraphViewPath {
            through: path.nodes.iter().map(|node| self.name(&snapshot.ids[*node]).to_owned()).collect(),
            edges: path.nodes.windows(2).filter_map(edge).collect(),
            cost: path.cost,
        };
        Some(found.into_iter().map(way).collect())
    }

    /// The most likely paths between two nodes, best first.
    pub(crate) fn best_paths(&self, from: &str, to: &str) -> Option<Vec<GraphViewPath>> {
        if is_operation(from) || is_operation(to) {
            return self.ways_in(&self.operations, &self.operations.snapshot(), from, to);
        }
        let snapshot = &self.insights.snapshot;
        let mut ways = self.ways_in(&self.graph, snapshot, from, to)?;
        let (from, to) = (snapshot.node_index(from)?, snapshot.node_index(to)?);
        let (from, to) = (snapshot.ids[from].as_str(), snapshot.ids[to].as_str());
        if self.graph.edges_between(from, to).is_empty() && self.provides.link_between(from, to).is_some() {
            // Only the few tools that a tool feeds best are walked to; this edge is requested explicitly, so it is
            // added.
            let edge = could_feed(from, to);
            ways.push(GraphViewPath {
                through: [from, to].map(|id| self.name(id).to_owned()).to_vec(),
                cost: paths::edge_cost(edge.weight()),
                edges: vec![self.told(&edge, true)],
            });
            ways.sort_by(|one, other| one.cost.total_cmp(&other.cost));
            ways.truncate(WAYS);
        }
        Some(ways)
    }
}

/// The name of a node kind.
fn word(kind: GraphNodeKind) -> &'static str {
    match kind {
        GraphNodeKind::Tool => "tool",
        GraphNodeKind::Capability => "capability",
        GraphNodeKind::Operation => "operation",
    }
}

/// The kind of the node in a learned edge, if it still exists.
fn kind_of(id: &str, graph: &TypedGraph) -> Option<GraphNodeKind> {
    if is_operation(id) { Some(GraphNodeKind::Operation) } else { graph.node_kind(id) }
}

/// The edge that one tool could feed the other, by their declared schemas.
fn could_feed<'e>(from: &'e str, to: &'e str) -> graph::GraphEdge<'e> {
    graph::GraphEdge { from, to, kind: EdgeType::Provides, source: EdgeSource::Inferred, count: 0 }
}

/// The fields of a tool; the result fields are the observed ones if none are declared.
pub fn fields_of(tool: &CatalogueTool, observed: &ObservedSchemas) -> fields::ToolFields {
    let parsed = |schema: &RawValue| serde_json::from_str::<Value>(schema.get()).unwrap_or_default();
    let input = parsed(&tool.definition.input_schema);
    let output = output_of(tool, observed).map(|schema| parsed(&schema));
    fields::ToolFields::from_definition(&FieldsDefinition {
        id: &tool.id.to_string(),
        name: &tool.definition.name,
        description: tool.definition.description.as_deref().unwrap_or_default(),
        input_schema: &input,
        output_schema: output.as_ref(),
    })
}

/// The output schema of a tool, declared or observed.
pub fn output_of(tool: &CatalogueTool, observed: &ObservedSchemas) -> Option<Box<RawValue>> {
    let seen = || observed.get(&(tool.id.to_string(), tool.definition.digest.clone()));
    tool.definition.output_schema.clone().or_else(|| seen().map(|seen| raw(&seen.schema)))
}

/// The complete graph for people and pages.
#[derive(Debug, Serialize, ToSchema)]
pub struct GraphView {
    /// The tools, capabilities and pure operations.
    pub nodes: Vec<GraphViewNode>,
    /// The relations between the nodes.
    pub edges: Vec<GraphViewEdge>,
}

/// A tool, a capability or a pure operation.
#[derive(Debug, Serialize, ToSchema)]
pub struct GraphViewNode {
    /// The id: `server:tool`, the id of a capability, or an operation such as `code:filter`.
    pub id: String,
    /// The display name.
    pub name: String,
    /// `tool`, `capability` or `operation`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The importance by incoming relations, from 0 to 1; all nodes together sum to 1. Operations have none.
    pub importance: f64,
    /// The number of its community; `None` for operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub community: Option<usize>,
    /// The number of its group of similar capabilities; `None` unless it is a capability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
}

/// A relation between two nodes.
#[derive(Debug, Serialize, ToSchema)]
pub struct GraphViewEdge {
    /// The id of the first node.
    pub from: String,
    /// The id of the second node.
    pub to: String,
    /// `dependency`, `contains`, `provides` or `sequence`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `observed`, `inferred` or `template`.
    pub source: &'static str,
    /// The number of observations.
    pub count: u64,
    /// The weight of the edge.
    pub weight: f64,
    /// How much of the required input is provided; only for `provides`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<&'static str>,
    /// Which result field becomes which parameter; only for `provides`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mapping: Vec<GraphViewMapping>,
    /// The schemas of both ends; only for `provides` on a path.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = EdgeSchemas)]
    pub schemas: Option<EdgeSchemas>,
}

/// The output of one tool and the input of another.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EdgeSchemas {
    /// The JSON Schema of the result, declared or observed.
    #[serde(rename = "outputSchema", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub output: Option<Box<RawValue>>,
    /// The JSON Schema of the arguments.
    #[serde(rename = "inputSchema")]
    #[schema(value_type = Value, required = false)]
    pub input: Box<RawValue>,
}

/// A field of a result that can become an argument.
#[derive(Debug, Serialize, ToSchema)]
pub struct GraphViewMapping {
    /// The path of the field in the result; empty for the complete result.
    pub from: String,
    /// The name of the parameter.
    pub to: String,
    /// How the two were matched.
    pub how: &'static str,
}

/// A path from one node to another.
#[derive(Debug, Serialize, ToSchema)]
pub struct GraphViewPath {
    /// The nodes on the path, both ends included.
    pub through: Vec<String>,
    /// The edge from each node to the next.
    pub edges: Vec<GraphViewEdge>,
    /// The cost: lower for fewer and more reliable edges.
    pub cost: f64,
}
