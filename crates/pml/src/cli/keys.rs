//! `pml keys`: the keys by which clients are known.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pml_model::name::printable;
use pml_model::{KeyId, Principal};
use pml_store::{ClientKey, Store};
use serde_json::{Value, json};

use super::answer::as_a_person;
use super::runs::when;
use super::{Here, out};
use crate::config::disk::{self, Creation};
use crate::keys::{self, Wanted};
use crate::problem::{Code, Problem};

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(super) enum Keys {
    /// Create a key and print it once
    Create(Create),
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
pub(super) struct Create {
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

pub(super) async fn run(here: &Here, keys: Keys) -> Result<ExitCode, Problem> {
    // Only the database is needed: a configuration that cannot be read is no reason not to revoke.
    let store = Store::open(here.paths.database()).await?;
    match keys {
        Keys::Create(create) => self::create(here, &store, create).await,
        Keys::List => {
            let keys = store.keys().await?;
            list(here, &keys);
            Ok(ExitCode::SUCCESS)
        }
        Keys::Revoke { key } => {
            as_a_person(&here.paths, &store).await?;
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

/// A key can make its holder's answers count as a person's, so making one takes what answering as a person takes.
async fn create(here: &Here, store: &Store, create: Create) -> Result<ExitCode, Problem> {
    let file = create.key_file.map(|path| here.cwd.join(path));
    if let Some(file) = file.as_ref().filter(|file| file.exists()) {
        return Err(exists(file));
    }
    as_a_person(&here.paths, store).await?;
    let wanted =
        Wanted { client: create.client, interactive: create.interactive, asks_itself: create.asks_itself };
    let (secret, key) = keys::create(store, Principal::local(), wanted).await?;
    let mut told = as_json(&key);
    if let Some(file) = &file {
        let written = disk::create(file, format!("{}\n", secret.reveal()).as_bytes()).map_err(Problem::from);
        let written = written.and_then(|made| match made {
            Creation::Made => Ok(()),
            Creation::WasThere => Err(exists(file)),
        });
        if let Err(problem) = written {
            // Nobody has the key, so it should not count.
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
    out::note(format!("key {} for client {}: {}", key.id, printable(&key.client), means(&key)));
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
    Problem::new(Code::InvalidRequest, format!("the file `{shown}` exists"))
        .hint("name a new file, or remove this one; no key was made")
}

fn list(here: &Here, keys: &[ClientKey]) {
    if here.json {
        return out::json(&keys.iter().map(as_json).collect::<Vec<_>>());
    }
    if keys.is_empty() {
        return out::note("no keys; `pml keys create --client NAME` makes one");
    }
    let row = |key: &ClientKey| {
        let counts = key.revoked_at.map_or_else(|| "yes".to_owned(), |at| format!("no, since {}", when(at)));
        vec![key.id.to_string(), printable(&key.client), means(key).to_owned(), when(key.created_at), counts]
    };
    let rows: Vec<Vec<String>> = keys.iter().map(row).collect();
    out::line(out::table(&["key", "client", "good for", "made", "counts"], &rows));
}

/// What a key is good for, in words.
fn means(key: &ClientKey) -> &'static str {
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
