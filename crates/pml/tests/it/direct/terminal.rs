//! `pml call` of a tool that has to be asked about.

use serde_json::{Value, json};

use super::{PAID, direct_calls, hits, home, runs, state};
use crate::harness::Finished;

const CALL: [&str; 4] = ["call", "danger:pay", "--args", "{\"amount\": 5}"];

/// The name of the run in what a command printed.
#[track_caller]
fn named(done: &Finished) -> String {
    let shown = format!("{}{}", done.stdout, done.stderr);
    assert!(shown.contains("approval_required"), "{done:?}");
    let from = shown.find("run_").unwrap_or_else(|| panic!("{done:?}"));
    shown[from..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

#[test]
fn in_a_pipe_it_asks_and_ends_with_an_error() {
    for by in ["human", "client"] {
        let home = home(&format!("[approvals]\nby = \"{by}\"\n"));
        let called = home.run(&CALL);
        let run = named(&called);
        assert_eq!((called.code, called.stdout.as_str()), (1, ""), "{called:?}");
        assert!(
            called.stderr.contains("danger:pay") && called.stderr.contains("pml runs approve"),
            "{called:?}"
        );
        assert_eq!((hits(&home), state(&home, &run).as_str()), (0, "waiting"));
        let called = home.run(&[&["--json"], &CALL[..]].concat());
        let told: Value = serde_json::from_str(&called.stdout).unwrap();
        assert_eq!((called.code, &told["status"]), (1, &json!("approval_required")), "{called:?}");
        assert!(told["workflowId"].as_str().unwrap().starts_with("run_"), "{told}");
        assert_eq!(hits(&home), 0);
    }
}

#[test]
fn yes_is_enough_where_a_clients_word_is() {
    let home = home("[approvals]\nby = \"client\"\n");
    let called = home.run(&[&CALL[..], &["--yes"]].concat());
    assert_eq!((called.code, called.stdout.as_str()), (0, "paid 5\n"), "{called:?}");
    let called = home.run(&[&["--json"], &CALL[..], &["-y"]].concat());
    assert_eq!((called.code, called.stdout.trim()), (0, PAID), "{called:?}");
    let failed = home.run(&["call", "danger:fail", "--yes"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (1, "no funds\n"), "{failed:?}");
    assert_eq!(hits(&home), 3);

    let home = super::home("[approvals]\nby = \"human\"\n");
    let called = home.run(&[&CALL[..], &["--yes"]].concat());
    named(&called);
    assert_eq!((called.code, hits(&home)), (1, 0), "{called:?}");
}

#[test]
fn on_a_terminal_whoever_sits_there_is_asked() {
    let home = home("");
    let no = home.run_on_terminal(&CALL, &["n"]);
    assert_eq!((no.code, hits(&home)), (1, 0), "{no:?}");
    assert!(no.stdout.contains("DENIED"), "{no:?}");
    let yes = home.run_on_terminal(&CALL, &["y"]);
    assert_eq!((yes.code, hits(&home)), (0, 1), "{yes:?}");
    assert!(yes.stdout.contains("{\"amount\":5}") && yes.stdout.ends_with("paid 5\n"), "{yes:?}");
}

#[test]
fn on_a_terminal_a_person_shows_by_the_passphrase_that_they_are_one() {
    let home = home("[approvals]\nby = \"human\"\n");
    let unset = home.run_on_terminal(&CALL, &["y"]);
    assert_eq!((unset.code, hits(&home)), (1, 0), "{unset:?}");
    home.set_passphrase("correct horse");
    let wrong = home.run_on_terminal(&CALL, &["y", "battery staple"]);
    assert_eq!((wrong.code, hits(&home)), (1, 0), "{wrong:?}");
    assert!(wrong.stdout.contains("not the passphrase"), "{wrong:?}");
    let right = home.run_on_terminal(&CALL, &["y", "correct horse"]);
    assert_eq!((right.code, hits(&home)), (0, 1), "{right:?}");
    assert!(right.stdout.ends_with("paid 5\n") && !right.stdout.contains("horse"), "{right:?}");
    let states: Vec<Value> = runs(&home).into_iter().map(|run| run["state"].clone()).collect();
    assert_eq!(
        states,
        ["done"],
        "what was not answered stays open, and is found by the same call made again"
    );
}

#[test]
fn what_nobody_has_to_be_asked_about_is_called_and_audited() {
    let home = home("[approvals]\nby = \"human\"\n");
    let called = home.run(&["call", "danger:balance"]);
    assert_eq!((called.code, called.stdout.as_str()), (0, "7\n"), "{called:?}");
    let entries = direct_calls(&home, 1);
    assert_eq!((&entries[0]["client"], &entries[0]["decision"]), (&json!("terminal"), &json!("auto")));
}
