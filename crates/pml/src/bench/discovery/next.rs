//! Which tool comes next, told from what was asked for and from the tools used so far.

use pml_graph::next::next;
use serde_json::json;

use super::super::Figure;
use super::dags::Learned;
use super::data::{self, Request, Set};
use super::{Bench, retrieval};
use crate::problem::Problem;

/// Sets, and how often the first guess must be right.
const SETS: [(&str, Option<f64>); 2] = [("ultratool", Some(0.74)), ("traject", None)];

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<Vec<Figure>, Problem> {
    let mut figures = Vec::new();
    for (name, least) in SETS {
        let set = Set::read(bench.data, name)?;
        let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
        let traces: Vec<&Request> = set.requests.iter().filter(|row| row.has_role("trace")).collect();
        let learned = Learned::from(bench, &set, &vectors, &traces)?;
        let moments = data::moments(bench.data, name)?;
        let (mut first, mut third, mut predictions) = (0.0, 0.0, Vec::new());
        for moment in &moments {
            let asked = learned.asked(&mut bench.reader, &set, &vectors, &moment.query)?;
            let used: Vec<u32> =
                moment.context.iter().filter_map(|id| set.place(id)).map(|place| place as u32).collect();
            let prediction = next(&learned.memory, &asked.request(&moment.query), &used);
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
        let figure = Figure::of(
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
