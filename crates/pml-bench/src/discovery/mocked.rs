//! Whether tool ranking should learn from explored paths, whose calls are partly made up.
//!
//! An explored path names the tools that the ranking itself found likely, so its trace repeats what the ranking believes
//! unless trying the path tells right from wrong. How well trying does that is not in the data, so it is varied: from
//! every wrong path being viable to none. Half of the tools have traces of runs; for requests of the other half there
//! are explored traces only. Nothing is fitted, so no set has to be left out of anything.

use std::collections::HashSet;

use pml::problem::Problem;
use pml_graph::past::{EmbeddedIntent, IntentTrace, PastIntents};

use super::data::BenchRequest;
use super::read_set::{EmbeddedSet, half_of};
use super::{DiscoveryBench, score};
use crate::figure::BenchFigure;

/// The sets with recorded executions.
const SETS: [&str; 2] = ["metatool", "ultratool"];
/// Executions of each tool that are known, and explored as often.
const KNOWN: usize = 2;
/// Requests that a ranking is scored with: enough for a standard error of about 0.01.
const MOST_TESTS: usize = 600;
/// Random halves of the tools.
const HALVES: u64 = 2;
/// The largest loss that counts as none.
const HARM: f64 = -0.005;

/// Which explored paths are viable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Viability {
    /// All of them: trying tells nothing.
    All,
    /// Of the wrong ones every second: trying finds half of the mistakes.
    HalfOfWrong,
    /// The right ones only, as if somebody had chosen among them.
    RightOnly,
}

impl Viability {
    const ALL: [Viability; 3] = [Viability::All, Viability::HalfOfWrong, Viability::RightOnly];

    fn words(self) -> &'static str {
        match self {
            Viability::All => "every path viable",
            Viability::HalfOfWrong => "half of the wrong ones viable",
            Viability::RightOnly => "the right ones viable",
        }
    }

    /// Whether the path with this number is viable.
    fn is_viable(self, is_right: bool, number: usize) -> bool {
        match self {
            Viability::All => true,
            Viability::HalfOfWrong => is_right || number.is_multiple_of(2),
            Viability::RightOnly => is_right,
        }
    }
}

/// A request with the tools that a trace names for it.
struct TracedRequest<'r> {
    request: &'r BenchRequest,
    items: Vec<u32>,
    is_right: bool,
}

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let mut figures = Vec::new();
    for name in SETS {
        figures.extend(of_set(bench, name)?);
    }
    Ok(figures)
}

fn of_set(bench: &mut DiscoveryBench<'_>, name: &str) -> Result<Vec<BenchFigure>, Problem> {
    let read = EmbeddedSet::read(bench, name)?;
    let mut changes: Vec<Vec<(f64, f64)>> = vec![Vec::new(); Viability::ALL.len() * 2];
    let (mut without, mut right) = (Vec::new(), Vec::new());
    for half in 0..HALVES {
        let run_tools = half_of(read.set.tools.len(), half);
        let (runs, others) = split_traces(&read, &run_tools);
        let mut past = PastIntents::default();
        runs.iter().for_each(|run| learn(&read, &mut past, run));
        let explored = explore(bench, &read, &past, &others)?;
        right
            .push(explored.iter().filter(|path| path.is_right).count() as f64 / explored.len().max(1) as f64);
        let tests = test_rows(&read);
        let (known, unknown): (Vec<_>, Vec<_>) =
            tests.into_iter().partition(|row| is_of(&read, row, &run_tools));
        let before = scores(bench, &read, &past, (&unknown, &known))?;
        without.push(before);
        for (number, viability) in Viability::ALL.into_iter().enumerate() {
            // A trace counts fully or not at all here, so a weight of 0.5 is every second trace.
            for (place, step) in [1, 2].into_iter().enumerate() {
                let mut all = past.clone();
                let viable =
                    explored.iter().enumerate().filter(|(at, path)| viability.is_viable(path.is_right, *at));
                viable.step_by(step).for_each(|(_, path)| learn(&read, &mut all, path));
                let after = scores(bench, &read, &all, (&unknown, &known))?;
                changes[number * 2 + place].push((after.0 - before.0, after.1 - before.1));
            }
        }
    }
    let mean = |pairs: &[(f64, f64)]| {
        (score::mean(pairs.iter().map(|pair| pair.0)), score::mean(pairs.iter().map(|pair| pair.1)))
    };
    let before = mean(&without);
    let mut figures = vec![
        BenchFigure::of(
            format!("{name}: nDCG@5 by runs alone, tools explored / tools run"),
            format!("{:.3} / {:.3}", before.0, before.1),
        ),
        BenchFigure::of(
            format!("{name}: explored paths with the right tools"),
            format!("{:.0} %", 100.0 * score::mean(right)),
        ),
    ];
    for (number, viability) in Viability::ALL.into_iter().enumerate() {
        for (place, weight) in ["1.0", "0.5"].into_iter().enumerate() {
            let (explored, run) = mean(&changes[number * 2 + place]);
            let figure = BenchFigure::of(
                format!("{name}: explored at weight {weight}, {}", viability.words()),
                format!("{explored:+.4} / {run:+.4}"),
            );
            figures.push(match viability {
                // Trying a path that only reads mostly tells nothing: this one decides.
                Viability::All => figure.target(format!("≥ {HARM}"), explored.min(run) >= HARM),
                Viability::HalfOfWrong | Viability::RightOnly => figure,
            });
        }
    }
    Ok(figures)
}

/// The right tools of a request.
fn right_items(read: &EmbeddedSet, row: &BenchRequest) -> Vec<u32> {
    row.gold.iter().filter_map(|id| read.set.place(id)).map(|item| item as u32).collect()
}

fn is_of(read: &EmbeddedSet, row: &BenchRequest, tools: &HashSet<usize>) -> bool {
    right_items(read, row).iter().all(|item| tools.contains(&(*item as usize)))
}

/// The first executions of each tool: those of the tools that are run, and the requests of all others.
fn split_traces<'r>(
    read: &'r EmbeddedSet,
    run_tools: &HashSet<usize>,
) -> (Vec<TracedRequest<'r>>, Vec<&'r BenchRequest>) {
    let mut counts = vec![0; read.set.tools.len()];
    let (mut runs, mut others) = (Vec::new(), Vec::new());
    for request in read.set.requests.iter().filter(|row| row.has_role("trace")) {
        let items = right_items(read, request);
        // A request counts for the tool that is known least.
        let Some(least) = items.iter().map(|item| counts[*item as usize]).min() else { continue };
        if least >= KNOWN {
            continue;
        }
        items.iter().for_each(|item| counts[*item as usize] += 1);
        match is_of(read, request, run_tools) {
            true => runs.push(TracedRequest { request, items, is_right: true }),
            false => others.push(request),
        }
    }
    (runs, others)
}

/// What exploring these requests would leave: as many tools as are needed, by the ranking's own order.
fn explore<'r>(
    bench: &mut DiscoveryBench<'_>,
    read: &EmbeddedSet,
    past: &PastIntents,
    requests: &[&'r BenchRequest],
) -> Result<Vec<TracedRequest<'r>>, Problem> {
    let mut explored = Vec::new();
    for request in requests {
        let right: HashSet<u32> = right_items(read, request).into_iter().collect();
        let ranked = read.ranked(&mut bench.reader, Some(past), request)?;
        let items: Vec<u32> = ranked.into_iter().take(right.len()).map(|item| item as u32).collect();
        let is_right = items.iter().all(|item| right.contains(item));
        explored.push(TracedRequest { request, items, is_right });
    }
    Ok(explored)
}

fn learn(read: &EmbeddedSet, past: &mut PastIntents, trace: &TracedRequest<'_>) {
    let text = &trace.request.query;
    let vector = &read.vectors_by_text[text];
    let item_cosines = read.vectors.similarities(vector).unwrap_or_default();
    let intent = EmbeddedIntent { text, vector: Some(vector), parts: &[] };
    past.learn_trace(&IntentTrace { items: &trace.items, intent, item_cosines: &item_cosines });
}

/// An even sample of the requests that rankings are scored with.
fn test_rows(read: &EmbeddedSet) -> Vec<&BenchRequest> {
    let tests: Vec<&BenchRequest> = read.set.requests.iter().filter(|row| row.has_role("test")).collect();
    let step = tests.len().div_ceil(MOST_TESTS).max(1);
    tests.into_iter().step_by(step).collect()
}

/// The scores of the requests of explored tools, and of those of tools that were run.
fn scores(
    bench: &mut DiscoveryBench<'_>,
    read: &EmbeddedSet,
    past: &PastIntents,
    (explored, run): (&[&BenchRequest], &[&BenchRequest]),
) -> Result<(f64, f64), Problem> {
    let of_explored = read.ndcg(&mut bench.reader, Some(past), explored)?.0;
    Ok((of_explored, read.ndcg(&mut bench.reader, Some(past), run)?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_paths_are_viable_as_often_as_is_said() {
        let viable = |viability: Viability, is_right| {
            (0..10).filter(|number| viability.is_viable(is_right, *number)).count()
        };
        for (viability, wrong) in Viability::ALL.into_iter().zip([10, 5, 0]) {
            assert_eq!((viable(viability, true), viable(viability, false)), (10, wrong), "{viability:?}");
        }
    }
}
