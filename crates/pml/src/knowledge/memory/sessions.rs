//! What was just used in a session: what hangs together with it is more likely wanted next.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;
use pml_model::Principal;

/// How many sessions are remembered.
const SESSIONS: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");
/// How many tools of a session are remembered.
const TOOLS: usize = 5;
/// After this time something else is wanted.
const LASTS: Duration = Duration::from_secs(30 * 60);

/// What was used in which session.
#[derive(Debug)]
pub(super) struct Sessions(Mutex<LruCache<(Principal, String), Context>>);

#[derive(Debug)]
struct Context {
    at: Instant,
    tools: Vec<String>,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions(Mutex::new(LruCache::new(SESSIONS)))
    }
}

impl Sessions {
    /// These were used, the most recent last.
    pub(super) fn used(&self, principal: &Principal, session: &str, tools: &[&str], now: Instant) {
        let mut tools: Vec<String> = tools.iter().rev().map(|tool| (*tool).to_owned()).collect();
        tools.truncate(TOOLS);
        tools.reverse();
        if !tools.is_empty() {
            let mut sessions = self.0.lock();
            sessions.put((principal.clone(), session.to_owned()), Context { at: now, tools });
        }
    }

    /// What was used in the last run of a session, the most recent last.
    pub(super) fn of(&self, principal: &Principal, session: &str, now: Instant) -> Vec<String> {
        let mut sessions = self.0.lock();
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
        let (sessions, now) = (Sessions::default(), Instant::now());
        let me = Principal::local();
        sessions.used(&me, "one", &["a", "b", "c", "d", "e", "f"], now);
        sessions.used(&me, "two", &["x"], now);
        sessions.used(&me, "two", &[], now);
        assert_eq!(sessions.of(&me, "one", now), ["b", "c", "d", "e", "f"]);
        assert_eq!(sessions.of(&me, "two", now), ["x"]);
        assert_eq!(sessions.of(&me, "two", now + LASTS), [""; 0]);
        assert_eq!(sessions.of(&Principal("other".to_owned()), "one", now), [""; 0]);
    }
}
