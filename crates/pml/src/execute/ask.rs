//! Asking a person: what is asked while a run is under way, and what the answer means for it.
//!
//! Pure: the driver and whoever takes a run up again carry out what is said here.

use std::collections::{HashMap, HashSet};

use pml_model::question::{Approval, Arguments, Asked, Decision, Doubt, Layer, Origin};
use pml_model::{Digest, Principal, RunId};
use pml_store::Audit;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::journal::{CallError, Delivered};
use super::observe::Observer;
use super::run::Issued;
use crate::approve::question::{MOST_BYTES, grants, known_arguments, line};
use crate::plan::Grant;
use crate::plan::Plan;

/// How many calls one question is about at most; others are asked for when it is answered.
const MOST_CALLS: usize = 50;
/// How often a person says no to a tool before the run is no longer allowed to ask for it.
const NOES: usize = 3;
/// How many questions one run may ask.
pub(super) const MOST_QUESTIONS: u32 = 20;
/// Texts shorter than this are equal by chance.
const SHORTEST: usize = 6;
/// How many texts of arguments and results are compared.
const MOST_TEXTS: usize = 2_000;
/// How much text is gone through to find where the arguments of one question come from: a program may have read and
/// hand on as much as it likes, and others wait meanwhile.
const MOST_COMPARED: usize = 64 << 20;

/// The name of a question: the same for the same question of the same run, whichever process asks it.
pub(super) fn question_id(run: &RunId, asked: &Approval) -> String {
    let mut asked = asked.clone();
    // What other runs were allowed meanwhile does not make it another question.
    asked.calls.iter_mut().for_each(|call| call.differs.clear());
    let text = serde_json::to_string(&asked).expect("a question is plain data");
    Digest::of(format!("{run}\n{text}").as_bytes()).as_str()[..24].to_owned()
}

/// The name of a question about a layer, in the same way.
pub(super) fn layer_id(run: &RunId, layer: &Layer) -> String {
    let text = serde_json::to_string(layer).expect("a question is plain data");
    Digest::of(format!("{run}\n{text}").as_bytes()).as_str()[..24].to_owned()
}

/// What a person is asked about calls that wait for their word. `says` is what a tool says of itself.
pub(super) fn about(
    plan: &Plan,
    observer: &Observer,
    calls: &[&Issued],
    results: &[(u32, Box<RawValue>)],
    says: impl Fn(&str, &Digest) -> String,
) -> Approval {
    let mut left = MOST_COMPARED;
    let mut asked = |issued: &Issued| {
        let tool = plan.tools.get(issued.handle as usize)?;
        let asks = tool.asks.as_ref()?;
        let name = tool.id.to_string();
        let place = observer.line_of(issued.call);
        Some(Asked {
            definition: tool.digest.clone(),
            description: says(&name, &tool.digest),
            tool: name,
            scope: asks.scope.clone(),
            because: match observer.caller_of(issued.call).filter(|name| !asks.because.contains(*name)) {
                Some(name) => format!("{}; capability `{name}` calls it", asks.because),
                None => asks.because.clone(),
            },
            call: Some(issued.call),
            node: issued.node.clone(),
            line: place,
            code: place.and_then(|number| line(observer.text_of(issued.call), number)),
            arguments: known_arguments(&issued.arguments)?,
            repeats: false,
            origins: origins(&issued.arguments, results, observer, &mut left),
            differs: Vec::new(),
        })
    };
    Approval {
        intent: plan.intent.clone(),
        code_hash: plan.approved_hash(),
        by: plan.by,
        begun: true,
        calls: together(calls).iter().filter_map(|issued| asked(issued)).collect(),
        opaque: plan.opaque.clone(),
    }
}

/// The first calls, as many as one question is about.
fn together<'c, 'i>(calls: &'c [&'i Issued]) -> &'c [&'i Issued] {
    let mut room = MOST_BYTES;
    let fits = |issued: &&&Issued| match room.checked_sub(issued.arguments.len()) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    let fitting = calls.iter().take(MOST_CALLS).take_while(fits).count();
    &calls[..fitting.max(1).min(calls.len())]
}

/// Which texts of the arguments are, or contain, texts of earlier results, as far as there is text `left` to go through.
fn origins(
    arguments: &str,
    results: &[(u32, Box<RawValue>)],
    observer: &Observer,
    left: &mut usize,
) -> Vec<Origin> {
    let given = texts(arguments);
    let mut found: Vec<Origin> = Vec::new();
    for (call, result) in results {
        let (Some(tool), node) = (observer.tool(*call), observer.node_of(*call)) else { continue };
        *left = left.saturating_sub(result.get().len());
        if given.is_empty() || *left == 0 {
            break;
        }
        let theirs = texts(result.get());
        let length: usize = theirs.iter().map(|(_, text)| text.len()).sum();
        for (part, text) in &given {
            *left = left.saturating_sub(length + text.len() * theirs.len());
            if *left == 0 {
                break;
            }
            let shared = |(_, result): &(String, String)| {
                if result.contains(text.as_str()) {
                    Some(text.chars().count())
                } else {
                    text.contains(result.as_str()).then(|| result.chars().count())
                }
            };
            if let Some(characters) = theirs.iter().filter_map(shared).max() {
                found.push(Origin {
                    part: part.clone(),
                    from: tool.to_owned(),
                    node: node.map(|node| node.to_string()),
                    characters: Some(characters),
                });
            }
        }
    }
    found
}

/// The texts in a JSON value that are long enough to be told apart, each with its place.
fn texts(json: &str) -> Vec<(String, String)> {
    fn collect(value: Value, place: String, found: &mut Vec<(String, String)>) {
        match value {
            _ if found.len() >= MOST_TEXTS => {}
            Value::String(text) if text.chars().nth(SHORTEST - 1).is_some() => found.push((place, text)),
            Value::Array(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    collect(item, format!("{place}[{index}]"), found);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let place = if place.is_empty() { key } else { format!("{place}.{key}") };
                    collect(member, place, found);
                }
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut found = Vec::new();
    collect(serde_json::from_str(json).unwrap_or_default(), String::new(), &mut found);
    found
}

/// What an answer amounts to.
pub(super) enum Decided {
    /// These are allowed.
    Yes(Vec<Grant>),
    /// These calls end with an error.
    No(Vec<Delivered>),
}

/// The value a call is made with.
pub(super) fn value_of(asked: &Asked) -> Option<Digest> {
    match &asked.arguments {
        Arguments::Known { digest, .. } => Some(digest.clone()),
        Arguments::Unknown { .. } => None,
    }
}

/// What a decision on calls that are being made amounts to.
pub(super) fn decided(asked: &Approval, decision: &Decision, now: i64) -> Decided {
    if decision.approved {
        return Decided::Yes(grants(asked, decision, now));
    }
    let no = |asked: &Asked| {
        let error = CallError::denied(&asked.tool, decision.reason.as_deref());
        Some(Delivered::Error { call: asked.call?, error })
    };
    Decided::No(asked.calls.iter().filter_map(no).collect())
}

/// The ends of the calls in question whose tool has another definition by now. What else was asked about is asked anew.
pub(super) fn changed(asked: &Approval, tool: &str) -> Vec<Delivered> {
    let end = |asked: &Asked| {
        Some(Delivered::Error { call: asked.call?, error: CallError::tool_changed(&asked.tool) })
    };
    asked.calls.iter().filter(|call| call.tool == tool).filter_map(end).collect()
}

/// What people said no to in this run.
#[derive(Debug, Default)]
pub(super) struct Refused {
    exactly: HashSet<(String, Option<Digest>)>,
    /// When, by tool: one no to many calls is one no.
    noes: HashMap<String, HashSet<i64>>,
}

impl Refused {
    /// Takes in a no that was said at that time. What follows from an earlier one is none.
    pub(super) fn add(&mut self, tool: &str, value: Option<Digest>, at: i64) {
        if self.exactly.insert((tool.to_owned(), value)) {
            self.noes.entry(tool.to_owned()).or_default().insert(at);
        }
    }

    /// Whether a call needs not be asked for, because the answer is known.
    pub(super) fn covers(&self, tool: &str, value: Option<&Digest>) -> bool {
        self.noes.get(tool).is_some_and(|noes| noes.len() >= NOES)
            || self.exactly.contains(&(tool.to_owned(), value.cloned()))
    }
}

/// What the audit log says of a question.
pub(super) fn asked_audit(principal: &Principal, run: &RunId, id: &str, asked: &Approval, at: i64) -> Audit {
    let calls: Vec<Value> = asked.calls.iter().map(call_audit).collect();
    let body = json!({ "question": id, "codeHash": asked.code_hash, "calls": calls });
    Audit { at, principal: principal.clone(), run: Some(run.clone()), kind: "asked", body }
}

/// What the audit log says of a question about calls in doubt.
pub(super) fn doubt_audit(principal: &Principal, run: &RunId, id: &str, calls: &[Doubt], at: i64) -> Audit {
    let calls: Vec<Value> =
        calls.iter().map(|doubt| json!({ "tool": doubt.tool, "call": doubt.call })).collect();
    let body = json!({ "question": id, "inDoubt": calls });
    Audit { at, principal: principal.clone(), run: Some(run.clone()), kind: "asked", body }
}

/// What the audit log says of what an answer came to.
pub(super) fn decided_audit(
    principal: &Principal,
    run: &RunId,
    id: &str,
    decision: &Decision,
    at: i64,
) -> Audit {
    let body = json!({ "question": id, "approved": decision.approved, "by": decision.by });
    Audit { at, principal: principal.clone(), run: Some(run.clone()), kind: "decided", body }
}

/// What the audit log says of a call that a rule allows.
pub(super) fn rule_audit(principal: &Principal, run: &RunId, grant: &Grant, at: i64) -> Audit {
    let body = json!({ "tool": grant.tool, "definition": grant.definition, "arguments": grant.arguments, "by": grant.by });
    Audit { at, principal: principal.clone(), run: Some(run.clone()), kind: "allowed by rule", body }
}

/// A call in words that hold nothing secret.
fn call_audit(asked: &Asked) -> Value {
    let arguments = value_of(asked);
    json!({ "tool": asked.tool, "definition": asked.definition, "arguments": arguments, "call": asked.call })
}

#[cfg(test)]
mod tests;
