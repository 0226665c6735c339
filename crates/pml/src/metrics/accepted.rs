//! Which suggestions were followed: the last one of each session, until a run answers it.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;
use pml_model::Principal;

use super::Metrics;

/// The sessions whose last suggestion is kept.
const MOST_SESSIONS: NonZeroUsize = NonZeroUsize::new(1_024).expect("it is not zero");
/// 30 min: a run that comes later than this has nothing to do with the suggestion.
const VALID: Duration = Duration::from_secs(30 * 60);

/// The suggestions that no run has answered yet, by principal and session.
#[derive(Debug)]
pub(crate) struct OpenSuggestions(Mutex<LruCache<(Principal, String), OpenSuggestion>>);

#[derive(Debug)]
struct OpenSuggestion {
    made_at: Instant,
    /// The ids of the capabilities and tools that it named.
    named: HashSet<String>,
}

impl Default for OpenSuggestions {
    fn default() -> OpenSuggestions {
        OpenSuggestions(Mutex::new(LruCache::new(MOST_SESSIONS)))
    }
}

impl Metrics {
    /// Counts a suggestion that names these capabilities and tools.
    pub(crate) fn note_suggestion(
        &self,
        principal: &Principal,
        session: &str,
        named: impl Iterator<Item = String>,
    ) {
        self.suggestions_generated.add_one();
        let suggestion = OpenSuggestion { made_at: Instant::now(), named: named.collect() };
        self.open_suggestions.0.lock().put((principal.clone(), session.to_owned()), suggestion);
    }

    /// Counts the suggestion of the session as accepted if a run uses what it named.
    pub(crate) fn note_use<'u>(
        &self,
        principal: &Principal,
        session: &str,
        mut used: impl Iterator<Item = &'u str>,
    ) {
        let mut open = self.open_suggestions.0.lock();
        let key = (principal.clone(), session.to_owned());
        let Some(suggestion) = open.peek(&key) else { return };
        if suggestion.made_at.elapsed() < VALID && used.any(|id| suggestion.named.contains(id)) {
            open.pop(&key);
            self.suggestions_accepted.add_one();
        }
    }
}
