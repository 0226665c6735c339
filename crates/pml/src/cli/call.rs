//! `pml call` and `pml discover`.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pml_mcp::caller::{Standing as Known, ToCaller, new_session};
use pml_mcp::{Caller, Era};
use pml_model::json::{Fields, empty_object, raw};
use pml_model::question::Answerer;
use pml_model::{RunId, RunState, ToolId};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::execute::{PATIENCE, decide, ended, tell};
use super::{Here, out};
use crate::app::{App, Role};
use crate::discover::{Detail, Filter, Kind, Request, default_limit};
use crate::flow::{self, Called, Executed, NamedCall};
use crate::knowledge;
use crate::problem::{Code, Problem, Sent};
use crate::report::Standing;
use crate::tools::{Direct, Outcome, ToolError};

/// Arguments of `pml call`.
#[derive(Debug, Args)]
pub(super) struct Call {
    /// The tool, as server:tool
    tool: String,
    /// Its arguments, a JSON object
    #[arg(long, default_value = "{}", value_name = "JSON")]
    args: String,
    /// Approve the call, unless only a person may (`approvals.by = "human"`)
    #[arg(long, short)]
    yes: bool,
}

/// Arguments of `pml discover`.
#[derive(Debug, Args)]
pub(super) struct Discover {
    /// What you want to do
    intent: String,
    /// The number of results
    #[arg(long, default_value_t = default_limit())]
    limit: usize,
    /// The number of results to skip
    #[arg(long, default_value_t = 0)]
    offset: usize,
    /// Only results with at least this score, from 0 to 1
    #[arg(long, default_value_t = 0.0)]
    min_score: f64,
    /// Show the reasons for each result
    #[arg(long)]
    explain: bool,
    /// Show the JSON Schemas (with --json)
    #[arg(long)]
    full: bool,
}

pub(super) async fn call(here: &Here, call: Call) -> Result<ExitCode, Problem> {
    let tool =
        ToolId::parse(&call.tool).map_err(|error| Problem::new(Code::InvalidRequest, error.to_string()))?;
    let arguments: Box<RawValue> = serde_json::from_str(&call.args).map_err(|error| {
        Problem::new(Code::InvalidRequest, format!("`--args` is not JSON: {error}"))
            .hint(r#"write it as --args '{"path": "x"}'"#)
    })?;
    let app = here.open(Role::Command).await?;
    let (caller, messages) = terminal_caller();
    let showing = tokio::spawn(show_progress(messages));
    let ended = made(here, &app, &tool, &arguments, (&caller, call.yes)).await;
    app.close().await;
    showing.abort();
    match ended? {
        Ended::Answered(outcome) => told(here, &tool, outcome),
        Ended::Run(id, Standing::Over(report)) => Ok(match report.tool_result() {
            Some(result) => printed(here, result, report.state == RunState::Done),
            None => tell(here, &id, &Standing::Over(report), None),
        }),
        Ended::Run(id, standing) => {
            if !here.json && standing.asks().is_some() {
                out::note(format!("approval_required: {id}"));
            }
            Ok(tell(here, &id, &standing, None))
        }
    }
}

/// How a call ended.
enum Ended {
    Answered(Outcome),
    Run(RunId, Standing),
}

/// Makes the call; where somebody has to allow it, whoever sits at the terminal is asked.
async fn made(
    here: &Here,
    app: &Arc<App>,
    tool: &ToolId,
    arguments: &RawValue,
    (caller, yes): (&Caller, bool),
) -> Result<Ended, Problem> {
    let cancel = CancellationToken::new();
    let call = NamedCall {
        principal: app.principal.clone(),
        session: "terminal".to_owned(),
        direct: Direct { client: "terminal".to_owned(), key: None, asked_by_client: None },
        tool,
        arguments,
        passing: Fields::default(),
        caller: caller.clone(),
        cancel: cancel.clone(),
        by: app.config().approvals.by.unwrap_or(Answerer::Client),
        idempotency: None,
        patience: PATIENCE,
    };
    let calling = flow::call(app, call, |_| true);
    tokio::pin!(calling);
    let called = tokio::select! {
        called = &mut calling => called,
        () = super::serve::asked_to_stop() => {
            cancel.cancel();
            calling.await
        }
    };
    let (id, standing) = match called? {
        Called::Answered(outcome) => return Ok(Ended::Answered(outcome)),
        Called::Run(Executed::Going(handle)) => (handle.id.clone(), ended(&handle).await),
        Called::Run(Executed::Stands(id, standing) | Executed::AsksAlready(id, standing)) => (id, standing),
        Called::Run(Executed::Known(known)) => (known.id, Standing::Over(Arc::new(known.report))),
        Called::Run(Executed::Refused(refused)) => return Err(refused.problem),
        Called::Run(Executed::Suggested(_)) => unreachable!("a tool was named"),
    };
    let standing = decide(here, app, &id, standing, (caller, yes)).await?;
    Ok(Ended::Run(id, standing))
}

/// Prints what came of a call that was made, or refused, at once.
fn told(here: &Here, tool: &ToolId, outcome: Outcome) -> Result<ExitCode, Problem> {
    match outcome {
        Outcome::Ok(result) if pml_mcp::protocol::is_input_required(&result) => {
            Err(Problem::new(Code::InputRequired, format!("`{tool}` asks for input while it works"))
                .hint("call it from a client that can answer"))
        }
        Outcome::Ok(result) => Ok(printed(here, &result, true)),
        Outcome::ToolError(ToolError::Result(result)) => Ok(printed(here, &result, false)),
        Outcome::ToolError(ToolError::Rpc(error)) => Err(Problem::new(
            Code::ServerError,
            format!("`{tool}` answered: {}", pml_model::name::printable(&error.to_string())),
        )),
        Outcome::NotSent(problem) | Outcome::NeedsApproval(problem) => Err(problem.sent(Sent::No)),
        Outcome::Unknown(problem) => Err(problem.sent(Sent::Unknown)),
    }
}

fn printed(here: &Here, result: &RawValue, worked: bool) -> ExitCode {
    print_result(here, result);
    if worked { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A caller that hears of progress where a person is watching, and cannot be asked anything.
fn terminal_caller() -> (Caller, mpsc::Receiver<ToCaller>) {
    Caller::new(Known {
        session: new_session(),
        era: Era::Modern,
        capabilities: empty_object(),
        progress_token: std::io::stderr().is_terminal().then(|| raw(&"pml-call")),
        wants_logs_from: None,
    })
}

async fn show_progress(mut messages: mpsc::Receiver<ToCaller>) {
    while let Some(message) = messages.recv().await {
        if let ToCaller::Notify { params: Some(params), .. } = message {
            let progress: Value = serde_json::from_str(params.get()).unwrap_or_default();
            let total = progress["total"].as_f64().map(|total| format!(" of {total}")).unwrap_or_default();
            let text = progress["message"].as_str().map(pml_model::name::printable).unwrap_or_default();
            out::note(format!("{}{}{total} {text}{}", out::DIM, progress["progress"], out::RESET));
        }
    }
}

/// Prints a result as a person wants it: its text, or the structured value where there is no text.
pub(super) fn print_result(here: &Here, result: &RawValue) {
    if here.json {
        return out::line(result.get());
    }
    let fields = Fields::parse(result.get()).unwrap_or_default();
    let content: Vec<Value> = fields.read("content").unwrap_or_default();
    for part in &content {
        match (part["type"].as_str(), part["text"].as_str()) {
            (Some("text"), Some(text)) => out::line(pml_model::name::printable(text)),
            (Some(kind), _) => {
                let size = part["data"]
                    .as_str()
                    .map(|data| format!(", {} bytes in base64", data.len()))
                    .unwrap_or_default();
                let uri = part["uri"]
                    .as_str()
                    .or(part["resource"]["uri"].as_str())
                    .map(|uri| format!(" {uri}"))
                    .unwrap_or_default();
                out::line(format!("[{kind}{uri}{size}]"));
            }
            _ => {}
        }
    }
    if content.is_empty()
        && let Some(structured) = fields.get("structuredContent")
    {
        out::line(structured.get());
    }
}

/// How long a command reads tools before it ranks them: a small catalogue is read at once.
pub(super) const READING: Duration = Duration::from_secs(2);

pub(super) async fn discover(here: &Here, discover: Discover) -> Result<ExitCode, Problem> {
    let app = here.open(Role::Command).await?;
    let request = Request {
        intent: discover.intent,
        filter: Filter { kind: Kind::All, min_score: discover.min_score },
        limit: discover.limit,
        offset: discover.offset,
        detail: if discover.full { Detail::Full } else { Detail::Brief },
    };
    app.tools.ensure_manifests_loaded().await;
    knowledge::embed_for(&app.knowledge, READING).await;
    let page = flow::discover(&app, (&app.principal, None), &request, |_| true).await;
    app.close().await;
    let page = page?;
    if here.json {
        out::json(&page);
        return Ok(ExitCode::SUCCESS);
    }
    for found in &page.results {
        out::line(format!(
            "{}{}{} {}{:.2}{}",
            out::BOLD,
            // A capability is called by its name; its id says nothing to a person.
            if found.kind == Kind::Capability {
                format!("capability {}", found.name)
            } else {
                found.id.clone()
            },
            out::RESET,
            out::DIM,
            found.score,
            out::RESET
        ));
        out::line(indent(&found.signature));
        if discover.explain {
            found
                .reasons
                .iter()
                .for_each(|reason| out::line(format!("  {}because {reason}{}", out::CYAN, out::RESET)));
        }
    }
    if page.total > page.results.len() {
        out::note(format!("{} of {}; see more with --offset and --limit", page.results.len(), page.total));
    }
    page.suggestions.iter().flatten().for_each(out::note);
    Ok(if page.total == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
