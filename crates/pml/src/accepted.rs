//! Which commands a person has said may be started, and which definitions of tools used.
//!
//! A command that turns up in a configuration file while PML runs may have been written by anything
//! that can write files. A running gateway starts it only after `pml add`, `pml accept` or a restart. A
//! command that a person types (`pml call`, `pml doctor`) is that person's word for itself. The definitions a server first
//! tells are accepted with it; those that come later wait for a word of their own.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pml_model::{Digest, Principal, ToolId};
use pml_store::{Acceptance, Audit, Store};
use serde_json::json;

use crate::catalogue::{HeldBack, Why};
use crate::clock::now_ms;
use crate::config::{self, Paths};
use crate::problem::{Code, Problem};
use crate::tools::Toolset;

/// The list, in a file of its own.
#[derive(Debug)]
pub struct Accepted {
    path: PathBuf,
}

impl Accepted {
    /// The list of this installation.
    pub fn open(paths: &Paths) -> Accepted {
        Accepted { path: paths.data.join("accepted.json") }
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Every accepted command, by the digest of how it is started.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn read(&self) -> Result<BTreeSet<Digest>, Problem> {
        self.list().map_err(|error| {
            Problem::new(Code::Config, format!("cannot read `{}`: {error}", self.path.display()))
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
            Problem::new(Code::Config, format!("cannot add to `{}`: {error}", self.path.display()))
                .hint("check that it is yours, or delete it and accept the commands again")
        })
    }

    fn add(&self, launches: impl Iterator<Item = Digest>) -> std::io::Result<()> {
        let directory = self.path.parent().unwrap_or_else(|| std::path::Path::new("."));
        std::fs::create_dir_all(directory)?;
        // Two that add at once would each leave out what the other added.
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

/// Accepts definitions of `server` as they were seen, `by` whom; gives the tools that are other ones by now, of which nothing
/// is accepted. Running gateways take it over.
///
/// # Errors
/// It cannot be stored.
pub async fn definitions(
    (toolset, store, principal): (&Toolset, &Store, &Principal),
    server: &config::Server,
    seen: &[HeldBack],
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
    let before = |held: &HeldBack| match &held.why {
        Why::Changed { accepted, .. } => Some(accepted.clone()),
        Why::New | Why::Alike { .. } | Why::Unusable(_) => None,
    };
    let tools: Vec<_> = seen
        .iter()
        .map(|held| json!({ "tool": held.id, "before": before(held), "definition": held.definition.digest }))
        .collect();
    let body = json!({ "server": server.name, "tools": tools, "by": by });
    let audit = Audit { at: now, principal: principal.clone(), run: None, kind: "accepted", body };
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
                let accepted = Accepted { path: path.clone() };
                scope.spawn(move || accepted.accept(std::iter::once(digest(n))).unwrap());
            }
        });
        let accepted = Accepted { path };
        assert_eq!(accepted.read(), Ok((0..20).map(digest).collect()));

        std::fs::write(accepted.path(), "damaged").unwrap();
        assert!(accepted.read().is_err());
        assert!(accepted.accept([digest(1)].into_iter()).is_err(), "what was accepted is not written over");
    }
}
