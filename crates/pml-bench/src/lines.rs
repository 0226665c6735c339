//! Reads data sets: files with a JSON object in each line.

use std::path::Path;

use pml::problem::Problem;
use serde::de::DeserializeOwned;

use crate::figure::failed;

/// The lines of a file, each a JSON object.
pub(crate) fn json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Problem> {
    let text =
        std::fs::read_to_string(path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
    json_lines_of(&text, &path.display().to_string())
}

/// The lines of a text, each a JSON object.
pub(crate) fn json_lines_of<T: DeserializeOwned>(text: &str, name: &str) -> Result<Vec<T>, Problem> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| failed(format!("{name}:{}: {error}", number + 1)))
        })
        .collect()
}
