//! `pml speculation`: what came of the reads that PML made ahead of programs.

use std::process::ExitCode;

use clap::Subcommand;
use pml_model::name::printable;
use serde_json::json;

use super::{CommandContext, out};
use crate::app::ProcessRole;
use crate::flow::{self, SpeculationStats};
use crate::problem::Problem;

/// What to show of speculation.
#[derive(Debug, Subcommand)]
pub(super) enum SpeculationCommand {
    /// Show hits, waste and saved time of each tool
    Stats,
}

pub(super) async fn run(here: &CommandContext, command: &SpeculationCommand) -> Result<ExitCode, Problem> {
    let SpeculationCommand::Stats = command;
    let app = here.open_app(ProcessRole::Command).await?;
    let stats = flow::speculation_stats(&app, &app.principal).await;
    app.close().await;
    show(here, &stats?);
    Ok(ExitCode::SUCCESS)
}

fn show(here: &CommandContext, stats: &[SpeculationStats]) {
    if here.json {
        return out::json(&json!(stats));
    }
    if stats.is_empty() {
        return out::note("nothing was read ahead yet; `[speculation]` in pml.toml has the settings");
    }
    let rows: Vec<Vec<String>> = stats.iter().map(row).collect();
    out::line(out::table(
        &["tool or capability", "hits", "misses", "wasted", "differing", "saved", "needs"],
        &rows,
    ));
    out::note("in brackets: the mean confidence with which the results were read");
}

fn row(stats: &SpeculationStats) -> Vec<String> {
    vec![
        printable(stats.name.as_deref().unwrap_or(&stats.tool)),
        with_confidence(stats.hits, stats.mean_confidence(|one| one.hits)),
        with_confidence(stats.misses, stats.mean_confidence(|one| one.misses)),
        with_confidence(stats.wasted, stats.mean_confidence(|one| one.wasted)),
        stats.differing.to_string(),
        format!("{:.1} s", stats.saved_ms as f64 / 1_000.0),
        format!("{:.2}", stats.threshold),
    ]
}

fn with_confidence(results: u64, confidence: Option<f64>) -> String {
    confidence.map_or_else(|| results.to_string(), |mean| format!("{results} ({mean:.2})"))
}
