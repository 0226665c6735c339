//! What a client is shown, finds and may call.

use serde_json::{Value, json};

use crate::harness::{Client, Home, text};

fn names(client: &mut Client) -> Vec<String> {
    let list = client.request("tools/list", &json!({}));
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn found(client: &mut Client, intent: &str) -> Vec<String> {
    let page = client.call("pml_discover", &json!({"intent": intent}))["structuredContent"].clone();
    page["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found: &Value| found["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_list_of_tools_is_all_a_client_sees_finds_and_calls() {
    let home = Home::new("expose = [\"fs:read\", \"math:*\"]");
    let mut client = home.stdio(&[]);
    let shown = names(&mut client);
    assert_eq!(
        shown,
        [
            "pml_discover",
            "pml_execute",
            "pml_continue",
            "pml_replan",
            "pml_abort",
            "pml_get_task_result",
            "pml_explore",
            "fs__read",
            "math__evaluate",
            "math__statistics",
            "math__round"
        ]
    );
    assert_eq!(found(&mut client, "read a file"), ["fs:read"]);
    for hidden in ["fs__delete", "fs:delete", "json:parse"] {
        let refused = client.call(hidden, &json!({"path": "x", "json": "1"}));
        assert!(text(&refused).contains("is not exposed to this client"), "{hidden}: {refused}");
    }
    assert!(text(&client.call("math:evaluate", &json!({"expression": "6*7"}))).contains("42"));
}

#[test]
fn without_a_list_every_tool_can_be_found_and_called_though_few_are_shown() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    let own = [
        "pml_discover",
        "pml_execute",
        "pml_continue",
        "pml_replan",
        "pml_abort",
        "pml_get_task_result",
        "pml_explore",
    ];
    assert_eq!(names(&mut client), own);
    assert!(found(&mut client, "read a file").contains(&"fs:read".to_owned()));
    assert!(text(&client.call("math__evaluate", &json!({"expression": "6*7"}))).contains("42"));
}

#[test]
fn a_client_may_have_an_exposure_of_its_own() {
    let home = Home::new("[clients.test]\nexpose = \"full\"");
    assert!(names(&mut home.stdio(&[])).contains(&"fs__read".to_owned()), "the harness calls itself `test`");
}
