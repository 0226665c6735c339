//! Tests with pairs of a first and a second intent, each labelled by hand with the expected outcome.
//!
//! A label gives the arguments with which the second intent runs, or says that it must not run. Running with other
//! arguments is always an error; not running where it could is tolerated up to a bound.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{ArgumentBinding, ReadIntent, ReusableProcedure, SURE, bind};

/// Counts of outcomes over a set of pairs.
#[derive(Debug, Default)]
struct PairCounts {
    safe: usize,
    run: usize,
    wrong: Vec<String>,
    not_run: Vec<String>,
}

/// A schema from defaults: a plain value becomes a property of its type with that default.
fn schema(defaults: &Map<String, Value>) -> Value {
    let of = |value: &Value| match value {
        Value::Object(_) => value.clone(),
        Value::String(_) => json!({"type": "string", "default": value}),
        Value::Bool(_) => json!({"type": "boolean", "default": value}),
        number => json!({"type": "integer", "default": number}),
    };
    let properties: Map<String, Value> =
        defaults.iter().map(|(name, value)| (name.clone(), of(value))).collect();
    json!({"type": "object", "properties": properties})
}

/// The binding of `intent` by the procedure of a pair, and whether it runs.
fn outcome(pair: &Value, intent: &str) -> (ArgumentBinding, bool) {
    let procedure = ReusableProcedure {
        parameters: &schema(pair["parameters"].as_object().unwrap()),
        intents: &[&ReadIntent::new(pair["first"].as_str().unwrap())],
        examples: &BTreeMap::new(),
        reads_only: pair["reads_only"].as_bool().unwrap(),
    };
    let context = pair.get("context").and_then(Value::as_object).cloned().unwrap_or_default();
    let binding = bind(&procedure, &ReadIntent::new(intent), &context);
    let runs = binding.is_complete() && binding.similarity >= SURE;
    (binding, runs)
}

fn count(pairs: &str) -> PairCounts {
    let pairs: Vec<Value> = serde_json::from_str(pairs).unwrap();
    let mut count = PairCounts::default();
    for pair in &pairs {
        let (first, second) = (pair["first"].as_str().unwrap(), pair["second"].as_str().unwrap());
        let (binding, runs) = outcome(pair, second);
        let told = || format!("{first:?} -> {second:?}: {binding:?}");
        match &pair["runs"] {
            Value::Object(expected) => {
                count.safe += 1;
                match (runs, binding.arguments == *expected) {
                    (true, true) => count.run += 1,
                    (true, false) => count.wrong.push(told()),
                    (false, _) => count.not_run.push(told()),
                }
            }
            _ if runs => count.wrong.push(told()),
            _ => {}
        }
    }
    println!("{} pairs, {} safe, {} run, {} wrong", pairs.len(), count.safe, count.run, count.wrong.len());
    println!("not run:\n{}", count.not_run.join("\n"));
    count
}

#[test]
fn safe_intents_run_and_others_do_not() {
    let count = count(include_str!("pairs.json"));
    assert!(count.wrong.is_empty(), "{}", count.wrong.join("\n"));
    assert!(count.safe >= 60 && count.run * 100 >= count.safe * 80, "{} of {}", count.run, count.safe);
}

/// Free paraphrases: fewer of them run than of close ones, but none runs with wrong arguments.
#[test]
fn free_paraphrases_are_run_or_suggested_but_never_wrong() {
    let count = count(include_str!("paraphrases.json"));
    assert!(count.wrong.is_empty(), "{}", count.wrong.join("\n"));
    assert!(count.run * 100 >= count.safe * 50, "{} of {}", count.run, count.safe);
}

/// Other forms of words, comparisons, units, values in another order, booleans in words, and what looks like them.
#[test]
fn reworded_intents_run_and_what_looks_like_them_does_not() {
    let count = count(include_str!("reworded.json"));
    assert!(count.wrong.is_empty(), "{}", count.wrong.join("\n"));
    assert!(count.run * 100 >= count.safe * 85, "{} of {}", count.run, count.safe);
}

/// French second intents over English first ones and the reverse.
#[test]
fn french_intents_run_and_what_looks_like_them_does_not() {
    let count = count(include_str!("french.json"));
    assert!(count.wrong.is_empty(), "{}", count.wrong.join("\n"));
    assert!(count.run * 100 >= count.safe * 80, "{} of {}", count.run, count.safe);
}

/// Pairs that were written after the code and never used to improve it.
#[test]
fn unseen_intents_fare_no_worse() {
    let count = count(include_str!("unseen.json"));
    assert!(count.wrong.is_empty(), "{}", count.wrong.join("\n"));
    assert!(count.run * 100 >= count.safe * 80, "{} of {}", count.run, count.safe);
}

#[test]
fn asking_for_more_or_the_opposite_never_runs() {
    let pairs: Vec<Value> = serde_json::from_str(include_str!("pairs.json")).unwrap();
    let mut ran = Vec::new();
    for pair in pairs.iter().filter(|pair| pair["runs"].is_object()) {
        let intent = pair["second"].as_str().unwrap().trim_end_matches(['.', '?', ' ']);
        for more in MORE {
            let asked = more.replace("{}", intent);
            if outcome(pair, &asked).1 {
                ran.push(format!("{} -> {asked}", pair["first"]));
            }
        }
    }
    assert!(ran.is_empty(), "{}", ran.join("\n"));
}

/// Additions that make any intent ask for something else.
const MORE: &[&str] = &[
    "{} and email it to bob@example.com",
    "{} tomorrow",
    "{} demain",
    "{} twice",
    "{} in 2025",
    "{} except the first",
    "{} sauf le premier",
    "{} and delete it",
    "{} puis supprime-le",
    "{} for Bob",
    "{} without errors",
    "{} per author",
    "{} sorted by name",
    "{} only once",
    "{} 7",
    "{} then stop",
    "{} \"x\"",
    "{} @zoe",
    "{} #zoe",
    "{} ./zoe",
    "don't {}",
    "never {}",
    "ne pas {}",
    "stop {}",
    "explain how to {}",
    "if it is Monday, {}",
    "pretend to {}",
    "avoid {}",
    "undo: {}",
];
