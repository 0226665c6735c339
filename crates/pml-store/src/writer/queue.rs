//! The write queue: the changes that wait, in order, and how long they wait.
//!
//! The queue is bounded by bytes. It does not know what the changes do.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Urgency, WriteJob};

/// How long a lazy change waits for others to share its commit.
const LINGER: Duration = Duration::from_millis(5);

/// Limits of a batch, in changes and in bytes (about), so that other processes get their turn to write.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Capacity in bytes. Beyond it callers block or are refused.
const QUEUE_BYTES: usize = 64 * 1024 * 1024;

/// The changes that wait for the writer thread.
#[derive(Default)]
pub(super) struct WriteQueue {
    state: Mutex<QueueState>,
    /// Signalled when a change arrives that the thread waits for.
    work: Condvar,
    /// Signalled when changes were written and there is room again.
    room: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<(Instant, Box<dyn WriteJob>)>,
    /// Number of waiting changes that are not lazy.
    urgent: usize,
    /// Weight of all changes that are not committed yet, including the batch the thread is writing.
    bytes: usize,
    asleep: Option<WakeCondition>,
    closed: bool,
}

/// The event that the thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WakeCondition {
    ForAny,
    ForUrgent,
}

impl WriteQueue {
    /// Queues a change, or returns it with the number of bytes that are queued if there is no room.
    pub(super) fn push(&self, job: Box<dyn WriteJob>) -> Result<(), (Box<dyn WriteJob>, usize)> {
        let state = self.lock();
        match state.bytes {
            bytes if bytes >= QUEUE_BYTES => Err((job, bytes)),
            _ => {
                self.put(state, job);
                Ok(())
            }
        }
    }

    /// Queues a change, and blocks until there is room.
    pub(super) fn push_blocking(&self, job: Box<dyn WriteJob>) {
        let full = |state: &mut QueueState| state.bytes >= QUEUE_BYTES && !state.closed;
        let state = self.room.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        self.put(state, job);
    }

    fn put(&self, mut state: MutexGuard<'_, QueueState>, job: Box<dyn WriteJob>) {
        if state.closed {
            // Dropping the change answers its caller; that must not happen while others wait for the lock.
            drop(state);
            return drop(job);
        }
        state.bytes += job.bytes();
        state.urgent += usize::from(job.urgency() != Urgency::Lazy);
        state.waiting.push_back((Instant::now(), job));
        let wanted = match state.asleep {
            Some(WakeCondition::ForAny) => true,
            Some(WakeCondition::ForUrgent) => state.is_pressing(),
            None => false,
        };
        if wanted {
            state.asleep = None;
            drop(state);
            self.work.notify_one();
        }
    }

    /// The next batch to be committed; `None` once the queue is empty and closed.
    pub(super) fn take(&self) -> Option<Vec<Box<dyn WriteJob>>> {
        let mut state = self.lock();
        loop {
            let Some((first, _)) = state.waiting.front() else {
                if state.closed {
                    return None;
                }
                state = self.sleep(state, WakeCondition::ForAny, None);
                continue;
            };
            let left = LINGER.saturating_sub(first.elapsed());
            if state.is_pressing() || left.is_zero() {
                return Some(state.take_batch());
            }
            state = self.sleep(state, WakeCondition::ForUrgent, Some(left));
        }
    }

    fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, QueueState>,
        asleep: WakeCondition,
        timeout: Option<Duration>,
    ) -> MutexGuard<'a, QueueState> {
        state.asleep = Some(asleep);
        let mut state = match timeout {
            None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => self.work.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0,
        };
        state.asleep = None;
        state
    }

    /// Frees the room of a batch that is written.
    pub(super) fn release_bytes(&self, bytes: usize) {
        let mut state = self.lock();
        let was_full = state.bytes >= QUEUE_BYTES;
        state.bytes -= bytes;
        drop(state);
        if was_full {
            self.room.notify_all();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Closes the queue: no change is accepted any more, but the waiting ones are still taken.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_all();
        self.room.notify_all();
    }

    /// A guard of the writer thread: when it is dropped, the queue is closed and what waits is dropped.
    pub(super) fn abandon_at_end(&self) -> impl Drop {
        AbandonGuard(self)
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// Whether waiting for more changes gains nothing.
    fn is_pressing(&self) -> bool {
        self.urgent > 0 || self.closed || self.waiting.len() >= BATCH || self.bytes >= BATCH_BYTES
    }

    fn take_batch(&mut self) -> Vec<Box<dyn WriteJob>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Some((_, job)) = self.waiting.pop_front() else { break };
            bytes += job.bytes();
            self.urgent -= usize::from(job.urgency() != Urgency::Lazy);
            batch.push(job);
        }
        batch
    }
}

struct AbandonGuard<'a>(&'a WriteQueue);

impl Drop for AbandonGuard<'_> {
    fn drop(&mut self) {
        self.0.close();
        let left = std::mem::take(&mut self.0.lock().waiting);
        drop(left);
    }
}
