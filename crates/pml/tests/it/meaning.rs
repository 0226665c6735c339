//! What is found by what it means, and what is put together for an intent that nothing learned serves.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::cli;
use crate::harness::{Home, eventually, node, npm_server, text};

fn discovered(home: &Home, intent: &str) -> Vec<Value> {
    let found = home.run(&["--json", "discover", intent]);
    let page: Value = serde_json::from_str(&found.stdout).unwrap_or_else(|_| panic!("{found:?}"));
    page["results"].as_array().unwrap().clone()
}

fn first(home: &Home, intent: &str) -> String {
    discovered(home, intent)
        .first()
        .map_or_else(String::new, |found| found["id"].as_str().unwrap().to_owned())
}

#[test]
fn tools_are_found_by_what_they_mean_and_in_french() {
    let home = Home::new("");
    // No word of these is the tool's own.
    for (intent, tool) in [
        ("how long is it from one birthday to the next", "time:diff"),
        ("remove a document from disk", "fs:delete"),
        ("combien de jours entre deux dates", "time:diff"),
        ("supprime le fichier", "fs:delete"),
        ("compte les mots d'un texte", "text:count"),
    ] {
        assert_eq!(first(&home, intent), tool, "{intent}: {:?}", discovered(&home, intent));
    }
    let reasons = discovered(&home, "how long is it from one birthday to the next")[0]["reasons"].to_string();
    assert!(reasons.contains("what is asked"), "{reasons}");

    let words = Home::new("[embedding]\nmodel = \"none\"\n");
    let reasons: Vec<String> = discovered(&words, "count the days between two dates")
        .iter()
        .map(|found| found["reasons"].to_string())
        .collect();
    assert!(
        !reasons.is_empty() && reasons.iter().all(|reason| !reason.contains("what is asked")),
        "{reasons:?}"
    );
}

#[test]
fn intents_of_every_kind_are_answered() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    let long = "read the file and count its lines. ".repeat(200);
    for intent in ["🙂🙂🙂", "\u{1}\u{2}\u{fffd}", "的", long.as_str(), "x"] {
        let answer = client.call("pml_discover", &json!({ "intent": intent }));
        assert_eq!(answer["isError"], false, "{answer}");
        assert!(answer["structuredContent"]["results"].is_array(), "{answer}");
    }
    for intent in [String::new(), "a".repeat(100_000)] {
        let answer = client.call("pml_discover", &json!({ "intent": intent }));
        assert_eq!(answer["isError"], true, "{answer}");
    }
}

#[test]
fn doctor_tells_who_reads() {
    let told = Home::new("").run(&["doctor"]).stdout;
    assert!(told.contains("all-MiniLM-L6-v2") && told.contains("has read all tools and intents"), "{told}");
}

/// A service that gives each text a vector made of its letters, and remembers what it was sent.
fn service(answers: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let remembered = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            serve(stream, answers, &remembered);
        }
    });
    (url, seen)
}

fn serve(stream: TcpStream, answers: &str, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or_default() == 0 {
                return;
            }
            if let Some(bytes) = line.to_lowercase().strip_prefix("content-length:") {
                length = bytes.trim().parse().unwrap();
            }
            head.push_str(&line);
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let request: Value = serde_json::from_slice(&body).unwrap();
        seen.lock().unwrap().push(format!("{head}{request}"));
        let (status, body) = if answers.is_empty() {
            let texts = request["input"].as_array().unwrap();
            let data: Vec<Value> = texts
                .iter()
                .enumerate()
                .map(|(index, text)| json!({ "index": index, "embedding": letters(text.as_str().unwrap()) }))
                .collect();
            ("200 OK", json!({ "data": data }).to_string())
        } else {
            ("500 Internal Server Error", answers.to_owned())
        };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn letters(text: &str) -> Vec<f32> {
    let mut counts = vec![0.1_f32; 26];
    for letter in text.to_lowercase().bytes().filter(u8::is_ascii_lowercase) {
        counts[usize::from(letter - b'a')] += 1.0;
    }
    counts
}

#[test]
fn a_service_says_what_texts_mean() {
    let (url, seen) = service("");
    let home =
        Home::new(&format!("[embedding]\nurl = \"{url}\"\nname = \"letters\"\nkey = \"s3cret-key\"\n"));
    assert!(!discovered(&home, "read a file").is_empty());
    let sent = std::mem::take(&mut *seen.lock().unwrap()).join("\n");
    assert!(sent.contains("POST /v1/embeddings"), "{sent}");
    assert!(sent.to_lowercase().contains("authorization: bearer s3cret-key"), "{sent}");
    assert!(sent.contains("\"model\":\"letters\"") && sent.contains("time diff:"), "{sent}");
    // What was read is kept: the next process asks for the request alone.
    assert!(!discovered(&home, "read a file").is_empty());
    let sent = seen.lock().unwrap().join("\n");
    assert!(sent.contains("read a file") && !sent.contains("time diff:"), "{sent}");
    let told = home.run(&["doctor"]).stdout;
    assert!(told.contains("letters at http://127.0.0.1"), "{told}");
}

#[test]
fn a_service_that_fails_leaves_words() {
    let (url, _) = service("the model is not loaded");
    let home = Home::new(&format!("[embedding]\nurl = \"{url}\"\nname = \"letters\"\n"));
    assert_eq!(first(&home, "count the days between two dates"), "time:diff");
    let mut told = String::new();
    // It has a moment to ask, which on a busy machine may be over before there is an answer.
    eventually("the failure is told", || {
        told = home.run(&["doctor"]).stdout;
        told.contains("found by their words alone")
    });
    assert!(told.contains("refuses with status 500: the model is not loaded"), "{told}");
}

fn suggested(home: &Home, intent: &str) -> Value {
    let told = home.run(&["--json", "execute", intent]);
    let told: Value = serde_json::from_str(&told.stdout).unwrap_or_else(|_| panic!("{told:?}"));
    assert_eq!(told["status"], "suggestions", "{told}");
    told["suggestions"]["suggestedDag"].clone()
}

#[test]
fn steps_become_a_dag_with_edges_and_no_invented_argument() {
    let home = Home::new("[builtin.http]\nhosts = [\"http://127.0.0.1:9\"]\n");
    let dag = suggested(&home, "read and parse a JSON file, then post it");
    let tasks = dag["dagStructure"]["tasks"].as_array().unwrap();
    let tools: Vec<&str> = tasks.iter().map(|task| task["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["fs:read", "json:parse", "http:post"], "{dag}");
    assert_eq!(tasks[0]["arguments"], json!({}));
    assert_eq!(tasks[1]["arguments"], json!({ "json": { "$ref": "t1.content" } }));
    assert_eq!(tasks[1]["dependsOn"], json!(["t1"]));
    assert_eq!(tasks[2]["dependsOn"], json!(["t2"]), "{dag}");
    let missing = dag["missing"].to_string();
    assert!(missing.contains("\"path\"") && missing.contains("\"url\""), "{missing}");
    let paths = dag["dependencyPaths"].to_string();
    assert!(paths.contains("`content` becomes `json`"), "{paths}");
    assert_eq!(dag["toolSchemas"]["fs:read"]["requiredInputs"], json!(["path"]));
    assert!(dag["toolSchemas"]["json:parse"]["outputSchema"].is_object(), "{dag}");
}

#[test]
fn values_of_the_intent_become_arguments_and_what_writes_is_only_suggested() {
    let home = Home::new("");
    std::fs::create_dir_all(home.path("notes")).unwrap();
    let dag = suggested(&home, "delete the file notes/old.txt");
    let task = &dag["dagStructure"]["tasks"][0];
    assert_eq!(
        (&task["tool"], &task["arguments"]["path"]),
        (&json!("fs:delete"), &json!("notes/old.txt")),
        "{dag}"
    );
    assert_eq!(dag["missing"], Value::Null, "{dag}");
}

#[test]
fn tools_and_what_was_learned_are_one_graph() {
    let home = Home::new("");
    let graph = home.run(&["--json", "graph"]);
    let graph: Value = serde_json::from_str(&graph.stdout).unwrap_or_else(|_| panic!("{graph:?}"));
    let edges = graph["edges"].as_array().unwrap();
    let fed = edges.iter().find(|edge| edge["from"] == "fs:read" && edge["to"] == "json:parse");
    let fed = fed.unwrap_or_else(|| panic!("{edges:?}"));
    assert_eq!((&fed["type"], &fed["coverage"]), (&json!("provides"), &json!("strict")));
    assert_eq!(fed["mapping"], json!([{ "from": "content", "to": "json", "how": fed["mapping"][0]["how"] }]));
    let ways = home.run(&["--json", "graph", "--from", "fs:read", "--to", "json:parse"]);
    let ways: Value = serde_json::from_str(&ways.stdout).unwrap();
    assert_eq!(ways["ways"][0]["through"], json!(["fs:read", "json:parse"]));
    let edge = &ways["ways"][0]["edges"][0];
    assert_eq!((&edge["type"], &edge["coverage"]), (&json!("provides"), &json!("strict")), "{ways}");
    assert_eq!(edge["mapping"][0]["to"], "json", "{ways}");
    assert!(edge["outputSchema"]["properties"]["content"].is_object(), "what is given: {ways}");
    assert!(edge["inputSchema"]["properties"]["json"].is_object(), "what is taken: {ways}");
    let nobody = home.run(&["graph", "--from", "fs:read", "--to", "no:tool"]);
    assert_eq!(nobody.code, 1);
    assert!(nobody.stderr.contains("`no:tool` is no tool or capability"), "{nobody:?}");
}

#[test]
fn what_served_a_request_is_found_for_one_that_means_the_same() {
    let home = Home::new("");
    std::fs::write(home.path("a.json"), "{\"a\": 1}").unwrap();
    let mut client = home.stdio(&[]);
    let code = "const f = await mcp.fs.read({ path: \"a.json\" });\n\
                return await mcp.json.parse({ json: f.content });";
    let run = |client: &mut crate::harness::Client, intent: &str, code: &str| {
        client.call(
            "pml_execute",
            &json!({ "intent": intent, "implementation": { "type": "code", "code": code } }),
        )
    };
    let done = run(&mut client, "load the settings from a.json", code);
    assert_eq!(done["structuredContent"]["status"], "success", "{done}");
    eventually("it is found by another wording", || {
        let found = client.call("pml_discover", &json!({ "intent": "fetch my preferences out of a.json" }));
        found["structuredContent"]["results"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["type"] == "capability"))
    });
}

#[test]
fn the_first_request_after_a_start_finds_tools_by_what_they_mean_or_says_that_it_cannot() {
    let home = Home::new("");
    let intent = "how many days between two dates";
    // The command embeds what there is and stores it.
    eventually("everything is embedded", || {
        let found = home.run(&["discover", intent, "--explain"]);
        found.stdout.contains("means nearly") && !found.stderr.contains("not embedded yet")
    });
    let mut client = home.stdio(&[]);
    let first = client.call("pml_discover", &json!({ "intent": intent, "limit": 3 }));
    let told = &first["structuredContent"];
    let by_meaning = told["results"].to_string().contains("means nearly");
    let says_why = told["notes"].to_string().contains("until then words alone find them");
    assert!(by_meaning || says_why, "{first}");

    let bare = Home::new("");
    let mut client = bare.stdio(&[]);
    let first = client.call("pml_discover", &json!({ "intent": intent, "limit": 3 }));
    let notes = first["structuredContent"]["notes"].to_string();
    assert!(notes.contains("until then words alone find them"), "{first}");
}

/// A home whose servers have the same tools, but for `attic`, where they take something else, and `shredder`, where
/// they destroy something.
fn with_twins() -> Home {
    let tools = |of_picture: &str, annotations: &Value| {
        let tool = |name: &str, description: &str| {
            let schema = json!({
                "type": "object", "properties": { "picture": { "type": of_picture } }, "required": ["picture"],
            });
            json!({ "name": name, "description": description, "inputSchema": schema, "annotations": annotations })
        };
        json!([
            tool("rotate_picture", "Rotate a picture by some degrees"),
            tool("turn_picture", "Rotate a picture by some degrees. DEPRECATED: use rotate_picture instead."),
            tool("crop_picture", "Cut the edges off a picture"),
        ])
    };
    let plain = tools("string", &json!({}));
    let home = cli::with_small_server("", &plain);
    let script = home.path("small.mjs");
    let mut config = String::new();
    for (name, tools) in [
        ("studio", plain.clone()),
        ("darkroom", plain),
        ("attic", tools("integer", &json!({}))),
        ("shredder", tools("string", &json!({ "destructiveHint": true }))),
    ] {
        let file = home.path(&format!("{name}.json"));
        std::fs::write(&file, tools.to_string()).unwrap();
        config
            .push_str(&format!("[servers.{name}]\ncommand = {:?}\nargs = [{script:?}, {file:?}]\n", node()));
    }
    home.configure(&config);
    assert_eq!(home.run(&["doctor"]).code, 0);
    home
}

#[test]
fn one_result_stands_for_the_same_tool_of_several_servers() {
    let home = with_twins();
    let found = discovered(&home, "rotate a picture");
    let of = |name: &str| found.iter().filter(|one| one["id"].to_string().contains(name)).collect::<Vec<_>>();
    // What takes another type or destroys something is not the same.
    assert_eq!(of(":rotate_picture").len(), 3, "{found:?}");
    let (same, others): (Vec<&Value>, Vec<&Value>) =
        of(":rotate_picture").into_iter().partition(|one| one.get("also").is_some());
    assert_eq!((same.len(), others.len()), (1, 2), "{found:?}");
    let mut both = vec![same[0]["id"].clone(), same[0]["also"][0].clone()];
    both.sort_by_key(ToString::to_string);
    assert_eq!(json!(both), json!(["darkroom:rotate_picture", "studio:rotate_picture"]), "{found:?}");
    let other = both.iter().find(|id| **id != same[0]["id"]).and_then(Value::as_str).unwrap();
    let mut client = home.stdio(&[]);
    let told = client.call("pml_discover", &json!({ "intent": "rotate a picture" }));
    assert!(text(&told).contains(&format!("(also {other})")), "{}", text(&told));
    let shown = home.run(&["discover", "rotate a picture"]).stdout;
    assert!(shown.contains(&format!("the same: {other}")), "{shown}");
    // A tool that stands behind another can still be called.
    let called = client.call("pml_execute", &json!({
        "intent": "rotate it", "implementation": { "type": "tool", "toolId": other, "defaultArgs": { "picture": "a.png" } },
    }));
    assert_eq!(called["isError"], false, "{called}");
}

#[test]
fn a_server_that_copies_the_tools_of_another_stands_behind_it() {
    let home = with_twins();
    let (script, file) = (home.path("small.mjs"), home.path("studio.json"));
    let server =
        |name: &str| format!("[servers.{name}]\ncommand = {:?}\nargs = [{script:?}, {file:?}]\n", node());
    home.configure(&server("studio"));
    assert_eq!(home.run(&["doctor"]).code, 0);
    let id = |home: &Home| first(home, "rotate a picture by some degrees");
    assert_eq!(id(&home), "studio:rotate_picture");
    // Its name comes first in the alphabet, and the request says it.
    home.configure(&format!("{}{}", server("degrees"), server("studio")));
    assert_eq!(home.run(&["doctor"]).code, 0);
    let found = discovered(&home, "rotate a picture by some degrees");
    assert_eq!(found[0]["also"], json!(["degrees:rotate_picture"]), "{found:?}");
    assert_eq!(found[0]["id"], "studio:rotate_picture");
}

#[test]
fn no_result_is_less_probable_than_what_was_asked_for() {
    let home = with_twins();
    let mut client = home.stdio(&[]);
    let mut found = |least: f64| {
        let asked = json!({ "intent": "turn the picture", "limit": 100, "filter": { "type": "tool", "minScore": least } });
        client.call("pml_discover", &asked)["structuredContent"]["results"].as_array().unwrap().clone()
    };
    let scores =
        |found: &[Value]| -> Vec<f64> { found.iter().map(|one| one["score"].as_f64().unwrap()).collect() };
    let lowest = scores(&found(0.0)).into_iter().fold(1.0, f64::min);
    let least = lowest + 0.001;
    let left = scores(&found(least));
    assert!(left.iter().all(|score| *score >= least), "{left:?}");
}

#[test]
fn the_steps_of_a_sentence_and_everyday_words_find_their_tools() {
    let home = Home::new("");
    home.configure(&format!(
        "[servers.memory]\n{}\nenv = {{ MEMORY_FILE_PATH = {:?} }}\n",
        npm_server("server-memory"),
        home.path("memory.jsonl"),
    ));
    assert_eq!(home.run(&["doctor"]).code, 0);
    let among = |intent: &str| -> Vec<String> {
        let found = discovered(&home, intent);
        found.iter().take(5).map(|found| found["id"].as_str().unwrap().to_owned()).collect()
    };
    let steps = among("read a csv file and sum a column");
    for tool in ["fs:read", "csv:parse", "math:statistics"] {
        assert!(steps.iter().any(|id| id == tool), "{tool}: {steps:?}");
    }
    for (intent, tools) in [
        (
            "remember that Bob prefers tea",
            &["memory:create_entities", "memory:add_observations", "memory:create_relations"][..],
        ),
        ("what do you know about Bob", &["memory:search_nodes", "memory:open_nodes", "memory:read_graph"]),
    ] {
        let found = among(intent);
        assert!(found.iter().any(|id| tools.contains(&id.as_str())), "{intent}: {found:?}");
    }
}

#[test]
fn pages_of_results_do_not_overlap_where_results_stand_for_others() {
    let home = with_twins();
    let all = discovered(&home, "rotate a picture");
    let mut client = home.stdio(&[]);
    let mut ids = Vec::new();
    for offset in [0, 3, 6] {
        let page = json!({ "intent": "rotate a picture", "limit": 3, "offset": offset });
        let page = client.call("pml_discover", &page)["structuredContent"].clone();
        ids.extend(page["results"].as_array().unwrap().iter().map(|one| one["id"].clone()));
    }
    let first: Vec<Value> = all.iter().take(9).map(|one| one["id"].clone()).collect();
    assert_eq!(ids[..first.len().min(9)], first);
}

#[test]
fn a_deprecated_tool_comes_after_all_others() {
    let home = with_twins();
    let mut client = home.stdio(&[]);
    let page = client.call("pml_discover", &json!({ "intent": "turn the picture", "limit": 100 }));
    let found = page["structuredContent"]["results"].as_array().unwrap().clone();
    let places = |name: &str| -> Vec<usize> {
        (0..found.len()).filter(|at| found[*at]["id"].to_string().contains(name)).collect()
    };
    let (deprecated, others) = (places(":turn_picture"), places(":rotate_picture"));
    assert_eq!((deprecated.len(), others.len()), (3, 3), "{found:?}");
    assert_eq!(deprecated, (found.len() - 3..found.len()).collect::<Vec<_>>(), "{found:?}");
    let scores: Vec<f64> = found.iter().map(|one| one["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|one, other| one >= other), "{scores:?}");
}
