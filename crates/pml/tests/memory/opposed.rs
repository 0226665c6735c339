//! What the words of an intent rule out is neither offered nor learned, and listed values follow the words.

use serde_json::{Value, json};

use crate::place::{ALL, Place};

const OUT: &str = "const f = await mcp.fs.read({ path: \"data/items.json\" });\n\
    const { data } = await mcp.json.parse({ json: f.content });\n\
    return data.filter((item) => item.count === 0).map((item) => item.name);";

fn place() -> Place {
    let place = Place::start(ALL);
    std::fs::create_dir(place.home.path("data")).unwrap();
    let items = r#"[{"name":"tea","count":0},{"name":"rice","count":4}]"#;
    std::fs::write(place.home.path("data/items.json"), items).unwrap();
    let june = r#"[{"name":"salt","count":2},{"name":"oil","count":0}]"#;
    std::fs::write(place.home.path("data/june.json"), june).unwrap();
    place
}

#[test]
fn the_opposite_is_neither_offered_nor_learned() {
    let mut place = place();
    let first = place.run("items out of stock in data/items.json", OUT, &json!({}));
    assert_eq!(first["result"], json!(["tea"]), "{first}");
    let id = first["capabilityId"].as_str().unwrap().to_owned();
    let opposed = [
        "items in stock in data/items.json",
        "which items of data/june.json are in stock",
        "les articles en stock dans data/june.json",
        "items that are not out of stock in data/june.json",
    ];
    for intent in opposed {
        let told = place.wish(intent);
        assert_eq!(told["status"], "suggestions", "{intent}: {told}");
        assert_eq!(told["suggestions"]["readyCall"], Value::Null, "{intent}: {told}");
        let shown = place.text("pml_discover", &json!({ "intent": intent }));
        assert!(!shown.contains("pml_execute {"), "{intent}: {shown}");
    }
    // Whoever names it gets it, and teaches it nothing.
    let by_id = json!({
        "intent": opposed[1],
        "context": { "path": "data/june.json" },
        "implementation": { "type": "capability", "id": id },
    });
    let named = place.gateway.call("pml_execute", &by_id);
    assert_eq!((named["status"].as_str(), &named["result"]), (Some("success"), &json!(["oil"])), "{named}");
    assert_eq!(place.capability_of(&id).intents.len(), 1, "nothing was learned from it");
    let again = place.wish(opposed[1]);
    assert_eq!(again["status"], "suggestions", "{again}");
}

#[test]
fn the_same_said_with_a_negation_is_learned() {
    let mut place = place();
    let first = place.run("items out of stock in data/items.json", OUT, &json!({}));
    let id = first["capabilityId"].as_str().unwrap().to_owned();
    let call = json!({
        "intent": "which items of data/june.json are not in stock",
        "context": { "path": "data/june.json" },
        "implementation": { "type": "capability", "id": id },
    });
    let told = place.gateway.call("pml_execute", &call);
    assert_eq!(told["result"], json!(["oil"]), "{told}");
    assert_eq!(place.capability_of(&id).intents.len(), 2, "{told}");
}

#[test]
fn a_listed_value_of_a_tool_is_said_in_words() {
    let mut place = place();
    let code = "return (await mcp.text.case({ text: \"Grand Hotel\", to: \"upper\" })).text;";
    let first = place.run("write \"Grand Hotel\" in upper case", code, &json!({}));
    assert_eq!(first["result"], "GRAND HOTEL", "{first}");
    for (intent, expected) in [
        ("write \"Salt Lake\" in title case", "Salt Lake"),
        ("write \"Salt Lake\" in snake case", "salt_lake"),
        ("write \"Salt Lake\" in upper case", "SALT LAKE"),
    ] {
        let told = place.wish(intent);
        assert_eq!((told["status"].as_str(), &told["result"]), (Some("success"), &json!(expected)), "{told}");
    }
    for open in ["write \"Salt Lake\"", "write \"Salt Lake\" in upper case or in lower case"] {
        let told = place.wish(open);
        assert_eq!(told["status"], "suggestions", "{open}: {told}");
    }
}

#[test]
fn what_a_program_compares_with_is_said_in_words() {
    let mut place = place();
    std::fs::write(place.home.path("data/sizes.json"), "[3,1,2]").unwrap();
    let code = "const order = \"desc\";\n\
        const f = await mcp.fs.read({ path: \"data/sizes.json\" });\n\
        const { data } = await mcp.json.parse({ json: f.content });\n\
        return data.sort((a, b) => (order === \"desc\" ? b - a : order === \"asc\" ? a - b : 0));";
    let first = place.run("sort the numbers in data/sizes.json descending", code, &json!({}));
    assert_eq!(first["result"], json!([3, 2, 1]), "{first}");
    for (intent, expected) in [
        ("sort the numbers in data/sizes.json ascending", json!([1, 2, 3])),
        ("sort the numbers in data/sizes.json in descending order", json!([3, 2, 1])),
    ] {
        let told = place.wish(intent);
        assert_eq!((told["status"].as_str(), &told["result"]), (Some("success"), &expected), "{told}");
    }
    let open = place.wish("sort the numbers in data/sizes.json");
    assert_eq!(open["status"], "suggestions", "{open}");
}
