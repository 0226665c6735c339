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
/// The number of tools per session, each counted once: a loop over one tool says no more than one call of it.
const TOOLS: usize = 20;
/// The number of results per session.
const RESULTS: usize = 20;
/// 30 min: what is older has nothing to do with the next request.
const LASTS: Duration = Duration::from_secs(30 * 60);

/// The recently used tools of each session.
#[derive(Debug)]
pub(super) struct SessionHistory(Mutex<LruCache<(Principal, String), SessionTools>>);

/// What a session did, most recent last, each with its time.
#[derive(Debug, Default)]
struct SessionTools {
    tools: VecDeque<(Instant, String)>,
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
        if tools.is_empty() {
            return;
        }
        let mut sessions = self.0.lock();
        let key = (principal.clone(), session.to_owned());
        let known = sessions.get_or_insert_mut(key, SessionTools::default);
        for tool in tools {
            known.tools.retain(|(_, before)| before != tool);
            known.tools.push_back((now, (*tool).to_owned()));
        }
        known.tools.drain(..known.tools.len().saturating_sub(TOOLS));
        known.results.extend(results.into_iter().map(|result| (now, result)));
        known.results.drain(..known.results.len().saturating_sub(RESULTS));
    }

    /// What the calls of a session returned, most recent last.
    pub(super) fn results(&self, principal: &Principal, session: &str, now: Instant) -> Vec<SessionResult> {
        self.recent(principal, session, now, |known| &known.results)
    }

    /// The tools that a session used, most recent last, each once.
    pub(super) fn of(&self, principal: &Principal, session: &str, now: Instant) -> Vec<String> {
        self.recent(principal, session, now, |known| &known.tools)
    }

    fn recent<T: Clone>(
        &self,
        principal: &Principal,
        session: &str,
        now: Instant,
        list: impl Fn(&SessionTools) -> &VecDeque<(Instant, T)>,
    ) -> Vec<T> {
        let mut sessions = self.0.lock();
        let known = sessions.get(&(principal.clone(), session.to_owned()));
        let is_recent = |(at, _): &&(Instant, T)| now.saturating_duration_since(*at) < LASTS;
        known.into_iter().flat_map(list).filter(is_recent).map(|(_, item)| item.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_remembers_the_tools_of_its_runs_for_a_while() {
        let (sessions, now) = (SessionHistory::default(), Instant::now());
        let me = Principal::local();
        sessions.used((&me, "one"), &["a", "b", "c"], Vec::new(), now);
        sessions.used((&me, "one"), &["d", "a", "a"], Vec::new(), now + LASTS / 2);
        sessions.used((&me, "one"), &[], Vec::new(), now + LASTS / 2);
        sessions.used((&me, "two"), &["x"], Vec::new(), now);
        assert_eq!(sessions.of(&me, "one", now + LASTS / 2), ["b", "c", "d", "a"]);
        assert_eq!(sessions.of(&me, "one", now + LASTS), ["d", "a"], "each is as old as its last use");
        assert_eq!(sessions.of(&me, "two", now), ["x"]);
        assert_eq!(sessions.of(&me, "two", now + LASTS), [""; 0]);
        assert_eq!(sessions.of(&Principal("other".to_owned()), "one", now), [""; 0]);
    }

    #[test]
    fn a_session_keeps_its_last_twenty_tools_over_several_runs() {
        let (sessions, now) = (SessionHistory::default(), Instant::now());
        let me = Principal::local();
        let names: Vec<String> = (0..25).map(|number| format!("s:t{number}")).collect();
        for run in names.chunks(4) {
            let tools: Vec<&str> = run.iter().map(String::as_str).collect();
            sessions.used((&me, "one"), &tools, Vec::new(), now);
        }
        assert_eq!(sessions.of(&me, "one", now), names[5..]);
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
