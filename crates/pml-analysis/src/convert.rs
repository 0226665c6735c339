//! A program as a DAG document, where that is the same thing.
//!
//! A document has no choices, loops or computations, and it runs at once whatever does not wait. So a program
//! becomes one only when all it does is call tools and capabilities with arguments a document can spell, and
//! every call waits for what the program made it wait for: calls that may change something stay in their
//! order, a call that only reads sees every change made before it and none made after it. Members of one
//! `Promise.all` wait for nobody among themselves. Two reads in a row may change places; should the first fail,
//! the second may have run, which changes nothing, and nothing that changes something runs after either fails.
//!
//! What a program returns is not part of the document: its result is the results of its tasks.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::fmt;

use pml_model::structure::{Argument, ForkForm, Letter, Link, NodeId, NodeKind, Step, Structure};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::dag::{Part, Reference, Source, TextTemplate, needs_escape, template};
use crate::{Analysis, Catalogue, Code, Severity};

/// Why a program is no DAG: all reasons, those about the whole program first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct WhyNot {
    /// At least one.
    pub reasons: Vec<Reason>,
}

/// One reason why a program is no DAG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The node concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The line of the program; 0 for all of it.
    pub line: u32,
    /// What a document cannot express.
    pub why: String,
}

impl fmt::Display for WhyNot {
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

/// The DAG document that does what the program does. Tasks are called as the nodes of the structure are.
///
/// # Errors
/// The program does something that a document cannot say; all such things are listed.
pub fn to_dag(analysis: &Analysis, catalogue: &Catalogue) -> Result<Value, WhyNot> {
    let structure = &analysis.structure;
    let mut reasons = about_the_whole(analysis);
    let calls: HashSet<NodeId> =
        structure.nodes.iter().filter(|node| node.kind.is_call()).map(|node| node.id).collect();
    let mut tasks: HashMap<NodeId, Map<String, Value>> = HashMap::new();
    for node in &structure.nodes {
        let mut say = |why: String| reasons.push(Reason { node: Some(node.id), line: node.at.line, why });
        match task(node.id, &node.kind, &calls) {
            Ok(Some(task)) => drop(tasks.insert(node.id, task)),
            Ok(None) => {}
            Err(found) => found.into_iter().for_each(&mut say),
        }
    }
    let Some(order) = program_order(structure) else {
        reasons.push(Reason { node: None, line: 0, why: "its calls come round to each other".to_owned() });
        return Err(WhyNot { reasons });
    };
    if !reasons.is_empty() {
        return Err(WhyNot { reasons });
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

fn about_the_whole(analysis: &Analysis) -> Vec<Reason> {
    let about = |line: u32, why: String| Reason { node: None, line, why };
    let mut reasons = Vec::new();
    for remark in &analysis.permissions.opaque {
        reasons.push(about(remark.at.line, format!("not all calls are known: {}", remark.what)));
    }
    for complaint in &analysis.complaints {
        if complaint.severity == Severity::Error || complaint.code == Code::NotAwaited {
            reasons.push(about(complaint.at.line, complaint.message.clone()));
        }
    }
    if !analysis.structure.nodes.iter().any(|node| node.kind.is_call()) {
        reasons.push(about(0, "it calls nothing".to_owned()));
    }
    reasons
}

/// The task of a call; `None` for what needs none; everything a document cannot say about it.
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

/// Spells arguments as a document does.
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
                (Source::Task(node.to_string()), path.clone())
            }
            Argument::Parameter { name, path } if name.is_empty() => (Source::Arguments, path.clone()),
            Argument::Parameter { name, path } => {
                let path = std::iter::once(Step::Key(name.clone())).chain(path.iter().cloned()).collect();
                (Source::Arguments, path)
            }
            _ => return None,
        };
        if path.contains(&Step::Any) {
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
                        Some(Part::Text(before)) => before.push_str(literal),
                        _ if literal.is_empty() => {}
                        _ => meant.push(Part::Text(literal.clone())),
                    }
                }
                part => match self.reference(part) {
                    Some(reference) => {
                        text.push_str(&format!("{{{{{reference}}}}}"));
                        meant.push(Part::Reference(reference));
                    }
                    None => return self.refuse("a text is put together from more than values".to_owned()),
                },
            }
        }
        // Braces in the text, or a text that is one value alone, would be read as something else.
        let read =
            template(&text, &|id| NodeId::try_from(id.to_owned()).is_ok_and(|id| self.calls.contains(&id)));
        if read != Ok(TextTemplate::Parts(meant)) {
            return self.refuse(format!("the text `{text}` would mean something else in a document"));
        }
        Value::from(text)
    }
}

/// The value of an argument that holds nothing but literals.
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

/// All nodes in the order in which the program comes to them: as `sequence` edges say, and as the program names
/// them where those leave it open.
fn program_order(structure: &Structure) -> Option<Vec<NodeId>> {
    let place: HashMap<NodeId, usize> =
        structure.nodes.iter().enumerate().map(|(place, node)| (node.id, place)).collect();
    let mut after = vec![Vec::new(); structure.nodes.len()];
    let mut open = vec![0_usize; structure.nodes.len()];
    for edge in structure.edges.iter().filter(|edge| edge.link == Link::Sequence) {
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

/// What each call of `order` has to wait for, without what it waits for already through others.
fn waits(structure: &Structure, order: &[NodeId], catalogue: &Catalogue) -> Result<Vec<Vec<NodeId>>, WhyNot> {
    let place: HashMap<NodeId, usize> =
        order.iter().enumerate().map(|(place, node)| (*node, place)).collect();
    let branches = branches(structure);
    let together = |a: NodeId, b: NodeId| match (branches.get(&a), branches.get(&b)) {
        (Some(a), Some(b)) => a.iter().any(|(fork, branch)| b.get(fork).is_some_and(|other| other != branch)),
        _ => false,
    };
    let mut reads_only = Vec::with_capacity(order.len());
    // For each call, the calls it waits for through however many others.
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
            return Err(WhyNot { reasons: vec![Reason { node: Some(node), line, why }] });
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

/// Whether a call changes nothing, as far as anybody has said.
fn only_reads(kind: &NodeKind, catalogue: &Catalogue) -> bool {
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
    argument.leaves(&mut |leaf| {
        if let Argument::Reference { node, .. } = leaf {
            nodes.push(*node);
        }
    });
    nodes
}

/// For each node, the branch of each fork it stands in. A node that several branches of one fork lead to is in
/// none: when in doubt, calls are ordered.
fn branches(structure: &Structure) -> HashMap<NodeId, HashMap<NodeId, usize>> {
    let mut next: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for edge in structure.edges.iter().filter(|edge| edge.link == Link::Sequence) {
        next.entry(edge.from).or_default().push(edge.to);
    }
    let mut branches: HashMap<NodeId, HashMap<NodeId, usize>> = HashMap::new();
    for fork in structure.nodes.iter().filter(|node| node.id.letter == Letter::F) {
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

/// The nodes from `start` to the join that ends the branch, forks inside included.
fn branch_from(start: NodeId, next: &HashMap<NodeId, Vec<NodeId>>) -> HashSet<NodeId> {
    let mut found = HashSet::new();
    let mut open = vec![(start, 0_u32)];
    while let Some((node, inside)) = open.pop() {
        let inside = match (node.letter, inside) {
            (Letter::J, 0) => continue,
            (Letter::J, inside) => inside - 1,
            (Letter::F, inside) => inside + 1,
            _ => inside,
        };
        if found.insert(node) {
            open.extend(next.get(&node).into_iter().flatten().map(|&node| (node, inside)));
        }
    }
    found
}
