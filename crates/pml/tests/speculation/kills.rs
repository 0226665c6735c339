//! The gateway is killed while reads ahead are under way. The ledger says what really happened.

use std::time::Duration;

use pml_model::{Principal, RunId};
use pml_store::JournalEntryKind;
use serde_json::{Value, json};

use crate::dice::{Dice, number};
use crate::harness::eventually;
use crate::place::Place;

/// Writes, reads a lot of which much is under way at a time, and writes again.
const CODE: &str = "const first = await mcp.a.write({ key: 'first' });\n\
    const seen = [first.writes];\n\
    for (const key of args.keys) { seen.push((await mcp.a.read({ key, wait: 15 })).writes); }\n\
    const held = await mcp.b.read({ key: 'held', until: args.until });\n\
    const more = await mcp.a.read({ key: 'more' });\n\
    seen.push(held.writes, more.writes);\n\
    seen.push((await mcp.b.write({ key: 'second' })).writes);\n\
    seen.push((await mcp.b.read({ key: 'last' })).writes);\n\
    return seen;";

/// Whether the end of a call is in the journal.
fn is_delivered(place: &Place, run: &Value, call: u32) -> bool {
    let run = RunId::parse(run.as_str().unwrap()).unwrap();
    let recorded = place.store().load_run(&Principal::local(), &run).unwrap();
    recorded.entries.iter().any(|entry| entry.kind == JournalEntryKind::Delivered && entry.call == Some(call))
}

#[test]
fn a_gateway_killed_while_it_reads_ahead_loses_and_doubles_nothing() {
    let (kills, mut dice) = (number("PML_SPECULATION_KILLS", 12), Dice(number("PML_SEED", 1)));
    let mut place = Place::start("");
    let mut writes = 0;
    let mut left = kills;
    while left > 0 {
        let until = format!("go{left}");
        let keys: Vec<String> = (0..8).map(|key| format!("{until} {key}")).collect();
        let arguments = json!({ "keys": keys, "until": until });
        let request = place.begin_with(CODE, &arguments, json!({ "detach": true }));
        let id = place.gateway.outcome(request)["workflowId"].clone();
        // A write under way at a kill is in doubt, which is not what this is about.
        eventually("the first write is over", || is_delivered(&place, &id, 1));
        place.wait_for_key(&keys[0]);
        for _ in 0..1 + dice.roll(3) {
            std::thread::sleep(Duration::from_millis(dice.roll(200)));
            place.restart();
            left = left.saturating_sub(1);
        }
        place.allow(&until);
        let told = place.gateway.call("pml_continue", &json!({ "workflow_id": id }));
        let (one, two) = (writes + 1, writes + 2);
        let mut expected = vec![one; 11];
        expected.extend([two, two]);
        assert_eq!(told["result"], json!(expected), "{told}");
        writes += 2;
        assert_eq!(place.writes(), writes, "no write is lost and none is made twice");
    }
}
