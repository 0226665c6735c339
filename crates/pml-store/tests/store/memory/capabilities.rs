//! Capabilities: how they come to be, are named, found, changed and go.

use pml_model::CapabilityId;
use pml_model::capability::{Capability, CapabilitySource, CapabilityState, Procedure, ToolUse};
use pml_model::trace::{Trace, TraceStatus};
use pml_model::{Digest, RunState};
use pml_store::{BlockingStore, CapabilityQuery, CreateOutcome, NewName, RenameOutcome, RunMemory};
use serde_json::json;

use super::super::{ann, create, fixture, id, me, new_run, raw};
use super::{capability_id, dump, failed, get, learn, memory, path, procedure, remember, trace};

const DAY: i64 = 24 * 60 * 60 * 1000;

fn names(store: &BlockingStore, state: Option<CapabilityState>, recent: bool) -> Vec<String> {
    let wanted = CapabilityQuery { state, recent, limit: 100, offset: 0 };
    store.capabilities(&me(), &wanted).unwrap().into_iter().map(|capability| capability.name).collect()
}

fn rename(store: &BlockingStore, identity: &str, name: &str) -> RenameOutcome {
    store.rename_capability(&me(), &capability_id(identity), name).unwrap()
}

#[test]
fn a_capability_comes_back_as_it_was_run() {
    let fixture = fixture();
    let sources = [
        CapabilitySource::Code { code: "return 1".to_owned(), template: Some("return args.one".to_owned()) },
        CapabilitySource::Dag { dag_structure: raw(r#"{"tasks": [ ]}"#), template: Some(raw("{}")) },
        CapabilitySource::Tool { tool_id: "fs:read".to_owned(), default_args: raw(r#"{"size": 1.50}"#) },
    ];
    for (number, source) in sources.into_iter().enumerate() {
        let identity = number.to_string();
        let given = Procedure { source, dependencies: vec![capability_id("other")], ..procedure(&identity) };
        let memory = RunMemory {
            procedure: Some(Box::new(given.clone())),
            ..memory(&identity, trace(number as u128))
        };
        remember(&fixture.store, memory);
        let stored = get(&fixture.store, &identity);
        assert_eq!(serde_json::to_string(&stored.procedure).unwrap(), serde_json::to_string(&given).unwrap());
        assert_eq!((stored.state, stored.promoted_at), (CapabilityState::Active, Some(1000 + number as i64)));
        // It can be found at once, before anything was learned.
        assert_eq!((stored.intents[0].text.as_str(), stored.intents[0].count), ("read the file", 0));
    }
}

#[test]
fn names_are_unique_for_their_owner() {
    let fixture = fixture();
    for number in 0..9_u128 {
        remember(&fixture.store, memory(&number.to_string(), trace(number)));
    }
    remember(&fixture.store, memory("0", Trace { principal: ann(), ..trace(99) }));
    let expected: Vec<String> =
        std::iter::once("readFile".to_owned()).chain((2..=9).map(|n| format!("readFile{n}"))).collect();
    assert_eq!(names(&fixture.store, None, false), expected);
    let theirs = fixture.store.capability_named(&ann(), "readFile").unwrap().unwrap();
    assert_eq!(theirs.procedure.owner, ann());
    assert!(fixture.store.capability_named(&ann(), "readFile2").unwrap().is_none());

    assert_eq!(rename(&fixture.store, "1", "readFile"), RenameOutcome::NameTaken);
    assert_eq!(rename(&fixture.store, "unknown", "other"), RenameOutcome::Unknown);
    assert_eq!(rename(&fixture.store, "1", "tidy"), RenameOutcome::Done);
    assert_eq!(rename(&fixture.store, "1", "tidy"), RenameOutcome::Done);
    let tidy = fixture.store.capability_named(&me(), "tidy").unwrap().unwrap();
    assert_eq!(tidy.procedure.id, capability_id("1"));
    // The name that became free is given again, and a run does not take a name back.
    remember(&fixture.store, memory("1", trace(20)));
    remember(&fixture.store, memory("10", trace(21)));
    assert_eq!(get(&fixture.store, "1").name, "tidy");
    let all = names(&fixture.store, None, false);
    assert!(all.len() == 10 && all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
}

#[test]
fn capabilities_are_listed_by_state_by_name_and_by_last_use() {
    let fixture = fixture();
    for (number, identity) in (0..).zip(["a", "b", "c"]) {
        remember(&fixture.store, memory(identity, trace(number)));
        rename(&fixture.store, identity, identity);
    }
    remember(&fixture.store, memory("d", failed(5, "no")));
    rename(&fixture.store, "d", "d");
    remember(&fixture.store, memory("a", trace(9)));
    learn(&fixture.store);
    fixture.store.degrade_capability(&me(), &capability_id("b"), "its tool is gone", 1).unwrap();
    assert_eq!(names(&fixture.store, None, false), ["a", "b", "c", "d"]);
    assert_eq!(names(&fixture.store, None, true), ["a", "d", "c", "b"]);
    assert_eq!(names(&fixture.store, Some(CapabilityState::Active), false), ["a", "c"]);
    assert_eq!(names(&fixture.store, Some(CapabilityState::Planned), false), ["d"]);
    assert_eq!(names(&fixture.store, Some(CapabilityState::Degraded), true), ["b"]);
    let page = CapabilityQuery { state: None, recent: false, limit: 2, offset: 1 };
    let page = fixture.store.capabilities(&me(), &page).unwrap();
    assert_eq!(page.iter().map(|found| found.name.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    let wanted = CapabilityQuery { state: None, recent: false, limit: 9, offset: 0 };
    assert!(fixture.store.capabilities(&ann(), &wanted).unwrap().is_empty());
}

#[test]
fn only_a_run_that_activates_makes_an_approved_capability() {
    let fixture = fixture();
    let run = |number, approved, activates| RunMemory {
        activates,
        ..memory("p", Trace { approved, ..trace(number) })
    };
    remember(&fixture.store, run(1, true, false));
    let plan = get(&fixture.store, "p");
    assert!(plan.state == CapabilityState::Planned && !plan.approved);
    remember(&fixture.store, run(2, false, true));
    assert!(!get(&fixture.store, "p").approved);
    remember(&fixture.store, run(3, true, true));
    remember(&fixture.store, run(4, false, true));
    let capability = get(&fixture.store, "p");
    assert!(capability.approved);
    assert_eq!((capability.created_at, capability.promoted_at), (1001, Some(1002)));
}

#[test]
fn a_run_of_a_known_capability_that_was_approved_makes_it_approved() {
    let fixture = fixture();
    let again = |approved, trace: Trace| {
        let trace = Trace { capability_id: Some(capability_id("p")), approved, ..trace };
        remember(&fixture.store, RunMemory { procedure: None, ..memory("p", trace) });
        get(&fixture.store, "p").approved
    };
    remember(&fixture.store, memory("p", trace(1)));
    assert!(!again(false, trace(2)));
    assert!(!again(true, failed(3, "no")));
    let parent_trace_id = Some(trace(9).id);
    assert!(!again(true, Trace { parent_trace_id, ..trace(6) }), "another was allowed, which called it");
    let before = fixture.store.capability_version().unwrap();
    assert!(again(true, trace(4)));
    assert!(fixture.store.capability_version().unwrap() > before, "those who keep a copy are told");
    assert!(again(false, trace(5)));
}

#[test]
fn definitions_are_those_it_last_worked_with() {
    let fixture = fixture();
    let run = |trace: Trace, definition: &[u8]| {
        let tools_used = vec![ToolUse { id: "fs:read".to_owned(), digest: Digest::of(definition) }];
        let procedure = Procedure { tools_used, ..procedure("p") };
        RunMemory { procedure: Some(Box::new(procedure)), ..memory("p", trace) }
    };
    let used = || get(&fixture.store, "p").procedure.tools_used[0].digest.clone();
    remember(&fixture.store, run(trace(1), b"first"));
    remember(&fixture.store, run(failed(2, "no"), b"second"));
    assert_eq!(used(), Digest::of(b"first"));
    remember(&fixture.store, run(trace(3), b"third"));
    assert_eq!(used(), Digest::of(b"third"));
    // Runs of what is known, by itself or within another, bring nothing but the definitions.
    let known = |trace: Trace, definition: &[u8]| {
        let tool = |id: &str| ToolUse { id: id.to_owned(), digest: Digest::of(definition) };
        let trace = Trace { capability_id: Some(capability_id("p")), ..trace };
        RunMemory { procedure: None, tools: vec![tool("fs:write"), tool("fs:read")], ..memory("p", trace) }
    };
    let version = || fixture.store.capability_version().unwrap();
    let before = version();
    remember(&fixture.store, known(failed(4, "no"), b"fourth"));
    assert_eq!((used(), version()), (Digest::of(b"third"), before));
    remember(&fixture.store, known(trace(5), b"fifth"));
    assert_eq!(used(), Digest::of(b"fifth"));
    assert!(version() > before, "those who keep a copy are told");
    assert_eq!(get(&fixture.store, "p").procedure.tools_used.len(), 1, "it calls what it called");
    let part = Trace { capability_id: Some(capability_id("p")), ..trace(7) };
    let outer = RunMemory { nested: vec![part], ..known(trace(6), b"sixth") };
    let outer = RunMemory { trace: Box::new(Trace { capability_id: None, ..*outer.trace }), ..outer };
    remember(&fixture.store, outer);
    assert_eq!(used(), Digest::of(b"sixth"));
}

#[test]
fn a_plan_that_never_worked_gives_way_to_the_first_that_does() {
    let fixture = fixture();
    let run = |trace: Trace, default: &str| {
        let parameters_schema = json!({ "properties": { "path": { "default": default } } });
        let procedure = Procedure { parameters_schema, ..procedure("p") };
        remember(&fixture.store, RunMemory { procedure: Some(Box::new(procedure)), ..memory("p", trace) });
        get(&fixture.store, "p").procedure.parameters_schema["properties"]["path"]["default"].clone()
    };
    assert_eq!(run(failed(1, "no"), "a.txt"), "a.txt");
    assert_eq!(run(failed(2, "no"), "b.txt"), "a.txt");
    assert_eq!(run(trace(3), "c.txt"), "c.txt");
    assert_eq!(run(trace(4), "d.txt"), "c.txt", "its intent came first");
}

#[test]
fn values_that_worked_become_examples() {
    let fixture = fixture();
    let run = |trace: Trace, value: serde_json::Value| {
        let values = [("path".to_owned(), value), ("hidden".to_owned(), json!(1))].into_iter().collect();
        RunMemory { values, ..memory("p", trace) }
    };
    remember(&fixture.store, run(failed(1, "no"), json!("wrong")));
    remember(&fixture.store, run(trace(2), json!("x".repeat(600))));
    for (number, value) in (3..).zip(["a", "b", "a", "c", "d", "e", "f"]) {
        remember(&fixture.store, run(trace(number), json!(value)));
    }
    learn(&fixture.store);
    let schema = get(&fixture.store, "p").procedure.parameters_schema;
    assert_eq!(
        schema,
        json!({ "type": "object", "properties": {
            "path": { "type": "string", "examples": ["a", "b", "c", "d", "e"] },
        } })
    );
}

#[test]
fn intents_are_counted_and_the_latest_comes_first() {
    let fixture = fixture();
    let run = |number, intent: &str| {
        remember(&fixture.store, memory("p", Trace { intent: intent.to_owned(), ..trace(number) }));
    };
    run(1, "read it");
    run(2, "show it");
    run(3, "read it");
    remember(&fixture.store, memory("p", Trace { intent: "break it".to_owned(), ..failed(4, "no") }));
    run(5, "");
    learn(&fixture.store);
    let intents = get(&fixture.store, "p").intents;
    let told: Vec<_> = intents.iter().map(|i| (i.text.as_str(), i.count, i.first_at, i.last_at)).collect();
    assert_eq!(told, [("read it", 2, 1001, 1003), ("show it", 1, 1002, 1002)]);
}

#[test]
fn the_first_intent_is_told_however_many_came_after() {
    let fixture = fixture();
    for number in 1..=60 {
        let intent = format!("read {number}.txt");
        remember(&fixture.store, memory("p", Trace { intent, ..trace(number) }));
    }
    let intents = get(&fixture.store, "p").intents;
    let told: Vec<&str> = intents.iter().map(|intent| intent.text.as_str()).collect();
    assert_eq!((told.len(), told[0], told[50]), (51, "read 60.txt", "read 1.txt"));
}

#[test]
fn changes_are_told_to_those_who_ask() {
    let fixture = fixture();
    let store = &fixture.store;
    let changed = |since| -> (Vec<CapabilityId>, Vec<CapabilityId>, i64) {
        let changes = store.capabilities_since(since).unwrap();
        let changed = changes.changed.iter().map(|capability: &Capability| capability.procedure.id.clone());
        (changed.collect(), changes.gone, changes.version)
    };
    let (p, q) = (capability_id("p"), capability_id("q"));
    remember(store, memory("p", trace(1)));
    remember(store, memory("q", trace(2)));
    let (both, gone, first) = changed(0);
    assert_eq!((both, gone), (vec![p.clone(), q.clone()], Vec::new()));
    assert_eq!(store.capability_version().unwrap(), first);
    // Nothing of it changes until it is learned from.
    remember(store, memory("q", trace(3)));
    assert_eq!(changed(first), (Vec::new(), Vec::new(), first));
    assert_eq!(store.learn_traces(2, 1).unwrap().changed.len(), 2);
    let (.., second) = changed(first);
    assert_eq!(store.learn_traces(2, 1).unwrap().changed, std::slice::from_ref(&q));
    assert_eq!(changed(second).0, std::slice::from_ref(&q));
    let (.., mut since) = changed(second);
    store.rename_capability(&me(), &p, "other").unwrap();
    assert_eq!(changed(since).0, std::slice::from_ref(&p));
    since = changed(since).2;
    store.degrade_capability(&me(), &p, "gone", 1).unwrap();
    assert_eq!(changed(since).0, std::slice::from_ref(&p));
    since = changed(since).2;
    store.mark_recoverable(&me(), &p, "back").unwrap();
    assert_eq!(changed(since).0, std::slice::from_ref(&p));
    since = changed(since).2;
    store.delete_capability(&me(), &p, 1).unwrap();
    assert_eq!((changed(since).0, changed(since).1), (Vec::new(), vec![p.clone()]));
    remember(store, memory("p", trace(4)));
    assert_eq!((changed(since).0, changed(since).1), (vec![p], Vec::new()));
}

#[test]
fn a_capability_can_be_made_by_hand() {
    let fixture = fixture();
    let make = |identity: &str, name: Option<&str>| {
        let made = fixture.store.create_capability(
            procedure(identity),
            name.map_or(NewName::Suggested, |name| NewName::Free(name.to_owned())),
            &["do it".to_owned()],
            7,
        );
        made.unwrap()
    };
    assert_eq!(make("p", Some("mine")), CreateOutcome::Created);
    let made = get(&fixture.store, "p");
    assert_eq!(
        (made.name.as_str(), made.state, made.promoted_at),
        ("mine", CapabilityState::Active, Some(7))
    );
    assert_eq!(made.intents[0].text, "do it");
    assert_eq!(make("p", Some("again")), CreateOutcome::Existing(capability_id("p")));
    assert_eq!(make("q", Some("mine")), CreateOutcome::NameTaken);
    assert!(fixture.store.capability(&me(), &capability_id("q")).unwrap().is_none());
    assert_eq!(make("q", None), CreateOutcome::Created);
    assert_eq!(get(&fixture.store, "q").name, "readFile");
    // What was a plan is one no more, and learning anew forgets nothing that was given by hand.
    remember(&fixture.store, memory("plan", failed(1, "no")));
    assert_eq!(make("plan", None), CreateOutcome::Existing(capability_id("plan")));
    assert_eq!(get(&fixture.store, "plan").state, CapabilityState::Active);
    learn(&fixture.store);
    fixture.store.relearn_all(1).unwrap();
    assert_eq!(get(&fixture.store, "p").intents[0].text, "do it");
}

#[test]
fn a_capability_that_was_marked_is_active_again_once_it_works_again() {
    let fixture = fixture();
    let (store, p) = (&fixture.store, capability_id("p"));
    let stands = || (get(store, "p").state, get(store, "p").degraded_because);
    let degraded = |because: &str| (CapabilityState::Degraded, Some(because.to_owned()));
    let (gone, back) = ("`fs:read` is gone", "it has to work again");
    remember(store, memory("p", trace(1)));
    assert!(!store.mark_recoverable(&me(), &p, back).unwrap(), "nothing was wrong");
    assert!(store.degrade_capability(&me(), &p, gone, 1).unwrap());
    assert!(!store.degrade_capability(&me(), &p, gone, 1).unwrap());
    assert!(!store.degrade_capability(&ann(), &p, "hers", 1).unwrap());
    assert!(!store.mark_recoverable(&ann(), &p, back).unwrap());
    // That it worked before says nothing.
    learn(store);
    assert_eq!(stands(), degraded(gone));
    store.relearn_all(1).unwrap();
    assert_eq!(stands(), degraded(gone));
    assert!(store.mark_recoverable(&me(), &p, back).unwrap());
    assert!(!store.mark_recoverable(&me(), &p, back).unwrap(), "that is known");
    learn(store);
    assert_eq!(stands(), degraded(back), "that the tool is back shows nothing");
    remember(store, memory("p", failed(2, "no")));
    learn(store);
    assert_eq!(stands(), degraded(back), "it did not work");
    remember(store, memory("p", trace(3)));
    learn(store);
    assert_eq!(stands(), (CapabilityState::Active, None), "it works now");
    assert!(!store.mark_recoverable(&me(), &p, back).unwrap());
    assert!(store.degrade_capability(&me(), &p, gone, 1).unwrap());
    assert_eq!(stands(), degraded(gone));
    assert!(store.mark_recoverable(&me(), &p, back).unwrap());
    assert!(store.degrade_capability(&me(), &p, gone, 1).unwrap(), "it went once more");
    assert_eq!(stands(), degraded(gone));
    for number in 4..=6 {
        remember(store, memory("p", failed(number, "no")));
    }
    learn(store);
    assert_eq!(stands(), degraded(gone));
    remember(store, memory("p", trace(7)));
    learn(store);
    assert_eq!(stands(), (CapabilityState::Active, None));
    remember(store, memory("plan", failed(8, "no")));
    assert!(!store.degrade_capability(&me(), &capability_id("plan"), "gone", 1).unwrap());
}

#[test]
fn a_deleted_capability_leaves_its_traces_and_starts_anew() {
    let fixture = fixture();
    let (store, p) = (&fixture.store, capability_id("p"));
    for number in 1..=3 {
        remember(store, memory("p", trace(number)));
        remember(store, memory("q", trace(10 + number)));
    }
    remember(store, memory("p", Trace { cached: true, ..trace(20) }));
    remember(store, memory("p", Trace { status: TraceStatus::Blocked, ..trace(21) }));
    learn(store);
    remember(store, memory("p", trace(4)));
    assert!(!store.delete_capability(&ann(), &p, 1).unwrap());
    assert!(store.delete_capability(&me(), &p, 1).unwrap());
    assert!(!store.delete_capability(&me(), &p, 1).unwrap());
    assert!(store.capability(&me(), &p).unwrap().is_none());
    let old = store.trace_of_run(&me(), &id(2)).unwrap().unwrap();
    assert_eq!((old.capability_id, old.priority), (None, Some(1.0)));
    assert!(store.learned_edges_from(&me(), p.as_str(), None, 9).unwrap().is_empty());
    learn(store);
    let before = dump(&fixture.path);
    store.relearn_all(1).unwrap();
    assert_eq!(dump(&fixture.path), before);
    remember(store, memory("p", trace(5)));
    learn(store);
    assert_eq!(get(store, "p").statistics.usage_count, 1);
}

#[test]
fn merged_capabilities_count_as_one() {
    let fixture = fixture();
    let (store, into, from) = (&fixture.store, capability_id("into"), capability_id("from"));
    let run = |number: u128, identity: &str, intent: &str| {
        let mut trace = Trace { intent: intent.to_owned(), duration_ms: number as i64 * 10, ..trace(number) };
        trace.body.executed_path = path(if identity == "into" { "n1" } else { "n1 n2" });
        trace.approved = identity == "from";
        let values = [("path".to_owned(), json!(number as u64))].into_iter().collect();
        remember(store, RunMemory { values, ..memory(identity, trace) });
    };
    run(1, "into", "read it");
    run(2, "from", "show it");
    run(3, "into", "read it");
    run(4, "from", "read it");
    learn(store);
    run(5, "from", "show it");
    assert!(!store.merge_capabilities(&me(), &into, &into, 1).unwrap());
    assert!(!store.merge_capabilities(&ann(), &into, &from, 1).unwrap());
    assert!(store.merge_capabilities(&me(), &into, &from, 1).unwrap());
    assert!(!store.merge_capabilities(&me(), &into, &from, 1).unwrap());
    let merged = get(store, "into");
    assert_eq!(merged.statistics.success_count, 4, "the fifth is not learned from yet");
    learn(store);
    run(6, "from", "read it");
    learn(store);

    let merged = get(store, "from");
    assert_eq!((&merged.procedure.id, merged.name.as_str()), (&into, "readFile"));
    assert_eq!(merged.statistics.success_count, 6);
    let intents: Vec<_> = merged.intents.iter().map(|intent| (intent.text.as_str(), intent.count)).collect();
    assert_eq!(intents, [("read it", 4), ("show it", 2)]);
    assert_eq!(merged.procedure.parameters_schema["properties"]["path"]["examples"], json!([1, 2, 3, 4, 5]));
    assert_eq!(merged.learning.paths.len(), 1, "its own ways alone");
    assert_eq!(merged.learning.paths[0].count, 2);
    assert!(!merged.approved, "the other one was approved");
    let follows = store.learned_edges_from(&me(), into.as_str(), None, 9).unwrap();
    assert_eq!((follows.len(), follows[0].to.as_str(), follows[0].count), (1, into.as_str(), 5));
    assert_eq!(store.trace_of_run(&me(), &id(6)).unwrap().unwrap().capability_id, Some(into.clone()));
    assert_eq!(super::listed(store, pml_store::TraceOrder::Newest, Some("from")).len(), 6);
    assert_eq!(store.capabilities_since(0).unwrap().gone, [from]);
    let before = dump(&fixture.path);
    store.relearn_all(1).unwrap();
    assert_eq!(dump(&fixture.path), before);

    // With it go those that were merged into it.
    store.delete_capability(&me(), &into, 1).unwrap();
    assert!(store.capability(&me(), &capability_id("from")).unwrap().is_none());
}

#[test]
fn plans_that_never_worked_go_after_thirty_days() {
    let fixture = fixture();
    let store = &fixture.store;
    create(store, new_run(1)).unwrap();
    let at = |created_at, trace| Trace { created_at, ..trace };
    remember(store, memory("old", at(0, failed(1, "no"))));
    remember(store, memory("used", at(0, failed(2, "no"))));
    remember(store, memory("used", at(DAY, failed(3, "no"))));
    remember(store, memory("blocked", at(0, Trace { status: TraceStatus::Blocked, ..trace(5) })));
    remember(store, memory("worked", at(0, trace(4))));
    learn(store);
    let there = || {
        let identities = ["old", "used", "blocked", "worked"];
        let is_there = |id: &&str| store.capability(&me(), &capability_id(id)).unwrap().is_some();
        identities.into_iter().filter(is_there).collect::<Vec<_>>()
    };
    store.purge_ended_runs(30 * DAY - 1, 0).unwrap();
    assert_eq!(there(), ["old", "used", "blocked", "worked"]);
    store.purge_ended_runs(30 * DAY, 0).unwrap();
    assert_eq!(there(), ["used", "worked"]);
    store.purge_ended_runs(365 * DAY, 0).unwrap();
    assert_eq!(there(), ["worked"]);
    assert!(store.trace_of_run(&me(), &id(1)).unwrap().is_some());
    assert_eq!(store.run(&me(), &id(1)).unwrap().unwrap().state, RunState::Running);
}
