//! `pml execute`: runs a program, a DAG or a capability and shows its progress.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pml_mcp::Caller;
use pml_model::name::printable;
use pml_model::question::Answerer;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::task::JoinSet;

use super::ask::answer_questions;
use super::call::embed_with_bar;
use super::dry_run::{self, DryRunArgs};
use super::follow::{PATIENCE, print_and_follow, print_progress, print_run_id, progress_caller};
use super::run_output::{print_excerpt, print_status};
use super::{CommandContext, analyse, out};
use crate::app::{App, ProcessRole};
use crate::discover::ReadyCall;
use crate::flow::{self, CapabilitySuggestion, DryRunOutcome, ExecuteOutcome, Suggestions};
use crate::plan::Pause;
use crate::planning::session::{given_session_id, named_session};
use crate::planning::{PlanRefusal, RunRequest, Work};
use crate::problem::{ErrorCode, Problem};
use crate::report::RunStatus;
use crate::suggest::SuggestedDag;

/// The client that commands are, in the names of sessions.
const TERMINAL: &str = "terminal";

/// The name of a program that is an argument of the command.
const INLINE: &str = "program";

/// Arguments of `pml execute`.
#[derive(Debug, Args)]
pub(super) struct ExecuteArgs {
    /// The intent, or a program that calls tools; without --code, --dag or --capability, the capability that serves the
    /// intent runs
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
    /// Call nothing before the program asks for it
    #[arg(long)]
    no_speculation: bool,
    /// With --dag: wait for `pml runs continue` after each layer
    #[arg(long, requires = "dag")]
    per_layer: bool,
    /// Approve every call, unless only a person may (`approvals.by = "human"`)
    #[arg(long, short)]
    yes: bool,
    /// Its arguments, a JSON object
    #[arg(long, default_value = "{}", value_name = "JSON")]
    args: String,
    /// The session that this belongs to, as `sessionId` in --args
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Fail the run after this many milliseconds
    #[arg(long, value_name = "MS")]
    timeout: Option<u64>,
    #[command(flatten)]
    dry: DryRunArgs,
}

pub(super) async fn run(here: &CommandContext, execute: ExecuteArgs) -> Result<ExitCode, Problem> {
    let file = execute.code.as_ref().or(execute.dag.as_ref());
    let read = file.map(|file| analyse::read_source(here, file)).transpose()?;
    let work = match (&read, &execute.capability) {
        (Some((_, text)), _) if execute.dag.is_none() => Work::Code(text.clone()),
        (Some((_, text)), _) => Work::Dag {
            document: text.clone(),
            pause: if execute.per_layer { Pause::PerLayer } else { Pause::None },
        },
        (None, Some(name)) => Work::Capability(name.clone()),
        (None, None) => Work::Intent,
    };
    let (mut name, mut code) = read.unwrap_or_default();
    let arguments: Box<RawValue> = serde_json::from_str(&execute.args).map_err(|error| {
        Problem::new(ErrorCode::InvalidRequest, format!("`--args` is not JSON: {error}"))
            .hint(r#"write it as --args '{"path": "x"}'"#)
    })?;
    let dry = execute.dry.options(here, execute.timeout)?;
    let app = here.open_app(ProcessRole::Command).await?;
    let mut intent = execute.intent.unwrap_or_else(|| name.clone());
    let mut work = work;
    if matches!(work, Work::Intent)
        && let Some(program) = flow::read_program(&app, &intent).await
    {
        work = Work::Code(program.clone());
        (name, code, intent) = (INLINE.to_owned(), program, String::new());
    }
    let run = TerminalRun::new(app, intent, execute.yes);
    let request = run.request(work, arguments);
    let execution = RunRequest {
        session: execute.session.map_or(request.session, |id| named_session(TERMINAL, &id)),
        timeout: execute.timeout.map(Duration::from_millis),
        learn: request.learn && !execute.no_learn,
        use_cache: request.use_cache && !execute.no_cache,
        speculate: !execute.no_speculation,
        ..request
    };
    let app = &run.app;
    if matches!(execution.work, Work::Intent) {
        app.tools.ensure_manifests_loaded().await;
        embed_with_bar(app).await;
    }
    if let Some(options) = dry {
        let outcome = flow::dry_run(app, execution, options, |_| true).await;
        app.close().await;
        return match outcome? {
            DryRunOutcome::Report(report) => Ok(dry_run::print_report(here, &report)),
            DryRunOutcome::Suggested(suggested) => Ok(print_suggestions(here, &run.intent, &suggested)),
            DryRunOutcome::Refused(refused) => Ok(print_refusal(here, &name, &code, &refused)),
        };
    }
    let executed = flow::execute(app, execution, |_| true).await;
    run.finish(here, executed, (&name, &code)).await
}

/// A run that a person started at the terminal, and follows there.
pub(super) struct TerminalRun {
    pub(super) app: Arc<App>,
    intent: String,
    /// Whether every call is approved beforehand.
    yes: bool,
    caller: Caller,
    /// Prints messages of the run.
    showing: JoinSet<()>,
}

impl TerminalRun {
    pub(super) fn new(app: Arc<App>, intent: String, yes: bool) -> TerminalRun {
        let (caller, messages) = progress_caller();
        let mut showing = JoinSet::new();
        showing.spawn(print_progress(messages));
        TerminalRun { app, intent, yes, caller, showing }
    }

    /// The request to run this work with these arguments.
    pub(super) fn request(&self, work: Work, arguments: Box<RawValue>) -> RunRequest {
        let config = self.app.config();
        RunRequest {
            principal: self.app.principal.clone(),
            key: None,
            session: given_session_id(&arguments)
                .map_or_else(|| TERMINAL.to_owned(), |id| named_session(TERMINAL, &id)),
            intent: self.intent.clone(),
            work,
            arguments,
            timeout: None,
            caller: self.caller.clone(),
            idempotency: None,
            max_wait: PATIENCE,
            answerer: config.approvals.answerer.unwrap_or(Answerer::Client),
            dynamic: config.approvals.dynamic,
            learn: config.memory.learn,
            capability: None,
            use_cache: config.memory.cache,
            speculate: true,
        }
    }

    /// Follows the run, asks what it asks, and prints its end. `source` is the name and the text of the program.
    pub(super) async fn finish(
        self,
        here: &CommandContext,
        executed: Result<ExecuteOutcome, Problem>,
        source: (&str, &str),
    ) -> Result<ExitCode, Problem> {
        let TerminalRun { app, intent, yes, caller, mut showing } = self;
        let (name, code) = source;
        let ended = match executed {
            Ok(ExecuteOutcome::Running(handle)) => Ok((handle.id.clone(), print_and_follow(&handle).await)),
            Ok(ExecuteOutcome::Status(id, standing)) => Ok((id, standing)),
            Ok(ExecuteOutcome::AlreadyWaiting(id, standing)) => {
                out::note(format!("the same waits for an answer already, in {id}"));
                Ok((id, standing))
            }
            Ok(ExecuteOutcome::Cached(known)) => Ok((known.id, RunStatus::Finished(Arc::new(known.report)))),
            Ok(ExecuteOutcome::Suggested(suggested)) => {
                app.close().await;
                return Ok(print_suggestions(here, &intent, &suggested));
            }
            Ok(ExecuteOutcome::Refused(refused)) => {
                app.close().await;
                return Ok(print_refusal(here, name, code, &refused));
            }
            Err(problem) => Err(problem),
        };
        let ended = match ended {
            Ok((id, standing)) => {
                if yes && standing.question_id().is_some() {
                    print_run_id(&id);
                }
                answer_questions(here, &app, &id, standing, (&caller, yes))
                    .await
                    .map(|standing| (id, standing))
            }
            Err(problem) => Err(problem),
        };
        // Dropping both senders ends the channel; messages already sent are still printed.
        drop(caller);
        app.close().await;
        if tokio::time::timeout(Duration::from_millis(200), showing.join_next()).await.is_err() {
            tracing::debug!("messages of the run are still open");
            showing.shutdown().await;
        }
        let (id, standing) = ended?;
        Ok(print_status(here, &id, &standing, Some(source)))
    }
}

/// Prints candidates, where nothing was run.
fn print_suggestions(here: &CommandContext, intent: &str, suggested: &Suggestions) -> ExitCode {
    if here.json {
        out::json(&suggested.to_json(intent));
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
    let ready = suggested.ready_call(intent);
    let runnable = suggested.candidates.iter().find(|candidate| candidate.contradiction.is_none());
    if let Some(hint) = ready.as_ref().map(ready_command).or_else(|| runnable.map(named_command)) {
        out::note(format!("{}hint{}: `{hint}` runs it", out::CYAN, out::RESET));
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
        print_suggested_dag(dag);
    }
    for tool in suggested.likely_tools().iter().filter(|_| ready.is_none()) {
        out::line(format!("{}{}{}", out::DIM, tool.id, out::RESET));
    }
    ExitCode::FAILURE
}

/// The command that a ready call is at the terminal.
fn ready_command(call: &ReadyCall) -> String {
    let arguments = &call.arguments;
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let mut command = format!(
        "pml execute {} --capability {}",
        quoted(&printable(&arguments.intent)),
        arguments.implementation.id
    );
    if !arguments.context.is_empty() {
        let context = serde_json::to_string(&arguments.context).unwrap_or_default();
        command.push_str(&format!(" --args {}", quoted(&printable(&context))));
    }
    command
}

fn named_command(candidate: &CapabilitySuggestion) -> String {
    format!("pml execute --capability {} --args '{{…}}'", candidate.name)
}

/// Prints a suggested DAG.
fn print_suggested_dag(dag: &SuggestedDag) {
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

fn print_refusal(here: &CommandContext, name: &str, code: &str, refused: &PlanRefusal) -> ExitCode {
    if here.json {
        out::json(
            &json!({ "status": "failed", "error": refused.problem, "line": refused.line, "reasons": refused.reasons }),
        );
    } else {
        out::error(&refused.problem);
        print_excerpt(name, code, refused.line);
        if refused.reasons.len() > 1 {
            refused.reasons.iter().for_each(|reason| out::note(format!("  {reason}")));
        }
    }
    ExitCode::FAILURE
}
