//! The tools just used in each session; related tools are more likely to be requested next.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;
use pml_model::Principal;

/// The number of sessions in memory.
const SESSIONS: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");
/// The number of tools per session.
const TOOLS: usize = 5;
/// 30 min: after a longer pause, the next request is about something else.
const LASTS: Duration = Duration::from_secs(30 * 60);

/// The recently used tools of each session.
#[derive(Debug)]
pub(super) struct SessionHistory(Mutex<LruCache<(Principal, String), SessionTools>>);

#[derive(Debug)]
struct SessionTools {
    at: Instant,
    tools: Vec<String>,
}

impl Default for SessionHistory {
    fn default() -> SessionHistory {
        SessionHistory(Mutex::new(LruCache::new(SESSIONS)))
    }
}

impl SessionHistory {
    /// Records that these were used, most recent last.
    pub(super) fn used(&self, principal: &Principal, session: &str, tools: &[&str], now: Instant) {
        let mut tools: Vec<String> = tools.iter().rev().map(|tool| (*tool).to_owned()).collect();
        tools.truncate(TOOLS);
        tools.reverse();
        if !tools.is_empty() {
            let mut sessions = self.0.lock();
            sessions.put((principal.clone(), session.to_owned()), SessionTools { at: now, tools });
        }
    }

    /// The tools of the last run of a session, most recent last.
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
        let (sessions, now) = (SessionHistory::default(), Instant::now());
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
