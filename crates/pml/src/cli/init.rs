//! `pml init` and `pml setup`: writes a configuration, imports the servers of clients, and puts PML into clients.
//!
//! Everything is shown as a difference before it is done, and done only after a yes or with `--yes`. The commands decide
//! nothing about texts: `pml_clients` edits them, and `config` reads and writes the files.

mod import;
mod register;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Args;
use pml_clients::{Client, Scope};
use serde::Serialize;

use super::ask::read_confirmation;
use super::{CommandContext, doctor, out, servers};
use crate::config;
use crate::config::clients::{self, FileContent};
use crate::config::edit::{self, InitOutcome};
use crate::problem::{ErrorCode, Problem};
use crate::sanitise::{Certainty, KnownSecret, Sanitiser};

/// Arguments of `pml init`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pml init                              import the servers of clients\n  pml init --register cursor --replace  put PML into Cursor in their place\n  pml init --register claude-code:project\n  pml init --undo cursor"
)]
pub(super) struct InitArgs {
    /// Do what is shown without a prompt
    #[arg(long)]
    yes: bool,
    /// Also import servers from the files of the project in the current directory
    #[arg(long)]
    project: bool,
    /// Import nothing
    #[arg(long)]
    no_import: bool,
    /// Put PML into the configuration of a client, such as `cursor` or `cursor:project`
    #[arg(long, value_name = "CLIENT")]
    register: Vec<String>,
    /// Take the servers that PML has out of the files that PML is put into
    #[arg(long, requires = "register")]
    replace: bool,
    /// Leave secrets of imported servers in the configuration instead of files of their own
    #[arg(long)]
    keep_secrets: bool,
    /// Take back what `--register` did, for one client or all
    #[arg(long, value_name = "CLIENT", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["register", "project", "no_import", "keep_secrets"])]
    undo: Option<String>,
}

/// Arguments of `pml setup`.
#[derive(Debug, Args)]
pub(super) struct SetupArgs {
    /// The clients, such as `cursor`; without any, all that have a configuration
    #[arg(value_name = "CLIENT")]
    clients: Vec<String>,
    /// Do what is shown without a prompt
    #[arg(long)]
    yes: bool,
    /// Take the servers that PML has out of the files of the clients
    #[arg(long)]
    replace: bool,
    /// Leave secrets of imported servers in the configuration instead of files of their own
    #[arg(long)]
    keep_secrets: bool,
}

/// What is to be done.
struct InitRequest {
    yes: bool,
    imports: ImportScope,
    register: Vec<(&'static Client, Scope)>,
    replace: bool,
    keep_secrets: bool,
}

/// Whose servers are imported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ImportScope {
    Nothing,
    /// Those of the user's own files.
    User,
    /// Those of the project's files too, which others may have written.
    Project,
}

/// What was done, for programs.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct InitReport {
    config: std::path::PathBuf,
    created: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    import: Option<import::ImportReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    registered: Vec<register::RegisterReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<BrokenFile>,
}

/// A file of a client that was left alone.
#[derive(Debug, Serialize)]
struct BrokenFile {
    client: String,
    path: String,
    message: String,
}

pub(super) async fn run(here: &CommandContext, args: &InitArgs) -> Result<ExitCode, Problem> {
    if let Some(client) = &args.undo {
        return register::undo(here, client, args.yes).await;
    }
    let request = InitRequest {
        yes: args.yes,
        imports: match (args.no_import, args.project) {
            (true, _) => ImportScope::Nothing,
            (false, true) => ImportScope::Project,
            (false, false) => ImportScope::User,
        },
        register: args.register.iter().map(|name| known_client(name)).collect::<Result<_, _>>()?,
        replace: args.replace,
        keep_secrets: args.keep_secrets,
    };
    let report = initialise(here, &request).await?;
    if here.json {
        out::json(&report);
    } else {
        // A script that only ensures a configuration exists must not start servers.
        if !report.created && std::io::stdin().is_terminal() {
            servers::review_new_servers(here).await?;
        }
        out::line("next: `pml add NAME -- COMMAND` adds a server, `pml serve` starts the gateway");
    }
    let left = report.registered.iter().any(|one| !one.is_done());
    Ok(if left { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

pub(super) async fn setup(here: &CommandContext, args: &SetupArgs) -> Result<ExitCode, Problem> {
    let register = match args.clients.is_empty() {
        true => clients_in_use(here),
        false => args.clients.iter().map(|name| known_client(name)).collect::<Result<_, _>>()?,
    };
    let request = InitRequest {
        yes: args.yes,
        imports: ImportScope::User,
        register,
        replace: args.replace,
        keep_secrets: args.keep_secrets,
    };
    let report = initialise(here, &request).await?;
    if !here.json && request.register.is_empty() {
        out::note("no client has a configuration here: name one, for example `pml setup cursor`");
    }
    let findings = doctor::collect_findings(here).await;
    if here.json {
        out::json(&serde_json::json!({ "init": report, "doctor": findings }));
    } else {
        findings.iter().for_each(doctor::show);
    }
    let left = report.registered.iter().any(|one| !one.is_done());
    Ok(if left { ExitCode::FAILURE } else { doctor::exit_code(&findings) })
}

async fn initialise(here: &CommandContext, request: &InitRequest) -> Result<InitReport, Problem> {
    let created = edit::init(&here.paths.config)? == InitOutcome::Created;
    let mut report = InitReport { config: here.paths.config.clone(), created, ..InitReport::default() };
    let shown = here.paths.config.display();
    if created && !here.json {
        out::line(format!("wrote {shown}"));
    }
    let files: Vec<_> = clients::find_files(&here.env, &here.cwd)
        .into_iter()
        .filter(|file| match request.imports {
            ImportScope::Nothing => false,
            ImportScope::User => file.location.scope != Scope::Project,
            ImportScope::Project => true,
        })
        .collect();
    report.broken = files.iter().filter_map(|file| broken(here, file)).collect();
    let config = config::load(&here.paths, &here.cwd, &here.env)?;
    let import = import::run(here, request, &files, &config).await?;
    for (client, scope) in &request.register {
        let one = register::run(here, request, (client, *scope), &import).await?;
        report.registered.push(one);
    }
    if !created && !here.json && !import.has_changed_config() {
        out::line(format!("{shown} is there already and was not touched"));
    }
    report.import = import.report;
    Ok(report)
}

/// Says that a file was left alone, and where it is broken.
fn broken(here: &CommandContext, file: &clients::ClientFile) -> Option<BrokenFile> {
    let FileContent::Broken(message) = &file.content else { return None };
    let path = here.env.display_path(&file.path);
    let message = pml_model::name::printable(message);
    if !here.json {
        out::note(format!("{}warning{}: {path} was left alone: {message}", out::YELLOW, out::RESET));
    }
    Some(BrokenFile { client: file.label(), path, message })
}

/// The clients that have a file of the user's own.
fn clients_in_use(here: &CommandContext) -> Vec<(&'static Client, Scope)> {
    let files = clients::find_files(&here.env, &here.cwd);
    let mut found: Vec<&'static Client> = Vec::new();
    // A file of an older shape shows too that the client is used; the entry goes into one of the present shape.
    for file in files.iter().filter(|file| file.location.scope == Scope::User) {
        if !found.contains(&file.client) {
            found.push(file.client);
        }
    }
    found.into_iter().map(|client| (client, Scope::User)).collect()
}

fn known_client(name: &str) -> Result<(&'static Client, Scope), Problem> {
    pml_clients::find(name).ok_or_else(|| {
        let shown = pml_model::name::printable(name);
        let hint = match pml_clients::nearest(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let ids: Vec<&str> = pml_clients::CLIENTS.iter().map(|client| client.id).collect();
                format!("PML knows {}", ids.join(", "))
            }
        };
        Problem::new(ErrorCode::InvalidRequest, format!("no client is called `{shown}`")).hint(hint)
    })
}

/// Whether to go on: with `--yes`, or where a person says so. `None` where nobody can be asked.
async fn is_confirmed(here: &CommandContext, yes: bool, question: &str) -> Option<bool> {
    if yes {
        return Some(true);
    }
    if here.json || !std::io::stdin().is_terminal() {
        return None;
    }
    Some(read_confirmation(question).await == Some(true))
}

/// The lines that differ between two texts, without secrets.
fn difference(path: &str, before: &str, after: &str, secrets: &[String]) -> String {
    let diff = similar::TextDiff::from_lines(before, after);
    let text = diff.unified_diff().context_radius(2).header(path, path).to_string().replace('\r', "");
    let known = secrets.iter().map(|secret| KnownSecret::new(Certainty::Certain, secret));
    Sanitiser::new(known).clean_text(&text).into_owned()
}

/// Prints a difference, with colours.
fn show_difference(text: &str) {
    for line in text.lines() {
        let line = pml_model::name::printable(line);
        let colour = match line.as_bytes().first() {
            Some(b'+') => out::GREEN,
            Some(b'-') => out::BOLD_RED,
            _ => out::DIM,
        };
        out::line(format!("{colour}{line}{}", out::RESET));
    }
}
