//! The built-in servers, so that a fresh machine has tools to run.
//!
//! They are called like any downstream server: arguments are JSON text, results are MCP tool results, and a tool that
//! fails says so in its result. They reach only what [`BuiltinSettings`] names: without a root there is no `fs`,
//! without hosts there is no `http`. They keep no state between calls and ask no questions.

mod csv;
mod fs;
mod http;
mod json;
mod math;
mod stamp;
mod text;
mod time;
mod tool;

#[cfg(test)]
mod check;

use std::path::PathBuf;
use std::sync::Arc;

use pml_model::Definition;
use serde_json::value::RawValue;

use crate::config::OwnFiles;

pub use fs::{FsChange, FsOverlay, OverlayAnswer, OverlayBase};
pub use http::InvalidHostEntry;
pub use stamp::{PathStamp, ReadRecorder};
use tool::BuiltinTool;

/// What the built-in servers may reach.
#[derive(Debug, Clone, Default)]
pub struct BuiltinSettings {
    /// The directory that `fs` is confined to; `None` disables `fs`.
    pub fs_root: Option<PathBuf>,
    /// Files that `fs` never reaches, whatever its root.
    pub own_files: OwnFiles,
    /// What `http` may connect to; an empty list disables `http`. Each entry is one of `api.example.com` (this host),
    /// `*.example.com` (every host below it), `*` (every host), all three at public addresses and the usual ports
    /// only, or an origin such as `http://127.0.0.1:8080`: exactly this scheme, host and port, at any address.
    pub http_hosts: Vec<String>,
}

/// Why the built-in servers cannot be offered as configured.
#[derive(Debug, thiserror::Error)]
pub enum BuiltinError {
    /// The root of `fs` cannot be opened as a directory.
    #[error("cannot open `{path}`: {reason}; create the directory or change `[builtin.fs] root`", path = path.display())]
    Root {
        /// The root as configured.
        path: PathBuf,
        /// The error of the system.
        reason: std::io::Error,
    },
    /// An entry of the host list is invalid.
    #[error(transparent)]
    Host(#[from] InvalidHostEntry),
}

/// The requested tool does not exist on a built-in server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the built-in server `{server}` has no tool `{tool}`; it has {known}")]
pub struct UnknownBuiltinTool {
    /// The server that was called.
    pub server: &'static str,
    /// The requested name.
    pub tool: String,
    /// The names of the existing tools.
    pub known: String,
}

/// One built-in server.
pub struct BuiltinServer {
    name: &'static str,
    description: &'static str,
    tools: Vec<BuiltinTool>,
    /// The directory it is confined to, where it reads files.
    root: Option<Arc<fs::FsRoot>>,
}

/// The built-in servers that `settings` enable.
///
/// # Errors
/// The root of `fs` cannot be opened, or an entry of the host list is invalid.
pub fn servers(settings: &BuiltinSettings) -> Result<Vec<BuiltinServer>, BuiltinError> {
    let mut servers = Vec::with_capacity(7);
    let plain = |name, description, tools| BuiltinServer { name, description, tools, root: None };
    if let Some(root) = &settings.fs_root {
        let (root, tools) = fs::tools(root, &settings.own_files)?;
        servers.push(BuiltinServer {
            name: "fs",
            description: "Reads, searches and changes the files below one directory.",
            tools,
            root: Some(root),
        });
    }
    servers.extend([
        plain("json", "Parses, writes, queries and checks JSON without changing its numbers.", json::tools()),
        plain("text", "Splits, joins, replaces, matches, compares and counts text.", text::tools()),
        plain("csv", "Turns CSV into rows and rows into CSV.", csv::tools()),
        plain("time", "Tells the time and calculates with dates and time zones.", time::tools()),
        plain("math", "Evaluates arithmetic, rounds, and summarises lists of numbers.", math::tools()),
    ]);
    if !settings.http_hosts.is_empty() {
        let tools = http::tools(&settings.http_hosts)?;
        servers.push(plain("http", "Makes HTTP requests to the hosts the operator allowed.", tools));
    }
    Ok(servers)
}

impl BuiltinServer {
    /// The server name in `server:tool`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the server is for, in one sentence.
    pub fn description(&self) -> &'static str {
        self.description
    }

    /// The definitions of its tools.
    pub fn definitions(&self) -> Vec<Definition> {
        self.tools.iter().map(|tool| tool.definition.clone()).collect()
    }

    /// Calls `tool` and returns its MCP result, in which a failure of the tool is marked `isError`. Dropping the
    /// future ends the work soon, though a file that is being written is written completely. Needs a Tokio runtime
    /// with timers and I/O.
    ///
    /// # Errors
    /// There is no such tool.
    pub async fn call(&self, tool: &str, arguments: &RawValue) -> Result<Box<RawValue>, UnknownBuiltinTool> {
        self.call_recorded(tool, arguments, None).await
    }

    /// As [`BuiltinServer::call`]; `witness` records the files and directories that are read.
    ///
    /// # Errors
    /// There is no such tool.
    pub async fn call_recorded(
        &self,
        tool: &str,
        arguments: &RawValue,
        witness: Option<&ReadRecorder>,
    ) -> Result<Box<RawValue>, UnknownBuiltinTool> {
        match self.tools.iter().find(|known| known.definition.name == tool) {
            Some(tool) => Ok(tool.call(arguments, witness.filter(|_| self.root.is_some())).await),
            None => Err(self.unknown(tool)),
        }
    }

    /// Whether the recorded files and directories are unchanged. Blocks on the file system.
    pub fn stamps_hold(&self, stamps: &[PathStamp]) -> bool {
        stamps.is_empty() || self.root.as_ref().is_some_and(|root| stamp::stamps_match(&root.dir, stamps))
    }

    /// An overlay over the files of the server, for a dry run; `None` if it has none.
    pub fn overlay(&self, base: OverlayBase) -> Option<FsOverlay> {
        self.root.as_ref().map(|root| FsOverlay::new(Arc::clone(root), base))
    }

    fn unknown(&self, tool: &str) -> UnknownBuiltinTool {
        let known: Vec<String> =
            self.tools.iter().map(|tool| format!("`{}`", tool.definition.name)).collect();
        UnknownBuiltinTool {
            server: self.name,
            tool: pml_model::name::printable(tool),
            known: known.join(", "),
        }
    }
}
