//! Measures the program by the figures it promises, against something in the same run.

mod attacks;
mod dag;
mod discovery;
mod echo;
mod flow;
mod gateway;
mod ingest;
mod memory;
mod sandbox;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use pml_mcp::Caller;
use pml_model::json::empty_object;
use pml_model::question::Answerer;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::config::Dynamic;
use crate::planning::{Asked, Execution};
use crate::problem::{Code, Problem};
use crate::runtime::blocking;

pub use discovery::Discovery;
use discovery::Part;

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Gateway overhead per call, start-up time and memory
    Gateway {
        /// Calls per measurement
        #[arg(long, default_value_t = 2000)]
        calls: usize,
    },
    /// Ingest a file of real tool definitions and rank 5,000 of them
    Ingest {
        /// A directory with a `dev.jsonl` of tool definitions
        #[arg(long)]
        data: PathBuf,
    },
    /// Compare the data flow found in programs with labelled data flow
    Flow {
        /// A directory with a `tools.jsonl` of tool definitions and further files of programs (`ts_code`)
        #[arg(long)]
        data: PathBuf,
        /// Write what was found to this file, one JSON line for each program
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Cost of running a program, compared with node and deno
    Sandbox {
        /// Programs per measurement
        #[arg(long, default_value_t = 200)]
        rounds: usize,
    },
    /// Cost of a DAG run beyond its critical path, and memory of waiting runs
    Dag {
        /// Runs per measurement
        #[arg(long, default_value_t = 20)]
        rounds: usize,
    },
    /// Cost of storing traces, and time saved by capabilities and the cache
    Memory {
        /// Repetitions per measurement
        #[arg(long, default_value_t = 200)]
        rounds: usize,
    },
    /// Retrieval quality on public data sets: everything the next six measure, and latency
    Discovery(Discovery),
    /// Ranking quality and calibration of scores
    Retrieval(Discovery),
    /// Gain from past executions, and that they lower no other result
    Learning(Discovery),
    /// Prediction of a DAG from the DAGs of earlier requests
    DagPrediction(Discovery),
    /// Prediction of the next tool
    NextTool(Discovery),
    /// Gain from priors: recently used tools and success rates
    Priors(Discovery),
    /// Prediction of data flow from the schemas of tools
    Provides(Discovery),
    /// Latency of discovery
    Latency(Discovery),
    /// Run hostile programs and check how each ends
    Attacks {
        /// A directory with an `engine.jsonl` of programs (`id`, `source`, `required`)
        #[arg(long)]
        data: PathBuf,
    },
    /// The server that the gateway is measured with
    #[command(hide = true)]
    EchoServer {
        /// How many tools it lists
        #[arg(long, default_value_t = 1)]
        tools: usize,
    },
}

/// One measured figure and what it should be.
#[derive(Debug, Serialize)]
pub struct Figure {
    what: String,
    measured: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

impl Figure {
    fn of(what: impl Into<String>, measured: impl Into<String>) -> Figure {
        Figure { what: what.into(), measured: measured.into(), target: None, met: None }
    }

    fn target(mut self, target: impl Into<String>, met: bool) -> Figure {
        self.target = Some(target.into());
        self.met = Some(met);
        self
    }

    #[cfg(test)]
    fn met(&self) -> Option<bool> {
        self.met
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<61} {}", self.what, self.measured)?;
        match (&self.target, self.met) {
            (Some(target), Some(true)) => write!(f, "  (to reach: {target}; reached)"),
            (Some(target), _) => write!(f, "  (to reach: {target}; MISSED)"),
            (None, _) => Ok(()),
        }
    }
}

/// Measures.
///
/// # Errors
/// Something needed for the measurement is missing or fails.
pub async fn run(bench: Bench) -> Result<Vec<Figure>, Problem> {
    match bench {
        Bench::Gateway { calls } => gateway::measure(calls).await,
        Bench::Ingest { data } => ingest::measure(&data),
        Bench::Flow { data, out } => flow::measure(&data, out.as_deref()),
        Bench::Sandbox { rounds } => sandbox::measure(rounds).await,
        Bench::Dag { rounds } => dag::measure(rounds).await,
        Bench::Memory { rounds } => memory::measure(rounds).await,
        Bench::Discovery(settings) => of_discovery(settings, &Part::ALL).await,
        Bench::Retrieval(settings) => of_discovery(settings, &[Part::Retrieval]).await,
        Bench::Learning(settings) => of_discovery(settings, &[Part::Learning]).await,
        Bench::DagPrediction(settings) => of_discovery(settings, &[Part::Dags]).await,
        Bench::NextTool(settings) => of_discovery(settings, &[Part::Next]).await,
        Bench::Priors(settings) => of_discovery(settings, &[Part::Priors]).await,
        Bench::Provides(settings) => of_discovery(settings, &[Part::Provides]).await,
        Bench::Latency(settings) => of_discovery(settings, &[Part::Latency]).await,
        Bench::Attacks { data } => attacks::measure(&data).await,
        Bench::EchoServer { tools } => {
            echo::serve(tools).await;
            Ok(Vec::new())
        }
    }
}

async fn of_discovery(settings: Discovery, parts: &'static [Part]) -> Result<Vec<Figure>, Problem> {
    // It computes for minutes, and has a runtime of its own for what waits.
    blocking(move || discovery::measure(&settings, parts)).await
}

fn failed(what: impl std::fmt::Display) -> Problem {
    Problem::new(Code::InvalidRequest, format!("the measurement failed: {what}"))
}

/// What is to be run, where nothing else is said of it.
fn execution(app: &App, work: Asked) -> Execution {
    Execution {
        principal: app.principal.clone(),
        session: "bench".to_owned(),
        intent: "measure".to_owned(),
        work,
        arguments: empty_object(),
        timeout: None,
        caller: Caller::silent(),
        idempotency: None,
        patience: Duration::from_secs(60),
        by: Answerer::Human,
        dynamic: Dynamic::Refuse,
        learn: true,
        capability: None,
        cache: false,
    }
}

/// The lines of a file, each a JSON object.
fn json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Problem> {
    let text =
        std::fs::read_to_string(path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
    json_lines_of(&text, &path.display().to_string())
}

/// The lines of a text, each a JSON object.
fn json_lines_of<T: DeserializeOwned>(text: &str, name: &str) -> Result<Vec<T>, Problem> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| failed(format!("{name}:{}: {error}", number + 1)))
        })
        .collect()
}

/// The value below which a share of the samples lies.
fn quantile(samples: &mut [Duration], share: f64) -> Duration {
    samples.sort_unstable();
    let index = ((samples.len().saturating_sub(1)) as f64 * share).round() as usize;
    samples.get(index).copied().unwrap_or_default()
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}
