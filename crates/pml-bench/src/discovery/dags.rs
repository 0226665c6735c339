//! Predicts the DAG of a request from the DAGs of earlier requests.

use std::collections::HashSet;

use pml::knowledge::embeddings::Vector;
use pml::problem::Problem;
use pml_graph::procedure::{
    ProcedureMemory, ProcedureRequest as Asked, ProcedureTrace, ToolMatch, ToolText, catalogue_matches,
    suggest_procedure,
};
use pml_graph::rank::{self, DenseEvidence, RankingEvidence};
use pml_graph::vectors::VectorTable;
use serde_json::json;

use super::data::{BenchRequest, BenchSet};
use super::score;
use super::{BenchEmbedder, DiscoveryBench, retrieval};
use crate::figure::BenchFigure;

/// The number of executions in the case of few.
const FEW: usize = 100;
/// The number of different samples of few executions.
const CHOICES: usize = 5;

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let set = BenchSet::read(bench.data, "ultratool")?;
    let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
    let traces: Vec<&BenchRequest> = set.requests.iter().filter(|row| row.has_role("trace")).collect();
    let tests: Vec<&BenchRequest> = set.requests.iter().filter(|row| row.has_role("test")).collect();
    let learned = DagBenchMemory::learn_rows(bench, &set, &vectors, &traces)?;
    let (nodes, links, predictions) = predict(bench, &set, &vectors, &learned, &tests)?;
    let sure = sure(bench, &set, &vectors, &learned, &tests)?;
    bench.write("ultratool", &predictions)?;
    let mut few = Vec::new();
    for choice in 0..CHOICES {
        // Each sample is spread evenly over all executions, with another offset.
        let step = (traces.len() / FEW).max(1);
        let some: Vec<&BenchRequest> =
            traces.iter().skip(choice * step / CHOICES).step_by(step).take(FEW).copied().collect();
        let learned = DagBenchMemory::learn_rows(bench, &set, &vectors, &some)?;
        let (nodes, links, _) = predict(bench, &set, &vectors, &learned, &tests)?;
        few.push((nodes, links));
    }
    let few_nodes = score::mean(few.iter().map(|few| few.0));
    let few_links = score::mean(few.iter().map(|few| few.1));
    let told = |nodes: f64, links: f64| format!("{:.1} / {:.1}", 100.0 * nodes, 100.0 * links);
    Ok(vec![
        BenchFigure::of(format!("ultratool: predicted DAG right where it is {SURE} sure or more"), sure),
        BenchFigure::of("traject: the same", traject(bench)?),
        BenchFigure::of(
            format!("ultratool: node F1 / link F1 from {} executions", traces.len()),
            told(nodes, links),
        )
        .target("≥ 88 / ≥ 63", nodes >= 0.88 && links >= 0.63),
        BenchFigure::of(
            format!("ultratool: the same from {FEW}, mean of {CHOICES} choices"),
            told(few_nodes, few_links),
        )
        .target("≥ 77 / ≥ 47", few_nodes >= 0.77 && few_links >= 0.47),
    ])
}

/// The confidence from which on a DAG is taken to be surely right.
const SURE: f32 = 0.85;

/// The share of predictions that are surely right and have exactly the right tools and links.
fn sure(
    bench: &mut DiscoveryBench<'_>,
    set: &BenchSet,
    vectors: &VectorTable,
    learned: &DagBenchMemory,
    tests: &[&BenchRequest],
) -> Result<String, Problem> {
    let (mut right, mut all) = (0_u32, 0_u32);
    for row in tests {
        let asked = learned.read_request(&mut bench.reader, set, vectors, &row.query)?;
        let Some(found) = suggest_procedure(&learned.memory, &asked.request(&row.query)) else { continue };
        if found.confidence < SURE {
            continue;
        }
        let tools: HashSet<u32> = found.tools.iter().copied().collect();
        let links: HashSet<(u32, u32)> =
            found.links.iter().map(|(from, to)| (found.tools[*from], found.tools[*to])).collect();
        let place = |id: &String| set.place(id).map(|place| place as u32);
        let gold = calls(set, row);
        let gold_links: HashSet<(u32, u32)> = if row.links.is_empty() {
            row.edges.iter().filter_map(|(from, to)| Some((*gold.get(*from)?, *gold.get(*to)?))).collect()
        } else {
            row.links.iter().filter_map(|(from, to)| Some((place(from)?, place(to)?))).collect()
        };
        all += 1;
        right += u32::from(tools == gold.iter().copied().collect() && links == gold_links);
    }
    Ok(format!("{:.3} of {all}, of {} requests", f64::from(right) / f64::from(all.max(1)), tests.len()))
}

fn traject(bench: &mut DiscoveryBench<'_>) -> Result<String, Problem> {
    let set = BenchSet::read(bench.data, "traject")?;
    let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
    let rows: Vec<&BenchRequest> =
        set.requests.iter().filter(|row| row.kind.as_deref() == Some("sequential")).collect();
    let (learned, tests): (Vec<&BenchRequest>, Vec<&BenchRequest>) =
        rows.into_iter().partition(|row| row.has_role("trace"));
    let learned = DagBenchMemory::learn_rows(bench, &set, &vectors, &learned)?;
    sure(bench, &set, &vectors, &learned, &tests)
}

/// What was learned from executions.
pub(super) struct DagBenchMemory {
    pub(super) memory: ProcedureMemory,
}

impl DagBenchMemory {
    pub(super) fn learn_rows(
        bench: &mut DiscoveryBench<'_>,
        set: &BenchSet,
        vectors: &VectorTable,
        rows: &[&BenchRequest],
    ) -> Result<DagBenchMemory, Problem> {
        let memory = ProcedureMemory::new(set.tools.iter().map(|tool| ToolText {
            name: &tool.name,
            description: tool.description.as_deref().unwrap_or_default(),
        }));
        let mut learned = DagBenchMemory { memory };
        for row in rows {
            learned.learn(&mut bench.reader, set, vectors, row)?;
        }
        Ok(learned)
    }

    /// Reads a request, with the tools that match it.
    pub(super) fn read_request(
        &self,
        reader: &mut BenchEmbedder,
        set: &BenchSet,
        items: &VectorTable,
        query: &str,
    ) -> Result<ReadRequest, Problem> {
        let (whole, parts) = reader.embed_request(query)?;
        let dense = DenseEvidence { items, whole: &whole, parts: &parts };
        let evidence = RankingEvidence { lexical: &set.index, dense: Some(dense), advice: None };
        Ok(ReadRequest {
            matches: catalogue_matches(&rank::standard_scores(query, &evidence)),
            vector: whole.into(),
        })
    }

    /// Learns from one row.
    fn learn(
        &mut self,
        reader: &mut BenchEmbedder,
        set: &BenchSet,
        vectors: &VectorTable,
        row: &BenchRequest,
    ) -> Result<(), Problem> {
        let read = self.read_request(reader, set, vectors, &row.query)?;
        let sequence = row.seq.as_deref().unwrap_or_default();
        let links: Vec<(usize, usize)> = if row.links.is_empty() {
            row.edges.clone()
        } else {
            let place = |id: &String| sequence.iter().position(|step| step == id);
            row.links.iter().filter_map(|(from, to)| Some((place(from)?, place(to)?))).collect()
        };
        self.memory.learn_trace(&ProcedureTrace {
            intent: &row.query,
            vector: Some(&read.vector),
            matches: &read.matches,
            tools: &calls(set, row),
            links: &links,
        });
        Ok(())
    }
}

/// The called tools, in order.
fn calls(set: &BenchSet, row: &BenchRequest) -> Vec<u32> {
    let sequence = row.seq.as_deref().unwrap_or_default();
    sequence.iter().filter_map(|id| set.place(id)).map(|place| place as u32).collect()
}

type DagBenchScores = (f64, f64, Vec<serde_json::Value>);

fn predict(
    bench: &mut DiscoveryBench<'_>,
    set: &BenchSet,
    vectors: &VectorTable,
    learned: &DagBenchMemory,
    tests: &[&BenchRequest],
) -> Result<DagBenchScores, Problem> {
    let (mut nodes, mut links, mut predictions) = (0.0, 0.0, Vec::new());
    for row in tests {
        let asked = learned.read_request(&mut bench.reader, set, vectors, &row.query)?;
        let found = suggest_procedure(&learned.memory, &asked.request(&row.query));
        let tools: Vec<&str> = found
            .iter()
            .flat_map(|found| &found.tools)
            .map(|tool| set.tools[*tool as usize].id.as_str())
            .collect();
        let edges: HashSet<(&str, &str)> = found
            .iter()
            .flat_map(|found| &found.links)
            .map(|(from, to)| (tools[*from], tools[*to]))
            .collect();
        let right: HashSet<(&str, &str)> =
            row.links.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
        let distinct: HashSet<&str> = tools.iter().copied().collect();
        nodes += score::f1(&distinct, &row.gold.iter().map(String::as_str).collect());
        links += score::f1(&edges, &right);
        predictions
            .push(json!({ "id": row.id, "nodes": tools, "edges": edges.into_iter().collect::<Vec<_>>() }));
    }
    let all = tests.len().max(1) as f64;
    Ok((nodes / all, links / all, predictions))
}

/// A request with its reading.
pub(super) struct ReadRequest {
    vector: Vector,
    matches: Vec<ToolMatch>,
}

impl ReadRequest {
    pub(super) fn request<'r>(&'r self, intent: &'r str) -> Asked<'r> {
        Asked { intent, vector: Some(&self.vector), matches: &self.matches }
    }
}
