//! What a person is asked before tools are called that need their word, and what their word amounts to.
//!
//! All of it is plain computation over what is known: nothing is sent, stored or decided here. What cannot be known
//! before the program runs is said to be unknown and asked for again when it is.

use pml_model::Digest;
use pml_model::json::{canonical, raw};
use pml_model::name::shortened;
use pml_model::question::{Answerer, Approval, Arguments, Asked, Decision};
use pml_model::structure::{Argument, Link, Node, NodeId, NodeKind, Step, Structure};
use pml_store::{ApprovalRule, Maker};
use serde_json::Value;

use crate::plan::{Grant, Granted, Nested, Plan};

/// How many places that call one tool are shown; what else calls it is told in one line.
const MOST_PLACES: usize = 50;
/// How much all arguments of a question may have together. What is over that is asked for at the call.
pub(crate) const MOST_BYTES: usize = 1 << 20;
/// How much is shown of a line of the program, and of arguments as they are written: they tell where and why, what is
/// allowed is told apart.
const CODE_CHARACTERS: usize = 400;
const SOURCE_CHARACTERS: usize = 2_000;

/// How long a grant counts when its run goes on for longer.
pub(crate) const GRANT_MS: i64 = 24 * 60 * 60 * 1_000;

/// What is asked before the plan begins: every place that calls a tool which needs a person's word. `says` is what a
/// tool says of itself.
pub(crate) fn before(plan: &Plan, says: impl Fn(&Granted) -> String) -> Option<Approval> {
    let arguments: Value = serde_json::from_str(plan.arguments.get()).unwrap_or_default();
    let (mut calls, mut room) = (Vec::new(), MOST_BYTES);
    for (handle, tool) in (0..).zip(&plan.tools) {
        let Some(asks) = &tool.asks else { continue };
        let name = tool.id.to_string();
        let blank = || Asked {
            tool: name.clone(),
            definition: tool.digest.clone(),
            description: says(tool),
            scope: asks.scope.clone(),
            because: asks.because.clone(),
            call: None,
            node: None,
            line: None,
            code: None,
            arguments: Arguments::Unknown { source: "whatever the program hands on".to_owned() },
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
        let inside: Vec<(&Nested, &Node)> = inside.filter(|(_, node)| calls_tool(node, &name)).collect();
        let places = sites.len() + inside.len();
        if (places == 0 && plan.opaque.is_empty()) || sites.len().max(inside.len()) > MOST_PLACES {
            calls.push(blank());
        }
        for (nested, node) in inside.into_iter().take(MOST_PLACES) {
            let by = format!("capability `{}` calls it", nested.name);
            calls.push(Asked {
                because: match asks.because.contains(&by) {
                    true => asks.because.clone(),
                    false => format!("{}; {by}", asks.because),
                },
                code: line(&nested.source, node.at.line),
                // What it is given by whoever calls it is not known, nor how often.
                arguments: foreseen(node, &nested.source, &Value::Null, &mut room),
                ..blank()
            });
        }
        for node in sites.into_iter().take(MOST_PLACES) {
            calls.push(Asked {
                node: Some(node.id.to_string()),
                line: Some(node.at.line),
                code: line(&plan.source, node.at.line),
                arguments: foreseen(node, &plan.source, &arguments, &mut room),
                repeats: repeats(&plan.structure, node.id),
                ..blank()
            });
        }
    }
    calls.sort_by_key(|asked| asked.line);
    (!calls.is_empty()).then(|| Approval {
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
pub(crate) fn line(source: &str, number: u32) -> Option<String> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    source.lines().nth(index).map(|line| shortened(line.trim(), CODE_CHARACTERS))
}

fn foreseen(node: &Node, source: &str, arguments: &Value, room: &mut usize) -> Arguments {
    let known = node.kind.arguments().and_then(|given| resolved(given, arguments));
    let json = known.map(|value| raw(&value)).filter(|json| json.get().len() <= *room);
    match json.as_ref().and_then(|json| known_arguments(json.get())) {
        Some(known) => {
            *room -= json.map_or(0, |json| json.get().len());
            known
        }
        None => {
            let written = source.get(node.at.start as usize..node.at.end as usize).unwrap_or_default();
            Arguments::Unknown { source: shortened(written, SOURCE_CHARACTERS) }
        }
    }
}

/// Arguments that are known, as a person is shown them.
pub(crate) fn known_arguments(json: &str) -> Option<Arguments> {
    Some(Arguments::Known { json: json.to_owned(), digest: value_digest(json)? })
}

/// The digest of the value that `json` spells.
pub(crate) fn value_digest(json: &str) -> Option<Digest> {
    canonical(json).ok().map(|canonical| Digest::of(canonical.as_bytes()))
}

/// The value of an argument that is known before the program runs.
fn resolved(argument: &Argument, arguments: &Value) -> Option<Value> {
    match argument {
        Argument::Literal { value } => Some(value.clone()),
        Argument::Parameter { name, path } => {
            let root = if name.is_empty() { arguments } else { arguments.get(name)? };
            path.iter().try_fold(root, |value, step| follow(value, step)).cloned()
        }
        Argument::Object { fields, spreads } if spreads.is_empty() => {
            let field = |field: &pml_model::structure::Field| {
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
                // Other numbers are spelled differently in JavaScript.
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

fn follow<'v>(value: &'v Value, step: &Step) -> Option<&'v Value> {
    match step {
        Step::Index(index) => value.get(usize::try_from(*index).ok()?),
        Step::Key(key) => value.get(key),
        Step::Any => None,
    }
}

/// Whether a node may be come to more than once.
fn repeats(structure: &Structure, node: NodeId) -> bool {
    structure.edges.iter().any(|edge| edge.link == Link::Contains && edge.to == node)
}

/// What a person's yes allows.
pub(crate) fn grants(asked: &Approval, decision: &Decision, now: i64) -> Vec<Grant> {
    let expires_at = now.saturating_add(GRANT_MS);
    let grant = |asked: &Asked| Grant {
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
        let mut tools: Vec<&Asked> = asked.calls.iter().collect();
        tools.sort_by(|a, b| a.tool.cmp(&b.tool));
        tools.dedup_by(|a, b| a.tool == b.tool);
        return tools.into_iter().map(|asked| Grant { calls: most, ..grant(asked) }).collect();
    }
    let bound = |asked: &Asked| match &asked.arguments {
        Arguments::Known { digest, .. } if !asked.repeats => {
            Grant { arguments: Some(digest.clone()), call: asked.call, calls: 1, ..grant(asked) }
        }
        // It may be come to; each call is asked for when its arguments are known.
        Arguments::Known { .. } | Arguments::Unknown { .. } => grant(asked),
    };
    asked.calls.iter().map(bound).collect()
}

/// What standing rules allow of what would be asked; that is asked no more. Where the arguments are not known yet and a
/// rule might allow them, it is asked at the call.
pub(crate) fn by_rules(
    question: &mut Option<Approval>,
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
            Arguments::Known { digest, .. } => (Some(digest), if call.repeats { most } else { 1 }),
            Arguments::Unknown { .. } => (None, most),
        };
        match by_rule(rules, (&call.tool, &call.definition), &code_hash, value, calls, now) {
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

/// The rules that count under a setting: where only a person may answer, those that a person made.
pub(crate) fn counting(rules: Vec<ApprovalRule>, by: Answerer) -> Vec<ApprovalRule> {
    let counts = |rule: &ApprovalRule| by == Answerer::Client || rule.maker == Maker::Person;
    rules.into_iter().filter(counts).collect()
}

/// The grant a standing rule makes for calls of a tool, with the number of the rule.
pub(crate) fn by_rule(
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
