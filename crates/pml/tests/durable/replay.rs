//! A recorded run can be run again, offline, and does the same each time.

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::Home;
use crate::ledger::{self, Ledger};

const PROGRAM: &str = r#"
    const started = Date.now();
    console.log("dice", Math.random());
    const { value } = await mcp.ledger.get({ key: "nothing yet" });
    const added = [];
    for (const name of ["a", "b"]) {
      const { id } = await mcp.ledger.add({ id: name, after: 5 });
      added.push(id);
    }
    if (value === null) {
      await mcp.ledger.put({ key: "seen", value: added.length });
    }
    const both = await Promise.all([
      mcp.ledger.add({ id: "slow", before: 40 }),
      mcp.ledger.add({ id: "quick", before: 1 }),
    ]);
    await new Promise((wake) => setTimeout(wake, 20));
    return { added, both, took: Date.now() - started >= 0, random: Math.random(), at: new Date().toISOString() };
"#;

/// A home with one run, which is done.
fn recorded() -> (Home, String, Value) {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let reply = gateway.run(PROGRAM, &json!({}));
    assert_eq!(reply["status"], "success", "{reply}");
    (home, reply["workflowId"].as_str().unwrap().to_owned(), reply["result"].clone())
}

#[test]
fn a_journal_replayed_a_hundred_times_gives_the_same_bytes() {
    let (home, id, result) = recorded();
    let before = Ledger::of(&home).events().len();
    let first = home.run(&["runs", "replay", &id, "--json"]);
    assert_eq!(first.code, 0, "{first:?}");
    let told: Value = serde_json::from_str(&first.stdout).unwrap();
    assert_eq!((&told["outcome"], &told["report"]["result"]), (&json!("same"), &result));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(home.run(&["runs", "replay", &id, "--json"]).stdout, first.stdout);
                }
            });
        }
    });
    assert_eq!(Ledger::of(&home).events().len(), before, "nothing was called");
}

#[test]
fn an_exported_run_replays_from_its_file_also_in_another_home() {
    let (home, id, _) = recorded();
    let replayed = home.run(&["runs", "replay", &id, "--json"]);
    let exported = home.run(&["runs", "export", &id, "--output", "run.json"]);
    assert_eq!(exported.code, 0, "{exported:?}");
    let from_file = home.run(&["runs", "replay", "run.json", "--json"]);
    assert_eq!((from_file.code, from_file.stdout), (0, replayed.stdout.clone()));
    let printed: Value = serde_json::from_str(&home.run(&["runs", "export", &id]).stdout).unwrap();
    let file = std::fs::read_to_string(home.path("run.json")).unwrap();
    assert_eq!(printed, serde_json::from_str::<Value>(&file).unwrap());

    // There the server of the run is not even known.
    let elsewhere = Home::new("");
    std::fs::write(elsewhere.path("run.json"), file).unwrap();
    let there = elsewhere.run(&["runs", "replay", "run.json", "--json"]);
    assert_eq!((there.code, &there.stdout), (0, &replayed.stdout), "{there:?}");
}

#[test]
fn an_edited_program_is_refused_where_it_first_does_something_else() {
    let (home, id, _) = recorded();
    let edit = |from: &str, to: &str| {
        assert!(PROGRAM.contains(from), "{from}");
        PROGRAM.replacen(from, to, 1)
    };
    let cases = [
        (
            edit(r#"get({ key: "nothing yet" })"#, r#"get({ key: "something" })"#),
            "call 1, `ledger:get`, is made with other arguments",
        ),
        (
            edit("const added = [];", r#"const added = []; await mcp.ledger.get({ key: "x" });"#),
            "call 2 was `ledger:add` and is now `ledger:get`",
        ),
        (edit(r#"["a", "b"]"#, r#"["b", "a"]"#), "call 2, `ledger:add`, is made with other arguments"),
        (edit(r#"["a", "b"]"#, r#"["a"]"#), "call 3 was `ledger:add` and is now `ledger:put`"),
        (edit(r#"["a", "b"]"#, r#"["a", "b", "c"]"#), "call 4 was `ledger:put` and is now `ledger:add`"),
        (edit("value === null", "value !== null"), "call 4 was `ledger:put` and is now `ledger:add`"),
        (edit("value: added.length", "value: 7"), "call 4, `ledger:put`, is made with other arguments"),
        (
            edit(r#"      mcp.ledger.add({ id: "slow", before: 40 }),"#, ""),
            "call 5, `ledger:add`, is made with other arguments",
        ),
        (
            edit(r#"      mcp.ledger.add({ id: "quick", before: 1 }),"#, ""),
            "call 6, `ledger:add`, is no longer made",
        ),
        (
            edit("console.log", "if (started > 0) return 1; console.log"),
            "call 1, `ledger:get`, is no longer made",
        ),
        (
            edit("after: 5 }", "after: 5, before: Math.floor(Math.random() * 1e9) }"),
            "call 2, `ledger:add`, is made with other arguments",
        ),
    ];
    let before = Ledger::of(&home).events().len();
    for (code, reason) in cases {
        std::fs::write(home.path("edited.ts"), &code).unwrap();
        let replayed = home.run(&["runs", "replay", &id, "--code", "edited.ts", "--json"]);
        let told: Value = serde_json::from_str(&replayed.stdout).unwrap_or_else(|_| panic!("{replayed:?}"));
        assert_eq!((&told["outcome"], replayed.code), (&json!("diverged"), 1), "{reason}: {told}");
        let divergence = told["divergence"].as_str().unwrap();
        assert!(divergence.contains(reason), "`{divergence}` is not `{reason}`");
    }
    // Another name of a variable is no other program, and another result is told as that.
    for (code, outcome) in [
        (PROGRAM.replace("added", "names").replace("{ names,", "{ added: names,"), "same"),
        (edit("took:", "lasted:"), "differs"),
    ] {
        std::fs::write(home.path("edited.ts"), &code).unwrap();
        let replayed = home.run(&["runs", "replay", &id, "--code", "edited.ts", "--json"]);
        let told: Value = serde_json::from_str(&replayed.stdout).unwrap_or_else(|_| panic!("{replayed:?}"));
        assert_eq!(told["outcome"], outcome, "{told}");
    }
    assert_eq!(Ledger::of(&home).events().len(), before, "nothing was called");
}

#[test]
fn a_run_that_was_ended_for_its_computing_time_does_the_same_again() {
    let home = ledger::home("[limits]\ncpu = \"200ms\"\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let late = r#"
        const { id } = await mcp.ledger.add({ id: "before" });
        console.log(id);
        for (let i = 0; ; i++) if (id === "never") break;
        return id;
    "#;
    for (code, calls) in [("for (;;);", 0), (late, 1)] {
        let reply = gateway.run(code, &json!({}));
        assert_eq!((&reply["status"], &reply["error"]["code"]), (&json!("failed"), &json!("TIMEOUT")));
        let id = reply["workflowId"].as_str().unwrap();
        let replayed = home.run(&["runs", "replay", id, "--json"]);
        assert_eq!(replayed.code, 0, "{replayed:?}");
        let told: Value = serde_json::from_str(&replayed.stdout).unwrap();
        assert_eq!(told["outcome"], "same", "{told}");
        assert_eq!(told["report"]["error"], reply["error"], "{told}");
        assert_eq!(told["report"]["tasks"].as_array().unwrap().len(), calls, "{told}");
        let said = home.run(&["runs", "replay", id]);
        assert!(said.stderr.contains("the same"), "{said:?}");
    }
    assert_eq!(Ledger::of(&home).ids("got"), ["before"]);
}
