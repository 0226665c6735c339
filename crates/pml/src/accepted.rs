//! The commands that a person accepted to be started, and the tool definitions accepted to be used.
//!
//! A command that appears in a configuration file while PML runs may have been written by anything that can write
//! files. A running gateway starts it only after `pml add`, `pml accept` or a restart. A command that a person types
//! (`pml call`, `pml doctor`) counts as accepted by that. The definitions in a server's first manifest are accepted
//! with the server; later ones need acceptance of their own.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pml_model::{Digest, Principal, ToolId};
use pml_store::{Acceptance, NewAuditEntry, Store};
use serde_json::json;

use crate::catalogue::{QuarantineReason, QuarantinedTool};
use crate::clock::now_ms;
use crate::config::{self, Paths};
use crate::problem::{ErrorCode, Problem};
use crate::tools::Toolset;

/// The list of accepted commands, in a file of its own.
#[derive(Debug)]
pub struct AcceptedCommands {
    path: PathBuf,
}

impl AcceptedCommands {
    /// The list of this installation.
    pub fn open(paths: &Paths) -> AcceptedCommands {
        AcceptedCommands { path: paths.data.join("accepted.json") }
    }

    /// The path of the file.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Every accepted command, by launch digest.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn read(&self) -> Result<BTreeSet<Digest>, Problem> {
        self.list().map_err(|error| {
            Problem::new(ErrorCode::Config, format!("cannot read `{}`: {error}", self.path.display()))
                .hint("mend it, or delete it and accept the commands again")
        })
    }

    fn list(&self) -> std::io::Result<BTreeSet<Digest>> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        }
    }

    /// Adds commands.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn accept(&self, launches: impl Iterator<Item = Digest>) -> Result<(), Problem> {
        self.add(launches).map_err(|error| {
            Problem::new(ErrorCode::Config, format!("cannot add to `{}`: {error}", self.path.display()))
                .hint("check that it is yours, or delete it and accept the commands again")
        })
    }

    fn add(&self, launches: impl Iterator<Item = Digest>) -> std::io::Result<()> {
        let directory = self.path.parent().unwrap_or_else(|| std::path::Path::new("."));
        std::fs::create_dir_all(directory)?;
        // Without the lock, two concurrent writers would each drop what the other added.
        let lock = std::fs::File::create(self.path.with_extension("lock"))?;
        lock.lock()?;
        let mut all = self.list()?;
        let before = all.len();
        all.extend(launches);
        if all.len() == before {
            return Ok(());
        }
        self.write(directory, &serde_json::to_string_pretty(&all).unwrap_or_default())
    }

    fn write(&self, directory: &std::path::Path, text: &str) -> std::io::Result<()> {
        use std::io::Write as _;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}

/// Accepts definitions of `server` as they were shown, on behalf of `by`. Returns the tools whose definitions have
/// changed since; nothing is accepted for those. Running gateways pick up the change.
///
/// # Errors
/// The acceptance cannot be stored.
pub async fn accept_definitions(
    (toolset, store, principal): (&Toolset, &Store, &Principal),
    server: &config::ServerConfig,
    seen: &[QuarantinedTool],
    by: &str,
) -> Result<Vec<ToolId>, Problem> {
    if seen.is_empty() {
        return Ok(Vec::new());
    }
    let now = now_ms();
    let acceptance = Acceptance {
        principal: principal.clone(),
        server: server.name.clone(),
        launch: config::launch_digest(server),
        tools: seen.iter().map(|held| (held.id.tool.clone(), held.definition.digest.clone())).collect(),
        now,
    };
    let before = |held: &QuarantinedTool| match &held.reason {
        QuarantineReason::Changed { accepted, .. } => Some(accepted.clone()),
        QuarantineReason::New | QuarantineReason::LookAlike { .. } | QuarantineReason::Unusable(_) => None,
    };
    let tools: Vec<_> = seen
        .iter()
        .map(|held| json!({ "tool": held.id, "before": before(held), "definition": held.definition.digest }))
        .collect();
    let body = json!({ "server": server.name, "tools": tools, "by": by });
    let audit = NewAuditEntry { at: now, principal: principal.clone(), run: None, kind: "accepted", body };
    let other = store.accept_definitions(acceptance, vec![audit]).await?;
    toolset.refresh().await?;
    Ok(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_accept_at_once_is_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("below").join("accepted.json");
        let digest = |n: u8| Digest::of(&[n]);
        std::thread::scope(|scope| {
            for n in 0..20 {
                let accepted = AcceptedCommands { path: path.clone() };
                scope.spawn(move || accepted.accept(std::iter::once(digest(n))).unwrap());
            }
        });
        let accepted = AcceptedCommands { path };
        assert_eq!(accepted.read(), Ok((0..20).map(digest).collect()));

        std::fs::write(accepted.path(), "damaged").unwrap();
        assert!(accepted.read().is_err());
        assert!(accepted.accept([digest(1)].into_iter()).is_err(), "what was accepted is not written over");
    }
}
