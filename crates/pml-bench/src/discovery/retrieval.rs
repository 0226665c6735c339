//! Ranking quality, calibration of the scores, and the loss of French requests.

use pml::problem::Problem;
use pml_graph::rank::{self, DenseEvidence, RankingEvidence, ScoredItem};
use pml_graph::vectors::VectorTable;
use pml_language::{Reading, french};
use serde::Deserialize;
use serde_json::{Value, json};

use super::calibration::{self, ComposedDag, JudgedSigns};
use super::data::{self, BenchRequest, BenchSet};
use super::score::{self, RankingScore};
use super::{BenchEmbedder, DiscoveryBench};
use crate::figure::{BenchFigure, failed};
use crate::lines::json_lines_of;

/// The sets of the mean, each with the score of a simple baseline.
const SETS: [(&str, f64); 5] =
    [("livemcp", 0.451), ("toolbench", 0.735), ("sealtools", 0.948), ("bfcl", 0.880), ("traject", 0.549)];
/// The number of results written for each request.
const WRITTEN: usize = 50;
/// The score that the mean must reach.
const MEAN: f64 = 0.735;
/// The largest loss of a single set against its baseline.
const SLACK: f64 = 0.01;
/// Further sets that count for the calibration.
const MORE_SETS: [&str; 2] = ["metatool", "ultratool"];

/// French requests, their English translations, and the right tools.
const FRENCH: &str = include_str!("french.jsonl");

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let mut figures = Vec::new();
    let (mut sum, mut held) = (0.0, true);
    let (mut by_meaning, mut by_words, mut composed) = (Vec::new(), Vec::new(), Vec::new());
    for (name, recipe) in SETS {
        let measured = RetrievalScores::measure_set(bench, name)?;
        bench.write(name, &measured.predictions)?;
        let ndcg = measured.mean(|score| score.ndcg_5);
        sum += ndcg;
        held &= ndcg >= recipe - SLACK;
        figures.push(
            BenchFigure::of(
                format!("{name}: nDCG@5 / recall@10 / first / calibration error"),
                measured.description(),
            )
            .target(format!("nDCG@5 ≥ {:.3}", recipe - SLACK), ndcg >= recipe - SLACK),
        );
        by_meaning.push(measured.by_meaning);
        by_words.push(measured.by_words);
        composed.push(measured.composed);
    }
    for name in MORE_SETS {
        let measured = RetrievalScores::measure_set(bench, name)?;
        by_meaning.push(measured.by_meaning);
        by_words.push(measured.by_words);
        composed.push(measured.composed);
    }
    let mean = sum / SETS.len() as f64;
    figures.push(
        BenchFigure::of("mean nDCG@5", format!("{mean:.3}"))
            .target(format!("≥ {MEAN}, no set down by more than {SLACK}"), mean >= MEAN && held),
    );
    let names: Vec<&str> = set_names().collect();
    figures.extend(calibration::by_meaning(&names, &by_meaning));
    figures.extend(calibration::by_words(&names, &by_words));
    figures.extend(calibration::composed(&names, &by_meaning, &composed));
    figures.push(in_french(bench)?);
    Ok(figures)
}

/// The names of all sets that requests are ranked on.
pub(super) fn set_names() -> impl Iterator<Item = &'static str> {
    SETS.iter().map(|(name, _)| *name).chain(MORE_SETS)
}

/// Whether a row counts for the score of its set.
pub(super) fn counts(row: &BenchRequest) -> bool {
    row.kind.as_deref().is_none_or(|kind| kind == "parallel_hard")
        && row.role.as_deref().is_none_or(|role| role == "test")
}

/// The scores of the requests of a set.
#[derive(Default)]
struct RetrievalScores {
    scores: Vec<RankingScore>,
    predictions: Vec<Value>,
    /// The stated probability of the first result, and whether it was right.
    said: Vec<(f64, bool)>,
    by_meaning: Vec<JudgedSigns>,
    by_words: Vec<JudgedSigns>,
    composed: Vec<ComposedDag>,
}

impl RetrievalScores {
    fn measure_set(bench: &mut DiscoveryBench<'_>, name: &str) -> Result<RetrievalScores, Problem> {
        let set = BenchSet::read(bench.data, name)?;
        let vectors = vectors(&mut bench.reader, &set.tools)?;
        let mut measured = RetrievalScores::default();
        let rows: Vec<&BenchRequest> = set.requests.iter().filter(|row| counts(row)).collect();
        let every = bench.most.map_or(1, |most| rows.len().div_ceil(most.max(1)).max(1));
        for row in rows.into_iter().step_by(every) {
            let groups = row.groups();
            let (whole, parts) = bench.reader.embed_request(&row.query)?;
            let words = RankingEvidence { lexical: &set.index, dense: None, advice: None };
            let dense = DenseEvidence { items: &vectors, whole: &whole, parts: &parts };
            if let Some((ranked, signs)) = rank::rank_with_signals(&row.query, &words) {
                measured.by_words.push((signs, set.score(&ranked, &groups).first > 0.0));
            }
            let found = rank::rank_with_signals(&row.query, &RankingEvidence { dense: Some(dense), ..words });
            let (ranked, signs) =
                found.map_or_else(Default::default, |(ranked, signs)| (ranked, Some(signs)));
            let score = set.score(&ranked, &groups);
            let right = score.first > 0.0;
            measured.by_meaning.extend(signs.map(|signs| (signs, right)));
            measured.composed.extend(compose(bench, &set, &vectors, row)?);
            measured.said.push((ranked.first().map_or(0.0, |first| first.score), right));
            let ids: Vec<&str> = set.ids(&ranked).take(WRITTEN).collect();
            measured.predictions.push(json!({ "id": row.id, "ranked": ids }));
            measured.scores.push(score);
        }
        Ok(measured)
    }

    fn mean(&self, of: fn(&RankingScore) -> f64) -> f64 {
        score::mean(self.scores.iter().map(of))
    }

    fn description(&self) -> String {
        format!(
            "{:.3} / {:.3} / {:.3} / {:.3}",
            self.mean(|score| score.ndcg_5),
            self.mean(|score| score.recall_10),
            self.mean(|score| score.first),
            score::calibration_error(&self.said)
        )
    }
}

/// The best tool for each step of a request, and whether these are the right ones; `None` if a step has none.
fn compose(
    bench: &mut DiscoveryBench<'_>,
    set: &BenchSet,
    vectors: &VectorTable,
    row: &BenchRequest,
) -> Result<Option<ComposedDag>, Problem> {
    let (mut steps, mut tools) = (Vec::new(), Vec::new());
    for step in Reading::of(&row.query).steps() {
        let (whole, parts) = bench.reader.embed_request(&step)?;
        let dense = DenseEvidence { items: vectors, whole: &whole, parts: &parts };
        let evidence = RankingEvidence { lexical: &set.index, dense: Some(dense), advice: None };
        let Some((ranked, signs)) = rank::rank_with_signals(&step, &evidence) else { return Ok(None) };
        tools.extend(set.ids(&ranked).next());
        steps.push(signs);
    }
    let groups = row.groups();
    let has = |group: &Vec<String>, tool: &str| group.iter().any(|member| member == tool);
    let right = tools.iter().all(|tool| groups.iter().any(|group| has(group, tool)))
        && groups.iter().all(|group| tools.iter().any(|tool| has(group, tool)));
    Ok(Some(ComposedDag { steps, right }))
}

/// The embeddings of all tools.
pub(super) fn vectors(reader: &mut BenchEmbedder, tools: &[data::BenchTool]) -> Result<VectorTable, Problem> {
    let texts: Vec<String> = tools.iter().map(data::BenchTool::text).collect();
    let mut vectors = reader.table()?;
    for vector in reader.embed(&texts)? {
        vectors.push(Some(&vector));
    }
    Ok(vectors)
}

/// The tools of a set for a request, best first.
fn ranked(
    reader: &mut BenchEmbedder,
    set: &BenchSet,
    items: &VectorTable,
    request: &str,
) -> Result<Vec<ScoredItem>, Problem> {
    let gloss = french::gloss(request);
    let request = gloss.as_deref().unwrap_or(request);
    let (whole, parts) = reader.embed_request(request)?;
    let dense = DenseEvidence { items, whole: &whole, parts: &parts };
    Ok(rank::rank(request, &RankingEvidence { lexical: &set.index, dense: Some(dense), advice: None }))
}

#[derive(Deserialize)]
struct FrenchTwin {
    set: String,
    french: String,
    english: String,
    gold: Vec<String>,
}

/// The score of French requests relative to their English translations.
fn in_french(bench: &mut DiscoveryBench<'_>) -> Result<BenchFigure, Problem> {
    let twins: Vec<FrenchTwin> = json_lines_of(FRENCH, "french.jsonl")?;
    let (mut french, mut english, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for name in ["livemcp", "mcp_schemas", "toolbench", "sealtools", "bfcl"] {
        let file = if name == "mcp_schemas" { "dev.jsonl" } else { "tools.jsonl" };
        let tools = data::read_tools(&bench.data.join(name).join(file))?;
        let index = data::index(&tools);
        let vectors = vectors(&mut bench.reader, &tools)?;
        let set = BenchSet { tools, index, requests: Vec::new() };
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
    Ok(BenchFigure::of(
        format!("{} requests in French, nDCG@5 / in English / share", twins.len()),
        format!("{french:.3} / {english:.3} / {share:.3}"),
    )
    .target("share ≥ 0.85", share >= 0.85))
}
