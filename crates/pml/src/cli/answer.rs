//! A person's word on runs, from the terminal: `pml runs approve`, `deny`, `continue`, and what is said of calls in doubt.

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use pml_model::RunId;
use pml_model::name::printable;
use pml_model::question::{Answer, Decision, Only, Onward, Question, Resolved, Verdict};
use pml_store::Store;
use serde_json::value::RawValue;

use super::execute::{asks, run_id};
use super::runs::go_on;
use super::{Here, out};
use crate::app::App;
use crate::clock::now_ms;
use crate::config::Paths;
use crate::flow::{self, By, Remembered};
use crate::passphrase::{self, Door};
use crate::problem::{Code, Problem};

/// Arguments of `pml runs approve`.
#[derive(Debug, Args)]
pub(super) struct Approve {
    /// The run
    id: String,
    /// Allow any arguments in this run, for at most this many calls of each tool
    #[arg(long, value_name = "CALLS")]
    any_arguments: Option<u32>,
    /// Make a standing rule: for this code, or for these tools in any code
    #[arg(long, value_name = "FOR")]
    remember: Option<RememberFor>,
    /// With --remember: for any arguments
    #[arg(long, requires = "remember")]
    whatever: bool,
    /// With --remember: how many days the rule lasts [default: 30]
    #[arg(long, value_name = "DAYS", requires = "remember")]
    days: Option<u32>,
    /// Record the answer and let a gateway resume the run
    #[arg(long)]
    detach: bool,
}

/// Arguments of `pml runs deny`.
#[derive(Debug, Args)]
pub(super) struct Deny {
    /// The run
    id: String,
    /// The reason, shown to the agent
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RememberFor {
    Code,
    Tool,
}

pub(super) async fn approve(here: &Here, app: &Arc<App>, approve: &Approve) -> Result<ExitCode, Problem> {
    let id = run_id(&approve.id)?;
    let remembered = approve.remember.map(|only| Remembered {
        only: if only == RememberFor::Code { Only::Code } else { Only::Tool },
        any_arguments: approve.whatever,
        days: approve.days,
    });
    let remember = remembered.map(|remembered| remembered.from(now_ms())).transpose()?;
    let decision = Decision {
        approved: true,
        reason: None,
        any_arguments: approve.any_arguments,
        remember,
        by: String::new(),
    };
    decide(here, app, &id, decision).await?;
    if approve.detach {
        out::note("allowed; a gateway goes on with it");
        return Ok(ExitCode::SUCCESS);
    }
    go_on(here, app, &id, true).await
}

pub(super) async fn deny(here: &Here, app: &Arc<App>, deny: &Deny) -> Result<ExitCode, Problem> {
    let id = run_id(&deny.id)?;
    let decision = Decision {
        approved: false,
        reason: deny.reason.clone(),
        any_arguments: None,
        remember: None,
        by: String::new(),
    };
    decide(here, app, &id, decision).await?;
    go_on(here, app, &id, true).await?;
    Ok(ExitCode::SUCCESS)
}

/// Shows what is asked and says what is decided. Where only a person's word counts, the passphrase is asked for on the
/// terminal itself, which no pipe can answer.
async fn decide(here: &Here, app: &Arc<App>, id: &RunId, decision: Decision) -> Result<(), Problem> {
    let (name, question) = open(app, id).await?;
    if !matches!(question, Question::Approval(_)) {
        asks(here, id, &question);
        return Err(Problem::new(Code::InvalidRequest, format!("run `{id}` does not ask for approval")));
    }
    // Only people make rules.
    let needs = if decision.remember.is_some() { Needs::Person } else { Needs::WhoeverMay };
    let by = answering(here, app, id, &question, needs).await?;
    flow::answer(app, id, &name, Answer::Approval(decision), &by).await
}

/// Who has to answer.
#[derive(PartialEq, Eq)]
enum Needs {
    Person,
    WhoeverMay,
}

/// By what way the terminal answers: as a person where that is needed, after the passphrase.
async fn answering(
    here: &Here,
    app: &App,
    id: &RunId,
    question: &Question,
    needs: Needs,
) -> Result<By, Problem> {
    if needs == Needs::WhoeverMay && !flow::needs_person(app, question, &By::Shell) {
        return Ok(By::Shell);
    }
    asks(here, id, question);
    as_a_person(&app.settings.paths, &app.store).await?;
    Ok(By::Terminal)
}

/// Has the passphrase typed: what a program with a shell cannot do.
pub(super) async fn as_a_person(paths: &Paths, store: &Store) -> Result<(), Problem> {
    if !passphrase::is_set(paths)? {
        return Err(Problem::new(
            Code::Denied,
            "only a person's own word counts here, and no passphrase is set",
        )
        .hint("run `pml passphrase` in a terminal"));
    }
    let typed = passphrase::ask_on_terminal("Passphrase: ").await?;
    if passphrase::verify(paths, store, Door::Terminal, typed.reveal()).await? {
        return Ok(());
    }
    Err(Problem::new(Code::Denied, "that is not the passphrase").hint("nothing was done; try again"))
}

/// Goes on after a layer.
pub(super) async fn go_on_after_layer(here: &Here, app: &Arc<App>, id: &str) -> Result<ExitCode, Problem> {
    let id = run_id(id)?;
    let (name, question) = open(app, &id).await?;
    if !matches!(question, Question::Layer(_)) {
        asks(here, &id, &question);
        return Ok(ExitCode::FAILURE);
    }
    flow::answer(app, &id, &name, Answer::Layer(Onward::Continue), &By::Shell).await?;
    go_on(here, app, &id, true).await
}

async fn open(app: &App, id: &RunId) -> Result<(String, Question), Problem> {
    match flow::open_question(app, &app.principal, id).await? {
        Some(open) => Ok(open),
        None => match flow::asks_nothing(app, &app.principal, id).await? {
            problem if problem.code == Code::ToolChanged => Err(problem),
            _ => Err(Problem::new(Code::InvalidRequest, format!("run `{id}` asks nothing"))),
        },
    }
}

/// Says what became of calls in doubt.
pub(super) async fn doubts(
    here: &Here,
    app: &Arc<App>,
    id: &RunId,
    said: Vec<Resolved>,
) -> Result<(), Problem> {
    let (name, question) = open(app, id).await.map_err(|problem| problem.hint("leave `--call` out"))?;
    let Question::InDoubt { .. } = question else {
        return Err(Problem::new(Code::InvalidRequest, format!("run `{id}` has no calls in doubt"))
            .hint("leave `--call` out"));
    };
    let by = answering(here, app, id, &question, Needs::WhoeverMay).await?;
    flow::answer(app, id, &name, Answer::Doubts { calls: said }, &by).await
}

/// What is said of a call in doubt: `3=again`, `3=failed`, `3={"ok":true}`.
pub(super) fn said(text: &str) -> Result<Resolved, Problem> {
    let wrong = || {
        Problem::new(Code::InvalidRequest, format!("`--call {}` cannot be read", printable(text)))
            .hint(r#"write N=again, N=failed or N=JSON, such as --call 3=again or --call '3={"id": 7}'"#)
    };
    let (call, what) = text.split_once('=').ok_or_else(wrong)?;
    let call = call.trim().parse().map_err(|_| wrong())?;
    let verdict = match what.trim() {
        "again" => Verdict::Again,
        "failed" => Verdict::Failed,
        json => {
            let json: &RawValue = serde_json::from_str(json).map_err(|_| wrong())?;
            Verdict::Done { result: json.get().to_owned() }
        }
    };
    Ok(Resolved { call, verdict })
}
