//! What a dry run has pretended to change at servers other than the built-in `fs`.
//!
//! A thing that a call created is known by the id in its made-up result and by the noun of the tool that created it. A
//! later read of the same server that asks for a thing of this noun and id gets it back, as far as the schema of its
//! result has members of the same names. Everything else that a changed server says is marked: what it would say after
//! the change is not known.

mod nouns;

use std::collections::{BTreeMap, BTreeSet};

use pml_model::ToolId;
use pml_model::json::raw;
use serde_json::{Map, Value};

use crate::execute::dry_run::{DryAnswer, DryContent};
use crate::report::ValueOrigin;
use nouns::{Noun, is_id_name};

/// The most ids of made-up values that are remembered; a list of more things is not worked through one by one.
const MAX_MADE_UP_IDS: usize = 10_000;

/// Changes by server.
#[derive(Debug, Default)]
pub(super) struct ServerState {
    changed: BTreeSet<String>,
    /// Created things by server and id; things of several nouns may have the same id.
    things: BTreeMap<(String, String), Vec<CreatedThing>>,
    /// The ids in values that no tool returned.
    made_up_ids: BTreeSet<String>,
}

/// A thing that a call would have created.
#[derive(Debug)]
struct CreatedThing {
    noun: Noun,
    members: Map<String, Value>,
}

impl ServerState {
    /// Takes note of a call that was not made.
    pub(super) fn note(&mut self, tool: &ToolId, arguments: &Value, result: &Value, effect_free: bool) {
        self.note_ids(result);
        if effect_free {
            return;
        }
        let server = tool.server.to_string();
        self.changed.insert(server.clone());
        // A call that names a known thing changes it in a way that is not known. Which of several things with the same
        // id it names may be unclear, so that none of them is certain any more.
        for named in ids_in(arguments) {
            self.things.remove(&(server.clone(), named.id));
        }
        if let (Some(id), Value::Object(result)) = (own_id(result), result) {
            let mut members = arguments.as_object().cloned().unwrap_or_default();
            members.extend(result.clone());
            let things = self.things.entry((server, id)).or_default();
            things.push(CreatedThing { noun: Noun::of_tool(tool), members });
        }
    }

    /// Remembers the ids in a value that no tool returned.
    pub(super) fn note_ids(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let room = self.made_up_ids.len() < MAX_MADE_UP_IDS;
                    match scalar(member).filter(|_| is_id_name(name)) {
                        Some(id) if room => {
                            self.made_up_ids.insert(id);
                        }
                        _ => self.note_ids(member),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.note_ids(item)),
            _ => {}
        }
    }

    /// Whether the arguments of a call name a thing that only the dry run has created.
    pub(super) fn names_thing(&self, tool: &ToolId, arguments: &Value) -> bool {
        !self.things.is_empty() && ids_in(arguments).iter().any(|named| self.named(tool, named).is_some())
    }

    /// Whether the arguments of a call name something by an id that was made up.
    pub(super) fn names_made_up(&self, arguments: &Value) -> bool {
        !self.made_up_ids.is_empty()
            && ids_in(arguments).iter().any(|named| self.made_up_ids.contains(&named.id))
    }

    /// The latest of the created things that an argument can name.
    fn named(&self, tool: &ToolId, named: &NamedId) -> Option<&CreatedThing> {
        let things = self.things.get(&(tool.server.to_string(), named.id.clone()))?;
        things.iter().rev().find(|thing| thing.noun.is_named_by(&named.argument, tool))
    }

    /// The created thing that a call returns: one that it names, and that is what its tool is about.
    fn returned(&self, tool: &ToolId, arguments: &Value) -> Option<&CreatedThing> {
        let ids = if self.things.is_empty() { Vec::new() } else { ids_in(arguments) };
        let mut single = ids.iter().filter(|named| !named.in_list);
        single.find_map(|named| self.named(tool, named).filter(|thing| thing.noun.is_subject_of(tool)))
    }

    /// Whether the dry run has pretended to change something at the server of a tool.
    pub(super) fn is_changed(&self, tool: &ToolId) -> bool {
        self.changed.contains(tool.server.as_str())
    }

    /// The answer to a read, for which `value` was made up.
    pub(super) fn read(
        &mut self,
        tool: &ToolId,
        arguments: &Value,
        value: Value,
        origin: ValueOrigin,
        schema: Option<&Value>,
    ) -> DryAnswer {
        match (self.returned(tool, arguments), value) {
            (Some(thing), Value::Object(mut told)) => {
                let known =
                    |name: &String| schema.is_none_or(|schema| schema["properties"].get(name).is_some());
                for (name, value) in thing.members.iter().filter(|(name, _)| known(name)) {
                    told.insert(name.clone(), value.clone());
                }
                let content = DryContent::Value(raw(&told));
                DryAnswer { content, origin: ValueOrigin::Overlay, unknown_state: false }
            }
            (_, value) => {
                // What was recorded is what the tool did return once.
                if origin != ValueOrigin::Recorded {
                    self.note_ids(&value);
                }
                let content = DryContent::Value(raw(&value));
                DryAnswer { content, origin, unknown_state: self.is_changed(tool) }
            }
        }
    }
}

/// The id of a made-up thing.
fn own_id(thing: &Value) -> Option<String> {
    ["id", "number", "key", "uuid"].iter().find_map(|name| scalar(&thing[*name]))
}

/// An id in the arguments of a call.
struct NamedId {
    argument: String,
    id: String,
    /// Whether it is one of several.
    in_list: bool,
}

/// The values of arguments that may name a thing.
fn ids_in(arguments: &Value) -> Vec<NamedId> {
    let members = arguments.as_object().into_iter().flatten();
    let mut found = Vec::new();
    for (argument, value) in members.filter(|(name, _)| is_id_name(name)) {
        let (ids, in_list): (Vec<String>, bool) = match value {
            Value::Array(items) => (items.iter().filter_map(scalar).collect(), true),
            value => (Vec::from_iter(scalar(value)), false),
        };
        found.extend(ids.into_iter().map(|id| NamedId { argument: argument.clone(), id, in_list }));
    }
    found
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> ToolId {
        ToolId::parse(name).unwrap()
    }

    /// The state after a call of `shop:NAME` that created something with the id 7.
    fn after(name: &str) -> ServerState {
        let mut state = ServerState::default();
        state.note(&tool(&format!("shop:{name}")), &json!({ "title": "T" }), &json!({ "id": 7 }), false);
        state
    }

    #[track_caller]
    fn check(created_by: &str, read_by: &str, arguments: &Value, is_named: bool) {
        let state = after(created_by);
        assert_eq!(
            state.names_thing(&tool(read_by), arguments),
            is_named,
            "{created_by}, then {read_by} of {arguments}"
        );
        assert!(state.names_made_up(arguments), "{arguments} has the made-up id");
    }

    #[test]
    fn a_thing_is_named_by_its_id_where_the_noun_is_its_own() {
        check("create_order", "shop:get_order", &json!({ "id": 7 }), true);
        check("create_order", "shop:getOrder", &json!({ "id": "7" }), true);
        check("order_create", "shop:get_order_details", &json!({ "orderId": 7 }), true);
        check("create_order", "shop:list_items", &json!({ "order_id": 7 }), true);
        check("create_order", "shop:get_orders", &json!({ "ids": [3, 7] }), true);
        check("write", "shop:read", &json!({ "id": 7 }), true);
        check("create_pull_request", "shop:get_pull_request", &json!({ "pull_number": 7 }), true);
    }

    #[test]
    fn only_a_read_of_the_thing_itself_returns_it() {
        let state = after("create_order");
        let is_returned = |name: &str, arguments: &Value| state.returned(&tool(name), arguments).is_some();
        assert!(is_returned("shop:get_order", &json!({ "order_id": 7 })));
        assert!(is_returned("shop:get", &json!({ "id": 7 })));
        assert!(!is_returned("shop:list_items", &json!({ "order_id": 7 })));
        assert!(!is_returned("shop:get_orders", &json!({ "ids": [7] })));
    }

    #[test]
    fn an_equal_id_of_something_else_names_no_thing() {
        check("create_order", "shop:list_orders", &json!({ "customer_id": "7" }), false);
        check("create_order", "shop:get_customer", &json!({ "id": 7 }), false);
        check("create_order_item", "shop:get_order", &json!({ "order_id": 7 }), false);
        check("create_order", "other:get_order", &json!({ "id": 7 }), false);
    }

    #[test]
    fn a_changed_thing_is_not_certain_any_more_but_stays_made_up() {
        let mut state = after("create_order");
        state.note(&tool("shop:update_order"), &json!({ "order_id": 7 }), &json!({ "ok": true }), false);
        assert!(!state.names_thing(&tool("shop:get_order"), &json!({ "id": 7 })));
        assert!(state.names_made_up(&json!({ "id": 7 })));
        assert!(!state.names_made_up(&json!({ "id": 8, "title": "7" })));
    }

    #[test]
    fn ids_within_a_made_up_value_are_made_up() {
        let mut state = ServerState::default();
        state.note_ids(&json!({ "items": [{ "customer": { "id": "c-1" }, "name": "c-2" }] }));
        assert!(state.names_made_up(&json!({ "customer_id": "c-1" })));
        assert!(!state.names_made_up(&json!({ "customer_id": "c-2" })));
    }
}
