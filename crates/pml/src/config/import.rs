//! Makes servers of PML from the servers of clients: names that are free, and secrets moved into files.
//!
//! Nothing is read or written here but what [`write_secrets`] writes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pml_clients::{ClientServer, MergedServer, ServerAddress};
use pml_model::ServerName;
use pml_model::name::confusable_skeleton;

use super::Config;
use super::disk;
use super::edit::{self, NewServer};
use super::error::Error;
use super::paths::Paths;
use super::secret::Secret;
use super::server::DeclaredTransport;
use super::settings::BUILT_IN;
use crate::sanitise::{Sanitiser, is_secret_name};

/// What becomes of secrets that stand in a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPlacement {
    /// Each goes into a file of mode 0600, which the configuration names.
    InFiles,
    /// They stay as they are.
    InConfig,
}

/// A server that can be imported.
#[derive(Debug, Clone)]
pub struct ServerImport {
    /// The server as it is added.
    pub server: NewServer,
    /// Its name in the client's file.
    pub original_name: String,
    /// The secrets that go into files.
    pub secrets: Vec<MovedSecret>,
}

/// A secret that goes into a file of its own.
#[derive(Debug, Clone)]
pub struct MovedSecret {
    /// Where it stood: the name of a variable or header, or the place of an argument.
    pub place: String,
    /// The file.
    pub path: PathBuf,
    value: Secret,
}

/// What is to be done with a server of a client.
#[derive(Debug, Clone)]
pub enum ImportDecision {
    /// It is imported.
    Import(Box<ServerImport>),
    /// PML has it already, under this name.
    AlreadyThere(String),
    /// It is not imported, for this reason.
    LeftOut(String),
}

/// The servers that PML has: those of the user's file, also where a variable of one is not set, and the usable ones of
/// other files.
///
/// # Errors
/// The configuration is invalid.
pub fn known_servers(config: &Config, paths: &Paths) -> Result<Vec<(String, DeclaredTransport)>, Error> {
    let mut known = edit::declared_servers(&paths.config)?;
    for server in &config.servers {
        if !known.iter().any(|(name, _)| name == server.name.as_str()) {
            known.push((server.name.to_string(), server.declared.clone()));
        }
    }
    Ok(known)
}

/// Decides about one server. `known` are the servers that PML has, and `taken` the names that were given before.
pub fn decide(
    server: &ClientServer,
    known: &[(String, DeclaredTransport)],
    taken: &[ServerName],
    (paths, placement): (&Paths, SecretPlacement),
) -> ImportDecision {
    let declared = declared(&server.address);
    let name = match free_name(&server.name, known, taken, &declared, paths) {
        Ok(name) => name,
        Err(decision) => return decision,
    };
    let mut draft = NewServer {
        description: server.description.clone().filter(|text| !text.is_empty()),
        enabled: server.enabled,
        call_timeout: server.call_timeout_ms.map(Duration::from_millis),
        start_timeout: server.start_timeout_ms.map(Duration::from_millis),
        ..NewServer::new(name, declared)
    };
    let secrets = match placement {
        SecretPlacement::InConfig => Vec::new(),
        SecretPlacement::InFiles => move_secrets(draft.name.as_str(), &mut draft.declared, paths),
    };
    let original_name = server.name.clone();
    ImportDecision::Import(Box::new(ServerImport { server: draft, original_name, secrets }))
}

/// The secrets in all choices of `servers`, so that nothing that is printed shows them.
pub fn secrets_in(servers: &[MergedServer]) -> Vec<String> {
    let choices = servers.iter().flat_map(|server| &server.choices);
    choices
        .flat_map(|(_, server)| {
            let mut all = Vec::new();
            let mut found = declared(&server.address);
            each_secret(&mut found, |_, secret| {
                all.push(secret.to_owned());
                None
            });
            all
        })
        .collect()
}

/// Writes the secrets of an import into their files.
///
/// # Errors
/// A file cannot be written.
pub fn write_secrets(import: &ServerImport) -> Result<(), Error> {
    for secret in &import.secrets {
        let bytes = secret.value.reveal().as_bytes();
        if disk::create(&secret.path, bytes)? == disk::FileCreation::Existed {
            disk::replace(&secret.path, bytes)?;
        }
    }
    Ok(())
}

fn declared(address: &ServerAddress) -> DeclaredTransport {
    let map = |pairs: &[(String, String)]| pairs.iter().cloned().collect::<BTreeMap<_, _>>();
    match address {
        ServerAddress::Stdio { command, args, env, cwd } => DeclaredTransport::Stdio {
            command: command.clone(),
            args: args.clone(),
            env: map(env),
            cwd: cwd.clone(),
        },
        ServerAddress::Http { url, headers } => {
            DeclaredTransport::Http { url: url.clone(), headers: map(headers) }
        }
    }
}

/// A name for the server that no other has, unless the one who has it is this server.
fn free_name(
    wanted: &str,
    known: &[(String, DeclaredTransport)],
    taken: &[ServerName],
    declared: &DeclaredTransport,
    paths: &Paths,
) -> Result<ServerName, ImportDecision> {
    // The same server may have been imported before, with its secrets moved into files.
    let is_this = |(name, known): &&(String, DeclaredTransport)| {
        let mut moved = declared.clone();
        move_secrets(name, &mut moved, paths);
        *known == *declared || *known == moved
    };
    if let Some((name, _)) = known.iter().find(is_this) {
        return Err(ImportDecision::AlreadyThere(name.clone()));
    }
    let base: String =
        wanted.chars().map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '-' }).collect();
    let base: String = base.trim_matches('-').chars().take(60).collect();
    let base = if base.is_empty() { "server".to_owned() } else { base };
    let form = confusable_skeleton(&base);
    let same_form = |other: &str| confusable_skeleton(other) == form;
    if let Some((name, _)) = known.iter().find(|(name, _)| same_form(name)) {
        let reason = format!("PML has a server `{name}` with other settings, which stay");
        return Err(ImportDecision::LeftOut(reason));
    }
    let is_free = |name: &ServerName| {
        let form = confusable_skeleton(name.as_str());
        let others = taken.iter().map(ServerName::as_str).chain(known.iter().map(|(name, _)| name.as_str()));
        !others.chain(BUILT_IN.iter().copied()).any(|other| confusable_skeleton(other) == form)
    };
    // The names of built-in servers are common: `time`, `http`.
    let more = [base.clone(), format!("{base}-mcp"), format!("{base}-2"), format!("{base}-3")];
    let name = more.iter().filter_map(|name| ServerName::new(name).ok()).find(is_free);
    name.ok_or_else(|| ImportDecision::LeftOut(format!("no name like `{base}` is free")))
}

/// Puts references to files where secrets stand.
fn move_secrets(server: &str, declared: &mut DeclaredTransport, paths: &Paths) -> Vec<MovedSecret> {
    let mut moved = Vec::new();
    each_secret(declared, |place, secret| {
        let file: String = place
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '-' })
            .collect();
        let path = paths.secrets().join(format!("{server}.{file}"));
        let reference = format!("${{file:{}}}", path.display());
        moved.push(MovedSecret { place: place.to_owned(), path, value: Secret::new(secret.to_owned()) });
        Some(reference)
    });
    moved
}

/// Calls `found` with the place and value of every secret, and puts what it returns in its place.
fn each_secret(declared: &mut DeclaredTransport, mut found: impl FnMut(&str, &str) -> Option<String>) {
    let mut visit = |place: &str, named: bool, value: &mut String| {
        if let Some((start, secret)) = secret_in(named, value)
            && let Some(reference) = found(place, &secret)
        {
            *value = format!("{start}{reference}");
        }
    };
    match declared {
        DeclaredTransport::Stdio { args, env, .. } => {
            env.iter_mut().for_each(|(name, value)| visit(name, is_secret_name(name), value));
            let mut option_is_secret = false;
            for (index, arg) in args.iter_mut().enumerate() {
                let place = format!("argument-{}", index + 1);
                let pair = arg.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
                match pair {
                    Some((name, mut value)) if is_secret_name(&name) => {
                        visit(&place, true, &mut value);
                        *arg = format!("{name}={value}");
                    }
                    _ => visit(&place, option_is_secret && !arg.starts_with('-'), arg),
                }
                option_is_secret = arg.starts_with('-') && !arg.contains('=') && is_secret_name(arg);
            }
        }
        DeclaredTransport::Http { url, headers } => {
            visit("url", false, url);
            for (name, value) in headers.iter_mut() {
                let named = is_secret_name(name) || name.eq_ignore_ascii_case("authorization");
                visit(name, named, value);
            }
        }
    }
}

/// The secret in a value and what stands before it, such as `Bearer `. `named` says that a name calls it a secret;
/// otherwise its shape has to.
fn secret_in(named: bool, value: &str) -> Option<(String, String)> {
    // Three characters can be typed by chance; a variable is no secret itself.
    if value.contains("${") || value.chars().count() < 4 {
        return None;
    }
    let plain = value.replace("$$", "$");
    let looks_secret = matches!(Sanitiser::new([]).clean_text(&plain), std::borrow::Cow::Owned(_));
    if !named && !looks_secret {
        return None;
    }
    let start =
        ["Bearer ", "bearer ", "Basic ", "Token ", "token "].iter().find(|start| plain.starts_with(**start));
    let start = start.map_or("", |start| *start);
    Some((start.to_owned(), plain[start.len()..].to_owned()))
}

#[cfg(test)]
mod tests;
