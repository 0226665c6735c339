//! Mermaid and Graphviz output, and that no text is interpreted by them.

use expect_test::expect;
use pml_model::structure::Structure;
use serde_json::json;

use super::{call, decision, nothing, object, structure};
use crate::render::{render_dot, render_mermaid};

/// Text that some format on the way to a drawing would interpret.
const NASTY: &str = "\"q\" [a] {b} (c) #35; #quot; end `code` <b>&amp;</b> **x** _y_ $$z$$ fa:fa-car \\n | -- --> %% 1. – ü 日本 \u{202e}";

fn nasty() -> Structure {
    structure(
        &json!([
            ["n1", 1, call(NASTY, &object(&[(NASTY, json!({"type": "literal", "value": NASTY}))]))],
            ["d1", 2, decision(NASTY)],
            ["l1", 3, {"type": "loop", "over": NASTY, "form": "for-of"}],
            ["l2", 4, {"type": "loop", "over": "end", "form": "while"}],
            ["n2", 5, {"type": "capability", "capability": NASTY, "arguments": nothing()}],
            ["f1", 6, {"type": "fork", "form": "allSettled"}],
            ["n3", 7, {"type": "task", "tool": "code:map", "arguments": nothing(), "pure": true, "code": NASTY}],
            ["n4", 8, call("end", &nothing())],
            ["j1", 6, {"type": "join"}],
            ["t1", 9, {"type": "try"}],
        ]),
        &format!(
            "n1 > d1, d1 case:{}> l1, l1 has l2, l2 has n2, d1 default> f1, l1 > f1, f1 > n3, f1 > n4,
             n3 > j1, n4 > j1, j1 > t1, n1 gives n2, n2 gives n3, n1 could n4",
            NASTY.replace([' ', ','], "")
        ),
    )
}

#[test]
fn mermaid_labels_say_nothing_to_mermaid() {
    let text = render_mermaid(&nasty());
    let labels: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
    assert_eq!(text.matches('"').count(), 2 * labels.len());
    for label in labels {
        let plain = label.replace("<br/>", "");
        assert!(
            !plain.contains(['`', '<', '>', '&', '[', '{', '|', '*', '_', '$', '\\', '\u{202e}']),
            "{label}"
        );
    }
    expect![[r#"
        flowchart TD
            n1["n1 fs:list"]:::tool
            subgraph l1_body ["loop"]
                l1{{"l1 for each of files"}}:::repeat
                n2["n2 fs:read"]:::tool
            end
            d1{"d1 if a #60; b"}:::decision
            n3["n3 fs:write"]:::tool
            n1 --> l1
            l1 -->|each turn| n2
            l1 --> d1
            d1 -->|"true"| n3
            n1 -.->|"strict"| n2
            n2 -.->|"could: strict"| n3
            linkStyle 5 stroke:#aaa,stroke-width:1px,color:#888
            classDef tool fill:#e8f0fe,stroke:#3b6fb6,color:#111
            classDef operation fill:#f3f3f3,stroke:#999,color:#111
            classDef decision fill:#fff6dd,stroke:#b8860b,color:#111
            classDef bar fill:#333,stroke:#333,color:#fff
            classDef repeat fill:#eafaea,stroke:#3a8a3a,color:#111
            classDef guard fill:#fdeaea,stroke:#b33a3a,color:#111
    "#]]
    .assert_eq(&render_mermaid(&structure(
        &json!([
            ["n1", 1, call("fs:list", &nothing())],
            ["l1", 2, {"type": "loop", "over": "files", "form": "for-of"}],
            ["n2", 3, call("fs:read", &nothing())],
            ["d1", 4, decision("a < b")],
            ["n3", 5, call("fs:write", &nothing())],
        ]),
        "n1 > l1, l1 has n2, l1 > d1, d1 true> n3, n1 gives n2, n2 could n3",
    )));
}

#[test]
fn graphviz_labels_are_quoted() {
    let text = render_dot(&nasty());
    for line in text.lines() {
        let quotes = line.replace("\\\\", "").replace("\\\"", "").matches('"').count();
        assert_eq!(quotes % 2, 0, "{line}");
    }
    expect![[r##"
        digraph structure {
            rankdir=TB
            node [fontname="Helvetica" fontsize=11 style=filled fillcolor="#e8f0fe" color="#3b6fb6"]
            edge [fontname="Helvetica" fontsize=9]
            subgraph cluster_l1 {
                label=loop style=rounded color="#3a8a3a"
                l1 [label="l1 for each of files" shape=hexagon fillcolor="#eafaea" color="#3a8a3a"]
                n1 [label="n1 fs:read\n{path: \"a\\\"b\\\\c&amp;lt;\"}" shape=box]
            }
            n2 [label="n2 fs:write" shape=box]
            l1 -> n1 [label="each turn"]
            l1 -> n2
            n1 -> n2 [label="strict" style=dashed color="#3b6fb6" constraint=false]
        }
    "##]]
    .assert_eq(&render_dot(&structure(
        &json!([
            ["l1", 2, {"type": "loop", "over": "files", "form": "for-of"}],
            ["n1", 3, call("fs:read", &object(&[("path", json!({"type": "literal", "value": "a\"b\\c&lt;"}))]))],
            ["n2", 5, call("fs:write", &nothing())],
        ]),
        "l1 has n1, l1 > n2, n1 gives n2",
    )));
}
