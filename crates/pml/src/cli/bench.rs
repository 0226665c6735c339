//! `pml bench` passes everything on to the program `pml-bench`, which is built beside this one and not shipped.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Args, CommandFactory};

use super::{Cli, GlobalArgs, fail, out};
use crate::problem::{ErrorCode, Problem};

/// The command that builds `pml-bench`.
const BUILD: &str = "cargo build --release --package pml-bench";

/// What `pml bench --help` says where there is no `pml-bench` to ask.
pub(super) const AFTER_HELP: &str = "Benchmarks are the program `pml-bench`. From a clone of the sources,\n\n    \
    cargo build --release --package pml --package pml-bench\n\nbuilds both side by side; then `pml bench --help` \
    lists the measurements.";

/// Everything after `bench`.
#[derive(Debug, Args)]
pub(super) struct Bench {
    /// The measurement and its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

/// Replaces this process by `pml-bench` where the system can, so that signals and the exit code are its own.
pub(super) fn run(global: &GlobalArgs, bench: &Bench) -> ExitCode {
    match beside() {
        Some(program) => {
            let mut command = Command::new(program);
            command.args(passed_on(global)).args(&bench.arguments);
            become_it(command, global.json)
        }
        None if asks_for_help(bench) => {
            let mut cli = Cli::command();
            // Clap sets the full name of a subcommand only when the command is built.
            cli.build();
            let help = cli.find_subcommand_mut("bench").map(clap::Command::render_long_help);
            out::line(help.unwrap_or_default().ansi().to_string());
            ExitCode::SUCCESS
        }
        None => fail(&missing(), global.json),
    }
}

fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.with_file_name(format!("pml-bench{}", std::env::consts::EXE_SUFFIX)))
        .filter(|program| program.is_file())
}

/// The global options, to be passed on wherever they stood.
fn passed_on(global: &GlobalArgs) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    if global.json {
        arguments.push("--json".into());
    }
    arguments.extend((0..global.verbose).map(|_| OsString::from("-v")));
    if let Some(config) = &global.config {
        arguments.extend(["--config".into(), config.into()]);
    }
    arguments
}

fn asks_for_help(bench: &Bench) -> bool {
    bench.arguments.iter().any(|argument| argument == "--help" || argument == "-h" || argument == "help")
}

fn missing() -> Problem {
    Problem::new(
        ErrorCode::Config,
        "there is no program `pml-bench` beside this `pml`, which the benchmarks are in",
    )
    .hint(format!("`{BUILD}` builds it into the directory of the release build of `pml`"))
}

#[cfg(unix)]
fn become_it(mut command: Command, json: bool) -> ExitCode {
    use std::os::unix::process::CommandExt as _;
    let error = command.exec();
    fail(&not_started(&error), json)
}

#[cfg(not(unix))]
fn become_it(mut command: Command, json: bool) -> ExitCode {
    match command.status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => fail(&not_started(&error), json),
    }
}

fn not_started(error: &std::io::Error) -> Problem {
    Problem::new(ErrorCode::Config, format!("`pml-bench` cannot be started: {error}"))
}
