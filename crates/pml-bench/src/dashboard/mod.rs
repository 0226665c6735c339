//! The dashboard of a gateway with a long past: how soon its pages are there, in a real browser, and how fast its API
//! answers while programs run.

mod browser;
mod fill;
mod gateway;
mod load;

use std::path::Path;

use pml::problem::Problem;

use crate::figure::{BenchFigure, failed};
use crate::gateway::warm_up;
use crate::programs::Programs;
use gateway::ServedGateway;

/// How much there is in the database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DashboardSize {
    pub(crate) traces: usize,
    pub(crate) capabilities: usize,
    /// Tools of downstream servers, which are nodes of the graph like the capabilities.
    pub(crate) tools: usize,
    /// The calls of one long run.
    pub(crate) calls: usize,
    /// Small runs, which are listed beside the long one.
    pub(crate) runs: usize,
    /// How long the API is asked.
    pub(crate) seconds: u64,
}

/// Measures the API, and the pages if there is a `script` that drives a browser. A home that is `kept` is filled once.
pub(crate) async fn measure(
    programs: &Programs,
    size: DashboardSize,
    script: Option<&Path>,
    kept: Option<&Path>,
) -> Result<Vec<BenchFigure>, Problem> {
    let temporary = tempfile::tempdir().map_err(failed)?;
    let home = kept.unwrap_or(temporary.path());
    std::fs::create_dir_all(home).map_err(failed)?;
    fill::configure(home, programs, size)?;
    if !home.join("pml.db").exists() {
        fill::store_past(home, size)?;
        warm_up(&programs.pml, home).await?;
    }
    let gateway = ServedGateway::start(programs, home).await?;
    let long_run = fill::run_programs(&gateway, size).await?;
    fill::wait_until_embedded(&gateway).await?;
    let mut figures = load::measure(&gateway, &long_run, size).await?;
    if let Some(script) = script {
        figures.extend(browser::measure(&gateway, script, &long_run, size).await?);
        let before = graph_layout(&gateway).await?;
        gateway.stop().await;
        let gateway = ServedGateway::start(programs, home).await?;
        let same = before == graph_layout(&gateway).await?;
        let told = if same { "the same" } else { "another" };
        figures.push(BenchFigure::of("layout of the graph after a restart", told).target("the same", same));
        gateway.stop().await;
    } else {
        gateway.stop().await;
    }
    Ok(figures)
}

/// The map with every community open.
async fn graph_layout(gateway: &ServedGateway) -> Result<Vec<u8>, Problem> {
    gateway.get("/api/graph/layout?expand=all").await
}
