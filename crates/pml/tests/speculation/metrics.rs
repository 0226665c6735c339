//! `GET /metrics`: what came of the reads that were made ahead.

use pml_model::Role;
use serde_json::Value;

use crate::door::{api, key, run};
use crate::harness::{Home, Served, eventually};
use crate::place::{configure, ledger_of};

/// The value of a series that `GET /metrics` has.
#[track_caller]
fn figure(served: &Served, series: &str) -> f64 {
    let text = api(served, &served.token, "GET", "/metrics", &Value::Null).body;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).parse().unwrap()
}

fn results(served: &Served) -> [f64; 4] {
    ["hit", "miss", "wasted", "differing"]
        .map(|outcome| figure(served, &format!("pml_speculation_results_total{{outcome=\"{outcome}\"}}")))
}

#[test]
fn hits_misses_waste_differences_and_the_time_saved_are_counted() {
    let home = Home::new("");
    configure(
        &home,
        "[speculation]\nsample = 100\n",
        "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n",
    );
    let ann = key(&home, "local", Role::Member);
    let served = home.serve(&[]);
    assert_eq!(results(&served), [0.0; 4]);
    // One is used, one fails and is made again, one is for nothing. The one that is used is read again to be compared: it
    // differs, so it was a miss as well.
    let code = "const first = await mcp.b.read({ key: 'first', wait: 300 });\n\
                await mcp.a.flaky({ key: 'flaky', times: 1, how: 'fail' });\n\
                await mcp.a.read({ key: 'used', untold: true });\n\
                if (first.writes === 0) return 'early';\n\
                await mcp.b.read({ key: 'for nothing' });\n\
                return 'late';";
    // Branches that are not decided yet are read with less confidence, so the tool earns it first.
    let told = run(&served, &ann, "count", code);
    assert_eq!(told["result"], "early", "{told}");
    let wasted = ledger_of(&home, "begin").iter().filter(|call| call.given["key"] == "for nothing").count();
    eventually("the reads are counted", || {
        results(&served) == [0.0, 2.0, f64::from(u32::try_from(wasted).unwrap()), 1.0]
    });
    assert!(figure(&served, "pml_speculation_saved_seconds_total") >= 0.0);
    let confidence = |part: &str| figure(&served, &format!("pml_speculation_confidence_{part}"));
    assert_eq!(confidence("count{outcome=\"miss\"}"), 2.0);
    assert!((confidence("sum{outcome=\"miss\"}") - 1.8).abs() < 1e-9, "both were certain to be asked for");
}
