//! The gateway is killed at any moment of DAG runs. The ledger says what really happened.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::dice::{Dice, number};
use crate::gateway::Gateway;
use crate::harness::{Home, eventually, lives};
use crate::ledger::{self, Ledger, WAIT};
use crate::place::execution;

/// How many homes are tormented at a time.
const HOMES: u64 = 3;

#[test]
fn whatever_the_moment_of_a_kill_every_task_runs_in_its_turn_and_once() {
    let (kills, seed) = (number("PML_DAG_KILLS", 60), number("PML_SEED", 1));
    let homes: Vec<_> = (0..HOMES)
        .map(|home| std::thread::spawn(move || torment(seed + home, kills.div_ceil(HOMES))))
        .collect();
    let mut runs = 0;
    for home in homes {
        runs += home.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    assert!(runs as u64 > kills / 2, "only {runs} runs came through {kills} kills");
}

#[test]
fn a_program_that_was_under_way_goes_on_where_it_was() {
    let home = ledger::home("");
    let ledger = Ledger::of(&home);
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = format!(
        "const began = Date.now(); await mcp.ledger.add({{ id: 'first' }}); {WAIT}\n\
         await mcp.ledger.add({{ id: 'second ' + began }}); return began"
    );
    let tasks = json!([
        { "id": "before", "tool": "ledger:add", "arguments": { "id": "before" } },
        { "id": "program", "code": code },
        { "id": "late", "code": code.replace("first", "third").replace("second", "fourth"), "dependsOn": ["before"] },
        { "id": "after", "tool": "ledger:add", "arguments": { "id": "after {{program}}" }, "dependsOn": ["late"] },
    ]);
    let request = gateway.begin("tools/call", &execution(&tasks, &json!({}), &json!({ "detach": true })));
    let id = gateway.outcome(request)["workflowId"].clone();
    eventually("both programs wait", || {
        let added = ledger.added();
        added.contains(&"first".to_owned())
            && added.contains(&"third".to_owned())
            && ledger.count("answered", "get") > 1
    });
    for _ in 0..2 {
        gateway.kill();
        gateway = Gateway::start(home.command(&["stdio"]));
        let heard = ledger.count("answered", "get");
        eventually("it goes on", || ledger.count("answered", "get") > heard + 1);
    }
    ledger.go();
    let said = gateway.call("pml_continue", &json!({ "workflow_id": id }));
    assert_eq!(said["status"], "success", "{said}");
    let added = ledger.added();
    assert_eq!(added.len(), 6, "{added:?}");
    let began = |mark: &str| added.iter().find_map(|id| id.strip_prefix(mark)).unwrap().to_owned();
    assert_eq!(began("after "), began("second "), "its clock is the same in every life");
}

/// A run somebody wants.
struct Wanted {
    name: String,
    /// What each id waits for.
    after: HashMap<String, Vec<String>>,
    /// All that must be there in the end.
    ids: Vec<String>,
}

fn torment(seed: u64, kills: u64) -> usize {
    let home = ledger::home("[limits]\nconcurrent_per_server = 4\n");
    let mut dice = Dice(seed);
    let mut wanted: Vec<Wanted> = Vec::new();
    for _ in 0..kills {
        let mut gateway = Gateway::start(home.command(&["stdio"]));
        for _ in 0..dice.roll(3) {
            let (tasks, want) = document(wanted.len(), &mut dice);
            let mut params = execution(&tasks, &json!({}), &json!({ "detach": true }));
            params["_meta"] = json!({ "pml/idempotencyKey": want.name });
            params["arguments"]["intent"] = json!(want.name);
            let request = gateway.begin("tools/call", &params);
            gateway.wait_until_answered(request, Duration::from_millis(dice.roll(300)));
            wanted.push(want);
        }
        std::thread::sleep(Duration::from_millis(dice.roll(400)));
        gateway.kill();
        in_order(&home, &wanted, seed);
    }
    let runs = come_to_an_end(&home, seed);
    in_order(&home, &wanted, seed);
    let added = Ledger::of(&home).added();
    for want in wanted.iter().filter(|want| runs.contains_key(&want.name)) {
        for id in &want.ids {
            assert!(added.contains(id), "seed {seed}: {id} is missing though `{}` is done", want.name);
        }
    }
    runs.len()
}

/// A document of up to twelve tasks: adding, putting, and programs that add twice.
fn document(number: usize, dice: &mut Dice) -> (Value, Wanted) {
    let name = format!("r{number}");
    let mut wanted = Wanted { name: name.clone(), after: HashMap::new(), ids: Vec::new() };
    let mut last: Vec<String> = Vec::new();
    let mut tasks = Vec::new();
    for n in 0..2 + dice.roll(11) {
        let mut after: Vec<u64> = (0..dice.roll(3)).filter(|_| n > 0).map(|_| dice.roll(n.max(1))).collect();
        after.sort_unstable();
        after.dedup();
        let before: Vec<String> = after.iter().map(|place| last[*place as usize].clone()).collect();
        let depends: Vec<String> = after.iter().map(|place| format!("t{place}")).collect();
        let (wait, then) = (dice.roll(25), dice.roll(25));
        let id = format!("{name}.t{n}");
        let mut task = match dice.roll(4) {
            0 => {
                let second = format!("{id}.b");
                wanted.after.insert(id.clone(), before);
                wanted.after.insert(second.clone(), vec![id.clone()]);
                wanted.ids.extend([id.clone(), second.clone()]);
                last.push(second);
                json!({ "arguments": { "id": id, "before": wait, "after": then },
                        "code": "await mcp.ledger.add(args); await mcp.ledger.add({ ...args, id: args.id + '.b' }); return args.id" })
            }
            1 => {
                // It may be done again, but not too early.
                last.push(id.clone());
                wanted.after.insert(id.clone(), before);
                json!({ "tool": "ledger:put", "arguments": { "key": id, "value": n, "before": wait, "after": then }, "retries": 2 })
            }
            _ => {
                wanted.after.insert(id.clone(), before);
                wanted.ids.push(id.clone());
                last.push(id.clone());
                json!({ "tool": "ledger:add", "arguments": { "id": id, "before": wait, "after": then } })
            }
        };
        task["id"] = json!(format!("t{n}"));
        task["dependsOn"] = json!(depends);
        tasks.push(task);
    }
    (json!(tasks), wanted)
}

/// Nothing was added twice, and nothing was asked for before what it waits for was done.
fn in_order(home: &Home, wanted: &[Wanted], seed: u64) {
    let after: HashMap<&String, &Vec<String>> = wanted.iter().flat_map(|want| &want.after).collect();
    let mut done: HashMap<String, u32> = HashMap::new();
    for event in Ledger::of(home).events() {
        let Some(id) = event["id"].as_str().or(event["key"].as_str()) else { continue };
        match event["event"].as_str() {
            Some("got") => {
                for before in after[&id.to_owned()] {
                    assert!(
                        done.contains_key(before),
                        "seed {seed}: {id} was asked for before {before} was done"
                    );
                }
            }
            Some("done") => {
                let times = done.entry(id.to_owned()).or_default();
                *times += 1;
                assert!(*times == 1 || event["tool"] == "put", "seed {seed}: {id} was added {times} times");
            }
            _ => {}
        }
    }
}

/// A person says what became of calls in doubt until every run is over; gives the runs that are done by their names.
fn come_to_an_end(home: &Home, seed: u64) -> HashMap<String, Value> {
    // What the servers of killed gateways have begun they finish; only then can anybody tell what they did.
    eventually("the servers have ended", || {
        let starts = Ledger::of(home).events().into_iter().filter(|event| event["event"] == "start");
        starts.map(|event| u32::try_from(event["pid"].as_u64().unwrap()).unwrap()).all(|pid| !lives(pid))
    });
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let listed = |state: &str| -> Vec<Value> {
        let list = home.run(&["runs", "list", "--json", "--state", state, "--limit", "1000"]);
        serde_json::from_str(&list.stdout).unwrap_or_else(|error| panic!("{error}: {list:?}"))
    };
    eventually("every run comes to its end", || {
        for row in listed("waiting") {
            answer(&mut gateway, &row["workflowId"], &Ledger::of(home).added());
        }
        ["running", "interrupted", "waiting"].iter().all(|state| listed(state).is_empty())
    });
    assert!(listed("failed").is_empty(), "seed {seed}: {:?}", listed("failed"));
    listed("done").into_iter().map(|row| (row["intent"].as_str().unwrap().to_owned(), row)).collect()
}

fn answer(gateway: &mut Gateway, id: &Value, added: &[String]) {
    let state = gateway.call("pml_get_task_result", &json!({ "workflow_id": id }));
    let Some(calls) = state["question"]["calls"].as_array() else { return };
    let verdict = |call: &Value| {
        let given: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        let id = given["id"].as_str().unwrap();
        match added.iter().any(|added| added == id) {
            true => {
                json!({ "call": call["call"], "verdict": "done", "result": json!({ "id": id }).to_string() })
            }
            false => json!({ "call": call["call"], "verdict": "again" }),
        }
    };
    let calls: Vec<Value> = calls.iter().map(verdict).collect();
    gateway.call("pml_continue", &json!({ "workflow_id": id, "answer": { "calls": calls } }));
}
