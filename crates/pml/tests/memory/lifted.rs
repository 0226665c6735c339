//! What the first intent names is a parameter the next time, wherever it stands in the program.

use serde_json::{Value, json};

use crate::place::{ALL, Place};

fn place() -> Place {
    let place = Place::start(ALL);
    for directory in ["data", "notes"] {
        std::fs::create_dir(place.home.path(directory)).unwrap();
    }
    let csv = "name,department,salary\nAnn,Engineering,100\nBob,Sales,50\nCid,Legal,70\nDee,Sales,70\n";
    std::fs::write(place.home.path("data/staff.csv"), csv).unwrap();
    let parcels = r#"[{"id":"a","kg":1},{"id":"b","kg":9},{"id":"c","kg":4},{"id":"d","kg":7}]"#;
    std::fs::write(place.home.path("data/parcels.json"), parcels).unwrap();
    std::fs::write(place.home.path("data/hall.json"), r#"[{"id":"x","kg":2},{"id":"y","kg":3}]"#).unwrap();
    std::fs::write(place.home.path("notes/home.md"), "").unwrap();
    std::fs::write(place.home.path("notes/work.md"), "").unwrap();
    place
}

const AVERAGE: &str = "const f = await mcp.fs.read({ path: \"data/staff.csv\" });\n\
    const { rows } = await mcp.csv.parse({ csv: f.content });\n\
    const mine = rows.filter((r) => r.department === \"Engineering\").map((r) => Number(r.salary));\n\
    return (await mcp.math.statistics({ values: mine })).mean;";

const HEAVIEST: &str = "const f = await mcp.fs.read({ path: 'data/parcels.json' });\n\
    const { data } = await mcp.json.parse({ json: f.content });\n\
    return data.sort((a, b) => b.kg - a.kg).slice(0, 2).map((p) => p.id);";

const NOTE: &str = "await mcp.fs.write({ path: \"notes/home.md\", content: \"- call Bob\\n\", append: true });\n\
    return `noted call Bob in notes/home.md`;";

#[track_caller]
fn runs(place: &mut Place, intent: &str, expected: &Value) {
    let told = place.wish(intent);
    assert_eq!((told["status"].as_str(), &told["result"]), (Some("success"), expected), "{intent}: {told}");
}

#[test]
fn another_value_runs_with_that_value() {
    let mut place = place();
    let first =
        place.run("average salary of the Engineering department in data/staff.csv", AVERAGE, &json!({}));
    assert_eq!(
        (&first["result"], &first["parametersMade"]),
        (&json!(100), &json!(["department"])),
        "{first}"
    );
    runs(&mut place, "average salary of the Sales department in data/staff.csv", &json!(60));
    runs(&mut place, "salaire moyen du département Legal dans data/staff.csv", &json!(70));
    runs(&mut place, "average salary of the Engineering department in data/staff.csv", &json!(100));
    let missing = place.wish("average salary in data/staff.csv");
    assert_eq!(missing["status"], "suggestions", "{missing}");
    let other = place.wish("highest salary of the Sales department in data/staff.csv");
    assert_eq!(other["status"], "suggestions", "{other}");
}

#[test]
fn programs_that_differ_only_in_what_their_intents_name_are_one_capability() {
    let mut place = place();
    let two = place.run("the 2 heaviest parcels in data/parcels.json", HEAVIEST, &json!({}));
    assert_eq!(two["result"], json!(["b", "d"]), "{two}");
    let code = HEAVIEST.replace("0, 2", "0, 1").replace("parcels.json", "hall.json");
    let one = place.run("the 1 heaviest parcels in data/hall.json", &code, &json!({}));
    assert_eq!((&one["result"], &one["capabilityId"]), (&json!(["y"]), &two["capabilityId"]), "{one}");
    runs(&mut place, "the 3 heaviest parcels in data/parcels.json", &json!(["b", "d", "c"]));
}

#[test]
fn parts_of_texts_are_lifted_and_nothing_else_of_them_changes() {
    let mut place = place();
    let first = place.run("note \"call Bob\" in notes/home.md", NOTE, &json!({}));
    assert_eq!(first["result"], "noted call Bob in notes/home.md", "{first}");
    runs(
        &mut place,
        "note \"buy `stamps` for $5\" in notes/work.md",
        &json!("noted buy `stamps` for $5 in notes/work.md"),
    );
    let written = std::fs::read_to_string(place.home.path("notes/work.md")).unwrap();
    assert_eq!(written, "- buy `stamps` for $5\n");
}

#[test]
fn a_lifted_form_that_is_another_program_is_dropped() {
    let mut place = place();
    // The engine prints the source of a function, so the lifted form does not return the same.
    let code = "await mcp.fs.list({ path: 'data' });\nconst mine = (r) => r.department === \"Sales\";\nreturn mine.toString().length;";
    let intent = "length of the test for the Sales department in data";
    let first = place.run(intent, code, &json!({}));
    assert_eq!(first["status"], "success", "{first}");
    place.settled();
    let same = place.wish(intent);
    assert_eq!((same["status"].as_str(), &same["result"]), (Some("success"), &first["result"]), "{same}");
    let other = place.wish("length of the test for the Engineering department in data");
    assert_eq!(other["status"], "suggestions", "{other}");
    let id = first["capabilityId"].as_str().unwrap();
    let parameters = place.capability_of(id).procedure.parameters_schema;
    assert_eq!(parameters["properties"]["department"], Value::Null, "{parameters}");
}

#[test]
fn a_number_that_is_an_argument_by_chance_is_left_alone() {
    let mut place = place();
    let code = "return (await mcp.math.round({ value: 96 / 2, digits: 2 })).value;";
    assert_eq!(place.run("split 96 euros between 2 people", code, &json!({}))["result"], 48);
    runs(&mut place, "split 100 euros between 8 people", &json!(12.5));
}
