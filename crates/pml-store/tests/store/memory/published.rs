//! Capabilities that their owners publish, and who belongs where.

use pml_model::capability::Capability;
use pml_model::{Membership, Principal, Visibility};
use pml_store::{BlockingStore, RunMemory, VersionOutcome};

use super::super::{ann, fixture, me, open_at, raw_database};
use super::{capability_id, get, memory, remember, trace};

fn publish(store: &BlockingStore, identity: &str, visibility: Visibility) -> bool {
    store.publish_capability(&me(), &capability_id(identity), visibility, &ann(), 5000).unwrap()
}

fn member(org: &str, project: &str) -> Membership {
    Membership { org: org.to_owned(), project: project.to_owned() }
}

/// The capabilities that changed since a version, and the version now.
fn changed(store: &BlockingStore, since: i64) -> (Vec<Capability>, i64) {
    let changes = store.capabilities_since(since).unwrap();
    (changes.changed, changes.version)
}

#[test]
fn a_publication_is_told_to_every_process_and_taken_back() {
    let fixture = fixture();
    let store = &fixture.store;
    remember(store, memory("p", trace(1)));
    assert_eq!(get(store, "p").visibility, Visibility::Private);
    assert!(!publish(store, "nothing", Visibility::Public), "there is none");
    store.set_membership(&me(), &member("acme", "web"), 4000).unwrap();
    let elsewhere = open_at(&fixture.path).unwrap();
    let (_, before) = changed(&elsewhere, 0);
    assert!(publish(store, "p", Visibility::Project));
    // What was published stays where it was.
    store.set_membership(&me(), &member("acme", "app"), 6000).unwrap();
    let (seen, after) = changed(&elsewhere, before);
    let publication = seen[0].publication().unwrap();
    assert_eq!((publication.visibility, publication.place), (Visibility::Project, member("acme", "web")));
    assert_eq!(elsewhere.memberships().unwrap(), [(me(), member("acme", "app"))]);
    assert!(publish(&elsewhere, "p", Visibility::Private));
    let (seen, _) = changed(store, after);
    assert_eq!((seen.len(), seen[0].publication()), (1, None));
    assert_eq!(store.uses_by_others(&me(), &capability_id("p")).unwrap(), None);
    let kinds: Vec<String> = store.audit_entries(0, 9).unwrap().into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, ["person assigned", "capability published", "person assigned", "capability published"]);
}

#[test]
fn uses_by_others_are_counted_without_their_data() {
    let fixture = fixture();
    let store = &fixture.store;
    remember(store, memory("p", trace(1)));
    let id = capability_id("p");
    let used_by = |who: Principal, number| {
        let mut trace = trace(number);
        (trace.principal, trace.capability_id) = (who, Some(id.clone()));
        remember(store, RunMemory { procedure: None, ..memory("p", trace) });
    };
    used_by(ann(), 2);
    publish(store, "p", Visibility::Org);
    used_by(ann(), 3);
    used_by(ann(), 4);
    used_by(me(), 5);
    assert_eq!(store.uses_by_others(&me(), &id).unwrap(), Some(2), "since it was published");
    publish(store, "p", Visibility::Public);
    assert_eq!(store.uses_by_others(&me(), &id).unwrap(), Some(2));
    // Neither the traces nor the statistics of its owner have anything of them.
    super::learn(store);
    assert_eq!(get(store, "p").statistics.usage_count, 2);
    assert!(store.capability(&ann(), &id).unwrap().is_none());
    let linked = "SELECT count(*) FROM trace WHERE principal = 'ann' AND capability IS NOT NULL";
    assert_eq!(raw_database(&fixture.path).number(linked), 0);
}

#[test]
fn a_publication_follows_the_version_in_force_and_goes_with_its_capability() {
    let fixture = fixture();
    let store = &fixture.store;
    for (number, identity) in [(1, "p"), (2, "q")] {
        remember(store, memory(identity, trace(number)));
    }
    let name = get(store, "p").name;
    publish(store, "p", Visibility::Org);
    let put = |identity| store.put_version_in_force(&me(), &name, &capability_id(identity), 6000).unwrap();
    let visible = || ["p", "q"].map(|identity| get(store, identity).visibility);
    assert_eq!(put("q"), VersionOutcome::InForce(2));
    assert_eq!(visible(), [Visibility::Private, Visibility::Org]);
    assert_eq!(put("p"), VersionOutcome::InForce(1));
    assert_eq!(visible(), [Visibility::Org, Visibility::Private]);
    assert!(store.delete_capability(&me(), &capability_id("p"), 7000).unwrap());
    assert_eq!(raw_database(&fixture.path).number("SELECT count(*) FROM capability_publication"), 0);
    // The same procedure, learned again, is private.
    remember(store, memory("p", trace(3)));
    assert_eq!(get(store, "p").visibility, Visibility::Private);
}

#[test]
fn what_was_not_published_by_this_program_is_private() {
    for forgery in [
        "UPDATE capability_publication SET visibility = 'public'",
        "UPDATE capability_publication SET org = 'other'",
        "UPDATE capability_publication SET project = 'other'",
    ] {
        let fixture = fixture();
        remember(&fixture.store, memory("p", trace(1)));
        publish(&fixture.store, "p", Visibility::Project);
        raw_database(&fixture.path).execute(forgery);
        assert_eq!(get(&fixture.store, "p").visibility, Visibility::Private, "{forgery}");
    }
    let fixture = fixture();
    fixture.store.set_membership(&ann(), &member("acme", "web"), 1000).unwrap();
    raw_database(&fixture.path).execute("UPDATE membership SET org = 'other'");
    assert!(fixture.store.memberships().unwrap().is_empty());
}
