//! Reads of programs: which are made before the program asks for them.

use serde_json::json;

use crate::place::{Place, served};

#[test]
fn reads_that_wait_for_nothing_are_made_while_the_program_waits_for_another() {
    let mut place = Place::start("");
    let code = "const one = await mcp.a.read({ key: 'one', until: 'go' });\n\
                const two = await mcp.a.read({ key: 'two' });\n\
                const three = await mcp.b.read({ key: args.third });\n\
                return [one.given.key, two.given.key, three.given.key];";
    let request = place.begin(code, &json!({ "third": "three" }));
    for key in ["two", "three"] {
        place.wait_for_end(&json!(key));
    }
    assert!(place.calls("end").iter().all(|call| call.given["key"] != "one"), "the first one has not ended");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!(["one", "two", "three"]), "{told}");
    assert_eq!(told["speculated"]["calls"], 2, "{told}");
    assert_eq!(served(&place.trace(&told)), (vec!["two".to_owned(), "three".to_owned()], vec!["one".to_owned()]));
}
