//! `pml explore`: tries ways to serve an intent.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use pml_model::json::empty_object;
use serde_json::{Map, Value};

use super::execute::TerminalRun;
use super::{CommandContext, analyse, out};
use crate::app::ProcessRole;
use crate::flow::{self, ExploreInput, ExploringClient};
use crate::planning::Work;
use crate::problem::{ErrorCode, Problem};
use crate::report::Exploration;

/// Arguments of `pml explore`.
#[derive(Debug, Args)]
pub(super) struct ExploreArgs {
    /// What you want to do
    intent: String,
    /// Values that may be used, a JSON object by parameter
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,
    /// The number of paths to try
    #[arg(long, default_value_t = 3)]
    max_paths: u32,
    /// The longest chain of calls
    #[arg(long, default_value_t = 5)]
    max_depth: u32,
    /// Answers to use for tools, JSON: {"server:tool": result}
    #[arg(long, value_name = "FILE")]
    mocks: Option<PathBuf>,
    /// Then run the path with this number for real
    #[arg(long, value_name = "N")]
    run: Option<usize>,
    /// With --run: approve every call, unless only a person may (`approvals.by = "human"`)
    #[arg(long, short, requires = "run")]
    yes: bool,
}

pub(super) async fn run(here: &CommandContext, explore: ExploreArgs) -> Result<ExitCode, Problem> {
    let context: Map<String, Value> = serde_json::from_str(&explore.args).map_err(|error| {
        Problem::new(ErrorCode::InvalidRequest, format!("`--args` is not a JSON object: {error}"))
            .hint(r#"write it as --args '{"path": "x"}'"#)
    })?;
    let mock_config = explore.mocks.map(|file| read_mocks(here, &file)).transpose()?;
    let intent = explore.intent.clone();
    let input = ExploreInput {
        intent: explore.intent,
        max_paths: explore.max_paths,
        max_depth: explore.max_depth,
        mock_config,
        context,
        timeout_ms: flow::PATH_TIMEOUT_MS,
    };
    let app = here.open_app(ProcessRole::Command).await?;
    let run = TerminalRun::new(app, intent, explore.yes);
    let request = run.request(Work::Intent, empty_object());
    let client = ExploringClient {
        key: None,
        principal: request.principal.clone(),
        session: request.session.clone(),
        caller: request.caller.clone(),
    };
    let explored = flow::explore(&run.app, client, input, |_| true).await;
    let exploration = match explored {
        Ok(exploration) => exploration,
        Err(problem) => {
            run.app.close().await;
            return Err(problem);
        }
    };
    let Some(number) = explore.run else {
        run.app.close().await;
        print_exploration(here, &exploration);
        if !here.json && !exploration.viable_paths.is_empty() {
            out::note(format!("{}hint{}: add `--run 1` to run the first", out::CYAN, out::RESET));
        }
        let found = !exploration.viable_paths.is_empty();
        return Ok(if found { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    };
    // With `--json`, the run alone is printed, so that the output is one document.
    if !here.json {
        print_exploration(here, &exploration);
    }
    let Some(path) = number.checked_sub(1).and_then(|at| exploration.viable_paths.get(at)) else {
        run.app.close().await;
        let told = format!("there is no path {number}; viable paths: {}", exploration.viable_paths.len());
        return Err(
            Problem::new(ErrorCode::NotFound, told).hint("give the number of a viable path to `--run`")
        );
    };
    let executed = flow::confirm_dry_run(&run.app, request, &path.path_id, |_| true).await;
    run.finish(here, executed, ("", "")).await
}

fn print_exploration(here: &CommandContext, exploration: &Exploration) {
    match here.json {
        true => out::json(exploration),
        false => out::line(exploration.text(|_| String::new())),
    }
}

fn read_mocks(here: &CommandContext, file: &std::path::Path) -> Result<Value, Problem> {
    let (name, text) = analyse::read_source(here, file)?;
    serde_json::from_str(&text).map_err(|error| {
        Problem::new(ErrorCode::InvalidRequest, format!("`{name}` is not JSON: {error}"))
            .hint(r#"write {"server:tool": result}"#)
    })
}
