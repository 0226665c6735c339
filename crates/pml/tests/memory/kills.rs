//! The gateway is killed while traces are stored and learned from. Whatever was acknowledged counts, and counts once.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use pml_model::Principal;
use pml_store::{TraceOrder, TraceQuery};
use serde_json::json;

use crate::gateway::{Gateway, execution};
use crate::harness::Home;
use crate::place::{ALL, Place};

const HOMES: u64 = 4;
/// Runs that are under way when the gateway is killed.
const AT_ONCE: usize = 6;

/// What an environment variable sets.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
fn counters_equal_the_traces_there_are_whatever_the_moment_of_a_kill() {
    let (kills, seed) = (number("PML_MEMORY_KILLS", 300), number("PML_SEED", 1));
    let homes: Vec<_> = (0..HOMES)
        .map(|home| std::thread::spawn(move || torment(seed + home, kills.div_ceil(HOMES))))
        .collect();
    let runs: usize = homes
        .into_iter()
        .map(|home| home.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .sum();
    assert!(runs > 0, "nothing was acknowledged before any kill");
}

fn torment(seed: u64, kills: u64) -> usize {
    let home = Home::new(ALL);
    std::fs::write(home.path("a.txt"), "x").unwrap();
    let mut random = seed;
    let mut next = |most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    let programs = [
        "return (await mcp.fs.stat({ path: args.path })).exists ? mcp.fs.read({ path: args.path }) : 0",
        "return mcp.math.evaluate({ expression: `${args.n} + 1` })",
        "return mcp.fs.read({ path: 'nowhere.txt' })",
    ];
    let mut acknowledged: HashSet<String> = HashSet::new();
    for kill in 0..kills {
        let mut gateway = Gateway::start(home.command(&["stdio"]));
        let mut requests = Vec::new();
        for run in 0..AT_ONCE {
            let code = programs[usize::try_from(next(3)).unwrap()];
            let path = if next(2) == 0 { "a.txt" } else { "b.txt" };
            let context = json!({ "path": path, "n": kill * 100 + run as u64 });
            let asked = execution("do it", code, &context, &json!({ "cache": false }));
            requests.push(gateway.begin("tools/call", &asked));
        }
        // Now before the first answer, now after the last.
        let wait_for = usize::try_from(next(AT_ONCE as u64 + 1)).unwrap();
        for request in &requests[..wait_for] {
            gateway.wait_until_answered(*request, Duration::from_secs(60));
        }
        // Answers are told at once, and learned from a tenth of a second later.
        let pause = if next(3) == 0 { 90 + next(40) } else { next(12) };
        std::thread::sleep(Duration::from_millis(pause));
        for answer in gateway.kill().values() {
            let told = &answer["result"]["structuredContent"];
            if let (Some(run), Some("success" | "failed")) =
                (told["workflowId"].as_str(), told["status"].as_str())
            {
                acknowledged.insert(run.to_owned());
            }
        }
    }
    check(home, &acknowledged);
    acknowledged.len()
}

fn check(home: Home, acknowledged: &HashSet<String>) {
    let gateway = Gateway::start(home.command(&["stdio"]));
    let mut place = Place { home, gateway };
    // What was interrupted is run to its end.
    let open = |place: &Place| {
        let runs = place.home.run(&["runs", "list", "--limit", "5000", "--json"]).stdout;
        let runs: serde_json::Value = serde_json::from_str(&runs).unwrap();
        let is_open =
            |run: &&serde_json::Value| matches!(run["state"].as_str(), Some("running" | "interrupted"));
        runs.as_array().unwrap().iter().filter(is_open).count()
    };
    crate::harness::eventually("every run is over", || open(&place) == 0);
    let capabilities = place.capabilities();
    let store = place.store();
    let wanted =
        |capability| TraceQuery { capability, order: TraceOrder::Newest, limit: 100_000, after: None };
    let all = store.traces(&Principal::local(), &wanted(None)).unwrap();
    let runs: HashSet<String> = all.iter().map(|trace| trace.workflow_id.to_string()).collect();
    assert_eq!(runs.len(), all.len(), "one trace for each run");
    let lost: Vec<&String> = acknowledged.difference(&runs).collect();
    assert!(lost.is_empty(), "acknowledged and not remembered: {lost:?}");
    assert!(all.iter().all(|trace| trace.priority.is_some()), "every trace was learned from");
    for capability in &capabilities {
        let traces =
            store.traces(&Principal::local(), &wanted(Some(capability.procedure.id.clone()))).unwrap();
        let mut counts: HashMap<Option<bool>, u64> = HashMap::new();
        for trace in &traces {
            *counts.entry(trace.status.evidence()).or_default() += 1;
        }
        let of = |evidence| counts.get(&evidence).copied().unwrap_or(0);
        let statistics = &capability.statistics;
        assert_eq!(
            (statistics.success_count, statistics.failure_count),
            (of(Some(true)), of(Some(false))),
            "{}",
            capability.name
        );
        let gone: u64 = capability.learning.paths.iter().map(|path| path.count).sum();
        assert_eq!(gone, of(Some(true)) + of(Some(false)), "{}", capability.name);
    }
    let before = serde_json::to_value(&capabilities).unwrap();
    assert_eq!(place.home.run(&["learn", "rebuild"]).code, 0);
    assert_eq!(serde_json::to_value(place.capabilities()).unwrap(), before, "learned anew, the same");
    place.restart();
}
