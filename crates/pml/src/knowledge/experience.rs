//! Past intents and the tools that served them, for ranking, suggestion and prediction.
//!
//! A background task builds this from the capabilities, a tool snapshot and the embeddings of both. Later intents are
//! added; another catalogue or another model causes a rebuild.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pml_graph::lexical::{LexicalIndex, ToolDocument};
use pml_graph::next::paths::{CallableTools, next_on_paths};
use pml_graph::next::{NextToolCandidate, predict_next_tools};
use pml_graph::past::workflow::{WorkflowFeatures, score_workflows};
use pml_graph::past::{EmbeddedIntent, IntentTrace, PastAdvice, PastIntents};
use pml_graph::procedure::{self, ProcedureSuggestion, ToolMatch, ToolText, suggest_procedure};
use pml_graph::rank::{self, RankingEvidence, ScoredItem};
use pml_graph::vectors::VectorTable;
use pml_language::Reading;
use pml_model::{CapabilityId, Digest, Principal};

use super::PrincipalKnowledge;
use super::embeddings::{Embeddings, IntentReading, IntentVectors, Vector, dequantised, evidence};
use super::gate::{LearnedPart, PartVerdict, first_judged};
use super::graph::ToolGraph;
use super::memory::{CapabilityMemory, IndexedCapability};
use crate::catalogue::{CatalogueTool, ToolSnapshot};

/// The limit on comparisons of an intent with a tool: with many tools, fewer intents count.
const MOST_COMPARISONS: usize = 4_000_000;
/// The number of intents learned from before the lock is released to readers.
const AT_ONCE: usize = 8;
/// The share of these, as a divisor, by which there may be more before everything is built again without the oldest.
const SLACK: usize = 4;
/// The number of intents per capability that count.
const MOST_INTENTS: usize = 5;

/// The intents that capabilities served, and the tools they used.
#[derive(Debug)]
pub(crate) struct Experience {
    snapshot: Arc<ToolSnapshot>,
    /// The number of the embedding model.
    model: u64,
    /// The number of embedded tools when it was built.
    tools_read: usize,
    past: PastIntents,
    procedures: procedure::ProcedureMemory,
    /// The capability of each procedure.
    owners: Vec<CapabilityId>,
    /// The capabilities by the intents they served, numbered in the order of arrival, with the tools each calls.
    served: PastIntents,
    workflows: Vec<(CapabilityId, Vec<u32>)>,
    words: LexicalIndex,
    known: HashSet<(CapabilityId, Digest)>,
}

impl Experience {
    fn new(snapshot: Arc<ToolSnapshot>, model: u64) -> Experience {
        let texts = snapshot.tools.iter().map(|tool| ToolText {
            name: &tool.definition.name,
            description: tool.definition.description.as_deref().unwrap_or_default(),
        });
        let procedures = procedure::ProcedureMemory::new(texts);
        Experience {
            snapshot,
            model,
            tools_read: 0,
            past: PastIntents::default(),
            procedures,
            owners: Vec::new(),
            served: PastIntents::default(),
            workflows: Vec::new(),
            words: LexicalIndex::default(),
            known: HashSet::new(),
        }
    }

    /// Builds the experience from all these lessons.
    fn of(mut self, lessons: &[IntentLesson], vectors: &VectorTable) -> Experience {
        self.tools_read = vectors.vector_count();
        lessons.iter().for_each(|lesson| self.take(lesson, vectors));
        self.index();
        self
    }

    /// The tools that are called, in order. A procedure that lacks one of its tools says nothing about how the others
    /// are used together.
    fn calls(&self, lesson: &IntentLesson) -> Option<Vec<u32>> {
        let places =
            lesson.known.calls.tools.iter().map(|id| self.snapshot.index_of(id).map(|place| place as u32));
        places.collect::<Option<Vec<u32>>>().filter(|calls| !calls.is_empty())
    }

    fn learn(&mut self, lesson: &IntentLesson, vectors: &VectorTable) {
        let IntentLesson { known, intent, vector, .. } = lesson;
        let vector = vector.as_ref();
        let Some(calls) = self.calls(lesson) else { return };
        let likeness = vector.and_then(|vector| vectors.similarities(vector)).unwrap_or_default();
        let parts: Vec<Vec<f32>> = vector.map(|vector| vector.to_vec()).into_iter().collect();
        let of_intent = EmbeddedIntent { text: intent, vector: vector.map(AsRef::as_ref), parts: &parts };
        self.past.learn_trace(&IntentTrace { items: &calls, intent: of_intent, item_cosines: &likeness });
        let number = match self.workflows.iter().position(|(id, _)| *id == known.id) {
            Some(number) => number,
            None => {
                self.workflows.push((known.id.clone(), calls.clone()));
                self.workflows.len() - 1
            }
        };
        self.served.learn_trace(&IntentTrace {
            items: &[number as u32],
            intent: of_intent,
            item_cosines: &[],
        });
        let wanted = lesson.reading();
        let matches = self.matches(vectors, &wanted);
        self.procedures.learn_trace(&procedure::ProcedureTrace {
            intent,
            vector: vector.map(AsRef::as_ref),
            matches: &matches,
            tools: &calls,
            links: &known.calls.links,
        });
        self.owners.push(known.id.clone());
    }

    /// Learns from a lesson that is new.
    fn take(&mut self, lesson: &IntentLesson, vectors: &VectorTable) {
        if self.known.insert(lesson.key.clone()) {
            self.learn(lesson, vectors);
        }
    }

    /// The advice of past intents about the tools of the snapshot it was built for.
    pub(crate) fn advice(&self, snapshot: &Arc<ToolSnapshot>, wanted: &IntentReading) -> Option<PastAdvice> {
        if !Arc::ptr_eq(snapshot, &self.snapshot) || self.owners.is_empty() {
            return None;
        }
        let meant = wanted.vectors.as_ref();
        let parts = meant.map_or(&[][..], |meant| &meant.parts);
        let intent = EmbeddedIntent { text: &wanted.text, vector: meant.map(|meant| &*meant.whole), parts };
        Some(PastAdvice { hints: self.past.hints(&intent, snapshot.tools.len()) })
    }

    /// The similarity of each tool to the intent, by words and embeddings alone.
    fn standard(&self, vectors: &VectorTable, wanted: &IntentReading) -> Vec<f32> {
        rank::standard_scores(&wanted.text, &evidence(&self.snapshot, Some(vectors), wanted, None))
    }

    /// The tools that match an intent best, by words and embeddings alone.
    fn matches(&self, vectors: &VectorTable, wanted: &IntentReading) -> Vec<ToolMatch> {
        procedure::catalogue_matches(&self.standard(vectors, wanted))
    }

    /// How well each capability fits the intent, by what it served and by its tools, in standard deviations from the
    /// mean.
    pub(crate) fn fits(&self, vectors: &VectorTable, wanted: &IntentReading) -> HashMap<&CapabilityId, f32> {
        let meant = wanted.vectors.as_ref();
        let parts = meant.map_or(&[][..], |meant| &meant.parts);
        let intent = EmbeddedIntent { text: &wanted.text, vector: meant.map(|meant| &*meant.whole), parts };
        let recalled = self.served.workflow_recalls(&intent, self.workflows.len());
        let fits = self.standard(vectors, wanted);
        let said = RankingEvidence { lexical: &self.words, dense: None, advice: None };
        let said = rank::standard_scores(&wanted.text, &said);
        let workflows: Vec<WorkflowFeatures> = self
            .workflows
            .iter()
            .zip(recalled)
            .enumerate()
            .map(|(number, ((_, calls), recall))| {
                let fit: f32 = calls.iter().map(|tool| fits[*tool as usize]).sum();
                let tools = fit / calls.len().max(1) as f32;
                WorkflowFeatures {
                    recall,
                    tool_score: tools,
                    text_score: said.get(number).copied().unwrap_or_default(),
                }
            })
            .collect();
        self.workflows.iter().map(|(id, _)| id).zip(score_workflows(&workflows)).collect()
    }

    /// Rebuilds the word index of the tools that capabilities call.
    fn index(&mut self) {
        let texts: Vec<(String, String)> =
            self.workflows.iter().map(|(_, calls)| texts(&self.snapshot, calls)).collect();
        self.words = LexicalIndex::build(texts.iter().map(|(names, descriptions)| ToolDocument {
            name: names,
            description: descriptions,
            ..ToolDocument::default()
        }));
    }

    /// The procedure that earlier, similar intents make likely for this one.
    pub(crate) fn suggest(
        &self,
        snapshot: &Arc<ToolSnapshot>,
        vectors: &VectorTable,
        wanted: &IntentReading,
    ) -> Option<(Vec<&CatalogueTool>, ProcedureSuggestion)> {
        if !Arc::ptr_eq(snapshot, &self.snapshot) {
            return None;
        }
        let matches = self.matches(vectors, wanted);
        let suggestion = suggest_procedure(&self.procedures, &request(wanted, &matches))?;
        let tools = suggestion.tools.iter().map(|tool| &self.snapshot.tools[*tool as usize]).collect();
        Some((tools, suggestion))
    }

    /// The tools that follow these in a run for this intent, most likely first: indices into the snapshot. With a graph
    /// of the same tools, their schemas tell which can be called with the results so far.
    pub(crate) fn predict_next(
        &self,
        vectors: &VectorTable,
        wanted: &IntentReading,
        used: &[&str],
        graph: Option<&ToolGraph>,
    ) -> Vec<NextToolCandidate> {
        let matches = self.matches(vectors, wanted);
        let used: Vec<u32> =
            used.iter().filter_map(|id| self.snapshot.index_of(id)).map(|place| place as u32).collect();
        let mut prediction = predict_next_tools(&self.procedures, &request(wanted, &matches), &used);
        if let Some(graph) = graph {
            let tools = CallableTools {
                provides: graph.provides(),
                id_of: &|tool| self.snapshot.tools[tool as usize].id.to_string(),
                index_of: &|id| self.snapshot.index_of(id).map(|place| place as u32),
            };
            prediction.add_paths(&next_on_paths(&prediction, &Reading::of(&wanted.text), &used, tools));
        }
        prediction.tools
    }

    /// The tool snapshot it was built for.
    pub(crate) fn snapshot(&self) -> &Arc<ToolSnapshot> {
        &self.snapshot
    }

    /// The capability that a procedure belongs to.
    pub(crate) fn owner(&self, trace: usize) -> Option<&CapabilityId> {
        self.owners.get(trace)
    }
}

/// The names and the descriptions of the called tools.
fn texts(snapshot: &ToolSnapshot, calls: &[u32]) -> (String, String) {
    let tools: Vec<&CatalogueTool> = calls.iter().map(|tool| &snapshot.tools[*tool as usize]).collect();
    let names: Vec<String> =
        tools.iter().map(|tool| format!("{} {}", tool.id.server, tool.definition.name)).collect();
    let descriptions: Vec<&str> =
        tools.iter().filter_map(|tool| tool.definition.description.as_deref()).collect();
    (names.join(" "), descriptions.join("\n"))
}

fn request<'w>(wanted: &'w IntentReading, matches: &'w [ToolMatch]) -> procedure::ProcedureRequest<'w> {
    let vector = wanted.vectors.as_ref().map(|meant| &*meant.whole);
    procedure::ProcedureRequest { intent: &wanted.text, vector, matches }
}

/// An intent that a capability served.
struct IntentLesson {
    known: Arc<IndexedCapability>,
    intent: String,
    key: (CapabilityId, Digest),
    /// The embedding; `None` if there is no model.
    vector: Option<Vector>,
    /// When it was served first, in milliseconds since the Unix epoch.
    first_at: i64,
}

impl IntentLesson {
    /// The intent as a new request would be read.
    fn reading(&self) -> IntentReading {
        let vectors = self
            .vector
            .as_ref()
            .map(|vector| IntentVectors { whole: Arc::clone(vector), parts: vec![vector.to_vec()] });
        IntentReading { text: self.intent.clone(), vectors }
    }
}

/// Brings the experience up to date. This takes long, and never blocks readers for long.
pub fn update_experience(
    (memory, embeddings): (&CapabilityMemory, &Embeddings),
    snapshot: Arc<ToolSnapshot>,
    principal: &Principal,
    learned: &PrincipalKnowledge,
) {
    let vectors = embeddings.tool_vectors(&snapshot);
    let model = embeddings.version().0;
    let most = MOST_COMPARISONS / snapshot.tools.len().max(1);
    let capabilities = memory.active_capabilities(principal);
    let there: HashSet<(&CapabilityId, &Digest)> = capabilities
        .iter()
        .flat_map(|known| counted_intents(known).map(|(_, digest)| (&known.id, digest)))
        .collect();
    let lessons = lessons(&capabilities, embeddings, most);
    let stands = learned.with_experience(|of| {
        let new = lessons.iter().filter(|lesson| !of.known.contains(&lesson.key)).count();
        Arc::ptr_eq(&of.snapshot, &snapshot)
            && of.model == model
            && of.tools_read == vectors.vector_count()
            && of.known.len() + new <= most + most / SLACK
            // Deleted capabilities must not count any more.
            && of.known.iter().all(|(id, digest)| there.contains(&(id, digest)))
    });
    if learned.is_judging_due(lessons.len()) {
        let (past, next) = gains(&lessons, &snapshot, model, &vectors);
        let mut gate = learned.gate.write();
        gate.set(&PartVerdict::of(LearnedPart::PastIntents, &past));
        gate.set(&PartVerdict::of(LearnedPart::NextStep, &next));
    }
    if stands != Some(true) {
        let fresh = Experience::new(snapshot, model).of(&lessons, &vectors);
        *learned.experience.write() = Some(fresh);
        return;
    }
    for some in lessons.chunks(AT_ONCE) {
        let mut experience = learned.experience.write();
        if let Some(experience) = experience.as_mut() {
            let before = experience.workflows.len();
            some.iter().for_each(|lesson| experience.take(lesson, &vectors));
            if experience.workflows.len() != before {
                experience.index();
            }
        }
    }
}

/// The number of results that count for the gain of past intents.
const RESULTS: usize = 5;
/// The largest number of intents on which the parts are judged: the latest ones. It takes a second or two with thousands of
/// tools, in the background.
const MOST_JUDGED: usize = 300;

/// What past intents gain for the later ones of these lessons: nDCG@5 of their tools, and right first guesses of their next
/// tools.
fn gains(
    lessons: &[IntentLesson],
    snapshot: &Arc<ToolSnapshot>,
    model: u64,
    vectors: &VectorTable,
) -> (Vec<f64>, Vec<f64>) {
    let mut in_time: Vec<&IntentLesson> = lessons.iter().collect();
    in_time.sort_by(|one, other| {
        (one.first_at, &one.key.0, &one.intent).cmp(&(other.first_at, &other.key.0, &other.intent))
    });
    let (earlier, later) = in_time.split_at(first_judged(in_time.len()));
    let nothing = Experience::new(Arc::clone(snapshot), model);
    let mut past = Experience::new(Arc::clone(snapshot), model);
    earlier.iter().for_each(|lesson| past.take(lesson, vectors));
    let (mut of_tools, mut of_steps) = (Vec::new(), Vec::new());
    for lesson in &later[later.len().saturating_sub(MOST_JUDGED)..] {
        let Some(calls) = past.calls(lesson) else { continue };
        let wanted = lesson.reading();
        let advice = past.advice(snapshot, &wanted);
        let found = |advice: Option<&PastAdvice>| {
            let evidence = evidence(snapshot, Some(vectors), &wanted, advice);
            ndcg(&rank::rank_first(&wanted.text, &evidence, RESULTS), &calls)
        };
        of_tools.push(found(advice.as_ref()) - found(None));
        let ids: Vec<String> =
            calls.iter().map(|tool| snapshot.tools[*tool as usize].id.to_string()).collect();
        let used: Vec<&str> = ids.iter().map(String::as_str).collect();
        let right = |by: &Experience, at: usize| {
            let first = by.predict_next(vectors, &wanted, &used[..at], None).into_iter().next();
            f64::from(u8::from(first.is_some_and(|first| first.tool == calls[at])))
        };
        if calls.len() > 1 {
            let gained: f64 = (1..calls.len()).map(|at| right(&past, at) - right(&nothing, at)).sum();
            of_steps.push(gained / (calls.len() - 1) as f64);
        }
    }
    (of_tools, of_steps)
}

/// The nDCG of the first results for the tools of some calls.
fn ndcg(ranked: &[ScoredItem], calls: &[u32]) -> f64 {
    let wanted: HashSet<usize> = calls.iter().map(|tool| *tool as usize).collect();
    let gain = |place: usize| 1.0 / (2.0 + place as f64).log2();
    let found = ranked.iter().take(RESULTS).enumerate().filter(|(_, one)| wanted.contains(&one.item));
    found.map(|(place, _)| gain(place)).sum::<f64>() / (0..wanted.len().min(RESULTS)).map(gain).sum::<f64>()
}

/// The intents of a capability that count.
fn counted_intents(known: &IndexedCapability) -> impl Iterator<Item = (&String, &Digest)> {
    known.intents.with_digests().take(MOST_INTENTS)
}

/// At most `most` lessons: of every capability its first intent before others, the most recently used capabilities first.
fn lessons(
    capabilities: &[Arc<IndexedCapability>],
    embeddings: &Embeddings,
    most: usize,
) -> Vec<IntentLesson> {
    let without_model = embeddings.progress().is_none();
    let mut lessons = Vec::new();
    for (number, known, intent, digest) in preferred_intents(capabilities) {
        let vector = embeddings.with_known(|read| read.get(digest).map(dequantised));
        if vector.is_none() && !without_model {
            continue;
        }
        let key = (known.id.clone(), digest.clone());
        let first_at = known.intents.first_at(number);
        lessons.push(IntentLesson {
            known: Arc::clone(known),
            intent: intent.clone(),
            key,
            vector,
            first_at,
        });
        if lessons.len() >= most {
            break;
        }
    }
    lessons
}

/// All intents that count, each with its number in its capability, in the order of preference.
fn preferred_intents<'c>(
    capabilities: &'c [Arc<IndexedCapability>],
) -> impl Iterator<Item = (usize, &'c Arc<IndexedCapability>, &'c String, &'c Digest)> {
    let mut recent: Vec<&'c Arc<IndexedCapability>> = capabilities.iter().collect();
    recent.sort_by_key(|known| {
        (Reverse(known.statistics.last_used), Reverse(known.statistics.usage_count), &known.id)
    });
    (0..MOST_INTENTS).flat_map(move |number| {
        let nth = |known: &'c Arc<IndexedCapability>| {
            let (intent, digest) = counted_intents(known).nth(number)?;
            Some((number, known, intent, digest))
        };
        recent.iter().copied().filter_map(nth).collect::<Vec<_>>()
    })
}
