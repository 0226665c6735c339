//! What waits to be written, in order, and for how long it waits.
//!
//! The queue is bounded by bytes. It knows nothing of what the changes do.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Job, Urgency};

/// How long a lazy change waits for others to share its commit.
const LINGER: Duration = Duration::from_millis(5);

/// How many changes share a commit at most, and about how many bytes, so that other processes get
/// their turn.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// How much may wait before callers do or are refused.
const QUEUE_BYTES: usize = 64 * 1024 * 1024;

/// Changes on their way to the thread that writes.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Something came that the thread waits for.
    work: Condvar,
    /// Something was written.
    room: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Instant, Box<dyn Job>)>,
    /// How many of them are not lazy.
    urgent: usize,
    /// The weight of all that is not committed yet, also of what the thread is at.
    bytes: usize,
    asleep: Option<Asleep>,
    closed: bool,
}

/// What the thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asleep {
    ForAny,
    ForUrgent,
}

impl Queue {
    /// Takes a change in, or gives it back with the number of bytes that are in its way.
    pub(super) fn push(&self, job: Box<dyn Job>) -> Result<(), (Box<dyn Job>, usize)> {
        let state = self.lock();
        match state.bytes {
            bytes if bytes >= QUEUE_BYTES => Err((job, bytes)),
            _ => {
                self.put(state, job);
                Ok(())
            }
        }
    }

    /// Takes a change in as soon as there is room.
    pub(super) fn push_when_there_is_room(&self, job: Box<dyn Job>) {
        let full = |state: &mut State| state.bytes >= QUEUE_BYTES && !state.closed;
        let state = self.room.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        self.put(state, job);
    }

    fn put(&self, mut state: MutexGuard<'_, State>, job: Box<dyn Job>) {
        if state.closed {
            // Whoever gave it is told as it goes, and not while others wait for the lock.
            drop(state);
            return drop(job);
        }
        state.bytes += job.bytes();
        state.urgent += usize::from(job.urgency() != Urgency::Lazy);
        state.waiting.push_back((Instant::now(), job));
        let wanted = match state.asleep {
            Some(Asleep::ForAny) => true,
            Some(Asleep::ForUrgent) => state.is_pressing(),
            None => false,
        };
        if wanted {
            state.asleep = None;
            drop(state);
            self.work.notify_one();
        }
    }

    /// The next changes to be committed together; `None` when there are none and none will come.
    pub(super) fn take(&self) -> Option<Vec<Box<dyn Job>>> {
        let mut state = self.lock();
        loop {
            let Some((first, _)) = state.waiting.front() else {
                if state.closed {
                    return None;
                }
                state = self.sleep(state, Asleep::ForAny, None);
                continue;
            };
            let left = LINGER.saturating_sub(first.elapsed());
            if state.is_pressing() || left.is_zero() {
                return Some(state.take_batch());
            }
            state = self.sleep(state, Asleep::ForUrgent, Some(left));
        }
    }

    fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        asleep: Asleep,
        timeout: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        state.asleep = Some(asleep);
        let mut state = match timeout {
            None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => self.work.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0,
        };
        state.asleep = None;
        state
    }

    /// Makes room again for what was taken and is written.
    pub(super) fn give_back(&self, bytes: usize) {
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

    /// Nothing more will come; what waits is still taken.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Closes the queue and drops what waits when the thread lets go of this, however it ends.
    pub(super) fn abandon_at_end(&self) -> impl Drop {
        Abandoned(self)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Nothing is gained by waiting for more.
    fn is_pressing(&self) -> bool {
        self.urgent > 0 || self.closed || self.waiting.len() >= BATCH || self.bytes >= BATCH_BYTES
    }

    fn take_batch(&mut self) -> Vec<Box<dyn Job>> {
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

struct Abandoned<'a>(&'a Queue);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.0.close();
        let left = std::mem::take(&mut self.0.lock().waiting);
        drop(left);
    }
}
