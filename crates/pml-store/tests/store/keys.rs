//! Keys of clients: what is stored of them, and that nobody else makes one.

use pml_model::{Digest, KeyId, KeyRights, Role};
use pml_store::{BlockingStore, NewClientKey};
use rusqlite::Connection;

use super::{ann, fixture, me};

fn key(client: &str) -> NewClientKey {
    NewClientKey {
        principal: me(),
        client: client.to_owned(),
        digest: Digest::of(client.as_bytes()),
        interactive: true,
        asks_itself: false,
        rights: KeyRights::of_role(Role::Approver),
        now: 1000,
    }
}

/// The clients whose keys count.
fn counting(store: &BlockingStore) -> Vec<String> {
    let keys = store.client_keys().unwrap().into_iter().filter(|key| key.revoked_at.is_none());
    keys.map(|key| key.client).collect()
}

#[test]
fn a_key_comes_back_as_it_was_made_until_it_is_revoked() {
    let fixture = fixture();
    assert!(fixture.store.client_keys().unwrap().is_empty());
    let made = fixture.store.add_client_key(key("desk")).unwrap();
    let other = fixture.store.add_client_key(NewClientKey { asks_itself: true, ..key("editor") }).unwrap();
    drop(fixture.store);
    let store = BlockingStore::open(&fixture.path).unwrap();
    assert_eq!(store.client_keys().unwrap(), [other.clone(), made.clone()]);
    assert_eq!((made.id, &made.digest), (KeyId(1), &Digest::of(b"desk")));
    assert_eq!((made.interactive, made.asks_itself, made.revoked_at), (true, false, None));
    assert!(other.asks_itself);

    assert_eq!(store.revoke_client_key(&ann(), made.id, 2000).unwrap(), None, "it is another principal's");
    let revoked = store.revoke_client_key(&me(), made.id, 2000).unwrap().unwrap();
    assert_eq!((revoked.id, revoked.revoked_at), (made.id, Some(2000)));
    assert_eq!(store.revoke_client_key(&me(), made.id, 3000).unwrap(), None, "once");
    assert_eq!(counting(&store), ["editor"]);
    let told: Vec<String> = store.audit_entries(0, 9).unwrap().into_iter().map(|row| row.kind).collect();
    assert_eq!(told, ["key created", "key created", "key revoked"]);
    assert!(store.add_client_key(key("editor")).is_err(), "no two keys are the same");
}

#[test]
fn a_key_that_this_program_did_not_make_counts_for_nothing() {
    for forgery in [
        "UPDATE client_key SET client = 'agent'",
        "UPDATE client_key SET digest = 'aa' || substr(digest, 3)",
        "UPDATE client_key SET interactive = 0",
        "UPDATE client_key SET asks_itself = 1",
        "UPDATE client_key SET principal = 'ann'",
        "UPDATE client_key SET created_at = 7",
        "UPDATE client_key SET number = 7",
        "UPDATE client_key SET mark = 'x'",
    ] {
        let fixture = fixture();
        fixture.store.add_client_key(key("desk")).unwrap();
        Connection::open(&fixture.path).unwrap().execute_batch(forgery).unwrap();
        assert!(fixture.store.client_keys().unwrap().is_empty(), "{forgery}");
    }
    let fixture = fixture();
    let [first, second] =
        ["desk", "editor"].map(|client| fixture.store.add_client_key(key(client)).unwrap().id);
    fixture.store.revoke_client_key(&me(), second, 2000).unwrap();
    // The mark of one key does not bring another back.
    let revived =
        "UPDATE client_key SET revoked_at = NULL, mark = (SELECT mark FROM client_key WHERE number = ?1)
                   WHERE number = ?2";
    Connection::open(&fixture.path).unwrap().execute(revived, [first.0, second.0]).unwrap();
    assert_eq!(counting(&fixture.store), ["desk"]);
}
