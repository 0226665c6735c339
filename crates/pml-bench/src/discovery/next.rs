//! Predicts the next tool from the request and the tools used so far.

use pml::problem::Problem;
use pml_graph::next::predict_next_tools;
use serde_json::json;

use super::dags::DagBenchMemory;
use super::data::{self, BenchRequest, BenchSet};
use super::{DiscoveryBench, retrieval};
use crate::figure::BenchFigure;

/// The sets, each with the required share of right first guesses.
const SETS: [(&str, Option<f64>); 2] = [("ultratool", Some(0.74)), ("traject", None)];

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let mut figures = Vec::new();
    for (name, least) in SETS {
        let set = BenchSet::read(bench.data, name)?;
        let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
        let traces: Vec<&BenchRequest> = set.requests.iter().filter(|row| row.has_role("trace")).collect();
        let learned = DagBenchMemory::learn_rows(bench, &set, &vectors, &traces)?;
        let moments = data::read_moments(bench.data, name)?;
        let (mut first, mut third, mut predictions) = (0.0, 0.0, Vec::new());
        for moment in &moments {
            let asked = learned.read_request(&mut bench.reader, &set, &vectors, &moment.query)?;
            let used: Vec<u32> =
                moment.context.iter().filter_map(|id| set.place(id)).map(|place| place as u32).collect();
            let prediction = predict_next_tools(&learned.memory, &asked.request(&moment.query), &used);
            let ranked: Vec<&str> =
                prediction.tools.iter().map(|next| set.tools[next.tool as usize].id.as_str()).collect();
            let right =
                |most: usize| ranked.iter().take(most).any(|id| moment.targets.iter().any(|t| t == id));
            first += f64::from(u8::from(right(1)));
            third += f64::from(u8::from(right(3)));
            predictions.push(json!({ "id": moment.id, "ranked": &ranked[..ranked.len().min(20)] }));
        }
        bench.write(&format!("next_{name}"), &predictions)?;
        let all = moments.len().max(1) as f64;
        let figure = BenchFigure::of(
            format!("{name}: next tool right at first / among three, of {}", moments.len()),
            format!("{:.3} / {:.3}", first / all, third / all),
        );
        figures.push(match least {
            Some(least) => figure.target(format!("first ≥ {least}"), first / all >= least),
            None => figure,
        });
    }
    Ok(figures)
}
