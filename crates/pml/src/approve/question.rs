//! The question a person answers before tools that need approval are called, and the grants that follow from the
//! answer.
//!
//! These are pure functions: they send, store and decide nothing. Arguments that cannot be known before the program
//! runs are marked unknown, and approval is asked for again at the call.

use pml_model::Digest;
use pml_model::json::{canonical_json, raw};
use pml_model::name::truncate_text;
use pml_model::question::{Answerer, ApprovalArguments, ApprovalDecision, ApprovalQuestion, CallToApprove};
use pml_model::structure::{Argument, EdgeLink, Node, NodeId, NodeKind, PathStep, Structure};
use pml_store::{ApprovalRule, RuleMaker};
use serde_json::Value;

use crate::plan::{Grant, Plan, PlannedCapability, PlannedTool};

/// The number of places shown per tool; the remaining ones are counted in one line.
const MOST_PLACES: usize = 50;
/// Bytes: the limit of all arguments in one question. Arguments beyond it are approved at the call.
pub(crate) const MOST_BYTES: usize = 1 << 20;
/// The number of characters shown of a line of the program. It shows where and why; the question lists what is allowed
/// separately.
const CODE_CHARACTERS: usize = 400;
/// The number of characters shown of unknown arguments, as they are written in the program.
const SOURCE_CHARACTERS: usize = 2_000;

/// 24 h in milliseconds: how long a grant counts if its run takes longer.
pub(crate) const GRANT_MS: i64 = 24 * 60 * 60 * 1_000;

/// The question before a plan starts: every place that calls a tool which needs approval. `says` gives the annotations
/// of a tool.
pub(crate) fn question_before_start(
    plan: &Plan,
    says: impl Fn(&PlannedTool) -> String,
) -> Option<ApprovalQuestion> {
    let arguments: Value = serde_json::from_str(plan.arguments.get()).unwrap_or_default();
    let (mut calls, mut room) = (Vec::new(), MOST_BYTES);
    for (handle, tool) in (0..).zip(&plan.tools) {
        let Some(asks) = &tool.asks else { continue };
        let name = tool.id.to_string();
        let blank = || CallToApprove {
            tool: name.clone(),
            definition: tool.digest.clone(),
            description: says(tool),
            scope: asks.scope.clone(),
            because: asks.because.clone(),
            call: None,
            node: None,
            line: None,
            code: None,
            arguments: ApprovalArguments::Unknown { source: "whatever the program hands on".to_owned() },
            repeats: true,
            origins: Vec::new(),
            differs: Vec::new(),
        };
        let sites: Vec<&Node> = plan
            .structure
            .nodes
            .iter()
            .filter(|node| calls_tool(node, &name) && plan.may_call(node.id, handle))
            .collect();
        let nested = || plan.nested.iter().filter(|nested| nested.sees.tools.contains(&handle));
        let inside =
            nested().flat_map(|nested| nested.structure.nodes.iter().map(move |node| (nested, node)));
        let inside: Vec<(&PlannedCapability, &Node)> =
            inside.filter(|(_, node)| calls_tool(node, &name)).collect();
        let places = sites.len() + inside.len();
        if (places == 0 && plan.opaque.is_empty()) || sites.len().max(inside.len()) > MOST_PLACES {
            calls.push(blank());
        }
        for (nested, node) in inside.into_iter().take(MOST_PLACES) {
            let by = format!("capability `{}` calls it", nested.name);
            calls.push(CallToApprove {
                because: match asks.because.contains(&by) {
                    true => asks.because.clone(),
                    false => format!("{}; {by}", asks.because),
                },
                code: line_text(&nested.source, node.at.line),
                // Neither the arguments its caller passes nor the number of calls is known.
                arguments: foreseen(node, &nested.source, &Value::Null, &mut room),
                ..blank()
            });
        }
        for node in sites.into_iter().take(MOST_PLACES) {
            calls.push(CallToApprove {
                node: Some(node.id.to_string()),
                line: Some(node.at.line),
                code: line_text(&plan.source, node.at.line),
                arguments: foreseen(node, &plan.source, &arguments, &mut room),
                repeats: repeats(&plan.structure, node.id),
                ..blank()
            });
        }
    }
    calls.sort_by_key(|asked| asked.line);
    (!calls.is_empty()).then(|| ApprovalQuestion {
        intent: plan.intent.clone(),
        code_hash: plan.approved_hash(),
        by: plan.by,
        begun: false,
        calls,
        opaque: plan.opaque.clone(),
    })
}

fn calls_tool(node: &Node, name: &str) -> bool {
    matches!(&node.kind, NodeKind::Task { tool, .. } if tool == name)
}

/// A line of the source.
pub(crate) fn line_text(source: &str, number: u32) -> Option<String> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    source.lines().nth(index).map(|line| truncate_text(line.trim(), CODE_CHARACTERS))
}

fn foreseen(node: &Node, source: &str, arguments: &Value, room: &mut usize) -> ApprovalArguments {
    let known = node.kind.arguments().and_then(|given| resolved(given, arguments));
    let json = known.map(|value| raw(&value)).filter(|json| json.get().len() <= *room);
    match json.as_ref().and_then(|json| known_arguments(json.get())) {
        Some(known) => {
            *room -= json.map_or(0, |json| json.get().len());
            known
        }
        None => {
            let written = source.get(node.at.start as usize..node.at.end as usize).unwrap_or_default();
            ApprovalArguments::Unknown { source: truncate_text(written, SOURCE_CHARACTERS) }
        }
    }
}

/// Known arguments in the form that is shown to a person.
pub(crate) fn known_arguments(json: &str) -> Option<ApprovalArguments> {
    Some(ApprovalArguments::Known { json: json.to_owned(), digest: value_digest(json)? })
}

/// The digest of the value that `json` encodes.
pub(crate) fn value_digest(json: &str) -> Option<Digest> {
    canonical_json(json).ok().map(|canonical| Digest::of(canonical.as_bytes()))
}

/// The value of an argument, if it is known before the program runs.
fn resolved(argument: &Argument, arguments: &Value) -> Option<Value> {
    match argument {
        Argument::Literal { value } => Some(value.clone()),
        Argument::Parameter { name, path } => {
            let root = if name.is_empty() { arguments } else { arguments.get(name)? };
            path.iter().try_fold(root, |value, step| follow(value, step)).cloned()
        }
        Argument::Object { fields, spreads } if spreads.is_empty() => {
            let field = |field: &pml_model::structure::ArgumentField| {
                Some((field.name.clone(), resolved(&field.value, arguments)?))
            };
            Some(Value::Object(fields.iter().map(field).collect::<Option<_>>()?))
        }
        Argument::Array { items } => {
            Some(Value::Array(items.iter().map(|item| resolved(item, arguments)).collect::<Option<_>>()?))
        }
        Argument::Template { parts } => {
            let text = |part: &Argument| match resolved(part, arguments)? {
                Value::String(text) => Some(text),
                Value::Bool(flag) => Some(flag.to_string()),
                // JavaScript prints other numbers differently.
                Value::Number(number) => {
                    number.as_i64().filter(|n| n.unsigned_abs() < 1 << 53).map(|n| n.to_string())
                }
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            };
            Some(Value::String(parts.iter().map(text).collect::<Option<String>>()?))
        }
        Argument::Object { .. }
        | Argument::Reference { .. }
        | Argument::Item { .. }
        | Argument::Expression { .. } => None,
    }
}

fn follow<'v>(value: &'v Value, step: &PathStep) -> Option<&'v Value> {
    match step {
        PathStep::Index(index) => value.get(usize::try_from(*index).ok()?),
        PathStep::Key(key) => value.get(key),
        PathStep::Any => None,
    }
}

/// Whether a node may be reached more than once.
fn repeats(structure: &Structure, node: NodeId) -> bool {
    structure.edges.iter().any(|edge| edge.link == EdgeLink::Contains && edge.to == node)
}

/// The grants that follow from a person's approval.
pub(crate) fn grants_of_approval(
    asked: &ApprovalQuestion,
    decision: &ApprovalDecision,
    now: i64,
) -> Vec<Grant> {
    let expires_at = now.saturating_add(GRANT_MS);
    let grant = |asked: &CallToApprove| Grant {
        tool: asked.tool.clone(),
        definition: asked.definition.clone(),
        defined_at: None,
        arguments: None,
        call: None,
        calls: 0,
        expires_at,
        by: decision.by.clone(),
    };
    if let Some(most) = decision.any_arguments {
        let mut tools: Vec<&CallToApprove> = asked.calls.iter().collect();
        tools.sort_by(|a, b| a.tool.cmp(&b.tool));
        tools.dedup_by(|a, b| a.tool == b.tool);
        return tools.into_iter().map(|asked| Grant { calls: most, ..grant(asked) }).collect();
    }
    let bound = |asked: &CallToApprove| match &asked.arguments {
        ApprovalArguments::Known { digest, .. } if !asked.repeats => {
            Grant { arguments: Some(digest.clone()), call: asked.call, calls: 1, ..grant(asked) }
        }
        // The program may reach this call; each call needs approval once its arguments are known.
        ApprovalArguments::Known { .. } | ApprovalArguments::Unknown { .. } => grant(asked),
    };
    asked.calls.iter().map(bound).collect()
}

/// The grants that standing rules give for the calls in question; those calls leave the question. If arguments are
/// unknown yet and a rule might allow them, approval is decided at the call.
pub(crate) fn grants_by_rules(
    question: &mut Option<ApprovalQuestion>,
    rules: &[ApprovalRule],
    most: u32,
    now: i64,
) -> Vec<(i64, Grant)> {
    let Some(asked) = question else { return Vec::new() };
    let mut grants = Vec::new();
    let code_hash = asked.code_hash.clone();
    asked.calls.retain(|call| {
        let fits = |rule: &&ApprovalRule| is_for(rule, &call.tool, &call.definition, &code_hash);
        let (value, calls) = match &call.arguments {
            ApprovalArguments::Known { digest, .. } => (Some(digest), if call.repeats { most } else { 1 }),
            ApprovalArguments::Unknown { .. } => (None, most),
        };
        match grant_by_rule(rules, (&call.tool, &call.definition), &code_hash, value, calls, now) {
            Some(grant) => grants.push(grant),
            None => return value.is_some() || !rules.iter().any(|rule| fits(&rule)),
        }
        false
    });
    if asked.calls.is_empty() {
        *question = None;
    }
    grants
}

/// The rules that count under the setting `by`: where only a person may answer, only rules that a person made.
pub(crate) fn rules_that_count(rules: Vec<ApprovalRule>, by: Answerer) -> Vec<ApprovalRule> {
    let counts = |rule: &ApprovalRule| by == Answerer::Client || rule.maker == RuleMaker::Person;
    rules.into_iter().filter(counts).collect()
}

/// The grant that a standing rule gives for calls of a tool, with the number of the rule.
pub(crate) fn grant_by_rule(
    rules: &[ApprovalRule],
    (tool, definition): (&str, &Digest),
    code_hash: &str,
    value: Option<&Digest>,
    calls: u32,
    now: i64,
) -> Option<(i64, Grant)> {
    let allows = |rule: &&ApprovalRule| rule.arguments.is_none() || rule.arguments.as_ref() == value;
    let rule = rules.iter().filter(|rule| is_for(rule, tool, definition, code_hash)).find(allows)?;
    let grant = Grant {
        tool: rule.tool.clone(),
        definition: rule.definition.clone(),
        defined_at: None,
        arguments: rule.arguments.clone(),
        call: None,
        calls,
        expires_at: rule.expires_at.min(now.saturating_add(GRANT_MS)),
        by: format!("rule {}, made by {}", rule.number, rule.by),
    };
    Some((rule.number, grant))
}

fn is_for(rule: &ApprovalRule, tool: &str, definition: &Digest, code_hash: &str) -> bool {
    rule.tool == tool
        && rule.definition == *definition
        && rule.code_hash.as_deref().is_none_or(|hash| hash == code_hash)
}

#[cfg(test)]
pub(super) mod tests;
