//! Questions outlive the processes that asked them, and a yes is one effect, whenever the gateway is killed.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use pml_model::question::Question;
use pml_model::{Digest, RunState};
use serde_json::{Value, json};

use crate::dice::{Dice, number};
use crate::gateway::{Gateway, children};
use crate::harness::{Home, eventually};
use crate::journal::Journal;
use crate::ledger::{self, Ledger};
use crate::resume::{listed, state};
use crate::sleep::ahead;

/// Its arguments are known beforehand: it asks before it begins.
const KNOWN: &str = "return (await mcp.ledger.add({ id: args.id })).id;";
/// Which tool it calls is not known beforehand: it asks at the call.
const UNKNOWN: &str = "return (await mcp[args.server].add({ id: args.id })).id;";

fn context(id: &str) -> Value {
    json!({ "id": id, "server": "ledger" })
}

/// Asks for a run and gives the question.
#[track_caller]
fn asks(gateway: &mut Gateway, code: &str, id: &str) -> Value {
    let reply = gateway.run(code, &context(id));
    assert_eq!(reply["status"], "approval_required", "{reply}");
    reply
}

fn says(gateway: &mut Gateway, reply: &Value, approved: bool) -> Value {
    gateway.call("pml_continue", &json!({ "workflow_id": reply["workflowId"], "approved": approved }))
}

/// What is asked, by run, as it is in the database: its name and the digest of all it says. Nobody has answered.
fn open_questions(home: &Home) -> BTreeMap<String, (String, String)> {
    let journal = Journal::of(home);
    let mut open = BTreeMap::new();
    for row in journal.runs() {
        let run = journal.load(&row.id);
        assert!(run.answers.is_empty(), "somebody answered {}", row.id);
        assert_eq!(run.run.state, RunState::Waiting, "{}", row.id);
        let (id, question) = run.question.expect("it asks");
        let Question::Approval(asked) = &question else { panic!("{question:?}") };
        assert_eq!(asked.calls.len(), 1);
        let digest = Digest::of(serde_json::to_string(&question).unwrap().as_bytes());
        open.insert(row.id.to_string(), (id, digest.to_string()));
    }
    open
}

#[test]
fn fifty_questions_survive_two_hundred_kills_and_are_answered_once() {
    const QUESTIONS: usize = 50;
    let home = ledger::asking_home("[runs]\nworkers = 1\n[approvals]\nopen = 2000\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let mut replies = Vec::new();
    for n in 0..QUESTIONS {
        let code = if n % 2 == 0 { KNOWN } else { UNKNOWN };
        replies.push(asks(&mut gateway, code, &format!("q{n}")));
    }
    gateway.kill();
    let first = open_questions(&home);
    assert_eq!(first.len(), QUESTIONS);
    for reply in &replies {
        let (id, _) = &first[reply["workflowId"].as_str().unwrap()];
        assert_eq!(json!(id), reply["questionId"], "what was told is what is stored");
    }

    let mut dice = Dice(number("PML_SEED", 1));
    for kill in 0..number("PML_KILLS_ASKING", 200) {
        let mut gateway = Gateway::start(home.command(&["stdio"]));
        // Some look at it, or wait for an answer, when it happens.
        for _ in 0..dice.roll(4) {
            let run = &replies[usize::try_from(dice.roll(QUESTIONS as u64)).unwrap()]["workflowId"];
            let tool = ["pml_continue", "pml_get_task_result"][usize::try_from(dice.roll(2)).unwrap()];
            gateway.begin("tools/call", &json!({ "name": tool, "arguments": { "workflow_id": run } }));
        }
        std::thread::sleep(Duration::from_millis(dice.roll(120)));
        gateway.kill();
        if kill % 20 == 0 {
            assert_eq!(open_questions(&home), first, "after {kill} kills");
        }
    }
    assert_eq!(open_questions(&home), first);
    assert!(Ledger::of(&home).ids("got").is_empty(), "nobody had said yes");

    let mut gateway = Gateway::start(home.command(&["stdio"]));
    for (n, reply) in replies.iter().enumerate() {
        let approved = n % 3 != 0;
        let came = says(&mut gateway, reply, approved);
        let expected = if approved { "success" } else { "failed" };
        assert_eq!(came["status"], expected, "{came}");
        let again = says(&mut gateway, reply, true);
        assert_eq!(again["error"]["code"], "GONE", "{again}");
    }
    let expected: Vec<String> = (0..QUESTIONS).filter(|n| n % 3 != 0).map(|n| format!("q{n}")).collect();
    assert_eq!(Ledger::of(&home).added(), expected, "one yes, one effect");
}

#[test]
fn a_yes_is_one_effect_whenever_the_gateway_is_killed_after_it() {
    let home = ledger::asking_home("[runs]\nworkers = 1\n[approvals]\nopen = 2000\n");
    let mut dice = Dice(number("PML_SEED", 1) + 7);
    let mut runs = HashMap::new();
    for n in 0..30 {
        let (id, code) = (format!("y{n}"), [KNOWN, UNKNOWN][n % 2]);
        let mut gateway = Gateway::start(home.command(&["stdio"]));
        let reply = asks(&mut gateway, code, &id);
        let run = reply["workflowId"].as_str().unwrap().to_owned();
        match n % 3 {
            // Said while no gateway runs.
            0 => {
                gateway.kill();
                assert_eq!(home.run(&["runs", "approve", &run, "--detach"]).code, 0);
                gateway = Gateway::start(home.command(&["stdio"]));
            }
            // Said to the gateway that is killed.
            _ => {
                let arguments = json!({ "workflow_id": run, "approved": true });
                gateway.begin("tools/call", &json!({ "name": "pml_continue", "arguments": arguments }));
            }
        }
        if n % 5 == 4 {
            std::fs::write(home.path("aim"), ["got", "done", "answered"][n % 3]).unwrap();
        }
        std::thread::sleep(Duration::from_millis(dice.roll(250)));
        gateway.kill();
        drop(std::fs::remove_file(home.path("aim")));
        runs.insert(run, id);
    }
    let _last = Gateway::start(home.command(&["stdio"]));
    let unsettled = |row: &Value| row["state"] == "running" || row["state"] == "interrupted";
    eventually("all are done or ask", || !listed(&home).iter().any(unsettled));
    let times = |id: &str| Ledger::of(&home).added().iter().filter(|one| *one == id).count();
    for (run, id) in &runs {
        assert!(times(id) <= 1, "{id} was added {} times", times(id));
        if state(&home, run) == "done" {
            assert_eq!(times(id), 1, "{id}");
        } else {
            settle(&home, run, id, times(id) == 1);
        }
    }
    eventually("all are done", || listed(&home).iter().all(|row| row["state"] == "done"));
    assert!(runs.values().all(|id| times(id) == 1), "{:?}", Ledger::of(&home).added());
}

/// A person says what became of a call that nobody knows the end of, or yes where the kill came before the answer.
fn settle(home: &Home, run: &str, id: &str, acted: bool) {
    let shown = home.run(&["runs", "resume", run, "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{shown:?}"));
    let done = format!("1={}", json!({ "id": id }));
    let said = match shown["question"]["type"].as_str() {
        Some("in_doubt") => {
            home.run(&["runs", "resume", run, "--call", if acted { &done } else { "1=again" }])
        }
        Some("approval") => {
            assert!(!acted, "{id} was done and nobody had said yes");
            home.run(&["runs", "approve", run])
        }
        other => panic!("{other:?}: {shown}"),
    };
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_question_expires_by_the_clock_on_the_wall_and_a_rule_with_its_days() {
    const HOUR: i64 = 60 * 60;
    let home = ledger::asking_home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let forgotten = asks(&mut gateway, KNOWN, "forgotten");
    let remembered = asks(&mut gateway, KNOWN, "remembered");
    let run = remembered["workflowId"].as_str().unwrap();
    let approved =
        home.run_as_person(&["runs", "approve", run, "--detach", "--remember", "code", "--days", "1"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    assert_eq!(gateway.call("pml_continue", &json!({ "workflow_id": run }))["status"], "success");
    assert_eq!(gateway.run(KNOWN, &context("remembered"))["status"], "success", "it is not asked for again");
    gateway.kill();

    let id = forgotten["workflowId"].as_str().unwrap();
    let mut early = Gateway::start(ahead(&home, 23 * HOUR, &["stdio"]));
    assert_eq!(early.run(KNOWN, &context("remembered"))["status"], "success");
    assert_eq!(state(&home, id), "waiting");
    early.kill();
    let mut late = Gateway::start(ahead(&home, 25 * HOUR, &["stdio"]));
    eventually("it expires", || state(&home, id) == "expired");
    asks(&mut late, KNOWN, "remembered");
    let told = home.run(&["audit", "list", "--json", "--limit", "1000"]).stdout;
    assert_eq!(
        (told.matches("\"rule made\"").count(), told.matches("\"rule expired\"").count()),
        (1, 1),
        "{told}"
    );
    assert_eq!(says(&mut late, &forgotten, true)["error"]["code"], "GONE");
    assert_eq!(Ledger::of(&home).added(), ["remembered"; 3]);
}

#[test]
fn waiting_for_a_person_is_no_time_of_the_run() {
    let home = ledger::asking_home("");
    let code = r#"
        const ends = [];
        for (const id of args.ids) {
          ends.push(await mcp.ledger.add({ id }).then((added) => added.id, (error) => error.code));
        }
        return ends;
    "#;
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let request = gateway.execute(code, &json!({ "ids": ["a", "b", "c"] }), &json!({ "timeoutMs": 5000 }));
    let mut reply = gateway.outcome(request);
    gateway.kill();
    // Each answer comes a minute later than the last.
    for (minutes, approved) in (1..).zip([true, true, false, true]) {
        assert_eq!(reply["status"], "approval_required", "{reply}");
        let mut gateway = Gateway::start(ahead(&home, minutes * 60, &["stdio"]));
        reply = says(&mut gateway, &reply, approved);
        gateway.kill();
    }
    assert_eq!(reply["result"], json!(["a", "DENIED", "c"]), "{reply}");
    assert_eq!(Ledger::of(&home).added(), ["a", "c"]);
}

/// Bytes of memory a process has in use now.
fn resident(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn a_thousand_runs_that_wait_for_a_person_hold_no_process_and_no_memory() {
    const RUNS: usize = 1_000;
    let home = ledger::asking_home("[runs]\nworkers = 1\n[approvals]\nopen = 2000\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let mut replies = Vec::new();
    let mut before = 0;
    while replies.len() < RUNS {
        let requests: Vec<u64> = (0..20)
            .map(|n| gateway.execute(UNKNOWN, &context(&format!("w{}", replies.len() + n)), &json!({})))
            .collect();
        for request in requests {
            let reply = gateway.outcome(request);
            assert_eq!(reply["status"], "approval_required", "{reply}");
            replies.push(reply);
        }
        if replies.len() == RUNS / 5 {
            before = resident(gateway.child.id());
        }
    }
    eventually("no worker is left but an idle one", || gateway.workers().len() <= 1);
    let grown = resident(gateway.child.id()).saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes for {} runs", RUNS - RUNS / 5);
    let all = children(gateway.child.id()).len();
    assert!(all <= 3, "{all} processes");
    assert_eq!(Ledger::of(&home).count("got", "add"), 0);
    // Each of them can be answered all the same.
    for n in [0, RUNS / 2, RUNS - 1] {
        assert_eq!(says(&mut gateway, &replies[n], true)["result"], format!("w{n}"));
    }
    assert_eq!(Ledger::of(&home).added().len(), 3);
}
