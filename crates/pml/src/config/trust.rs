//! Trust in the configurations of projects.
//!
//! A file in a repository can name programs to start, so it takes effect only after the user trusted it, and only
//! with that content: one changed byte ends the trust.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pml_model::Digest;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::paths::Paths;
use super::{ConfigSource, disk};

/// The paths of a project's configuration, relative to the project.
const PLACES: &[&str] = &["pml.toml", ".pml/pml.toml"];

/// A project's configuration with its present content. The caller shows `content` to the user, and [`trust`] trusts
/// exactly that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectConfig {
    /// The path of the file.
    pub path: PathBuf,
    /// The bytes of the file.
    pub content: Vec<u8>,
}

impl ProjectConfig {
    /// The configurations in `dir` itself.
    ///
    /// # Errors
    /// The directory or a file in it cannot be read.
    pub fn find(dir: &Path) -> Result<Vec<ProjectConfig>, Error> {
        let dir = fs::canonicalize(dir).map_err(Error::io("open", dir))?;
        let mut found = Vec::new();
        for place in PLACES {
            let path = dir.join(place);
            if let Some(content) = disk::read(&path)? {
                found.push(ProjectConfig { path, content });
            }
        }
        Ok(found)
    }

    /// The configurations in `dir` and its parents, nearest first, without the user's own.
    pub(super) fn find_upwards(dir: &Path, paths: &Paths) -> Result<Vec<ProjectConfig>, Error> {
        let dir = fs::canonicalize(dir).map_err(Error::io("open", dir))?;
        let own = fs::canonicalize(&paths.config).unwrap_or_else(|_| paths.config.clone());
        let mut found = Vec::new();
        for dir in dir.ancestors() {
            // A parent that this user may not read contains nothing of theirs.
            found.extend(ProjectConfig::find(dir).unwrap_or_default());
        }
        found.retain(|project| fs::canonicalize(&project.path).map_or(true, |path| path != own));
        Ok(found)
    }

    /// The digest that trust is bound to.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.content)
    }

    pub(super) fn source(&self) -> ConfigSource {
        ConfigSource { path: self.path.clone(), digest: Some(self.digest()) }
    }

    fn key(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// Trusts `project` with its present content.
///
/// # Errors
/// The list of trusted files cannot be read or written.
pub fn trust(paths: &Paths, project: &ProjectConfig) -> Result<(), Error> {
    let mut store = TrustStore::open(paths)?;
    store.list.trusted.insert(project.key(), project.digest());
    store.save()
}

/// Ends the trust in all configurations of the project in `dir`; returns whether there was any.
///
/// # Errors
/// The list of trusted files cannot be read or written.
pub fn untrust(paths: &Paths, dir: &Path) -> Result<bool, Error> {
    // The directory may not exist any more.
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let mut store = TrustStore::open(paths)?;
    let before = store.list.trusted.len();
    store.list.trusted.retain(|file, _| !PLACES.iter().any(|place| Path::new(file) == dir.join(place)));
    if store.list.trusted.len() == before {
        return Ok(false);
    }
    store.save().map(|()| true)
}

/// Whether `project` is trusted with its present content.
///
/// # Errors
/// The list of trusted files cannot be read.
pub fn is_trusted(paths: &Paths, project: &ProjectConfig) -> Result<bool, Error> {
    Ok(TrustStore::open(paths)?.trusts(project))
}

/// The directory that relative paths in the configuration `file` are resolved against: for `.pml/pml.toml` the
/// project's.
pub(super) fn base_dir(file: &Path) -> PathBuf {
    let dir = disk::parent(file);
    if dir.file_name().is_some_and(|name| name == ".pml") { disk::parent(&dir) } else { dir }
}

/// The list of trusted files.
pub(super) struct TrustStore {
    source: ConfigSource,
    list: TrustList,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustList {
    /// Digest of the content by path.
    trusted: BTreeMap<String, Digest>,
}

impl TrustStore {
    pub(super) fn open(paths: &Paths) -> Result<TrustStore, Error> {
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
            None => TrustList::default(),
            Some(bytes) => serde_json::from_slice(bytes).map_err(|error| {
                Error::refused(
                    format!("`{}` is damaged: {error}", path.display()),
                    "delete it and trust your projects again with `pml trust <dir>`",
                )
            })?,
        };
        Ok(TrustStore { source: ConfigSource { path, digest: bytes.as_deref().map(Digest::of) }, list })
    }

    pub(super) fn trusts(&self, project: &ProjectConfig) -> bool {
        self.list.trusted.get(&project.key()) == Some(&project.digest())
    }

    pub(super) fn source(&self) -> ConfigSource {
        self.source.clone()
    }

    fn save(&self) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(&self.list).expect("texts in a map serialise to JSON");
        disk::replace(&self.source.path, format!("{text}\n").as_bytes())
    }
}
