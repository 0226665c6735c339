//! What a server, its connections and its administrators can do to a store.

use std::time::Duration;

use pml_model::RunState;
use pml_store::{
    AuditDamage, AuditVerification, BlockingStore, Claim, Error, NewRun, ProcessIdentity, Store,
};

use super::proxy::{Cut, Proxy};
use super::server::{self, Server};
use super::suite::memory::{dump, learn, memory, remember, trace};
use super::suite::{
    append, bodies, claim, create, entry, fixture, id, me, new_place, new_run, open_at, raw_database, told,
    url_at, words,
};

/// The name of the database at an address.
fn database(url: &str) -> String {
    url.split('?').next().unwrap().rsplit('/').next().unwrap().to_owned()
}

#[test]
fn a_commit_whose_connection_was_cut_is_stored_once() {
    let (_directory, path) = new_place();
    let url = url_at(&path).unwrap();
    let proxy = Proxy::start(server::shared_directory());
    let store = BlockingStore::open_postgres(&proxy.url(&database(&url)), &path).unwrap();
    for number in 0..30_u128 {
        let cut = [Cut::Before, Cut::After, Cut::Never][usize::try_from(number % 3).unwrap()];
        proxy.cut_next(cut);
        let lease = create(&store, new_run(number)).unwrap();
        assert!(proxy.has_cut());
        proxy.cut_next(cut);
        append(&store, &lease, vec![entry("a"), entry("b")], None).unwrap();
        store.append_audit(told("told")).unwrap();
        remember(&store, memory("p", trace(number)));
    }
    let numbers = raw_database(&path).number("SELECT count(*) FROM run");
    assert_eq!((numbers, raw_database(&path).number("SELECT max(number) FROM run")), (30, 30));
    for number in 0..30 {
        assert_eq!(bodies(&store, &id(number)), ["a", "b"]);
    }
    assert_eq!(words(&store).len(), 30);
    assert!(matches!(store.verify_audit().unwrap(), AuditVerification::Whole { rows: 30, .. }));
    learn(&store);
    let learned = dump(&path);
    store.relearn_all(5000).unwrap();
    assert_eq!(dump(&path), learned);
}

#[test]
fn nothing_is_acknowledged_of_a_batch_that_another_gateway_came_before() {
    let (_directory, path) = new_place();
    let url = url_at(&path).unwrap();
    let proxy = Proxy::start(server::shared_directory());
    let store = BlockingStore::open_postgres(&proxy.url(&database(&url)), &path).unwrap();
    let elsewhere = open_at(&path).unwrap();
    let other = raw_database(&path);
    other.execute("BEGIN; SELECT pg_advisory_xact_lock(1347243057, hashtext(current_schema()))");
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let until = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    // One change waits for the lock; the two that are queued meanwhile share a commit.
    let outcomes: Vec<bool> = std::thread::scope(|scope| {
        let create = |number| {
            let (store, before) = (&store, store.backlog_bytes());
            let creates = scope.spawn(move || create(store, new_run(number)).is_ok());
            until(&|| store.backlog_bytes() > before);
            creates
        };
        let first = create(1);
        until(&|| raw_database(&path).number(waiting) == 1);
        let batch = [create(2), create(3)];
        proxy.cut_at(id(3).as_str());
        other.execute("COMMIT");
        until(&|| proxy.is_paused());
        // It gets the number that the run of the cut batch had.
        super::suite::create(&elsewhere, new_run(4)).unwrap();
        proxy.resume();
        std::iter::once(first).chain(batch).map(|creates| creates.join().unwrap()).collect()
    });
    assert_eq!(outcomes, [true, false, false], "which of the runs are acknowledged");
    let stored = |number| store.run(&me(), &id(number)).unwrap().is_some();
    assert_eq!([1, 2, 3, 4].map(stored), [true, false, false, true]);
    create(&store, new_run(5)).unwrap();
    assert!(stored(5));
}

/// Fails instead of hanging where something should end by itself.
fn within_reason<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (reply, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || reply.send(work()));
    answer.recv_timeout(Duration::from_secs(100)).expect("it does not end")
}

#[test]
fn a_store_is_closed_though_the_server_went_away_within_a_change() {
    let (_directory, path) = new_place();
    let url = url_at(&path).unwrap();
    let proxy = Proxy::start(server::shared_directory());
    let store = BlockingStore::open_postgres(&proxy.url(&database(&url)), &path).unwrap();
    let lease = create(&store, new_run(1)).unwrap();
    proxy.cut_next(Cut::ForGood);
    let writer = store.clone();
    let waits = std::thread::spawn(move || append(&writer, &lease, vec![entry("a")], None));
    while !proxy.has_cut() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    assert!(!waits.is_finished(), "a change waits for the server as long as nobody closes the store");
    let store = Store::from(store);
    store.begin_closing();
    let refused = within_reason(move || {
        let refused = waits.join().unwrap().unwrap_err();
        drop(store);
        refused
    });
    assert!(matches!(refused, Error::Unreachable { .. }), "{refused}");
    let again = BlockingStore::open_postgres(&url, &path).unwrap();
    assert!(bodies(&again, &id(1)).is_empty());
}

#[test]
fn a_server_that_says_nothing_any_more_counts_as_gone_within_seconds() {
    let (_directory, path) = new_place();
    let url = url_at(&path).unwrap();
    let proxy = Proxy::start(server::shared_directory());
    let store = BlockingStore::open_postgres(&proxy.url(&database(&url)), &path).unwrap();
    let lease = create(&store, new_run(1)).unwrap();
    assert!(store.run(&me(), &id(1)).unwrap().is_some(), "there is a connection that can fall silent");
    proxy.hush(true);
    let reader = store.clone();
    let refused = within_reason(move || reader.run(&me(), &id(1)).map(drop).unwrap_err());
    assert!(matches!(refused, Error::Unreachable { .. }), "{refused}");
    let (writer, of_writer) = (store.clone(), lease.clone());
    let waits = std::thread::spawn(move || append(&writer, &of_writer, vec![entry("a")], None));
    std::thread::sleep(Duration::from_millis(100));
    proxy.hush(false);
    within_reason(move || waits.join().unwrap()).unwrap();
    assert_eq!(bodies(&store, &id(1)), ["a"]);
}

/// Makes a store give the lock of a table or of the one writer up after 0.3 s.
const HASTY: (&[u8], &[u8]) = (b"lock_timeout = 30000", b"lock_timeout = 00300");

#[test]
fn changes_wait_for_a_writer_that_takes_longer_than_a_lock_does() {
    let (_directory, path) = new_place();
    let url = url_at(&path).unwrap();
    let proxy = Proxy::rewriting(server::shared_directory(), Some(HASTY));
    let store = BlockingStore::open_postgres(&proxy.url(&database(&url)), &path).unwrap();
    let lease = create(&store, new_run(1)).unwrap();
    let other = raw_database(&path);
    other.execute("BEGIN; SELECT pg_advisory_xact_lock(1347243057, hashtext(current_schema()))");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| append(&store, &lease, vec![entry("a")], None));
        std::thread::sleep(Duration::from_secs(1));
        assert!(!waits.is_finished(), "it was refused");
        other.execute("COMMIT");
        waits.join().unwrap().unwrap();
    });
    assert_eq!(bodies(&store, &id(1)), ["a"]);
}

#[test]
fn a_gateway_waits_for_the_migration_of_another_one_however_long_it_takes() {
    let (_directory, path) = new_place();
    let url = url_at(&path).unwrap();
    let proxy = Proxy::rewriting(server::shared_directory(), Some(HASTY));
    let other = raw_database(&path);
    other.execute("BEGIN; SELECT pg_advisory_xact_lock(5786364870874711890)");
    let proxied = proxy.url(&database(&url));
    std::thread::scope(|scope| {
        let opens = scope.spawn(|| BlockingStore::open_postgres(&proxied, &path).map(drop));
        std::thread::sleep(Duration::from_secs(1));
        assert!(!opens.is_finished(), "it was refused");
        other.execute("COMMIT");
        opens.join().unwrap().unwrap();
    });
}

#[test]
fn changes_wait_for_a_server_that_is_killed_and_nothing_acknowledged_is_lost() {
    let server = Server::start();
    server.execute("postgres", "CREATE DATABASE pml");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pml.db");
    let store = BlockingStore::open_postgres(&server.url("pml"), &path).unwrap();
    let lease = create(&store, new_run(1)).unwrap();
    for round in 0..3 {
        append(&store, &lease, vec![entry(&format!("before {round}"))], None).unwrap();
        server.kill();
        std::thread::scope(|scope| {
            let (store, lease) = (&store, &lease);
            let waits = scope.spawn(move || append(store, lease, vec![entry("meanwhile")], None));
            std::thread::sleep(Duration::from_millis(200));
            assert!(!waits.is_finished(), "it was acknowledged by nobody");
            server.run();
            waits.join().unwrap().unwrap();
        });
    }
    assert_eq!(bodies(&store, &id(1)).len(), 6);
    assert_eq!(store.run(&me(), &id(1)).unwrap().unwrap().state, RunState::Running);
}

#[test]
fn runs_of_gateways_that_may_return_stay_theirs_when_the_server_restarts() {
    let server = Server::start();
    server.execute("postgres", "CREATE DATABASE pml");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pml.db");
    let store = BlockingStore::open_postgres(&server.url("pml"), &path).unwrap();
    let elsewhere = |pid| ProcessIdentity { pid, started: "elsewhere".to_owned() };
    // One gateway was seen some seconds ago; of the other nothing is left, as after a proper end.
    server.execute(
        "pml",
        "INSERT INTO gateway (pid, started, seen_at)
         VALUES (77, 'elsewhere', (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 4000)",
    );
    create(&store, new_run(1)).unwrap();
    create(&store, NewRun { owner: elsewhere(77), ..new_run(2) }).unwrap();
    create(&store, NewRun { owner: elsewhere(78), ..new_run(3) }).unwrap();
    create(&store, NewRun { owner: elsewhere(77), lease_until: 900, ..new_run(4) }).unwrap();
    server.kill();
    server.run();
    let released = store.release_orphaned_runs(1000).unwrap();
    assert_eq!(released.iter().map(|run| &run.run).collect::<Vec<_>>(), [&id(3)]);
    for number in [1, 2, 4] {
        assert!(matches!(claim(&store, &id(number)), Claim::Held { .. }), "run {number}");
    }
}

#[test]
fn changes_wait_while_the_server_is_read_only() {
    let server = Server::start();
    server.execute("postgres", "CREATE DATABASE pml");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pml.db");
    let store = BlockingStore::open_postgres(&server.url("pml"), &path).unwrap();
    let lease = create(&store, new_run(1)).unwrap();
    let read_only = |is: &str| {
        server.execute("postgres", &format!("ALTER SYSTEM SET default_transaction_read_only = {is}"));
        server.execute("postgres", "DO $$ BEGIN PERFORM pg_reload_conf(); END $$");
    };
    read_only("on");
    // Sessions hear of it within a moment.
    std::thread::sleep(Duration::from_millis(200));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| append(&store, &lease, vec![entry("a")], None));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!waits.is_finished(), "a change was refused or stored");
        assert!(bodies(&store, &id(1)).is_empty(), "it can be read all the while");
        read_only("off");
        waits.join().unwrap().unwrap();
    });
    assert_eq!(bodies(&store, &id(1)), ["a"]);
}

#[test]
fn a_database_that_cannot_be_used_is_refused_with_a_reason() {
    let (_directory, path) = new_place();
    let url = url_at(&path).unwrap();
    let refused = |url: &str| BlockingStore::open_postgres(url, &path).map(drop).unwrap_err();
    assert!(matches!(refused("postgres://"), Error::BadDatabaseUrl { .. }));
    assert!(matches!(refused("host=x port=y"), Error::BadDatabaseUrl { .. }));
    let nobody = refused(&url.replace("postgres@", "nobody:hush@"));
    assert!(matches!(nobody, Error::Refused { .. }), "{nobody}");
    assert!(!nobody.to_string().contains("hush"), "{nobody}");
    raw_database(&path).execute("UPDATE schema_version SET version = 4711");
    assert!(matches!(refused(&url), Error::NewerVersion { found: 4711, .. }));
}

#[test]
fn gateways_with_another_key_are_refused() {
    let fixture = fixture();
    let url = url_at(&fixture.path).unwrap();
    create(&fixture.store, new_run(1)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let path = elsewhere.path().join("pml.db");
    let missing = BlockingStore::open_postgres(&url, &path).map(drop).unwrap_err();
    assert!(matches!(missing, Error::KeyMissing { .. }), "{missing}");
    let key = fixture.path.with_file_name("seal.key");
    std::fs::copy(&key, path.with_file_name("seal.key")).unwrap();
    let other = BlockingStore::open_postgres(&url, &path).unwrap();
    assert_eq!(other.load_run(&me(), &id(1)).unwrap().plan, b"plan of 1");
    drop(other);
    std::fs::write(path.with_file_name("seal.key"), [7; 32]).unwrap();
    let another = BlockingStore::open_postgres(&url, &path).map(drop).unwrap_err();
    assert!(matches!(another, Error::KeyMismatch { .. }), "{another}");
}

#[test]
fn rows_that_somebody_altered_are_left_out_and_told_and_stay_so() {
    let fixture = fixture();
    let store = &fixture.store;
    for number in 0..6 {
        remember(store, memory(if number % 2 == 0 { "p" } else { "q" }, trace(number)));
    }
    learn(store);
    let (edges, uses) = (store.learned_edges(&me()).unwrap(), store.tool_call_counts(&me()).unwrap());
    assert!(!edges.is_empty() && uses.len() == 1 && store.damaged_rows().is_empty());
    raw_database(&fixture.path)
        .execute("UPDATE edge SET count = count + 1; UPDATE tool_use SET calls = 1000");
    assert!(store.learned_edges(&me()).unwrap().is_empty());
    assert!(store.tool_call_counts(&me()).unwrap().is_empty());
    // Counting on does not make up for it.
    remember(store, memory("p", trace(7)));
    learn(store);
    assert!(store.tool_call_counts(&me()).unwrap().is_empty());
    let report = store.check_integrity().unwrap();
    assert!(report.damaged_rows.iter().any(|row| row.starts_with("tool use local")), "{report:?}");
}

#[test]
fn the_audit_log_of_a_server_tells_what_was_done_to_it() {
    for (alteration, seq, why) in [
        ("DELETE FROM audit WHERE seq = 1", 1, AuditDamage::Missing),
        ("UPDATE audit SET kind = 'x' WHERE seq = 2", 2, AuditDamage::Changed),
        ("DELETE FROM audit WHERE seq = 3", 3, AuditDamage::CutOff),
    ] {
        let fixture = fixture();
        for word in ["a", "b", "c"] {
            fixture.store.append_audit(told(word)).unwrap();
        }
        let database = raw_database(&fixture.path);
        assert_eq!(database.try_execute(alteration).unwrap_err(), "the audit log only grows");
        assert!(matches!(fixture.store.verify_audit().unwrap(), AuditVerification::Whole { rows: 3, .. }));
        database.execute("DROP TRIGGER audit_only_grows ON audit");
        database.execute(alteration);
        assert_eq!(
            fixture.store.verify_audit().unwrap(),
            AuditVerification::Broken { seq, why },
            "{alteration}"
        );
    }
}

#[test]
fn a_text_with_a_zero_comes_back_as_it_was() {
    let fixture = fixture();
    let run = NewRun { intent: "a\0b".to_owned(), ..new_run(1) };
    create(&fixture.store, run).unwrap();
    assert_eq!(open_at(&fixture.path).unwrap().run(&me(), &id(1)).unwrap().unwrap().intent, "a\0b");
}
