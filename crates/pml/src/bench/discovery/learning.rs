//! How much past executions help to find tools and procedures, and that they do no harm to the rest.

use std::collections::{HashMap, HashSet};

use pml_graph::lexical::{Document, Index};
use pml_graph::past::workflow::{Workflow, scores};
use pml_graph::past::{Advice, Intent, Past, Trace};
use pml_graph::rank::{self, Dense, Evidence};
use pml_graph::vectors::Vectors;
use serde_json::json;

use super::super::Figure;
use super::data::{Request, Set};
use super::score;
use super::{Bench, Reader, retrieval};
use crate::knowledge::embeddings::Vector;
use crate::problem::Problem;

/// How many executions of each tool are known, and what has to be reached then.
const STEPS: [(u32, Option<f64>); 7] =
    [(0, Some(0.76)), (1, Some(0.80)), (2, None), (5, Some(0.85)), (10, None), (20, Some(0.89)), (50, None)];
/// How many halves are tried.
pub(super) const HALVES: u64 = 4;
/// How much requests for tools nothing is known of may lose.
const HARM: f64 = -0.005;
/// How often the right workflow must come first where one execution of each is known.
const FIRST: f64 = 0.75;

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<Vec<Figure>, Problem> {
    let mut figures = tools(bench)?;
    figures.extend(super::harm::measure(bench)?);
    figures.push(workflows(bench)?);
    Ok(figures)
}

/// A set with all its texts read.
pub(super) struct ReadSet {
    pub(super) set: Set,
    pub(super) vectors: Vectors,
    of: HashMap<String, Vector>,
}

impl ReadSet {
    pub(super) fn read(bench: &mut Bench<'_>, name: &str) -> Result<ReadSet, Problem> {
        let set = Set::read(bench.data, name)?;
        let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
        let texts: Vec<String> = set.requests.iter().map(|row| row.query.clone()).collect();
        let read = bench.reader.read(&texts)?;
        Ok(ReadSet { set, vectors, of: texts.into_iter().zip(read).collect() })
    }

    pub(super) fn past<'r>(&self, traces: impl Iterator<Item = &'r Request>) -> Past {
        let mut past = Past::default();
        for row in traces {
            let Some(item) = row.gold.first().and_then(|id| self.set.place(id)) else { continue };
            let vector = &self.of[&row.query];
            let likeness = self.vectors.similarities(vector).unwrap_or_default();
            let items = [item as u32];
            let intent = Intent { text: &row.query, vector: Some(vector), parts: &[] };
            past.push(&Trace { items: &items, intent, likeness: &likeness });
        }
        past
    }

    pub(super) fn ranked(
        &self,
        reader: &mut Reader,
        past: Option<&Past>,
        row: &Request,
    ) -> Result<Vec<usize>, Problem> {
        let (whole, parts) = reader.request(&row.query)?;
        let dense = Dense { items: &self.vectors, whole: &whole, parts: &parts };
        let intent = Intent { text: &row.query, vector: Some(&whole), parts: &parts };
        let advice = past.map(|past| Advice { hints: past.hints(&intent, self.set.tools.len()) });
        let evidence = Evidence { lexical: &self.set.index, dense: Some(dense), past: advice.as_ref() };
        Ok(rank::rank(&row.query, &evidence).into_iter().map(|ranked| ranked.item).collect())
    }

    fn ndcg(
        &self,
        reader: &mut Reader,
        past: Option<&Past>,
        rows: &[&Request],
    ) -> Result<(f64, Vec<serde_json::Value>), Problem> {
        let (mut sum, mut predictions) = (0.0, Vec::new());
        for row in rows {
            let ranked = self.ranked(reader, past, row)?;
            let ids: Vec<&str> = ranked.iter().map(|item| self.set.tools[*item].id.as_str()).collect();
            sum += score::ranking(&ids, &row.groups()).ndcg_5;
            predictions.push(json!({ "id": row.id, "ranked": &ids[..ids.len().min(50)] }));
        }
        Ok((sum / rows.len().max(1) as f64, predictions))
    }
}

fn tools(bench: &mut Bench<'_>) -> Result<Vec<Figure>, Problem> {
    let read = ReadSet::read(bench, "metatool")?;
    let tests: Vec<&Request> = read.set.requests.iter().filter(|row| row.has_role("test")).collect();
    // In the order in which they were made: the first of each tool, then the second of each.
    let mut traces: Vec<&Request> = read.set.requests.iter().filter(|row| row.has_role("trace")).collect();
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
        let figure = Figure::of(
            format!("metatool: nDCG@5 with {known} executions of each tool"),
            format!("{ndcg:.3}"),
        );
        figures.push(match least {
            Some(least) => figure.target(format!("≥ {least:.2}"), ndcg >= least),
            None => figure,
        });
    }
    figures.push(
        Figure::of("metatool: more executions are better", if rising { "always" } else { "not always" })
            .target("always", rising),
    );
    for known in [5, 20] {
        let mut changes = Vec::new();
        for half in 0..HALVES {
            let traced = half_of(read.set.tools.len(), half);
            let of_half = |row: &&Request| {
                row.gold.first().and_then(|id| read.set.place(id)).is_some_and(|item| traced.contains(&item))
            };
            let past = read.past(upto(known).filter(of_half));
            let others: Vec<&Request> = tests.iter().copied().filter(|row| !of_half(row)).collect();
            let without = read.ndcg(&mut bench.reader, None, &others)?.0;
            changes.push(read.ndcg(&mut bench.reader, Some(&past), &others)?.0 - without);
        }
        let change = score::mean(changes);
        let figure = Figure::of(
            format!("metatool: what {known} executions of half of the tools do to requests for the others"),
            format!("{change:+.4}"),
        );
        figures.push(if known == 5 { figure.target(format!("≥ {HARM}"), change >= HARM) } else { figure });
    }
    Ok(figures)
}

/// Half of so many items, another one for each number.
pub(super) fn half_of(items: usize, number: u64) -> HashSet<usize> {
    let mut all: Vec<usize> = (0..items).collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ (number + 1).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    for last in (1..items).rev() {
        // A small generator of numbers is enough to shuffle with.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        all.swap(last, (state % (last as u64 + 1)) as usize);
    }
    all.truncate(items / 2);
    all.into_iter().collect()
}

/// Whether the workflow that served such requests before comes first.
fn workflows(bench: &mut Bench<'_>) -> Result<Figure, Problem> {
    let read = ReadSet::read(bench, "traject")?;
    let rows = || read.set.requests.iter().filter(|row| row.kind.as_deref() == Some("sequential"));
    let mut known: Vec<Learned<'_>> = Vec::new();
    let mut past = Past::default();
    for row in rows().filter(|row| row.has_role("trace") && row.k == Some(1)) {
        let key = row.intent_key.as_deref().unwrap_or_default();
        let sequence = row.seq.as_deref().unwrap_or_default();
        let tools: Vec<usize> = sequence.iter().filter_map(|id| read.set.place(id)).collect();
        let (_, parts) = bench.reader.request(&row.query)?;
        let intent = Intent { text: &row.query, vector: Some(&read.of[&row.query]), parts: &parts };
        past.push(&Trace { items: &[known.len() as u32], intent, likeness: &[] });
        known.push(Learned { key, tools });
    }
    let texts: Vec<(String, String)> = known.iter().map(|workflow| workflow.texts(&read.set)).collect();
    let words = Index::build(texts.iter().map(|(names, descriptions)| Document {
        name: names,
        description: descriptions,
        ..Document::default()
    }));
    let (mut right, mut all) = (0_u32, 0_u32);
    for row in rows().filter(|row| row.has_role("test")) {
        let key = row.intent_key.as_deref().unwrap_or_default();
        if !known.iter().any(|workflow| workflow.key == key) {
            continue;
        }
        let (whole, parts) = bench.reader.request(&row.query)?;
        let dense = Dense { items: &read.vectors, whole: &whole, parts: &parts };
        let fits = rank::standard(
            &row.query,
            &Evidence { lexical: &read.set.index, dense: Some(dense), past: None },
        );
        let said = rank::standard(&row.query, &Evidence { lexical: &words, dense: None, past: None });
        let intent = Intent { text: &row.query, vector: Some(&whole), parts: &parts };
        let recalled = past.recall(&intent, known.len());
        let workflows: Vec<Workflow> = known
            .iter()
            .zip(recalled)
            .zip(said)
            .map(|((workflow, recall), text)| {
                let fit: f32 = workflow.tools.iter().map(|tool| fits[*tool]).sum();
                Workflow { recall, tools: fit / workflow.tools.len().max(1) as f32, text }
            })
            .collect();
        let scores = scores(&workflows);
        let first = (0..scores.len()).max_by(|one, other| scores[*one].total_cmp(&scores[*other]));
        right += u32::from(first.is_some_and(|first| known[first].key == key));
        all += 1;
    }
    let share = f64::from(right) / f64::from(all.max(1));
    Ok(Figure::of(
        "traject: right workflow first after one execution of each",
        format!("{share:.3} of {all}"),
    )
    .target(format!("≥ {FIRST}"), share >= FIRST))
}

/// A workflow that was executed.
struct Learned<'r> {
    key: &'r str,
    tools: Vec<usize>,
}

impl Learned<'_> {
    fn texts(&self, set: &Set) -> (String, String) {
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
