//! Puts PML into the files of clients, and takes it out again.

use std::process::ExitCode;

use pml_clients::{Client, Scope};
use serde::Serialize;

use super::import::Imported;
use super::{InitRequest, difference, is_confirmed, known_client, show_difference};
use crate::cli::{CommandContext, out};
use crate::config::clients::records::{self, Registration, UndoOutcome};
use crate::config::clients::{self, ClientChange, ClientFile};
use crate::problem::{ErrorCode, Problem};

/// What became of one client, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RegisterReport {
    client: String,
    path: std::path::PathBuf,
    state: RegisterState,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    taken_out: Vec<String>,
    /// Whether an entry of the same name was replaced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replaced_entry: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    difference: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<std::path::PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum RegisterState {
    /// The file says so already.
    AlreadyThere,
    Registered,
    /// Nobody said yes.
    Preview,
}

impl RegisterReport {
    pub(super) fn is_done(&self) -> bool {
        self.state != RegisterState::Preview
    }
}

pub(super) async fn run(
    here: &CommandContext,
    request: &InitRequest,
    (client, scope): (&'static Client, Scope),
    imported: &Imported,
) -> Result<RegisterReport, Problem> {
    let file = clients::file_to_register(&here.env, &here.cwd, client, scope)?;
    let launch = clients::launch_command(&here.env, &here.paths, here.given_config.as_deref())?;
    let in_this_file = imported
        .entries
        .iter()
        .filter(|(path, keys, _)| *path == file.path && *keys == file.location.shape.path);
    let without: Vec<String> = match request.replace {
        true => {
            // PML in front of itself under another name would list every tool twice.
            let own = file.other_own_entries().map(str::to_owned);
            in_this_file.map(|(_, _, name)| name.clone()).chain(own).collect()
        }
        false => Vec::new(),
    };
    let mut report = RegisterReport {
        client: file.label(),
        path: file.path.clone(),
        state: RegisterState::AlreadyThere,
        taken_out: Vec::new(),
        replaced_entry: false,
        difference: String::new(),
        backup: None,
    };
    let shown = here.env.display_path(&file.path);
    let Some(change) = file.registration(&launch, &without)? else {
        if !here.json {
            out::line(format!("PML is in {shown} already"));
        }
        return Ok(report);
    };
    let before = change.before.as_deref().unwrap_or_default();
    report.difference = difference(&shown, before, &change.after, &imported.secrets);
    report.state = RegisterState::Preview;
    if !here.json {
        show_difference(&report.difference);
    }
    let question = match change.replaces_entry {
        true => format!("replace the entry `{}` of {} ({shown})?", clients::ENTRY, client.title),
        false => format!("put PML into {} ({shown})?", client.title),
    };
    match is_confirmed(here, request.yes, &question).await {
        Some(true) => write(here, &file, &change, &mut report)?,
        Some(false) => out::note(format!("{shown} was not touched")),
        None if here.json => {}
        None => out::note(format!("{shown} was not touched: `--yes` does what is shown")),
    }
    Ok(report)
}

fn write(
    here: &CommandContext,
    file: &ClientFile,
    change: &ClientChange,
    report: &mut RegisterReport,
) -> Result<(), Problem> {
    let record = records::register(&here.paths, file, change)?;
    report.state = RegisterState::Registered;
    report.taken_out = change.taken_out.clone();
    report.replaced_entry = change.replaces_entry;
    report.backup = record.backup;
    if !here.json {
        let done = if change.replaces_entry { "replaced the entry `pml` in" } else { "put PML into" };
        out::line(format!(
            "{done} {}; `pml init --undo {}` takes it back",
            here.env.display_path(&file.path),
            file.label()
        ));
    }
    Ok(())
}

/// Takes PML out of the files of one client, or of all where the name is empty.
pub(super) async fn undo(here: &CommandContext, client: &str, yes: bool) -> Result<ExitCode, Problem> {
    let wanted = match client {
        "" => None,
        name => {
            let (client, scope) = known_client(name)?;
            Some(clients::label(client, scope))
        }
    };
    let mut records = records::read(&here.paths)?;
    records.retain(|record| wanted.as_ref().is_none_or(|wanted| record.client == *wanted));
    // Of two changes of one file, the later one goes first.
    records.reverse();
    if records.is_empty() {
        let text = match &wanted {
            Some(wanted) => format!("PML was not put into {wanted} by `pml init`"),
            None => "PML was not put into any client by `pml init`".to_owned(),
        };
        return Err(Problem::new(ErrorCode::NotFound, text).hint("`pml init --register CLIENT` does that"));
    }
    let mut done = Vec::new();
    let mut failed = Vec::new();
    for record in &records {
        let shown = here.env.display_path(&record.path);
        if is_confirmed(here, yes, &format!("take PML out of {shown}?")).await == Some(false) {
            continue;
        }
        match undo_one(here, record) {
            Ok(outcome) => {
                if !here.json {
                    out::line(describe(&shown, record, &outcome));
                }
                done.push(serde_json::json!({
                    "client": record.client, "path": record.path, "state": state(&outcome), "backup": record.backup,
                }));
            }
            // One file's failure does not keep the others from being restored.
            Err(problem) => failed.push(problem),
        }
    }
    if here.json {
        out::json(&serde_json::json!({ "undone": done, "failed": failed }));
    } else {
        failed.iter().for_each(out::error);
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn undo_one(here: &CommandContext, record: &Registration) -> Result<UndoOutcome, Problem> {
    let file = clients::registered_file(&here.env, record).ok_or_else(|| {
        let text =
            format!("`{}` is no file of {} that this version knows", record.path.display(), record.client);
        Problem::new(ErrorCode::NotFound, text).hint("take the entry `pml` out by hand")
    })?;
    Ok(records::undo(&here.paths, record, &file)?)
}

fn describe(shown: &str, record: &Registration, outcome: &UndoOutcome) -> String {
    match outcome {
        UndoOutcome::Restored => format!("{shown} is what it was before, byte for byte"),
        UndoOutcome::FileRemoved => format!("{shown} was written for PML and is removed"),
        UndoOutcome::EntryTakenOut => {
            let mut text =
                format!("{shown} has changed since: PML's entry was taken out, the rest is untouched");
            if let (false, Some(backup)) = (record.taken_out.is_empty(), &record.backup) {
                let names = record.taken_out.join(", ");
                text.push_str(&format!("; {names} can be found in {}", backup.display()));
            }
            text
        }
        UndoOutcome::NothingLeft => format!("{shown} has no entry of PML any more"),
    }
}

fn state(outcome: &UndoOutcome) -> &'static str {
    match outcome {
        UndoOutcome::Restored => "restored",
        UndoOutcome::FileRemoved => "fileRemoved",
        UndoOutcome::EntryTakenOut => "entryTakenOut",
        UndoOutcome::NothingLeft => "nothingLeft",
    }
}
