//! Which DAG serves a request, told from DAGs that served others.

use std::collections::HashSet;

use pml_graph::procedure::{Match, Memory, Request as Asked, ToolText, Trace, matches, suggest};
use pml_graph::rank::{self, Dense, Evidence};
use pml_graph::vectors::Vectors;
use serde_json::json;

use super::super::Figure;
use super::data::{Request, Set};
use super::score;
use super::{Bench, Reader, retrieval};
use crate::knowledge::embeddings::Vector;
use crate::problem::Problem;

/// How few executions there are where there are few.
const FEW: usize = 100;
/// How many choices of few executions are tried.
const CHOICES: usize = 5;

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<Vec<Figure>, Problem> {
    let set = Set::read(bench.data, "ultratool")?;
    let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
    let traces: Vec<&Request> = set.requests.iter().filter(|row| row.has_role("trace")).collect();
    let tests: Vec<&Request> = set.requests.iter().filter(|row| row.has_role("test")).collect();
    let learned = Learned::from(bench, &set, &vectors, &traces)?;
    let (nodes, links, predictions) = predict(bench, &set, &vectors, &learned, &tests)?;
    bench.write("ultratool", &predictions)?;
    let mut few = Vec::new();
    for choice in 0..CHOICES {
        // Spread over all of them, each choice another part.
        let step = (traces.len() / FEW).max(1);
        let some: Vec<&Request> =
            traces.iter().skip(choice * step / CHOICES).step_by(step).take(FEW).copied().collect();
        let learned = Learned::from(bench, &set, &vectors, &some)?;
        let (nodes, links, _) = predict(bench, &set, &vectors, &learned, &tests)?;
        few.push((nodes, links));
    }
    let few_nodes = score::mean(few.iter().map(|few| few.0));
    let few_links = score::mean(few.iter().map(|few| few.1));
    let told = |nodes: f64, links: f64| format!("{:.1} / {:.1}", 100.0 * nodes, 100.0 * links);
    Ok(vec![
        Figure::of(
            format!("ultratool: node F1 / link F1 from {} executions", traces.len()),
            told(nodes, links),
        )
        .target("≥ 85 / ≥ 58", nodes >= 0.85 && links >= 0.58),
        Figure::of(
            format!("ultratool: the same from {FEW}, mean of {CHOICES} choices"),
            told(few_nodes, few_links),
        )
        .target("≥ 73 / ≥ 44", few_nodes >= 0.73 && few_links >= 0.44),
    ])
}

/// What executions taught.
pub(super) struct Learned {
    pub(super) memory: Memory,
}

impl Learned {
    pub(super) fn from(
        bench: &mut Bench<'_>,
        set: &Set,
        vectors: &Vectors,
        rows: &[&Request],
    ) -> Result<Learned, Problem> {
        let memory = Memory::new(set.tools.iter().map(|tool| ToolText {
            name: &tool.name,
            description: tool.description.as_deref().unwrap_or_default(),
        }));
        let mut learned = Learned { memory };
        for row in rows {
            learned.learn(&mut bench.reader, set, vectors, row)?;
        }
        Ok(learned)
    }

    /// Reads a request, with the tools that match it.
    pub(super) fn asked(
        &self,
        reader: &mut Reader,
        set: &Set,
        items: &Vectors,
        query: &str,
    ) -> Result<Read, Problem> {
        let (whole, parts) = reader.request(query)?;
        let dense = Dense { items, whole: &whole, parts: &parts };
        let evidence = Evidence { lexical: &set.index, dense: Some(dense), past: None };
        Ok(Read { matches: matches(&rank::standard(query, &evidence)), vector: whole.into() })
    }

    /// Learns what a row tells.
    fn learn(
        &mut self,
        reader: &mut Reader,
        set: &Set,
        vectors: &Vectors,
        row: &Request,
    ) -> Result<(), Problem> {
        let read = self.asked(reader, set, vectors, &row.query)?;
        let sequence = row.seq.as_deref().unwrap_or_default();
        let links: Vec<(usize, usize)> = if row.links.is_empty() {
            row.edges.clone()
        } else {
            let place = |id: &String| sequence.iter().position(|step| step == id);
            row.links.iter().filter_map(|(from, to)| Some((place(from)?, place(to)?))).collect()
        };
        self.memory.learn(&Trace {
            intent: &row.query,
            vector: Some(&read.vector),
            matches: &read.matches,
            tools: &calls(set, row),
            links: &links,
        });
        Ok(())
    }
}

/// The tools that were called, in that order.
fn calls(set: &Set, row: &Request) -> Vec<u32> {
    let sequence = row.seq.as_deref().unwrap_or_default();
    sequence.iter().filter_map(|id| set.place(id)).map(|place| place as u32).collect()
}

type Predicted = (f64, f64, Vec<serde_json::Value>);

fn predict(
    bench: &mut Bench<'_>,
    set: &Set,
    vectors: &Vectors,
    learned: &Learned,
    tests: &[&Request],
) -> Result<Predicted, Problem> {
    let (mut nodes, mut links, mut predictions) = (0.0, 0.0, Vec::new());
    for row in tests {
        let asked = learned.asked(&mut bench.reader, set, vectors, &row.query)?;
        let found = suggest(&learned.memory, &asked.request(&row.query));
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

/// A request as it is asked.
pub(super) struct Read {
    vector: Vector,
    matches: Vec<Match>,
}

impl Read {
    pub(super) fn request<'r>(&'r self, intent: &'r str) -> Asked<'r> {
        Asked { intent, vector: Some(&self.vector), matches: &self.matches }
    }
}
