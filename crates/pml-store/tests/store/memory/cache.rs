//! Results that are kept, and how they go.

use std::sync::mpsc::sync_channel;

use pml_model::capability::{CacheConfig, Invalidation};
use pml_model::{Digest, Principal};
use pml_store::{
    BlockingStore, CacheInvalidation, CacheKey, CacheUsage, InvalidationScope, NewCachedResult,
    ProcessIdentity, RunMemory, SeenWrites,
};

use super::super::{ann, fixture, me, raw, this_process};
use super::{capability_id, failed, get, learn, memory, procedure, remember, trace};

fn key(identity: &str, parameters: &str, epoch: &str) -> CacheKey {
    CacheKey {
        principal: me(),
        capability: capability_id(identity),
        parameters: Digest::of(parameters.as_bytes()),
        epoch: epoch.to_owned(),
    }
}

/// Keeps a result from `now` for a hundred milliseconds, at most three of a capability.
fn keep(store: &BlockingStore, key: &CacheKey, result: &str, now: i64) {
    keep_for(store, key, result, now, None);
}

/// The same; with `intent` it is found by that.
fn keep_for(store: &BlockingStore, key: &CacheKey, result: &str, now: i64, intent: Option<&str>) {
    let (reply, answer) = sync_channel(1);
    let new = NewCachedResult {
        result: &raw(result),
        intent,
        stamps: "[1]",
        at: now,
        expires_at: now + 100,
        max_entries: 3,
    };
    store.cache_result(key, &new, move |stored| reply.send(stored).unwrap());
    answer.recv().unwrap().unwrap();
}

fn found(store: &BlockingStore, key: &CacheKey, now: i64) -> Option<String> {
    store.cached_result(key, now).unwrap().map(|found| found.result.get().to_owned())
}

#[test]
fn a_result_is_not_found_once_another_process_wrote_after_its_key_was_made() {
    let fixture = fixture();
    let store = &fixture.store;
    remember(store, memory("p", trace(1)));
    keep(store, &key("p", "a", "e1"), "1", 10);
    // The counts of ended processes are merged, so one of these has to be alive.
    let other = ProcessIdentity { pid: 2, started: "never".to_owned() };
    let write = |process: &ProcessIdentity, server| {
        let (reply, answer) = sync_channel(1);
        store.count_write(process, server, || (), move |stored| reply.send(stored).unwrap());
        answer.recv().unwrap().unwrap();
    };
    let of_others = |count| vec![("s".to_owned(), count)];
    let is_found = |seen: &SeenWrites| {
        store.cached_result_unless_written(&key("p", "a", "e1"), 20, Some(seen)).unwrap().is_some()
    };
    let before = SeenWrites {
        process: this_process(),
        of_others: of_others(0),
        drops: store.cache_generation().unwrap(),
    };
    assert!(is_found(&before));
    write(&this_process(), None);
    write(&other, Some("elsewhere"));
    assert!(is_found(&before), "its own writes are in the key, and another server's do not matter");
    write(&other, Some("s"));
    assert!(!is_found(&before));
    write(&other, None);
    assert!(is_found(&SeenWrites { of_others: of_others(2), ..before.clone() }));
    store.invalidate_cache(&me(), InvalidationScope::All, "a test", 20).unwrap();
    keep(store, &key("p", "a", "e1"), "1", 10);
    assert!(!is_found(&SeenWrites { of_others: of_others(2), ..before }));
}

fn dropped(at: i64, because: &str, what: &str, entries: u64) -> CacheInvalidation {
    CacheInvalidation { at, reason: because.to_owned(), scope: what.to_owned(), entries }
}

#[test]
fn a_result_counts_until_it_expires_or_something_was_written() {
    let fixture = fixture();
    let store = &fixture.store;
    remember(store, memory("p", trace(1)));
    keep(store, &key("p", "a", "e1"), r#"{"n": 1.50}"#, 10);
    let kept = store.cached_result(&key("p", "a", "e1"), 109).unwrap().unwrap();
    assert_eq!((kept.result.get(), kept.at, kept.hit_count), (r#"{"n": 1.50}"#, 10, 0));
    assert_eq!(kept.stamps, "[1]");
    store.flush().unwrap();
    assert_eq!(store.cached_result(&key("p", "a", "e1"), 109).unwrap().unwrap().hit_count, 1);
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
    let drop = |who: &Principal, which, at| store.invalidate_cache(who, which, "because", at).unwrap();
    let p = capability_id("p");
    fill();
    assert_eq!(drop(&ann(), InvalidationScope::All, 1), 0);
    assert_eq!(drop(&me(), InvalidationScope::Capability(&p), 2), 2);
    assert_eq!(kept(), ["q"]);
    assert_eq!(drop(&me(), InvalidationScope::Expired, 110), 1);
    assert_eq!(drop(&me(), InvalidationScope::All, 4), 1);
    let log = [
        dropped(4, "because", "all", 1),
        dropped(110, "because", "expired", 1),
        dropped(2, "because", p.as_str(), 2),
    ];
    assert_eq!(store.cache_invalidations(&me(), 9).unwrap(), log);
    assert_eq!(store.cache_invalidations(&me(), 1).unwrap(), log[..1]);
    assert!(store.cache_invalidations(&ann(), 9).unwrap().is_empty());
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
    store.degrade_capability(&me(), &capability_id("degraded"), "gone", 1).unwrap();
    assert!(!kept("degraded"));
    store.delete_capability(&me(), &capability_id("deleted"), 1).unwrap();
    assert!(!kept("deleted"));
    store.merge_capabilities(&me(), &capability_id("into"), &capability_id("from"), 1).unwrap();
    assert!(kept("into") && !kept("from"));
    assert_eq!(store.cache_invalidations(&me(), 9).unwrap().len(), 4);

    // What was merged keeps results of its own, which go with the one it was merged into.
    keep(store, &key("from", "a", "e"), "2", 10);
    assert_eq!(found(store, &key("into", "a", "e"), 50).as_deref(), Some("1"));
    store.delete_capability(&me(), &capability_id("into"), 1).unwrap();
    assert!(!kept("into") && !kept("from"));

    // Learning anew drops nothing a second time.
    keep(store, &key("failing", "a", "e"), "3", 10);
    store.relearn_all(1).unwrap();
    assert!(kept("failing"));
    assert_eq!(store.cache_invalidations(&me(), 9).unwrap().len(), 5);
}

#[test]
fn what_was_set_for_a_capability_counts_whatever_its_runs_say() {
    let fixture = fixture();
    let (store, p) = (&fixture.store, capability_id("p"));
    remember(store, memory("p", failed(1, "no")));
    let config = CacheConfig { ttl_seconds: 7, max_entries: 2, ..CacheConfig::default() };
    let before = store.capability_version().unwrap();
    assert!(store.set_cache_config(&me(), &p, &config, 1).unwrap());
    assert!(store.capability_version().unwrap() > before, "those who keep a copy are told");
    assert!(!store.set_cache_config(&ann(), &p, &config, 1).unwrap());
    // The first run that works replaces what never worked, and not what was set.
    let off = CacheConfig { cacheable: false, ..CacheConfig::default() };
    let procedure = pml_model::capability::Procedure { cache_config: off, ..procedure("p") };
    remember(store, RunMemory { procedure: Some(Box::new(procedure)), ..memory("p", trace(2)) });
    assert_eq!(get(store, "p").procedure.cache_config, config);
    keep(store, &key("p", "a", "e"), "1", 10);
    store.set_cache_config(&me(), &p, &CacheConfig::default(), 11).unwrap();
    assert_eq!(found(store, &key("p", "a", "e"), 20), None, "it was kept under other rules");
    assert_eq!(
        store.cache_invalidations(&me(), 9).unwrap(),
        [dropped(11, "it was set how they are kept", p.as_str(), 1)]
    );
}

#[test]
fn what_a_person_alone_drops_stays_through_failures_and_lost_tools() {
    let fixture = fixture();
    let (store, p) = (&fixture.store, capability_id("p"));
    remember(store, memory("p", trace(1)));
    let config = CacheConfig { invalidate_on: vec![Invalidation::ManualOnly], ..CacheConfig::default() };
    store.set_cache_config(&me(), &p, &config, 1).unwrap();
    keep(store, &key("p", "a", "e"), "1", 10);
    for number in 2..5 {
        remember(store, memory("p", failed(number, "no")));
    }
    learn(store);
    store.degrade_capability(&me(), &p, "`fs:read` is gone", 11).unwrap();
    assert!(found(store, &key("p", "a", "e"), 20).is_some());
    store.invalidate_cache(&me(), InvalidationScope::Capability(&p), "wished", 12).unwrap();
    assert_eq!(found(store, &key("p", "a", "e"), 20), None);
}

#[test]
fn results_are_found_by_what_was_asked_for_where_they_were_kept_so() {
    let fixture = fixture();
    let (store, p) = (&fixture.store, capability_id("p"));
    remember(store, memory("p", trace(1)));
    keep(store, &key("p", "a", "e"), "0", 10);
    for (number, at) in [(1, 11), (2, 12), (3, 13), (4, 14)] {
        let intent = format!("read it {number}");
        keep_for(store, &key("p", &intent, "e"), &number.to_string(), at, Some(&intent));
    }
    let asked = |epoch: &str, now| -> Vec<(String, String)> {
        let found = store.results_cached_by_intent(&me(), &p, epoch, now).unwrap().into_iter();
        found.map(|(intent, kept)| (intent, kept.result.get().to_owned())).collect()
    };
    let of = |number: u32| (format!("read it {number}"), number.to_string());
    assert_eq!(asked("e", 20), [of(4), of(3), of(2)], "three at most, latest first");
    assert_eq!(asked("e", 113), [of(4)], "the others are too old");
    assert!(
        asked("other", 20).is_empty()
            && store.results_cached_by_intent(&ann(), &p, "e", 20).unwrap().is_empty()
    );
    assert_eq!(found(store, &key("p", "read it 4", "e"), 20), None, "not by its key");
    assert!(found(store, &key("p", "a", "e"), 20).is_some(), "the others do not take its place");
    remember(store, memory("p", pml_model::trace::Trace { cached: true, ..trace(2) }));
    assert_eq!(store.cache_usage(&me(), &p, 20).unwrap(), CacheUsage { entries: 4, hit_count: 1 });
}

#[test]
fn everybody_hears_that_results_were_dropped_even_where_none_was_stored() {
    let fixture = fixture();
    let store = &fixture.store;
    remember(store, memory("p", trace(1)));
    let drops = || store.cache_generation().unwrap();
    let first = drops();
    store.invalidate_cache(&me(), InvalidationScope::Expired, "old", 1).unwrap();
    store.invalidate_cache(&me(), InvalidationScope::Outdated(&capability_id("p")), "changed", 1).unwrap();
    assert_eq!(drops(), first, "those who keep some know their age, and of which tools they are");
    store.invalidate_cache(&me(), InvalidationScope::All, "wished", 1).unwrap();
    let second = drops();
    assert!(second > first);
    store.degrade_capability(&me(), &capability_id("p"), "gone", 1).unwrap();
    assert!(drops() > second);
}
