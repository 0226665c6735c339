//! The result of an analysis.

use std::collections::BTreeSet;

use pml_model::structure::{NodeId, Position, Step, Structure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::Unready;

/// Everything that is known of a program before it runs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
    /// Its nodes and edges: every call it can make, and in which order.
    pub structure: Structure,
    /// The arguments it takes.
    pub parameters: Parameters,
    /// Which tools it can call.
    pub permissions: Permissions,
    /// Errors, warnings and notes, in the order of the source.
    pub complaints: Vec<Complaint>,
    /// Hashes by which it is recognised.
    pub identity: Identity,
    /// The JavaScript that is run, and what its probes mean.
    pub program: Program,
}

/// The arguments a program takes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parameters {
    /// JSON Schema of `args`, the literals below included as members with defaults.
    pub schema: Value,
    /// Literals handed to tools, which a capability can vary.
    pub literals: Vec<LiteralParameter>,
}

/// A literal that became a parameter.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LiteralParameter {
    /// Its name in the schema.
    pub name: String,
    /// The literal. Absent when it is a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Where in the source it is written; more than once for equal strings under one name.
    pub written: Vec<Position>,
    /// Which argument of which node it becomes.
    pub fills: Vec<Filled>,
}

/// An argument of a call that a literal parameter fills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Filled {
    /// The call.
    pub node: NodeId,
    /// The path to it within the arguments of the call.
    pub path: Vec<Step>,
}

/// Which tools a program can call.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Permissions {
    /// `server:tool` of every call that can be known.
    pub declared: BTreeSet<String>,
    /// Names of the capabilities it calls.
    pub capabilities: BTreeSet<String>,
    /// Why further calls cannot be known; empty when all are.
    pub opaque: Vec<Remark>,
    /// Names of the world outside that do not exist in the sandbox.
    pub ambient: Vec<Remark>,
}

impl Permissions {
    /// The program may call tools that cannot be known before it runs.
    pub fn is_opaque(&self) -> bool {
        !self.opaque.is_empty()
    }
}

/// A fact about the program, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The fact, in words.
    pub what: String,
    /// The place in the source.
    pub at: Position,
}

/// A problem of the program: what is wrong, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// Whether the program can be run in spite of it.
    pub severity: Severity,
    /// The rule it comes from.
    pub code: Code,
    /// One sentence, lower case, the thing in backticks.
    pub message: String,
    /// What the writer can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The place in the source.
    pub at: Position,
    /// The line as written.
    pub excerpt: String,
    /// The node concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
}

/// Whether a program with a complaint can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The program would fail, so it is not run.
    Error,
    /// The program can be run, but probably does something else than was meant.
    Warning,
    /// Information; nothing has to be done.
    Note,
}

/// The rule a complaint comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// No connected server offers the tool.
    UnknownTool,
    /// A server offers the tool, but programs may not use it.
    HeldBack,
    /// The server is still starting, so its tools are not known yet.
    ServerStarting,
    /// The server cannot be reached, so its tools are not known.
    ServerUnavailable,
    /// There is no capability of that name.
    UnknownCapability,
    /// The tool requires an argument that is not given.
    MissingArgument,
    /// The tool knows no such argument.
    UnknownArgument,
    /// A literal the tool's schema does not allow.
    WrongType,
    /// The result has no such member.
    UnknownField,
    /// Code or a function that is never reached.
    Unreachable,
    /// A promise that nothing awaits, or that is used as if it were its result.
    NotAwaited,
    /// A name that is not defined.
    UnknownName,
    /// A name that is declared twice, or a constant that is assigned to.
    BadName,
    /// Something that does not exist in the sandbox.
    Ambient,
    /// Calls that cannot be known before the program runs.
    Opaque,
    /// A secret written into the program.
    Secret,
    /// A `@pml-` annotation that cannot be followed.
    Annotation,
    /// A DAG document: two tasks have the same id.
    DuplicateId,
    /// A DAG document: a dependency or reference to no task.
    UnknownDependency,
    /// A DAG document: tasks that depend on each other in a circle.
    Cycle,
    /// A DAG document: a task that is not well formed.
    BadTask,
    /// A DAG document: a reference that cannot be read.
    BadReference,
}

impl Code {
    /// The rule that a call of a tool breaks whose server is not ready.
    pub(crate) fn of_unready(unready: &Unready) -> Code {
        if unready.starting { Code::ServerStarting } else { Code::ServerUnavailable }
    }
}

/// Hashes by which a program is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// Hash of the canonical form: the same for programs that differ in names, layout, types,
    /// comments and lifted literals only.
    pub identity: String,
    /// Hash of the exact source; what approvals bind to.
    pub code_hash: String,
    /// Which rules made `identity`.
    pub analysis_version: u32,
}

/// The JavaScript that is run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Program {
    /// Body of an async function in strict mode: types gone, probes in. The names it may use freely
    /// are the surface's and `probe`.
    pub js: String,
    /// The name of the probe object; it does not occur in the source.
    pub probe: String,
    /// What each probe point means in each context.
    pub sites: Vec<Site>,
    /// Which context a call of a local function enters.
    pub entries: Vec<Entry>,
    /// For every line of `js`, the line of the source it comes from (0: none).
    pub lines: Vec<u32>,
    /// Where a line of `js` goes on with another line of the source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaks: Vec<Break>,
}

/// A column of `js` from which on the rest of the line comes from another line of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Break {
    /// The line of the program, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The line of the source.
    pub source: u32,
}

/// A probe point in a context, and the node it reports. A function that is reached in a way that was not
/// foreseen reports a context without a site: a call then belongs to the first site of its point and tool, and
/// anything else means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The number in the probe.
    pub point: u32,
    /// 0 for the program itself; others are calls of local functions, see [`Entry`].
    pub context: u32,
    /// The node.
    pub node: NodeId,
    /// The tool, when it is a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Where it stands.
    pub at: Position,
    /// The tool is handed on as a value here: its calls carry no point of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub value: bool,
    /// For a `switch`: the outcome of each case in order, the one without a match last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<String>,
}

/// A call of a local function: from `context`, point `point` enters function `function` in context `enters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The number in the probe.
    pub point: u32,
    /// The context the call is in.
    pub context: u32,
    /// The function called.
    pub function: u32,
    /// The context its body then has.
    pub enters: u32,
    /// Where the call stands.
    pub at: Position,
}
