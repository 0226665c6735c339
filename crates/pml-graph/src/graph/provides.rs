//! Which tools can feed which others, by their schemas alone.
//!
//! Fields are filed under their keys (`names`), so a tool meets only those it shares a key with. Of all
//! it could feed, each tool keeps the few it fits best: a key that half the catalogue has counts little.
//! What is kept is a function of the tools there are, whatever the order they came in: replacing one
//! looks at the tools it shares keys with and at no others.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use super::fields::{Kind, Tool};
use super::link::coverage;
pub use super::link::{Coverage, Link, Mapping};
use super::names::{self, How, Key, MIN_STRENGTH};

/// How many tools one tool is said to feed, at most, where all that it feeds is walked through.
pub const MOST_OUTGOING: usize = 20;
/// How many tools that could feed a tool are known of it, whatever else they feed better.
pub const MOST_INCOMING: usize = 5;
/// How many are kept, so that a tool that goes does not make all its feeders choose anew.
const KEPT: usize = 2 * MOST_OUTGOING;
/// What covering an optional parameter is worth, against a required one.
const OPTIONAL: f32 = 0.25;
/// How much each doubling of the number of tools that have a field takes from its weight.
const COMMON: f32 = 0.3;

/// Every tool's fields, and who feeds whom.
#[derive(Debug, Default)]
pub struct Provides {
    tools: Vec<Option<Entry>>,
    slot_of: HashMap<String, u32>,
    free: Vec<u32>,
    key_of: HashMap<String, u32>,
    keys: Vec<Filed>,
}

#[derive(Debug)]
struct Entry {
    tool: Tool,
    inputs: Vec<Vec<(u32, f32)>>,
    outputs: Vec<Vec<(u32, f32)>>,
    /// The best it feeds, best first, with a reserve for those that go.
    feeds: Vec<Fed>,
    /// Whether these are all it feeds.
    complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Fed {
    tool: u32,
    weight: f32,
}

/// Who has fields under one key.
#[derive(Debug, Default)]
struct Filed {
    inputs: Vec<Posting>,
    outputs: Vec<Posting>,
    takers: u32,
    givers: u32,
}

#[derive(Debug, Clone, Copy)]
struct Posting {
    tool: u32,
    field: u32,
    strength: f32,
    kind: Kind,
}

/// A parameter of some tool that could be given, and how well.
struct Hit {
    tool: u32,
    input: u32,
    weight: f32,
}

impl Filed {
    /// Tools have it in doublings: the step changes seldom, and with it the weights of others.
    fn step(&self) -> u32 {
        self.takers.max(self.givers).max(1).ilog2()
    }

    fn rarity(&self) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "at most 31")]
        let step = self.step() as f32;
        1.0 / (1.0 + COMMON * step)
    }
}

impl Provides {
    /// Files all of `tools`; the last of those with one id counts.
    pub fn build(tools: impl IntoIterator<Item = Tool>) -> Provides {
        let mut all = Provides::default();
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

    /// Puts `tool` in, in place of the one that had its id. Gives the tools that may feed others now than
    /// before, itself among them.
    pub fn replace(&mut self, tool: Tool) -> Vec<String> {
        let id = tool.id.clone();
        self.exchange(&id, Some(tool))
    }

    /// Takes the tool out. Gives the tools that may feed others now than before.
    pub fn remove(&mut self, id: &str) -> Vec<String> {
        self.exchange(id, None)
    }

    /// Puts `new`, if any, in place of the tool `id`, if any.
    fn exchange(&mut self, id: &str, new: Option<Tool>) -> Vec<String> {
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

    /// Takes what was in `slot` off the lists of its feeders.
    fn forget(&mut self, slot: u32, feeders: &[u32]) {
        for giver in feeders {
            let entry = self.entry_mut(*giver);
            entry.feeds.retain(|fed| fed.tool != slot);
            // Those left out may belong there now.
            if entry.feeds.len() < MOST_OUTGOING && !entry.complete {
                self.choose(*giver);
            }
        }
    }

    /// The tools there are, in no order that means anything.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().flatten().map(|entry| &entry.tool)
    }

    /// The tool of this id.
    pub fn tool(&self, id: &str) -> Option<&Tool> {
        self.slot_of.get(id).map(|slot| &self.entry(*slot).tool)
    }

    /// What the tool can feed, best first.
    pub fn outgoing(&self, id: &str) -> Vec<Link> {
        let Some(slot) = self.slot_of.get(id).copied() else { return Vec::new() };
        self.best(slot).iter().filter_map(|fed| self.link_of(slot, fed.tool)).collect()
    }

    /// What the tool can feed and how well, best first, without the mapping.
    pub fn targets(&self, id: &str) -> impl Iterator<Item = (&str, f32)> {
        let slot = self.slot_of.get(id).copied();
        let feeds = slot.map_or(&[][..], |slot| self.best(slot));
        feeds.iter().map(|fed| (self.entry(fed.tool).tool.id.as_str(), fed.weight))
    }

    /// The tools that could feed this one best, whether or not it is among the best that they feed: the best of each server
    /// first, because the tools of one server often give the same (all of `http` give `url` and `body`) and would leave no
    /// room for any other.
    pub fn sources(&self, id: &str) -> Vec<&str> {
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

    /// How `from` could feed `to`, whether or not it is among the best.
    pub fn link(&self, from: &str, to: &str) -> Option<Link> {
        self.link_of(*self.slot_of.get(from)?, *self.slot_of.get(to)?)
    }

    fn best(&self, slot: u32) -> &[Fed] {
        let feeds = &self.entry(slot).feeds;
        &feeds[..feeds.len().min(MOST_OUTGOING)]
    }

    fn entry(&self, slot: u32) -> &Entry {
        self.tools[slot as usize].as_ref().expect("slots are taken from lists that `unfile` clears")
    }

    fn entry_mut(&mut self, slot: u32) -> &mut Entry {
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
            self.keys.push(Filed::default());
        }
        key
    }

    fn file(&mut self, tool: Tool) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.tools.push(None);
            u32::try_from(self.tools.len() - 1).expect("fewer tools than memory has bytes")
        });
        let inputs: Vec<Vec<Key>> = tool.inputs.iter().map(|input| names::input_keys(&tool, input)).collect();
        let outputs: Vec<Vec<Key>> =
            tool.outputs.iter().map(|output| names::output_keys(&tool, output)).collect();
        let inputs = self.intern(inputs);
        let outputs = self.intern(outputs);
        for (fields, kinds, side) in [
            (&inputs, tool.inputs.iter().map(|input| input.kind).collect::<Vec<_>>(), Side::Input),
            (&outputs, tool.outputs.iter().map(|output| output.kind).collect(), Side::Output),
        ] {
            let mut seen = BTreeSet::new();
            for ((field, keys), kind) in (0..).zip(fields).zip(kinds) {
                for (key, strength) in keys {
                    let filed = &mut self.keys[*key as usize];
                    filed.on(side).push(Posting { tool: slot, field, strength: *strength, kind });
                    if seen.insert(*key) {
                        *filed.count(side) += 1;
                    }
                }
            }
        }
        self.slot_of.insert(tool.id.clone(), slot);
        self.tools[slot as usize] = Some(Entry { tool, inputs, outputs, feeds: Vec::new(), complete: true });
        slot
    }

    fn intern(&mut self, fields: Vec<Vec<Key>>) -> Vec<Vec<(u32, f32)>> {
        let one = |all: &mut Provides, key: Key| (all.key(key.text), key.strength);
        fields.into_iter().map(|keys| keys.into_iter().map(|key| one(self, key)).collect()).collect()
    }

    fn unfile(&mut self, slot: u32) {
        let Some(entry) = self.tools[slot as usize].take() else { return };
        for (fields, side) in [(&entry.inputs, Side::Input), (&entry.outputs, Side::Output)] {
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

    /// Chooses anew what the tool feeds.
    fn choose(&mut self, slot: u32) {
        let mut hits = Vec::new();
        let entry = self.entry(slot);
        for (output, keys) in entry.tool.outputs.iter().zip(&entry.outputs) {
            for (key, strength) in keys {
                let filed = &self.keys[*key as usize];
                let rarity = filed.rarity();
                for taker in filed.inputs.iter().filter(|taker| taker.tool != slot) {
                    let fit = strength * taker.strength * output.kind.serves(taker.kind);
                    if fit >= MIN_STRENGTH {
                        hits.push(Hit { tool: taker.tool, input: taker.field, weight: fit * rarity });
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

    /// The tools that could feed this one, each with what that is worth.
    fn givers(&self, slot: u32) -> Vec<Fed> {
        let mut hits = Vec::new();
        let entry = self.entry(slot);
        for ((input, field), keys) in (0..).zip(&entry.tool.inputs).zip(&entry.inputs) {
            for (key, strength) in keys {
                let filed = &self.keys[*key as usize];
                let rarity = filed.rarity();
                for giver in filed.outputs.iter().filter(|giver| giver.tool != slot) {
                    let fit = giver.strength * strength * giver.kind.serves(field.kind);
                    if fit >= MIN_STRENGTH {
                        hits.push(Hit { tool: giver.tool, input, weight: fit * rarity });
                    }
                }
            }
        }
        weigh(hits, |_| &entry.tool)
    }

    /// Puts the tool into the lists of those that feed it, where it is good enough; gives those.
    fn offer(&mut self, slot: u32) -> Vec<u32> {
        let mut touched = Vec::new();
        for giver in self.givers(slot) {
            let fed = Fed { tool: slot, weight: giver.weight };
            let entry = self.entry(giver.tool);
            let beyond = entry.feeds.last().is_some_and(|last| giver.weight < last.weight);
            if beyond && !entry.complete {
                continue;
            }
            // The list may have been chosen anew with this tool in it.
            self.entry_mut(giver.tool).feeds.retain(|other| other.tool != slot);
            let feeds = &self.entry(giver.tool).feeds;
            let at = feeds.partition_point(|other| self.better(other, &fed) == Ordering::Less);
            if at < MOST_OUTGOING {
                touched.push(giver.tool);
            }
            let giver = self.entry_mut(giver.tool);
            // Behind the last of a list that left some out, others may come first.
            if at < giver.feeds.len() || giver.complete {
                giver.feeds.insert(at, fed);
                giver.complete &= giver.feeds.len() <= KEPT;
                giver.feeds.truncate(KEPT);
            }
        }
        touched
    }

    /// The heavier first; the id decides between equals, so that order of arrival does not.
    fn better(&self, a: &Fed, b: &Fed) -> Ordering {
        let id = |fed: &Fed| self.entry(fed.tool).tool.id.as_str();
        b.weight.total_cmp(&a.weight).then_with(|| id(a).cmp(id(b)))
    }

    /// Who feeds the tool, as the lists say.
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

    /// Chooses anew for those who have a key that became more common or rarer than `before` says;
    /// gives those.
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

    fn link_of(&self, from: u32, to: u32) -> Option<Link> {
        let (giver, taker) = (self.entry(from), self.entry(to));
        let best = |input: usize| {
            let fits = giver.outputs.iter().enumerate().filter_map(|(output, keys)| {
                let kinds = giver.tool.outputs[output].kind.serves(taker.tool.inputs[input].kind);
                let (weight, key) = self.fit(keys, &taker.inputs[input], kinds)?;
                Some((weight, output, key))
            });
            // The first of equals: fields near the surface come before those inside.
            fits.reduce(|best, next| if next.0 > best.0 { next } else { best })
        };
        let mut mapping = Vec::new();
        let mut hits = Vec::new();
        for input in 0..taker.tool.inputs.len() {
            let Some((weight, output, key)) = best(input) else { continue };
            let at = u32::try_from(input).expect("fields are limited");
            hits.push(Hit { tool: to, input: at, weight });
            mapping.push(Mapping {
                from: giver.tool.outputs[output].path.clone(),
                to: taker.tool.inputs[input].name.clone(),
                how: self.how(giver, output, taker, input, key),
                weight,
            });
        }
        Some(Link {
            from: giver.tool.id.clone(),
            to: taker.tool.id.clone(),
            coverage: coverage(&taker.tool, &mapping)?,
            weight: weight(&taker.tool, &hits),
            mapping,
        })
    }

    /// How well two fields fit and by which key, the best of those they share.
    fn fit(&self, output: &[(u32, f32)], input: &[(u32, f32)], kinds: f32) -> Option<(f32, u32)> {
        let shared = output.iter().filter_map(|(key, given)| {
            let (_, wanted) = input.iter().find(|(other, _)| other == key)?;
            let fit = given * wanted * kinds;
            (fit >= MIN_STRENGTH).then(|| (fit * self.keys[*key as usize].rarity(), *key))
        });
        shared.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The weaker of the ways in which both sides have the key.
    fn how(&self, giver: &Entry, output: usize, taker: &Entry, input: usize, key: u32) -> How {
        let given = names::output_keys(&giver.tool, &giver.tool.outputs[output]);
        let wanted = names::input_keys(&taker.tool, &taker.tool.inputs[input]);
        let of = |keys: Vec<Key>| {
            keys.into_iter().find(|other| self.key_of.get(&other.text) == Some(&key)).map(|found| found.how)
        };
        of(given).max(of(wanted)).unwrap_or(How::Kind)
    }
}

/// The server of a tool; one without is its own.
fn server_of(id: &str) -> &str {
    id.split_once(':').map_or(id, |(server, _)| server)
}

/// The keys of every field of `tool`.
fn key_texts(tool: &Tool) -> impl Iterator<Item = String> {
    let inputs = tool.inputs.iter().flat_map(|input| names::input_keys(tool, input));
    let outputs = tool.outputs.iter().flat_map(|output| names::output_keys(tool, output));
    inputs.chain(outputs).map(|key| key.text)
}

/// The weight of each pair, from its hits; `taker` says whose parameters they are.
fn weigh<'a>(mut hits: Vec<Hit>, taker: impl Fn(u32) -> &'a Tool) -> Vec<Fed> {
    hits.sort_unstable_by(|a, b| {
        (a.tool, a.input).cmp(&(b.tool, b.input)).then_with(|| b.weight.total_cmp(&a.weight))
    });
    hits.dedup_by_key(|hit| (hit.tool, hit.input));
    let pair = |hits: &[Hit]| Fed { tool: hits[0].tool, weight: weight(taker(hits[0].tool), hits) };
    hits.chunk_by(|a, b| a.tool == b.tool).map(pair).collect()
}

#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

impl Filed {
    fn on(&mut self, side: Side) -> &mut Vec<Posting> {
        match side {
            Side::Input => &mut self.inputs,
            Side::Output => &mut self.outputs,
        }
    }

    fn count(&mut self, side: Side) -> &mut u32 {
        match side {
            Side::Input => &mut self.takers,
            Side::Output => &mut self.givers,
        }
    }
}

/// What covering these parameters of `taker` is worth: required ones first, each as a share of them all.
#[expect(clippy::cast_precision_loss, reason = "numbers of fields are limited")]
fn weight(taker: &Tool, hits: &[Hit]) -> f32 {
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
