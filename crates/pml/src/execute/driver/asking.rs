//! Approval of calls in a run: when the question is asked, and what follows from its answer.

use std::time::Instant;

use pml_model::question::Question;
use pml_store::{RunChange, Urgency};

use super::super::ask;
use super::super::run::RunEvent;
use super::Driver;
use super::approvals::{AnswerEvents, ApprovalCheck, POLL};
use crate::clock::now_ms;
use crate::metrics::ApprovalEvent;
use crate::plan::Pause;

impl Driver {
    /// Has a call wait for approval, unless the answer is known already.
    pub(super) async fn ask(&mut self, call: u32, now: i64) {
        let Some(issued) = self.run.issued(call) else { return };
        let verdict = self.approvals.decide(&self.driven, issued, now).await;
        if let (ApprovalCheck::Refused(_) | ApprovalCheck::Waits, Some(dag)) = (&verdict, &mut self.work.dag)
        {
            dag.stop_clock(call);
        }
        if let ApprovalCheck::Decided(event) | ApprovalCheck::Refused(event) = verdict {
            // At the front, so that the run core sees it before it finds that nothing is left to do.
            self.pending.push_front(event);
        }
    }

    /// Asks while other calls are still under way.
    pub(super) async fn ask_meanwhile(&mut self) {
        self.approvals.ask_by = None;
        let calls = self.run.calls_awaiting_approval();
        if calls.is_empty() || self.approvals.open_question.is_some() {
            return;
        }
        let (id, asked) = self.approvals.question(&self.driven, (&self.run, &self.observer), &calls).await;
        let now = now_ms();
        let change = RunChange {
            question: Some(Some((id.clone(), Question::Approval(asked.clone())))),
            audit: vec![ask::asked_audit(&self.driven.principal, self.driven.lease.run(), &id, &asked, now)],
            at: now,
            ..RunChange::default()
        };
        if let Err(error) = self.journal.settle(change).await {
            return self.journal.fail(error);
        }
        self.driven.runs.metrics.note_approval(ApprovalEvent::Asked);
        self.publish_question(&(id.clone(), Question::Approval(asked.clone())));
        self.approvals.set_open_question(id, asked);
        self.publish_status();
    }

    pub(super) async fn poll_answer(&mut self) {
        let now = now_ms();
        let Some(AnswerEvents { events, audit }) = self.approvals.poll(&self.driven, now).await else {
            return;
        };
        self.work.restart_clocks();
        self.pending.extend(events);
        let change = RunChange { question: Some(None), audit, at: now, ..RunChange::default() };
        self.journal.change(change, Urgency::Soon);
        self.publish_status();
    }

    /// Withdraws a question if the frame that issued its calls has ended without them.
    pub(super) fn withdraw_moot_question(&mut self) {
        if self.approvals.is_moot(&self.run) {
            self.approvals.close(&self.driven);
            let change = RunChange { question: Some(None), at: now_ms(), ..RunChange::default() };
            self.journal.change(change, Urgency::Soon);
            self.publish_status();
        }
    }

    /// Checks for a requested pause before the next layer. Once is enough, because the run is then parked.
    pub(super) async fn poll_pause(&mut self) {
        if self.driven.plan.dag().is_none_or(|dag| dag.pause != Pause::Manual) {
            return;
        }
        match self.driven.runs.store.is_pause_requested(&self.driven.lease).await {
            Ok(true) => {
                self.deadlines.pause_poll = None;
                self.pending.push_front(RunEvent::PauseRequested);
                return;
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(run = %self.driven.lease.run(), %error, "whether a run is to wait could not be read");
            }
        }
        self.deadlines.pause_poll = Some(Instant::now() + POLL);
    }
}
