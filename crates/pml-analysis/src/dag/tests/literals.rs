//! Which literals of a document become parameters.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use serde_json::json;

use super::{analyse, good};

#[test]
fn which_literals_are_shared_is_part_of_what_a_document_does() {
    let identity = |tasks: &str| {
        let document = format!("{{\"tasks\":[{tasks}]}}");
        good(&document).identity.identity
    };
    let copied = |one: &str, other: &str| {
        identity(&format!(
            r#"{{"id":"a","tool":"fs:read","arguments":{{"path":"{one}"}}}},{{"id":"b","tool":"fs:read","arguments":{{"path":"{other}"}}}}"#
        ))
    };
    assert_eq!(copied("x", "x"), copied("y", "y"));
    assert_eq!(copied("x", "y"), copied("y", "z"));
    assert_ne!(copied("x", "x"), copied("x", "y"));
    // The order of members does not change the numbering.
    let nested = |arguments: &str| {
        let analysis = good(&format!(
            r#"{{"tasks":[{{"id":"a","capability":"weather:report","arguments":{arguments}}}]}}"#
        ));
        let literals = analysis.parameters.literals;
        let names = literals.into_iter().map(|literal| (literal.name, literal.default)).collect::<Vec<_>>();
        (analysis.identity.identity, names)
    };
    let (one, other) =
        (nested(r#"{"a":{"city":"A"},"b":{"city":"B"}}"#), nested(r#"{"b":{"city":"B"},"a":{"city":"A"}}"#));
    assert_eq!(one, other);
    assert_eq!(one.1[1], ("city_2".to_owned(), Some(json!("B"))));
}

/// The arguments of a document, and its lifted literals: where they are written and what they fill.
#[track_caller]
fn check_literals(tasks: &str, expected: &Expect) {
    let document = format!("{{\"tasks\": [{tasks}]}}");
    let analysis = analyse(&document).unwrap();
    let mut shown = format!("{}\n", analysis.parameters.schema);
    for literal in &analysis.parameters.literals {
        let written = literal.written.iter().map(|at| &document[at.start as usize..at.end as usize]);
        let fills = literal.fills.iter().map(|filled| format!("{}{}", filled.node, json!(filled.path)));
        let (written, fills): (Vec<&str>, Vec<String>) = (written.collect(), fills.collect());
        writeln!(shown, "{} {} for {}", literal.name, written.join(" and "), fills.join(" and ")).unwrap();
    }
    for complaint in &analysis.complaints {
        let (severity, code) = (complaint.severity, complaint.code);
        writeln!(shown, "{severity:?} {code:?}: {}{}", complaint.message, complaint.excerpt).unwrap();
        writeln!(shown, "    {}", complaint.hint.as_deref().unwrap_or_default()).unwrap();
    }
    expected.assert_eq(&shown);
}

#[test]
fn literals_handed_to_tools_are_parameters() {
    check_literals(
        r#"{"id": "a", "tool": "fs:read", "arguments": {"path": "x\u0031"}},
           {"id": "b", "tool": "fs:read", "arguments": {"path": "y"}},
           {"id": "c", "tool": "mail:send-mail", "arguments": {"to": "x1", "text": "{{a}} and {{args.to}}", "copies": 2}},
           {"id": "d", "capability": "weather:report", "arguments": {"in": [{"path": "y"}, ["p", "q"]], "odd name": 1.5}}"#,
        &expect![[r#"
            {"type":"object","required":["to"],"properties":{"to":{},"path":{"type":"string","default":"x1"},"path_2":{"type":"string","default":"y"},"copies":{"type":"integer","default":2},"to_2":{"type":"string","default":"x1"},"in":{"type":"array","default":["p","q"]},"odd name":{"type":"number","default":1.5}}}
            path "x\u0031" for n1["path"]
            path_2 "y" and "y" for n2["path"] and n4["in",0,"path"]
            copies 2 for n3["copies"]
            to_2 "x1" for n3["to"]
            in ["p", "q"] for n4["in",1]
            odd name 1.5 for n4["odd name"]
        "#]],
    );
}

#[test]
fn what_would_be_another_document_stays() {
    check_literals(
        r#"{"id": "a", "capability": "weather:report", "arguments": {"on": true, "none": null, "query": "x", "searchQuery": "x",
             "text": "two\nlines", "pinned": {"$literal": "x"}, "spelled": 1.50, "large": 12345678901234567890123, "huge": 1e999,
             "list": [1.0, 1.50], "from": "see {{args.from}}"}},
           {"id": "b", "code": "return args.x", "arguments": {"x": "y"}}"#,
        &expect![[r#"
            {"type":"object","required":["from"],"properties":{"from":{},"list":{"type":"number","default":1.0}}}
            list 1.0 for n1["list",0]
        "#]],
    );
    check_literals(
        r#"{"id": "a", "tool": "fs:read", "arguments": {"path": "x"}},
           {"id": "b", "capability": "weather:report", "arguments": {"$ref": "args"}}"#,
        &expect![[r#"
            {"type":"object","required":[],"properties":{}}
        "#]],
    );
}

#[test]
fn a_secret_has_to_be_given() {
    let tasks = r#"{"id": "a", "capability": "weather:report", "arguments": {"city": "Oslo", "api_key": "0123456789",
        "apiKey": {"$literal": "abcdefghij"}, "in": {"$literal": {"password": "never lifted"}}}}"#;
    check_literals(
        tasks,
        &expect![[r#"
        {"type":"object","required":["apiKey","api_key"],"properties":{"apiKey":{"type":"string"},"api_key":{"type":"string"},"city":{"type":"string","default":"Oslo"}}}
        apiKey {"$literal": "abcdefghij"} for n1["apiKey"]
        api_key "0123456789" for n1["api_key"]
        city "Oslo" for n1["city"]
        Warning Secret: the document contains a secret; a capability learned from it takes `api_key` as a parameter instead
            pass it as an argument: `{"$ref":"args.api_key"}`
        Warning Secret: the document contains a secret; a capability learned from it takes `apiKey` as a parameter instead
            pass it as an argument: `{"$ref":"args.apiKey"}`
    "#]],
    );
    let analysis = analyse(&format!("{{\"tasks\": [{tasks}]}}")).unwrap();
    let shown = json!(analysis.structure).to_string();
    assert!(!shown.contains("0123456789") && !shown.contains("abcdefghij"), "{shown}");
}
