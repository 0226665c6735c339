//! Programs with labelled data flow: how much of it the analysis finds, and how fast.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pml::problem::Problem;
use pml_analysis::{AnalysisCatalogue, AnalysisTool};
use pml_model::json::empty_object;
use pml_model::name::js_identifier;
use pml_model::structure::{NodeId, Structure};
use pml_model::{ServerName, ToolId};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::figure::{BenchFigure, failed};
use crate::lines::json_lines;

#[derive(Deserialize)]
struct FlowBenchTool {
    server: String,
    name: String,
    input_schema: Option<Box<RawValue>>,
    output_schema: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct FlowBenchRow {
    id: String,
    ts_code: Option<String>,
    /// Labelled edges, by index: from the call that gives a result to the call that takes it.
    #[serde(default)]
    edges: BTreeSet<(usize, usize)>,
    /// Whether the labels in `edges` are reliable.
    #[serde(default = "yes")]
    clean: bool,
}

fn yes() -> bool {
    true
}

/// The predicted edges of one row.
struct FlowBenchPrediction {
    edges: BTreeSet<(usize, usize)>,
    understood: bool,
    took: Duration,
}

/// Counts of right, wrong and missed edges.
#[derive(Debug, Default)]
pub(super) struct EdgeScore {
    right: usize,
    wrong: usize,
    missed: usize,
    exact: usize,
    rows: usize,
}

pub(super) fn measure(data: &Path, out: Option<&Path>) -> Result<Vec<BenchFigure>, Problem> {
    let catalogue = catalogue(&data.join("tools.jsonl"))?;
    let rows = rows(data)?;
    let mut score = EdgeScore::default();
    let (mut took, mut not_understood, mut lines) = (Duration::ZERO, 0, String::new());
    for (id, source, row) in rows.iter().filter_map(|row| Some((&row.id, row.ts_code.as_deref()?, row))) {
        let prediction = predict(source, &catalogue);
        took += prediction.took;
        not_understood += usize::from(!prediction.understood);
        if row.clean {
            score.add(&prediction.edges, &row.edges);
        }
        lines.push_str(&json!({ "id": id, "edges": prediction.edges }).to_string());
        lines.push('\n');
    }
    if let Some(out) = out {
        std::fs::write(out, &lines).map_err(|error| failed(format!("{}: {error}", out.display())))?;
    }
    let all = lines.lines().count();
    let per_second = all as f64 / took.as_secs_f64().max(1e-9);
    Ok(vec![
        BenchFigure::of(
            "programs / with reliable edges / not understood",
            format!("{all} / {} / {not_understood}", score.rows),
        ),
        BenchFigure::of(
            "data flow found, precision / recall / F1",
            format!("{:.4} / {:.4} / {:.4}", score.precision(), score.recall(), score.f1()),
        )
        .target("F1 = 1", score.f1() >= 1.0),
        BenchFigure::of(
            "programs with exactly the right edges",
            format!("{} of {}", score.exact, score.rows),
        ),
        BenchFigure::of("analyses per second, one after the other", format!("{per_second:.0}")),
    ])
}

/// The rows with programs of all files in the directory, in the order of file names.
fn rows(data: &Path) -> Result<Vec<FlowBenchRow>, Problem> {
    let listed = std::fs::read_dir(data).map_err(|error| failed(format!("{}: {error}", data.display())))?;
    let mut files: Vec<PathBuf> = listed
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .filter(|path| path.file_name().is_some_and(|name| name != "tools.jsonl"))
        .collect();
    files.sort();
    let mut rows: Vec<FlowBenchRow> = Vec::new();
    for file in files {
        rows.extend(json_lines::<FlowBenchRow>(&file)?.into_iter().filter(|row| row.ts_code.is_some()));
    }
    if rows.is_empty() {
        return Err(failed(format!("no row of {} has a `ts_code`", data.display())));
    }
    Ok(rows)
}

pub(super) fn catalogue(path: &Path) -> Result<AnalysisCatalogue, Problem> {
    let mut catalogue = AnalysisCatalogue::default();
    for line in json_lines::<FlowBenchTool>(path)? {
        let id = ToolId { server: ServerName::new(&line.server).map_err(failed)?, tool: line.name };
        let identifier = js_identifier(&id.tool);
        let input = line.input_schema.unwrap_or_else(empty_object);
        catalogue.add_tool(AnalysisTool::new(id, identifier, input, line.output_schema, false));
    }
    Ok(catalogue)
}

fn predict(source: &str, catalogue: &AnalysisCatalogue) -> FlowBenchPrediction {
    let started = Instant::now();
    let analysis = pml_analysis::analyse(source, catalogue);
    let took = started.elapsed();
    let edges = analysis.as_ref().map(|analysis| edges(&analysis.structure)).unwrap_or_default();
    FlowBenchPrediction { edges, understood: analysis.is_ok(), took }
}

/// The data flow between calls, numbered in source order.
fn edges(structure: &Structure) -> BTreeSet<(usize, usize)> {
    let calls = structure.nodes.iter().filter(|node| node.kind.is_call());
    let index: HashMap<NodeId, usize> = calls.enumerate().map(|(index, node)| (node.id, index)).collect();
    let pairs = structure.data_flow().into_iter();
    pairs.filter_map(|(from, to)| Some((*index.get(&from)?, *index.get(&to)?))).collect()
}

impl EdgeScore {
    pub(super) fn add(&mut self, found: &BTreeSet<(usize, usize)>, gold: &BTreeSet<(usize, usize)>) {
        self.right += found.intersection(gold).count();
        self.wrong += found.difference(gold).count();
        self.missed += gold.difference(found).count();
        self.exact += usize::from(found == gold);
        self.rows += 1;
    }

    pub(super) fn precision(&self) -> f64 {
        self.right as f64 / (self.right + self.wrong).max(1) as f64
    }

    pub(super) fn recall(&self) -> f64 {
        self.right as f64 / (self.right + self.missed).max(1) as f64
    }

    pub(super) fn f1(&self) -> f64 {
        let (precision, recall) = (self.precision(), self.recall());
        2.0 * precision * recall / (precision + recall).max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_scored_over_all_rows_together() {
        let mut score = EdgeScore::default();
        score.add(&[(0, 1), (0, 2)].into(), &[(0, 1)].into());
        score.add(&[(1, 2)].into(), &[(1, 2), (0, 2)].into());
        score.add(&[].into(), &[].into());
        assert_eq!((score.right, score.wrong, score.missed, score.exact, score.rows), (2, 1, 1, 1, 3));
        assert!((score.f1() - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn calls_are_numbered_without_what_is_no_call() {
        let structure: Structure = serde_json::from_value(json!({
            "nodes": [
                { "id": "n1", "type": "task", "tool": "a:b", "arguments": {"type": "object", "fields": []}, "at": at() },
                { "id": "n2", "type": "task", "tool": "code:map", "pure": true, "arguments": {"type": "object", "fields": []}, "at": at() },
                { "id": "n3", "type": "task", "tool": "a:c", "arguments": {"type": "object", "fields": []}, "at": at() },
            ],
            "edges": [
                { "from": "n1", "to": "n2", "type": "provides", "coverage": "strict", "basis": "data" },
                { "from": "n2", "to": "n3", "type": "provides", "coverage": "strict", "basis": "data" },
                { "from": "n1", "to": "n3", "type": "provides", "coverage": "strict", "basis": "schema" },
            ],
        }))
        .unwrap();
        assert_eq!(edges(&structure), [(0, 1)].into());
    }

    fn at() -> serde_json::Value {
        json!({"line": 1, "column": 1, "start": 0, "end": 1})
    }
}
