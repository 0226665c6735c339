//! What the user expects of their rules: a file of tools and whether programs may call them.
//!
//! It changes nothing and is read only when it is named, so that rules can be checked as programs are.

use std::path::Path;

use super::error::{Complaint, Error};
use super::node::{self, File, Member};
use super::paths::Env;
use super::permission::{Mode, Subject, subject};
use super::section::Section;
use super::{disk, yaml};

/// What is expected of some tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The tools as the file names them.
    pub written: String,
    /// Which tools.
    pub subject: Subject,
    /// What programs may do with them.
    pub mode: Mode,
    /// Its file and line.
    pub place: String,
}

/// Reads a file of expectations: TOML, or YAML where its name says so.
///
/// # Errors
/// There is no such file, or its content is wrong; the first such place is told.
pub fn expectations(path: &Path, env: &Env) -> Result<Vec<Expectation>, Error> {
    let Some(bytes) = disk::read(path)? else {
        let example = "write lines such as `\"github:search_*\" = \"auto\"` into it";
        return Err(Error::refused(format!("there is no file `{}`", env.shown(path)), example));
    };
    let file = File::new(path, bytes, env)?;
    let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    let root = if is_yaml { yaml::yaml(&file)? } else { node::toml(&file)? };
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

fn expectation(root: &Section<'_>, member: &Member) -> Result<Expectation, Complaint> {
    let file = root.file;
    let mode = match root.text(&member.key)? {
        Some("auto") => Mode::Auto,
        Some("hil") => Mode::Ask,
        Some("deny") => Mode::Deny,
        other => {
            let message = format!("`{}` is `{}`", member.key, other.unwrap_or_default());
            return Err(file.complaint(member.node.at, message).hint("write \"auto\", \"hil\" or \"deny\""));
        }
    };
    let place = file.complaint(member.key_at, "");
    Ok(Expectation {
        written: member.key.clone(),
        subject: subject(file, member)?,
        mode,
        place: format!("{}:{}", place.shown, place.line),
    })
}
