//! Renders a structure for Graphviz.

use pml_model::name::truncate_text;
use pml_model::structure::{EdgeBasis, EdgeLink, Node, NodeId, NodeKind, Structure};
use std::collections::{HashMap, HashSet};

use super::tree::{enclosing_loops, nodes_with_predecessor};
use super::words::{arguments, node_title, outcome, piece, provision};

/// Maximum characters of the arguments in a box.
const MAX_ARGUMENTS: usize = 60;

const HEAD: &str = "\
digraph structure {
    rankdir=TB
    node [fontname=\"Helvetica\" fontsize=11 style=filled fillcolor=\"#e8f0fe\" color=\"#3b6fb6\"]
    edge [fontname=\"Helvetica\" fontsize=9]
";

/// A directed graph: boxes for calls, diamonds for decisions, dark bars for fork and join, a cluster around each loop.
/// Solid edges are order, dashed ones data, dotted grey ones possible data.
pub fn render_dot(structure: &Structure) -> String {
    let mut text = HEAD.to_owned();
    let loops = enclosing_loops(structure);
    let mut bodies: HashMap<Option<NodeId>, Vec<&Node>> = HashMap::new();
    for node in &structure.nodes {
        bodies.entry(loops.get(&node.id).copied()).or_default().push(node);
    }
    nodes(&mut text, &mut bodies, None, 1);
    edges(&mut text, structure);
    text.push_str("}\n");
    text
}

fn nodes(
    text: &mut String,
    bodies: &mut HashMap<Option<NodeId>, Vec<&Node>>,
    of: Option<NodeId>,
    depth: usize,
) {
    let indent = "    ".repeat(depth);
    for node in bodies.remove(&of).unwrap_or_default() {
        if matches!(node.kind, NodeKind::Loop { .. }) {
            text.push_str(&format!("{indent}subgraph cluster_{} {{\n", node.id));
            text.push_str(&format!("{indent}    label=loop style=rounded color=\"#3a8a3a\"\n"));
            text.push_str(&format!("{indent}    {}\n", vertex(node)));
            nodes(text, bodies, Some(node.id), depth + 1);
            text.push_str(&format!("{indent}}}\n"));
        } else {
            text.push_str(&format!("{indent}{}\n", vertex(node)));
        }
    }
}

fn vertex(node: &Node) -> String {
    let name = quoted(&format!("{} {}", node.id, node_title(&node.kind)));
    let look = match &node.kind {
        NodeKind::Task { tool, .. } if tool.starts_with("code:") => {
            "shape=box style=\"filled,rounded\" fillcolor=\"#f3f3f3\" color=\"#999999\""
        }
        NodeKind::Task { .. } => "shape=box",
        NodeKind::Capability { .. } => "shape=box peripheries=2",
        NodeKind::Decision { .. } => "shape=diamond fillcolor=\"#fff6dd\" color=\"#b8860b\"",
        NodeKind::Fork { .. } | NodeKind::Join => {
            "shape=box height=0.2 fillcolor=\"#333333\" color=\"#333333\" fontcolor=white"
        }
        NodeKind::Loop { .. } => "shape=hexagon fillcolor=\"#eafaea\" color=\"#3a8a3a\"",
        NodeKind::Try => "shape=box style=\"filled,rounded\" fillcolor=\"#fdeaea\" color=\"#b33a3a\"",
    };
    let below = match &node.kind {
        NodeKind::Task { tool, code, .. } if tool.starts_with("code:") => {
            code.as_deref().map(piece).unwrap_or_default()
        }
        kind => truncate_text(&arguments(kind), MAX_ARGUMENTS),
    };
    let below = if below.is_empty() { below } else { format!("\\n{}", quoted(&below)) };
    format!("{} [label=\"{name}{below}\" {look}]", node.id)
}

fn edges(text: &mut String, structure: &Structure) {
    let known: HashSet<NodeId> = structure.nodes.iter().map(|node| node.id).collect();
    let reached = nodes_with_predecessor(structure);
    for edge in structure.edges.iter().filter(|edge| known.contains(&edge.from) && known.contains(&edge.to)) {
        let look = match &edge.link {
            EdgeLink::Sequence => String::new(),
            EdgeLink::Conditional { outcome: name } => format!(" [label=\"{}\"]", quoted(&outcome(name))),
            EdgeLink::Provides { coverage, basis, around } => {
                let label = quoted(&provision(*coverage, *basis, *around));
                let style = match basis {
                    EdgeBasis::Data => "style=dashed color=\"#3b6fb6\"",
                    EdgeBasis::Schema => "style=dotted color=\"#aaaaaa\" fontcolor=\"#888888\" penwidth=0.7",
                };
                format!(" [label=\"{label}\" {style} constraint=false]")
            }
            // The cluster shows the nesting; this label shows how a turn begins.
            EdgeLink::Contains if !reached.contains(&edge.to) => " [label=\"each turn\"]".to_owned(),
            EdgeLink::Contains => continue,
        };
        text.push_str(&format!("    {} -> {}{look}\n", edge.from, edge.to));
    }
}

/// `text` in double quotes: Graphviz interprets backslash escapes and HTML entities there.
fn quoted(text: &str) -> String {
    text.replace('&', "&amp;").replace('\\', "\\\\").replace('"', "\\\"")
}
