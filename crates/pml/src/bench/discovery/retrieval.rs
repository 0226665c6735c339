//! Whether the right tools come first, whether what is said of that is true, and how much French costs.

use pml_graph::rank::{self, Dense, Evidence, Ranked};
use pml_graph::{french, vectors::Vectors};
use serde::Deserialize;
use serde_json::json;

use super::super::{Figure, failed, json_lines_of};
use super::data::{self, Request, Set};
use super::score::{self, Ranking};
use super::{Bench, Reader};
use crate::problem::Problem;

/// Sets whose mean counts, and what a simple recipe reaches on each.
const SETS: [(&str, f64); 5] =
    [("livemcp", 0.451), ("toolbench", 0.735), ("sealtools", 0.948), ("bfcl", 0.880), ("traject", 0.549)];
/// What the mean must reach.
const MEAN: f64 = 0.735;
/// How much a single set may lose.
const SLACK: f64 = 0.01;
/// From this likelihood on the program would run something by itself.
const RUNS: f64 = 0.85;

/// French requests, their English twins, and what serves them.
const FRENCH: &str = include_str!("french.jsonl");

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<Vec<Figure>, Problem> {
    let mut figures = Vec::new();
    let (mut sum, mut said, mut held) = (0.0, Vec::new(), true);
    for (name, recipe) in SETS {
        let set = Set::read(bench.data, name)?;
        let rows: Vec<&Request> = set.requests.iter().filter(|row| counts(row)).collect();
        let vectors = vectors(&mut bench.reader, &set.tools)?;
        let (mut scores, mut predictions, mut of_set) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let ranked = ranked(&mut bench.reader, &set, &vectors, &row.query)?;
            let ids: Vec<&str> = ranked.iter().map(|one| set.tools[one.item].id.as_str()).collect();
            let score = score::ranking(&ids, &row.groups());
            of_set.push((ranked.first().map_or(0.0, |first| first.score), score.first > 0.0));
            predictions.push(json!({ "id": row.id, "ranked": &ids[..ids.len().min(50)] }));
            scores.push(score);
        }
        bench.write(name, &predictions)?;
        let ndcg = score::mean(scores.iter().map(|score| score.ndcg_5));
        sum += ndcg;
        held &= ndcg >= recipe - SLACK;
        figures.push(
            Figure::of(
                format!("{name}: nDCG@5 / recall@10 / first / calibration error"),
                told(&scores, &of_set),
            )
            .target(format!("nDCG@5 ≥ {:.3}", recipe - SLACK), ndcg >= recipe - SLACK),
        );
        said.push(of_set);
    }
    let mean = sum / SETS.len() as f64;
    figures.push(
        Figure::of("mean nDCG@5", format!("{mean:.3}"))
            .target(format!("≥ {MEAN}, no set down by more than {SLACK}"), mean >= MEAN && held),
    );
    figures.extend(calibration(&said));
    figures.push(in_french(bench)?);
    Ok(figures)
}

/// What stands for the set.
fn counts(row: &Request) -> bool {
    row.kind.as_deref().is_none_or(|kind| kind == "parallel_hard")
}

fn told(scores: &[Ranking], said: &[(f64, bool)]) -> String {
    let mean = |of: fn(&Ranking) -> f64| score::mean(scores.iter().map(of));
    format!(
        "{:.3} / {:.3} / {:.3} / {:.3}",
        mean(|score| score.ndcg_5),
        mean(|score| score.recall_10),
        mean(|score| score.first),
        score::calibration_error(said)
    )
}

/// The rows of all tools.
pub(super) fn vectors(reader: &mut Reader, tools: &[data::Tool]) -> Result<Vectors, Problem> {
    let texts: Vec<String> = tools.iter().map(data::Tool::text).collect();
    let mut vectors = Vectors::default();
    for vector in reader.read(&texts)? {
        vectors.push(Some(&vector));
    }
    Ok(vectors)
}

/// The tools of a set for a request, best first.
fn ranked(reader: &mut Reader, set: &Set, items: &Vectors, request: &str) -> Result<Vec<Ranked>, Problem> {
    let gloss = french::gloss(request);
    let request = gloss.as_deref().unwrap_or(request);
    let (whole, parts) = reader.request(request)?;
    let dense = Dense { items, whole: &whole, parts: &parts };
    Ok(rank::rank(request, &Evidence { lexical: &set.index, dense: Some(dense), past: None }))
}

fn calibration(said: &[Vec<(f64, bool)>]) -> Vec<Figure> {
    // Every set counts alike, however many requests it has.
    let error = score::mean(said.iter().map(|of_set| score::calibration_error(of_set)));
    let sure: Vec<bool> =
        said.iter().flatten().filter(|(likely, _)| *likely >= RUNS).map(|(_, right)| *right).collect();
    let precision = sure.iter().filter(|right| **right).count() as f64 / sure.len().max(1) as f64;
    vec![
        Figure::of("calibration error of the first result, mean of the sets", format!("{error:.3}"))
            .target("≤ 0.08", error <= 0.08),
        Figure::of(
            format!("right where it is {RUNS} sure or more"),
            format!("{precision:.3} of {}", sure.len()),
        )
        .target("≥ 0.95", precision >= 0.95),
    ]
}

#[derive(Deserialize)]
struct Twins {
    set: String,
    french: String,
    english: String,
    gold: Vec<String>,
}

/// What French requests find of what their English twins find.
fn in_french(bench: &mut Bench<'_>) -> Result<Figure, Problem> {
    let twins: Vec<Twins> = json_lines_of(FRENCH, "french.jsonl")?;
    let (mut french, mut english, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for name in ["livemcp", "mcp_schemas", "toolbench", "sealtools", "bfcl"] {
        let file = if name == "mcp_schemas" { "dev.jsonl" } else { "tools.jsonl" };
        let tools = data::catalogue(&bench.data.join(name).join(file))?;
        let index = data::index(&tools);
        let vectors = vectors(&mut bench.reader, &tools)?;
        let set = Set { tools, index, requests: Vec::new() };
        for pair in twins.iter().filter(|pair| pair.set == name) {
            let groups: Vec<Vec<String>> = pair.gold.iter().map(|id| vec![id.clone()]).collect();
            for (request, scores) in [(&pair.french, &mut french), (&pair.english, &mut english)] {
                let ranked = ranked(&mut bench.reader, &set, &vectors, request)?;
                let ids: Vec<&str> = ranked.iter().map(|one| set.tools[one.item].id.as_str()).collect();
                scores.push(score::ranking(&ids, &groups).ndcg_5);
            }
        }
        names.push(name);
    }
    if french.len() != twins.len() {
        return Err(failed(format!("some French requests are over none of {}", names.join(", "))));
    }
    let (french, english) = (score::mean(french), score::mean(english));
    let share = french / english.max(1e-9);
    Ok(Figure::of(
        format!("{} requests in French, nDCG@5 / in English / share", twins.len()),
        format!("{french:.3} / {english:.3} / {share:.3}"),
    )
    .target("share ≥ 0.85", share >= 0.85))
}
