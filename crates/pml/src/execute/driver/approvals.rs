//! The calls of one run that wait for a person's approval: what is asked, and what was answered.
//!
//! What an answer means is decided in [`ask`], which resuming a run uses as well.

use std::time::{Duration, Instant};

use pml_model::question::{Answer, Approval, Question};
use pml_model::{Digest, ToolId};
use pml_store::{Audit, Heard as HeardAnswer, StoredAnswer};
use serde_json::value::RawValue;

use super::super::ask::{self, Decided, Refused};
use super::super::journal::{CallError, Delivered, History};
use super::super::observe::{Ending, Observer};
use super::super::run::{Event, Issued, Run};
use super::DrivenRun;
use crate::approve::differs;
use crate::approve::question::{by_rule, counting, value_digest};
use crate::catalogue::Why;
use crate::plan::{Grant, Plan};
use crate::problem::Problem;

/// How long a question waits for the rest of the run to come to rest.
const ASK_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked whether a question is answered.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// What is asked about a run, and what is known of earlier answers.
pub(super) struct Approvals {
    /// What is asked while the run goes on, under its name.
    pub(super) open_question: Option<(String, Approval)>,
    /// When the calls that wait are asked about at the latest.
    pub(super) ask_by: Option<Instant>,
    pub(super) next_poll: Option<Instant>,
    /// How many questions were asked so far.
    asked: u32,
    refused: Refused,
    /// Results so far, where a person may have to see what they are used for.
    results: Vec<(u32, Box<RawValue>)>,
}

/// What becomes of a call that a person has to approve.
pub(super) enum Verdict {
    /// It is known what they would say.
    Known(Event<Ending>),
    /// Too much is asked already.
    Refused(Event<Ending>),
    /// It waits.
    Waits,
}

/// What an answer comes to.
pub(super) struct Answered {
    pub(super) events: Vec<Event<Ending>>,
    pub(super) audit: Vec<Audit>,
}

impl Approvals {
    /// With what a person was told and said before, where they may be asked again.
    pub(super) fn new(plan: &Plan, history: &History) -> Approvals {
        let mut approvals = Approvals {
            open_question: None,
            ask_by: None,
            next_poll: None,
            asked: history.answered,
            refused: Refused::default(),
            results: Vec::new(),
        };
        approvals.remember(plan, history);
        approvals
    }

    /// Takes in what a person was told and said before.
    pub(super) fn remember(&mut self, plan: &Plan, history: &History) {
        if !plan.asks() {
            return;
        }
        for (at, what) in &history.deliveries {
            self.keep(plan, what);
            if let Some(call) = what.call().filter(|_| what.is_denied())
                && let Some(logged) = history.calls.get(call as usize - 1)
                && logged.allowed.is_none()
            {
                self.refused.add(&logged.tool, value_digest(&logged.arguments), *at);
            }
        }
    }

    /// Keeps a result that a person may have to see.
    pub(super) fn keep(&mut self, plan: &Plan, what: &Delivered) {
        if let Delivered::Result { call, value, .. } = what
            && plan.asks()
        {
            self.results.push((*call, value.clone()));
        }
    }

    /// What becomes of a call that a person has to approve: by what they said before, by a standing rule, or by asking.
    pub(super) async fn decide(&mut self, of: &DrivenRun, issued: &Issued, now: i64) -> Verdict {
        let call = issued.call;
        let granted = &of.plan.tools[issued.handle as usize];
        let tool = granted.id.to_string();
        let fails = |error: CallError| Event::Answered(Delivered::Error { call, error });
        if self.refused.covers(&tool, issued.value.as_ref()) {
            return Verdict::Known(fails(CallError::denied(&tool, None)));
        }
        if is_another_by_now(of, &granted.id, &granted.digest) {
            return Verdict::Known(fails(CallError::tool_changed(&tool)));
        }
        if let Some(grant) = allowed_by_rule(of, (&tool, &granted.digest), issued.value.as_ref(), now).await {
            return Verdict::Known(Event::Granted(grant));
        }
        if self.asked >= ask::MOST_QUESTIONS {
            return Verdict::Refused(fails(CallError::too_many_questions(&tool, ask::MOST_QUESTIONS)));
        }
        if self.open_question.is_none() {
            if let Err(problem) = make_room(of, now).await {
                return Verdict::Refused(fails(CallError::too_many_open(&tool, &problem)));
            }
            self.ask_by.get_or_insert_with(|| Instant::now() + ASK_WITHIN);
        }
        Verdict::Waits
    }

    /// What is asked about these calls, under its name.
    pub(super) async fn question(
        &self,
        of: &DrivenRun,
        (run, observer): (&Run<Ending>, &Observer),
        calls: &[u32],
    ) -> (String, Approval) {
        let calls: Vec<&Issued> = calls.iter().filter_map(|call| run.issued(*call)).collect();
        let snapshot = of.runs.tools.snapshot();
        let says = |tool: &str, digest: &Digest| snapshot.description(tool, digest);
        let mut asked = ask::about(&of.plan, observer, &calls, &self.results, says);
        let tools = differs::tools(&asked);
        match of.runs.store.last_allowed(&of.principal, &tools).await {
            Ok(last) => differs::fill(&mut asked, &last),
            // The question has all that is asked without it.
            Err(error) => tracing::warn!(%error, "what was allowed before could not be read"),
        }
        (ask::question_id(of.lease.run(), &asked), asked)
    }

    /// The question is stored and waits for its answer.
    pub(super) fn opened(&mut self, id: String, asked: Approval) {
        self.asked += 1;
        self.open_question = Some((id, asked));
        self.next_poll = Some(Instant::now() + POLL);
    }

    /// The question that is open, as a run's question.
    pub(super) fn open(&self) -> Option<(String, Question)> {
        self.open_question.clone().map(|(id, asked)| (id, Question::Approval(asked)))
    }

    /// Looks whether the open question has its answer. Another look is due later, and not after each event: a busy run
    /// has events more often than that.
    pub(super) async fn poll(&mut self, of: &DrivenRun, now: i64) -> Option<Answered> {
        self.next_poll = self.open_question.is_some().then(|| Instant::now() + POLL);
        match of.runs.store.heard(&of.lease).await {
            Ok(Some(HeardAnswer::Answer(StoredAnswer { answer: Answer::Approval(decision), .. }))) => {
                let (id, asked) = self.close(of)?;
                let events = match ask::decided(&asked, &decision, now) {
                    Decided::Yes(grants) => {
                        let snapshot = of.runs.tools.snapshot();
                        grants.into_iter().map(|grant| Event::Granted(grant.bound_to(&snapshot))).collect()
                    }
                    Decided::No(ends) => {
                        for call in &asked.calls {
                            self.refused.add(&call.tool, ask::value_of(call), now);
                        }
                        ends.into_iter().map(Event::Answered).collect()
                    }
                };
                let audit = vec![ask::decided_audit(&of.principal, of.lease.run(), &id, &decision, now)];
                self.ask_by = Some(Instant::now() + ASK_WITHIN);
                Some(Answered { events, audit })
            }
            // The calls whose tool has another definition by now end; what else is asked about is asked anew.
            Ok(Some(HeardAnswer::Changed { tool })) => {
                let (_, asked) = self.close(of)?;
                let events = ask::changed(&asked, &tool).into_iter().map(Event::Answered).collect();
                self.ask_by = Some(Instant::now() + ASK_WITHIN);
                Some(Answered { events, audit: Vec::new() })
            }
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(run = %of.lease.run(), %error, "the answer to a run's question could not be read");
                None
            }
        }
    }

    /// Whether nobody wants any more what is asked about: whoever wanted the calls has ended without them.
    pub(super) fn is_moot(&self, run: &Run<Ending>) -> bool {
        let asking = run.asking();
        let waits = |call: u32| asking.contains(&call);
        let asked = self.open_question.as_ref().map(|(_, asked)| asked);
        asked.is_some_and(|asked| !asked.calls.iter().filter_map(|asked| asked.call).any(waits))
    }

    /// The open question is no longer open.
    pub(super) fn close(&mut self, of: &DrivenRun) -> Option<(String, Approval)> {
        let open = self.open_question.take()?;
        self.next_poll = None;
        of.runs.release_question(of.lease.run());
        Some(open)
    }
}

/// What a standing rule allows, used up as it is.
async fn allowed_by_rule(
    of: &DrivenRun,
    (tool, definition): (&str, &Digest),
    value: Option<&Digest>,
    now: i64,
) -> Option<Grant> {
    let rules = of.runs.store.matching_rules(&of.principal, now).await.unwrap_or_else(|error| {
        // A person is asked instead.
        tracing::warn!(%error, "standing approvals could not be read");
        Vec::new()
    });
    let now_by = of.runs.settings.config().approvals.by;
    let rules = counting(rules, now_by.map_or(of.plan.by, |by| of.plan.by.stricter(by)));
    let code = of.plan.approved_hash();
    let (rule, grant) = by_rule(&rules, (tool, definition), &code, value, 1, now)?;
    let audit = vec![ask::rule_audit(&of.principal, of.lease.run(), &grant, now)];
    // It may have been taken back since it was read.
    let used = of.runs.store.use_rule(&of.principal, rule, now, audit).await;
    matches!(used, Ok(true)).then(|| grant.bound_to(&of.runs.tools.snapshot()))
}

/// Whether a tool has another definition than it had when the run was planned: nobody is asked about that one.
fn is_another_by_now(of: &DrivenRun, tool: &ToolId, planned: &Digest) -> bool {
    let snapshot = of.runs.tools.snapshot();
    match snapshot.tool(tool) {
        Ok(tool) => tool.definition.digest != *planned,
        Err(_) => snapshot.held(tool).is_some_and(|held| matches!(held.why, Why::Changed { .. })),
    }
}

/// Makes room for a question, if the client has not too many open.
async fn make_room(of: &DrivenRun, now: i64) -> Result<(), Problem> {
    let open = of.runs.store.open_approvals(&of.principal, now).await.unwrap_or_else(|error| {
        // A question that cannot be stored either ends the run.
        tracing::warn!(%error, "the open questions could not be counted");
        Vec::new()
    });
    let limit = of.runs.settings.config().approvals.open_limit();
    of.runs.reserve_question(of.lease.run(), &of.plan.session, open, limit)
}
