//! The capabilities there are, ready to be found.
//!
//! Most stand in one large index of words that is made anew now and then; those whose words changed since stand in a small
//! one. Which of the words' owners are still there, and how they do, is looked up.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use pml_analysis::Constant;
use pml_graph::lexical::{self, Document};
use pml_graph::rank::{self, Evidence};
use pml_graph::vectors::Vectors;
use pml_model::capability::{CacheConfig, Capability, Source, State, Statistics, ToolUse, reliability};
use pml_model::structure::{NodeKind, Structure};
use pml_model::{CapabilityId, Digest, Principal};
use pml_store::CapabilityChanges;
use serde_json::Value;

use crate::capability;
use crate::knowledge::embeddings::{self, Embeddings, Wanted, restored};
use crate::reuse;

/// How many of the best by their words, and how many of the best by what they mean, are looked at more closely.
const CLOSELY: usize = 20;
/// How much the words of a capability count beside the intents it served: it is the whole procedure that is wanted or not.
const WORDS: f64 = 0.5;
/// How much it counts that an intent means nearly the same as one that was served: what sets two procedures apart is often a
/// single word, which weighs little in what a sentence means.
const MEANING: f64 = 0.8;
/// Requests about the same kind of things are this much alike, whatever is wanted of the things.
const UNLIKE: f64 = 0.4;
/// How much fitting well can change a score, and what is as well as can be.
const FIT: f64 = 0.05;
const MOST_FIT: f32 = 10.0;
/// What has less to do with an intent than this is not offered.
const LEAST: f64 = 0.25;
/// How many intents of a capability are kept in memory.
const MOST_INTENTS: usize = 20;
/// How many may stand in the small index.
const MOST_RECENT: usize = 128;

/// What is known of a capability to find it and to decide whether it can be used.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) id: CapabilityId,
    pub(crate) owner: Principal,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) intents: Vec<String>,
    /// What the intents are read by.
    pub(crate) read_as: Vec<Digest>,
    /// The intents, ready to be compared; as soon as one is looked for that may be like them.
    read: OnceLock<Vec<reuse::Read>>,
    /// What it is fixed to; as soon as somebody asks.
    constants: OnceLock<Vec<Constant>>,
    pub(crate) parameters: Value,
    pub(crate) examples: BTreeMap<String, Vec<Value>>,
    pub(crate) tools: Vec<ToolUse>,
    /// The tools it calls, in the order of the program, and which takes from which.
    pub(crate) calls: Vec<String>,
    pub(crate) links: Vec<(usize, usize)>,
    pub(crate) source: Source,
    pub(crate) state: State,
    pub(crate) statistics: Statistics,
    pub(crate) approved: bool,
    pub(crate) cache: CacheConfig,
}

impl Known {
    fn words(&self) -> (&str, &str, &[String]) {
        (&self.name, &self.description, &self.intents)
    }

    /// The values in what it runs that nothing can be given in place of.
    pub(crate) fn constants(&self) -> &[Constant] {
        self.constants.get_or_init(|| capability::constants(&self.source))
    }

    /// What it takes, with what it was given the first time where its first intent said that: such a value moves with
    /// the words. One that was only given by name says nothing about the next time.
    pub(crate) fn with_first_values(&self) -> Value {
        let mut parameters = self.parameters.clone();
        let Some(first) = self.intents.first() else { return parameters };
        let members = parameters.get_mut("properties").and_then(Value::as_object_mut);
        for (name, member) in members.into_iter().flatten() {
            let given = self.examples.get(name).and_then(|examples| examples.first());
            if let (Some(member), Some(given)) = (member.as_object_mut(), given)
                && !member.contains_key("default")
                && reuse::mentions(first, given)
            {
                member.insert("default".to_owned(), given.clone());
            }
        }
        parameters
    }

    /// How much of what it seems to promise it keeps, from 0 to 1.
    pub(crate) fn reliability(&self) -> f64 {
        let Statistics { success_count: worked, failure_count: failed, .. } = self.statistics;
        reliability(worked, worked + failed)
    }
}

impl From<Capability> for Known {
    fn from(capability: Capability) -> Known {
        // The first intent is the one whose literals are the defaults.
        let mut intents = capability.intents;
        intents.sort_by_key(|intent| intent.first_at);
        let intents: Vec<String> = intents.into_iter().take(MOST_INTENTS).map(|intent| intent.text).collect();
        let (calls, links) = calls(&capability.procedure.static_structure);
        Known {
            read: OnceLock::new(),
            constants: OnceLock::new(),
            read_as: intents
                .iter()
                .map(|intent| Digest::of(embeddings::of_intent(intent).as_bytes()))
                .collect(),
            id: capability.procedure.id,
            owner: capability.procedure.owner,
            name: capability.name,
            description: capability.procedure.description,
            intents,
            examples: examples(&capability.procedure.parameters_schema),
            parameters: capability.procedure.parameters_schema,
            tools: capability.procedure.tools_used,
            calls,
            links,
            source: capability.procedure.source,
            state: capability.state,
            statistics: capability.statistics,
            approved: capability.approved,
            cache: capability.procedure.cache_config,
        }
    }
}

/// The tools that are called, in the order of the program, and which takes from which.
fn calls(structure: &Structure) -> (Vec<String>, Vec<(usize, usize)>) {
    let (mut calls, mut places) = (Vec::new(), HashMap::new());
    for node in &structure.nodes {
        if let NodeKind::Task { tool, .. } = &node.kind
            && node.kind.is_call()
        {
            places.insert(node.id, calls.len());
            calls.push(tool.clone());
        }
    }
    let flow = structure.data_flow().into_iter();
    let links = flow.filter_map(|(from, to)| Some((*places.get(&from)?, *places.get(&to)?))).collect();
    (calls, links)
}

/// What the parameters were in runs that worked.
fn examples(schema: &Value) -> BTreeMap<String, Vec<Value>> {
    let members = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let given = members
        .filter_map(|(name, member)| Some((name.clone(), member.get("examples")?.as_array()?.clone())));
    given.collect()
}

/// A capability that may be what is looked for.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) known: Arc<Known>,
    /// How sure it is that this is what is asked for, from 0 to 1, whatever becomes of running it.
    pub(crate) similarity: f64,
    /// The intent it served that is most like the one at hand.
    pub(crate) like: Option<String>,
    /// Its place among results, from 0 to 1.
    pub(crate) score: f64,
}

/// All capabilities.
#[derive(Debug, Default)]
pub(in crate::knowledge) struct Index {
    version: i64,
    all: HashMap<CapabilityId, Arc<Known>>,
    by_name: HashMap<(Principal, String), CapabilityId>,
    most: Segment,
    recent: Segment,
}

/// What the intents that were served mean.
#[derive(Debug)]
pub(super) struct Meanings {
    /// Of which capabilities, and as far as which texts were read.
    pub(super) of: (i64, (u64, u64)),
    rows: Vectors,
    owners: Vec<CapabilityId>,
}

impl Meanings {
    pub(super) fn new(of: (i64, (u64, u64)), index: &Index, meaning: &Embeddings) -> Meanings {
        let (mut rows, mut owners) = (Vectors::default(), Vec::new());
        meaning.with_known(|known| {
            for capability in index.all.values() {
                for text in &capability.read_as {
                    if let Some(vector) = known.get(text) {
                        rows.push(Some(&restored(vector)));
                        owners.push(capability.id.clone());
                    }
                }
            }
        });
        Meanings { of, rows, owners }
    }

    /// The capabilities whose intents mean most nearly the same, each with how likely it is to serve.
    fn near(&self, whole: &[f32]) -> HashMap<&CapabilityId, f64> {
        let mut near: HashMap<&CapabilityId, f64> = HashMap::new();
        for (row, cosine) in self.rows.nearest(whole, 2 * CLOSELY) {
            let best = near.entry(&self.owners[row]).or_default();
            *best = best.max(likely(f64::from(cosine)));
        }
        near
    }
}

/// How likely a capability is to serve where one of its intents means as nearly the same.
fn likely(cosine: f64) -> f64 {
    MEANING * ((cosine - UNLIKE) / (1.0 - UNLIKE)).max(0.0)
}

#[derive(Debug, Default)]
struct Segment {
    words: lexical::Index,
    items: Vec<CapabilityId>,
}

impl Segment {
    fn build<'k>(all: impl Iterator<Item = &'k Arc<Known>>) -> Segment {
        let all: Vec<&Arc<Known>> = all.collect();
        let texts: Vec<(String, Vec<&str>)> =
            all.iter().map(|known| (text(known), parameters(known))).collect();
        let documents = all.iter().zip(&texts).map(|(known, (text, parameters))| Document {
            server: "",
            name: &known.name,
            description: text,
            parameter_names: parameters.clone(),
            parameter_descriptions: Vec::new(),
            outputs: "",
        });
        Segment {
            words: lexical::Index::build(documents),
            items: all.iter().map(|known| known.id.clone()).collect(),
        }
    }

    fn best(&self, intent: &str) -> impl Iterator<Item = (&CapabilityId, f64)> {
        let ranked = rank::rank(intent, &Evidence { lexical: &self.words, dense: None, past: None });
        ranked.into_iter().take(CLOSELY).map(|found| (&self.items[found.item], found.score))
    }
}

fn text(known: &Known) -> String {
    let tools = known.tools.iter().map(|tool| tool.id.as_str());
    let all: Vec<&str> = std::iter::once(known.description.as_str())
        .chain(known.intents.iter().map(String::as_str))
        .chain(tools)
        .collect();
    all.join("\n")
}

fn parameters(known: &Known) -> Vec<&str> {
    let members = known.parameters.get("properties").and_then(Value::as_object);
    members.into_iter().flat_map(|members| members.keys().map(String::as_str)).collect()
}

impl Index {
    /// The state of the database it was made from.
    pub(super) fn version(&self) -> i64 {
        self.version
    }

    /// Takes in what changed.
    pub(super) fn take(&mut self, changes: CapabilityChanges) {
        self.version = changes.version;
        for gone in changes.gone {
            if let Some(known) = self.all.remove(&gone) {
                self.by_name.remove(&(known.owner.clone(), known.name.clone()));
            }
        }
        let mut reworded: Vec<CapabilityId> = Vec::new();
        for capability in changes.changed {
            let known = Arc::new(Known::from(capability));
            let before = self.all.insert(known.id.clone(), Arc::clone(&known));
            if let Some(before) = &before {
                self.by_name.remove(&(before.owner.clone(), before.name.clone()));
            }
            self.by_name.insert((known.owner.clone(), known.name.clone()), known.id.clone());
            if before.is_none_or(|before| before.words() != known.words()) {
                reworded.push(known.id.clone());
            }
        }
        self.place(reworded);
    }

    fn place(&mut self, reworded: Vec<CapabilityId>) {
        if reworded.is_empty() {
            return;
        }
        let mut recent: HashSet<CapabilityId> = self.recent.items.iter().cloned().collect();
        recent.extend(reworded);
        if recent.len() > MOST_RECENT {
            self.most = Segment::build(self.all.values());
            self.recent = Segment::default();
        } else {
            self.recent = Segment::build(recent.iter().filter_map(|id| self.all.get(id)));
        }
    }

    /// Every one of them.
    pub(in crate::knowledge) fn all(&self) -> Vec<Arc<Known>> {
        self.all.values().cloned().collect()
    }

    /// One that works and calls that tool; the one used most.
    pub(super) fn that_uses(&self, principal: &Principal, tool: &str) -> Option<Arc<Known>> {
        let uses = |known: &&Arc<Known>| {
            known.owner == *principal
                && known.state == State::Active
                && known.tools.iter().any(|used| used.id == tool)
        };
        self.all.values().filter(uses).max_by_key(|known| (known.statistics.usage_count, &known.id)).cloned()
    }

    /// The one of that id.
    pub(super) fn get(&self, principal: &Principal, id: &CapabilityId) -> Option<&Arc<Known>> {
        self.all.get(id).filter(|known| known.owner == *principal)
    }

    /// The one of that name or id.
    pub(super) fn named(&self, principal: &Principal, name: &str) -> Option<Arc<Known>> {
        let id = match CapabilityId::parse(name) {
            Ok(id) => id,
            Err(_) => self.by_name.get(&(principal.clone(), name.to_owned()))?.clone(),
        };
        self.get(principal, &id).cloned()
    }

    /// The capabilities of `principal`: those that `source` may name, and the names of the others that work.
    pub(super) fn mentioned(&self, principal: &Principal, source: &str) -> (Vec<Arc<Known>>, Vec<String>) {
        let (mut mentioned, mut others) = (Vec::new(), Vec::new());
        for known in self.all.values().filter(|known| known.owner == *principal) {
            if source.contains(&known.name) {
                mentioned.push(Arc::clone(known));
            } else if known.state == State::Active {
                others.push(known.name.clone());
            }
        }
        (mentioned, others)
    }

    /// Those that have something to do with `intent`, best first.
    pub(super) fn find(
        &self,
        principal: &Principal,
        intent: &str,
        wanted: &Wanted,
        meanings: Option<&Meanings>,
    ) -> Vec<Candidate> {
        let mut found: HashMap<&CapabilityId, f64> = HashMap::new();
        let text = wanted.text.as_str();
        let mut by_words: Vec<(&CapabilityId, f64)> =
            self.most.best(text).chain(self.recent.best(text)).collect();
        if text != intent {
            // Those that were learned in the same language are found by the words as they stand.
            by_words.extend(self.most.best(intent).chain(self.recent.best(intent)));
        }
        for (id, score) in by_words {
            let best = found.entry(id).or_default();
            *best = best.max(score);
        }
        let near = meanings.zip(wanted.meant.as_ref()).map(|(meanings, meant)| meanings.near(&meant.whole));
        let near = near.unwrap_or_default();
        for id in near.keys() {
            found.entry(id).or_default();
        }
        let usable = |known: &&Arc<Known>| known.owner == *principal && known.state == State::Active;
        let known =
            found.into_iter().filter_map(|(id, score)| Some((self.all.get(id).filter(usable)?, score)));
        let asked = reuse::Read::new(intent);
        let mut candidates: Vec<Candidate> =
            known.map(|(known, score)| candidate(known, &asked, score, near.get(&known.id))).collect();
        candidates.retain(|candidate| candidate.score >= LEAST);
        candidates.sort_by(|one, other| {
            other.score.total_cmp(&one.score).then_with(|| one.known.id.cmp(&other.known.id))
        });
        candidates
    }
}

/// What intents that are so similar are worth to each other. Much of what two unlike ones share is that they name a file or
/// two, so what is not sure counts for less than it has in common.
fn worth(similarity: f64) -> f64 {
    if similarity >= reuse::SURE { similarity } else { similarity * similarity }
}

/// Puts capabilities that are about as likely in the order of how well they fit by all that they served and by their tools.
pub(in crate::knowledge) fn order_by_fit(found: &mut [Candidate], fits: &HashMap<&CapabilityId, f32>) {
    for candidate in found.iter_mut() {
        let fit = fits.get(&candidate.known.id).copied().unwrap_or_default();
        candidate.score =
            (candidate.score + FIT * f64::from(fit / MOST_FIT).clamp(-1.0, 1.0)).clamp(0.0, 1.0);
    }
    found.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| one.known.id.cmp(&other.known.id))
    });
}

fn candidate(known: &Arc<Known>, asked: &reuse::Read, words: f64, near: Option<&f64>) -> Candidate {
    let read = known.read.get_or_init(|| known.intents.iter().map(|text| reuse::Read::new(text)).collect());
    let alike = read.iter().zip(&known.intents).map(|(read, served)| (read.similarity(asked), served));
    let best = alike.max_by(|one, other| one.0.total_cmp(&other.0));
    let similarity = best.as_ref().map_or(0.0, |(similarity, _)| *similarity);
    Candidate {
        known: Arc::clone(known),
        similarity,
        like: best.map(|(_, served)| served.clone()),
        score: worth(similarity).max(WORDS * words).max(near.copied().unwrap_or_default())
            * known.reliability(),
    }
}
