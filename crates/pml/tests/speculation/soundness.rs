//! The same programs with and without speculation: what they return, what stands in their journals and traces, and what
//! happened in the world are the same.

use std::collections::BTreeMap;

use pml_model::trace::{EdgeKind, Trace};
use pml_model::{Principal, RunId};
use pml_store::{JournalEntry, JournalEntryKind, RunRecord};
use serde_json::{Value, json};

use crate::dice::{Dice, number};
use crate::documents::Document;
use crate::generate::{self, JournalOrder, Work};
use crate::harness::eventually;
use crate::place::Place;

/// How many pairs of gateways run at a time.
const PAIRS: u64 = 2;
/// Programs that one gateway, or one pair of them, runs. A memory of many thousand programs that nobody would ever write takes longer
/// and longer to search, and says nothing about speculation.
const PROGRAMS_OF_PAIR: usize = 500;

/// The tools that may be called before a program asks for them.
const SPECULABLE: [&str; 3] = ["read", "web", "fail"];

#[test]
fn generated_programs_and_documents_do_the_same_with_and_without_speculation() {
    let (programs, seed) = (number("PML_SPECULATION_PROGRAMS", 150), number("PML_SEED", 1));
    let pairs: Vec<_> = (0..PAIRS)
        .map(|pair| {
            let seeds: Vec<u64> = (seed + pair..seed + programs).step_by(PAIRS as usize).collect();
            std::thread::spawn(move || {
                seeds.chunks(PROGRAMS_OF_PAIR).map(|part| compare(pair == 1, part)).sum::<u64>()
            })
        })
        .collect();
    let mut ahead = 0;
    for pair in pairs {
        ahead += pair.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    say(&format!("{programs} programs did the same with {ahead} calls made ahead"));
    assert!(ahead > programs, "only {ahead} calls of {programs} programs were made ahead");
}

#[test]
fn of_the_reads_that_can_be_foreseen_nine_in_ten_are_served_ahead() {
    let (programs, seed) = (number("PML_SPECULATION_PROGRAMS", 150), number("PML_SEED", 1));
    let seeds: Vec<u64> = (seed..seed + programs.div_ceil(3)).collect();
    let (mut eligible, mut served) = (0, 0);
    for part in seeds.chunks(PROGRAMS_OF_PAIR) {
        let (more, served_ahead) = foreseen_reads(part);
        eligible += more;
        served += served_ahead;
    }
    say(&format!("{served} of {eligible} reads that can be foreseen were served ahead"));
    assert!(eligible > programs, "{eligible} reads of {programs} programs");
    assert!(served * 10 >= eligible * 9, "{served} of {eligible} were served ahead");
}

#[test]
fn nine_in_ten_are_served_ahead_in_loops_called_capabilities_and_documents_too() {
    let (programs, seed) = (number("PML_SPECULATION_PROGRAMS", 150), number("PML_SEED", 1));
    let seeds: Vec<u64> = (seed..seed + programs.div_ceil(3)).collect();
    let (mut eligible, mut served) = (0, 0);
    for part in seeds.chunks(PROGRAMS_OF_PAIR) {
        let mut place = Place::start("");
        let (name, code) = generate::CAPABILITIES[0];
        place.learn(name, code, &json!({ "key": "learned" }));
        for &seed in part {
            let (work, foreseen) = generate::foreseeable(&mut Dice(seed));
            let told = match &work {
                Work::Program { code, arguments } => place.run(code, arguments),
                Work::Document { document, arguments } => run_to_the_end(&mut place, document, arguments),
            };
            assert_eq!(told["status"], "success", "{told}\n{}", work.shown());
            eligible += foreseen;
            served += told["speculated"]["calls"].as_u64().unwrap_or(0).min(foreseen);
        }
    }
    say(&format!("{served} of {eligible} reads in loops, capabilities and documents were served ahead"));
    assert!(served * 10 >= eligible * 9, "{served} of {eligible} were served ahead");
}

/// The reads of the programs with these seeds that can be foreseen, and those of them that were served ahead.
fn foreseen_reads(seeds: &[u64]) -> (u64, u64) {
    let mut place = Place::start("");
    let (mut eligible, mut served) = (0, 0);
    for &seed in seeds {
        let line = generate::straight_line(&mut Dice(seed));
        let told = place.run(&line.code, &line.arguments);
        assert_eq!(told["status"], "success", "{told}\n{}", line.code);
        let trace = place.trace(&told);
        let calls: Vec<bool> = trace.body.task_results.iter().map(|task| task.speculated).collect();
        assert_eq!(calls.len(), line.eligible.len(), "{}", line.code);
        for (ahead, foreseen) in calls.into_iter().zip(line.eligible) {
            eligible += u64::from(foreseen);
            served += u64::from(foreseen && ahead);
        }
    }
    (eligible, served)
}

#[expect(clippy::print_stderr, reason = "how far the test reached is its result")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// Runs the work of each seed twice, and gives how many calls were made ahead. With `isolated`, the server `b` has a
/// world of its own, and the operator says so.
fn compare(isolated: bool, seeds: &[u64]) -> u64 {
    let start = if isolated { Place::with_isolated_servers } else { Place::start };
    let (mut with, mut without) = (start(""), start("[speculation]\nenabled = false\n"));
    for place in [&mut with, &mut without] {
        for (name, code) in generate::CAPABILITIES {
            place.learn(name, code, &json!({ "key": "learned" }));
        }
    }
    let (mut ahead, mut issued) = (0, count(with.begun().into_iter().map(|call| call.tool)));
    for &seed in seeds {
        let work = generate::work(&mut Dice(seed));
        let (on, off) = (Seen::of(&mut with, &work), Seen::of(&mut without, &work));
        let differing = |what: &str, on: &Value, off: &Value| {
            assert!(on == off, "{what} of seed {seed}:\n{}\n{}", work.shown(), first_difference(on, off));
        };
        differing("the reply", &on.reply, &off.reply);
        differing("the journal", &on.journal, &off.journal);
        differing("the trace", &on.trace, &off.trace);
        assert_eq!(with.writes(), without.writes(), "seed {seed}:\n{}", work.shown());
        assert_eq!(off.ahead, 0, "seed {seed}");
        ahead += on.ahead;
        for (tool, calls) in on.issued {
            *issued.entry(tool).or_insert(0) += calls;
        }
    }
    let called = count(with.begun().into_iter().map(|call| call.tool));
    for tool in called.keys().filter(|tool| !SPECULABLE.contains(&tool.split(':').nth(1).unwrap())) {
        assert_eq!(called.get(tool), issued.get(tool), "{tool} was called when no program asked for it");
    }
    ahead
}

/// Where two lists or objects differ first.
fn first_difference(on: &Value, off: &Value) -> String {
    let (one, other) = (format!("{on:#}"), format!("{off:#}"));
    let same = one.lines().zip(other.lines()).take_while(|(one, other)| one == other).count();
    let part = |text: &str| text.lines().skip(same.saturating_sub(8)).take(24).collect::<Vec<_>>().join("\n");
    format!("with:\n{}\nwithout:\n{}", part(&one), part(&other))
}

fn count(tools: impl Iterator<Item = String>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    tools.for_each(|tool| *all.entry(tool).or_insert(0) += 1);
    all
}

/// What is to be seen of a run from outside.
struct Seen {
    reply: Value,
    journal: Value,
    trace: Value,
    /// The calls that the program asked for.
    issued: BTreeMap<String, u64>,
    /// The calls that were made ahead.
    ahead: u64,
}

impl Seen {
    fn of(place: &mut Place, work: &Work) -> Seen {
        let told = match work {
            Work::Program { code, arguments } => place.run(code, arguments),
            Work::Document { document, arguments } => run_to_the_end(place, document, arguments),
        };
        let run = RunId::parse(told["workflowId"].as_str().unwrap_or_else(|| panic!("{told}"))).unwrap();
        let trace = place.trace(&told);
        let ahead = trace.body.task_results.iter().filter(|task| task.speculated).count() as u64;
        let reply = json!({
            "status": told["status"], "result": told["result"], "error": told["error"], "outcomes": told["outcomes"],
        });
        let recorded = recorded(place, &run);
        let issued = count(
            recorded
                .entries
                .iter()
                .filter(|entry| entry.kind == JournalEntryKind::Issued)
                .filter_map(|entry| entry.tool.clone()),
        );
        Seen {
            reply: timeless(reply),
            journal: journal(&recorded, work.journal_order()),
            trace: comparable(&trace, work.journal_order()),
            issued,
            ahead,
        }
    }
}

fn run_to_the_end(place: &mut Place, document: &Document, arguments: &Value) -> Value {
    let options = json!({ "perLayerValidation": document.paused });
    let mut told = place.run_document(&document.tasks, arguments, options);
    while told["status"] == "layer_complete" {
        told = place.go_on(&told);
    }
    told
}

/// Without names of runs, times, and what says that a call was made ahead.
fn timeless(mut value: Value) -> Value {
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    const TIMES: [&str; 14] = [
        "id",
        "workflowId",
        "durationMs",
        "durationUs",
        "createdAt",
        "startedAt",
        "executionTimeMs",
        "learnSeq",
        "priority",
        "speculated",
        "savedMs",
        "saved_ms",
        "notAhead",
        "not_ahead",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !TIMES.contains(&name.as_str()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// All there is of a run that has ended.
fn recorded(place: &Place, run: &RunId) -> RunRecord {
    let mut recorded = None;
    eventually("the end is stored", || {
        let stored = place.store().load_run(&Principal::local(), run).unwrap();
        recorded = stored.outcome.is_some().then_some(stored);
        recorded.is_some()
    });
    recorded.unwrap()
}

/// The journal of a run. Where several calls are under way at a time, anybody may guess which ends first, and whether it
/// ends before the last is asked for: there, what was delivered is told apart and in the order of the calls. Where the
/// order of the calls depends on it too, all entries are told without their numbers.
fn journal(recorded: &RunRecord, order: JournalOrder) -> Value {
    let mut entries: Vec<(JournalEntryKind, Option<u32>, Value)> =
        recorded.entries.iter().map(shown_entry).collect();
    if order == JournalOrder::None {
        return unordered(entries.into_iter().map(|(kind, _, about)| json!([format!("{kind:?}"), about])));
    }
    if order == JournalOrder::Issued {
        entries.sort_by_key(|(kind, call, _)| match kind {
            JournalEntryKind::Delivered => (1, *call),
            _ => (0, None),
        });
    }
    entries.into_iter().map(|(kind, call, about)| json!([format!("{kind:?}"), call, about])).collect()
}

/// The trace of a run. Where the order of the calls depends on which ends first, they are told without their numbers, and
/// without what was over when another began.
fn comparable(trace: &Trace, order: JournalOrder) -> Value {
    let mut shown = timeless(serde_json::to_value(trace).unwrap());
    if order == JournalOrder::None {
        let tasks = &trace.body.task_results;
        let told = |index: u32| json!([tasks[index as usize].task_id, tasks[index as usize].tool]);
        let edges = trace.body.edges.iter().filter(|edge| edge.kind != EdgeKind::Sequence);
        shown["edges"] = unordered(edges.map(|edge| json!([edge.kind, told(edge.from), told(edge.to)])));
        shown["taskResults"] = unordered(shown["taskResults"].as_array().unwrap().iter().cloned());
    }
    shown
}

/// Entries in an order of their own, without the numbers of calls and frames.
fn unordered(entries: impl Iterator<Item = Value>) -> Value {
    let mut entries: Vec<Value> = entries.collect();
    entries.iter_mut().for_each(without_numbers);
    entries.sort_by_key(Value::to_string);
    json!(entries)
}

fn without_numbers(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !["call", "calls", "frame"].contains(&name.as_str()));
            fields.values_mut().for_each(without_numbers);
        }
        Value::Array(items) => items.iter_mut().for_each(without_numbers),
        _ => {}
    }
}

fn shown_entry(entry: &JournalEntry) -> (JournalEntryKind, Option<u32>, Value) {
    let body: Value = serde_json::from_slice(&entry.body).unwrap_or_default();
    let about =
        json!({ "frame": entry.frame, "node": entry.node, "tool": entry.tool, "body": timeless(body) });
    (entry.kind, entry.call, about)
}
