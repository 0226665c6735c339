//! The `pml-bench` program: measures PML against its promised figures, with a baseline in the same run.
//!
//! `pml bench` starts it with the same arguments. It is a separate program so that the shipped one contains no
//! measurements; it measures the `pml` in the same directory ([`programs`]).

mod attacks;
mod cpu;
mod dag;
mod dashboard;
mod delayed;
mod discovery;
mod echo;
mod execution;
mod explore;
mod figure;
mod flow;
mod gateway;
mod ingest;
mod lines;
mod memory;
mod programs;
mod sandbox;
mod speculation;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use pml::config::Env;
use pml::problem::{ErrorCode, Problem};
use pml::progress::ProgressBar;
use pml::runtime::{self, run_blocking};

use dashboard::DashboardSize;
use discovery::{DiscoveryBenchArgs, DiscoveryBenchPart};
use figure::BenchFigure;
use programs::Programs;

/// Measures PML by the figures it promises.
#[derive(Debug, Parser)]
#[command(name = "pml-bench", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    bench: BenchCommand,
}

/// Options of every measurement, named as those of `pml`, which passes them on.
#[derive(Debug, Args)]
struct Global {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Log more (-vv logs everything)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// What to measure.
#[derive(Debug, Subcommand)]
enum BenchCommand {
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
    /// Time saved by reading ahead of programs, and what it costs where it saves nothing
    Speculation {
        /// Runs per measurement
        #[arg(long, default_value_t = 20)]
        rounds: usize,
        /// Only the programs under `examples/`
        #[arg(long)]
        examples: bool,
    },
    /// Cost of dry runs and of finding paths; with data sets, how right the explored paths are
    Explore {
        /// Runs per measurement
        #[arg(long, default_value_t = 20)]
        rounds: usize,
        /// A directory with the data sets, one folder each
        #[arg(long)]
        data: Option<PathBuf>,
        /// Write the explored paths to this directory, one file for each data set
        #[arg(long, value_name = "DIR", requires = "data")]
        out: Option<PathBuf>,
    },
    /// Cost of storing traces, and time saved by capabilities and the cache
    Memory {
        /// Repetitions per measurement
        #[arg(long, default_value_t = 200)]
        rounds: usize,
    },
    /// Pages of the dashboard in Chromium, and its API, over a database with a long past
    Dashboard {
        /// Traces in the database
        #[arg(long, default_value_t = 100_000)]
        traces: usize,
        /// Capabilities in the database
        #[arg(long, default_value_t = 1_000)]
        capabilities: usize,
        /// Tools beside them in the graph
        #[arg(long, default_value_t = 4_000)]
        tools: usize,
        /// Calls of the long run
        #[arg(long, default_value_t = 20_000)]
        calls: usize,
        /// Small runs beside it
        #[arg(long, default_value_t = 300)]
        runs: usize,
        /// How long the API is asked, in seconds
        #[arg(long, default_value_t = 20)]
        seconds: u64,
        /// Keep the database in this directory; one that is there is used as it is
        #[arg(long, value_name = "DIR")]
        home: Option<PathBuf>,
        /// The script that drives the browser
        #[arg(long, value_name = "FILE", default_value = "tests/dashboard/measure.mjs")]
        script: PathBuf,
        /// Measure the API alone, without a browser
        #[arg(long)]
        no_browser: bool,
    },
    /// Retrieval quality on public data sets: everything the next six measure, and latency
    Discovery(DiscoveryBenchArgs),
    /// Ranking quality and calibration of scores
    Retrieval(DiscoveryBenchArgs),
    /// Rank quality with and without each part of the ranking, leave-one-set-out
    Ablation(DiscoveryBenchArgs),
    /// Gain from past executions, and that they lower no other result
    Learning(DiscoveryBenchArgs),
    /// Prediction of a DAG from the DAGs of earlier requests
    DagPrediction(DiscoveryBenchArgs),
    /// Prediction of the next tool
    NextTool(DiscoveryBenchArgs),
    /// Gain from priors: recently used tools and success rates
    Priors(DiscoveryBenchArgs),
    /// Prediction of data flow from the schemas of tools
    Provides(DiscoveryBenchArgs),
    /// Latency of discovery
    Latency(DiscoveryBenchArgs),
    /// Ranking by past executions with and without explored ones, whose calls are partly made up
    MockedLearning(DiscoveryBenchArgs),
    /// Run hostile programs and check how each ends
    Attacks {
        /// A directory with an `engine.jsonl` of programs (`id`, `source`, `required`)
        #[arg(long)]
        data: PathBuf,
    },
    /// A built-in server whose tools take some time
    #[command(hide = true)]
    BuiltInServer {
        /// Which one
        name: String,
        /// The directory of `fs`
        #[arg(long)]
        root: PathBuf,
        /// Milliseconds that each call takes longer
        #[arg(long)]
        wait_ms: u64,
    },
    /// The server that the gateway is measured with
    #[command(hide = true)]
    EchoServer {
        /// How many tools it lists
        #[arg(long, default_value_t = 1)]
        tools: usize,
        /// A file with the tools to list instead
        #[arg(long, requires = "server")]
        catalogue: Option<PathBuf>,
        /// The server whose tools are listed from the file
        #[arg(long)]
        server: Option<String>,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    pml::heap::limit_allocator_arenas();
    runtime::log_to_stderr(&Env::of_process(), "error", cli.global.verbose);
    // As many threads as `pml` has, since some measurements run parts of `pml` inside this process.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let problem = Problem::new(ErrorCode::Config, format!("the program cannot start: {error}"));
            return fail(&problem, cli.global.json);
        }
    };
    let is_server = matches!(cli.bench, BenchCommand::EchoServer { .. } | BenchCommand::BuiltInServer { .. });
    // On a thread of the runtime: some measurements occupy this one.
    let time_shown = (!is_server).then(|| runtime.spawn(show_time()));
    let measured = runtime.block_on(run(cli.bench));
    if let Some(shown) = time_shown {
        shown.abort();
        // Ended, so that the line is cleared before the figures are printed.
        runtime.block_on(shown).ok();
    }
    let code = match measured {
        Ok(figures) => show(&figures, cli.global.json),
        Err(problem) => fail(&problem, cli.global.json),
    };
    // A thread may be blocked reading standard input; nothing is left to wait for.
    runtime.shutdown_background();
    code
}

/// Shows on a terminal how long the measurement has taken. It counts no rounds: drawing within a measured loop would
/// be measured too.
async fn show_time() {
    let bar = ProgressBar::new("measuring");
    bar.during(|| (0, None), std::future::pending::<()>()).await;
}

async fn run(bench: BenchCommand) -> Result<Vec<BenchFigure>, Problem> {
    match bench {
        BenchCommand::Gateway { calls } => gateway::measure(&Programs::find()?, calls).await,
        BenchCommand::Ingest { data } => ingest::measure(&data),
        BenchCommand::Flow { data, out } => flow::measure(&data, out.as_deref()),
        BenchCommand::Sandbox { rounds } => sandbox::measure(&Programs::find()?, rounds).await,
        BenchCommand::Dag { rounds } => dag::measure(&Programs::find()?, rounds).await,
        BenchCommand::Speculation { rounds, examples: false } => {
            speculation::measure(&Programs::find()?, rounds).await
        }
        BenchCommand::Speculation { rounds, examples: true } => {
            speculation::measure_examples(&Programs::find()?, rounds).await
        }
        BenchCommand::Explore { rounds, data, out } => {
            let programs = Programs::find()?;
            let mut figures = explore::measure(&programs, rounds).await?;
            if let Some(data) = data {
                figures.extend(explore::measure_quality(&programs, &data, out.as_deref()).await?);
            }
            Ok(figures)
        }
        BenchCommand::Memory { rounds } => {
            Programs::find()?;
            memory::measure(rounds).await
        }
        BenchCommand::Dashboard {
            traces,
            capabilities,
            tools,
            calls,
            runs,
            seconds,
            home,
            script,
            no_browser,
        } => {
            let size = DashboardSize { traces, capabilities, tools, calls, runs, seconds };
            let script = (!no_browser).then_some(script);
            dashboard::measure(&Programs::find()?, size, script.as_deref(), home.as_deref()).await
        }
        BenchCommand::Discovery(settings) => of_discovery(settings, &DiscoveryBenchPart::ALL).await,
        BenchCommand::Retrieval(settings) => of_discovery(settings, &[DiscoveryBenchPart::Retrieval]).await,
        BenchCommand::Ablation(settings) => of_discovery(settings, &[DiscoveryBenchPart::Ablation]).await,
        BenchCommand::Learning(settings) => of_discovery(settings, &[DiscoveryBenchPart::Learning]).await,
        BenchCommand::MockedLearning(settings) => of_discovery(settings, &[DiscoveryBenchPart::Mocked]).await,
        BenchCommand::DagPrediction(settings) => of_discovery(settings, &[DiscoveryBenchPart::Dags]).await,
        BenchCommand::NextTool(settings) => of_discovery(settings, &[DiscoveryBenchPart::Next]).await,
        BenchCommand::Priors(settings) => of_discovery(settings, &[DiscoveryBenchPart::Priors]).await,
        BenchCommand::Provides(settings) => of_discovery(settings, &[DiscoveryBenchPart::Provides]).await,
        BenchCommand::Latency(settings) => of_discovery(settings, &[DiscoveryBenchPart::Latency]).await,
        BenchCommand::Attacks { data } => attacks::measure(&Programs::find()?, &data).await,
        BenchCommand::BuiltInServer { name, root, wait_ms } => {
            delayed::serve(&name, &root, std::time::Duration::from_millis(wait_ms)).await?;
            Ok(Vec::new())
        }
        BenchCommand::EchoServer { catalogue: Some(catalogue), server, .. } => {
            echo::serve_catalogue(&catalogue, &server.unwrap_or_default()).await?;
            Ok(Vec::new())
        }
        BenchCommand::EchoServer { tools, .. } => {
            echo::serve(tools).await;
            Ok(Vec::new())
        }
    }
}

async fn of_discovery(
    settings: DiscoveryBenchArgs,
    parts: &'static [DiscoveryBenchPart],
) -> Result<Vec<BenchFigure>, Problem> {
    // It computes for minutes, and has a runtime of its own for what waits.
    run_blocking(move || discovery::measure(&settings, parts)).await
}

/// Prints the figures. A missed target is still a result, so it is no failure.
fn show(figures: &[BenchFigure], json: bool) -> ExitCode {
    if json {
        print(&serde_json::to_string_pretty(figures).unwrap_or_default());
    } else {
        figures.iter().for_each(|figure| print(&figure.to_string()));
    }
    ExitCode::SUCCESS
}

/// Prints why nothing was measured, with the exit codes of `pml`.
fn fail(problem: &Problem, json: bool) -> ExitCode {
    if json {
        let text = serde_json::json!({ "error": problem });
        print(&serde_json::to_string_pretty(&text).unwrap_or_default());
    } else {
        complain(problem);
    }
    ExitCode::from(if matches!(problem.code, ErrorCode::Config | ErrorCode::InvalidRequest) { 2 } else { 1 })
}

// A closed pipe is no error, so output that cannot be written is dropped.
fn print(text: &str) {
    writeln!(anstream::stdout(), "{text}").unwrap_or_default();
}

fn complain(problem: &Problem) {
    const BOLD_RED: &str = "\u{1b}[1;31m";
    const CYAN: &str = "\u{1b}[36m";
    const RESET: &str = "\u{1b}[0m";
    let mut out = anstream::stderr();
    writeln!(out, "{BOLD_RED}error{RESET}: {}", problem.message).unwrap_or_default();
    if let Some(hint) = &problem.hint {
        writeln!(out, "{CYAN}hint{RESET}: {hint}").unwrap_or_default();
    }
}
