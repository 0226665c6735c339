//! The definition of a capability as a picture: its structure with calls of the same tool as one node, and what was
//! learned of its branches.

use std::collections::{BTreeMap, BTreeSet};

use pml_graph::layout::layered::{LayoutBox, Spacing, layered};
use pml_model::capability::Capability;
use pml_model::learning::LearnedPaths;
use pml_model::structure::{
    Argument, Coverage, DecisionForm, EdgeBasis, EdgeLink, ForkForm, LoopForm, NodeId, NodeKind, Structure,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::grouping::{Group, Grouping, group};
use super::source_text::{SourceSpan, SourceText};

/// Distances between nodes, in pixels.
const SPACING: Spacing = Spacing { between: 36.0, layers: 54.0, padding: 18.0 };
/// Height of a node, in pixels: a line for the name and one for the figures.
const NODE_HEIGHT: f64 = 46.0;
/// Height of the heading of a box, in pixels.
const HEADING: f64 = 26.0;
/// The longest shown expression, in characters.
const LABEL_CHARACTERS: usize = 36;

/// The definition of a capability, with positions in pixels.
#[derive(Debug, Serialize, ToSchema)]
pub struct Definition {
    /// The nodes; a box comes before what is inside of it only by chance.
    pub nodes: Vec<DefinitionNode>,
    /// The edges between nodes.
    pub edges: Vec<DefinitionEdge>,
    /// The source, as shown.
    pub source: String,
    /// `ts` or `json`.
    pub language: &'static str,
    /// The number of runs that the shares and the coverage are of.
    pub runs: u64,
    /// Width of the picture.
    pub width: f64,
    /// Height of the picture.
    pub height: f64,
}

/// A tool, a capability, an operation or a control structure.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionNode {
    /// The id: the tool, `capability:<name>`, `input`, or the id of the first node.
    pub id: String,
    /// What it is.
    pub kind: DefinitionKind,
    /// The text to show.
    pub label: String,
    /// The complete expression or operation, if `label` is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// `server:tool`, for tools and operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The places in the program.
    pub sites: Vec<DefinitionSite>,
    /// The number of places.
    pub count: usize,
    /// The share of the runs that reached it, from 0 to 1; `None` if nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// Whether the usual path goes through it.
    pub usual: bool,
    /// Distance from the left.
    pub x: f64,
    /// Distance from the top.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// The id of the box that it is inside of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// The kinds of shown nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DefinitionKind {
    /// A tool.
    Tool,
    /// A capability.
    Capability,
    /// A decision, or a `try`.
    Branch,
    /// A loop.
    Loop,
    /// What runs in parallel.
    Parallel,
    /// A pure operation.
    Operation,
    /// The arguments of the capability.
    Input,
}

/// One place of a node in the program.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionSite {
    /// The node of the structure.
    #[schema(value_type = String)]
    pub node_id: NodeId,
    /// Where it is in the source; `None` if the stored source has no place for it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = SourceSpan)]
    pub span: Option<SourceSpan>,
}

/// A relation between two nodes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionEdge {
    /// The id of the first node.
    pub from: String,
    /// The id of the second node.
    pub to: String,
    /// The meaning.
    pub kind: DefinitionEdgeKind,
    /// The outcome of a decision, or the names of parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The share of the decision's runs with this outcome, from 0 to 1; `None` if it never ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// How much of the required input is provided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub coverage: Option<Coverage>,
    /// Whether the data could flow by the declared schemas, and the program does not pass it on.
    pub possible: bool,
    /// Whether it leads upwards.
    pub upwards: bool,
    /// The line from the first node to the second; empty if nesting shows the relation.
    #[schema(value_type = Vec<Vec<f64>>)]
    pub points: Vec<(f64, f64)>,
}

/// The meanings of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DefinitionEdgeKind {
    /// The second comes after the first.
    Dependency,
    /// The second is given a result of the first.
    Provides,
    /// The second is inside of the first.
    Contains,
}

/// The definition of a capability.
pub fn definition(capability: &Capability) -> Definition {
    let structure = &capability.procedure.static_structure;
    let source = SourceText::of(&capability.procedure.source);
    let grouping = group(structure);
    let learning = &capability.learning;
    let runs: u64 = learning.paths.iter().map(|path| path.count).sum();
    let mut nodes: Vec<DefinitionNode> = grouping
        .groups
        .iter()
        .map(|group| DefinitionNode {
            parent: group.parent.map(|outer| grouping.groups[outer].id.clone()),
            ..shown(group, structure, &source, learning)
        })
        .collect();
    let (mut edges, mut ends) = edges(structure, &grouping, learning);
    add_input(&grouping, &mut nodes, &mut edges, &mut ends);
    let (width, height) = place(&grouping, &mut nodes, &mut edges, &ends);
    Definition { nodes, edges, language: source.language, source: source.text, runs, width, height }
}

fn shown(
    group: &Group<'_>,
    structure: &Structure,
    source: &SourceText,
    learning: &LearnedPaths,
) -> DefinitionNode {
    let (kind, text, tool) = described(&group.sites[0].kind);
    let label = pml_model::name::truncate_text(&text, LABEL_CHARACTERS);
    let is_site = |id: &NodeId| group.sites.iter().any(|site| site.id == *id);
    let runs: u64 = learning.paths.iter().map(|path| path.count).sum();
    let reached = match (&group.sites[0].kind, group.sites[0].id) {
        (NodeKind::Try, id) => {
            runs_through(learning, |node| *node == id || is_protected(structure, id, *node))
        }
        _ => runs_through(learning, is_site),
    };
    // Operations are reported for their first occurrences only, so that none at all says nothing.
    let unknown = runs == 0 || (kind == DefinitionKind::Operation && reached == 0);
    let sites: Vec<DefinitionSite> = group
        .sites
        .iter()
        .map(|site| DefinitionSite { node_id: site.id, span: source.span(site.at) })
        .collect();
    DefinitionNode {
        id: group.id.clone(),
        kind,
        detail: (label != text).then_some(text),
        label,
        tool,
        count: sites.len(),
        sites,
        coverage: (!unknown).then(|| reached as f64 / runs as f64),
        usual: learning.dominant_path.iter().any(is_site),
        x: 0.0,
        y: 0.0,
        width: 0.0,
        height: 0.0,
        parent: None,
    }
}

fn described(kind: &NodeKind) -> (DefinitionKind, String, Option<String>) {
    match kind {
        NodeKind::Task { tool, .. } if kind.is_call() => {
            (DefinitionKind::Tool, tool.clone(), Some(tool.clone()))
        }
        NodeKind::Task { tool, .. } => (
            DefinitionKind::Operation,
            tool.strip_prefix("code:").unwrap_or(tool).to_owned(),
            Some(tool.clone()),
        ),
        NodeKind::Capability { capability, .. } => (DefinitionKind::Capability, capability.clone(), None),
        NodeKind::Decision { condition, form } => {
            let word = match form {
                DecisionForm::If | DecisionForm::Ternary => "if",
                DecisionForm::Switch => "switch",
                DecisionForm::And => "and",
                DecisionForm::Or => "or",
                DecisionForm::Nullish => "unless null",
                DecisionForm::Optional => "if there is",
            };
            (DefinitionKind::Branch, format!("{word} {condition}"), None)
        }
        NodeKind::Fork { form } => {
            let word = match form {
                ForkForm::All => "parallel: all",
                ForkForm::AllSettled => "parallel: all settled",
                ForkForm::Race => "parallel: first to end",
                ForkForm::Any => "parallel: first to succeed",
                ForkForm::Layer => "parallel: layer",
            };
            (DefinitionKind::Parallel, word.to_owned(), None)
        }
        NodeKind::Join => (DefinitionKind::Parallel, "join".to_owned(), None),
        NodeKind::Loop { over, form } => {
            let word = match form {
                LoopForm::For | LoopForm::ForOf | LoopForm::ForIn | LoopForm::ForAwait => "for each",
                LoopForm::While | LoopForm::DoWhile => "while",
                LoopForm::Callback => "for each of",
                LoopForm::Recursion => "recursion",
            };
            (DefinitionKind::Loop, format!("{word} {over}").trim_end().to_owned(), None)
        }
        NodeKind::Try => (DefinitionKind::Branch, "try".to_owned(), None),
    }
}

/// The edges without lines, and the places of their ends.
fn edges(
    structure: &Structure,
    grouping: &Grouping<'_>,
    learning: &LearnedPaths,
) -> (Vec<DefinitionEdge>, Vec<(usize, usize)>) {
    type Key = (usize, usize, DefinitionEdgeKind, bool, Option<String>);
    let mut found: BTreeMap<Key, (Option<f64>, Option<Coverage>)> = BTreeMap::new();
    for edge in &structure.edges {
        let (Some(&from), Some(&to)) = (grouping.of_node.get(&edge.from), grouping.of_node.get(&edge.to))
        else {
            continue;
        };
        if from == to || is_inside(grouping, from, to) || is_inside(grouping, to, from) {
            continue;
        }
        let (key, value) = match &edge.link {
            EdgeLink::Contains => continue,
            EdgeLink::Sequence => ((from, to, DefinitionEdgeKind::Dependency, false, None), (None, None)),
            EdgeLink::Conditional { outcome } => (
                (from, to, DefinitionEdgeKind::Dependency, false, Some(outcome.clone())),
                (share(learning, structure, edge.from, outcome), None),
            ),
            EdgeLink::Provides { coverage, basis, .. } => (
                (from, to, DefinitionEdgeKind::Provides, *basis == EdgeBasis::Schema, None),
                (None, Some(*coverage)),
            ),
        };
        let known = found.entry(key).or_insert(value);
        // `Strict` is the least in order.
        known.1 = known.1.min(value.1).or(value.1);
    }
    for &(outer, inner) in grouping.contained.iter().filter(|(outer, inner)| outer != inner) {
        found.insert((outer, inner, DefinitionEdgeKind::Contains, false, None), (None, None));
    }
    let provided: BTreeSet<(usize, usize)> = found
        .keys()
        .filter(|key| key.2 == DefinitionEdgeKind::Provides && !key.3)
        .map(|key| (key.0, key.1))
        .collect();
    // Data that is passed on says the order as well.
    found.retain(|key, _| {
        let said = provided.contains(&(key.0, key.1));
        let is_order = key.2 == DefinitionEdgeKind::Dependency && key.4.is_none();
        !(said && (is_order || key.3))
    });
    let edge = |((from, to, kind, possible, label), (share, coverage)): (Key, _)| {
        let id = |place: usize| grouping.groups[place].id.clone();
        let shown = DefinitionEdge {
            from: id(from),
            to: id(to),
            kind,
            label,
            share,
            coverage,
            possible,
            upwards: false,
            points: Vec::new(),
        };
        (shown, (from, to))
    };
    found.into_iter().map(edge).unzip()
}

/// Whether one group is in the box of the other, at any depth.
fn is_inside(grouping: &Grouping<'_>, inner: usize, outer: usize) -> bool {
    let mut at = grouping.groups[inner].parent;
    // No chain is longer than the number of groups.
    for _ in 0..grouping.groups.len() {
        match at {
            Some(place) if place == outer => return true,
            Some(place) => at = grouping.groups[place].parent,
            None => return false,
        }
    }
    false
}

/// How often a decision had this outcome, as a share of the runs that reached it.
fn share(learning: &LearnedPaths, structure: &Structure, decision: NodeId, outcome: &str) -> Option<f64> {
    let (count, all) = if outcome == "error" {
        // A path names a `try` only if its handler was entered; that it was reached is seen by what it protects.
        let is_reached = |node: &NodeId| *node == decision || is_protected(structure, decision, *node);
        (runs_through(learning, |node| *node == decision), runs_through(learning, is_reached))
    } else {
        let stats = learning.decision_stats.iter().find(|stats| stats.node_id == decision)?;
        let count = stats.outcomes.get(outcome).map_or(0, |outcome| outcome.count);
        (count, stats.outcomes.values().map(|outcome| outcome.count).sum())
    };
    (all > 0).then(|| count as f64 / all as f64)
}

/// Whether a node comes directly after a `try`, not in its handler.
fn is_protected(structure: &Structure, of_try: NodeId, node: NodeId) -> bool {
    let follows = |link: &EdgeLink| !matches!(link, EdgeLink::Conditional { outcome } if outcome == "error");
    structure.edges.iter().any(|edge| edge.from == of_try && edge.to == node && follows(&edge.link))
}

/// The number of runs whose path has such a node.
fn runs_through(learning: &LearnedPaths, is_wanted: impl Fn(&NodeId) -> bool) -> u64 {
    let paths = learning.paths.iter().filter(|path| path.path.iter().any(&is_wanted));
    paths.map(|path| path.count).sum()
}

/// Adds the parameters as a node of their own, and edges to the calls that they go into.
fn add_input(
    grouping: &Grouping<'_>,
    nodes: &mut Vec<DefinitionNode>,
    edges: &mut Vec<DefinitionEdge>,
    ends: &mut Vec<(usize, usize)>,
) {
    let mut used: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    for (place, group) in grouping.groups.iter().enumerate() {
        for arguments in group.sites.iter().filter_map(|site| site.kind.arguments()) {
            arguments.visit_leaves(&mut |leaf| {
                if let Argument::Parameter { name, .. } = leaf {
                    used.entry(place).or_default().insert(name);
                }
            });
        }
    }
    if used.is_empty() {
        return;
    }
    let input = nodes.len();
    nodes.push(DefinitionNode {
        id: "input".to_owned(),
        kind: DefinitionKind::Input,
        label: "input".to_owned(),
        detail: None,
        tool: None,
        sites: Vec::new(),
        count: 0,
        coverage: None,
        usual: false,
        x: 0.0,
        y: 0.0,
        width: 0.0,
        height: 0.0,
        parent: None,
    });
    for (place, names) in used {
        let names: Vec<&str> =
            names.into_iter().map(|name| if name.is_empty() { "args" } else { name }).collect();
        edges.push(DefinitionEdge {
            from: "input".to_owned(),
            to: grouping.groups[place].id.clone(),
            kind: DefinitionEdgeKind::Provides,
            label: Some(pml_model::name::truncate_text(&names.join(", "), LABEL_CHARACTERS)),
            share: None,
            coverage: None,
            possible: false,
            upwards: false,
            points: Vec::new(),
        });
        ends.push((input, place));
    }
}

/// Gives nodes and edges their places; returns the size of the picture.
fn place(
    grouping: &Grouping<'_>,
    nodes: &mut [DefinitionNode],
    edges: &mut [DefinitionEdge],
    ends: &[(usize, usize)],
) -> (f64, f64) {
    let parent = |place: usize| grouping.groups.get(place).and_then(|group| group.parent);
    let is_box: BTreeSet<usize> = (0..nodes.len()).filter_map(parent).collect();
    let boxes: Vec<LayoutBox> = nodes
        .iter()
        .enumerate()
        .map(|(place, node)| LayoutBox {
            width: width(node),
            height: if is_box.contains(&place) { HEADING } else { NODE_HEIGHT },
            parent: parent(place),
        })
        .collect();
    // What is only possible must not bend what the program does.
    let drawn: Vec<usize> = (0..edges.len()).filter(|edge| !edges[*edge].possible).collect();
    let lines: Vec<(usize, usize)> = drawn.iter().map(|edge| ends[*edge]).collect();
    let layout = layered(&boxes, &lines, &SPACING);
    for (node, place) in nodes.iter_mut().zip(&layout.boxes) {
        (node.x, node.y) = (rounded(place.x), rounded(place.y));
        (node.width, node.height) = (rounded(place.width), rounded(place.height));
    }
    for ((edge, route), upwards) in drawn.into_iter().zip(layout.routes).zip(layout.upwards) {
        edges[edge].points = route.into_iter().map(|(x, y)| (rounded(x), rounded(y))).collect();
        edges[edge].upwards = upwards;
    }
    (rounded(layout.width), rounded(layout.height))
}

/// Half pixels are enough, and short numbers make short replies.
fn rounded(value: f64) -> f64 {
    (value * 2.0).round() / 2.0
}

/// Width of a node: its text in a font of 13 px, and room for an icon and a count.
fn width(node: &DefinitionNode) -> f64 {
    let characters = node.label.chars().count() as f64;
    (characters * 7.4 + 48.0).clamp(124.0, 320.0)
}
