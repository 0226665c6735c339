//! What worked once is used again: with other arguments, and only where that is safe.

use pml_model::capability::{CapabilitySource, CapabilityState};
use serde_json::{Value, json};

use crate::place::{ALL, Place};

const COUNT: &str = "const file = await mcp.fs.read({ path: 'notes/a.txt' });\nreturn file.content.split(/\\s+/).filter(Boolean).length;";

fn notes(place: &Place) {
    std::fs::create_dir(place.home.path("notes")).unwrap();
    std::fs::write(place.home.path("notes/a.txt"), "one two three").unwrap();
    std::fs::write(place.home.path("notes/b.txt"), "one two three four five").unwrap();
}

#[test]
fn a_similar_intent_is_served_with_other_arguments() {
    let mut place = Place::start(ALL);
    notes(&place);
    let first = place.run("count the words in notes/a.txt", COUNT, &json!({}));
    assert_eq!((first["status"].as_str(), &first["result"]), (Some("success"), &json!(3)), "{first}");
    let second = place.wish("count the words in notes/b.txt");
    assert_eq!((second["status"].as_str(), &second["result"]), (Some("success"), &json!(5)), "{second}");
    assert_eq!(first["capabilityId"], second["capabilityId"]);
    place.settled();
    let third = place.wish("how many words are in notes/b.txt?");
    assert_eq!((third["status"].as_str(), &third["result"]), (Some("success"), &json!(5)), "{third}");
    assert_eq!(first["capabilityId"], third["capabilityId"]);
    let capability = place.capability();
    assert_eq!(capability.statistics.success_count, 3);
    let examples = &capability.procedure.parameters_schema["properties"]["path"];
    assert_eq!(examples["default"], "notes/a.txt");
}

#[test]
fn a_document_serves_a_similar_intent_with_other_arguments_too() {
    let mut place = Place::start(ALL);
    notes(&place);
    let tasks = json!({ "tasks": [
        { "id": "file", "tool": "fs:read", "arguments": { "path": "notes/a.txt" } },
        { "id": "words", "tool": "text:split", "arguments": { "text": { "$ref": "file.content" }, "separator": { "$literal": " " } } },
    ] });
    let first = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "list the words in notes/a.txt", "implementation": { "type": "dag", "dagStructure": tasks } }),
    );
    assert_eq!(first["status"], "success", "{first}");
    let second = place.wish("list the words in notes/b.txt");
    assert_eq!(second["status"], "success", "{second}");
    assert_eq!(first["capabilityId"], second["capabilityId"]);
    assert!(!first["result"].to_string().contains("five"), "{first}");
    assert!(second["result"].to_string().contains("five"), "{second}");
    let path = &place.capability().procedure.parameters_schema["properties"]["path"];
    assert_eq!(path["default"], "notes/a.txt");
}

#[test]
fn what_cannot_be_given_another_value_is_no_parameter() {
    let mut place = Place::start(ALL);
    notes(&place);
    let code = "const f = async (args: any) => mcp.fs.read({ path: 'notes/a.txt' });\nconst file = await f({}); return file.content;";
    let first = place.run("read notes/a.txt", code, &json!({}));
    assert_eq!(first["result"], "one two three", "{first}");
    let other = place.wish("read notes/b.txt");
    assert_eq!(other["status"], "suggestions", "it would read the first file: {other}");
    let same = place.wish("read notes/a.txt");
    assert_eq!(same["result"], "one two three", "{same}");
    let procedure = place.capability().procedure;
    assert_eq!(procedure.parameters_schema["properties"], json!({}), "{procedure:?}");
}

#[test]
fn a_document_with_a_secret_is_kept_without_it() {
    let mut place = Place::start(ALL);
    let secret = "canary-x9QzK7wPtL3vB8mR";
    let tasks = json!({ "tasks": [{ "id": "note", "tool": "json:stringify", "arguments": { "data": { "password": secret } } }] });
    let told = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "spell the login", "implementation": { "type": "dag", "dagStructure": tasks } }),
    );
    assert_eq!(told["status"], "success", "{told}");
    let procedure = place.capability().procedure;
    assert!(!format!("{procedure:?}").contains(secret), "{procedure:?}");
    assert_eq!(procedure.parameters_schema["required"], json!(["password"]));
    let CapabilitySource::Dag { dag_structure, template: None } = &procedure.source else {
        panic!("{procedure:?}")
    };
    assert!(dag_structure.get().contains(r#"{"password":{"$ref":"args.password"}}"#), "{dag_structure}");
}

#[test]
fn a_secret_that_stands_beside_its_name_is_not_kept_either() {
    let secret = "lettuce tomato";
    let pair = json!({ "name": "api_key", "value": secret });
    let other = json!({ "header": "X-Api-Key", "in": "query", "value": secret });
    let code = |code: String| json!({ "type": "code", "code": code });
    let tasks = |data: &Value| json!({ "tasks": [{ "id": "t", "tool": "json:stringify", "arguments": { "data": data } }] });
    for (what, implementation, context) in [
        ("a program", code(format!("return mcp.json.stringify({{ data: {pair} }})")), json!({})),
        (
            "far from the call",
            code(format!(
                "const h = {{ value: '{secret}', key: 'api_key' }}; return mcp.json.stringify({{ data: [h, args.n] }})"
            )),
            json!({ "n": 1 }),
        ),
        (
            "an argument",
            code("return mcp.json.stringify({ data: { name: 'api_key', value: args.secret } })".to_owned()),
            json!({ "secret": secret }),
        ),
        (
            "arguments",
            code("return mcp.json.stringify({ data: [args.name, args.value.length] })".to_owned()),
            pair.clone(),
        ),
        ("a document", json!({ "type": "dag", "dagStructure": tasks(&other) }), json!({})),
        ("a list", json!({ "type": "dag", "dagStructure": tasks(&json!([pair, other])) }), json!({})),
        (
            "a call",
            json!({ "type": "tool", "toolId": "json:stringify", "defaultArgs": { "data": pair } }),
            json!({}),
        ),
    ] {
        let mut place = Place::start(ALL);
        let told = place.gateway.call(
            "pml_execute",
            &json!({ "intent": "spell it", "implementation": implementation, "context": context }),
        );
        assert_eq!(told["status"], "success", "{what}: {told}");
        let trace = place.trace(&told);
        assert!(!format!("{trace:?}").contains(secret), "{what}: {trace:?}");
        for kept in place.capabilities() {
            assert!(!format!("{kept:?}").contains(secret), "{what}: {kept:?}");
        }
    }
}

#[test]
fn what_stands_beside_the_name_of_a_secret_has_to_be_given_each_time() {
    let mut place = Place::start(ALL);
    let code = "return mcp.json.stringify({ data: { name: 'api_key', value: 'lettuce' } })";
    let told = place.run("spell the pair", code, &json!({}));
    assert_eq!((told["status"].as_str(), &told["withheld"]), (Some("success"), &json!(["value"])), "{told}");
    let again = json!({ "intent": "spell the pair", "context": { "value": "cabbage" },
        "implementation": { "type": "capability", "id": told["capabilityId"] } });
    let told = place.gateway.call("pml_execute", &again);
    assert!(told["result"].to_string().contains("cabbage"), "{told}");
    let procedure = place.capability().procedure;
    assert_eq!(procedure.parameters_schema["required"], json!(["value"]));
    assert_eq!(procedure.parameters_schema["properties"]["name"]["default"], "api_key");
    assert!(!format!("{procedure:?}").contains("cabbage"), "{procedure:?}");
}

#[test]
fn what_is_not_said_is_not_guessed() {
    let mut place = Place::start(ALL);
    notes(&place);
    place.run("count the words in notes/a.txt", COUNT, &json!({}));
    let told = place.wish("count the words");
    assert_eq!(told["status"], "suggestions", "{told}");
    let candidate = &told["suggestions"]["candidates"][0];
    assert_eq!(candidate["missing"][0]["name"], "path", "{told}");
    let id = candidate["id"].as_str().unwrap();
    let told = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "count the words", "implementation": { "type": "capability", "id": id },
            "context": { "path": "notes/b.txt" } }),
    );
    assert_eq!(told["result"], 5, "{told}");
    let other = place.wish("write a poem about autumn");
    assert_eq!(other["status"], "suggestions", "{other}");
    let unknown = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "x", "implementation": { "type": "capability", "id": "nobody" } }),
    );
    assert_eq!(unknown["error"]["code"], "NOT_FOUND", "{unknown}");
}

#[test]
fn values_that_were_given_by_name_move_with_the_words() {
    let mut place = Place::start(ALL);
    notes(&place);
    let code = "const file = await mcp.fs.read({ path: args.path }); return file.content.length;";
    let context = json!({ "path": "notes/a.txt" });
    let first = place.run("count the characters of notes/a.txt", code, &context);
    assert_eq!(first["result"], 13, "{first}");
    let second = place.wish("count the characters of notes/b.txt");
    assert_eq!((second["status"].as_str(), &second["result"]), (Some("success"), &json!(23)), "{second}");
    let vague = place.wish("count the characters");
    assert_eq!(vague["status"], "suggestions", "{vague}");
    let named = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "count the characters of notes/b.txt", "context": { "path": "notes/b.txt" },
            "implementation": { "type": "capability", "id": first["capabilityId"] } }),
    );
    assert_eq!(named["result"], 23, "{named}");
}

#[test]
fn whoever_names_a_procedure_takes_what_nobody_spoke_of_as_it_is() {
    let mut place = Place::start(ALL);
    let code = "const text = await mcp.json.stringify({ data: [1], indent: 2 });\n\
        await mcp.fs.write({ path: 'out.json', content: text.json }); return 'written'";
    let first = place.run("write the list to out.json", code, &json!({}));
    assert_eq!(first["status"], "success", "{first}");
    let alone = place.wish("write the list to third.json");
    assert_eq!(alone["status"], "success", "what no intent names stands in nobody's way: {alone}");
    assert_eq!(std::fs::read_to_string(place.home.path("third.json")).unwrap(), "[\n  1\n]");
    let named = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "write the list to other.json", "context": { "path": "other.json" },
            "implementation": { "type": "capability", "id": first["capabilityId"] } }),
    );
    assert_eq!(named["status"], "success", "{named}");
    assert_eq!(std::fs::read_to_string(place.home.path("other.json")).unwrap(), "[\n  1\n]");
    let unknown = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "write the list", "context": { "pfad": "other.json" },
            "implementation": { "type": "capability", "id": first["capabilityId"] } }),
    );
    assert_eq!(unknown["status"], "suggestions", "a name it does not know: {unknown}");
}

#[test]
fn a_literal_that_looks_like_a_secret_is_not_kept_and_that_is_told() {
    // Known by the configuration alone: neither its name nor its shape says what it is.
    let secret = "plainlookingvalue77";
    let config = format!(
        "{ALL}[servers.off]\ncommand = \"true\"\nenabled = false\nenv = {{ API_TOKEN = \"{secret}\" }}\n"
    );
    let mut place = Place::start(&config);
    let code = format!("return mcp.text.count({{ text: '{secret}' }})");
    let told = place.run("count the characters of the text", &code, &json!({}));
    assert_eq!(told["withheld"], json!(["text"]), "{told}");
    let schema = place.capability().procedure.parameters_schema;
    assert_eq!(schema["required"], json!(["text"]), "{schema}");
    assert!(!schema.to_string().contains(secret), "{schema}");
}

#[test]
fn what_writes_never_runs_on_a_default_that_was_not_repeated() {
    let mut place = Place::start(ALL);
    let code = "await mcp.fs.write({ path: 'out.txt', content: 'hello there' }); return 'written'";
    place.run("write hello there to out.txt", code, &json!({}));
    std::fs::remove_file(place.home.path("out.txt")).unwrap();
    for intent in ["write hello there", "write to out.txt", "write hello there to other.txt and copy.txt"] {
        let told = place.wish(intent);
        assert_eq!(told["status"], "suggestions", "{intent}: {told}");
    }
    assert!(!place.home.path("out.txt").exists(), "nothing was written");
    let told = place.wish("write 'hello there' to other.txt");
    assert_eq!(told["status"], "success", "both were said: {told}");
    assert_eq!(std::fs::read_to_string(place.home.path("other.txt")).unwrap(), "hello there");
    assert!(!place.home.path("out.txt").exists());
}

#[test]
fn one_that_asks_a_person_is_not_run_unnamed_before_it_is_known() {
    let mut place = Place::start("[builtin.fs]\nroot = \".\"\n[approvals]\nby = \"client\"\n");
    let code = "await mcp.fs.write({ path: args.path, content: args.content }); return 'written'";
    let context = json!({ "path": "out.txt", "content": "x" });
    let asks = place.run("put the content into the file", code, &context);
    assert_eq!(asks["status"], "approval_required", "{asks}");
    let run = asks["workflowId"].clone();
    let done = place.gateway.call("pml_continue", &json!({ "workflow_id": run, "approved": true }));
    assert_eq!(done["status"], "success", "{done}");
    assert!(place.capability().approved, "a person allowed the run that made it");
    let again = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "put the content into the file", "context": { "path": "out.txt", "content": "y" } }),
    );
    assert_eq!(again["status"], "approval_required", "it is run, and asks: {again}");
}

#[test]
fn what_stops_working_sinks_and_comes_back() {
    let mut place = Place::start(ALL);
    notes(&place);
    let code = "const file = await mcp.fs.read({ path: 'notes/a.txt' }); return file.content.length;";
    let first = place.run("measure the length of the note notes/a.txt", code, &json!({}));
    let id = first["capabilityId"].as_str().unwrap().to_owned();
    let rank = |place: &mut Place| {
        let found = place
            .gateway
            .call("pml_discover", &json!({ "intent": "measure the length of the note", "limit": 50 }));
        let results: Vec<Value> = found["results"].as_array().unwrap().clone();
        let at = results.iter().position(|result| result["id"] == id.as_str());
        at.map(|at| (at, results[at]["score"].as_f64().unwrap()))
    };
    place.settled();
    let (at, score) = rank(&mut place).unwrap();
    assert_eq!(at, 0, "it is found first");
    std::fs::rename(place.home.path("notes/a.txt"), place.home.path("notes/gone.txt")).unwrap();
    let mut last = score;
    for failure in 1..=3 {
        let told = place.run("measure the length of the note notes/a.txt", code, &json!({}));
        assert_eq!(told["status"], "failed", "{told}");
        place.settled();
        match rank(&mut place) {
            Some((_, now)) if failure < 3 => {
                assert!(now < last, "{now} after {failure} failures, {last} before");
                last = now;
            }
            Some(found) => panic!("degraded ones are not offered: {found:?}"),
            None => assert_eq!(failure, 3),
        }
    }
    let degraded = place.capability_of(&id);
    assert_eq!(degraded.state, CapabilityState::Degraded);
    assert!(degraded.degraded_because.unwrap().starts_with("3 failures in a row"));
    std::fs::rename(place.home.path("notes/gone.txt"), place.home.path("notes/a.txt")).unwrap();
    place.run("measure the length of the note notes/a.txt", code, &json!({}));
    assert_eq!(place.capability_of(&id).state, CapabilityState::Active);
    let (_, back) = rank(&mut place).unwrap();
    assert!(back > 0.0 && back < score, "it is offered again, and not yet trusted as before");
}

#[test]
fn a_name_that_holds_a_secret_is_not_taken() {
    let mut place = Place::start(ALL);
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let code = "pml.hint({ name: args.called }); return mcp.math.evaluate({ expression: '1 + 1' })";
    let told = place.run("add one to one", code, &json!({ "called": secret }));
    assert_eq!(told["status"], "success", "{told}");
    assert_eq!(place.capability().name, "addOneToOne");
}

#[test]
fn a_task_that_calls_what_it_does_not_declare_keeps_its_document_from_being_promoted() {
    let mut place = Place::start(ALL);
    let code = "const name = args.tool; return mcp.math[name]({ expression: '1 + 1' })";
    let tasks = json!({ "tasks": [{ "id": "sum", "code": code, "arguments": { "tool": "evaluate" } }] });
    let asked =
        json!({ "intent": "call something", "implementation": { "type": "dag", "dagStructure": tasks } });
    let told = place.gateway.call("pml_execute", &asked);
    assert_eq!(told["status"], "success", "{told}");
    let known = place.capabilities();
    assert!(known.iter().all(|capability| capability.state == CapabilityState::Planned), "{known:?}");
}

#[test]
fn a_program_that_calls_what_it_does_not_declare_is_never_promoted() {
    let mut place = Place::start(ALL);
    let code = "const name = args.tool; return mcp.math[name]({ expression: '1 + 1' })";
    let told = place.run("call something", code, &json!({ "tool": "evaluate" }));
    assert_eq!(told["result"]["value"], 2, "{told}");
    let known = place.capabilities();
    assert!(known.iter().all(|capability| capability.state == CapabilityState::Planned), "{known:?}");
}
