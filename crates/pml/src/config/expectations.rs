//! Policy expectations: a file of tool patterns with the permission that each should have.
//!
//! It changes nothing and is read only when it is named, so that rules can be tested like programs.

use std::path::Path;

use super::error::{ConfigComplaint, Error};
use super::node::{self, ConfigFile, ConfigMember};
use super::paths::Env;
use super::permission::{CallPermission, RuleSubject, read_subject};
use super::section::Section;
use super::{disk, yaml};

/// The expected permission of some tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The pattern as written.
    pub subject_text: String,
    /// The tools it covers.
    pub subject: RuleSubject,
    /// The expected permission.
    pub mode: CallPermission,
    /// File and line, for messages.
    pub place: String,
}

/// Reads a file of expectations: TOML, or YAML by its extension.
///
/// # Errors
/// There is no such file, or its content is invalid; the error names the first invalid position.
pub fn read_expectations(path: &Path, env: &Env) -> Result<Vec<Expectation>, Error> {
    let Some(bytes) = disk::read(path)? else {
        let example = "write lines such as `\"github:search_*\" = \"auto\"` into it";
        return Err(Error::refused(format!("there is no file `{}`", env.display_path(path)), example));
    };
    let file = ConfigFile::new(path, bytes, env)?;
    let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    let root = if is_yaml { yaml::parse_yaml(&file)? } else { node::parse_toml(&file)? };
    let root = Section::open(&file, &root, "")?;
    let mut all: Vec<Expectation> = Vec::new();
    for member in root.members() {
        let expectation = expectation(&root, member)?;
        if let Some(other) = all.iter().find(|other| other.subject == expectation.subject) {
            let message = format!("`{}` is about the same tools as {}", member.key, other.place);
            return Err(file.complaint(member.key_at, message).hint("keep one of them").into());
        }
        all.push(expectation);
    }
    Ok(all)
}

fn expectation(root: &Section<'_>, member: &ConfigMember) -> Result<Expectation, ConfigComplaint> {
    let file = root.file;
    let mode = match root.text(&member.key)? {
        Some("auto") => CallPermission::Auto,
        Some("hil") => CallPermission::Ask,
        Some("deny") => CallPermission::Deny,
        other => {
            let message = format!("`{}` is `{}`", member.key, other.unwrap_or_default());
            return Err(file.complaint(member.node.at, message).hint("write \"auto\", \"hil\" or \"deny\""));
        }
    };
    let place = file.complaint(member.key_at, "");
    Ok(Expectation {
        subject_text: member.key.clone(),
        subject: read_subject(file, member)?,
        mode,
        place: format!("{}:{}", place.shown_path, place.line),
    })
}
