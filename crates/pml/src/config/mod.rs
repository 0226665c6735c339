//! What the user configured: the only reader of the environment and of config files.
//!
//! [`load`] reads everything once into [`Config`], a plain struct of meanings. It starts nothing,
//! reaches no network, and never hands a text to a shell. A mistake in a file of the user's own is an
//! [`Error`] with its place; a single server that cannot be used (a clash of names, a variable that is
//! not set) is left out and listed in [`Config::problems`], and the others stay usable.
//!
//! [`reference`] describes every key; `docs/configuration.md` is made from it.
//!
//! `${VAR}` and `${file:path}` expand in `command`, `args`, `env`, `cwd`, `url`, `headers`, `bearer` and `key`;
//! `$$` is a dollar sign. Relative paths are below the directory of the file that names them. A project's
//! `pml.toml` or `.pml/pml.toml` may have `servers` only and counts once it is [trusted](trust). Rules
//! about tools may also stand in `mcp-permissions.yaml` beside the user's `pml.toml`.

mod approvals;
pub(crate) mod disk;
pub mod edit;
mod embedding;
mod error;
mod expectations;
mod launch;
mod limits;
mod load;
mod memory;
mod names;
mod node;
mod own;
mod paths;
mod permission;
pub mod reference;
mod secret;
mod section;
mod server;
mod settings;
pub mod trust;
mod variables;
mod watch;
mod yaml;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pml_model::Digest;

pub use approvals::{Approvals, Dynamic};
pub use embedding::{Embedding, Endpoint};
pub use error::{Complaint, Error, Problem};
pub use expectations::{Expectation, expectations};
pub use launch::{BASE_VARIABLES, Warning, child_env, launch_digest, warnings};
pub use limits::{Durable, Limits, Runs};
pub use load::load;
pub use memory::Memory;
pub use own::{OwnFiles, TooWide, is_own_name, own_files, too_wide};
pub use paths::{Env, Paths};
pub use permission::{Approval, Mode, Pattern, Rule, Scope, Subject};
pub use secret::{Secret, known as known_secrets, token};
pub use server::{Declared, Definitions, Server, Start, Transport};
pub use settings::{BUILT_IN, Builtin, ClientSettings, Expose, Naming, Serve};
pub use watch::{POLL_INTERVAL, Watcher};

/// How long one call may take where the config does not say.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a server may take to be ready where the config does not say: `npx` downloads first.
pub const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Everything the user configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The usable servers, also those that are not enabled; no two names can be confused.
    pub servers: Vec<Server>,
    /// Which tools clients see, unless `clients` says otherwise for one.
    pub expose: Expose,
    /// What is said of certain clients, by the names they give themselves.
    pub clients: BTreeMap<String, ClientSettings>,
    /// Settings of the built-in servers.
    pub builtin: Builtin,
    /// Settings of `pml serve`.
    pub serve: Serve,
    /// How tools are named where all of them are shown.
    pub names: Naming,
    /// What programs may do with tools; no two rules are about the same tools.
    pub permissions: Vec<Rule>,
    /// Who is asked, and how.
    pub approvals: Approvals,
    /// What is remembered.
    pub memory: Memory,
    /// By which model it is told what texts mean.
    pub embedding: Embedding,
    /// What one run may use.
    pub limits: Limits,
    /// How runs are kept.
    pub runs: Runs,
    /// Every file that was read or looked for, for the [`Watcher`].
    pub sources: Vec<Source>,
    /// Project files that were found and do not count, because nobody trusts them as they are.
    pub untrusted: Vec<PathBuf>,
    /// Servers that were left out.
    pub problems: Vec<Problem>,
    /// What is not wrong enough to leave anything out.
    pub warnings: Vec<Warning>,
}

impl Config {
    /// Which tools the client that calls itself `client` sees.
    pub fn expose_to(&self, client: &str) -> &Expose {
        self.clients.get(client).and_then(|client| client.expose.as_ref()).unwrap_or(&self.expose)
    }
}

/// A file as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Where it is.
    pub path: PathBuf,
    /// Its content; `None` where it did not exist.
    pub digest: Option<Digest>,
}

#[cfg(test)]
mod tests;
