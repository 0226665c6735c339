//! Tests of the limits and the run settings.

use super::complaints::complaints;
use super::*;

#[test]
fn every_limit_is_read() {
    let config = user(
        r#"
[limits]
calls = 1
concurrent = 2
concurrent_per_server = 3
heap = "256MiB"
stack = "64 KiB"
cpu = "100ms"
wall = "24h"
source = 1024
arguments = "2048B"
result = "8MiB"
console = "3KiB"
nesting = 4
[runs]
resume = false
durable = "normal"
keep_results = "10m"
workers = 5
park_after = 6
"#,
    )
    .load()
    .unwrap();
    assert_eq!(
        config.limits,
        LimitSettings {
            calls: 1,
            concurrent: 2,
            concurrent_per_server: 3,
            heap_bytes: 256 << 20,
            stack_bytes: 64 << 10,
            cpu: Duration::from_millis(100),
            wall: Duration::from_secs(24 * 60 * 60),
            source_bytes: 1024,
            arguments_bytes: 2048,
            result_bytes: 8 << 20,
            console_bytes: 3 << 10,
            nesting: 4,
        }
    );
    assert_eq!(
        config.runs,
        RunSettings {
            resume: false,
            durable: Durability::Normal,
            keep_results: Duration::from_secs(600),
            workers: 5,
            park_after: Duration::from_secs(6),
        }
    );
}

#[test]
fn what_is_not_set_keeps_its_default() {
    let config = user("[limits]\nheap = \"32MiB\"\n[runs]\nworkers = 1\n").load().unwrap();
    assert_eq!(config.limits, LimitSettings { heap_bytes: 32 << 20, ..LimitSettings::default() });
    assert_eq!(config.runs, RunSettings { workers: 1, ..RunSettings::default() });
}

#[test]
fn wrong_limits_are_told_with_what_they_may_be() {
    expect![[r#"
        ~/pml/pml.toml:2:1: unknown key `memory`
        hint: known here: `calls`, `concurrent`, `concurrent_per_server`, `heap`, `stack`, `cpu`, `wall`, `source`, `arguments`, `result`, `console`, `nesting`
        ~/pml/pml.toml:2:8: `limits.heap` must be a number of bytes, or a text such as "256KiB" or "64MiB"
        hint: write it in that form, above 0, or leave it out for the default
        ~/pml/pml.toml:2:8: `limits.heap` is too much
        hint: it may be 2 MiB to 256 MiB
        ~/pml/pml.toml:2:8: `limits.heap` is too little
        hint: it may be 2 MiB to 256 MiB
        ~/pml/pml.toml:2:9: `limits.stack` is too much
        hint: it may be 64 KiB to 4 MiB
        ~/pml/pml.toml:2:10: `limits.source` is too much
        hint: it may be 1 KiB to 256 KiB
        ~/pml/pml.toml:2:10: `limits.result` must be a number of bytes, or a text such as "256KiB" or "64MiB"
        hint: write it in that form, above 0, or leave it out for the default
        ~/pml/pml.toml:2:9: `limits.calls` must be a whole number
        hint: write it in that form, above 0, or leave it out for the default
        ~/pml/pml.toml:2:9: `limits.calls` must be a whole number
        hint: write it in that form, above 0, or leave it out for the default
        ~/pml/pml.toml:2:9: `limits.calls` is too much
        hint: it may be 1 to 100000
        ~/pml/pml.toml:2:11: `limits.nesting` is too much
        hint: it may be 1 to 128
        ~/pml/pml.toml:2:7: `limits.cpu` is too much
        hint: it may be 1 ms to 300 s
        ~/pml/pml.toml:2:7: `limits.cpu` must be a number of seconds, or a text such as "30s" or "5m", not true or false
        hint: write it in that form, or leave it out for the default
        ~/pml/pml.toml:2:11: `runs.durable` is `off`
        hint: write "full" (survives a power cut) or "normal" (survives the end of PML)
        ~/pml/pml.toml:2:10: `runs.resume` must be true or false, not a text
        hint: write `true` or `false`, without quotes
        ~/pml/pml.toml:2:11: `runs.workers` is too much
        hint: it may be 1 to 64
        ~/pml/pml.toml:2:14: `runs.park_after` is too little
        hint: it may be 1 s to 24 h
        ~/pml/pml.toml:2:1: unknown key `kept`
        hint: known here: `resume`, `durable`, `keep_results`, `workers`, `park_after`
    "#]].assert_eq(&complaints(&[
        "[limits]\nmemory = \"1MiB\"",
        "[limits]\nheap = \"64MB\"",
        "[limits]\nheap = \"2GiB\"",
        "[limits]\nheap = 64",
        "[limits]\nstack = \"8MiB\"",
        "[limits]\nsource = \"1MiB\"",
        "[limits]\nresult = \"99999999999GiB\"",
        "[limits]\ncalls = 0",
        "[limits]\ncalls = \"many\"",
        "[limits]\ncalls = 99999999999",
        "[limits]\nnesting = 129",
        "[limits]\ncpu = \"2h\"",
        "[limits]\ncpu = true",
        "[runs]\ndurable = \"off\"",
        "[runs]\nresume = \"no\"",
        "[runs]\nworkers = 65",
        "[runs]\npark_after = \"10ms\"",
        "[runs]\nkept = 1",
    ]));
}
