//! Versions: several procedures under one name.

use pml_store::{
    BlockingStore, CreateOutcome, NewName, OfferOutcome, RenameOutcome, RunMemory, VersionOutcome,
};

use super::super::{ann, fixture, id, me};
use super::{capability_id, get, memory, procedure, remember, trace};

fn make(store: &BlockingStore, identity: &str, name: NewName) -> CreateOutcome {
    store.create_capability(procedure(identity), name, &[format!("do {identity}")], 7).unwrap()
}

/// The versions of a name, latest first: number, name, and why it is offered.
fn versions(store: &BlockingStore, name: &str) -> Vec<(u32, String, Option<String>)> {
    let all = store.capability_versions(&me(), name).unwrap();
    all.into_iter().map(|one| (one.version, one.name, one.offered_because)).collect()
}

fn names(store: &BlockingStore, name: &str) -> Vec<String> {
    versions(store, name).into_iter().map(|(_, name, _)| name).collect()
}

fn put(store: &BlockingStore, name: &str, identity: &str) -> VersionOutcome {
    store.put_version_in_force(&me(), name, &capability_id(identity), 9).unwrap()
}

#[test]
fn new_code_under_a_name_is_a_version_and_the_old_one_stays() {
    let fixture = fixture();
    let store = &fixture.store;
    assert_eq!(make(store, "a", NewName::VersionOf("mine".to_owned())), CreateOutcome::Created);
    assert_eq!(versions(store, "mine"), [(1, "mine".to_owned(), None)]);
    assert_eq!(make(store, "b", NewName::VersionOf("mine".to_owned())), CreateOutcome::Created);
    assert_eq!(names(store, "mine"), ["mine", "mine@1"]);
    assert_eq!((get(store, "a").name.as_str(), get(store, "b").name.as_str()), ("mine@1", "mine"));
    let served: Vec<String> = get(store, "b").intents.into_iter().map(|intent| intent.text).collect();
    assert!(served.contains(&"do a".to_owned()) && served.contains(&"do b".to_owned()), "{served:?}");
    assert_eq!(store.version_of(&me(), &capability_id("b")).unwrap(), Some(("mine".to_owned(), 2)));
    assert!(store.capability_versions(&ann(), "mine").unwrap().is_empty());

    assert_eq!(put(store, "mine", "a"), VersionOutcome::InForce(1));
    assert_eq!(names(store, "mine"), ["mine@2", "mine"]);
    assert_eq!(put(store, "mine", "a"), VersionOutcome::InForce(1), "it is in force already");
    assert_eq!(put(store, "mine", "unknown"), VersionOutcome::Unknown);
    // A run of a version that is not in force changes nothing of that.
    remember(store, memory("b", trace(1)));
    assert_eq!(names(store, "mine"), ["mine@2", "mine"]);
}

#[test]
fn a_capability_that_was_learned_becomes_a_version_of_one_name_only() {
    let fixture = fixture();
    let store = &fixture.store;
    for (number, identity) in ["a", "b", "c"].into_iter().enumerate() {
        remember(store, memory(identity, trace(number as u128 + 1)));
    }
    let (a, b) = (get(store, "a").name, get(store, "b").name);
    assert_eq!(put(store, &a, "b"), VersionOutcome::InForce(2));
    assert_eq!(get(store, "a").name, format!("{a}@1"));
    assert!(store.capability_named(&me(), &b).unwrap().is_none());
    let other = get(store, "c").name;
    assert_eq!(put(store, &other, "a"), VersionOutcome::VersionOf(a.clone()));
    assert_eq!(get(store, "c").name, other);
    store.delete_capability(&me(), &capability_id("b"), 10).unwrap();
    assert_eq!(
        names(store, &a),
        [format!("{a}@1")],
        "the earlier one stays when the one in force is deleted"
    );
    assert_eq!(
        store.rename_capability(&me(), &capability_id("c"), &a).unwrap(),
        RenameOutcome::NameTaken,
        "the name has versions"
    );
    assert_eq!(make(store, "d", NewName::Free(a.clone())), CreateOutcome::Created);
    assert_eq!(versions(store, &a), [(2, a.clone(), None), (1, format!("{a}@1"), None)]);
    assert_eq!(put(store, &a, "a"), VersionOutcome::InForce(1));
    assert_eq!(get(store, "a").name, a);
}

#[test]
fn versions_follow_the_name_of_the_one_in_force() {
    let fixture = fixture();
    let store = &fixture.store;
    make(store, "a", NewName::Free("mine".to_owned()));
    make(store, "b", NewName::VersionOf("mine".to_owned()));
    let rename =
        |identity: &str, name: &str| store.rename_capability(&me(), &capability_id(identity), name).unwrap();
    assert_eq!(rename("b", "ours"), RenameOutcome::Done);
    assert_eq!((names(store, "ours"), names(store, "mine").len()), (vec!["ours".into(), "ours@1".into()], 0));
    assert_eq!(rename("a", "alone"), RenameOutcome::Done);
    assert_eq!(names(store, "ours"), ["ours"]);
    assert_eq!(store.version_of(&me(), &capability_id("a")).unwrap(), None);
}

#[test]
fn an_offered_version_is_not_in_force_until_somebody_puts_it_there() {
    let fixture = fixture();
    let store = &fixture.store;
    make(store, "a", NewName::Free("mine".to_owned()));
    let offer =
        |identity: &str, name: &str| store.offer_version(procedure(identity), name, "renamed", 8).unwrap();
    assert_eq!(offer("b", "mine"), OfferOutcome::Offered(2));
    assert_eq!(offer("b", "mine"), OfferOutcome::Existing(capability_id("b")));
    assert_eq!(offer("c", "nothing"), OfferOutcome::Unknown);
    let offered = Some("renamed".to_owned());
    assert_eq!(versions(store, "mine"), [(2, "mine@2".into(), offered), (1, "mine".into(), None)]);
    assert_eq!(put(store, "mine", "b"), VersionOutcome::InForce(2));
    assert_eq!(versions(store, "mine"), [(2, "mine".into(), None), (1, "mine@1".into(), None)]);
}

#[test]
fn the_first_runs_that_may_be_kept_are_golden_and_go_with_their_capability() {
    let fixture = fixture();
    let store = &fixture.store;
    for number in 1..=5 {
        // The second one had a secret in it.
        remember(store, RunMemory { golden: number != 2, ..memory("p", trace(number)) });
    }
    let goldens = |who| store.golden_runs(&who, &capability_id("p")).unwrap();
    assert_eq!(goldens(me()), [1, 3, 4].map(id));
    assert!(goldens(ann()).is_empty());
    store.delete_capability(&me(), &capability_id("p"), 9).unwrap();
    assert!(goldens(me()).is_empty());
}
