//! The database: `[store]`.

use std::path::Path;

use super::disk;
use super::error::{ConfigComplaint, Error};
use super::node::{self, ConfigFile};
use super::paths::{Env, Paths};
use super::reference;
use super::secret::Secret;
use super::section::Section;
use super::variables::{ExpandError, VariableExpander};

/// Reads the address of the database server; `None` if the database is a file. Nothing else of the configuration has
/// to be valid, so that keys can be revoked and the audit log be read all the same.
///
/// # Errors
/// The file names a server, and its address cannot be read.
pub fn database_url(paths: &Paths, env: &Env) -> Result<Option<Secret>, Error> {
    let Some(bytes) = disk::read(&paths.config)? else { return Ok(None) };
    let names_server = String::from_utf8_lossy(&bytes).lines().any(|line| line.trim() == "[store]");
    if !names_server {
        return Ok(None);
    }
    let file = ConfigFile::new(&paths.config, bytes, env)?;
    let root = node::parse_toml(&file)?;
    let root = Section::open(&file, &root, "")?;
    Ok(store(&root, env, &disk::parent(&file.path))?)
}

/// Reads `[store]`: the address of the database server, or `None` if the database is a file.
pub(super) fn store(root: &Section<'_>, env: &Env, base: &Path) -> Result<Option<Secret>, ConfigComplaint> {
    let Some(table) = root.section("store", &reference::keys("store"))? else { return Ok(None) };
    let Some(url) = table.text("url")? else { return Ok(None) };
    let complaint = |message: String, hint: &str| {
        table.file.complaint(table.get("url").map_or(table.at, |node| node.at), message).hint(hint)
    };
    let url = VariableExpander::new(env, base)
        .expand(url)
        .map_err(|ExpandError { message, hint }| complaint(message, &hint))?;
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        // The text is not shown: it may hold a password.
        return Err(complaint(
            "`store.url` is no address of a PostgreSQL database".to_owned(),
            "write it as `postgres://user:password@host/database`",
        ));
    }
    Ok(Some(Secret::new(url)))
}
