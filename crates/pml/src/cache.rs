//! Results that need not be computed again: those of plans that only read, as long as nothing was written.
//!
//! Two places, looked at in this order: what this process ran with exactly the same source and arguments in the last minutes,
//! and what anybody on this database got from a capability with the same arguments. A result is only used while the write
//! epoch of every server it came from is what it was before the first of them was read.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use pml_model::json::canonical;
use pml_model::trace::{Body, Status, Trace};
use pml_model::{CapabilityId, Digest, Principal, RunId, ServerName, TraceId};
use pml_store::{CacheKey, Memory, Urgency};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::app::{App, blocking, now_ms};
use crate::approve::Verdict;
use crate::execute::{Plan, Report, TaskStatus};

/// How many results this process keeps, and for how long.
const MOST: NonZeroUsize = NonZeroUsize::new(500).expect("500 is not 0");
const TIME: Duration = Duration::from_secs(5 * 60);
/// The largest result that is kept.
const MOST_BYTES: usize = 256 * 1024;

/// Words in the name of a tool that tell of something that changes by itself.
const CHANGING: &[&str] = &[
    "clock", "current", "date", "latest", "live", "now", "poll", "random", "status", "time", "today", "uuid",
    "watch",
];

/// Words of a program that make it depend on more than what it is given.
const UNSTEADY: &[&str] = &["Date", "random", "setTimeout", "setInterval"];

/// What this process ran lately.
#[derive(Debug)]
pub struct Cache {
    results: Mutex<LruCache<Digest, Kept>>,
}

#[derive(Debug, Clone)]
struct Kept {
    epoch: String,
    since: Instant,
    result: Arc<RawValue>,
    run: RunId,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache { results: Mutex::new(LruCache::new(MOST)) }
    }
}

/// What a result is kept under.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    key: Digest,
    /// How often was written when nothing had been read yet.
    epoch: String,
    principal: Principal,
    capability: Option<(CapabilityId, Digest)>,
}

/// A result that was known.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    pub(crate) result: Box<RawValue>,
    pub(crate) from: Source,
    /// The run it is of, where that is known.
    pub(crate) run: Option<RunId>,
}

/// Where a result was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// `execution` or `capability`.
    pub kind: String,
    /// How old it is.
    pub age_ms: i64,
}

/// What the result of a plan may be kept under, if it may be kept.
pub(crate) fn ticket(app: &App, plan: &Plan, principal: &Principal) -> Option<Ticket> {
    let steady = plan.opaque.is_empty() && plan.question.is_none() && !plan.pauses();
    let sources = || std::iter::once(&plan.source).chain(plan.nested.iter().map(|nested| &nested.source));
    let words = |word: &&str| sources().any(|source| source.contains(*word));
    if !steady || UNSTEADY.iter().any(words) || !only_reads(app, plan) {
        return None;
    }
    let arguments = canonical(plan.arguments.get()).ok()?;
    let tools: Vec<String> = plan.tools.iter().map(|tool| format!("{} {}", tool.id, tool.digest)).collect();
    // What is called is what it is now, whatever was called by the same name before.
    let called = plan.nested.iter().map(|nested| format!("{} {}", nested.id, nested.code_hash));
    let tools = tools.into_iter().chain(called).collect::<Vec<_>>().join("\n");
    let key = Digest::of(format!("{principal}\n{}\n{tools}\n{arguments}", plan.code_hash).as_bytes());
    let capability = plan.learn.as_ref().and_then(|learn| learn.capability.clone());
    Some(Ticket {
        key,
        epoch: epoch(app, plan)?,
        principal: principal.clone(),
        capability: capability.map(|id| (id, Digest::of(format!("{tools}\n{arguments}").as_bytes()))),
    })
}

/// Whether a plan changes nothing and depends on nothing that changes by itself, as far as its tools go.
pub(crate) fn only_reads(app: &App, plan: &Plan) -> bool {
    let (snapshot, policy) = (app.catalogue.snapshot(), app.policy());
    plan.tools.iter().all(|granted| {
        let verdict: Option<Verdict> =
            snapshot.tool(&granted.id).ok().map(|tool| policy.of(&granted.id, &tool.definition.annotations));
        verdict.is_some_and(|verdict| verdict.read_only) && !changes_by_itself(&granted.id.tool)
    })
}

/// Whether the name of a tool tells of something that changes by itself.
fn changes_by_itself(tool: &str) -> bool {
    words(tool).iter().any(|word| CHANGING.contains(&word.as_str()))
}

/// The words of a name, however they are joined: `get_time`, `getTime`, `getUTCTime`.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let ends_capitals = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| !before.is_ascii_uppercase() || ends_capitals);
        if begins || !letter.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_ascii_alphanumeric()) {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words
}

/// How often was written on the servers of a plan, in words that other processes understand.
fn epoch(app: &App, plan: &Plan) -> Option<String> {
    let mut servers: Vec<&ServerName> = plan.tools.iter().map(|tool| &tool.id.server).collect();
    servers.sort_unstable();
    servers.dedup();
    let mut marks = Vec::with_capacity(servers.len());
    for server in servers {
        match app.epoch.for_server(server) {
            Ok(mark) => marks.push(format!("{server}={}", mark.writes())),
            Err(error) => {
                tracing::debug!(%error, "nothing is kept: nobody knows what was written");
                return None;
            }
        }
    }
    Some(marks.join(" "))
}

impl Cache {
    /// The result, if it is known.
    pub(crate) async fn get(&self, app: &App, ticket: &Ticket) -> Option<Hit> {
        if let Some(hit) = self.here(ticket) {
            return Some(hit);
        }
        let (store, key) = (app.store.clone(), ticket.stored()?);
        match blocking(move || store.cached(&key, now_ms())).await {
            Ok(found) => found.map(|found| Hit {
                result: found.result,
                from: Source { kind: "capability".to_owned(), age_ms: (now_ms() - found.at).max(0) },
                run: None,
            }),
            Err(error) => {
                tracing::debug!(%error, "results of earlier runs could not be read");
                None
            }
        }
    }

    fn here(&self, ticket: &Ticket) -> Option<Hit> {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = results.get(&ticket.key)?;
        let age = kept.since.elapsed();
        if age > TIME || kept.epoch != ticket.epoch {
            results.pop(&ticket.key);
            return None;
        }
        Some(Hit {
            result: (*kept.result).to_owned(),
            from: Source {
                kind: "execution".to_owned(),
                age_ms: i64::try_from(age.as_millis()).unwrap_or(i64::MAX),
            },
            run: Some(kept.run.clone()),
        })
    }

    /// Keeps the result of a run, if nothing failed in it, nothing was written since it began and there is no secret in it.
    pub(crate) fn put(&self, app: &App, plan: &Plan, ticket: &Ticket, run: &RunId, report: &Report) {
        let Some(result) = report.result.as_ref().filter(|result| result.get().len() <= MOST_BYTES) else {
            return;
        };
        let worked =
            !report.has_failures() && report.tasks.iter().all(|task| task.status == TaskStatus::Success);
        let steady = epoch(app, plan).as_ref() == Some(&ticket.epoch);
        if !worked
            || !steady
            || report.contents().next().is_some()
            || app.memory.sanitiser().json(result).changed
        {
            return;
        }
        let kept = Kept {
            epoch: ticket.epoch.clone(),
            since: Instant::now(),
            result: Arc::from(result.clone()),
            run: run.clone(),
        };
        self.results.lock().unwrap_or_else(PoisonError::into_inner).put(ticket.key.clone(), kept);
        if let Some(key) = ticket.stored() {
            let config = app
                .memory
                .known(&ticket.principal, &key.capability)
                .map(|known| known.cache)
                .unwrap_or_default();
            if !config.cacheable {
                return;
            }
            let expires_at = now_ms() + i64::from(config.ttl_seconds) * 1_000;
            app.store.cache(&key, result, now_ms(), expires_at, config.max_entries, |stored| {
                if let Err(error) = stored {
                    tracing::debug!(%error, "a result could not be kept");
                }
            });
        }
    }

    /// Forgets everything this process keeps, so that what is stored is measured.
    pub(crate) fn clear(&self) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Ticket {
    /// The key in the database, where it is a capability's.
    fn stored(&self) -> Option<CacheKey> {
        let (capability, parameters) = self.capability.clone()?;
        Some(CacheKey {
            principal: self.principal.clone(),
            capability,
            parameters,
            epoch: self.epoch.clone(),
        })
    }
}

/// Notes that a result was used once more, though nothing ran.
pub(crate) fn note_use(app: &App, plan: &Plan, principal: &Principal, id: &RunId) {
    let Some(learn) = &plan.learn else { return };
    let capability = learn.capability_of(principal);
    let trace = Trace {
        id: TraceId::of(id),
        workflow_id: id.clone(),
        principal: principal.clone(),
        session: plan.session.clone(),
        capability_id: Some(capability),
        plan_hash: plan.code_hash.clone(),
        intent: app.memory.sanitiser().text(&plan.intent).into_owned(),
        status: Status::Success,
        error: None,
        duration_ms: 0,
        created_at: now_ms(),
        parent_trace_id: None,
        learn_seq: None,
        priority: None,
        cached: true,
        exploratory: false,
        approved: false,
        body: Body::default(),
    };
    let memory = Memory {
        procedure: None,
        activates: false,
        tools: Vec::new(),
        values: serde_json::Map::new(),
        trace: Box::new(trace),
        nested: Vec::new(),
    };
    app.store.remember(memory, Urgency::Soon, |stored| {
        if let Err(error) = stored {
            tracing::debug!(%error, "that a result was used again could not be recorded");
        }
    });
    app.memory.left();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_changes_by_itself_however_they_are_written() {
        for name in
            ["getCurrentTime", "get_time", "GetTime", "getUTCTime", "time", "list-latest.files", "UUID"]
        {
            assert!(changes_by_itself(name), "{name}");
        }
        for name in ["readFile", "getTimeline", "update_record", "statusless", "knowledge"] {
            assert!(!changes_by_itself(name), "{name}");
        }
    }
}
