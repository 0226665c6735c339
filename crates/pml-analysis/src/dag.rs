//! DAG documents: tasks that name what they wait for.
//!
//! ```json
//! {"tasks": [
//!   {"id": "t1", "tool": "fs:read", "arguments": {"path": {"$ref": "args.path"}}},
//!   {"id": "t2", "tool": "mail:send", "arguments": {"text": "found: {{t1.content}}"}, "sideEffects": true}
//! ]}
//! ```
//!
//! Every reference is a dependency, whether `dependsOn` says so or not. Node `n3` is the third task of the
//! document, in whatever order they run. Each dependency is a `sequence` edge; where data goes along, there
//! is a `provides` edge besides. The parameters are those that `args` references name and the literals handed to
//! tools and capabilities, by the rules of programs. What is in `{"$literal": …}` is meant as it is written and stays part
//! of the document.
//!
//! A document that is not understood is an error; one that is understood but wrong has complaints of
//! severity error and is not to be run. Nothing in it is passed over in silence. This module runs nothing.

mod canonical;
mod complaints;
mod given;
mod graph;
pub mod kept;
mod lift;
mod read;
mod reader;
mod reference;
mod row;
mod substitute;
mod text;
mod values;
mod work;
mod written;

#[cfg(test)]
mod tests;

use pml_model::json::{self, MAX_DEPTH};
use pml_model::name::printable;
use pml_model::structure::{NodeId, Position, Structure};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use self::canonical::canonical;
use self::given::{between, push_text};
use self::text::{BadEscape, ByteSpan, DocumentText};
use crate::identity::identity;
use crate::{Catalogue, Complaint, Identity, Parameters, Permissions};

pub use self::given::Given;
pub(crate) use self::given::needs_escape;
pub use self::reference::{Part, Reference, Source};
pub(crate) use self::reference::{TextTemplate, template};
pub use self::substitute::{MAX_ARGUMENTS_BYTES, Unresolved, substitute};

/// How large a document may be.
pub const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;

/// How many tasks a document may have.
pub const MAX_TASKS: usize = 10_000;

/// Everything there is to know about a document before it runs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DagAnalysis {
    /// What is executed.
    pub dag: Dag,
    /// What it can do.
    pub structure: Structure,
    /// What it wants to be given.
    pub parameters: Parameters,
    /// Which tools it can call.
    pub permissions: Permissions,
    /// What is wrong with it, or looks so.
    pub complaints: Vec<Complaint>,
    /// What it is, apart from its wording.
    pub identity: Identity,
}

/// The tasks, in the order of the document. Serialises to a document that means the same.
#[derive(Debug, Clone, Serialize)]
pub struct Dag {
    /// Those that could be understood.
    pub tasks: Vec<Task>,
}

/// One task.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its name in the document.
    pub id: String,
    /// Its name in the structure.
    pub node: NodeId,
    /// What it does.
    pub work: Work,
    /// What it is given.
    pub arguments: Given,
    /// What it waits for: ids as `dependsOn` lists them, then those that only references name.
    pub depends_on: Vec<String>,
    /// Whether the document says that it changes something. `false` is no promise anybody relies on.
    pub side_effects: Option<bool>,
    /// Whether dependants run although it failed, and see the error as its result.
    pub safe_to_fail: bool,
    /// How long one try may take.
    pub timeout_ms: Option<u64>,
    /// How often it may be tried again.
    pub retries: u32,
}

/// What a task does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Calls a tool.
    Tool {
        /// `server:tool`.
        tool: String,
    },
    /// Runs a program, whose `args` are the task's arguments.
    Code {
        /// Its source.
        code: String,
        /// `code:<operation>` under which traces show it, where the document says one.
        tool: Option<String>,
        /// It is a pure operation and its source calls nothing.
        pure: bool,
    },
    /// Calls a capability.
    Capability {
        /// Its name.
        name: String,
    },
}

/// Why a document could not be understood at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DagError {
    /// More bytes than [`MAX_DOCUMENT_BYTES`].
    #[error("the document has {bytes} bytes; at most {MAX_DOCUMENT_BYTES} are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Lists and objects nested deeper than 128 levels.
    #[error("the document nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// More tasks than [`MAX_TASKS`].
    #[error("the document has {tasks} tasks; at most {MAX_TASKS} are run")]
    TooManyTasks {
        /// How many.
        tasks: usize,
    },
    /// Not JSON.
    #[error("line {}, column {}: not JSON: {message}", at.line, at.column)]
    Syntax {
        /// What the parser says.
        message: String,
        /// Where.
        at: Position,
        /// The line.
        excerpt: String,
    },
    /// JSON, but no DAG document.
    #[error("line {}, column {}: {message}", at.line, at.column)]
    NotADocument {
        /// What is wrong.
        message: String,
        /// What to write.
        hint: String,
        /// Where.
        at: Position,
        /// The line.
        excerpt: String,
    },
}

impl DagError {
    /// What the writer can do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            DagError::TooLarge { .. } => "hand large values in through `args`".to_owned(),
            DagError::TooManyTasks { .. } => "write a program with a loop instead".to_owned(),
            DagError::NotADocument { hint, .. } => hint.clone(),
            DagError::TooDeep | DagError::Syntax { .. } => return None,
        })
    }

    /// Where, with the line as written.
    pub fn place(&self) -> Option<(Position, &str)> {
        match self {
            DagError::Syntax { at, excerpt, .. } | DagError::NotADocument { at, excerpt, .. } => {
                Some((*at, excerpt))
            }
            DagError::TooLarge { .. } | DagError::TooDeep | DagError::TooManyTasks { .. } => None,
        }
    }
}

/// What is known of the source of a code task.
pub(crate) struct CodeSummary {
    pub(crate) permissions: Permissions,
    pub(crate) complaints: Vec<Complaint>,
}

/// Why the source of a code task is no program.
pub(crate) struct BadCode {
    /// With line and column in the source.
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The line of the source.
    pub(crate) excerpt: Option<String>,
}

/// Analyses a DAG document.
///
/// # Errors
/// The text is not JSON, is no document, or passes a limit.
pub fn analyse_dag(document: &str, catalogue: &Catalogue) -> Result<DagAnalysis, DagError> {
    analyse_with(document, catalogue, &|code| match crate::analyse(code, catalogue) {
        Ok(analysis) => {
            Ok(CodeSummary { permissions: analysis.permissions, complaints: analysis.complaints })
        }
        Err(error) => Err(BadCode {
            message: match error.position() {
                Some(at) => format!("line {}, column {}: {error}", at.line, at.column),
                None => error.to_string(),
            },
            hint: error.hint(),
            excerpt: error.excerpt().map(str::to_owned),
        }),
    })
}

/// [`analyse_dag`] with a given way to look into code tasks.
fn analyse_with(
    document: &str,
    catalogue: &Catalogue,
    look: &dyn Fn(&str) -> Result<CodeSummary, BadCode>,
) -> Result<DagAnalysis, DagError> {
    if document.len() > MAX_DOCUMENT_BYTES {
        return Err(DagError::TooLarge { bytes: document.len() });
    }
    if json::depth(document) > MAX_DEPTH {
        return Err(DagError::TooDeep);
    }
    let text = DocumentText::new(document);
    serde_json::from_str::<&RawValue>(document).map_err(|error| syntax(&text, &error))?;
    let tree = text::read(document).map_err(|BadEscape(span)| DagError::Syntax {
        message: "a `\\u` escape that is half a character".to_owned(),
        at: text.position(span),
        excerpt: text.excerpt(span.start),
    })?;
    let read = read::document(&text, &tree, catalogue, look)?;
    Ok(DagAnalysis {
        identity: identity(document, &canonical(&read.dag, &read.parameters)),
        dag: read.dag,
        structure: read.structure,
        parameters: read.parameters,
        permissions: read.permissions,
        complaints: read.complaints,
    })
}

fn syntax(text: &DocumentText<'_>, error: &serde_json::Error) -> DagError {
    let said = error.to_string();
    let message = said.split_once(" at line ").map_or(said.as_str(), |(message, _)| message);
    let at = text.offset(error.line(), error.column());
    DagError::Syntax {
        message: message.to_owned(),
        at: text.position(ByteSpan { start: at, end: at }),
        excerpt: text.excerpt(at),
    }
}

impl Task {
    /// Under the name `id`, with `arguments` that are written already.
    fn write(&self, id: &str, arguments: &str, depends_on: Vec<String>, out: &mut String) {
        let text = |text: &str| {
            let mut out = String::with_capacity(text.len() + 2);
            push_text(text, &mut out);
            out
        };
        let mut members = vec![("id", text(id))];
        match &self.work {
            Work::Tool { tool } => members.push(("tool", text(tool))),
            Work::Capability { name } => members.push(("capability", text(name))),
            Work::Code { code, tool, .. } => {
                members.extend(tool.iter().map(|tool| ("tool", text(tool))));
                members.push(("code", text(code)));
            }
        }
        members.push(("arguments", arguments.to_owned()));
        members.push(("dependsOn", Value::from(depends_on).to_string()));
        members.extend(self.side_effects.map(|flag| ("sideEffects", flag.to_string())));
        members.push(("safeToFail", self.safe_to_fail.to_string()));
        members.extend(self.timeout_ms.map(|timeout| ("timeoutMs", timeout.to_string())));
        members.push(("retries", self.retries.to_string()));
        between(out, ('{', '}'), &members, |(key, value), out| {
            push_text(key, out);
            out.push(':');
            out.push_str(value);
        });
    }
}

impl Serialize for Task {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut arguments, mut text) = (String::new(), String::new());
        self.arguments.write(&mut arguments);
        self.write(&self.id, &arguments, self.depends_on.clone(), &mut text);
        RawValue::from_string(text).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// A text of the document as a message shows it: short, and with nothing hidden in it.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", printable(&short).replace('\n', "\\n"))
}
