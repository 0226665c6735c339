//! Reads that a dry run made, kept for the run that confirms it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_model::{Digest, ToolId};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::reads::{PendingRead, ReadOrigin, ReadOutcome};
use crate::builtin::ReadRecorder;
use crate::epoch::EpochMark;
use crate::tools::CallOutcome;

/// A read that a dry run made, with all that decides whether its result can still be used.
#[derive(Debug, Clone)]
pub(crate) struct EarlierRead {
    pub(crate) tool: ToolId,
    /// The arguments, as the bytes that the program sent.
    pub(crate) arguments: Arc<str>,
    /// The definition that the tool had.
    pub(crate) definition: Digest,
    /// The write epoch before the read began.
    pub(crate) mark: EpochMark,
    pub(crate) began: Instant,
    pub(crate) took: Duration,
    /// The tool's own result.
    pub(crate) result: Box<RawValue>,
    /// The files that were read.
    pub(crate) witness: ReadRecorder,
}

impl EarlierRead {
    /// A read with a result of this size.
    #[cfg(test)]
    pub(crate) fn of_size(bytes: usize) -> EarlierRead {
        EarlierRead {
            tool: ToolId::parse("a:read").unwrap(),
            arguments: Arc::from(""),
            definition: Digest::of(b""),
            mark: EpochMark::default(),
            began: Instant::now(),
            took: Duration::ZERO,
            result: RawValue::from_string("1".repeat(bytes)).unwrap(),
            witness: ReadRecorder::default(),
        }
    }

    /// The size in memory, in bytes, without the stamps of the files.
    pub(crate) fn size_bytes(&self) -> usize {
        self.arguments.len() + self.result.get().len()
    }

    /// The read as one that is ready.
    pub(super) fn into_pending(self) -> PendingRead {
        let (tell, outcome) = oneshot::channel();
        let bytes = self.result.get().len();
        let outcome_of_read = CallOutcome::Ok(self.result);
        drop(tell.send(ReadOutcome { outcome: outcome_of_read, mark: self.mark, took: self.took }));
        PendingRead {
            number: 0,
            bytes,
            tool: self.tool,
            arguments: self.arguments,
            definition: self.definition,
            began: self.began,
            outcome,
            origin: ReadOrigin::DryRun,
            confidence: 1.0,
            witness: self.witness,
            _cancel: CancellationToken::new().drop_guard(),
        }
    }
}
