//! Vectors learned from past intents: the direction of the requests that an item serves.
//!
//! Every item that has served an intent gets a learned vector beside the one of its description. An intent pulls the
//! items that served it towards itself, and pushes away those that looked as good, each by the remaining ranking error.
//! So an item that was found anyway hardly moves, requests that every item gets teach nothing, and items that often
//! serve the same intent together do not push each other away. This is logistic regression with shrinkage. The step of
//! every intent is stored, so that it can be undone and repeated when more is known.

use super::ItemSlots;
use crate::vectors::{VectorTable, dot};

/// Distance by which an intent moves an item that ranking does not find at all.
const STEP: f32 = 6.0;

/// Weight of the cosine of a description, in the scale of the learned vectors.
const DESCRIPTION: f32 = 8.0;

/// Number of rivals of an intent: the other items that it is most easily confused with.
const RIVALS: usize = 64;

/// Weight of a rival that has not served anything, relative to one that has. It has no learned vector that could be
/// pushed away, so only the pull on the serving items sets it apart. With full weight these would take over the rival's
/// own requests.
const UNTRIED: f32 = 0.1;

/// Iterations per visit of a lesson. A lesson is visited again and again, so a few are enough.
const ROUNDS: usize = 4;

/// Number of older intents that are revisited for each new one.
const REVISITED: usize = 4;

#[derive(Debug, Clone, Default)]
pub(super) struct LearnedVectors {
    intents: VectorTable,
    lessons: Vec<VectorLesson>,
    /// Slots of the serving items of all intents in one vector, because every request scans them, and the end of each
    /// intent's range.
    servers: Vec<u32>,
    server_ends: Vec<u32>,
    /// One learned vector per slot, concatenated.
    vectors: Vec<f32>,
    /// Number of intents that the item of each slot has served.
    served: Vec<u32>,
    /// Index of the lesson to revisit next.
    next: usize,
}

/// The movements that one intent caused.
#[derive(Debug, Clone)]
struct VectorLesson {
    /// First the items that served it, then their rivals.
    shares: Vec<ItemCredit>,
    served: usize,
}

#[derive(Debug, Clone)]
struct ItemCredit {
    item: u32,
    /// Cosine of the item's description, in the scale of the learned vectors.
    description: f32,
    /// Movement of the item in steps: up to 1 towards the intent, or negative away from it.
    credit: f32,
}

/// Evidence from learned vectors for one item and one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct LearnedEvidence {
    /// Number of intents the item has served.
    pub(super) trace_count: u32,
    /// Score by the learned vector.
    pub(super) pull: f32,
    /// Cosine of the nearest of these intents.
    pub(super) nearest_cosine: f32,
}

impl LearnedVectors {
    /// Whether `vector` has the right length to be learned or compared.
    pub(super) fn accepts_vector(&self, vector: &[f32]) -> bool {
        self.intents.accepts_vector(vector)
    }

    /// Learns that the items in `served` served the intent with this vector, which [`LearnedVectors::accepts_vector`].
    /// `likeness` has the cosine of every item's description with the intent.
    pub(super) fn learn_intent(
        &mut self,
        served: &[u32],
        slots: &ItemSlots,
        vector: &[f32],
        likeness: &[f32],
    ) {
        self.intents.push(Some(vector));
        self.served.resize(slots.len(), 0);
        self.vectors.resize(slots.len() * vector.len(), 0.0);
        let intent = self.intents.vector_of(self.lessons.len());
        let lesson = self.lesson(served, slots, &intent, likeness);
        for item in served {
            let slot = slots.of(*item).expect("an item that served was given a slot");
            self.served[slot] += 1;
            self.servers.push(slot as u32);
        }
        self.server_ends.push(self.servers.len() as u32);
        self.lessons.push(lesson);
        self.settle(self.lessons.len() - 1, slots);
        for _ in 0..REVISITED.min(self.lessons.len() - 1) {
            self.next = if self.next + 1 < self.lessons.len() { self.next } else { 0 };
            self.settle(self.next, slots);
            self.next += 1;
        }
    }

    /// The lesson of an intent: the serving items and their rivals.
    fn lesson(&self, served: &[u32], slots: &ItemSlots, intent: &[f32], likeness: &[f32]) -> VectorLesson {
        let description = |item: u32| DESCRIPTION * likeness.get(item as usize).copied().unwrap_or(0.0);
        let share = |item: u32| ItemCredit { item, description: description(item), credit: 0.0 };
        let mut rivals: Vec<(f32, u32)> =
            (0..likeness.len() as u32).map(|item| (description(item), item)).collect();
        for (slot, vector) in self.vectors.chunks_exact(intent.len()).enumerate() {
            let (item, pull) = (slots.item(slot), dot(vector, intent));
            // When cosines are unknown, an item's index is not its position in this list.
            match rivals.get_mut(item as usize).filter(|rival| rival.1 == item) {
                Some(rival) => rival.0 += pull,
                None => rivals.push((pull, item)),
            }
        }
        rivals.retain(|(_, item)| !served.contains(item));
        if rivals.len() > RIVALS {
            rivals.select_nth_unstable_by(RIVALS, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            rivals.truncate(RIVALS);
        }
        let shares =
            served.iter().copied().chain(rivals.into_iter().map(|(_, item)| item)).map(share).collect();
        VectorLesson { shares, served: served.len() }
    }

    /// Undoes the movements of a lesson and repeats them with the current vectors.
    fn settle(&mut self, at: usize, slots: &ItemSlots) {
        let intent = self.intents.vector_of(at);
        let VectorLesson { shares, served } = &mut self.lessons[at];
        let slot_of: Vec<Option<usize>> = shares.iter().map(|share| slots.of(share.item)).collect();
        let size = intent.len();
        let pulls: Vec<f32> = shares
            .iter()
            .zip(&slot_of)
            .map(|(share, slot)| match slot {
                Some(slot) => dot(&self.vectors[slot * size..][..size], &intent) - STEP * share.credit,
                None => 0.0,
            })
            .collect();
        let without: Vec<f32> = (shares.iter().zip(&pulls).zip(&slot_of))
            .map(|((share, pull), slot)| match slot {
                Some(_) => share.description + pull,
                None => share.description + UNTRIED.ln(),
            })
            .collect();
        let before = shares.iter().map(|share| share.credit).collect();
        let credits = settled(&without, *served, before, |place| slot_of[place].is_some());
        for (place, share) in shares.iter_mut().enumerate() {
            // An item that has not served anything is not pushed away: it has not had a chance yet.
            let Some(slot) = slot_of[place] else { continue };
            let step = STEP * (credits[place] - share.credit);
            share.credit = credits[place];
            let vector = &mut self.vectors[slot * size..][..size];
            vector.iter_mut().zip(&intent).for_each(|(number, towards)| *number += step * towards);
        }
    }

    /// Evidence for a request that [`LearnedVectors::accepts_vector`], per slot; `None` for a slot without lessons.
    pub(super) fn evidence_by_slot(&self, vector: &[f32], slots: &ItemSlots) -> Vec<Option<LearnedEvidence>> {
        let length = dot(vector, vector).sqrt();
        let rows = self.vectors.chunks_exact(vector.len()).zip(&self.served);
        let mut told: Vec<Option<LearnedEvidence>> = rows
            .map(|(row, &traces)| {
                (traces > 0).then(|| LearnedEvidence {
                    trace_count: traces,
                    pull: dot(row, vector) / length,
                    nearest_cosine: -1.0,
                })
            })
            .collect();
        told.resize(slots.len(), None);
        let mut start = 0;
        for (end, similarity) in
            self.server_ends.iter().zip(self.intents.similarities(vector).unwrap_or_default())
        {
            for slot in &self.servers[start..*end as usize] {
                if let Some(told) = &mut told[*slot as usize] {
                    told.nearest_cosine = told.nearest_cosine.max(similarity);
                }
            }
            start = *end as usize;
        }
        told
    }
}

/// Credits that equal the ranking error that remains after the items are moved by them. `without` are the scores before
/// any movement. Items that are not `moved` stay.
fn settled(without: &[f32], served: usize, mut credits: Vec<f32>, moved: impl Fn(usize) -> bool) -> Vec<f32> {
    for _ in 0..ROUNDS {
        let scores: Vec<f32> = (without.iter().zip(&credits).enumerate())
            .map(|(place, (score, credit))| if moved(place) { score + STEP * credit } else { *score })
            .collect();
        for (credit, wrong) in credits.iter_mut().zip(wrong_by(&scores, served)) {
            // Newton's method for each item alone: the more a credit changes the error, the smaller the step it needs.
            let slope = wrong.abs() * (1.0 - wrong.abs()).max(0.0);
            *credit += (wrong - *credit) / (1.0 + STEP * slope);
        }
    }
    credits
}

/// Ranking error of each item by `scores` when the first `served` are right: the probability each of these lacks, and
/// the probability each wrong one takes.
fn wrong_by(scores: &[f32], served: usize) -> Vec<f32> {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let chances: Vec<f32> = scores.iter().map(|score| (score - highest).exp()).collect();
    let (right, wrong) = chances.split_at(served);
    let all_wrong: f32 = wrong.iter().sum();
    let all = |chance: &f32| (chance + all_wrong).max(f32::MIN_POSITIVE);
    let taken: f32 = right.iter().map(|chance| 1.0 / all(chance)).sum();
    let lacking = right.iter().map(|chance| all_wrong / all(chance));
    lacking.chain(wrong.iter().map(|chance| -chance * taken)).map(|credit| credit / served as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::{ItemSlots, LearnedEvidence, LearnedVectors, STEP, settled, wrong_by};

    const EAST: [f32; 3] = [1.0, 0.0, 0.0];
    const NORTH: [f32; 3] = [0.0, 1.0, 0.0];

    /// Learns intents in order: the serving items, the vector, and the cosine of each description.
    fn learned(intents: &[(&[u32], [f32; 3], [f32; 3])]) -> (LearnedVectors, ItemSlots) {
        let (mut learned, mut slots) = (LearnedVectors::default(), ItemSlots::default());
        for (served, vector, likeness) in intents {
            served.iter().for_each(|item| {
                slots.take(*item);
            });
            learned.learn_intent(served, &slots, vector, likeness);
        }
        (learned, slots)
    }

    fn ask(learned: &(LearnedVectors, ItemSlots), item: u32, vector: &[f32]) -> LearnedEvidence {
        let slot = learned.1.of(item).expect("the item has served");
        learned.0.evidence_by_slot(vector, &learned.1)[slot].expect("the item has lessons")
    }

    #[test]
    fn a_rival_is_pushed_away_once_it_has_served_something() {
        let past = learned(&[(&[1], EAST, [0.6, 0.2, 0.6]), (&[0], NORTH, [0.2; 3])]);
        assert!(ask(&past, 1, &EAST).pull > 0.5);
        assert!(ask(&past, 0, &EAST).pull < -0.1);
        assert_eq!(past.1.of(2), None);
    }

    #[test]
    fn an_item_that_is_found_anyway_hardly_moves() {
        let surprising = learned(&[(&[0], EAST, [0.1, 0.8, 0.1])]);
        let obvious = learned(&[(&[0], EAST, [0.8, 0.1, 0.1])]);
        assert!(ask(&surprising, 0, &EAST).pull > 2.5);
        assert!(ask(&obvious, 0, &EAST).pull < 0.1);
    }

    #[test]
    fn a_lesson_moves_items_by_what_is_wrong_afterwards() {
        let without = [1.0, 2.0, 0.5];
        let settle = |credits| settled(&without, 1, credits, |place| place != 2);
        let credits = settle(settle(vec![0.0; 3]));
        let scores = [without[0] + STEP * credits[0], without[1] + STEP * credits[1], without[2]];
        for (credit, wrong) in credits.iter().zip(wrong_by(&scores, 1)) {
            assert!((credit - wrong).abs() < 0.01, "{credits:?}");
        }
    }

    #[test]
    fn a_rival_that_has_not_served_counts_little() {
        let likeness = [0.2, 0.6, 0.6];
        let untried = learned(&[(&[0], EAST, likeness)]);
        let tried = learned(&[(&[1], NORTH, [0.2; 3]), (&[2], NORTH, [0.2; 3]), (&[0], EAST, likeness)]);
        assert!(ask(&untried, 0, &EAST).pull + 0.5 < ask(&tried, 0, &EAST).pull);
    }

    #[test]
    fn rivals_are_told_apart_where_likeness_is_not_known() {
        let (mut learned, mut slots) = (LearnedVectors::default(), ItemSlots::default());
        for (item, vector) in [(7, EAST), (0, NORTH), (3, EAST)] {
            slots.take(item);
            learned.learn_intent(&[item], &slots, &vector, &[]);
        }
        let mut items: Vec<u32> = learned.lessons[2].shares.iter().map(|share| share.item).collect();
        items.sort_unstable();
        assert_eq!(items, [0, 3, 7]);
    }

    #[test]
    fn items_that_served_together_are_no_rivals() {
        let past = learned(&[(&[0, 1], EAST, [0.5, 0.5, 0.5])]);
        let items: Vec<u32> = past.0.lessons[0].shares.iter().map(|share| share.item).collect();
        assert_eq!(items, [0, 1, 2]);
        assert_eq!(ask(&past, 0, &EAST).pull, ask(&past, 1, &EAST).pull);
    }
}
