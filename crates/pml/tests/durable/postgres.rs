//! Gateways that share a PostgreSQL database and nothing else.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::gateway::Gateway;
use crate::harness::{Home, eventually};
use crate::ledger::{self, Ledger, WAIT};
use crate::resume::{report, state, wait_for_ends};
use crate::server;
use crate::sleep::ahead;

/// Two homes with the same settings, the same key and the same database.
fn two_homes() -> (Home, Home) {
    let url = server::new_database();
    let one = ledger::home(&format!("[store]\nurl = {}\n", json!(url)));
    let first = one.run(&["runs", "list"]);
    assert_eq!(first.code, 0, "{first:?}");
    let other = Home::new(&fs::read_to_string(one.path("pml.toml")).unwrap());
    (one, other)
}

fn share_key(one: &Home, other: &Home) {
    fs::copy(one.path("seal.key"), other.path("seal.key")).unwrap();
}

#[test]
fn another_gateway_finishes_what_a_killed_one_began_on_a_shared_database() {
    let (one, other) = two_homes();
    share_key(&one, &other);
    let code = format!(
        r#"
        const {{ id }} = await mcp.ledger.add({{ id: "one" }});
        {WAIT}
        return [id, (await mcp.ledger.add({{ id: "two" }})).id];
    "#
    );
    let _served = other.serve(&[]);
    let mut client = Gateway::start(one.command(&["stdio"]));
    let started = client.execute(&code, &json!({}), &json!({ "detach": true }));
    let id = client.outcome(started)["workflowId"].as_str().unwrap().to_owned();
    wait_for_ends(&other, &id, 1);
    client.kill();
    Ledger::of(&one).go();
    eventually("the other gateway has finished it", || state(&other, &id) == "done");
    assert_eq!(report(&other, &id)["result"], json!(["one", "two"]));
    assert_eq!(Ledger::of(&one).added(), ["one", "two"]);
}

#[test]
fn a_database_that_is_away_for_some_seconds_costs_no_run() {
    let server = server::Server::start();
    server.execute("postgres", "CREATE DATABASE pml");
    let one = ledger::home(&format!("[store]\nurl = {}\n", json!(server.url("pml"))));
    assert_eq!(one.run(&["runs", "list"]).code, 0);
    let other = Home::new(&fs::read_to_string(one.path("pml.toml")).unwrap());
    share_key(&one, &other);
    let mut gateways = [&one, &other].map(|home| Gateway::start(home.command(&["stdio"])));
    let mut ids = Vec::new();
    for (gateway, name) in gateways.iter_mut().zip(["a", "b"]) {
        let code = format!(
            r#"await mcp.ledger.add({{ id: "{name}1" }}); {WAIT} return (await mcp.ledger.add({{ id: "{name}2" }})).id;"#
        );
        let started = gateway.execute(&code, &json!({}), &json!({ "detach": true }));
        ids.push(gateway.outcome(started)["workflowId"].as_str().unwrap().to_owned());
    }
    for id in &ids {
        wait_for_ends(&one, id, 1);
    }
    // Longer than a gateway counts as alive without a session.
    server.kill();
    thread::sleep(Duration::from_secs(4));
    server.run();
    // Upkeep looks for runs without an owner every second.
    thread::sleep(Duration::from_secs(3));
    Ledger::of(&one).go();
    for (id, name) in ids.iter().zip(["a2", "b2"]) {
        eventually("the run is done", || state(&other, id) == "done");
        assert_eq!(report(&other, id)["result"], json!(name));
    }
    let mut added = Ledger::of(&one).added();
    added.sort();
    assert_eq!(added, ["a1", "a2", "b1", "b2"]);
    server.execute(
        "pml",
        "DO $$ BEGIN IF EXISTS (SELECT 1 FROM run WHERE fence <> 1) THEN
            RAISE EXCEPTION 'a run was taken from its owner'; END IF; END $$",
    );
}

#[test]
fn gateways_whose_clocks_differ_agree_on_when_a_run_goes_on() {
    let (one, other) = two_homes();
    share_key(&one, &other);
    // Long enough for the run to be put aside.
    let code = r#"
        await mcp.ledger.add({ id: "before" });
        await new Promise((wake) => setTimeout(wake, 12_000));
        return (await mcp.ledger.add({ id: "after" })).id;
    "#;
    let mut early = Gateway::start(ahead(&one, 600, &["stdio"]));
    let started = early.execute(code, &json!({}), &json!({ "detach": true }));
    let id = early.outcome(started)["workflowId"].as_str().unwrap().to_owned();
    eventually("it sleeps", || state(&other, &id) == "waiting");
    early.kill();
    // Its ten minutes are not waited for, and a late clock loses no lease either.
    let _late = Gateway::start(ahead(&other, -600, &["stdio"]));
    eventually("the run is done", || state(&other, &id) == "done");
    assert_eq!(Ledger::of(&one).added(), ["before", "after"]);
}

#[test]
fn every_command_uses_the_database_that_the_configuration_names() {
    let home = Home::new("");
    fs::write(home.path("pml.toml"), "store.url = \"postgres://ann@/nowhere?host=/nonexistent\"\n").unwrap();
    let listed = home.run(&["people", "list"]);
    assert!(listed.stderr.contains("cannot reach database `postgres://ann@/nowhere"), "{listed:?}");
    assert!(!home.path("pml.db").exists());
}

#[test]
fn what_one_gateway_learned_serves_the_other() {
    let (one, other) = two_homes();
    share_key(&one, &other);
    let code = "return (await mcp.fs.read({ path: \"notes/monday.txt\" })).content.split(/\\s+/).filter(Boolean).length;";
    fs::write(one.path("words.ts"), code).unwrap();
    for (home, name, text) in [(&one, "monday", "one two three four"), (&other, "friday", "five six seven")] {
        fs::create_dir(home.path("notes")).unwrap();
        fs::write(home.path(&format!("notes/{name}.txt")), text).unwrap();
    }
    let first = one.run(&["execute", "count the words in notes/monday.txt", "--code", "words.ts"]);
    assert!(first.stdout.ends_with("4\n"), "{first:?}");
    let again = other.run(&["execute", "count the words in notes/friday.txt"]);
    assert!(again.stdout.ends_with("3\n"), "{again:?}");
}

#[test]
fn a_database_that_cannot_be_used_is_named_without_its_password() {
    let (one, other) = two_homes();
    let missing = other.run(&["runs", "list"]);
    assert_ne!(missing.code, 0);
    assert!(missing.stderr.contains("seal.key` is missing"), "{missing:?}");
    fs::write(other.path("seal.key"), [7; 32]).unwrap();
    #[cfg(unix)]
    fs::set_permissions(other.path("seal.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let another = other.run(&["runs", "list"]);
    assert!(another.stderr.contains("belongs to another key"), "{another:?}");
    one.configure("[store]\nurl = \"postgres://somebody:hush@/nowhere?host=/nonexistent\"\n");
    let away = one.run(&["audit", "verify"]);
    assert_ne!(away.code, 0);
    assert!(away.stderr.contains("cannot reach database `postgres://somebody@/nowhere"), "{away:?}");
    assert!(!away.stderr.contains("hush"), "{away:?}");
    one.configure("[store]\nurl = \"mysql://x:hush@y/z\"\n");
    let wrong = one.run(&["runs", "list"]);
    assert!(wrong.stderr.contains("`store.url` is no address of a PostgreSQL database"), "{wrong:?}");
    assert!(!wrong.stderr.contains("hush"), "{wrong:?}");
}
