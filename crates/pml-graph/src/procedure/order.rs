//! Which of two tools comes first: by how often each did, and by which the request speaks of first.

use std::collections::HashMap;

use super::memory::Memory;
use crate::linear::sigmoid;

/// What is thought of two tools that were never used together counts as so many times that they were;
/// it comes from how early tools with such words in their names come.
const THOUGHT: f32 = 2.0;
const EARLINESS: f32 = 3.0;

/// How much the order in the request counts, and how many words apart is far apart.
const SPOKEN: f32 = 3.5;
const FAR: f32 = 3.0;

/// What a word that only one of two tools has in its name adds to what it says for that one: intents that were
/// served by both have the words of both, and tell them apart the less the fewer they are.
const OWN_NAME: f32 = 3.0;

/// The order of tools in what serves a request.
pub(super) struct Order<'m> {
    memory: &'m Memory,
    /// Whether earlier traces are asked.
    aided: bool,
    terms: Vec<Option<u32>>,
    /// Per tool, how strongly each word of the request speaks for it.
    spoken: HashMap<u32, Vec<f32>>,
}

impl<'m> Order<'m> {
    pub(super) fn new(memory: &'m Memory, intent: &str) -> Order<'m> {
        Order { memory, aided: true, terms: memory.terms(intent), spoken: HashMap::new() }
    }

    /// The order by the words of the request and the tools alone.
    pub(super) fn unaided(memory: &'m Memory, intent: &str) -> Order<'m> {
        Order { aided: false, ..Order::new(memory, intent) }
    }

    /// How likely `first` comes before `second`.
    pub(super) fn chance(&mut self, first: u32, second: u32) -> f32 {
        if first == second {
            return 0.5;
        }
        let spoken = SPOKEN * (self.words_between(first, second) / FAR).tanh();
        if !self.aided {
            return sigmoid(spoken);
        }
        let earlier = self.memory.earliness(first) - self.memory.earliness(second);
        let thought = THOUGHT * sigmoid(EARLINESS * earlier);
        let for_it = self.memory.times_before(first, second) + thought;
        let against = self.memory.times_before(second, first) + THOUGHT - thought;
        sigmoid((for_it / against).ln() + spoken)
    }

    /// How many words after `first` the request speaks of `second`; 0 where it does not tell them apart.
    fn words_between(&mut self, first: u32, second: u32) -> f32 {
        self.listen(first);
        self.listen(second);
        let (a, b) = (&self.spoken[&first], &self.spoken[&second]);
        let (mut place_a, mut place_b) = (Place::default(), Place::default());
        for (at, (a, b)) in a.iter().zip(b).enumerate() {
            let named = |tool: u32| f32::from(u8::from(self.memory.is_named(self.terms[at], tool)));
            let for_a = a - b + OWN_NAME * (named(first) - named(second));
            place_a.add(at, for_a);
            place_b.add(at, -for_a);
        }
        place_b.mean().zip(place_a.mean()).map_or(0.0, |(second, first)| second - first)
    }

    fn listen(&mut self, tool: u32) {
        let (memory, terms, aided) = (self.memory, &self.terms, self.aided);
        let speak = || terms.iter().map(|term| memory.speaks_for(*term, tool, aided)).collect();
        self.spoken.entry(tool).or_insert_with(speak);
    }
}

/// Where in a request something is spoken of.
#[derive(Default)]
struct Place {
    sum: f32,
    weight: f32,
}

impl Place {
    fn add(&mut self, at: usize, weight: f32) {
        if weight > 0.0 {
            self.sum += weight * at as f32;
            self.weight += weight;
        }
    }

    fn mean(&self) -> Option<f32> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::{ToolText, Trace};
    use super::*;

    #[test]
    fn names_tell_the_order_of_tools_that_are_always_used_together() {
        let tools = [("write_file", "Puts text on disk"), ("delete_file", "Takes it away")];
        let mut memory = Memory::new(tools.map(|(name, description)| ToolText { name, description }));
        let both =
            [("write a file, delete another", vec![0, 1]), ("delete a file, write another", vec![1, 0])];
        for (intent, tools) in both.into_iter().chain([("keep my notes", vec![0])]).cycle().take(30) {
            memory.learn(&Trace { intent, vector: None, matches: &[], tools: &tools, links: &[] });
        }
        let chance = |intent: &str| Order::new(&memory, intent).chance(0, 1);
        assert!(chance("write the file x and when that is done delete y") > 0.8);
        assert!(chance("delete the file y and when that is done write x") < 0.2);
        // Though notes are mostly something to write.
        assert!(chance("of my notes delete the first and when that is done write x") < 0.5);
    }
}
