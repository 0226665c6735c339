//! Copies of a whole database to the other kind and back, and backups of a server.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pml_model::{Digest, KeyRights, Principal, Role, RunState, ToolId};
use pml_store::{
    AuditVerification, BlockingStore, CopyProgress, DatabasePlace, Error, KeyInBackup, NewApprovalRule,
    NewClientKey, NewMock, NewRun, StoredVector, TableReport, copy_database, restore_backup,
    restore_backup_to_server,
};

use super::server;
use super::suite::memory::{dump, get, learn, memory, remember, trace};
use super::suite::raw_database::Raw;
use super::suite::{ann, append, bodies, create, entry, id, listing, me, new_run, raw, to, told, tool};

/// A directory with a database file that holds something of everything.
struct Source {
    directory: tempfile::TempDir,
}

impl Source {
    fn filled(runs: u128) -> Source {
        let source = Source { directory: tempfile::tempdir().unwrap() };
        fill(&BlockingStore::open(&source.path()).unwrap(), runs);
        source
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("pml.db")
    }

    fn place(&self) -> DatabasePlace {
        DatabasePlace::File(self.path())
    }

    fn copy(&self, from: &DatabasePlace, to: &DatabasePlace) -> Result<Vec<TableReport>, Error> {
        copy_database(from, to, &self.path(), |_| ())
    }
}

fn fill(store: &BlockingStore, runs: u128) {
    store.record_manifest(&me(), listing("fs", vec![tool("read", "d"), tool("write", "e")]), 1).unwrap();
    let of_key = store
        .add_client_key(NewClientKey {
            principal: me(),
            client: "desk".to_owned(),
            digest: Digest::of(b"desk"),
            interactive: true,
            asks_itself: false,
            rights: KeyRights::of_role(Role::Approver),
            now: 1000,
        })
        .unwrap();
    for number in 0..runs {
        let run = NewRun {
            principal: if number % 3 == 0 { ann() } else { me() },
            intent: format!("intent\0 of {number}"),
            client_key: (number % 2 == 0).then_some(of_key.id),
            ..new_run(number)
        };
        let lease = create(store, run).unwrap();
        append(store, &lease, vec![entry("a"), entry(&"b".repeat(900))], to(RunState::Done, 2000)).unwrap();
        remember(store, memory(if number % 4 == 0 { "q" } else { "p" }, trace(number)));
    }
    learn(store);
    store.append_audit(told("on")).unwrap();
    let rule = NewApprovalRule {
        principal: ann(),
        tool: "fs:write".to_owned(),
        definition: Digest::of(b"definition"),
        code_hash: None,
        arguments: Some(Digest::of(b"arguments")),
        expires_at: 1 << 40,
        by: "ann".to_owned(),
        now: 1000,
    };
    store.add_rule(rule, Vec::new()).unwrap();
    let mock = NewMock {
        principal: me(),
        tool: ToolId::parse("fs:read").unwrap(),
        digest: Digest::of(b"definition"),
        arguments: raw("{\"path\":\"a.txt\"}"),
        result: raw("\"text\""),
    };
    store.record_mocks(vec![mock], 1000).unwrap();
    let vector = StoredVector { scale: 0.25, numbers: vec![1, 127, -127, 0] };
    store.store_vectors(&me(), "small", vec![(Digest::of(b"one"), vector)]).unwrap();
    store.put_server_sign_in(&me(), &super::suite::server("s"), "hunter2".to_owned(), 1).unwrap();
    store.flush().unwrap();
}

/// What was filled in is there and sound.
#[track_caller]
fn assert_filled(store: &BlockingStore, runs: u128) {
    let whole = store.check_integrity().unwrap();
    assert!(whole.file_errors.is_empty() && whole.damaged_rows.is_empty(), "{whole:?}");
    assert!(matches!(store.verify_audit().unwrap(), AuditVerification::Whole { .. }));
    let last = if (runs - 1).is_multiple_of(3) { runs - 2 } else { runs - 1 };
    assert_eq!(store.run(&me(), &id(last)).unwrap().unwrap().intent, format!("intent\0 of {last}"));
    assert_eq!(bodies(store, &id(last)), ["a".to_owned(), "b".repeat(900)]);
    assert!(get(store, "p").statistics.success_count > 0);
    assert_eq!(store.rules_in_force(&ann(), 2000).unwrap().len(), 1);
    assert_eq!(store.client_keys().unwrap().len(), 1);
    let signed_in = store.server_sign_in(&me(), &super::suite::server("s")).unwrap().unwrap();
    assert_eq!(signed_in.body, "hunter2");
    assert_eq!(store.vectors(&me(), "small").unwrap().len(), 1);
}

/// An empty database of the shared server.
fn new_server_database() -> DatabasePlace {
    DatabasePlace::Server(server::new_database())
}

fn url_of(place: &DatabasePlace) -> &str {
    match place {
        DatabasePlace::Server(url) => url,
        DatabasePlace::File(_) => panic!("this is a file"),
    }
}

#[test]
fn a_file_is_copied_to_a_server_and_back_and_everything_is_the_same() {
    let source = Source::filled(40);
    let learned = dump(&source.path());
    let on_server = new_server_database();
    let there = source.copy(&source.place(), &on_server).unwrap();
    assert!(there.iter().any(|table| table.table == "journal" && table.rows == 80), "{there:?}");
    let store = BlockingStore::open_postgres(url_of(&on_server), &source.path()).unwrap();
    assert_filled(&store, 40);
    drop(store);

    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("data/pml.db");
    let back = source.copy(&on_server, &DatabasePlace::File(file.clone())).unwrap();
    assert_eq!(back, there);
    assert_eq!(dump(&file), learned);
    let store = BlockingStore::open(&file).unwrap();
    assert_filled(&store, 40);

    // Rows that come later get numbers of their own, and what is learned goes on.
    remember(&store, memory("p", trace(900)));
    learn(&store);
    let after = dump(&file);
    store.relearn_all(5000).unwrap();
    assert_eq!(dump(&file), after);
    let key = |path: &Path| std::fs::read(path.with_file_name("seal.key")).unwrap();
    assert_eq!(key(&file), key(&source.path()));
}

#[test]
fn numbers_of_rows_that_are_gone_are_not_given_again() {
    let source = Source::filled(5);
    let last = Raw::open(&source.path()).number("SELECT max(seq) FROM trace");
    for table in ["trace_body", "trace"] {
        Raw::open(&source.path()).execute(&format!("DELETE FROM {table} WHERE seq = {last}"));
    }
    let on_server = new_server_database();
    source.copy(&source.place(), &on_server).unwrap();
    let store = BlockingStore::open_postgres(url_of(&on_server), &source.path()).unwrap();
    remember(&store, memory("p", trace(77)));
    let seq = |database: &Raw| database.number("SELECT max(seq) FROM trace");
    assert_eq!(seq(&Raw::connect(url_of(&on_server))), last + 1);
    drop(store);
    Raw::connect(url_of(&on_server)).execute(&format!("DELETE FROM trace_body WHERE seq = {}", last + 1));
    Raw::connect(url_of(&on_server)).execute(&format!("DELETE FROM trace WHERE seq = {}", last + 1));
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("pml.db");
    source.copy(&on_server, &DatabasePlace::File(file.clone())).unwrap();
    remember(&BlockingStore::open(&file).unwrap(), memory("p", trace(78)));
    assert_eq!(seq(&Raw::open(&file)), last + 2);
}

#[test]
fn a_copy_that_is_interrupted_goes_on_where_it_stopped() {
    let source = Source::filled(90);
    for there in [true, false] {
        let (from, to, file) = match there {
            true => (source.place(), new_server_database(), None),
            false => {
                let from = new_server_database();
                source.copy(&source.place(), &from).unwrap();
                let file = source.path().with_file_name("back.db");
                (from, DatabasePlace::File(file.clone()), Some(file))
            }
        };
        let (mut attempts, mut most) = (0, 0);
        let copied = loop {
            attempts += 1;
            // Each attempt is ended after some chunks, as by a kill.
            let mut left = 7;
            let stop_in_time = |progress: CopyProgress<'_>| {
                most = most.max(progress.rows);
                left -= i32::from(!progress.is_comparing);
                assert!(left > 0, "it is interrupted");
            };
            let attempt = AssertUnwindSafe(|| copy_database(&from, &to, &source.path(), stop_in_time));
            match catch_unwind(attempt) {
                Ok(copied) => break copied.unwrap(),
                Err(_) => {
                    let refused = match &to {
                        DatabasePlace::Server(url) => BlockingStore::open_postgres(url, &source.path()),
                        DatabasePlace::File(path) => BlockingStore::open(path),
                    };
                    let refused = refused.map(drop).unwrap_err();
                    assert!(matches!(refused, Error::IncompleteCopy { .. }), "{refused}");
                }
            }
        };
        assert!(attempts > 2, "it was interrupted {attempts} times");
        let whole = match there {
            true => source.copy(&source.place(), &new_server_database()).unwrap(),
            false => {
                let again = tempfile::tempdir().unwrap();
                source.copy(&from, &DatabasePlace::File(again.path().join("pml.db"))).unwrap()
            }
        };
        assert_eq!(copied, whole);
        let store = match (&to, file) {
            (_, Some(file)) => BlockingStore::open(&file).unwrap(),
            (to, None) => BlockingStore::open_postgres(url_of(to), &source.path()).unwrap(),
        };
        assert_filled(&store, 90);
    }
}

/// Begins a copy and leaves it.
fn begin(source: &Source, to: &DatabasePlace) {
    let mut left = 12;
    let stop = |_: CopyProgress<'_>| {
        left -= 1;
        assert!(left > 0, "it is interrupted");
    };
    let begun = AssertUnwindSafe(|| copy_database(&source.place(), to, &source.path(), stop));
    assert!(catch_unwind(begun).is_err());
}

#[test]
fn a_copy_that_was_begun_is_not_gone_on_with_from_another_database() {
    let (source, other) = (Source::filled(6), Source::filled(3));
    let to = new_server_database();
    begin(&source, &to);
    let key = |of: &Source| of.path().with_file_name("seal.key");
    std::fs::copy(key(&source), key(&other)).unwrap();
    let refused = other.copy(&other.place(), &to).unwrap_err();
    assert!(matches!(refused, Error::IncompleteCopy { .. }), "{refused}");
    source.copy(&source.place(), &to).unwrap();
}

#[test]
fn a_row_that_differs_at_the_end_is_told() {
    let source = Source::filled(6);
    let to = new_server_database();
    begin(&source, &to);
    let place = Raw::connect(url_of(&to)).texts("SELECT place FROM store_copy").remove(0).remove(0);
    let copied: Vec<String> = ["client_key", "capability", "definition"]
        .into_iter()
        .filter(|table| Raw::connect(url_of(&to)).number(&format!("SELECT count(*) FROM {table}")) > 0)
        .map(str::to_owned)
        .collect();
    let table = copied.first().unwrap_or_else(|| panic!("nothing was copied before {place}"));
    let change = match table.as_str() {
        "client_key" => "UPDATE client_key SET client = 'changed'",
        "capability" => "UPDATE capability SET name = 'changed' WHERE number = 1",
        _ => "UPDATE definition SET raw = 'changed'",
    };
    Raw::open(&source.path()).execute(change);
    let refused = source.copy(&source.place(), &to).unwrap_err();
    assert!(matches!(&refused, Error::CopyDiffers { table: told, .. } if told == table), "{refused}");
    let unusable = BlockingStore::open_postgres(url_of(&to), &source.path()).map(drop).unwrap_err();
    assert!(matches!(unusable, Error::IncompleteCopy { .. }), "{unusable}");
}

#[test]
fn nothing_is_copied_from_or_to_a_database_that_is_used_or_holds_something() {
    let source = Source::filled(3);
    let to = new_server_database();
    let used = BlockingStore::open(&source.path()).unwrap();
    assert!(matches!(source.copy(&source.place(), &to).unwrap_err(), Error::InUse { .. }));
    drop(used);
    let used = BlockingStore::open_postgres(url_of(&to), &source.path()).unwrap();
    assert!(matches!(source.copy(&source.place(), &to).unwrap_err(), Error::InUse { .. }));
    store_one_run(&used);
    drop(used);
    let filled = source.copy(&source.place(), &to).unwrap_err();
    assert!(matches!(&filled, Error::NotEmpty { table, .. } if table == "run"), "{filled}");
    let nothing = DatabasePlace::File(source.path().with_file_name("nothing.db"));
    assert!(matches!(source.copy(&nothing, &new_server_database()).unwrap_err(), Error::Io { .. }));
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("seal.key"), [7; 32]).unwrap();
    let other_key = DatabasePlace::File(elsewhere.path().join("pml.db"));
    assert!(matches!(source.copy(&source.place(), &other_key).unwrap_err(), Error::KeyMismatch { .. }));
    assert!(!elsewhere.path().join("pml.db").exists());
}

fn store_one_run(store: &BlockingStore) {
    create(store, NewRun { principal: Principal("zoe".to_owned()), ..new_run(4711) }).unwrap();
}

#[test]
fn a_server_is_backed_up_while_it_is_written_to_and_restored_to_a_file() {
    let home = Source { directory: tempfile::tempdir().unwrap() };
    let place = new_server_database();
    let store = BlockingStore::open_postgres(url_of(&place), &home.path()).unwrap();
    fill(&store, 20);
    let writer = store.clone();
    let writing = std::thread::spawn(move || {
        for number in 100..160 {
            create(&writer, new_run(number)).unwrap();
        }
    });
    let backup = home.path().with_file_name("copy.db");
    let made = store.backup(&backup, KeyInBackup::Included).unwrap();
    writing.join().unwrap();
    assert_eq!((made.bytes, made.damaged_rows), (std::fs::metadata(&backup).unwrap().len(), 0));
    let elsewhere = tempfile::tempdir().unwrap();
    let database = elsewhere.path().join("pml.db");
    restore_backup(&backup, &database, "now").unwrap();
    assert_filled(&BlockingStore::open(&database).unwrap(), 20);
}

#[test]
fn a_backup_replaces_a_database_on_a_server_and_keeps_what_was_there() {
    let home = Source { directory: tempfile::tempdir().unwrap() };
    let place = new_server_database();
    let store = BlockingStore::open_postgres(url_of(&place), &home.path()).unwrap();
    fill(&store, 10);
    let backup = home.path().with_file_name("copy.db");
    store.backup(&backup, KeyInBackup::Included).unwrap();
    let bare = home.path().with_file_name("bare.db");
    store.backup(&bare, KeyInBackup::LeftOut).unwrap();
    store_one_run(&store);
    let refused = restore_backup_to_server(&backup, url_of(&place), &home.path(), "now").unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    drop(store);
    let restored = restore_backup_to_server(&backup, url_of(&place), &home.path(), "now").unwrap();
    assert_eq!(restored.key, KeyInBackup::Included);
    let zoe = Principal("zoe".to_owned());
    let store = BlockingStore::open_postgres(url_of(&place), &home.path()).unwrap();
    assert_filled(&store, 10);
    assert!(store.run(&zoe, &id(4711)).unwrap().is_none());
    drop(store);

    // What was there before is a backup itself, also where the key is another one.
    let aside = restored.replaced_files_dir.unwrap().join("pml.db");
    let elsewhere = Source { directory: tempfile::tempdir().unwrap() };
    let other = new_server_database();
    let used = BlockingStore::open_postgres(url_of(&other), &elsewhere.path()).unwrap();
    store_one_run(&used);
    drop(used);
    restore_backup_to_server(&aside, url_of(&other), &elsewhere.path(), "then").unwrap();
    let store = BlockingStore::open_postgres(url_of(&other), &elsewhere.path()).unwrap();
    assert_filled(&store, 10);
    assert!(store.run(&zoe, &id(4711)).unwrap().is_some());
    drop(store);

    let nowhere = tempfile::tempdir().unwrap();
    let beside = nowhere.path().join("pml.db");
    let missing = restore_backup_to_server(&bare, url_of(&new_server_database()), &beside, "x").unwrap_err();
    assert!(matches!(missing, Error::KeyMissing { .. }), "{missing}");
    restore_backup_to_server(&bare, url_of(&place), &home.path(), "again").unwrap();
    assert_filled(&BlockingStore::open_postgres(url_of(&place), &home.path()).unwrap(), 10);
}

#[test]
fn nobody_opens_a_database_that_is_being_restored() {
    let source = Source::filled(3);
    let place = new_server_database();
    let (url, path) = (url_of(&place).to_owned(), source.path());
    let mut opening = None;
    let copied = copy_database(&source.place(), &place, &source.path(), |_| {
        opening.get_or_insert_with(|| {
            let (url, path) = (url.clone(), path.clone());
            let opens = std::thread::spawn(move || BlockingStore::open_postgres(&url, &path));
            std::thread::sleep(Duration::from_millis(300));
            assert!(!opens.is_finished(), "it was opened in the middle");
            opens
        });
    });
    assert!(copied.unwrap().iter().any(|table| table.rows > 0));
    assert_filled(&opening.unwrap().join().unwrap().unwrap(), 3);
}
