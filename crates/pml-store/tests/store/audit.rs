//! The audit log: what is stored comes back, and nothing about it can be changed unnoticed.

use std::fs;

use pml_store::{AuditDamage, AuditVerification, BlockingStore, Error, NewAuditEntry};
use rusqlite::Connection;
use rusqlite::types::Value;

use super::{Fixture, ann, create, fixture, id, me, new_run, told, words};

/// A log with one entry for each word.
fn log(words: &[&str]) -> Fixture {
    let fixture = fixture();
    for word in words {
        fixture.store.append_audit(told(word)).unwrap();
    }
    fixture
}

/// Somebody who can write to the database, and has no other file.
fn intruder(fixture: &Fixture) -> Connection {
    let connection = Connection::open(&fixture.path).unwrap();
    connection.execute_batch("DROP TRIGGER audit_is_not_changed; DROP TRIGGER audit_is_not_cut").unwrap();
    connection
}

fn head(fixture: &Fixture) -> std::path::PathBuf {
    fixture.path.with_file_name("audit.head")
}

#[track_caller]
fn check_whole(store: &BlockingStore, expected: i64) {
    let verified = store.verify_audit().unwrap();
    assert!(matches!(verified, AuditVerification::Whole { rows, .. } if rows == expected), "{verified:?}");
}

#[track_caller]
fn check_broken(store: &BlockingStore, seq: i64, why: AuditDamage) {
    assert_eq!(store.verify_audit().unwrap(), AuditVerification::Broken { seq, why });
}

#[test]
fn entries_come_back_as_they_were_stored_also_after_a_restart() {
    let fixture = fixture();
    check_whole(&fixture.store, 0);
    let entry = |number: i64| NewAuditEntry {
        at: -number,
        principal: if number % 2 == 0 { me() } else { ann() },
        run: (number % 3 == 0).then(|| id(number.unsigned_abs().into())),
        kind: "asked",
        body: serde_json::json!({ "number": number, "text": "ü\n\"" }),
    };
    fixture.store.append_audit((1..=5).map(entry).collect()).unwrap();
    fixture.store.append_audit(Vec::new()).unwrap();
    fixture.store.append_audit(vec![entry(6)]).unwrap();
    drop(fixture.store);

    let store = BlockingStore::open(&fixture.path).unwrap();
    let rows = store.audit_entries(2, 3).unwrap();
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [3, 4, 5]);
    for row in store.audit_entries(0, 100).unwrap() {
        let expected = entry(row.seq);
        assert_eq!((row.at, &row.principal, &row.run), (expected.at, &expected.principal, &expected.run));
        assert_eq!((row.kind.as_str(), row.body.get()), ("asked", expected.body.to_string().as_str()));
    }
    let newest = store.audit_entries(5, 1).unwrap().remove(0);
    assert_eq!(store.verify_audit().unwrap(), AuditVerification::Whole { rows: 6, head: newest.hash });
}

#[test]
fn every_byte_of_every_column_counts() {
    let fixture = log(&["a", "b", "c"]);
    let intruder = intruder(&fixture);
    let mut flips = 0;
    for seq in 1..=3_i64 {
        for column in ["seq", "at", "principal", "run", "kind", "body", "hash"] {
            let old: Value = intruder
                .query_row(&format!("SELECT {column} FROM audit WHERE seq = ?1"), [seq], |row| row.get(0))
                .unwrap();
            for new in flipped(&old) {
                flips += 1;
                let change = format!("UPDATE audit SET {column} = {new} WHERE seq = ?1");
                intruder.execute(&change, [seq]).unwrap();
                let verified = fixture.store.verify_audit().unwrap();
                let AuditVerification::Broken { seq: first, .. } = verified else {
                    panic!("{column} of entry {seq} became {new} unnoticed")
                };
                if column == "seq" {
                    intruder.execute("UPDATE audit SET seq = ?1 WHERE seq NOT IN (1, 2, 3)", [seq]).unwrap();
                } else {
                    assert_eq!(first, seq, "{column} of entry {seq} became {new}");
                    intruder
                        .execute(&format!("UPDATE audit SET {column} = ?1 WHERE seq = ?2"), (&old, seq))
                        .unwrap();
                }
                check_whole(&fixture.store, 3);
            }
        }
    }
    assert!(flips > 3 * 100, "{flips}");
}

/// The value with one byte changed, for each of its bytes, as SQL.
fn flipped(value: &Value) -> Vec<String> {
    match value {
        Value::Integer(number) => (0..8).map(|byte| (number ^ (0x10 << (8 * byte))).to_string()).collect(),
        Value::Text(text) => {
            let flip = |index: usize| {
                let mut bytes = text.clone().into_bytes();
                bytes[index] ^= 0x81;
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("CAST(x'{digits}' AS TEXT)")
            };
            (0..text.len()).map(flip).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn entries_that_were_taken_out_put_in_or_moved_are_noticed() {
    let alterations = [
        ("DELETE FROM audit WHERE seq = 1", 1, AuditDamage::Missing),
        ("DELETE FROM audit WHERE seq = 3", 3, AuditDamage::Missing),
        ("DELETE FROM audit WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 4", 3, AuditDamage::Changed),
        (
            "UPDATE audit SET seq = 9 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3;
             UPDATE audit SET seq = 3 WHERE seq = 9",
            2,
            AuditDamage::Changed,
        ),
        (
            "INSERT INTO audit SELECT 0, at, principal, run, kind, body, hash FROM audit WHERE seq = 1",
            0,
            AuditDamage::Changed,
        ),
        (
            "INSERT INTO audit SELECT 6, at, principal, run, kind, body, hash FROM audit WHERE seq = 5",
            6,
            AuditDamage::Changed,
        ),
        ("UPDATE audit SET run = NULL WHERE seq = 4", 4, AuditDamage::Changed),
        ("UPDATE audit SET run = '' WHERE seq = 4", 4, AuditDamage::Changed),
        // A word that moves from one column to the next.
        ("UPDATE audit SET principal = 'loca', run = 'l' || run WHERE seq = 4", 4, AuditDamage::Changed),
        ("DELETE FROM audit WHERE seq = 5", 5, AuditDamage::CutOff),
        ("DELETE FROM audit WHERE seq >= 3", 3, AuditDamage::CutOff),
        ("DELETE FROM audit", 1, AuditDamage::CutOff),
    ];
    for (alteration, seq, why) in alterations {
        let fixture = log(&["a", "b", "c", "d", "e"]);
        check_whole(&fixture.store, 5);
        intruder(&fixture).execute_batch(alteration).unwrap();
        assert_eq!(
            fixture.store.verify_audit().unwrap(),
            AuditVerification::Broken { seq, why },
            "{alteration}"
        );
    }
}

#[test]
fn no_run_is_not_the_same_as_one_without_a_name() {
    let fixture = log(&["a"]);
    let without = NewAuditEntry { run: None, ..told("b").remove(0) };
    fixture.store.append_audit(vec![without]).unwrap();
    intruder(&fixture).execute("UPDATE audit SET run = '' WHERE seq = 2", []).unwrap();
    check_broken(&fixture.store, 2, AuditDamage::Changed);
}

#[test]
fn what_was_cut_off_is_missed_also_when_others_came_after() {
    let fixture = log(&["a", "b", "c", "d", "e"]);
    intruder(&fixture).execute("DELETE FROM audit WHERE seq > 3", []).unwrap();
    for (word, why) in
        [("f", AuditDamage::CutOff), ("g", AuditDamage::Replaced), ("h", AuditDamage::Replaced)]
    {
        fixture.store.append_audit(told(word)).unwrap();
        check_broken(&fixture.store, 5, why);
    }
    // A person who knows why may say that it goes on from here.
    fs::remove_file(head(&fixture)).unwrap();
    check_broken(&fixture.store, 6, AuditDamage::NoHead);
    fixture.store.append_audit(told("i")).unwrap();
    check_whole(&fixture.store, 7);
}

#[test]
fn the_database_itself_lets_nobody_change_the_log() {
    let fixture = log(&["a", "b"]);
    let connection = Connection::open(&fixture.path).unwrap();
    for statement in ["UPDATE audit SET kind = 'x'", "DELETE FROM audit"] {
        let refused = connection.execute(statement, []).unwrap_err();
        assert_eq!(refused.to_string(), "the audit log only grows");
    }
    check_whole(&fixture.store, 2);
}

#[test]
fn a_file_that_lags_after_a_crash_is_no_error() {
    let fixture = log(&["a"]);
    let lagging = fs::read(head(&fixture)).unwrap();
    fixture.store.append_audit(told("b")).unwrap();
    fixture.store.append_audit(told("c")).unwrap();
    let newest = fs::read(head(&fixture)).unwrap();
    let before_any = format!("0 {}\n", "0".repeat(64));
    for lagging in [lagging.as_slice(), before_any.as_bytes()] {
        fs::write(head(&fixture), lagging).unwrap();
        check_whole(&fixture.store, 3);
    }
    // The next entry brings it up.
    fixture.store.append_audit(told("d")).unwrap();
    check_whole(&fixture.store, 4);
    let caught_up = fs::read_to_string(head(&fixture)).unwrap();
    assert!(caught_up.starts_with("4 "), "{caught_up}");
    assert!(caught_up.as_bytes() != newest);
}

#[test]
fn a_file_that_is_damaged_is_told_and_left_alone() {
    let fixture = log(&["a", "b"]);
    for text in ["", "2", "2 abc\n", "-1 x\n", &"x".repeat(1000)] {
        fs::write(head(&fixture), text).unwrap();
        check_broken(&fixture.store, 2, AuditDamage::BadHead);
    }
    fixture.store.append_audit(told("c")).unwrap();
    check_broken(&fixture.store, 3, AuditDamage::BadHead);
}

#[test]
fn nothing_is_stored_where_the_file_cannot_be_made() {
    let fixture = fixture();
    // The draft cannot be written.
    fs::create_dir(head(&fixture).with_extension("draft")).unwrap();
    let refused = fixture.store.append_audit(told("a")).unwrap_err();
    assert!(matches!(refused, Error::Io { .. }) && refused.to_string().contains("audit.head"), "{refused}");
    check_whole(&fixture.store, 0);
    fs::remove_dir(head(&fixture).with_extension("draft")).unwrap();
    fixture.store.append_audit(told("a")).unwrap();
    check_whole(&fixture.store, 1);
}

#[test]
#[cfg(unix)]
fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = log(&["a"]);
    assert_eq!(fs::metadata(head(&fixture)).unwrap().permissions().mode() & 0o777, 0o600);
    let row = fixture.store.audit_entries(0, 1).unwrap().remove(0);
    assert_eq!(fs::read_to_string(head(&fixture)).unwrap(), format!("1 {}\n", row.hash));
    assert!(!head(&fixture).with_extension("draft").exists());
}

#[test]
fn only_the_key_of_the_log_makes_entries_of_it() {
    let fixture = log(&["a"]);
    let key = fixture.path.with_file_name("seal.key");
    let secret = fs::read(&key).unwrap();
    drop(fixture.store);
    fs::write(&key, [7; 32]).unwrap();
    check_broken(&BlockingStore::open(&fixture.path).unwrap(), 1, AuditDamage::Changed);
    // A key that is gone is never made anew.
    fs::remove_file(&key).unwrap();
    let store = BlockingStore::open(&fixture.path).unwrap();
    for refused in [
        store.verify_audit().map(drop).unwrap_err(),
        store.append_audit(told("b")).unwrap_err(),
        create(&store, new_run(1)).map(drop).unwrap_err(),
    ] {
        assert!(matches!(refused, Error::KeyMissing { .. }), "{refused}");
    }
    assert_eq!(words(&store), ["a"]);
    fs::write(&key, secret).unwrap();
    #[cfg(unix)]
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    store.append_audit(told("b")).unwrap();
    check_whole(&store, 2);
}
