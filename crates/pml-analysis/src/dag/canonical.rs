//! What remains of a document when ids, layout, the order of members and lifted literals do not count.
//!
//! Every literal that counts is `{"$literal":…}`, every lifted one `{"$lifted":…}` and the number of its parameter.
//! Members are never numbers by themselves, so neither can be taken for something the document says. The form is
//! hashed, never run.

use std::collections::HashMap;

use pml_model::structure::{NodeId, Step};

use super::given::{between, push_parts, push_reference, push_text};
use super::text::{BadEscape, JsonKind, JsonMember, JsonTree, read};
use super::{Dag, Given};
use crate::Parameters;

/// The number of the parameter that a place in the arguments of a task became.
type LiftedPaths<'p> = HashMap<&'p [Step], usize>;

/// The form in which documents that differ in ids, layout, the order of members and in `parameters` only are equal. The
/// order of tasks is part of what a document is.
pub(super) fn canonical(dag: &Dag, parameters: &Parameters) -> String {
    let nodes: HashMap<&str, NodeId> = dag.tasks.iter().map(|task| (task.id.as_str(), task.node)).collect();
    let name = |id: &str| nodes.get(id).map_or_else(|| format!("?{id}"), NodeId::to_string);
    let mut lifted: HashMap<NodeId, LiftedPaths<'_>> = HashMap::new();
    for (number, literal) in parameters.literals.iter().enumerate() {
        for filled in &literal.fills {
            lifted.entry(filled.node).or_default().insert(&filled.path, number);
        }
    }
    let (none, mut out) = (LiftedPaths::new(), String::new());
    between(&mut out, ('[', ']'), &dag.tasks, |task, out| {
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
    /// Where it is.
    path: Vec<Step>,
}

impl CanonicalWriter<'_> {
    fn given(&mut self, given: &Given, out: &mut String) {
        if self.lifts(out) {
            return;
        }
        match given {
            Given::Literal(raw) | Given::Escaped(raw) => match read(raw.get()) {
                Ok(tree) => self.tree(&tree, raw.get(), out),
                Err(BadEscape(_)) => out.push_str(raw.get()),
            },
            Given::Reference(reference) => push_reference(reference, self.name, out),
            Given::Text(parts) => push_parts(parts, self.name, out),
            Given::Object(members) => {
                let mut members: Vec<&(String, Given)> = members.iter().collect();
                members.sort_by_key(|(key, _)| key);
                between(out, ('{', '}'), &members, |(key, value), out| {
                    self.member(key, out, |writer, out| writer.given(value, out));
                });
            }
            Given::Array(items) => {
                let mut places = 0..;
                between(out, ('[', ']'), items, |item, out| {
                    let place = Step::Index(places.next().unwrap_or(u64::MAX));
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
                between(out, ('{', '}'), &members, |member, out| {
                    self.member(&member.key, out, |writer, out| writer.tree(&member.value, text, out));
                });
            }
            JsonKind::Array(items) => {
                let mut places = 0..;
                between(out, ('[', ']'), items, |item, out| {
                    let place = Step::Index(places.next().unwrap_or(u64::MAX));
                    self.step(place, |writer| writer.tree(item, text, out));
                });
            }
            JsonKind::String(text) => {
                out.push_str("{\"$literal\":");
                push_text(text, out);
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
        push_text(key, out);
        out.push(':');
        self.step(Step::Key(key.to_owned()), |writer| write(writer, out));
    }

    fn step(&mut self, step: Step, write: impl FnOnce(&mut Self)) {
        self.path.push(step);
        write(self);
        self.path.pop();
    }

    /// Writes what stands for a lifted literal where there is one.
    fn lifts(&self, out: &mut String) -> bool {
        let Some(number) = self.lifted.get(self.path.as_slice()) else { return false };
        out.push_str(&format!("{{\"$lifted\":{number}}}"));
        true
    }
}
