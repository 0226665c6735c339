//! `pml mocks`: real results that stand in for calls that a dry run does not make.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use pml_model::mocks::MockId;
use pml_model::name::{printable, truncate_text};
use pml_store::MockScope;
use serde_json::json;

use super::{CommandContext, out};
use crate::app::{App, ProcessRole};
use crate::flow::{self, MockRecord, MockStats};
use crate::problem::Problem;

/// What to do with recorded results.
#[derive(Debug, Subcommand)]
pub(super) enum MocksCommand {
    /// List recorded results by tool
    List {
        /// Only those of this tool
        #[arg(long)]
        tool: Option<String>,
    },
    /// Show a recorded result
    Show {
        /// Its id
        id: String,
    },
    /// Keep a recorded result: it is preferred, never judged and never dropped
    Pin {
        /// Its id
        id: String,
    },
    /// Drop recorded results
    Drop(DropMocksArgs),
    /// Show how often recorded results were found, and how well they were judged
    Stats,
}

/// Which recorded results to drop.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct DropMocksArgs {
    /// The one with this id
    id: Option<String>,
    /// All of this tool
    #[arg(long)]
    tool: Option<String>,
    /// All of them
    #[arg(long)]
    all: bool,
}

impl DropMocksArgs {
    fn scope(&self) -> MockScope {
        match (&self.id, &self.tool) {
            (Some(id), _) => MockScope::One(MockId::from_text(id)),
            (None, Some(tool)) => MockScope::Tool(tool.clone()),
            (None, None) => MockScope::All,
        }
    }
}

pub(super) async fn run(here: &CommandContext, command: &MocksCommand) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let done = carry_out(here, &app, command).await;
    app.close().await;
    done.map(|()| ExitCode::SUCCESS)
}

async fn carry_out(here: &CommandContext, app: &App, command: &MocksCommand) -> Result<(), Problem> {
    let principal = &app.principal;
    match command {
        MocksCommand::List { tool } => {
            show_list(here, &flow::mocks(app, principal, tool.as_deref()).await?);
        }
        MocksCommand::Show { id } => show_one(here, &flow::mock(app, principal, id).await?),
        MocksCommand::Pin { id } => show_one(here, &flow::pin_mock(app, principal, id).await?),
        MocksCommand::Drop(which) => {
            let dropped = flow::drop_mocks(app, principal, which.scope()).await?;
            if here.json {
                out::json(&json!({ "dropped": dropped }));
            } else {
                out::note(format!(
                    "{dropped} recorded {} dropped",
                    if dropped == 1 { "result" } else { "results" }
                ));
            }
        }
        MocksCommand::Stats => show_stats(here, &flow::mock_stats(app, principal).await?),
    }
    Ok(())
}

fn show_list(here: &CommandContext, mocks: &[MockRecord]) {
    if here.json {
        return out::json(&json!(mocks));
    }
    if mocks.is_empty() {
        return out::note("no results are recorded yet; runs record what their tools return");
    }
    let row = |mock: &MockRecord| {
        vec![
            mock.id.to_string(),
            printable(&mock.tool.to_string()),
            status(mock),
            mock.counts.uses.to_string(),
            mock.counts.successes.to_string(),
            printable(&truncate_text(&mock.arguments.to_string(), 60)),
        ]
    };
    let rows: Vec<Vec<String>> = mocks.iter().map(row).collect();
    out::line(out::table(&["id", "tool", "status", "uses", "good", "arguments"], &rows));
}

fn status(mock: &MockRecord) -> String {
    let note = if mock.current { "" } else { " (old definition)" };
    format!("{}{note}", mock.status.as_str())
}

fn show_one(here: &CommandContext, mock: &MockRecord) {
    if here.json {
        return out::json(&json!(mock));
    }
    out::line(format!("{} {} {}", mock.id, printable(&mock.tool.to_string()), status(mock)));
    out::line(format!("arguments: {}", printable(&mock.arguments.to_string())));
    out::line(format!("pattern:   {}", printable(&mock.pattern)));
    let failures: u64 = mock.counts.failures.values().sum();
    out::line(format!("uses:      {}, {} good, {failures} failed", mock.counts.uses, mock.counts.successes));
    let result = serde_json::to_string_pretty(&mock.result).unwrap_or_default();
    out::line(format!("result:    {}", printable(&result)));
}

fn show_stats(here: &CommandContext, stats: &[MockStats]) {
    if here.json {
        return out::json(&json!(stats));
    }
    if stats.is_empty() {
        return out::note("no results are recorded yet; runs record what their tools return");
    }
    let percent =
        |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
    let row = |stats: &MockStats| {
        let count = |status: &str| stats.mocks.get(status).copied().unwrap_or(0).to_string();
        vec![
            printable(&stats.tool),
            count("fresh"),
            count("canonical"),
            count("deprecated"),
            count("stale"),
            count("pinned"),
            percent(stats.hit_rate),
            percent(stats.curation_accuracy),
        ]
    };
    let rows: Vec<Vec<String>> = stats.iter().map(row).collect();
    let head = ["tool", "fresh", "canonical", "deprecated", "stale", "pinned", "found", "judged well"];
    out::line(out::table(&head, &rows));
}
