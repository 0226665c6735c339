//! `pml explore`: tries ways to serve an intent.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value};

use super::call::READING;
use super::follow::progress_caller;
use super::{CommandContext, analyse, out};
use crate::app::ProcessRole;
use crate::flow::{self, ExploreInput, ExploringClient};
use crate::knowledge;
use crate::problem::{ErrorCode, Problem};

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
}

pub(super) async fn run(here: &CommandContext, explore: ExploreArgs) -> Result<ExitCode, Problem> {
    let context: Map<String, Value> = serde_json::from_str(&explore.args).map_err(|error| {
        Problem::new(ErrorCode::InvalidRequest, format!("`--args` is not a JSON object: {error}"))
            .hint(r#"write it as --args '{"path": "x"}'"#)
    })?;
    let mock_config = explore.mocks.map(|file| read_mocks(here, &file)).transpose()?;
    let input = ExploreInput {
        intent: explore.intent,
        max_paths: explore.max_paths,
        max_depth: explore.max_depth,
        mock_config,
        context,
    };
    let app = here.open_app(ProcessRole::Command).await?;
    app.tools.ensure_manifests_loaded().await;
    knowledge::embed_for(&app.knowledge, READING).await;
    let (caller, _messages) = progress_caller();
    let client = ExploringClient { principal: app.principal.clone(), session: "cli".to_owned(), caller };
    let explored = flow::explore(&app, client, input, |_| true).await;
    app.close().await;
    let exploration = explored?;
    match here.json {
        true => out::json(&exploration),
        false => out::line(exploration.text()),
    }
    Ok(if exploration.viable_paths.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn read_mocks(here: &CommandContext, file: &std::path::Path) -> Result<Value, Problem> {
    let (name, text) = analyse::read_source(here, file)?;
    serde_json::from_str(&text).map_err(|error| {
        Problem::new(ErrorCode::InvalidRequest, format!("`{name}` is not JSON: {error}"))
            .hint(r#"write {"server:tool": result}"#)
    })
}
