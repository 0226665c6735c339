//! Mutated programs and documents: whatever the text, the analysis ends, does not panic, and what it accepts
//! holds together.
//!
//! Runs for `PML_FUZZ_SECONDS` (5 unless told otherwise) from the seed `PML_SEED`. What fails is written to the
//! folder for test files inside the target folder, and so is what is being analysed, for the case that the
//! process dies over it.

mod corpus;
mod mutate;

#[path = "../property/engine.rs"]
#[expect(dead_code, reason = "programs are compiled here, not run")]
mod engine;
#[path = "../property/generate/mod.rs"]
#[expect(dead_code, reason = "nothing is counted here")]
mod generate;
#[path = "../property/print.rs"]
#[expect(dead_code, reason = "one language in one look is enough here")]
mod print;
#[path = "../property/random.rs"]
mod random;
#[path = "../property/sound.rs"]
mod sound;
#[path = "../property/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pml_analysis::{AnalysisCatalogue, analyse, analyse_dag};
use random::Random;

/// What is made of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Accepted,
    Refused,
    /// It broke a promise; which one, in a line, and more.
    Broken(String, String),
}

/// A broken promise. The line leaves out what is quoted in the message, so that equal failures have equal lines.
fn broken(promise: &str, message: &str, more: &str) -> Verdict {
    let first = message.lines().next().unwrap_or_default();
    let plain: Vec<&str> = first.split(['`', '\'', '"']).step_by(2).collect();
    Verdict::Broken(
        format!("{promise}: {}", plain.join("…").replace(|c: char| c.is_ascii_digit(), "")),
        format!("{message}\n{more}"),
    )
}

/// What is fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Program,
    Document,
}

#[derive(Default)]
struct Total {
    accepted: u64,
    refused: u64,
    /// By kind of failure.
    broken: BTreeMap<String, Broken>,
}

/// Failures of one kind: how many, and the first.
struct Broken {
    times: u64,
    input: Input,
    text: String,
    message: String,
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn program(text: &str, catalogue: &AnalysisCatalogue) -> Verdict {
    let analysis = match analyse(text, catalogue) {
        Ok(analysis) => analysis,
        Err(_) => return Verdict::Refused,
    };
    if let Err(message) = sound::sound(&analysis, text) {
        return broken("unsound", &message, "");
    }
    let json = |analysis| serde_json::to_string(analysis).expect("an analysis is JSON");
    match analyse(text, catalogue) {
        Ok(again) if json(&again) == json(&analysis) => {}
        _ => return broken("not deterministic", "", ""),
    }
    // What is declared twice is seen, and said not to run.
    if analysis.complaints.iter().any(|complaint| complaint.code == pml_analysis::ComplaintCode::BadName) {
        return Verdict::Accepted;
    }
    match engine::compile(&analysis.program.js, &analysis.program.probe) {
        Ok(()) => Verdict::Accepted,
        // The engine does not know every set of the flag `v`; the program is right all the same.
        Err(message) if message.contains("in regular expression") => Verdict::Accepted,
        Err(message) => broken("emitted is not JavaScript", &message, &analysis.program.js),
    }
}

fn document(text: &str, catalogue: &AnalysisCatalogue) -> Verdict {
    let analysis = match analyse_dag(text, catalogue) {
        Ok(analysis) => analysis,
        Err(_) => return Verdict::Refused,
    };
    let sound = sound::structure(&analysis.structure, text, sound::Order::Document)
        .and_then(|()| sound::literals(&analysis.parameters, &analysis.structure, text));
    if let Err(message) = sound {
        return broken("unsound document", &message, "");
    }
    let json = |analysis| serde_json::to_string(analysis).expect("an analysis is JSON");
    match analyse_dag(text, catalogue) {
        Ok(again) if json(&again) == json(&analysis) => Verdict::Accepted,
        _ => broken("not deterministic", "", ""),
    }
}

fn verdict(input: Input, text: &str, catalogue: &AnalysisCatalogue) -> Verdict {
    let judged = catch_unwind(AssertUnwindSafe(|| match input {
        Input::Program => program(text, catalogue),
        Input::Document => document(text, catalogue),
    }));
    judged.unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        broken("panic", &message.unwrap_or_default(), "")
    })
}

/// Leaves out tokens as long as the same promise is broken.
fn shrink(input: Input, text: &str, kind: &str, catalogue: &AnalysisCatalogue) -> String {
    let mut tokens = mutate::split(text);
    let mut size = tokens.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < tokens.len() {
            let mut fewer = tokens.clone();
            fewer.drain(at..(at + size).min(tokens.len()));
            let judged = verdict(input, &fewer.concat(), catalogue);
            if matches!(judged, Verdict::Broken(found, _) if found == kind) {
                tokens = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    tokens.concat()
}

/// One thread's share: mutates and judges until the time is over.
fn work(thread: u64, until: Instant, done: &AtomicU64, total: &Mutex<Total>) {
    let seed = number("PML_SEED", 1);
    let mut random = Random::new(seed.wrapping_mul(1_000).wrapping_add(thread));
    let catalogue = world::catalogue();
    let (programs, documents) = (corpus::programs(seed), corpus::documents());
    let now = file(&format!("fuzz-now-{thread}"));
    let mut untouched = programs.iter();
    while Instant::now() < until {
        let input = if random.below(8) == 0 { Input::Document } else { Input::Program };
        let from = if input == Input::Program { &programs } else { &documents };
        let text = match untouched.next() {
            Some(text) if input == Input::Program && thread == 0 => text.clone(),
            _ => {
                let start: &String = random.one(from);
                mutate::mutate(start, from, &mut random)
            }
        };
        std::fs::write(&now, &text).expect("the folder for test files can be written");
        let judged = verdict(input, &text, &catalogue);
        done.fetch_add(1, Ordering::Relaxed);
        let mut total = total.lock().expect("no thread panics here");
        match judged {
            Verdict::Accepted => total.accepted += 1,
            Verdict::Refused => total.refused += 1,
            Verdict::Broken(kind, message) => {
                let first = Broken { times: 0, input, text, message };
                total.broken.entry(kind).or_insert(first).times += 1;
            }
        }
    }
    std::fs::remove_file(&now).expect("it was written here");
}

/// Ends the process when one text takes as long as no text may; its file then tells which one.
fn watch(done: &AtomicU64, over: &AtomicBool) {
    const PATIENCE: u32 = 120;
    let (mut last, mut quiet) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(500));
        let now = done.load(Ordering::Relaxed);
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
        if quiet > PATIENCE {
            let message = "an analysis does not end; see the files `fuzz-now-*`\n";
            std::io::stderr().write_all(message.as_bytes()).expect("there is somewhere to complain");
            std::process::abort();
        }
    }
}

#[test]
fn mutated_texts_are_refused_or_understood() {
    let until = Instant::now() + Duration::from_secs(number("PML_FUZZ_SECONDS", 5));
    let (total, done, over) = (Mutex::new(Total::default()), AtomicU64::new(0), AtomicBool::new(false));
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let (done, total) = (&done, &total);
                    move || work(thread, until, done, total)
                })
            })
            .collect();
        scope.spawn(|| watch(&done, &over));
        for worker in workers {
            worker.join().expect("a worker catches panics");
        }
        over.store(true, Ordering::Relaxed);
    });
    let total = total.into_inner().expect("no thread panics here");
    println!("{} accepted, {} refused", total.accepted, total.refused);
    let catalogue = world::catalogue();
    for (kind, Broken { times, input, text, message }) in &total.broken {
        let path = file(&format!("fuzz-{}", kind.replace(|c: char| !c.is_ascii_alphanumeric(), "-")));
        std::fs::write(&path, text).expect("the folder for test files can be written");
        let small = shrink(*input, text, kind, &catalogue);
        println!("\n======== {kind}, {times} times; {}\n{message}\n---- shortest\n{small}", path.display());
    }
    let kinds: Vec<_> =
        total.broken.iter().map(|(kind, broken)| format!("{kind}: {}", broken.times)).collect();
    assert!(kinds.is_empty(), "promises were broken: {kinds:?}");
    assert!(total.accepted > 0 && total.refused > 0, "both must occur for this test to mean something");
}
