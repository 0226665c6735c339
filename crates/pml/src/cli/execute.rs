//! `pml execute`: runs a program and shows how it goes.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pml_mcp::caller::{Standing as Known, ToCaller, new_session};
use pml_mcp::{Caller, Era};
use pml_model::json::{empty_object, raw};
use pml_model::name::printable;
use pml_model::question::{Answer, Answerer, Decision, Question};
use pml_model::{RunId, RunState};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::answer::as_a_person;
use super::call::{READING, print_result};
use super::{Here, analyse, out};
use crate::app::{App, Role};
use crate::approve::words;
use crate::execute::{Handle, Resumed};
use crate::flow::{self, By, Executed, Suggested};
use crate::knowledge;
use crate::passphrase;
use crate::plan::Pause;
use crate::planning::{Asked, Execution, Refused};
use crate::problem::{Code, Problem};
use crate::report::{Failure, Report, Standing};
use crate::suggest::SuggestedDag;

/// As long as a person is willing to wait.
pub(super) const PATIENCE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Arguments of `pml execute`.
#[derive(Debug, Args)]
pub(super) struct Execute {
    /// The intent; without --code, --dag or --capability, the capability that serves it runs
    #[arg(required_unless_present_any = ["code", "dag", "capability"])]
    intent: Option<String>,
    /// The program, TypeScript; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "dag")]
    code: Option<PathBuf>,
    /// A DAG document, JSON; - reads standard input
    #[arg(long, value_name = "FILE")]
    dag: Option<PathBuf>,
    /// Run this capability, by name or id
    #[arg(long, value_name = "NAME", conflicts_with_all = ["code", "dag"])]
    capability: Option<String>,
    /// Do not learn from this run
    #[arg(long)]
    no_learn: bool,
    /// Do not answer from the cache
    #[arg(long)]
    no_cache: bool,
    /// With --dag: wait for `pml runs continue` after each layer
    #[arg(long, requires = "dag")]
    per_layer: bool,
    /// Approve every call, unless only a person may (`approvals.by = "human"`)
    #[arg(long, short)]
    yes: bool,
    /// Its arguments, a JSON object
    #[arg(long, default_value = "{}", value_name = "JSON")]
    args: String,
    /// Fail the run after this many milliseconds
    #[arg(long, value_name = "MS")]
    timeout: Option<u64>,
}

pub(super) async fn run(here: &Here, execute: Execute) -> Result<ExitCode, Problem> {
    let file = execute.code.as_ref().or(execute.dag.as_ref());
    let read = file.map(|file| analyse::read(here, file)).transpose()?;
    let work = match (&read, &execute.capability) {
        (Some((_, text)), _) if execute.dag.is_none() => Asked::Code(text.clone()),
        (Some((_, text)), _) => Asked::Dag {
            document: text.clone(),
            pause: if execute.per_layer { Pause::PerLayer } else { Pause::None },
        },
        (None, Some(name)) => Asked::Capability(name.clone()),
        (None, None) => Asked::Anything,
    };
    let (name, code) = read.unwrap_or_default();
    let arguments: Box<RawValue> = serde_json::from_str(&execute.args).map_err(|error| {
        Problem::new(Code::InvalidRequest, format!("`--args` is not JSON: {error}"))
            .hint(r#"write it as --args '{"path": "x"}'"#)
    })?;
    let app = here.open(Role::Command).await?;
    let (caller, messages) = watching();
    let showing = tokio::spawn(show(messages));
    let config = app.config();
    let execution = Execution {
        principal: app.principal.clone(),
        session: "terminal".to_owned(),
        intent: execute.intent.unwrap_or_else(|| name.clone()),
        work,
        arguments,
        timeout: execute.timeout.map(Duration::from_millis),
        caller: caller.clone(),
        idempotency: None,
        patience: PATIENCE,
        by: config.approvals.by.unwrap_or(Answerer::Client),
        dynamic: config.approvals.dynamic,
        learn: config.memory.learn && !execute.no_learn,
        capability: None,
        cache: config.memory.cache && !execute.no_cache,
    };
    if matches!(execution.work, Asked::Anything) {
        app.tools.ensure_manifests_loaded().await;
        knowledge::embed_for(&app.knowledge, READING).await;
    }
    let ended = match flow::execute(&app, execution, |_| true).await {
        Ok(Executed::Going(handle)) => Ok((handle.id.clone(), follow(&handle).await)),
        Ok(Executed::Stands(id, standing)) => Ok((id, standing)),
        Ok(Executed::AsksAlready(id, standing)) => {
            out::note(format!("the same waits for an answer already, in {id}"));
            Ok((id, standing))
        }
        Ok(Executed::Known(known)) => Ok((known.id, Standing::Over(Arc::new(known.report)))),
        Ok(Executed::Suggested(suggested)) => {
            app.close().await;
            return Ok(suggestions(here, &suggested));
        }
        Ok(Executed::Refused(refused)) => {
            app.close().await;
            return Ok(not_run(here, &name, &code, &refused));
        }
        Err(problem) => Err(problem),
    };
    let ended = match ended {
        Ok((id, standing)) => {
            if execute.yes && standing.asks().is_some() {
                self::name(&id);
            }
            decide(here, &app, &id, standing, (&caller, execute.yes)).await.map(|standing| (id, standing))
        }
        Err(problem) => Err(problem),
    };
    // Dropping both sides of the run ends the messages; what was printed last is still shown.
    drop(caller);
    app.close().await;
    if tokio::time::timeout(Duration::from_millis(200), showing).await.is_err() {
        tracing::debug!("messages of the run are still open");
    }
    let (id, standing) = ended?;
    Ok(tell(here, &id, &standing, Some((&name, &code))))
}

/// Asks whoever sits at the terminal what the run asks, until it is over or they do not know. With `yes` everything is
/// allowed for which a client's word is enough.
pub(super) async fn decide(
    here: &Here,
    app: &Arc<App>,
    id: &RunId,
    mut standing: Standing,
    (caller, yes): (&Caller, bool),
) -> Result<Standing, Problem> {
    while let Standing::Waiting { question: Some((name, question)), .. } = &standing {
        if !matches!(question, Question::Approval(_)) {
            break;
        }
        let Some((approved, by)) = said(here, app, id, question, yes).await? else { break };
        let decision =
            Decision { approved, reason: None, any_arguments: None, remember: None, by: String::new() };
        flow::answer(app, id, name, Answer::Approval(decision), &by).await?;
        standing = match flow::resume(app, &app.principal, id, caller.clone()).await? {
            Resumed::Going(handle) => ended(&handle).await,
            Resumed::Asks { .. } | Resumed::Held | Resumed::Over(_) => {
                super::runs::followed_elsewhere(app, id).await?
            }
        };
    }
    Ok(standing)
}

/// What whoever sits at the terminal says, and as whom; nothing where nobody does or they do not say. Where only a
/// person's answer counts they show by the passphrase that they are one.
async fn said(
    here: &Here,
    app: &App,
    id: &RunId,
    question: &Question,
    yes: bool,
) -> Result<Option<(bool, By)>, Problem> {
    let needs_person = flow::needs_person(app, question, &By::Shell);
    if yes && !needs_person {
        return Ok(Some((true, By::Shell)));
    }
    let nobody = here.json || !std::io::stdin().is_terminal();
    if nobody || (needs_person && !passphrase::is_set(&app.settings.paths)?) {
        return Ok(None);
    }
    asks(here, id, question);
    let Some(approved) = confirmed("allow it?").await else { return Ok(None) };
    if !needs_person {
        return Ok(Some((approved, By::Shell)));
    }
    as_a_person(&app.settings.paths, &app.store).await?;
    Ok(Some((approved, By::Terminal)))
}

/// A word from the terminal; nothing where the line is empty or ends.
pub(super) async fn confirmed(question: &str) -> Option<bool> {
    out::note(format!("{question} [y/n]"));
    let line = crate::runtime::blocking(|| std::io::stdin().lines().next()).await;
    match line?.ok()?.trim() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}

/// Names a run and waits for it.
pub(super) async fn follow(handle: &Handle) -> Standing {
    name(&handle.id);
    ended(handle).await
}

fn name(id: &RunId) {
    out::note(format!("{}{id}{}", out::DIM, out::RESET));
}

/// Waits for a run; whoever interrupts the command ends the run.
pub(super) async fn ended(handle: &Handle) -> Standing {
    tokio::select! {
        standing = handle.wait(PATIENCE) => standing,
        () = super::serve::asked_to_stop() => {
            out::note("stopping the run");
            handle.cancel();
            handle.wait(PATIENCE).await
        }
    }
}

/// A caller that hears what a program prints and how far it is, and cannot be asked anything.
pub(super) fn watching() -> (Caller, mpsc::Receiver<ToCaller>) {
    Caller::new(Known {
        session: new_session(),
        era: Era::Modern,
        capabilities: empty_object(),
        progress_token: std::io::stderr().is_terminal().then(|| raw(&"pml-execute")),
        wants_logs_from: Some(0),
    })
}

/// Shows what a program prints and how far it is.
pub(super) async fn show(mut messages: mpsc::Receiver<ToCaller>) {
    while let Some(message) = messages.recv().await {
        let ToCaller::Notify { method, params: Some(params) } = message else { continue };
        let said: Value = serde_json::from_str(params.get()).unwrap_or_default();
        if method == "notifications/progress" {
            let total = said["total"].as_f64().map(|total| format!(" of {total}")).unwrap_or_default();
            let text = said["message"].as_str().map(printable).unwrap_or_default();
            out::note(format!("{}{}{total} {text}{}", out::DIM, said["progress"], out::RESET));
        } else {
            let colour = match said["level"].as_str() {
                Some("error") => out::BOLD_RED,
                Some("warning") => out::YELLOW,
                _ => out::CYAN,
            };
            let text = said["data"].as_str().unwrap_or_default();
            for line in text.lines() {
                out::note(format!("{colour}│{} {}", out::RESET, printable(line)));
            }
        }
    }
}

/// What could be run instead of nothing.
fn suggestions(here: &Here, suggested: &Suggested) -> ExitCode {
    if here.json {
        out::json(&suggested.body());
        return ExitCode::FAILURE;
    }
    out::note(format!("nothing was run: {}", suggested.because));
    for candidate in &suggested.candidates {
        out::line(format!(
            "{}{}{} {}{:.2}{} {}",
            out::BOLD,
            candidate.name,
            out::RESET,
            out::DIM,
            candidate.confidence,
            out::RESET,
            printable(&candidate.description)
        ));
        if let Some(contradicted) = &candidate.contradiction {
            out::line(format!(
                "  not for this: it is fixed to `{}`, and the intent says `{}`",
                printable(&contradicted.constant),
                printable(&contradicted.intent_says)
            ));
        }
        for missing in &candidate.missing {
            out::line(format!("  needed: {}", printable(&missing.why)));
        }
    }
    let runnable = suggested.candidates.iter().find(|candidate| candidate.contradiction.is_none());
    if let Some(first) = runnable {
        out::note(format!(
            "{}hint{}: `pml execute --capability {} --args '{{…}}'` runs it",
            out::CYAN,
            out::RESET,
            first.name
        ));
    }
    if let Some(earlier) = &suggested.earlier {
        out::line(format!(
            "{}an earlier result{} for \"{}\" (similarity {:.2}, {} s old): {}",
            out::BOLD,
            out::RESET,
            printable(&earlier.intent),
            earlier.similarity,
            earlier.age_ms / 1_000,
            printable(earlier.result.get())
        ));
    }
    if let Some(dag) = &suggested.suggested_dag {
        suggested_dag(dag);
    }
    for tool in &suggested.tools {
        out::line(format!("{}{}{}", out::DIM, tool.id, out::RESET));
    }
    ExitCode::FAILURE
}

/// A DAG that could serve.
fn suggested_dag(dag: &SuggestedDag) {
    out::line(format!(
        "{}suggested DAG{} {}{:.2}{} {}",
        out::BOLD,
        out::RESET,
        out::DIM,
        dag.confidence,
        out::RESET,
        printable(&dag.rationale)
    ));
    let tasks = dag.dag_structure["tasks"].as_array();
    for task in tasks.into_iter().flatten() {
        out::line(format!("  {}", printable(&task.to_string())));
    }
    for path in &dag.dependency_paths {
        let (from, to) = (printable(&path.from), printable(&path.to));
        out::line(format!("  {from} → {to}: {}", printable(&path.explanation)));
    }
    for missing in &dag.missing {
        out::line(format!("  needed: `{}` of {}", printable(&missing.name), missing.task));
    }
    if let Some(warning) = &dag.warning {
        out::note(printable(warning));
    }
    out::note(format!(
        "{}hint{}: complete it and run it with `pml execute --dag FILE`",
        out::CYAN,
        out::RESET
    ));
}

fn not_run(here: &Here, name: &str, code: &str, refused: &Refused) -> ExitCode {
    if here.json {
        out::json(
            &json!({ "status": "failed", "error": refused.problem, "line": refused.line, "reasons": refused.all }),
        );
    } else {
        out::error(&refused.problem);
        excerpt(name, code, refused.line);
        if refused.all.len() > 1 {
            refused.all.iter().for_each(|reason| out::note(format!("  {reason}")));
        }
    }
    ExitCode::FAILURE
}

/// Prints how a run stands.
pub(super) fn tell(here: &Here, id: &RunId, standing: &Standing, source: Option<(&str, &str)>) -> ExitCode {
    let note = |text: &str, body: Value| {
        if here.json {
            out::json(&body);
        } else {
            out::note(text);
        }
    };
    match standing {
        Standing::Over(report) => return over(here, id, report, source),
        Standing::Waiting { question: Some((_, question)), .. } => {
            asks(here, id, question);
            return ExitCode::FAILURE;
        }
        Standing::Waiting { question: None, wake_at, .. } => note(
            "it sleeps; a running `pml serve` or `pml stdio` wakes it, or `pml runs resume`",
            json!({ "status": "running", "workflowId": id, "wakeAt": wake_at }),
        ),
        Standing::Running(progress) => note(
            &format!("running: {} of {} calls ended", progress.ended, progress.calls),
            json!({ "status": "running", "workflowId": id, "progress": progress }),
        ),
        Standing::Interrupted => {
            note(
                "it was interrupted; `pml runs resume` goes on with it",
                json!({ "status": "interrupted", "workflowId": id }),
            );
            return ExitCode::FAILURE;
        }
        Standing::Elsewhere => {
            note("another process has the run", json!({ "status": "running", "workflowId": id }));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn over(here: &Here, id: &RunId, report: &Report, source: Option<(&str, &str)>) -> ExitCode {
    if here.json {
        let mut shown = serde_json::to_value(report).unwrap_or_default();
        shown["workflowId"] = json!(id);
        out::json(&shown);
    } else if let Some(result) = report.tool_result() {
        print_result(here, result);
    } else if let Some(result) = &report.result {
        out::line(pretty(result));
        if let Some(hit) = &report.cache_hit {
            out::note(format!(
                "not run: this result was kept by an earlier run, {} ago; `--no-cache` runs it anew",
                words::age(hit.age_ms)
            ));
        }
        for warning in &report.warnings {
            out::note(format!("{}warning{}: {}", out::YELLOW, out::RESET, printable(warning)));
        }
    } else {
        let fallback = Failure::nothing_known();
        let error = report.error.as_ref().unwrap_or(&fallback);
        failure(error, source);
    }
    if report.state == RunState::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Texts as they are, everything else as JSON a person can read.
fn pretty(result: &RawValue) -> String {
    match serde_json::from_str::<Value>(result.get()) {
        Ok(Value::String(text)) => printable(&text),
        Ok(value) if value.is_object() || value.is_array() => {
            serde_json::to_string_pretty(&value).unwrap_or_else(|_| result.get().to_owned())
        }
        _ => result.get().to_owned(),
    }
}

fn failure(error: &Failure, source: Option<(&str, &str)>) {
    out::note(format!("{}error{}: {}: {}", out::BOLD_RED, out::RESET, error.code, printable(&error.message)));
    if let Some((name, code)) = source {
        excerpt(name, code, error.line);
    } else if let Some(line) = error.line {
        out::note(format!("  at line {line}"));
    }
    if let Some(hint) = &error.hint {
        out::note(format!("{}hint{}: {}", out::CYAN, out::RESET, printable(hint)));
    }
    if !error.in_doubt.is_empty() {
        out::note(format!("whether these calls acted is not known: {:?}", error.in_doubt));
    }
}

fn excerpt(name: &str, code: &str, line: Option<u32>) {
    let Some(number) = line else { return };
    let text = code.lines().nth(number.saturating_sub(1) as usize).unwrap_or_default();
    out::note(format!("{}  --> {}:{number}{}", out::DIM, printable(name), out::RESET));
    out::note(format!("{}{number:>4} │{} {}", out::DIM, out::RESET, printable(text)));
}

/// Prints what a run asks.
pub(super) fn asks(here: &Here, id: &RunId, question: &Question) {
    if here.json {
        return out::json(&json!({ "status": "approval_required", "workflowId": id, "question": question }));
    }
    out::note(format!("the run {}", words::question(question)));
    let hint = match question {
        Question::InDoubt { .. } => format!(
            "look what happened, then say so: `pml runs resume {id} --call N=again`, `N=failed` or `N='{{…}}'` (its result)"
        ),
        Question::Approval(_) => format!("say so with `pml runs approve {id}` or `pml runs deny {id}`"),
        Question::Layer(_) => {
            format!("go on with `pml runs continue {id}`, or end it with `pml runs abort {id}`")
        }
    };
    out::note(format!("{}hint{}: {hint}", out::CYAN, out::RESET));
}

/// The name of a run as it is written on a command line.
pub(super) fn run_id(text: &str) -> Result<RunId, Problem> {
    RunId::parse(text).map_err(|error| Problem::new(Code::InvalidRequest, error.to_string()))
}
