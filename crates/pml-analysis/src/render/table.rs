//! Renders a structure for a terminal: program order, nesting by indentation, and data flow.

use std::collections::HashMap;

use pml_model::name::truncate_text;
use pml_model::structure::{EdgeBasis, EdgeLink, Node, NodeId, NodeKind, Position, Structure};
use serde_json::Value;

use super::report::{display_width, truncate_to_width};
use super::tree::{NestedNode, nest_structure};
use super::words::{arguments, members, node_title, one_line, outcomes, piece, provision, steps};
use super::{AnalysisView, ComplaintReport, NamedSource};
use crate::{Complaint, Parameters, Permissions, Remark, Severity};

/// Minimum width in columns, whatever the terminal reports.
const MIN_WIDTH: usize = 40;
/// Maximum nesting shown by indentation.
const MAX_INDENT: usize = 20;
/// Maximum number of sources named for one consumer.
const MAX_SOURCES: usize = 12;

/// Overview of a program in lines of about `width` columns. Complaints refer to `file`.
pub fn render_table(shown: &AnalysisView<'_>, file: &NamedSource<'_>, width: usize) -> String {
    let width = width.max(MIN_WIDTH);
    let mut sections = vec![structure(shown.structure, width)];
    sections.extend(data_flow(shown.structure));
    sections.extend(parameters(shown.parameters, width));
    sections.push(permissions(shown.permissions, width));
    sections.extend(complaints(shown.complaints, file));
    sections.join("\n\n")
}

fn structure(structure: &Structure, width: usize) -> String {
    if structure.nodes.is_empty() {
        return "STRUCTURE\n  calls nothing".to_owned();
    }
    let gutter = structure.nodes.iter().map(|node| place(node.at).len()).max().unwrap_or(0);
    let mut lines = TableText { structure, gutter, width, text: "STRUCTURE".to_owned() };
    lines.items(&nest_structure(structure).top, 0);
    lines.text
}

fn place(at: Position) -> String {
    if at.line == 0 { String::new() } else { format!("{}:{}", at.line, at.column) }
}

struct TableText<'a> {
    structure: &'a Structure,
    gutter: usize,
    width: usize,
    text: String,
}

impl TableText<'_> {
    fn items(&mut self, items: &[NestedNode], depth: usize) {
        for item in items {
            self.node(item, depth);
            self.items(&item.inside, depth + 1);
            for (name, inside) in &item.arms {
                self.line("", depth + 1, &format!("{}:", outcomes(name)));
                self.items(inside, depth + 2);
            }
        }
    }

    fn node(&mut self, item: &NestedNode, depth: usize) {
        let node = &self.structure.nodes[item.node];
        let place = place(node.at);
        let mut text = format!("{} {}", node.id, node_title(&node.kind));
        if let Some(name) = &item.goes_on_with {
            text.push_str(&format!("  (goes on when {})", outcomes(name)));
        }
        if !node.branches.is_empty() {
            text.push_str(&format!("  [{}]", piece(&node.branches.join(" | "))));
        }
        let given = arguments(&node.kind);
        let room = self.room(depth);
        let whole = format!("{text} {given}{}", source(node));
        if display_width(&whole) <= room {
            return self.line(&place, depth, whole.trim_end());
        }
        self.line(&place, depth, &format!("{text}{}", source(node)));
        members(&node.kind).iter().for_each(|member| self.line("", depth + 2, member));
    }

    fn room(&self, depth: usize) -> usize {
        self.width.saturating_sub(self.gutter + 4 + 2 * depth.min(MAX_INDENT)).max(MIN_WIDTH / 2)
    }

    fn line(&mut self, place: &str, depth: usize, text: &str) {
        let indent = 2 * depth.min(MAX_INDENT);
        let text = truncate_to_width(text, self.room(depth));
        let line = format!("  {place:<gutter$}  {:indent$}{text}", "", gutter = self.gutter);
        self.text.push('\n');
        self.text.push_str(line.trim_end());
    }
}

/// Source text of an operation or a code task.
fn source(node: &Node) -> String {
    match &node.kind {
        NodeKind::Task { code: Some(code), .. } => format!("  {}", piece(code)),
        _ => String::new(),
    }
}

/// Results with their consumers, and those that could have some by their schemas alone.
fn data_flow(structure: &Structure) -> Option<String> {
    let mut into: HashMap<(NodeId, EdgeBasis), Vec<String>> = HashMap::new();
    for edge in &structure.edges {
        if let EdgeLink::Provides { coverage, basis, around } = edge.link {
            // The basis is printed once, before all of them.
            let source = format!("{} ({})", edge.from, provision(coverage, EdgeBasis::Data, around));
            into.entry((edge.to, basis)).or_default().push(source);
        }
    }
    let mut text = String::new();
    for node in &structure.nodes {
        for (basis, words) in [(EdgeBasis::Data, "<-"), (EdgeBasis::Schema, "could take")] {
            if let Some(sources) = into.get(&(node.id, basis)) {
                text.push_str(&format!("\n  {} {words} {}", node.id, some(sources)));
            }
        }
    }
    (!text.is_empty()).then(|| format!("DATA FLOW{text}"))
}

fn some(sources: &[String]) -> String {
    match sources.len().saturating_sub(MAX_SOURCES) {
        0 => sources.join(", "),
        more => format!("{}, … {more} more", sources[..MAX_SOURCES].join(", ")),
    }
}

fn parameters(parameters: &Parameters, width: usize) -> Option<String> {
    let properties =
        parameters.schema["properties"].as_object().filter(|properties| !properties.is_empty())?;
    let required = |name: &str| {
        let required = parameters.schema["required"].as_array();
        required.is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name)))
    };
    let rows: Vec<[String; 4]> = properties
        .iter()
        .map(|(name, schema)| {
            let need = match &schema["default"] {
                Value::Null if required(name) => "required".to_owned(),
                Value::Null => "optional".to_owned(),
                default => format!("default {}", truncate_text(&one_line(&default.to_string()), 32)),
            };
            [truncate_text(&one_line(name), 32), type_of(schema), need, fills(parameters, name)]
        })
        .collect();
    let widest = |column: usize| rows.iter().map(|row| display_width(&row[column])).max().unwrap_or(0);
    let widths = [widest(0), widest(1), widest(2)];
    let mut text = "PARAMETERS".to_owned();
    for row in &rows {
        let mut line = "  ".to_owned();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell}{}  ", " ".repeat(width - display_width(cell))));
        }
        line.push_str(&row[3]);
        text.push('\n');
        text.push_str(&truncate_to_width(line.trim_end(), width));
    }
    Some(text)
}

fn type_of(schema: &Value) -> String {
    let text = match (&schema["enum"], &schema["type"]) {
        (Value::Array(values), _) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | "),
        (_, Value::Array(types)) => types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        (_, Value::String(name)) if name == "array" && schema["items"]["type"].is_string() => {
            format!("{}[]", type_of(&schema["items"]))
        }
        (_, Value::String(name)) => name.clone(),
        _ => "any".to_owned(),
    };
    truncate_text(&one_line(&text), 32)
}

/// The arguments that a lifted literal fills.
fn fills(parameters: &Parameters, name: &str) -> String {
    let Some(literal) = parameters.literals.iter().find(|literal| literal.name == name) else {
        return String::new();
    };
    let places: Vec<String> =
        literal.fills.iter().map(|filled| format!("{}{}", filled.node, steps(&filled.path))).collect();
    if places.is_empty() { String::new() } else { format!("for {}", places.join(", ")) }
}

fn permissions(permissions: &Permissions, width: usize) -> String {
    let mut text = "PERMISSIONS".to_owned();
    if permissions.declared.is_empty() && permissions.capabilities.is_empty() && !permissions.is_opaque() {
        text.push_str("\n  needs none");
    }
    wrapped(&mut text, "calls", permissions.declared.iter().map(String::as_str), width);
    wrapped(&mut text, "capabilities", permissions.capabilities.iter().map(String::as_str), width);
    remarks(&mut text, "opaque", &permissions.opaque);
    remarks(&mut text, "not there", &permissions.ambient);
    text
}

fn wrapped<'a>(text: &mut String, title: &str, names: impl Iterator<Item = &'a str>, limit: usize) {
    let mut line = String::new();
    for name in names {
        let name = one_line(name);
        if line.is_empty() {
            line = format!("  {title:<13} {name}");
        } else if display_width(&line) + display_width(&name) + 3 > limit {
            text.push_str(&format!("\n{line},"));
            line = format!("  {:<13} {name}", "");
        } else {
            line.push_str(&format!(", {name}"));
        }
    }
    if !line.is_empty() {
        text.push_str(&format!("\n{line}"));
    }
}

fn remarks(text: &mut String, title: &str, remarks: &[Remark]) {
    for (index, remark) in remarks.iter().enumerate() {
        let title = if index == 0 { title } else { "" };
        text.push_str(&format!("\n  {title:<13} {} at {}", one_line(&remark.what), place(remark.at)));
    }
}

fn complaints(complaints: &[Complaint], file: &NamedSource<'_>) -> Option<String> {
    if complaints.is_empty() {
        return None;
    }
    let mut text = "COMPLAINTS".to_owned();
    for complaint in complaints {
        text.push_str(&format!("\n{}\n", ComplaintReport::from(complaint).render(file)));
    }
    text.push_str(&format!("\n{}", summary(complaints)));
    Some(text)
}

/// Number of complaints of each severity.
fn summary(complaints: &[Complaint]) -> String {
    let kinds = [
        (Severity::Error, "error", "errors"),
        (Severity::Warning, "warning", "warnings"),
        (Severity::Note, "note", "notes"),
    ];
    let counted = kinds.into_iter().filter_map(|(severity, one, many)| {
        match complaints.iter().filter(|complaint| complaint.severity == severity).count() {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {many}")),
        }
    });
    counted.collect::<Vec<_>>().join(", ")
}
