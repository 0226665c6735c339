//! Ten thousand programs that go after tools they may not call.
//!
//! Each is given to the gateway, which refuses it, runs it or asks a person, who does not answer; and to a worker alone,
//! which shows what would happen if analysis had let it through. `PML_EVASIONS` sets how many are made. What counts is what
//! `danger` wrote down: nothing.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::{Gateway, Reply, honeypot};
use crate::grammar::{evasion, ways};
use crate::sandbox::{Played, READ, Sandbox};

const DEFAULT: u64 = 10_000;
/// How many requests are under way at a time.
const WINDOW: u64 = 16;

fn how_many() -> u64 {
    std::env::var("PML_EVASIONS").map_or(DEFAULT, |text| text.parse().expect("PML_EVASIONS is a number"))
}

/// How many programs came to which end.
#[derive(Default)]
struct Count(BTreeMap<String, u64>);

impl Count {
    fn add(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    fn of(&self, is: impl Fn(&str) -> bool) -> u64 {
        self.0.iter().filter(|(what, _)| is(what)).map(|(_, count)| count).sum()
    }

    #[expect(clippy::print_stderr, reason = "whoever runs the test sees what the programs were")]
    fn tell(&self, title: &str) {
        eprintln!("{title}");
        self.0.iter().for_each(|(what, count)| eprintln!("{count:>7}  {what}"));
    }
}

#[test]
fn all_ways_are_taken() {
    let taken: HashSet<&str> = (0..1_000).flat_map(|seed| evasion(seed).ways).collect();
    // Some ways of different steps have the same name.
    assert!(taken.len() > ways() / 2, "{} of {}", taken.len(), ways());
    assert_eq!(evasion(7).code, evasion(7).code);
}

#[test]
fn the_gateway_lets_nothing_through_that_nobody_allowed() {
    let count = through_the_gateway("ask");
    assert!(count.of(|end| end.starts_with("asks for danger")) > how_many() / 50, "hardly anybody was asked");
}

#[test]
fn the_gateway_refuses_what_cannot_be_known() {
    let count = through_the_gateway("refuse");
    assert!(count.of(|end| end.starts_with("denied: which")) > how_many() / 50, "hardly any was refused");
}

fn through_the_gateway(dynamic: &str) -> Count {
    let mut gateway = Gateway::start(&format!(
        "[permissions]\ndynamic = \"{dynamic}\"\n\"fs:read\" = {{ approval_mode = \"auto\" }}\n\
         [limits]\ncpu = \"2s\"\ncalls = 50\n[approvals]\nopen = 10000\n{}",
        honeypot("danger", &[])
    ));
    std::fs::write(gateway.path("root/a"), "hello").unwrap();
    let arguments = json!({
        "server": "danger", "danger": "danger", "delete": "delete", "pay": "pay", "send": "send",
        "fs": "fs", "read": "read", "write": "write",
    });
    let (mut count, mut open) = (Count::default(), Vec::new());
    for seed in 0..how_many() {
        open.push((seed, gateway.begin(&evasion(seed).code, &arguments)));
        if open.len() as u64 == WINDOW {
            settle(&mut gateway, &mut open, &mut count);
        }
    }
    settle(&mut gateway, &mut open, &mut count);
    count.tell(&format!("through the gateway, dynamic = {dynamic}"));
    let left: Vec<_> =
        std::fs::read_dir(gateway.path("root")).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["a"], "something was written or deleted");
    count
}

fn settle(gateway: &mut Gateway, open: &mut Vec<(u64, u64)>, count: &mut Count) {
    for (seed, id) in open.drain(..) {
        let reply = gateway.reply(id);
        let end = end(&reply);
        let fine =
            unallowed(&reply).is_none() && !["WORKER_CRASHED", "SANDBOX", "STORAGE"].contains(&end.as_str());
        assert!(fine, "seed {seed} ended as {end}: {}\n{}", reply.body, evasion(seed).code);
        count.add(end);
    }
    assert_eq!(gateway.hits("danger"), 0, "one of the last {WINDOW} reached what it may not");
}

/// A call that only a person could have allowed and that came to anything.
fn unallowed(reply: &Reply) -> Option<&Value> {
    let tasks = reply.body["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let changes =
        |tool: &str| tool.starts_with("danger:") || ["fs:write", "fs:create", "fs:delete"].contains(&tool);
    tasks.iter().find(|task| task["tool"].as_str().is_some_and(changes) && task["status"] != "cancelled")
}

fn end(reply: &Reply) -> String {
    match (reply.result(), reply.code()) {
        (None, "") => format!("asks for {}", reply.asked().first().copied().unwrap_or_default()),
        (Some(_), _) => format!("ran to a value, {} calls", reply.calls().len().min(2)),
        (None, "DENIED") if reply.message().starts_with('`') => {
            let tool = reply.message().split(' ').next().unwrap_or_default();
            format!("denied: {tool}")
        }
        (None, "DENIED") => "denied: which tools it calls cannot be known".to_owned(),
        (None, "INVALID_PROGRAM") => "refused by analysis".to_owned(),
        (None, "PROGRAM_ERROR") => {
            format!("ran and threw {}", reply.message().split(':').next().unwrap_or_default())
        }
        (None, code) => code.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_alone_lets_nothing_through() {
    let sandbox = Arc::new(Sandbox::open());
    let arguments = Arc::new(
        r#"{"server":"danger","danger":"danger","delete":"delete","pay":"pay","send":"send","fs":"fs","read":"read","write":"write"}"#
            .to_owned(),
    );
    let mut lanes = tokio::task::JoinSet::new();
    const LANES: u64 = 4;
    for lane in 0..LANES {
        let (sandbox, arguments) = (Arc::clone(&sandbox), Arc::clone(&arguments));
        lanes.spawn(async move {
            let mut ends = Vec::new();
            for seed in (lane..how_many()).step_by(LANES as usize) {
                ends.push(alone(&sandbox, seed, &arguments).await);
            }
            ends
        });
    }
    let mut count = Count::default();
    while let Some(ends) = lanes.join_next().await {
        ends.unwrap().into_iter().for_each(|end| count.add(end));
    }
    count.tell("in a worker alone");
    let ran = count.of(|end| end != "cannot be read");
    assert!(ran >= how_many() / 10, "only {ran} programs ran at all");
    assert!(
        count.of(|end| end.contains("read called")) > 0,
        "none came as far as the tool that may be called"
    );
}

async fn alone(sandbox: &Sandbox, seed: u64, arguments: &str) -> String {
    let code = evasion(seed).code;
    let Some(program) = sandbox.program(&code, arguments) else { return "cannot be read".to_owned() };
    let played = tokio::time::timeout(Duration::from_secs(60), sandbox.play(&program)).await;
    let Played { handles, ending, .. } = played.unwrap_or_else(|_| panic!("seed {seed} never ends:\n{code}"));
    assert!(handles.iter().all(|handle| *handle == READ), "seed {seed} called {handles:?}:\n{code}");
    assert!(!ending.starts_with("fault"), "seed {seed} ended with {ending}:\n{code}");
    let called = if handles.is_empty() { "" } else { ", read called" };
    let ending = if ending.starts_with('=') { "a value" } else { &ending };
    format!("{ending}{called}")
}
