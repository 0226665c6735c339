//! Has calls approved that need it: when a question is put, and what comes of its answer.

use std::time::Instant;

use pml_model::question::Question;
use pml_store::{Change, Urgency};

use super::super::ask;
use super::super::run::Event;
use super::Driver;
use super::approvals::{Answered, POLL, Verdict};
use crate::clock::now_ms;
use crate::plan::Pause;

impl Driver {
    /// A call waits for a person's approval, unless it is known what they would say.
    pub(super) async fn ask(&mut self, call: u32, now: i64) {
        let Some(issued) = self.run.issued(call) else { return };
        let verdict = self.approvals.decide(&self.of, issued, now).await;
        if let (Verdict::Refused(_) | Verdict::Waits, Some(dag)) = (&verdict, &mut self.work.dag) {
            dag.stop_clock(call);
        }
        if let Verdict::Known(event) | Verdict::Refused(event) = verdict {
            // Before it is found that nothing else is to be done.
            self.pending.push_front(event);
        }
    }

    /// Asks while other calls are still under way.
    pub(super) async fn ask_meanwhile(&mut self) {
        self.approvals.ask_by = None;
        let calls = self.run.asking();
        if calls.is_empty() || self.approvals.open_question.is_some() {
            return;
        }
        let (id, asked) = self.approvals.question(&self.of, (&self.run, &self.observer), &calls).await;
        let now = now_ms();
        let change = Change {
            question: Some(Some((id.clone(), Question::Approval(asked.clone())))),
            audit: vec![ask::asked_audit(&self.of.principal, self.of.lease.run(), &id, &asked, now)],
            at: now,
            ..Change::default()
        };
        if let Err(error) = self.journal.settle(change).await {
            return self.journal.fail(error);
        }
        self.approvals.opened(id, asked);
        self.tell_status();
    }

    pub(super) async fn poll_answer(&mut self) {
        let now = now_ms();
        let Some(Answered { events, audit }) = self.approvals.poll(&self.of, now).await else { return };
        self.work.restart_clocks();
        self.pending.extend(events);
        let change = Change { question: Some(None), audit, at: now, ..Change::default() };
        self.journal.change(change, Urgency::Soon);
        self.tell_status();
    }

    /// Takes a question back where whoever wanted the calls has ended without them.
    pub(super) fn withdraw_moot_question(&mut self) {
        if self.approvals.is_moot(&self.run) {
            self.approvals.close(&self.of);
            let change = Change { question: Some(None), at: now_ms(), ..Change::default() };
            self.journal.change(change, Urgency::Soon);
            self.tell_status();
        }
    }

    /// Looks whether somebody wants the run to wait before its next layer; once is enough, because it is put aside then.
    pub(super) async fn poll_pause(&mut self) {
        if self.of.plan.dag().is_none_or(|dag| dag.pause != Pause::Manual) {
            return;
        }
        match self.of.runs.store.is_pause_wanted(&self.of.lease).await {
            Ok(true) => {
                self.deadlines.pause_poll = None;
                self.pending.push_front(Event::Pause);
                return;
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(run = %self.of.lease.run(), %error, "whether a run is to wait could not be read");
            }
        }
        self.deadlines.pause_poll = Some(Instant::now() + POLL);
    }
}
