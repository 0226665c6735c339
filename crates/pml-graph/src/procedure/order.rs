//! Order of two tools: by how often each came first, and by which the request mentions first.

use std::collections::HashMap;

use super::memory::ProcedureMemory;
use crate::linear::sigmoid;

/// Prior for two tools that were never used together, in pseudo-observations. It comes from how early tools with such
/// words in their names are used.
const THOUGHT: f32 = 2.0;
/// Slope of the prior by the difference in earliness.
const EARLINESS: f32 = 3.0;

/// Weight of the order of mention in the request.
const SPOKEN: f32 = 3.5;
/// Distance in words at which that weight saturates (the scale of a `tanh`).
const FAR: f32 = 3.0;

/// Extra evidence of a word that is in the name of only one of the two tools. Intents served by both tools contain the
/// words of both, and the fewer such intents there are, the less they distinguish the tools.
const OWN_NAME: f32 = 3.0;

/// Order of tools for a request.
pub(super) struct ToolOrder<'m> {
    memory: &'m ProcedureMemory,
    /// Whether traces are used.
    aided: bool,
    terms: Vec<Option<u32>>,
    /// For each tool, how strongly each word of the request refers to it.
    spoken: HashMap<u32, Vec<f32>>,
}

impl<'m> ToolOrder<'m> {
    pub(super) fn new(memory: &'m ProcedureMemory, intent: &str) -> ToolOrder<'m> {
        ToolOrder { memory, aided: true, terms: memory.known_terms(intent), spoken: HashMap::new() }
    }

    /// Order by the words of the request and of the tools alone.
    pub(super) fn without_traces(memory: &'m ProcedureMemory, intent: &str) -> ToolOrder<'m> {
        ToolOrder { aided: false, ..ToolOrder::new(memory, intent) }
    }

    /// Probability that `first` comes before `second`.
    pub(super) fn precedence_probability(&mut self, first: u32, second: u32) -> f32 {
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

    /// Distance in words from the mention of `first` to that of `second`; 0 when the request does not distinguish them.
    fn words_between(&mut self, first: u32, second: u32) -> f32 {
        self.listen(first);
        self.listen(second);
        let (a, b) = (&self.spoken[&first], &self.spoken[&second]);
        let (mut place_a, mut place_b) = (MentionPosition::default(), MentionPosition::default());
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
        let speak = || terms.iter().map(|term| memory.term_evidence(*term, tool, aided)).collect();
        self.spoken.entry(tool).or_insert_with(speak);
    }
}

/// Position of a mention in a request.
#[derive(Default)]
struct MentionPosition {
    sum: f32,
    weight: f32,
}

impl MentionPosition {
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
    use super::super::memory::{ProcedureTrace, ToolText};
    use super::*;

    #[test]
    fn names_tell_the_order_of_tools_that_are_always_used_together() {
        let tools = [("write_file", "Puts text on disk"), ("delete_file", "Takes it away")];
        let mut memory =
            ProcedureMemory::new(tools.map(|(name, description)| ToolText { name, description }));
        let both =
            [("write a file, delete another", vec![0, 1]), ("delete a file, write another", vec![1, 0])];
        for (intent, tools) in both.into_iter().chain([("keep my notes", vec![0])]).cycle().take(30) {
            memory.learn_trace(&ProcedureTrace {
                intent,
                vector: None,
                matches: &[],
                tools: &tools,
                links: &[],
            });
        }
        let chance = |intent: &str| ToolOrder::new(&memory, intent).precedence_probability(0, 1);
        assert!(chance("write the file x and when that is done delete y") > 0.8);
        assert!(chance("delete the file y and when that is done write x") < 0.2);
        // Although notes are mostly something to write.
        assert!(chance("of my notes delete the first and when that is done write x") < 0.5);
    }
}
