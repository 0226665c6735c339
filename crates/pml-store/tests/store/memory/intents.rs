//! Which intents capabilities are found by.

use pml_model::trace::Trace;
use pml_store::{BlockingStore, IntentFit, RunMemory};
use serde_json::{Map, json};

use super::super::{fixture, me};
use super::{capability_id, dump, get, learn, memory, remember, trace};

fn run(store: &BlockingStore, number: u128, intent: &str, fit: IntentFit) {
    let trace = Trace { intent: intent.to_owned(), ..trace(number) };
    let values = Map::from_iter([("path".to_owned(), json!(format!("{number}.txt")))]);
    remember(store, RunMemory { intent: fit, values, ..memory("one", trace) });
}

fn texts(store: &BlockingStore) -> Vec<String> {
    let mut texts: Vec<String> = get(store, "one").intents.into_iter().map(|intent| intent.text).collect();
    texts.sort();
    texts
}

#[test]
fn an_intent_that_does_not_fit_is_not_remembered_and_its_run_counts_all_the_same() {
    let fixture = fixture();
    run(&fixture.store, 1, "first", IntentFit::Unchecked);
    run(&fixture.store, 2, "misfit", IntentFit::Misfit);
    assert_eq!(texts(&fixture.store), ["first"]);
    learn(&fixture.store);
    assert_eq!(texts(&fixture.store), ["first"]);
    assert_eq!(get(&fixture.store, "one").statistics.success_count, 2);
    let before = dump(&fixture.path);
    fixture.store.relearn_all(5000).unwrap();
    assert_eq!(dump(&fixture.path), before, "learning anew gives the same");
}

#[test]
fn nothing_is_learned_from_what_teaches_nothing() {
    let fixture = fixture();
    let memory = RunMemory { procedure: None, excluded_from_learning: true, ..memory("one", trace(1)) };
    remember(&fixture.store, memory);
    learn(&fixture.store);
    assert!(fixture.store.capability(&me(), &capability_id("one")).unwrap().is_none());
    assert!(fixture.store.tool_call_counts(&me()).unwrap().is_empty());
    assert!(fixture.store.observed_schemas(&me()).unwrap().is_empty());
    assert!(fixture.store.trace(&me(), &trace(1).id).unwrap().is_some(), "the trace is kept");
}

#[test]
fn an_intent_that_was_forgotten_does_not_come_back() {
    let fixture = fixture();
    run(&fixture.store, 1, "first", IntentFit::Unchecked);
    run(&fixture.store, 2, "second", IntentFit::Fits(1));
    learn(&fixture.store);
    let forget = |text: &str| fixture.store.forget_intent(&me(), &capability_id("one"), text, 9).unwrap();
    assert!(forget("second") && !forget("second") && !forget("never said"));
    assert_eq!(texts(&fixture.store), ["first"]);
    run(&fixture.store, 3, "second", IntentFit::Fits(1));
    learn(&fixture.store);
    fixture.store.relearn_all(5000).unwrap();
    assert_eq!(texts(&fixture.store), ["first"]);
    assert_eq!(get(&fixture.store, "one").statistics.success_count, 3, "the runs count");
}

#[test]
fn each_intent_is_checked_once_for_each_version() {
    let fixture = fixture();
    run(&fixture.store, 1, "first", IntentFit::Unchecked);
    run(&fixture.store, 2, "second", IntentFit::Fits(1));
    run(&fixture.store, 3, "third", IntentFit::Unchecked);
    run(&fixture.store, 4, "third", IntentFit::Unchecked);
    learn(&fixture.store);
    let id = capability_id("one");
    assert_eq!(fixture.store.capabilities_with_unchecked_intents(1, 9).unwrap(), [(me(), id.clone())]);
    let served = fixture.store.served_intents(&me(), &id).unwrap();
    let found: Vec<(&str, u32, usize)> =
        served.iter().map(|one| (one.text.as_str(), one.checked, one.values.len())).collect();
    assert_eq!(found, [("first", 0, 1), ("second", 1, 1), ("third", 0, 2)]);
    assert!(served.iter().all(|one| one.own));
    let settle = |fit: &[&str], unfit: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        fixture.store.record_intent_check(&me(), &id, 1, owned(fit), owned(unfit)).unwrap();
    };
    let version = fixture.store.capability_version().unwrap();
    settle(&["first", "second"], &["third"]);
    assert!(fixture.store.capability_version().unwrap() > version, "others hear of it");
    settle(&["first", "second"], &["third"]);
    assert_eq!(fixture.store.capabilities_with_unchecked_intents(1, 9).unwrap(), []);
    assert_eq!(
        fixture.store.capabilities_with_unchecked_intents(2, 9).unwrap().len(),
        1,
        "another version, another look"
    );
    fixture.store.relearn_all(5000).unwrap();
    assert_eq!(texts(&fixture.store), ["first", "second"]);
}

#[test]
fn what_was_served_by_a_capability_that_was_merged_is_told_apart() {
    let fixture = fixture();
    run(&fixture.store, 1, "mine", IntentFit::Fits(1));
    let theirs = Trace { intent: "theirs".to_owned(), created_at: 1, ..trace(2) };
    remember(&fixture.store, memory("two", theirs));
    learn(&fixture.store);
    assert!(
        fixture.store.merge_capabilities(&me(), &capability_id("one"), &capability_id("two"), 9).unwrap()
    );
    let served = fixture.store.served_intents(&me(), &capability_id("one")).unwrap();
    let found: Vec<(&str, bool, u32)> =
        served.iter().map(|one| (one.text.as_str(), one.own, one.checked)).collect();
    assert_eq!(found, [("theirs", false, 0), ("mine", true, 1)]);
}
