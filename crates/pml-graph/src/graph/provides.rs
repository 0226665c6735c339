//! Which tools can feed which others, by their schemas alone.
//!
//! Fields are indexed by their keys (`names`), so a tool is compared only with those it shares a key with. Each tool
//! keeps the few best tools it could feed; a key that half the catalogue has counts little. The result depends only on
//! the set of tools, not on the order of insertion. Replacing one tool touches only the tools that share keys with it.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use super::fields::{FieldKind, ToolFields};
use super::link::coverage;
pub use super::link::{FieldMapping, InputCoverage, ToolLink};
use super::names::{self, MIN_STRENGTH, MatchBasis, NameKey};

/// Maximum number of tools that one tool is listed to feed when all edges are traversed.
pub const MOST_OUTGOING: usize = 20;
/// Number of best sources known for each tool, whatever else those feed better.
pub const MOST_INCOMING: usize = 5;
/// Number of candidates stored, so that removing a tool does not force all its feeders to recompute.
const KEPT: usize = 2 * MOST_OUTGOING;
/// Weight of covering an optional parameter, relative to a required one.
const OPTIONAL: f32 = 0.25;
/// Weight that a field loses with each doubling of the number of tools that have it.
const COMMON: f32 = 0.3;

/// Fields of all tools, and which tool feeds which.
#[derive(Debug, Default)]
pub struct ProvidesIndex {
    tools: Vec<Option<ProvidesEntry>>,
    slot_of: HashMap<String, u32>,
    free: Vec<u32>,
    key_of: HashMap<String, u32>,
    keys: Vec<KeyPostings>,
}

#[derive(Debug)]
struct ProvidesEntry {
    tool: ToolFields,
    inputs: Vec<Vec<(u32, f32)>>,
    outputs: Vec<Vec<(u32, f32)>>,
    /// The best tools it feeds, best first, with a reserve for removals.
    feeds: Vec<FedTool>,
    /// Whether the list is everything it feeds.
    complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct FedTool {
    tool: u32,
    weight: f32,
}

/// Tools with fields under one key.
#[derive(Debug, Default)]
struct KeyPostings {
    inputs: Vec<FieldPosting>,
    outputs: Vec<FieldPosting>,
    takers: u32,
    givers: u32,
}

#[derive(Debug, Clone, Copy)]
struct FieldPosting {
    tool: u32,
    field: u32,
    strength: f32,
    kind: FieldKind,
}

/// A parameter of some tool that could be filled, and how well.
struct ParameterHit {
    tool: u32,
    input: u32,
    weight: f32,
}

impl KeyPostings {
    /// Logarithm of the number of tools with the key. It changes seldom, and with it the weights of other tools.
    fn step(&self) -> u32 {
        self.takers.max(self.givers).max(1).ilog2()
    }

    fn rarity(&self) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "at most 31")]
        let step = self.step() as f32;
        1.0 / (1.0 + COMMON * step)
    }
}

impl ProvidesIndex {
    /// Indexes `tools`; the last of several with the same id wins.
    pub fn build(tools: impl IntoIterator<Item = ToolFields>) -> ProvidesIndex {
        let mut all = ProvidesIndex::default();
        for tool in tools {
            if let Some(slot) = all.slot_of.get(&tool.id).copied() {
                all.unfile(slot);
            }
            all.file(tool);
        }
        for slot in all.slots() {
            all.choose(slot);
        }
        all
    }

    /// Inserts `tool`, replacing the one with its id. Returns the tools whose targets may have changed, including
    /// itself.
    pub fn replace_tool(&mut self, tool: ToolFields) -> Vec<String> {
        let id = tool.id.clone();
        self.exchange(&id, Some(tool))
    }

    /// Removes the tool. Returns the tools whose targets may have changed.
    pub fn remove_tool(&mut self, id: &str) -> Vec<String> {
        self.exchange(id, None)
    }

    /// Replaces the tool `id`, if present, by `new`, if given.
    fn exchange(&mut self, id: &str, new: Option<ToolFields>) -> Vec<String> {
        let old = self.slot_of.get(id).copied();
        let mut keys = old.map(|slot| self.keys_of(slot)).unwrap_or_default();
        keys.extend(new.iter().flat_map(key_texts).map(|text| self.key(text)).collect::<Vec<_>>());
        let steps: Vec<(u32, u32)> = keys.into_iter().map(|key| (key, self.step(key))).collect();
        let feeders = old.map(|slot| (slot, self.feeders(slot)));
        if let Some(slot) = old {
            self.unfile(slot);
        }
        let new = new.map(|tool| self.file(tool));
        let mut touched: BTreeSet<u32> = new.into_iter().collect();
        if let Some((slot, feeders)) = feeders {
            self.forget(slot, &feeders);
            touched.extend(feeders);
        }
        if let Some(slot) = new {
            self.choose(slot);
            touched.extend(self.offer(slot));
        }
        touched.extend(self.reconsider(&steps));
        touched.into_iter().map(|slot| self.entry(slot).tool.id.clone()).collect()
    }

    /// Removes the tool of `slot` from the lists of its feeders.
    fn forget(&mut self, slot: u32, feeders: &[u32]) {
        for giver in feeders {
            let entry = self.entry_mut(*giver);
            entry.feeds.retain(|fed| fed.tool != slot);
            // Candidates that were left out may belong in the list now.
            if entry.feeds.len() < MOST_OUTGOING && !entry.complete {
                self.choose(*giver);
            }
        }
    }

    /// All tools, in no particular order.
    pub fn tools(&self) -> impl Iterator<Item = &ToolFields> {
        self.tools.iter().flatten().map(|entry| &entry.tool)
    }

    /// The tool with this id.
    pub fn tool(&self, id: &str) -> Option<&ToolFields> {
        self.slot_of.get(id).map(|slot| &self.entry(*slot).tool)
    }

    /// Links to the tools that this one can feed, best first.
    pub fn links_from(&self, id: &str) -> Vec<ToolLink> {
        let Some(slot) = self.slot_of.get(id).copied() else { return Vec::new() };
        self.best(slot).iter().filter_map(|fed| self.link_of(slot, fed.tool)).collect()
    }

    /// Tools that this one can feed, with weights, best first, without the field mappings.
    pub fn fed_tools(&self, id: &str) -> impl Iterator<Item = (&str, f32)> {
        let slot = self.slot_of.get(id).copied();
        let feeds = slot.map_or(&[][..], |slot| self.best(slot));
        feeds.iter().map(|fed| (self.entry(fed.tool).tool.id.as_str(), fed.weight))
    }

    /// The best sources of this tool, whether or not it is among their best targets. The best of each server comes
    /// first, because the tools of one server often give the same fields (all of `http` give `url` and `body`) and
    /// would leave no room for any other.
    pub fn best_sources(&self, id: &str) -> Vec<&str> {
        let Some(slot) = self.slot_of.get(id).copied() else { return Vec::new() };
        let mut givers = self.givers(slot);
        givers.sort_by(|a, b| self.better(a, b));
        let mut servers = BTreeSet::new();
        let ids = givers.into_iter().map(|giver| self.entry(giver.tool).tool.id.as_str());
        let (mut sources, others): (Vec<&str>, Vec<&str>) = ids.partition(|id| servers.insert(server_of(id)));
        sources.extend(others);
        sources.truncate(MOST_INCOMING);
        sources
    }

    /// Link from `from` to `to`, whether or not it is among the best; `None` when no field fits.
    pub fn link_between(&self, from: &str, to: &str) -> Option<ToolLink> {
        self.link_of(*self.slot_of.get(from)?, *self.slot_of.get(to)?)
    }

    fn best(&self, slot: u32) -> &[FedTool] {
        let feeds = &self.entry(slot).feeds;
        &feeds[..feeds.len().min(MOST_OUTGOING)]
    }

    fn entry(&self, slot: u32) -> &ProvidesEntry {
        self.tools[slot as usize].as_ref().expect("slots are taken from lists that `unfile` clears")
    }

    fn entry_mut(&mut self, slot: u32) -> &mut ProvidesEntry {
        self.tools[slot as usize].as_mut().expect("slots are taken from lists that `unfile` clears")
    }

    fn slots(&self) -> Vec<u32> {
        let mut slots: Vec<u32> = self.slot_of.values().copied().collect();
        slots.sort_unstable();
        slots
    }

    fn step(&self, key: u32) -> u32 {
        self.keys[key as usize].step()
    }

    fn keys_of(&self, slot: u32) -> BTreeSet<u32> {
        let entry = self.entry(slot);
        entry.inputs.iter().chain(&entry.outputs).flatten().map(|(key, _)| *key).collect()
    }

    fn key(&mut self, text: String) -> u32 {
        let next = u32::try_from(self.keys.len()).expect("fewer keys than memory has bytes");
        let key = *self.key_of.entry(text).or_insert(next);
        if key == next {
            self.keys.push(KeyPostings::default());
        }
        key
    }

    fn file(&mut self, tool: ToolFields) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.tools.push(None);
            u32::try_from(self.tools.len() - 1).expect("fewer tools than memory has bytes")
        });
        let inputs: Vec<Vec<NameKey>> =
            tool.inputs.iter().map(|input| names::input_keys(&tool, input)).collect();
        let outputs: Vec<Vec<NameKey>> =
            tool.outputs.iter().map(|output| names::output_keys(&tool, output)).collect();
        let inputs = self.intern(inputs);
        let outputs = self.intern(outputs);
        for (fields, kinds, side) in [
            (&inputs, tool.inputs.iter().map(|input| input.kind).collect::<Vec<_>>(), FieldSide::Input),
            (&outputs, tool.outputs.iter().map(|output| output.kind).collect(), FieldSide::Output),
        ] {
            let mut seen = BTreeSet::new();
            for ((field, keys), kind) in (0..).zip(fields).zip(kinds) {
                for (key, strength) in keys {
                    let filed = &mut self.keys[*key as usize];
                    filed.on(side).push(FieldPosting { tool: slot, field, strength: *strength, kind });
                    if seen.insert(*key) {
                        *filed.count(side) += 1;
                    }
                }
            }
        }
        self.slot_of.insert(tool.id.clone(), slot);
        self.tools[slot as usize] =
            Some(ProvidesEntry { tool, inputs, outputs, feeds: Vec::new(), complete: true });
        slot
    }

    fn intern(&mut self, fields: Vec<Vec<NameKey>>) -> Vec<Vec<(u32, f32)>> {
        let one = |all: &mut ProvidesIndex, key: NameKey| (all.key(key.text), key.strength);
        fields.into_iter().map(|keys| keys.into_iter().map(|key| one(self, key)).collect()).collect()
    }

    fn unfile(&mut self, slot: u32) {
        let Some(entry) = self.tools[slot as usize].take() else { return };
        for (fields, side) in [(&entry.inputs, FieldSide::Input), (&entry.outputs, FieldSide::Output)] {
            let keys: BTreeSet<u32> = fields.iter().flatten().map(|(key, _)| *key).collect();
            for key in keys {
                let filed = &mut self.keys[key as usize];
                filed.on(side).retain(|posting| posting.tool != slot);
                *filed.count(side) -= 1;
            }
        }
        self.slot_of.remove(&entry.tool.id);
        self.free.push(slot);
    }

    /// Recomputes the targets of a tool.
    fn choose(&mut self, slot: u32) {
        let mut hits = Vec::new();
        let entry = self.entry(slot);
        for (output, keys) in entry.tool.outputs.iter().zip(&entry.outputs) {
            for (key, strength) in keys {
                let filed = &self.keys[*key as usize];
                let rarity = filed.rarity();
                for taker in filed.inputs.iter().filter(|taker| taker.tool != slot) {
                    let fit = strength * taker.strength * output.kind.compatibility(taker.kind);
                    if fit >= MIN_STRENGTH {
                        hits.push(ParameterHit {
                            tool: taker.tool,
                            input: taker.field,
                            weight: fit * rarity,
                        });
                    }
                }
            }
        }
        let mut feeds = weigh(hits, |taker| &self.entry(taker).tool);
        feeds.sort_by(|a, b| self.better(a, b));
        let entry = self.entry_mut(slot);
        entry.complete = feeds.len() <= KEPT;
        feeds.truncate(KEPT);
        entry.feeds = feeds;
    }

    /// Tools that could feed this one, with weights.
    fn givers(&self, slot: u32) -> Vec<FedTool> {
        let mut hits = Vec::new();
        let entry = self.entry(slot);
        for ((input, field), keys) in (0..).zip(&entry.tool.inputs).zip(&entry.inputs) {
            for (key, strength) in keys {
                let filed = &self.keys[*key as usize];
                let rarity = filed.rarity();
                for giver in filed.outputs.iter().filter(|giver| giver.tool != slot) {
                    let fit = giver.strength * strength * giver.kind.compatibility(field.kind);
                    if fit >= MIN_STRENGTH {
                        hits.push(ParameterHit { tool: giver.tool, input, weight: fit * rarity });
                    }
                }
            }
        }
        weigh(hits, |_| &entry.tool)
    }

    /// Inserts the tool into the lists of its feeders where it is good enough. Returns these feeders.
    fn offer(&mut self, slot: u32) -> Vec<u32> {
        let mut touched = Vec::new();
        for giver in self.givers(slot) {
            let fed = FedTool { tool: slot, weight: giver.weight };
            let entry = self.entry(giver.tool);
            let beyond = entry.feeds.last().is_some_and(|last| giver.weight < last.weight);
            if beyond && !entry.complete {
                continue;
            }
            // The list may have been recomputed with this tool in it.
            self.entry_mut(giver.tool).feeds.retain(|other| other.tool != slot);
            let feeds = &self.entry(giver.tool).feeds;
            let at = feeds.partition_point(|other| self.better(other, &fed) == Ordering::Less);
            if at < MOST_OUTGOING {
                touched.push(giver.tool);
            }
            let giver = self.entry_mut(giver.tool);
            // Behind the end of an incomplete list, an omitted tool might be better.
            if at < giver.feeds.len() || giver.complete {
                giver.feeds.insert(at, fed);
                giver.complete &= giver.feeds.len() <= KEPT;
                giver.feeds.truncate(KEPT);
            }
        }
        touched
    }

    /// Order by weight, heaviest first. Ties are broken by id, so that insertion order does not matter.
    fn better(&self, a: &FedTool, b: &FedTool) -> Ordering {
        let id = |fed: &FedTool| self.entry(fed.tool).tool.id.as_str();
        b.weight.total_cmp(&a.weight).then_with(|| id(a).cmp(id(b)))
    }

    /// Feeders of the tool, from their lists.
    fn feeders(&self, slot: u32) -> Vec<u32> {
        let entry = self.entry(slot);
        let keys: BTreeSet<u32> = entry.inputs.iter().flatten().map(|(key, _)| *key).collect();
        let postings = keys.iter().flat_map(|key| &self.keys[*key as usize].outputs);
        let mut givers: Vec<u32> = postings.map(|giver| giver.tool).collect();
        givers.sort_unstable();
        givers.dedup();
        let feeds = |giver: &u32| self.entry(*giver).feeds.iter().any(|fed| fed.tool == slot);
        givers.into_iter().filter(|giver| *giver != slot && feeds(giver)).collect()
    }

    /// Recomputes the tools with a key whose frequency step differs from `before`. Returns them.
    fn reconsider(&mut self, before: &[(u32, u32)]) -> BTreeSet<u32> {
        let changed = before.iter().filter(|(key, step)| self.step(*key) != *step);
        let givers: BTreeSet<u32> = changed
            .flat_map(|(key, _)| &self.keys[*key as usize].outputs)
            .map(|posting| posting.tool)
            .collect();
        for giver in &givers {
            self.choose(*giver);
        }
        givers
    }

    fn link_of(&self, from: u32, to: u32) -> Option<ToolLink> {
        let (giver, taker) = (self.entry(from), self.entry(to));
        let best = |input: usize| {
            let fits = giver.outputs.iter().enumerate().filter_map(|(output, keys)| {
                let kinds = giver.tool.outputs[output].kind.compatibility(taker.tool.inputs[input].kind);
                let (weight, key) = self.fit(keys, &taker.inputs[input], kinds)?;
                Some((weight, output, key))
            });
            // The first of equals wins: fields near the surface come before nested ones.
            fits.reduce(|best, next| if next.0 > best.0 { next } else { best })
        };
        let mut mapping = Vec::new();
        let mut hits = Vec::new();
        for input in 0..taker.tool.inputs.len() {
            let Some((weight, output, key)) = best(input) else { continue };
            let at = u32::try_from(input).expect("fields are limited");
            hits.push(ParameterHit { tool: to, input: at, weight });
            mapping.push(FieldMapping {
                from: giver.tool.outputs[output].path.clone(),
                to: taker.tool.inputs[input].name.clone(),
                basis: self.how(giver, output, taker, input, key),
                weight,
            });
        }
        Some(ToolLink {
            from: giver.tool.id.clone(),
            to: taker.tool.id.clone(),
            coverage: coverage(&taker.tool, &mapping)?,
            weight: weight(&taker.tool, &hits),
            mapping,
        })
    }

    /// Best fit of two fields over their shared keys, and that key.
    fn fit(&self, output: &[(u32, f32)], input: &[(u32, f32)], kinds: f32) -> Option<(f32, u32)> {
        let shared = output.iter().filter_map(|(key, given)| {
            let (_, wanted) = input.iter().find(|(other, _)| other == key)?;
            let fit = given * wanted * kinds;
            (fit >= MIN_STRENGTH).then(|| (fit * self.keys[*key as usize].rarity(), *key))
        });
        shared.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The weaker of both sides' match bases for the key.
    fn how(
        &self,
        giver: &ProvidesEntry,
        output: usize,
        taker: &ProvidesEntry,
        input: usize,
        key: u32,
    ) -> MatchBasis {
        let given = names::output_keys(&giver.tool, &giver.tool.outputs[output]);
        let wanted = names::input_keys(&taker.tool, &taker.tool.inputs[input]);
        let of = |keys: Vec<NameKey>| {
            keys.into_iter().find(|other| self.key_of.get(&other.text) == Some(&key)).map(|found| found.basis)
        };
        of(given).max(of(wanted)).unwrap_or(MatchBasis::Kind)
    }
}

/// Server of a tool; a tool without one is its own server.
fn server_of(id: &str) -> &str {
    id.split_once(':').map_or(id, |(server, _)| server)
}

/// Keys of all fields of `tool`.
fn key_texts(tool: &ToolFields) -> impl Iterator<Item = String> {
    let inputs = tool.inputs.iter().flat_map(|input| names::input_keys(tool, input));
    let outputs = tool.outputs.iter().flat_map(|output| names::output_keys(tool, output));
    inputs.chain(outputs).map(|key| key.text)
}

/// Weight of each pair of tools from its hits; `taker` returns the tool that owns the parameters.
fn weigh<'a>(mut hits: Vec<ParameterHit>, taker: impl Fn(u32) -> &'a ToolFields) -> Vec<FedTool> {
    hits.sort_unstable_by(|a, b| {
        (a.tool, a.input).cmp(&(b.tool, b.input)).then_with(|| b.weight.total_cmp(&a.weight))
    });
    hits.dedup_by_key(|hit| (hit.tool, hit.input));
    let pair =
        |hits: &[ParameterHit]| FedTool { tool: hits[0].tool, weight: weight(taker(hits[0].tool), hits) };
    hits.chunk_by(|a, b| a.tool == b.tool).map(pair).collect()
}

#[derive(Clone, Copy)]
enum FieldSide {
    Input,
    Output,
}

impl KeyPostings {
    fn on(&mut self, side: FieldSide) -> &mut Vec<FieldPosting> {
        match side {
            FieldSide::Input => &mut self.inputs,
            FieldSide::Output => &mut self.outputs,
        }
    }

    fn count(&mut self, side: FieldSide) -> &mut u32 {
        match side {
            FieldSide::Input => &mut self.takers,
            FieldSide::Output => &mut self.givers,
        }
    }
}

/// Weight of covering these parameters of `taker`, as a share of all; required ones count most.
#[expect(clippy::cast_precision_loss, reason = "numbers of fields are limited")]
fn weight(taker: &ToolFields, hits: &[ParameterHit]) -> f32 {
    let required = taker.inputs.iter().filter(|input| input.required).count();
    let optional = taker.inputs.len() - required;
    let (mut of_required, mut of_optional) = (0.0, 0.0);
    for hit in hits {
        if taker.inputs[hit.input as usize].required {
            of_required += hit.weight;
        } else {
            of_optional += hit.weight;
        }
    }
    let share = |sum: f32, of: usize| if of == 0 { 0.0 } else { sum / of as f32 };
    (1.0 - OPTIONAL) * share(of_required, required) + OPTIONAL * share(of_optional, optional)
}
