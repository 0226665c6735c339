//! Publishes to the live feed what other processes do with runs, as far as the store tells: every `pml stdio` is a
//! process of its own. The same reading of the journal serves watchers who missed events.
//!
//! The store knows starts and ends of runs and calls, and open questions. It does not know what programs print.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use lru::LruCache;
use parking_lot::Mutex;
use pml_model::{Principal, RunId, RunState};
use pml_store::{FollowedEntry, FollowedRun, JournalEntryKind, OpenRun, OpenRuns, RunKind, RunNews, RunRow};

use super::RunRegistry;
use super::delivery::RunDelivery;
use crate::events::{EventError, FeedEvent, MissedEvent, RunSummary, TaskOutcome};
use crate::problem::Problem;
use crate::report::preview;

/// 1 s: the pause before a database that did not answer is read again.
const RETRY: Duration = Duration::from_secs(1);

/// The runs, and their calls, that are read for a watcher who missed events. Loading the page anew is cheaper beyond.
const MOST_MISSED: (usize, u64) = (200, 5_000);
/// 20 ms: what happened before a watcher came is in the journal after this time.
const SETTLE: Duration = Duration::from_millis(20);

/// The runs of this process that are told from those of others: more than end between two looks at the store.
const MOST_OWN: NonZeroUsize = NonZeroUsize::new(4_096).expect("it is not zero");

/// The runs that drivers of this process have or had. Those drivers publish what happens to them.
#[derive(Debug)]
pub(super) struct OwnRuns(Mutex<LruCache<RunId, OwnRun>>);

#[derive(Debug, Clone, Copy)]
struct OwnRun {
    /// The fence of the last driver.
    fence: i64,
    /// Whether it published the end of the run.
    ended: bool,
}

impl Default for OwnRuns {
    fn default() -> OwnRuns {
        OwnRuns(Mutex::new(LruCache::new(MOST_OWN)))
    }
}

impl OwnRuns {
    /// A driver takes a run.
    pub(super) fn begin(&self, id: RunId, fence: i64) {
        self.0.lock().put(id, OwnRun { fence, ended: false });
    }

    /// The driver of the run publishes its end.
    pub(super) fn end(&self, id: &RunId) {
        if let Some(own) = self.0.lock().get_mut(id) {
            own.ended = true;
        }
    }

    fn get(&self, id: &RunId) -> Option<OwnRun> {
        self.0.lock().peek(id).copied()
    }
}

/// What was said about a run so far.
struct TrackedRun {
    seen: FollowedRun,
    /// Entries up to this one were there before anybody followed.
    silent_until: i64,
    fence: i64,
    state: Option<RunState>,
    question: Option<String>,
    /// The issued calls without an end.
    open: HashMap<u32, OpenCall>,
    calls: u32,
    failed: usize,
}

struct OpenCall {
    tool: String,
    node: Option<String>,
    at: i64,
}

/// Whether a run can have news yet.
#[derive(PartialEq, Eq)]
enum Tracking {
    Continues,
    Ended,
}

/// An event with its time, in milliseconds since the Unix epoch.
type TimedEvent = (i64, FeedEvent);

/// Publishes what other processes do, while somebody follows the feed.
pub(crate) async fn follow_runs_task(runs: Arc<RunRegistry>) {
    loop {
        tokio::select! {
            () = runs.feed.wait_until_followed(true) => {}
            () = runs.stop.cancelled() => return,
        }
        if let Err(problem) = follow(&runs).await {
            tracing::warn!(%problem, "the runs of other processes could not be followed");
            tokio::select! {
                () = tokio::time::sleep(RETRY) => {}
                () = runs.stop.cancelled() => return,
            }
        }
        runs.feed.set_following(false);
        if runs.stop.is_cancelled() {
            return;
        }
    }
}

async fn follow(runs: &RunRegistry) -> Result<(), Problem> {
    let mut changes = runs.store.changes();
    let OpenRuns { mut newest, runs: open } = runs.store.open_runs().await?;
    let own_fence = |run: &RunRow| runs.own.get(&run.id).map(|own| own.fence);
    let known = |OpenRun { number, entry, run }: OpenRun| {
        let mut tracked = TrackedRun::known(number, entry, &run);
        tracked.seen.own_fence = own_fence(&run);
        tracked
    };
    let mut tracked: Vec<TrackedRun> = open.into_iter().map(known).collect();
    runs.feed.set_following(true);
    loop {
        for (number, run) in runs.store.runs_after(newest).await? {
            newest = number;
            let mut new = TrackedRun::new(number, &run);
            new.seen.own_fence = own_fence(&run);
            tracked.push(new);
        }
        let more = look(runs, &mut tracked).await?;
        tokio::select! {
            () = changes.changed(), if !more => {}
            () = std::future::ready(()), if more => {}
            () = runs.feed.wait_until_followed(false) => return Ok(()),
            () = runs.stop.cancelled() => return Ok(()),
        }
    }
}

/// Reads and publishes what is new. Whether there is more to read.
async fn look(runs: &RunRegistry, tracked: &mut Vec<TrackedRun>) -> Result<bool, Problem> {
    let mut more = false;
    let asked = tracked.iter().map(|run| run.seen).collect();
    let mut news: HashMap<i64, RunNews> =
        runs.store.run_news(asked).await?.into_iter().map(|news| (news.seen.number, news)).collect();
    let mut kept = Vec::with_capacity(tracked.len());
    for mut run in tracked.drain(..) {
        // A run that is gone was forgotten by request.
        let Some(news) = news.remove(&run.seen.number) else { continue };
        more |= news.has_more;
        if run.publish_news(runs, &news).await? == Tracking::Continues {
            kept.push(run);
        }
    }
    *tracked = kept;
    Ok(more)
}

/// Whether this process made the run just now and has no driver for it yet.
fn is_about_to_start(runs: &RunRegistry, run: &RunRow) -> bool {
    run.state == RunState::Running && run.owner.as_ref().is_some_and(|(owner, _)| *owner == runs.process)
}

/// What happened to the principal's runs since then, oldest first, as far as the store knows; `None` if it is too much.
///
/// # Errors
/// The database cannot be read.
pub(crate) async fn missed_events(
    runs: &RunRegistry,
    principal: &Principal,
    run: Option<&RunId>,
    since: i64,
) -> Result<Option<Vec<MissedEvent>>, Problem> {
    tokio::time::sleep(SETTLE).await;
    runs.store.flush().await?;
    let Some(found) = runs.store.runs_since(principal, since, MOST_MISSED).await? else { return Ok(None) };
    let mut missed = Vec::new();
    for (number, row) in found.into_iter().filter(|(_, row)| run.is_none_or(|run| *run == row.id)) {
        let mut tracked = TrackedRun::new(number, &row);
        if row.created_at < since {
            // It goes without saying that the run exists.
            (tracked.state, tracked.fence) = (Some(RunState::Running), row.fence);
        }
        loop {
            let Some(news) = runs.store.run_news(vec![tracked.seen]).await?.pop() else { break };
            let more = news.has_more;
            let events = tracked.events(runs, &news).await?.into_iter().filter(|(at, _)| *at >= since);
            missed.extend(events.map(|(at, event)| MissedEvent::new(at, &row.id, &event)));
            if !more {
                break;
            }
        }
    }
    missed.sort_by_key(|event| event.at);
    Ok(Some(missed))
}

impl TrackedRun {
    /// A run that nobody knows yet.
    fn new(number: i64, run: &RunRow) -> TrackedRun {
        TrackedRun {
            seen: FollowedRun { number, entry: 0, own_fence: None },
            silent_until: 0,
            fence: run.fence,
            state: None,
            question: None,
            open: HashMap::new(),
            calls: 0,
            failed: 0,
        }
    }

    /// A run that was there before anybody followed, up to journal entry `entry`.
    fn known(number: i64, entry: i64, run: &RunRow) -> TrackedRun {
        TrackedRun {
            silent_until: entry,
            state: Some(run.state),
            question: run.question_id.clone(),
            ..TrackedRun::new(number, run)
        }
    }

    /// Publishes what is new about the run, unless a driver of this process does.
    async fn publish_news(&mut self, runs: &RunRegistry, news: &RunNews) -> Result<Tracking, Problem> {
        let id = &news.run.id;
        // In this order: a driver publishes the end of its run before it is gone.
        let driven = runs.local_handle(id).is_some_and(|handle| handle.lease.fence() == news.run.fence);
        let own = runs.own.get(id);
        if own.is_none() && is_about_to_start(runs, &news.run) {
            return Ok(Tracking::Continues);
        }
        self.seen.own_fence = own.map(|own| own.fence);
        let (events, ended) = match own.filter(|own| own.fence == news.run.fence) {
            Some(own) => (self.note_own(news, own.ended || driven), own.ended || !driven),
            None => (self.events(runs, news).await?, !news.has_more),
        };
        for (at, event) in events {
            runs.feed.publish(&news.run.principal, id, at, || event);
        }
        Ok(if ended && news.run.ended_at.is_some() { Tracking::Ended } else { Tracking::Continues })
    }

    /// Takes note of a run whose driver publishes in this process. An end that no driver publishes, because the run waited
    /// when it expired or was aborted, is published here.
    fn note_own(&mut self, news: &RunNews, has_publisher: bool) -> Vec<TimedEvent> {
        self.seen = FollowedRun { own_fence: self.seen.own_fence, ..news.seen };
        (self.fence, self.state) = (news.run.fence, Some(news.run.state));
        self.question.clone_from(&news.run.question_id);
        match news.run.ended_at {
            Some(at) if !has_publisher => vec![(at, run_end(&news.run, news.run.calls, None))],
            _ => Vec::new(),
        }
    }

    async fn events(&mut self, runs: &RunRegistry, news: &RunNews) -> Result<Vec<TimedEvent>, Problem> {
        let run = &news.run;
        let mut events = Vec::new();
        let resumed = run.fence > self.fence && run.state == RunState::Running;
        if self.state.is_none() || resumed {
            let at = if resumed { run.updated_at } else { run.created_at };
            events.push((at, run_start(run, resumed)));
        }
        for entry in &news.entries {
            let event = self.entry_event(entry);
            events.extend(event.filter(|_| entry.number > self.silent_until));
        }
        if !news.has_more {
            events.extend(self.state_event(runs, run).await?);
        }
        self.seen = FollowedRun { own_fence: self.seen.own_fence, ..news.seen };
        (self.fence, self.state) = (run.fence, Some(run.state));
        Ok(events)
    }

    fn entry_event(&mut self, FollowedEntry { entry, body_bytes, .. }: &FollowedEntry) -> Option<TimedEvent> {
        match entry.kind {
            JournalEntryKind::Issued => {
                let (call, tool) = (entry.call?, entry.tool.clone()?);
                self.calls = self.calls.max(call);
                let open = OpenCall { tool: tool.clone(), node: entry.node.clone(), at: entry.at };
                self.open.insert(call, open);
                let event =
                    FeedEvent::TaskStart { call, tool, node_id: entry.node.clone(), capability: None };
                Some((entry.at, event))
            }
            JournalEntryKind::Delivered => {
                let outcome = self.outcome(entry.call?, entry.at, &entry.body, *body_bytes)?;
                Some((entry.at, FeedEvent::TaskComplete(Box::new(outcome))))
            }
            JournalEntryKind::Sending
            | JournalEntryKind::Resending
            | JournalEntryKind::Granted
            | JournalEntryKind::Allowed => None,
        }
    }

    fn outcome(&mut self, call: u32, at: i64, body: &[u8], body_bytes: i64) -> Option<TaskOutcome> {
        let open = self.open.remove(&call)?;
        let mut outcome = TaskOutcome {
            call,
            tool: open.tool,
            node_id: open.node,
            capability: None,
            status: "ok",
            duration_ms: at - open.at,
            result_preview: None,
            result_size: usize::try_from(body_bytes).ok(),
            speculated: false,
            saved_ms: None,
        };
        // The body of a large result was not read; errors are not large.
        match serde_json::from_slice(body) {
            Ok(RunDelivery::Result { value, saved_ms, .. }) => {
                outcome.result_preview = Some(preview(value.get()));
                outcome.result_size = Some(value.get().len());
                (outcome.speculated, outcome.saved_ms) = (saved_ms.is_some(), saved_ms);
            }
            Ok(RunDelivery::Error { error, .. }) => {
                self.failed += 1;
                outcome.status = if error.unknown { "in_doubt" } else { "error" };
                outcome.result_preview = Some(preview(&format!("{}: {}", error.code, error.message)));
                outcome.result_size = None;
            }
            _ => {}
        }
        Some(outcome)
    }

    async fn state_event(&mut self, runs: &RunRegistry, run: &RunRow) -> Result<Option<TimedEvent>, Problem> {
        if let Some(at) = run.ended_at {
            let failed = (self.silent_until == 0).then_some(self.failed);
            return Ok(Some((at, run_end(run, run.calls.max(self.calls), failed))));
        }
        let asked = run.question_id.clone();
        if asked != std::mem::replace(&mut self.question, asked.clone()) && asked.is_some() {
            let overview = runs.store.run_overview(&run.principal, &run.id).await?;
            let question = overview.and_then(|overview| overview.question);
            return Ok(question.map(|(id, question)| (run.updated_at, FeedEvent::question(&id, &question))));
        }
        let changed = self.state.is_some_and(|before| before != run.state);
        let status = match run.state {
            RunState::Waiting => "waiting",
            RunState::Interrupted => "interrupted",
            _ => return Ok(None),
        };
        let ended = self.calls - u32::try_from(self.open.len()).unwrap_or(0).min(self.calls);
        let progress =
            FeedEvent::Progress { status, calls: self.calls, ended, done: None, total: None, message: None };
        Ok(changed.then_some((run.updated_at, progress)))
    }
}

fn run_start(run: &RunRow, resumed: bool) -> FeedEvent {
    FeedEvent::RunStart(RunSummary {
        kind: match run.kind {
            RunKind::Code => "program",
            RunKind::Dag => "dag",
            RunKind::Tool => "tool",
        },
        intent: run.intent.clone(),
        session: run.session.clone(),
        resumed,
        started_at: run.created_at,
    })
}

fn run_end(run: &RunRow, calls: u32, failed_calls: Option<usize>) -> FeedEvent {
    let error = |code: &String| EventError { code: code.clone(), message: String::new() };
    FeedEvent::RunEnd {
        status: run.state,
        duration_ms: run.ended_at.unwrap_or(run.updated_at) - run.created_at,
        calls,
        failed_calls,
        capability: None,
        error: run.error_code.as_ref().map(error),
    }
}
