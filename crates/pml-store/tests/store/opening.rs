//! Opening: fresh, existing, damaged and foreign files.

use std::fs;
use std::path::Path;

use pml_store::{AuditVerification, BlockingStore, Error};

use super::{append, create, fixture, id, listing, me, new_run, park, said, told, tool};

fn version_of(path: &Path) -> i64 {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// The version a database that is made now has.
fn present_version() -> i64 {
    version_of(&fixture().path)
}

#[test]
#[cfg(unix)]
fn directory_and_files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/pml.db");
    let store = BlockingStore::open(&path).unwrap();
    store.record_manifest(&me(), listing("fs", vec![tool("read", "d")]), 1).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&path.with_file_name("pml.db-wal")), 0o600);
}

#[test]
fn opening_again_changes_nothing() {
    let fixture = fixture();
    fixture.store.record_manifest(&me(), listing("fs", vec![tool("read", "d")]), 1).unwrap();
    drop(fixture.store);
    let before = fs::read(&fixture.path).unwrap();
    for _ in 0..3 {
        let store = BlockingStore::open(&fixture.path).unwrap();
        assert_eq!(store.manifests(&me()).unwrap().len(), 1);
    }
    assert!(fs::read(&fixture.path).unwrap() == before, "the file is another one");
}

#[test]
fn a_database_of_a_later_version_is_refused_and_left_alone() {
    let fixture = fixture();
    drop(fixture.store);
    let known = version_of(&fixture.path);
    rusqlite::Connection::open(&fixture.path).unwrap().pragma_update(None, "user_version", 4711).unwrap();
    let before = fs::read(&fixture.path).unwrap();
    let error = BlockingStore::open(&fixture.path).unwrap_err();
    assert!(matches!(error, Error::NewerVersion { found: 4711, known: k, .. } if k == known), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "database `{}` has version 4711 and this program knows up to {known}; update the program",
            fixture.path.display()
        )
    );
    assert!(fs::read(&fixture.path).unwrap() == before, "the file is another one");
}

#[test]
fn files_that_are_not_ours_are_named_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("letter.txt");
    fs::write(&text, "Dear Sir or Madam, ".repeat(100)).unwrap();
    let [note, page] = ["note", "page"].map(|name| directory.path().join(name));
    fs::write(&note, "x").unwrap();
    fs::write(&page, "x".repeat(512)).unwrap();
    let foreign = directory.path().join("bookmarks.db");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE bookmark (url TEXT)").unwrap();
    for path in [text, note, page, foreign] {
        let before = fs::read(&path).unwrap();
        let error = BlockingStore::open(&path).unwrap_err();
        assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            format!(
                "`{}` is not a database of this program; move it away or name another file",
                path.display()
            )
        );
        assert!(fs::read(&path).unwrap() == before, "{} is another file", path.display());
    }
}

#[test]
fn a_directory_in_place_of_the_file_is_an_io_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = BlockingStore::open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn names_that_mean_something_to_sqlite_are_plain_files() {
    let directory = tempfile::tempdir().unwrap();
    for name in [":memory:", "file:x?mode=memory", "a b'; DROP TABLE tool; --.db", "ü.db"] {
        let path = directory.path().join(name);
        drop(BlockingStore::open(&path).unwrap());
        assert!(path.is_file(), "{name}");
    }
}

#[test]
fn a_damaged_page_is_told() {
    let fixture = fixture();
    let tools = (0..500).map(|n| tool(&format!("t{n}"), &"x".repeat(200))).collect();
    fixture.store.record_manifest(&me(), listing("fs", tools), 1).unwrap();
    drop(fixture.store);
    let mut bytes = fs::read(&fixture.path).unwrap();
    // Everything but the first page and the pages of the schema, which fill the first few.
    let start = bytes.len() / 2;
    bytes[start..].fill(0xA5);
    fs::write(&fixture.path, bytes).unwrap();
    let answer = BlockingStore::open(&fixture.path).and_then(|store| store.manifests(&me()));
    assert!(matches!(answer, Err(Error::Corrupt { .. })), "{answer:?}");
}

#[test]
fn a_database_from_before_runs_is_brought_up_with_what_is_in_it() {
    let fixture = fixture();
    fixture.store.record_manifest(&me(), listing("fs", vec![tool("read", "d")]), 1).unwrap();
    drop(fixture.store);
    // What the first version made, and no more.
    rusqlite::Connection::open(&fixture.path)
        .unwrap()
        .execute_batch(
            "DROP TABLE question_tool; DROP TABLE run_claim; DROP TABLE journal; DROP TABLE answer; DROP TABLE run_body; DROP TABLE run_key; DROP TABLE run;
             DROP TABLE audit; DROP TABLE approval_rule;
             DROP TABLE memory; DROP TABLE trace_body; DROP TABLE trace; DROP TABLE capability_alias;
             DROP TABLE forgotten_intent; DROP TABLE capability_intent; DROP TABLE capability_procedure; DROP TABLE capability_gone;
             DROP TABLE capability; DROP TABLE observed; DROP TABLE edge; DROP TABLE cached_result;
             DROP TABLE cache_drop;
             DROP TABLE accepted_server; DROP TABLE accepted_definition; DROP TABLE write_epoch;
             DROP TABLE vector; DROP TABLE tool_use;
             DROP TABLE allowed; DROP TABLE key_use; DROP TABLE key_storage; DROP TABLE dashboard_session; DROP TABLE person; DROP TABLE client_key; DROP TABLE sign_in; DROP TABLE process; DROP TABLE speculation; DROP TABLE speculation_confidence;
             DROP TABLE mock; DROP TABLE mock_lookup; DROP TABLE explored_path; DROP TABLE package_signer; DROP TABLE capability_release; DROP TABLE capability_golden; DROP TABLE capability_publication; DROP TABLE membership; DROP TABLE server_sign_in; DROP TABLE store_copy;
             ALTER TABLE definition DROP COLUMN mark; ALTER TABLE tool DROP COLUMN mark;
             PRAGMA user_version = 1",
        )
        .unwrap();
    let store = BlockingStore::open(&fixture.path).unwrap();
    assert_eq!(store.manifests(&me()).unwrap()[0].tools[0].definition.name, "read");
    let accepted = store.accepted_definitions(&me()).unwrap();
    let tools: Vec<&String> = accepted.values().flat_map(|tools| tools.keys()).collect();
    assert_eq!(tools, ["read"], "what was in use stays in use");
    create(&store, new_run(1)).unwrap();
    assert_eq!(store.load_run(&me(), &id(1)).unwrap().plan, b"plan of 1");
    assert_eq!(version_of(&fixture.path), present_version());
}

#[test]
fn a_database_from_before_decisions_is_brought_up_with_what_is_in_it() {
    let fixture = fixture();
    for number in [1, 2] {
        let lease = create(&fixture.store, new_run(number)).unwrap();
        append(&fixture.store, &lease, Vec::new(), park(None, Some("q"))).unwrap();
    }
    fixture.store.store_answer(&me(), &id(1), said("q", "1", 2000, Vec::new())).unwrap();
    drop(fixture.store);
    // What the second version made, and no more.
    rusqlite::Connection::open(&fixture.path)
        .unwrap()
        .execute_batch(
            "DROP TRIGGER journal_is_stored; DROP TRIGGER journal_is_deleted; DROP TRIGGER journal_is_replaced;
             DROP TRIGGER run_body_is_replaced; DROP TRIGGER run_body_is_stored; DROP TRIGGER run_body_is_changed;
             DROP TRIGGER run_body_is_deleted;
             DROP INDEX run_client_key; ALTER TABLE run DROP COLUMN client_key;
             DROP TABLE run_claim; DROP INDEX journal_call; DROP INDEX run_capability; DROP INDEX run_created;
             ALTER TABLE run DROP COLUMN capability; ALTER TABLE run DROP COLUMN learned;
             ALTER TABLE run DROP COLUMN failed_calls; ALTER TABLE run DROP COLUMN speculated_calls;
             ALTER TABLE run DROP COLUMN error_message; ALTER TABLE run DROP COLUMN saved_ms;
             ALTER TABLE run DROP COLUMN call_bytes; ALTER TABLE run DROP COLUMN result_bytes;
             DROP TABLE question_tool; DROP INDEX run_request; ALTER TABLE run DROP COLUMN voided_by;
             ALTER TABLE run DROP COLUMN request_mark;
             DROP TABLE audit; DROP TABLE approval_rule;
             DROP TABLE memory; DROP TABLE trace_body; DROP TABLE trace; DROP TABLE capability_alias;
             DROP TABLE forgotten_intent; DROP TABLE capability_intent; DROP TABLE capability_procedure; DROP TABLE capability_gone;
             DROP TABLE capability; DROP TABLE observed; DROP TABLE edge; DROP TABLE cached_result;
             DROP TABLE cache_drop;
             DROP TABLE accepted_server; DROP TABLE accepted_definition; DROP TABLE write_epoch;
             DROP TABLE vector; DROP TABLE tool_use;
             DROP TABLE allowed; DROP TABLE key_use; DROP TABLE key_storage; DROP TABLE dashboard_session; DROP TABLE person; DROP TABLE client_key; DROP TABLE sign_in; DROP TABLE process; DROP TABLE speculation; DROP TABLE speculation_confidence;
             DROP TABLE mock; DROP TABLE mock_lookup; DROP TABLE explored_path; DROP TABLE package_signer; DROP TABLE capability_release; DROP TABLE capability_golden; DROP TABLE capability_publication; DROP TABLE membership; DROP TABLE server_sign_in; DROP TABLE store_copy;
             ALTER TABLE definition DROP COLUMN mark; ALTER TABLE tool DROP COLUMN mark;
             DROP INDEX run_owned; DROP INDEX run_interrupted; DROP INDEX run_asks; DROP INDEX run_wakes;
             DROP INDEX run_expires; ALTER TABLE run DROP COLUMN answered;
             CREATE INDEX run_open ON run (state) WHERE ended_at IS NULL;
             PRAGMA user_version = 2",
        )
        .unwrap();
    let store = BlockingStore::open(&fixture.path).unwrap();
    assert_eq!(version_of(&fixture.path), present_version());
    let due: Vec<_> = store.due_runs(1000).unwrap().into_iter().map(|found| found.run).collect();
    let asking: Vec<_> = store.asking_runs(&me()).unwrap().into_iter().map(|asking| asking.run.id).collect();
    assert_eq!((due, asking), (vec![id(1)], vec![id(2)]));
    store.append_audit(told("on")).unwrap();
    assert!(matches!(store.verify_audit().unwrap(), AuditVerification::Whole { rows: 1, .. }));
}
