//! `pml keys`: the keys that identify clients, and what each may do.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use pml_model::name::printable;
use pml_model::{KeyBudget, KeyId, KeyRights, Principal, Role, ToolScope};
use pml_store::{ClientKey, KeyUse, Store};
use serde_json::{Value, json};

use super::ask::require_passphrase;
use super::run_table::format_time;
use super::{CommandContext, out};
use crate::clock::now_ms;
use crate::config::Secret;
use crate::config::disk::{self, FileCreation};
use crate::keys::{self, KeyRequest};
use crate::problem::{ErrorCode, Problem};

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Create a key and print it once
    Create(CreateKeyArgs),
    /// List keys, newest first, revoked ones included, with what each may do and did
    List,
    /// Replace a key by another with the same rights, and print that once
    Rotate(RotateKeyArgs),
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
    /// The person it belongs to; each sees only their own runs and capabilities
    #[arg(long = "for", value_name = "NAME", default_value = "local")]
    person: String,
    /// What its holder may do
    #[arg(long, value_enum, default_value_t = RoleName::Approver)]
    role: RoleName,
    /// Reach only these servers, such as fs,git
    #[arg(long, value_name = "SERVER", value_delimiter = ',')]
    servers: Vec<String>,
    /// Reach only these tools, such as fs:read,git:*
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    tools: Vec<String>,
    /// Expire after this time, such as 12h or 90d
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    expires: Option<i64>,
    /// Runs that may be under way at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs_at_once: Option<u32>,
    /// Tool calls in a minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    calls_per_minute: Option<u32>,
    /// Seconds of processor time that programs may use in 24 hours
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    cpu_per_day: Option<u32>,
    /// Bytes that the records of its runs may take
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    stored_bytes: Option<u64>,
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

/// Arguments of `pml keys rotate`.
#[derive(Debug, Args)]
pub(super) struct RotateKeyArgs {
    /// Its number
    key: i64,
    /// Keep the old key valid for this time, such as 1h, so that its client can change over
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    keep_old: Option<i64>,
    /// Write the key to this new file (mode 0600) instead of printing it
    #[arg(long, value_name = "PATH")]
    key_file: Option<PathBuf>,
}

/// A role, as it is given on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum RoleName {
    /// Finds and runs things
    Agent,
    /// Manages what was learned, too
    Member,
    /// Answers questions, too
    Approver,
    /// Manages the gateway, too
    Admin,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Role {
        match name {
            RoleName::Agent => Role::Agent,
            RoleName::Member => Role::Member,
            RoleName::Approver => Role::Approver,
            RoleName::Admin => Role::Admin,
        }
    }
}

/// A time such as `90s`, `15m`, `12h` or `30d`, in milliseconds.
fn duration_ms(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{text}` is no time; write a number and s, m, h or d, such as 90d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: i64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let number: i64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    let time = number.checked_mul(seconds * 1_000).filter(|time| *time > 0).ok_or_else(wrong)?;
    // Beyond a hundred years, the time at which it ends could not be written.
    if time <= 100 * 366 * 24 * 60 * 60 * 1_000 { Ok(time) } else { Err(wrong()) }
}

pub(super) async fn run(here: &CommandContext, keys: KeysCommand) -> Result<ExitCode, Problem> {
    // Only the database is needed, so a key can be revoked even where the configuration cannot be read.
    let store = here.open_store().await?;
    match keys {
        KeysCommand::Create(create) => self::create(here, &store, create).await,
        KeysCommand::List => {
            let mut keys = Vec::new();
            for key in store.client_keys().await? {
                let used = store.key_use(key.id, now_ms()).await?;
                keys.push((key, used));
            }
            list(here, &keys);
            Ok(ExitCode::SUCCESS)
        }
        KeysCommand::Rotate(rotate) => self::rotate(here, &store, rotate).await,
        KeysCommand::Revoke { key } => {
            require_passphrase(&here.paths, &store).await?;
            let revoked = keys::revoke(&store, KeyId(key)).await?;
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
    let wrong = |error: String| Problem::new(ErrorCode::InvalidRequest, error);
    let file = new_file(here, create.key_file)?;
    let person = Principal::parse(&create.person).map_err(|error| wrong(error.to_string()))?;
    let names = create.servers.iter().map(|server| format!("{server}:*")).chain(create.tools);
    let rights = KeyRights {
        role: create.role.into(),
        tools: ToolScope::parse(names).map_err(|error| wrong(error.to_string()))?,
        expires_at: create.expires.map(|after| now_ms() + after),
        budget: KeyBudget {
            runs_at_once: create.runs_at_once,
            calls_per_minute: create.calls_per_minute,
            cpu_seconds_per_day: create.cpu_per_day,
            stored_bytes: create.stored_bytes,
        },
    };
    let wanted = KeyRequest {
        client: create.client,
        interactive: create.interactive,
        asks_itself: create.asks_itself,
        rights,
    };
    require_passphrase(&here.paths, store).await?;
    let (secret, key) = keys::create(store, person, wanted).await?;
    hand_out(here, store, &secret, &key, file).await
}

async fn rotate(here: &CommandContext, store: &Store, rotate: RotateKeyArgs) -> Result<ExitCode, Problem> {
    let file = new_file(here, rotate.key_file)?;
    require_passphrase(&here.paths, store).await?;
    let old_until = rotate.keep_old.map(|after| now_ms() + after);
    let (secret, old, new) = keys::rotate(store, KeyId(rotate.key), old_until).await?;
    if !here.json {
        out::note(match old_until {
            Some(until) => format!("key {} expires at {}", old.id, format_time(until)),
            None => format!("key {} is revoked", old.id),
        });
    }
    hand_out(here, store, &secret, &new, file).await
}

/// The file that a key goes into, which must not exist.
fn new_file(here: &CommandContext, path: Option<PathBuf>) -> Result<Option<PathBuf>, Problem> {
    let file = path.map(|path| here.cwd.join(path));
    match file.as_ref().filter(|file| file.exists()) {
        Some(file) => Err(exists(file)),
        None => Ok(file),
    }
}

/// Prints a new key, or writes it to a file. It cannot be shown again.
async fn hand_out(
    here: &CommandContext,
    store: &Store,
    secret: &Secret,
    key: &ClientKey,
    file: Option<PathBuf>,
) -> Result<ExitCode, Problem> {
    let mut told = as_json(key);
    if let Some(file) = &file {
        let written = disk::create(file, format!("{}\n", secret.reveal()).as_bytes()).map_err(Problem::from);
        let written = written.and_then(|made| match made {
            FileCreation::Created => Ok(()),
            FileCreation::Existed => Err(exists(file)),
        });
        if let Err(problem) = written {
            // The file could not be written, so nobody has the key: it must not stay valid.
            keys::revoke(store, key.id).await?;
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
    out::note(format!(
        "key {} for client {} of {}: {}, {}",
        key.id,
        printable(&key.client),
        key.principal,
        key.rights.role,
        describe_key(key)
    ));
    match &file {
        Some(file) => out::line(format!("written to {}", printable(&file.display().to_string()))),
        None => {
            out::line(secret.reveal());
            out::note("It is not shown again. A client sends it as `Authorization: Bearer …`.");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn exists(file: &Path) -> Problem {
    let shown = printable(&file.display().to_string());
    Problem::new(ErrorCode::InvalidRequest, format!("the file `{shown}` exists"))
        .hint("name a new file, or remove this one; no key was made")
}

fn list(here: &CommandContext, keys: &[(ClientKey, KeyUse)]) {
    if here.json {
        let with_use = |(key, used): &(ClientKey, KeyUse)| {
            let mut told = as_json(key);
            told["use"] = json!({
                "lastUsedAt": used.used_at, "runs": used.runs, "callsThisMinute": used.calls_this_minute,
                "callsToday": used.calls_today, "cpuSecondsToday": used.cpu_ms_today as f64 / 1000.0,
                "storedBytes": used.stored_bytes, "refusedToday": used.refused_today,
            });
            told
        };
        return out::json(&keys.iter().map(with_use).collect::<Vec<_>>());
    }
    if keys.is_empty() {
        return out::note("no keys; `pml keys create --client NAME` makes one");
    }
    let row = |(key, used): &(ClientKey, KeyUse)| {
        let restrictions = describe_restrictions(key, used);
        vec![
            key.id.to_string(),
            key.principal.to_string(),
            printable(&key.client),
            key.rights.role.to_string(),
            match restrictions.is_empty() {
                true => describe_key(key).to_owned(),
                false => format!("{}; {restrictions}", describe_key(key)),
            },
            format_time(key.created_at),
            used.used_at.map_or_else(|| "never".to_owned(), format_time),
            counts(key),
        ]
    };
    let rows: Vec<Vec<String>> = keys.iter().map(row).collect();
    out::line(out::table(&["key", "for", "client", "role", "good for", "made", "used", "counts"], &rows));
}

/// Whether a key is valid.
fn counts(key: &ClientKey) -> String {
    match (key.revoked_at, key.rights.expires_at) {
        (Some(at), _) => format!("no, since {}", format_time(at)),
        (None, Some(at)) if key.rights.is_expired(now_ms()) => format!("no, since {}", format_time(at)),
        (None, Some(at)) => format!("until {}", format_time(at)),
        (None, None) => "yes".to_owned(),
    }
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

/// The tools that a key reaches, and its budgets with what is used of each.
fn describe_restrictions(key: &ClientKey, used: &KeyUse) -> String {
    let (rights, budget) = (&key.rights, &key.rights.budget);
    let mut parts = Vec::new();
    if !rights.tools.is_everything() {
        parts.push(format!("reaches {}", printable(&rights.tools.names().join(", "))));
    }
    if let Some(most) = budget.runs_at_once {
        parts.push(format!("{} of {most} runs at once", used.runs));
    }
    if let Some(most) = budget.calls_per_minute {
        parts.push(format!("{} of {most} calls this minute", used.calls_this_minute));
    }
    if let Some(most) = budget.cpu_seconds_per_day {
        parts.push(format!("{:.1} of {most} s of processor time in 24 h", used.cpu_ms_today as f64 / 1000.0));
    }
    if let Some(most) = budget.stored_bytes {
        parts.push(format!("{} of {most} bytes stored", used.stored_bytes));
    }
    if used.refused_today > 0 {
        parts.push(format!("{} refused in 24 h", used.refused_today));
    }
    parts.join(", ")
}

fn as_json(key: &ClientKey) -> Value {
    json!({
        "key": key.id, "for": key.principal, "client": key.client, "interactive": key.interactive,
        "asksItself": key.asks_itself, "role": key.rights.role, "tools": key.rights.tools,
        "budget": key.rights.budget, "expiresAt": key.rights.expires_at,
        "createdAt": key.created_at, "revokedAt": key.revoked_at,
    })
}

#[cfg(test)]
mod tests {
    use super::duration_ms;

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(duration_ms("90s"), Ok(90_000));
        assert_eq!(duration_ms("2h"), Ok(7_200_000));
        assert_eq!(duration_ms("30d"), Ok(2_592_000_000));
        for bad in ["", "d", "30", "-1d", "0s", "1.5h", "3w", "999999999999999999d", "40000d", "7é"] {
            assert!(duration_ms(bad).is_err(), "{bad}");
        }
    }
}
