//! Whether priors improve the ranking: recently used tools, and success rates.
//!
//! Recorded moments of executions show what was just used. No public set records failures, so these are simulated:
//! some tools fail often, and the measure is how often the first result is right and works.

use std::collections::HashMap;

use pml::discover::Prior;
use pml::problem::Problem;
use pml_graph::graph::closeness::closest_nodes;
use pml_graph::graph::insights::GraphInsights;
use pml_graph::graph::{EdgeType, GraphNodeKind, TypedGraph};
use pml_graph::past::{EmbeddedIntent, IntentTrace, PastAdvice, PastIntents};
use pml_graph::rank::{self, DenseEvidence, RankingEvidence, ScoredItem};
use pml_graph::vectors::VectorTable;
use pml_model::capability::reliability;

use super::data::{self, BenchMoment, BenchSet};
use super::score;
use super::{DiscoveryBench, retrieval};
use crate::figure::BenchFigure;

/// Sets with recorded moments.
const MOMENTS: [&str; 2] = ["ultratool", "traject"];
/// Sets in which some tools are made to fail.
const REQUESTS: [&str; 6] = ["livemcp", "toolbench", "sealtools", "bfcl", "traject", "metatool"];
/// The largest loss caused by tools that were used in another session.
const HARM: f64 = -0.005;
/// One tool of this many fails often.
const ONE_OF: usize = 5;
/// The number of known calls of each tool, and of failures where it fails often.
const CALLS: u64 = 20;
const FAILURES: u64 = 10;

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let mut figures = Vec::new();
    for name in MOMENTS {
        figures.push(what_was_used(bench, name)?);
    }
    let mut works = Vec::new();
    for name in REQUESTS {
        works.push(what_works(bench, name)?);
    }
    let (alone, seen): (Vec<f64>, Vec<f64>) = works.iter().copied().unzip();
    let (alone, seen) = (score::mean(alone), score::mean(seen));
    let single: Vec<String> = works.iter().map(|(alone, seen)| format!("{alone:.3} {seen:.3}")).collect();
    figures.push(
        BenchFigure::of(
            format!("first result right and works, one tool of {ONE_OF} failing often / knowing that"),
            format!("{alone:.3} / {seen:.3} ({})", single.join(", ")),
        )
        .target("more", seen > alone),
    );
    Ok(figures)
}

/// What was learned from the executions of a set.
fn known(
    bench: &mut DiscoveryBench<'_>,
    set: &BenchSet,
    vectors: &VectorTable,
) -> Result<(TypedGraph, PastIntents), Problem> {
    let (mut graph, mut past) = (TypedGraph::default(), PastIntents::default());
    set.tools.iter().for_each(|tool| graph.insert_node(&tool.id, GraphNodeKind::Tool));
    for row in set.requests.iter().filter(|row| row.has_role("trace")) {
        let steps = row.seq.as_deref().unwrap_or_default();
        let mut observe = |from: &str, to: &str, kind: EdgeType| {
            if from != to && set.place(from).is_some() && set.place(to).is_some() {
                graph.observe_edge(from, to, kind, 1);
            }
        };
        steps.windows(2).for_each(|pair| observe(&pair[0], &pair[1], EdgeType::Sequence));
        row.links.iter().for_each(|(from, to)| observe(from, to, EdgeType::Dependency));
        let (whole, parts) = bench.reader.embed_request(&row.query)?;
        let items: Vec<u32> = steps.iter().filter_map(|id| set.place(id)).map(|place| place as u32).collect();
        let likeness = vectors.similarities(&whole).unwrap_or_default();
        let intent = EmbeddedIntent { text: &row.query, vector: Some(&whole), parts: &parts };
        past.learn_trace(&IntentTrace { items: &items, intent, item_cosines: &likeness });
    }
    Ok((graph, past))
}

/// How well the next tool is found: by the request alone, with the recently used tools, and with tools used in
/// another session.
fn what_was_used(bench: &mut DiscoveryBench<'_>, name: &str) -> Result<BenchFigure, Problem> {
    let set = BenchSet::read(bench.data, name)?;
    let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
    let (graph, past) = known(bench, &set, &vectors)?;
    let insights = GraphInsights::compute(&graph);
    let moments: Vec<BenchMoment> = data::read_moments(bench.data, name)?;
    let mut scores = [Vec::new(), Vec::new(), Vec::new()];
    for (at, moment) in moments.iter().enumerate() {
        let (whole, parts) = bench.reader.embed_request(&moment.query)?;
        let intent = EmbeddedIntent { text: &moment.query, vector: Some(&whole), parts: &parts };
        let advice = PastAdvice { hints: past.hints(&intent, set.tools.len()) };
        let dense = DenseEvidence { items: &vectors, whole: &whole, parts: &parts };
        let evidence = RankingEvidence { lexical: &set.index, dense: Some(dense), advice: Some(&advice) };
        // Tools that were already used are not searched for again.
        let unused = |one: &ScoredItem| !moment.context.contains(&set.tools[one.item].id);
        let ranked: Vec<ScoredItem> =
            rank::rank(&moment.query, &evidence).into_iter().filter(|one| unused(one)).collect();
        let groups: Vec<Vec<String>> = moment.targets.iter().map(|id| vec![id.clone()]).collect();
        let elsewhere = &moments[(at + moments.len() / 2) % moments.len()].context;
        for (scores, used) in scores.iter_mut().zip([&Vec::new(), &moment.context, elsewhere]) {
            let used: Vec<&str> = used.iter().map(String::as_str).collect();
            let close: HashMap<String, f64> = closest_nodes(&graph, &insights.snapshot, &used)
                .into_iter()
                .map(|close| (close.id, close.score))
                .collect();
            let close = |item: usize| close.get(&set.tools[item].id).copied().unwrap_or_default();
            let ranked = with_priors(&ranked, |item| Prior { closeness: close(item), ..Prior::default() });
            scores.push(set.score(&ranked, &groups).ndcg_5);
        }
    }
    let [alone, used, elsewhere] = scores.map(score::mean);
    Ok(BenchFigure::of(
        format!("{name}: next tool found, nDCG@5 / knowing what was used / what another session used"),
        format!("{alone:.3} / {used:.3} / {elsewhere:.3}"),
    )
    .target(format!("more / not less by more than {}", -HARM), used > alone && elsewhere - alone >= HARM))
}

/// The share of first results that are right and work, without and with priors from failures.
fn what_works(bench: &mut DiscoveryBench<'_>, name: &str) -> Result<(f64, f64), Problem> {
    let set = BenchSet::read(bench.data, name)?;
    let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
    let (mut alone, mut seen) = (Vec::new(), Vec::new());
    for row in set.requests.iter().filter(|row| retrieval::counts(row)) {
        let (whole, parts) = bench.reader.embed_request(&row.query)?;
        let dense = DenseEvidence { items: &vectors, whole: &whole, parts: &parts };
        let evidence = RankingEvidence { lexical: &set.index, dense: Some(dense), advice: None };
        let ranked = rank::rank(&row.query, &evidence);
        let groups = row.groups();
        // Each tool is among the failing ones once.
        for failing in 0..ONE_OF {
            let worked = |item: usize| if item % ONE_OF == failing { CALLS - FAILURES } else { CALLS };
            let value = |ranked: &[ScoredItem]| {
                let works = ranked.first().map_or(0.0, |first| worked(first.item) as f64 / CALLS as f64);
                set.score(ranked, &groups).first * works
            };
            alone.push(value(&ranked));
            let works = |item: usize| reliability(worked(item), CALLS);
            seen.push(value(&with_priors(&ranked, |item| Prior {
                reliability: works(item),
                ..Prior::default()
            })));
        }
    }
    Ok((score::mean(alone), score::mean(seen)))
}

/// The ranking with priors applied.
fn with_priors(ranked: &[ScoredItem], prior: impl Fn(usize) -> Prior) -> Vec<ScoredItem> {
    let mut ranked: Vec<ScoredItem> =
        ranked.iter().map(|one| ScoredItem { score: prior(one.item).apply(one.score), ..*one }).collect();
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
    ranked
}
