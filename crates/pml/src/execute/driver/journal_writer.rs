//! Writes the journal of one run: the only place where a run appends to it.

use std::time::{Duration, Instant};

use pml_store::{Change, Entry, Lease, Store, Urgency};
use tokio::sync::{mpsc, oneshot};

use crate::config::Durable;

/// How long an entry that nobody waits for may stay unwritten, and how many may.
const WRITE_WITHIN: Duration = Duration::from_millis(4);
const TOGETHER: usize = 64;

/// What became of an append that somebody has to know of.
#[derive(Debug)]
pub(in crate::execute) enum Ack {
    /// The entry that `call` is about to be sent is on disk.
    Stored(u32),
    /// Something could not be written.
    Failed(pml_store::Error),
}

/// The journal of one run, and what is not written to it yet.
pub(super) struct JournalWriter {
    store: Store,
    lease: Lease,
    unwritten: Vec<Entry>,
    /// When that is to be written at the latest.
    write_by: Option<Instant>,
    acks: mpsc::UnboundedSender<Ack>,
    acked: mpsc::UnboundedReceiver<Ack>,
}

impl JournalWriter {
    pub(super) fn new(
        store: Store,
        lease: Lease,
        acks: mpsc::UnboundedSender<Ack>,
        acked: mpsc::UnboundedReceiver<Ack>,
    ) -> JournalWriter {
        JournalWriter { store, lease, unwritten: Vec::new(), write_by: None, acks, acked }
    }

    /// Adds an entry to what is written next.
    pub(super) fn push(&mut self, entry: Entry) {
        self.unwritten.push(entry);
    }

    /// When [`JournalWriter::write`] has to be called at the latest.
    pub(super) fn write_by(&self) -> Option<Instant> {
        self.write_by
    }

    /// Collects what may wait a little: many small entries cost more than few large ones.
    pub(super) fn write_in_time(&mut self) {
        if self.unwritten.len() >= TOGETHER {
            self.write();
        } else if !self.unwritten.is_empty() && self.write_by.is_none() {
            self.write_by = Some(Instant::now() + WRITE_WITHIN);
        }
    }

    /// Hands what is not written yet to the store.
    pub(super) fn write(&mut self) {
        if self.unwritten.is_empty() {
            self.write_by = None;
        } else {
            self.append_and_hear_failure(None, Urgency::Soon);
        }
    }

    /// Changes the run's row, with what is written next.
    pub(super) fn change(&mut self, change: Change, urgency: Urgency) {
        self.append_and_hear_failure(Some(change), urgency);
    }

    /// Writes that `call` is about to be sent, and hears when that is on disk.
    pub(super) fn promise(&mut self, call: u32, durable: Durable) {
        let urgency = match durable {
            Durable::Full => Urgency::Durable,
            Durable::Normal => Urgency::Soon,
        };
        let acks = self.acks.clone();
        self.append(None, urgency, move |stored| {
            let ack = stored.map_or_else(Ack::Failed, |()| Ack::Stored(call));
            // A run that is over no longer listens.
            drop(acks.send(ack));
        });
    }

    /// Writes everything and waits until it is stored.
    pub(super) async fn settle(&mut self, change: Change) -> Result<(), pml_store::Error> {
        let (stored, told) = oneshot::channel();
        self.append(Some(change), Urgency::Soon, move |outcome| drop(stored.send(outcome)));
        told.await.unwrap_or_else(|_| Err(pml_store::Error::Stopped { path: self.store.path().to_owned() }))
    }

    /// What became of earlier appends.
    pub(super) async fn next_ack(&mut self) -> Option<Ack> {
        self.acked.recv().await
    }

    /// Lets the run hear of a failure like that of an append.
    pub(super) fn fail(&self, error: pml_store::Error) {
        drop(self.acks.send(Ack::Failed(error)));
    }

    fn append_and_hear_failure(&mut self, change: Option<Change>, urgency: Urgency) {
        let acks = self.acks.clone();
        self.append(change, urgency, move |stored| {
            if let Err(error) = stored {
                drop(acks.send(Ack::Failed(error)));
            }
        });
    }

    fn append(
        &mut self,
        change: Option<Change>,
        urgency: Urgency,
        stored: impl FnOnce(Result<(), pml_store::Error>) + Send + 'static,
    ) {
        self.write_by = None;
        self.store.append(&self.lease, std::mem::take(&mut self.unwritten), change, urgency, stored);
    }
}
