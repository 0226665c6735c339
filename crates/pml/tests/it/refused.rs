//! What no door takes: intents that are too long, and names that mean something to JavaScript.

use serde_json::json;

use crate::harness::{Home, text};
use crate::http::{authority, send};

/// One byte more than may be, most of it in characters of several bytes.
fn too_long() -> String {
    format!("count the files {}", "é".repeat(4 * 1024))
}

#[test]
fn an_intent_is_eight_kibibytes_at_most_in_every_door() {
    let home = Home::new("");
    let (long, longest) = (too_long(), format!("count the files {}", "x".repeat(8 * 1024 - 16)));
    assert_eq!(longest.len(), 8192);
    let mut client = home.stdio(&[]);
    let code = json!({"type": "code", "code": "return 1"});
    for (tool, arguments) in [
        ("pml_discover", json!({"intent": long})),
        ("pml_execute", json!({"intent": long})),
        ("pml_execute", json!({"intent": long, "implementation": code})),
        (
            "pml_execute",
            json!({"intent": long, "implementation": {"type": "tool", "toolId": "math:evaluate"}}),
        ),
        ("pml_execute", json!({"intent": long, "implementation": {"type": "capability", "id": "x"}})),
    ] {
        let reply = client.call(tool, &arguments);
        assert_eq!(reply["isError"], true, "{tool}: {reply}");
        let said = text(&reply);
        assert!(said.contains("`intent` has 8208 bytes and may have 8192"), "{tool}: {said}");
        assert!(said.contains("hint: say it shorter"), "{tool}: {said}");
    }
    let allowed = client.call("pml_execute", &json!({"intent": longest, "implementation": code}));
    assert_eq!(allowed["structuredContent"]["result"], 1, "{allowed}");
    std::fs::write(home.path("one.ts"), "return 1").unwrap();
    for args in [
        &["discover", &long][..],
        &["execute", &long],
        &["execute", &long, "--code", "one.ts"],
        &["capabilities", "create", &long, "--code", "one.ts"],
    ] {
        let done = home.run(args);
        assert_ne!(done.code, 0, "{args:?}");
        assert!(done.stderr.contains("may have 8192"), "{}: {}", args[0], done.stderr);
    }
    let served = home.serve(&[]);
    let token = format!("Bearer {}", served.token);
    let headers =
        [("Host", authority(&served)), ("Authorization", &token), ("Content-Type", "application/json")];
    let body = json!({"intent": long, "code": "return 1"}).to_string();
    let reply = send(&served, "POST", "/api/capabilities", &headers, &body);
    assert_eq!(reply.status, 400);
    assert!(reply.body().contains("may have 8192"));
}

#[test]
fn names_that_every_object_has_name_no_server_and_no_capability() {
    let home = Home::new("");
    std::fs::write(home.path("one.ts"), "return 1").unwrap();
    let made = home.run(&["capabilities", "create", "give one", "--code", "one.ts", "--name", "giveOne"]);
    assert_eq!(made.code, 0, "{made:?}");
    for name in ["__proto__", "constructor", "prototype", "then", "toString", "valueOf", "toJSON"] {
        std::fs::write(home.path("two.ts"), format!("return '{name}'")).unwrap();
        for args in [
            &["capabilities", "create", "give two", "--code", "two.ts", "--name", name][..],
            &["capabilities", "rename", "giveOne", name],
        ] {
            let done = home.run(args);
            assert_ne!(done.code, 0, "{args:?}");
            assert!(
                done.stderr.contains(&format!("`{name}` cannot be the name of a capability")),
                "{}",
                done.stderr
            );
        }
        let added = home.run(&["add", name, "--", "true"]);
        assert_ne!(added.code, 0, "{name}");
        assert!(added.stderr.contains("is reserved"), "{name}: {}", added.stderr);
    }
}
