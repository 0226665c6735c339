//! The secrets in the configuration and the environment.

use std::collections::BTreeMap;
use std::path::Path;

use url::Url;

use super::disk;
use super::paths::Paths;
use super::secret::Secret;
use super::{Config, EmbeddingEndpoint, EmbeddingSettings, Env};
use crate::sanitise::{Certainty, KnownSecret, is_secret_name};

/// The secrets that PML knows: its own token, environment variables with secret-like names, and those in the settings
/// of servers. They are redacted from everything that is stored.
pub fn known(config: &Config, paths: &Paths, env: &Env) -> Vec<KnownSecret> {
    let mut known: Vec<KnownSecret> = Vec::new();
    if let Ok(Some(bytes)) = disk::read(&paths.token()) {
        known.extend(String::from_utf8(bytes).ok().map(certain));
    }
    // Of variables that no server uses, only plain secrets count: by name, or inside a URL.
    let own = env.iter().filter(|(name, value)| is_secret_name(name) || value.contains("://"));
    known.extend(own.filter_map(|(name, value)| variable(name, value)));
    if let EmbeddingSettings::Endpoint(EmbeddingEndpoint { key: Some(key), .. }) = &config.embedding {
        known.push(certain(key.reveal()));
    }
    known.extend(config.store.iter().flat_map(|address| address.secrets.iter().cloned()));
    if let Some(collector) = &config.telemetry {
        known.extend(of_address(&collector.endpoint, &collector.headers));
    }
    known.extend(config.servers.iter().flat_map(|server| server.secrets.iter().cloned()));
    known
}

/// Headers that only negotiate the protocol and never hold a secret.
const OPEN_HEADERS: &[&str] = &[
    "accept",
    "cache-control",
    "connection",
    "content-type",
    "date",
    "host",
    "origin",
    "pragma",
    "prefer",
    "referer",
    "user-agent",
    "x-requested-with",
];

/// The secrets written in the command of a server, apart from expanded variables.
pub(super) fn of_command(args: &[String], env: &BTreeMap<String, String>) -> Vec<KnownSecret> {
    let variables = env.iter().filter_map(|(name, value)| variable(name, value));
    variables.chain(in_arguments(args)).collect()
}

/// The secrets in the URL and the headers of a server.
pub(super) fn of_address(url: &Url, headers: &BTreeMap<String, Secret>) -> Vec<KnownSecret> {
    let is_open = |name: &str| {
        let name = name.to_ascii_lowercase();
        OPEN_HEADERS.contains(&name.as_str()) || name.starts_with("accept-") || name.ends_with("-version")
    };
    let secret = headers.iter().filter(|(name, _)| !is_open(name));
    let mut found: Vec<KnownSecret> = secret.map(|(_, value)| certain(value.reveal())).collect();
    found.push(KnownSecret::new(Certainty::Inside, url.as_str()));
    found
}

/// The secret in a variable. `PWD` looks like the name of a password but holds a directory.
fn variable(name: &str, value: &str) -> Option<KnownSecret> {
    let is_directory = ["PWD", "OLDPWD"].contains(&name) && Path::new(value).is_absolute();
    match is_secret_name(name) {
        true if is_directory => None,
        true => Some(certain(value)),
        false => Some(KnownSecret::new(Certainty::Inside, value)),
    }
}

/// The secrets in arguments: `--token value`, `--token=value`, `API_KEY=value`, and those inside other arguments.
fn in_arguments(args: &[String]) -> Vec<KnownSecret> {
    let mut found: Vec<KnownSecret> = Vec::new();
    let mut before: Option<&str> = None;
    for arg in args {
        match (arg.split_once('='), before.take()) {
            (Some((name, value)), _) if is_secret_name(name) => found.push(certain(value)),
            (_, Some(option)) if is_secret_name(option) && !arg.starts_with('-') => found.push(certain(arg)),
            (_, _) => found.push(KnownSecret::new(Certainty::Inside, arg)),
        }
        before = Some(arg.as_str()).filter(|arg| arg.starts_with('-'));
    }
    found
}

fn certain(value: impl Into<String>) -> KnownSecret {
    KnownSecret::new(Certainty::Certain, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_arguments_by_the_option_before_them() {
        let args = [
            "--token",
            "abcd",
            "--api-key=efgh",
            "--name",
            "ada",
            "DB_PASSWORD=ijkl",
            "--password",
            "--verbose",
        ];
        let found = in_arguments(&args.map(str::to_owned));
        let sure: Vec<&KnownSecret> = ["abcd", "efgh", "ijkl"]
            .iter()
            .filter_map(|text| found.iter().find(|one| **one == certain(*text)))
            .collect();
        assert_eq!(sure.len(), 3);
        let certain = found.iter().filter(|one| format!("{one:?}").contains("Certain")).count();
        assert_eq!(certain, 3);
    }
}
