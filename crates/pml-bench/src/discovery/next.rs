//! Predicts the next tool from the request and the tools used so far, with and without paths through schemas.

use std::collections::HashSet;

use pml::problem::Problem;
use pml_graph::graph::provides::ProvidesIndex;
use pml_graph::next::paths::{CallableTools, next_on_paths};
use pml_graph::next::predict_next_tools;
use pml_graph::vectors::VectorTable;
use pml_language::Reading;
use serde::Deserialize;
use serde_json::{Value, json};

use super::dags::DagBenchMemory;
use super::data::{self, BenchMoment, BenchRequest, BenchSet};
use super::{DiscoveryBench, provides, retrieval};
use crate::figure::{BenchFigure, failed};
use crate::lines::json_lines;

/// The sets with recorded executions, each with the required share of right first guesses.
const SETS: [(&str, Option<f64>); 2] = [("ultratool", Some(0.79)), ("traject", None)];
/// A set whose tools declare what they return, so that paths lead from one to another.
const TYPED_SET: &str = "nestful";

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let mut figures = Vec::new();
    for (name, least) in SETS {
        let set = NextBenchSet::read(bench, name)?;
        let traces: Vec<&BenchRequest> =
            set.set.requests.iter().filter(|row| row.has_role("trace")).collect();
        let moments = data::read_moments(bench.data, name)?;
        let (scores, predictions) = set.predict_all(bench, &traces, &moments)?;
        bench.write(&format!("next_{name}"), &predictions)?;
        let figure = scores.figure(&format!("{name}: next tool right at first / among three"));
        let first = scores.with_paths.0 / scores.moments;
        figures.push(match least {
            Some(least) => figure.target(format!("first ≥ {least}"), first >= least),
            None => figure,
        });
        figures.push(scores.without_paths(name));
    }
    figures.extend(measure_typed(bench)?);
    figures.extend(measure_conversations(bench)?);
    Ok(figures)
}

/// Conversations in which a tool is often called again: predicted from every other one.
fn measure_conversations(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let folder = bench.data.join(CONVERSATIONS);
    let mut tools = data::read_tools(&folder.join("multi_turn_tools.jsonl"))?;
    // Calls name tools without their class.
    tools.iter_mut().for_each(|tool| tool.id = tool.name.clone());
    let mut seen = HashSet::new();
    tools.retain(|tool| seen.insert(tool.id.clone()));
    let talks: Vec<Conversation> = json_lines(&folder.join("multi_turn_dev.jsonl"))?;
    let requests = talks.into_iter().map(Conversation::request).collect::<Result<Vec<_>, _>>()?;
    let index = data::index(&tools);
    let set = NextBenchSet::of(bench, BenchSet { tools, index, requests })?;
    let learned: Vec<&BenchRequest> = set.set.requests.iter().step_by(2).collect();
    let ids: HashSet<&str> = learned.iter().map(|row| row.id.as_str()).collect();
    let others = data::read_moments(bench.data, CONVERSATIONS)?.into_iter().filter(|moment| {
        !moment.context.is_empty() && !moment.id.split('@').next().is_some_and(|id| ids.contains(id))
    });
    let (scores, _) = set.predict_all(bench, &learned, &others.collect::<Vec<_>>())?;
    Ok(vec![
        scores.figure(&format!("{CONVERSATIONS}: the same in conversations, from {} others", learned.len())),
        scores.without_paths(CONVERSATIONS),
    ])
}

/// A set of conversations, each with the calls of all its turns.
const CONVERSATIONS: &str = "bfcl";

#[derive(Deserialize)]
struct Conversation {
    id: String,
    turns: Vec<ConversationTurn>,
    seq: Vec<String>,
}

#[derive(Deserialize)]
struct ConversationTurn {
    user: String,
}

impl Conversation {
    fn request(self) -> Result<BenchRequest, Problem> {
        let said: Vec<&str> = self.turns.iter().map(|turn| turn.user.as_str()).collect();
        serde_json::from_value(json!({ "id": self.id, "query": said.join("\n"), "seq": self.seq }))
            .map_err(failed)
    }
}

/// Every call of a sequence but the first is to be predicted; without executions, and from every other one.
fn measure_typed(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let set = NextBenchSet::read(bench, TYPED_SET)?;
    let rows: Vec<&BenchRequest> = set.set.requests.iter().filter(|row| row.clean).collect();
    let all: Vec<BenchMoment> = rows.iter().flat_map(|row| moments_of(row)).collect();
    let (nothing, predictions) = set.predict_all(bench, &[], &all)?;
    bench.write(&format!("next_{TYPED_SET}"), &predictions)?;
    let learned: Vec<&BenchRequest> = rows.iter().copied().step_by(2).collect();
    let others: Vec<BenchMoment> = rows.iter().skip(1).step_by(2).flat_map(|row| moments_of(row)).collect();
    let (half, _) = set.predict_all(bench, &learned, &others)?;
    Ok(vec![
        nothing.figure(&format!("{TYPED_SET}: the same, nothing learned")),
        nothing.without_paths(TYPED_SET),
        half.figure(&format!("{TYPED_SET}: the same, from {} executions", learned.len())),
        half.without_paths(TYPED_SET),
    ])
}

fn moments_of(row: &BenchRequest) -> Vec<BenchMoment> {
    let sequence = row.seq.as_deref().unwrap_or_default();
    let moment = |at: usize| BenchMoment {
        id: format!("{}@{at}", row.id),
        query: row.query.clone(),
        context: sequence[..at].to_vec(),
        targets: vec![sequence[at].clone()],
    };
    (1..sequence.len()).map(moment).collect()
}

/// A set with what its tools take and give.
struct NextBenchSet {
    set: BenchSet,
    vectors: VectorTable,
    provides: ProvidesIndex,
}

/// How many predictions were right: at first, and among three.
#[derive(Default)]
struct NextBenchScores {
    with_paths: (f64, f64),
    plain: (f64, f64),
    moments: f64,
}

impl NextBenchSet {
    fn read(bench: &mut DiscoveryBench<'_>, name: &str) -> Result<NextBenchSet, Problem> {
        let set = BenchSet::read(bench.data, name)?;
        NextBenchSet::of(bench, set)
    }

    fn of(bench: &mut DiscoveryBench<'_>, set: BenchSet) -> Result<NextBenchSet, Problem> {
        let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
        let provides = ProvidesIndex::build(provides::read(&set.tools).into_values());
        Ok(NextBenchSet { set, vectors, provides })
    }

    fn predict_all(
        &self,
        bench: &mut DiscoveryBench<'_>,
        traces: &[&BenchRequest],
        moments: &[BenchMoment],
    ) -> Result<(NextBenchScores, Vec<Value>), Problem> {
        let set = &self.set;
        let learned = DagBenchMemory::learn_rows(bench, set, &self.vectors, traces)?;
        let (mut scores, mut predictions) = (NextBenchScores::default(), Vec::new());
        let every = bench.most.map_or(1, |most| moments.len().div_ceil(most.max(1)).max(1));
        for moment in moments.iter().step_by(every) {
            let asked = learned.read_request(&mut bench.reader, set, &self.vectors, &moment.query)?;
            let used: Vec<u32> =
                moment.context.iter().filter_map(|id| set.place(id)).map(|place| place as u32).collect();
            let mut prediction = predict_next_tools(&learned.memory, &asked.request(&moment.query), &used);
            let ids = |tools: &[pml_graph::next::NextToolCandidate]| -> Vec<String> {
                tools.iter().map(|next| set.tools[next.tool as usize].id.clone()).collect()
            };
            scores.plain = added(scores.plain, &ids(&prediction.tools), moment);
            let tools = CallableTools {
                provides: &self.provides,
                id_of: &|tool| set.tools[tool as usize].id.clone(),
                index_of: &|id| set.place(id).map(|place| place as u32),
            };
            let paths = next_on_paths(&prediction, &Reading::of(&moment.query), &used, tools);
            prediction.add_paths(&paths);
            let ranked = ids(&prediction.tools);
            scores.with_paths = added(scores.with_paths, &ranked, moment);
            scores.moments += 1.0;
            predictions.push(json!({ "id": moment.id, "ranked": &ranked[..ranked.len().min(20)] }));
        }
        Ok((scores, predictions))
    }
}

fn added(so_far: (f64, f64), ranked: &[String], moment: &BenchMoment) -> (f64, f64) {
    let right = |most: usize| {
        f64::from(u8::from(ranked.iter().take(most).any(|id| moment.targets.iter().any(|t| t == id))))
    };
    (so_far.0 + right(1), so_far.1 + right(3))
}

impl NextBenchScores {
    fn told(&self, (first, third): (f64, f64)) -> String {
        let all = self.moments.max(1.0);
        format!("{:.3} / {:.3}", first / all, third / all)
    }

    fn figure(&self, what: &str) -> BenchFigure {
        BenchFigure::of(format!("{what}, of {}", self.moments), self.told(self.with_paths))
    }

    /// The same without paths. There is no target: paths overtake nothing, so they cannot be worse.
    fn without_paths(&self, name: &str) -> BenchFigure {
        BenchFigure::of(format!("{name}: the same without paths"), self.told(self.plain))
    }
}
