//! Capabilities as skill folders: `SKILL.md` and the program, for agents that read those.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pml_model::capability::CapabilitySource;
use pml_model::name::printable;
use serde_json::Value;

use crate::package::{PackageContent, PackagedCapability};
use crate::problem::{ErrorCode, Problem};

/// Writes a folder per capability below `directory`, and returns the paths of the files.
pub(super) fn write(directory: &Path, content: &PackageContent) -> Result<Vec<PathBuf>, Problem> {
    let mut written = Vec::new();
    let mut taken = HashSet::new();
    for one in &content.capabilities {
        let skill_name = free_folder_name(&one.name, &mut taken);
        let folder = directory.join(&skill_name);
        std::fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
        let (file, program) = program(&one.source);
        for (name, text) in [("SKILL.md", skill(one, &skill_name, file)), (file, program)] {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| cannot_write(&path, &error))?;
            written.push(path);
        }
    }
    Ok(written)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Problem {
    let path = printable(&path.display().to_string());
    Problem::new(ErrorCode::InvalidRequest, format!("cannot write `{path}`: {error}"))
}

/// The name of the skill of a capability: with a number where another one's name differs in capitals or underscores only.
fn free_folder_name(name: &str, taken: &mut HashSet<String>) -> String {
    let folder = folder_name(name);
    let numbered = (2..).map(|number| format!("{folder}-{number}"));
    let free = std::iter::once(folder.clone()).chain(numbered).find(|name| !taken.contains(name));
    let free = free.expect("there are more numbers than capabilities");
    taken.insert(free.clone());
    free
}

/// The name of a skill: small letters, digits and hyphens.
fn folder_name(name: &str) -> String {
    let mut folder = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !folder.is_empty() && !folder.ends_with('-') {
            folder.push('-');
        }
        folder.push(if c == '_' { '-' } else { c.to_ascii_lowercase() });
    }
    folder
}

/// The name and the text of the file with the program.
fn program(source: &CapabilitySource) -> (&'static str, String) {
    let line = |text: &str| format!("{}\n", text.trim_end());
    match source {
        CapabilitySource::Code { code, template } => ("program.ts", line(template.as_ref().unwrap_or(code))),
        CapabilitySource::Dag { dag_structure, template } => {
            ("dag.json", line(template.as_ref().unwrap_or(dag_structure).get()))
        }
        CapabilitySource::Tool { tool_id, default_args } => {
            let call = serde_json::json!({ "tool": tool_id, "defaultArgs": default_args });
            ("call.json", line(&serde_json::to_string_pretty(&call).expect("a call is plain data")))
        }
    }
}

fn skill(one: &PackagedCapability, skill_name: &str, file: &str) -> String {
    // JSON strings are YAML strings too, whatever is in them.
    let description = serde_json::to_string(&printable(&one.description)).expect("a text is plain data");
    let mut text = format!(
        "---\nname: {}\ndescription: {description}\n---\n\n# {}\n\n{}\n",
        skill_name,
        printable(&one.name),
        printable(&one.description)
    );
    if !one.intents.is_empty() {
        text.push_str("\nIt was used for:\n\n");
        for intent in &one.intents {
            writeln!(text, "- {}", printable(intent)).expect("a string takes every text");
        }
    }
    let parameters = one.parameters_schema.get("properties").and_then(Value::as_object);
    if let Some(parameters) = parameters.filter(|parameters| !parameters.is_empty()) {
        text.push_str("\n## Parameters\n\n| name | type | default |\n|---|---|---|\n");
        for (name, schema) in parameters {
            let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
            let default = schema.get("default").map_or_else(String::new, |value| format!("`{value}`"));
            let default = printable(&default).replace('|', "\\|");
            writeln!(text, "| {} | {} | {default} |", printable(name), printable(kind))
                .expect("a string takes every text");
        }
    }
    let how = match file {
        "program.ts" => {
            "`program.ts` is the body of an async function: `args` has the parameters, and `mcp.server.tool({ … })` \
             calls a tool. Run it with `pml_execute` (`implementation: { type: \"code\", code }`, the parameters in \
             `context`), or make the same calls in the same order."
        }
        "dag.json" => {
            "`dag.json` is a DAG document for `pml_execute` (`implementation: { type: \"dag\", dagStructure }`)."
        }
        _ => "`call.json` names the tool to call and the arguments that need not be given.",
    };
    write!(text, "\n## How\n\n{how}\n").expect("a string takes every text");
    text
}
