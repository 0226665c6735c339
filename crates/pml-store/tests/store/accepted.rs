//! Which definitions are accepted, and what accepts them.

use super::open_at;
use pml_model::{Definition, Digest};
use pml_store::{Acceptance, AcceptancePolicy, AuditVerification, BlockingStore};

use super::{ann, fixture, listing, me, server, told, tool};

fn launch() -> Digest {
    Digest::of(b"launch")
}

/// `tool=description` of what is accepted of the server `fs`; the description only where it is another one than the tool
/// has now.
fn accepted(store: &BlockingStore) -> Vec<String> {
    let all = store.accepted_definitions(&me()).unwrap();
    let of = all.get(&(server("fs"), launch())).cloned().unwrap_or_default();
    of.into_iter()
        .map(|(tool, accepted)| match accepted.replaced {
            Some(Definition { description: Some(description), .. }) => format!("{tool}={description}"),
            Some(_) | None => tool,
        })
        .collect()
}

fn record(store: &BlockingStore, tools: Vec<Definition>, now: i64) {
    store.record_manifest(&me(), listing("fs", tools), now).unwrap();
}

fn accept(store: &BlockingStore, tool: &Definition) -> Vec<String> {
    let acceptance = Acceptance {
        principal: me(),
        server: server("fs"),
        launch: launch(),
        tools: vec![(tool.name.clone(), tool.digest.clone())],
        now: 9,
    };
    let other = store.accept_definitions(acceptance, told("accepted")).unwrap();
    other.into_iter().map(|id| id.tool).collect()
}

#[test]
fn the_first_manifest_is_accepted_and_what_comes_later_is_not() {
    let fixture = fixture();
    record(&fixture.store, vec![tool("read", "r")], 1);
    assert_eq!(accepted(&fixture.store), ["read"]);
    record(&fixture.store, vec![tool("read", "deletes"), tool("write", "w")], 2);
    assert_eq!(accepted(&fixture.store), ["read=r"]);
    record(&fixture.store, vec![tool("read", "r")], 3);
    assert_eq!(accepted(&fixture.store), ["read"], "it is what it was");
    record(&fixture.store, Vec::new(), 4);
    drop(fixture.store);
    let store = open_at(&fixture.path).unwrap();
    assert_eq!(accepted(&store), ["read"], "also while it is away, and after a restart");
    assert!(store.accepted_definitions(&ann()).unwrap().is_empty());
}

#[test]
fn a_server_that_is_started_otherwise_is_another_one() {
    let fixture = fixture();
    record(&fixture.store, vec![tool("read", "r")], 1);
    let mut other = listing("fs", vec![tool("read", "other")]);
    other.launch = Digest::of(b"another");
    fixture.store.record_manifest(&me(), other, 2).unwrap();
    let all = fixture.store.accepted_definitions(&me()).unwrap();
    let digest = |launch: &[u8]| all[&(server("fs"), Digest::of(launch))]["read"].digest.clone();
    assert_eq!(digest(b"launch"), tool("read", "r").digest);
    assert_eq!(digest(b"another"), tool("read", "other").digest);
}

#[test]
fn what_is_accepted_takes_the_place_of_what_was_and_is_in_the_log() {
    let fixture = fixture();
    record(&fixture.store, vec![tool("read", "r")], 1);
    let changed = tool("read", "reads more");
    record(&fixture.store, vec![changed.clone()], 2);
    let version = fixture.store.catalogue_version().unwrap();
    assert_eq!(accept(&fixture.store, &changed), Vec::<String>::new());
    assert_eq!(accepted(&fixture.store), ["read"]);
    assert_ne!(fixture.store.catalogue_version().unwrap(), version, "others hear of it");
    assert!(matches!(fixture.store.verify_audit().unwrap(), AuditVerification::Whole { rows: 1, .. }));
    record(&fixture.store, vec![tool("read", "r")], 3);
    assert_eq!(accepted(&fixture.store), ["read=reads more"], "what was accepted before is not any more");
}

#[test]
fn what_is_not_the_definition_any_more_is_not_accepted() {
    let fixture = fixture();
    record(&fixture.store, vec![tool("read", "r")], 1);
    let seen = tool("read", "harmless");
    record(&fixture.store, vec![seen.clone()], 2);
    record(&fixture.store, vec![tool("read", "deletes")], 3);
    assert_eq!(accept(&fixture.store, &seen), ["read"]);
    assert_eq!(accepted(&fixture.store), ["read=r"]);
    assert!(matches!(fixture.store.verify_audit().unwrap(), AuditVerification::Whole { rows: 0, .. }));
}

#[test]
fn all_that_a_server_tells_is_accepted_where_it_is_followed() {
    let fixture = fixture();
    let follow = |tools: Vec<Definition>, now: i64| {
        let listing =
            pml_store::ServerListing { acceptance: AcceptancePolicy::EveryManifest, ..listing("fs", tools) };
        fixture.store.record_manifest(&me(), listing, now).unwrap();
    };
    follow(vec![tool("read", "r")], 1);
    follow(vec![tool("read", "r2"), tool("write", "w")], 2);
    assert_eq!(accepted(&fixture.store), ["read", "write"]);
}

#[test]
fn a_server_that_was_removed_is_met_anew() {
    let fixture = fixture();
    record(&fixture.store, vec![tool("read", "r")], 1);
    fixture.store.remove_server(&me(), &server("fs")).unwrap();
    assert_eq!(accepted(&fixture.store), Vec::<String>::new());
    record(&fixture.store, vec![tool("read", "another")], 2);
    assert_eq!(accepted(&fixture.store), ["read"]);
}

#[test]
fn what_is_accepted_is_kept_however_often_a_definition_changes() {
    let fixture = fixture();
    record(&fixture.store, vec![tool("read", "r")], 0);
    for round in 1..200 {
        record(&fixture.store, vec![tool("read", &format!("round {round}"))], round);
    }
    assert_eq!(accepted(&fixture.store), ["read=r"]);
}
