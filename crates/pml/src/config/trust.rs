//! Which projects' configs count.
//!
//! A file that comes with a repository can name programs to start, so it counts only after the user
//! said so, and only as it was then: trust is in the content, and one changed byte ends it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pml_model::Digest;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::paths::Paths;
use super::{Source, disk};

/// Where a project may have its config.
const PLACES: &[&str] = &["pml.toml", ".pml/pml.toml"];

/// A project's config as it is now. Whoever asks a human to trust it shows `content`, and [`trust`]
/// trusts exactly that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The file.
    pub path: PathBuf,
    /// Its bytes.
    pub content: Vec<u8>,
}

impl Project {
    /// The configs in `dir` itself.
    ///
    /// # Errors
    /// The directory or a file in it cannot be read.
    pub fn find(dir: &Path) -> Result<Vec<Project>, Error> {
        let dir = fs::canonicalize(dir).map_err(Error::io("open", dir))?;
        let mut found = Vec::new();
        for place in PLACES {
            let path = dir.join(place);
            if let Some(content) = disk::read(&path)? {
                found.push(Project { path, content });
            }
        }
        Ok(found)
    }

    /// The configs in `dir` and its parents, nearest first, without the user's own.
    pub(super) fn around(dir: &Path, paths: &Paths) -> Result<Vec<Project>, Error> {
        let dir = fs::canonicalize(dir).map_err(Error::io("open", dir))?;
        let own = fs::canonicalize(&paths.config).unwrap_or_else(|_| paths.config.clone());
        let mut found = Vec::new();
        for dir in dir.ancestors() {
            // A parent that this user may not look into holds nothing of theirs.
            found.extend(Project::find(dir).unwrap_or_default());
        }
        found.retain(|project| fs::canonicalize(&project.path).map_or(true, |path| path != own));
        Ok(found)
    }

    /// What trust in it is bound to.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.content)
    }

    pub(super) fn source(&self) -> Source {
        Source { path: self.path.clone(), digest: Some(self.digest()) }
    }

    fn key(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// Lets `project` count from now on, as it is.
///
/// # Errors
/// The list of trusted files cannot be read or written.
pub fn trust(paths: &Paths, project: &Project) -> Result<(), Error> {
    let mut store = Store::open(paths)?;
    store.list.trusted.insert(project.key(), project.digest());
    store.save()
}

/// Lets no config of the project in `dir` count any more; says whether one did.
///
/// # Errors
/// The list of trusted files cannot be read or written.
pub fn untrust(paths: &Paths, dir: &Path) -> Result<bool, Error> {
    // The directory may be gone already.
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let mut store = Store::open(paths)?;
    let before = store.list.trusted.len();
    store.list.trusted.retain(|file, _| !PLACES.iter().any(|place| Path::new(file) == dir.join(place)));
    if store.list.trusted.len() == before {
        return Ok(false);
    }
    store.save().map(|()| true)
}

/// Whether `project` counts as it is.
///
/// # Errors
/// The list of trusted files cannot be read.
pub fn is_trusted(paths: &Paths, project: &Project) -> Result<bool, Error> {
    Ok(Store::open(paths)?.has(project))
}

/// The directory that relative paths in the config `file` are below: for `.pml/pml.toml` the project's.
pub(super) fn base(file: &Path) -> PathBuf {
    let dir = disk::parent(file);
    if dir.file_name().is_some_and(|name| name == ".pml") { disk::parent(&dir) } else { dir }
}

/// The list of trusted files.
pub(super) struct Store {
    source: Source,
    list: List,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Digest of the content by path.
    trusted: BTreeMap<String, Digest>,
}

impl Store {
    pub(super) fn open(paths: &Paths) -> Result<Store, Error> {
        let path = paths.trust();
        let bytes = disk::read(&path)?;
        if disk::open_to_others(&path, 0o022) != 0 {
            let shown = path.display();
            return Err(Error::refused(
                format!("other users can write `{shown}`, which says what projects you trust"),
                format!("check its content and run `chmod 600 {shown}`"),
            ));
        }
        let list = match &bytes {
            None => List::default(),
            Some(bytes) => serde_json::from_slice(bytes).map_err(|error| {
                Error::refused(
                    format!("`{}` is damaged: {error}", path.display()),
                    "delete it and trust your projects again with `pml trust <dir>`",
                )
            })?,
        };
        Ok(Store { source: Source { path, digest: bytes.as_deref().map(Digest::of) }, list })
    }

    pub(super) fn has(&self, project: &Project) -> bool {
        self.list.trusted.get(&project.key()) == Some(&project.digest())
    }

    pub(super) fn source(&self) -> Source {
        self.source.clone()
    }

    fn save(&self) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(&self.list).expect("texts in a map serialise to JSON");
        disk::replace(&self.source.path, format!("{text}\n").as_bytes())
    }
}
