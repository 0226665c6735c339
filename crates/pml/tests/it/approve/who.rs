//! Whose answer counts: the strictest of the run's setting, the door and the configuration now.

use serde_json::{Value, json};

use super::{
    ONE_CALL, by_api, code, configure, execute, hits, home, over_http, refused, remember_as_person, request,
    say, saying, state, yes,
};
use crate::harness::{Home, eventually};

/// How many rules there are.
fn rules(home: &Home) -> usize {
    let listed: Value = serde_json::from_str(&home.run(&["rules", "list", "--json"]).stdout).unwrap();
    listed.as_array().unwrap().len()
}

#[test]
fn whoever_has_the_token_cannot_answer_a_question_of_a_client_on_standard_streams() {
    let home = home("");
    let (mut client, served) = (home.stdio(&[]), home.serve(&[]));
    let reply = execute(&mut client, ONE_CALL);
    assert_eq!(reply["question"]["by"], "client", "{reply}");
    for said in [json!({"approved": true}), json!({"answer": {"approved": true, "anyArguments": 3}})] {
        let denied = over_http(&served, "pml_continue", &saying(&reply, &said));
        assert_eq!((code(&denied), hits(&home)), ("DENIED", 0), "{denied}");
        assert!(denied["error"]["message"].as_str().unwrap().contains("over HTTP"), "{denied}");
        assert!(denied["error"]["hint"].as_str().unwrap().contains("dashboard"), "{denied}");
    }
    let (status, denied) = by_api(&served, &reply, &json!({"approved": true}));
    assert_eq!((status, &denied["error"]["code"]), (403, &json!("DENIED")), "{denied}");
    assert_eq!((state(&home, &reply).as_str(), refused(&home, &reply)), ("waiting", 3));
    assert_eq!(yes(&mut client, &reply)["status"], "success", "its own client may");
    assert_eq!(hits(&home), 1);
    assert_eq!(home.run(&["audit", "verify"]).code, 0);
}

#[test]
fn no_client_makes_a_rule_by_whichever_way_it_answers() {
    let home = home("[approvals]\nby = \"client\"\n");
    let (mut client, served) = (home.stdio(&[]), home.serve(&[]));
    let reply = execute(&mut client, ONE_CALL);
    let remember = json!({"approved": true, "remember": {"only": "tool", "anyArguments": true}});
    let said = json!({"answer": remember});
    let refusals = [
        say(&mut client, &reply, &said),
        over_http(&served, "pml_continue", &saying(&reply, &said)),
        by_api(&served, &reply, &remember).1,
    ];
    for denied in refusals {
        assert_eq!(code(&denied), "DENIED", "{denied}");
        let error = &denied["error"];
        assert!(error["message"].as_str().unwrap().contains("only a person can make a rule"), "{denied}");
        assert!(error["hint"].as_str().unwrap().contains("without `remember`"), "{denied}");
    }
    let run = reply["workflowId"].as_str().unwrap();
    let shell = home.run(&["runs", "approve", run, "--remember", "tool", "--whatever"]);
    assert!(shell.code != 0 && shell.stderr.contains("passphrase"), "{shell:?}");
    assert_eq!((state(&home, &reply).as_str(), hits(&home), rules(&home)), ("waiting", 0, 0));
    assert_eq!(refused(&home, &reply), 3);
    assert_eq!(yes(&mut client, &reply)["status"], "success", "without a rule its answer counts");
    assert_eq!((hits(&home), rules(&home)), (1, 0));
}

#[test]
fn a_rule_that_a_person_made_counts_where_only_people_may_answer() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute(&mut client, ONE_CALL);
    remember_as_person(&home, &reply, &["code"]);
    assert_eq!(say(&mut client, &reply, &json!({}))["status"], "success");
    configure(&home, "[approvals]\nby = \"human\"\n");
    let other = ONE_CALL.replace("[1, 2]", "[3]");
    eventually("the setting counts", || execute(&mut client, &other)["question"]["by"] == "human");
    assert_eq!(execute(&mut client, ONE_CALL)["status"], "success", "the person's rule still counts");
    let listed: Value = serde_json::from_str(&home.run(&["rules", "list", "--json"]).stdout).unwrap();
    assert_eq!(listed[0]["madeByPerson"], true, "{listed}");
}

/// What comes of a yes over standard streams and over HTTP to a run that was started under one setting and is answered
/// under another.
#[track_caller]
fn answered(started: &str, now: &str) -> (String, String) {
    let setting = |by: &str| match by {
        "" => String::new(),
        by => format!("[approvals]\nby = \"{by}\"\n"),
    };
    let home = home(&setting(started));
    let mut first = home.stdio(&[]);
    let runs = [execute(&mut first, ONE_CALL), execute(&mut first, &ONE_CALL.replace('x', "y"))];
    first.finish();
    configure(&home, &setting(now));
    let (mut client, served) = (home.stdio(&[]), home.serve(&[]));
    let word = |reply: &Value| match code(reply) {
        "" => reply["status"].as_str().unwrap().to_owned(),
        code => code.to_owned(),
    };
    let by_stdio = word(&yes(&mut client, &runs[0]));
    let by_http = word(&over_http(&served, "pml_continue", &saying(&runs[1], &json!({"approved": true}))));
    let done = [&by_stdio, &by_http].iter().filter(|word| **word == "success").count();
    assert_eq!(hits(&home), done, "started under {started:?}, answered under {now:?}");
    assert_eq!(refused(&home, &runs[0]), usize::from(by_stdio == "DENIED"));
    assert_eq!(refused(&home, &runs[1]), usize::from(by_http == "DENIED"));
    (by_stdio, by_http)
}

#[test]
fn an_answer_counts_only_if_it_does_under_all_three_settings() {
    for (started, now, by_stdio, by_http) in [
        ("", "", "success", "DENIED"),
        ("", "client", "success", "success"),
        ("", "human", "DENIED", "DENIED"),
        ("client", "", "success", "DENIED"),
        ("client", "client", "success", "success"),
        ("client", "human", "DENIED", "DENIED"),
        ("human", "", "DENIED", "DENIED"),
        ("human", "client", "DENIED", "DENIED"),
        ("human", "human", "DENIED", "DENIED"),
    ] {
        let (stdio, http) = answered(started, now);
        assert_eq!((stdio.as_str(), http.as_str()), (by_stdio, by_http), "{started:?} then {now:?}");
    }
}

#[test]
fn a_run_of_an_http_client_stays_a_persons_whatever_the_configuration_says_later() {
    let home = home("");
    let served = home.serve(&[]);
    let reply = over_http(&served, "pml_execute", &request(ONE_CALL, &json!({})));
    drop(served);
    configure(&home, "[approvals]\nby = \"client\"\n");
    let (mut client, served) = (home.stdio(&[]), home.serve(&[]));
    assert_eq!(code(&yes(&mut client, &reply)), "DENIED");
    assert_eq!(
        code(&over_http(&served, "pml_continue", &saying(&reply, &json!({"approved": true})))),
        "DENIED"
    );
    let run = reply["workflowId"].as_str().unwrap();
    assert_ne!(home.run(&["runs", "approve", run]).code, 0, "nor a shell");
    let person = home.run_as_person(&["runs", "approve", run]);
    assert_eq!((person.code, hits(&home)), (0, 1), "{person:?}");
}
