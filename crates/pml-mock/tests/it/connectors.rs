//! Results of services whose servers declare no schemas.

use pml_mock::MockOrigin;
use serde_json::{Value, json};

use crate::mock;

fn connector(tool: &str, arguments: &Value) -> Value {
    let made = mock(tool, arguments, None, 0);
    assert_eq!(made.origin, MockOrigin::Connector, "{tool}");
    made.value
}

#[test]
fn an_issue_is_the_one_that_was_written() {
    let arguments = json!({"owner": "acme", "repo": "core", "title": "Import stops", "body": "At row 4."});
    let issue = connector("github:create_issue", &arguments);
    assert_eq!(issue["title"], "Import stops");
    assert_eq!(issue["body"], "At row 4.");
    assert_eq!(issue["state"], "open");
    assert_eq!(issue["html_url"], format!("https://github.com/acme/core/issues/{}", issue["number"]));
    // Another server of the same service, its tools with the name of the service.
    assert!(connector("work:github_create_issue", &arguments)["number"].is_u64());
    let listed = connector(
        "github:list_issues",
        &json!({"owner": "acme", "repo": "core", "state": "closed", "perPage": 2}),
    );
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert!(listed.as_array().unwrap().iter().all(|issue| issue["state"] == "closed"));
}

#[test]
fn a_message_is_in_the_channel_that_was_named() {
    let sent = connector("slack:slack_post_message", &json!({"channel_id": "C0123456789", "text": "Done."}));
    assert_eq!(sent["ok"], true);
    assert_eq!(sent["channel"], "C0123456789");
    assert_eq!(sent["message"]["text"], "Done.");
}

#[test]
fn rows_have_the_columns_of_the_query() {
    let rows = |sql: &str| connector("postgres:query", &json!({"sql": sql}));
    let found = rows(
        "SELECT o.id, c.email AS \"customerEmail\", o.total FROM orders o JOIN c ON c.id = o.c WHERE status = 'open' LIMIT 2",
    );
    assert_eq!(found.as_array().unwrap().len(), 2);
    let names: Vec<&String> = found[0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["id", "customerEmail", "total"]);
    assert!(found[0]["customerEmail"].as_str().unwrap().contains('@'));
    let counted = rows("select count(*) from orders");
    assert_eq!(counted.as_array().unwrap().len(), 1);
    assert!(counted[0]["count"].is_u64());
    let filtered = rows("with x as (select a from b) select status, name from x where status = 'paid'");
    assert!(
        filtered.as_array().unwrap().iter().all(|row| row["status"] == "paid" && row["name"].is_string())
    );
    assert!(rows("select * from t")[0]["id"].is_u64());
    assert_eq!(rows("insert into t values (1)"), json!({"command": "INSERT", "rowCount": 1, "rows": []}));
    for odd in ["", "select", "select 'a''b", "((((", "select ; from", "é select ü"] {
        rows(odd);
    }
}

#[test]
fn a_schema_of_the_tool_wins_over_what_its_name_suggests() {
    let arguments = json!({"owner": "acme", "repo": "core", "title": "x"});
    let schema = json!({"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]});
    assert_eq!(mock("github:create_issue", &arguments, Some(&schema), 0).origin, MockOrigin::Schema);
    let fitting =
        json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]});
    assert_eq!(mock("github:create_issue", &arguments, Some(&fitting), 0).origin, MockOrigin::Connector);
    // Neither the name of the service alone nor that of a tool alone says anything.
    assert_eq!(mock("github:unheard_of", &arguments, None, 0).origin, MockOrigin::Placeholder);
    assert_eq!(mock("other:create_issue", &arguments, None, 0).origin, MockOrigin::Placeholder);
    assert_eq!(mock("github:create_issue", &json!({}), None, 0).origin, MockOrigin::Placeholder);
}
