//! The tool graph as a map for people: communities, nodes with positions, and one node with its neighbours.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pml_graph::graph::provides::ToolLink;
use pml_graph::graph::{EdgeType, GraphEdge, GraphNodeKind};
use pml_graph::layout::map::{self, GraphMap};
use pml_model::json::strip_hidden_characters;
use pml_model::name::truncate_text;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{GraphViewEdge, ToolGraph, could_feed, output_of, word};

/// Up to this number of nodes, all are shown; beyond it communities are closed until they are opened.
const ALL_SHOWN: usize = 300;
/// The number of edges that are drawn, heaviest first: more are a grey area.
const MOST_EDGES: usize = 6_000;
/// The number of servers in the name of a community.
const MOST_NAMED_SERVERS: usize = 3;
/// The number of neighbours that are listed.
const MOST_NEIGHBOURS: usize = 100;
/// The number of nodes that a search returns.
const MOST_FOUND: usize = 50;
/// The number of characters of a description that are shown.
const DESCRIPTION_CHARACTERS: usize = 500;

/// The map with names for its communities, drawn once for a graph.
#[derive(Debug)]
pub(super) struct NamedMap {
    map: GraphMap,
    /// Id and label of each community.
    names: Vec<(String, String)>,
}

/// The part of the map that is shown.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphLayout {
    /// The communities.
    pub communities: Vec<LayoutCommunity>,
    /// The nodes of the open communities.
    pub nodes: Vec<LayoutNode>,
    /// The edges between what is shown.
    pub edges: Vec<LayoutEdge>,
    /// The number of nodes of the whole graph.
    pub total: usize,
    /// The number of edges that are not drawn because there are too many.
    pub omitted_edges: usize,
    /// Width of the map.
    pub width: f64,
    /// Height of the map.
    pub height: f64,
}

/// A community of tools and capabilities.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LayoutCommunity {
    /// The id, to open it; edges to a closed one end at `community:<id>`.
    pub id: String,
    /// The name.
    pub label: String,
    /// The number of its nodes.
    pub size: usize,
    /// Whether its nodes are shown.
    pub expanded: bool,
    /// Centre of the circle.
    pub x: f64,
    /// Centre of the circle.
    pub y: f64,
    /// Radius of the circle.
    pub radius: f64,
}

/// A tool or a capability.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LayoutNode {
    /// The id.
    pub id: String,
    /// `tool` or `capability`.
    pub kind: &'static str,
    /// The name.
    pub label: String,
    /// The id of its community.
    pub community: String,
    /// Distance from the left.
    pub x: f64,
    /// Distance from the top.
    pub y: f64,
    /// The number of its neighbours.
    pub degree: usize,
    /// The importance by incoming relations, compared with the most important node: from 0 to 1.
    pub importance: f64,
}

/// A relation between shown nodes or communities.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LayoutEdge {
    /// The id of a node, or `community:<id>`.
    pub from: String,
    /// The id of a node, or `community:<id>`.
    pub to: String,
    /// `dependency`, `contains`, `provides` or `sequence`: the heaviest kind.
    pub kind: &'static str,
    /// The sum of the weights.
    pub weight: f64,
    /// The number of edges that it stands for.
    pub edges: usize,
}

/// A tool or capability with its neighbours.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDetails {
    /// Where it is on the map.
    #[serde(flatten)]
    pub node: LayoutNode,
    /// What it does, as its server says.
    pub description: String,
    /// The JSON Schema of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub input_schema: Option<Box<RawValue>>,
    /// The JSON Schema of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub output_schema: Option<Box<RawValue>>,
    /// Whether the schema of the result was observed in runs, not declared.
    pub output_observed: bool,
    /// Its neighbours, heaviest relation first.
    pub neighbours: Vec<Neighbour>,
    /// The number of further neighbours.
    pub further: usize,
}

/// A neighbour of a node.
#[derive(Debug, Serialize, ToSchema)]
pub struct Neighbour {
    /// The id.
    pub id: String,
    /// The name.
    pub label: String,
    /// `tool` or `capability`.
    pub kind: &'static str,
    /// `out` if the relation starts at the node, `in` if it ends there.
    pub direction: &'static str,
    /// Why they are related, as a sentence.
    pub reason: String,
    /// The relation.
    pub edge: GraphViewEdge,
}

/// A node and its schemas, for one end of a path.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndSchemas {
    /// The id.
    pub id: String,
    /// The name.
    pub label: String,
    /// The JSON Schema of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub input_schema: Option<Box<RawValue>>,
    /// The JSON Schema of its result, declared or observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub output_schema: Option<Box<RawValue>>,
}

impl ToolGraph {
    fn named_map(&self) -> &NamedMap {
        self.map.get_or_init(|| {
            let map = map::draw(&self.insights.snapshot.undirected, &self.insights.communities);
            let names = self.community_names(&map);
            NamedMap { map, names }
        })
    }

    /// Names of communities: the servers that most of its tools are from, else its two most important nodes.
    fn community_names(&self, map: &GraphMap) -> Vec<(String, String)> {
        let ids = &self.insights.snapshot.ids;
        let mut taken: HashMap<String, usize> = HashMap::new();
        let name = |community: &map::MapCommunity| {
            if community.unconnected {
                return "not connected".to_owned();
            }
            let mut servers: BTreeMap<&str, usize> = BTreeMap::new();
            for node in &community.members {
                if self.insights.snapshot.kinds[*node] == GraphNodeKind::Tool {
                    *servers.entry(ids[*node].split(':').next().unwrap_or_default()).or_default() += 1;
                }
            }
            if let Some(name) = server_names(&servers) {
                return name;
            }
            let mut members = community.members.clone();
            let importance = &self.insights.importance;
            members
                .sort_by(|one, other| importance[*other].total_cmp(&importance[*one]).then(one.cmp(other)));
            let first: Vec<&str> = members.iter().take(2).map(|node| self.name(&ids[*node])).collect();
            first.join(", ")
        };
        let unique = |label: String| {
            let number = taken.entry(label.clone()).or_default();
            *number += 1;
            let label = if *number == 1 { label } else { format!("{label} {number}") };
            (slug(&label), label)
        };
        map.communities.iter().map(name).map(unique).collect()
    }

    /// The map with these communities open. All are open if the graph is small or one of the ids is `all`.
    pub(crate) fn layout(&self, expand: &BTreeSet<String>) -> GraphLayout {
        // The map as pages open it is kept: joining the edges of thousands of tools takes a while.
        match expand.is_empty() {
            true => self.closed.get_or_init(|| self.draw_layout(expand)).clone(),
            false => self.draw_layout(expand),
        }
    }

    fn draw_layout(&self, expand: &BTreeSet<String>) -> GraphLayout {
        let named = self.named_map();
        let total = named.map.positions.len();
        let all = total <= ALL_SHOWN || expand.contains("all");
        let open: Vec<bool> = named.names.iter().map(|(id, _)| all || expand.contains(id)).collect();
        let communities = named.map.communities.iter().zip(&named.names).zip(&open);
        let communities = communities
            .map(|((community, (id, label)), expanded)| LayoutCommunity {
                id: id.clone(),
                label: label.clone(),
                size: community.members.len(),
                expanded: *expanded,
                x: rounded(community.centre.0),
                y: rounded(community.centre.1),
                radius: rounded(community.radius),
            })
            .collect();
        let shown = (0..total).filter(|node| open[named.map.community_of[*node]]);
        let most = self.greatest_importance();
        let nodes = shown.map(|node| self.layout_node(node, most)).collect();
        let (edges, omitted_edges) = self.layout_edges(named, &open);
        let (width, height) = (rounded(named.map.width), rounded(named.map.height));
        GraphLayout { communities, nodes, edges, total, omitted_edges, width, height }
    }

    fn greatest_importance(&self) -> f64 {
        self.insights.importance.iter().copied().fold(f64::MIN_POSITIVE, f64::max)
    }

    fn layout_node(&self, node: usize, most: f64) -> LayoutNode {
        let (named, snapshot) = (self.named_map(), &self.insights.snapshot);
        let (x, y) = named.map.positions[node];
        LayoutNode {
            id: snapshot.ids[node].clone(),
            kind: word(snapshot.kinds[node]),
            label: self.name(&snapshot.ids[node]).to_owned(),
            community: named.names[named.map.community_of[node]].0.clone(),
            x: rounded(x),
            y: rounded(y),
            degree: snapshot.undirected.degree(node),
            importance: (self.insights.importance[node] / most * 1_000.0).round() / 1_000.0,
        }
    }

    /// The heaviest edges between what is shown, and the number of the others.
    fn layout_edges(&self, named: &NamedMap, open: &[bool]) -> (Vec<LayoutEdge>, usize) {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        enum End {
            Community(usize),
            Node(usize),
        }
        let snapshot = &self.insights.snapshot;
        let end = |id: &str| {
            let node = snapshot.node_index(id)?;
            let community = named.map.community_of[node];
            Some(if open[community] { End::Node(node) } else { End::Community(community) })
        };
        let mut found: BTreeMap<(End, End), (f64, usize, EdgeType)> = BTreeMap::new();
        for edge in self.graph.edges() {
            let (Some(from), Some(to)) = (end(edge.from), end(edge.to)) else { continue };
            // Lines between closed communities stand for edges in both directions.
            let is_between = matches!((from, to), (End::Community(_), End::Community(_)));
            let ends = if is_between && to < from { (to, from) } else { (from, to) };
            if from == to {
                continue;
            }
            let known = found.entry(ends).or_insert((0.0, 0, edge.kind));
            known.0 += edge.weight();
            known.1 += 1;
            if edge.kind.weight() > known.2.weight() {
                known.2 = edge.kind;
            }
        }
        let mut sorted: Vec<_> = found.into_iter().collect();
        sorted.sort_by(|one, other| other.1.0.total_cmp(&one.1.0).then(one.0.cmp(&other.0)));
        let omitted = sorted.len().saturating_sub(MOST_EDGES);
        sorted.truncate(MOST_EDGES);
        let id = |end: End| match end {
            End::Community(community) => format!("community:{}", named.names[community].0),
            End::Node(node) => snapshot.ids[node].clone(),
        };
        let edges = sorted.into_iter().map(|((from, to), (weight, edges, kind))| LayoutEdge {
            from: id(from),
            to: id(to),
            kind: edge_word(kind),
            weight: (weight * 100.0).round() / 100.0,
            edges,
        });
        (edges.collect(), omitted)
    }

    /// The nodes whose name contains all words of `text`, those that begin with it first.
    pub(crate) fn search(&self, text: &str) -> Vec<LayoutNode> {
        let text = text.trim().to_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        let snapshot = &self.insights.snapshot;
        let mut found: Vec<(bool, usize)> = (0..snapshot.ids.len())
            .filter_map(|node| {
                let name = self.name(&snapshot.ids[node]).to_lowercase();
                let part = name.split_once(':').map_or(name.as_str(), |(_, tool)| tool);
                let begins = name.starts_with(&text) || part.starts_with(&text);
                words.iter().all(|word| name.contains(word)).then_some((!begins, node))
            })
            .collect();
        let importance = &self.insights.importance;
        found.sort_by(|one, other| {
            one.0
                .cmp(&other.0)
                .then(importance[other.1].total_cmp(&importance[one.1]))
                .then(one.1.cmp(&other.1))
        });
        let most = self.greatest_importance();
        found.into_iter().take(MOST_FOUND).map(|(_, node)| self.layout_node(node, most)).collect()
    }

    /// A node with its neighbours and schemas; `None` if there is no such node.
    pub(crate) fn details(&self, id: &str) -> Option<NodeDetails> {
        let snapshot = &self.insights.snapshot;
        let node = snapshot.node_index(id)?;
        let mut neighbours: Vec<Neighbour> = self
            .graph
            .edges()
            .into_iter()
            .filter(|edge| (edge.from == id) != (edge.to == id))
            .map(|edge| self.neighbour(id, &edge))
            .collect();
        let walked: BTreeSet<String> = neighbours
            .iter()
            .filter(|known| known.edge.kind == "provides" && known.direction == "in")
            .map(|known| known.id.clone())
            .collect();
        let sources = self.provides.best_sources(id).into_iter().filter(|from| !walked.contains(*from));
        neighbours.extend(sources.map(|from| self.neighbour(id, &could_feed(from, id))));
        neighbours.sort_by(|one, other| {
            let by_weight = other.edge.weight.total_cmp(&one.edge.weight);
            by_weight.then(other.edge.count.cmp(&one.edge.count)).then(one.id.cmp(&other.id))
        });
        let further = neighbours.len().saturating_sub(MOST_NEIGHBOURS);
        neighbours.truncate(MOST_NEIGHBOURS);
        let EndSchemas { input_schema, output_schema, .. } = self.end_schemas(id);
        let tool = self.of.0.index_of(id).map(|place| &self.of.0.tools[place]);
        let described = tool.and_then(|tool| tool.definition.description.as_deref()).unwrap_or_default();
        Some(NodeDetails {
            node: self.layout_node(node, self.greatest_importance()),
            description: truncate_text(described, DESCRIPTION_CHARACTERS),
            output_observed: output_schema.is_some()
                && tool.is_some_and(|tool| tool.definition.output_schema.is_none()),
            input_schema,
            output_schema,
            neighbours,
            further,
        })
    }

    /// The schemas of a tool; none for a capability.
    pub(crate) fn end_schemas(&self, id: &str) -> EndSchemas {
        let (snapshot, observed, _) = &self.of;
        let tool = snapshot.index_of(id).map(|place| &snapshot.tools[place]);
        let output = tool.and_then(|tool| output_of(tool, observed));
        EndSchemas {
            id: id.to_owned(),
            label: self.name(id).to_owned(),
            input_schema: tool.map(|tool| strip_hidden_characters(&tool.definition.input_schema)),
            output_schema: output.map(|schema| strip_hidden_characters(&schema)),
        }
    }

    fn neighbour(&self, id: &str, edge: &GraphEdge<'_>) -> Neighbour {
        let is_out = edge.from == id;
        let other = if is_out { edge.to } else { edge.from };
        let link = (edge.kind == EdgeType::Provides)
            .then(|| self.provides.link_between(edge.from, edge.to))
            .flatten();
        Neighbour {
            id: other.to_owned(),
            label: self.name(other).to_owned(),
            kind: self.graph.node_kind(other).map_or("tool", word),
            direction: if is_out { "out" } else { "in" },
            reason: reason(edge, link.as_ref(), (self.name(edge.from), self.name(edge.to))),
            edge: self.told(edge, false),
        }
    }
}

/// The servers that most tools are from, most first: one that has more than half of them, else up to three.
fn server_names(tools: &BTreeMap<&str, usize>) -> Option<String> {
    let all: usize = tools.values().sum();
    let mut sorted: Vec<(&str, usize)> = tools.iter().map(|(server, number)| (*server, *number)).collect();
    sorted.sort_by_key(|(server, number)| (std::cmp::Reverse(*number), *server));
    let mut named: Vec<&str> = Vec::new();
    let mut covered = 0;
    for (server, number) in sorted.into_iter().take(MOST_NAMED_SERVERS) {
        if covered * 2 > all {
            break;
        }
        named.push(server);
        covered += number;
    }
    let (last, first) = named.split_last()?;
    Some(if first.is_empty() { (*last).to_owned() } else { format!("{} and {last}", first.join(", ")) })
}

/// Why two nodes are related, as a sentence.
fn reason(edge: &GraphEdge<'_>, link: Option<&ToolLink>, (from, to): (&str, &str)) -> String {
    let runs = match edge.count {
        1 => "one run".to_owned(),
        count => format!("{count} runs"),
    };
    match (edge.kind, link.and_then(|link| link.mapping.first())) {
        (EdgeType::Dependency, _) => format!("`{to}` was given a result of `{from}` in {runs}"),
        (EdgeType::Sequence, _) => format!("`{to}` came after `{from}` in {runs}"),
        (EdgeType::Contains, _) => format!("`{from}` calls `{to}`, seen in {runs}"),
        (EdgeType::Provides, Some(first)) => {
            let what =
                if first.from.is_empty() { "its result".to_owned() } else { format!("`{}`", first.from) };
            let how = first.basis.describe();
            format!("`{from}` gives {what}, which `{to}` takes as `{}` ({how})", first.to)
        }
        (EdgeType::Provides, None) => format!("`{from}` can feed `{to}`"),
    }
}

/// The name of an edge type.
pub(super) fn edge_word(kind: EdgeType) -> &'static str {
    match kind {
        EdgeType::Dependency => "dependency",
        EdgeType::Contains => "contains",
        EdgeType::Provides => "provides",
        EdgeType::Sequence => "sequence",
    }
}

/// An id for addresses.
fn slug(label: &str) -> String {
    let plain =
        |character: char| if character.is_alphanumeric() { character.to_ascii_lowercase() } else { '-' };
    label.chars().map(plain).collect()
}

/// Tenths of pixels are enough, and short numbers make short replies.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
