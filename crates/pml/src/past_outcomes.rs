//! The ends of runs that people looked at lately, in memory.
//!
//! The report of a run with thousands of calls has megabytes, which are unsealed and parsed as a whole. A page that shows
//! the run needs little of it, and asks again and again. The end of a run never changes.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use pml_model::{Principal, RunId};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::report::{ConsoleLine, ExecutedPath, RunFailure};

/// The ends that are kept; those that were looked at last stay.
const MOST: usize = 32;
/// 256 KiB: a larger end is read each time. All that are kept have 8 MiB at most.
const LARGEST_BYTES: usize = 256 * 1024;

/// What is shown of a run's report; its calls are read page by page instead.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastOutcome {
    /// The value that the program returned.
    pub result: Option<Box<RawValue>>,
    /// The reason why there is no result.
    pub error: Option<RunFailure>,
    /// The path that the run took.
    pub path: ExecutedPath,
    /// The lines that the program printed.
    #[serde(default)]
    pub console: Vec<ConsoleLine>,
    /// When each line was printed; empty for runs from before that was recorded.
    #[serde(default)]
    pub console_at: Vec<i64>,
    /// Whether the program printed more than is kept.
    #[serde(default)]
    pub console_cut: bool,
    /// Warnings for the client beside the result.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl PastOutcome {
    /// About how much memory it takes, apart from what is small in every run.
    fn bytes(&self) -> usize {
        let result = self.result.as_ref().map_or(0, |result| result.get().len());
        let console: usize = self.console.iter().map(|line| line.text.len() + 64).sum();
        let warnings: usize = self.warnings.iter().map(String::len).sum();
        result + console + warnings + self.path.decisions.len() * 64
    }
}

/// The ends that are kept, the latest used last.
#[derive(Default)]
pub struct PastOutcomes {
    kept: Mutex<VecDeque<(Principal, RunId, Arc<PastOutcome>)>>,
}

impl PastOutcomes {
    /// The end of a run, if it is kept.
    pub(crate) fn get(&self, principal: &Principal, run: &RunId) -> Option<Arc<PastOutcome>> {
        let mut kept = self.kept.lock();
        let found = kept.iter().position(|(owner, id, _)| id == run && owner == principal)?;
        let entry = kept.remove(found)?;
        let outcome = Arc::clone(&entry.2);
        kept.push_back(entry);
        Some(outcome)
    }

    /// Keeps the end of a run that is over.
    pub(crate) fn keep(&self, principal: &Principal, run: &RunId, outcome: &Arc<PastOutcome>) {
        if outcome.bytes() > LARGEST_BYTES {
            return;
        }
        let mut kept = self.kept.lock();
        kept.retain(|(_, id, _)| id != run);
        kept.push_back((principal.clone(), run.clone(), Arc::clone(outcome)));
        let over = kept.len().saturating_sub(MOST);
        kept.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(console: usize) -> Arc<PastOutcome> {
        let line = ConsoleLine { level: "log".to_owned(), text: "x".repeat(console), capability: None };
        Arc::new(PastOutcome {
            result: None,
            error: None,
            path: ExecutedPath::default(),
            console: vec![line],
            console_at: Vec::new(),
            console_cut: false,
            warnings: Vec::new(),
        })
    }

    #[test]
    fn the_ends_that_were_looked_at_last_stay_for_their_owner() {
        let (ann, bob) = (Principal("ann".to_owned()), Principal("bob".to_owned()));
        let (kept, first) = (PastOutcomes::default(), RunId::new(0));
        kept.keep(&ann, &first, &outcome(10));
        for number in 1..MOST as u128 {
            kept.keep(&ann, &RunId::new(number), &outcome(10));
        }
        assert!(kept.get(&bob, &first).is_none(), "it belongs to somebody else");
        assert!(kept.get(&ann, &first).is_some());
        kept.keep(&ann, &RunId::new(1_000), &outcome(10));
        assert!(kept.get(&ann, &first).is_some() && kept.get(&ann, &RunId::new(1)).is_none());
        kept.keep(&ann, &RunId::new(2_000), &outcome(LARGEST_BYTES));
        assert!(kept.get(&ann, &RunId::new(2_000)).is_none(), "it is too large");
    }
}
