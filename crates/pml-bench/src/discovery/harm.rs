//! Checks that learning makes nothing worse: neither requests for the tools that were learned about, nor everyday
//! requests after runs for other intents, nor DAGs for requests of another domain.

use std::collections::HashSet;
use std::path::PathBuf;

use pml::builtin;
use pml::problem::Problem;
use pml_graph::past::{EmbeddedIntent, IntentTrace, PastAdvice, PastIntents, RELATED};
use pml_graph::procedure::suggest_procedure;
use pml_graph::rank::{self, DenseEvidence, RankingEvidence};
use pml_language::french;
use serde::Deserialize;
use serde_json::json;

use super::dags::DagBenchMemory;
use super::data::{self, BenchRequest, BenchSet, BenchTool};
use super::read_set::{EmbeddedSet, HALVES, half_of};
use super::score::{self, RankingScore};
use super::{DiscoveryBench, retrieval};
use crate::figure::{BenchFigure, failed};
use crate::lines::json_lines_of;

/// Everyday requests in English and French, runs of tools for other intents, and the tools of widely used servers.
const REQUESTS: &str = include_str!("everyday.jsonl");
const RUNS: &str = include_str!("everyday_runs.jsonl");
const TOOLS: &str = include_str!("everyday_tools.jsonl");

/// The largest loss of a mean, and the largest share of right first results that may be lost.
const CHANGE: f64 = -0.002;
const LOST: f64 = 0.005;

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let mut figures = own_requests(bench)?;
    figures.extend(everyday(bench)?);
    figures.extend(foreign_memory(bench)?);
    Ok(figures)
}

/// The scores of rankings before and after learning.
#[derive(Default)]
struct RankingChange {
    before: Vec<RankingScore>,
    after: Vec<RankingScore>,
}

impl RankingChange {
    fn mean(&self) -> f64 {
        let mean = |all: &[RankingScore]| score::mean(all.iter().map(|one| one.ndcg_5));
        mean(&self.after) - mean(&self.before)
    }

    /// The shares of requests whose first result became wrong, and became right.
    fn first(&self) -> (f64, f64) {
        let pairs = || self.before.iter().zip(&self.after);
        let share = |number: usize| number as f64 / self.before.len().max(1) as f64;
        let lost = pairs().filter(|(before, after)| before.first > after.first).count();
        let gained = pairs().filter(|(before, after)| before.first < after.first).count();
        (share(lost), share(gained))
    }

    fn description(&self) -> String {
        let (lost, gained) = self.first();
        format!("{:+.4} / {:.1} % / {:.1} %", self.mean(), 100.0 * lost, 100.0 * gained)
    }
}

/// Requests for tools with traces, where half of the tools have some.
fn own_requests(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let read = EmbeddedSet::read(bench, "metatool")?;
    let item = |row: &BenchRequest| row.gold.first().and_then(|id| read.set.place(id));
    let tests: Vec<&BenchRequest> = read.set.requests.iter().filter(|row| row.has_role("test")).collect();
    let mut traces: Vec<&BenchRequest> =
        read.set.requests.iter().filter(|row| row.has_role("trace")).collect();
    traces.sort_by_key(|row| row.k);
    let mut figures = Vec::new();
    for known in [1, 5, 20] {
        let mut change = RankingChange::default();
        for half in 0..HALVES {
            let traced = half_of(read.set.tools.len(), half);
            let of_half = |row: &BenchRequest| item(row).is_some_and(|item| traced.contains(&item));
            let first = |row: &&&BenchRequest| row.k.is_some_and(|number| number <= known) && of_half(row);
            let past = read.past(traces.iter().filter(first).copied());
            for row in tests.iter().filter(|row| of_half(row)) {
                let scored = |ranked: Vec<usize>| {
                    let ids: Vec<&str> =
                        ranked.iter().map(|item| read.set.tools[*item].id.as_str()).collect();
                    score::ranking(&ids, &row.groups())
                };
                change.before.push(scored(read.ranked(&mut bench.reader, None, row)?));
                change.after.push(scored(read.ranked(&mut bench.reader, Some(&past), row)?));
            }
        }
        let (lost, gained) = change.first();
        figures.push(
            BenchFigure::of(
                format!("metatool: {known} executions of half of the tools, their own requests: change / first lost / gained"),
                change.description(),
            )
            .target(
                format!("≥ {CHANGE}, not more lost than gained"),
                change.mean() >= CHANGE && lost <= gained,
            ),
        );
    }
    Ok(figures)
}

#[derive(Deserialize)]
struct EverydayRequest {
    intent: String,
    gold: Vec<String>,
}

#[derive(Deserialize)]
struct EverydayRun {
    runs: String,
    intent: String,
    tools: Vec<String>,
}

/// Everyday requests before and after twelve runs for other intents.
fn everyday(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let mut tools: Vec<BenchTool> = json_lines_of(TOOLS, "everyday_tools.jsonl")?;
    tools.extend(built_in()?);
    let index = data::index(&tools);
    let vectors = retrieval::vectors(&mut bench.reader, &tools)?;
    let set = BenchSet { tools, index, requests: Vec::new() };
    let wishes: Vec<EverydayRequest> = json_lines_of(REQUESTS, "everyday.jsonl")?;
    let runs: Vec<EverydayRun> = json_lines_of(RUNS, "everyday_runs.jsonl")?;
    let glossed = |text: &str| french::gloss(text).unwrap_or_else(|| text.to_owned());
    let mut names: Vec<&str> = runs.iter().map(|run| run.runs.as_str()).collect();
    names.dedup();
    let mut change = RankingChange::default();
    for name in &names {
        let mut past = PastIntents::default();
        for run in runs.iter().filter(|run| run.runs == *name) {
            let text = glossed(&run.intent);
            let (whole, parts) = bench.reader.embed_request(&text)?;
            let place = |id: &String| set.place(id).map(|place| place as u32);
            let items: Option<Vec<u32>> = run.tools.iter().map(place).collect();
            let items = items.ok_or_else(|| failed(format!("a tool of `{}` is not there", run.intent)))?;
            let likeness = vectors.similarities(&whole).unwrap_or_default();
            let intent = EmbeddedIntent { text: &text, vector: Some(&whole), parts: &parts };
            past.learn_trace(&IntentTrace { items: &items, intent, item_cosines: &likeness });
        }
        for wish in &wishes {
            let text = glossed(&wish.intent);
            let (whole, parts) = bench.reader.embed_request(&text)?;
            let dense = DenseEvidence { items: &vectors, whole: &whole, parts: &parts };
            let intent = EmbeddedIntent { text: &text, vector: Some(&whole), parts: &parts };
            let advice = PastAdvice { hints: past.hints(&intent, set.tools.len()) };
            let without = RankingEvidence { lexical: &set.index, dense: Some(dense), advice: None };
            let groups = [wish.gold.clone()];
            change.before.push(set.score(&rank::rank(&text, &without), &groups));
            let with = RankingEvidence { advice: Some(&advice), ..without };
            change.after.push(set.score(&rank::rank(&text, &with), &groups));
        }
    }
    let before = score::mean(change.before.iter().map(|one| one.ndcg_5));
    let (lost, gained) = change.first();
    Ok(vec![
        BenchFigure::of(
            format!("{} everyday requests after each of {} times 12 other runs: nDCG@5 before / change / first lost / gained",
                wishes.len(), names.len()),
            format!("{before:.3} / {}", change.description()),
        )
        .target(
            format!("≥ {CHANGE}, ≤ {LOST} lost and not more than gained"),
            change.mean() >= CHANGE && lost <= LOST && lost <= gained,
        ),
    ])
}

/// The built-in tools.
fn built_in() -> Result<Vec<BenchTool>, Problem> {
    let settings =
        builtin::BuiltinSettings { fs_root: Some(PathBuf::from(".")), ..builtin::BuiltinSettings::default() };
    let servers = builtin::servers(&settings).map_err(failed)?;
    let tools = servers.iter().flat_map(|server| {
        server.definitions().into_iter().map(|definition| {
            json!({
                "id": format!("{}:{}", server.name(), definition.name),
                "server": server.name(),
                "name": definition.name,
                "description": definition.description,
                "input_schema": definition.input_schema,
                "output_schema": definition.output_schema,
            })
        })
    });
    tools.map(|tool| serde_json::from_value(tool).map_err(failed)).collect()
}

/// DAGs for the requests of one set over the tools of two, without memory and with the executions of the other set.
fn foreign_memory(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let (ultratool, traject) =
        (BenchSet::read(bench.data, "ultratool")?, BenchSet::read(bench.data, "traject")?);
    let sequential = |row: &&BenchRequest| row.kind.as_deref().is_none_or(|kind| kind == "sequential");
    let of = |set: &BenchSet, role: &str| -> Vec<usize> {
        let rows = set.requests.iter().enumerate();
        rows.filter(|(_, row)| row.has_role(role) && sequential(row)).map(|(at, _)| at).collect()
    };
    let mut tools = data::read_tools(&bench.data.join("ultratool").join("tools.jsonl"))?;
    tools.extend(data::read_tools(&bench.data.join("traject").join("tools.jsonl"))?);
    let index = data::index(&tools);
    let vectors = retrieval::vectors(&mut bench.reader, &tools)?;
    let both = BenchSet { tools, index, requests: Vec::new() };
    let mut figures = Vec::new();
    for (name, own, other) in [("ultratool", &ultratool, &traject), ("traject", &traject, &ultratool)] {
        let traces: Vec<&BenchRequest> =
            of(other, "trace").into_iter().map(|at| &other.requests[at]).collect();
        let none = DagBenchMemory::learn_rows(bench, &both, &vectors, &[])?;
        let foreign = DagBenchMemory::learn_rows(bench, &both, &vectors, &traces)?;
        let executed = embed_queries(bench, &traces)?;
        let (mut before, mut after, mut unrelated) = (Vec::new(), Vec::new(), Vec::new());
        for row in of(own, "test").into_iter().map(|at| &own.requests[at]) {
            let query = bench.reader.embed_request(&row.query)?.0;
            unrelated.push(executed.iter().all(|past| cosine(past, &query) < RELATED));
            let right: HashSet<usize> = row.seq.iter().flatten().filter_map(|id| both.place(id)).collect();
            for (learned, nodes) in [(&none, &mut before), (&foreign, &mut after)] {
                let asked = learned.read_request(&mut bench.reader, &both, &vectors, &row.query)?;
                let found = suggest_procedure(&learned.memory, &asked.request(&row.query));
                let tools = found.iter().flat_map(|found| &found.tools).map(|tool| *tool as usize).collect();
                nodes.push(score::f1(&tools, &right));
            }
        }
        let unrelated_change = score::mean(
            (before.iter().zip(&after).zip(&unrelated))
                .filter(|(_, unrelated)| **unrelated)
                .map(|((before, after), _)| after - before),
        );
        let unrelated_requests = unrelated.iter().filter(|unrelated| **unrelated).count();
        figures.push(
            BenchFigure::of(
                format!("{name}: the same for the {unrelated_requests} requests that none of them is related to, change"),
                format!("{unrelated_change:+.4}"),
            )
            .target(format!("≥ {CHANGE}"), unrelated_change >= CHANGE),
        );
        let (before, after) = (score::mean(before), score::mean(after));
        figures.push(
            BenchFigure::of(
                format!(
                    "{name}: node F1 without memory / with {} executions of another set / change",
                    traces.len()
                ),
                format!("{:.1} / {:.1} / {:+.4}", 100.0 * before, 100.0 * after, after - before),
            )
            .target(format!("≥ {CHANGE}"), after - before >= CHANGE),
        );
    }
    Ok(figures)
}

/// The vectors of what was asked for, one for each row.
fn embed_queries(bench: &mut DiscoveryBench<'_>, rows: &[&BenchRequest]) -> Result<Vec<Vec<f32>>, Problem> {
    rows.iter().map(|row| Ok(bench.reader.embed_request(&row.query)?.0)).collect()
}

/// The cosine of two vectors of length 1.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
