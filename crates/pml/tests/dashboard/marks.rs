//! Calls that were sent again, made ahead, or answered from the cache: real ones, as the pages show them.

use serde_json::{Value, json};

use crate::api::Program;
use crate::browser::play;
use crate::harness::{Client, eventually, material, python};
use crate::place::Place;

/// A place with the server of the tests of DAGs, whose tool `flaky` dies on its first call for a key.
fn place() -> Place {
    let place = Place::new();
    let args =
        json!(["-I", "-S", material("../crates/pml/tests/dag/tools.py"), place.home.path("tools.ledger")]);
    place.home.configure(&format!(
        "[approvals]\nby = \"human\"\n[speculation]\nsample = 0\n[servers.tools]\ncommand = {}\nargs = {args}\n[permissions]\n\
         tools = {{ approval_mode = \"auto\" }}\n\"tools:echo\" = {{ read_only = true }}\n\
         \"tools:flaky\" = {{ idempotent = true }}\n",
        json!(python("python3"))
    ));
    place
}

/// Runs something that succeeds, and gives the id of the run.
#[track_caller]
fn run(agent: &mut Client, intent: &str, implementation: &Value, options: &Value) -> String {
    let asked = json!({"intent": intent, "implementation": implementation, "options": options});
    let told = agent.call("pml_execute", &asked)["structuredContent"].clone();
    assert_eq!(told["status"], "success", "{told}");
    told["workflowId"].as_str().unwrap().to_owned()
}

#[test]
fn what_was_sent_again_or_made_ahead_is_marked() {
    let place = place();
    let mut agent = place.home.stdio(&[]);
    let tasks = json!([{ "id": "dies", "tool": "tools:flaky", "retries": 3,
        "arguments": { "key": "d", "times": 1, "how": "die" } }]);
    let dag = json!({"type": "dag", "dagStructure": {"tasks": tasks}});
    let again = run(&mut agent, "what dies once", &dag, &json!({}));
    // The second call does not depend on the first one, which takes its time.
    let code = "const one = await mcp.tools.echo({ value: 'first', wait: 400 });\n\
        const two = await mcp.tools.echo({ value: 'second', wait: 50 });\nreturn [one.value, two.value];";
    let program = json!({"type": "code", "code": code});
    let ahead = run(&mut agent, "what can be read ahead", &program, &json!({"cache": false}));
    // The run that confirms a dry run takes what that one computed; a file may have changed since.
    std::fs::write(place.home.path("notes.md"), "hello").unwrap();
    let code = "const notes = await mcp.fs.read({ path: 'notes.md' });\n\
        const told = await mcp.text.case({ text: notes.content, to: 'upper' });\nreturn told.text;";
    let implementation = json!({"type": "code", "code": code});
    let dry =
        json!({"intent": "tell the notes", "implementation": implementation, "options": {"dryRun": true}});
    let dry = agent.call("pml_execute", &dry)["structuredContent"].clone();
    let confirmed = json!({"explorePath": dry["report"]["id"], "confirm": true});
    let confirmed = agent.call("pml_execute", &confirmed)["structuredContent"].clone();
    assert_eq!(confirmed["status"], "success", "{confirmed}\n{dry}");
    let confirmed = confirmed["workflowId"].as_str().unwrap().to_owned();
    drop(agent);

    let served = place.serve();
    let program = Program(&served);
    let calls = |run: &str| program.get(&format!("/api/runs/{run}/calls"))["items"].clone();
    let made_ahead = calls(&ahead);
    assert_eq!(
        (&made_ahead[0]["speculated"], &made_ahead[1]["speculated"]),
        (&json!(false), &json!(true)),
        "{made_ahead}"
    );
    let from_dry_run = calls(&confirmed);
    assert_eq!(
        (&from_dry_run[0]["cached"], &from_dry_run[1]["cached"]),
        (&json!(false), &json!(true)),
        "{from_dry_run}"
    );
    let name = |run: &str| {
        program.get(&format!("/api/runs/{run}"))["capability"]["name"].as_str().map(str::to_owned)
    };
    eventually("the programs are learned", || name(&ahead).is_some() && name(&confirmed).is_some());

    let (capability, confirmed) = (name(&ahead).unwrap(), name(&confirmed).unwrap());
    let given: [(&str, &str); 4] =
        [("again", &again), ("ahead", &ahead), ("capability", &capability), ("confirmed", &confirmed)];
    let seen = play(&served, "marks", &given);
    let tried: Vec<bool> =
        seen["again"].as_array().unwrap().iter().map(|row| row.to_string().contains("1× retried")).collect();
    assert_eq!(tried, [false, true], "{seen}");
    assert!(seen["ahead"][1].as_str().unwrap().contains("ahead"), "{seen}");
    assert!(!seen["ahead"][0].as_str().unwrap().contains("ahead"), "{seen}");
    assert_eq!(
        seen["bars"],
        json!([false, true]),
        "the bar of the second call is marked as speculated: {seen}"
    );
    assert_eq!(seen["cached"], json!([false, true]), "what the dry run computed is marked as cached: {seen}");
    assert!(seen["savings"].as_str().unwrap().contains("tools:echo"), "{seen}");
}
