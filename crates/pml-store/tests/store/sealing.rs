//! What the files of a store tell somebody who has them, and what becomes of altered ones.

use std::fs;
use std::path::{Path, PathBuf};

use pml_model::RunState;
use pml_store::{BlockingStore, Error, JournalEntry, NewRun, RunChange};
use rusqlite::Connection;

use super::{ann, append, claim, create, entry, fixture, id, in_doubt, me, new_run, park, said, taken, to};

fn key_of(database: &Path) -> PathBuf {
    database.with_file_name("seal.key")
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

#[test]
fn no_body_stands_in_the_files_as_it_is() {
    let fixture = fixture();
    let run = NewRun { plan: b"hush-plan".to_vec(), ..new_run(1) };
    let lease = create(&fixture.store, run).unwrap();
    let asks = Some(Some(("q".to_owned(), in_doubt("hush-arguments"))));
    let change = RunChange { question: asks, ..park(None, None).unwrap() };
    append(&fixture.store, &lease, vec![entry("hush-entry")], Some(change)).unwrap();
    fixture.store.store_answer(&me(), &id(1), said("q", "hush-answer", 2000, Vec::new())).unwrap();
    let lease = taken(claim(&fixture.store, &id(1)));
    let end = RunChange {
        outcome: Some(b"hush-outcome".to_vec()),
        requested_end: Some(b"hush-wish".to_vec()),
        ..to(RunState::Done, 3000).unwrap()
    };
    append(&fixture.store, &lease, Vec::new(), Some(end)).unwrap();

    let check = |files: &[&str]| {
        for file in files {
            let bytes = fs::read(fixture.path.with_file_name(file)).unwrap();
            assert!(!holds(&bytes, b"hush"), "{file}");
            assert!(!holds(&bytes, &fs::read(key_of(&fixture.path)).unwrap()), "the key is in {file}");
        }
    };
    check(&["pml.db", "pml.db-wal", "pml.db-shm"]);
    assert!(holds(&fs::read(fixture.path.with_file_name("pml.db-wal")).unwrap(), b"count the files"));
    drop(fixture.store);
    check(&["pml.db"]);
}

#[test]
fn rows_that_were_altered_or_have_changed_places_are_told() {
    let alterations = [
        (
            "an entry",
            "UPDATE journal SET body = (SELECT body FROM journal WHERE run = 1 AND seq = 2) WHERE run = 1 AND seq = 1",
        ),
        (
            "an entry",
            "UPDATE journal SET seq = 7 WHERE run = 1 AND seq = 2; UPDATE journal SET seq = 2 WHERE run = 1 AND seq = 1; UPDATE journal SET seq = 1 WHERE run = 1 AND seq = 7",
        ),
        (
            "an entry",
            "UPDATE journal SET body = (SELECT body FROM journal WHERE run = 2 AND seq = 1) WHERE run = 1 AND seq = 1",
        ),
        ("an entry", "UPDATE journal SET kind = 'again' WHERE run = 1 AND seq = 2"),
        ("an entry", "UPDATE journal SET call = 9 WHERE run = 1 AND seq = 2"),
        ("an entry", "UPDATE journal SET tool = 'x:y' WHERE run = 1 AND seq = 2"),
        ("an entry", "UPDATE journal SET body = x'' WHERE run = 1 AND seq = 2"),
        ("an entry", "DELETE FROM journal WHERE run = 1 AND seq = 1"),
        (
            "the plan",
            "UPDATE run_body SET body = (SELECT body FROM run_body WHERE run = 2 AND part = 'plan') WHERE run = 1 AND part = 'plan'",
        ),
        ("the plan", "DELETE FROM run_body WHERE run = 1 AND part = 'plan'"),
        (
            "the plan",
            "UPDATE run_body SET body = (SELECT body FROM run_body WHERE run = 1 AND part = 'question') WHERE run = 1 AND part = 'plan'",
        ),
        ("the question", "UPDATE run SET question_id = 'q2' WHERE number = 1"),
        ("an answer", "UPDATE answer SET principal = 'ann' WHERE run = 1"),
        ("the key", "UPDATE run_key SET wrapped = (SELECT wrapped FROM run_key WHERE run = 2) WHERE run = 1"),
        ("the key", "UPDATE run_key SET wrapped = x'00' WHERE run = 1"),
    ];
    for (what, alteration) in alterations {
        let fixture = fixture();
        for number in [1, 2] {
            let lease = create(&fixture.store, new_run(number)).unwrap();
            append(&fixture.store, &lease, vec![entry("a"), entry("b")], park(None, Some("q"))).unwrap();
            fixture.store.store_answer(&me(), &id(number), said("q", "1", 2000, Vec::new())).unwrap();
        }
        Connection::open(&fixture.path).unwrap().execute_batch(alteration).unwrap();
        let error = fixture.store.load_run(&me(), &id(1)).unwrap_err();
        assert!(
            matches!(&error, Error::Unsealed { what: told, .. } if *told == what),
            "{alteration}: {error}"
        );
        assert_eq!(
            error.to_string(),
            format!(
                "{what} of run `{}` is damaged or sealed with another key; restore the database together with `{}` \
                 from a backup, or abort the run",
                id(1),
                key_of(&fixture.path).display()
            )
        );
        assert!(fixture.store.load_run(&me(), &id(2)).is_ok(), "{alteration}");
    }
}

#[test]
fn a_run_cannot_be_given_to_another_principal() {
    let fixture = fixture();
    create(&fixture.store, new_run(1)).unwrap();
    Connection::open(&fixture.path).unwrap().execute("UPDATE run SET principal = 'ann'", []).unwrap();
    assert!(matches!(fixture.store.load_run(&ann(), &id(1)), Err(Error::Unsealed { .. })));
}

#[test]
#[cfg(unix)]
fn the_key_is_for_its_owner_alone_and_comes_with_the_first_run() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = fixture();
    let key = key_of(&fixture.path);
    assert!(!key.exists());
    create(&fixture.store, new_run(1)).unwrap();
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&key).unwrap().len(), 32);
    let files = fs::read_dir(key.parent().unwrap()).unwrap();
    let left: Vec<_> = files
        .map(|file| file.unwrap().file_name())
        .filter(|name| name.to_str().unwrap().starts_with("seal"))
        .collect();
    assert_eq!(left, ["seal.key"], "a draft of the key was left");

    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let store = BlockingStore::open(&fixture.path).unwrap();
    assert_eq!(
        store.load_run(&me(), &id(1)).unwrap_err().to_string(),
        format!(
            "cannot use key file `{}`: others may use it too; take their permissions away with `chmod 600`",
            key.display()
        )
    );
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(store.load_run(&me(), &id(1)).is_ok());
}

#[test]
fn a_key_that_is_gone_or_another_is_told_and_never_made_anew() {
    let fixture = fixture();
    let lease = create(&fixture.store, new_run(1)).unwrap();
    append(&fixture.store, &lease, vec![entry("a")], park(None, Some("q"))).unwrap();
    drop(lease);
    drop(fixture.store);
    let key = key_of(&fixture.path);
    let secret = fs::read(&key).unwrap();
    let answers = || {
        let store = BlockingStore::open(&fixture.path).unwrap();
        let this = pml_store::ProcessIdentity::current().unwrap();
        [
            store.load_run(&me(), &id(1)).map(drop).unwrap_err(),
            store.claim_run(&me(), &id(1), &this, 9000, 1000).map(drop).unwrap_err(),
            store.store_answer(&me(), &id(1), said("q", "1", 1, Vec::new())).map(drop).unwrap_err(),
        ]
    };
    fs::remove_file(&key).unwrap();
    for error in answers() {
        assert!(matches!(error, Error::KeyMissing { .. }), "{error}");
    }
    let error = create(&BlockingStore::open(&fixture.path).unwrap(), new_run(2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "key file `{}` is missing, and without it what is stored can be neither read nor continued; put it back from \
             a backup, or move the database away to start afresh",
            key.display()
        )
    );
    assert!(!key.exists());
    write_key(&key, &[7; 32]);
    for error in answers() {
        assert!(matches!(error, Error::Unsealed { what: "the key", .. }), "{error}");
    }
    write_key(&key, &secret[1..]);
    for error in answers() {
        assert!(matches!(error, Error::KeyUnusable { .. }), "{error}");
    }
    write_key(&key, &secret);
    let store = BlockingStore::open(&fixture.path).unwrap();
    assert_eq!(store.load_run(&me(), &id(1)).unwrap().entries.len(), 1);
    assert_eq!(store.run(&me(), &id(1)).unwrap().unwrap().fence, 1);
}

fn write_key(path: &Path, secret: &[u8]) {
    fs::write(path, secret).unwrap();
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

#[test]
fn what_was_kept_long_enough_goes_with_its_key() {
    let fixture = fixture();
    let store = &fixture.store;
    for number in 1..=40 {
        let lease = create(store, new_run(number)).unwrap();
        let end =
            RunChange { outcome: Some(b"x".to_vec()), ..to(RunState::Done, 1000 * number as i64).unwrap() };
        append(store, &lease, vec![JournalEntry { body: vec![1; 5000], ..entry("") }], Some(end)).unwrap();
    }
    create(store, new_run(41)).unwrap();
    let connection = Connection::open(&fixture.path).unwrap();
    let wrapped: Vec<u8> =
        connection.query_row("SELECT wrapped FROM run_key WHERE run = 1", [], |row| row.get(0)).unwrap();
    drop(connection);

    assert_eq!(store.purge_ended_runs(30_000 + 5000, 5000).unwrap(), 30);
    assert_eq!(store.purge_ended_runs(30_000 + 5000, 5000).unwrap(), 0);
    let error = store.load_run(&me(), &id(30)).unwrap_err();
    assert_eq!(error.to_string(), format!("the records of run `{}` are no longer kept", id(30)));
    let standing = store.run_overview(&me(), &id(30)).unwrap().unwrap();
    assert_eq!((standing.run.state, standing.run.purged_at), (RunState::Done, Some(35_000)));
    assert_eq!(standing.outcome, None);
    assert_eq!(store.load_run(&me(), &id(31)).unwrap().outcome.as_deref(), Some(b"x".as_slice()));
    assert!(store.load_run(&me(), &id(41)).is_ok());

    drop(fixture.store);
    let connection = Connection::open(&fixture.path).unwrap();
    for table in ["run_key", "run_body", "journal", "answer"] {
        let left = format!("SELECT count(*) FROM {table} WHERE run <= 30");
        assert_eq!(connection.query_row(&left, [], |row| row.get::<_, i64>(0)).unwrap(), 0, "{table}");
    }
    assert!(!holds(&fs::read(&fixture.path).unwrap(), &wrapped), "the key is still in the file");
}
