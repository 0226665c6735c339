//! Keys of clients: what is stored of them, and that nobody else makes one.

use super::{ann, append, create, entry, fixture, me, new_run};
use super::{open_at, raw_database};
use pml_model::{Digest, KeyId, KeyRights, Role};
use pml_store::{BlockingStore, CountedKeyUse, NewClientKey};

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
    let store = open_at(&fixture.path).unwrap();
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
        "UPDATE client_key SET interactive = FALSE",
        "UPDATE client_key SET asks_itself = TRUE",
        "UPDATE client_key SET rights = '{\"role\":\"admin\"}'",
        "UPDATE client_key SET rights = NULL",
        "UPDATE client_key SET rights = 'unreadable'",
        "UPDATE client_key SET principal = 'ann'",
        "UPDATE client_key SET created_at = 7",
        "UPDATE client_key SET number = 7",
        "UPDATE client_key SET mark = 'x'",
    ] {
        let fixture = fixture();
        fixture.store.add_client_key(key("desk")).unwrap();
        raw_database(&fixture.path).execute(forgery);
        assert!(fixture.store.client_keys().unwrap().is_empty(), "{forgery}");
    }
    let fixture = fixture();
    let [first, second] =
        ["desk", "editor"].map(|client| fixture.store.add_client_key(key(client)).unwrap().id);
    fixture.store.revoke_client_key(&me(), second, 2000).unwrap();
    // The mark of one key does not bring another back.
    let revived =
        "UPDATE client_key SET revoked_at = NULL, mark = (SELECT mark FROM client_key WHERE number = {first})
                   WHERE number = {second}";
    let revived = revived.replace("{first}", &first.0.to_string()).replace("{second}", &second.0.to_string());
    raw_database(&fixture.path).execute(&revived);
    assert_eq!(counting(&fixture.store), ["desk"]);
}

#[test]
fn a_replaced_key_hands_its_rights_on_and_ends() {
    let fixture = fixture();
    let rights = KeyRights { expires_at: Some(90_000), ..KeyRights::of_role(Role::Member) };
    let made = fixture.store.add_client_key(NewClientKey { rights, ..key("desk") }).unwrap();
    let rotate = |id, name: &str, until| {
        fixture.store.rotate_client_key(id, Digest::of(name.as_bytes()), until, 5000).unwrap()
    };
    let (old, new) = rotate(made.id, "second", Some(9000)).unwrap();
    assert_eq!((old.rights.expires_at, old.revoked_at), (Some(9000), None));
    assert_eq!((&new.rights, &new.client, new.interactive), (&made.rights, &made.client, true));
    let (old, newest) = rotate(new.id, "third", None).unwrap();
    assert_eq!((old.id, old.revoked_at), (new.id, Some(5000)));
    assert_eq!(rotate(new.id, "fourth", None), None, "it is revoked");
    assert_eq!(rotate(KeyId(99), "fourth", None), None);
    let stored = fixture.store.client_keys().unwrap();
    let expiries: Vec<_> = stored.iter().map(|key| (key.id, key.rights.expires_at)).collect();
    assert_eq!(expiries, [(newest.id, Some(90_000)), (new.id, Some(90_000)), (made.id, Some(9000))]);
    let told: Vec<String> =
        fixture.store.audit_entries(0, 9).unwrap().into_iter().map(|row| row.kind).collect();
    assert_eq!(told, ["key created", "key replaced", "key created", "key replaced", "key created"]);
}

#[test]
fn what_is_done_with_a_key_adds_up_over_gateways_and_is_forgotten_after_a_day() {
    let fixture = fixture();
    let store = &fixture.store;
    let [desk, editor] = ["desk", "editor"].map(|client| store.add_client_key(key(client)).unwrap().id);
    let used = |key, used_at, calls| CountedKeyUse {
        key,
        principal: me(),
        calls,
        cpu_ms: 10 * calls,
        refused: 1,
        used_at,
    };
    let day = 24 * 60 * 60_000;
    store.add_key_use(vec![used(desk, 60_000, 5), used(editor, 60_001, 7)]).unwrap();
    store.add_key_use(vec![used(desk, 60_500, 2)]).unwrap();
    store.add_key_use(vec![used(desk, 120_000, 1)]).unwrap();
    let now = store.key_use(desk, 120_001).unwrap();
    assert_eq!((now.calls_this_minute, now.calls_today, now.cpu_ms_today), (1, 8, 80));
    assert_eq!((now.refused_today, now.used_at, now.runs, now.stored_bytes), (3, Some(120_000), 0, 0));
    let tomorrow = store.key_use(desk, day + 120_001).unwrap();
    assert_eq!((tomorrow.calls_today, tomorrow.used_at), (0, Some(120_000)), "the last use is kept");
    store.add_key_use(vec![used(desk, 2 * day, 1)]).unwrap();
    let kept = raw_database(&fixture.path).number("SELECT count(*) FROM key_use WHERE number = 1");
    assert_eq!(kept, 1);

    let run = |number, key| pml_store::NewRun { client_key: Some(key), ..new_run(number) };
    create(store, run(1, desk)).unwrap();
    create(store, run(2, desk)).unwrap();
    create(store, run(3, editor)).unwrap();
    assert_eq!(store.key_runs_under_way(desk).unwrap(), 2);
    let stored = store.key_use(desk, 0).unwrap().stored_bytes;
    assert!(stored > 0 && stored == 2 * store.key_use(editor, 0).unwrap().stored_bytes);
    let limited = |number, key, most| pml_store::NewRun { key_runs_at_once: Some(most), ..run(number, key) };
    let elsewhere = open_at(&fixture.path).unwrap();
    let refused = create(&elsewhere, limited(4, desk, 2)).map(drop).unwrap_err();
    assert!(matches!(refused, pml_store::Error::TooManyKeyRuns { most: 2, .. }), "{refused}");
    assert!(store.run(&me(), &super::id(4)).unwrap().is_none());
    create(&elsewhere, limited(4, editor, 2)).unwrap();
    for number in [3, 4] {
        assert!(create(store, limited(number + 2, editor, 2)).is_err(), "both gateways count");
    }
}

#[test]
fn the_bytes_of_a_key_follow_what_is_stored_replaced_and_purged() {
    let fixture = fixture();
    let store = &fixture.store;
    let desk = store.add_client_key(key("desk")).unwrap().id;
    let lease = create(store, pml_store::NewRun { client_key: Some(desk), ..new_run(1) }).unwrap();
    create(store, new_run(2)).unwrap();
    let ask =
        |name| super::park(None, Some(name)).map(|change| pml_store::RunChange { release: false, ..change });
    append(store, &lease, vec![entry("one"), entry("another")], ask("q")).unwrap();
    // The second question replaces the first one.
    append(store, &lease, vec![entry("third")], ask("q")).unwrap();
    let kept = raw_database(&fixture.path).number(
        "SELECT (SELECT sum(length(body)) FROM journal) + (SELECT sum(length(body)) FROM run_body
            WHERE run = (SELECT number FROM run WHERE client_key IS NOT NULL))",
    );
    assert_eq!(i64::try_from(store.key_use(desk, 0).unwrap().stored_bytes).unwrap(), kept);
    append(store, &lease, Vec::new(), super::to(pml_model::RunState::Done, 2000)).unwrap();
    store.purge_ended_runs(10_000, 1).unwrap();
    assert_eq!(store.key_use(desk, 0).unwrap().stored_bytes, 0);
}

#[test]
fn a_person_that_this_program_did_not_add_cannot_sign_in() {
    let person = |name: &str| pml_store::Person {
        principal: pml_model::Principal(name.to_owned()),
        role: Role::Member,
        passphrase: format!("hash of {name}"),
        created_at: 1000,
        changed_at: 1000,
    };
    for forgery in [
        "UPDATE person SET role = 'admin'",
        "UPDATE person SET passphrase = 'hash of bob'",
        "UPDATE person SET principal = 'eve'",
        "UPDATE person SET changed_at = 7",
        "UPDATE person SET role = 'root'",
    ] {
        let fixture = fixture();
        assert!(fixture.store.add_person(person("ann")).unwrap());
        assert_eq!(fixture.store.people().unwrap(), [person("ann")]);
        raw_database(&fixture.path).execute(forgery);
        assert!(fixture.store.people().unwrap().is_empty(), "{forgery}");
    }
    let fixture = fixture();
    let store = &fixture.store;
    assert!(store.add_person(person("ann")).unwrap() && !store.add_person(person("ann")).unwrap());
    assert!(store.set_person_passphrase(&ann(), "other".to_owned(), 2000).unwrap());
    assert_eq!(
        (store.people().unwrap()[0].passphrase.as_str(), store.people().unwrap()[0].changed_at),
        ("other", 2000)
    );
    let made = store.add_client_key(NewClientKey { principal: ann(), ..key("desk") }).unwrap();
    store.add_client_key(key("mine")).unwrap();
    assert_eq!(store.remove_person(&ann(), 3000).unwrap(), Some(1));
    assert_eq!(store.remove_person(&ann(), 3000).unwrap(), None);
    assert!(!store.set_person_passphrase(&ann(), "other".to_owned(), 2000).unwrap());
    assert_eq!(counting(store), ["mine"], "{made:?}");
}
