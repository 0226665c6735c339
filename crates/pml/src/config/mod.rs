//! The user's configuration. Only this module reads the environment and configuration files.
//!
//! [`load`] reads everything once into [`Config`], a plain struct. It starts nothing, uses no network, and never
//! passes a text to a shell. A mistake in a file of the user's own is an [`Error`] with its position. A single
//! unusable server (a clash of names, an unset variable) is left out and listed in [`Config::problems`], and the
//! others stay usable.
//!
//! [`reference`] describes every key; `docs/configuration.md` is generated from it.
//!
//! `${VAR}` and `${file:path}` expand in `command`, `args`, `env`, `cwd`, `url`, `headers`, `bearer` and `key`; `$$`
//! is a dollar sign. Relative paths are resolved against the directory of the file that contains them. A project's
//! `pml.toml` or `.pml/pml.toml` may have `servers` only and takes effect once it is [trusted](trust). Rules about
//! tools may also stand in `mcp-permissions.yaml` beside the user's `pml.toml`.

mod approvals;
pub mod clients;
pub(crate) mod disk;
pub mod edit;
mod embedding;
mod error;
mod expectations;
pub mod import;
mod known_secrets;
mod launch;
mod limits;
mod load;
mod memory;
mod names;
mod node;
mod own;
mod paths;
mod permission;
mod prices;
pub mod reference;
mod secret;
mod section;
mod server;
mod settings;
mod sign_in;
mod speculation;
mod store;
mod telemetry;
mod token;
pub mod trust;
mod variables;
mod watch;
mod yaml;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pml_model::Digest;

pub use approvals::{ApprovalSettings, DynamicPolicy};
pub use embedding::{EmbeddingEndpoint, EmbeddingSettings};
pub use error::{ConfigComplaint, Error, LeftOutServer};
pub use expectations::{Expectation, read_expectations};
pub use known_secrets::known as known_secrets;
pub use launch::{BASE_VARIABLES, ConfigWarning, child_env, launch_digest, launch_warnings};
pub use limits::{Durability, LimitSettings, RunSettings};
pub use load::load;
pub use memory::MemorySettings;
pub use own::{OwnFiles, WideRoot, is_own_name, own_files, wide_root};
pub use paths::{Env, Paths};
pub use permission::{ApprovalMode, CallPermission, PermissionRule, RuleSubject, ToolScope, WildcardPattern};
pub use prices::{Price, PriceRule};
pub use secret::Secret;
pub use server::{DeclaredTransport, DefinitionPolicy, ServerConfig, ServerTransport, StartPolicy};
pub use settings::{BUILT_IN, BuiltinConfig, ClientSettings, Expose, ServeSettings, ToolNaming};
pub use sign_in::SignInSettings;
pub use speculation::{SpeculationPreset, SpeculationSettings};
pub use store::{StoreAddress, database_url, expand_variables, is_database_url};
pub use telemetry::TelemetryCollector;
pub use token::load_token;
pub use watch::{ConfigWatcher, POLL_INTERVAL};

/// The default timeout of one call.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest call of a server that reports progress, where nothing is configured.
pub const LONGEST_CALL: Duration = Duration::from_secs(3_600);
/// How long a client waits for a reply, where nothing is configured: most give up after a minute.
pub const CLIENT_WAIT: Duration = Duration::from_secs(45);
/// The default time for a server to become ready. It is long because `npx` downloads first.
pub const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Everything the user configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The usable servers, disabled ones included; no two names are confusable.
    pub servers: Vec<ServerConfig>,
    /// The tools that clients see, unless `clients` overrides it.
    pub expose: Expose,
    /// How long clients wait for a reply, unless `clients` overrides it.
    pub client_wait: Duration,
    /// Settings for single clients, by the names that clients give themselves.
    pub clients: BTreeMap<String, ClientSettings>,
    /// Settings of the built-in servers.
    pub builtin: BuiltinConfig,
    /// Settings of `pml serve`.
    pub serve: ServeSettings,
    /// How tools are named where all of them are listed.
    pub names: ToolNaming,
    /// Permission rules; no two have the same subject.
    pub permissions: Vec<PermissionRule>,
    /// What calls cost; no two have the same subject.
    pub prices: Vec<PriceRule>,
    /// Approval settings.
    pub approvals: ApprovalSettings,
    /// Learning and caching.
    pub memory: MemorySettings,
    /// Reads made before programs ask for them.
    pub speculation: SpeculationSettings,
    /// The embedding model.
    pub embedding: EmbeddingSettings,
    /// The address of the database server; `None` if the database is a file.
    pub store: Option<StoreAddress>,
    /// The collector that spans are sent to; `None` if none are.
    pub telemetry: Option<TelemetryCollector>,
    /// The limits of one run.
    pub limits: LimitSettings,
    /// How runs are stored and resumed.
    pub runs: RunSettings,
    /// What loading found beside the settings.
    pub findings: ConfigFindings,
}

/// What loading found in and about the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFindings {
    /// Every file that was read or looked for; the [`ConfigWatcher`] watches them.
    pub sources: Vec<ConfigSource>,
    /// Project files that are ignored because their present content is not trusted.
    pub untrusted: Vec<PathBuf>,
    /// Servers that were left out, with the reason.
    pub problems: Vec<LeftOutServer>,
    /// Findings that leave nothing out.
    pub warnings: Vec<ConfigWarning>,
}

impl Config {
    /// The tools that the client named `client` sees.
    pub fn expose_to(&self, client: &str) -> &Expose {
        self.clients.get(client).and_then(|client| client.expose.as_ref()).unwrap_or(&self.expose)
    }

    /// How long the client named `client` waits for a reply.
    pub fn wait_of(&self, client: &str) -> Duration {
        self.clients.get(client).and_then(|client| client.client_wait).unwrap_or(self.client_wait)
    }
}

/// A file and its content at the time it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSource {
    /// The path of the file.
    pub path: PathBuf,
    /// The digest of its content; `None` where it did not exist.
    pub digest: Option<Digest>,
}

#[cfg(test)]
mod tests;
