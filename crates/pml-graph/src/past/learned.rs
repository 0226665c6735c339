//! What past intents teach about the direction of an item's requests.
//!
//! Every item that has served an intent gets a learned vector beside the one of its description. An
//! intent pulls the items that served it towards itself, and pushes away those that looked as good, both
//! by as much as ranking is still wrong about it afterwards. So an item that was found anyway hardly moves,
//! requests that every item gets teach nothing, and items that often serve the same intent together do not
//! push each other away. This is logistic regression with shrinkage, whose every step is kept per intent,
//! which lets a step be taken back and done again when more is known.

use super::Slots;
use crate::vectors::{Vectors, dot};

/// How far an intent moves an item that ranking does not find at all.
const STEP: f32 = 6.0;

/// How much a description's similarity says in the scale of the learned vectors.
const DESCRIPTION: f32 = 8.0;

/// How many other items an intent is told apart from: the ones it is most easily confused with.
const RIVALS: usize = 64;

/// What an item that has not served anything counts as a rival, beside one that has. It cannot be pushed
/// away, so all that sets it apart is how far those that served are pulled; if it counted fully, these
/// would take its own requests from it.
const UNTRIED: f32 = 0.1;

/// How often the steps of a lesson are brought nearer to what they have to be each time it is gone through.
/// It is gone through again and again, so a few are enough.
const ROUNDS: usize = 4;

/// How many older intents are gone through again for each new one.
const REVISITED: usize = 4;

#[derive(Debug, Clone, Default)]
pub(super) struct Learned {
    intents: Vectors,
    lessons: Vec<Lesson>,
    /// The slots of the items that served the intents, all in one row because every request goes through
    /// them, and where those of each intent end.
    servers: Vec<u32>,
    server_ends: Vec<u32>,
    /// One vector per slot, one after the other.
    vectors: Vec<f32>,
    /// Per slot, how many intents its item has served.
    served: Vec<u32>,
    /// The lesson to be gone through again next.
    next: usize,
}

/// What one intent has moved.
#[derive(Debug, Clone)]
struct Lesson {
    /// The items that served it come first, then their rivals.
    shares: Vec<Share>,
    served: usize,
}

#[derive(Debug, Clone)]
struct Share {
    item: u32,
    /// How near its description is, in the scale of the learned vectors.
    description: f32,
    /// How far the item was moved, in steps: up to 1 towards the intent, or away from it.
    credit: f32,
}

/// What is known of an item about one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    /// How many intents it has served.
    pub(super) traces: u32,
    /// What its learned vector says.
    pub(super) pull: f32,
    /// The cosine of the nearest of these intents.
    pub(super) nearest: f32,
}

impl Learned {
    /// Whether `vector` can be learned from or asked about.
    pub(super) fn takes(&self, vector: &[f32]) -> bool {
        self.intents.takes(vector)
    }

    /// Learns that the items in `served` served the intent with this vector, which [`Learned::takes`].
    /// `likeness` has the cosine of every item's description and the intent.
    pub(super) fn push(&mut self, served: &[u32], slots: &Slots, vector: &[f32], likeness: &[f32]) {
        self.intents.push(Some(vector));
        self.served.resize(slots.len(), 0);
        self.vectors.resize(slots.len() * vector.len(), 0.0);
        let intent = self.intents.row(self.lessons.len());
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

    /// Who served the intent, and who else looks like it.
    fn lesson(&self, served: &[u32], slots: &Slots, intent: &[f32], likeness: &[f32]) -> Lesson {
        let description = |item: u32| DESCRIPTION * likeness.get(item as usize).copied().unwrap_or(0.0);
        let share = |item: u32| Share { item, description: description(item), credit: 0.0 };
        let mut rivals: Vec<(f32, u32)> =
            (0..likeness.len() as u32).map(|item| (description(item), item)).collect();
        for (slot, vector) in self.vectors.chunks_exact(intent.len()).enumerate() {
            let (item, pull) = (slots.item(slot), dot(vector, intent));
            // Where likeness is not known, none of them stands at the place of its number.
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
        Lesson { shares, served: served.len() }
    }

    /// Takes back what a lesson has moved, and does it again with what is known now.
    fn settle(&mut self, at: usize, slots: &Slots) {
        let intent = self.intents.row(at);
        let Lesson { shares, served } = &mut self.lessons[at];
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
            // Nothing is held against an item that has not served anything: it has not had its turn.
            let Some(slot) = slot_of[place] else { continue };
            let step = STEP * (credits[place] - share.credit);
            share.credit = credits[place];
            let vector = &mut self.vectors[slot * size..][..size];
            vector.iter_mut().zip(&intent).for_each(|(number, towards)| *number += step * towards);
        }
    }

    /// What is known about a request, which [`Learned::takes`], per slot; `None` for one without lessons.
    pub(super) fn ask(&self, vector: &[f32], slots: &Slots) -> Vec<Option<Told>> {
        let length = dot(vector, vector).sqrt();
        let rows = self.vectors.chunks_exact(vector.len()).zip(&self.served);
        let mut told: Vec<Option<Told>> = rows
            .map(|(row, &traces)| {
                (traces > 0).then(|| Told { traces, pull: dot(row, vector) / length, nearest: -1.0 })
            })
            .collect();
        told.resize(slots.len(), None);
        let mut start = 0;
        for (end, similarity) in
            self.server_ends.iter().zip(self.intents.similarities(vector).unwrap_or_default())
        {
            for slot in &self.servers[start..*end as usize] {
                if let Some(told) = &mut told[*slot as usize] {
                    told.nearest = told.nearest.max(similarity);
                }
            }
            start = *end as usize;
        }
        told
    }
}

/// The credits that say by how much ranking is wrong when the items have been moved by them, where it
/// ranks by the scores `without` as long as they are not. Items that cannot be `moved` stay.
fn settled(without: &[f32], served: usize, mut credits: Vec<f32>, moved: impl Fn(usize) -> bool) -> Vec<f32> {
    for _ in 0..ROUNDS {
        let scores: Vec<f32> = (without.iter().zip(&credits).enumerate())
            .map(|(place, (score, credit))| if moved(place) { score + STEP * credit } else { *score })
            .collect();
        for (credit, wrong) in credits.iter_mut().zip(wrong_by(&scores, served)) {
            // Newton's method for each item alone: the more a credit changes what is wrong, the less of
            // the difference it has to make up.
            let slope = wrong.abs() * (1.0 - wrong.abs()).max(0.0);
            *credit += (wrong - *credit) / (1.0 + STEP * slope);
        }
    }
    credits
}

/// By how much ranking by `scores` would be wrong about each item when the first `served` are right: what
/// each of these lacks against all that are wrong, and what the wrong ones take from it.
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
    use super::{Learned, STEP, Slots, Told, settled, wrong_by};

    const EAST: [f32; 3] = [1.0, 0.0, 0.0];
    const NORTH: [f32; 3] = [0.0, 1.0, 0.0];

    /// Learns intents in order: who served, the vector, and how like each description is.
    fn learned(intents: &[(&[u32], [f32; 3], [f32; 3])]) -> (Learned, Slots) {
        let (mut learned, mut slots) = (Learned::default(), Slots::default());
        for (served, vector, likeness) in intents {
            served.iter().for_each(|item| {
                slots.take(*item);
            });
            learned.push(served, &slots, vector, likeness);
        }
        (learned, slots)
    }

    fn ask(learned: &(Learned, Slots), item: u32, vector: &[f32]) -> Told {
        let slot = learned.1.of(item).expect("the item has served");
        learned.0.ask(vector, &learned.1)[slot].expect("the item has lessons")
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
        let (mut learned, mut slots) = (Learned::default(), Slots::default());
        for (item, vector) in [(7, EAST), (0, NORTH), (3, EAST)] {
            slots.take(item);
            learned.push(&[item], &slots, &vector, &[]);
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
