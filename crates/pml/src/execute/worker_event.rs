//! What the run core hears of the events of a worker: the same in a run, in a dry run and in a replay.

use pml_sandbox::WorkerEvent;

use super::ending::RunEnding;
use super::observe::{Observer, ReportedCall};
use super::run::RunEvent;

/// The event of the run core for an event of the worker; `None` if the run core does not hear of it. `issued_at` is when
/// a call was issued, by its number.
pub(super) fn run_event(
    observer: &mut Observer,
    seen: WorkerEvent,
    issued_at: impl FnOnce(u32) -> i64,
) -> Option<RunEvent<RunEnding>> {
    Some(match seen {
        WorkerEvent::Call { call, frame, point, context, handle, arguments } => {
            let seen = ReportedCall { call, frame, point, context, handle, arguments };
            RunEvent::Issued(observer.on_call(&seen, issued_at(call)))
        }
        WorkerEvent::Timer { timer, delay_ms } => {
            RunEvent::TimerSet { timer: u64::from(timer), delay_ms, from: None }
        }
        WorkerEvent::TimerCleared { timer } => RunEvent::TimerCleared { timer: u64::from(timer) },
        WorkerEvent::Quiet { taken, .. } => RunEvent::Quiet { taken },
        WorkerEvent::Ended(ending) => RunEvent::Ended(observer.ending(&ending)),
        WorkerEvent::Console { .. }
        | WorkerEvent::ConsoleCut
        | WorkerEvent::Progress { .. }
        | WorkerEvent::Hint { .. }
        | WorkerEvent::FrameBegan { .. }
        | WorkerEvent::FrameEnded { .. }
        | WorkerEvent::Operation { .. }
        | WorkerEvent::Reached { .. } => return None,
    })
}
