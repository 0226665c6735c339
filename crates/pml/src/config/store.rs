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
use crate::sanitise::{Certainty, KnownSecret};

/// The address of a database server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreAddress {
    /// The address, with its password.
    pub url: Secret,
    /// What in it is secret: the whole, the password, and what variables inserted.
    pub(super) secrets: Vec<KnownSecret>,
}

/// Reads the address of the database server; `None` if the database is a file. The other settings need not be valid,
/// so that keys can be revoked and the audit log be read all the same.
///
/// # Errors
/// The file mentions the store and is not TOML, or it names a server and its address cannot be read.
pub fn database_url(paths: &Paths, env: &Env) -> Result<Option<StoreAddress>, Error> {
    let Some(bytes) = disk::read(&paths.config)? else { return Ok(None) };
    let names_store = String::from_utf8_lossy(&bytes).contains("store");
    let file = ConfigFile::new(&paths.config, bytes, env)?;
    let root = match node::parse_toml(&file) {
        Ok(root) => root,
        // Of a broken file only this much is certain: what does not hold the word names no server.
        Err(_) if !names_store => return Ok(None),
        Err(complaint) => return Err(complaint.into()),
    };
    let root = Section::open(&file, &root, "")?;
    Ok(store(&root, env, &disk::parent(&file.path))?)
}

/// Whether a text is the address of a database on a server.
pub fn is_database_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// A text of the command line with its variables (`${NAME}`) replaced.
///
/// # Errors
/// A variable is not set or cannot be read.
pub fn expand_variables(text: &str, env: &Env, base: &Path) -> Result<String, Error> {
    let expanded = VariableExpander::new(env, base).expand(text);
    expanded.map_err(|ExpandError { message, hint }| Error::Refused { message, hint })
}

/// Reads `[store]`: the address of the database server, or `None` if the database is a file.
pub(super) fn store(
    root: &Section<'_>,
    env: &Env,
    base: &Path,
) -> Result<Option<StoreAddress>, ConfigComplaint> {
    let Some(table) = root.section("store", &reference::keys("store"))? else { return Ok(None) };
    let Some(url) = table.text("url")? else { return Ok(None) };
    let complaint = |message: String, hint: &str| {
        table.file.complaint(table.get("url").map_or(table.at, |node| node.at), message).hint(hint)
    };
    let mut variables = VariableExpander::new(env, base);
    let url = variables.expand(url).map_err(|ExpandError { message, hint }| complaint(message, &hint))?;
    if !is_database_url(&url) {
        // The text is not shown: it may hold a password.
        return Err(complaint(
            "`store.url` is no address of a PostgreSQL database".to_owned(),
            "write it as `postgres://user:password@host/database`",
        ));
    }
    let certain = |secret: String| KnownSecret::new(Certainty::Certain, secret);
    let mut secrets = variables.inserted_secrets;
    secrets.extend(pml_store::passwords_in(&url).into_iter().map(certain));
    secrets.push(certain(url.clone()));
    Ok(Some(StoreAddress { url: Secret::new(url), secrets }))
}
