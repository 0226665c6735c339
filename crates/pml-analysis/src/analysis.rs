//! What an analysis says.

use std::collections::BTreeSet;

use pml_model::structure::{NodeId, Position, Step, Structure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::Unready;

/// Everything there is to know about a program before it runs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
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
    /// What is executed.
    pub program: Program,
}

/// What a program wants to be given.
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

/// An argument that a literal becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Filled {
    /// The call.
    pub node: NodeId,
    /// Where in its arguments.
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

/// Something seen at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// What.
    pub what: String,
    /// Where.
    pub at: Position,
}

/// What is wrong, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// How bad.
    pub severity: Severity,
    /// Which rule.
    pub code: Code,
    /// One sentence, lower case, the thing in backticks.
    pub message: String,
    /// What the writer can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Where.
    pub at: Position,
    /// The line as written.
    pub excerpt: String,
    /// The node concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
}

/// How bad a complaint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It would fail; it is not run.
    Error,
    /// It looks wrong.
    Warning,
    /// Worth knowing.
    Note,
}

/// The rule a complaint comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// No server offers it.
    UnknownTool,
    /// A server offers it, and it may not be used.
    HeldBack,
    /// Its server is being started: whether it offers the tool is not known yet.
    ServerStarting,
    /// Its server cannot be reached, and what it offers is not known.
    ServerUnavailable,
    /// No capability is called that.
    UnknownCapability,
    /// The tool requires an argument that is not given.
    MissingArgument,
    /// The tool knows no such argument.
    UnknownArgument,
    /// A literal the tool's schema does not allow.
    WrongType,
    /// The result has no such member.
    UnknownField,
    /// Never reached.
    Unreachable,
    /// A call nobody waits for.
    NotAwaited,
    /// A name that means nothing.
    UnknownName,
    /// A name that is declared twice, or a constant that is assigned to.
    BadName,
    /// Something that does not exist in the sandbox.
    Ambient,
    /// Calls that cannot be known.
    Opaque,
    /// A secret written into the program.
    Secret,
    /// A `@pml-` annotation that cannot be followed.
    Annotation,
    /// A DAG document: two tasks of one id.
    DuplicateId,
    /// A DAG document: a dependency or reference to no task.
    UnknownDependency,
    /// A DAG document: tasks that wait for each other.
    Cycle,
    /// A DAG document: a task that is not one.
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

/// What a program is, apart from its wording.
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

/// What is executed.
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

/// From this place of the program on, to the end of its line, a line of the source.
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
