//! The gateway is killed while reads ahead are under way. The ledger says what really happened.

use std::time::Duration;

use serde_json::json;

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

#[test]
fn a_gateway_killed_while_it_reads_ahead_loses_and_doubles_nothing() {
    let (kills, mut dice) = (number("PML_SPECULATION_KILLS", 12), Dice(number("PML_SEED", 1)));
    let mut place = Place::start("");
    let mut writes = 0;
    let mut left = kills;
    while left > 0 {
        let until = format!("go{left}");
        let keys: Vec<String> = (0..8).map(|key| format!("k{key}")).collect();
        let writes_before = place.keys("a:write").len();
        let options = json!({ "detach": true });
        let request = place.begin_with(CODE, &json!({ "keys": keys, "until": until }), options);
        let id = place.gateway.outcome(request)["workflowId"].clone();
        // A write under way at a kill is in doubt, which is not what this is about.
        eventually("the first write is over", || place.writes() > writes);
        let journaled = || place.begun().iter().filter(|call| call.given["key"] == "k0").count() > 0;
        eventually("it reads", || place.keys("a:write").len() > writes_before && journaled());
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
