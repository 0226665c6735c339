//! The part of a plan that says what to learn from the run.

use pml_analysis::{LiteralParameter, Parameters};
use pml_model::json::Fields;
use pml_model::structure::{NodeId, PathStep};
use pml_model::{CapabilityId, Digest, Principal};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// What to learn from a run. It is stored with the plan, because another process may finish the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LearningPlan {
    /// The hash of the program's meaning, which identifies the capability.
    pub identity: String,
    /// The JSON Schema of the parameters.
    pub parameters: Value,
    /// The literals of the program that could be arguments instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub literals: Vec<PlanLiteral>,
    /// The capability that the run executes, if it executes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<CapabilityId>,
    /// Whether tasks were replaced during the run, so that what ran is not what was requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// The program with the values that the intent names taken from `args`. `identity` is then that of this form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted: Option<Box<LiftedPlan>>,
}

/// The program of a plan with the values that its intent names taken from `args`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiftedPlan {
    /// The program.
    pub source: String,
    /// The JSON Schema of its parameters.
    pub parameters: Value,
    /// The literals of the program that could be arguments besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub literals: Vec<PlanLiteral>,
    /// The lifted values by parameter.
    pub values: Map<String, Value>,
}

/// A literal of the program that could be an argument instead.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanLiteral {
    /// The name of the parameter it would become.
    pub name: String,
    /// The value as written; `None` if it is a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The byte ranges of the literal in the source, end exclusive.
    pub written: Vec<(u32, u32)>,
    /// The arguments of nodes that the literal fills: node and path within the argument.
    pub fills: Vec<(NodeId, Vec<PathStep>)>,
}

impl LiftedPlan {
    /// The values that stood in the program, by parameter: the lifted ones and the literals of calls.
    pub fn written_values(&self) -> impl Iterator<Item = (&str, Value)> {
        let literals =
            self.literals.iter().filter_map(|literal| Some((literal.name.as_str(), literal.value.clone()?)));
        self.values.iter().map(|(name, value)| (name.as_str(), value.clone())).chain(literals)
    }
}

impl From<&LiteralParameter> for PlanLiteral {
    fn from(literal: &LiteralParameter) -> PlanLiteral {
        PlanLiteral {
            name: literal.name.clone(),
            value: literal.default.clone(),
            written: literal.written.iter().map(|at| (at.start, at.end)).collect(),
            fills: literal.fills.iter().map(|fill| (fill.node, fill.path.clone())).collect(),
        }
    }
}

impl LearningPlan {
    /// For a program or document with these parameters.
    pub fn new(identity: &str, parameters: &Parameters) -> LearningPlan {
        LearningPlan {
            identity: identity.to_owned(),
            parameters: parameters.schema.clone(),
            literals: parameters.literals.iter().map(PlanLiteral::from).collect(),
            capability: None,
            changed: false,
            lifted: None,
        }
    }

    /// For one call of a tool whose input schema is `schema`.
    pub fn of_tool_call(tool: &str, defaults: &RawValue, schema: &RawValue) -> LearningPlan {
        let canonical = pml_model::json::canonical_json(defaults.get()).unwrap_or_default();
        let mut parameters: Value = serde_json::from_str(schema.get()).unwrap_or_else(|_| json!({}));
        let given = Fields::parse(defaults.get()).unwrap_or_default();
        for (name, value) in given.iter() {
            parameters["properties"][name]["default"] = serde_json::from_str(value.get()).unwrap_or_default();
            remove_required(&mut parameters, name);
        }
        let identity = Digest::of(format!("tool\n{tool}\n{canonical}").as_bytes()).as_str().to_owned();
        LearningPlan {
            identity,
            parameters,
            literals: Vec::new(),
            capability: None,
            changed: false,
            lifted: None,
        }
    }

    /// The id of the capability that this run belongs to.
    pub fn capability_id(&self, principal: &Principal) -> CapabilityId {
        self.capability.clone().unwrap_or_else(|| CapabilityId::of(principal, &self.identity))
    }

    /// For a run of an existing capability.
    pub fn of_capability(capability: CapabilityId) -> LearningPlan {
        LearningPlan {
            identity: String::new(),
            parameters: json!({}),
            literals: Vec::new(),
            capability: Some(capability),
            changed: false,
            lifted: None,
        }
    }
}

pub(crate) fn remove_required(schema: &mut Value, name: &str) {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|required| required != name);
    }
}
