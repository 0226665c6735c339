//! Finds how a program has to change because the definition of a tool it calls has changed.
//!
//! A change is followed only where the definitions themselves are evidence of it: the old name is gone, exactly one new
//! one has its type, and either the names are forms of each other or the description is still the same, word for word.
//! Everything else is left to people. What is found is an offer: nothing here decides what runs. Pure.

mod evidence;
mod source;

use pml_analysis::{AnalysisCatalogue, Severity};
use pml_model::structure::{Argument, NodeKind, Structure};
use pml_model::{Definition, ToolId};
use serde_json::{Map, Value};

pub use source::edit_program;

use self::evidence::{FieldShape, fields, is_same_tool, leaves, names_one_value};

/// A tool as its server offers it.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    /// Its id.
    pub id: ToolId,
    /// Its name in programs.
    pub identifier: String,
    /// Its definition.
    pub definition: Definition,
    /// Whether it was offered when the program last worked.
    pub is_new: bool,
}

/// A change that a program has to follow.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramEdit {
    /// The tool has another name.
    RenameTool {
        /// Its new id.
        to: ToolId,
        /// Its new name in programs.
        identifier: String,
    },
    /// A field of the arguments has another name.
    RenameField {
        /// The name before.
        from: String,
        /// The name now.
        to: String,
    },
    /// A field of the arguments has to be given now, and has a default.
    AddField {
        /// Its name.
        name: String,
        /// Its default.
        value: Value,
    },
    /// A part of the result is elsewhere.
    MoveResult {
        /// The members that led to it.
        from: Vec<String>,
        /// The members that lead to it now.
        to: Vec<String>,
    },
}

/// The changes that follow one definition, and what they go by.
#[derive(Debug, Clone, PartialEq)]
pub struct Repair {
    /// The changes.
    pub edits: Vec<ProgramEdit>,
    /// Why they are the right ones, one sentence each.
    pub evidence: Vec<String>,
}

/// How a program that called `before` has to change, given the tools that its server offers now; `None` if the definitions
/// do not show it. `given` are the fields of the arguments that it gives, and `reads` says whether it mentions a member of
/// a result.
pub fn find_repair(
    before: (&ToolId, &Definition),
    offered: &[OfferedTool],
    given: &[String],
    reads: impl Fn(&str) -> bool,
) -> Option<Repair> {
    let (id, old) = before;
    let mut repair = Repair { edits: Vec::new(), evidence: Vec::new() };
    let now = match offered.iter().find(|tool| tool.id == *id) {
        Some(now) => now,
        None => renamed_tool(id, old, offered, &mut repair)?,
    };
    follow_input(old, &now.definition, given, &mut repair)?;
    follow_output(old, &now.definition, reads, &mut repair)?;
    (!repair.edits.is_empty()).then_some(repair)
}

/// A program that follows a changed definition.
#[derive(Debug, Clone)]
pub struct RepairedProgram {
    /// The program.
    pub code: String,
    /// What was changed, and why.
    pub repair: Repair,
}

/// The program `code`, whose structure this is, after the definition of a tool that it calls has changed; `None` if the
/// definitions do not show how. The new program makes the same calls under the same conditions, and `catalogue`, which has
/// the tools that there are now, has nothing against it.
pub fn repair_program(
    code: &str,
    structure: &Structure,
    (id, before): (&ToolId, &Definition),
    offered: &[OfferedTool],
    catalogue: &AnalysisCatalogue,
) -> Option<RepairedProgram> {
    let tool = id.to_string();
    let given = given_fields(structure, &tool)?;
    let repair = find_repair((id, before), offered, &given, |member| mentions(code, member))?;
    let edited = edit_program(code, structure, &tool, &repair.edits)?;
    let analysis = pml_analysis::analyse(&edited, catalogue).ok()?;
    let is_wrong = |complaint: &pml_analysis::Complaint| complaint.severity == Severity::Error;
    let now = repair.edits.iter().find_map(|edit| match edit {
        ProgramEdit::RenameTool { to, .. } => Some(to.to_string()),
        _ => None,
    });
    let calls_before = calls(structure, (&tool, now.as_deref().unwrap_or(&tool)));
    let same = calls_before == calls(&analysis.structure, ("", ""));
    (same && !analysis.complaints.iter().any(is_wrong)).then_some(RepairedProgram { code: edited, repair })
}

/// The names of the fields that the calls of a tool give; `None` if they cannot all be known.
fn given_fields(structure: &Structure, tool: &str) -> Option<Vec<String>> {
    let mut given: Vec<String> = Vec::new();
    for node in &structure.nodes {
        let NodeKind::Task { tool: called, arguments, .. } = &node.kind else { continue };
        if called != tool {
            continue;
        }
        match arguments {
            Argument::Object { fields, spreads } if spreads.is_empty() => {
                for field in fields {
                    if !given.contains(&field.name) {
                        given.push(field.name.clone());
                    }
                }
            }
            _ => return None,
        }
    }
    Some(given)
}

/// The nodes and the order of a structure, with one tool under another name.
fn calls(structure: &Structure, (from, to): (&str, &str)) -> Vec<(String, String)> {
    let name = |kind: &NodeKind| match kind {
        NodeKind::Task { tool, .. } if tool == from => to.to_owned(),
        NodeKind::Task { tool, .. } => tool.clone(),
        NodeKind::Capability { capability, .. } => format!("capability {capability}"),
        other => format!("{:?}", std::mem::discriminant(other)),
    };
    structure.nodes.iter().map(|node| (node.id.to_string(), name(&node.kind))).collect()
}

/// Whether a program has a word in it.
fn mentions(code: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    code.match_indices(word)
        .any(|(at, _)| !code[..at].ends_with(is_word) && !code[at + word.len()..].starts_with(is_word))
}

/// The tool that has another name now: the only new one that takes and gives the same.
fn renamed_tool<'t>(
    id: &ToolId,
    old: &Definition,
    offered: &'t [OfferedTool],
    repair: &mut Repair,
) -> Option<&'t OfferedTool> {
    let description = |definition: &Definition| definition.description.clone().unwrap_or_default();
    let fits = |tool: &&OfferedTool| {
        tool.is_new
            && tool.id.server == id.server
            && same_fields(&old.input_schema, &tool.definition.input_schema)
            && claims_no_more_effects(old, &tool.definition)
            && is_same_tool((&id.tool, &description(old)), (&tool.id.tool, &description(&tool.definition)))
    };
    let mut fitting = offered.iter().filter(fits);
    let (found, other) = (fitting.next()?, fitting.next());
    if other.is_some() {
        return None;
    }
    let (to, identifier) = (found.id.clone(), found.identifier.clone());
    repair.evidence.push(format!("`{id}` is gone, and `{to}` is new, takes the same and is described alike"));
    repair.edits.push(ProgramEdit::RenameTool { to, identifier });
    Some(found)
}

/// Whether a tool that is to take the place of another one says of itself what that one said, or that it only reads.
fn claims_no_more_effects(old: &Definition, new: &Definition) -> bool {
    let (old, new) = (&old.annotations, &new.annotations);
    let only_reads = new.read_only_hint == Some(true) && new.open_world_hint == old.open_world_hint;
    only_reads || new == old
}

/// Whether two schemas have the same fields of the same types.
fn same_fields(one: &serde_json::value::RawValue, other: &serde_json::value::RawValue) -> bool {
    let of = |schema: &serde_json::value::RawValue| {
        serde_json::from_str::<Value>(schema.get()).ok().map(|schema| fields(&schema))
    };
    match (of(one), of(other)) {
        (Some(one), Some(other)) => {
            one.len() == other.len()
                && one.iter().all(|field| {
                    other.iter().any(|there| {
                        there.name == field.name
                            && there.kind == field.kind
                            && there.required == field.required
                    })
                })
        }
        _ => false,
    }
}

/// Follows renamed fields of the arguments and new required ones. `None` if the program gives what is taken no more.
fn follow_input(old: &Definition, new: &Definition, given: &[String], repair: &mut Repair) -> Option<()> {
    let tool = old.name.as_str();
    let old: Value = serde_json::from_str(old.input_schema.get()).ok()?;
    let new: Value = serde_json::from_str(new.input_schema.get()).ok()?;
    let (before, now) = (fields(&old), fields(&new));
    let find = |all: &[FieldShape], name: &str| all.iter().find(|field| field.name == name).cloned();
    let gone: Vec<&FieldShape> = before.iter().filter(|field| find(&now, &field.name).is_none()).collect();
    let fresh: Vec<&FieldShape> = now.iter().filter(|field| find(&before, &field.name).is_none()).collect();
    let mut taken: Vec<&str> = Vec::new();
    for name in given {
        let field = find(&before, name)?;
        match find(&now, name) {
            // Another type under the same name is another thing.
            Some(there) if there.kind != field.kind => return None,
            Some(_) => continue,
            None => {}
        }
        let fits = |candidate: &&&FieldShape| field.is_same_thing(candidate, tool);
        let mut fitting = fresh.iter().filter(fits);
        let (found, other) = (fitting.next()?, fitting.next());
        let is_claimed = gone.iter().filter(|rival| rival.is_same_thing(found, tool)).count() > 1;
        if other.is_some() || is_claimed {
            return None;
        }
        taken.push(&found.name);
        repair.evidence.push(format!(
            "the argument `{name}` is gone, and `{}` is the only new one of its type that is named or described alike",
            found.name
        ));
        repair.edits.push(ProgramEdit::RenameField { from: name.clone(), to: found.name.clone() });
    }
    let is_given = |field: &&FieldShape| given.contains(&field.name) || taken.contains(&field.name.as_str());
    for field in now.iter().filter(|field| !is_given(field)) {
        let was = find(&before, &field.name);
        let is_same = was.is_some_and(|was| was.schema.get("default") == field.schema.get("default"));
        if field.may_change_effect() && (field.required || !is_same) {
            return None;
        }
    }
    for field in now.iter().filter(|field| field.required && !is_given(field)) {
        let value = names_one_value(&field.schema)?;
        repair
            .evidence
            .push(format!("the argument `{}` is required now and has the default {value}", field.name));
        repair.edits.push(ProgramEdit::AddField { name: field.name.clone(), value });
    }
    Some(())
}

/// Follows parts of the result that moved. `None` if something that the program mentions is gone for good.
fn follow_output(
    old: &Definition,
    new: &Definition,
    reads: impl Fn(&str) -> bool,
    repair: &mut Repair,
) -> Option<()> {
    let tool = old.name.as_str();
    let (Some(old), Some(new)) = (&old.output_schema, &new.output_schema) else { return Some(()) };
    let old: Value = serde_json::from_str(old.get()).ok()?;
    let new: Value = serde_json::from_str(new.get()).ok()?;
    let (before, now) = (leaves(&old), leaves(&new));
    let gone: Vec<_> =
        before.iter().filter(|leaf| !now.iter().any(|there| there.path == leaf.path)).collect();
    for leaf in &before {
        if let Some(there) = now.iter().find(|there| there.path == leaf.path) {
            if there.shape.kind != leaf.shape.kind && reads(&leaf.shape.name) {
                return None;
            }
            continue;
        }
        if !reads(&leaf.shape.name) {
            continue;
        }
        let fits = |there: &&evidence::Leaf| {
            !before.iter().any(|known| known.path == there.path)
                && there.shape.kind == leaf.shape.kind
                && leaf.shape.is_same_thing(&there.shape, tool)
        };
        let mut fitting = now.iter().filter(fits);
        let (found, other) = (fitting.next()?, fitting.next());
        let is_claimed = gone
            .iter()
            .filter(|rival| {
                rival.shape.has_same_name(&found.shape, tool) || rival.shape.is_same_thing(&found.shape, tool)
            })
            .count()
            > 1;
        if other.is_some() || is_claimed {
            return None;
        }
        repair.evidence.push(format!(
            "`{}` of the result is gone, and `{}` is the only new part of its type that is named or described alike",
            leaf.path.join("."),
            found.path.join(".")
        ));
        repair.edits.push(ProgramEdit::MoveResult { from: leaf.path.clone(), to: found.path.clone() });
    }
    Some(())
}

/// A part of the result that `code` mentions and the new definition has no more, or as another type.
pub fn lost_result(before: &Definition, now: &Definition, code: &str) -> Option<String> {
    let schema = |definition: &Definition| {
        serde_json::from_str::<Value>(definition.output_schema.as_ref()?.get()).ok()
    };
    let (before, now) = (leaves(&schema(before)?), leaves(&schema(now)?));
    let is_lost = |leaf: &&evidence::Leaf| {
        mentions(code, &leaf.shape.name)
            && !now.iter().any(|there| there.path == leaf.path && there.shape.kind == leaf.shape.kind)
    };
    before.iter().find(is_lost).map(|leaf| leaf.path.join("."))
}

/// The arguments of a recorded call as the changed program gives them.
pub fn map_arguments(edits: &[ProgramEdit], arguments: &Map<String, Value>) -> Map<String, Value> {
    let renamed = |name: &String| {
        let to = edits.iter().find_map(|edit| match edit {
            ProgramEdit::RenameField { from, to } if from == name => Some(to.clone()),
            _ => None,
        });
        to.unwrap_or_else(|| name.clone())
    };
    // The edited program gives added fields first, the last one added at the front.
    let added = edits.iter().rev().filter_map(|edit| match edit {
        ProgramEdit::AddField { name, value } => Some((name.clone(), value.clone())),
        _ => None,
    });
    added.chain(arguments.iter().map(|(name, value)| (renamed(name), value.clone()))).collect()
}

/// The result of a recorded call as the tool gives it now.
pub fn map_result(edits: &[ProgramEdit], result: &Value) -> Value {
    let mut mapped = result.clone();
    for edit in edits {
        if let ProgramEdit::MoveResult { from, to } = edit
            && let Some(value) = take(&mut mapped, from)
        {
            put(&mut mapped, to, value);
        }
    }
    mapped
}

fn take(value: &mut Value, path: &[String]) -> Option<Value> {
    match path {
        [] => None,
        [last] => value.as_object_mut()?.shift_remove(last),
        [first, rest @ ..] => take(value.get_mut(first)?, rest),
    }
}

fn put(value: &mut Value, path: &[String], new: Value) {
    let Some((first, rest)) = path.split_first() else {
        *value = new;
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    if let Some(members) = value.as_object_mut() {
        put(members.entry(first.clone()).or_insert(Value::Null), rest, new);
    }
}

#[cfg(test)]
mod tests;
