//! Deliveries to a program: the ends of its calls, timers, and answers on how to go on.
//!
//! Replay makes the same deliveries again, so their format is that of the journal.

use pml_model::ErrorCode;
use pml_model::question::CallAwaitingSignIn;
use pml_sandbox::DeliveryPayload;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::frames::FrameRecord;
use super::{TOOL_CHANGED, tool_changed_message};
use crate::plan::Replan;
use crate::problem::Problem;
use crate::report::{ContentPart, NotAhead, RunFailure};

/// A delivery to the program. Replay makes it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RunDelivery {
    /// The result of a call.
    Result {
        /// Number of the call within its run.
        call: u32,
        /// The value that the program receives.
        value: Box<RawValue>,
        /// The images and other parts for which the value holds handles.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<ContentPart>,
        /// How much sooner the result was there because the call was made ahead, in milliseconds; `None` if it was not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved_ms: Option<u64>,
        /// The age of the result in milliseconds, if a dry run had read it; `None` if it was read for this run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        age_ms: Option<u64>,
        /// Why the call was not made ahead; `None` if it was, or if nothing is known to have kept it from being.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_ahead: Option<NotAhead>,
    },
    /// The failure of a call.
    Error {
        /// Number of the call within its run.
        call: u32,
        /// The error that the program can catch.
        error: CallFailure,
    },
    /// A timer is due.
    Timer {
        /// Number of the timer within its run.
        timer: u64,
    },
    /// The end of a DAG task that is a program.
    Frame {
        /// The frame number of the task.
        frame: u32,
        /// The value it returned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Box<RawValue>>,
        /// The failure, if it did not return.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<CallFailure>,
        /// The capabilities it called. The task is not replayed, so they would be unknown otherwise.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        called: Vec<FrameRecord>,
    },
    /// The answer on how a DAG goes on after a layer.
    Layer {
        /// Index of the layer of the DAG.
        layer: u32,
        /// The replaced tasks, if the answer contains any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replan: Option<Box<Replan>>,
    },
    /// A client requests that a DAG waits before its next layer.
    Pause,
}

impl RunDelivery {
    /// The delivery in the form for a worker.
    pub(super) fn for_worker(&self) -> DeliveryPayload {
        match self {
            RunDelivery::Result { call, value, .. } => {
                DeliveryPayload::Result { call: *call, json: value.get().to_owned() }
            }
            RunDelivery::Error { call, error } => {
                DeliveryPayload::Error { call: *call, error: error.for_worker() }
            }
            RunDelivery::Timer { timer } => {
                DeliveryPayload::Timer { timer: u32::try_from(*timer).unwrap_or(u32::MAX) }
            }
            RunDelivery::Frame { .. } | RunDelivery::Layer { .. } | RunDelivery::Pause => {
                unreachable!("only the tasks of a DAG are given that")
            }
        }
    }

    /// The approximate size of the journal entry, in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            RunDelivery::Result { value, parts, .. } => {
                value.get().len() + parts.iter().map(|part| part.content.get().len()).sum::<usize>()
            }
            RunDelivery::Error { error, .. } => error.message.len(),
            RunDelivery::Frame { value, .. } => value.as_ref().map_or(0, |value| value.get().len()),
            RunDelivery::Timer { .. } | RunDelivery::Layer { .. } | RunDelivery::Pause => 0,
        }
    }

    /// Whether it tells the program that a call was denied.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, RunDelivery::Error { error, .. } if error.code == ErrorCode::Denied)
    }

    /// The number of the call that it ends.
    pub(super) fn call(&self) -> Option<u32> {
        match self {
            RunDelivery::Result { call, .. } | RunDelivery::Error { call, .. } => Some(*call),
            RunDelivery::Timer { .. }
            | RunDelivery::Frame { .. }
            | RunDelivery::Layer { .. }
            | RunDelivery::Pause => None,
        }
    }
}

/// The failure of a call, as the program can catch it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallFailure {
    /// The stable code for programs.
    pub(super) code: ErrorCode,
    /// The message for people.
    pub(super) message: String,
    /// The hint: what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// The tool's own error data, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<String>,
    /// Whether the call is in doubt: it was sent, and whether the tool acted is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unknown: bool,
}

impl CallFailure {
    /// A failure without a hint.
    pub(super) fn new(code: ErrorCode, message: String) -> CallFailure {
        CallFailure { code, message, hint: None, data: None, unknown: false }
    }

    /// The error in the form for the worker.
    pub(super) fn for_worker(&self) -> pml_sandbox::ToolCallError {
        pml_sandbox::ToolCallError {
            code: self.code,
            message: self.message.clone(),
            hint: self.hint.clone(),
            data: self.data.clone(),
        }
    }

    /// A person denied the call.
    pub(super) fn denied(tool: &str, reason: Option<&str>) -> CallFailure {
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        CallFailure {
            code: ErrorCode::Denied,
            message: format!("a person did not allow `{tool}` to be called{reason}"),
            hint: Some("do without it; asking again for the same is answered the same".to_owned()),
            data: None,
            unknown: false,
        }
    }

    /// Nobody signs in to the server of the call.
    pub(super) fn not_signed_in(unsigned: &CallAwaitingSignIn, reason: Option<&str>) -> CallFailure {
        let reason =
            reason.map(|reason| format!("; a person does not sign in: {reason}")).unwrap_or_default();
        CallFailure {
            hint: Some(format!("do without it, or run `pml login {}` and try again", unsigned.server)),
            ..CallFailure::new(ErrorCode::LoginRequired, format!("{}{reason}", unsigned.because))
        }
    }

    /// The definition of the tool changed after approval was asked for.
    pub(super) fn tool_changed(tool: &str) -> CallFailure {
        CallFailure {
            hint: Some(RunFailure::RUN_ANEW.to_owned()),
            ..CallFailure::new(TOOL_CHANGED, tool_changed_message(tool))
        }
    }

    /// Too many questions of the client are open.
    pub(super) fn too_many_open(tool: &str, problem: &Problem) -> CallFailure {
        CallFailure {
            hint: problem.hint.clone(),
            ..CallFailure::new(
                ErrorCode::TooManyQuestions,
                format!("`{tool}` needs a person's answer, and {}", problem.message),
            )
        }
    }

    /// The run has asked as many questions as it may.
    pub(super) fn too_many_questions(tool: &str, most: u32) -> CallFailure {
        CallFailure {
            code: ErrorCode::TooManyQuestions,
            message: format!(
                "`{tool}` needs a person's approval, and the run has asked {most} times already"
            ),
            hint: Some("ask for fewer calls, or have any arguments allowed for so many calls".to_owned()),
            data: None,
            unknown: false,
        }
    }

    /// A person decided that a call in doubt failed.
    pub(super) fn given_up(tool: &str) -> CallFailure {
        CallFailure {
            code: ErrorCode::OutcomeUnknown,
            message: format!(
                "whether `{tool}` acted is not known; a person decided to go on as if it had failed"
            ),
            hint: None,
            data: None,
            unknown: true,
        }
    }
}
