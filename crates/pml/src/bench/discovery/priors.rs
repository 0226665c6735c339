//! Whether what is known beside the request earns its place in the ranking: what was just used, and what works.
//!
//! For what was just used there are recorded moments of executions. No public set records which tools fail, so that is made
//! up: some tools fail often, and what counts is how often the first result is right and works.

use std::collections::HashMap;

use pml_graph::graph::closeness::closeness;
use pml_graph::graph::insights::Insights;
use pml_graph::graph::{EdgeType, Graph, NodeKind};
use pml_graph::past::{Advice, Intent, Past, Trace};
use pml_graph::rank::{self, Dense, Evidence, Ranked};
use pml_graph::vectors::Vectors;
use pml_model::capability::reliability;

use super::super::Figure;
use super::data::{self, Moment, Set};
use super::score;
use super::{Bench, retrieval};
use crate::discover::Prior;
use crate::problem::Problem;

/// Sets with recorded moments.
const MOMENTS: [&str; 2] = ["ultratool", "traject"];
/// Sets over whose tools some fail.
const REQUESTS: [&str; 6] = ["livemcp", "toolbench", "sealtools", "bfcl", "traject", "metatool"];
/// What was used in another session may cost this much at most.
const HARM: f64 = -0.005;
/// One tool of so many fails often.
const ONE_OF: usize = 5;
/// How many calls of each tool are known, and how many of them failed where it fails often.
const CALLS: u64 = 20;
const FAILURES: u64 = 10;

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<Vec<Figure>, Problem> {
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
        Figure::of(
            format!("first result right and works, one tool of {ONE_OF} failing often / knowing that"),
            format!("{alone:.3} / {seen:.3} ({})", single.join(", ")),
        )
        .target("more", seen > alone),
    );
    Ok(figures)
}

/// What is known from the executions of a set.
fn known(bench: &mut Bench<'_>, set: &Set, vectors: &Vectors) -> Result<(Graph, Past), Problem> {
    let (mut graph, mut past) = (Graph::default(), Past::default());
    set.tools.iter().for_each(|tool| graph.insert(&tool.id, NodeKind::Tool));
    for row in set.requests.iter().filter(|row| row.has_role("trace")) {
        let steps = row.seq.as_deref().unwrap_or_default();
        let mut observe = |from: &str, to: &str, kind: EdgeType| {
            if from != to && set.place(from).is_some() && set.place(to).is_some() {
                graph.observe(from, to, kind, 1);
            }
        };
        steps.windows(2).for_each(|pair| observe(&pair[0], &pair[1], EdgeType::Sequence));
        row.links.iter().for_each(|(from, to)| observe(from, to, EdgeType::Dependency));
        let (whole, parts) = bench.reader.request(&row.query)?;
        let items: Vec<u32> = steps.iter().filter_map(|id| set.place(id)).map(|place| place as u32).collect();
        let likeness = vectors.similarities(&whole).unwrap_or_default();
        let intent = Intent { text: &row.query, vector: Some(&whole), parts: &parts };
        past.push(&Trace { items: &items, intent, likeness: &likeness });
    }
    Ok((graph, past))
}

/// How well the next tool is found by the request alone, with what was just used, and with what was used in another
/// session.
fn what_was_used(bench: &mut Bench<'_>, name: &str) -> Result<Figure, Problem> {
    let set = Set::read(bench.data, name)?;
    let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
    let (graph, past) = known(bench, &set, &vectors)?;
    let insights = Insights::of(&graph);
    let moments: Vec<Moment> = data::moments(bench.data, name)?;
    let mut scores = [Vec::new(), Vec::new(), Vec::new()];
    for (at, moment) in moments.iter().enumerate() {
        let (whole, parts) = bench.reader.request(&moment.query)?;
        let intent = Intent { text: &moment.query, vector: Some(&whole), parts: &parts };
        let advice = Advice { hints: past.hints(&intent, set.tools.len()) };
        let dense = Dense { items: &vectors, whole: &whole, parts: &parts };
        let evidence = Evidence { lexical: &set.index, dense: Some(dense), past: Some(&advice) };
        // What was used is not looked for again.
        let unused = |one: &Ranked| !moment.context.contains(&set.tools[one.item].id);
        let ranked: Vec<Ranked> =
            rank::rank(&moment.query, &evidence).into_iter().filter(|one| unused(one)).collect();
        let groups: Vec<Vec<String>> = moment.targets.iter().map(|id| vec![id.clone()]).collect();
        let elsewhere = &moments[(at + moments.len() / 2) % moments.len()].context;
        for (scores, used) in scores.iter_mut().zip([&Vec::new(), &moment.context, elsewhere]) {
            let used: Vec<&str> = used.iter().map(String::as_str).collect();
            let close: HashMap<String, f64> = closeness(&graph, &insights.snapshot, &used)
                .into_iter()
                .map(|close| (close.id, close.score))
                .collect();
            let close = |item: usize| close.get(&set.tools[item].id).copied().unwrap_or_default();
            let ranked = with_priors(&ranked, |item| Prior { close: close(item), ..Prior::default() });
            scores.push(set.score(&ranked, &groups).ndcg_5);
        }
    }
    let [alone, used, elsewhere] = scores.map(score::mean);
    Ok(Figure::of(
        format!("{name}: next tool found, nDCG@5 / knowing what was used / what another session used"),
        format!("{alone:.3} / {used:.3} / {elsewhere:.3}"),
    )
    .target(format!("more / not less by more than {}", -HARM), used > alone && elsewhere - alone >= HARM))
}

/// How often the first result is right and works, without and with a look at what failed.
fn what_works(bench: &mut Bench<'_>, name: &str) -> Result<(f64, f64), Problem> {
    let set = Set::read(bench.data, name)?;
    let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
    let (mut alone, mut seen) = (Vec::new(), Vec::new());
    for row in set.requests.iter().filter(|row| retrieval::counts(row)) {
        let (whole, parts) = bench.reader.request(&row.query)?;
        let dense = Dense { items: &vectors, whole: &whole, parts: &parts };
        let evidence = Evidence { lexical: &set.index, dense: Some(dense), past: None };
        let ranked = rank::rank(&row.query, &evidence);
        let groups = row.groups();
        // Each tool is among those that fail once.
        for failing in 0..ONE_OF {
            let worked = |item: usize| if item % ONE_OF == failing { CALLS - FAILURES } else { CALLS };
            let value = |ranked: &[Ranked]| {
                let works = ranked.first().map_or(0.0, |first| worked(first.item) as f64 / CALLS as f64);
                set.score(ranked, &groups).first * works
            };
            alone.push(value(&ranked));
            let works = |item: usize| reliability(worked(item), CALLS);
            seen.push(value(&with_priors(&ranked, |item| Prior { works: works(item), ..Prior::default() })));
        }
    }
    Ok((score::mean(alone), score::mean(seen)))
}

/// The same in the order that priors give it.
fn with_priors(ranked: &[Ranked], prior: impl Fn(usize) -> Prior) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> =
        ranked.iter().map(|one| Ranked { score: prior(one.item).apply(one.score), ..*one }).collect();
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
    ranked
}
