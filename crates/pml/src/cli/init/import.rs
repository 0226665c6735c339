//! Imports the servers of clients into the configuration.

use std::io::IsTerminal as _;

use pml_clients::{ClientServer, MergedServer, ServerAddress};
use pml_model::ServerName;
use pml_model::name::printable;
use serde::Serialize;

use super::{ImportScope, InitRequest, difference, is_confirmed, show_difference};
use crate::cli::ask::read_confirmation;
use crate::cli::{CommandContext, out};
use crate::config::clients::{ClientFile, FileContent, records};
use crate::config::edit::{self, ConfigChange, NewServer};
use crate::config::import::{self, ImportDecision, SecretPlacement, ServerImport};
use crate::config::{Config, DeclaredTransport};
use crate::problem::Problem;

/// What became of the servers of clients.
pub(super) struct Imported {
    /// For programs; `None` where nothing was looked for or found.
    pub(super) report: Option<ImportReport>,
    /// The entries that PML has now: the path of a file, the keys to its servers, and the name of one.
    pub(super) entries: Vec<(std::path::PathBuf, Vec<String>, String)>,
    /// The secrets in all files, which nothing printed may show.
    pub(super) secrets: Vec<String>,
}

/// The import, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportReport {
    /// Whether it was done; otherwise it is a preview.
    done: bool,
    servers: Vec<ImportedServer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    already_there: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    #[serde(skip_serializing_if = "String::is_empty")]
    difference: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<std::path::PathBuf>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ImportedServer {
    name: String,
    from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    was_called: Option<String>,
    /// The places of secrets that went into files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets_moved: Vec<String>,
    /// The other settings of the same name that were not taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_taken: Vec<String>,
}

#[derive(Debug, Serialize)]
struct LeftOut {
    name: String,
    from: String,
    reason: String,
}

/// One server of clients and what is decided about it.
struct DecidedServer {
    merged: MergedServer,
    /// The index of the choice that is taken.
    choice: usize,
    decision: ImportDecision,
}

impl Imported {
    fn nothing() -> Imported {
        Imported { report: None, entries: Vec::new(), secrets: Vec::new() }
    }

    /// Whether servers were added to the configuration.
    pub(super) fn has_changed_config(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.done && !report.servers.is_empty())
    }
}

pub(super) async fn run(
    here: &CommandContext,
    request: &InitRequest,
    files: &[ClientFile],
    config: &Config,
) -> Result<Imported, Problem> {
    let found = files
        .iter()
        .enumerate()
        .flat_map(|(index, file)| file.servers().iter().cloned().map(move |server| (index, server)));
    let merged = pml_clients::merge(found);
    let unreadable = unreadable(here, files);
    if request.imports == ImportScope::Nothing || (merged.is_empty() && unreadable.is_empty()) {
        return Ok(Imported::nothing());
    }
    let secrets = import::secrets_in(&merged);
    let known = import::known_servers(config, &here.paths)?;
    let choices = choose(here, request, files, merged).await;
    let placement = if request.keep_secrets { SecretPlacement::InConfig } else { SecretPlacement::InFiles };
    let mut decided = decide(here, &known, choices.clone(), placement);
    if asks(here, request) && !request.keep_secrets && moved_count(&decided) > 0 {
        let question = format!(
            "move {} secrets into files that only you can read, in {}?",
            moved_count(&decided),
            here.env.display_path(&here.paths.secrets())
        );
        if read_confirmation(&question).await != Some(true) {
            decided = decide(here, &known, choices, SecretPlacement::InConfig);
        }
    }
    let new: Vec<NewServer> = imports(&decided).map(|(_, import)| import.server.clone()).collect();
    let change = edit::preview_servers(&here.paths.config, &new)?;
    let before = change.before.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    let shown_path = here.env.display_path(&here.paths.config);
    let difference = difference(&shown_path, &before, &change.after, &secrets);
    let mut report = ImportReport {
        done: false,
        servers: imports(&decided).map(|(one, import)| described(here, files, one, import)).collect(),
        already_there: decided.iter().filter_map(already_there).collect(),
        left_out: unreadable,
        difference,
        backup: None,
    };
    report.left_out.extend(decided.iter().filter_map(|one| left_out(here, files, one)));
    if !here.json {
        show(&report);
    }
    let done = apply(here, request, &decided, &change, &mut report).await?;
    let entries = decided.iter().filter(|one| is_in_pml(one, done)).flat_map(|one| entries(files, one));
    Ok(Imported { entries: entries.collect(), report: Some(report), secrets })
}

/// Writes the configuration and the secrets, if that is wanted. Returns whether it was done.
async fn apply(
    here: &CommandContext,
    request: &InitRequest,
    decided: &[DecidedServer],
    change: &ConfigChange,
    report: &mut ImportReport,
) -> Result<bool, Problem> {
    if report.servers.is_empty() {
        report.done = true;
        return Ok(true);
    }
    let question = format!("import {}?", count(report.servers.len()));
    match is_confirmed(here, request.yes, &question).await {
        Some(true) => {}
        Some(false) => {
            out::note("nothing was imported");
            return Ok(false);
        }
        None => {
            if !here.json {
                out::note("nothing was imported: `pml init --yes` imports what is shown");
            }
            return Ok(false);
        }
    }
    if let Some(bytes) = &change.before {
        report.backup = Some(records::back_up(&here.paths, &here.paths.config, bytes)?);
    }
    for (_, import) in imports(decided) {
        import::write_secrets(import)?;
    }
    edit::write_change(&here.paths.config, change)?;
    report.done = true;
    if !here.json {
        let shown = here.env.display_path(&here.paths.config);
        out::line(format!("imported {} into {shown}", count(report.servers.len())));
    }
    Ok(true)
}

/// Takes one of the settings of each server: the only one, the one that a person picks, or the first.
async fn choose(
    here: &CommandContext,
    request: &InitRequest,
    files: &[ClientFile],
    merged: Vec<MergedServer>,
) -> Vec<(MergedServer, Option<usize>)> {
    let mut chosen = Vec::new();
    for server in merged {
        let mut choice = Some(0);
        if server.choices.len() > 1 && asks(here, request) {
            out::line(format!("`{}` has different settings in several files:", printable(&server.name)));
            choice = None;
            for (index, (file, one)) in server.choices.iter().enumerate() {
                let question = format!("take {}: {}?", place(here, &files[*file], one.line), address(one));
                if read_confirmation(&question).await == Some(true) {
                    choice = Some(index);
                    break;
                }
            }
        }
        chosen.push((server, choice));
    }
    chosen
}

fn decide(
    here: &CommandContext,
    known: &[(String, DeclaredTransport)],
    chosen: Vec<(MergedServer, Option<usize>)>,
    placement: SecretPlacement,
) -> Vec<DecidedServer> {
    let mut taken: Vec<ServerName> = Vec::new();
    let mut decided = Vec::new();
    for (merged, choice) in chosen {
        let decision = match choice {
            Some(choice) => {
                import::decide(&merged.choices[choice].1, known, &taken, (&here.paths, placement))
            }
            None => ImportDecision::LeftOut("none of its settings was taken".to_owned()),
        };
        if let ImportDecision::Import(import) = &decision {
            taken.push(import.server.name.clone());
        }
        decided.push(DecidedServer { merged, choice: choice.unwrap_or(0), decision });
    }
    decided
}

fn asks(here: &CommandContext, request: &InitRequest) -> bool {
    !request.yes && !here.json && std::io::stdin().is_terminal()
}

fn imports(decided: &[DecidedServer]) -> impl Iterator<Item = (&DecidedServer, &ServerImport)> {
    decided.iter().filter_map(|one| match &one.decision {
        ImportDecision::Import(import) => Some((one, import.as_ref())),
        ImportDecision::AlreadyThere(_) | ImportDecision::LeftOut(_) => None,
    })
}

fn moved_count(decided: &[DecidedServer]) -> usize {
    imports(decided).map(|(_, import)| import.secrets.len()).sum()
}

/// Whether PML has the server now.
fn is_in_pml(one: &DecidedServer, done: bool) -> bool {
    match one.decision {
        ImportDecision::Import(_) => done,
        ImportDecision::AlreadyThere(_) => true,
        ImportDecision::LeftOut(_) => false,
    }
}

/// The entries of files that say what was taken; entries with other settings stay where they are.
fn entries<'f>(
    files: &'f [ClientFile],
    one: &'f DecidedServer,
) -> impl Iterator<Item = (std::path::PathBuf, Vec<String>, String)> + 'f {
    let taken = &one.merged.choices[one.choice].1.address;
    let says_the_same = move |(file, name): &&(usize, String)| {
        files[*file].servers().iter().any(|server| server.name == *name && server.address == *taken)
    };
    one.merged.entries.iter().filter(says_the_same).map(|(file, name)| {
        (files[*file].path.clone(), files[*file].location.shape.path.clone(), name.clone())
    })
}

fn described(
    here: &CommandContext,
    files: &[ClientFile],
    one: &DecidedServer,
    import: &ServerImport,
) -> ImportedServer {
    let place_of = |(file, server): &(usize, ClientServer)| place(here, &files[*file], server.line);
    let others = one.merged.choices.iter().enumerate().filter(|(index, _)| *index != one.choice);
    let renamed = import.server.name.as_str() != import.original_name;
    ImportedServer {
        name: import.server.name.to_string(),
        from: place_of(&one.merged.choices[one.choice]),
        was_called: renamed.then(|| printable(&import.original_name)),
        secrets_moved: import.secrets.iter().map(|secret| printable(&secret.place)).collect(),
        not_taken: others.map(|(_, choice)| place_of(choice)).collect(),
    }
}

fn already_there(one: &DecidedServer) -> Option<String> {
    match &one.decision {
        ImportDecision::AlreadyThere(name) => Some(name.clone()),
        ImportDecision::Import(_) | ImportDecision::LeftOut(_) => None,
    }
}

fn left_out(here: &CommandContext, files: &[ClientFile], one: &DecidedServer) -> Option<LeftOut> {
    let ImportDecision::LeftOut(reason) = &one.decision else { return None };
    let (file, server) = &one.merged.choices[one.choice];
    let from = place(here, &files[*file], server.line);
    Some(LeftOut { name: printable(&one.merged.name), from, reason: reason.clone() })
}

/// Entries that no server of PML can be made from.
fn unreadable(here: &CommandContext, files: &[ClientFile]) -> Vec<LeftOut> {
    let mut all = Vec::new();
    for file in files {
        if let FileContent::Readable { read, .. } = &file.content {
            all.extend(read.unreadable.iter().map(|entry| LeftOut {
                name: printable(&entry.name),
                from: place(here, file, entry.line),
                reason: printable(&entry.reason),
            }));
        }
    }
    all
}

fn show(report: &ImportReport) {
    for server in &report.servers {
        let mut text = format!("  {} from {}", server.name, server.from);
        if let Some(name) = &server.was_called {
            text.push_str(&format!(", there called `{name}`"));
        }
        if !server.secrets_moved.is_empty() {
            text.push_str(&format!(", secrets into files: {}", server.secrets_moved.join(", ")));
        }
        if !server.not_taken.is_empty() {
            text.push_str(&format!("; other settings in {} are not taken", server.not_taken.join(", ")));
        }
        out::line(text);
    }
    for name in &report.already_there {
        out::line(format!("  {name} is there already"));
    }
    for left in &report.left_out {
        out::line(format!("  {} from {} is left out: {}", left.name, left.from, left.reason));
    }
    show_difference(&report.difference);
}

fn place(here: &CommandContext, file: &ClientFile, line: usize) -> String {
    format!("{}:{line}", here.env.display_path(&file.path))
}

/// The command or URL for a question, without values that may be secret.
fn address(server: &ClientServer) -> String {
    let text = match &server.address {
        ServerAddress::Stdio { command, args, .. } => format!("{command} {}", args.join(" ")),
        ServerAddress::Http { url, .. } => url.clone(),
    };
    printable(&crate::sanitise::Sanitiser::new([]).clean_text(&text))
}

fn count(servers: usize) -> String {
    if servers == 1 { "1 server".to_owned() } else { format!("{servers} servers") }
}
