//! The calls of one run that wait for approval: the open question, and earlier answers.
//!
//! [`ask`] decides what an answer means; resuming a run uses it as well.

use std::time::{Duration, Instant};

use pml_model::question::{Answer, ApprovalQuestion, Question};
use pml_model::{Digest, ToolId};
use pml_store::{NewAuditEntry, QuestionOutcome, StoredAnswer};
use serde_json::value::RawValue;

use super::super::ask::{self, ApprovalOutcome, DeniedCalls};
use super::super::journal::History;
use super::super::observe::Observer;
use super::super::run::{RunCore, RunEvent};
use super::DrivenRun;
use crate::approve::differs;
use crate::approve::question::{grant_by_rule, rules_that_count, value_digest};
use crate::catalogue::QuarantineReason;
use crate::execute::delivery::{CallFailure, RunDelivery};
use crate::execute::ending::RunEnding;
use crate::execute::issued_call::IssuedCall;
use crate::plan::{Grant, Plan};
use crate::problem::Problem;

/// 2 s: how long a question waits for the rest of the run to become quiet, so that it can cover more calls.
const ASK_WITHIN: Duration = Duration::from_secs(2);
/// 100 ms: the interval at which the store is polled for an answer.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// The open question of a run, and what is known from earlier answers.
pub(super) struct RunApprovals {
    /// The question that is open while the run goes on, with its id.
    pub(super) open_question: Option<(String, ApprovalQuestion)>,
    /// When the waiting calls are asked about at the latest.
    pub(super) ask_by: Option<Instant>,
    pub(super) next_poll: Option<Instant>,
    /// The number of questions asked so far.
    asked: u32,
    refused: DeniedCalls,
    /// The results so far, kept if a person may have to see what they are used for.
    results: Vec<(u32, Box<RawValue>)>,
}

/// The decision about a call that needs approval.
pub(super) enum ApprovalCheck {
    /// The answer is known already.
    Decided(RunEvent<RunEnding>),
    /// Too many questions were asked or are open.
    Refused(RunEvent<RunEnding>),
    /// The call waits for an answer.
    Waits,
}

/// The events that follow from an answer.
pub(super) struct AnswerEvents {
    pub(super) events: Vec<RunEvent<RunEnding>>,
    pub(super) audit: Vec<NewAuditEntry>,
}

impl RunApprovals {
    /// The approvals of a run, with the earlier results and answers if it may ask again.
    pub(super) fn new(plan: &Plan, history: &History) -> RunApprovals {
        let mut approvals = RunApprovals {
            open_question: None,
            ask_by: None,
            next_poll: None,
            asked: history.questions_answered,
            refused: DeniedCalls::default(),
            results: Vec::new(),
        };
        approvals.restore(plan, history);
        approvals
    }

    /// Restores the earlier results and answers from the history.
    pub(super) fn restore(&mut self, plan: &Plan, history: &History) {
        if !plan.may_need_approval() {
            return;
        }
        for (at, what) in &history.deliveries {
            self.keep_result(plan, what);
            if let Some(call) = what.call().filter(|_| what.is_denied())
                && let Some(logged) = history.calls.get(call as usize - 1)
                && logged.grant_index.is_none()
            {
                self.refused.add(&logged.tool, value_digest(&logged.arguments), *at);
            }
        }
    }

    /// Keeps a result that a person may have to see.
    pub(super) fn keep_result(&mut self, plan: &Plan, what: &RunDelivery) {
        if let RunDelivery::Result { call, value, .. } = what
            && plan.may_need_approval()
        {
            self.results.push((*call, value.clone()));
        }
    }

    /// Decides about a call that needs approval: by an earlier answer, by a standing rule, or by asking.
    pub(super) async fn decide(&mut self, of: &DrivenRun, issued: &IssuedCall, now: i64) -> ApprovalCheck {
        let call = issued.call;
        let granted = &of.plan.tools[issued.handle as usize];
        let tool = granted.id.to_string();
        let fails = |error: CallFailure| RunEvent::Answered(RunDelivery::Error { call, error });
        if self.refused.covers(&tool, issued.value_digest.as_ref()) {
            return ApprovalCheck::Decided(fails(CallFailure::denied(&tool, None)));
        }
        if is_another_by_now(of, &granted.id, &granted.digest) {
            return ApprovalCheck::Decided(fails(CallFailure::tool_changed(&tool)));
        }
        if let Some(grant) =
            allowed_by_rule(of, (&tool, &granted.digest), issued.value_digest.as_ref(), now).await
        {
            return ApprovalCheck::Decided(RunEvent::Granted(grant));
        }
        if self.asked >= ask::MOST_QUESTIONS {
            return ApprovalCheck::Refused(fails(CallFailure::too_many_questions(
                &tool,
                ask::MOST_QUESTIONS,
            )));
        }
        if self.open_question.is_none() {
            if let Err(problem) = make_room(of, now).await {
                return ApprovalCheck::Refused(fails(CallFailure::too_many_open(&tool, &problem)));
            }
            self.ask_by.get_or_insert_with(|| Instant::now() + ASK_WITHIN);
        }
        ApprovalCheck::Waits
    }

    /// The question about these calls, with its id.
    pub(super) async fn question(
        &self,
        of: &DrivenRun,
        (run, observer): (&RunCore<RunEnding>, &Observer),
        calls: &[u32],
    ) -> (String, ApprovalQuestion) {
        let calls: Vec<&IssuedCall> = calls.iter().filter_map(|call| run.issued(*call)).collect();
        let snapshot = of.runs.tools.snapshot();
        let says = |tool: &str, digest: &Digest| snapshot.description(tool, digest);
        let mut asked = ask::approval_question(&of.plan, observer, &calls, &self.results, says);
        let tools = differs::tools(&asked);
        match of.runs.store.last_allowed_arguments(&of.principal, &tools).await {
            Ok(last) => differs::fill(&mut asked, &last),
            // The question is complete without the differences.
            Err(error) => tracing::warn!(%error, "what was allowed before could not be read"),
        }
        (ask::question_id(of.lease.run(), &asked), asked)
    }

    /// Sets the open question, which is stored and waits for its answer.
    pub(super) fn set_open_question(&mut self, id: String, asked: ApprovalQuestion) {
        self.asked += 1;
        self.open_question = Some((id, asked));
        self.next_poll = Some(Instant::now() + POLL);
    }

    /// The open question, in the general form.
    pub(super) fn current_question(&self) -> Option<(String, Question)> {
        self.open_question.clone().map(|(id, asked)| (id, Question::Approval(asked)))
    }

    /// Polls for the answer to the open question. Polls are spaced in time and do not follow each event, because a busy
    /// run has events more often than that.
    pub(super) async fn poll(&mut self, of: &DrivenRun, now: i64) -> Option<AnswerEvents> {
        self.next_poll = self.open_question.is_some().then(|| Instant::now() + POLL);
        match of.runs.store.question_outcome(&of.lease).await {
            Ok(Some(QuestionOutcome::Answered(StoredAnswer {
                answer: Answer::Approval(decision), ..
            }))) => {
                let (id, asked) = self.close(of)?;
                let events = match ask::apply_decision(&asked, &decision, now) {
                    ApprovalOutcome::Granted(grants) => {
                        let snapshot = of.runs.tools.snapshot();
                        grants.into_iter().map(|grant| RunEvent::Granted(grant.bound_to(&snapshot))).collect()
                    }
                    ApprovalOutcome::Denied(ends) => {
                        for call in &asked.calls {
                            self.refused.add(&call.tool, ask::arguments_digest(call), now);
                        }
                        ends.into_iter().map(RunEvent::Answered).collect()
                    }
                };
                let audit = vec![ask::decided_audit(&of.principal, of.lease.run(), &id, &decision, now)];
                self.ask_by = Some(Instant::now() + ASK_WITHIN);
                Some(AnswerEvents { events, audit })
            }
            // The calls whose tool changed its definition end; the other calls are asked about again.
            Ok(Some(QuestionOutcome::DefinitionChanged { tool })) => {
                let (_, asked) = self.close(of)?;
                let events =
                    ask::end_changed_calls(&asked, &tool).into_iter().map(RunEvent::Answered).collect();
                self.ask_by = Some(Instant::now() + ASK_WITHIN);
                Some(AnswerEvents { events, audit: Vec::new() })
            }
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(run = %of.lease.run(), %error, "the answer to a run's question could not be read");
                None
            }
        }
    }

    /// Whether the open question is moot: the frames that issued its calls have ended without them.
    pub(super) fn is_moot(&self, run: &RunCore<RunEnding>) -> bool {
        let asking = run.calls_awaiting_approval();
        let waits = |call: u32| asking.contains(&call);
        let asked = self.open_question.as_ref().map(|(_, asked)| asked);
        asked.is_some_and(|asked| !asked.calls.iter().filter_map(|asked| asked.call).any(waits))
    }

    /// Closes the open question.
    pub(super) fn close(&mut self, of: &DrivenRun) -> Option<(String, ApprovalQuestion)> {
        let open = self.open_question.take()?;
        self.next_poll = None;
        of.runs.release_question(of.lease.run());
        Some(open)
    }
}

/// The grant by a standing rule, which counts the use.
async fn allowed_by_rule(
    of: &DrivenRun,
    (tool, definition): (&str, &Digest),
    value: Option<&Digest>,
    now: i64,
) -> Option<Grant> {
    let rules = of.runs.store.rules_in_force(&of.principal, now).await.unwrap_or_else(|error| {
        // The person is asked instead.
        tracing::warn!(%error, "standing approvals could not be read");
        Vec::new()
    });
    let now_by = of.runs.settings.config().approvals.answerer;
    let rules = rules_that_count(rules, now_by.map_or(of.plan.by, |by| of.plan.by.stricter(by)));
    let code = of.plan.approved_hash();
    let (rule, grant) = grant_by_rule(&rules, (tool, definition), &code, value, 1, now)?;
    let audit = vec![ask::rule_audit(&of.principal, of.lease.run(), &grant, now)];
    // The rule may have been revoked since it was read.
    let used = of.runs.store.use_rule(&of.principal, rule, now, audit).await;
    matches!(used, Ok(true)).then(|| grant.bound_to(&of.runs.tools.snapshot()))
}

/// Whether a tool has another definition than when the run was planned; then nobody is asked about it.
fn is_another_by_now(of: &DrivenRun, tool: &ToolId, planned: &Digest) -> bool {
    let snapshot = of.runs.tools.snapshot();
    match snapshot.tool(tool) {
        Ok(tool) => tool.definition.digest != *planned,
        Err(_) => snapshot
            .find_quarantined(tool)
            .is_some_and(|held| matches!(held.reason, QuarantineReason::Changed { .. })),
    }
}

/// Reserves a question, if the client has not too many open.
async fn make_room(of: &DrivenRun, now: i64) -> Result<(), Problem> {
    let open = of.runs.store.open_approvals(&of.principal, now).await.unwrap_or_else(|error| {
        // If the question cannot be stored either, that ends the run.
        tracing::warn!(%error, "the open questions could not be counted");
        Vec::new()
    });
    let limit = of.runs.settings.config().approvals.open_limit();
    of.runs.reserve_question(of.lease.run(), &of.plan.session, open, limit)
}
