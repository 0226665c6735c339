//! What each weight of the ranking is worth: rank quality with and without it, with half and twice of it, and with one
//! constant weight of the vectors.
//!
//! Every number that decides is leave-one-set-out: for each set, the variant is chosen that is best on the other sets,
//! and judged on the set that had no part in the choice.

use std::num::NonZeroUsize;
use std::thread;

use pml::problem::Problem;
use pml_graph::rank::{self, DenseEvidence, RankingEvidence};
use pml_graph::vectors::VectorTable;
use pml_graph::weights::RankWeights;

use super::data::{BenchRequest, BenchSet};
use super::{DiscoveryBench, retrieval, score};
use crate::figure::{BenchFigure, failed};

/// The largest number of requests of a set: every so manieth is taken, so that all variants take minutes.
const SAMPLE: usize = 300;
/// The largest loss of a single set that leaving out a weight may cost.
const SLACK: f64 = 0.01;

/// A change of the weights.
type Change = fn(&mut RankWeights);

/// Each part of the ranking, and how it is left out.
const PARTS: &[(&str, Change)] = &[
    ("the best part of the request", |weights| weights.part = 0.0),
    ("names", |weights| weights.name = 0.0),
    ("names of servers", |weights| weights.server = 0.0),
    ("adjacent words", |weights| weights.pair = 0.0),
    ("related words", |weights| weights.related = 0.0),
    ("vectors", |weights| (weights.meaning, weights.meaning_of_few) = (0.0, 0.0)),
    ("more of vectors for few words", |weights| weights.meaning_of_few = 0.0),
    ("the usual similarity", |weights| weights.usual = 0.0),
    ("levelled parts", |weights| weights.levels_parts = false),
    ("items for parts without an answer first", |weights| weights.answered = 1.0),
    ("items with other words first", |weights| weights.said = 1.0),
];

/// Other sizes of the weights.
const SIZES: &[(&str, Change)] = &[
    ("part × ½", |weights| weights.part *= 0.5),
    ("part × 2", |weights| weights.part *= 2.0),
    ("name × ½", |weights| weights.name *= 0.5),
    ("name × 2", |weights| weights.name *= 2.0),
    ("meaning × ½", |weights| weights.meaning *= 0.5),
    ("meaning × 2", |weights| weights.meaning *= 2.0),
    ("meaning of few × ½", |weights| weights.meaning_of_few *= 0.5),
    ("meaning of few × 2", |weights| weights.meaning_of_few *= 2.0),
];

/// One weight of the vectors, however many words a request has.
const CONSTANT: &[(&str, Change)] = &[
    ("vectors × 0.75, always", |weights| (weights.meaning, weights.meaning_of_few) = (0.75, 0.0)),
    ("vectors × 1, always", |weights| (weights.meaning, weights.meaning_of_few) = (1.0, 0.0)),
    ("vectors × 1.5, always", |weights| (weights.meaning, weights.meaning_of_few) = (1.5, 0.0)),
    ("vectors × 2, always", |weights| (weights.meaning, weights.meaning_of_few) = (2.0, 0.0)),
    ("vectors × 2.5, always", |weights| (weights.meaning, weights.meaning_of_few) = (2.5, 0.0)),
    ("vectors × 3, always", |weights| (weights.meaning, weights.meaning_of_few) = (3.0, 0.0)),
];

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let names: Vec<&str> = retrieval::set_names().collect();
    let usual: (&str, Change) = ("as it is", |_| {});
    let variants: Vec<(&str, Change)> =
        [usual].iter().chain(PARTS).chain(SIZES).chain(CONSTANT).copied().collect();
    // By set, then by variant.
    let mut scores = Vec::new();
    for name in &names {
        scores.push(AblationSet::read(bench, name)?.measure_variants(&variants)?);
    }
    let mut figures =
        vec![BenchFigure::of(format!("nDCG@5 of {}, mean", names.join(", ")), shown(&scores, 0))];
    for (at, (what, _)) in variants.iter().enumerate().skip(1) {
        let what = if at <= PARTS.len() { format!("without {what}") } else { (*what).to_owned() };
        figures.push(BenchFigure::of(what, differences(&scores, at)));
    }
    let all: Vec<usize> = (0..variants.len()).collect();
    figures.extend(chosen_by_others("what the other sets choose", &all, &names, &variants, &scores));
    let constant: Vec<usize> = (variants.len() - CONSTANT.len()..variants.len()).collect();
    figures.extend(chosen_by_others("one weight of the vectors", &constant, &names, &variants, &scores));
    Ok(figures)
}

/// For each set, the variant among `choice` that is best on the others, and what it does to this one.
fn chosen_by_others(
    what: &str,
    choice: &[usize],
    names: &[&str],
    variants: &[(&str, Change)],
    scores: &[Vec<f64>],
) -> Vec<BenchFigure> {
    let mut figures = Vec::new();
    let (mut sum, mut worst) = (0.0, f64::INFINITY);
    for (out, name) in names.iter().enumerate() {
        let others = |variant: usize| {
            score::mean(scores.iter().enumerate().filter(|(set, _)| *set != out).map(|(_, set)| set[variant]))
        };
        let best = choice.iter().copied();
        let best = best.reduce(|best, next| if others(next) > others(best) { next } else { best });
        let best = best.unwrap_or(0);
        let change = scores[out][best] - scores[out][0];
        (sum, worst) = (sum + change, worst.min(change));
        figures.push(BenchFigure::of(
            format!("{name}: with {what}"),
            format!("{:.3} ({change:+.3}, {})", scores[out][best], variants[best].0),
        ));
    }
    let mean = sum / names.len().max(1) as f64;
    figures.push(
        BenchFigure::of(
            format!("{what}: change, each set left out in turn, mean / worst"),
            format!("{mean:+.3} / {worst:+.3}"),
        )
        .target(format!("worst ≥ {:.2}", -SLACK), worst >= -SLACK),
    );
    figures
}

fn shown(scores: &[Vec<f64>], variant: usize) -> String {
    let mut text: Vec<String> = scores.iter().map(|set| format!("{:.3}", set[variant])).collect();
    text.push(format!("mean {:.3}", score::mean(scores.iter().map(|set| set[variant]))));
    text.join(" ")
}

fn differences(scores: &[Vec<f64>], variant: usize) -> String {
    let change = |set: &Vec<f64>| set[variant] - set[0];
    let mut text: Vec<String> = scores.iter().map(|set| format!("{:+.3}", change(set))).collect();
    text.push(format!("mean {:+.4}", score::mean(scores.iter().map(change))));
    text.join(" ")
}

/// A request with its vectors.
struct AblationRequest {
    row: BenchRequest,
    whole: Vec<f32>,
    parts: Vec<Vec<f32>>,
}

struct AblationSet {
    set: BenchSet,
    vectors: VectorTable,
    requests: Vec<AblationRequest>,
}

impl AblationSet {
    fn read(bench: &mut DiscoveryBench<'_>, name: &str) -> Result<AblationSet, Problem> {
        let mut set = BenchSet::read(bench.data, name)?;
        let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
        let rows: Vec<BenchRequest> =
            std::mem::take(&mut set.requests).into_iter().filter(retrieval::counts).collect();
        let step = rows.len().div_ceil(bench.most.map_or(SAMPLE, |most| most.clamp(1, SAMPLE))).max(1);
        let mut requests = Vec::new();
        for row in rows.into_iter().step_by(step) {
            let (whole, parts) = bench.reader.embed_request(&row.query)?;
            requests.push(AblationRequest { row, whole, parts });
        }
        Ok(AblationSet { set, vectors, requests })
    }

    /// The mean nDCG@5 of each variant.
    fn measure_variants(&self, variants: &[(&str, Change)]) -> Result<Vec<f64>, Problem> {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let mut scores = vec![0.0; variants.len()];
        thread::scope(|scope| {
            let workers: Vec<_> = (0..cores)
                .map(|first| {
                    scope.spawn(move || {
                        let own = (first..variants.len()).step_by(cores);
                        own.map(|at| (at, self.ndcg(variants[at].1))).collect::<Vec<_>>()
                    })
                })
                .collect();
            for worker in workers {
                for (at, ndcg) in worker.join().map_err(|_| failed("a thread that ranks panicked"))? {
                    scores[at] = ndcg;
                }
            }
            Ok(scores)
        })
    }

    fn ndcg(&self, change: Change) -> f64 {
        let mut weights = RankWeights::default();
        change(&mut weights);
        score::mean(self.requests.iter().map(|request| {
            let dense = DenseEvidence { items: &self.vectors, whole: &request.whole, parts: &request.parts };
            let evidence = RankingEvidence { lexical: &self.set.index, dense: Some(dense), advice: None };
            let ranked = rank::rank_with_weights(&request.row.query, &evidence, &weights);
            let ids: Vec<&str> = ranked.iter().map(|item| self.set.tools[*item].id.as_str()).collect();
            score::ranking(&ids, &request.row.groups()).ndcg_5
        }))
    }
}
