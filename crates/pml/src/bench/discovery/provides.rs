//! Which call takes from which, told from the schemas of their tools.

use std::collections::{BTreeSet, HashMap};

use pml_graph::graph::feeds::{Calls, Order, feeds};
use pml_graph::graph::fields::{Definition, Tool};
use serde_json::{Value, json};

use super::super::flow::Score;
use super::super::{Figure, json_lines};
use super::Bench;
use super::data::{self, Request};
use crate::problem::Problem;

/// Sets of call sequences of which it is known what goes where.
const SET: &str = "nestful";

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<Vec<Figure>, Problem> {
    let catalogue = data::catalogue(&bench.data.join(SET).join("tools.jsonl"))?;
    let tools = read(&catalogue);
    let rows: Vec<Request> = json_lines(&bench.data.join(SET).join("dev.jsonl"))?;
    let rows: Vec<&Request> = rows.iter().filter(|row| row.clean).collect();
    let (by_schemas, _) = score(&rows, &tools, false);
    let (with_request, predictions) = score(&rows, &tools, true);
    let mut chain = Score::default();
    for row in &rows {
        let calls = row.seq.as_ref().map_or(0, Vec::len);
        chain.add(&(1..calls).map(|call| (call - 1, call)).collect(), &row.edges.iter().copied().collect());
    }
    bench.write(SET, &predictions)?;
    let told =
        |score: &Score| format!("{:.3} / {:.3} / {:.3}", score.precision(), score.recall(), score.f1());
    Ok(vec![
        Figure::of(format!("{SET}: each call feeds the next, precision / recall / F1"), told(&chain)),
        Figure::of(format!("{SET}: from schemas alone"), told(&by_schemas))
            .target("F1 ≥ 0.80", by_schemas.f1() >= 0.80),
        Figure::of(format!("{SET}: from schemas and the request"), told(&with_request))
            .target("F1 ≥ 0.80", with_request.f1() >= 0.80),
    ])
}

fn read(tools: &[data::Tool]) -> HashMap<&str, Tool> {
    let read = |tool: &data::Tool| {
        Tool::read(&Definition {
            id: &tool.id,
            name: &tool.name,
            description: tool.description.as_deref().unwrap_or_default(),
            input: &tool.input_schema,
            output: tool.output_schema.is_object().then_some(&tool.output_schema),
        })
    };
    tools.iter().map(|tool| (tool.id.as_str(), read(tool))).collect()
}

fn score(rows: &[&Request], tools: &HashMap<&str, Tool>, with_request: bool) -> (Score, Vec<Value>) {
    let (mut score, mut predictions) = (Score::default(), Vec::new());
    for row in rows {
        let sequence = row.seq.as_deref().unwrap_or_default();
        let known: Vec<&Tool> = sequence.iter().filter_map(|id| tools.get(id.as_str())).collect();
        let request = with_request.then_some(row.query.as_str());
        let calls = Calls { tools: &known, order: Order::Given, request, known: &[], similar: None };
        let found: BTreeSet<(usize, usize)> =
            feeds(&calls).edges.iter().map(|edge| (edge.from, edge.to)).collect();
        score.add(&found, &row.edges.iter().copied().collect());
        predictions.push(json!({ "id": row.id, "edges": found }));
    }
    (score, predictions)
}
