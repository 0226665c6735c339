//! Renders a structure as a Mermaid flowchart.
//!
//! Node ids are generated and harmless; every other text goes through [`label`], because Mermaid interprets quotes,
//! entities, Markdown and icons in labels.

use pml_model::name::truncate_text;
use pml_model::structure::{EdgeBasis, EdgeLink, Node, NodeId, NodeKind, Structure};
use std::collections::HashMap;

use super::tree::{enclosing_loops, nodes_with_predecessor};
use super::words::{arguments, node_title, outcome, piece, provision};

/// Maximum characters of the arguments in a box.
const MAX_ARGUMENTS: usize = 60;

const STYLES: &str = "    classDef tool fill:#e8f0fe,stroke:#3b6fb6,color:#111
    classDef operation fill:#f3f3f3,stroke:#999,color:#111
    classDef decision fill:#fff6dd,stroke:#b8860b,color:#111
    classDef bar fill:#333,stroke:#333,color:#fff
    classDef repeat fill:#eafaea,stroke:#3a8a3a,color:#111
    classDef guard fill:#fdeaea,stroke:#b33a3a,color:#111
";

/// A flowchart: boxes for calls, rhombi for decisions, dark bars for fork and join, a frame around each loop. Solid
/// arrows are order, dotted ones data, thin ones possible data.
pub fn render_mermaid(structure: &Structure) -> String {
    let mut text = "flowchart TD\n".to_owned();
    let loops = enclosing_loops(structure);
    let mut bodies: HashMap<Option<NodeId>, Vec<&Node>> = HashMap::new();
    for node in &structure.nodes {
        bodies.entry(loops.get(&node.id).copied()).or_default().push(node);
    }
    nodes(&mut text, &mut bodies, None, 1);
    edges(&mut text, structure);
    text.push_str(STYLES);
    text
}

/// Writes the nodes directly inside `of`; a loop is a frame with its head and its body.
fn nodes(
    text: &mut String,
    bodies: &mut HashMap<Option<NodeId>, Vec<&Node>>,
    of: Option<NodeId>,
    depth: usize,
) {
    let indent = "    ".repeat(depth);
    for node in bodies.remove(&of).unwrap_or_default() {
        if matches!(node.kind, NodeKind::Loop { .. }) {
            text.push_str(&format!("{indent}subgraph {}_body [\"{}\"]\n", node.id, label("loop")));
            text.push_str(&format!("{indent}    {}\n", shape(node)));
            nodes(text, bodies, Some(node.id), depth + 1);
            text.push_str(&format!("{indent}end\n"));
        } else {
            text.push_str(&format!("{indent}{}\n", shape(node)));
        }
    }
}

fn shape(node: &Node) -> String {
    let id = node.id;
    let name = label(&format!("{id} {}", node_title(&node.kind)));
    match &node.kind {
        NodeKind::Task { tool, code, .. } if tool.starts_with("code:") => {
            format!(
                "{id}([\"{name}{}\"]):::operation",
                below(&code.as_deref().map(piece).unwrap_or_default())
            )
        }
        NodeKind::Task { .. } => {
            format!("{id}[\"{name}{}\"]:::tool", below(&truncate_text(&arguments(&node.kind), MAX_ARGUMENTS)))
        }
        NodeKind::Capability { .. } => {
            format!(
                "{id}[[\"{name}{}\"]]:::tool",
                below(&truncate_text(&arguments(&node.kind), MAX_ARGUMENTS))
            )
        }
        NodeKind::Decision { .. } => format!("{id}{{\"{name}\"}}:::decision"),
        NodeKind::Fork { .. } | NodeKind::Join => format!("{id}[\"{name}\"]:::bar"),
        NodeKind::Loop { .. } => format!("{id}{{{{\"{name}\"}}}}:::repeat"),
        NodeKind::Try => format!("{id}([\"{name}\"]):::guard"),
    }
}

/// Second line of a label.
fn below(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<br/>{}", label(text)) }
}

fn edges(text: &mut String, structure: &Structure) {
    let known: std::collections::HashSet<NodeId> = structure.nodes.iter().map(|node| node.id).collect();
    let reached = nodes_with_predecessor(structure);
    let mut thin: Vec<String> = Vec::new();
    let mut count = 0;
    for edge in structure.edges.iter().filter(|edge| known.contains(&edge.from) && known.contains(&edge.to)) {
        let arrow = match &edge.link {
            EdgeLink::Sequence => "-->".to_owned(),
            EdgeLink::Conditional { outcome: name } => format!("-->|\"{}\"|", label(&outcome(name))),
            EdgeLink::Provides { coverage, basis, around } => {
                if *basis == EdgeBasis::Schema {
                    thin.push(count.to_string());
                }
                format!("-.->|\"{}\"|", label(&provision(*coverage, *basis, *around)))
            }
            // The frame shows the nesting; this label shows how a turn begins.
            EdgeLink::Contains if !reached.contains(&edge.to) => "-->|each turn|".to_owned(),
            EdgeLink::Contains => continue,
        };
        text.push_str(&format!("    {} {arrow} {}\n", edge.from, edge.to));
        count += 1;
    }
    if !thin.is_empty() {
        text.push_str(&format!("    linkStyle {} stroke:#aaa,stroke-width:1px,color:#888\n", thin.join(",")));
    }
}

/// `text` escaped for Mermaid: everything that Mermaid, Markdown or HTML would interpret becomes a character code.
fn label(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        if (before, c) == ('$', '$') {
            // Two dollar signs begin a formula even as character codes, so a zero-width space separates them.
            out.push_str("#8203;");
        }
        before = c;
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | ',' | '.' | ':' | '/' | '=' | '?' | '!' | '(' | ')' => {
                out.push(c);
            }
            c if c.is_ascii() => out.push_str(&format!("#{};", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}
