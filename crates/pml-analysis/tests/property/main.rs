//! Generated programs do the same as written and as emitted, and the analysis says the truth about them.
//!
//! `PML_SEED` chooses other programs, `PML_PROGRAMS` how many; a failure names the seed of its program, which
//! then is the first.

mod census;
mod check;
#[expect(dead_code, reason = "programs are run here, not only compiled")]
mod engine;
mod generate;
mod print;
mod random;
mod sound;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use census::Census;
use check::{Failure, Seen, Thoroughness, check, shrink};
use generate::{Counts, Generated, alone, generate, pieces};
use print::{Language, Look, print};

/// How many programs are made: as many as it takes for every construct to occur often.
const PROGRAMS: u64 = 1_600;
/// How often a construct occurs at least.
const ENOUGH: u32 = 1_000;
/// How often a piece programs are made of is used at least.
const ENOUGH_OF_A_PIECE: u32 = 300;
/// Every how many programs the checks that analyse a program again are made.
const THOROUGH: u64 = 4;
/// How often each piece is tried alone.
const TRIES: u64 = 4;
/// Failures shown.
const SHOWN: usize = 5;

#[derive(Default)]
struct Total {
    census: Census,
    programs: usize,
    opaque: usize,
    known: usize,
    ended: usize,
    calls: usize,
    logged: usize,
    reports: usize,
    failures: Vec<(u64, Failure)>,
}

impl Total {
    fn add(&mut self, seed: u64, made: &Generated, result: Result<Seen, Failure>) {
        self.programs += 1;
        self.opaque += usize::from(made.opaque);
        self.census.add(&made.counts, &print(&made.text, Language::TypeScript, Look::Plain));
        match result {
            Ok(seen) => {
                self.known += usize::from(seen.known);
                self.ended += usize::from(seen.ended);
                self.calls += seen.calls;
                self.logged += seen.logged;
                self.reports += seen.reports;
            }
            Err(failure) => self.failures.push((seed, failure)),
        }
    }
}

fn seed() -> u64 {
    std::env::var("PML_SEED").ok().map_or(1, |text| text.parse().expect("`PML_SEED` is a number"))
}

fn programs() -> u64 {
    std::env::var("PML_PROGRAMS")
        .ok()
        .map_or(PROGRAMS, |text| text.parse().expect("`PML_PROGRAMS` is a number"))
}

/// Makes and checks all programs, on all cores.
fn run_all() -> Total {
    let (first, programs) = (seed(), programs());
    let next = AtomicU64::new(0);
    let total = Mutex::new(Total::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let catalogue = world::catalogue();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= programs {
                        break;
                    }
                    let made = generate(first + index);
                    let thoroughness = if index.is_multiple_of(THOROUGH) {
                        Thoroughness::All
                    } else {
                        Thoroughness::RunOnly
                    };
                    let result = check(&made.text, thoroughness, &catalogue);
                    total.lock().expect("no thread panics here").add(first + index, &made, result);
                }
            });
        }
    });
    total.into_inner().expect("no thread panics here")
}

/// What there is to say about a failure, of as little of its program as possible.
fn smaller(seed: u64, failure: &Failure) -> String {
    let catalogue = world::catalogue();
    if failure.kind == check::INVALID {
        return failure.detail.clone();
    }
    let small = shrink(&generate(seed).text, failure.kind, &catalogue);
    check(&small, Thoroughness::All, &catalogue).expect_err("the shrunk program fails").detail
}

#[test]
fn each_piece_alone() {
    let catalogue = world::catalogue();
    let mut failing = 0;
    for piece in pieces() {
        let tried = (0..TRIES).filter_map(|seed| alone(piece, seed));
        let failure = tried.filter_map(|made| check(&made.text, Thoroughness::All, &catalogue).err()).next();
        if let Some(failure) = failure {
            failing += 1;
            println!("\n======== `{piece}`: {}\n{}", failure.kind, failure.detail);
        }
    }
    assert_eq!(failing, 0, "pieces fail alone");
}

#[test]
fn emitted_programs_do_what_was_written() {
    let mut total = run_all();
    for (name, count) in total.census.constructs() {
        println!("{count:7}  {name}");
    }
    println!(
        "{} programs, {} made opaque, {} fully known, {} ended with a value; {} calls, {} console lines, {} reports",
        total.programs, total.opaque, total.known, total.ended, total.calls, total.logged, total.reports
    );
    total.failures.sort_by_key(|(seed, _)| *seed);
    let mut kinds = Counts::new();
    for (_, failure) in &total.failures {
        *kinds.entry(failure.kind).or_default() += 1;
    }
    for kind in kinds.keys().take(SHOWN) {
        let of_kind = total.failures.iter().filter(|(_, failure)| failure.kind == *kind);
        let (seed, shortest) =
            of_kind.min_by_key(|(_, failure)| failure.detail.len()).expect("it was counted");
        println!("\n======== PML_SEED={seed}: {kind}\n{}", smaller(*seed, shortest));
    }
    assert!(kinds.is_empty(), "{} of {} programs fail: {kinds:?}", total.failures.len(), total.programs);
    if total.programs as u64 >= PROGRAMS {
        for (name, count) in total.census.constructs() {
            assert!(count >= ENOUGH, "`{name}` occurred {count} times only");
        }
        for (name, count) in total.census.pieces() {
            assert!(count >= ENOUGH_OF_A_PIECE, "`{name}` was used {count} times only");
        }
    }
}
