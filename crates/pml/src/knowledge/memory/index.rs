//! The search index of the capabilities.
//!
//! Most capabilities are in one large word index, which is rebuilt from time to time; those whose words changed since
//! are in a small one. Whether the capability of an entry still exists, and its statistics, are looked up separately.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pml_graph::vectors::VectorTable;
use pml_model::capability::CapabilityState;
use pml_model::{CapabilityId, Principal};
use pml_store::{CapabilityChanges, StoredVector};

use super::indexed::IndexedCapability;
use super::published::PublishedCapabilities;
use super::segment::{CLOSELY, IndexSegment};
use crate::knowledge::embeddings::{Embeddings, IntentReading, dequantised};
use crate::reuse;

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
/// The capacity of the small index.
const MOST_RECENT: usize = 128;

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
