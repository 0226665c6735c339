//! A disk without room.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, eventually};
use crate::ledger::{self, Ledger};
use crate::resume::{listed, report};

/// `pml stdio` whose files cannot grow beyond half a megabyte; the limit can be lifted while it runs.
fn confined(home: &Home) -> Command {
    let inner = home.command(&["stdio"]);
    let mut command = Command::new("sh");
    // The signal would end the process; ignored, a write fails as on a full disk.
    command.args(["-c", "trap '' XFSZ; ulimit -S -f 1024; exec \"$0\" stdio"]).arg(inner.get_program());
    command.current_dir(inner.get_current_dir().unwrap()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn a_run_that_cannot_be_recorded_sends_nothing_and_is_not_called_done() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = r#"return (await mcp.ledger.add({ id: args.id })).id + args.padding.length;"#;
    let first = gateway.run(code, &json!({ "id": "first", "padding": "" }));
    assert_eq!(first["result"], "first0", "{first}");
    gateway.hang_up();
    assert_eq!(gateway.ends_within(Duration::from_secs(10)), 0);

    let mut gateway = Gateway::start(confined(&home));
    let padding = "x".repeat(100_000);
    let mut done = vec!["first".to_owned()];
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
    assert!(!ledger.ids("got").contains(&id), "it was sent without a record");
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
    let rows = listed(&home);
    assert_eq!(rows.iter().filter(|row| row["state"] == "done").count(), done.len(), "{rows:?}");
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
    let reply = gateway.run(code, &json!({ "id": "done", "padding": 1_000_000 }));
    assert_eq!((&reply["status"], reply.get("result")), (&json!("failed"), None), "{reply}");
    assert_eq!(reply["error"]["code"], "STORAGE", "{reply}");
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
