//! What servers offer beside tools, as it passes through the gateway: prompts, resources, completions, roots, questions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::{Client, Home, Served, material, node, text};
use crate::http::{modern_as, modern_by};

/// The `[servers.…]` table of a server with these options.
fn server(home: &Home, name: &str, options: &[&str]) -> String {
    let ledger = home.path(&format!("{name}.ledger")).display().to_string();
    let script = material("fixture/passing.mjs").display().to_string();
    let args: Vec<&str> = [&[script.as_str(), "--ledger", &ledger], options].concat();
    format!("[servers.{name}]\ncommand = {}\nargs = {}\n", json!(node()), json!(args))
}

/// A home with these servers, about whose tools nobody is asked.
fn home(config: &str, servers: &[(&str, &[&str])]) -> Home {
    let home = Home::new("");
    let tables: Vec<String> = servers.iter().map(|(name, options)| server(&home, name, options)).collect();
    let tables = tables.concat();
    home.configure(&format!("{config}\n{tables}[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n"));
    assert_eq!(home.run(&["doctor"]).code, 0);
    home
}

/// The requests with this method that a server wrote down.
fn requests(home: &Home, server: &str, method: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(home.path(&format!("{server}.ledger"))).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    lines.filter(|event: &Value| event["method"] == method).collect()
}

/// The answer to a request of a stateless client of this name.
fn ask(served: &Served, client: &str, method: &str, params: &Value) -> Value {
    modern_by(served, &json!({ "name": client, "capabilities": {} }), method, params).response()
}

/// Opens a session with these capabilities.
fn session(home: &Home, capabilities: &Value) -> Client {
    let mut client = home.stdio_unopened(&[]);
    client.request(
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}),
    );
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    client
}

/// The values of `key` in a list of prompts or resources.
fn listed(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_object().unwrap().values().find_map(Value::as_array).unwrap();
    items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_another_client_listed_is_out_of_reach() {
    let home = home(
        "[clients.narrow]\nexpose = [\"open:*\"]\n",
        &[
            ("open", &["--prompt", "hello", "--resource", "x:open=o"]),
            ("shut", &["--prompt", "secret", "--resource", "x:shut=s"]),
        ],
    );
    let served = home.serve(&[]);
    let everything = ask(&served, "wide", "prompts/list", &json!({}));
    assert_eq!(listed(&everything["result"], "name").len(), 2, "{everything}");
    ask(&served, "wide", "resources/list", &json!({}));
    let secret =
        listed(&everything["result"], "name").into_iter().find(|name| name.contains("secret")).unwrap();
    let reference =
        json!({"ref": {"type": "ref/prompt", "name": secret}, "argument": {"name": "a", "value": "v"}});
    for (method, params) in [
        ("prompts/get", json!({ "name": secret })),
        ("completion/complete", reference),
        ("resources/read", json!({ "uri": "x:shut" })),
        ("resources/read", json!({ "uri": "pml://servers/shut/resources/x%3Ashut" })),
    ] {
        let refused = ask(&served, "narrow", method, &params);
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
        assert_eq!(requests(&home, "shut", method), Vec::<Value>::new(), "{method}");
    }
    // The list of the narrow client does not take away what the wide one knows.
    let seen = ask(&served, "narrow", "prompts/list", &json!({}));
    assert_eq!(listed(&seen["result"], "name").len(), 1, "{seen}");
    let before = requests(&home, "open", "prompts/list").len();
    let told = ask(&served, "wide", "prompts/get", &json!({ "name": secret }));
    assert!(told["result"]["messages"][0]["content"]["text"].as_str().unwrap().ends_with("secret"), "{told}");
    assert_eq!(requests(&home, "open", "prompts/list").len(), before);
}

#[test]
fn prompts_have_short_names_of_their_own_and_are_completed() {
    let long = "p".repeat(90);
    let options = ["--prompt", "one/two", "--prompt", "one two", "--prompt", long.as_str()];
    let home = home("", &[("a", &options), ("b", &options)]);
    let mut client = home.stdio(&[]);
    let names = listed(&client.request("prompts/list", &json!({})), "name");
    assert_eq!(names.len(), 6);
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), 6, "{names:?}");
    for name in &names {
        assert!(name.len() <= 64 && !name.contains(['/', ' ']), "{name}");
        let told = client.request("prompts/get", &json!({ "name": name }));
        let told = told["messages"][0]["content"]["text"].as_str().unwrap();
        let own = ["one/two", "one two", long.as_str()].into_iter().find(|own| told.ends_with(own)).unwrap();
        let server = if told.contains("a.ledger") { "a" } else { "b" };
        assert!(name.starts_with(&format!("{server}__")), "{name}: {told}");
        let reference = json!({"type": "ref/prompt", "name": name});
        let params = json!({"ref": reference, "argument": {"name": "a", "value": "v"}});
        let done = client.request("completion/complete", &params);
        assert_eq!(done["completion"]["values"], json!([format!("v-{own}")]));
    }
    let params =
        json!({"ref": {"type": "ref/resource", "uri": "x:{id}"}, "argument": {"name": "id", "value": "v"}});
    assert_eq!(client.request("completion/complete", &params)["completion"]["values"], json!(["v-x:{id}"]));
}

#[test]
fn resources_that_share_a_uri_are_both_readable_and_watched() {
    let home = home("", &[("a", &["--resource", "x:1=from a"]), ("b", &["--resource", "x:1=from b"])]);
    let mut client = home.stdio(&["--expose", "full"]);
    let uris = listed(&client.request("resources/list", &json!({})), "uri");
    assert_eq!(uris, ["x:1", "pml://servers/b/resources/x%3A1"]);
    for (uri, from) in uris.iter().zip(["from a", "from b"]) {
        let read = client.request("resources/read", &json!({ "uri": uri }));
        assert_eq!(read["contents"], json!([{ "uri": uri, "text": from }]));
    }
    client.request("resources/subscribe", &json!({ "uri": uris[1] }));
    client.call("b__touch", &json!({ "uri": "x:1" }));
    let changed = client.announced("notifications/resources/updated");
    assert_eq!(changed["params"]["uri"], uris[1]);
    let unknown = client.begin("resources/read", &json!({ "uri": "x:2" }));
    assert_eq!(client.response(unknown)["error"]["code"], -32002);
}

#[test]
fn a_link_in_a_result_leads_to_the_server_that_gave_it() {
    let home = home(
        "",
        &[
            ("a", &["--resource", "x:1=from a", "--resource", "x:3=from a"]),
            ("b", &["--resource", "x:1=from b"]),
        ],
    );
    let mut client = home.stdio(&["--expose", "full"]);
    let linked = |client: &mut Client, tool: &str, uri: &str| {
        let told = client.call(tool, &json!({ "uri": uri }));
        told["content"][0]["uri"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
    };
    // Nothing was listed: both may have it, and the first link says who.
    assert_eq!(linked(&mut client, "b__link", "x:1"), "x:1");
    let read = client.request("resources/read", &json!({ "uri": "x:1" }));
    assert_eq!(read["contents"][0]["text"], "from b");
    let other = linked(&mut client, "a__link", "x:1");
    assert_eq!(other, "pml://servers/a/resources/x%3A1");
    let read = client.request("resources/read", &json!({ "uri": other }));
    assert_eq!(read["contents"], json!([{ "uri": other, "text": "from a" }]));
    // What is listed belongs to the server that it is listed of.
    client.request("resources/list", &json!({}));
    assert_eq!(linked(&mut client, "a__link", "x:3"), "x:3");
    assert_eq!(linked(&mut client, "b__link", "x:3"), "pml://servers/b/resources/x%3A3");
}

#[test]
fn a_template_is_completed_by_the_server_that_has_it() {
    let home = home("", &[("a", &["--template", "a:{id}"]), ("b", &["--template", "b:{id}"])]);
    let mut client = home.stdio(&[]);
    for (template, own) in [("b:{id}", "b:{id}"), ("a:{id}", "a:{id}")] {
        let params = json!({
            "ref": {"type": "ref/resource", "uri": template}, "argument": {"name": "id", "value": "v"},
        });
        let done = client.request("completion/complete", &params);
        assert_eq!(done["completion"]["values"], json!([format!("v-{template}"), own]), "{done}");
    }
    assert_eq!(requests(&home, "a", "completion/complete").len(), 1);
}

#[test]
fn a_subscription_outlives_its_server_and_ends_with_its_client() {
    let home = home("", &[("a", &["--resource", "x:1=one", "--refuse", "x:no"])]);
    let mut client = home.stdio(&["--expose", "full"]);
    let subscribed = || requests(&home, "a", "resources/subscribe");
    let watch = |client: &mut Client, uri: &str| {
        let id = client.begin("resources/subscribe", &json!({ "uri": uri }));
        client.response(id)
    };
    // A refused subscription is tried again and reports nothing.
    for tried in 1..=2 {
        assert!(watch(&mut client, "x:no").get("error").is_some());
        assert_eq!(subscribed().len(), tried);
    }
    client.call("a__touch", &json!({ "uri": "x:no" }));
    assert!(watch(&mut client, "x:1").get("error").is_none());
    let first = subscribed().pop().unwrap();
    client.call("a__exit", &json!({}));
    // The restarted server is subscribed to again, and the resource may have changed.
    assert_eq!(client.announced("notifications/resources/updated")["params"]["uri"], "x:1");
    let second = subscribed().pop().unwrap();
    assert_eq!(second["params"], first["params"]);
    assert_ne!(second["pid"], first["pid"]);
    client.call("a__touch", &json!({ "uri": "x:1" }));
    assert_eq!(client.announced("notifications/resources/updated")["params"]["uri"], "x:1");
    client.request("resources/unsubscribe", &json!({ "uri": "x:1" }));
    let ended = requests(&home, "a", "resources/unsubscribe");
    assert_eq!(ended.iter().map(|end| &end["params"]["uri"]).collect::<Vec<_>>(), ["x:1"]);
}

#[test]
fn a_server_gets_the_roots_of_the_client_that_calls_it() {
    let home = home("expose = \"full\"", &[("a", &[])]);
    let mut client = session(&home, &json!({ "roots": {} }));
    let id = client.begin("tools/call", &json!({ "name": "a__roots", "arguments": {} }));
    let asked = loop {
        let message = client.message();
        if message["method"] == "roots/list" {
            break message;
        }
    };
    let roots = json!({ "roots": [{ "uri": "file:///work", "name": "work" }] });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": roots }).to_string());
    let answered: Value = serde_json::from_str(text(&client.response(id)["result"])).unwrap();
    assert_eq!(answered["result"], roots);
    let opened = requests(&home, "a", "initialize").pop().unwrap();
    assert_eq!(opened["params"]["capabilities"]["roots"], json!({}));
    // A client without roots is not asked, and the server is told.
    let mut client = home.stdio(&[]);
    assert!(text(&client.call("a__roots", &json!({}))).contains("does not support `roots`"));
}

/// Answers the questions of the call `id` with `answer`; gives the questions, and the response.
fn answer_until_done(client: &mut Client, id: u64, answer: &Value) -> (Vec<Value>, Value) {
    let mut asked = Vec::new();
    loop {
        let message = client.message();
        if message["method"] == "elicitation/create" {
            let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer });
            client.send(&reply.to_string());
            asked.push(message["params"].clone());
        } else if message["id"] == json!(id) && message.get("method").is_none() {
            return (asked, message["result"].clone());
        }
    }
}

#[test]
fn a_page_is_opened_only_by_a_client_that_can() {
    let home = home("expose = \"full\"", &[("a", &[])]);
    let ask = json!({ "name": "a__ask", "arguments": { "message": "Sign in", "pages": true } });
    let answer = json!({ "action": "accept" });
    for (modes, times) in [(json!({}), 0), (json!({ "form": {}, "url": {} }), 1)] {
        let mut client = session(&home, &json!({ "elicitation": modes }));
        let id = client.begin("tools/call", &ask);
        let (asked, done) = answer_until_done(&mut client, id, &answer);
        assert_eq!(asked.len(), times, "{done}");
        assert_eq!(done.to_string().contains("does not support `elicitation.url`"), times == 0, "{done}");
    }
}

/// A program that calls the asking tool of each server.
fn program(servers: &[&str]) -> Value {
    let calls: Vec<String> = servers
        .iter()
        .map(|server| format!("await mcp.{server}.ask({{message: \"Which colour?\"}})"))
        .collect();
    let code = format!("return [{}]", calls.join(", "));
    json!({ "intent": "ask", "implementation": { "type": "code", "code": code } })
}

#[test]
fn a_server_that_asks_within_a_program_is_answered_by_the_user() {
    let home = home("", &[("a", &[]), ("b", &[])]);
    let run = |servers: &[&str]| json!({ "name": "pml_execute", "arguments": program(servers) });
    let mut client = session(&home, &json!({ "elicitation": {} }));
    let id = client.begin("tools/call", &run(&["a", "b"]));
    let answer = json!({ "action": "accept", "content": { "colour": "green" } });
    let (asked, done) = answer_until_done(&mut client, id, &answer);
    let read: Vec<&str> = asked.iter().map(|asked| asked["message"].as_str().unwrap()).collect();
    assert_eq!(
        read,
        [
            "Server `a` asks (the answer goes to server `a`): Which colour?",
            "Server `b` asks (the answer goes to server `b`): Which colour?",
        ],
        "{done}"
    );
    let result = &done["structuredContent"]["result"];
    for answered in result.as_array().unwrap() {
        assert_eq!(answered["result"], answer, "{done}");
    }
    // A stateless client gets the question as the result, and answers with the same request.
    let served = home.serve(&[]);
    let who = json!({ "name": "test", "capabilities": { "elicitation": {} } });
    let mut params = run(&["a"]);
    let told = modern_by(&served, &who, "tools/call", &params).response();
    assert_eq!(told["result"]["resultType"], "input_required", "{told}");
    let key = told["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
    params["inputResponses"] = json!({ key: answer });
    params["requestState"] = told["result"]["requestState"].clone();
    let done = modern_by(&served, &who, "tools/call", &params).response();
    assert_eq!(done["result"]["structuredContent"]["result"][0]["result"], answer, "{done}");
    // Nobody is there to answer.
    let told = ask(&served, "mute", "tools/call", &run(&["a"]));
    assert_eq!(told["result"]["structuredContent"]["status"], "failed", "{told}");
}

#[test]
fn a_long_call_is_kept_alive_by_progress() {
    let home = home("expose = \"full\"", &[("a", &[])]);
    let mut client = home.stdio(&[]);
    let params =
        json!({ "name": "a__sleep", "arguments": { "ms": 13_000 }, "_meta": { "progressToken": "t" } });
    let id = client.begin("tools/call", &params);
    let first = client.message();
    assert_eq!(first["method"], "notifications/progress", "{first}");
    assert_eq!(first["params"]["progressToken"], "t");
    assert!(first["params"]["progress"].as_f64().unwrap() > 0.0, "{first}");
    assert_eq!(text(&client.response(id)["result"]), "slept");
}

#[test]
fn a_long_call_of_a_client_without_progress_goes_on_within_a_run() {
    let home = home("expose = \"full\"", &[("a", &[])]);
    let mut client = home.stdio(&[]);
    let told = client.call("a__sleep", &json!({ "ms": 50_000 }));
    let run = told["_meta"]["pml/workflowId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    assert!(text(&told).starts_with("running: "), "{told}");
    let listed: Value = serde_json::from_str(&home.run(&["status", "--json"]).stdout).unwrap();
    assert_eq!(listed["runs"][0]["workflowId"], json!(run), "{listed}");
    // The call was made once, and its own result comes with the run.
    let done = client.call("pml_continue", &json!({ "workflow_id": run }));
    assert_eq!(text(&done), "slept", "{done}");
    let calls = requests(&home, "a", "tools/call");
    assert_eq!(calls.len(), 1, "{calls:?}");
}

#[test]
fn the_parts_and_the_result_of_a_run_are_resources() {
    let home = home("", &[("a", &[])]);
    let mut client = home.stdio(&[]);
    let code = "const photo = await mcp.a.photo({bytes: 1000}); return [photo, \"x\".repeat(50000)]";
    let run = client.call(
        "pml_execute",
        &json!({ "intent": "photo", "implementation": { "type": "code", "code": code } }),
    );
    let told = &run["structuredContent"];
    let part = told["result"][0]["uri"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned();
    let bytes: Vec<u8> = (0..1000_u32).map(|index| u8::try_from(index % 251).unwrap()).collect();
    let whole = client.request("resources/read", &json!({ "uri": part }));
    assert_eq!(whole["contents"][0]["mimeType"], "image/png");
    assert_eq!(STANDARD.decode(whole["contents"][0]["blob"].as_str().unwrap()).unwrap(), bytes);
    let page = client.request("resources/read", &json!({ "uri": format!("{part}?offset=900&limit=60") }));
    assert_eq!(STANDARD.decode(page["contents"][0]["blob"].as_str().unwrap()).unwrap(), bytes[900..960]);
    assert_eq!(
        page["_meta"],
        json!({ "pml/totalBytes": 1000, "pml/next": format!("{part}?offset=960&limit=60") })
    );
    let result = part.split("/calls/").next().unwrap().to_owned() + "/result";
    assert!(text(&run).contains(&result), "{run}");
    let page = client.request("resources/read", &json!({ "uri": format!("{result}?offset=0&limit=20000") }));
    let rest = client.request("resources/read", &json!({ "uri": page["_meta"]["pml/next"] }));
    let rest_of = client.request("resources/read", &json!({ "uri": rest["_meta"]["pml/next"] }));
    let texts: Vec<&str> =
        [&page, &rest, &rest_of].iter().map(|page| page["contents"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(serde_json::from_str::<Value>(&texts.concat()).unwrap(), told["result"]);
    // Another person, and anybody who guesses, finds nothing.
    let key = home.key_of("ada", pml::keys::KeyRequest::named("ada"));
    let served = home.serve(&[]);
    let who = json!({ "name": "ada", "capabilities": {} });
    for uri in [&part, &result] {
        let refused = modern_as(&served, &key, &who, "resources/read", &json!({ "uri": uri })).response();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert_eq!(modern_by(&served, &who, "resources/read", &json!({ "uri": uri })).status, 200);
    }
    let gone = [
        part.replace("/parts/0", "/parts/7"),
        "pml://runs/nothing/result".to_owned(),
        format!("{part}?page=2"),
    ];
    for uri in &gone {
        let id = client.begin("resources/read", &json!({ "uri": uri }));
        let code = if uri.contains('?') { -32602 } else { -32002 };
        assert_eq!(client.response(id)["error"]["code"], code, "{uri}");
    }
}
