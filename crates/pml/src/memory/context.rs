//! What was just used in a session: what hangs together with it is more likely wanted next.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use pml_model::Principal;

/// How many sessions are remembered.
const SESSIONS: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");
/// How many tools of a session are remembered.
const TOOLS: usize = 5;
/// After this time something else is wanted.
const LASTS: Duration = Duration::from_secs(30 * 60);

/// What was used in which session.
#[derive(Debug)]
pub(super) struct Contexts(Mutex<LruCache<(Principal, String), Context>>);

#[derive(Debug)]
struct Context {
    at: Instant,
    tools: Vec<String>,
}

impl Default for Contexts {
    fn default() -> Contexts {
        Contexts(Mutex::new(LruCache::new(SESSIONS)))
    }
}

impl Contexts {
    /// These were used, the most recent last.
    pub(super) fn used(&self, principal: &Principal, session: &str, tools: &[&str], now: Instant) {
        let mut tools: Vec<String> = tools.iter().rev().map(|tool| (*tool).to_owned()).collect();
        tools.truncate(TOOLS);
        tools.reverse();
        if !tools.is_empty() {
            let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.put((principal.clone(), session.to_owned()), Context { at: now, tools });
        }
    }

    /// What was used in the last run of a session, the most recent last.
    pub(super) fn of(&self, principal: &Principal, session: &str, now: Instant) -> Vec<String> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sessions.get(&(principal.clone(), session.to_owned()));
        let recent = known.filter(|context| now.saturating_duration_since(context.at) < LASTS);
        recent.map(|context| context.tools.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_remembers_its_last_run_for_a_while() {
        let (contexts, now) = (Contexts::default(), Instant::now());
        let me = Principal::local();
        contexts.used(&me, "one", &["a", "b", "c", "d", "e", "f"], now);
        contexts.used(&me, "two", &["x"], now);
        contexts.used(&me, "two", &[], now);
        assert_eq!(contexts.of(&me, "one", now), ["b", "c", "d", "e", "f"]);
        assert_eq!(contexts.of(&me, "two", now), ["x"]);
        assert_eq!(contexts.of(&me, "two", now + LASTS), [""; 0]);
        assert_eq!(contexts.of(&Principal("other".to_owned()), "one", now), [""; 0]);
    }
}
