//! Approvals: which questions are open, who may answer them, and what an answer does.

use std::sync::Arc;

use pml_mcp::Caller;
use pml_model::question::{
    Answer, ApprovalArguments, ApprovalDecision, ApprovalQuestion, ApprovalScope, CallInDoubt, LayerDecision,
    Question, ResolvedDoubt, StandingApproval,
};
use pml_model::{Digest, Principal, RunId};
use pml_store::{
    AllowedArguments, AnswerOutcome, ApprovalRule, AskingMark, NewAnswer, NewApprovalRule, NewAuditEntry,
    RunRecord,
};
use serde_json::{Value, json};

use super::authority::{AnswerChannel, may_answer, may_make_rules};
use crate::app::App;
use crate::approve::differs;
use crate::approve::question::{grants_by_rules as allowed_by_rules, grants_of_approval, rules_that_count};
use crate::clock::now_ms;
use crate::execute::{self, TOOL_CHANGED, no_run};
use crate::metrics::ApprovalEvent;
use crate::plan::Plan;
use crate::problem::{ErrorCode, Problem};
use crate::report::RunStatus;
use crate::tools::DirectCaller;

/// An open question.
#[derive(Debug)]
pub struct OpenQuestion {
    /// The run that waits for the answer.
    pub run: RunId,
    /// The principal of the run.
    pub principal: Principal,
    /// The session that started the run.
    pub session: String,
    /// The intent of the run.
    pub intent: String,
    /// When the question was asked, in milliseconds since the Unix epoch.
    pub asked_at: i64,
    /// When the question expires, in the same unit; `None` if it never does.
    pub expires_at: Option<i64>,
    /// The id of the question, which an answer must name.
    pub question_id: String,
    /// The question itself.
    pub question: Question,
}

/// Every open question of a principal, oldest first.
///
/// # Errors
/// The database cannot be read.
pub async fn open_questions(app: &App, principal: &Principal) -> Result<Vec<OpenQuestion>, Problem> {
    let asking = app.store.asking_runs(principal).await?;
    let open = |asking: pml_store::AskingRun| OpenQuestion {
        run: asking.run.id,
        principal: asking.run.principal,
        session: asking.run.session,
        intent: asking.run.intent,
        asked_at: asking.run.updated_at,
        expires_at: asking.run.expires_at,
        question_id: asking.id,
        question: asking.question,
    };
    Ok(asking.into_iter().map(open).collect())
}

/// Whether the open questions of a principal are the same as before: much cheaper than to read them, for who asks again
/// and again.
///
/// # Errors
/// The database cannot be read.
pub async fn open_questions_mark(app: &App, principal: &Principal) -> Result<AskingMark, Problem> {
    Ok(app.store.asking_mark(principal).await?)
}

/// The open question of a run, if it has one.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn open_question(
    app: &App,
    principal: &Principal,
    run: &RunId,
) -> Result<Option<(String, Question)>, Problem> {
    let standing = app.store.run_overview(principal, run).await?.ok_or_else(|| no_run(run))?;
    Ok(standing.question)
}

/// Answers the open question of a run. The first valid answer wins. Rejected answers are recorded in the audit log too.
///
/// # Errors
/// The run does not ask this question, another answer came first, an answer through this channel does not count, or the
/// question showed another definition of a tool.
pub async fn answer(
    app: &Arc<App>,
    run: &RunId,
    question_id: &str,
    answer: Answer,
    by: &AnswerChannel,
) -> Result<(), Problem> {
    let whose = app.store.run_principal(run).await?.ok_or_else(|| no_run(run))?;
    let said = in_words(&answer);
    let decided = match &answer {
        Answer::Approval(decision) if decision.approved => Some(ApprovalEvent::Approved),
        Answer::Approval(_) => Some(ApprovalEvent::Denied),
        _ => None,
    };
    let taken = take(app, &whose, run, question_id, answer, by).await;
    if let (Ok(()), Some(decided)) = (&taken, decided) {
        app.runs.metrics.note_approval(decided);
    }
    if let Err(problem) = &taken
        && let ErrorCode::Denied | ErrorCode::ToolChanged | ErrorCode::AlreadyAnswered | ErrorCode::Gone =
            problem.code
    {
        let body = json!({ "question": question_id, "by": by.to_string(), "said": said, "code": problem.code,
            "why": problem.message });
        let entry = NewAuditEntry {
            at: now_ms(),
            principal: whose,
            run: Some(run.clone()),
            kind: "answer refused",
            body,
        };
        app.store.append_audit(vec![entry]).await?;
    }
    taken
}

async fn take(
    app: &Arc<App>,
    whose: &Principal,
    run: &RunId,
    question_id: &str,
    mut answer: Answer,
    by: &AnswerChannel,
) -> Result<(), Problem> {
    let asked = open_question(app, whose, run).await?.filter(|(name, _)| name == question_id);
    let Some((_, question)) = asked else { return Err(closed(app, whose, run, question_id).await) };
    fits(&question, &answer, run)?;
    may_answer(&question, by, app.config().approvals.answerer)?;
    let now = now_ms();
    let (mut shows, mut rules) = (Vec::new(), Vec::new());
    if let (Question::Approval(asked), Answer::Approval(decision)) = (&question, &mut answer) {
        by.to_string().clone_into(&mut decision.by);
        if let Some(remember) = decision.remember.as_ref().filter(|_| decision.approved) {
            may_make_rules(by)?;
            rules = new_rules(whose, run, asked, remember, by, now);
        }
        shows = shown(asked);
    }
    let new = NewAnswer {
        question_id: question_id.to_owned(),
        answer: answer.clone(),
        at: now,
        shown_definitions: shows,
        allowed: allowed(&question, &answer, by),
        rules,
        audit: vec![audit(whose, run, question_id, &answer, by, now)],
    };
    match app.store.store_answer(whose, run, new).await? {
        AnswerOutcome::Stored => Ok(()),
        AnswerOutcome::AlreadyAnswered => Err(answered(run)),
        // The run may have ended since its question was read, which has a reason too.
        AnswerOutcome::NotAsked => Err(closed(app, whose, run, question_id).await),
        AnswerOutcome::Unknown => Err(no_run(run)),
        AnswerOutcome::DefinitionChanged { tool } => {
            end_if_not_begun(app, whose, run, &question).await;
            Err(changed(run, &tool))
        }
    }
}

/// The tools that a question shows, each with its definition digest.
fn shown(asked: &ApprovalQuestion) -> Vec<(String, Digest)> {
    let mut shown: Vec<(String, Digest)> =
        asked.calls.iter().map(|call| (call.tool.clone(), call.definition.clone())).collect();
    shown.sort();
    shown.dedup();
    shown
}

/// Ends a run whose question can no longer be answered, if it has not begun. A run that has begun learns it from the
/// driver that has it now, or from the next one.
async fn end_if_not_begun(app: &Arc<App>, whose: &Principal, run: &RunId, question: &Question) {
    if matches!(question, Question::Approval(asked) if !asked.begun)
        && let Err(problem) = execute::resume(&app.runs, whose, run, Caller::silent()).await
    {
        tracing::warn!(%run, %problem, "a run whose question is void could not be ended yet");
    }
}

fn changed(run: &RunId, tool: &str) -> Problem {
    Problem::new(
        ErrorCode::ToolChanged,
        format!(
            "the definition of `{tool}` changed since run `{run}` asked, so its question cannot be answered"
        ),
    )
    .hint("`pml list --changes` shows the change; run it anew to be asked about the tool as it is now")
}

/// Why a run has no open question: the error for a client that answers it all the same.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn why_no_question(app: &App, principal: &Principal, run: &RunId) -> Result<Problem, Problem> {
    let gone = |text: String| {
        Problem::new(ErrorCode::Gone, text).hint("call `pml_continue` without an answer to hear of it")
    };
    Ok(match execute::run_status(&app.runs, principal, run).await? {
        RunStatus::Finished(report) => match &report.error {
            Some(error) if error.code == TOOL_CHANGED => {
                let problem = Problem::new(ErrorCode::ToolChanged, error.message.clone());
                problem.hint(error.hint.clone().unwrap_or_else(|| "run it anew".to_owned()))
            }
            Some(_) | None => gone(format!("run `{run}` asks nothing any more: it is {}", report.state)),
        },
        RunStatus::Running(_) | RunStatus::Waiting { .. } | RunStatus::Interrupted | RunStatus::Elsewhere => {
            let recorded = app.store.load_run(principal, run).await.ok();
            let voided = recorded.as_ref().and_then(|recorded| voided(run, recorded));
            voided.unwrap_or_else(|| gone(format!("run `{run}` asks nothing now")))
        }
    })
}

/// The error for an answer to a run that ends, or is about to end, because the definition of a tool has changed.
fn voided(run: &RunId, recorded: &RunRecord) -> Option<Problem> {
    let message = match &recorded.voided_by {
        Some(tool) => execute::tool_changed_message(tool),
        None if recorded.run.error_code.as_deref() == Some(TOOL_CHANGED.as_str()) => {
            format!(
                "the definition of a tool changed since run `{run}` asked, so its question cannot be answered"
            )
        }
        None => return None,
    };
    Some(Problem::new(ErrorCode::ToolChanged, message).hint("run it anew"))
}

/// Why a question is not open: it was answered, or no run asks it.
async fn closed(app: &App, whose: &Principal, run: &RunId, question_id: &str) -> Problem {
    match app.store.load_run(whose, run).await {
        Ok(recorded) if recorded.answers.iter().any(|answer| answer.question_id == question_id) => {
            answered(run)
        }
        Ok(recorded) => match voided(run, &recorded) {
            // The report of a run that has ended names the tool.
            Some(voided) => match why_no_question(app, whose, run).await {
                Ok(reported) if reported.code == ErrorCode::ToolChanged => reported,
                Ok(_) | Err(_) => voided,
            },
            None => gone(run),
        },
        // The record may have been deleted; then the reason is unknown.
        Err(_) => gone(run),
    }
}

fn answered(run: &RunId) -> Problem {
    Problem::new(ErrorCode::AlreadyAnswered, format!("run `{run}` has its answer already"))
        .hint("the first answer counts")
}

fn gone(run: &RunId) -> Problem {
    Problem::new(ErrorCode::Gone, format!("run `{run}` does not ask this, or not any more"))
        .hint("`pml runs show` tells how it stands")
}

/// Whether an answer fits the kind of this question.
fn fits(question: &Question, answer: &Answer, run: &RunId) -> Result<(), Problem> {
    let wanted = match (question, answer) {
        (Question::InDoubt { calls, .. }, Answer::Doubts { calls: said }) => return about_each(calls, said),
        (Question::Approval(_), Answer::Approval(decision)) if decision.any_arguments == Some(0) => {
            // An approval of zero calls would leave the question open, and this answer would be found for it again, for
            // ever.
            return Err(Problem::new(ErrorCode::InvalidRequest, "an approval must cover at least one call")
                .hint("give `anyArguments` of 1 or more, or deny the call"));
        }
        (Question::Approval(_) | Question::SignIn { .. }, Answer::Approval(_))
        | (Question::Layer(_), Answer::Layer(_)) => return Ok(()),
        (Question::InDoubt { .. }, _) => "what became of calls in doubt",
        (Question::Approval(_), _) => "whether calls are allowed",
        (Question::SignIn { .. }, _) => "whether calls are sent again after a sign-in",
        (Question::Layer(_), _) => "how it goes on after a layer",
    };
    Err(Problem::new(ErrorCode::InvalidRequest, format!("run `{run}` asks {wanted}")))
}

/// Whether the answer resolves each call in doubt, and no other call.
fn about_each(calls: &[CallInDoubt], said: &[ResolvedDoubt]) -> Result<(), Problem> {
    let silent = calls.iter().find(|doubt| said.iter().all(|said| said.call != doubt.call));
    let foreign = said.iter().find(|said| calls.iter().all(|doubt| doubt.call != said.call));
    let Some(call) = silent.map(|doubt| doubt.call).or(foreign.map(|said| said.call)) else { return Ok(()) };
    let asked: Vec<String> = calls.iter().map(|doubt| doubt.call.to_string()).collect();
    Err(Problem::new(
        ErrorCode::InvalidRequest,
        format!("call {call}: the question is about {}", asked.join(", ")),
    )
    .hint("say of each of them what became of it"))
}

/// The arguments that a person allows with this answer; later questions are compared with them. An answer by a program
/// is never compared with, even where it counts.
fn allowed(question: &Question, answer: &Answer, by: &AnswerChannel) -> Vec<AllowedArguments> {
    match (question, answer) {
        (Question::Approval(asked), Answer::Approval(decision)) if decision.approved && by.is_person() => {
            differs::allowed(asked)
        }
        _ => Vec::new(),
    }
}

/// The answer for the audit log, without secrets.
fn in_words(answer: &Answer) -> Value {
    match answer {
        Answer::Approval(decision) => json!({ "approved": decision.approved,
            "anyArguments": decision.any_arguments, "remember": decision.remember }),
        Answer::Doubts { calls } => {
            let verdict =
                |said: &ResolvedDoubt| json!({ "call": said.call, "verdict": said.verdict.as_str() });
            json!({ "calls": calls.iter().map(verdict).collect::<Vec<_>>() })
        }
        Answer::Layer(LayerDecision::Continue) => json!({ "layer": "continue" }),
        Answer::Layer(LayerDecision::Replan { .. }) => json!({ "layer": "replan" }),
    }
}

fn audit(
    whose: &Principal,
    run: &RunId,
    question: &str,
    answer: &Answer,
    by: &AnswerChannel,
    at: i64,
) -> NewAuditEntry {
    let body = json!({ "question": question, "by": by.to_string(), "said": in_words(answer) });
    NewAuditEntry { at, principal: whose.clone(), run: Some(run.clone()), kind: "answered", body }
}

/// The standing rules that a person's approval creates, each with its entry for the audit log.
fn new_rules(
    whose: &Principal,
    run: &RunId,
    asked: &ApprovalQuestion,
    remember: &StandingApproval,
    by: &AnswerChannel,
    now: i64,
) -> Vec<(NewApprovalRule, NewAuditEntry)> {
    let mut rules = Vec::new();
    for call in &asked.calls {
        let arguments = match &call.arguments {
            ApprovalArguments::Known { digest, .. } if !remember.any_arguments => Some(digest.clone()),
            // Nobody has seen these arguments, so a rule for exactly these cannot be made.
            ApprovalArguments::Unknown { .. } if !remember.any_arguments => continue,
            ApprovalArguments::Known { .. } | ApprovalArguments::Unknown { .. } => None,
        };
        let rule = NewApprovalRule {
            principal: whose.clone(),
            tool: call.tool.clone(),
            definition: call.definition.clone(),
            code_hash: (remember.only == ApprovalScope::Code).then(|| asked.code_hash.clone()),
            arguments,
            expires_at: remember.expires_at,
            by: by.to_string(),
            now,
        };
        let body = json!({ "tool": rule.tool, "definition": rule.definition, "codeHash": rule.code_hash,
            "arguments": rule.arguments, "expiresAt": rule.expires_at, "by": rule.by });
        let audit = NewAuditEntry {
            at: now,
            principal: whose.clone(),
            run: Some(run.clone()),
            kind: "rule made",
            body,
        };
        rules.push((rule, audit));
    }
    rules
}

/// The standing rules of the principal, including those that no longer count, newest first.
///
/// # Errors
/// The database cannot be read, or the key file cannot be used.
pub async fn rules(app: &App, principal: &Principal) -> Result<Vec<ApprovalRule>, Problem> {
    app.store.end_expired_rules(now_ms()).await?;
    Ok(app.store.rules(principal).await?)
}

/// Revokes a standing rule; calls that it allowed need approval again. Revoking needs no approval, because it allows
/// nothing.
///
/// # Errors
/// There is no such rule, or it does not count any more.
pub async fn revoke_rule(
    app: &App,
    principal: &Principal,
    number: i64,
    by: &AnswerChannel,
) -> Result<ApprovalRule, Problem> {
    let rule = rules(app, principal).await?.into_iter().find(|rule| rule.number == number);
    let none = |text: String| {
        Problem::new(ErrorCode::NotFound, text)
            .hint("`pml rules list` shows the rules there are, by their numbers")
    };
    let rule = rule.ok_or_else(|| none(format!("there is no rule `{number}`")))?;
    let now = now_ms();
    let body =
        json!({ "rule": number, "tool": rule.tool, "definition": rule.definition, "by": by.to_string() });
    let audit =
        NewAuditEntry { at: now, principal: principal.clone(), run: None, kind: "rule revoked", body };
    match app.store.revoke_rule(principal, number, now, vec![audit]).await? {
        true => Ok(ApprovalRule { revoked_at: Some(now), ..rule }),
        false => Err(none(format!("rule `{number}` does not count any more"))),
    }
}

/// Adds to a plan's question how its calls differ from those a person last allowed.
pub(super) async fn add_differences(app: &App, whose: &Principal, plan: &mut Plan) -> Result<(), Problem> {
    let Some(question) = &mut plan.question else { return Ok(()) };
    let tools = differs::tools(question);
    let last = app.store.last_allowed_arguments(whose, &tools).await?;
    differs::fill(question, &last);
    Ok(())
}

/// Allows the call of a plan whose client counts as having asked its own user about it.
pub(super) async fn apply_client_approval(
    app: &App,
    whose: &Principal,
    client: &DirectCaller,
    plan: &mut Plan,
) -> Result<(), Problem> {
    let (Some(question), Some(asked)) = (&plan.question, client.asked_by_client) else { return Ok(()) };
    let now = now_ms();
    let by = format!("client {}: {}", client.client, asked.reason());
    let decision =
        ApprovalDecision { approved: true, reason: None, any_arguments: Some(1), remember: None, by };
    let snapshot = app.tools.snapshot();
    let grants = grants_of_approval(question, &decision, now);
    let calls = question.calls.iter().map(|call| {
        let digest = match &call.arguments {
            ApprovalArguments::Known { digest, .. } => Some(digest),
            ApprovalArguments::Unknown { .. } => None,
        };
        let body = json!({ "tool": call.tool, "definition": call.definition, "arguments": digest,
            "client": client.client, "key": client.key, "decision": "asked by the client",
            "because": asked.reason() });
        NewAuditEntry { at: now, principal: whose.clone(), run: None, kind: "direct call", body }
    });
    app.store.append_audit(calls.collect()).await?;
    plan.grants = grants.into_iter().map(|grant| grant.bound_to(&snapshot)).collect();
    plan.question = None;
    Ok(())
}

/// Removes from a plan's question the calls that standing rules allow.
pub(super) async fn apply_standing_rules(
    app: &App,
    whose: &Principal,
    plan: &mut Plan,
) -> Result<(), Problem> {
    if plan.question.is_none() {
        return Ok(());
    }
    let now = now_ms();
    app.store.end_expired_rules(now).await?;
    let rules = app.store.rules_in_force(whose, now).await?;
    let mut rules = rules_that_count(rules, plan.by);
    loop {
        let mut question = plan.question.clone();
        let allowed = allowed_by_rules(&mut question, &rules, plan.limits.calls, now);
        let mut revoked = None;
        for (number, _) in &allowed {
            let rule = *number;
            if !app.store.use_rule(whose, rule, now, Vec::new()).await? {
                revoked = Some(*number);
            }
        }
        match revoked {
            // The rule was revoked after it was read.
            Some(number) => rules.retain(|rule| rule.number != number),
            None => {
                plan.question = question;
                let snapshot = app.tools.snapshot();
                plan.grants = allowed.into_iter().map(|(_, grant)| grant.bound_to(&snapshot)).collect();
                return Ok(());
            }
        }
    }
}
