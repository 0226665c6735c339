//! Results that are kept, and how they go.

use std::sync::mpsc::sync_channel;

use pml_model::{Digest, Principal};
use pml_store::{CacheDrop, CacheKey, Dropped, Store};

use super::{capability_id, failed, learn, memory, remember, trace};
use crate::{ann, fixture, me, raw};

fn key(identity: &str, parameters: &str, epoch: &str) -> CacheKey {
    CacheKey {
        principal: me(),
        capability: capability_id(identity),
        parameters: Digest::of(parameters.as_bytes()),
        epoch: epoch.to_owned(),
    }
}

/// Keeps a result from `now` for a hundred milliseconds, at most three of a capability.
fn keep(store: &Store, key: &CacheKey, result: &str, now: i64) {
    let (reply, answer) = sync_channel(1);
    store.cache(key, &raw(result), now, now + 100, 3, move |stored| reply.send(stored).unwrap());
    answer.recv().unwrap().unwrap();
}

fn found(store: &Store, key: &CacheKey, now: i64) -> Option<String> {
    store.cached(key, now).unwrap().map(|found| found.result.get().to_owned())
}

fn dropped(at: i64, because: &str, what: &str, entries: u64) -> CacheDrop {
    CacheDrop { at, because: because.to_owned(), what: what.to_owned(), entries }
}

#[test]
fn a_result_counts_until_it_expires_or_something_was_written() {
    let fixture = fixture();
    let store = &fixture.store;
    remember(store, memory("p", trace(1)));
    keep(store, &key("p", "a", "e1"), r#"{"n": 1.50}"#, 10);
    let kept = store.cached(&key("p", "a", "e1"), 109).unwrap().unwrap();
    assert_eq!((kept.result.get(), kept.at, kept.hit_count), (r#"{"n": 1.50}"#, 10, 0));
    store.flush().unwrap();
    assert_eq!(store.cached(&key("p", "a", "e1"), 109).unwrap().unwrap().hit_count, 1);
    assert_eq!(found(store, &key("p", "a", "e1"), 110), None);
    assert_eq!(found(store, &key("p", "a", "e2"), 20), None);
    assert_eq!(found(store, &key("p", "b", "e1"), 20), None);
    let theirs = CacheKey { principal: ann(), ..key("p", "a", "e1") };
    assert_eq!(found(store, &theirs, 20), None);
    keep(store, &key("p", "a", "e2"), "2", 20);
    assert_eq!(found(store, &key("p", "a", "e2"), 20).as_deref(), Some("2"));
    assert_eq!(found(store, &key("p", "a", "e1"), 20), None);
    // Nothing is kept for what is not there.
    keep(store, &key("unknown", "a", "e"), "1", 20);
    assert_eq!(found(store, &key("unknown", "a", "e"), 20), None);
}

#[test]
fn beyond_the_most_the_oldest_goes() {
    let fixture = fixture();
    let store = &fixture.store;
    remember(store, memory("p", trace(1)));
    remember(store, memory("q", trace(2)));
    keep(store, &key("q", "x", "e"), "0", 1);
    for (at, parameters) in [(10, "a"), (11, "b"), (12, "c"), (13, "a"), (14, "d"), (14, "e")] {
        keep(store, &key("p", parameters, "e"), "1", at);
    }
    let kept: String = ["a", "b", "c", "d", "e"]
        .into_iter()
        .filter(|name| found(store, &key("p", name, "e"), 20).is_some())
        .collect();
    assert_eq!(kept, "ade");
    assert!(found(store, &key("q", "x", "e"), 20).is_some());
}

#[test]
fn results_are_dropped_for_a_reason_that_is_logged() {
    let fixture = fixture();
    let store = &fixture.store;
    remember(store, memory("p", trace(1)));
    remember(store, memory("q", trace(2)));
    let fill = || {
        for identity in ["p", "q"] {
            keep(store, &key(identity, "a", "e"), "1", 10);
            keep(store, &key(identity, "b", "e"), "1", 20);
        }
    };
    let kept = || -> Vec<&str> {
        let is_kept = |identity: &&str| found(store, &key(identity, "b", "e"), 50).is_some();
        ["p", "q"].into_iter().filter(is_kept).collect()
    };
    let drop = |who: &Principal, which, at| store.drop_cached(who, which, "because", at).unwrap();
    let p = capability_id("p");
    fill();
    assert_eq!(drop(&ann(), Dropped::All, 1), 0);
    assert_eq!(drop(&me(), Dropped::Capability(&p), 2), 2);
    assert_eq!(kept(), ["q"]);
    assert_eq!(drop(&me(), Dropped::Expired, 110), 1);
    assert_eq!(drop(&me(), Dropped::All, 4), 1);
    let log = [
        dropped(4, "because", "all", 1),
        dropped(110, "because", "expired", 1),
        dropped(2, "because", p.as_str(), 2),
    ];
    assert_eq!(store.cache_log(&me(), 9).unwrap(), log);
    assert_eq!(store.cache_log(&me(), 1).unwrap(), log[..1]);
    assert!(store.cache_log(&ann(), 9).unwrap().is_empty());
}

#[test]
fn results_go_with_what_they_came_of() {
    let fixture = fixture();
    let store = &fixture.store;
    let kept = |identity: &str| found(store, &key(identity, "a", "e"), 50).is_some();
    for (number, identity) in (1..).zip(["failing", "degraded", "deleted", "into", "from"]) {
        remember(store, memory(identity, trace(number)));
        keep(store, &key(identity, "a", "e"), "1", 10);
    }
    for number in 10..13 {
        assert!(kept("failing"));
        remember(store, memory("failing", failed(number, "no")));
        learn(store);
    }
    assert!(!kept("failing"));
    store.degrade(&me(), &capability_id("degraded"), "gone", 1).unwrap();
    assert!(!kept("degraded"));
    store.delete_capability(&me(), &capability_id("deleted"), 1).unwrap();
    assert!(!kept("deleted"));
    store.merge_capabilities(&me(), &capability_id("into"), &capability_id("from"), 1).unwrap();
    assert!(kept("into") && !kept("from"));
    assert_eq!(store.cache_log(&me(), 9).unwrap().len(), 4);

    // What was merged keeps results of its own, which go with the one it was merged into.
    keep(store, &key("from", "a", "e"), "2", 10);
    assert_eq!(found(store, &key("into", "a", "e"), 50).as_deref(), Some("1"));
    store.delete_capability(&me(), &capability_id("into"), 1).unwrap();
    assert!(!kept("into") && !kept("from"));

    // Learning anew drops nothing a second time.
    keep(store, &key("failing", "a", "e"), "3", 10);
    store.relearn(1).unwrap();
    assert!(kept("failing"));
    assert_eq!(store.cache_log(&me(), 9).unwrap().len(), 5);
}
