//! A path that is explored, chosen, run for real and learned.

use serde_json::{Value, json};
use tiktoken_rs::cl100k_base_singleton;

use crate::place::{ALL, Place};
use crate::{explore, tools_of};

const INTENT: &str = "convert the CSV in data/ to JSON and check it against the schema";

fn place() -> Place {
    let place = Place::start(ALL);
    std::fs::create_dir(place.home.path("data")).unwrap();
    std::fs::write(place.home.path("data/orders.csv"), "id,customer\n1,Ada\n2,Grace\n").unwrap();
    let schema = json!({
        "type": "array",
        "items": { "type": "object", "required": ["id", "customer"], "properties": { "id": { "pattern": "^[0-9]+$" } } }
    });
    std::fs::write(place.home.path("data/orders.schema.json"), schema.to_string()).unwrap();
    place
}

/// The first viable path that ends in a check of all rows.
#[track_caller]
fn checking_path(told: &Value) -> Value {
    let viable = told["viablePaths"].as_array().unwrap_or_else(|| panic!("{told:#}"));
    let checks =
        |path: &&Value| tools_of(path).contains(&"json:validate") && tools_of(path).contains(&"csv:parse");
    viable.iter().find(checks).unwrap_or_else(|| panic!("{told:#}")).clone()
}

#[test]
fn an_intent_that_nobody_served_is_explored_chosen_and_run() {
    let mut place = place();
    let only = explore(&mut place, &json!({ "intent": INTENT, "maxPaths": 1 }));
    let told = explore(&mut place, &json!({ "intent": INTENT, "maxPaths": 5 }));
    // The first path does what was meant, however many are wanted.
    let path = told["viablePaths"][0].clone();
    assert_eq!(tools_of(&path), tools_of(&only["viablePaths"][0]), "{only:#}");
    assert!(path["result"].to_string().contains("\"valid\":true"), "{told:#}");
    assert!(tools_of(&path).contains(&"csv:parse"), "{told:#}");
    assert_eq!(path["mockedExecutions"], 0, "all of it only reads: {told:#}");
    assert!(path["confidence"].as_f64().unwrap() > 0.0, "{told:#}");
    assert_eq!(told["trace"]["exploratory"], true, "{told:#}");
    assert_eq!(place.capabilities().len(), 0, "an exploration teaches nothing by itself");
    let ran = place.gateway.call("pml_execute", &json!({ "explorePath": path["pathId"], "confirm": true }));
    assert_eq!(ran["status"], "success", "{ran:#}");
    assert!(ran["result"].to_string().contains("true"), "{ran:#}");
    let learned = place.capability();
    assert_eq!(Some(learned.procedure.id.to_string().as_str()), ran["capabilityId"].as_str());
    let again = place.wish(INTENT);
    assert_eq!(again["status"], "success", "{again:#}");
    assert_eq!(again["capabilityId"], ran["capabilityId"], "{again:#}");
    assert_eq!(again["result"], ran["result"], "{again:#}");
}

#[test]
fn values_of_the_context_are_used_where_their_names_are() {
    let mut place = place();
    let schema = json!({ "type": "array", "items": { "required": ["price"] } });
    let context = json!({ "path": "data/orders.csv", "schema": schema });
    let told = explore(
        &mut place,
        &json!({ "intent": "parse the CSV and check it against the schema", "context": context }),
    );
    let path = checking_path(&told);
    assert!(path["outputs"].to_string().contains("price"), "the check names what is missing: {told:#}");
}

#[test]
fn what_would_be_written_is_made_up_and_told() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("notes.txt"), "hello").unwrap();
    let told = explore(&mut place, &json!({ "intent": "read notes.txt and delete notes.txt" }));
    let viable = told["viablePaths"].as_array().unwrap();
    let path = viable
        .iter()
        .find(|path| tools_of(path).contains(&"fs:delete"))
        .unwrap_or_else(|| panic!("{told:#}"));
    assert!(path["mockedExecutions"].as_u64().unwrap() >= 1, "{told:#}");
    assert!(path["effects"].to_string().contains("notes.txt"), "{told:#}");
    assert!(place.home.path("notes.txt").exists(), "exploring deletes nothing");
    let ran = place.gateway.call("pml_execute", &json!({ "explorePath": path["pathId"], "confirm": true }));
    assert_eq!(ran["status"], "success", "{ran:#}");
    assert!(!place.home.path("notes.txt").exists(), "running it does");
}

#[test]
fn three_paths_are_told_in_few_tokens() {
    let mut place = place();
    for (file, text) in
        [("notes.txt", "hello\n".repeat(2_000)), ("long.json", json!(vec!["x".repeat(90); 200]).to_string())]
    {
        std::fs::write(place.home.path(file), text).unwrap();
    }
    for intent in [
        INTENT,
        "read notes.txt",
        "read notes.txt and delete notes.txt",
        "read notes.txt and write its lines to copy.txt",
        "parse long.json and count its elements",
        "list the files in data/ and write their names to names.txt",
        "search data/ for the text customer and evaluate the arithmetic expression 6 * 7",
        "evaluate the arithmetic expression",
    ] {
        let text = place.text("pml_explore", &json!({ "intent": intent, "maxPaths": 3 }));
        let tokens = cl100k_base_singleton().encode_with_special_tokens(&text).len();
        println!("{tokens} tokens for “{intent}”");
        assert!(tokens <= 600, "{tokens} tokens for “{intent}”:\n{text}");
        assert!(text.contains("explorePath"), "“{intent}”: {text}");
    }
}

#[test]
fn arguments_that_the_caller_dictates_are_values_of_the_paths() {
    let mut place = place();
    let schema = json!({ "type": "array", "items": { "required": ["price"] } });
    let args = json!({ "path": "data/orders.csv", "schema": schema });
    let told = explore(
        &mut place,
        &json!({ "intent": "parse the CSV and check it against the schema", "mockConfig": { "args": args.clone() } }),
    );
    let path = checking_path(&told);
    assert!(path["outputs"].to_string().contains("price"), "the check names what is missing: {told:#}");
    // They are for the trial alone: running the path wants values of its own.
    assert_eq!(path["missing"], json!(["path", "schema"]), "{told:#}");
    let confirm = json!({ "explorePath": path["pathId"], "confirm": true });
    let refused = place.gateway.call("pml_execute", &confirm);
    assert!(refused.to_string().contains("made-up values for `path`, `schema`"), "{refused:#}");
    let mut request = confirm;
    request["context"] = args;
    let ran = place.gateway.call("pml_execute", &request);
    assert_eq!(ran["status"], "success", "{ran:#}");
}

#[test]
fn a_learned_capability_serves_a_step_of_a_path() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("sales.csv"), "item,amount\npen,3\nink,39\n").unwrap();
    let code = "const { content } = await mcp.fs.read({ path: args.path });\n\
         const rows = content.trim().split('\\n').slice(1);\n\
         return { content: `total: ${rows.reduce((sum, row) => sum + Number(row.split(',')[1]), 0)}` };";
    place.run("add up the amounts in sales.csv", code, &json!({ "path": "sales.csv" }));
    let name = place.capability().name;
    std::fs::write(place.home.path("march.csv"), "item,amount\ncap,7\n").unwrap();
    let intent = "add up the amounts in march.csv and write it to total.txt";
    let told = explore(&mut place, &json!({ "intent": intent, "maxPaths": 5 }));
    let viable = told["viablePaths"].as_array().unwrap_or_else(|| panic!("{told:#}"));
    let path = viable.iter().find(|path| tools_of(path) == [name.as_str(), "fs:write"]);
    let path = path.unwrap_or_else(|| panic!("{name}: {told:#}")).clone();
    assert_eq!(path["realExecutions"], 1, "the capability only reads: {told:#}");
    assert!(path["effects"].to_string().contains("total.txt"), "{told:#}");
    assert!(path["history"].to_string().contains(&name), "{told:#}");
    assert!(!place.home.path("total.txt").exists(), "exploring writes nothing");
    let ran = place.gateway.call("pml_execute", &json!({ "explorePath": path["pathId"], "confirm": true }));
    assert_eq!(ran["status"], "success", "{ran:#}");
    assert_eq!(std::fs::read_to_string(place.home.path("total.txt")).unwrap(), "total: 7");
}

#[test]
fn a_capability_that_serves_the_whole_intent_is_one_of_the_paths() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("notes.txt"), "one\ntwo\n").unwrap();
    let code = "const { content } = await mcp.fs.read({ path: args.path });\nreturn content.trim().split('\\n').length;";
    place.run("count the lines of notes.txt", code, &json!({ "path": "notes.txt" }));
    let name = place.capability().name;
    std::fs::write(place.home.path("log.txt"), "one\ntwo\nthree\n").unwrap();
    let told = explore(&mut place, &json!({ "intent": "count the lines of log.txt" }));
    let viable = told["viablePaths"].as_array().unwrap_or_else(|| panic!("{told:#}"));
    let path = viable.iter().find(|path| tools_of(path) == [name.as_str()]);
    let path = path.unwrap_or_else(|| panic!("{told:#}"));
    assert!(path["result"].to_string().contains('3'), "{told:#}");
}

/// Requests like the workflows that people build in n8n, with the calls that serve them and the file that they leave.
const WORKFLOWS: &[(&str, &[&str], &str, &str)] = &[(
    "read orders.csv, parse it as CSV and write it to orders.json",
    &["fs:read", "csv:parse", "fs:write"],
    "orders.json",
    "Grace",
)];

#[test]
fn workflows_of_several_steps_are_explored_and_run() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("orders.csv"), "id,customer\n1,Ada\n2,Grace\n").unwrap();
    std::fs::write(place.home.path("notes.txt"), "one two three").unwrap();
    for (intent, tools, file, content) in WORKFLOWS {
        let told = explore(&mut place, &json!({ "intent": intent, "maxPaths": 5 }));
        let viable = told["viablePaths"].as_array().unwrap_or_else(|| panic!("“{intent}”: {told:#}"));
        let path = viable.iter().find(|path| tools_of(path) == *tools);
        let path = path.unwrap_or_else(|| panic!("“{intent}” is not served by {tools:?}: {told:#}"));
        assert!(!place.home.path(file).exists(), "exploring “{intent}” wrote `{file}`");
        let confirm = json!({ "explorePath": path["pathId"], "confirm": true });
        let ran = place.gateway.call("pml_execute", &confirm);
        assert_eq!(ran["status"], "success", "“{intent}”: {ran:#}");
        let written = std::fs::read_to_string(place.home.path(file)).unwrap();
        assert!(written.contains(content), "“{intent}”: {written}");
    }
}
