//! Sign-ins to remote servers: sealed, one for each person and server, renewed by one process at a time.

use pml_store::BlockingStore;

use super::{ann, fixture, me, open_at, raw_database, server};

fn body(store: &BlockingStore) -> Option<(i64, String)> {
    store.server_sign_in(&me(), &server("s")).unwrap().map(|stored| (stored.version, stored.body))
}

#[test]
fn a_sign_in_is_sealed_and_belongs_to_one_person_and_server() {
    let fixture = fixture();
    let store = &fixture.store;
    assert_eq!(body(store), None);
    store.put_server_sign_in(&me(), &server("s"), "hunter2".to_owned(), 1).unwrap();
    assert_eq!(body(store), Some((1, "hunter2".to_owned())));
    assert_eq!(store.server_sign_in(&ann(), &server("s")).unwrap(), None);
    assert_eq!(store.server_sign_in(&me(), &server("t")).unwrap(), None);
    store.put_server_sign_in(&ann(), &server("s"), "other".to_owned(), 2).unwrap();
    // A row that is moved to another person does not open.
    raw_database(&fixture.path).execute("UPDATE server_sign_in SET principal = 'eve' WHERE principal = 'ann'");
    let eve = pml_model::Principal("eve".to_owned());
    assert_eq!(store.server_sign_in(&eve, &server("s")).unwrap(), None);
    assert!(store.remove_server_sign_in(&me(), &server("s"), 3).unwrap());
    assert!(!store.remove_server_sign_in(&me(), &server("s"), 4).unwrap());
    assert_eq!(body(store), None);
}

#[test]
fn one_process_renews_a_sign_in_and_the_others_wait() {
    let fixture = fixture();
    let (first, second) = (&fixture.store, open_at(&fixture.path).unwrap());
    first.put_server_sign_in(&me(), &server("s"), "a".to_owned(), 1).unwrap();
    let claim = |store: &BlockingStore, version, now| {
        store.claim_sign_in_renewal(&me(), &server("s"), version, (now, now + 100)).unwrap()
    };
    assert!(claim(first, 1, 10));
    assert!(!claim(&second, 1, 20));
    let renewed = first.replace_server_sign_in(&me(), &server("s"), 1, "b".to_owned()).unwrap();
    assert_eq!((renewed, body(&second)), (Some(2), Some((2, "b".to_owned()))));
    // The version that was read before is gone, so nobody renews or stores what is based on it.
    assert!(!claim(&second, 1, 30));
    assert_eq!(second.replace_server_sign_in(&me(), &server("s"), 1, "c".to_owned()).unwrap(), None);
    // The claim of a process that died ends; so does one from a clock that was ahead.
    assert!(claim(first, 2, 40) && !claim(&second, 2, 100) && claim(&second, 2, 140));
    assert!(claim(first, 2, 1));
    // A renewal that ends after the person signed out brings nothing back.
    first.remove_server_sign_in(&me(), &server("s"), 50).unwrap();
    assert_eq!(second.replace_server_sign_in(&me(), &server("s"), 2, "d".to_owned()).unwrap(), None);
}
