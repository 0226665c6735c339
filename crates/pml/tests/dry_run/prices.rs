//! What a report says of the cost of a real run.

use serde_json::{Value, json};

use crate::place::Place;

const CODE: &str = "await mcp.a.read({ key: 'k' });\n\
    await mcp.a.write({ key: 'k' }); await mcp.a.write({ key: 'k' });\n\
    await mcp.b.write({ key: 'k' }); await mcp.b.look({ key: 'k' });\n\
    await mcp.json.parse({ json: '1' });\n\
    if (args.more) await mcp.a.write({ key: 'more' });\n\
    return 1;";

fn dry(prices: &str) -> Value {
    let mut place = Place::start(prices);
    crate::dry(&mut place, CODE, &json!({}), &json!({ "dryRun": true }))
}

#[test]
fn the_cost_of_the_calls_is_told_with_the_number_of_calls_without_a_price() {
    let mut place =
        Place::start("[prices]\na = \"0.1 USD\"\n\"a:wri*\" = \"0.002 USD\"\n\"b:write\" = \"1 EUR\"\n");
    let told = crate::dry(&mut place, CODE, &json!({}), &json!({ "dryRun": true }));
    let expected = json!({
        "amounts": [{ "amount": 1, "currency": "EUR" }, { "amount": 0.104, "currency": "USD" }],
        "pricedCalls": 4,
        "unpricedCalls": 1,
    });
    assert_eq!(told["report"]["estimatedCost"], expected, "{told:#}");

    std::fs::write(place.home.path("code.ts"), CODE).unwrap();
    let code = place.home.path("code.ts");
    let shown = place.home.run(&["execute", "--code", code.to_str().unwrap(), "--dry-run"]);
    let line = "estimated cost\n  1 EUR + 0.104 USD for 4 calls; 1 call has no price\n";
    assert!(shown.stdout.contains(line), "{shown:?}");
}

#[test]
fn without_prices_there_is_no_cost() {
    let told = dry("");
    assert_eq!(told["report"]["estimatedCost"], Value::Null, "{told:#}");
}

#[test]
fn a_price_that_covers_no_call_leaves_the_cost_unknown() {
    let told = dry("[prices]\nhub = \"1 EUR\"\n");
    let expected = json!({ "amounts": [], "pricedCalls": 0, "unpricedCalls": 5 });
    assert_eq!(told["report"]["estimatedCost"], expected, "{told:#}");
}
