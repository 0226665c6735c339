//! Tests with pairs of intents that rule each other out, and pairs that ask for the same although they look like it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{ReadIntent, ReusableProcedure, SURE, bind, judge};

/// Whether the procedure that served the first intent of a pair is offered for the second one: it is if nothing
/// contradicts it.
fn is_offered(pair: &Value) -> bool {
    let defaults = pair["parameters"].as_object().unwrap();
    let properties: Map<String, Value> =
        defaults.iter().map(|(name, value)| (name.clone(), json!({ "default": value }))).collect();
    let procedure = ReusableProcedure {
        parameters: &json!({ "type": "object", "properties": properties }),
        intents: &[&ReadIntent::new(pair["first"].as_str().unwrap())],
        examples: &BTreeMap::new(),
        reads_only: true,
    };
    let asked = ReadIntent::new(pair["second"].as_str().unwrap());
    let binding = bind(&procedure, &asked, &Map::new());
    let judgement = judge(&procedure, &[], &asked, &binding.arguments);
    let runs = binding.is_complete() && binding.similarity >= SURE;
    assert!(pair["opposed"] == json!(false) || !runs, "runs: {pair}");
    judgement.contradiction.is_none()
}

#[test]
fn what_the_words_rule_out_is_not_offered() {
    let pairs: Vec<Value> = serde_json::from_str(include_str!("opposites.json")).unwrap();
    let is_opposed = |pair: &&Value| pair["opposed"] == json!(true);
    let (opposed, same): (Vec<&Value>, Vec<&Value>) = pairs.iter().partition(is_opposed);
    let wrong = opposed.iter().filter(|pair| is_offered(pair)).map(|pair| format!("offered: {pair}"));
    let lost = same.iter().filter(|pair| !is_offered(pair)).map(|pair| format!("not offered: {pair}"));
    let failures: Vec<String> = wrong.chain(lost).collect();
    assert!(failures.is_empty(), "{} of {}\n{}", failures.len(), pairs.len(), failures.join("\n"));
}
