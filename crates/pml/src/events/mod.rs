//! The live feed: what happens to runs, for whoever watches now.
//!
//! Publishing never waits and costs one atomic read while nobody watches. The events are kept in one ring for a while, so
//! that a reader which lost its connection can catch up. A reader that falls behind the ring is told to load anew; it
//! never holds a run up. What must last is in the journal, not here.

mod event;
mod reader;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pml_model::{Principal, RunId};
use tokio::sync::watch;

pub(crate) use event::shortened;
pub use event::{CapabilityRef, EventError, FeedEvent, QuestionRef, RunSummary, TaskOutcome};
pub use reader::{FeedDelivery, FeedReader};

/// The events that are kept: what a busy server publishes in some seconds, which is how long a page takes to reconnect.
const MAX_EVENTS: usize = 8_192;
/// 8 MiB: the size of all events that are kept.
const MAX_BYTES: usize = 8 << 20;
const PROCESS_CHARACTERS: usize = 8;
/// Stands for no process: an event that was read from the store.
const NO_PROCESS: &str = "00000000";
/// 250 ms: how late an event of another process is published, at most about: the store is polled every 100 ms.
const DISORDER_MS: i64 = 250;
/// 1 s: how long a new reader waits until the runs of other processes are followed. It goes on without them otherwise.
const READY_WITHIN: Duration = Duration::from_secs(1);
/// 5 min: how long events are still kept after the last reader left. A laptop that was closed for longer loads anew.
const LINGER: Duration = Duration::from_secs(5 * 60);

/// The feed of one process.
#[derive(Debug)]
pub struct EventFeed {
    /// Tells the events of this process from those of another one.
    process: String,
    /// Whether events are kept. Read before everything else, so that publishing costs nothing while nobody watches.
    followed: AtomicBool,
    ring: Mutex<EventRing>,
    /// The number of the last event; wakes the readers.
    last: watch::Sender<u64>,
    /// Whether somebody follows the feed, for the task that reads the runs of other processes.
    followers: watch::Sender<bool>,
    /// Whether the runs of other processes are followed.
    following: watch::Sender<bool>,
    closed: watch::Sender<bool>,
}

/// The place of an event: in the ring of its process, and in time for another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventId {
    process: String,
    number: u64,
    /// When it happened, in milliseconds since the Unix epoch.
    at: i64,
}

impl EventId {
    /// The id with this text.
    pub fn parse(text: &str) -> Option<EventId> {
        let mut parts = text.splitn(3, '-');
        let process = parts.next().filter(|process| process.len() == PROCESS_CHARACTERS)?.to_owned();
        Some(EventId { process, number: parts.next()?.parse().ok()?, at: parts.next()?.parse().ok()? })
    }

    /// From when on the store knows what came after the event, in milliseconds since the Unix epoch. Events of different
    /// processes are not ordered by time exactly, so this is a little before the event.
    pub fn missed_since(&self) -> i64 {
        self.at.saturating_sub(DISORDER_MS)
    }

    /// The id of an event that is not in the ring of any process.
    pub(crate) fn of_missed(at: i64) -> EventId {
        EventId { process: NO_PROCESS.to_owned(), number: 0, at }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.process, self.number, self.at)
    }
}

#[derive(Debug, Default)]
struct EventRing {
    events: VecDeque<Arc<PublishedEvent>>,
    bytes: usize,
    /// The number of the last event.
    last: u64,
    readers: usize,
    /// When the last reader left.
    left_at: Option<Instant>,
}

/// An event as readers receive it.
#[derive(Debug)]
pub struct PublishedEvent {
    /// The number of the event in this process.
    pub number: u64,
    /// The principal whose run it is about.
    pub principal: Principal,
    /// The run that it is about.
    pub run: RunId,
    /// When it happened, in milliseconds since the Unix epoch.
    pub at: i64,
    /// What happened.
    pub event: FeedEvent,
    /// The event as JSON, in one line.
    pub data: String,
}

/// An event that a reader missed and that was read from the store.
#[derive(Debug)]
pub struct MissedEvent {
    /// When it happened, in milliseconds since the Unix epoch.
    pub at: i64,
    /// The name of the event.
    pub name: &'static str,
    /// The event as JSON, in one line.
    pub data: String,
}

impl MissedEvent {
    pub(crate) fn new(at: i64, run: &RunId, event: &FeedEvent) -> MissedEvent {
        MissedEvent { at, name: event.name(), data: event.to_json(run, at) }
    }
}

impl EventFeed {
    /// A feed that nobody follows yet.
    pub fn new() -> Arc<EventFeed> {
        let mut random = [0; 4];
        if getrandom::fill(&mut random).is_err() {
            // Only has to differ from that of an earlier process.
            random = std::process::id().to_le_bytes();
        }
        let process = u32::from_le_bytes(random).max(1);
        Arc::new(EventFeed {
            process: format!("{process:0PROCESS_CHARACTERS$x}"),
            followed: AtomicBool::new(false),
            ring: Mutex::default(),
            last: watch::Sender::new(0),
            followers: watch::Sender::new(false),
            following: watch::Sender::new(false),
            closed: watch::Sender::new(false),
        })
    }

    /// Whether events are wanted at all.
    pub fn is_followed(&self) -> bool {
        self.followed.load(Ordering::Relaxed)
    }

    /// Publishes an event of a run. `event` is not called while nobody follows the feed.
    pub fn publish(&self, principal: &Principal, run: &RunId, at: i64, event: impl FnOnce() -> FeedEvent) {
        if !self.is_followed() {
            return;
        }
        let event = event();
        let data = event.to_json(run, at);
        let mut ring = self.ring.lock();
        if self.forget_if_abandoned(&mut ring) {
            return;
        }
        ring.last += 1;
        let number = ring.last;
        ring.push(PublishedEvent { number, principal: principal.clone(), run: run.clone(), at, event, data });
        drop(ring);
        self.last.send_replace(number);
    }

    /// Stops keeping events once nobody has read them for a while.
    fn forget_if_abandoned(&self, ring: &mut EventRing) -> bool {
        let abandoned = ring.readers == 0 && ring.left_at.is_none_or(|left| left.elapsed() > LINGER);
        if abandoned {
            self.followed.store(false, Ordering::Relaxed);
            self.followers.send_replace(false);
            // A reader that comes back must not take the gap for silence.
            *ring = EventRing { last: ring.last + 1, ..EventRing::default() };
        }
        abandoned
    }

    /// Follows the events of a principal: those after `after`, else those from now on.
    pub fn subscribe(
        self: &Arc<Self>,
        principal: Principal,
        run: Option<RunId>,
        after: Option<&EventId>,
    ) -> FeedReader {
        let mut ring = self.ring.lock();
        ring.readers += 1;
        ring.left_at = None;
        self.followed.store(true, Ordering::Relaxed);
        let (cursor, missed) = match after {
            None => (ring.last, false),
            Some(id) if id.process == self.process && ring.has_all_after(id.number) => (id.number, false),
            Some(_) => (ring.last, true),
        };
        drop(ring);
        self.followers.send_replace(true);
        FeedReader::new(Arc::clone(self), (principal, run), cursor, missed)
    }

    /// The id of an event of this process.
    pub fn id(&self, number: u64, at: i64) -> EventId {
        EventId { process: self.process.clone(), number, at }
    }

    /// Waits until the runs of other processes are followed as well.
    pub async fn wait_until_following(&self) {
        let mut following = self.following.subscribe();
        // A process that only carries out a command does not follow others.
        drop(tokio::time::timeout(READY_WITHIN, following.wait_for(|is| *is)).await);
    }

    pub(crate) fn set_following(&self, following: bool) {
        self.following.send_replace(following);
    }

    /// The number of readers.
    pub fn readers(&self) -> usize {
        self.ring.lock().readers
    }

    /// Waits until somebody follows the feed (`true`) or nobody does any more (`false`).
    pub(crate) async fn wait_until_followed(&self, followed: bool) {
        let mut followers = self.followers.subscribe();
        // The sender lives as long as the feed.
        drop(followers.wait_for(|is| *is == followed).await);
    }

    /// Ends the readers once they have received what was published.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    fn leave(&self) {
        let mut ring = self.ring.lock();
        ring.readers -= 1;
        if ring.readers == 0 {
            ring.left_at = Some(Instant::now());
        }
    }
}

impl EventRing {
    fn push(&mut self, event: PublishedEvent) {
        self.bytes += event.data.len();
        self.events.push_back(Arc::new(event));
        while self.events.len() > MAX_EVENTS || (self.bytes > MAX_BYTES && self.events.len() > 1) {
            let Some(gone) = self.events.pop_front() else { break };
            self.bytes -= gone.data.len();
        }
    }

    /// Whether no event after `number` is missing.
    fn has_all_after(&self, number: u64) -> bool {
        let first = self.events.front().map_or(self.last + 1, |event| event.number);
        // In this order: the number is what a reader sends, and may be the largest there is.
        number <= self.last && number + 1 >= first
    }

    /// The next events after `number`.
    fn after(&self, number: u64, most: usize) -> Vec<Arc<PublishedEvent>> {
        let begin = self.events.partition_point(|event| event.number <= number);
        self.events.range(begin..).take(most).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
