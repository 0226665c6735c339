//! Whether a server is in use, and since when it has not been.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The use of one server by calls.
#[derive(Debug)]
pub(super) struct ServerUsage {
    /// The number of calls under way.
    calls: AtomicU32,
    /// How many of them nobody has asked for yet.
    speculative: AtomicU32,
    since: Instant,
    /// When the server was last used, in milliseconds after `since`.
    last_used_ms: AtomicU64,
}

/// Whether somebody waits for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPurpose {
    /// A program or a client asked for it.
    Requested,
    /// It is made before anybody asks for it.
    Speculative,
}

impl ServerUsage {
    /// A server that counts as used now.
    pub(super) fn new() -> ServerUsage {
        ServerUsage {
            calls: AtomicU32::new(0),
            speculative: AtomicU32::new(0),
            since: Instant::now(),
            last_used_ms: AtomicU64::new(0),
        }
    }

    /// Notes a use.
    pub(super) fn touch(&self) {
        let elapsed = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used_ms.store(elapsed, Ordering::Relaxed);
    }

    /// Notes that a call begins.
    pub(super) fn begin_call(&self, purpose: CallPurpose) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if purpose == CallPurpose::Speculative {
            self.speculative.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Notes that a call has ended.
    pub(super) fn end_call(&self, purpose: CallPurpose) {
        if purpose == CallPurpose::Speculative {
            self.speculative.fetch_sub(1, Ordering::SeqCst);
        }
        self.calls.fetch_sub(1, Ordering::SeqCst);
        self.touch();
    }

    /// The number of calls under way that somebody waits for.
    pub(super) fn requested_calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst).saturating_sub(self.speculative.load(Ordering::SeqCst))
    }

    /// Whether a call is under way.
    pub(super) fn is_in_use(&self) -> bool {
        self.calls.load(Ordering::SeqCst) > 0
    }

    /// The time since the last use.
    pub(super) fn unused_for(&self) -> Duration {
        let last_used = Duration::from_millis(self.last_used_ms.load(Ordering::Relaxed));
        self.since.elapsed().saturating_sub(last_used)
    }
}
