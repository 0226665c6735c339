//! The search index of the capabilities.
//!
//! Most capabilities are in one large word index, which is rebuilt from time to time; those whose words changed since
//! are in a small one. Whether the capability of an entry still exists, and its statistics, are looked up separately.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use pml_analysis::Constant;
use pml_graph::lexical::{self, ToolDocument};
use pml_graph::rank::{self, RankingEvidence};
use pml_graph::vectors::VectorTable;
use pml_model::capability::{
    CacheConfig, Capability, CapabilityIntent, CapabilityOrigin, CapabilitySource, CapabilityState,
    CapabilityStatistics, ToolUse, reliability,
};
use pml_model::learning::DecisionStats;
use pml_model::structure::{NodeKind, Structure};
use pml_model::version::is_current_name;
use pml_model::{CapabilityId, Digest, Principal, Publication, RunId};
use pml_store::{CapabilityChanges, StoredVector};
use serde_json::Value;

use super::published::PublishedCapabilities;
use crate::capability;
use crate::knowledge::embeddings::{self, Embeddings, IntentReading, dequantised};
use crate::reuse;

/// The number of best candidates by words, and by embeddings, that are compared in detail.
const CLOSELY: usize = 20;
/// The weight of a capability's words beside the intents it served: the request is for the whole procedure or not at
/// all.
const WORDS: f64 = 0.5;
/// The weight of the embedding similarity of intents. Two procedures often differ in a single word, which weighs little
/// in the embedding of a sentence.
const MEANING: f64 = 0.8;
/// The cosine similarity of requests about the same kind of things, whatever they request.
const UNLIKE: f64 = 0.3;
/// The largest change of a score by the fit.
const FIT: f64 = 0.05;
/// The fit that counts as perfect, in standard deviations.
const MOST_FIT: f32 = 10.0;
/// The least score of a candidate that is offered.
const LEAST: f64 = 0.15;
/// The number of intents of a capability that are in memory.
const MOST_INTENTS: usize = 20;
/// The capacity of the small index.
const MOST_RECENT: usize = 128;

/// What is needed of a capability to find it and to decide whether it is usable.
#[derive(Debug, Clone)]
pub(crate) struct IndexedCapability {
    pub(crate) id: CapabilityId,
    pub(crate) owner: Principal,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) intents: ServedIntents,
    pub(crate) parameters: Value,
    pub(crate) examples: BTreeMap<String, Vec<Value>>,
    pub(crate) tools: Vec<ToolUse>,
    pub(crate) calls: CallOutline,
    pub(crate) program: IndexedProgram,
    pub(crate) state: CapabilityState,
    pub(crate) statistics: CapabilityStatistics,
    pub(crate) approved: bool,
    /// Whether it comes from explorations or a package.
    is_untried: bool,
    pub(crate) cache: CacheConfig,
    /// What its decisions were so far.
    pub(crate) decisions: Vec<DecisionStats>,
    /// The hash of the program's meaning.
    pub(crate) identity: String,
    /// How far it is published; `None` if only its owner sees it.
    pub(crate) publication: Option<Publication>,
    /// Whether this is how others see it.
    pub(crate) is_of_other: bool,
}

impl IndexedCapability {
    fn words(&self) -> (&str, &str, &[String]) {
        (&self.name, &self.description, self.intents.texts())
    }

    /// The parameter schema, with the values of the first run as defaults if the first intent stated them: such a value
    /// follows the words. A value that was only passed by name says nothing about the next run.
    pub(crate) fn with_first_values(&self) -> Value {
        let mut parameters = self.parameters.clone();
        let Some(first) = self.intents.read().first() else { return parameters };
        let members = parameters.get_mut("properties").and_then(Value::as_object_mut);
        for (name, member) in members.into_iter().flatten() {
            let given = self.examples.get(name).and_then(|examples| examples.first());
            if let (Some(member), Some(given)) = (member.as_object_mut(), given)
                && !member.contains_key("default")
                && first.mentions(given)
            {
                member.insert("default".to_owned(), given.clone());
            }
        }
        parameters
    }

    /// Whether it was only explored or imported, and no run of it has succeeded here. Then it is suggested, and is
    /// evidence for nothing.
    pub(crate) fn is_unproven(&self) -> bool {
        self.is_untried && self.statistics.success_count == 0
    }

    /// Whether it is in force. Another version of a capability runs by its own name only.
    pub(crate) fn is_current(&self) -> bool {
        is_current_name(&self.name)
    }

    /// The expected success, from 0 to 1.
    pub(crate) fn reliability(&self) -> f64 {
        let CapabilityStatistics { success_count: worked, failure_count: failed, .. } = self.statistics;
        reliability(worked, worked + failed)
    }
}

impl From<Capability> for IndexedCapability {
    fn from(capability: Capability) -> IndexedCapability {
        IndexedCapability {
            publication: capability.publication(),
            is_of_other: false,
            identity: capability.procedure.identity,
            id: capability.procedure.id,
            owner: capability.procedure.owner,
            name: capability.name,
            description: capability.procedure.description,
            intents: ServedIntents::new(capability.intents),
            examples: examples(&capability.procedure.parameters_schema),
            parameters: capability.procedure.parameters_schema,
            tools: capability.procedure.tools_used,
            calls: CallOutline::new(&capability.procedure.static_structure),
            program: IndexedProgram {
                source: capability.procedure.source,
                constants: OnceLock::new(),
                unproven_by: capability.procedure.unproven_lift.map(|lift| lift.run),
            },
            state: capability.state,
            statistics: capability.statistics,
            approved: capability.approved,
            is_untried: matches!(
                capability.procedure.origin,
                CapabilityOrigin::Explored | CapabilityOrigin::Imported
            ),
            cache: capability.procedure.cache_config,
            decisions: capability.learning.decision_stats,
        }
    }
}

/// The intents that a capability served, first one first.
#[derive(Debug, Clone)]
pub(crate) struct ServedIntents {
    texts: Vec<String>,
    /// What is embedded of each intent: its text, and its text without its values. Finding the values takes far longer than
    /// embedding is looked after, so it is done once.
    embedded: Vec<String>,
    /// The text digests of the intents, by which their vectors are found.
    digests: Vec<Digest>,
    /// The text digests of the intents without their values.
    masked_digests: Vec<Digest>,
    /// The intents as they are read, on first use.
    read: OnceLock<Vec<reuse::ReadIntent>>,
}

impl ServedIntents {
    fn new(mut intents: Vec<CapabilityIntent>) -> ServedIntents {
        // The literals of the first intent are the defaults.
        intents.sort_by_key(|intent| intent.first_at);
        let texts: Vec<String> = intents.into_iter().take(MOST_INTENTS).map(|intent| intent.text).collect();
        let whole: Vec<String> = texts.iter().map(|text| embeddings::intent_text(text)).collect();
        let masked: Vec<String> = texts.iter().map(|text| embeddings::masked_intent_text(text)).collect();
        let digests = |texts: &[String]| texts.iter().map(|text| Digest::of(text.as_bytes())).collect();
        ServedIntents {
            digests: digests(&whole),
            masked_digests: digests(&masked),
            embedded: whole.into_iter().chain(masked).collect(),
            texts,
            read: OnceLock::new(),
        }
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The first intent alone, from which the default values are.
    pub(super) fn first_only(&self) -> ServedIntents {
        let first = |all: &[Digest]| all.iter().take(1).cloned().collect();
        let (whole, masked) = self.embedded.split_at(self.texts.len());
        ServedIntents {
            texts: self.texts.iter().take(1).cloned().collect(),
            embedded: whole.iter().take(1).chain(masked.iter().take(1)).cloned().collect(),
            digests: first(&self.digests),
            masked_digests: first(&self.masked_digests),
            read: OnceLock::new(),
        }
    }

    /// The texts that are embedded for the intents.
    pub(crate) fn embedded(&self) -> &[String] {
        &self.embedded
    }

    /// The intents, each with the digest of its text.
    pub(crate) fn with_digests(&self) -> impl Iterator<Item = (&String, &Digest)> {
        self.texts.iter().zip(&self.digests)
    }

    /// The intent most similar to `asked`, and how similar it is.
    fn most_similar(&self, asked: &reuse::ReadIntent) -> Option<(f64, &str)> {
        let alike = self.read().iter().map(|served| (served.similarity(asked), served.text()));
        alike.max_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// The intents as they are read.
    pub(crate) fn read(&self) -> &[reuse::ReadIntent] {
        self.read.get_or_init(|| self.texts.iter().map(|text| reuse::ReadIntent::new(text)).collect())
    }
}

/// The program of a capability.
#[derive(Debug, Clone)]
pub(crate) struct IndexedProgram {
    pub(crate) source: CapabilitySource,
    /// The constants, computed on first use.
    constants: OnceLock<Vec<Constant>>,
    /// The run that its lifted form has to be compared with before it may be used.
    pub(crate) unproven_by: Option<RunId>,
}

impl IndexedProgram {
    /// The values in it that cannot be replaced by arguments.
    pub(crate) fn constants(&self) -> &[Constant] {
        self.constants.get_or_init(|| capability::constants(&self.source))
    }
}

/// The calls of a procedure.
#[derive(Debug, Clone)]
pub(crate) struct CallOutline {
    /// The called tools, in program order.
    pub(crate) tools: Vec<String>,
    /// The data dependencies between the calls.
    pub(crate) links: Vec<(usize, usize)>,
}

impl CallOutline {
    fn new(structure: &Structure) -> CallOutline {
        let (mut tools, mut places) = (Vec::new(), HashMap::new());
        for node in &structure.nodes {
            if let NodeKind::Task { tool, .. } = &node.kind
                && node.kind.is_call()
            {
                places.insert(node.id, tools.len());
                tools.push(tool.clone());
            }
        }
        let flow = structure.data_flow().into_iter();
        let links = flow.filter_map(|(from, to)| Some((*places.get(&from)?, *places.get(&to)?))).collect();
        CallOutline { tools, links }
    }
}

/// The values of the parameters in successful runs.
fn examples(schema: &Value) -> BTreeMap<String, Vec<Value>> {
    let members = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let given = members
        .filter_map(|(name, member)| Some((name.clone(), member.get("examples")?.as_array()?.clone())));
    given.collect()
}

/// A candidate capability for an intent.
#[derive(Debug, Clone)]
pub struct CapabilityCandidate {
    pub(crate) capability: Arc<IndexedCapability>,
    /// The probability that this capability is requested, from 0 to 1, whatever the outcome of running it.
    pub(crate) similarity: f64,
    /// The served intent most similar to the present one.
    pub(crate) similar_intent: Option<String>,
    /// The ranking score, from 0 to 1.
    pub(crate) score: f64,
}

impl CapabilityCandidate {
    /// The name of the capability.
    pub fn name(&self) -> &str {
        &self.capability.name
    }
}

/// The index of all capabilities.
#[derive(Debug, Default)]
pub(in crate::knowledge) struct CapabilityIndex {
    version: i64,
    all: HashMap<CapabilityId, Arc<IndexedCapability>>,
    by_name: HashMap<(Principal, String), CapabilityId>,
    most: IndexSegment,
    recent: IndexSegment,
    pub(super) published: PublishedCapabilities,
}

/// A request for a capability.
pub(super) struct CapabilityRequest<'r> {
    pub(super) intent: &'r str,
    pub(super) wanted: &'r IntentReading,
    /// The embedding of the intent without its values.
    pub(super) masked: Option<&'r [f32]>,
}

/// The embeddings of the served intents.
#[derive(Debug)]
pub(super) struct ServedIntentVectors {
    /// The versions it was built from: of the capabilities and of the embeddings.
    pub(super) of: (i64, (u64, u64)),
    own: IntentVectorTables,
    /// Of what is published: the intents that others see.
    published: IntentVectorTables,
}

/// The embeddings of intents.
#[derive(Debug, Default)]
struct IntentVectorTables {
    whole: OwnedVectors,
    /// Those of the intents without their values.
    masked: OwnedVectors,
}

/// Vectors, each of an intent of a capability.
#[derive(Debug, Default)]
struct OwnedVectors {
    rows: VectorTable,
    owners: Vec<CapabilityId>,
}

impl OwnedVectors {
    fn add(&mut self, owner: &CapabilityId, vector: &StoredVector) {
        self.rows.push(Some(&dequantised(vector)));
        self.owners.push(owner.clone());
    }

    /// Adds the capabilities with the most similar intents to `near`, each with the probability that it serves.
    fn add_near<'v>(&'v self, wanted: &[f32], near: &mut HashMap<&'v CapabilityId, f64>) {
        for (row, cosine) in self.rows.nearest(wanted, 2 * CLOSELY) {
            let best = near.entry(&self.owners[row]).or_default();
            *best = best.max(likely(f64::from(cosine)));
        }
    }
}

impl ServedIntentVectors {
    pub(super) fn new(
        of: (i64, (u64, u64)),
        index: &CapabilityIndex,
        meaning: &Embeddings,
    ) -> ServedIntentVectors {
        let tables = |all: &mut dyn Iterator<Item = &Arc<IndexedCapability>>| {
            let mut tables = IntentVectorTables::default();
            meaning.with_known(|known| {
                for capability in all {
                    for vector in capability.intents.digests.iter().filter_map(|text| known.get(text)) {
                        tables.whole.add(&capability.id, vector);
                    }
                    for vector in capability.intents.masked_digests.iter().filter_map(|text| known.get(text))
                    {
                        tables.masked.add(&capability.id, vector);
                    }
                }
            });
            tables
        };
        ServedIntentVectors {
            of,
            own: tables(&mut index.all.values()),
            published: tables(&mut index.published.all()),
        }
    }
}

impl IntentVectorTables {
    /// The capabilities with the most similar intents, each with the probability that it serves.
    fn near(&self, request: &CapabilityRequest<'_>) -> HashMap<&CapabilityId, f64> {
        let mut near = HashMap::new();
        if let Some(vectors) = &request.wanted.vectors {
            self.whole.add_near(&vectors.whole, &mut near);
        }
        if let Some(masked) = request.masked {
            self.masked.add_near(masked, &mut near);
        }
        near
    }
}

/// The probability that a capability serves, given the cosine similarity of one of its intents.
fn likely(cosine: f64) -> f64 {
    MEANING * ((cosine - UNLIKE) / (1.0 - UNLIKE)).max(0.0)
}

#[derive(Debug, Default)]
pub(super) struct IndexSegment {
    words: lexical::LexicalIndex,
    items: Vec<CapabilityId>,
}

impl IndexSegment {
    pub(super) fn build<'k>(all: impl Iterator<Item = &'k Arc<IndexedCapability>>) -> IndexSegment {
        let all: Vec<&Arc<IndexedCapability>> = all.collect();
        let texts: Vec<(String, Vec<&str>)> =
            all.iter().map(|known| (text(known), parameters(known))).collect();
        let documents = all.iter().zip(&texts).map(|(known, (text, parameters))| ToolDocument {
            server: "",
            name: &known.name,
            description: text,
            parameter_names: parameters.clone(),
            parameter_descriptions: Vec::new(),
            outputs: "",
        });
        IndexSegment {
            words: lexical::LexicalIndex::build(documents),
            items: all.iter().map(|known| known.id.clone()).collect(),
        }
    }

    fn best(&self, intent: &str) -> impl Iterator<Item = (&CapabilityId, f64)> {
        let evidence = RankingEvidence { lexical: &self.words, dense: None, advice: None };
        let ranked = rank::rank_first(intent, &evidence, CLOSELY);
        ranked.into_iter().map(|found| (&self.items[found.item], found.score))
    }
}

fn text(known: &IndexedCapability) -> String {
    let tools = known.tools.iter().map(|tool| tool.id.as_str());
    let all: Vec<&str> = std::iter::once(known.description.as_str())
        .chain(known.intents.texts().iter().map(String::as_str))
        .chain(tools)
        .collect();
    all.join("\n")
}

fn parameters(known: &IndexedCapability) -> Vec<&str> {
    let members = known.parameters.get("properties").and_then(Value::as_object);
    members.into_iter().flat_map(|members| members.keys().map(String::as_str)).collect()
}

impl CapabilityIndex {
    /// The database version it was built from.
    pub(super) fn version(&self) -> i64 {
        self.version
    }

    /// Applies the changes of capabilities.
    pub(super) fn take(&mut self, mut changes: CapabilityChanges) {
        self.version = changes.version;
        let CapabilityChanges { changed, .. } = &mut changes;
        let changed: Vec<Arc<IndexedCapability>> =
            std::mem::take(changed).into_iter().map(|capability| Arc::new(capability.into())).collect();
        self.published.take(&changes, changed.iter().cloned());
        for gone in changes.gone {
            if let Some(known) = self.all.remove(&gone) {
                self.by_name.remove(&(known.owner.clone(), known.name.clone()));
            }
        }
        let mut reworded: Vec<CapabilityId> = Vec::new();
        for known in changed {
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
            self.most = IndexSegment::build(self.all.values());
            self.recent = IndexSegment::default();
        } else {
            self.recent = IndexSegment::build(recent.iter().filter_map(|id| self.all.get(id)));
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All capabilities.
    pub(in crate::knowledge) fn all(&self) -> Vec<Arc<IndexedCapability>> {
        self.all.values().cloned().collect()
    }

    /// The most used one that works and calls that tool.
    pub(super) fn that_uses(&self, principal: &Principal, tool: &str) -> Option<Arc<IndexedCapability>> {
        let uses = |known: &&Arc<IndexedCapability>| {
            known.owner == *principal
                && known.state == CapabilityState::Active
                && known.is_current()
                && known.tools.iter().any(|used| used.id == tool)
        };
        self.all.values().filter(uses).max_by_key(|known| (known.statistics.usage_count, &known.id)).cloned()
    }

    /// The capability with that id: one of the principal, or one that another published.
    pub(super) fn get(&self, principal: &Principal, id: &CapabilityId) -> Option<&Arc<IndexedCapability>> {
        let own = self.all.get(id).filter(|known| known.owner == *principal);
        own.or_else(|| self.published.get(principal, id))
    }

    /// The capability with that name or id. The names of the principal's own come before those that others published.
    pub(super) fn named(&self, principal: &Principal, name: &str) -> Option<Arc<IndexedCapability>> {
        if let Ok(id) = CapabilityId::parse(name) {
            return self.get(principal, &id).cloned();
        }
        match self.by_name.get(&(principal.clone(), name.to_owned())) {
            Some(id) => self.get(principal, id).cloned(),
            None => self.published.named(principal, name).cloned(),
        }
    }

    /// What a name stands for in a program of `owner` that `principal` runs.
    pub(super) fn named_within(
        &self,
        principal: &Principal,
        owner: &Principal,
        name: &str,
    ) -> Option<Arc<IndexedCapability>> {
        match owner == principal {
            true => self.named(principal, name),
            false => self.published.named_by(principal, owner, name).cloned(),
        }
    }

    /// Those that others published and that the principal's own do not hide: by their name, or because they are the
    /// same procedure.
    fn published_for(&self, principal: &Principal) -> Vec<&Arc<IndexedCapability>> {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut visible = self.published.visible_to(principal);
        visible.retain(|known| {
            let own = CapabilityId::of(principal, &known.identity);
            let is_own = self.all.get(&own).is_some_and(|own| own.state == CapabilityState::Active);
            !is_own
                && self.named(principal, &known.name).is_some_and(|named| named.id == known.id)
                && seen.insert(&known.identity)
        });
        visible
    }

    /// The capabilities that a program of `owner` may name if `principal` runs it: those that `source` mentions, and the
    /// names of the others that work.
    pub(super) fn mentioned(
        &self,
        principal: &Principal,
        owner: &Principal,
        source: &str,
    ) -> (Vec<Arc<IndexedCapability>>, Vec<String>) {
        let (mut mentioned, mut others) = (Vec::new(), Vec::new());
        let is_own = owner == principal;
        let own = self.all.values().filter(|known| is_own && known.owner == *principal);
        let published = self.published.visible_to(principal).into_iter().filter(|known| match is_own {
            true => self.named(principal, &known.name).is_some_and(|named| named.id == known.id),
            false => known.owner == *owner,
        });
        for known in own.chain(published) {
            if source.contains(&known.name) {
                mentioned.push(Arc::clone(known));
            } else if known.state == CapabilityState::Active && known.is_current() {
                others.push(known.name.clone());
            }
        }
        (mentioned, others)
    }

    /// The candidates for `intent`, best first.
    pub(super) fn find(
        &self,
        principal: &Principal,
        request: &CapabilityRequest<'_>,
        meanings: Option<&ServedIntentVectors>,
    ) -> Vec<CapabilityCandidate> {
        let mut found: HashMap<&CapabilityId, f64> = HashMap::new();
        let (intent, text) = (request.intent, request.wanted.text.as_str());
        let mut by_words: Vec<(&CapabilityId, f64)> =
            self.most.best(text).chain(self.recent.best(text)).collect();
        if text != intent {
            // Capabilities learned in the same language are found by the untranslated words.
            by_words.extend(self.most.best(intent).chain(self.recent.best(intent)));
        }
        for (id, score) in by_words {
            let best = found.entry(id).or_default();
            *best = best.max(score);
        }
        let mut near = meanings.map(|meanings| meanings.own.near(request)).unwrap_or_default();
        for id in near.keys() {
            found.entry(id).or_default();
        }
        let usable = |known: &&Arc<IndexedCapability>| {
            known.owner == *principal && known.state == CapabilityState::Active && known.is_current()
        };
        let mut known: Vec<(&Arc<IndexedCapability>, f64)> = found
            .into_iter()
            .filter_map(|(id, score)| Some((self.all.get(id).filter(usable)?, score)))
            .collect();
        let published = self.published_for(principal);
        if !published.is_empty() {
            // An id of the principal's own is never one of another's, so the two maps do not meet.
            near.retain(|id, _| self.all.get(id).is_some_and(|known| known.owner == *principal));
            near.extend(meanings.map(|meanings| meanings.published.near(request)).unwrap_or_default());
            let mut by_words: HashMap<&CapabilityId, f64> = HashMap::new();
            for (id, score) in self.published.words.best(text).chain(self.published.words.best(intent)) {
                let best = by_words.entry(id).or_default();
                *best = best.max(score);
            }
            let active = published.into_iter().filter(|known| known.state == CapabilityState::Active);
            known.extend(active.filter_map(|known| {
                let score = by_words.get(&known.id).copied();
                let score = score.or_else(|| near.contains_key(&known.id).then_some(0.0))?;
                Some((known, score))
            }));
        }
        let asked = reuse::ReadIntent::new(intent);
        let mut candidates: Vec<CapabilityCandidate> = known
            .into_iter()
            .map(|(known, score)| candidate(known, &asked, score, near.get(&known.id)))
            .collect();
        candidates.retain(|candidate| candidate.score >= LEAST);
        candidates.sort_by(|one, other| {
            other.score.total_cmp(&one.score).then_with(|| one.capability.id.cmp(&other.capability.id))
        });
        candidates
    }
}

/// The value of a similarity between intents. Much of what two unlike intents share is the name of a file or two, so a
/// low similarity counts for less than proportional.
fn worth(similarity: f64) -> f64 {
    if similarity >= reuse::SURE { similarity } else { similarity * similarity }
}

/// Orders equally likely capabilities by how well they fit the intents they served and their tools.
pub(in crate::knowledge) fn order_by_fit(
    found: &mut [CapabilityCandidate],
    fits: &HashMap<&CapabilityId, f32>,
) {
    for candidate in found.iter_mut() {
        let fit = fits.get(&candidate.capability.id).copied().unwrap_or_default();
        candidate.score =
            (candidate.score + FIT * f64::from(fit / MOST_FIT).clamp(-1.0, 1.0)).clamp(0.0, 1.0);
    }
    found.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| one.capability.id.cmp(&other.capability.id))
    });
}

fn candidate(
    known: &Arc<IndexedCapability>,
    asked: &reuse::ReadIntent,
    words: f64,
    near: Option<&f64>,
) -> CapabilityCandidate {
    let best = known.intents.most_similar(asked);
    let similarity = best.as_ref().map_or(0.0, |(similarity, _)| *similarity);
    CapabilityCandidate {
        capability: Arc::clone(known),
        similarity,
        similar_intent: best.map(|(_, served)| served.to_owned()),
        score: worth(similarity).max(WORDS * words).max(near.copied().unwrap_or_default())
            * known.reliability(),
    }
}
