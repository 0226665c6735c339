//! Writes the journal of one run. No other code appends to it.

use std::time::{Duration, Instant};

use pml_store::{JournalEntry, Lease, RunChange, Store, Urgency};
use tokio::sync::{mpsc, oneshot};

use crate::config::Durability;

/// 4 ms: how long an entry that nothing waits for may stay unwritten.
const WRITE_WITHIN: Duration = Duration::from_millis(4);
/// The number of such entries that may stay unwritten.
const TOGETHER: usize = 64;

/// The number of failures that may queue before the run receives the first of them, which ends it.
const FAILURES: usize = 16;

/// The result of an append that the run has to know about.
#[derive(Debug)]
pub(in crate::execute) enum Ack {
    /// The entry that announces the sending of `call` is on disk.
    Stored(u32),
    /// An entry could not be written.
    Failed(pml_store::Error),
}

/// Sends a run the results of its appends. It is used on the writer thread of the store, which must not block.
#[derive(Debug, Clone)]
pub(in crate::execute) struct AckSender(mpsc::Sender<Ack>);

impl AckSender {
    /// A channel for a run of at most `calls` calls: it has room for one result per call and for some failures.
    pub(in crate::execute) fn for_run(calls: u32) -> (AckSender, mpsc::Receiver<Ack>) {
        let (acks, acked) = mpsc::channel((calls as usize).saturating_add(FAILURES));
        (AckSender(acks), acked)
    }

    /// Sends a result. It is dropped if the channel is full or closed: a full channel holds a failure, which ends the
    /// run anyway, and a finished run no longer listens.
    pub(in crate::execute) fn tell(&self, ack: Ack) {
        if let Err(error) = self.0.try_send(ack) {
            tracing::debug!(%error, "a run was not told what became of an append");
        }
    }
}

/// The journal of one run, with the entries that are not written yet.
pub(super) struct JournalWriter {
    store: Store,
    lease: Lease,
    unwritten: Vec<JournalEntry>,
    /// When the pending entries must be written at the latest.
    write_by: Option<Instant>,
    acks: AckSender,
    acked: mpsc::Receiver<Ack>,
}

impl JournalWriter {
    pub(super) fn new(
        store: Store,
        lease: Lease,
        acks: AckSender,
        acked: mpsc::Receiver<Ack>,
    ) -> JournalWriter {
        JournalWriter { store, lease, unwritten: Vec::new(), write_by: None, acks, acked }
    }

    /// Adds an entry to the next write.
    pub(super) fn push(&mut self, entry: JournalEntry) {
        self.unwritten.push(entry);
    }

    /// When [`JournalWriter::write`] must be called at the latest.
    pub(super) fn write_by(&self) -> Option<Instant> {
        self.write_by
    }

    /// Delays the write slightly to batch entries: many small writes cost more than few large ones.
    pub(super) fn write_in_time(&mut self) {
        if self.unwritten.len() >= TOGETHER {
            self.write();
        } else if !self.unwritten.is_empty() && self.write_by.is_none() {
            self.write_by = Some(Instant::now() + WRITE_WITHIN);
        }
    }

    /// Passes the pending entries to the store.
    pub(super) fn write(&mut self) {
        if self.unwritten.is_empty() {
            self.write_by = None;
        } else {
            self.append_and_hear_failure(None, Urgency::Soon);
        }
    }

    /// Changes the row of the run together with the next write.
    pub(super) fn change(&mut self, change: RunChange, urgency: Urgency) {
        self.append_and_hear_failure(Some(change), urgency);
    }

    /// Records that `call` is about to be sent, with an [`Ack`] when that is on disk.
    pub(super) fn promise(&mut self, call: u32, durable: Durability) {
        let urgency = match durable {
            Durability::Full => Urgency::Durable,
            Durability::Normal => Urgency::Soon,
        };
        let acks = self.acks.clone();
        self.append(None, urgency, move |stored| {
            acks.tell(stored.map_or_else(Ack::Failed, |()| Ack::Stored(call)));
        });
    }

    /// Writes everything and waits until it is stored.
    pub(super) async fn settle(&mut self, change: RunChange) -> Result<(), pml_store::Error> {
        let (stored, told) = oneshot::channel();
        self.append(Some(change), Urgency::Soon, move |outcome| drop(stored.send(outcome)));
        told.await
            .unwrap_or_else(|_| Err(pml_store::Error::WriterStopped { path: self.store.path().to_owned() }))
    }

    /// The next result of earlier appends.
    pub(super) async fn next_ack(&mut self) -> Option<Ack> {
        self.acked.recv().await
    }

    /// Reports a failure to the run as if an append had failed.
    pub(super) fn fail(&self, error: pml_store::Error) {
        self.acks.tell(Ack::Failed(error));
    }

    fn append_and_hear_failure(&mut self, change: Option<RunChange>, urgency: Urgency) {
        let acks = self.acks.clone();
        self.append(change, urgency, move |stored| {
            if let Err(error) = stored {
                acks.tell(Ack::Failed(error));
            }
        });
    }

    fn append(
        &mut self,
        change: Option<RunChange>,
        urgency: Urgency,
        stored: impl FnOnce(Result<(), pml_store::Error>) + Send + 'static,
    ) {
        self.write_by = None;
        self.store.append_journal(&self.lease, std::mem::take(&mut self.unwritten), change, urgency, stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped() -> Ack {
        Ack::Failed(pml_store::Error::WriterStopped { path: "pml.db".into() })
    }

    #[tokio::test]
    async fn no_failure_takes_the_place_of_a_call_and_the_first_one_is_heard() {
        let (acks, mut acked) = AckSender::for_run(2);
        (0..FAILURES).for_each(|_| acks.tell(stopped()));
        acks.tell(Ack::Stored(1));
        acks.tell(Ack::Stored(2));
        // The channel is full, so this result is dropped.
        acks.tell(stopped());
        drop(acks);
        let mut heard = Vec::new();
        while let Some(ack) = acked.recv().await {
            heard.push(ack);
        }
        assert!(matches!(heard[0], Ack::Failed(_)));
        let stored = heard.iter().filter(|ack| matches!(ack, Ack::Stored(1 | 2))).count();
        assert_eq!((stored, heard.len()), (2, 2 + FAILURES));
    }
}
