//! How a run ends, and how a client or user requests its end.

use pml_model::ErrorCode;
use pml_sandbox::WorkerFault;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::report::RunFailure;

/// How a program ended.
#[derive(Debug, Clone)]
pub(super) enum RunEnding {
    /// It returned this value, as JSON.
    Value(String),
    /// It failed.
    Failed(RunFailure),
    /// Its client cancelled it.
    Cancelled,
    /// A user aborted it, perhaps with a reason.
    Aborted(Option<String>),
    /// This process ends; another one may resume the run.
    Suspended,
}

/// A requested end of a run. It is recorded if the end takes a while, so that it takes effect even if the process is
/// killed meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum RequestedEnd {
    /// The client no longer wants the result.
    Cancel,
    /// A user aborts the run.
    Abort {
        /// The reason, as text.
        reason: Option<String>,
    },
}

impl RequestedEnd {
    /// The request that led to an ending; `None` if there was none.
    pub(super) fn from_ending(ending: &RunEnding) -> Option<RequestedEnd> {
        match ending {
            RunEnding::Cancelled => Some(RequestedEnd::Cancel),
            RunEnding::Aborted(reason) => Some(RequestedEnd::Abort { reason: reason.clone() }),
            RunEnding::Value(_) | RunEnding::Failed(_) | RunEnding::Suspended => None,
        }
    }

    /// The ending that was requested.
    pub(super) fn into_ending(self) -> RunEnding {
        match self {
            RequestedEnd::Cancel => RunEnding::Cancelled,
            RequestedEnd::Abort { reason } => RunEnding::Aborted(reason),
        }
    }
}

/// The failure of the run for a fault of its worker.
pub(super) fn fault_failure(plan: &Plan, fault: &WorkerFault) -> RunFailure {
    match fault {
        WorkerFault::Cpu => {
            let time = plan.limits.cpu_ms;
            RunFailure::new(ErrorCode::Timeout, format!("the program computed for {time} ms without an end"))
                .hint("look for an endless loop, or raise `limits.cpu` in pml.toml")
        }
        WorkerFault::Died { .. } => RunFailure::new(ErrorCode::WorkerCrashed, fault.to_string())
            .hint("run it again; if it happens again, please report the program"),
        WorkerFault::Broke(_) => RunFailure::new(ErrorCode::Denied, fault.to_string()),
    }
}

/// The failure of a program that exceeded its memory limit.
pub(super) fn out_of_memory(plan: &Plan) -> RunFailure {
    let most = plan.limits.heap_bytes;
    RunFailure::new(ErrorCode::Memory, format!("the program needs more than {most} bytes of memory"))
        .hint("work on less at a time, or raise `limits.heap` in pml.toml")
}
