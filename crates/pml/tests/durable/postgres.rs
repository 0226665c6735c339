//! Gateways that share a PostgreSQL database and nothing else.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

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

/// The tables of the report of `pml migrate --json`, without the log that the command itself adds to.
fn digests(report: &str) -> Vec<Value> {
    let report: Value = serde_json::from_str(report).unwrap();
    let tables = report["tables"].as_array().unwrap().clone();
    tables.into_iter().filter(|table| table["table"] != "audit").collect()
}

/// A session that keeps others from writing to a table.
fn hold(url: &str, table: &str) -> Child {
    let mut session = Command::new("psql");
    session.args(["-q", "-X", url]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut session = session.spawn().unwrap();
    let lock = format!("BEGIN; LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE;\n\\echo held\n");
    session.stdin.as_mut().unwrap().write_all(lock.as_bytes()).unwrap();
    let held = BufReader::new(session.stdout.take().unwrap()).lines().next();
    assert_eq!(held.unwrap().unwrap(), "held");
    session
}

#[test]
fn a_database_moves_to_a_server_and_back_though_the_command_is_killed() {
    let home = ledger::home("");
    let code = r#"return (await mcp.ledger.add({ id: "one" })).id;"#;
    fs::write(home.path("one.ts"), code).unwrap();
    let first = home.run(&["execute", "add one to the ledger", "--code", "one.ts"]);
    assert_eq!(first.code, 0, "{first:?}");
    let listed = home.run(&["capabilities", "list", "--json"]).stdout;
    let url = server::new_database();
    // The password of an address is not for the list of processes.
    let to = url.replace("postgres@", "${WHO}@");
    let migrate = |arguments: &[&str]| {
        let mut command = home.command(&["migrate", "--to", &to]);
        command.args(arguments).env("WHO", "postgres");
        command
    };
    for (reached, held) in [("capability", "run"), ("trace", "trace_body")] {
        // Nothing can be put into this table, so the command is within the copy when it is killed.
        let mut holder = hold(&url, held);
        let mut child = migrate(&[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let is_reached = told.any(|line| line.ends_with(&format!("copying {reached}")));
        child.kill().unwrap();
        child.wait().unwrap();
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!(is_reached, "{reached} was not reached");
    }
    let there = migrate(&["--json"]).output().unwrap();
    assert!(there.status.success(), "{there:?}");
    let there = String::from_utf8(there.stdout).unwrap();
    assert!(!there.contains("WHO"), "{there}");
    fs::rename(home.path("pml.db"), home.path("old.db")).unwrap();

    let settings = fs::read_to_string(home.path("pml.toml")).unwrap();
    home.configure(&format!("{settings}\n[store]\nurl = {}\n", json!(url)));
    assert_eq!(home.run(&["capabilities", "list", "--json"]).stdout, listed);
    let again = home.run(&["execute", "add one to the ledger", "--code", "one.ts"]);
    assert_eq!(again.code, 0, "{again:?}");
    let audit = home.run(&["audit", "list"]).stdout;
    assert!(audit.contains("database migrated"), "{audit}");

    let back = home.run(&["migrate", "--to", "pml.db", "--json"]);
    assert_eq!(back.code, 0, "{back:?}");
    home.configure(&settings);
    assert_eq!(home.run(&["audit", "verify"]).code, 0);
    let other = server::new_database();
    let there = home.run(&["migrate", "--to", &other, "--json"]);
    assert_eq!(digests(&there.stdout), digests(&back.stdout));
    let taken = home.run(&["migrate", "--to", &other]);
    assert_eq!(taken.code, 1, "{taken:?}");
    assert!(taken.stderr.contains("is not empty"), "{taken:?}");
}

#[test]
fn a_shared_database_is_backed_up_and_restored_by_the_same_commands() {
    let (one, other) = two_homes();
    share_key(&one, &other);
    let before = one.run(&["capabilities", "list", "--json"]).stdout;
    let made = one.run(&["backup", "copy.db"]);
    assert_eq!(made.code, 0, "{made:?}");
    fs::write(one.path("one.ts"), r#"return (await mcp.ledger.add({ id: "one" })).id;"#).unwrap();
    assert_eq!(one.run(&["execute", "add one", "--code", "one.ts"]).code, 0);
    assert_ne!(one.run(&["capabilities", "list", "--json"]).stdout, before);
    let mut client = Gateway::start(other.command(&["stdio"]));
    // When it answers, it has opened the database.
    client.call("pml_discover", &json!({ "intent": "add one" }));
    let used = one.run(&["restore", "copy.db"]);
    assert_eq!(used.code, 1, "{used:?}");
    assert!(used.stderr.contains("in use"), "{used:?}");
    client.kill();
    let restored = one.run(&["restore", "copy.db"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert!(restored.stdout.contains("What was there before is in"), "{restored:?}");
    assert_eq!(other.run(&["capabilities", "list", "--json"]).stdout, before);
    assert!(other.run(&["audit", "list"]).stdout.contains("database restored"));
}
