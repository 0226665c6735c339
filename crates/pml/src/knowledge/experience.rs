//! What served requests before, as ranking, suggesting and looking ahead use it.
//!
//! Made in the background from the capabilities there are, the tools of a moment and what both mean. What comes later is
//! added; another catalogue or another model makes it anew.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pml_graph::lexical::{Document, Index};
use pml_graph::next::{Next, Prediction, Reason, next};
use pml_graph::past::workflow::{Workflow, scores};
use pml_graph::past::{Advice, Intent, Past, Trace};
use pml_graph::procedure::{self, Match, Suggestion, ToolText, suggest};
use pml_graph::rank::{self, Evidence};
use pml_graph::vectors::Vectors;
use pml_model::{CapabilityId, Digest, Principal};

use super::Learned;
use super::embeddings::{Embeddings, Meant, Vector, Wanted, evidence, restored};
use super::memory::{Known, Memory};
use crate::catalogue::{Snapshot, Tool};

/// How many comparisons of an intent with a tool are made at most: with many tools fewer intents count.
const MOST_COMPARISONS: usize = 4_000_000;
/// How many are learned from before others may look.
const AT_ONCE: usize = 8;
/// How many intents of one capability count.
const MOST_INTENTS: usize = 5;

/// What served requests before.
#[derive(Debug)]
pub(crate) struct Experience {
    snapshot: Arc<Snapshot>,
    /// Which model read it all.
    model: u64,
    /// How many tools had been read when it was learned.
    tools_read: usize,
    past: Past,
    procedures: procedure::Memory,
    /// Of which capability each procedure is.
    owners: Vec<CapabilityId>,
    /// The capabilities by what they served, numbered in the order they came, with the tools that each calls.
    served: Past,
    workflows: Vec<(CapabilityId, Vec<u32>)>,
    words: Index,
    known: HashSet<(CapabilityId, Digest)>,
}

impl Experience {
    fn new(snapshot: Arc<Snapshot>, model: u64) -> Experience {
        let texts = snapshot.tools.iter().map(|tool| ToolText {
            name: &tool.definition.name,
            description: tool.definition.description.as_deref().unwrap_or_default(),
        });
        let procedures = procedure::Memory::new(texts);
        Experience {
            snapshot,
            model,
            tools_read: 0,
            past: Past::default(),
            procedures,
            owners: Vec::new(),
            served: Past::default(),
            workflows: Vec::new(),
            words: Index::default(),
            known: HashSet::new(),
        }
    }

    /// From all these lessons.
    fn of(mut self, lessons: &[Lesson], vectors: &Vectors) -> Experience {
        self.tools_read = vectors.known();
        lessons.iter().for_each(|lesson| self.take(lesson, vectors));
        self.index();
        self
    }

    /// The tools that are called, in that order. A procedure of which a tool is gone says nothing of how the others are
    /// used together.
    fn calls(&self, lesson: &Lesson) -> Option<Vec<u32>> {
        let places = lesson.known.calls.iter().map(|id| self.snapshot.place(id).map(|place| place as u32));
        places.collect::<Option<Vec<u32>>>().filter(|calls| !calls.is_empty())
    }

    fn learn(&mut self, lesson: &Lesson, vectors: &Vectors) {
        let Lesson { known, intent, vector, .. } = lesson;
        let vector = vector.as_ref();
        let Some(calls) = self.calls(lesson) else { return };
        let likeness = vector.and_then(|vector| vectors.similarities(vector)).unwrap_or_default();
        let parts: Vec<Vec<f32>> = vector.map(|vector| vector.to_vec()).into_iter().collect();
        let of_intent = Intent { text: intent, vector: vector.map(AsRef::as_ref), parts: &parts };
        self.past.push(&Trace { items: &calls, intent: of_intent, likeness: &likeness });
        let number = match self.workflows.iter().position(|(id, _)| *id == known.id) {
            Some(number) => number,
            None => {
                self.workflows.push((known.id.clone(), calls.clone()));
                self.workflows.len() - 1
            }
        };
        self.served.push(&Trace { items: &[number as u32], intent: of_intent, likeness: &[] });
        let meant = vector.map(|vector| Meant { whole: Arc::clone(vector), parts });
        let wanted = Wanted { text: intent.clone(), meant };
        let matches = self.matches(vectors, &wanted);
        self.procedures.learn(&procedure::Trace {
            intent,
            vector: vector.map(AsRef::as_ref),
            matches: &matches,
            tools: &calls,
            links: &known.links,
        });
        self.owners.push(known.id.clone());
    }

    /// Learns from what was not learned from yet.
    fn take(&mut self, lesson: &Lesson, vectors: &Vectors) {
        if self.known.insert(lesson.key.clone()) {
            self.learn(lesson, vectors);
        }
    }

    /// What past requests say of the tools of the snapshot it was made for.
    pub(crate) fn advice(&self, snapshot: &Arc<Snapshot>, wanted: &Wanted) -> Option<Advice> {
        if !Arc::ptr_eq(snapshot, &self.snapshot) || self.owners.is_empty() {
            return None;
        }
        let meant = wanted.meant.as_ref();
        let parts = meant.map_or(&[][..], |meant| &meant.parts);
        let intent = Intent { text: &wanted.text, vector: meant.map(|meant| &*meant.whole), parts };
        Some(Advice { hints: self.past.hints(&intent, snapshot.tools.len()) })
    }

    /// How well each tool fits the request by words and meaning alone.
    fn standard(&self, vectors: &Vectors, wanted: &Wanted) -> Vec<f32> {
        rank::standard(&wanted.text, &evidence(&self.snapshot, Some(vectors), wanted, None))
    }

    /// The tools that match a request best, by words and meaning alone.
    fn matches(&self, vectors: &Vectors, wanted: &Wanted) -> Vec<Match> {
        procedure::matches(&self.standard(vectors, wanted))
    }

    /// How well each capability fits the request, by what it served and by its tools: 0 is usual, 1 a standard deviation.
    pub(crate) fn fits(&self, vectors: &Vectors, wanted: &Wanted) -> HashMap<&CapabilityId, f32> {
        let meant = wanted.meant.as_ref();
        let parts = meant.map_or(&[][..], |meant| &meant.parts);
        let intent = Intent { text: &wanted.text, vector: meant.map(|meant| &*meant.whole), parts };
        let recalled = self.served.recall(&intent, self.workflows.len());
        let fits = self.standard(vectors, wanted);
        let said = Evidence { lexical: &self.words, dense: None, past: None };
        let said = rank::standard(&wanted.text, &said);
        let workflows: Vec<Workflow> = self
            .workflows
            .iter()
            .zip(recalled)
            .enumerate()
            .map(|(number, ((_, calls), recall))| {
                let fit: f32 = calls.iter().map(|tool| fits[*tool as usize]).sum();
                let tools = fit / calls.len().max(1) as f32;
                Workflow { recall, tools, text: said.get(number).copied().unwrap_or_default() }
            })
            .collect();
        self.workflows.iter().map(|(id, _)| id).zip(scores(&workflows)).collect()
    }

    /// Makes the words of the tools that capabilities call anew.
    fn index(&mut self) {
        let texts: Vec<(String, String)> =
            self.workflows.iter().map(|(_, calls)| texts(&self.snapshot, calls)).collect();
        self.words = Index::build(texts.iter().map(|(names, descriptions)| Document {
            name: names,
            description: descriptions,
            ..Document::default()
        }));
    }

    /// The procedure that what served other requests makes likely for this one.
    pub(crate) fn suggest(
        &self,
        snapshot: &Arc<Snapshot>,
        vectors: &Vectors,
        wanted: &Wanted,
    ) -> Option<(Vec<&Tool>, Suggestion)> {
        if !Arc::ptr_eq(snapshot, &self.snapshot) {
            return None;
        }
        let matches = self.matches(vectors, wanted);
        let suggestion = suggest(&self.procedures, &request(wanted, &matches))?;
        let tools = suggestion.tools.iter().map(|tool| &self.snapshot.tools[*tool as usize]).collect();
        Some((tools, suggestion))
    }

    /// What comes after these tools, most likely first, in a run for this request.
    pub(crate) fn next(
        &self,
        vectors: &Vectors,
        wanted: &Wanted,
        used: &[&str],
    ) -> Vec<(&Tool, f32, Reason)> {
        let matches = self.matches(vectors, wanted);
        let used: Vec<u32> =
            used.iter().filter_map(|id| self.snapshot.place(id)).map(|place| place as u32).collect();
        let Prediction { tools, .. } = next(&self.procedures, &request(wanted, &matches), &used);
        let named = |found: Next| (&self.snapshot.tools[found.tool as usize], found.confidence, found.reason);
        tools.into_iter().map(named).collect()
    }

    /// The tools it speaks of.
    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// The capability a procedure is of.
    pub(crate) fn owner(&self, trace: usize) -> Option<&CapabilityId> {
        self.owners.get(trace)
    }
}

/// The names and the descriptions of the tools that are called.
fn texts(snapshot: &Snapshot, calls: &[u32]) -> (String, String) {
    let tools: Vec<&Tool> = calls.iter().map(|tool| &snapshot.tools[*tool as usize]).collect();
    let names: Vec<String> =
        tools.iter().map(|tool| format!("{} {}", tool.id.server, tool.definition.name)).collect();
    let descriptions: Vec<&str> =
        tools.iter().filter_map(|tool| tool.definition.description.as_deref()).collect();
    (names.join(" "), descriptions.join("\n"))
}

fn request<'w>(wanted: &'w Wanted, matches: &'w [Match]) -> procedure::Request<'w> {
    let vector = wanted.meant.as_ref().map(|meant| &*meant.whole);
    procedure::Request { intent: &wanted.text, vector, matches }
}

/// An intent that a capability served.
struct Lesson {
    known: Arc<Known>,
    intent: String,
    key: (CapabilityId, Digest),
    /// What it means; nothing where there is no model.
    vector: Option<Vector>,
}

/// Brings what served requests before up to date. Takes its time, and keeps nobody from looking for long.
pub(crate) fn bring_up_to_date(
    (memory, embeddings): (&Memory, &Embeddings),
    snapshot: Arc<Snapshot>,
    principal: &Principal,
    learned: &Learned,
) {
    let vectors = embeddings.of_tools(&snapshot);
    let model = embeddings.version().0;
    let most = MOST_COMPARISONS / snapshot.tools.len().max(1);
    let lessons = lessons(memory, embeddings, principal, most);
    let there: HashSet<&(CapabilityId, Digest)> = lessons.iter().map(|lesson| &lesson.key).collect();
    let stands = learned.with_experience(|of| {
        Arc::ptr_eq(&of.snapshot, &snapshot)
            && of.model == model
            && of.tools_read == vectors.known()
            // What was forgotten has no say any more.
            && of.known.iter().all(|known| there.contains(known))
    });
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

fn lessons(memory: &Memory, embeddings: &Embeddings, principal: &Principal, most: usize) -> Vec<Lesson> {
    let without_model = embeddings.progress().is_none();
    let mut lessons = Vec::new();
    for known in memory.active(principal) {
        for (intent, digest) in known.intents.iter().zip(&known.read_as).take(MOST_INTENTS) {
            let vector = embeddings.with_known(|read| read.get(digest).map(restored));
            if vector.is_none() && !without_model {
                continue;
            }
            let key = (known.id.clone(), digest.clone());
            lessons.push(Lesson { known: Arc::clone(&known), intent: intent.clone(), key, vector });
            if lessons.len() >= most {
                return lessons;
            }
        }
    }
    lessons
}
