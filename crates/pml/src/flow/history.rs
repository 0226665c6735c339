//! Runs for people who look at them: lists, one run with its past, and its calls.

use std::sync::Arc;

use pml_model::question::{Answer, LayerDecision, Question};
use pml_model::{Principal, RunId, RunState};
use pml_store::{AuditEntry, ListedRun, RunListQuery, StoredAnswer, WorkPeriod};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::execute::{self, CallContents, LiveOutput, PastCall, no_run};
use crate::past_outcomes::PastOutcome;
use crate::plan::Plan;
use crate::problem::{ErrorCode, Problem};
use crate::runtime::run_blocking;

/// A run with its past.
#[derive(Debug)]
pub struct PastRun {
    /// The run as listed.
    pub listed: ListedRun,
    /// The plan; `None` once the records are purged.
    pub plan: Option<Plan>,
    /// The end; `None` until the run has one, and once the records are purged.
    pub outcome: Option<Arc<PastOutcome>>,
    /// What it has shown so far; `None` unless it goes on in this process.
    pub so_far: Option<LiveOutput>,
    /// The questions that the run asked, oldest first.
    pub questions: Vec<PastQuestion>,
    /// The periods in which processes worked on it.
    pub periods: Vec<WorkPeriod>,
}

/// A question that a run asked.
#[derive(Debug)]
pub struct PastQuestion {
    /// The id of the question.
    pub id: String,
    /// `approval`, `layer` or `in_doubt`.
    pub kind: &'static str,
    /// When it was asked.
    pub asked_at: i64,
    /// The answer; `None` while it is open, and where it was withdrawn.
    pub answer: Option<PastAnswer>,
}

/// The answer to a question.
#[derive(Debug)]
pub struct PastAnswer {
    /// When it was given.
    pub at: i64,
    /// What was decided, in one word.
    pub decision: &'static str,
    /// The reason that was given with it.
    pub reason: Option<String>,
    /// Who answered, and through which channel.
    pub by: String,
}

/// The kind of a question, in one word.
pub fn question_kind(question: &Question) -> &'static str {
    match question {
        Question::Approval(_) => "approval",
        Question::Layer(_) => "layer",
        Question::InDoubt { .. } => "in_doubt",
        Question::SignIn { .. } => "sign_in",
    }
}

/// The runs of a principal that match a filter, newest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_runs(
    app: &App,
    principal: &Principal,
    filter: RunListQuery,
) -> Result<Vec<ListedRun>, Problem> {
    Ok(app.store.list_runs(principal, filter).await?)
}

/// A run with its past, without its calls.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn past_run(app: &App, principal: &Principal, id: &RunId) -> Result<PastRun, Problem> {
    // Before the row is read: a run that ends meanwhile has its end there.
    let so_far = live_output(app, principal, id).await;
    let history = app.store.run_history(principal, id).await?.ok_or_else(|| no_run(id))?;
    let asked = app.store.audit_entries_of_run(principal, id).await?;
    let questions = questions(&history.listed, &history.answers, &asked);
    let run = &history.listed.run;
    let mut periods = history.periods;
    if periods.is_empty() && run.state != RunState::Waiting {
        // A run from before the periods were recorded.
        periods.push(WorkPeriod { from: run.created_at, to: run.ended_at.or(Some(run.updated_at)) });
    }
    Ok(PastRun {
        plan: history.plan.and_then(|plan| read_record(id, &plan)),
        outcome: past_outcome(app, principal, &history.listed).await?,
        so_far,
        questions,
        periods,
        listed: history.listed,
    })
}

/// What a run that goes on in this process has shown so far.
async fn live_output(app: &App, principal: &Principal, id: &RunId) -> Option<LiveOutput> {
    let handle = app.runs.local_handle(id).filter(|handle| handle.principal == *principal)?;
    handle.live_output().await
}

/// The end of a run; `None` until it has one, and once its records are purged.
async fn past_outcome(
    app: &App,
    principal: &Principal,
    listed: &ListedRun,
) -> Result<Option<Arc<PastOutcome>>, Problem> {
    let run = &listed.run;
    if run.purged_at.is_some() {
        return Ok(None);
    }
    if let Some(known) = app.past_outcomes.get(principal, &run.id) {
        return Ok(Some(known));
    }
    let Some(end) = app.store.run_outcome(principal, &run.id).await? else { return Ok(None) };
    let id = run.id.clone();
    let Some(outcome) = run_blocking(move || read_record(&id, &end)).await else { return Ok(None) };
    let outcome = Arc::new(outcome);
    if run.state.is_over() {
        app.past_outcomes.keep(principal, &run.id, &outcome);
    }
    Ok(Some(outcome))
}

/// A record of a run; `None` if this version cannot read it, so that the rest of the run is shown all the same.
fn read_record<T: DeserializeOwned>(id: &RunId, record: &[u8]) -> Option<T> {
    let read = serde_json::from_slice(record);
    read.inspect_err(|error| tracing::warn!(%id, %error, "a record of a run cannot be read")).ok()
}

/// The questions of a run, from the audit log, the answers and the open question.
fn questions(listed: &ListedRun, answers: &[StoredAnswer], audit: &[AuditEntry]) -> Vec<PastQuestion> {
    let mut questions: Vec<PastQuestion> = Vec::new();
    for entry in audit.iter().filter(|entry| entry.kind == "asked") {
        let Ok(asked) = serde_json::from_str::<AskedEntry>(entry.body.get()) else { continue };
        if questions.iter().all(|known| known.id != asked.question) {
            let kind = if asked.in_doubt.is_some() { "in_doubt" } else { "approval" };
            questions.push(PastQuestion { id: asked.question, kind, asked_at: entry.at, answer: None });
        }
    }
    for stored in answers {
        let (kind, answer) = past_answer(stored);
        match questions.iter_mut().find(|known| known.id == stored.question_id) {
            Some(known) => known.answer = Some(answer),
            // Pauses between layers are not in the audit log; when they began is not recorded.
            None => questions.push(PastQuestion {
                id: stored.question_id.clone(),
                kind,
                asked_at: stored.at,
                answer: Some(answer),
            }),
        }
    }
    if let Some((id, question)) = &listed.question
        && questions.iter().all(|known| known.id != *id)
    {
        let (kind, asked_at) = (question_kind(question), listed.run.updated_at);
        questions.push(PastQuestion { id: id.clone(), kind, asked_at, answer: None });
    }
    questions.sort_by_key(|question| question.asked_at);
    questions
}

/// The body of an audit entry about a question.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AskedEntry {
    question: String,
    in_doubt: Option<serde::de::IgnoredAny>,
}

fn past_answer(stored: &StoredAnswer) -> (&'static str, PastAnswer) {
    let by = stored.principal.0.clone();
    let (kind, decision, reason, by) = match &stored.answer {
        Answer::Approval(said) => {
            let decision = if said.approved { "approved" } else { "denied" };
            ("approval", decision, said.reason.clone(), said.by.clone())
        }
        Answer::Doubts { .. } => ("in_doubt", "resolved", None, by),
        Answer::Layer(LayerDecision::Continue) => ("layer", "continued", None, by),
        Answer::Layer(LayerDecision::Replan { .. }) => ("layer", "replanned", None, by),
    };
    (kind, PastAnswer { at: stored.at, decision, reason, by })
}

/// A page of the calls of a run: those after number `after`, at most `limit`; and whether more follow.
///
/// # Errors
/// There is no such run, or its records are no longer kept.
pub async fn run_calls(
    app: &App,
    principal: &Principal,
    id: &RunId,
    after: u32,
    limit: u32,
) -> Result<(Vec<PastCall>, bool), Problem> {
    execute::page_of_calls(&app.runs, principal, id, after, limit).await
}

/// The contents of one call of a run.
///
/// # Errors
/// There is no such run or call, or its records are no longer kept.
pub async fn run_call(
    app: &App,
    principal: &Principal,
    id: &RunId,
    call: u32,
) -> Result<CallContents, Problem> {
    let found = execute::call_contents(&app.runs, principal, id, call).await?;
    found.ok_or_else(|| Problem::new(ErrorCode::NotFound, format!("run `{id}` has no call {call}")))
}
