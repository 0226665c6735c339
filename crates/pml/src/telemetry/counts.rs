//! What became of the spans of this process: a collector cannot know what it was not sent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts spans by what became of them.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    sent: AtomicU64,
    dropped: AtomicU64,
    /// Whether the log has it that spans find no room. Once is enough: the counter tells how many.
    warned: AtomicBool,
}

impl SpanCounts {
    /// The spans that the collector received.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The spans that it did not receive: it refused them or was away, or more ended than could be sent.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn note_sent(&self, spans: usize) {
        self.sent.fetch_add(spans as u64, Ordering::Relaxed);
    }

    pub(super) fn note_not_sent(&self, spans: usize) {
        self.dropped.fetch_add(spans as u64, Ordering::Relaxed);
    }

    /// Counts a span for which the queue has no room.
    pub(super) fn note_no_room(&self) {
        self.note_not_sent(1);
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "more spans end than the collector takes, so some are dropped; `pml_spans_dropped_total` counts them"
            );
        }
    }
}
