//! Assigns call numbers in a run whose tasks issue calls concurrently.

use std::collections::HashMap;

use crate::execute::journal::History;

/// The call numbers: a recorded call keeps its number, in whichever order calls are issued.
#[derive(Debug, Default)]
pub(super) struct CallNumbers {
    pub(super) known: HashMap<(u32, u32), u32>,
    pub(super) places: HashMap<u32, (u32, u32)>,
    pub(super) last: u32,
}

impl CallNumbers {
    /// The numbers recorded in `history`.
    pub(super) fn of(history: &History) -> CallNumbers {
        let mut numbers = CallNumbers::default();
        let mut asked: HashMap<u32, u32> = HashMap::new();
        for call in &history.calls {
            // The calls of one task are recorded in their order of issue.
            let seq = asked.entry(call.frame).or_default();
            *seq += 1;
            numbers.get(call.frame, *seq);
        }
        numbers
    }

    /// The number of the `seq`th call that `frame` issues.
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
