//! DAG documents: tasks with explicit dependencies.
//!
//! ```json
//! {"tasks": [
//!   {"id": "t1", "tool": "fs:read", "arguments": {"path": {"$ref": "args.path"}}},
//!   {"id": "t2", "tool": "mail:send", "arguments": {"text": "found: {{t1.content}}"}, "sideEffects": true}
//! ]}
//! ```
//!
//! Every reference is a dependency, whether `dependsOn` lists it or not. Node `n3` is the third task of the document,
//! whatever the execution order. Each dependency is a `sequence` edge, plus a `provides` edge where data flows. The
//! parameters are the members that `args` references name and the literals passed to tools and capabilities, by the
//! rules of programs. Content of `{"$literal": …}` is taken as written and stays part of the document.
//!
//! A document that is not understood is an error. One that is understood but wrong has complaints of severity error and
//! must not be run. Nothing in it is ignored silently. This module runs nothing.

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

use self::canonical::canonical_document;
use self::given::{push_json_string, write_list};
use self::text::{BadEscape, ByteSpan, DocumentText};
use crate::identity::compute_identity;
use crate::{AnalysisCatalogue, Complaint, Parameters, Permissions, ProgramIdentity};

pub use self::given::TaskArguments;
pub(crate) use self::given::needs_escape;
pub use self::reference::{Reference, ReferenceRoot, TextPart};
pub(crate) use self::reference::{TextTemplate, parse_template};
pub use self::substitute::{MAX_ARGUMENTS_BYTES, SubstitutionError, fill_references};

/// Maximum size of a document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;

/// Maximum number of tasks of a document.
pub const MAX_TASKS: usize = 10_000;

/// Everything known of a document before it runs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DagAnalysis {
    /// The tasks to execute.
    pub dag: DagDocument,
    /// Nodes and edges.
    pub structure: Structure,
    /// Arguments of the document.
    pub parameters: Parameters,
    /// Tools it can call.
    pub permissions: Permissions,
    /// Errors, warnings and notes, in document order.
    pub complaints: Vec<Complaint>,
    /// Hashes that identify it.
    pub identity: ProgramIdentity,
}

/// The tasks in document order. Serialises to an equivalent document.
#[derive(Debug, Clone, Serialize)]
pub struct DagDocument {
    /// The tasks that could be understood.
    pub tasks: Vec<DocumentTask>,
}

/// A task.
#[derive(Debug, Clone)]
pub struct DocumentTask {
    /// Id in the document.
    pub id: String,
    /// Node in the structure.
    pub node: NodeId,
    /// What the task runs.
    pub work: DocumentWork,
    /// Arguments, with references.
    pub arguments: TaskArguments,
    /// Ids of its dependencies: those of `dependsOn`, then those that only references name.
    pub depends_on: Vec<String>,
    /// Whether the document declares side effects. A `false` is not relied on.
    pub side_effects: Option<bool>,
    /// Whether dependants run when it failed, with the error as its result.
    pub safe_to_fail: bool,
    /// Timeout of one attempt, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Number of retries.
    pub retries: u32,
}

/// What a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentWork {
    /// Calls a tool.
    Tool {
        /// `server:tool`.
        tool: String,
    },
    /// Runs a program, whose `args` are the task's arguments.
    Code {
        /// Source of the program.
        code: String,
        /// `code:<operation>`, the name in traces; `None` when the document gives none.
        tool: Option<String>,
        /// Whether it is a pure operation whose source calls no tools.
        pure: bool,
    },
    /// Calls a capability.
    Capability {
        /// Name of the capability.
        name: String,
    },
}

/// Reason why a document could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DagError {
    /// The document exceeds [`MAX_DOCUMENT_BYTES`].
    #[error("the document has {bytes} bytes; at most {MAX_DOCUMENT_BYTES} are read")]
    TooLarge {
        /// Size of the document.
        bytes: usize,
    },
    /// Lists and objects nested deeper than 128 levels.
    #[error("the document nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The document exceeds [`MAX_TASKS`].
    #[error("the document has {tasks} tasks; at most {MAX_TASKS} are run")]
    TooManyTasks {
        /// Number of tasks.
        tasks: usize,
    },
    /// The text is not JSON.
    #[error("line {}, column {}: not JSON: {message}", at.line, at.column)]
    Syntax {
        /// Message of the parser.
        message: String,
        /// Line and column in the source.
        at: Position,
        /// The source line.
        excerpt: String,
    },
    /// The text is JSON, but not a DAG document.
    #[error("line {}, column {}: {message}", at.line, at.column)]
    NotADocument {
        /// What is wrong.
        message: String,
        /// What to write instead.
        hint: String,
        /// Line and column in the source.
        at: Position,
        /// The source line.
        excerpt: String,
    },
}

impl DagError {
    /// What the author can do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            DagError::TooLarge { .. } => "hand large values in through `args`".to_owned(),
            DagError::TooManyTasks { .. } => "write a program with a loop instead".to_owned(),
            DagError::NotADocument { hint, .. } => hint.clone(),
            DagError::TooDeep | DagError::Syntax { .. } => return None,
        })
    }

    /// Position and source line.
    pub fn location(&self) -> Option<(Position, &str)> {
        match self {
            DagError::Syntax { at, excerpt, .. } | DagError::NotADocument { at, excerpt, .. } => {
                Some((*at, excerpt))
            }
            DagError::TooLarge { .. } | DagError::TooDeep | DagError::TooManyTasks { .. } => None,
        }
    }
}

/// Analysis of a code task's source.
pub(crate) struct CodeSummary {
    pub(crate) permissions: Permissions,
    pub(crate) complaints: Vec<Complaint>,
}

/// Error of a code task's source.
pub(crate) struct BadCode {
    /// Message, with line and column in the source.
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The source line.
    pub(crate) excerpt: Option<String>,
}

/// Analyses a DAG document.
///
/// # Errors
/// The text is not JSON, is not a document, or exceeds a limit.
pub fn analyse_dag(document: &str, catalogue: &AnalysisCatalogue) -> Result<DagAnalysis, DagError> {
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

/// [`analyse_dag`] with a given analysis of code tasks.
fn analyse_with(
    document: &str,
    catalogue: &AnalysisCatalogue,
    look: &dyn Fn(&str) -> Result<CodeSummary, BadCode>,
) -> Result<DagAnalysis, DagError> {
    if document.len() > MAX_DOCUMENT_BYTES {
        return Err(DagError::TooLarge { bytes: document.len() });
    }
    if json::nesting_depth(document) > MAX_DEPTH {
        return Err(DagError::TooDeep);
    }
    let text = DocumentText::new(document);
    serde_json::from_str::<&RawValue>(document).map_err(|error| syntax(&text, &error))?;
    let tree = text::parse_json(document).map_err(|BadEscape(span)| DagError::Syntax {
        message: "a `\\u` escape that is half a character".to_owned(),
        at: text.position(span),
        excerpt: text.excerpt(span.start),
    })?;
    let read = read::read_document(&text, &tree, catalogue, look)?;
    Ok(DagAnalysis {
        identity: compute_identity(document, &canonical_document(&read.dag, &read.parameters)),
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

impl DocumentTask {
    /// Writes the task with id `id` and serialised `arguments`.
    fn write(&self, id: &str, arguments: &str, depends_on: Vec<String>, out: &mut String) {
        let text = |text: &str| {
            let mut out = String::with_capacity(text.len() + 2);
            push_json_string(text, &mut out);
            out
        };
        let mut members = vec![("id", text(id))];
        match &self.work {
            DocumentWork::Tool { tool } => members.push(("tool", text(tool))),
            DocumentWork::Capability { name } => members.push(("capability", text(name))),
            DocumentWork::Code { code, tool, .. } => {
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
        write_list(out, ('{', '}'), &members, |(key, value), out| {
            push_json_string(key, out);
            out.push(':');
            out.push_str(value);
        });
    }
}

impl Serialize for DocumentTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut arguments, mut text) = (String::new(), String::new());
        self.arguments.write(&mut arguments);
        self.write(&self.id, &arguments, self.depends_on.clone(), &mut text);
        RawValue::from_string(text).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// A text of the document for a message: short, without hidden characters.
fn shorten_for_message(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", printable(&short).replace('\n', "\\n"))
}
