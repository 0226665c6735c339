//! Parses the tasks of a document strictly: everything that cannot be meant is reported, with a suggestion.

use std::collections::HashSet;

use pml_model::json::empty_object;
use pml_model::structure::{Argument, Node, NodeId, NodeLetter, Structure};

use super::complaints::DagComplaints;
use super::given::TaskArguments;
use super::graph;
use super::lift::LiteralReader;
use super::reader::DocumentReader;
use super::reference::{ARGUMENTS, MAX_ID_BYTES, Reference, ReferenceRoot};
use super::row::TaskRow;
use super::text::{ByteSpan, DocumentText, JsonKind, JsonTree};
use super::values::{ArgumentReader, TaskIds};
use super::work::kind;
use super::written::{MEMBERS, TaskMember, WrittenTask};
use super::{
    BadCode, CodeSummary, DagDocument, DagError, DocumentTask, DocumentWork, MAX_TASKS, shorten_for_message,
};
use crate::literals::hide_secrets;
use crate::value::AbstractValue;
use crate::{AnalysisCatalogue, Complaint, ComplaintCode, Parameters, Permissions, Severity};

/// Maximum number of retries of a task.
const MAX_RETRIES: u32 = 10;

/// Result of parsing a document.
pub(crate) struct DocumentReading {
    pub(crate) dag: DagDocument,
    pub(crate) structure: Structure,
    pub(crate) parameters: Parameters,
    pub(crate) permissions: Permissions,
    pub(crate) complaints: Vec<Complaint>,
}

/// Removes references to tasks that could not be parsed.
fn forget(argument: &mut Argument, known: &HashSet<NodeId>) {
    match argument {
        Argument::Reference { node, .. } if !known.contains(node) => {
            *argument = Argument::Expression { source: node.to_string(), reads: Vec::new() };
        }
        Argument::Template { parts: inner } | Argument::Array { items: inner } => {
            inner.iter_mut().for_each(|inner| forget(inner, known));
        }
        Argument::Object { fields, spreads } => {
            fields.iter_mut().for_each(|field| forget(&mut field.value, known));
            spreads.iter_mut().for_each(|spread| forget(spread, known));
        }
        _ => {}
    }
}

/// Parses a document that is known to be JSON.
pub(crate) fn read_document<'t, 'd>(
    text: &'t DocumentText<'d>,
    tree: &'t JsonTree<'d>,
    catalogue: &'t AnalysisCatalogue,
    look: &dyn Fn(&str) -> Result<CodeSummary, BadCode>,
) -> Result<DocumentReading, DagError> {
    let mut complaints = DagComplaints::new(text);
    let tasks = tasks(tree, &mut complaints)?;
    let mut reader = DocumentReader {
        catalogue,
        look,
        complaints,
        ids: TaskIds::new(),
        permissions: Permissions::default(),
        tool_names: None,
        literals: LiteralReader::new(text),
    };
    let written: Vec<WrittenTask<'t, 'd>> =
        tasks.iter().zip(1..).filter_map(|(task, number)| reader.members(task, number)).collect();
    let named: Vec<(&'t str, WrittenTask<'t, 'd>)> =
        written.into_iter().filter_map(|task| Some((reader.id(&task)?, task))).collect();
    reader.ambiguous(&named);
    let read: Vec<TaskRow<'_>> = named.iter().filter_map(|(id, written)| reader.task(id, written)).collect();
    graph::cycles(&read, &mut reader.complaints);
    graph::unknown_fields(&read, catalogue, &mut reader.complaints);
    let edges = graph::edges(&read);
    let parameters = reader.literals.lift(&read, graph::parameters(&read), &mut reader.complaints);
    let (mut nodes, mut tasks) = (Vec::with_capacity(read.len()), Vec::with_capacity(read.len()));
    let known: HashSet<NodeId> = read.iter().map(|row| row.task.node).collect();
    for mut row in read {
        forget(&mut row.argument, &known);
        nodes.push(Node {
            id: row.task.node,
            kind: kind(&row.task.work, row.argument),
            at: text.position(row.at),
            branches: Vec::new(),
        });
        tasks.push(row.task);
    }
    hide_secrets(&mut nodes, &parameters);
    Ok(DocumentReading {
        dag: DagDocument { tasks },
        structure: Structure { nodes, edges },
        parameters,
        permissions: reader.permissions,
        complaints: reader.complaints.finish(),
    })
}

/// The list of tasks.
fn tasks<'t, 'd>(
    tree: &'t JsonTree<'d>,
    complaints: &mut DagComplaints<'_, '_>,
) -> Result<&'t [JsonTree<'d>], DagError> {
    let text = complaints.text;
    let wrong = |span: ByteSpan, message: &str, hint: &str| DagError::NotADocument {
        message: message.to_owned(),
        hint: hint.to_owned(),
        at: text.position(span),
        excerpt: text.excerpt(span.start),
    };
    const FORM: &str =
        "write `{\"tasks\": [{\"id\": \"t1\", \"tool\": \"server:tool\", \"arguments\": {}}]}`";
    let JsonKind::Object(members) = &tree.kind else {
        return Err(wrong(tree.span, "a DAG document is an object with `tasks`", FORM));
    };
    let mut found = None;
    for member in members {
        match (&*member.key, found) {
            ("tasks", None) => found = Some(&member.value),
            ("tasks", Some(_)) => {
                return Err(wrong(member.at, "`tasks` is written twice", "keep one of them"));
            }
            (other, _) => {
                let hint = complaints.did_you_mean(other, ["tasks"].into_iter());
                let message = format!("`{}` is not a member of a DAG document", shorten_for_message(other));
                complaints.add((Severity::Warning, ComplaintCode::BadTask), (member.at, None), message, hint);
            }
        }
    }
    let Some(list) = found else {
        return Err(wrong(tree.span, "the document has no `tasks`", FORM));
    };
    let JsonKind::Array(tasks) = &list.kind else {
        return Err(wrong(list.span, &format!("`tasks` is {}, not a list", list.name()), FORM));
    };
    if tasks.len() > MAX_TASKS {
        return Err(DagError::TooManyTasks { tasks: tasks.len() });
    }
    if tasks.is_empty() {
        return Err(wrong(list.span, "the document has no task", FORM));
    }
    Ok(tasks)
}

impl<'t, 'd> DocumentReader<'_, 't, 'd> {
    /// Classifies the members of a task.
    fn members(&mut self, tree: &'t JsonTree<'d>, number: u32) -> Option<WrittenTask<'t, 'd>> {
        let node = NodeId { letter: NodeLetter::N, number };
        let JsonKind::Object(members) = &tree.kind else {
            self.bad(
                tree.span,
                node,
                format!("task {number} is {}, not an object", tree.name()),
                "write a task",
            );
            return None;
        };
        let mut written = WrittenTask { node, span: tree.span, members: Vec::with_capacity(members.len()) };
        for member in members {
            match MEMBERS.iter().find(|(name, _)| *name == member.key) {
                Some((name, slot)) if written.members.iter().any(|(other, _)| other == slot) => {
                    let message = format!("`{name}` is written twice, or under two names");
                    self.bad(member.at, node, message, "keep one of them");
                }
                Some((_, slot)) => written.members.push((*slot, &member.value)),
                None => {
                    let hint =
                        self.complaints.did_you_mean(&member.key, MEMBERS.iter().map(|(name, _)| *name));
                    let message = format!("`{}` is not a member of a task", shorten_for_message(&member.key));
                    let kind = (Severity::Warning, ComplaintCode::BadTask);
                    self.complaints.add(kind, (member.at, Some(node)), message, hint);
                }
            }
        }
        Some(written)
    }

    /// The id of a task, when it is usable.
    fn id(&mut self, task: &WrittenTask<'t, 'd>) -> Option<&'t str> {
        let (node, number) = (task.node, task.node.number);
        let Some(tree) = task.get(TaskMember::Id) else {
            self.bad(
                task.span,
                node,
                format!("task {number} has no `id`"),
                "give it one, such as `\"id\": \"t1\"`",
            );
            return None;
        };
        let JsonKind::String(id) = &tree.kind else {
            self.bad(tree.span, node, format!("the `id` is {}, not a text", tree.name()), "put it in quotes");
            return None;
        };
        let odd = |c: char| c.is_control() || "{}[]\"'".contains(c);
        if id.is_empty() || id.len() > MAX_ID_BYTES || id.trim() != &**id || id.contains(odd) {
            let message = format!("`{}` cannot be the id of a task", shorten_for_message(id));
            let hint = format!("use up to {MAX_ID_BYTES} letters, digits, `_` and `-`");
            self.bad(tree.span, node, message, &hint);
            return None;
        }
        if &**id == ARGUMENTS {
            let message = "`args` cannot be the id of a task: it names the arguments of the run".to_owned();
            self.bad(tree.span, node, message, "use another id");
            return None;
        }
        if let Some(first) = self.ids.get(&**id) {
            let message = format!("id `{}` is taken by task {}", shorten_for_message(id), first.number);
            let hint = Some("give every task its own id".to_owned());
            self.complain(ComplaintCode::DuplicateId, tree.span, node, message, hint);
            return None;
        }
        self.ids.insert(id, node);
        Some(id)
    }

    /// Complains about ids like `a.b` beside a task `a`: `{{a.b}}` would be ambiguous.
    fn ambiguous(&mut self, named: &[(&'t str, WrittenTask<'t, 'd>)]) {
        for (id, task) in named {
            let beginnings = id.match_indices('.').map(|(at, _)| &id[..at]);
            let other = beginnings.into_iter().find(|name| self.ids.contains_key(name) || *name == ARGUMENTS);
            if let Some(other) = other {
                let message = format!(
                    "id `{}` could be a member of `{}`",
                    shorten_for_message(id),
                    shorten_for_message(other)
                );
                let at = task.get(TaskMember::Id).map_or(task.span, |tree| tree.span);
                self.bad(at, task.node, message, "use an id without a dot");
            }
        }
    }

    fn task(&mut self, id: &str, written: &WrittenTask<'t, 'd>) -> Option<TaskRow<'t>> {
        let node = written.node;
        let (arguments, argument, references) = self.arguments(written);
        let explicit = self.depends_on(id, written);
        let side_effects = self.flag(written, TaskMember::SideEffects, "sideEffects");
        let safe_to_fail = self.flag(written, TaskMember::SafeToFail, "safeToFail");
        let timeout_ms = self.number(written, TaskMember::TimeoutMs, "timeoutMs", 1..=u64::from(u32::MAX));
        let retries = self.number(written, TaskMember::Retries, "retries", 0..=u64::from(MAX_RETRIES));
        let work = self.work(id, written)?;
        let input = self.check(id, &work, written, &argument);
        let pure = matches!(work, DocumentWork::Code { pure: true, .. });
        let literals = match (&work, written.get(TaskMember::Arguments)) {
            (DocumentWork::Tool { .. } | DocumentWork::Capability { .. }, Some(tree)) => {
                self.literals.read(tree, &argument)
            }
            (DocumentWork::Code { .. }, _) | (_, None) => AbstractValue::Unknown,
        };
        let task = DocumentTask {
            id: id.to_owned(),
            node,
            depends_on: with_implied(explicit, &arguments, id),
            arguments,
            side_effects,
            safe_to_fail: safe_to_fail.unwrap_or(pure),
            timeout_ms,
            retries: retries.and_then(|retries| u32::try_from(retries).ok()).unwrap_or(0),
            work,
        };
        Some(TaskRow { at: written.span, task, argument, input, literals, references })
    }

    fn arguments(
        &mut self,
        written: &WrittenTask<'t, 'd>,
    ) -> (TaskArguments, Argument, Vec<(Reference, ByteSpan)>) {
        let none = || (TaskArguments::Literal(empty_object()), Argument::empty_object(), Vec::new());
        let Some(tree) = written.get(TaskMember::Arguments) else { return none() };
        let mut values = ArgumentReader {
            ids: &self.ids,
            node: written.node,
            complaints: &mut self.complaints,
            found: Vec::new(),
        };
        let (given, argument) = values.read(tree);
        let found = values.found;
        if !matches!(given, TaskArguments::Reference(_)) && !matches!(tree.kind, JsonKind::Object(_)) {
            let message = format!("`arguments` is {}, not an object", tree.name());
            self.bad(tree.span, written.node, message, "write `{\"name\": value}`");
            return none();
        }
        (given, argument, found)
    }

    fn depends_on(&mut self, id: &str, written: &WrittenTask<'t, 'd>) -> Vec<String> {
        let Some(tree) = written.get(TaskMember::DependsOn) else { return Vec::new() };
        let JsonKind::Array(items) = &tree.kind else {
            let message = format!("`dependsOn` is {}, not a list", tree.name());
            self.bad(tree.span, written.node, message, "write a list of ids, such as `[\"t1\"]`");
            return Vec::new();
        };
        let mut found = Vec::with_capacity(items.len());
        for item in items {
            match &item.kind {
                JsonKind::String(other) if **other == *id => {
                    let message = format!("task `{}` depends on itself", shorten_for_message(id));
                    let hint = Some("take it out of `dependsOn`".to_owned());
                    self.complain(ComplaintCode::Cycle, item.span, written.node, message, hint);
                }
                JsonKind::String(other) if self.ids.contains_key(&**other) => found.push(other.to_string()),
                JsonKind::String(other) => {
                    let hint = self.complaints.did_you_mean(other, self.ids.keys().copied());
                    let message = format!("there is no task `{}` to depend on", shorten_for_message(other));
                    self.complain(ComplaintCode::UnknownDependency, item.span, written.node, message, hint);
                }
                _ => {
                    let message = format!("`dependsOn` holds {}, not only ids", item.name());
                    self.bad(item.span, written.node, message, "write a list of ids, such as `[\"t1\"]`");
                }
            }
        }
        found
    }

    fn flag(&mut self, written: &WrittenTask<'t, 'd>, slot: TaskMember, name: &str) -> Option<bool> {
        let tree = written.get(slot)?;
        if let JsonKind::Bool(flag) = tree.kind {
            return Some(flag);
        }
        let message = format!("`{name}` is {}, not a boolean", tree.name());
        self.bad(tree.span, written.node, message, "write `true` or `false`");
        None
    }

    fn number(
        &mut self,
        written: &WrittenTask<'t, 'd>,
        slot: TaskMember,
        name: &str,
        allowed: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        let tree = written.get(slot)?;
        let number = self.complaints.text.text[tree.span.start..tree.span.end].parse().ok();
        if let Some(number) = number.filter(|number| allowed.contains(number)) {
            return Some(number);
        }
        let hint = format!("write a whole number from {} to {}", allowed.start(), allowed.end());
        self.bad(tree.span, written.node, format!("`{name}` is not an allowed number"), &hint);
        None
    }
}

/// `dependsOn` plus the tasks that references imply, without duplicates.
fn with_implied(explicit: Vec<String>, arguments: &TaskArguments, id: &str) -> Vec<String> {
    let implied = arguments.references().into_iter().filter_map(|reference| match &reference.of {
        ReferenceRoot::Task(other) if other != id => Some(other.clone()),
        _ => None,
    });
    let mut all: Vec<String> = explicit.into_iter().chain(implied).collect();
    if all.len() > 1 {
        let mut seen = HashSet::new();
        all.retain(|id| seen.insert(id.clone()));
    }
    all
}
