//! How one run comes to an end in this process: finished, put aside, or left to another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_model::RunState;
use pml_model::json::raw;
use pml_model::question::Question;
use pml_store::{Change, Urgency};

use super::super::ask;
use super::super::observe::Ending;
use super::super::remember;
use super::super::run::Over;
use super::{Driver, Next};
use crate::clock::now_ms;
use crate::problem::storage_code;
use crate::report::{Failure, Report, Standing};

impl Driver {
    /// Puts the run aside until somebody answers or a time comes.
    pub(super) async fn park(&mut self, wake_at: Option<i64>, asking: &[u32]) -> Next {
        let asked = match (&self.approvals.open_question, asking) {
            // What was asked stays asked; the rest comes after it.
            (Some(asked), _) => Some(asked.clone()),
            (None, []) => None,
            (None, calls) => {
                Some(self.approvals.question(&self.of, (&self.run, &self.observer), calls).await)
            }
        };
        let now = now_ms();
        let run = self.of.lease.run();
        let new = self.approvals.open_question.is_none().then_some(asked.as_ref()).flatten();
        let audit = new.map(|(id, asked)| ask::asked_audit(&self.of.principal, run, id, asked, now));
        let layer = || self.work.paused().map(|layer| (ask::layer_id(run, &layer), Question::Layer(layer)));
        let question = match &asked {
            Some((id, asked)) => Some((id.clone(), Question::Approval(asked.clone()))),
            None => layer(),
        };
        let expire_ms = self.of.runs.settings.config().approvals.expire_ms();
        let change = Change {
            state: Some(RunState::Waiting),
            wake_at: Some(wake_at),
            question: Some(question.clone()),
            expires_at: question.as_ref().map(|_| Some(now + expire_ms)),
            calls: Some(self.observer.progress().calls),
            audit: audit.into_iter().collect(),
            release: true,
            at: now,
            ..Change::default()
        };
        let status = match self.journal.settle(change).await {
            Ok(()) => Standing::Waiting { question, wake_at, in_flight: 0 },
            Err(error) => {
                tracing::error!(run = %self.of.lease.run(), %error, "a run could not be put aside");
                Standing::Elsewhere
            }
        };
        self.client.set_status(status);
        Next::Left
    }

    /// Writes down how the run is to end before its calls are waited for.
    pub(super) fn record_requested_end(&mut self, now: i64) {
        if let Some(wish) = self.requested_end.take() {
            let wish = serde_json::to_vec(&wish).expect("a wish is plain data");
            let change = Change { wish: Some(wish), at: now, ..Change::default() };
            self.journal.change(change, Urgency::Durable);
        }
    }

    /// Stores how the run ended, and then tells whoever waits.
    pub(super) async fn finish(&mut self, over: Over<Ending>, now: i64) -> Next {
        self.work.kill();
        if let Ending::Suspended = over.ending {
            return self.suspend(&over.in_doubt).await;
        }
        let mut report = self.observer.report(&over.ending, &over.in_doubt, now);
        if let Some(dag) = &self.work.dag {
            dag.add_to(&mut report);
        }
        report.warn(&self.of.plan);
        let (runs, principal, plan) =
            (Arc::clone(&self.of.runs), self.of.principal.clone(), Arc::clone(&self.of.plan));
        let known = remember::is_known(&runs, &principal, &plan).await;
        let memory = self.memory(&report, known);
        if let Some(memory) = &memory {
            remember::tell(&runs, memory, &plan, &mut report);
        }
        let change = Change {
            state: Some(report.state),
            wake_at: Some(None),
            memory,
            outcome: Some(raw(&report).get().as_bytes().to_vec()),
            error_code: report.error.as_ref().map(|error| error.code.clone()),
            calls: Some(self.observer.progress().calls),
            release: true,
            at: now_ms(),
            ..Change::default()
        };
        match self.journal.settle(change).await {
            Ok(()) => {
                if let Some(ticket) = &self.ticket {
                    self.of.runs.knowledge.cache.put(
                        &self.of.runs.knowledge,
                        &self.of.plan,
                        ticket,
                        self.of.lease.run(),
                        &report,
                    );
                }
                self.of.runs.knowledge.memory.left();
            }
            Err(pml_store::Error::Fenced { .. }) => {
                self.client.set_status(Standing::Elsewhere);
                return Next::Left;
            }
            Err(error) => {
                // What is not on disk has not happened, for whoever is told. That it failed takes less room.
                report.state = RunState::Failed;
                report.result = None;
                report.error = Some(storage(&error));
                let change = Change {
                    state: Some(RunState::Failed),
                    error_code: Some(storage_code(&error).text()),
                    release: true,
                    at: now_ms(),
                    ..Change::default()
                };
                if self.journal.settle(change).await.is_err() {
                    self.client.set_status(Standing::Interrupted);
                    return Next::Left;
                }
            }
        }
        self.client.set_status(Standing::Over(Arc::new(report)));
        Next::Left
    }

    /// What the run leaves behind.
    fn memory(&self, report: &Report, known: bool) -> Option<Box<pml_store::Memory>> {
        let wall = Duration::from_millis(self.of.plan.limits.wall_ms);
        let active = wall.saturating_sub(self.deadlines.run.saturating_duration_since(Instant::now()));
        let over = remember::Over {
            run: self.of.lease.run(),
            principal: &self.of.principal,
            plan: &self.of.plan,
            observer: &self.observer,
            report,
            layers: self.work.dag.as_ref().map(|dag| dag.layers()).unwrap_or_default(),
            active_ms: i64::try_from(active.as_millis()).unwrap_or(i64::MAX),
            approved: self.run.was_allowed(),
        };
        remember::memory(&self.of.runs, &over, known)
    }

    /// Leaves the run to another process.
    async fn suspend(&mut self, in_doubt: &[u32]) -> Next {
        let change = Change {
            state: Some(RunState::Interrupted),
            calls: Some(self.observer.progress().calls),
            release: true,
            at: now_ms(),
            ..Change::default()
        };
        if let Err(error) = self.journal.settle(change).await {
            tracing::error!(run = %self.of.lease.run(), %error, ?in_doubt, "a run could not be left in good order");
        }
        self.client.set_status(Standing::Elsewhere);
        Next::Left
    }
}

/// The store's own words name files of this machine; they are for the log.
pub(super) fn storage(error: &pml_store::Error) -> Failure {
    tracing::error!(%error, "a run could not be recorded");
    let why = match error {
        pml_store::Error::Full { .. } => ": no space is left",
        pml_store::Error::Busy { .. } => ": the database is held by another process",
        pml_store::Error::TooLarge { .. } => ": something in it is too large",
        pml_store::Error::Corrupt { .. } => ": the database is damaged",
        _ => "",
    };
    Failure::new(&storage_code(error).text(), format!("the run could not be recorded{why}"))
        .hint("what was sent is in the journal as far as it goes: `pml runs show` tells")
}
