//! The end of a run in this process: finished, parked, or left to another process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_model::RunState;
use pml_model::json::raw;
use pml_model::question::Question;
use pml_store::{RunChange, Urgency};

use super::super::run::RunEnd;
use super::super::{FinishedRunNotice, ask, prove, remember};
use super::{Continuation, Driver};
use crate::clock::now_ms;
use crate::execute::ending::RunEnding;
use crate::metrics::ApprovalEvent;
use crate::problem::storage_code;
use crate::report::{RunFailure, RunReport, RunStatus};

impl Driver {
    /// Parks the run until an answer or a timer. It asks for approval first: what waits for a sign-in is asked about again.
    pub(super) async fn park(
        &mut self,
        wake_at: Option<i64>,
        (asking, unsigned): (&[u32], &[u32]),
    ) -> Continuation {
        let asked = match (&self.approvals.open_question, asking) {
            // An open question stays open; further ones come after it.
            (Some(asked), _) => Some(asked.clone()),
            (None, []) => None,
            (None, calls) => {
                Some(self.approvals.question(&self.driven, (&self.run, &self.observer), calls).await)
            }
        };
        let now = now_ms();
        let (wake_at, unsigned) = match self.sign_ins.can_go_on(&self.driven, unsigned).await {
            true => (Some(now), &[][..]),
            false => (wake_at, unsigned),
        };
        let run = self.driven.lease.run();
        let new = self.approvals.open_question.is_none().then_some(asked.as_ref()).flatten();
        let audit = new.map(|(id, asked)| ask::asked_audit(&self.driven.principal, run, id, asked, now));
        let layer =
            || self.work.paused_layer().map(|layer| (ask::layer_id(run, &layer), Question::Layer(layer)));
        let question = match &asked {
            Some((id, asked)) => Some((id.clone(), Question::Approval(asked.clone()))),
            None if !unsigned.is_empty() => Some(self.sign_ins.question(&self.driven, &self.run, unsigned)),
            None => layer(),
        };
        let expire_ms = self.driven.runs.settings.config().approvals.expire_ms();
        let change = RunChange {
            state: Some(RunState::Waiting),
            wake_at: Some(wake_at),
            question: Some(question.clone()),
            expires_at: question.as_ref().map(|_| Some(now + expire_ms)),
            calls: Some(self.observer.call_counts()),
            audit: audit.into_iter().collect(),
            release: true,
            at: now,
            ..RunChange::default()
        };
        let status = match self.journal.settle(change).await {
            Ok(()) => {
                match (&question, &self.approvals.open_question) {
                    // One that was asked while the run went on was published then.
                    (Some(question), None) => {
                        if let Question::Approval(_) = &question.1 {
                            self.driven.runs.metrics.note_approval(ApprovalEvent::Asked);
                        }
                        self.publish_question(question);
                    }
                    (_, _) => self.publish_progress("waiting"),
                }
                RunStatus::Waiting { question, wake_at, in_flight: 0 }
            }
            Err(error) => {
                tracing::error!(run = %self.driven.lease.run(), %error, "a run could not be put aside");
                RunStatus::Elsewhere
            }
        };
        self.client.set_status(status);
        Continuation::Leave
    }

    /// Records the requested end before the driver waits for calls.
    pub(super) fn record_requested_end(&mut self, now: i64) {
        if let Some(wish) = self.requested_end.take() {
            let wish = serde_json::to_vec(&wish).expect("a wish is plain data");
            let change = RunChange { requested_end: Some(wish), at: now, ..RunChange::default() };
            self.journal.change(change, Urgency::Durable);
        }
    }

    /// Stores the end of the run, and then publishes it.
    pub(super) async fn finish(&mut self, over: RunEnd<RunEnding>, now: i64) -> Continuation {
        self.work.kill();
        self.driven.runs.speculator.end_run(self.driven.lease.run());
        if let RunEnding::Suspended = over.ending {
            return self.suspend(&over.in_doubt).await;
        }
        let mut report = self.observer.build_report(&over.ending, &over.in_doubt, now);
        if let Some(dag) = &self.work.dag {
            dag.add_to_report(&mut report);
        }
        report.add_warnings(&self.driven.plan);
        let (runs, principal, plan) =
            (Arc::clone(&self.driven.runs), self.driven.principal.clone(), Arc::clone(&self.driven.plan));
        let known = remember::is_known(&runs, &principal, &plan).await;
        let memory = self.memory(&report, known);
        if let Some(memory) = &memory {
            remember::add_learned_to_report(&runs, memory, &plan, &mut report);
        }
        let promoted = memory.as_ref().is_some_and(|memory| memory.procedure.is_some() && memory.activates);
        let unproven = memory.as_ref().and_then(|memory| memory.procedure.as_ref());
        let unproven = unproven.filter(|made| made.unproven_lift.is_some()).map(|made| made.id.clone());
        let error_message = remember::listed_message(&runs, &report, memory.as_deref());
        let learned = remember::counted_for(memory.as_deref(), &report);
        let change = RunChange {
            state: Some(report.state),
            wake_at: Some(None),
            memory,
            outcome: Some(raw(&report).get().as_bytes().to_vec()),
            error_code: report.error.as_ref().map(|error| error.code.to_string()),
            error_message,
            learned,
            savings: Some(report.savings()),
            calls: Some(self.observer.call_counts()),
            release: true,
            at: now_ms(),
            ..RunChange::default()
        };
        match self.journal.settle(change).await {
            Ok(()) => {
                if let Some(ticket) = &self.ticket {
                    self.driven.runs.knowledge.cache.put(
                        &self.driven.runs.knowledge,
                        &self.driven.plan,
                        ticket,
                        Some(self.driven.lease.run()),
                        &report,
                    );
                }
                self.announce_end(&report);
                self.driven.runs.knowledge.memory.notify_learning();
                if let Some(id) = unproven.filter(|_| report.state == RunState::Done) {
                    prove::prove_later(&self.driven.runs, &self.driven.principal, &id);
                }
            }
            Err(pml_store::Error::Fenced { .. }) => {
                self.client.set_status(RunStatus::Elsewhere);
                return Continuation::Leave;
            }
            Err(error) => {
                // Only what is on disk may be reported as having happened. The record of a failure takes less room.
                report.state = RunState::Failed;
                report.result = None;
                report.error = Some(storage_failure(&error));
                let change = RunChange {
                    state: Some(RunState::Failed),
                    error_code: Some(storage_code(&error).to_string()),
                    release: true,
                    at: now_ms(),
                    ..RunChange::default()
                };
                // Where not even that finds room, the run is not over for others: whoever takes it up finds its calls in
                // doubt. The client still learns which calls were sent.
                if let Err(error) = self.journal.settle(change).await {
                    tracing::error!(run = %self.driven.lease.run(), %error, "the failure of a run could not be recorded");
                }
            }
        }
        self.count_end(&report, promoted);
        self.publish_end(&report);
        self.client.set_status(RunStatus::Finished(Arc::new(report)));
        Continuation::Leave
    }

    fn count_end(&self, report: &RunReport, promoted: bool) {
        let metrics = &self.driven.runs.metrics;
        super::super::count_run_end(metrics, &self.driven.plan, report);
        if promoted && report.state == RunState::Done {
            metrics.promoted.add_one();
        }
    }

    /// Tells whoever prepares what usually follows that the run has ended.
    fn announce_end(&self, report: &RunReport) {
        let plan = &self.driven.plan;
        if report.state == RunState::Done && plan.limits.speculated_calls > 0 && !report.next.is_empty() {
            self.driven.runs.announce_end(FinishedRunNotice {
                principal: self.driven.principal.clone(),
                key: plan.key,
                session: plan.session.clone(),
                arguments: plan.arguments.clone(),
                next: report.next.clone(),
            });
        }
    }

    /// The memory that the run leaves behind: traces and the learned capability.
    fn memory(&self, report: &RunReport, known: bool) -> Option<Box<pml_store::RunMemory>> {
        let wall = Duration::from_millis(self.driven.plan.limits.wall_ms);
        let active = wall.saturating_sub(self.deadlines.run.saturating_duration_since(Instant::now()));
        let frames = self.observer.recorded_frames(report);
        let over = remember::FinishedRun {
            run: self.driven.lease.run(),
            principal: &self.driven.principal,
            plan: &self.driven.plan,
            recorded: remember::RecordedRun { recorder: self.observer.recorder(), frames: &frames, report },
            layers: self.work.dag.as_ref().map(|dag| dag.layers()).unwrap_or_default(),
            active_ms: i64::try_from(active.as_millis()).unwrap_or(i64::MAX),
            approved: self.run.was_allowed(),
            origin: remember::RunOrigin::Here,
        };
        remember::build_memory(&self.driven.runs, &over, known)
    }

    /// Leaves the run to another process.
    async fn suspend(&mut self, in_doubt: &[u32]) -> Continuation {
        let change = RunChange {
            state: Some(RunState::Interrupted),
            calls: Some(self.observer.call_counts()),
            release: true,
            at: now_ms(),
            ..RunChange::default()
        };
        if let Err(error) = self.journal.settle(change).await {
            tracing::error!(run = %self.driven.lease.run(), %error, ?in_doubt, "a run could not be left in good order");
        }
        self.publish_progress("interrupted");
        self.client.set_status(RunStatus::Elsewhere);
        Continuation::Leave
    }
}

/// The failure for an error of the store. The store's own message names files of this machine, so it goes to the log
/// only.
pub(super) fn storage_failure(error: &pml_store::Error) -> RunFailure {
    tracing::error!(%error, "a run could not be recorded");
    let why = match error {
        pml_store::Error::DiskFull { .. } => ": no space is left",
        pml_store::Error::Busy { .. } => ": the database is held by another process",
        pml_store::Error::TooLarge { .. } => ": something in it is too large",
        pml_store::Error::Corrupt { .. } => ": the database is damaged",
        _ => "",
    };
    RunFailure::new(storage_code(error), format!("the run could not be recorded{why}"))
        .hint("what was sent is in the journal as far as it goes: `pml runs show` tells")
}
