//! Whether the right tools come first, whether what is said of that is true, and how much French costs.

use pml_graph::rank::{self, Dense, Evidence, Ranked};
use pml_graph::{french, vectors::Vectors};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{Figure, failed, json_lines_of};
use super::calibration::{self, Judged};
use super::data::{self, Request, Set};
use super::score::{self, Ranking};
use super::{Bench, Reader};
use crate::problem::Problem;

/// Sets whose mean counts, and what a simple recipe reaches on each.
const SETS: [(&str, f64); 5] =
    [("livemcp", 0.451), ("toolbench", 0.735), ("sealtools", 0.948), ("bfcl", 0.880), ("traject", 0.549)];
/// How many results are written for each request.
const WRITTEN: usize = 50;
/// What the mean must reach.
const MEAN: f64 = 0.735;
/// How much a single set may lose.
const SLACK: f64 = 0.01;
/// Sets that count for how sure one can be, beside those.
const MORE_SETS: [&str; 2] = ["metatool", "ultratool"];

/// French requests, their English twins, and what serves them.
const FRENCH: &str = include_str!("french.jsonl");

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<Vec<Figure>, Problem> {
    let mut figures = Vec::new();
    let (mut sum, mut held) = (0.0, true);
    let (mut by_meaning, mut by_words) = (Vec::new(), Vec::new());
    for (name, recipe) in SETS {
        let measured = Measured::of(bench, name)?;
        bench.write(name, &measured.predictions)?;
        let ndcg = measured.mean(|score| score.ndcg_5);
        sum += ndcg;
        held &= ndcg >= recipe - SLACK;
        figures.push(
            Figure::of(format!("{name}: nDCG@5 / recall@10 / first / calibration error"), measured.told())
                .target(format!("nDCG@5 ≥ {:.3}", recipe - SLACK), ndcg >= recipe - SLACK),
        );
        by_meaning.push(measured.by_meaning);
        by_words.push(measured.by_words);
    }
    for name in MORE_SETS {
        let measured = Measured::of(bench, name)?;
        by_meaning.push(measured.by_meaning);
        by_words.push(measured.by_words);
    }
    let mean = sum / SETS.len() as f64;
    figures.push(
        Figure::of("mean nDCG@5", format!("{mean:.3}"))
            .target(format!("≥ {MEAN}, no set down by more than {SLACK}"), mean >= MEAN && held),
    );
    figures.extend(calibration::by_meaning(&by_meaning));
    figures.extend(calibration::by_words(&by_words));
    figures.push(in_french(bench)?);
    Ok(figures)
}

/// What stands for the set.
pub(super) fn counts(row: &Request) -> bool {
    row.kind.as_deref().is_none_or(|kind| kind == "parallel_hard")
        && row.role.as_deref().is_none_or(|role| role == "test")
}

/// How the requests of a set were answered.
#[derive(Default)]
struct Measured {
    scores: Vec<Ranking>,
    predictions: Vec<Value>,
    /// How likely the first result was said to be right, and whether it was.
    said: Vec<(f64, bool)>,
    by_meaning: Vec<Judged>,
    by_words: Vec<Judged>,
}

impl Measured {
    fn of(bench: &mut Bench<'_>, name: &str) -> Result<Measured, Problem> {
        let set = Set::read(bench.data, name)?;
        let vectors = vectors(&mut bench.reader, &set.tools)?;
        let mut measured = Measured::default();
        for row in set.requests.iter().filter(|row| counts(row)) {
            let groups = row.groups();
            let (whole, parts) = bench.reader.request(&row.query)?;
            let words = Evidence { lexical: &set.index, dense: None, past: None };
            let dense = Dense { items: &vectors, whole: &whole, parts: &parts };
            if let Some((ranked, signs)) = rank::judged(&row.query, &words) {
                measured.by_words.push((signs, set.score(&ranked, &groups).first > 0.0));
            }
            let found = rank::judged(&row.query, &Evidence { dense: Some(dense), ..words });
            let (ranked, signs) =
                found.map_or_else(Default::default, |(ranked, signs)| (ranked, Some(signs)));
            let score = set.score(&ranked, &groups);
            let right = score.first > 0.0;
            measured.by_meaning.extend(signs.map(|signs| (signs, right)));
            measured.said.push((ranked.first().map_or(0.0, |first| first.score), right));
            let ids: Vec<&str> = set.ids(&ranked).take(WRITTEN).collect();
            measured.predictions.push(json!({ "id": row.id, "ranked": ids }));
            measured.scores.push(score);
        }
        Ok(measured)
    }

    fn mean(&self, of: fn(&Ranking) -> f64) -> f64 {
        score::mean(self.scores.iter().map(of))
    }

    fn told(&self) -> String {
        format!(
            "{:.3} / {:.3} / {:.3} / {:.3}",
            self.mean(|score| score.ndcg_5),
            self.mean(|score| score.recall_10),
            self.mean(|score| score.first),
            score::calibration_error(&self.said)
        )
    }
}

/// The rows of all tools.
pub(super) fn vectors(reader: &mut Reader, tools: &[data::Tool]) -> Result<Vectors, Problem> {
    let texts: Vec<String> = tools.iter().map(data::Tool::text).collect();
    let mut vectors = reader.table()?;
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
                scores.push(set.score(&ranked, &groups).ndcg_5);
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
