//! The terminal door.
//!
//! Commands read arguments, call `flow` or edit the configuration, and print. Exit codes: 0 success; 1 failure; 2 the
//! command line or the configuration is wrong.

mod accept;
mod analyse;
mod answer;
mod audit;
mod backup;
mod call;
mod capabilities;
mod doctor;
mod execute;
mod graph;
mod keys;
mod list;
mod out;
mod passphrase;
mod policy;
mod results;
mod rules;
mod runs;
mod serve;
mod servers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::app::{App, Role};
use crate::bench;
use crate::config::{Env, Paths};
use crate::heap;
use crate::problem::{Code, Problem};

/// One MCP server in front of all of an agent's MCP servers.
#[derive(Debug, Parser)]
#[command(name = "pml", version = env!("PML_VERSION"), max_term_width = 100, after_help = "Exit codes: 0 success; 1 failure; 2 the command line or the configuration is wrong.")]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
struct Global {
    /// Use this configuration file
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Log more (-vv logs everything)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a commented configuration, and review servers that have no rules yet
    Init,
    /// Add a server, start it once and show its tools
    Add(servers::Add),
    /// Remove a server
    Remove {
        /// Its name
        name: String,
    },
    /// Show servers, their state and their tools
    List(list::List),
    /// Accept a new or changed server command, or quarantined tools
    Accept(accept::Accept),
    /// Trust the pml.toml of a project, with its present content
    Trust {
        /// The project's directory
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
    /// Serve MCP, the HTTP API and the dashboard over HTTP
    Serve(serve::Serve),
    /// Serve MCP over standard input and output, for a client's configuration
    Stdio(serve::Stdio),
    /// Call one tool
    Call(call::Call),
    /// Find tools and capabilities for an intent
    Discover(call::Discover),
    /// Analyse a program or a DAG document without running it
    Analyse(analyse::Analyse),
    /// Run a program, a DAG document, or the capability that serves an intent
    Execute(execute::Execute),
    /// List, show, approve, resume and replay runs
    #[command(subcommand)]
    Runs(runs::Runs),
    /// List, show and change capabilities (learned procedures)
    #[command(subcommand)]
    Capabilities(capabilities::Capabilities),
    /// Show the graph of tools and capabilities
    Graph(graph::Graph),
    /// Recompute what was learned from the stored traces
    #[command(subcommand)]
    Learn(capabilities::Learn),
    /// Show invalidated cache entries, and clear the cache
    #[command(subcommand)]
    Cache(results::Cache),
    /// Explain the policy for a tool, and test expectations of it
    #[command(subcommand)]
    Policy(policy::Policy),
    /// List and revoke standing rules (approvals that later runs reuse)
    #[command(subcommand)]
    Rules(rules::Rules),
    /// List and verify the audit log
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Create, list and revoke the keys of clients
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Set the passphrase for signing in and approving
    Passphrase,
    /// Back the database up to a file, also while PML runs
    Backup(backup::Backup),
    /// Replace the database by a backup
    Restore(backup::Restore),
    /// Check configuration, database, sandbox and servers, with a hint for each problem
    Doctor,
    /// Run benchmarks
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let env = Env::of_process();
    heap::keep_together();
    log_to_stderr(&cli, &env);
    let mut runtime = match cli.command {
        // One client, many small steps: handing each to another thread costs more than it gains.
        Command::Stdio(_) => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            out::error(&Problem::new(Code::Config, format!("the program cannot start: {error}")));
            return ExitCode::from(2);
        }
    };
    let json = cli.global.json;
    let code = match runtime.block_on(run(cli, env)) {
        Ok(code) => code,
        Err(problem) => {
            if json {
                out::json(&serde_json::json!({ "error": problem }));
            } else {
                out::error(&problem);
            }
            ExitCode::from(if matches!(problem.code, Code::Config | Code::InvalidRequest) { 2 } else { 1 })
        }
    };
    // A thread may be stuck reading standard input; nothing is left to wait for.
    runtime.shutdown_background();
    code
}

async fn run(cli: Cli, env: Env) -> Result<ExitCode, Problem> {
    let cwd = std::env::current_dir()
        .map_err(|error| Problem::new(Code::Config, format!("the current directory is gone: {error}")))?;
    let command = match cli.command {
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "pml", &mut std::io::stdout());
            return Ok(ExitCode::SUCCESS);
        }
        // Measuring makes homes of its own.
        Command::Bench(bench) => {
            let figures = bench::run(bench).await?;
            if cli.global.json {
                out::json(&figures);
            } else {
                figures.iter().for_each(|figure| out::line(figure.to_string()));
            }
            return Ok(ExitCode::SUCCESS);
        }
        other => other,
    };
    let mut paths = Paths::discover(&env)?;
    if let Some(config) = &cli.global.config {
        paths = paths.with_config(config, &cwd);
        // Elsewhere no file means the defaults, but one that was named is meant to be there.
        if !paths.config.exists() && !matches!(command, Command::Init | Command::Add(_)) {
            let text = format!("there is no configuration at {}", paths.config.display());
            return Err(
                Problem::new(Code::Config, text).hint("`pml init` with the same `--config` writes one")
            );
        }
    }
    let here = Here { paths, env, cwd, json: cli.global.json };
    match command {
        Command::Init => servers::init(&here).await,
        Command::Add(add) => servers::add(&here, add).await,
        Command::Remove { name } => servers::remove(&here, &name).await,
        Command::List(list) => list::run(&here, &list).await,
        Command::Accept(accept) => accept::run(&here, &accept).await,
        Command::Trust { dir } => servers::trust(&here, &dir),
        Command::Serve(serve) => serve::serve(&here, serve).await,
        Command::Stdio(stdio) => serve::stdio(&here, stdio).await,
        Command::Call(call) => call::call(&here, call).await,
        Command::Discover(discover) => call::discover(&here, discover).await,
        Command::Analyse(analyse) => analyse::run(&here, analyse).await,
        Command::Execute(execute) => execute::run(&here, execute).await,
        Command::Runs(runs) => runs::run(&here, runs).await,
        Command::Capabilities(capabilities) => capabilities::run(&here, capabilities).await,
        Command::Graph(graph) => graph::graph(&here, graph).await,
        Command::Learn(learn) => capabilities::learn(&here, learn).await,
        Command::Cache(cache) => results::cache(&here, cache).await,
        Command::Policy(policy) => policy::run(&here, policy).await,
        Command::Rules(rules) => rules::run(&here, rules).await,
        Command::Audit(audit) => audit::run(&here, audit).await,
        Command::Keys(keys) => keys::run(&here, keys).await,
        Command::Passphrase => passphrase::run(&here).await,
        Command::Backup(backup) => backup::backup(&here, backup).await,
        Command::Restore(restore) => backup::restore(&here, restore).await,
        Command::Doctor => doctor::run(&here).await,
        Command::Bench(_) | Command::Completions { .. } => Ok(ExitCode::SUCCESS),
    }
}

/// Where and how a command runs.
struct Here {
    paths: Paths,
    env: Env,
    cwd: PathBuf,
    json: bool,
}

impl Here {
    async fn open(&self, role: Role) -> Result<Arc<App>, Problem> {
        App::open(self.paths.clone(), self.env.clone(), self.cwd.clone(), role).await
    }
}

/// Logs go to standard error; standard output belongs to results and to the protocol.
fn log_to_stderr(cli: &Cli, env: &Env) {
    use tracing_subscriber::EnvFilter;
    let usual = match (cli.global.verbose, &cli.command) {
        (0, Command::Serve(_)) => "pml=info,pml_mcp=info,pml_store=info,warn",
        (0, Command::Stdio(_)) => "warn",
        (0, _) => "error",
        (1, _) => "pml=debug,pml_mcp=debug,pml_store=debug,info",
        (_, _) => "trace",
    };
    let filter = env
        .get("PML_LOG")
        .and_then(|text| EnvFilter::try_new(text).ok())
        .unwrap_or_else(|| EnvFilter::new(usual));
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours).init();
}
