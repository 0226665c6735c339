//! People's words on runs: what is open, who may answer, and what an answer does.

use std::sync::Arc;

use pml_mcp::Caller;
use pml_model::question::{
    Answer, Answerer, Approval, Arguments, Doubt, Only, Onward, Question, Remember, Resolved,
};
use pml_model::{Digest, Principal, RunId};
use pml_store::{Allowed, Answered, ApprovalRule, Audit, NewAnswer, NewRule};
use serde_json::{Value, json};

use super::authority::{may_answer, may_make_rules};
use crate::app::App;
use crate::approve::differs;
use crate::approve::question::{by_rules as allowed_by_rules, counting};
use crate::clock::now_ms;
use crate::execute::{self, TOOL_CHANGED, no_run};
use crate::plan::Plan;
use crate::problem::{Code, Problem};
use crate::report::Standing;

/// A question that is open.
#[derive(Debug)]
pub struct Open {
    /// The run that asks.
    pub run: RunId,
    /// Whose it is.
    pub principal: Principal,
    /// The session it was asked for in.
    pub session: String,
    /// What it is for.
    pub intent: String,
    /// Since when it waits.
    pub asked_at: i64,
    /// Until when it waits.
    pub expires_at: Option<i64>,
    /// The name of the question.
    pub question_id: String,
    /// What it asks.
    pub question: Question,
}

/// By what way an answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// A signed-in session of the dashboard.
    Dashboard,
    /// The terminal, after the passphrase.
    Terminal,
    /// The terminal, without it.
    Shell,
    /// The HTTP API, with a token.
    Api,
    /// A client of the gateway.
    Client {
        /// What it calls itself.
        name: String,
        /// It asked its user, and the config says that one sits in front of it.
        person: bool,
        /// Whose answers count at the door it came through, where the configuration does not say.
        door: Answerer,
    },
}

impl By {
    /// Whose answers count at this door, where the configuration does not say.
    pub(super) fn door(&self) -> Answerer {
        match self {
            By::Dashboard | By::Terminal | By::Shell => Answerer::Client,
            By::Api => Answerer::Human,
            By::Client { door, .. } => *door,
        }
    }

    /// Whether it is surely a person's word.
    pub(super) fn is_person(&self) -> bool {
        match self {
            By::Dashboard | By::Terminal => true,
            By::Client { person, .. } => *person,
            By::Shell | By::Api => false,
        }
    }
}

impl std::fmt::Display for By {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            By::Dashboard => f.write_str("the dashboard"),
            By::Terminal => f.write_str("the terminal, with the passphrase"),
            By::Shell => f.write_str("the terminal"),
            By::Api => f.write_str("the API"),
            By::Client { name, person: true, .. } => write!(f, "the user of client `{name}`"),
            By::Client { name, person: false, .. } => write!(f, "client `{name}`"),
        }
    }
}

/// Every open question, of whomever, the oldest first.
///
/// # Errors
/// The database cannot be read.
pub async fn asking(app: &App) -> Result<Vec<Open>, Problem> {
    let asking = app.store.asking().await?;
    let open = |asking: pml_store::Asking| Open {
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

/// What a run asks, if it asks something.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn open_question(
    app: &App,
    principal: &Principal,
    run: &RunId,
) -> Result<Option<(String, Question)>, Problem> {
    let standing = app.store.standing(principal, run).await?.ok_or_else(|| no_run(run))?;
    Ok(standing.question)
}

/// Somebody answers what a run asks. The first answer that counts is the answer; one that does not count is in the audit
/// log too.
///
/// # Errors
/// The run does not ask this, somebody was quicker, an answer by this way does not count, or the question showed another
/// definition of a tool.
pub async fn answer(
    app: &Arc<App>,
    run: &RunId,
    question_id: &str,
    answer: Answer,
    by: &By,
) -> Result<(), Problem> {
    let whose = app.store.whose(run).await?.ok_or_else(|| no_run(run))?;
    let said = in_words(&answer);
    let taken = take(app, &whose, run, question_id, answer, by).await;
    if let Err(problem) = &taken
        && let Code::Denied | Code::ToolChanged | Code::AlreadyAnswered | Code::Gone = problem.code
    {
        let body = json!({ "question": question_id, "by": by.to_string(), "said": said, "code": problem.code,
            "why": problem.message });
        let entry =
            Audit { at: now_ms(), principal: whose, run: Some(run.clone()), kind: "answer refused", body };
        app.store.audit(vec![entry]).await?;
    }
    taken
}

async fn take(
    app: &Arc<App>,
    whose: &Principal,
    run: &RunId,
    question_id: &str,
    mut answer: Answer,
    by: &By,
) -> Result<(), Problem> {
    let asked = open_question(app, whose, run).await?.filter(|(name, _)| name == question_id);
    let Some((_, question)) = asked else { return Err(closed(app, whose, run, question_id).await) };
    fits(&question, &answer, run)?;
    may_answer(&question, by, app.config().approvals.by)?;
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
        shows,
        allowed: allowed(&question, &answer, by),
        rules,
        audit: vec![audit(whose, run, question_id, &answer, by, now)],
    };
    match app.store.answer(whose, run, new).await? {
        Answered::Stored => Ok(()),
        Answered::AlreadyAnswered => Err(answered(run)),
        Answered::Gone => Err(gone(run)),
        Answered::Unknown => Err(no_run(run)),
        Answered::Changed { tool } => {
            end_if_not_begun(app, whose, run, &question).await;
            Err(changed(run, &tool))
        }
    }
}

/// The tools a question shows, each with its definition.
fn shown(asked: &Approval) -> Vec<(String, Digest)> {
    let mut shown: Vec<(String, Digest)> =
        asked.calls.iter().map(|call| (call.tool.clone(), call.definition.clone())).collect();
    shown.sort();
    shown.dedup();
    shown
}

/// Ends a run whose question nobody can answer any more, where it has done nothing yet. One that has begun is told by
/// whoever works on it, or next does.
async fn end_if_not_begun(app: &Arc<App>, whose: &Principal, run: &RunId, question: &Question) {
    if matches!(question, Question::Approval(asked) if !asked.begun)
        && let Err(problem) = execute::resume(&app.runs, whose, run, Caller::silent()).await
    {
        tracing::warn!(%run, %problem, "a run whose question is void could not be ended yet");
    }
}

fn changed(run: &RunId, tool: &str) -> Problem {
    Problem::new(
        Code::ToolChanged,
        format!(
            "the definition of `{tool}` changed since run `{run}` asked, so its question cannot be answered"
        ),
    )
    .hint("`pml list --changes` shows the change; run it anew to be asked about the tool as it is now")
}

/// Why a run asks nothing: what to tell somebody who answers it all the same.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn asks_nothing(app: &App, principal: &Principal, run: &RunId) -> Result<Problem, Problem> {
    let gone = |text: String| {
        Problem::new(Code::Gone, text).hint("call `pml_continue` without an answer to hear of it")
    };
    Ok(match execute::standing(&app.runs, principal, run).await? {
        Standing::Over(report) => match &report.error {
            Some(error) if error.code == TOOL_CHANGED => {
                let problem = Problem::new(Code::ToolChanged, error.message.clone());
                problem.hint(error.hint.clone().unwrap_or_else(|| "run it anew".to_owned()))
            }
            Some(_) | None => gone(format!("run `{run}` asks nothing any more: it is {}", report.state)),
        },
        Standing::Running(_) | Standing::Waiting { .. } | Standing::Interrupted | Standing::Elsewhere => {
            // The run may be about to end because the tool it asked for has changed.
            match app.store.load(principal, run).await.ok().and_then(|recorded| recorded.voided_by) {
                Some(tool) => {
                    Problem::new(Code::ToolChanged, execute::changed_since_asked(&tool)).hint("run it anew")
                }
                None => gone(format!("run `{run}` asks nothing now")),
            }
        }
    })
}

/// Why a question is not open: it has its answer, or nobody asks it.
async fn closed(app: &App, whose: &Principal, run: &RunId, question_id: &str) -> Problem {
    match app.store.load(whose, run).await {
        Ok(recorded) if recorded.answers.iter().any(|answer| answer.question_id == question_id) => {
            answered(run)
        }
        Ok(recorded) if recorded.run.error_code.as_deref() == Some(TOOL_CHANGED) => {
            asks_nothing(app, whose, run).await.unwrap_or_else(|_| gone(run))
        }
        // What was recorded may be gone; then nobody can tell.
        Ok(_) | Err(_) => gone(run),
    }
}

fn answered(run: &RunId) -> Problem {
    Problem::new(Code::AlreadyAnswered, format!("run `{run}` has its answer already"))
        .hint("the first answer counts")
}

fn gone(run: &RunId) -> Problem {
    Problem::new(Code::Gone, format!("run `{run}` does not ask this, or not any more"))
        .hint("`pml runs show` tells how it stands")
}

/// Whether an answer is one to this question.
fn fits(question: &Question, answer: &Answer, run: &RunId) -> Result<(), Problem> {
    let wanted = match (question, answer) {
        (Question::InDoubt { calls, .. }, Answer::Doubts { calls: said }) => return about_each(calls, said),
        (Question::Approval(_), Answer::Approval(decision)) if decision.any_arguments == Some(0) => {
            // The same would be asked again, and this answer be found to it, for ever.
            return Err(Problem::new(Code::InvalidRequest, "a yes to no calls at all is no yes")
                .hint("allow at least one call, or say no"));
        }
        (Question::Approval(_), Answer::Approval(_)) | (Question::Layer(_), Answer::Layer(_)) => {
            return Ok(());
        }
        (Question::InDoubt { .. }, _) => "what became of calls in doubt",
        (Question::Approval(_), _) => "whether calls are allowed",
        (Question::Layer(_), _) => "how it goes on after a layer",
    };
    Err(Problem::new(Code::InvalidRequest, format!("run `{run}` asks {wanted}")))
}

/// Whether each call in doubt is spoken of, and no other.
fn about_each(calls: &[Doubt], said: &[Resolved]) -> Result<(), Problem> {
    let silent = calls.iter().find(|doubt| said.iter().all(|said| said.call != doubt.call));
    let foreign = said.iter().find(|said| calls.iter().all(|doubt| doubt.call != said.call));
    let Some(call) = silent.map(|doubt| doubt.call).or(foreign.map(|said| said.call)) else { return Ok(()) };
    let asked: Vec<String> = calls.iter().map(|doubt| doubt.call.to_string()).collect();
    Err(Problem::new(
        Code::InvalidRequest,
        format!("call {call}: the question is about {}", asked.join(", ")),
    )
    .hint("say of each of them what became of it"))
}

/// What a person thereby allows: with that later questions are compared. What a program says is not a person's word,
/// also where it counts.
fn allowed(question: &Question, answer: &Answer, by: &By) -> Vec<Allowed> {
    match (question, answer) {
        (Question::Approval(asked), Answer::Approval(decision)) if decision.approved && by.is_person() => {
            differs::allowed(asked)
        }
        _ => Vec::new(),
    }
}

/// What an answer says, without anything secret.
fn in_words(answer: &Answer) -> Value {
    match answer {
        Answer::Approval(decision) => json!({ "approved": decision.approved,
            "anyArguments": decision.any_arguments, "remember": decision.remember }),
        Answer::Doubts { calls } => {
            let verdict = |said: &Resolved| json!({ "call": said.call, "verdict": said.verdict.as_str() });
            json!({ "calls": calls.iter().map(verdict).collect::<Vec<_>>() })
        }
        Answer::Layer(Onward::Continue) => json!({ "layer": "continue" }),
        Answer::Layer(Onward::Replan { .. }) => json!({ "layer": "replan" }),
    }
}

fn audit(whose: &Principal, run: &RunId, question: &str, answer: &Answer, by: &By, at: i64) -> Audit {
    let body = json!({ "question": question, "by": by.to_string(), "said": in_words(answer) });
    Audit { at, principal: whose.clone(), run: Some(run.clone()), kind: "answered", body }
}

/// The standing rules that a person makes with a yes, each with what the audit log is told of it.
fn new_rules(
    whose: &Principal,
    run: &RunId,
    asked: &Approval,
    remember: &Remember,
    by: &By,
    now: i64,
) -> Vec<(NewRule, Audit)> {
    let mut rules = Vec::new();
    for call in &asked.calls {
        let arguments = match &call.arguments {
            Arguments::Known { digest, .. } if !remember.any_arguments => Some(digest.clone()),
            // Nobody has seen what it would be, so there is nothing to be remembered.
            Arguments::Unknown { .. } if !remember.any_arguments => continue,
            Arguments::Known { .. } | Arguments::Unknown { .. } => None,
        };
        let rule = NewRule {
            principal: whose.clone(),
            tool: call.tool.clone(),
            definition: call.definition.clone(),
            code_hash: (remember.only == Only::Code).then(|| asked.code_hash.clone()),
            arguments,
            expires_at: remember.expires_at,
            by: by.to_string(),
            now,
        };
        let body = json!({ "tool": rule.tool, "definition": rule.definition, "codeHash": rule.code_hash,
            "arguments": rule.arguments, "expiresAt": rule.expires_at, "by": rule.by });
        let audit =
            Audit { at: now, principal: whose.clone(), run: Some(run.clone()), kind: "rule made", body };
        rules.push((rule, audit));
    }
    rules
}

/// The standing rules the principal has or had, newest first.
///
/// # Errors
/// The database cannot be read, or the key file not be used.
pub async fn rules(app: &App, principal: &Principal) -> Result<Vec<ApprovalRule>, Problem> {
    app.store.end_expired_rules(now_ms()).await?;
    Ok(app.store.rules(principal).await?)
}

/// A standing rule is taken back: what it allowed is asked for again. That needs nobody's word, for it allows nothing.
///
/// # Errors
/// There is no such rule, or it does not count any more.
pub async fn revoke_rule(
    app: &App,
    principal: &Principal,
    number: i64,
    by: &By,
) -> Result<ApprovalRule, Problem> {
    let rule = rules(app, principal).await?.into_iter().find(|rule| rule.number == number);
    let none = |text: String| {
        Problem::new(Code::NotFound, text)
            .hint("`pml rules list` shows the rules there are, by their numbers")
    };
    let rule = rule.ok_or_else(|| none(format!("there is no rule `{number}`")))?;
    let now = now_ms();
    let body =
        json!({ "rule": number, "tool": rule.tool, "definition": rule.definition, "by": by.to_string() });
    let audit = Audit { at: now, principal: principal.clone(), run: None, kind: "rule revoked", body };
    match app.store.revoke_rule(principal, number, now, vec![audit]).await? {
        true => Ok(ApprovalRule { revoked_at: Some(now), ..rule }),
        false => Err(none(format!("rule `{number}` does not count any more"))),
    }
}

/// Has a plan's question tell what is different from what a person last allowed.
pub(super) async fn compare(app: &App, whose: &Principal, plan: &mut Plan) -> Result<(), Problem> {
    let Some(question) = &mut plan.question else { return Ok(()) };
    let tools = differs::tools(question);
    let last = app.store.last_allowed(whose, &tools).await?;
    differs::fill(question, &last);
    Ok(())
}

/// Takes out of a plan's question what standing rules allow.
pub(super) async fn by_rules(app: &App, whose: &Principal, plan: &mut Plan) -> Result<(), Problem> {
    if plan.question.is_none() {
        return Ok(());
    }
    let now = now_ms();
    app.store.end_expired_rules(now).await?;
    let rules = app.store.matching_rules(whose, now).await?;
    let mut rules = counting(rules, plan.by);
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
            // Taken back since it was read.
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
