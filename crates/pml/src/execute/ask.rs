//! Approval during a run: the question that is asked, and what its answer means.
//!
//! These functions are pure: the driver, or the code that resumes the run, carries out what they return.

use std::collections::{HashMap, HashSet};

use pml_model::question::{
    ApprovalArguments, ApprovalDecision, ApprovalQuestion, ArgumentOrigin, CallAwaitingSignIn, CallInDoubt,
    CallToApprove, LayerQuestion, Question,
};
use pml_model::{Digest, Principal, RunId};
use pml_store::NewAuditEntry;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::delivery::{CallFailure, RunDelivery};
use super::issued_call::IssuedCall;
use super::observe::Observer;
use crate::approve::question::{MOST_BYTES, grants_of_approval, known_arguments, line_text};
use crate::plan::Grant;
use crate::plan::Plan;

/// The number of calls in one question; further calls are asked about after its answer.
const MOST_CALLS: usize = 50;
/// The number of denials of a tool after which the run may not ask for it again.
const NOES: usize = 3;
/// The number of questions that one run may ask.
pub(super) const MOST_QUESTIONS: u32 = 20;
/// Characters: shorter texts are equal by chance.
const SHORTEST: usize = 6;
/// The number of texts in arguments and results that are compared.
const MOST_TEXTS: usize = 2_000;
/// 64 MiB: the amount of text searched for the origin of a question's arguments. A program may have read and passed on
/// any amount, and other tasks wait meanwhile.
const MOST_COMPARED: usize = 64 << 20;

/// The id of a question: equal for the same question of the same run, whichever process asks it.
pub(super) fn question_id(run: &RunId, asked: &ApprovalQuestion) -> String {
    let mut asked = asked.clone();
    // Approvals of other runs in between do not make it another question.
    asked.calls.iter_mut().for_each(|call| call.differs.clear());
    let text = serde_json::to_string(&asked).expect("a question is plain data");
    Digest::of(format!("{run}\n{text}").as_bytes()).as_str()[..24].to_owned()
}

/// The id of a question about a layer, built in the same way.
pub(super) fn layer_id(run: &RunId, layer: &LayerQuestion) -> String {
    let text = serde_json::to_string(layer).expect("a question is plain data");
    Digest::of(format!("{run}\n{text}").as_bytes()).as_str()[..24].to_owned()
}

/// The id of a question about a sign-in. The same is asked again where it was answered and the sign-in is still missing.
pub(super) fn sign_in_id(run: &RunId, question: &Question, answered: u32) -> String {
    let text = serde_json::to_string(question).expect("a question is plain data");
    Digest::of(format!("{run}\n{answered}\n{text}").as_bytes()).as_str()[..24].to_owned()
}

/// The ends of calls that a person does not want to sign in for.
pub(super) fn end_unsigned_calls(calls: &[CallAwaitingSignIn], reason: Option<&str>) -> Vec<RunDelivery> {
    let end = |unsigned: &CallAwaitingSignIn| RunDelivery::Error {
        call: unsigned.call,
        error: CallFailure::not_signed_in(unsigned, reason),
    };
    calls.iter().map(end).collect()
}

/// The question about calls that wait for approval. `says` gives the annotations of a tool.
pub(super) fn approval_question(
    plan: &Plan,
    observer: &Observer,
    calls: &[&IssuedCall],
    results: &[(u32, Box<RawValue>)],
    says: impl Fn(&str, &Digest) -> String,
) -> ApprovalQuestion {
    let mut left = MOST_COMPARED;
    let mut asked = |issued: &IssuedCall| {
        let tool = plan.tools.get(issued.handle as usize)?;
        let asks = tool.asks.as_ref()?;
        let name = tool.id.to_string();
        let place = observer.line_of(issued.call);
        Some(CallToApprove {
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
            code: place.and_then(|number| line_text(observer.text_of(issued.call), number)),
            arguments: known_arguments(&issued.arguments)?,
            repeats: false,
            origins: origins(&issued.arguments, results, observer, &mut left),
            differs: Vec::new(),
        })
    };
    ApprovalQuestion {
        intent: plan.intent.clone(),
        code_hash: plan.approved_hash(),
        by: plan.by,
        begun: true,
        calls: together(calls).iter().filter_map(|issued| asked(issued)).collect(),
        opaque: plan.opaque.clone(),
    }
}

/// The first calls, as many as one question covers.
fn together<'c, 'i>(calls: &'c [&'i IssuedCall]) -> &'c [&'i IssuedCall] {
    let mut room = MOST_BYTES;
    let fits = |issued: &&&IssuedCall| match room.checked_sub(issued.arguments.len()) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    let fitting = calls.iter().take(MOST_CALLS).take_while(fits).count();
    &calls[..fitting.max(1).min(calls.len())]
}

/// Finds the texts of the arguments that are, or contain, texts of earlier results, until `left` bytes have been
/// searched.
fn origins(
    arguments: &str,
    results: &[(u32, Box<RawValue>)],
    observer: &Observer,
    left: &mut usize,
) -> Vec<ArgumentOrigin> {
    let given = texts(arguments);
    let mut found: Vec<ArgumentOrigin> = Vec::new();
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
                found.push(ArgumentOrigin {
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

/// The texts in a JSON value that are long enough to compare, each with its path.
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

/// The consequences of an answer.
pub(super) enum ApprovalOutcome {
    /// The calls are allowed by these grants.
    Granted(Vec<Grant>),
    /// The calls end with these errors.
    Denied(Vec<RunDelivery>),
}

/// The digest of the arguments of a call.
pub(super) fn arguments_digest(asked: &CallToApprove) -> Option<Digest> {
    match &asked.arguments {
        ApprovalArguments::Known { digest, .. } => Some(digest.clone()),
        ApprovalArguments::Unknown { .. } => None,
    }
}

/// The consequences of a decision on calls that wait.
pub(super) fn apply_decision(
    asked: &ApprovalQuestion,
    decision: &ApprovalDecision,
    now: i64,
) -> ApprovalOutcome {
    if decision.approved {
        return ApprovalOutcome::Granted(grants_of_approval(asked, decision, now));
    }
    let no = |asked: &CallToApprove| {
        let error = CallFailure::denied(&asked.tool, decision.reason.as_deref());
        Some(RunDelivery::Error { call: asked.call?, error })
    };
    ApprovalOutcome::Denied(asked.calls.iter().filter_map(no).collect())
}

/// The ends of the calls in question whose tool has changed its definition. The other calls are asked about again.
pub(super) fn end_changed_calls(asked: &ApprovalQuestion, tool: &str) -> Vec<RunDelivery> {
    let end = |asked: &CallToApprove| {
        Some(RunDelivery::Error { call: asked.call?, error: CallFailure::tool_changed(&asked.tool) })
    };
    asked.calls.iter().filter(|call| call.tool == tool).filter_map(end).collect()
}

/// The denials in this run.
#[derive(Debug, Default)]
pub(super) struct DeniedCalls {
    exactly: HashSet<(String, Option<Digest>)>,
    /// The times of the denials, by tool: one answer that denies many calls counts once.
    noes: HashMap<String, HashSet<i64>>,
}

impl DeniedCalls {
    /// Adds a denial made at the time `at`. A denial that only follows from an earlier one does not count.
    pub(super) fn add(&mut self, tool: &str, value: Option<Digest>, at: i64) {
        if self.exactly.insert((tool.to_owned(), value)) {
            self.noes.entry(tool.to_owned()).or_default().insert(at);
        }
    }

    /// Whether a call is denied without asking, because the answer is known.
    pub(super) fn covers(&self, tool: &str, value: Option<&Digest>) -> bool {
        self.noes.get(tool).is_some_and(|noes| noes.len() >= NOES)
            || self.exactly.contains(&(tool.to_owned(), value.cloned()))
    }
}

/// The audit log entry for a question.
pub(super) fn asked_audit(
    principal: &Principal,
    run: &RunId,
    id: &str,
    asked: &ApprovalQuestion,
    at: i64,
) -> NewAuditEntry {
    let calls: Vec<Value> = asked.calls.iter().map(call_audit).collect();
    let body = json!({ "question": id, "codeHash": asked.code_hash, "calls": calls });
    NewAuditEntry { at, principal: principal.clone(), run: Some(run.clone()), kind: "asked", body }
}

/// The audit log entry for a question about calls in doubt.
pub(super) fn doubt_audit(
    principal: &Principal,
    run: &RunId,
    id: &str,
    calls: &[CallInDoubt],
    at: i64,
) -> NewAuditEntry {
    let calls: Vec<Value> =
        calls.iter().map(|doubt| json!({ "tool": doubt.tool, "call": doubt.call })).collect();
    let body = json!({ "question": id, "inDoubt": calls });
    NewAuditEntry { at, principal: principal.clone(), run: Some(run.clone()), kind: "asked", body }
}

/// The audit log entry for the decision of a question.
pub(super) fn decided_audit(
    principal: &Principal,
    run: &RunId,
    id: &str,
    decision: &ApprovalDecision,
    at: i64,
) -> NewAuditEntry {
    let body = json!({ "question": id, "approved": decision.approved, "by": decision.by });
    NewAuditEntry { at, principal: principal.clone(), run: Some(run.clone()), kind: "decided", body }
}

/// The audit log entry for a call that a standing rule allows.
pub(super) fn rule_audit(principal: &Principal, run: &RunId, grant: &Grant, at: i64) -> NewAuditEntry {
    let body = json!({ "tool": grant.tool, "definition": grant.definition, "arguments": grant.arguments, "by": grant.by });
    NewAuditEntry { at, principal: principal.clone(), run: Some(run.clone()), kind: "allowed by rule", body }
}

/// A call for the audit log, without secrets.
fn call_audit(asked: &CallToApprove) -> Value {
    let arguments = arguments_digest(asked);
    json!({ "tool": asked.tool, "definition": asked.definition, "arguments": arguments, "call": asked.call })
}

#[cfg(test)]
mod tests;
