//! The pages of capabilities and of the graph, in Chromium.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{eventually, material, node};
use crate::place::{PASSPHRASE, Place};

const CODE: &str = "const a = await mcp.math.evaluate({ expression: `${args.n} + 1` });\n\
    const b = await mcp.math.evaluate({ expression: `${a.value} + 1` });\n\
    const c = await mcp.math.evaluate({ expression: `${b.value} + 1` });\nreturn c.value;";

#[test]
fn a_capability_is_looked_at_run_renamed_and_forgotten_and_the_graph_searched() {
    let place = Place::new();
    let mut agent = place.home.stdio(&[]);
    for n in 1..=3 {
        let implementation = json!({ "type": "code", "code": CODE });
        let asked = json!({ "intent": "count up by three", "implementation": implementation, "context": { "n": n },
            "options": { "cache": false } });
        let told = agent.call("pml_execute", &asked);
        assert_eq!(told["structuredContent"]["status"], "success", "{told}");
    }
    let learned = || place.home.run(&["capabilities", "list", "--json"]).stdout;
    eventually("all runs were learned", || learned().replace(' ', "").contains("\"usageCount\":3"));
    let served = place.serve();
    let given = json!({ "url": served.url.strip_suffix("/mcp").unwrap(), "passphrase": PASSPHRASE });
    let output = Command::new(node())
        .arg(material("dashboard/views-browser.mjs"))
        .arg(given.to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let seen: Value = serde_json::from_str(&told)
        .unwrap_or_else(|_| panic!("{told}\n{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(seen["wrong"], json!([]), "{seen:#}");
    assert_eq!(seen["axe"], json!([]), "{seen:#}");

    let calls = json!(["math:evaluate_1", "math:evaluate_2", "math:evaluate_3"]);
    assert_eq!(seen["definition"], json!({ "nodes": ["math:evaluate"], "calls": [] }), "one node");
    assert_eq!(seen["invocation"], json!({ "nodes": [], "calls": calls }), "three calls");
    assert_eq!((&seen["overNode"]["nodes"], &seen["overNode"]["calls"]), (&json!(["math:evaluate"]), &calls));
    assert_eq!(seen["overNode"]["source"].as_str().unwrap().matches("math.evaluate").count(), 3, "{seen:#}");
    assert_eq!(seen["overCall"]["calls"], json!(["math:evaluate_2"]), "{seen:#}");
    assert_eq!(seen["overCall"]["nodes"], json!(["math:evaluate"]));
    assert!(seen["overCall"]["source"].as_str().unwrap().contains("a.value"), "{seen:#}");
    assert_eq!(seen["overSource"]["calls"], json!(["math:evaluate_1"]), "{seen:#}");
    assert_eq!(seen["overNothing"], json!({ "nodes": [], "calls": [], "source": "" }));
    assert_ne!(seen["arrows"]["first"], seen["arrows"]["last"], "{seen:#}");
    assert_eq!(seen["arrows"]["up"], seen["arrows"]["first"], "{seen:#}");
    assert_eq!((&seen["nextCall"], &seen["runs"]), (&json!("math:evaluate_2"), &json!(3)));
    assert_eq!(seen["executed"]["args"]["n"], "7", "{seen:#}");
    assert!(!seen["invalid"].as_str().unwrap().is_empty());
    assert_eq!(seen["wide"], false);
    assert_eq!((&seen["injected"], &seen["hidden"]), (&json!(0), &json!(0)), "{seen:#}");
    assert!(seen["poisons"].as_u64().unwrap() > 120, "{seen:#}");
    assert!(seen["neighbours"].as_u64().unwrap() > 0, "{seen:#}");
    assert_eq!(
        (&seen["way"], &seen["schemas"]),
        (&json!("csv:parse → csv:stringify"), &json!(4)),
        "{seen:#}"
    );
}
