//! Servers that live inside the program, so that a fresh machine has something to run.
//!
//! They are called as any downstream server is: arguments come as JSON text, answers are MCP tool results, and a
//! tool that cannot do its work says so in the result. They touch only what [`Settings`] names: without a root
//! there is no `fs`, without hosts there is no `http`. They keep no state between calls and never ask anybody.

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

pub use http::BadHost;
pub use stamp::{Stamp, Witness};
use tool::Tool;

/// What the built-in servers may touch.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The directory `fs` works below; none, and there is no `fs`.
    pub fs_root: Option<PathBuf>,
    /// What `fs` never reaches, whatever its root.
    pub own: OwnFiles,
    /// What `http` may talk to; empty, and there is no `http`. Each entry is one of
    /// `api.example.com` (this host), `*.example.com` (every host below it), `*` (every host),
    /// all three at public addresses and the usual ports only, or an origin such as
    /// `http://127.0.0.1:8080`: exactly this scheme, host and port, wherever its address lies.
    pub http_hosts: Vec<String>,
}

/// Why the built-in servers cannot be offered as configured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The root of `fs` is no directory that can be opened.
    #[error("cannot open `{path}`: {reason}; create the directory or change `[builtin.fs] root`", path = path.display())]
    Root {
        /// The root as configured.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// An entry of the host list means nothing.
    #[error(transparent)]
    Host(#[from] BadHost),
}

/// A tool that a built-in server does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the built-in server `{server}` has no tool `{tool}`; it has {known}")]
pub struct UnknownTool {
    /// The server asked.
    pub server: &'static str,
    /// The name asked for.
    pub tool: String,
    /// The names there are.
    pub known: String,
}

/// One built-in server.
pub struct Server {
    name: &'static str,
    description: &'static str,
    tools: Vec<Tool>,
    /// The directory it reads below, where it reads files.
    root: Option<Arc<fs::Root>>,
}

/// The built-in servers that `settings` allow.
///
/// # Errors
/// The root of `fs` cannot be opened, or an entry of the host list cannot be understood.
pub fn servers(settings: &Settings) -> Result<Vec<Server>, Error> {
    let mut servers = Vec::with_capacity(7);
    let plain = |name, description, tools| Server { name, description, tools, root: None };
    if let Some(root) = &settings.fs_root {
        let (root, tools) = fs::tools(root, &settings.own)?;
        servers.push(Server {
            name: "fs",
            description: "Reads, searches and changes the files below one directory.",
            tools,
            root: Some(root),
        });
    }
    servers.extend([
        plain("json", "Parses, writes and queries JSON without changing its numbers.", json::tools()),
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

impl Server {
    /// The name tools are found under.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the server is for, in one sentence.
    pub fn description(&self) -> &'static str {
        self.description
    }

    /// Its tools.
    pub fn definitions(&self) -> Vec<Definition> {
        self.tools.iter().map(|tool| tool.definition.clone()).collect()
    }

    /// Calls `tool` and gives its MCP result, in which a failure of the tool is marked `isError`.
    /// Dropping the future ends the work soon, though a file that is being written is written whole.
    /// Needs a Tokio runtime with timers and I/O.
    ///
    /// # Errors
    /// There is no such tool.
    pub async fn call(&self, tool: &str, arguments: &RawValue) -> Result<Box<RawValue>, UnknownTool> {
        self.call_watched(tool, arguments, None).await
    }

    /// As [`Server::call`]; `witness` notes the files and directories that are read.
    ///
    /// # Errors
    /// There is no such tool.
    pub async fn call_watched(
        &self,
        tool: &str,
        arguments: &RawValue,
        witness: Option<&Witness>,
    ) -> Result<Box<RawValue>, UnknownTool> {
        match self.tools.iter().find(|known| known.definition.name == tool) {
            Some(tool) => Ok(tool.call(arguments, witness.filter(|_| self.root.is_some())).await),
            None => Err(self.unknown(tool)),
        }
    }

    /// Whether the files and directories that were noted are still what they were. Waits for the file system.
    pub fn holds(&self, stamps: &[Stamp]) -> bool {
        stamps.is_empty() || self.root.as_ref().is_some_and(|root| stamp::hold(&root.dir, stamps))
    }

    fn unknown(&self, tool: &str) -> UnknownTool {
        let known: Vec<String> =
            self.tools.iter().map(|tool| format!("`{}`", tool.definition.name)).collect();
        UnknownTool { server: self.name, tool: pml_model::name::printable(tool), known: known.join(", ") }
    }
}
