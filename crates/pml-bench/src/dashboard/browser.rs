//! The pages in a real browser, driven by a script of the tests.

use std::path::Path;

use pml::problem::{ErrorCode, Problem};
use serde::Deserialize;
use serde_json::json;

use super::DashboardSize;
use super::gateway::ServedGateway;
use crate::figure::{BenchFigure, failed};

/// What the script saw, in milliseconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeenPages {
    /// From the begin of the navigation until what a page is for is shown: the median of several loads of each page.
    ready: Vec<(String, f64)>,
    /// From the begin of the navigation until calls of the long run are shown.
    first_rows: f64,
    /// The longest task of the page while it was scrolled.
    longest_task: f64,
    /// From the begin of the navigation until the map is drawn.
    graph_closed: f64,
    graph_open: f64,
    /// Nodes of the map with every community open.
    nodes: usize,
    /// Bytes that a browser loads for all pages.
    bundle: f64,
}

pub(super) async fn measure(
    gateway: &ServedGateway,
    script: &Path,
    long_run: &str,
    size: DashboardSize,
) -> Result<Vec<BenchFigure>, Problem> {
    if !script.is_file() {
        let text = format!("the script that drives the browser is missing: {}", script.display());
        let hint =
            "run it in the repository, name it by `--script`, or leave the browser out by `--no-browser`";
        return Err(Problem::new(ErrorCode::Config, text).hint(hint));
    }
    let given = json!({ "link": gateway.link, "run": long_run, "calls": size.calls });
    let mut node = tokio::process::Command::new("node");
    let ended = node.arg(script).arg(given.to_string()).output().await.map_err(failed)?;
    if !ended.status.success() {
        return Err(failed(String::from_utf8_lossy(&ended.stderr)));
    }
    let seen: SeenPages = serde_json::from_slice(&ended.stdout).map_err(failed)?;
    Ok(figures(&seen, size))
}

fn figures(seen: &SeenPages, size: DashboardSize) -> Vec<BenchFigure> {
    let ms = |time: f64| format!("{time:.0} ms");
    let mut figures: Vec<BenchFigure> = seen
        .ready
        .iter()
        .map(|(page, time)| {
            BenchFigure::of(format!("page `{page}` ready"), ms(*time)).target("≤ 500 ms", *time <= 500.0)
        })
        .collect();
    let calls = size.calls;
    figures.extend([
        BenchFigure::of(format!("first rows of a run of {calls} calls"), ms(seen.first_rows))
            .target("≤ 1,000 ms", seen.first_rows <= 1000.0),
        BenchFigure::of("longest task while scrolling through it", ms(seen.longest_task))
            .target("≤ 100 ms", seen.longest_task <= 100.0),
        BenchFigure::of(
            format!("graph of {} nodes drawn, communities closed / all open", seen.nodes),
            format!("{} / {}", ms(seen.graph_closed), ms(seen.graph_open)),
        )
        .target("≤ 2,000 ms", seen.graph_closed.max(seen.graph_open) <= 2000.0),
        BenchFigure::of("what a browser loads for all pages", format!("{:.0} KB", seen.bundle / 1000.0))
            .target("≤ 1,000 KB", seen.bundle <= 1e6),
    ]);
    figures
}
