//! Who may answer, once, in time, and for which run.

use serde_json::{Value, json};

use super::{
    ONE_CALL, asked, code, execute, hits, home, over_http, remember_as_person, say, saying, state, told, yes,
};
use crate::harness::{Client, Home, Served, eventually, text};

#[test]
fn a_question_has_one_answer() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute(&mut client, ONE_CALL);
    assert_eq!(yes(&mut client, &reply)["status"], "success");
    for approved in [true, false] {
        let again = say(&mut client, &reply, &json!({"approved": approved}));
        assert!(["GONE", "ALREADY_ANSWERED"].contains(&code(&again)), "{again}");
    }
    assert_eq!(hits(&home), 1);
}

#[test]
fn of_two_who_answer_at_once_one_is_heard() {
    let home = home("");
    let mut clients = [home.stdio(&[]), home.stdio(&[])];
    for round in 1..=5 {
        let reply = execute(&mut clients[0], ONE_CALL);
        let begin = |client: &mut Client| {
            let params =
                json!({"name": "pml_continue", "arguments": saying(&reply, &json!({"approved": true}))});
            client.begin("tools/call", &params)
        };
        let ids = clients.each_mut().map(begin);
        let mut came = Vec::new();
        for (client, id) in clients.iter_mut().zip(ids) {
            came.push(client.response_or_aside(id)["result"]["structuredContent"].clone());
        }
        let won = came.iter().filter(|one| one["status"] == "success").count();
        let late = |one: &&Value| ["GONE", "ALREADY_ANSWERED"].contains(&code(one));
        assert_eq!((won, came.iter().filter(late).count()), (1, 1), "{came:?}");
        assert_eq!(hits(&home), round, "one yes, one effect");
    }
}

#[test]
fn an_answer_is_for_the_run_it_names() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let mut again = super::request(ONE_CALL, &json!({}));
    again["options"] = json!({"idempotencyKey": "another"});
    let first = execute(&mut client, ONE_CALL);
    let second = client.call("pml_execute", &again)["structuredContent"].clone();
    assert_ne!(first["questionId"], second["questionId"], "the same program, another question");
    assert_eq!(yes(&mut client, &second)["status"], "success");
    assert_eq!((state(&home, &first).as_str(), hits(&home)), ("waiting", 1));
    let nobody = json!({"workflowId": "run_00000000000000000000000000000001"});
    assert_eq!(code(&yes(&mut client, &nobody)), "UNKNOWN_RUN");
}

#[test]
fn a_repeated_request_is_the_same_run_and_the_same_question() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let mut params = json!({"name": "pml_execute", "arguments": super::request(ONE_CALL, &json!({}))});
    params["_meta"] = json!({"pml/idempotencyKey": "once"});
    let mut repeat = || client.request("tools/call", &params)["structuredContent"].clone();
    let (first, second) = (repeat(), repeat());
    assert_eq!((&first["workflowId"], &first["questionId"]), (&second["workflowId"], &second["questionId"]));
    assert_eq!(yes(&mut client, &first)["status"], "success");
    assert_eq!(client.request("tools/call", &params)["structuredContent"]["status"], "success");
    assert_eq!(hits(&home), 1);
}

#[test]
fn a_run_that_was_ended_cannot_be_allowed_any_more() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute(&mut client, ONE_CALL);
    let ended = client.call("pml_abort", &json!({"workflow_id": reply["workflowId"], "reason": "enough"}));
    assert_eq!(code(&ended["structuredContent"]), "ABORTED", "{ended}");
    let late = yes(&mut client, &reply);
    assert_eq!((code(&late), state(&home, &reply).as_str(), hits(&home)), ("GONE", "aborted", 0), "{late}");
}

#[test]
fn an_answer_given_to_another_process_reaches_the_run_that_goes_on_meanwhile() {
    let home = home("");
    let mut first = home.stdio(&[]);
    let program = "const [waited, said] = await Promise.all([mcp.s.wait({ file: args.file }), mcp.s.echo({ v: Number(args.v) })]);\nreturn [waited, said.v];";
    let file = home.path("go");
    let begun = super::execute_with(&mut first, program, &json!({"file": file, "v": "7"}));
    let mut meanwhile = yes(&mut first, &begun);
    // On a busy machine it may take a while until it asks.
    eventually("it asks while a call is under way", || {
        if meanwhile["status"] == "running" {
            meanwhile = say(&mut first, &begun, &json!({}));
        }
        meanwhile["inFlight"] == 1
    });
    // Only now: a second gateway that was there before could have claimed the run when it was answered for the first time.
    let mut second = home.stdio(&[]);
    let params = json!({"name": "pml_continue", "arguments": saying(&meanwhile, &json!({"approved": true}))});
    let answering = second.begin("tools/call", &params);
    eventually("the call is made", || hits(&home) == 1);
    std::fs::write(file, "").unwrap();
    let done = second.response_or_aside(answering)["result"]["structuredContent"].clone();
    assert_eq!((&done["result"], hits(&home)), (&json!(["waited", 7]), 1), "{done}");
}

#[test]
fn what_people_said_is_replayed_as_it_was() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "const ends = [];\nfor (const v of args.values) ends.push(await mcp.s.echo({ v }).then((said) => said.v, (error) => error.code));\nreturn ends;";
    let mut reply = super::execute_with(&mut client, program, &json!({"values": [1, 2, 3]}));
    for approved in [true, true, false, true] {
        reply = say(&mut client, &reply, &json!({"approved": approved}));
    }
    assert_eq!((&reply["result"], hits(&home)), (&json!([1, "DENIED", 3]), 2), "{reply}");
    let replayed = home.run(&["runs", "replay", reply["workflowId"].as_str().unwrap()]);
    assert!(replayed.code == 0 && replayed.stderr.contains("the same"), "{replayed:?}");
    assert_eq!(hits(&home), 2);
}

#[test]
fn an_answer_to_something_else_is_told_so_and_the_question_stays() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute(&mut client, ONE_CALL);
    for said in [
        json!({"answer": {"calls": [{"call": 1, "verdict": "again"}]}}),
        json!({"answer": {}}),
        json!({"reason": "just because", "answer": {"anyArguments": 3}}),
    ] {
        let refused = say(&mut client, &reply, &said);
        assert!(code(&refused).starts_with("INVALID"), "{said}: {refused}");
        assert_eq!((state(&home, &reply).as_str(), hits(&home)), ("waiting", 0), "{said}");
    }
}

#[test]
fn a_question_that_waited_too_long_cannot_be_answered_any_more() {
    let home = home("[approvals]\nexpire = \"1s\"\n");
    let mut client = home.stdio(&[]);
    let reply = execute(&mut client, ONE_CALL);
    eventually("it expires", || state(&home, &reply) == "expired");
    for said in [json!({"approved": true}), json!({"approved": false})] {
        let late = client.call("pml_continue", &saying(&reply, &said));
        assert_eq!(code(&late["structuredContent"]), "GONE", "{late}");
        assert!(text(&late).contains("expired"), "{}", text(&late));
    }
    let shown = client.call("pml_continue", &saying(&reply, &json!({})));
    assert_eq!(code(&shown["structuredContent"]), "EXPIRED", "{shown}");
    assert_eq!(hits(&home), 0);
}

#[test]
fn an_answer_that_comes_before_anybody_swept_the_expired_question_is_late_all_the_same() {
    let home = home("[approvals]\nexpire = \"1s\"\n");
    let mut client = home.stdio(&[]);
    let reply = execute(&mut client, ONE_CALL);
    let id = reply["workflowId"].as_str().unwrap().to_owned();
    // Nobody looks after runs while no gateway runs.
    client.finish();
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let late = home.run(&["runs", "approve", &id]);
    assert_ne!(late.code, 0, "{late:?}");
    let _gateway = home.stdio(&[]);
    eventually("it expires", || state(&home, &reply) == "expired");
    assert_eq!(hits(&home), 0);
}

#[test]
fn whoever_waits_hears_of_an_answer_that_came_by_another_way() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute(&mut client, ONE_CALL);
    let waiting =
        client.begin("tools/call", &json!({"name": "pml_continue", "arguments": saying(&reply, &json!({}))}));
    // It is served meanwhile, so the first request is with the gateway.
    client.request("ping", &json!({}));
    assert!(client.aside.iter().all(|message| message["id"] != json!(waiting)), "{:?}", client.aside);
    let approved = home.run(&["runs", "approve", reply["workflowId"].as_str().unwrap(), "--detach"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    let done = client.response_or_aside(waiting);
    assert_eq!(done["result"]["structuredContent"]["status"], "success", "{done}");
    assert_eq!(hits(&home), 1);
}

#[test]
fn whoever_waits_in_vain_is_told_the_same_question() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute(&mut client, ONE_CALL);
    let same = say(&mut client, &reply, &json!({}));
    assert_eq!(asked(&same), asked(&reply));
    assert_eq!((&same["questionId"], hits(&home)), (&reply["questionId"], 0));
}

#[test]
fn the_terminal_shows_what_is_asked_and_says_no() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute(&mut client, ONE_CALL);
    let id = reply["workflowId"].as_str().unwrap();
    let shown = home.run(&["runs", "resume", id]);
    assert!(shown.stderr.contains(r#"{"path":"x","list":[1,2]}"#), "{shown:?}");
    let denied = home.run(&["runs", "deny", id, "--reason", "too risky"]);
    assert_eq!((denied.code, state(&home, &reply).as_str()), (0, "failed"), "{denied:?}");
    let told = say(&mut client, &reply, &json!({}));
    assert!(told["error"]["message"].as_str().unwrap().contains("too risky"), "{told}");
    assert_eq!(hits(&home), 0);
}

/// Asks for [`ONE_CALL`] over HTTP, and gives what came and what a yes of the same client comes to.
#[track_caller]
fn asked_over_http(served: &Served) -> (Value, Value) {
    let reply = over_http(served, "pml_execute", &super::request(ONE_CALL, &json!({})));
    let said = over_http(served, "pml_continue", &saying(&reply, &json!({"approved": true})));
    (reply, said)
}

/// No yes that a program could have said counts.
#[track_caller]
fn only_a_person_can_answer(home: &Home, reply: &Value, said: &Value) {
    assert_eq!((code(said), hits(home)), ("DENIED", 0), "{said}");
    assert!(said["error"]["hint"].as_str().unwrap().contains("dashboard"), "{said}");
    let id = reply["workflowId"].as_str().unwrap();
    for verb in ["approve", "deny"] {
        let refused = home.run(&["runs", verb, id]);
        assert_ne!(refused.code, 0, "{verb} without a passphrase: {refused:?}");
    }
    assert_eq!((state(home, reply).as_str(), hits(home)), ("waiting", 0), "it still asks");
}

#[test]
fn over_http_only_a_person_can_answer() {
    let home = home("");
    let served = home.serve(&[]);
    let (reply, said) = asked_over_http(&served);
    assert_eq!(reply["question"]["by"], "human", "{reply}");
    only_a_person_can_answer(&home, &reply, &said);
    // Nor can another client of the same person's, whose own questions it may answer.
    let mut client = home.stdio(&[]);
    let said = yes(&mut client, &reply);
    only_a_person_can_answer(&home, &reply, &said);
}

#[test]
fn where_a_client_may_answer_it_can_over_http_too() {
    let home = home("[approvals]\nby = \"client\"\n");
    let served = home.serve(&[]);
    let (reply, said) = asked_over_http(&served);
    assert_eq!((&reply["question"]["by"], &said["status"]), (&json!("client"), &json!("success")), "{said}");
    assert_eq!(hits(&home), 1);
}

#[test]
fn where_only_a_person_may_answer_a_client_on_standard_streams_cannot() {
    let home = home("[approvals]\nby = \"human\"\n");
    let mut client = home.stdio(&[]);
    let reply = execute(&mut client, ONE_CALL);
    let said = yes(&mut client, &reply);
    only_a_person_can_answer(&home, &reply, &said);
}

#[test]
fn every_question_answer_and_decision_is_in_the_audit_log() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let denied = execute(&mut client, ONE_CALL);
    say(&mut client, &denied, &json!({"approved": false}));
    assert_eq!(told(&home, &denied), ["asked", "answered", "decided"]);
    let allowed = execute(&mut client, ONE_CALL);
    remember_as_person(&home, &allowed, &["code"]);
    assert_eq!(say(&mut client, &allowed, &json!({}))["status"], "success");
    assert_eq!(told(&home, &allowed), ["asked", "rule made", "answered", "decided"]);
    let by_rule = execute(&mut client, ONE_CALL);
    assert_eq!(
        (&by_rule["status"], told(&home, &by_rule)),
        (&json!("success"), vec!["allowed by rule".to_owned()])
    );
    let verified = home.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    // What is refused leaves no answer behind.
    let open = execute(&mut client, ONE_CALL.replace("x", "y").as_str());
    say(&mut client, &open, &json!({"approved": true, "answer": {"anyArguments": 0}}));
    assert_eq!(told(&home, &open), ["asked"]);
}
