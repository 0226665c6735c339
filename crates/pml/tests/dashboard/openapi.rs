//! The OpenAPI document: it describes every route, and the real binary does what it says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::api::{Program, execute};
use crate::harness::Served;
use crate::place::Place;
use crate::wire::{Reply, authority, send, viewer};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Rust files below a directory, with their text.
fn sources(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(std::fs::read_to_string(&path).unwrap());
        }
    }
    found
}

/// The routes that the source declares, as `METHOD path`.
fn declared_routes() -> BTreeSet<String> {
    let route = regex::Regex::new(r#"(?s)\.route\(\s*"([^"]+)",(.*)"#).unwrap();
    let end = regex::Regex::new(r"\.route\(|\.merge\(|\.with_state\(|\.method_not_allowed|\n}").unwrap();
    let method = regex::Regex::new(r"\b(get|post|put|patch|delete)\(").unwrap();
    let directories = ["crates/pml/src", "crates/pml-mcp/src"].map(|path| repository().join(path));
    let mut routes = BTreeSet::new();
    for source in directories.iter().flat_map(|directory| sources(directory)) {
        // Tests have routers of their own.
        let source = source.split("#[cfg(test)]").next().unwrap();
        for (start, _) in source.match_indices(".route(") {
            let Some(declared) =
                route.captures(&source[start..]).filter(|found| found.get(0).unwrap().start() == 0)
            else {
                continue;
            };
            let handlers = end.split(declared.get(2).unwrap().as_str()).next().unwrap();
            for method in method.captures_iter(handlers) {
                // OpenAPI has no word for a parameter that takes the rest of the path.
                let path = declared[1].replace("{*", "{");
                routes.insert(format!("{} {path}", method[1].to_uppercase()));
            }
        }
    }
    routes
}

fn described_routes(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap().iter();
    let of_path = |(path, item): (&String, &Value)| {
        let methods = item.as_object().unwrap().keys();
        let named = methods.filter(|name| ["get", "post", "put", "patch", "delete"].contains(&name.as_str()));
        named.map(|name| format!("{} {path}", name.to_uppercase())).collect::<Vec<_>>()
    };
    paths.flat_map(of_path).collect()
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let place = Place::new();
    let served = place.serve();
    let reply = viewer(&served).get("/api/openapi.json");
    assert_eq!(reply.status, 200);
    let document = reply.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3."), "{document}");
    let (mut declared, described) = (declared_routes(), described_routes(&document));
    // The pages are declared in a loop and described as one.
    declared.insert("GET /".to_owned());
    assert!(declared.len() > 40, "{declared:?}");
    assert_eq!(declared, described);
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let statuses: BTreeSet<&str> =
                operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
            if !path.starts_with("/api/") {
                continue;
            }
            let has = |status: &str| statuses.contains(status);
            let has_query =
                operation["parameters"].as_array().into_iter().flatten().any(|one| one["in"] == "query");
            let (sends, named) = (method != "get", path.contains('{'));
            for status in ["200", "401", "403", "408", "413", "415", "500", "503"] {
                assert!(has(status), "{method} {path} has {statuses:?}");
            }
            assert_eq!(has("400"), sends || has_query, "{method} {path} has {statuses:?}");
            assert!(has("404") || !named, "{method} {path} has {statuses:?}");
            for status in ["409", "429", "507"] {
                assert_eq!(has(status), sends, "{method} {path} has {statuses:?}");
            }
            assert!(!has("405"), "a method that a path does not have is no operation: {path}");
        }
    }
    let of = |path: &str, method: &str| document["paths"][path][method]["responses"].clone();
    assert_eq!(of("/api/session", "get")["404"], Value::Null);
    assert_eq!(of("/api/capabilities/{name}", "get")["410"], Value::Null);
    assert!(of("/api/runs/{id}/calls", "get")["410"].is_object());
}

/// Fails unless the document describes a reply: its status, its content type, and the shape of an error.
#[track_caller]
fn assert_described(document: &Value, method: &str, route: &str, reply: &Reply) {
    let described = &document["paths"][route][method.to_lowercase()]["responses"][reply.status.to_string()];
    assert!(described.is_object(), "{method} {route} answers {}: {}", reply.status, reply.body);
    let Some(content) = described["content"].as_object() else {
        return assert_eq!(reply.body, "", "{method} {route} {}", reply.status);
    };
    let kind = reply.header("content-type").split(';').next().unwrap().trim();
    let schema = content.get(kind).unwrap_or_else(|| panic!("{method} {route} {}: {kind:?}", reply.status));
    if schema["schema"]["$ref"] == "#/components/schemas/ErrorReply" {
        let error = reply.json();
        assert_eq!(error["schemaVersion"], 1, "{method} {route}: {error}");
        assert!(error["error"]["message"].is_string(), "{method} {route}: {error}");
    }
}

#[test]
fn every_route_refuses_a_body_of_another_type_as_described() {
    let place = Place::new();
    let served = place.serve();
    let document = viewer(&served).get("/api/openapi.json").json();
    let token = format!("Bearer {}", served.token);
    let parameter = regex::Regex::new(r"\{\w+\}").unwrap();
    for route in described_routes(&document) {
        let (method, path) = route.split_once(' ').unwrap();
        let named = parameter.replace_all(path, "x").into_owned();
        let headers = [
            ("Host", authority(&served)),
            ("Authorization", token.as_str()),
            ("Accept", "*/*"),
            ("Content-Type", "text/plain"),
        ];
        let reply = send(&served, method, &named, &headers, "{}");
        assert_eq!(reply.status, 415, "{route}: {}", reply.body);
        assert_described(&document, method, path, &reply);
    }
}

#[test]
fn the_routes_beside_the_api_answer_as_described() {
    let place = Place::new();
    let served = place.serve();
    let document = viewer(&served).get("/api/openapi.json").json();
    let (host, token) = (authority(&served), format!("Bearer {}", served.token));
    let json = "application/json";
    let form = "application/x-www-form-urlencoded";
    let link = served.link.split_once(host).unwrap().1.to_owned();
    let unreadable = format!("{link}?to=%zz&to=/");
    let large = "x".repeat(16 * 1024);
    for (expected, method, route, path, more, body) in [
        (200, "GET", "/health", "/health", vec![], ""),
        (200, "GET", "/ready", "/ready", vec![], ""),
        (303, "GET", "/", "/", vec![], ""),
        (200, "GET", "/login", "/login", vec![], ""),
        (401, "POST", "/login", "/login", vec![("Content-Type", form)], "passphrase=wrong"),
        (413, "POST", "/login", "/login", vec![("Content-Type", form)], large.as_str()),
        (204, "POST", "/logout", "/logout", vec![], ""),
        (303, "GET", "/open/{ticket}", link.as_str(), vec![], ""),
        (303, "GET", "/open/{ticket}", unreadable.as_str(), vec![], ""),
        (404, "GET", "/open/{ticket}", "/open/nothing", vec![], ""),
        (404, "GET", "/open/{ticket}", "/open/%ff", vec![], ""),
        (200, "GET", "/assets/{name}", "/assets/app.js", vec![], ""),
        (200, "GET", "/assets/{name}", "/assets/style.css", vec![], ""),
        (200, "GET", "/assets/{name}", "/assets/icon.svg", vec![], ""),
        (200, "GET", "/assets/{name}", "/assets/vendor/LICENSES.txt", vec![], ""),
        (404, "GET", "/assets/{name}", "/assets/nothing.js", vec![], ""),
        (404, "GET", "/assets/{name}", "/assets/%ff", vec![], ""),
        (403, "GET", "/assets/{name}", "/assets/app.js", vec![("Origin", "http://other.example")], ""),
        (200, "GET", "/metrics", "/metrics", vec![("Authorization", token.as_str())], ""),
        (401, "GET", "/metrics", "/metrics", vec![], ""),
        (400, "GET", "/events", "/events?no=1", vec![("Authorization", token.as_str())], ""),
        (404, "GET", "/events", "/events?run=x", vec![("Authorization", token.as_str())], ""),
        (401, "POST", "/mcp", "/mcp", vec![("Content-Type", json)], "{}"),
        (400, "POST", "/mcp", "/mcp", vec![("Authorization", token.as_str()), ("Content-Type", json)], "{}"),
        (
            406,
            "POST",
            "/mcp",
            "/mcp",
            vec![("Authorization", token.as_str()), ("Content-Type", json), ("Accept", "text/html")],
            "{}",
        ),
        (405, "GET", "/mcp", "/mcp", vec![("Authorization", token.as_str())], ""),
        (404, "GET", "/mcp", "/mcp", vec![("Authorization", token.as_str()), ("Mcp-Session-Id", "x")], ""),
        (405, "DELETE", "/mcp", "/mcp", vec![("Authorization", token.as_str())], ""),
    ] {
        let headers: Vec<(&str, &str)> = [vec![("Host", host)], more].concat();
        let reply = send(&served, method, path, &headers, body);
        assert_eq!(reply.status, expected, "{method} {path}: {}", reply.body);
        assert_described(&document, method, route, &reply);
    }
}

#[test]
fn the_documentation_has_every_route_and_nothing_else() {
    let place = Place::new();
    let served = place.serve();
    let described = described_routes(&viewer(&served).get("/api/openapi.json").json());
    let page = std::fs::read_to_string(repository().join("docs/http-api.md")).unwrap();
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    // The row of the pages names them all; they are described as one.
    let first = cells.filter_map(|cell| cell.strip_prefix('`')?.split('`').next());
    let told: BTreeSet<String> = first.filter(|name| name.contains(" /")).map(str::to_owned).collect();
    assert_eq!(told, described);
}

/// Sends generated requests, good and bad ones, to every route of the API: nothing may end in a server error, and every
/// status, content type and body must be described. `cargo xtask soak api` sends more of them.
#[test]
fn generated_requests_are_answered_as_described() {
    let cases: usize = std::env::var("PML_API_CASES").map_or(500, |count| count.parse().unwrap());
    let place = Place::new();
    let code = "return await mcp.time.diff({ from: args.from, to: '2026-01-31' })";
    let run = execute(&place, "days until the end of January", code, &json!({"from": "2026-01-01"}));
    let waiting = place.wants_to_write("notes.md");
    let served = place.serve();
    let program = Program(&served);
    let capability = program.get(&format!("/api/runs/{run}"))["capability"]["name"].clone();
    let operations = described_routes(&program.get_unversioned("/api/openapi.json")).len();
    // Generated names name nothing, so half of the requests get names that do.
    let mut made = 0;
    for names in [
        String::new(),
        format!(
            "[parameters]\n\"path.id\" = \"{run}\"\n\"path.run\" = \"{waiting}\"\n\"path.call\" = 1\n\
             \"path.name\" = {capability}\n\"path.capability\" = {capability}\n\"path.tool\" = \"fs:read\"\n"
        ),
    ] {
        // Some routes take nothing that could be varied, and get fewer requests.
        let each = (cases * 2 / 3).div_ceil(operations) + 1;
        made += send_generated(&served, &names, each);
    }
    assert!(made >= cases, "{made} cases");
    assert_eq!(program.get("/api/session")["role"], "program", "it still serves");
}

/// Sends generated requests, `each` to every route, with these settings. Returns their number.
fn send_generated(served: &Served, settings: &str, each: usize) -> usize {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("schemathesis.toml"), settings).unwrap();
    let base = served.url.strip_suffix("/mcp").unwrap();
    let output = Command::new(repository().join("tests/.venv/bin/schemathesis"))
        .args(["run", &format!("{base}/api/openapi.json"), "--url", base, "--no-color"])
        .args(["--header", &format!("Authorization: Bearer {}", served.token)])
        .args(["--exclude-path", "/mcp", "--exclude-path-regex", "^/(login|logout|open|assets|events)"])
        .args(["--checks", CHECKS])
        .args(["--phases", "fuzzing", "--mode", "all", "--seed", "1", "--generation-database", "none"])
        .args(["--max-examples", &each.to_string(), "--continue-on-failure"])
        .args(["--suppress-health-check", "all", "--request-timeout", "60", "--warnings", "off"])
        .current_dir(directory.path())
        .output()
        .expect("`cargo xtask install` installs it");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    let count = regex::Regex::new(r"(\d[\d,]*) generated").unwrap();
    count.captures(&told).unwrap()[1].replace(',', "").parse().unwrap()
}

const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
