//! The command line interface.
//!
//! Commands read arguments, call `flow` or edit the configuration, and print. Exit codes: 0 success; 1 failure; 2 the
//! command line or the configuration is wrong.

mod accept;
mod analyse;
mod answer;
mod ask;
mod audit;
mod backup;
mod bench;
mod call;
mod capabilities;
mod doctor;
mod dry_run;
mod execute;
mod explore;
mod follow;
mod forget;
mod graph;
mod init;
mod keys;
mod list;
mod man;
mod migrate;
mod mocks;
mod out;
mod passphrase;
mod people;
mod policy;
mod regression;
mod results;
mod rules;
mod run_output;
mod run_table;
mod runs;
mod self_check;
mod serve;
mod servers;
mod share;
mod sign_in;
mod skill;
mod speculation;
mod starting;
mod status;
mod style;
mod table;
mod versions;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::app::{App, ProcessRole};
use crate::config::{self, Env, Paths};
use crate::heap;
use crate::problem::{ErrorCode, Problem};
use crate::runtime;

/// One MCP server in front of all of an agent's MCP servers.
#[derive(Debug, Parser)]
#[command(name = "pml", version = env!("PML_VERSION"), max_term_width = 100, after_help = "Exit codes: 0 success; 1 failure; 2 the command line or the configuration is wrong.")]
struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: CliCommand,
}

/// Options of every command.
#[derive(Debug, Args)]
struct GlobalArgs {
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
enum CliCommand {
    /// Write a commented configuration, import the servers of clients, and put PML into clients
    Init(init::InitArgs),
    /// Write a configuration, import the servers of all clients, put PML into them, and check everything
    Setup(init::SetupArgs),
    /// Add a server, start it once and show its tools
    Add(servers::AddServerArgs),
    /// Remove a server
    Remove {
        /// Its name
        name: String,
    },
    /// Show servers, their state and their tools
    List(list::ListServersArgs),
    /// Show the runs under way, and the servers with their sign-ins
    Status(status::StatusArgs),
    /// Sign in to a remote server
    Login(sign_in::LoginArgs),
    /// Sign out of a remote server and revoke its tokens
    Logout(sign_in::LogoutArgs),
    /// Accept a new or changed server command, or quarantined tools
    Accept(accept::AcceptArgs),
    /// Trust the pml.toml of a project, with its present content
    Trust {
        /// The project's directory
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
    /// Serve MCP, the HTTP API and the dashboard over HTTP
    Serve(serve::ServeArgs),
    /// Serve MCP over standard input and output, for a client's configuration
    Stdio(serve::StdioArgs),
    /// Call one tool
    Call(call::CallArgs),
    /// Find tools and capabilities for an intent
    Discover(call::DiscoverArgs),
    /// Analyse a program or a DAG document without running it
    Analyse(analyse::AnalyseArgs),
    /// Run a program, a DAG document, or the capability that serves an intent
    Execute(execute::ExecuteArgs),
    /// Try ways to do something that nothing learned serves; nothing is changed
    Explore(explore::ExploreArgs),
    /// List, show, approve, resume and replay runs
    #[command(subcommand)]
    Runs(runs::RunsCommand),
    /// List, show and change capabilities (learned procedures)
    #[command(subcommand)]
    Capabilities(capabilities::CapabilitiesCommand),
    /// Show the graph of tools and capabilities
    Graph(graph::GraphArgs),
    /// Recompute what was learned from the stored traces
    #[command(subcommand)]
    Learn(capabilities::LearnCommand),
    /// Show invalidated cache entries, and clear the cache
    #[command(subcommand)]
    Cache(results::CacheCommand),
    /// Show what came of reads that were made ahead of programs
    #[command(subcommand)]
    Speculation(speculation::SpeculationCommand),
    /// List, show, pin and drop recorded results of tools, which dry runs use
    #[command(subcommand)]
    Mocks(mocks::MocksCommand),
    /// Explain the policy for a tool, and test expectations of it
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// List and revoke standing rules (approvals that later runs reuse)
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    /// List and verify the audit log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Add, list and remove the people who sign in to the dashboard
    #[command(subcommand)]
    People(people::PeopleCommand),
    /// Create, list, replace and revoke the keys of clients
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Set the passphrase for signing in and approving
    Passphrase,
    /// Back the database up to a file, also while PML runs
    Backup(backup::BackupArgs),
    /// Replace the database by a backup
    Restore(backup::RestoreArgs),
    /// Copy the database to a PostgreSQL server, or from there to a file; goes on where it was interrupted
    Migrate(migrate::MigrateArgs),
    /// Forget runs, or a person, with everything that was learned from them
    Forget(forget::ForgetArgs),
    /// Check configuration, database, sandbox and servers, with a hint for each problem
    Doctor,
    /// Check that this installation works here: sandbox, embedding model and one program, in a temporary home
    SelfCheck,
    /// Run benchmarks, by the program `pml-bench` beside this one
    #[command(disable_help_flag = true, after_help = bench::AFTER_HELP)]
    Bench(bench::Bench),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, in the format of `man`
    Man,
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let env = Env::of_process();
    heap::limit_allocator_arenas();
    if let CliCommand::Bench(bench) = &cli.command {
        return bench::run(&cli.global, bench);
    }
    runtime::log_to_stderr(&env, usual_log(&cli.command), cli.global.verbose);
    let mut builder = match cli.command {
        // One client and many small steps: handing each step to another thread costs more than it gains, unless a step
        // may wait for a database server.
        CliCommand::Stdio(_) if !uses_database_server(&cli.global, &env) => {
            tokio::runtime::Builder::new_current_thread()
        }
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            out::error(&Problem::new(ErrorCode::Config, format!("the program cannot start: {error}")));
            return ExitCode::from(2);
        }
    };
    let json = cli.global.json;
    let code = runtime.block_on(run(cli, env)).unwrap_or_else(|problem| fail(&problem, json));
    // A thread may be blocked reading standard input; nothing is left to wait for.
    runtime.shutdown_background();
    code
}

/// Prints why a command failed.
fn fail(problem: &Problem, json: bool) -> ExitCode {
    if json {
        out::json(&serde_json::json!({ "error": problem }));
    } else {
        out::error(problem);
    }
    ExitCode::from(problem.exit_code())
}

async fn run(cli: Cli, env: Env) -> Result<ExitCode, Problem> {
    let cwd = std::env::current_dir().map_err(|error| {
        Problem::new(ErrorCode::Config, format!("the current directory is gone: {error}"))
    })?;
    let command = match cli.command {
        CliCommand::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "pml", &mut std::io::stdout());
            return Ok(ExitCode::SUCCESS);
        }
        CliCommand::Man => {
            return man::print(&Cli::command()).map(|()| ExitCode::SUCCESS);
        }
        other => other,
    };
    let mut paths = Paths::discover(&env)?;
    if let Some(config) = &cli.global.config {
        paths = paths.with_config(config, &cwd);
        // A missing file otherwise means the defaults, but a file named by `--config` has to exist.
        if !paths.config.exists()
            && !matches!(command, CliCommand::Init(_) | CliCommand::Setup(_) | CliCommand::Add(_))
        {
            let text = format!("there is no configuration at {}", paths.config.display());
            return Err(
                Problem::new(ErrorCode::Config, text).hint("`pml init` with the same `--config` writes one")
            );
        }
    }
    let here = CommandContext { paths, env, cwd, given_config: cli.global.config, json: cli.global.json };
    match command {
        CliCommand::Init(init) => init::run(&here, &init).await,
        CliCommand::Setup(setup) => init::setup(&here, &setup).await,
        CliCommand::Add(add) => servers::add(&here, add).await,
        CliCommand::Remove { name } => servers::remove(&here, &name).await,
        CliCommand::List(list) => list::run(&here, &list).await,
        CliCommand::Status(status) => status::run(&here, &status).await,
        CliCommand::Login(login) => sign_in::login(&here, &login).await,
        CliCommand::Logout(logout) => sign_in::logout(&here, &logout).await,
        CliCommand::Accept(accept) => accept::run(&here, &accept).await,
        CliCommand::Trust { dir } => servers::trust(&here, &dir),
        CliCommand::Serve(serve) => serve::serve(&here, serve).await,
        CliCommand::Stdio(stdio) => serve::stdio(&here, stdio).await,
        CliCommand::Call(call) => call::call(&here, call).await,
        CliCommand::Discover(discover) => call::discover(&here, discover).await,
        CliCommand::Analyse(analyse) => analyse::run(&here, analyse).await,
        CliCommand::Execute(execute) => execute::run(&here, execute).await,
        CliCommand::Explore(explore) => explore::run(&here, explore).await,
        CliCommand::Runs(runs) => runs::run(&here, runs).await,
        CliCommand::Capabilities(capabilities) => capabilities::run(&here, capabilities).await,
        CliCommand::Graph(graph) => graph::graph(&here, graph).await,
        CliCommand::Learn(learn) => capabilities::learn(&here, learn).await,
        CliCommand::Cache(cache) => results::cache(&here, cache).await,
        CliCommand::Mocks(command) => mocks::run(&here, &command).await,
        CliCommand::Speculation(command) => speculation::run(&here, &command).await,
        CliCommand::Policy(policy) => policy::run(&here, policy).await,
        CliCommand::Rules(rules) => rules::run(&here, rules).await,
        CliCommand::Audit(audit) => audit::run(&here, audit).await,
        CliCommand::People(people) => people::run(&here, people).await,
        CliCommand::Keys(keys) => keys::run(&here, keys).await,
        CliCommand::Passphrase => passphrase::run(&here).await,
        CliCommand::Backup(backup) => backup::backup(&here, backup).await,
        CliCommand::Restore(restore) => backup::restore(&here, restore).await,
        CliCommand::Migrate(migrate) => migrate::run(&here, migrate).await,
        CliCommand::Forget(forget) => forget::run(&here, forget).await,
        CliCommand::Doctor => doctor::run(&here).await,
        CliCommand::SelfCheck => self_check::run(&here).await,
        CliCommand::Bench(_) | CliCommand::Completions { .. } | CliCommand::Man => Ok(ExitCode::SUCCESS),
    }
}

/// The paths and global options that a command runs with.
struct CommandContext {
    paths: Paths,
    env: Env,
    cwd: PathBuf,
    /// The value of `--config`.
    given_config: Option<PathBuf>,
    json: bool,
}

impl CommandContext {
    /// Opens the database alone: for commands that work even where the rest of the configuration is invalid.
    async fn open_store(&self) -> Result<pml_store::Store, Problem> {
        let address = config::database_url(&self.paths, &self.env)?;
        crate::app::open_store(&self.paths, address.as_ref()).await
    }

    async fn open_app(&self, role: ProcessRole) -> Result<Arc<App>, Problem> {
        App::open(self.paths.clone(), self.env.clone(), self.cwd.clone(), role).await
    }
}

/// Whether the configuration names a database server. One that cannot be read is complained about later.
fn uses_database_server(global: &GlobalArgs, env: &Env) -> bool {
    let Ok(mut paths) = Paths::discover(env) else { return false };
    if let (Some(config), Ok(cwd)) = (&global.config, std::env::current_dir()) {
        paths = paths.with_config(config, &cwd);
    }
    config::database_url(&paths, env).is_ok_and(|address| address.is_some())
}

/// The default log filter of a command.
fn usual_log(command: &CliCommand) -> &'static str {
    match command {
        CliCommand::Serve(_) => "pml=info,pml_mcp=info,pml_store=info,warn",
        CliCommand::Stdio(_) => "warn",
        _ => "error",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::error::ErrorKind;

    use super::*;

    /// The page sources of a directory and those below it.
    fn sources(directory: &Path) -> Vec<(PathBuf, String)> {
        let entries = std::fs::read_dir(directory).expect("the directory is there");
        let paths = entries.map(|entry| entry.expect("it can be read").path());
        let mut found = Vec::new();
        for path in paths.filter(|path| !path.ends_with("vendor")) {
            if path.is_dir() {
                found.extend(sources(&path));
            } else if path.extension().is_some_and(|ending| ending == "js" || ending == "html") {
                let text = std::fs::read_to_string(&path).expect("it is text");
                found.push((path, text));
            }
        }
        found
    }

    /// A command line split as a shell does it; what a page fills in is a word.
    fn words(command: &str) -> Vec<String> {
        let filled = regex::Regex::new(r"\$\{\w+\}").expect("it is an expression");
        let command = command.replace("${command}", "--call 1=1");
        let command = filled.replace_all(&command, "x");
        let word = regex::Regex::new(r#"'([^']*)'|"([^"]*)"|(\S+)"#).expect("it is an expression");
        let found = word.captures_iter(&command).map(|found| found.iter().skip(1).flatten().next());
        found.flatten().map(|found| found.as_str().to_owned()).collect()
    }

    #[test]
    fn every_command_that_a_page_names_exists() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dashboard/page");
        // In an element, or between backticks; one in a template has backticks around it within the element.
        let quoted = regex::Regex::new(r"(?:[`>]|\$\{`)(pml [a-z][^`<]*)").expect("it is an expression");
        let mut seen = 0;
        for (path, text) in sources(&page) {
            for found in quoted.captures_iter(&text) {
                let command = &found[1];
                let parsed = Cli::try_parse_from(words(command)).map_err(|error| (error.kind(), error));
                // A page may name a command without what it needs.
                let exists = !matches!(&parsed, Err((kind, _)) if !matches!(kind,
                    ErrorKind::MissingRequiredArgument | ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand));
                let told = parsed.err().map(|(_, error)| error.to_string());
                assert!(exists, "{}: `{command}`: {}", path.display(), told.unwrap_or_default());
                seen += 1;
            }
        }
        assert!(seen > 8, "{seen} commands");
    }
}
