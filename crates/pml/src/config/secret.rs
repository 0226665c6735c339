//! Values that must not be shown, and the bearer token of `pml serve`.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::disk::{self, Creation};
use super::error::Error;
use super::paths::Paths;
use super::server::Transport;
use super::{Config, Embedding, Endpoint, Env};
use crate::sanitise::{Certainty, KnownSecret, is_secret_name};

/// A text that neither `Debug` nor `Display` shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `value`.
    pub fn new(value: String) -> Secret {
        Secret(value)
    }

    /// The value, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The secrets this program knows: its own token, variables whose names say so, and those in the settings of servers. They
/// are looked for in whatever is to be kept.
pub fn known(config: &Config, paths: &Paths, env: &Env) -> Vec<KnownSecret> {
    let mut known: Vec<KnownSecret> = Vec::new();
    if let Ok(Some(bytes)) = disk::read(&paths.token()) {
        known.extend(String::from_utf8(bytes).ok().map(certain));
    }
    // Of what nobody handed on, only what is plainly a secret counts.
    let own = env.iter().filter(|(name, value)| is_secret_name(name) || value.contains("://"));
    known.extend(own.filter_map(|(name, value)| variable(name, value)));
    if let Embedding::Endpoint(Endpoint { key: Some(key), .. }) = &config.embedding {
        known.push(certain(key.reveal()));
    }
    known.extend(config.servers.iter().flat_map(|server| server.secrets.iter().cloned()));
    known
}

/// Headers that say how to talk, and nothing that anybody would hide.
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

/// The secrets that the settings of a server hold by themselves, whatever was put in from elsewhere.
pub(super) fn in_transport(transport: &Transport) -> Vec<KnownSecret> {
    match transport {
        Transport::Stdio { args, env, .. } => {
            let variables = env.iter().filter_map(|(name, value)| variable(name, value));
            variables.chain(in_arguments(args)).collect()
        }
        Transport::Http { url, headers } => {
            let is_open = |name: &str| {
                let name = name.to_ascii_lowercase();
                OPEN_HEADERS.contains(&name.as_str())
                    || name.starts_with("accept-")
                    || name.ends_with("-version")
            };
            let secret = headers.iter().filter(|(name, _)| !is_open(name));
            let mut found: Vec<KnownSecret> = secret.map(|(_, value)| certain(value.reveal())).collect();
            found.push(KnownSecret::new(Certainty::Inside, url.as_str()));
            found
        }
    }
}

/// What is secret of a variable. The directory somebody is in has a name like that of a password.
fn variable(name: &str, value: &str) -> Option<KnownSecret> {
    let is_directory = ["PWD", "OLDPWD"].contains(&name) && Path::new(value).is_absolute();
    match is_secret_name(name) {
        true if is_directory => None,
        true => Some(certain(value)),
        false => Some(KnownSecret::new(Certainty::Inside, value)),
    }
}

/// `--token value`, `--token=value`, `API_KEY=value`, and what is inside of others.
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

const TOKEN_BYTES: usize = 32;

/// The bearer token that every HTTP request must carry; made on first use. Processes that start at
/// the same moment get the same one.
///
/// # Errors
/// The file cannot be read or made, holds no token, or is open to other users.
pub fn token(paths: &Paths) -> Result<Secret, Error> {
    let path = paths.token();
    if let Some(bytes) = disk::read(&path)? {
        return existing(paths, bytes);
    }
    let fresh = fresh()?;
    match disk::create(&path, format!("{fresh}\n").as_bytes())? {
        Creation::Made => Ok(Secret(fresh)),
        Creation::WasThere => existing(paths, disk::read(&path)?.unwrap_or_default()),
    }
}

fn existing(paths: &Paths, bytes: Vec<u8>) -> Result<Secret, Error> {
    let path = paths.token();
    let shown = path.display();
    if disk::open_to_others(&path, 0o077) != 0 {
        // Narrowing the mode would not help: another user may have read the token already.
        let message = format!("other users can read or write the token file `{shown}`");
        return Err(Error::refused(
            message,
            format!("delete it to get a new token, or run `chmod 600 {shown}` to keep this one"),
        ));
    }
    let text = String::from_utf8(bytes).unwrap_or_default();
    match URL_SAFE_NO_PAD.decode(text.trim()) {
        Ok(bytes) if bytes.len() == TOKEN_BYTES => Ok(Secret(text.trim().to_owned())),
        Ok(_) | Err(_) => Err(Error::refused(
            format!("the token file `{shown}` does not hold a token of PML"),
            "delete it to get a new token",
        )),
    }
}

fn fresh() -> Result<String, Error> {
    loop {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::refused(
                format!("the system gave no random bytes for a token: {error}"),
                "check that the system's random source works",
            )
        })?;
        let token = URL_SAFE_NO_PAD.encode(bytes);
        // After `--token ` in a client's arguments a leading dash would be read as another option.
        if !token.starts_with('-') {
            return Ok(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    use super::*;

    fn paths(dir: &tempfile::TempDir) -> Paths {
        Paths { config: dir.path().join("pml.toml"), data: dir.path().join("data") }
    }

    #[test]
    fn a_secret_does_not_show() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{secret} {secret:?} {secret:#?}"), "(hidden) (hidden) (hidden)");
    }

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

    #[test]
    fn threads_that_start_together_agree_on_one_token() {
        for _ in 0..20 {
            let dir = tempfile::tempdir().unwrap();
            let paths = paths(&dir);
            let start = Barrier::new(8);
            let tokens: BTreeSet<String> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            start.wait();
                            token(&paths).unwrap().reveal().to_owned()
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(tokens.len(), 1);
            assert_eq!(tokens.first().unwrap(), token(&paths).unwrap().reveal());
            let left: Vec<_> = std::fs::read_dir(&paths.data).unwrap().collect();
            assert_eq!(left.len(), 1, "no half-made file stays behind");
        }
    }

    #[test]
    fn tokens_differ_between_installations() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_ne!(token(&paths(&one)).unwrap(), token(&paths(&other)).unwrap());
    }

    #[test]
    fn no_token_looks_like_an_option() {
        assert!((0..2_000).all(|_| !fresh().unwrap().starts_with('-')));
    }

    #[test]
    fn a_file_that_is_no_token_is_refused_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(&dir);
        token(&paths).unwrap();
        for bad in ["", "short\n", "not base64 !!!"] {
            std::fs::write(paths.token(), bad).unwrap();
            let error = token(&paths).unwrap_err().to_string();
            assert!(error.ends_with("does not hold a token of PML\nhint: delete it to get a new token"));
            assert_eq!(std::fs::read_to_string(paths.token()).unwrap(), bad);
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_token_is_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(&dir);
        token(&paths).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&paths.token()), mode(&paths.data)), (0o600, 0o700));

        std::fs::set_permissions(paths.token(), std::fs::Permissions::from_mode(0o644)).unwrap();
        let shown = paths.token().display().to_string();
        assert_eq!(
            token(&paths).unwrap_err().to_string(),
            format!(
                "other users can read or write the token file `{shown}`\n\
                 hint: delete it to get a new token, or run `chmod 600 {shown}` to keep this one"
            )
        );
    }
}
