//! What programs and tasks say, as the run core understands it.

use pml_sandbox::{Event as Seen, Fault};

use super::super::dag::Word;
use super::super::observe::{CallSeen, Ending, faulted};
use super::super::run::Event;
use super::{Driver, Heard, stop, work};
use crate::clock::now_ms;

impl Driver {
    /// What the source of work says, as the run core understands it.
    pub(super) fn heard(&mut self, heard: work::Heard) -> Option<Heard> {
        match heard {
            work::Heard::Worker(Ok(seen)) => self.seen(seen),
            work::Heard::Worker(Err(fault)) => self.fault(&fault),
            work::Heard::Task((task, word)) => {
                self.task_said(task, word);
                None
            }
            work::Heard::TaskLate(task) => {
                if let Some(dag) = &mut self.work.dag {
                    dag.out_of_time(task);
                }
                self.listen_to_dag();
                None
            }
            work::Heard::Timer(timer) => Some(Heard::Event(Event::TimerDue { timer })),
        }
    }

    /// What the worker says, as the run core understands it.
    fn seen(&mut self, seen: Seen) -> Option<Heard> {
        // While the past is gone through again nobody is told anew.
        if !self.run.is_replaying() {
            self.tell(&seen);
        }
        self.observer.see(&seen, now_ms());
        let event = match seen {
            Seen::Call { call, frame, point, context, handle, arguments } => {
                let at = self.recorded_at.get(call as usize - 1).copied().unwrap_or_else(now_ms);
                let seen = CallSeen { call, frame, point, context, handle, arguments };
                Event::Issued(self.observer.issued(&seen, at))
            }
            Seen::Timer { timer, delay_ms } => {
                Event::TimerSet { timer: u64::from(timer), delay_ms, from: None }
            }
            Seen::TimerCleared { timer } => {
                let timer = u64::from(timer);
                self.work.clear_timer(timer);
                Event::TimerCleared { timer }
            }
            Seen::Quiet { taken, .. } => Event::Quiet { taken },
            Seen::Ended(ending) => {
                self.work.forget_worker();
                Event::Ended(self.observer.ending(&ending))
            }
            Seen::Console { .. }
            | Seen::ConsoleCut
            | Seen::Progress { .. }
            | Seen::Hint { .. }
            | Seen::FrameBegan { .. }
            | Seen::FrameEnded { .. }
            | Seen::Operation { .. }
            | Seen::Reached { .. } => {
                return None;
            }
        };
        Some(Heard::Event(event))
    }

    /// What the program of a task says.
    fn task_said(&mut self, task: usize, word: Word) {
        let Some(dag) = &mut self.work.dag else { return };
        let time = dag.time_of(task).filter(|_| self.run.is_replaying());
        if let Some((frame, node, seen)) = dag.heard(task, word) {
            if !self.run.is_replaying() {
                self.tell(&seen);
            }
            self.observer.see_in_task(frame, node, &seen, time.unwrap_or_else(now_ms));
        }
        self.listen_to_dag();
    }

    fn fault(&mut self, fault: &Fault) -> Option<Heard> {
        self.work.forget_worker();
        if let Fault::Broke(how) = fault {
            tracing::error!(run = %self.of.lease.run(), how, "a sandbox worker broke its protocol and was killed");
        }
        let failure = faulted(&self.of.plan, fault);
        match fault {
            Fault::Died { .. } => Some(Heard::Crashed(failure)),
            Fault::Cpu | Fault::Broke(_) => stop(Ending::Failed(failure)),
        }
    }
}
