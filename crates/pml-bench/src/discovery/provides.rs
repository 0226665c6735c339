//! Predicts the data flow between calls from the schemas of their tools.

use std::collections::{BTreeSet, HashMap};

use pml::problem::Problem;
use pml_graph::graph::feeds::{CallOrder, PlannedCalls, infer_flow};
use pml_graph::graph::fields::{FieldsDefinition, ToolFields};
use pml_language::Reading;
use serde_json::{Value, json};

use super::DiscoveryBench;
use super::data::{self, BenchRequest};
use crate::figure::BenchFigure;
use crate::flow::EdgeScore;
use crate::lines::json_lines;

/// A set of call sequences with known data flow.
const SET: &str = "nestful";

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let catalogue = data::read_tools(&bench.data.join(SET).join("tools.jsonl"))?;
    let tools = read(&catalogue);
    let rows: Vec<BenchRequest> = json_lines(&bench.data.join(SET).join("dev.jsonl"))?;
    let rows: Vec<&BenchRequest> = rows.iter().filter(|row| row.clean).collect();
    let (by_schemas, _) = score(&rows, &tools, false);
    let (with_request, predictions) = score(&rows, &tools, true);
    let mut chain = EdgeScore::default();
    for row in &rows {
        let calls = row.seq.as_ref().map_or(0, Vec::len);
        chain.add(&(1..calls).map(|call| (call - 1, call)).collect(), &row.edges.iter().copied().collect());
    }
    bench.write(SET, &predictions)?;
    let told =
        |score: &EdgeScore| format!("{:.3} / {:.3} / {:.3}", score.precision(), score.recall(), score.f1());
    Ok(vec![
        BenchFigure::of(format!("{SET}: each call feeds the next, precision / recall / F1"), told(&chain)),
        BenchFigure::of(format!("{SET}: from schemas alone"), told(&by_schemas))
            .target("F1 ≥ 0.80", by_schemas.f1() >= 0.80),
        BenchFigure::of(format!("{SET}: from schemas and the request"), told(&with_request))
            .target("F1 ≥ 0.80", with_request.f1() >= 0.80),
    ])
}

/// The fields of the tools, by id.
pub(super) fn read(tools: &[data::BenchTool]) -> HashMap<&str, ToolFields> {
    let read = |tool: &data::BenchTool| {
        ToolFields::from_definition(&FieldsDefinition {
            id: &tool.id,
            name: &tool.name,
            description: tool.description.as_deref().unwrap_or_default(),
            input_schema: &tool.input_schema,
            output_schema: tool.output_schema.is_object().then_some(&tool.output_schema),
        })
    };
    tools.iter().map(|tool| (tool.id.as_str(), read(tool))).collect()
}

fn score(
    rows: &[&BenchRequest],
    tools: &HashMap<&str, ToolFields>,
    with_request: bool,
) -> (EdgeScore, Vec<Value>) {
    let (mut score, mut predictions) = (EdgeScore::default(), Vec::new());
    for row in rows {
        let sequence = row.seq.as_deref().unwrap_or_default();
        let known: Vec<&ToolFields> = sequence.iter().filter_map(|id| tools.get(id.as_str())).collect();
        let request = with_request.then(|| Reading::of(&row.query));
        let calls = PlannedCalls {
            tools: &known,
            order: CallOrder::AsListed,
            request: request.as_ref(),
            known_arguments: &[],
            similarity: None,
        };
        let found: BTreeSet<(usize, usize)> =
            infer_flow(&calls).edges.iter().map(|edge| (edge.from, edge.to)).collect();
        score.add(&found, &row.edges.iter().copied().collect());
        predictions.push(json!({ "id": row.id, "edges": found }));
    }
    (score, predictions)
}
