//! How much past executions help to find tools and procedures, and that they do no harm elsewhere.

use pml::problem::Problem;
use pml_graph::lexical::{LexicalIndex, ToolDocument};
use pml_graph::past::workflow::{WorkflowFeatures, score_workflows};
use pml_graph::past::{EmbeddedIntent, IntentTrace, PastIntents};
use pml_graph::rank::{self, DenseEvidence, RankingEvidence};

use super::data::{BenchRequest, BenchSet};
use super::read_set::{EmbeddedSet, HALVES, half_of};
use super::{DiscoveryBench, harm, score};
use crate::figure::BenchFigure;

/// The number of known executions per tool, and the score to be reached with them.
const STEPS: [(u32, Option<f64>); 7] = [
    (0, Some(0.775)),
    (1, Some(0.81)),
    (2, None),
    (5, Some(0.855)),
    (10, None),
    (20, Some(0.895)),
    (50, None),
];
/// The largest loss for requests whose tools have no executions.
const HARM: f64 = -0.002;
/// The share of requests with the right workflow first, where one execution of each is known.
const FIRST: f64 = 0.75;

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let mut figures = tools(bench)?;
    figures.extend(harm::measure(bench)?);
    figures.push(workflows(bench)?);
    Ok(figures)
}

fn tools(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let read = EmbeddedSet::read(bench, "metatool")?;
    let tests: Vec<&BenchRequest> = read.set.requests.iter().filter(|row| row.has_role("test")).collect();
    // In the order of recording: the first execution of each tool, then the second of each.
    let mut traces: Vec<&BenchRequest> =
        read.set.requests.iter().filter(|row| row.has_role("trace")).collect();
    traces.sort_by_key(|row| row.k);
    let upto =
        |known: u32| traces.iter().copied().filter(move |row| row.k.is_some_and(|number| number <= known));
    let mut figures = Vec::new();
    let (mut before, mut rising) = (0.0, true);
    for (known, least) in STEPS {
        let past = (known > 0).then(|| read.past(upto(known)));
        let (ndcg, predictions) = read.ndcg(&mut bench.reader, past.as_ref(), &tests)?;
        bench.write(&format!("metatool_{known}"), &predictions)?;
        rising &= ndcg >= before;
        before = ndcg;
        let figure = BenchFigure::of(
            format!("metatool: nDCG@5 with {known} executions of each tool"),
            format!("{ndcg:.3}"),
        );
        figures.push(match least {
            Some(least) => figure.target(format!("≥ {least:.3}"), ndcg >= least),
            None => figure,
        });
    }
    figures.push(
        BenchFigure::of("metatool: more executions are better", if rising { "always" } else { "not always" })
            .target("always", rising),
    );
    for known in [5, 20] {
        let mut changes = Vec::new();
        for half in 0..HALVES {
            let traced = half_of(read.set.tools.len(), half);
            let of_half = |row: &&BenchRequest| {
                row.gold.first().and_then(|id| read.set.place(id)).is_some_and(|item| traced.contains(&item))
            };
            let past = read.past(upto(known).filter(of_half));
            let others: Vec<&BenchRequest> = tests.iter().copied().filter(|row| !of_half(row)).collect();
            let without = read.ndcg(&mut bench.reader, None, &others)?.0;
            changes.push(read.ndcg(&mut bench.reader, Some(&past), &others)?.0 - without);
        }
        let change = score::mean(changes);
        let figure = BenchFigure::of(
            format!("metatool: what {known} executions of half of the tools do to requests for the others"),
            format!("{change:+.4}"),
        );
        figures.push(if known == 5 { figure.target(format!("≥ {HARM}"), change >= HARM) } else { figure });
    }
    Ok(figures)
}

/// Whether the workflow that served similar requests before comes first.
fn workflows(bench: &mut DiscoveryBench<'_>) -> Result<BenchFigure, Problem> {
    let read = EmbeddedSet::read(bench, "traject")?;
    let rows = || read.set.requests.iter().filter(|row| row.kind.as_deref() == Some("sequential"));
    let mut known: Vec<BenchWorkflow<'_>> = Vec::new();
    let mut past = PastIntents::default();
    for row in rows().filter(|row| row.has_role("trace") && row.k == Some(1)) {
        let key = row.intent_key.as_deref().unwrap_or_default();
        let sequence = row.seq.as_deref().unwrap_or_default();
        let tools: Vec<usize> = sequence.iter().filter_map(|id| read.set.place(id)).collect();
        let (_, parts) = bench.reader.embed_request(&row.query)?;
        let intent = EmbeddedIntent {
            text: &row.query,
            vector: Some(&read.vectors_by_text[&row.query]),
            parts: &parts,
        };
        past.learn_trace(&IntentTrace { items: &[known.len() as u32], intent, item_cosines: &[] });
        known.push(BenchWorkflow { key, tools });
    }
    let texts: Vec<(String, String)> = known.iter().map(|workflow| workflow.texts(&read.set)).collect();
    let words = LexicalIndex::build(texts.iter().map(|(names, descriptions)| ToolDocument {
        name: names,
        description: descriptions,
        ..ToolDocument::default()
    }));
    let (mut right, mut all) = (0_u32, 0_u32);
    for row in rows().filter(|row| row.has_role("test")) {
        let key = row.intent_key.as_deref().unwrap_or_default();
        if !known.iter().any(|workflow| workflow.key == key) {
            continue;
        }
        let (whole, parts) = bench.reader.embed_request(&row.query)?;
        let dense = DenseEvidence { items: &read.vectors, whole: &whole, parts: &parts };
        let fits = rank::standard_scores(
            &row.query,
            &RankingEvidence { lexical: &read.set.index, dense: Some(dense), advice: None },
        );
        let said = rank::standard_scores(
            &row.query,
            &RankingEvidence { lexical: &words, dense: None, advice: None },
        );
        let intent = EmbeddedIntent { text: &row.query, vector: Some(&whole), parts: &parts };
        let recalled = past.workflow_recalls(&intent, known.len());
        let workflows: Vec<WorkflowFeatures> = known
            .iter()
            .zip(recalled)
            .zip(said)
            .map(|((workflow, recall), text)| {
                let fit: f32 = workflow.tools.iter().map(|tool| fits[*tool]).sum();
                WorkflowFeatures {
                    recall,
                    tool_score: fit / workflow.tools.len().max(1) as f32,
                    text_score: text,
                }
            })
            .collect();
        let scores = score_workflows(&workflows);
        let first = (0..scores.len()).max_by(|one, other| scores[*one].total_cmp(&scores[*other]));
        right += u32::from(first.is_some_and(|first| known[first].key == key));
        all += 1;
    }
    let share = f64::from(right) / f64::from(all.max(1));
    Ok(BenchFigure::of(
        "traject: right workflow first after one execution of each",
        format!("{share:.3} of {all}"),
    )
    .target(format!("≥ {FIRST}"), share >= FIRST))
}

/// A workflow that was executed.
struct BenchWorkflow<'r> {
    key: &'r str,
    tools: Vec<usize>,
}

impl BenchWorkflow<'_> {
    fn texts(&self, set: &BenchSet) -> (String, String) {
        let names: Vec<String> = self
            .tools
            .iter()
            .map(|tool| format!("{} {}", set.tools[*tool].server, set.tools[*tool].name))
            .collect();
        let descriptions: Vec<&str> =
            self.tools.iter().filter_map(|tool| set.tools[*tool].description.as_deref()).collect();
        (names.join(" "), descriptions.join("\n"))
    }
}
