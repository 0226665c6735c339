//! Tests with traces of invented runs.

use pml_model::json::raw;
use pml_model::trace::EdgeKind;
use serde_json::{Value, json};

use super::*;

/// A small language for calls: a call is issued with arguments, and ends with a result.
struct Told {
    recorder: Recorder,
    turn: u64,
    structure: Structure,
}

impl Told {
    fn new() -> Told {
        Told { recorder: Recorder::default(), turn: 0, structure: Structure::default() }
    }

    fn asks(mut self, number: u32, arguments: &Value) -> Told {
        let node = NodeId::try_from(format!("n{number}")).unwrap();
        let when = TurnTime { turn: self.turn, at: 0 };
        self.recorder.record_call(CallRef::Call(number), Some(node), "fs:read", &arguments.to_string(), when);
        self
    }

    fn gets(mut self, number: u32, result: &Value) -> Told {
        self.turn += 1;
        let when = TurnTime { turn: self.turn, at: 0 };
        self.recorder.record_end(
            CallRef::Call(number),
            &CallEnding::Result { value: &raw(result), saved_ms: None, age_ms: None },
            when,
        );
        self
    }

    fn edges(&self, kind: EdgeKind) -> Vec<(u32, u32)> {
        let edges = edges::between(&self.recorder.calls.iter().collect::<Vec<_>>(), &self.structure);
        let numbers = edges.iter().filter(|edge| edge.kind == kind);
        numbers.map(|edge| (edge.from + 1, edge.to + 1)).collect()
    }
}

#[test]
fn what_overlaps_has_no_order() {
    let none = json!({});
    let told = Told::new().asks(1, &none).asks(2, &none).gets(2, &none).gets(1, &none).asks(3, &none);
    assert_eq!(told.edges(EdgeKind::Sequence), [(1, 3), (2, 3)]);
}

#[test]
fn order_is_told_once() {
    let none = json!({});
    let one_by_one = (1..=4).fold(Told::new(), |told, number| told.asks(number, &none).gets(number, &none));
    assert_eq!(one_by_one.edges(EdgeKind::Sequence), [(1, 2), (2, 3), (3, 4)]);
    // The second call is under way while the third starts and ends.
    let told = Told::new().asks(1, &none).gets(1, &none).asks(2, &none).asks(3, &none);
    let told = told.gets(3, &none).asks(4, &none).gets(2, &none).gets(4, &none);
    assert_eq!(told.edges(EdgeKind::Sequence), [(1, 2), (1, 3), (3, 4)]);
}

#[test]
fn values_tell_where_they_come_from() {
    let first = json!({ "items": [{ "id": 48_213, "name": "x" }], "ok": true, "n": 3 });
    let told = Told::new().asks(1, &json!({ "path": "a.txt" })).gets(1, &first);
    let told = told
        .asks(2, &json!({ "n": 3, "flag": true, "name": "x" }))
        .gets(2, &json!({ "text": "hello there" }));
    let told = told.asks(3, &json!({ "issue": 48_213, "body": { "text": "hello there" } }));
    assert_eq!(told.edges(EdgeKind::Dependency), [(1, 3), (2, 3)]);
}

#[test]
fn what_is_only_handed_back_comes_from_elsewhere() {
    let path = json!({ "path": "notes/today.md" });
    let told = Told::new().asks(1, &path).gets(1, &path).asks(2, &path);
    assert_eq!(told.edges(EdgeKind::Dependency), []);
}

#[test]
fn members_count_in_any_order_and_items_do_not() {
    let given = |second: &Value| {
        let told = Told::new()
            .asks(1, &json!({}))
            .gets(1, &json!({ "point": { "x": 1.5, "y": 1 }, "list": [1.5, 2] }));
        told.asks(2, second).edges(EdgeKind::Dependency)
    };
    assert_eq!(given(&json!({ "at": { "y": 1, "x": 1.5 } })), [(1, 2)]);
    assert_eq!(given(&json!({ "at": { "y": 1.5, "x": 1 } })), [(1, 2)], "1.5 alone tells");
    assert_eq!(given(&json!({ "at": [2, 1] })), []);
}

#[test]
fn calls_of_a_loop_are_not_all_kept() {
    let mut recorder = Recorder::default();
    for number in 1..=100 {
        let when = TurnTime { turn: 0, at: 0 };
        recorder.record_call(
            CallRef::Call(number),
            NodeId::try_from("n1".to_owned()).ok(),
            "fs:read",
            "{}",
            when,
        );
        recorder.record_end(
            CallRef::Call(number),
            &CallEnding::Result { value: &raw(&json!(number)), saved_ms: None, age_ms: None },
            when,
        );
    }
    assert_eq!((recorder.calls.len(), recorder.omitted), (MOST_OF_A_NODE as usize, 80));
}
