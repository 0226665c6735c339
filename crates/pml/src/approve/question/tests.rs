//! Tests of the question before a program starts, and of the grants an approval gives.

use pml_model::question::{Answerer, ApprovalArguments};
use serde_json::json;

use super::*;

/// A call that needs approval.
pub(in crate::approve) fn asked(tool: &str, arguments: Option<&str>, repeats: bool) -> CallToApprove {
    CallToApprove {
        tool: tool.to_owned(),
        definition: Digest::of(b"definition"),
        description: String::new(),
        scope: "filesystem".to_owned(),
        because: "it changes things".to_owned(),
        call: None,
        node: None,
        line: None,
        code: None,
        arguments: match arguments {
            Some(json) => known_arguments(json).unwrap(),
            None => ApprovalArguments::Unknown { source: "x".to_owned() },
        },
        repeats,
        origins: Vec::new(),
        differs: Vec::new(),
    }
}

/// A question about calls.
pub(in crate::approve) fn question(calls: Vec<CallToApprove>) -> ApprovalQuestion {
    ApprovalQuestion {
        intent: "try".to_owned(),
        code_hash: "c0de".to_owned(),
        by: Answerer::Client,
        begun: false,
        calls,
        opaque: Vec::new(),
    }
}

fn yes(any_arguments: Option<u32>) -> ApprovalDecision {
    ApprovalDecision {
        approved: true,
        reason: None,
        any_arguments,
        remember: None,
        by: "somebody".to_owned(),
    }
}

fn rule(tool: &str, arguments: Option<&str>, code_hash: Option<&str>) -> ApprovalRule {
    ApprovalRule {
        number: 7,
        principal: pml_model::Principal::local(),
        tool: tool.to_owned(),
        definition: Digest::of(b"definition"),
        code_hash: code_hash.map(str::to_owned),
        arguments: arguments.map(|json| value_digest(json).unwrap()),
        expires_at: 10_000,
        maker: RuleMaker::Person,
        by: "somebody".to_owned(),
        created_at: 0,
        revoked_at: None,
        uses: 0,
        used_at: None,
    }
}

#[test]
fn a_yes_is_bound_to_the_value_that_was_seen_and_to_one_call() {
    let grants = grants_of_approval(
        &question(vec![asked("fs:write", Some(r#"{"b":1,"a":2}"#), false)]),
        &yes(None),
        5,
    );
    let [grant] = grants.as_slice() else { panic!("{grants:?}") };
    assert_eq!((grant.calls, grant.expires_at), (1, 5 + GRANT_MS));
    assert_eq!(
        grant.arguments,
        value_digest(r#"{ "a": 2, "b": 1 }"#),
        "the order of members is no part of the value"
    );
    assert_ne!(grant.arguments, value_digest(r#"{"a":2,"b":1,"c":3}"#));
}

#[test]
fn what_nobody_has_seen_is_not_allowed_beforehand() {
    let calls = vec![asked("fs:write", None, false), asked("fs:write", Some("{}"), true)];
    let grants = grants_of_approval(&question(calls), &yes(None), 0);
    assert!(grants.iter().all(|grant| grant.calls == 0), "{grants:?}");
}

#[test]
fn any_arguments_are_allowed_so_many_calls_of_each_tool() {
    let calls = vec![
        asked("fs:write", None, true),
        asked("fs:write", Some("{}"), false),
        asked("fs:delete", None, false),
    ];
    let grants = grants_of_approval(&question(calls), &yes(Some(3)), 0);
    let each: Vec<(&str, u32, bool)> =
        grants.iter().map(|grant| (grant.tool.as_str(), grant.calls, grant.arguments.is_none())).collect();
    assert_eq!(each, [("fs:delete", 3, true), ("fs:write", 3, true)]);
}

#[test]
fn a_rule_takes_out_of_the_question_exactly_what_it_is_about() {
    let calls = || {
        Some(question(vec![
            asked("fs:write", Some(r#"{"path":"a"}"#), false),
            asked("fs:write", Some(r#"{"path":"b"}"#), false),
        ]))
    };
    let mut open = calls();
    let grants = grants_by_rules(&mut open, &[rule("fs:write", Some(r#"{"path":"a"}"#), None)], 100, 0);
    assert_eq!((grants.len(), open.unwrap().calls.len()), (1, 1));
    assert_eq!((grants[0].0, grants[0].1.expires_at), (7, 10_000), "a grant does not outlive its rule");

    let mut open = calls();
    assert_eq!(grants_by_rules(&mut open, &[rule("fs:write", None, Some("c0de"))], 100, 0).len(), 2);
    assert!(open.is_none());

    for other in [rule("fs:delete", None, None), rule("fs:write", None, Some("other"))] {
        let mut open = calls();
        assert!(grants_by_rules(&mut open, &[other], 100, 0).is_empty());
        assert_eq!(open.unwrap().calls.len(), 2);
    }
    let mut changed = rule("fs:write", None, None);
    changed.definition = Digest::of(b"another");
    assert!(
        grants_by_rules(&mut calls(), &[changed], 100, 0).is_empty(),
        "another definition is another tool"
    );
}

#[test]
fn arguments_are_foreseen_only_where_nothing_has_to_run_first() {
    let args = json!({ "path": "a.txt", "deep": [{ "x": 1 }] });
    let literal = |value: Value| Argument::Literal { value };
    let parameter = |name: &str, path: Vec<PathStep>| Argument::Parameter { name: name.to_owned(), path };
    let known = |argument: &Argument| resolved(argument, &args);
    assert_eq!(known(&parameter("path", Vec::new())), Some(json!("a.txt")));
    assert_eq!(
        known(&parameter("deep", vec![PathStep::Index(0), PathStep::Key("x".to_owned())])),
        Some(json!(1))
    );
    assert_eq!(known(&parameter("gone", Vec::new())), None);
    let template = |part| Argument::Template { parts: vec![literal(json!("to ")), part] };
    assert_eq!(known(&template(parameter("path", Vec::new()))), Some(json!("to a.txt")));
    assert_eq!(known(&template(literal(json!(0.1)))), None, "spelled differently by JavaScript, perhaps");
    assert_eq!(known(&Argument::Expression { source: "f()".to_owned(), reads: Vec::new() }), None);
}

#[test]
fn where_only_a_person_may_answer_only_rules_of_people_count() {
    let of = |maker| ApprovalRule { maker, ..rule("fs:write", None, None) };
    let all = vec![of(RuleMaker::Unknown), of(RuleMaker::Person)];
    assert_eq!(rules_that_count(all.clone(), Answerer::Client).len(), 2);
    assert_eq!(rules_that_count(all, Answerer::Human), [of(RuleMaker::Person)]);
}
