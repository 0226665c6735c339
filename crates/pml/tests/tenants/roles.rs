//! Every route of the OpenAPI document with a key of every role.

use pml::api::ROUTE_ROLES;
use pml_model::Role;
use serde_json::{Value, json};

use crate::door::{ALL, api, key, status_of};
use crate::harness::{Home, material};

/// A value for each parameter of a path, which names nothing that there is.
fn fill(path: &str) -> String {
    let run = "run_00000000000000000000000000000000";
    path.replace("{run}", run)
        .replace("/runs/{id}", &format!("/runs/{run}"))
        .replace("/rules/{id}", "/rules/999999")
        .replace("/trace/{id}", "/trace/trace_00000000000000000000000000000000")
        .replace("/mocks/{id}", "/mocks/mock_0")
        .replace("{question}", "q_0")
        .replace("{call}", "1")
        .replace("{tool}", "fs:nothing")
        .replace("{ticket}", "nothing")
        .replace("{name}", "nothing")
        .replace("{capability}", "cap_00000000000000000000000000000000")
}

#[test]
fn every_route_answers_every_role_as_the_table_says() {
    let home = Home::new(ALL);
    let keys: Vec<(Role, String)> = Role::ALL.map(|role| (role, key(&home, "ann", role))).into();
    let served = home.serve(&[]);
    let document = api(&served, &keys[0].1, "GET", "/api/openapi.json", &Value::Null).json();
    let mut tried = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let listed = ROUTE_ROLES.iter().find(|(one, route, _)| *one == method && route == path);
            let needed = listed.unwrap_or_else(|| panic!("{method} {path} is not in the table")).2;
            for (role, key) in &keys {
                let body = if method == "POST" { "{}" } else { "" };
                let (status, told) = status_of(&served, key, &method, &fill(path), body);
                let by_role = status == 403 && told.contains("this needs the role");
                assert_eq!(by_role, *role < needed, "{method} {path} as {role}: {status} {told}");
                if path.contains('{') && !by_role && path.starts_with("/api") {
                    let fits = matches!(status, 400 | 403 | 404) || path.contains("/mocks/");
                    assert!(fits, "{method} {path} as {role}: {status} {told}");
                }
                assert!(status < 500, "{method} {path} as {role}: {status} {told}");
                tried += 1;
            }
        }
    }
    assert_eq!(tried, ROUTE_ROLES.len() * Role::ALL.len());
}

#[test]
fn the_documentation_has_the_table() {
    let path = material("../docs/http-api.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- roles -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- /roles -->").unwrap();
    let mut table = "| route | agent | member | approver | admin |\n|---|:-:|:-:|:-:|:-:|\n".to_owned();
    for (method, route, needed) in ROUTE_ROLES {
        if !(route.starts_with("/api") || ["/mcp", "/events", "/metrics"].contains(&route)) {
            continue;
        }
        let may = Role::ALL.map(|role| if role >= needed { "yes" } else { "403" });
        table += &format!("| `{method} {route}` | {} |\n", may.join(" | "));
    }
    let wanted = format!("{before}<!-- roles -->\n{table}<!-- /roles -->{after}");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), wanted);
}

#[test]
fn a_key_without_the_role_answers_nothing_even_where_clients_answer() {
    let home = Home::new(&format!("{ALL}[approvals]\nby = \"client\"\n"));
    let [agent, approver] = [Role::Agent, Role::Approver].map(|role| key(&home, "ann", role));
    let served = home.serve(&[]);
    let asked = crate::door::run(
        &served,
        &agent,
        "save a note",
        "await mcp.fs.write({ path: 'note.txt', content: 'x' }); return 'saved';",
    );
    assert_eq!(asked["status"], "approval_required", "{asked}");
    let answer = json!({"workflow_id": asked["workflowId"], "approved": true});
    let refused = crate::door::call(&served, &agent, "pml_continue", &answer);
    assert_eq!(refused["structuredContent"]["error"]["code"], "DENIED", "{refused}");
    assert!(!home.path("note.txt").exists());
    let saved = crate::door::call(&served, &approver, "pml_continue", &answer);
    assert_eq!(saved["structuredContent"]["result"], "saved", "{saved}");
}
