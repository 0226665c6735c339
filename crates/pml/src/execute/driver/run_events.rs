//! Translates the events of programs and tasks into events of the run core.

use pml_sandbox::{WorkerEvent, WorkerFault};

use super::super::dag::FrameMessage;
use super::super::run::RunEvent;
use super::super::worker_event::run_event;
use super::{Driver, DriverEvent, stop, work};
use crate::clock::now_ms;
use crate::execute::ending::{RunEnding, fault_failure};

impl Driver {
    /// Translates an event of the source of calls.
    pub(super) fn on_work_event(&mut self, heard: work::WorkEvent) -> Option<DriverEvent> {
        match heard {
            work::WorkEvent::Worker(Ok(seen)) => self.seen(seen),
            work::WorkEvent::Worker(Err(fault)) => self.fault(&fault),
            work::WorkEvent::Task((task, word)) => {
                self.task_said(task, word);
                None
            }
            work::WorkEvent::TaskTimedOut(task) => {
                if let Some(dag) = &mut self.work.dag {
                    dag.fail_timed_out(task);
                }
                self.take_dag_events();
                None
            }
            work::WorkEvent::Timer(timer) => Some(DriverEvent::Event(RunEvent::TimerDue { timer })),
        }
    }

    /// Translates an event of the worker.
    fn seen(&mut self, seen: WorkerEvent) -> Option<DriverEvent> {
        self.follow_value(&seen);
        // The observer comes first: the client is told of progress as the observer has it.
        self.observer.on_event(&seen, now_ms());
        // During replay the client does not receive the messages again.
        if !self.run.is_replaying() {
            self.notify_client(&seen);
            self.publish_worker_event(0, &seen);
        }
        let issued_at = |call: u32| self.recorded_at.get(call as usize - 1).copied().unwrap_or_else(now_ms);
        let event = run_event(&mut self.observer, seen, issued_at)?;
        match &event {
            RunEvent::TimerCleared { timer } => self.work.clear_timer(*timer),
            RunEvent::Ended(_) => self.work.forget_worker(),
            _ => {}
        }
        Some(DriverEvent::Event(event))
    }

    /// Handles a message of a task's program.
    fn task_said(&mut self, task: usize, word: FrameMessage) {
        let Some(dag) = &mut self.work.dag else { return };
        let time = dag.time_of(task).filter(|_| self.run.is_replaying());
        if let Some((frame, node, seen)) = dag.on_frame_message(task, word) {
            self.observer.on_task_event(frame, node, &seen, time.unwrap_or_else(now_ms));
            if !self.run.is_replaying() {
                self.notify_client(&seen);
                self.publish_worker_event(frame, &seen);
            }
        }
        self.take_dag_events();
    }

    fn fault(&mut self, fault: &WorkerFault) -> Option<DriverEvent> {
        self.work.forget_worker();
        if let WorkerFault::Broke(how) = fault {
            tracing::error!(run = %self.driven.lease.run(), how, "a sandbox worker broke its protocol and was killed");
        }
        let failure = fault_failure(&self.driven.plan, fault);
        match fault {
            WorkerFault::Died { .. } => Some(DriverEvent::Crashed(failure)),
            WorkerFault::Cpu | WorkerFault::Broke(_) => stop(RunEnding::Failed(failure)),
        }
    }
}
