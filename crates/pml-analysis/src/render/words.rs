//! Short one-line descriptions of nodes and arguments, safe to print.

use pml_model::name::{is_plain, printable, truncate_text};
use pml_model::structure::{
    Argument, ArgumentField, Coverage, DecisionForm, EdgeBasis, ForkForm, LoopForm, NodeId, NodeKind,
    PathStep,
};
use serde_json::Value;

/// Maximum characters of a literal.
const MAX_LITERAL: usize = 40;
/// Maximum characters of a piece of source.
const MAX_PIECE: usize = 60;
/// Maximum number of members or items shown; the rest is counted.
const MAX_MEMBERS: usize = 12;
/// Maximum depth of arguments shown.
const MAX_DEPTH: usize = 8;

/// Title of a node, without its arguments.
pub(super) fn node_title(kind: &NodeKind) -> String {
    match kind {
        NodeKind::Task { tool, .. } => one_line(tool),
        NodeKind::Capability { capability, .. } => format!("capability {}", one_line(capability)),
        NodeKind::Decision { condition, form } => decision(&piece(condition), *form),
        NodeKind::Fork { form } => format!("fork {}", fork(*form)).trim_end().to_owned(),
        NodeKind::Join => "join".to_owned(),
        NodeKind::Loop { over, form } => repetition(&piece(over), *form),
        NodeKind::Try => "try".to_owned(),
    }
}

fn decision(condition: &str, form: DecisionForm) -> String {
    match form {
        DecisionForm::If => format!("if {condition}"),
        DecisionForm::Ternary => format!("{condition} ?"),
        DecisionForm::Switch => format!("switch {condition}"),
        DecisionForm::And => format!("{condition} &&"),
        DecisionForm::Or => format!("{condition} ||"),
        // The condition of these forms tells the whole test.
        DecisionForm::Nullish | DecisionForm::Optional => format!("when {condition}"),
    }
}

fn fork(form: ForkForm) -> &'static str {
    match form {
        ForkForm::All => "Promise.all",
        ForkForm::AllSettled => "Promise.allSettled",
        ForkForm::Race => "Promise.race",
        ForkForm::Any => "Promise.any",
        ForkForm::Layer => "",
    }
}

fn repetition(over: &str, form: LoopForm) -> String {
    match form {
        LoopForm::For => format!("for {over}"),
        LoopForm::While => format!("while {over}"),
        LoopForm::DoWhile => format!("do while {over}"),
        LoopForm::ForOf => format!("for each of {over}"),
        LoopForm::ForIn => format!("for each key of {over}"),
        LoopForm::ForAwait => format!("for await each of {over}"),
        LoopForm::Callback => format!("callback for each of {over}"),
        LoopForm::Recursion => format!("recursion {over}"),
    }
}

/// Arguments of a node in short form; empty when there are none.
pub(super) fn arguments(kind: &NodeKind) -> String {
    match kind.arguments() {
        None => String::new(),
        Some(Argument::Object { fields, spreads }) if fields.is_empty() && spreads.is_empty() => {
            String::new()
        }
        Some(_) if is_operation(kind) => members(kind).join(", "),
        Some(other) => compact(other, 0),
    }
}

/// Members of a node's arguments, one text each; a single text when they are not an object.
pub(super) fn members(kind: &NodeKind) -> Vec<String> {
    match kind.arguments() {
        None => Vec::new(),
        // The inputs of an operation have no names beyond its source text.
        Some(Argument::Object { fields, .. }) if is_operation(kind) => {
            fields.iter().map(|field| compact(&field.value, 1)).collect()
        }
        Some(Argument::Object { fields, spreads }) => object_members(fields, spreads, 0).collect(),
        Some(other) => vec![compact(other, 0)],
    }
}

/// Whether the node is an operation of a program; the arguments of a code task of a DAG document have names.
fn is_operation(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::Task { tool, .. } if tool.starts_with("code:") && tool != "code:program")
}

fn object_members<'a>(
    fields: &'a [ArgumentField],
    spreads: &'a [Argument],
    depth: usize,
) -> impl Iterator<Item = String> + 'a {
    let spread = spreads.iter().map(move |spread| format!("...{}", compact(spread, depth + 1)));
    spread.chain(
        fields.iter().map(move |field| format!("{}: {}", key(&field.name), compact(&field.value, depth + 1))),
    )
}

fn compact(argument: &Argument, depth: usize) -> String {
    if depth > MAX_DEPTH {
        return "…".to_owned();
    }
    match argument {
        Argument::Literal { value } => literal(value),
        Argument::Reference { node, path } => format!("{node}{}", steps(path)),
        Argument::Parameter { name, path } if name.is_empty() => format!("args{}", steps(path)),
        Argument::Parameter { name, path } => format!("args{}{}", step_into(name), steps(path)),
        Argument::Item { of, r#loop, path } => {
            let whole = match **of {
                Argument::Reference { .. } | Argument::Parameter { .. } | Argument::Item { .. } => {
                    compact(of, depth + 1)
                }
                _ => format!("({})", compact(of, depth + 1)),
            };
            format!("{whole}[{}]{}", r#loop, steps(path))
        }
        Argument::Template { parts } => {
            let parts: String = parts.iter().map(|part| template_part(part, depth + 1)).collect();
            format!("`{parts}`")
        }
        Argument::Expression { source, reads } => expression(source, reads, depth),
        Argument::Object { fields, spreads } => {
            bracketed('{', object_members(fields, spreads, depth), fields.len() + spreads.len(), '}')
        }
        Argument::Array { items } => {
            bracketed('[', items.iter().map(|item| compact(item, depth + 1)), items.len(), ']')
        }
    }
}

fn bracketed(open: char, inside: impl Iterator<Item = String>, count: usize, close: char) -> String {
    let mut shown: Vec<String> = inside.take(MAX_MEMBERS).collect();
    if count > MAX_MEMBERS {
        shown.push(format!("… {} more", count - MAX_MEMBERS));
    }
    format!("{open}{}{close}", shown.join(", "))
}

fn expression(source: &str, reads: &[Argument], depth: usize) -> String {
    let mut from: Vec<String> = Vec::new();
    for read in reads {
        let read = compact(read, depth + 1);
        if !from.contains(&read) {
            from.push(read);
        }
    }
    let source = piece(source);
    match from.as_slice() {
        [] => source,
        // `n1.items` computed from `n1.items` would repeat itself.
        [only] if *only == source => source,
        _ => format!("{source} (from {})", bare(&from)),
    }
}

fn bare(from: &[String]) -> String {
    let more = from.len().saturating_sub(MAX_MEMBERS);
    let shown = from[..from.len() - more].join(", ");
    if more > 0 { format!("{shown}, … {more} more") } else { shown }
}

fn template_part(part: &Argument, depth: usize) -> String {
    match part {
        Argument::Literal { value: Value::String(text) } => {
            let text: String = text.chars().flat_map(visible).collect();
            truncate_text(&text, MAX_LITERAL)
        }
        other => format!("${{{}}}", compact(other, depth)),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => {
            // A JSON string escapes line breaks and quotes already.
            let short = printable(&Value::from(truncate_text(text, MAX_LITERAL)).to_string());
            let length = text.chars().count();
            if length > MAX_LITERAL { format!("{short} ({length} characters)") } else { short }
        }
        Value::Array(_) | Value::Object(_) => truncate_text(&printable(&value.to_string()), MAX_LITERAL),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A path as it would be written.
pub(super) fn steps(path: &[PathStep]) -> String {
    path.iter()
        .map(|step| match step {
            PathStep::Index(index) => format!("[{index}]"),
            PathStep::Key(key) => step_into(key),
            PathStep::Any => "[*]".to_owned(),
        })
        .collect()
}

fn step_into(name: &str) -> String {
    if is_identifier(name) { format!(".{name}") } else { format!("[{}]", literal(&Value::from(name))) }
}

fn key(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { literal(&Value::from(name)) }
}

fn is_identifier(name: &str) -> bool {
    name.chars().count() <= MAX_LITERAL
        && name.chars().all(|c| (c.is_alphanumeric() || c == '_' || c == '$') && is_plain(c))
        && name.chars().next().is_some_and(|c| !c.is_numeric())
}

/// A piece of source on one line, shortened when it is long.
pub(super) fn piece(source: &str) -> String {
    truncate_text(&one_line(source), MAX_PIECE)
}

/// `text` on one line, without invisible characters.
pub(super) fn one_line(text: &str) -> String {
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn visible(c: char) -> Vec<char> {
    match c {
        '\n' => vec!['\\', 'n'],
        '\t' => vec!['\\', 't'],
        c if is_plain(c) => vec![c],
        c => c.escape_unicode().collect(),
    }
}

/// Separator of the outcomes that share an arm.
pub(super) const BETWEEN: char = '\u{1f}';

/// The outcomes that lead to one arm of a decision, in words.
pub(super) fn outcomes(arm: &str) -> String {
    arm.split(BETWEEN).map(outcome).collect::<Vec<_>>().join(", ")
}

/// The outcome of a decision, in words.
pub(super) fn outcome(outcome: &str) -> String {
    match outcome.strip_prefix("case:") {
        Some(value) => format!("case {}", piece(value)),
        None => piece(outcome),
    }
}

/// Short description of how a result is used.
pub(super) fn provision(coverage: Coverage, basis: EdgeBasis, around: Option<NodeId>) -> String {
    let coverage = match coverage {
        Coverage::Strict => "strict",
        Coverage::Partial => "partial",
        Coverage::Optional => "optional",
    };
    let around = around.map(|turning| format!(", around {turning}")).unwrap_or_default();
    match basis {
        EdgeBasis::Data => format!("{coverage}{around}"),
        EdgeBasis::Schema => format!("could: {coverage}{around}"),
    }
}
