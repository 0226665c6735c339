//! `pml keys`: the keys that identify clients.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pml_model::name::printable;
use pml_model::{KeyId, Principal};
use pml_store::{ClientKey, Store};
use serde_json::{Value, json};

use super::ask::require_passphrase;
use super::run_table::format_time;
use super::{CommandContext, out};
use crate::config::disk::{self, FileCreation};
use crate::keys::{self, KeyRequest};
use crate::problem::{ErrorCode, Problem};

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Create a key and print it once
    Create(CreateKeyArgs),
    /// List keys, newest first, revoked ones included
    List,
    /// Revoke a key; running gateways reject it within a second
    Revoke {
        /// Its number
        key: i64,
    },
}

/// Arguments of `pml keys create`.
#[derive(Debug, Args)]
pub(super) struct CreateKeyArgs {
    /// The name of the client it is for
    #[arg(long, value_name = "NAME")]
    client: String,
    /// A person uses the client: answers given in its dialogs count as that person's
    #[arg(long)]
    interactive: bool,
    /// The client asks its user before it calls a tool by name, so PML does not ask again
    #[arg(long)]
    asks_itself: bool,
    /// Write the key to this new file (mode 0600) instead of printing it
    #[arg(long, value_name = "PATH")]
    key_file: Option<PathBuf>,
}

pub(super) async fn run(here: &CommandContext, keys: KeysCommand) -> Result<ExitCode, Problem> {
    // Only the database is needed, so a key can be revoked even where the configuration cannot be read.
    let store = here.open_store().await?;
    match keys {
        KeysCommand::Create(create) => self::create(here, &store, create).await,
        KeysCommand::List => {
            let keys = store.client_keys().await?;
            list(here, &keys);
            Ok(ExitCode::SUCCESS)
        }
        KeysCommand::Revoke { key } => {
            require_passphrase(&here.paths, &store).await?;
            let revoked = keys::revoke(&store, &Principal::local(), KeyId(key)).await?;
            if here.json {
                out::json(&as_json(&revoked));
            } else {
                out::line(format!("key {key} of client {} is revoked", printable(&revoked.client)));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A key can make its holder's answers count as a person's, so creating one requires the same proof as such an
/// answer.
async fn create(here: &CommandContext, store: &Store, create: CreateKeyArgs) -> Result<ExitCode, Problem> {
    let file = create.key_file.map(|path| here.cwd.join(path));
    if let Some(file) = file.as_ref().filter(|file| file.exists()) {
        return Err(exists(file));
    }
    require_passphrase(&here.paths, store).await?;
    let wanted = KeyRequest {
        client: create.client,
        interactive: create.interactive,
        asks_itself: create.asks_itself,
    };
    let (secret, key) = keys::create(store, Principal::local(), wanted).await?;
    let mut told = as_json(&key);
    if let Some(file) = &file {
        let written = disk::create(file, format!("{}\n", secret.reveal()).as_bytes()).map_err(Problem::from);
        let written = written.and_then(|made| match made {
            FileCreation::Created => Ok(()),
            FileCreation::Existed => Err(exists(file)),
        });
        if let Err(problem) = written {
            // The file could not be written, so nobody has the key: it must not stay valid.
            keys::revoke(store, &Principal::local(), key.id).await?;
            return Err(problem);
        }
        told["keyFile"] = json!(file);
    } else {
        told["secret"] = json!(secret.reveal());
    }
    if here.json {
        out::json(&told);
        return Ok(ExitCode::SUCCESS);
    }
    out::note(format!("key {} for client {}: {}", key.id, printable(&key.client), describe_key(&key)));
    match &file {
        Some(file) => out::line(format!("written to {}", printable(&file.display().to_string()))),
        None => {
            out::line(secret.reveal());
            out::note("It is not shown again. A client sends it as `Authorization: Bearer …`.");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn exists(file: &std::path::Path) -> Problem {
    let shown = printable(&file.display().to_string());
    Problem::new(ErrorCode::InvalidRequest, format!("the file `{shown}` exists"))
        .hint("name a new file, or remove this one; no key was made")
}

fn list(here: &CommandContext, keys: &[ClientKey]) {
    if here.json {
        return out::json(&keys.iter().map(as_json).collect::<Vec<_>>());
    }
    if keys.is_empty() {
        return out::note("no keys; `pml keys create --client NAME` makes one");
    }
    let row = |key: &ClientKey| {
        let counts =
            key.revoked_at.map_or_else(|| "yes".to_owned(), |at| format!("no, since {}", format_time(at)));
        vec![
            key.id.to_string(),
            printable(&key.client),
            describe_key(key).to_owned(),
            format_time(key.created_at),
            counts,
        ]
    };
    let rows: Vec<Vec<String>> = keys.iter().map(row).collect();
    out::line(out::table(&["key", "client", "good for", "made", "counts"], &rows));
}

/// What a key permits, in words.
fn describe_key(key: &ClientKey) -> &'static str {
    match (key.interactive, key.asks_itself) {
        (false, false) => "knowing the client by its name",
        (true, false) => "answers of its user",
        (false, true) => "calls about which it asks its user itself",
        (true, true) => "answers of its user, and calls about which it asks them itself",
    }
}

fn as_json(key: &ClientKey) -> Value {
    json!({
        "key": key.id, "client": key.client, "interactive": key.interactive, "asksItself": key.asks_itself,
        "createdAt": key.created_at, "revokedAt": key.revoked_at,
    })
}
