//! Canonical form of a document: without ids, layout, order of members and lifted literals.
//!
//! Every remaining literal is `{"$literal":…}`, every lifted one `{"$lifted":…}` with the number of its parameter. A
//! number never stands as a member by itself, so neither can be confused with content of the document. The form is
//! hashed, never run.

use std::collections::HashMap;

use pml_model::structure::{NodeId, PathStep};

use super::given::{push_json_string, push_parts, push_reference, write_list};
use super::text::{BadEscape, JsonKind, JsonMember, JsonTree, parse_json};
use super::{DagDocument, TaskArguments};
use crate::Parameters;

/// Number of the parameter that each path in the arguments of a task became.
type LiftedPaths<'p> = HashMap<&'p [PathStep], usize>;

/// The canonical form: equal for documents that differ only in ids, layout, order of members and in `parameters`. The
/// order of tasks counts.
pub(super) fn canonical_document(dag: &DagDocument, parameters: &Parameters) -> String {
    let nodes: HashMap<&str, NodeId> = dag.tasks.iter().map(|task| (task.id.as_str(), task.node)).collect();
    let name = |id: &str| nodes.get(id).map_or_else(|| format!("?{id}"), NodeId::to_string);
    let mut lifted: HashMap<NodeId, LiftedPaths<'_>> = HashMap::new();
    for (number, literal) in parameters.literals.iter().enumerate() {
        for filled in &literal.fills {
            lifted.entry(filled.node).or_default().insert(&filled.path, number);
        }
    }
    let (none, mut out) = (LiftedPaths::new(), String::new());
    write_list(&mut out, ('[', ']'), &dag.tasks, |task, out| {
        let lifted = lifted.get(&task.node).unwrap_or(&none);
        let mut arguments = String::new();
        CanonicalWriter { name: &name, lifted, path: Vec::new() }.given(&task.arguments, &mut arguments);
        let mut depends_on: Vec<String> = task.depends_on.iter().map(|id| name(id)).collect();
        depends_on.sort_unstable();
        task.write(&name(&task.id), &arguments, depends_on, out);
    });
    out
}

/// Writes the arguments of one task.
struct CanonicalWriter<'w> {
    name: &'w dyn Fn(&str) -> String,
    lifted: &'w LiftedPaths<'w>,
    /// Current path.
    path: Vec<PathStep>,
}

impl CanonicalWriter<'_> {
    fn given(&mut self, given: &TaskArguments, out: &mut String) {
        if self.lifts(out) {
            return;
        }
        match given {
            TaskArguments::Literal(raw) | TaskArguments::Escaped(raw) => match parse_json(raw.get()) {
                Ok(tree) => self.tree(&tree, raw.get(), out),
                Err(BadEscape(_)) => out.push_str(raw.get()),
            },
            TaskArguments::Reference(reference) => push_reference(reference, self.name, out),
            TaskArguments::Text(parts) => push_parts(parts, self.name, out),
            TaskArguments::Object(members) => {
                let mut members: Vec<&(String, TaskArguments)> = members.iter().collect();
                members.sort_by_key(|(key, _)| key);
                write_list(out, ('{', '}'), &members, |(key, value), out| {
                    self.member(key, out, |writer, out| writer.given(value, out));
                });
            }
            TaskArguments::Array(items) => {
                let mut places = 0..;
                write_list(out, ('[', ']'), items, |item, out| {
                    let place = PathStep::Index(places.next().unwrap_or(u64::MAX));
                    self.step(place, |writer| writer.given(item, out));
                });
            }
        }
    }

    fn tree(&mut self, tree: &JsonTree<'_>, text: &str, out: &mut String) {
        if self.lifts(out) {
            return;
        }
        match &tree.kind {
            JsonKind::Object(members) => {
                let mut members: Vec<&JsonMember<'_>> = members.iter().collect();
                members.sort_by(|a, b| a.key.cmp(&b.key));
                write_list(out, ('{', '}'), &members, |member, out| {
                    self.member(&member.key, out, |writer, out| writer.tree(&member.value, text, out));
                });
            }
            JsonKind::Array(items) => {
                let mut places = 0..;
                write_list(out, ('[', ']'), items, |item, out| {
                    let place = PathStep::Index(places.next().unwrap_or(u64::MAX));
                    self.step(place, |writer| writer.tree(item, text, out));
                });
            }
            JsonKind::String(text) => {
                out.push_str("{\"$literal\":");
                push_json_string(text, out);
                out.push('}');
            }
            // Numbers keep their spelling.
            JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number => {
                out.push_str("{\"$literal\":");
                out.push_str(&text[tree.span.start..tree.span.end]);
                out.push('}');
            }
        }
    }

    fn member(&mut self, key: &str, out: &mut String, write: impl FnOnce(&mut Self, &mut String)) {
        push_json_string(key, out);
        out.push(':');
        self.step(PathStep::Key(key.to_owned()), |writer| write(writer, out));
    }

    fn step(&mut self, step: PathStep, write: impl FnOnce(&mut Self)) {
        self.path.push(step);
        write(self);
        self.path.pop();
    }

    /// Writes the placeholder of a lifted literal. Returns false when the current path is not lifted.
    fn lifts(&self, out: &mut String) -> bool {
        let Some(number) = self.lifted.get(self.path.as_slice()) else { return false };
        out.push_str(&format!("{{\"$lifted\":{number}}}"));
        true
    }
}
