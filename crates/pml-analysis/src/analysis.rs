//! The result of an analysis.

use std::collections::BTreeSet;

use pml_model::structure::{NodeId, PathStep, Position, Structure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::UnreadyServer;

/// Everything known of a program before it runs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
    /// Its nodes and edges: every call it can make, and in which order.
    pub structure: Structure,
    /// The arguments it takes.
    pub parameters: Parameters,
    /// The tools it can call.
    pub permissions: Permissions,
    /// Errors, warnings and notes, in the order of the source.
    pub complaints: Vec<Complaint>,
    /// Hashes that identify it.
    pub identity: ProgramIdentity,
    /// The JavaScript that runs, and the meaning of its probes.
    pub program: InstrumentedProgram,
}

/// The arguments a program takes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parameters {
    /// JSON Schema of `args`, with the lifted literals below as members with defaults.
    pub schema: Value,
    /// Literals passed to tools, which a capability can vary.
    pub literals: Vec<LiteralParameter>,
}

/// A literal that was lifted to a parameter.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LiteralParameter {
    /// Name in the schema.
    pub name: String,
    /// The literal. `None` when it is a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Positions in the source; several for equal strings under one name.
    pub written: Vec<Position>,
    /// The arguments that it fills.
    pub fills: Vec<FilledArgument>,
}

/// An argument of a call that a lifted literal fills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilledArgument {
    /// Node of the call.
    pub node: NodeId,
    /// Path within the arguments of the call.
    pub path: Vec<PathStep>,
}

/// Tools that a program can call.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Permissions {
    /// `server:tool` of every call that is known.
    pub declared: BTreeSet<String>,
    /// Names of the capabilities it calls.
    pub capabilities: BTreeSet<String>,
    /// Reasons why further calls cannot be known; empty when all are known.
    pub opaque: Vec<Remark>,
    /// Uses of names of other environments that do not exist in the sandbox.
    pub ambient: Vec<Remark>,
}

impl Permissions {
    /// Whether the program may call tools that cannot be known before it runs.
    pub fn is_opaque(&self) -> bool {
        !self.opaque.is_empty()
    }
}

/// A fact about the program with its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The fact, in words.
    pub what: String,
    /// Position in the source.
    pub at: Position,
}

/// A problem of the program: what is wrong, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// Severity: whether the program can still run.
    pub severity: Severity,
    /// The rule that was violated.
    pub code: ComplaintCode,
    /// One sentence, lower case, with names in backticks.
    pub message: String,
    /// What the author can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Position in the source.
    pub at: Position,
    /// The source line, as written.
    pub excerpt: String,
    /// The node concerned, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
}

/// Severity of a complaint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The program would fail, so it is not run.
    Error,
    /// The program can run, but probably does not do what was intended.
    Warning,
    /// Information; no action is needed.
    Note,
}

/// The rule that a complaint violates. It is a diagnosis of a position in the program's text, not a
/// `pml_model::ErrorCode`: a program has many at once and most stop nothing. Those that do are reported as
/// `INVALID_PROGRAM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComplaintCode {
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
    /// A literal that the tool's schema does not allow.
    WrongType,
    /// The result has no such member.
    UnknownField,
    /// Code or a function that is never reached.
    Unreachable,
    /// A promise that nothing awaits, or that is used as if it were its value.
    NotAwaited,
    /// A name that is not defined.
    UnknownName,
    /// A name that is declared twice, or a constant that is assigned to.
    BadName,
    /// A name that does not exist in the sandbox.
    Ambient,
    /// Calls that cannot be known before the program runs.
    Opaque,
    /// A secret written into the program.
    Secret,
    /// A `@pml-` annotation that cannot be applied.
    Annotation,
    /// A DAG document: two tasks have the same id.
    DuplicateId,
    /// A DAG document: a dependency on, or reference to, a missing task.
    UnknownDependency,
    /// A DAG document: tasks that depend on each other in a cycle.
    Cycle,
    /// A DAG document: a task that is not well formed.
    BadTask,
    /// A DAG document: a malformed reference.
    BadReference,
}

impl ComplaintCode {
    /// The rule violated by a call of a tool whose server is not ready.
    pub(crate) fn of_unready(unready: &UnreadyServer) -> ComplaintCode {
        if unready.starting { ComplaintCode::ServerStarting } else { ComplaintCode::ServerUnavailable }
    }
}

/// Hashes that identify a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgramIdentity {
    /// Hash of the canonical form: the same for programs that differ only in names, layout, types, comments and lifted
    /// literals.
    pub identity: String,
    /// Hash of the exact source; approvals bind to it.
    pub code_hash: String,
    /// Version of the rules that made `identity`, see [`ANALYSIS_VERSION`](crate::ANALYSIS_VERSION).
    pub analysis_version: u32,
}

/// The JavaScript that is run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstrumentedProgram {
    /// Body of an async function in strict mode, without types and with probes. Its free names are those of the sandbox
    /// and `probe`.
    pub js: String,
    /// Name of the probe object; it does not occur in the source.
    pub probe: String,
    /// Meaning of each probe point in each context.
    pub sites: Vec<ProbeSite>,
    /// For each call of a local function, the context that it enters.
    pub entries: Vec<ContextEntry>,
    /// For every line of `js`, the line of the source it comes from (0: none).
    pub lines: Vec<u32>,
    /// Columns at which a line of `js` continues with another line of the source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaks: Vec<LineBreak>,
    /// The calls whose results each decision tests, and those by which each loop turns. It serves the analysis of a dry run and is not stored.
    #[serde(skip)]
    pub decided_by: Vec<DecisionReads>,
    /// The calls whose results the program returns. It is not stored either.
    #[serde(skip)]
    pub returns_from: Vec<NodeId>,
    /// The nodes right before each place where the program ends: a `return`, an uncaught `throw`, or its last line.
    #[serde(skip)]
    pub ends_after: Vec<Vec<NodeId>>,
}

/// The calls and operations whose results a decision tests, or by which a loop turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionReads {
    /// The decision or loop.
    pub node: NodeId,
    /// What it tests the results of, in order.
    pub reads: Vec<NodeId>,
}

/// A column of `js` from which the rest of the line comes from another line of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineBreak {
    /// Line of `js`, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Line of the source.
    pub source: u32,
}

/// A probe point in a context, with the node it reports. A function that is reached in an unforeseen way reports a
/// context without a site: a call then belongs to the first site of its point and tool, and anything else is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSite {
    /// Number of the point.
    pub point: u32,
    /// 0 for the program itself; other contexts are calls of local functions, see [`ContextEntry`].
    pub context: u32,
    /// The reported node.
    pub node: NodeId,
    /// `server:tool`, when it is a call of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Position in the source.
    pub at: Position,
    /// The tool is passed on as a value here: its calls carry no point of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub value: bool,
    /// For a `switch`: the outcome of each case in order, then the one without a match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<String>,
}

/// A call of a local function: from `context`, point `point` enters function `function` in context `enters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextEntry {
    /// Number of the point.
    pub point: u32,
    /// The context that the call is made in.
    pub context: u32,
    /// Number of the called function.
    pub function: u32,
    /// The context in which the body of the function then runs.
    pub enters: u32,
    /// Position of the call.
    pub at: Position,
}
