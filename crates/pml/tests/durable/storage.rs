//! A disk without room, and a database that somebody else writes to.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pml_model::RunId;
use pml_store::JournalEntryKind;
use serde_json::{Value, json};

use crate::gateway::{Gateway, execution, signal};
use crate::harness::{Home, eventually, lives, python};
use crate::journal::{Journal, calls};
use crate::ledger::{self, Ledger};
use crate::resume::{listed, report, state};

/// `pml stdio` whose files cannot grow beyond a megabyte; the limit can be lifted while it runs.
fn confined(home: &Home) -> Command {
    let inner = home.command(&["stdio"]);
    let mut command = Command::new("sh");
    // The signal would end the process; ignored, a write fails as on a full disk.
    command.args(["-c", "trap '' XFSZ; ulimit -S -f 2048; exec \"$0\" stdio"]).arg(inner.get_program());
    command.current_dir(inner.get_current_dir().unwrap()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn a_run_that_cannot_be_recorded_sends_nothing_and_is_not_called_done() {
    // What is read in the background would take the room at any moment, also in the middle of a run.
    let home = ledger::home("[embedding]\nmodel = \"none\"\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = r#"return (await mcp.ledger.add({ id: args.id })).id + args.padding.length;"#;
    let first = gateway.run(code, &json!({ "id": "first", "padding": "" }));
    assert_eq!(first["result"], "first0", "{first}");
    gateway.hang_up();
    assert_eq!(gateway.ends_within(Duration::from_secs(10)), 0);

    let mut gateway = Gateway::start(confined(&home));
    let padding = "x".repeat(100_000);
    let (mut done, mut unrecorded) = (vec!["first".to_owned()], 0);
    let refused = (0..40).find_map(|n| {
        let id = format!("run {n}");
        let reply = gateway.run(code, &json!({ "id": id, "padding": padding }));
        if reply["status"] == "success" {
            done.push(id);
            return None;
        }
        Some((id, reply))
    });
    let (id, reply) = refused.expect("there is no room for forty");
    assert!(
        ["STORAGE", "STORAGE_FULL"].contains(&reply["error"]["code"].as_str().unwrap_or_default()),
        "{reply}"
    );
    let ledger = Ledger::of(&home);
    // Usually the run itself finds no room. What is learned of the one before may leave room for its beginning
    // alone; then it was promised, sent, and is told, also where not even the failure finds room.
    if ledger.ids("got").contains(&id) {
        assert!(!reply["workflowId"].is_null(), "{reply}");
        assert_eq!(reply["tasks"][0]["tool"], "ledger:add", "{reply}");
        done.push(id);
        unrecorded = 1;
    }
    // Reading goes on.
    let known = gateway.call("pml_continue", &json!({ "workflow_id": first["workflowId"] }));
    assert_eq!(known["result"], "first0", "{known}");

    // When there is room again the same process goes on.
    let pid = gateway.child.id().to_string();
    let lifted =
        Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited:unlimited"]).status().unwrap();
    assert!(lifted.success());
    let mut last = Value::Null;
    eventually("there is room again", || {
        last = gateway.run(code, &json!({ "id": "last", "padding": padding }));
        last["status"] == "success"
    });
    assert_eq!(last["result"], "last100000");
    done.push("last".to_owned());
    assert_eq!(ledger.added(), done);
    gateway.kill();
    let journal = Journal::of(&home);
    let promised: Vec<String> = journal
        .runs()
        .iter()
        .flat_map(|run| calls(&journal.load(&run.id)))
        .filter(|call| call.ever_promised)
        .map(|call| call.arguments)
        .collect();
    for id in ledger.ids("got") {
        assert!(promised.contains(&json!({ "id": id }).to_string()), "{id} was sent without a record");
    }
    let rows = listed(&home);
    let ended = rows.iter().filter(|row| row["state"] == "done").count();
    assert_eq!(ended, done.len() - unrecorded, "{rows:?}");
    assert_eq!(report(&home, last["workflowId"].as_str().unwrap())["result"], "last100000");
}

#[test]
fn an_end_that_cannot_be_recorded_is_a_failure_whatever_the_program_returned() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(confined(&home));
    let code = r#"
        const { id } = await mcp.ledger.add({ id: args.id });
        return id + "x".repeat(args.padding);
    "#;
    let fits = gateway.run(code, &json!({ "id": "fits", "padding": 10 }));
    assert_eq!(fits["result"], "fitsxxxxxxxxxx", "{fits}");
    let reply = gateway.run(code, &json!({ "id": "done", "padding": 3_000_000 }));
    assert_eq!((&reply["status"], reply.get("result")), (&json!("failed"), None), "{reply}");
    assert!(["STORAGE", "STORAGE_FULL"].contains(&reply["error"]["code"].as_str().unwrap()), "{reply}");
    assert_eq!(reply["tasks"][0]["status"], "success", "what it did is told: {reply}");
    let id = reply["workflowId"].as_str().unwrap();
    let row = listed(&home).into_iter().find(|row| row["workflowId"] == id).unwrap();
    assert_eq!((&row["state"], &row["errorCode"]), (&json!("failed"), &json!("STORAGE")));
    // Nobody takes it up again, and whoever asks later hears of no success.
    gateway.hang_up();
    assert_eq!(gateway.ends_within(Duration::from_secs(10)), 0);
    let mut later = Gateway::start(home.command(&["stdio"]));
    let told = later.call("pml_continue", &json!({ "workflow_id": id }));
    assert_eq!(
        (&told["status"], &told["error"]["code"], told.get("result")),
        (&json!("failed"), &json!("STORAGE"), None),
        "{told}"
    );
    assert_eq!(Ledger::of(&home).added(), ["fits", "done"]);
}

/// A process that has the database to itself until it is dropped.
struct Writer(Child);

impl Writer {
    fn of(home: &Home) -> Writer {
        let script = "import sqlite3, sys\n\
                      database = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                      database.execute('BEGIN IMMEDIATE')\n\
                      print('mine', flush=True)\n\
                      sys.stdin.read()";
        let mut command = Command::new(python("python3"));
        command.args(["-I", "-S", "-c", script]).arg(home.path("pml.db"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "mine");
        Writer(child)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

#[test]
fn a_call_that_was_promised_and_not_sent_is_in_no_doubt() {
    let home = ledger::home("[runs]\nworkers = 1\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    assert_eq!(gateway.run("return 1", &json!({}))["result"], 1);
    eventually("a worker is ready", || gateway.workers().len() == 1);
    let worker = gateway.workers()[0];
    let writer = Writer::of(&home);
    let code = r#"return (await mcp.ledger.add({ id: "once" })).id;"#;
    let mut params = execution("a test", code, &json!({}), &json!({}));
    params["_meta"] = json!({ "progressToken": "call" });
    gateway.begin("tools/call", &params);
    gateway.wait_for_notification("notifications/progress");
    // It asked for the call, whose promise cannot be stored as long as another writes.
    signal(gateway.child.id(), "-TERM");
    eventually("the program is ended", || !lives(worker));
    drop(writer);
    assert_eq!(gateway.ends_within(Duration::from_secs(10)), 0);

    let id = listed(&home)[0]["workflowId"].as_str().unwrap().to_owned();
    assert_eq!(state(&home, &id), "interrupted");
    let journal = Journal::of(&home);
    let kinds: Vec<JournalEntryKind> =
        journal.load(&RunId::parse(&id).unwrap()).entries.into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [JournalEntryKind::Issued, JournalEntryKind::Sending, JournalEntryKind::Resending]);
    let ledger = Ledger::of(&home);
    assert_eq!(ledger.ids("got"), [""; 0]);

    let _next = Gateway::start(home.command(&["stdio"]));
    eventually("the run is done, and nobody was asked", || state(&home, &id) == "done");
    assert_eq!(report(&home, &id)["result"], "once");
    assert_eq!(ledger.ids("got"), ["once"]);
}

/// A command on a disk that is full while the file `full` is there.
fn on_a_full_disk(home: &Home, args: &[&str]) -> Command {
    let library = home.path("full.so");
    let source = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/durable/full.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    assert!(built.unwrap().success());
    let mut command = home.command(args);
    command.env("LD_PRELOAD", library).env("FULL", home.path("full"));
    command
}

#[test]
fn a_full_disk_is_told_as_that_and_over_when_there_is_space() {
    let home = ledger::home("[embedding]\nmodel = \"none\"\n");
    let mut gateway = Gateway::start(on_a_full_disk(&home, &["stdio"]));
    let code = r#"return (await mcp.ledger.add({ id: args.id })).id;"#;
    let first = gateway.run(code, &json!({ "id": "first" }));
    assert_eq!(first["result"], "first", "{first}");
    std::fs::write(home.path("full"), "").unwrap();
    let refused = gateway.run(code, &json!({ "id": "refused" }));
    assert_eq!(
        (&refused["status"], &refused["error"]["code"]),
        (&json!("failed"), &json!("STORAGE_FULL")),
        "{refused}"
    );
    assert_eq!(Ledger::of(&home).added(), ["first"], "what cannot be recorded is not done");
    // Reading goes on, in this process and in others.
    let known = gateway.call("pml_continue", &json!({ "workflow_id": first["workflowId"] }));
    assert_eq!(known["result"], "first", "{known}");
    let fresh = tempfile::tempdir().unwrap();
    let mut start = on_a_full_disk(&home, &["capabilities", "list", "--json"]);
    let told = start.env("PML_HOME", fresh.path()).output().unwrap();
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("STORAGE_FULL") && told.contains("no space is left"), "{told}");
    std::fs::remove_file(home.path("full")).unwrap();
    let last = gateway.run(code, &json!({ "id": "last" }));
    assert_eq!(last["result"], "last", "{last}");
    assert_eq!(Ledger::of(&home).added(), ["first", "last"]);
}

#[test]
fn a_database_that_another_process_holds_is_told_as_that() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    assert_eq!(gateway.run("return 1", &json!({}))["result"], 1);
    gateway.hang_up();
    assert_eq!(gateway.ends_within(Duration::from_secs(10)), 0);
    std::fs::write(home.path("two.ts"), "return 2").unwrap();
    let writer = Writer::of(&home);
    let create = ["capabilities", "create", "give two", "--code", "two.ts", "--name", "two", "--json"];
    let told = home.run(&create);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(
        told.stdout.contains("STORAGE_BUSY") && told.stdout.contains("held by another process"),
        "{told:?}"
    );
    drop(writer);
    let made = home.run(&create);
    assert_eq!(made.code, 0, "{made:?}");
}
