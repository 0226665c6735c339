//! Rendering of small synthetic structures.

mod pictures;

use expect_test::{Expect, expect};
use pml_model::structure::{NodeId, Position, Structure};
use serde_json::{Value, json};

use super::*;
use crate::{ComplaintCode, FilledArgument, LiteralParameter, Remark, Severity};

/// A structure from its nodes (`[id, line, kind]`) and edges (`n1 > n2`, `d1 true> n2`, `l1 has n2`, `n1 gives n2`,
/// `n1 could n2`).
fn structure(nodes: &Value, edges: &str) -> Structure {
    let nodes: Vec<Value> = nodes
        .as_array()
        .unwrap()
        .iter()
        .map(|node| {
            let mut made = node[2].clone();
            let line = node[1].as_u64().unwrap();
            made["id"] = node[0].clone();
            let end = node[3].as_u64().unwrap_or(line);
            made["at"] = json!({"line": line, "column": 1, "start": line * 100, "end": end * 100 + 50});
            made
        })
        .collect();
    let edges: Vec<Value> = edges
        .split(',')
        .map(str::trim)
        .filter(|edge| !edge.is_empty())
        .map(|edge| {
            let words: Vec<&str> = edge.split_whitespace().collect();
            let (from, to) = (words[0], words[2]);
            let provides = |basis| json!({"type": "provides", "coverage": "strict", "basis": basis});
            let mut link = match words[1] {
                ">" => json!({"type": "sequence"}),
                "has" => json!({"type": "contains"}),
                "gives" => provides("data"),
                "could" => provides("schema"),
                outcome => json!({"type": "conditional", "outcome": outcome.trim_end_matches('>')}),
            };
            link["from"] = from.into();
            link["to"] = to.into();
            link
        })
        .collect();
    serde_json::from_value(json!({ "nodes": nodes, "edges": edges })).unwrap()
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"type": "task", "tool": tool, "arguments": arguments})
}

fn nothing() -> Value {
    json!({"type": "object", "fields": []})
}

fn object(fields: &[(&str, Value)]) -> Value {
    let fields: Vec<Value> =
        fields.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    json!({ "type": "object", "fields": fields })
}

fn decision(condition: &str) -> Value {
    json!({ "type": "decision", "condition": condition, "form": "if" })
}

fn no_parameters() -> Parameters {
    Parameters { schema: json!({"type": "object"}), literals: Vec::new() }
}

#[track_caller]
fn check(structure: &Structure, expected: &Expect) {
    let permissions = Permissions::default();
    let shown =
        AnalysisView { structure, parameters: &no_parameters(), permissions: &permissions, complaints: &[] };
    let text = render_table(&shown, &NamedSource { name: "a.ts", text: SOURCE }, 80);
    expected.assert_eq(&format!("{}\n", text.split("\n\nPERMISSIONS").next().unwrap()));
}

#[test]
fn branches_and_loops_are_indented() {
    let plain = || call("fs:read", &nothing());
    let made = structure(
        &json!([
            ["n1", 1, call("fs:list", &object(&[("path", json!({"type": "parameter", "name": "dir", "path": []}))]))],
            ["l1", 2, {"type": "loop", "over": "files", "form": "for-of"}],
            ["n2", 3, call("fs:read", &object(&[("path", json!({
                "type": "item", "loop": "l1", "path": ["path"],
                "of": {"type": "reference", "node": "n1", "path": ["entries"]}
            }))]))],
            ["d1", 4, decision("text.includes(\"x\")"), 8],
            ["n3", 5, plain()],
            ["n4", 6, plain()],
            ["d2", 7, decision("deep"), 8],
            ["n5", 8, plain()],
            ["n6", 9, plain()],
            ["n7", 10, plain()],
        ]),
        "n1 > l1, l1 has n2, n2 > d1, l1 has d1, d1 true> n3, l1 has n3, d1 false> n4, l1 has n4,
         n4 > d2, l1 has d2, d2 true> n5, l1 has n5, n3 > n6, n5 > n6, d2 false> n6, l1 has n6, l1 > n7,
         n1 gives n2, n1 could n7",
    );
    check(
        &made,
        &expect![[r#"
        STRUCTURE
          1:1   n1 fs:list {path: args.dir}
          2:1   l1 for each of files
          3:1     n2 fs:read {path: n1.entries[l1].path}
          4:1     d1 if text.includes("x")
                    true:
          5:1         n3 fs:read
                    false:
          6:1         n4 fs:read
          7:1         d2 if deep
                        true:
          8:1             n5 fs:read
          9:1     n6 fs:read
          10:1  n7 fs:read

        DATA FLOW
          n2 <- n1 (strict)
          n7 could take n1 (strict)
    "#]],
    );
}

#[test]
fn what_follows_an_early_return_is_not_indented() {
    let plain = || call("fs:read", &nothing());
    let made = structure(
        &json!([
            ["d1", 1, decision("!args.path"), 2],
            ["d2", 3, decision("args.quick"), 5],
            ["n1", 4, plain()],
            ["n2", 6, plain()],
        ]),
        "d1 false> d2, d2 true> n1, d2 false> n2",
    );
    check(
        &made,
        &expect![[r#"
        STRUCTURE
          1:1  d1 if !args.path  (goes on when false)
          3:1  d2 if args.quick  (goes on when false)
                 true:
          4:1      n1 fs:read
          6:1  n2 fs:read
    "#]],
    );
}

#[test]
fn cases_without_a_break_share_an_arm() {
    let plain = || call("fs:read", &nothing());
    let switch = json!({"type": "decision", "condition": "kind", "form": "switch"});
    let made = structure(
        &json!([
            ["d1", 1, switch, 6],
            ["n1", 2, plain()],
            ["n2", 4, plain()],
            ["d2", 7, decision("nothing.inside"), 7],
            ["n3", 8, plain()],
        ]),
        "d1 case:csv> n1, d1 case:md> n2, d1 case:txt> n2, n1 > d2, n2 > d2, d1 default> d2, d2 true> n3, d2 false> n3",
    );
    check(
        &made,
        &expect![[r#"
        STRUCTURE
          1:1  d1 switch kind
                 case csv:
          2:1      n1 fs:read
                 case md, case txt:
          4:1      n2 fs:read
          7:1  d2 if nothing.inside
          8:1  n3 fs:read
    "#]],
    );
}

#[test]
fn a_loop_that_is_left_from_an_arm_does_not_hold_what_follows() {
    let plain = || call("fs:read", &nothing());
    let made = structure(
        &json!([
            ["l1", 1, {"type": "loop", "over": ";;", "form": "for"}, 4],
            ["d1", 2, decision("done"), 3],
            ["n1", 4, plain()],
            ["n2", 5, plain()],
        ]),
        "l1 has d1, d1 false> n1, l1 has n1, d1 true> n2",
    );
    check(
        &made,
        &expect![[r#"
        STRUCTURE
          1:1  l1 for ;;
          2:1    d1 if done  (goes on when false)
          4:1    n1 fs:read
          5:1  n2 fs:read
    "#]],
    );
}

#[test]
fn forks_hold_their_members_and_try_its_block_and_handler() {
    let plain = || call("fs:read", &nothing());
    let fork = json!({"type": "fork", "form": "all"});
    let made = structure(
        &json!([
            ["t1", 1, {"type": "try"}, 9],
            ["f1", 2, fork, 6],
            ["n1", 3, plain()],
            ["f2", 4, fork, 5],
            ["n2", 4, plain()],
            ["n3", 5, plain()],
            ["j1", 4, {"type": "join"}, 5],
            ["j2", 2, {"type": "join"}, 6],
            ["n4", 7, plain()],
            ["n5", 8, plain()],
            ["n6", 10, plain()],
        ]),
        "t1 > f1, f1 > n1, f1 > f2, f2 > n2, f2 > n3, n2 > j1, n3 > j1, n1 > j2, j1 > j2, j2 > n4,
         t1 error> n5, n4 > n6, n5 > n6",
    );
    check(
        &made,
        &expect![[r#"
        STRUCTURE
          1:1   t1 try
          2:1     f1 fork Promise.all
          3:1       n1 fs:read
          4:1       f2 fork Promise.all
          4:1         n2 fs:read
          5:1         n3 fs:read
          4:1       j1 join
          2:1     j2 join
          7:1     n4 fs:read
                  error:
          8:1       n5 fs:read
          10:1  n6 fs:read
    "#]],
    );
}

#[test]
fn what_follows_a_handler_that_leaves_is_after_the_try() {
    let plain = || call("fs:read", &nothing());
    // The helper that contains n2 is called in the block and written at the end.
    let made = structure(
        &json!([
            ["t1", 1, {"type": "try"}, 4],
            ["n1", 2, plain()],
            ["n2", 9, plain()],
            ["n3", 3, plain()],
            ["n4", 6, plain()],
            ["n5", 7, plain()],
        ]),
        "t1 > n1, n1 > n2, t1 error> n3, n2 > n4, n4 > n5",
    );
    check(
        &made,
        &expect![[r#"
        STRUCTURE
          1:1  t1 try
          2:1    n1 fs:read
          9:1    n2 fs:read
                 error:
          3:1      n3 fs:read
          6:1  n4 fs:read
          7:1  n5 fs:read
    "#]],
    );
}

#[test]
fn arguments_are_compact_and_nothing_drives_the_terminal() {
    let long = "long text ".repeat(20);
    let arguments = object(&[
        ("path", json!({"type": "reference", "node": "n1", "path": ["a b", 0, null, "name"]})),
        ("all", json!({"type": "parameter", "name": "", "path": []})),
        ("text", json!({"type": "literal", "value": long})),
        ("bad\u{1b}[31m", json!({"type": "literal", "value": "\u{202e}x\u{1b}[0m\n"})),
        (
            "note",
            json!({"type": "template", "parts": [
                {"type": "literal", "value": "at\n"}, {"type": "reference", "node": "n1", "path": ["time"]},
            ]}),
        ),
        (
            "count",
            json!({"type": "expression", "source": "list\n  .length + 1", "reads": [
                {"type": "reference", "node": "n1", "path": ["list"]}, {"type": "reference", "node": "n1", "path": ["list"]},
            ]}),
        ),
        (
            "ids",
            json!({"type": "array", "items": (0..20).map(|n| json!({"type": "literal", "value": n})).collect::<Vec<_>>()}),
        ),
    ]);
    let made = structure(
        &json!([
            ["n1", 1, call("fs:stat", &nothing())],
            ["n2", 2, call("fs:write", &arguments)],
            ["n3", 3, {"type": "task", "tool": "code:filter", "pure": true, "code": "rows\n.filter(r => r.ok)",
                "arguments": {"type": "reference", "node": "n1", "path": ["rows"]}}],
        ]),
        "n1 > n2",
    );
    check(
        &made,
        &expect![[r#"
        STRUCTURE
          1:1  n1 fs:stat
          2:1  n2 fs:write
                   path: n1["a b"][0][*].name
                   all: args
                   text: "long text long text long text long text…" (200 characters)
                   "bad\u001b[31m": "\u{202e}x\u001b[0m\n"
                   note: `at\n${n1.time}`
                   count: list .length + 1 (from n1.list)
                   ids: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … 8 more]
          3:1  n3 code:filter n1.rows  rows .filter(r => r.ok)
    "#]],
    );
}

/// Source of the complaint in the whole-table test.
const SOURCE: &str = "// A program.\nconst path = args.path;\nawait mcp.fs.raed({ path });\n";

#[test]
fn the_whole_table() {
    let made = structure(&json!([["n1", 3, call("fs:read", &nothing())]]), "");
    let start = SOURCE.find("mcp").unwrap() as u32;
    let at = Position { line: 3, column: 7, start, end: start + 11 };
    let parameters = Parameters {
        schema: json!({
            "type": "object",
            "properties": {
                "dir": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "limit": {"type": "integer", "default": 10},
                "order": {"enum": ["up", "down"], "default": "up"},
            },
            "required": ["dir"],
        }),
        literals: vec![LiteralParameter {
            name: "limit".into(),
            default: Some(json!(10)),
            written: vec![at],
            fills: vec![FilledArgument {
                node: made.nodes[0].id,
                path: serde_json::from_value(json!(["limit"])).unwrap(),
            }],
        }],
    };
    let permissions = Permissions {
        declared: ["fs:read".to_owned(), "fs:list".to_owned()].into(),
        capabilities: ["tidy_up".to_owned()].into(),
        opaque: vec![Remark { what: "`mcp[name]` is known only when it runs".into(), at }],
        ambient: vec![Remark { what: "fetch".into(), at }],
    };
    let complaints = [Complaint {
        severity: Severity::Error,
        code: ComplaintCode::UnknownTool,
        message: "no tool is called `fs:raed`".into(),
        hint: Some("did you mean `fs:read`?".into()),
        at,
        excerpt: "await mcp.fs.raed({ path })".into(),
        node: None,
    }];
    let shown = AnalysisView {
        structure: &made,
        parameters: &parameters,
        permissions: &permissions,
        complaints: &complaints,
    };
    expect![[r#"
        STRUCTURE
          3:1  n1 fs:read

        PARAMETERS
          dir    string         required
          tags   string[]       optional
          limit  integer        default 10    for n1.limit
          order  "up" | "down"  default "up"

        PERMISSIONS
          calls         fs:list, fs:read
          capabilities  tidy_up
          opaque        `mcp[name]` is known only when it runs at 3:7
          not there     fetch at 3:7

        COMPLAINTS
        error: no tool is called `fs:raed`
         --> a.ts:3:7
          |
        3 | await mcp.fs.raed({ path });
          |       ^^^^^^^^^^^
        hint: did you mean `fs:read`?

        1 error
    "#]]
    .assert_eq(&(render_table(&shown, &NamedSource { name: "a.ts", text: SOURCE }, 80) + "\n"));
}

/// A report about the text between `«` and `»`.
#[track_caller]
fn report(source: &str, expected: &Expect) {
    let start = source.find('«').unwrap();
    let end = source.find('»').unwrap() - '«'.len_utf8();
    let text = source.replace(['«', '»'], "");
    let line = text[..start].matches('\n').count() as u32 + 1;
    let column = text[..start].chars().rev().take_while(|c| *c != '\n').count() as u32 + 1;
    let at = Position { line, column, start: start as u32, end: end as u32 };
    let message = "something is wrong".to_owned();
    let report = ComplaintReport { severity: Severity::Error, message, hint: None, at: Some(at) };
    expected.assert_eq(&(report.render(&NamedSource { name: "a.ts", text: &text }) + "\n"));
}

#[test]
fn the_place_is_underlined() {
    report(
        "const a = «b»;",
        &expect![[r#"
        error: something is wrong
         --> a.ts:1:11
          |
        1 | const a = b;
          |           ^
    "#]],
    );
    // Tabs, wide letters and invisible characters take the width they are printed with.
    report(
        "\n\tф(\"日本\u{202e}\", «x»)\n",
        &expect![[r#"
        error: something is wrong
         --> a.ts:2:11
          |
        2 |     ф("日本\u{202e}", x)
          |                       ^
    "#]],
    );
    // A span over several lines is underlined to the end of the first.
    report(
        "\n\n\n\n\n\n\n\n\n«call({\r\n  a,\n})»",
        &expect![[r#"
        error: something is wrong
          --> a.ts:10:1
           |
        10 | call({
           | ^^^^^^
    "#]],
    );
    // Something is missing at the end, and there is nothing to underline.
    report(
        "call(«»",
        &expect![[r#"
        error: something is wrong
         --> a.ts:1:6
          |
        1 | call(
          |      ^
    "#]],
    );
    report(
        "«»",
        &expect![[r#"
        error: something is wrong
         --> a.ts:1:1
    "#]],
    );
    report(
        &format!("{}«here» {}", "a ".repeat(200), "b ".repeat(200)),
        &expect![[r#"
        error: something is wrong
         --> a.ts:1:401
          |
        1 | … a a a a a a a a a a a a a a a a a a a here b b b b b b b b b b b b b b b b b b b b b b b b b b b …
          |                                         ^^^^
    "#]],
    );
    report(
        &format!("f(«{}»)", "x".repeat(200)),
        &expect![[r#"
        error: something is wrong
         --> a.ts:1:3
          |
        1 | f(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#]],
    );
}

#[test]
fn a_place_that_is_not_there_is_named_all_the_same() {
    let at = Position { line: 7, column: 3, start: 90, end: 95 };
    let report = |at| ComplaintReport {
        severity: Severity::Note,
        message: "odd".into(),
        hint: Some("look".into()),
        at,
    };
    let file = NamedSource { name: "a\u{1b}.ts", text: "x" };
    assert_eq!(report(Some(at)).render(&file), "note: odd\n --> a\\u{1b}.ts:7:3\nhint: look");
    assert_eq!(report(None).render(&file), "note: odd\nhint: look");
    let large = crate::Error::TooLarge { size_bytes: 300_000, limit: 262_144 };
    let text = ComplaintReport::from(&large).render(&file);
    assert!(text.starts_with("error: the program has 300000 bytes"), "{text}");
    assert!(text.contains("\nhint: "), "{text}");
}

#[test]
fn edges_to_nowhere_and_cycles_are_survived() {
    let plain = || call("fs:read", &nothing());
    let made = structure(
        &json!([["n1", 1, plain()], ["n2", 2, plain()], ["n3", 3, plain()]]),
        "n1 > n2, n2 > n3, n3 > n1, n9 > n1, n1 true> n8, l7 has n2",
    );
    let text = render_mermaid(&made);
    assert!(!text.contains("n9") && !text.contains("n8"), "{text}");
    assert!(render_dot(&made).contains("n3 -> n1"));
    check(
        &made,
        &expect![[r#"
        STRUCTURE
          1:1  n1 fs:read
          2:1  n2 fs:read
          3:1  n3 fs:read
    "#]],
    );
    let id = NodeId::try_from("n1".to_owned()).unwrap();
    assert_eq!(made.node(id).unwrap().id, id);
}
