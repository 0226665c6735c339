//! `pml audit`: what the log tells, and that a changed byte of it is noticed.

use pml_model::{Principal, RunId};
use pml_store::{BlockingStore, NewAuditEntry};
use serde_json::{Value, json};

use crate::harness::Home;

/// A home whose log has an entry for each word.
fn home(words: &[&str]) -> Home {
    let home = Home::new("");
    let entry = |(at, word): (i64, &&str)| NewAuditEntry {
        at: at * 1000,
        principal: Principal::local(),
        run: Some(RunId::new(1)),
        kind: "decided",
        body: json!({ "reason": word }),
    };
    let store = BlockingStore::open(&home.path("pml.db")).unwrap();
    store.append_audit((0..).zip(words).map(entry).collect()).unwrap();
    home
}

#[test]
fn a_whole_log_is_told_with_its_head() {
    let home = home(&["first", "second", "third"]);
    let listed = home.run(&["audit", "list", "--json"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    let rows: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let head = rows[2]["hash"].as_str().unwrap();

    let verified = home.run(&["audit", "verify"]);
    assert_eq!(verified.stdout, format!("the log is whole: 3 entries, head {head}\n"), "{verified:?}");
    assert_eq!(verified.code, 0);
    let verified = home.run(&["audit", "verify", "--json"]);
    let verified: Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!(verified, json!({ "whole": true, "entries": 3, "head": head }));
}

#[test]
fn a_log_that_has_nothing_yet_is_whole() {
    let home = Home::new("");
    let verified = home.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    assert!(verified.stdout.starts_with("the log is whole: 0 entries, head 000"), "{verified:?}");
    let listed = home.run(&["audit", "list"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (0, "no entries yet\n"));
}

#[test]
fn entries_are_listed_a_page_at_a_time() {
    let home = home(&["first", "sec\u{1b}ond", "third"]);
    let listed = home.run(&["audit", "list", "--after", "1", "--limit", "1", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&row["entry"], &row["at"], &row["kind"]), (&json!(2), &json!(1000), &json!("decided")));
    assert_eq!((&row["principal"], &row["workflowId"]), (&json!("local"), &json!(RunId::new(1))));
    assert_eq!(row["body"], json!({ "reason": "sec\u{1b}ond" }));

    let listed = home.run(&["audit", "list", "--after", "1"]).stdout;
    assert!(!listed.contains("first") && listed.contains("1970-01-01 00:00:02"), "{listed}");
    assert!(listed.contains(r#"{"reason":"third"}"#), "{listed}");
    assert_eq!(home.run(&["audit", "list", "--after", "3"]).stderr, "no entries after that one\n");
}

#[test]
fn a_changed_byte_is_noticed_and_named() {
    let home = home(&["first", "yes-indeed", "third"]);
    let mut file = std::fs::read(home.path("pml.db")).unwrap();
    let word = b"yes-indeed";
    let at = file.windows(word.len()).position(|window| window == word).unwrap();
    file[at] ^= 1;
    std::fs::write(home.path("pml.db"), file).unwrap();

    let verified = home.run(&["audit", "verify"]);
    assert_eq!(verified.code, 1, "{verified:?}");
    assert_eq!(
        verified.stdout,
        "the log is broken at entry 2: it is not what was stored there, or `seal.key` is another one\n"
    );
    let verified = home.run(&["audit", "verify", "--json"]);
    assert_eq!(verified.code, 1);
    let verified: Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!((&verified["whole"], &verified["entry"]), (&json!(false), &json!(2)));
}

#[test]
fn a_database_put_back_from_before_is_noticed() {
    let home = home(&["first"]);
    let before = std::fs::read(home.path("pml.db")).unwrap();
    let later = NewAuditEntry {
        at: 1,
        principal: Principal::local(),
        run: None,
        kind: "decided",
        body: json!({ "reason": "later" }),
    };
    BlockingStore::open(&home.path("pml.db")).unwrap().append_audit(vec![later]).unwrap();
    std::fs::write(home.path("pml.db"), before).unwrap();
    let verified = home.run(&["audit", "verify"]);
    assert_eq!(verified.code, 1, "{verified:?}");
    assert!(
        verified.stdout.starts_with("the log is broken at entry 2: it and what followed"),
        "{verified:?}"
    );
}
