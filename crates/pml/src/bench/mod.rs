//! Measures the program by its own figures.

use crate::problem::Problem;
use clap::Subcommand;
use std::process::ExitCode;

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// x
    Gateway,
}

/// Measures.
pub async fn run(_bench: Bench, _json: bool) -> Result<ExitCode, Problem> {
    Ok(ExitCode::SUCCESS)
}
