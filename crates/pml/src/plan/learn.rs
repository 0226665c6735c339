//! What is to be learned of a run.

use pml_analysis::{LiteralParameter, Parameters};
use pml_model::json::Fields;
use pml_model::structure::{NodeId, Step};
use pml_model::{CapabilityId, Digest, Principal};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What is to be learned of a run. Kept with its plan, because another process may be the one that ends it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Learn {
    /// Hash of what the program means.
    pub identity: String,
    /// What it takes, JSON Schema.
    pub parameters: Value,
    /// What it was written with that could as well be given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub literals: Vec<Literal>,
    /// The capability it runs, where it runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<CapabilityId>,
    /// Other tasks took the place of some: what ran is not what was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

/// A literal that could as well be an argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Literal {
    /// The name of the parameter.
    pub name: String,
    /// What is written; nothing where it is a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Where: first byte and the byte after the last.
    pub written: Vec<(u32, u32)>,
    /// Which arguments of which nodes it becomes.
    pub fills: Vec<(NodeId, Vec<Step>)>,
}

impl From<&LiteralParameter> for Literal {
    fn from(literal: &LiteralParameter) -> Literal {
        Literal {
            name: literal.name.clone(),
            value: literal.default.clone(),
            written: literal.written.iter().map(|at| (at.start, at.end)).collect(),
            fills: literal.fills.iter().map(|fill| (fill.node, fill.path.clone())).collect(),
        }
    }
}

impl Learn {
    /// Of a program or document with these parameters.
    pub fn new(identity: &str, parameters: &Parameters) -> Learn {
        Learn {
            identity: identity.to_owned(),
            parameters: parameters.schema.clone(),
            literals: parameters.literals.iter().map(Literal::from).collect(),
            capability: None,
            changed: false,
        }
    }

    /// Of one call of a tool, which takes `schema`.
    pub fn delegation(tool: &str, defaults: &RawValue, schema: &RawValue) -> Learn {
        let canonical = pml_model::json::canonical(defaults.get()).unwrap_or_default();
        let mut parameters: Value = serde_json::from_str(schema.get()).unwrap_or_else(|_| json!({}));
        let given = Fields::parse(defaults.get()).unwrap_or_default();
        for (name, value) in given.iter() {
            parameters["properties"][name]["default"] = serde_json::from_str(value.get()).unwrap_or_default();
            without_required(&mut parameters, name);
        }
        let identity = Digest::of(format!("tool\n{tool}\n{canonical}").as_bytes()).as_str().to_owned();
        Learn { identity, parameters, literals: Vec::new(), capability: None, changed: false }
    }

    /// The capability it is a run of.
    pub fn capability_of(&self, principal: &Principal) -> CapabilityId {
        self.capability.clone().unwrap_or_else(|| CapabilityId::of(principal, &self.identity))
    }

    /// Of a run of something that is known.
    pub fn known(capability: CapabilityId) -> Learn {
        Learn {
            identity: String::new(),
            parameters: json!({}),
            literals: Vec::new(),
            capability: Some(capability),
            changed: false,
        }
    }
}

pub(crate) fn without_required(schema: &mut Value, name: &str) {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|required| required != name);
    }
}
