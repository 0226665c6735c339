//! The events of a run, and the actions that follow from them.

use crate::execute::delivery::RunDelivery;
use crate::execute::issued_call::IssuedCall;
use crate::execute::journal::JournalRecord;
use crate::plan::Grant;

/// An event of a run.
#[derive(Debug)]
pub(in crate::execute) enum RunEvent<E> {
    /// The program issued a call.
    Issued(IssuedCall),
    /// The program set a timer; `from` is its own clock if that differs from the run's.
    TimerSet { timer: u64, delay_ms: u64, from: Option<i64> },
    /// The program cleared a timer.
    TimerCleared { timer: u64 },
    /// The run waits for an answer on how to go on.
    Paused,
    /// A client requests that the run waits before its next layer.
    PauseRequested,
    /// A frame that issues its own calls has ended, with this delivery.
    FrameOver(RunDelivery),
    /// The program has taken this many deliveries and has nothing left to do.
    Quiet { taken: u32 },
    /// The program has ended.
    Ended(E),
    /// The announcement of this call is on disk, so it may be sent.
    Stored { call: u32 },
    /// A call has ended.
    Answered(RunDelivery),
    /// A call was not sent, because its server needs a sign-in; `what` is its end if nobody can be asked.
    NeedsSignIn { what: RunDelivery },
    /// A timer is due.
    TimerDue { timer: u64 },
    /// A person gave a grant.
    Granted(Grant),
    /// The calls that wait for approval have no answer yet.
    Undecided,
    /// The program is to be stopped.
    Stop(E),
    /// The grace period for calls still under way has passed.
    GraceOver,
}

/// An action to carry out, in the order given.
#[derive(Debug)]
pub(in crate::execute) enum Action<E> {
    /// Record this, with the next commit at the latest.
    Record(JournalRecord),
    /// Record the announcement that this call is about to be sent, and report when it is on disk.
    Promise { call: u32 },
    /// Send this call.
    Send(IssuedCall),
    /// Deliver this to the program.
    Deliver { at: i64, what: RunDelivery },
    /// Cancel this call at its server.
    Cancel { call: u32 },
    /// Report when it is this time.
    Wake { timer: u64, at: i64 },
    /// A call needs approval.
    Ask { call: u32 },
    /// Park the run until the time, or until these calls are decided or these can be sent, whichever is first.
    Park { wake_at: Option<i64>, asking: Vec<u32>, unsigned: Vec<u32> },
    /// Stop the program.
    Kill,
    /// Wait a short time for calls whose end should be known.
    Grace,
    /// The run has ended.
    Finish(RunEnd<E>),
    /// The program diverged from its record.
    Diverged(Divergence),
}

/// The end of a run.
#[derive(Debug)]
pub(in crate::execute) struct RunEnd<E> {
    /// The reason.
    pub(in crate::execute) ending: E,
    /// The calls in doubt: sent, without a known end, and perhaps with an effect.
    pub(in crate::execute) in_doubt: Vec<u32>,
}

/// How a program diverges from its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::execute) enum Divergence {
    /// The program makes another call.
    Other { call: u32, recorded: String, now: String },
    /// The program makes the same call with other arguments.
    Arguments { call: u32, tool: String },
    /// The program does not make a recorded call.
    Missing { call: u32, recorded: String },
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Divergence::Other { call, recorded, now } => {
                write!(f, "call {call} was `{recorded}` and is now `{now}`")
            }
            Divergence::Arguments { call, tool } => {
                write!(f, "call {call}, `{tool}`, is made with other arguments than were recorded")
            }
            Divergence::Missing { call, recorded } => {
                write!(f, "call {call}, `{recorded}`, is no longer made")
            }
        }
    }
}
