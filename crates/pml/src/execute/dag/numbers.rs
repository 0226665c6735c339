//! The numbers of calls of a run in which several ask at once.

use std::collections::HashMap;

use crate::execute::journal::History;

/// The numbers of calls: a call has the number it was recorded with, whichever order they are asked for in.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) known: HashMap<(u32, u32), u32>,
    pub(super) places: HashMap<u32, (u32, u32)>,
    pub(super) last: u32,
}

impl Numbers {
    /// As they were recorded.
    pub(super) fn of(history: &History) -> Numbers {
        let mut numbers = Numbers::default();
        let mut asked: HashMap<u32, u32> = HashMap::new();
        for call in &history.calls {
            // The calls of one task are recorded in their order.
            let seq = asked.entry(call.frame).or_default();
            *seq += 1;
            numbers.get(call.frame, *seq);
        }
        numbers
    }

    /// The number of the call that `frame` asks for as its `seq`th.
    pub(super) fn get(&mut self, frame: u32, seq: u32) -> u32 {
        let next = self.last + 1;
        let number = *self.known.entry((frame, seq)).or_insert(next);
        if number == next {
            self.last = next;
            self.places.insert(number, (frame, seq));
        }
        number
    }
}
