//! What a dry run has pretended to change at servers other than the built-in `fs`.
//!
//! A thing that a call created is known by the id in its made-up result. A later read of the same server that asks for
//! this id gets the thing back, as far as the schema of its result has members of the same names. Everything else that
//! a changed server says is marked: what it would say after the change is not known.

use std::collections::{BTreeMap, BTreeSet};

use pml_model::ToolId;
use pml_model::json::raw;
use serde_json::{Map, Value};

use crate::execute::dry_run::{DryAnswer, DryContent};
use crate::report::ValueOrigin;

/// Changes by server.
#[derive(Debug, Default)]
pub(super) struct ServerState {
    changed: BTreeSet<String>,
    /// Created things by server and id.
    things: BTreeMap<(String, String), Map<String, Value>>,
}

impl ServerState {
    /// Takes note of a call that was not made.
    pub(super) fn note(&mut self, tool: &ToolId, arguments: &Value, result: &Value, effect_free: bool) {
        if effect_free {
            return;
        }
        let server = tool.server.to_string();
        self.changed.insert(server.clone());
        // A call that names a known thing changes it in a way that is not known.
        for id in ids_in(arguments) {
            self.things.remove(&(server.clone(), id));
        }
        if let (Some(id), Value::Object(result)) = (own_id(result), result) {
            let mut thing = arguments.as_object().cloned().unwrap_or_default();
            thing.extend(result.clone());
            self.things.insert((server, id), thing);
        }
    }

    /// Whether the dry run has pretended to change something at the server of a tool.
    pub(super) fn is_changed(&self, tool: &ToolId) -> bool {
        self.changed.contains(tool.server.as_str())
    }

    /// The answer to a read, for which `value` was made up.
    pub(super) fn read(
        &self,
        tool: &ToolId,
        arguments: &Value,
        value: Value,
        origin: ValueOrigin,
        schema: Option<&Value>,
    ) -> DryAnswer {
        let thing =
            ids_in(arguments).into_iter().find_map(|id| self.things.get(&(tool.server.to_string(), id)));
        match (thing, value) {
            (Some(thing), Value::Object(mut told)) => {
                let known =
                    |name: &String| schema.is_none_or(|schema| schema["properties"].get(name).is_some());
                for (name, value) in thing.iter().filter(|(name, _)| known(name)) {
                    told.insert(name.clone(), value.clone());
                }
                let content = DryContent::Value(raw(&told));
                DryAnswer { content, origin: ValueOrigin::Overlay, unknown_state: false }
            }
            (_, value) => DryAnswer {
                content: DryContent::Value(raw(&value)),
                origin,
                unknown_state: self.is_changed(tool),
            },
        }
    }
}

/// The id of a made-up thing.
fn own_id(thing: &Value) -> Option<String> {
    ["id", "number", "key", "uuid"].iter().find_map(|name| scalar(&thing[*name]))
}

/// The values of arguments that may name a thing.
fn ids_in(arguments: &Value) -> Vec<String> {
    let named = |name: &str| {
        let name = name.to_ascii_lowercase();
        name == "id"
            || name == "number"
            || name == "key"
            || name == "uuid"
            || name.ends_with("id")
            || name.ends_with("_number")
            || name.ends_with("_key")
    };
    let members = arguments.as_object().into_iter().flatten();
    members.filter(|(name, _)| named(name)).filter_map(|(_, value)| scalar(value)).collect()
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
