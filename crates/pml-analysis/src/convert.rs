//! Converts a program to an equivalent DAG document, where there is one.
//!
//! A document has no branches, loops or computations, and tasks without dependencies run at the same time. So a program
//! is converted only when it does nothing but call tools and capabilities with arguments that a document can express,
//! and every call keeps its dependencies: calls that may change something stay in order, and a call that only reads
//! sees every change made before it and none made after it. Members of one `Promise.all` do not wait for each other.
//! Two consecutive reads may swap; should the first fail, the second may have run, which changes nothing, and no call
//! that changes something runs after either fails.
//!
//! The return value of a program is not part of the document: its result is the results of its tasks.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::fmt;

use pml_model::structure::{Argument, EdgeLink, ForkForm, NodeId, NodeKind, NodeLetter, PathStep, Structure};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::dag::{Reference, ReferenceRoot, TextPart, TextTemplate, needs_escape, parse_template};
use crate::{Analysis, AnalysisCatalogue, ComplaintCode, Severity};

/// All reasons why a program cannot be converted, those about the whole program first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct DagRefusal {
    /// The reasons, at least one.
    pub reasons: Vec<DagRefusalReason>,
}

/// One reason why a program cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DagRefusalReason {
    /// The node concerned; `None` for the whole program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Line of the program; 0 for the whole program.
    pub line: u32,
    /// The feature that a document cannot express.
    pub why: String,
}

impl fmt::Display for DagRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the program cannot be written as a DAG document")?;
        for (index, reason) in self.reasons.iter().enumerate() {
            f.write_str(if index == 0 { ": " } else { "; " })?;
            match (reason.node, reason.line) {
                (Some(node), line) => write!(f, "{node} on line {line}: ")?,
                (None, 0) => {}
                (None, line) => write!(f, "line {line}: ")?,
            }
            f.write_str(&reason.why)?;
        }
        Ok(())
    }
}

/// The DAG document equivalent to the program. Task ids are the node ids of the structure.
///
/// # Errors
/// The program uses features that a document cannot express; all of them are listed.
pub fn convert_to_dag(analysis: &Analysis, catalogue: &AnalysisCatalogue) -> Result<Value, DagRefusal> {
    let structure = &analysis.structure;
    let mut reasons = about_the_whole(analysis);
    let calls: HashSet<NodeId> =
        structure.nodes.iter().filter(|node| node.kind.is_call()).map(|node| node.id).collect();
    let mut tasks: HashMap<NodeId, Map<String, Value>> = HashMap::new();
    for node in &structure.nodes {
        let mut say =
            |why: String| reasons.push(DagRefusalReason { node: Some(node.id), line: node.at.line, why });
        match task(node.id, &node.kind, &calls) {
            Ok(Some(task)) => drop(tasks.insert(node.id, task)),
            Ok(None) => {}
            Err(found) => found.into_iter().for_each(&mut say),
        }
    }
    let Some(order) = program_order(structure) else {
        reasons.push(DagRefusalReason {
            node: None,
            line: 0,
            why: "its calls come round to each other".to_owned(),
        });
        return Err(DagRefusal { reasons });
    };
    if !reasons.is_empty() {
        return Err(DagRefusal { reasons });
    }
    let order: Vec<NodeId> = order.into_iter().filter(|node| calls.contains(node)).collect();
    let waits = waits(structure, &order, catalogue)?;
    let tasks = order.iter().zip(waits).filter_map(|(node, waits)| {
        let mut task = tasks.remove(node)?;
        task.insert("dependsOn".to_owned(), waits.iter().map(NodeId::to_string).collect());
        Some(Value::Object(task))
    });
    Ok(json!({"tasks": tasks.collect::<Vec<_>>()}))
}

fn about_the_whole(analysis: &Analysis) -> Vec<DagRefusalReason> {
    let about = |line: u32, why: String| DagRefusalReason { node: None, line, why };
    let mut reasons = Vec::new();
    for remark in &analysis.permissions.opaque {
        reasons.push(about(remark.at.line, format!("not all calls are known: {}", remark.what)));
    }
    for complaint in &analysis.complaints {
        if complaint.severity == Severity::Error || complaint.code == ComplaintCode::NotAwaited {
            reasons.push(about(complaint.at.line, complaint.message.clone()));
        }
    }
    if !analysis.structure.nodes.iter().any(|node| node.kind.is_call()) {
        reasons.push(about(0, "it calls nothing".to_owned()));
    }
    reasons
}

/// The task of a call; `None` for a node that needs none. Records everything a document cannot express.
fn task(
    id: NodeId,
    kind: &NodeKind,
    calls: &HashSet<NodeId>,
) -> Result<Option<Map<String, Value>>, Vec<String>> {
    let why_not = match kind {
        NodeKind::Task { tool, .. } if !kind.is_call() => format!("`{tool}` computes something"),
        NodeKind::Task { tool, arguments, .. } => {
            return filled(id, ("tool", tool), arguments, calls).map(Some);
        }
        NodeKind::Capability { capability, arguments } => {
            return filled(id, ("capability", capability), arguments, calls).map(Some);
        }
        NodeKind::Fork { form: ForkForm::All | ForkForm::Layer } | NodeKind::Join => return Ok(None),
        NodeKind::Fork { form: ForkForm::AllSettled } => {
            "`Promise.allSettled` goes on after failures".to_owned()
        }
        NodeKind::Fork { form: ForkForm::Race | ForkForm::Any } => {
            "it does not wait for all of them".to_owned()
        }
        NodeKind::Decision { condition, .. } => format!("it chooses by `{condition}`"),
        NodeKind::Loop { over, .. } => format!("it repeats over `{over}`"),
        NodeKind::Try => "it handles failures itself".to_owned(),
    };
    Err(vec![why_not])
}

fn filled(
    id: NodeId,
    (member, name): (&str, &str),
    arguments: &Argument,
    calls: &HashSet<NodeId>,
) -> Result<Map<String, Value>, Vec<String>> {
    let mut writer = ArgumentWriter { calls, why_not: Vec::new() };
    let written = writer.write(arguments);
    if matches!(arguments, Argument::Literal { .. } | Argument::Template { .. } | Argument::Array { .. }) {
        writer.why_not.push("its arguments are no object".to_owned());
    }
    if !writer.why_not.is_empty() {
        return Err(writer.why_not);
    }
    let mut task = Map::new();
    task.insert("id".to_owned(), Value::from(id.to_string()));
    task.insert(member.to_owned(), Value::from(name));
    task.insert("arguments".to_owned(), written);
    Ok(task)
}

/// Writes arguments in document notation.
struct ArgumentWriter<'w> {
    calls: &'w HashSet<NodeId>,
    why_not: Vec<String>,
}

impl ArgumentWriter<'_> {
    fn write(&mut self, argument: &Argument) -> Value {
        if let Some(value) = literal(argument) {
            return escaped(value);
        }
        match argument {
            Argument::Literal { value } => escaped(value.clone()),
            Argument::Reference { .. } | Argument::Parameter { .. } => match self.reference(argument) {
                Some(reference) => json!({"$ref": reference.to_string()}),
                None => Value::Null,
            },
            Argument::Template { parts } => self.text(parts),
            Argument::Object { fields, spreads } => {
                if !spreads.is_empty() {
                    self.why_not.push("an argument is spread out of an object".to_owned());
                }
                let mut members = Map::new();
                for field in fields {
                    if field.name == "$ref" || field.name == "$literal" {
                        self.why_not.push(format!("`{}` means something else in a document", field.name));
                    }
                    members.insert(field.name.clone(), self.write(&field.value));
                }
                Value::Object(members)
            }
            Argument::Array { items } => items.iter().map(|item| self.write(item)).collect(),
            Argument::Item { .. } => self.refuse("an argument is what a loop is at".to_owned()),
            Argument::Expression { source, .. } => self.refuse(format!("`{source}` is computed")),
        }
    }

    fn refuse(&mut self, why: String) -> Value {
        self.why_not.push(why);
        Value::Null
    }

    fn reference(&mut self, argument: &Argument) -> Option<Reference> {
        let (of, path) = match argument {
            Argument::Reference { node, path } => {
                if !self.calls.contains(node) {
                    self.why_not.push(format!("{node} is no call whose result a document could refer to"));
                }
                (ReferenceRoot::Task(node.to_string()), path.clone())
            }
            Argument::Parameter { name, path } if name.is_empty() => (ReferenceRoot::Arguments, path.clone()),
            Argument::Parameter { name, path } => {
                let path = std::iter::once(PathStep::Key(name.clone())).chain(path.iter().cloned()).collect();
                (ReferenceRoot::Arguments, path)
            }
            _ => return None,
        };
        if path.contains(&PathStep::Any) {
            self.why_not.push("which element is used is known only when it runs".to_owned());
        }
        Some(Reference { of, path })
    }

    fn text(&mut self, parts: &[Argument]) -> Value {
        let (mut text, mut meant) = (String::new(), Vec::new());
        for part in parts {
            match part {
                Argument::Literal { value: Value::String(literal) } => {
                    text.push_str(literal);
                    match meant.last_mut() {
                        Some(TextPart::Text(before)) => before.push_str(literal),
                        _ if literal.is_empty() => {}
                        _ => meant.push(TextPart::Text(literal.clone())),
                    }
                }
                part => match self.reference(part) {
                    Some(reference) => {
                        text.push_str(&format!("{{{{{reference}}}}}"));
                        meant.push(TextPart::Reference(reference));
                    }
                    None => return self.refuse("a text is put together from more than values".to_owned()),
                },
            }
        }
        // Braces in the text, or a text that is exactly one value, would be parsed as something else.
        let read = parse_template(&text, &|id| {
            NodeId::try_from(id.to_owned()).is_ok_and(|id| self.calls.contains(&id))
        });
        if read != Ok(TextTemplate::Parts(meant)) {
            return self.refuse(format!("the text `{text}` would mean something else in a document"));
        }
        Value::from(text)
    }
}

/// The value of an argument that consists of literals only.
fn literal(argument: &Argument) -> Option<Value> {
    match argument {
        Argument::Literal { value } => Some(value.clone()),
        Argument::Array { items } => items.iter().map(literal).collect::<Option<Vec<_>>>().map(Value::from),
        Argument::Object { fields, spreads } if spreads.is_empty() => fields
            .iter()
            .map(|field| Some((field.name.clone(), literal(&field.value)?)))
            .collect::<Option<Map<_, _>>>()
            .map(Value::Object),
        _ => None,
    }
}

fn escaped(value: Value) -> Value {
    if needs_escape(&value.to_string()) { json!({"$literal": value}) } else { value }
}

/// All nodes in program order: by `sequence` edges, and by their index in the structure where those leave it open.
fn program_order(structure: &Structure) -> Option<Vec<NodeId>> {
    let place: HashMap<NodeId, usize> =
        structure.nodes.iter().enumerate().map(|(place, node)| (node.id, place)).collect();
    let mut after = vec![Vec::new(); structure.nodes.len()];
    let mut open = vec![0_usize; structure.nodes.len()];
    for edge in structure.edges.iter().filter(|edge| edge.link == EdgeLink::Sequence) {
        if let (Some(&from), Some(&to)) = (place.get(&edge.from), place.get(&edge.to)) {
            after[from].push(to);
            open[to] += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..open.len()).filter(|&at| open[at] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(open.len());
    while let Some(Reverse(at)) = ready.pop() {
        order.push(structure.nodes[at].id);
        for &next in &after[at] {
            open[next] -= 1;
            if open[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    (order.len() == structure.nodes.len()).then_some(order)
}

/// Dependencies of each call of `order`, without those implied by others.
fn waits(
    structure: &Structure,
    order: &[NodeId],
    catalogue: &AnalysisCatalogue,
) -> Result<Vec<Vec<NodeId>>, DagRefusal> {
    let place: HashMap<NodeId, usize> =
        order.iter().enumerate().map(|(place, node)| (*node, place)).collect();
    let branches = branches(structure);
    let together = |a: NodeId, b: NodeId| match (branches.get(&a), branches.get(&b)) {
        (Some(a), Some(b)) => a.iter().any(|(fork, branch)| b.get(fork).is_some_and(|other| other != branch)),
        _ => false,
    };
    let mut reads_only = Vec::with_capacity(order.len());
    // Transitive dependencies of each call.
    let mut before: Vec<Vec<bool>> = Vec::with_capacity(order.len());
    let mut waits = Vec::with_capacity(order.len());
    for (here, &node) in order.iter().enumerate() {
        let kind = structure.node(node).map(|node| &node.kind);
        reads_only.push(kind.is_some_and(|kind| only_reads(kind, catalogue)));
        let data = kind.and_then(NodeKind::arguments).map(nodes_in).unwrap_or_default();
        let data: HashSet<usize> = data.iter().filter_map(|node| place.get(node).copied()).collect();
        if data.iter().any(|&from| from >= here) {
            let why = "it uses a result from later in the program".to_owned();
            let line = structure.node(node).map_or(0, |node| node.at.line);
            return Err(DagRefusal { reasons: vec![DagRefusalReason { node: Some(node), line, why }] });
        }
        let (mut found, mut reached) = (Vec::new(), vec![false; here]);
        for earlier in (0..here).rev() {
            let both_read = reads_only[earlier] && reads_only[here];
            let free = || both_read || together(order[earlier], node);
            if !reached[earlier] && (data.contains(&earlier) || !free()) {
                found.push(order[earlier]);
                reached[earlier] = true;
                before[earlier].iter().enumerate().for_each(|(at, &reaches)| reached[at] |= reaches);
            }
        }
        found.reverse();
        waits.push(found);
        before.push(reached);
    }
    Ok(waits)
}

/// Whether a call is declared to change nothing.
fn only_reads(kind: &NodeKind, catalogue: &AnalysisCatalogue) -> bool {
    match kind {
        NodeKind::Task { tool, .. } => tool
            .split_once(':')
            .and_then(|(server, name)| catalogue.tool(server, name))
            .is_some_and(|tool| tool.read_only),
        _ => false,
    }
}

fn nodes_in(argument: &Argument) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    argument.visit_leaves(&mut |leaf| {
        if let Argument::Reference { node, .. } = leaf {
            nodes.push(*node);
        }
    });
    nodes
}

/// For each node, its branch in each enclosing fork. A node that several branches of one fork lead to is in none: when
/// in doubt, calls are ordered.
fn branches(structure: &Structure) -> HashMap<NodeId, HashMap<NodeId, usize>> {
    let mut next: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for edge in structure.edges.iter().filter(|edge| edge.link == EdgeLink::Sequence) {
        next.entry(edge.from).or_default().push(edge.to);
    }
    let mut branches: HashMap<NodeId, HashMap<NodeId, usize>> = HashMap::new();
    for fork in structure.nodes.iter().filter(|node| node.id.letter == NodeLetter::F) {
        let mut branch_of: HashMap<NodeId, Option<usize>> = HashMap::new();
        for (branch, &start) in next.get(&fork.id).into_iter().flatten().enumerate() {
            for node in branch_from(start, &next) {
                branch_of.entry(node).and_modify(|of| *of = None).or_insert(Some(branch));
            }
        }
        for (node, branch) in branch_of {
            if let Some(branch) = branch {
                branches.entry(node).or_default().insert(fork.id, branch);
            }
        }
    }
    branches
}

/// Nodes from `start` to the join that ends the branch, including nested forks.
fn branch_from(start: NodeId, next: &HashMap<NodeId, Vec<NodeId>>) -> HashSet<NodeId> {
    let mut found = HashSet::new();
    let mut open = vec![(start, 0_u32)];
    while let Some((node, inside)) = open.pop() {
        let inside = match (node.letter, inside) {
            (NodeLetter::J, 0) => continue,
            (NodeLetter::J, inside) => inside - 1,
            (NodeLetter::F, inside) => inside + 1,
            _ => inside,
        };
        if found.insert(node) {
            open.extend(next.get(&node).into_iter().flatten().map(|&node| (node, inside)));
        }
    }
    found
}
