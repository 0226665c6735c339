//! What is remembered of a yes: for which code, which tool, which definition and which arguments.

use serde_json::{Value, json};

use super::voided::{flip, flip_back};
use super::{asked, code, execute_with, hits, home, remember_as_person, say, yes};
use crate::harness::{Client, Home, eventually};

const ECHO: &str = "return await mcp.s.echo({ v: args.v });";

fn v(value: u32) -> Value {
    json!({"v": value})
}

/// A person allows what `code` asks and has it remembered.
#[track_caller]
fn remember(home: &Home, client: &mut Client, code: &str, context: &Value, how: &[&str]) {
    let reply = execute_with(client, code, context);
    remember_as_person(home, &reply, how);
    let done = say(client, &reply, &json!({}));
    assert_eq!(done["status"], "success", "{done}");
}

#[track_caller]
fn runs_unasked(client: &mut Client, code: &str, context: &Value) {
    let reply = execute_with(client, code, context);
    assert_eq!(reply["status"], "success", "{code} {context}: {reply}");
}

#[track_caller]
fn is_asked(client: &mut Client, code: &str, context: &Value) {
    asked(&execute_with(client, code, context));
}

#[test]
fn what_is_remembered_for_a_program_counts_for_that_code_and_those_arguments() {
    let home = home("");
    let mut client = home.stdio(&[]);
    remember(&home, &mut client, ECHO, &v(1), &["code"]);
    runs_unasked(&mut client, ECHO, &v(1));
    is_asked(&mut client, ECHO, &v(2));
    is_asked(&mut client, &ECHO.replace("return await", "return  await"), &v(1));
    is_asked(&mut client, &ECHO.replace("echo", "ok"), &v(1));
    assert_eq!(hits(&home), 2);
    // Another session of the same person's is not asked either, nor is another process.
    runs_unasked(&mut home.stdio(&[]), ECHO, &v(1));
}

#[test]
fn what_is_remembered_for_a_tool_counts_in_any_code() {
    let home = home("");
    let mut client = home.stdio(&[]);
    remember(&home, &mut client, ECHO, &v(1), &["tool"]);
    let other = "const given = { v: 1 };\nreturn (await mcp.s.echo(given)).v;";
    runs_unasked(&mut client, other, &json!({}));
    is_asked(&mut client, ECHO, &v(2));
    remember(&home, &mut client, ECHO, &v(2), &["tool", "--whatever"]);
    runs_unasked(&mut client, ECHO, &v(3));
    let looped = "for (const v of [4, 5, 6]) await mcp.s.echo({ v });\nreturn 1;";
    runs_unasked(&mut client, looped, &json!({}));
    let opaque = "return (await mcp[args.server].echo({ v: 7 })).v;";
    runs_unasked(&mut client, opaque, &json!({"server": "s"}));
    is_asked(&mut client, &ECHO.replace("echo", "ok"), &v(1));
}

#[test]
fn what_becomes_known_at_the_call_is_allowed_by_what_is_remembered_of_it() {
    let home = home("");
    std::fs::write(home.path("v.txt"), "seven-of-nine").unwrap();
    let mut client = home.stdio(&[]);
    let program =
        "const { content } = await mcp.fs.read({ path: args.path });\nreturn await mcp.s.echo({ content });";
    let path = |name: &str| json!({"path": name});
    let begun = execute_with(&mut client, program, &path("v.txt"));
    let at_the_call = yes(&mut client, &begun);
    remember_as_person(&home, &at_the_call, &["code"]);
    assert_eq!(say(&mut client, &at_the_call, &json!({}))["status"], "success");
    runs_unasked(&mut client, program, &path("v.txt"));
    std::fs::write(home.path("w.txt"), "something else").unwrap();
    let other = execute_with(&mut client, program, &path("w.txt"));
    assert_eq!(asked(&other), [r#"s:echo {"content":"something else"}"#], "asked at the call");
    assert_eq!(hits(&home), 2);
}

#[test]
fn a_no_is_not_remembered_as_a_yes() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute_with(&mut client, ECHO, &v(1));
    let no = json!({"approved": false, "answer": {"remember": {"only": "tool", "anyArguments": true}}});
    assert_eq!(code(&say(&mut client, &reply, &no)), "DENIED");
    is_asked(&mut client, ECHO, &v(1));
    assert_eq!(hits(&home), 0);
}

#[test]
fn a_word_that_cannot_be_meant_is_refused_in_the_same_words_wherever_it_is_said() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute_with(&mut client, ECHO, &v(1));
    for days in [0, 366] {
        let remember = json!({"approved": true, "answer": {"remember": {"only": "tool", "days": days}}});
        let refused = say(&mut client, &reply, &remember);
        assert_eq!(code(&refused), "INVALID_REQUEST", "{refused}");
        assert_eq!(refused["error"]["message"], format!("`days` is {days}"));
        assert_eq!(refused["error"]["hint"], "give 1 to 365 days");
        let run = reply["workflowId"].as_str().unwrap();
        let said = home.run(&["runs", "approve", run, "--remember", "tool", "--days", &days.to_string()]);
        assert!(said.code != 0 && said.stderr.contains(&format!("`days` is {days}")), "{said:?}");
    }
    let twice = json!({"approved": false, "answer": {"approved": true}});
    assert_eq!(code(&say(&mut client, &reply, &twice)), "INVALID_REQUEST");
    let calls = json!({"approved": true, "answer": {"calls": [{"call": 1, "verdict": "again"}]}});
    assert_eq!(code(&say(&mut client, &reply, &calls)), "INVALID_REQUEST");
    assert_eq!(hits(&home), 0);
    assert_eq!(say(&mut client, &reply, &json!({"answer": {"approved": true}}))["status"], "success");
}

#[test]
fn another_definition_ends_what_was_remembered_for_good() {
    let home = home("");
    let mut client = home.stdio(&[]);
    remember(&home, &mut client, ECHO, &v(1), &["code"]);
    remember(&home, &mut client, ECHO, &v(2), &["tool", "--whatever"]);
    runs_unasked(&mut client, ECHO, &v(1));
    runs_unasked(&mut client, ECHO, &v(3));
    let before = hits(&home);
    flip(&mut client);
    is_asked(&mut client, ECHO, &v(1));
    is_asked(&mut client, ECHO, &v(3));
    flip_back(&mut client);
    is_asked(&mut client, ECHO, &v(1));
    is_asked(&mut client, ECHO, &v(3));
    assert_eq!(hits(&home), before);
    let listed = home.run(&["audit", "list", "--json", "--limit", "1000"]);
    let rows: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap_or_else(|_| panic!("{listed:?}"));
    let of = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).count();
    assert_eq!((of("rule made"), of("rule voided")), (2, 2), "{rows:?}");
    assert_eq!(home.run(&["audit", "verify"]).code, 0);
}

#[test]
fn a_rule_that_denies_now_is_stronger_than_any_yes() {
    let home: Home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute_with(&mut client, ECHO, &v(1));
    super::configure(&home, "[permissions]\n\"s:echo\" = { deny = true }\n");
    eventually("the rule counts", || code(&execute_with(&mut client, ECHO, &v(1))) == "DENIED");
    let denied = yes(&mut client, &reply);
    assert_eq!((code(&denied), hits(&home)), ("DENIED", 0), "{denied}");
}

#[test]
fn rules_are_listed_and_taken_back_on_the_terminal() {
    let home = home("");
    let mut client = home.stdio(&[]);
    assert!(home.run(&["rules", "list"]).stderr.contains("no rules"));
    remember(&home, &mut client, ECHO, &v(1), &["code"]);
    remember(&home, &mut client, ECHO, &v(2), &["tool", "--whatever"]);
    runs_unasked(&mut client, ECHO, &v(3));
    let listed = home.run(&["rules", "list"]).stdout;
    let rows: Vec<Vec<&str>> =
        listed.lines().skip(1).map(|line| line.split_whitespace().take(4).collect()).collect();
    assert_eq!(rows, [["2", "s:echo", "any", "any"], ["1", "s:echo", "only", "the"]], "{listed}");
    let list = || -> Value { serde_json::from_str(&home.run(&["rules", "list", "--json"]).stdout).unwrap() };
    let before = list();
    assert_eq!(
        (&before[0]["id"], &before[0]["uses"], &before[0]["revokedAt"]),
        (&json!(2), &json!(1), &Value::Null)
    );

    let revoked = home.run(&["rules", "revoke", "2"]);
    assert_eq!(
        (revoked.code, revoked.stdout.as_str()),
        (0, "rule 2 for s:echo is taken back\n"),
        "{revoked:?}"
    );
    is_asked(&mut client, ECHO, &v(3));
    runs_unasked(&mut client, ECHO, &v(1));
    assert!(list()[0]["revokedAt"].is_i64(), "{}", list());
    let log: Value =
        serde_json::from_str(&home.run(&["audit", "list", "--limit", "1000", "--json"]).stdout).unwrap();
    let entry = log.as_array().unwrap().iter().find(|entry| entry["kind"] == "rule revoked").unwrap();
    assert_eq!(
        (&entry["body"]["rule"], &entry["body"]["tool"], &entry["body"]["by"]),
        (&json!(2), &json!("s:echo"), &json!("the terminal"))
    );
    assert_eq!(home.run(&["audit", "verify"]).code, 0);

    for (number, text) in [("2", "rule `2` does not count any more"), ("7", "there is no rule `7`")] {
        let refused = home.run(&["rules", "revoke", number]);
        assert!(refused.code == 1 && refused.stderr.contains(text), "{refused:?}");
    }
}
