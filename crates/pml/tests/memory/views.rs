//! The pictures of what was learned, over HTTP: definitions, invocations, and the map of the graph.

use std::collections::{BTreeMap, BTreeSet};

use pml::app::{App, ProcessRole};
use pml::config::{Env, Paths};
use pml::flow::{self, NewCapability, TakenName};
use pml::planning::Work;
use pml_model::Principal;
use serde_json::{Value, json};

use crate::harness::Served;
use crate::place::{ALL, Place, api, server};

const THREE: &str = "const a = await mcp.fs.read({ path: 'a.txt' });\n\
    const b = await mcp.fs.read({ path: 'b.txt' });\n\
    if (args.more) {\n  await mcp.fs.read({ path: 'c.txt' });\n} else {\n  await mcp.math.evaluate({ expression: '1 + 1' });\n}\n\
    return a.content + b.content;";

#[track_caller]
fn ok(served: &Served, path: &str) -> Value {
    let (status, reply) = api(served, "GET", path, None);
    assert_eq!((status, reply["schemaVersion"].as_u64()), (200, Some(1)), "{path}: {reply}");
    reply
}

fn trace_of(told: &Value) -> String {
    assert_eq!(told["status"], "success", "{told}");
    told["workflowId"].as_str().unwrap().replacen("run_", "trace_", 1)
}

fn by_id(reply: &Value) -> BTreeMap<String, Value> {
    let nodes = reply["nodes"].as_array().unwrap().iter();
    nodes.map(|node| (node["id"].as_str().unwrap().to_owned(), node.clone())).collect()
}

fn place_with_files() -> Place {
    let place = Place::start(ALL);
    for name in ["a.txt", "b.txt", "c.txt"] {
        std::fs::write(place.home.path(name), name).unwrap();
    }
    place
}

#[test]
fn a_definition_shows_one_node_where_each_invocation_shows_every_call() {
    let mut place = place_with_files();
    let told: Vec<Value> = [true, true, false]
        .into_iter()
        .map(|more| place.run("read the notes", THREE, &json!({ "more": more })))
        .collect();
    place.settled();
    let served = place.home.serve(&[]);
    let id = told[0]["capabilityId"].as_str().unwrap();
    let definition = ok(&served, &format!("/api/capabilities/{id}/definition"));
    let nodes = by_id(&definition);
    let read = &nodes["fs:read"];
    assert_eq!((read["kind"].as_str(), read["count"].as_u64()), (Some("tool"), Some(3)), "{definition}");
    assert_eq!(read["coverage"], 1.0, "{read}");
    let source: Vec<u16> = definition["source"].as_str().unwrap().encode_utf16().collect();
    for site in read["sites"].as_array().unwrap() {
        let at = |name: &str| usize::try_from(site[name].as_u64().unwrap()).unwrap();
        let shown = String::from_utf16(&source[at("from")..at("to")]).unwrap();
        assert!(shown.contains("mcp.fs.read"), "{site} is {shown:?}");
    }
    assert_eq!(definition["runs"], 3, "{definition}");
    let evaluated = nodes["math:evaluate"]["coverage"].as_f64().unwrap();
    assert!((evaluated - 1.0 / 3.0).abs() < 1e-9, "one run of three: {evaluated}");
    let branch = nodes.values().find(|node| node["kind"] == "branch").expect("the `if`");
    let edges = definition["edges"].as_array().unwrap();
    let share = |outcome: &str| {
        let edge = edges.iter().find(|edge| edge["from"] == branch["id"] && edge["label"] == outcome);
        edge.unwrap_or_else(|| panic!("{outcome}: {definition}"))["share"].as_f64().unwrap()
    };
    assert!((share("true") - 2.0 / 3.0).abs() < 1e-9 && (share("false") - 1.0 / 3.0).abs() < 1e-9);
    for node in nodes.values() {
        let number = |name: &str| node[name].as_f64().unwrap_or_else(|| panic!("{name}: {node}"));
        assert!(number("x") >= 0.0 && number("x") + number("width") <= definition["width"].as_f64().unwrap());
        assert!(
            number("y") >= 0.0 && number("y") + number("height") <= definition["height"].as_f64().unwrap()
        );
    }

    let sites: BTreeSet<&str> =
        read["sites"].as_array().unwrap().iter().map(|site| site["nodeId"].as_str().unwrap()).collect();
    for (told, expected) in told.iter().zip([3, 3, 2]) {
        let shown = ok(&served, &format!("/api/trace/{}/invocation", trace_of(told)));
        assert_eq!(shown["structureKnown"], true, "{shown}");
        let reads: Vec<&Value> =
            shown["nodes"].as_array().unwrap().iter().filter(|node| node["tool"] == "fs:read").collect();
        let names: Vec<&str> = reads.iter().map(|node| node["id"].as_str().unwrap()).collect();
        assert_eq!(names, ["fs:read_1", "fs:read_2", "fs:read_3"][..expected], "{shown}");
        for node in reads {
            assert!(sites.contains(node["nodeId"].as_str().unwrap()), "{node} is in the definition");
            assert!(
                node["fromMs"].as_i64() <= node["toMs"].as_i64()
                    && node["toMs"].as_i64() <= shown["durationMs"].as_i64()
            );
        }
        assert_eq!(shown["lanes"], 1, "one after the other: {shown}");
        assert_eq!(shown["decisions"][0]["nodeId"], branch["id"], "{shown}");
    }
    assert_eq!(definition, ok(&served, &format!("/api/capabilities/{id}/definition")), "the same every time");
}

#[test]
fn parallel_calls_overlap_in_lanes_of_their_own_and_failures_are_marked() {
    let program = server(
        "import time\ndef tools():\n    return [{\"name\": \"wait\", \"inputSchema\": {\"type\": \"object\"}}]\n\
         def call():\n    time.sleep(0.15)\n    bad = message['params']['arguments'].get('fail', False)\n    return {\"isError\": bad, \"content\": [{\"type\": \"text\", \"text\": \"waited\"}]}\n",
    );
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("slow.py"), program).unwrap();
    place.home.configure(&format!(
        "{ALL}[servers.slow]\ncommand = \"python3\"\nargs = [{:?}]\n",
        place.home.path("slow.py")
    ));
    place.restart();
    let code = "try { await mcp.slow.wait({ fail: true }) } catch (e) {}\n\
                await Promise.all([1, 2, 3].map((n) => mcp.slow.wait({ n })));\nreturn 'done';";
    let told = place.run("wait for it", code, &json!({}));
    place.settled();
    let served = place.home.serve(&[]);
    let definition =
        ok(&served, &format!("/api/capabilities/{}/definition", told["capabilityId"].as_str().unwrap()));
    let tried = by_id(&definition).into_values().find(|node| node["label"] == "try").unwrap();
    assert_eq!(tried["coverage"], 1.0, "{tried}");
    let shown = ok(&served, &format!("/api/trace/{}/invocation", trace_of(&told)));
    let nodes = shown["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 4, "{shown}");
    assert_eq!(
        (nodes[0]["status"].as_str(), nodes[0]["error"].is_object()),
        (Some("error"), true),
        "{shown}"
    );
    let lanes: BTreeSet<u64> = nodes[1..].iter().map(|node| node["lane"].as_u64().unwrap()).collect();
    assert_eq!((lanes.len(), shown["lanes"].as_u64()), (3, Some(3)), "{shown}");
    let last_start = nodes[1..].iter().map(|node| node["fromMs"].as_i64().unwrap()).max().unwrap();
    let first_end = nodes[1..].iter().map(|node| node["toMs"].as_i64().unwrap()).min().unwrap();
    assert!(last_start < first_end, "all of them at once: {shown}");
    assert!(nodes[0]["toMs"].as_i64().unwrap() <= last_start, "the first before them: {shown}");
}

#[test]
fn calls_within_a_capability_are_contained_in_its_call() {
    let mut place = place_with_files();
    let inner = place.run(
        "read one",
        "return (await mcp.fs.read({ path: args.path })).content",
        &json!({ "path": "a.txt" }),
    );
    let renamed =
        place.home.run(&["capabilities", "rename", inner["capabilityId"].as_str().unwrap(), "readOne"]);
    assert_eq!(renamed.code, 0, "{}", renamed.stderr);
    let code = "const one = await capabilities.readOne({ path: 'a.txt' });\nreturn one + await capabilities.readOne({ path: 'b.txt' });";
    let told = place.run("read two", code, &json!({}));
    place.settled();
    let served = place.home.serve(&[]);
    let shown = ok(&served, &format!("/api/trace/{}/invocation", trace_of(&told)));
    let nodes = by_id(&shown);
    assert_eq!(
        nodes.keys().collect::<Vec<_>>(),
        ["fs:read_1", "fs:read_2", "readOne_1", "readOne_2"],
        "{shown}"
    );
    for number in ["1", "2"] {
        let (outer, inner) = (&nodes[&format!("readOne_{number}")], &nodes[&format!("fs:read_{number}")]);
        assert_eq!(inner["parent"], outer["id"], "{shown}");
        assert!(outer["lane"].as_u64() < inner["lane"].as_u64(), "{shown}");
        let edge = json!({ "from": outer["id"], "to": inner["id"], "kind": "contains" });
        assert!(shown["edges"].as_array().unwrap().contains(&edge), "{shown}");
    }
    let id = told["capabilityId"].as_str().unwrap();
    let definition = ok(&served, &format!("/api/capabilities/{id}/definition"));
    let called: Vec<Value> =
        by_id(&definition).into_values().filter(|node| node["kind"] == "capability").collect();
    assert_eq!((called.len(), called[0]["count"].as_u64()), (1, Some(2)), "{definition}");
}

#[test]
fn a_trace_is_shown_although_its_capability_is_gone() {
    let mut place = place_with_files();
    let told = place.run("read the notes", THREE, &json!({ "more": true }));
    place.settled();
    let served = place.home.serve(&[]);
    let path = format!("/api/trace/{}/invocation", trace_of(&told));
    let before = ok(&served, &path);
    let id = told["capabilityId"].as_str().unwrap();
    assert_eq!(api(&served, "DELETE", &format!("/api/capabilities/{id}"), None).0, 200);
    let after = ok(&served, &path);
    assert_eq!(
        (before["structureKnown"].as_bool(), after["structureKnown"].as_bool()),
        (Some(true), Some(false))
    );
    assert_eq!(before["nodes"], after["nodes"], "it is drawn all the same");
    let (status, gone) = api(&served, "GET", &format!("/api/capabilities/{id}/definition"), None);
    assert_eq!((status, gone["error"]["code"].as_str()), (404, Some("NOT_FOUND")), "{gone}");
}

#[test]
fn a_program_of_500_nodes_is_laid_out() {
    let place = Place::start(ALL);
    let served = place.home.serve(&[]);
    let steps = (0..500).map(|n| format!("if (args.a{n}) await mcp.fs.read({{ path: 'a{n}' }});\n"));
    let code: String = steps.chain(["return 1;".to_owned()]).collect();
    let new = json!({ "intent": "read a lot", "name": "readALot", "code": code });
    let (status, made) = api(&served, "POST", "/api/capabilities", Some(new));
    assert_eq!(status, 200, "{made}");
    let definition = ok(&served, "/api/capabilities/readALot/definition");
    let nodes = by_id(&definition);
    assert_eq!(nodes.values().filter(|node| node["kind"] == "branch").count(), 500);
    assert_eq!(nodes["fs:read"]["count"], 500);
    let branches = nodes.values().filter(|node| node["kind"] == "branch");
    let places: BTreeSet<String> = branches.map(|node| format!("{} {}", node["x"], node["y"])).collect();
    assert_eq!(places.len(), 500, "each in a place of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unknown_and_what_is_somebody_elses_look_the_same() {
    let mut place = place_with_files();
    let told = place.run("read the notes", THREE, &json!({ "more": true }));
    place.settled();
    let paths = Paths { config: place.home.path("pml.toml"), data: place.home.path("") };
    let app = App::open(paths, Env::default(), place.home.path(""), ProcessRole::Command).await.unwrap();
    let other = Principal("somebody else".to_owned());
    let work = Work::Code("return mcp.fs.read({ path: 'theirs.txt' })".to_owned());
    let new = NewCapability {
        work,
        intent: "read theirs".to_owned(),
        name: Some("theirs".to_owned()),
        taken: TakenName::Refuse,
    };
    let theirs = flow::make_capability(&app, &other, new).await.unwrap();
    assert!(flow::definition(&app, &other, "theirs").await.is_ok(), "its owner sees it");
    drop(app);
    // The trace becomes somebody else's behind the back of the gateway: no door of `pml serve` writes for two people.
    let served = place.home.serve(&[]);
    let trace = trace_of(&told);
    ok(&served, &format!("/api/trace/{trace}/invocation"));
    let change = "import sqlite3, sys\nd = sqlite3.connect(sys.argv[1])\nd.execute('PRAGMA busy_timeout = 5000')\n\
                  print(d.execute(\"UPDATE trace SET principal = 'somebody else'\").rowcount)\nd.commit()";
    let changed = std::process::Command::new("python3")
        .args(["-c", change])
        .arg(place.home.path("pml.db"))
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&changed.stdout).trim(),
        "1",
        "{}",
        String::from_utf8_lossy(&changed.stderr)
    );

    let pairs = [
        ("/api/capabilities/theirs/definition".to_owned(), "/api/capabilities/nobody/definition"),
        (
            format!("/api/capabilities/{theirs}/definition"),
            "/api/capabilities/cap_00000000000000000000000000/definition",
        ),
        (format!("/api/trace/{trace}/invocation"), "/api/trace/trace_00000000000000000000000000/invocation"),
        ("/api/graph/node?id=theirs".to_owned(), "/api/graph/node?id=nobody"),
        (format!("/api/graph/node?id={theirs}"), "/api/graph/node?id=cap_00000000000000000000000000"),
        ("/api/graph/ways?from=theirs&to=fs:read".to_owned(), "/api/graph/ways?from=nobody&to=fs:read"),
    ];
    for (known, unknown) in pairs {
        let ask = |path: &str| api(&served, "GET", path, None);
        let ((status, reply), (none_status, none)) = (ask(&known), ask(unknown));
        assert_eq!((status, none_status), (404, 404), "{known}: {reply}; {unknown}: {none}");
        assert_eq!(reply["error"]["code"], none["error"]["code"], "{reply} {none}");
        assert_eq!(reply["error"]["hint"], none["error"]["hint"], "{reply} {none}");
    }
    let map = ok(&served, "/api/graph/layout");
    assert!(!map.to_string().contains(theirs.as_str()), "it is not on the map");
}

#[test]
fn the_map_is_the_same_every_time_and_its_nodes_are_explained() {
    let mut place = place_with_files();
    let told = place.run("read the notes", THREE, &json!({ "more": true }));
    let code = "const f = await mcp.fs.read({ path: 'a.txt' });\nreturn (await mcp.csv.parse({ csv: f.content })).rows;";
    place.run("rows of a file", code, &json!({}));
    place.settled();
    let served = place.home.serve(&[]);
    let map = ok(&served, "/api/graph/layout");
    let nodes = by_id(&map);
    let total = usize::try_from(map["total"].as_u64().unwrap()).unwrap();
    assert_eq!(nodes.len(), total, "a small graph is open: {map}");
    let capability = &nodes[told["capabilityId"].as_str().unwrap()];
    assert_eq!(capability["kind"], "capability");
    let sizes =
        map["communities"].as_array().unwrap().iter().map(|community| community["size"].as_u64().unwrap());
    assert_eq!(usize::try_from(sizes.sum::<u64>()).unwrap(), total);
    for edge in map["edges"].as_array().unwrap() {
        for end in ["from", "to"] {
            assert!(nodes.contains_key(edge[end].as_str().unwrap()), "{edge} has both ends");
        }
    }
    assert_eq!(map, ok(&served, "/api/graph/layout"));
    drop(served);
    let served = place.home.serve(&[]);
    assert_eq!(map, ok(&served, "/api/graph/layout"), "another process draws the same");

    let node = ok(&served, "/api/graph/node?id=csv:parse");
    assert!(node["inputSchema"]["properties"]["csv"].is_object(), "{node}");
    let neighbours = node["neighbours"].as_array().unwrap();
    let from_read =
        neighbours.iter().find(|one| one["id"] == "fs:read" && one["edge"]["type"] == "dependency");
    let from_read = from_read.unwrap_or_else(|| panic!("{node}"));
    assert_eq!(from_read["direction"], "in");
    assert_eq!(from_read["reason"], "`csv:parse` was given a result of `fs:read` in one run");
    let named = ok(&served, &format!("/api/graph/node?id={}", capability["label"].as_str().unwrap()));
    assert_eq!(named["id"], capability["id"], "a capability is found by its name");

    let ways = ok(&served, "/api/graph/ways?from=fs:read&to=csv:parse");
    assert_eq!(ways["ways"][0]["through"], json!(["fs:read", "csv:parse"]), "{ways}");
    assert!(ways["from"]["outputSchema"].is_object() && ways["to"]["inputSchema"].is_object(), "{ways}");
    assert_eq!(ways["labels"]["fs:read"], "fs:read");
    let found = ok(&served, "/api/graph/search?q=parse");
    assert!(found["items"].as_array().unwrap().iter().any(|item| item["id"] == "csv:parse"), "{found}");
}

#[test]
fn a_large_map_is_closed_until_a_community_is_opened() {
    let program = server(
        "def tools():\n    return [{\"name\": f\"tool{n}\", \"inputSchema\": {\"type\": \"object\", \"properties\": {f\"f{n % 40}\": {\"type\": \"string\"}}}, \
         \"outputSchema\": {\"type\": \"object\", \"properties\": {f\"f{(n + 1) % 40}\": {\"type\": \"string\"}}}} for n in range(400)]\n\
         def call():\n    return {\"content\": []}\n",
    );
    let place = Place::start(ALL);
    std::fs::write(place.home.path("many.py"), program).unwrap();
    place.home.configure(&format!(
        "{ALL}[servers.many]\ncommand = \"python3\"\nargs = [{:?}]\n",
        place.home.path("many.py")
    ));
    let served = place.home.serve(&[]);
    crate::harness::eventually("the tools are known", || {
        ok(&served, "/api/graph/layout")["total"].as_u64().unwrap() > 400
    });
    let closed = ok(&served, "/api/graph/layout");
    assert_eq!(closed["nodes"], json!([]), "{}", closed["communities"]);
    let largest =
        closed["communities"].as_array().unwrap().iter().max_by_key(|one| one["size"].as_u64()).unwrap();
    let id = largest["id"].as_str().unwrap();
    let open = ok(&served, &format!("/api/graph/layout?expand={id}"));
    let nodes = open["nodes"].as_array().unwrap();
    assert_eq!(Some(nodes.len() as u64), largest["size"].as_u64());
    for node in nodes {
        let away = |axis: &str| node[axis].as_f64().unwrap() - largest[axis].as_f64().unwrap();
        let distance = away("x").hypot(away("y"));
        assert!(distance <= largest["radius"].as_f64().unwrap() + 1.0, "{node} lies in its community");
    }
    let place_of = |map: &Value| -> Vec<Value> {
        let communities = map["communities"].as_array().unwrap().iter();
        communities.map(|one| json!([one["id"], one["x"], one["y"], one["radius"]])).collect()
    };
    assert_eq!(place_of(&closed), place_of(&open), "nothing moves when one is opened");
}
