//! The tools just used in each session and what they returned: related tools are more likely to be requested next, and
//! their results are likely arguments.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;
use pml_model::Principal;
use serde_json::Value;

/// The number of sessions in memory.
const SESSIONS: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");
/// The number of tools per session.
const TOOLS: usize = 5;
/// The number of results per session.
const RESULTS: usize = 20;
/// 30 min: after a longer pause, the next request is about something else.
const LASTS: Duration = Duration::from_secs(30 * 60);

/// The recently used tools of each session.
#[derive(Debug)]
pub(super) struct SessionHistory(Mutex<LruCache<(Principal, String), SessionTools>>);

#[derive(Debug)]
struct SessionTools {
    at: Instant,
    tools: Vec<String>,
    /// What the session's calls returned, most recent last, each with its time.
    results: VecDeque<(Instant, SessionResult)>,
}

/// What a call of a session returned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionResult {
    /// The tool, as `server:tool`.
    pub(crate) tool: String,
    pub(crate) value: Value,
}

impl Default for SessionHistory {
    fn default() -> SessionHistory {
        SessionHistory(Mutex::new(LruCache::new(SESSIONS)))
    }
}

impl SessionHistory {
    /// Records that these were used and returned these results, most recent last.
    pub(super) fn used(
        &self,
        (principal, session): (&Principal, &str),
        tools: &[&str],
        results: Vec<SessionResult>,
        now: Instant,
    ) {
        let mut tools: Vec<String> = tools.iter().rev().map(|tool| (*tool).to_owned()).collect();
        tools.truncate(TOOLS);
        tools.reverse();
        if tools.is_empty() {
            return;
        }
        let mut sessions = self.0.lock();
        let key = (principal.clone(), session.to_owned());
        let mut kept = sessions.pop(&key).map(|before| before.results).unwrap_or_default();
        kept.extend(results.into_iter().map(|result| (now, result)));
        kept.drain(..kept.len().saturating_sub(RESULTS));
        sessions.put(key, SessionTools { at: now, tools, results: kept });
    }

    /// What the calls of a session returned, most recent last.
    pub(super) fn results(&self, principal: &Principal, session: &str, now: Instant) -> Vec<SessionResult> {
        let mut sessions = self.0.lock();
        let known = sessions.get(&(principal.clone(), session.to_owned()));
        let recent = |(at, _): &&(Instant, SessionResult)| now.saturating_duration_since(*at) < LASTS;
        let results = known.into_iter().flat_map(|context| &context.results).filter(recent);
        results.map(|(_, result)| result.clone()).collect()
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
        sessions.used((&me, "one"), &["a", "b", "c", "d", "e", "f"], Vec::new(), now);
        sessions.used((&me, "two"), &["x"], Vec::new(), now);
        sessions.used((&me, "two"), &[], Vec::new(), now);
        assert_eq!(sessions.of(&me, "one", now), ["b", "c", "d", "e", "f"]);
        assert_eq!(sessions.of(&me, "two", now), ["x"]);
        assert_eq!(sessions.of(&me, "two", now + LASTS), [""; 0]);
        assert_eq!(sessions.of(&Principal("other".to_owned()), "one", now), [""; 0]);
    }

    #[test]
    fn a_session_keeps_its_last_twenty_results_over_several_runs() {
        let (sessions, now) = (SessionHistory::default(), Instant::now());
        let me = Principal::local();
        let result = |number: usize| SessionResult { tool: "s:t".to_owned(), value: number.into() };
        sessions.used((&me, "one"), &["s:t"], (0..15).map(result).collect(), now);
        sessions.used((&me, "one"), &["s:t"], (15..25).map(result).collect(), now + LASTS / 2);
        let all: Vec<SessionResult> = (5..25).map(result).collect();
        assert_eq!(sessions.results(&me, "one", now + LASTS / 2), all);
        assert_eq!(sessions.results(&me, "one", now + LASTS), all[10..]);
        assert_eq!(sessions.results(&Principal("other".to_owned()), "one", now), []);
        assert_eq!(sessions.results(&me, "two", now), []);
    }
}
