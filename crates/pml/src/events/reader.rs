//! A reader of the feed. Its queue is the ring itself, so a slow reader costs the others nothing.

use std::sync::Arc;

use pml_model::{Principal, RunId};
use tokio::sync::watch;

use super::{EventFeed, EventId, PublishedEvent};
use crate::clock::now_ms;

/// The events that a reader takes at once. It holds no more than these beside the ring, however slow it is.
const BATCH: usize = 64;

/// Follows the events of one principal, and of one run if it names one.
#[derive(Debug)]
pub struct FeedReader {
    feed: Arc<EventFeed>,
    principal: Principal,
    run: Option<RunId>,
    /// The number of the last event that was received or skipped.
    cursor: u64,
    missed: bool,
    last: watch::Receiver<u64>,
    closed: watch::Receiver<bool>,
}

/// What a reader receives.
#[derive(Debug)]
pub enum FeedDelivery {
    /// The next events.
    Events(Vec<Arc<PublishedEvent>>),
    /// Events are missing: load anew, and go on from here.
    Reset,
    /// The process ends.
    Closed,
}

impl FeedReader {
    pub(super) fn new(
        feed: Arc<EventFeed>,
        (principal, run): (Principal, Option<RunId>),
        cursor: u64,
        missed: bool,
    ) -> FeedReader {
        let (last, closed) = (feed.last.subscribe(), feed.closed.subscribe());
        FeedReader { feed, principal, run, cursor, missed, last, closed }
    }

    /// The id of the last event that was received, or skipped because it is about something else.
    pub fn position(&self) -> EventId {
        self.feed.id(self.cursor, now_ms())
    }

    /// The id of an event that this reader received.
    pub fn id_of(&self, event: &PublishedEvent) -> EventId {
        self.feed.id(event.number, event.at)
    }

    /// Whether events between the requested beginning and now are missing. The reader does not report them any more.
    pub fn take_missed(&mut self) -> bool {
        std::mem::take(&mut self.missed)
    }

    /// Waits for the next events. Dropping the future loses nothing.
    pub async fn next(&mut self) -> FeedDelivery {
        loop {
            self.last.mark_unchanged();
            if std::mem::take(&mut self.missed) {
                return FeedDelivery::Reset;
            }
            let events = {
                let ring = self.feed.ring.lock();
                if !ring.has_all_after(self.cursor) {
                    self.cursor = ring.last;
                    return FeedDelivery::Reset;
                }
                let events = ring.after(self.cursor, BATCH);
                self.cursor = events.last().map_or(ring.last, |last| last.number);
                events
            };
            let is_full = events.len() == BATCH;
            let own: Vec<_> = events.into_iter().filter(|event| self.is_for_us(event)).collect();
            if !own.is_empty() {
                return FeedDelivery::Events(own);
            }
            if is_full {
                continue;
            }
            if *self.closed.borrow_and_update() {
                return FeedDelivery::Closed;
            }
            tokio::select! {
                _ = self.last.changed() => {}
                _ = self.closed.changed() => {}
            }
        }
    }

    fn is_for_us(&self, event: &PublishedEvent) -> bool {
        event.principal == self.principal && self.run.as_ref().is_none_or(|run| *run == event.run)
    }
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        self.feed.leave();
    }
}
