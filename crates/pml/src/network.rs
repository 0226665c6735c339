//! How tools and capabilities hang together: what feeds what, what came after what, what is part of what.
//!
//! Made from the schemas of the tools there are and from what runs left behind; made again when either changed. What
//! follows from it is looked up by whoever predicts a next step, and shown to people.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use pml_graph::graph::closeness::{Close, closeness};
use pml_graph::graph::fields::{self, Definition};
use pml_graph::graph::insights::{Insights, capability_groups};
use pml_graph::graph::provides::{Coverage, Provides};
use pml_graph::graph::{self, EdgeType, Graph, NodeKind, Source, paths};
use pml_model::json::{raw, without_hidden};
use pml_model::trace::{EdgeKind, is_operation};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::app::App;
use crate::catalogue::{Snapshot, Tool};
use crate::memory::Observed;

/// How many ways from one thing to another are told.
const WAYS: usize = 3;

/// How everything hangs together, where that was looked at.
#[derive(Debug, Default)]
pub struct Network {
    current: RwLock<Option<Arc<Woven>>>,
}

/// How things hung together at one moment.
#[derive(Debug)]
pub(crate) struct Woven {
    of: (Arc<Snapshot>, Arc<Observed>, i64),
    graph: Graph,
    /// What pure operations have to do with all that and with each other. Apart from the graph, so that nothing is ranked,
    /// predicted or suggested by it.
    operations: Graph,
    provides: Provides,
    insights: Insights,
    names: HashMap<String, String>,
}

impl Network {
    /// Looks again, where something changed. Takes its time.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) fn bring_up_to_date(&self, app: &App) -> Result<Arc<Woven>, pml_store::Error> {
        let of = (app.catalogue.snapshot(), app.memory.observed(), app.memory.version());
        if let Some(woven) = self.current()
            && Arc::ptr_eq(&woven.of.0, &of.0)
            && Arc::ptr_eq(&woven.of.1, &of.1)
            && woven.of.2 == of.2
        {
            return Ok(woven);
        }
        let woven = Arc::new(Woven::new(of, app)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&woven));
        Ok(woven)
    }

    /// What was last seen.
    pub(crate) fn current(&self) -> Option<Arc<Woven>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Woven {
    fn new(of: (Arc<Snapshot>, Arc<Observed>, i64), app: &App) -> Result<Woven, pml_store::Error> {
        let (snapshot, observed, _) = &of;
        let provides = Provides::build(snapshot.tools.iter().map(|tool| fields_of(tool, observed)));
        let (mut graph, mut operations) = (Graph::default(), Graph::default());
        let ids: Vec<String> = snapshot.tools.iter().map(|tool| tool.id.to_string()).collect();
        ids.iter().for_each(|id| graph.insert(id, NodeKind::Tool));
        graph.follow(&provides, &ids);
        let mut names = HashMap::new();
        for known in app.memory.active(&app.principal) {
            let id = known.id.to_string();
            graph.insert(&id, NodeKind::Capability);
            for tool in &known.tools {
                if graph.kind(&tool.id).is_some() {
                    graph.observe(&id, &tool.id, EdgeType::Contains, known.statistics.usage_count.max(1));
                }
            }
            names.insert(id, known.name.clone());
        }
        for edge in app.store.edges(&app.principal)? {
            let kind = match edge.kind {
                EdgeKind::Dependency => EdgeType::Dependency,
                EdgeKind::Sequence => EdgeType::Sequence,
                EdgeKind::Contains => EdgeType::Contains,
                // What is asked for next in a session is no part of one procedure.
                EdgeKind::Follows => continue,
            };
            if graph.kind(&edge.from).is_some() && graph.kind(&edge.to).is_some() {
                graph.set_count(&edge.from, &edge.to, kind, edge.count);
            } else if let [Some(from), Some(to)] = [&edge.from, &edge.to].map(|end| kind_of(end, &graph)) {
                operations.insert(&edge.from, from);
                operations.insert(&edge.to, to);
                operations.set_count(&edge.from, &edge.to, kind, edge.count);
            }
        }
        let insights = Insights::of(&graph);
        Ok(Woven { of, graph, operations, provides, insights, names })
    }

    /// What is close to what was just used, the most recent last.
    pub(crate) fn close(&self, used: &[&str]) -> Vec<Close> {
        closeness(&self.graph, &self.insights.snapshot, used)
    }

    /// What a person calls something.
    pub(crate) fn name<'n>(&'n self, id: &'n str) -> &'n str {
        self.names.get(id).map_or(id, String::as_str)
    }

    /// All of it, for people.
    pub(crate) fn view(&self) -> View {
        let (capabilities, clusters) = capability_groups(&self.graph);
        let groups: HashMap<&str, usize> =
            capabilities.iter().map(String::as_str).zip(clusters.of_node.iter().copied()).collect();
        let snapshot = &self.insights.snapshot;
        let nodes = snapshot.ids.iter().enumerate().map(|(node, id)| Node {
            id: id.clone(),
            name: self.name(id).to_owned(),
            kind: word(snapshot.kinds[node]),
            importance: self.insights.importance[node],
            community: Some(self.insights.communities[node]),
            group: groups.get(id.as_str()).copied(),
        });
        let computed = self.operations.snapshot();
        let operations = computed.ids.iter().zip(&computed.kinds).filter(|(id, _)| is_operation(id));
        let operations = operations.map(|(id, kind)| Node {
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
            self.provides.sources(to).into_iter().filter(missing).map(move |from| (from, to.as_str()))
        });
        let known = known.map(|(from, to)| self.told(&could_feed(from, to), false));
        View { nodes: nodes.chain(operations).collect(), edges: walked.chain(known).collect() }
    }

    /// Whether that the one could feed the other is among the edges that are walked: there are many more than that.
    fn is_walked(&self, from: &str, to: &str) -> bool {
        self.graph.between(from, to).iter().any(|edge| edge.kind == EdgeType::Provides)
    }

    /// An edge, for people; with the schemas of both ends where they are wanted.
    fn told(&self, edge: &graph::Edge<'_>, with_schemas: bool) -> Edge {
        let link =
            (edge.kind == EdgeType::Provides).then(|| self.provides.link(edge.from, edge.to)).flatten();
        Edge {
            from: edge.from.to_owned(),
            to: edge.to.to_owned(),
            kind: match edge.kind {
                EdgeType::Dependency => "dependency",
                EdgeType::Contains => "contains",
                EdgeType::Provides => "provides",
                EdgeType::Sequence => "sequence",
            },
            source: match edge.source {
                Source::Observed => "observed",
                Source::Inferred => "inferred",
                Source::Template => "template",
            },
            count: edge.count,
            weight: edge.weight(),
            coverage: link.as_ref().map(|link| match link.coverage {
                Coverage::Strict => "strict",
                Coverage::Partial => "partial",
                Coverage::Optional => "optional",
            }),
            schemas: link.as_ref().filter(|_| with_schemas).and_then(|_| self.schemas(edge.from, edge.to)),
            mapping: link
                .into_iter()
                .flat_map(|link| link.mapping)
                .map(|mapping| Mapping { from: mapping.from, to: mapping.to, how: mapping.how.words() })
                .collect(),
        }
    }

    /// What the one tool gives and the other takes.
    fn schemas(&self, from: &str, to: &str) -> Option<Schemas> {
        let (snapshot, observed, _) = &self.of;
        let tool = |id: &str| snapshot.place(id).map(|place| &snapshot.tools[place]);
        let output = output_of(tool(from)?, observed).map(|schema| without_hidden(&schema));
        Some(Schemas { output, input: without_hidden(&tool(to)?.definition.input_schema) })
    }

    /// The likeliest ways within `graph`, best first.
    fn ways_in(&self, graph: &Graph, snapshot: &graph::Snapshot, from: &str, to: &str) -> Option<Vec<Way>> {
        let found = paths::best(&snapshot.directed, snapshot.node(from)?, snapshot.node(to)?, WAYS);
        let edge = |ends: &[usize]| {
            let between = graph.between(&snapshot.ids[ends[0]], &snapshot.ids[ends[1]]);
            let best = between.iter().max_by(|one, other| one.weight().total_cmp(&other.weight()))?;
            Some(self.told(best, true))
        };
        let way = |path: paths::Path| Way {
            through: path.nodes.iter().map(|node| self.name(&snapshot.ids[*node]).to_owned()).collect(),
            edges: path.nodes.windows(2).filter_map(edge).collect(),
            cost: path.cost,
        };
        Some(found.into_iter().map(way).collect())
    }

    /// The likeliest ways from one thing to another, best first.
    pub(crate) fn ways(&self, from: &str, to: &str) -> Option<Vec<Way>> {
        if is_operation(from) || is_operation(to) {
            return self.ways_in(&self.operations, &self.operations.snapshot(), from, to);
        }
        let snapshot = &self.insights.snapshot;
        let mut ways = self.ways_in(&self.graph, snapshot, from, to)?;
        let (from, to) = (snapshot.node(from)?, snapshot.node(to)?);
        let (from, to) = (snapshot.ids[from].as_str(), snapshot.ids[to].as_str());
        if self.graph.between(from, to).is_empty() && self.provides.link(from, to).is_some() {
            // Each tool is walked from to the few that it feeds best; that it could feed this one is asked for now.
            let edge = could_feed(from, to);
            ways.push(Way {
                through: [from, to].map(|id| self.name(id).to_owned()).to_vec(),
                cost: paths::step(edge.weight()),
                edges: vec![self.told(&edge, true)],
            });
            ways.sort_by(|one, other| one.cost.total_cmp(&other.cost));
            ways.truncate(WAYS);
        }
        Some(ways)
    }
}

/// The word for what a node is.
fn word(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Tool => "tool",
        NodeKind::Capability => "capability",
        NodeKind::Operation => "operation",
    }
}

/// What an id of a learned edge stands for, where that is still there.
fn kind_of(id: &str, graph: &Graph) -> Option<NodeKind> {
    if is_operation(id) { Some(NodeKind::Operation) } else { graph.kind(id) }
}

/// That the one tool could feed the other, by what they declare.
fn could_feed<'e>(from: &'e str, to: &'e str) -> graph::Edge<'e> {
    graph::Edge { from, to, kind: EdgeType::Provides, source: Source::Inferred, count: 0 }
}

/// A tool's fields, with what it was seen to give where it does not say.
pub(crate) fn fields_of(tool: &Tool, observed: &Observed) -> fields::Tool {
    let parsed = |schema: &RawValue| serde_json::from_str::<Value>(schema.get()).unwrap_or_default();
    let input = parsed(&tool.definition.input_schema);
    let output = output_of(tool, observed).map(|schema| parsed(&schema));
    fields::Tool::read(&Definition {
        id: &tool.id.to_string(),
        name: &tool.definition.name,
        description: tool.definition.description.as_deref().unwrap_or_default(),
        input: &input,
        output: output.as_ref(),
    })
}

/// The schema of what a tool gives, declared or seen.
pub(crate) fn output_of(tool: &Tool, observed: &Observed) -> Option<Box<RawValue>> {
    let seen = || observed.get(&(tool.id.to_string(), tool.definition.digest.clone()));
    tool.definition.output_schema.clone().or_else(|| seen().map(|seen| raw(&seen.schema)))
}

/// Everything there is, for people and pages.
#[derive(Debug, Serialize)]
pub struct View {
    /// Tools, capabilities and pure operations.
    pub nodes: Vec<Node>,
    /// What ties them together.
    pub edges: Vec<Edge>,
}

/// A tool, a capability or a pure operation.
#[derive(Debug, Serialize)]
pub struct Node {
    /// `server:tool`, the id of a capability, or `code:filter` and the like.
    pub id: String,
    /// What a person calls it.
    pub name: String,
    /// `tool`, `capability` or `operation`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// How much leads to it, from 0 to 1; all together are 1. Operations have none.
    pub importance: f64,
    /// Which community it belongs to; operations belong to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub community: Option<usize>,
    /// Of a capability: which group of capabilities made of much the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
}

/// What ties two of them together.
#[derive(Debug, Serialize)]
pub struct Edge {
    /// What comes first.
    pub from: String,
    /// What comes then.
    pub to: String,
    /// `dependency`, `contains`, `provides` or `sequence`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `observed`, `inferred` or `template`.
    pub source: &'static str,
    /// How often it was seen.
    pub count: u64,
    /// How much it counts.
    pub weight: f64,
    /// Of `provides`: how much of what is required is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<&'static str>,
    /// Of `provides`: what becomes what.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mapping: Vec<Mapping>,
    /// Of `provides`, on a way: what is given and taken.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub schemas: Option<Schemas>,
}

/// What one tool gives and another takes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Schemas {
    /// JSON Schema of the result, declared or seen.
    #[serde(rename = "outputSchema", skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
    /// JSON Schema of the arguments.
    #[serde(rename = "inputSchema")]
    pub input: Box<RawValue>,
}

/// A field of a result that can become an argument.
#[derive(Debug, Serialize)]
pub struct Mapping {
    /// Where it is in the result; empty for all of it.
    pub from: String,
    /// The parameter.
    pub to: String,
    /// How they were matched.
    pub how: &'static str,
}

/// A way from one thing to another.
#[derive(Debug, Serialize)]
pub struct Way {
    /// What it leads through, both ends included.
    pub through: Vec<String>,
    /// What ties each of them to the next.
    pub edges: Vec<Edge>,
    /// The less, the more its edges can be relied on, and the fewer they are.
    pub cost: f64,
}
