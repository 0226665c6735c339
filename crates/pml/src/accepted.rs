//! Which commands a person has said may be started.
//!
//! A command that turns up in a configuration file while PML runs may have been written by anything
//! that can write files. It is started only after `pml add`, `pml accept` or a restart of PML.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pml_model::Digest;

use crate::config::Paths;
use crate::problem::{Code, Problem};

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
    pub fn read(&self) -> BTreeSet<Digest> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Adds commands.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn accept(&self, launches: impl Iterator<Item = Digest>) -> Result<(), Problem> {
        let mut all = self.read();
        let before = all.len();
        all.extend(launches);
        if all.len() == before {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&all).unwrap_or_default();
        self.write(&text).map_err(|error| {
            Problem::new(Code::Config, format!("cannot write `{}`: {error}", self.path.display()))
                .hint("check that the directory exists and is yours")
        })
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        use std::io::Write as _;
        let directory = self.path.parent().unwrap_or_else(|| std::path::Path::new("."));
        std::fs::create_dir_all(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}
