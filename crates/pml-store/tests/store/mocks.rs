//! Recorded results: found by arguments, judged by what happens, bounded, and by principal.

use pml_model::mocks::{MockOutcome, MockStatus};
use pml_model::trace::ErrorType;
use pml_model::{Digest, Principal, ToolId};
use pml_store::{BlockingStore, FoundMock, MockLookups, MockScope, MockTotals, NewMock};
use serde_json::{Value, json};

use super::{Fixture, fixture, me, raw};

fn tool(name: &str) -> ToolId {
    ToolId::parse(name).unwrap()
}

fn new_mock(arguments: &Value, result: &Value) -> NewMock {
    NewMock {
        principal: me(),
        tool: tool("crm:get"),
        digest: Digest::of(b"one"),
        arguments: raw(&arguments.to_string()),
        result: raw(&result.to_string()),
    }
}

fn record(store: &BlockingStore, arguments: &Value, result: &Value, now: i64) {
    store.record_mocks(vec![new_mock(arguments, result)], now).unwrap();
}

fn found(store: &BlockingStore, arguments: &Value) -> Option<FoundMock> {
    store.find_mock(&me(), &tool("crm:get"), &Digest::of(b"one"), arguments).unwrap()
}

fn use_it(fixture: &Fixture, arguments: &Value, outcome: MockOutcome) {
    let mock = fixture.store.mocks(&me()).unwrap();
    let mock = mock.iter().find(|mock| mock.arguments == *arguments).unwrap();
    fixture.store.report_mock_uses(vec![(me(), mock.id.clone(), outcome)], 50).unwrap();
}

#[test]
fn equal_arguments_come_first_then_similar_ones_of_the_same_definition() {
    let fixture = fixture();
    let store = &fixture.store;
    record(store, &json!({"path": "a.csv", "n": 1}), &json!("of a"), 1);
    record(store, &json!({"path": "b.csv", "n": 1}), &json!("of b"), 2);
    let equal = found(store, &json!({"n": 1, "path": "a.csv"})).unwrap();
    assert_eq!((equal.is_equal, &equal.mock.result), (true, &json!("of a")));
    let similar = found(store, &json!({"path": "c.csv", "n": 7})).unwrap();
    assert_eq!((similar.is_equal, &similar.mock.result), (false, &json!("of b")), "the latest");
    assert!(found(store, &json!({"path": "c.json", "n": 7})).is_none(), "another kind of file");
    assert!(found(store, &json!({"path": "c.csv"})).is_none(), "other arguments");
    let other = |principal: &Principal, definition: &[u8]| {
        store
            .find_mock(
                principal,
                &tool("crm:get"),
                &Digest::of(definition),
                &json!({"path": "a.csv", "n": 1}),
            )
            .unwrap()
    };
    assert!(other(&me(), b"two").is_none(), "another definition");
    assert!(other(&Principal("ann".to_owned()), b"one").is_none(), "another principal");
}

#[test]
fn failures_downstream_end_the_use_of_a_mock_and_a_new_result_begins_it_anew() {
    let fixture = fixture();
    let (store, arguments) = (&fixture.store, json!({"id": "x1"}));
    record(store, &arguments, &json!({"size": 1}), 1);
    for _ in 0..5 {
        use_it(&fixture, &arguments, MockOutcome::Success);
    }
    assert_eq!(found(store, &arguments).unwrap().mock.status, MockStatus::Canonical);
    use_it(&fixture, &arguments, MockOutcome::Failure(ErrorType::Network));
    assert_eq!(found(store, &arguments).unwrap().mock.status, MockStatus::Canonical);
    use_it(&fixture, &arguments, MockOutcome::Failure(ErrorType::Validation));
    assert!(found(store, &arguments).is_none());
    let all = store.mocks(&me()).unwrap();
    assert_eq!((all[0].status, all[0].counts.uses, all[0].used_at), (MockStatus::Deprecated, 7, Some(50)));
    // The tool gives something else by now, so the judgement was right.
    record(store, &arguments, &json!({"bytes": 1}), 60);
    let again = found(store, &arguments).unwrap().mock;
    assert_eq!((again.status, again.counts.uses, again.counts.confirmed), (MockStatus::Fresh, 0, 1));
    assert_eq!(again.result, json!({"bytes": 1}));
}

#[test]
fn pinned_mocks_stay_as_they_are_and_come_first() {
    let fixture = fixture();
    let store = &fixture.store;
    record(store, &json!({"id": "x1"}), &json!("pinned"), 1);
    let id = found(store, &json!({"id": "x1"})).unwrap().mock.id;
    assert!(store.pin_mock(&me(), &id).unwrap());
    assert!(!store.pin_mock(&Principal("ann".to_owned()), &id).unwrap());
    record(store, &json!({"id": "x1"}), &json!("later"), 2);
    use_it(&fixture, &json!({"id": "x1"}), MockOutcome::Failure(ErrorType::Validation));
    for number in 10..60 {
        record(store, &json!({"id": format!("y{number}")}), &json!(number), number);
    }
    let mock = found(store, &json!({"id": "z3"})).unwrap().mock;
    assert_eq!((mock.status, mock.result), (MockStatus::Pinned, json!("pinned")));
    assert_eq!(store.mocks(&me()).unwrap().len(), 20, "the number is bounded");
    assert!(found(store, &json!({"id": "y59"})).unwrap().is_equal, "the latest are kept");
}

#[test]
fn what_is_too_large_is_not_recorded() {
    let fixture = fixture();
    record(&fixture.store, &json!({"id": 1}), &json!("x".repeat(11_000)), 1);
    record(&fixture.store, &json!({"id": "x".repeat(5_000)}), &json!(1), 1);
    assert!(fixture.store.mocks(&me()).unwrap().is_empty());
}

#[test]
fn mocks_are_dropped_by_id_by_tool_and_all() {
    let fixture = fixture();
    let store = &fixture.store;
    for number in 0..4 {
        record(store, &json!({"id": number}), &json!(number), 1);
    }
    let mut other = new_mock(&json!({}), &json!(1));
    other.tool = tool("crm:list");
    store.record_mocks(vec![other], 1).unwrap();
    store
        .add_mock_lookups(vec![(
            me(),
            "crm:get".to_owned(),
            MockLookups { equal: 2, similar: 1, missing: 0 },
        )])
        .unwrap();
    store
        .add_mock_lookups(vec![(
            me(),
            "crm:get".to_owned(),
            MockLookups { equal: 1, similar: 0, missing: 5 },
        )])
        .unwrap();
    let expected = MockLookups { equal: 3, similar: 1, missing: 5 };
    assert_eq!(store.mock_lookups(&me()).unwrap(), [("crm:get".to_owned(), expected)]);
    let ann = MockLookups { equal: 1, similar: 1, missing: 1 };
    store.add_mock_lookups(vec![(Principal("ann".to_owned()), "crm:get".to_owned(), ann)]).unwrap();
    let lookups = MockLookups { equal: 4, similar: 2, missing: 6 };
    assert_eq!(store.mock_totals().unwrap(), MockTotals { mocks: 5, lookups, ..MockTotals::default() });
    let id = found(store, &json!({"id": 0})).unwrap().mock.id;
    assert_eq!(store.drop_mocks(&me(), MockScope::One(id)).unwrap(), 1);
    assert_eq!(store.drop_mocks(&Principal("ann".to_owned()), MockScope::All).unwrap(), 0);
    assert_eq!(store.drop_mocks(&me(), MockScope::Tool("crm:get".to_owned())).unwrap(), 3);
    assert_eq!(store.drop_mocks(&me(), MockScope::All).unwrap(), 1);
    assert!(store.mock_lookups(&me()).unwrap().is_empty());
}
