//! Runs that clients make themselves: what was analysed is sealed and used up once, and traces form a chain.

use pml_model::KeyId;
use pml_store::{BlockingStore, ChainPlace, ClientTraceRow, ContextOwner, RunMemory, TakenTrace};

use super::memory::{memory, trace};
use super::{ann, fixture, id, me, open_at, raw_database};

fn owner(run: u128) -> ContextOwner {
    ContextOwner { principal: me(), key: None, workflow: id(run) }
}

fn row(seq: i64, previous: &str, hash: &str) -> ClientTraceRow {
    ClientTraceRow {
        principal: me(),
        client: "desk".to_owned(),
        seq,
        previous: previous.to_owned(),
        hash: hash.to_owned(),
        at: 50,
    }
}

fn kept(store: &BlockingStore, owner: &ContextOwner, now: i64) -> Option<Vec<u8>> {
    store.learning_context(owner, now).unwrap()
}

fn run(number: u128) -> RunMemory {
    memory("p", trace(number))
}

#[test]
fn a_context_is_sealed_for_one_owner_and_expires() {
    let fixture = fixture();
    let store = &fixture.store;
    store.keep_learning_context(&owner(1), b"hunter2", (10, 100)).unwrap();
    assert_eq!(kept(&open_at(&fixture.path).unwrap(), &owner(1), 99).as_deref(), Some(&b"hunter2"[..]));
    assert_eq!(kept(store, &owner(1), 100), None, "it has expired");
    for other in [
        owner(2),
        ContextOwner { principal: ann(), ..owner(1) },
        ContextOwner { key: Some(KeyId(1)), ..owner(1) },
    ] {
        assert_eq!(kept(store, &other, 50), None, "{other:?}");
    }
    let raw = raw_database(&fixture.path);
    raw.execute("UPDATE learning_context SET expires_at = 1000");
    assert_eq!(kept(store, &owner(1), 50), None, "what was altered does not open");
    store.keep_learning_context(&owner(3), b"", (2_000, 3_000)).unwrap();
    assert_eq!(raw.number("SELECT count(*) FROM learning_context"), 1, "expired ones go");
}

#[test]
fn a_trace_uses_up_its_context_and_is_taken_once() {
    let fixture = fixture();
    let store = &fixture.store;
    store.keep_learning_context(&owner(1), b"plan", (10, 100)).unwrap();
    let take = |row: &ClientTraceRow, context, memory| store.take_client_trace(row, context, memory).unwrap();
    let gone = Some(ContextOwner { principal: ann(), ..owner(1) });
    assert_eq!(take(&row(1, "", "a"), gone, Some(run(1))), TakenTrace::ContextGone);
    assert_eq!(store.client_trace_place(&row(1, "", "a")).unwrap(), ChainPlace::Next, "nothing was stored");
    assert_eq!(take(&row(1, "", "a"), Some(owner(1)), Some(run(1))), TakenTrace::Stored);
    assert_eq!(take(&row(1, "", "a"), None, Some(run(2))), TakenTrace::Refused(ChainPlace::Taken));
    assert_eq!(take(&row(2, "a", "b"), Some(owner(1)), Some(run(2))), TakenTrace::ContextGone);
    assert_eq!(take(&row(2, "a", "b"), None, None), TakenTrace::Stored, "it need not leave anything");
    let stored = |run: u128| store.trace_of_run(&me(), &id(run)).unwrap().is_some();
    assert_eq!((stored(1), stored(2)), (true, false));
}

#[test]
fn a_chain_has_one_trace_at_each_place() {
    let fixture = fixture();
    let store = &fixture.store;
    let place = |row: &ClientTraceRow| store.client_trace_place(row).unwrap();
    let missing = ChainPlace::Missing { expected: 1 };
    assert_eq!((place(&row(2, "a", "b")), place(&row(1, "x", "a"))), (missing, ChainPlace::Forked));
    for (seq, previous, hash) in [(1, "", "a"), (2, "a", "b")] {
        assert_eq!(
            store.take_client_trace(&row(seq, previous, hash), None, None).unwrap(),
            TakenTrace::Stored
        );
    }
    assert_eq!(place(&row(1, "", "a")), ChainPlace::Taken);
    assert_eq!(place(&row(1, "", "z")), ChainPlace::Forked);
    assert_eq!((place(&row(3, "b", "c")), place(&row(3, "a", "c"))), (ChainPlace::Next, ChainPlace::Forked));
    assert_eq!(place(&row(5, "d", "e")), ChainPlace::Missing { expected: 3 });
    assert_eq!(place(&ClientTraceRow { principal: ann(), ..row(1, "", "a") }), ChainPlace::Next);
    raw_database(&fixture.path).execute("UPDATE client_trace SET hash = 'z' WHERE seq = 2");
    assert_eq!(place(&row(2, "a", "z")), ChainPlace::Forked, "an altered row is none");
}
