//! Documents as agents write them, good and bad.

mod literals;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::{Expect, expect};
use pml_model::ToolId;
use pml_model::structure::{EdgeLink, Position};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::*;
use crate::{AnalysisCapability, AnalysisTool, ComplaintCode, Remark, Severity};

fn catalogue() -> AnalysisCatalogue {
    let mut catalogue = AnalysisCatalogue::default();
    let text = json!({"type": "string"});
    let mut tool = |id: &str, identifier: &str, input: Value, output: Option<Value>| {
        catalogue.add_tool(AnalysisTool::new(
            ToolId::parse(id).unwrap(),
            identifier.to_owned(),
            to_raw_value(&input).unwrap(),
            output.map(|output| to_raw_value(&output).unwrap()),
            false,
        ));
    };
    tool(
        "fs:read",
        "read",
        json!({"type": "object", "properties": {"path": text}, "required": ["path"], "additionalProperties": false}),
        Some(json!({"type": "object", "properties": {"content": text}, "additionalProperties": false})),
    );
    tool(
        "mail:send-mail",
        "send_mail",
        json!({"type": "object", "properties": {"to": text, "text": text, "copies": {"type": "integer"}}, "required": ["to", "text"]}),
        None,
    );
    catalogue.add_capability(AnalysisCapability::new(
        "weather:report".to_owned(),
        to_raw_value(&json!({})).unwrap(),
    ));
    catalogue
}

/// Analyses code as far as these tests need it.
fn look(code: &str) -> Result<CodeSummary, BadCode> {
    if code.contains("syntax error") {
        return Err(BadCode {
            message: "line 1, column 8: unexpected token".to_owned(),
            hint: None,
            excerpt: None,
        });
    }
    let mut inside = CodeSummary { permissions: Permissions::default(), complaints: Vec::new() };
    let at = Position { line: 2, column: 7, start: 0, end: 0 };
    if code.contains("mcp.fs.read") {
        inside.permissions.declared.insert("fs:read".to_owned());
    }
    if code.contains("mcp[") {
        inside.permissions.opaque.push(Remark { what: "`mcp[x]` can be any server".to_owned(), at });
        inside.complaints.push(Complaint {
            severity: Severity::Warning,
            code: ComplaintCode::Opaque,
            message: "`mcp[x]` can be any server".to_owned(),
            hint: None,
            at,
            excerpt: "mcp[x].y()".to_owned(),
            node: None,
        });
    }
    Ok(inside)
}

fn analyse(document: &str) -> Result<DagAnalysis, DagError> {
    analyse_with(document, &catalogue(), &look)
}

fn good(document: &str) -> DagAnalysis {
    let analysis = analyse(document).unwrap();
    assert_eq!(analysis.complaints, [], "{document}");
    analysis
}

/// The complaints, one per line.
#[track_caller]
fn check(document: &str, expected: &Expect) {
    let mut shown = String::new();
    match analyse(document) {
        Ok(analysis) => {
            for complaint in &analysis.complaints {
                let (line, column) = (complaint.at.line, complaint.at.column);
                let node = complaint.node.map_or_else(|| "-".to_owned(), |node| node.to_string());
                let (severity, code) = (complaint.severity, complaint.code);
                writeln!(shown, "{line}:{column} {node} {severity:?} {code:?}: {}", complaint.message)
                    .unwrap();
                if let Some(hint) = &complaint.hint {
                    writeln!(shown, "    {hint}").unwrap();
                }
            }
        }
        Err(error) => {
            writeln!(shown, "{error}").unwrap();
            if let Some((_, excerpt)) = error.location() {
                writeln!(shown, "  | {excerpt}").unwrap();
            }
            if let Some(hint) = error.hint() {
                writeln!(shown, "    {hint}").unwrap();
            }
        }
    }
    expected.assert_eq(&shown);
}

/// Checks tasks, given without the document around them.
#[track_caller]
fn check_tasks(tasks: &str, expected: &Expect) {
    check(&format!("{{\"tasks\": [\n{tasks}\n]}}"), expected);
}

const GOOD: &str = r#"{"tasks": [
    {"id": "read", "tool": "fs:read", "arguments": {"path": "{{args.path}}"}},
    {"id": "shout", "tool": "code:map", "code": "return args.lines.map(x => x + '!')",
     "args": {"lines": [{"$ref": "read.content"}, 10e110]}, "type": "code_execution"},
    {"id": "send", "toolId": "mail:send_mail", "depends_on": ["shout"], "side_effects": true,
     "arguments": {"to": "a@b.c", "text": "{{read.content}} and {{shout[0]}}", "copies": 2}, "timeoutMs": 500, "retries": 3},
    {"id": "report", "capability": "weather:report", "dependsOn": ["send", "read"], "safeToFail": true}
]}"#;

#[test]
fn a_good_document() {
    let analysis = good(GOOD);
    let mut shown = String::new();
    for node in &analysis.structure.nodes {
        writeln!(shown, "{} {} line {}", node.id, json!(node.kind), node.at.line).unwrap();
    }
    for edge in &analysis.structure.edges {
        let what = match &edge.link {
            EdgeLink::Sequence => "sequence".to_owned(),
            EdgeLink::Provides { coverage, basis, .. } => format!("provides {coverage:?} {basis:?}"),
            other => format!("{other:?}"),
        };
        writeln!(shown, "{} -> {} {what}", edge.from, edge.to).unwrap();
    }
    writeln!(shown, "parameters {}", analysis.parameters.schema).unwrap();
    writeln!(shown, "permissions {}", json!(analysis.permissions)).unwrap();
    writeln!(shown, "{}", serde_json::to_string(&analysis.dag).unwrap().replace("},{\"id\"", "},\n{\"id\""))
        .unwrap();
    expect![[r#"
        n1 {"type":"task","tool":"fs:read","arguments":{"type":"object","fields":[{"name":"path","value":{"type":"parameter","name":"path","path":[]}}]}} line 2
        n2 {"type":"task","tool":"code:map","arguments":{"type":"object","fields":[{"name":"lines","value":{"type":"array","items":[{"type":"reference","node":"n1","path":["content"]},{"type":"literal","value":1e+111}]}}]},"code":"return args.lines.map(x => x + '!')","pure":true} line 3
        n3 {"type":"task","tool":"mail:send-mail","arguments":{"type":"object","fields":[{"name":"to","value":{"type":"literal","value":"a@b.c"}},{"name":"text","value":{"type":"template","parts":[{"type":"reference","node":"n1","path":["content"]},{"type":"literal","value":" and "},{"type":"reference","node":"n2","path":[0]}]}},{"name":"copies","value":{"type":"literal","value":2}}]}} line 5
        n4 {"type":"capability","capability":"weather:report","arguments":{"type":"object","fields":[]}} line 7
        n1 -> n2 sequence
        n1 -> n2 provides Partial Data
        n2 -> n3 sequence
        n1 -> n3 sequence
        n1 -> n3 provides Partial Data
        n2 -> n3 provides Partial Data
        n3 -> n4 sequence
        n1 -> n4 sequence
        parameters {"type":"object","required":["path"],"properties":{"path":{"type":"string"},"copies":{"type":"integer","default":2},"to":{"type":"string","default":"a@b.c"}}}
        permissions {"declared":["fs:read","mail:send-mail"],"capabilities":["weather:report"],"opaque":[],"ambient":[]}
        {"tasks":[{"id":"read","tool":"fs:read","arguments":{"path":{"$ref":"args.path"}},"dependsOn":[],"safeToFail":false,"retries":0},
        {"id":"shout","tool":"code:map","code":"return args.lines.map(x => x + '!')","arguments":{"lines":[{"$ref":"read.content"},10e110]},"dependsOn":["read"],"safeToFail":true,"retries":0},
        {"id":"send","tool":"mail:send-mail","arguments":{"to":"a@b.c","text":"{{read.content}} and {{shout[0]}}","copies":2},"dependsOn":["shout","read"],"sideEffects":true,"safeToFail":false,"timeoutMs":500,"retries":3},
        {"id":"report","capability":"weather:report","arguments":{},"dependsOn":["send","read"],"safeToFail":true,"retries":0}]}
    "#]]
    .assert_eq(&shown);
}

#[test]
fn the_written_form_of_a_dag_is_the_same_dag() {
    let once = good(GOOD);
    let twice = good(&serde_json::to_string(&once.dag).unwrap());
    assert_eq!(once.identity.identity, twice.identity.identity);
    assert_ne!(once.identity.code_hash, twice.identity.code_hash);
    let once = good(
        r#"{"tasks": [{"id": "a", "tool": "fs:read", "arguments": {"path": {"$literal": "{{x}}"}}},
        {"id": "b", "capability": "weather:report", "arguments": {"s": {"$literal": {"$ref": "a"}},
         "u": {"$literal": "\u007b{a"}, "x": {"$ref": "a"}, "needless": [{"$literal": 1}, "\u00e9"]}}]}"#,
    );
    let twice = good(&serde_json::to_string(&once.dag).unwrap());
    assert_eq!(once.identity.identity, twice.identity.identity);
}

#[test]
fn identity_is_what_a_document_does() {
    let document = |tasks: &str| good(&format!("{{\"tasks\":[{tasks}]}}")).identity.identity;
    let one = document(
        r#"{"id":"a","tool":"fs:read","arguments":{"path":"x"}},
           {"id":"b","tool":"mail:send-mail","arguments":{"to":"t","text":"{{a.content}}"}}"#,
    );
    let same = [
        // Other ids, order of members, layout, spellings of member names, tool and reference; implied dependencies
        // written out.
        r#"{ "tool":"fs:read", "args":{"path":"\u0078"}, "id":"first.step" },
           {"id":"b","tool":"mail:send_mail","dependsOn":["first.step"],"arguments":{"text":{"$ref":"first.step[\"content\"]"},"to":"t"}}"#,
        // Other literals.
        r#"{"id":"a","tool":"fs:read","arguments":{"path":"y"}},
           {"id":"b","tool":"mail:send-mail","arguments":{"to":"you","text":"{{a.content}}"}}"#,
        r#"{"id":"b","tool":"fs:read","arguments":{"path":"x"},"retries":0,"safeToFail":false,"timeoutMs":null},
           {"id":"a","tool":"mail:send-mail","type":"mcp_tool","arguments":{"to":"t","text":"{{ b.content }}"}}"#,
    ];
    for other in same {
        assert_eq!(one, document(other), "{other}");
    }
    let different = [
        // An escaped literal, and another one.
        r#"{"id":"a","tool":"fs:read","arguments":{"path":{"$literal":"x"}}},
           {"id":"b","tool":"mail:send-mail","arguments":{"to":"t","text":"{{a.content}}"}}"#,
        r#"{"id":"a","tool":"fs:read","arguments":{"path":{"$literal":"y"}}},
           {"id":"b","tool":"mail:send-mail","arguments":{"to":"t","text":"{{a.content}}"}}"#,
        r#"{"id":"a","tool":"fs:read","arguments":{"path":{"$ref":"args.path"}}},
           {"id":"b","tool":"mail:send-mail","arguments":{"to":"t","text":"{{a.content}}"}}"#,
        // Another tool, one more argument, another text around the reference.
        r#"{"id":"a","capability":"weather:report","arguments":{"path":"x"}},
           {"id":"b","tool":"mail:send-mail","arguments":{"to":"t","text":"{{a.content}}"}}"#,
        r#"{"id":"a","tool":"fs:read","arguments":{"path":"x"}},
           {"id":"b","tool":"mail:send-mail","arguments":{"to":"t","text":"{{a.content}}","copies":2}}"#,
        r#"{"id":"a","tool":"fs:read","arguments":{"path":"x"}},
           {"id":"b","tool":"mail:send-mail","arguments":{"to":"t","text":"see {{a.content}}"}}"#,
        r#"{"id":"a","tool":"fs:read","arguments":{"path":"x"}},
           {"id":"b","tool":"mail:send-mail","arguments":{"to":"t","text":"{{a}}"}}"#,
        r#"{"id":"a","tool":"fs:read","arguments":{"path":"x"}},
           {"id":"b","tool":"mail:send-mail","arguments":{"to":"t","text":"{{a.content}}"},"sideEffects":true}"#,
        r#"{"id":"a","tool":"fs:read","arguments":{"path":"x"}},
           {"id":"b","tool":"mail:send-mail","arguments":{"to":"t","text":{"$literal":"{{a.content}}"}}, "dependsOn":["a"]}"#,
        r#"{"id":"b","tool":"mail:send-mail","arguments":{"to":"t","text":"{{a.content}}"}},
           {"id":"a","tool":"fs:read","arguments":{"path":"x"}}"#,
    ];
    let all: BTreeSet<String> = different.iter().map(|other| document(other)).chain([one]).collect();
    assert_eq!(all.len(), different.len() + 1);
}

#[test]
fn texts_that_are_no_document() {
    check(
        "",
        &expect![[r#"
        line 1, column 1: not JSON: EOF while parsing a value
          | 
    "#]],
    );
    check(
        "{\"tasks\": [\n  {\"id\": \"a\",}\n]}",
        &expect![[r#"
        line 2, column 14: not JSON: key must be a string
          |   {"id": "a",}
    "#]],
    );
    check(
        "{\"tasks\": [{\"id\": \"é\\ud800\"}]}",
        &expect![[r#"
        line 1, column 19: not JSON: a `\u` escape that is half a character
          | {"tasks": [{"id": "é\ud800"}]}
    "#]],
    );
    check(
        "[{\"id\": \"a\"}]",
        &expect![[r#"
        line 1, column 1: a DAG document is an object with `tasks`
          | [{"id": "a"}]
            write `{"tasks": [{"id": "t1", "tool": "server:tool", "arguments": {}}]}`
    "#]],
    );
    check(
        "{\"taks\": []}",
        &expect![[r#"
        line 1, column 1: the document has no `tasks`
          | {"taks": []}
            write `{"tasks": [{"id": "t1", "tool": "server:tool", "arguments": {}}]}`
    "#]],
    );
    check(
        "{\"tasks\": {}}",
        &expect![[r#"
        line 1, column 11: `tasks` is an object, not a list
          | {"tasks": {}}
            write `{"tasks": [{"id": "t1", "tool": "server:tool", "arguments": {}}]}`
    "#]],
    );
    check(
        "{\"tasks\": []}",
        &expect![[r#"
        line 1, column 11: the document has no task
          | {"tasks": []}
            write `{"tasks": [{"id": "t1", "tool": "server:tool", "arguments": {}}]}`
    "#]],
    );
    check(
        &"[".repeat(129),
        &expect![[r#"
        the document nests deeper than 128 levels
    "#]],
    );
    check(
        &" ".repeat(MAX_DOCUMENT_BYTES + 1),
        &expect![[r#"
        the document has 1048577 bytes; at most 1048576 are read
            hand large values in through `args`
    "#]],
    );
    check(
        &format!("{{\"tasks\": [{}0]}}", "0,".repeat(MAX_TASKS)),
        &expect![[r#"
        the document has 10001 tasks; at most 10000 are run
            write a program with a loop instead
    "#]],
    );
}

#[test]
fn members_that_mean_nothing_or_something_else() {
    check(
        r#"{"task": 1, "tasks": [{"id": "a", "capability": "weather:report"}]}"#,
        &expect![[r#"
        1:2 - Warning BadTask: `task` is not a member of a DAG document
            did you mean `tasks`?
    "#]],
    );
    check_tasks(
        r#"{"id": "a", "capability": "weather:report", "dependOn": [], "descr": 1},
           {"id": "b", "capability": "weather:report", "args": {}, "arguments": {}},
           {"id": "c", "capability": "weather:report", "dependsOn": "a", "sideEffects": "yes", "retries": 11, "timeoutMs": 0},
           {"id": "d", "capability": "weather:report", "arguments": "x", "dependsOn": [1]},
           {"id": "e", "capability": "weather:report", "arguments": {"x": {"y": 1, "y": 2}}}"#,
        &expect![[r#"
            2:45 n1 Warning BadTask: `dependOn` is not a member of a task
                did you mean `dependsOn` or `depends_on`?
            2:61 n1 Warning BadTask: `descr` is not a member of a task
            3:68 n2 Error BadTask: `arguments` is written twice, or under two names
                keep one of them
            4:69 n3 Error BadTask: `dependsOn` is a text, not a list
                write a list of ids, such as `["t1"]`
            4:89 n3 Error BadTask: `sideEffects` is a text, not a boolean
                write `true` or `false`
            4:107 n3 Error BadTask: `retries` is not an allowed number
                write a whole number from 0 to 10
            4:124 n3 Error BadTask: `timeoutMs` is not an allowed number
                write a whole number from 1 to 4294967295
            5:69 n4 Error BadTask: `arguments` is a text, not an object
                write `{"name": value}`
            5:88 n4 Error BadTask: `dependsOn` holds a number, not only ids
                write a list of ids, such as `["t1"]`
            6:84 n5 Error BadTask: argument `y` is written twice
                keep one of them
        "#]],
    );
}

#[test]
fn tasks_that_are_none() {
    check_tasks(
        r#"17,
           {"tool": "fs:read", "arguments": {"path": ""}},
           {"id": 5, "tool": "fs:read", "arguments": {"path": ""}},
           {"id": "a{b}", "capability": "weather:report"},
           {"id": "args", "capability": "weather:report"},
           {"id": "x"},
           {"id": "x2", "type": "magic", "tool": "fs:read"},
           {"id": "x3", "type": "mcp_tool", "code": "return 1"},
           {"id": "x4", "tool": "fs:read", "capability": "weather:report"},
           {"id": "x5", "tool": "code:map"},
           {"id": "x6", "tool": 5},
           {"id": "x.7", "capability": "weather:report"}"#,
        &expect![[r#"
            2:1 n1 Error BadTask: task 1 is a number, not an object
                write a task
            3:12 n2 Error BadTask: task 2 has no `id`
                give it one, such as `"id": "t1"`
            4:19 n3 Error BadTask: the `id` is a number, not a text
                put it in quotes
            5:19 n4 Error BadTask: `a{b}` cannot be the id of a task
                use up to 128 letters, digits, `_` and `-`
            6:19 n5 Error BadTask: `args` cannot be the id of a task: it names the arguments of the run
                use another id
            7:12 n6 Error BadTask: task `x` does nothing
                give it a `tool`, a `capability` or `code`
            8:33 n7 Error BadTask: `magic` is not a type of task
                use `mcp_tool`, `code_execution` or `capability`, or leave it out
            9:33 n8 Error BadTask: task `x3` is not what its type `mcp_tool` says
                `mcp_tool` goes with `tool`, `code_execution` with `code`, `capability` with `capability`
            10:12 n9 Error BadTask: task `x4` does several things
                give it one of `tool`, `capability` and `code`
            11:12 n10 Error BadTask: task `x5` names an operation and has no `code`
                give the source of the operation in `code`; its input is `args`
            12:33 n11 Error BadTask: `tool` is not a text, or it is empty
                put it in quotes
            13:19 n12 Error BadTask: id `x.7` could be a member of `x`
                use an id without a dot
        "#]],
    );
}

#[test]
fn tools_and_capabilities_that_are_not_there() {
    check_tasks(
        r#"{"id": "a", "tool": "fs:raed", "arguments": {"path": 1}},
           {"id": "b", "tool": "send_mail"},
           {"id": "c", "capability": "weather:reprot"},
           {"id": "d", "tool": "weather:report"},
           {"id": "e", "type": "capability", "tool": "weather:report"}"#,
        &expect![[r#"
            2:21 n1 Error UnknownTool: no connected server offers tool `fs:raed`
                did you mean `fs:read`?
            3:32 n2 Error UnknownTool: no connected server offers tool `send_mail`
                did you mean `mail:send-mail`?
            4:38 n3 Error UnknownCapability: there is no capability `weather:reprot`
                did you mean `weather:report`?
        "#]],
    );
}

#[test]
fn arguments_that_the_tool_does_not_take() {
    check_tasks(
        r#"{"id": "a", "tool": "fs:read", "arguments": {"file": "x"}},
           {"id": "b", "tool": "mail:send-mail", "arguments": {
              "to": ["x"],
              "copies": {"$literal": "many"},
              "text": "{{a.contents}} {{a}}"}}"#,
        &expect![[r#"
            2:45 n1 Error MissingArgument: task `a`, `fs:read`: `path` is required
                give `path`: text
            2:54 n1 Error UnknownArgument: task `a`, `fs:read`: `file` is not an argument
                it takes `path`
            4:21 n2 Error WrongType: task `b`, `mail:send-mail`: `to` must be text, not a list
            5:25 n2 Error WrongType: task `b`, `mail:send-mail`: `copies` must be a whole number, not the text "many"
            6:23 n2 Error UnknownField: the result of `a` has no `a.contents`
                did you mean `content`?
        "#]],
    );
}

#[test]
fn dependencies_and_references_that_lead_nowhere() {
    check_tasks(
        r#"{"id": "fetch", "tool": "fs:read", "arguments": {"path": "x"}, "dependsOn": ["fetsh", "fetch"]},
           {"id": "b", "tool": "mail:send-mail", "arguments": {"to": "{{fech.content}}", "text": {"$ref": "fetch[-1]"}}},
           {"id": "c", "tool": "mail:send-mail", "arguments": {"to": {"$ref": 5}, "text": {"$ref": "b", "x": 1}}},
           {"id": "d", "tool": "mail:send-mail", "arguments": {"to": "at {{d.x}}", "text": "${fetch.content}"}},
           {"id": "b", "capability": "weather:report"}"#,
        &expect![[r#"
            2:78 n1 Error UnknownDependency: there is no task `fetsh` to depend on
                did you mean `fetch`?
            2:87 n1 Error Cycle: task `fetch` depends on itself
                take it out of `dependsOn`
            3:70 n2 Error UnknownDependency: `fech` refers to no task
                did you mean `fetch`? or write `{"$literal": "{{fech.content}}"}` if it is meant as text
            3:107 n2 Error BadReference: the reference in `fetch[-1]` cannot be read at `[-1]`
                write paths like `task.list[0]["odd key"].name`; write `{"$literal": "fetch[-1]"}` if it is meant as text
            4:79 n3 Error BadReference: `$ref` is a number, not a text
                write it as `{"$ref": "task.member"}`
            4:92 n3 Error BadReference: `$ref` stands beside other members
                an object with `$ref` or `$literal` has no other members; wrap the whole object in `{"$literal": …}` if it is meant as it is
            5:70 n4 Error Cycle: `d.x` is a reference of the task to itself
            5:92 n4 Warning BadReference: `$fetch` stays text, although `fetch` is a task
                write `{{fetch}}` to refer to its result
            6:19 n5 Error DuplicateId: id `b` is taken by task 2
                give every task its own id
        "#]],
    );
}

#[test]
fn cycles_are_named() {
    check_tasks(
        r#"{"id": "z", "capability": "weather:report", "dependsOn": ["b"]},
           {"id": "a", "capability": "weather:report", "dependsOn": ["c"]},
           {"id": "b", "capability": "weather:report", "arguments": {"x": "{{a}}"}},
           {"id": "c", "capability": "weather:report", "arguments": {"x": ["at {{b}}!"]}},
           {"id": "p", "capability": "weather:report", "dependsOn": ["q"]},
           {"id": "q", "capability": "weather:report", "dependsOn": ["p", "c"]},
           {"id": "free", "capability": "weather:report"}"#,
        &expect![[r#"
            3:12 n2 Error Cycle: tasks wait for each other: `a → c → b → a`
                each waits for the next; take one of these dependencies or references out
            6:12 n5 Error Cycle: tasks wait for each other: `p → q → p`
                each waits for the next; take one of these dependencies or references out
        "#]],
    );
}

#[test]
fn the_code_of_a_task_is_looked_into() {
    let tasks = r#"{"tasks": [
        {"id": "a", "code": "return syntax error"},
        {"id": "b", "code": "const x = args.x;\nawait mcp[x].y()"},
        {"id": "c", "tool": "code:map", "code": "return await mcp.fs.read(args)"},
        {"id": "d", "tool": "code:map", "code": "return args.x.map(x => x)"},
        {"id": "e", "tool": "code:anything", "code": "return 1"}]}"#;
    check(
        tasks,
        &expect![[r#"
        2:29 n1 Error BadTask: the code of task `a`: line 1, column 8: unexpected token
        3:29 n2 Warning Opaque: the code of task `b`, line 2, column 7: `mcp[x]` can be any server
        4:49 n3 Warning BadTask: task `c` is called `code:map`, but its code makes calls, so it is not taken for pure
            leave out `tool`, or take the calls out of the code
    "#]],
    );
    let analysis = analyse(tasks).unwrap();
    assert_eq!(analysis.permissions.declared, BTreeSet::from(["fs:read".to_owned()]));
    assert!(analysis.permissions.is_opaque());
    let safe: Vec<bool> = analysis.dag.tasks.iter().map(|task| task.safe_to_fail).collect();
    assert_eq!(safe, [false, false, false, true, false], "only what is pure may fail unnoticed");
}

#[test]
fn a_hopeless_document_has_a_readable_answer() {
    let tasks: Vec<String> = (0..MAX_TASKS)
        .map(|n| format!(r#"{{"id":"t{n}","tool":"no:such","arguments":{{"x":"{{{{n{n}.y}}}}"}}}}"#))
        .collect();
    let analysis = analyse(&format!("{{\"tasks\":[{}]}}", tasks.join(","))).unwrap();
    assert_eq!(analysis.complaints.len(), 101);
    let last = analysis.complaints.last().unwrap();
    assert_eq!(
        (last.severity, last.message.as_str()),
        (Severity::Error, "19900 more complaints are not shown")
    );
    assert!(analysis.complaints.iter().all(|complaint| complaint.excerpt.chars().count() <= 122));
}

#[test]
fn a_chain_of_ten_thousand_tasks_is_no_problem() {
    let mut tasks = vec![r#"{"id":"t0","tool":"fs:read","arguments":{"path":"x"}}"#.to_owned()];
    tasks.extend((1..MAX_TASKS).map(|n| {
        format!(r#"{{"id":"t{n}","tool":"fs:read","arguments":{{"path":"{{{{t{}.content}}}}"}}}}"#, n - 1)
    }));
    let analysis = good(&format!("{{\"tasks\":[{}]}}", tasks.join(",")));
    assert_eq!(analysis.structure.edges.len(), 2 * (MAX_TASKS - 1));
    // The same in reverse order, and closed to one cycle.
    tasks[0] = format!(
        r#"{{"id":"t0","tool":"fs:read","arguments":{{"path":"{{{{t{}.content}}}}"}}}}"#,
        MAX_TASKS - 1
    );
    let analysis = analyse(&format!("{{\"tasks\":[{}]}}", tasks.join(","))).unwrap();
    let cycles: Vec<&str> = analysis.complaints.iter().map(|complaint| complaint.message.as_str()).collect();
    expect!["tasks wait for each other: `t0 → t9999 → t9998 → t9997 → t9996 → t9995 → t9994 → t9993 → t9992 → t9991 → 9990 more → t0`"].assert_eq(&cycles.join("\n"));
}

/// The filled arguments of the last of `tasks`.
#[track_caller]
fn check_filled(arguments: &str, expected: &Expect) {
    let document = format!(
        r#"{{"tasks": [{{"id": "t1", "capability": "weather:report"}}, {{"id": "a.b", "capability": "weather:report"}},
            {{"id": "t2", "capability": "weather:report", "arguments": {arguments}}}]}}"#
    );
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let args = raw(r#"{"city": "Oslo", "list": [1, [null, "x"], {"k": 1.0 }]}"#);
    let t1 = raw(
        r#"{"n": 10e110, "text": "{{args.city}} \"q\"", "odd key": {"0": true}, "items": [ {"id" : 1.50} ], "none": null}"#,
    );
    let dotted = raw(r#""whole""#);
    let results = |id: &str| match id {
        "t1" => Some(&*t1),
        "a.b" => Some(&*dotted),
        _ => None,
    };
    let shown = match fill_references(&good(&document).dag.tasks[2].arguments, &args, &results) {
        Ok(filled) => filled.get().to_owned(),
        Err(why) => why.to_string(),
    };
    expected.assert_eq(&shown);
}

#[test]
fn references_are_filled() {
    check_filled(
        r#"{"x": "{{t1.n}}", "y": [{"$ref": "t1.items[0]"}, 1.0e5]}"#,
        &expect![[r#"{"x":10e110,"y":[{"id" : 1.50},1.0e5]}"#]],
    );
    check_filled(
        r#"{"same bytes":  [1.0,  {"a" :10e110}]}"#,
        &expect![[r#"{"same bytes":  [1.0,  {"a" :10e110}]}"#]],
    );
    check_filled(
        r#"{"$ref": "args"}"#,
        &expect![[r#"{"city": "Oslo", "list": [1, [null, "x"], {"k": 1.0 }]}"#]],
    );
    check_filled(
        r#"{"x": "{{ t1[\"odd key\"].0 }}", "y": "{{t1.items.length}} {{args.city.length}}"}"#,
        &expect![[r#"{"x":true,"y":"1 4"}"#]],
    );
    check_filled(
        r#"{"x": "{{a.b}}", "y": "in {{args.city}}: {{t1.n}}, {{t1.items.0.id}}, {{t1.none}}"}"#,
        &expect![[r#"{"x":"whole","y":"in Oslo: 1e+111, 1.5, null"}"#]],
    );
    check_filled(
        r#"{"x": "{{args.list}} {{t1.items[0]}}"}"#,
        &expect![[r#"{"x":"1,,x,{\"k\":1.0} {\"id\":1.50}"}"#]],
    );
}

#[test]
fn what_was_filled_in_or_escaped_is_never_filled_again() {
    check_filled(
        r#"{"x": "{{t1.text}}", "y": "say {{t1.text}}"}"#,
        &expect![[r#"{"x":"{{args.city}} \"q\"","y":"say {{args.city}} \"q\""}"#]],
    );
    check_filled(
        r#"{"x": {"$literal": {"$ref": "t1.n", "y": "{{t1.n}}", "$literal": 1}}}"#,
        &expect![[r#"{"x":{"$ref": "t1.n", "y": "{{t1.n}}", "$literal": 1}}"#]],
    );
}

#[test]
fn references_that_lead_nowhere_are_named() {
    check_filled(
        r#"{"x": "{{t1.items[1]}}"}"#,
        &expect!["`t1.items[1]` does not exist: `t1.items` is a list of 1"],
    );
    check_filled(r#"{"x": "a {{t1.text.x}}"}"#, &expect!["`t1.text.x` does not exist: `t1.text` is a text"]);
    check_filled(
        r#"{"x": ["{{t1.itmes[0].id}}"]}"#,
        &expect!["`t1.itmes[0].id` does not exist: `t1` has `items`, `n`, `none`, `odd key`, `text`"],
    );
    check_filled(
        r#"{"x": "{{args.town}}"}"#,
        &expect!["`args.town` does not exist: `args` has `city`, `list`"],
    );
    check_filled(r#"{"x": "{{t1.none.x}}"}"#, &expect!["`t1.none.x` does not exist: `t1.none` is null"]);
}

#[test]
fn a_task_that_has_no_result_and_one_that_has_too_much() {
    let analysis = good(
        r#"{"tasks": [{"id": "t1", "capability": "weather:report"},
            {"id": "t2", "capability": "weather:report", "arguments": {"x": "{{t1}}{{t1}}", "y": "{{t1}}"}}]}"#,
    );
    let arguments = &analysis.dag.tasks[1].arguments;
    let nothing = RawValue::from_string("{}".to_owned()).unwrap();
    let missing = fill_references(arguments, &nothing, &|_| None).unwrap_err();
    assert_eq!(missing.to_string(), "`t1` refers to task `t1`, which has no result");
    let large = RawValue::from_string(format!("\"{}\"", "x".repeat(100_000))).unwrap();
    let too_large = fill_references(arguments, &nothing, &|_| Some(&large)).unwrap_err();
    assert_eq!(too_large, SubstitutionError::TooLarge { reference: "t1".to_owned() });
}
