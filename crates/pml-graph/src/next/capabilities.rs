//! Capabilities that come next because everything they need is at hand.
//!
//! A capability is one hyperedge: it is reached when each of its required parameters is a result of a tool that was
//! used. Its cost is that of any hyperpath, so how well the results fit and how reliable the capability is both count.

use crate::call_paths::{ArgumentSource, CallGraph, CallOptions, GivenArgument, PossibleCall};
use crate::graph::feeds::mappings_among;
use crate::graph::fields::ToolFields;

/// Least fit of a result with a parameter: below it, two fields have no more in common than their kind.
const LEAST_RESULT: f32 = 0.3;

/// A capability that may be called.
#[derive(Debug, Clone)]
pub struct CallableCapability {
    /// Its parameters.
    pub fields: ToolFields,
    /// The share of its runs that succeeded.
    pub reliability: f64,
}

/// A capability that is reached from the results at hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReachedCapability {
    /// Its place among the capabilities.
    pub capability: usize,
    /// How well what is at hand fits, from 0 to 1.
    pub fit: f32,
    /// The place of the used tool that gives its first parameter.
    pub from: usize,
}

/// The capabilities that are reached from the results of the tools in `used`, most recent last; best first.
pub fn reached_capabilities(
    capabilities: &[CallableCapability],
    used: &[&ToolFields],
) -> Vec<ReachedCapability> {
    let reached = |(place, capability)| reach(place, capability, used);
    let mut found: Vec<ReachedCapability> = capabilities.iter().enumerate().filter_map(reached).collect();
    found.sort_by(|a, b| b.fit.total_cmp(&a.fit));
    found
}

fn reach(place: usize, capability: &CallableCapability, used: &[&ToolFields]) -> Option<ReachedCapability> {
    let inputs = capability.fields.inputs.iter().filter(|input| input.required);
    let required: Vec<String> = inputs.map(|input| input.name.clone()).collect();
    // What needs nothing could come at any time.
    if required.is_empty() {
        return None;
    }
    // The latest results come first, so that they win where several fit alike.
    let givers: Vec<&ToolFields> = used.iter().rev().copied().collect();
    let all: Vec<&ToolFields> = givers.iter().copied().chain([&capability.fields]).collect();
    let links =
        mappings_among(&all, |from, to| from < givers.len() && to == givers.len(), |input| input.required);
    let given = links.into_iter().filter(|(_, _, mapping)| mapping.weight >= LEAST_RESULT);
    let given = given.map(|(from, _, mapping)| GivenArgument {
        call: 0,
        parameter: mapping.to,
        value: from,
        fit: f64::from(mapping.weight.min(1.0)),
    });
    let options = CallOptions {
        given: given.collect(),
        calls: vec![PossibleCall { required, reliability: capability.reliability }],
        steps: vec![vec![(0, 1.0)]],
        ..CallOptions::default()
    };
    let mut graph = CallGraph::new(&options).ok()?;
    let path = graph.paths().next()?;
    let from = path.calls.first()?.arguments.iter().find_map(|(_, source)| match source {
        ArgumentSource::Given(value) => Some(givers.len() - 1 - value),
        ArgumentSource::Result { .. } => None,
    })?;
    #[expect(clippy::cast_possible_truncation, reason = "a probability")]
    let fit = (-path.cost).exp() as f32;
    Some(ReachedCapability { capability: place, fit, from })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::graph::fields::FieldsDefinition;

    fn fields(name: &str, input: &Value, output: &Value) -> ToolFields {
        ToolFields::from_definition(&FieldsDefinition {
            id: name,
            name,
            description: "",
            input_schema: input,
            output_schema: Some(output),
        })
    }

    fn object(names: &[&str]) -> Value {
        let properties: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": properties, "required": names })
    }

    fn capability(needs: &[&str], reliability: f64) -> CallableCapability {
        CallableCapability { fields: fields("capability", &object(needs), &Value::Null), reliability }
    }

    #[test]
    fn a_capability_is_reached_when_all_it_needs_is_at_hand() {
        let none = object(&[]);
        let user = fields("find_user", &none, &object(&["user_id"]));
        let order = fields("find_order", &none, &object(&["order_id"]));
        let capabilities = [
            capability(&["user_id", "order_id"], 1.0),
            capability(&["user_id"], 0.5),
            capability(&["user_id"], 1.0),
            capability(&["invoice_id"], 1.0),
            capability(&[], 1.0),
        ];
        let places = |used: &[&ToolFields]| -> Vec<(usize, usize)> {
            reached_capabilities(&capabilities, used).iter().map(|one| (one.capability, one.from)).collect()
        };
        assert_eq!(places(&[&user]), [(2, 0), (1, 0)], "the more reliable first");
        let both = places(&[&order, &user]);
        assert_eq!(both.len(), 3, "{both:?}");
        assert!(both.contains(&(2, 1)), "{both:?}");
        assert_eq!(places(&[]), []);
    }
}
