//! The structure of a program or a DAG document, found before it runs: nodes and the edges between them.
//!
//! A structure serves display, approval, learning and prediction; it is never executed. Node ids are stable within a
//! plan: `n1` tasks and capabilities, `d1` decisions, `f1`/`j1` fork and join, `l1` loops, `t1` try.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The nodes in the order of the source, and the edges between them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Structure {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The edges: order, data flow and containment.
    pub edges: Vec<Edge>,
}

impl Structure {
    /// The node with this id.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// Which results end up in the arguments of which calls: the data edges with everything that is
    /// not a call (pure operations) contracted. Sorted, each pair once.
    pub fn data_flow(&self) -> Vec<(NodeId, NodeId)> {
        let calls: std::collections::HashSet<NodeId> =
            self.nodes.iter().filter(|node| node.kind.is_call()).map(|node| node.id).collect();
        let mut into: std::collections::HashMap<NodeId, Vec<NodeId>> = std::collections::HashMap::new();
        for edge in &self.edges {
            if let EdgeLink::Provides { basis: EdgeBasis::Data, .. } = edge.link {
                into.entry(edge.to).or_default().push(edge.from);
            }
        }
        let mut pairs = std::collections::BTreeSet::new();
        for &to in &calls {
            let mut seen = std::collections::HashSet::new();
            let mut waiting: Vec<NodeId> = into.get(&to).cloned().unwrap_or_default();
            while let Some(from) = waiting.pop() {
                if !seen.insert(from) {
                    continue;
                }
                if calls.contains(&from) {
                    pairs.insert((from, to));
                } else {
                    waiting.extend(into.get(&from).into_iter().flatten());
                }
            }
        }
        pairs.into_iter().collect()
    }
}

/// The letter of a node id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeLetter {
    /// `n`: tasks and capabilities.
    N,
    /// `d`: decisions.
    D,
    /// `f`: forks.
    F,
    /// `j`: joins.
    J,
    /// `l`: loops.
    L,
    /// `t`: try.
    T,
}

/// Id of a node within its structure, such as `n1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeId {
    /// The kind of node.
    pub letter: NodeLetter,
    /// Number among the nodes of this letter, from 1.
    pub number: u32,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.letter {
            NodeLetter::N => 'n',
            NodeLetter::D => 'd',
            NodeLetter::F => 'f',
            NodeLetter::J => 'j',
            NodeLetter::L => 'l',
            NodeLetter::T => 't',
        };
        write!(f, "{letter}{}", self.number)
    }
}

impl From<NodeId> for String {
    fn from(id: NodeId) -> String {
        id.to_string()
    }
}

/// The error for a text that is not a node id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a node id such as `n1`")]
pub struct BadNodeId(String);

impl TryFrom<String> for NodeId {
    type Error = BadNodeId;

    fn try_from(text: String) -> Result<NodeId, BadNodeId> {
        let letter = match text.chars().next() {
            Some('n') => NodeLetter::N,
            Some('d') => NodeLetter::D,
            Some('f') => NodeLetter::F,
            Some('j') => NodeLetter::J,
            Some('l') => NodeLetter::L,
            Some('t') => NodeLetter::T,
            _ => return Err(BadNodeId(text)),
        };
        match text[1..].parse() {
            Ok(number) if !text[1..].starts_with('+') => Ok(NodeId { letter, number }),
            _ => Err(BadNodeId(text)),
        }
    }
}

/// A place in the source text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset of the byte after the last.
    pub end: u32,
}

/// An operation or a control structure of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Id of the node, such as `n1`.
    pub id: NodeId,
    /// The kind of node, with its details.
    #[serde(flatten)]
    pub kind: NodeKind,
    /// Place in the source.
    pub at: Position,
    /// Names that the author gave to the branches, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<String>,
}

/// The kinds of nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum NodeKind {
    /// A call of a tool, or a pseudo-tool `code:<operation>` with its source.
    Task {
        /// `server:tool` or `code:filter`.
        tool: String,
        /// The arguments; for an operation, its operands.
        arguments: Argument,
        /// The source of an operation, or of a code task of a DAG document.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Whether it is an operation without effects: it needs no approval and never fails the run of a DAG.
        #[serde(default, skip_serializing_if = "is_false")]
        pure: bool,
    },
    /// A call of a learned capability.
    Capability {
        /// Name of the capability.
        capability: String,
        /// The arguments.
        arguments: Argument,
    },
    /// A decision.
    Decision {
        /// The tested expression, as written.
        condition: String,
        /// The language construct.
        form: DecisionForm,
    },
    /// A fork: several calls begin together.
    Fork {
        /// How they are awaited.
        form: ForkForm,
    },
    /// The join that awaits a fork.
    Join,
    /// A loop.
    Loop {
        /// The iterated or tested expression, as written.
        over: String,
        /// The language construct.
        form: LoopForm,
    },
    /// A `try` statement with a handler.
    Try,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl NodeKind {
    /// Whether the node is a call of a tool or a capability, and not a pure operation.
    pub fn is_call(&self) -> bool {
        match self {
            NodeKind::Task { tool, .. } => !tool.starts_with("code:"),
            NodeKind::Capability { .. } => true,
            _ => false,
        }
    }

    /// The arguments of a task or capability; `None` for other nodes.
    pub fn arguments(&self) -> Option<&Argument> {
        match self {
            NodeKind::Task { arguments, .. } | NodeKind::Capability { arguments, .. } => Some(arguments),
            _ => None,
        }
    }
}

/// Language construct of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionForm {
    /// `if`: outcomes `true`, `false`.
    If,
    /// `a ? b : c`: outcomes `true`, `false`.
    Ternary,
    /// `switch`: outcomes `case:<value>`, `default`.
    Switch,
    /// `a && b`: `true` means `b` is evaluated.
    And,
    /// `a || b`: `false` means `b` is evaluated.
    Or,
    /// `a ?? b`: `true` (the left side is null or undefined) means `b` is evaluated.
    Nullish,
    /// `a?.b()`: `true` (there is something to call) means the call is made.
    Optional,
}

/// How the members of a fork are awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ForkForm {
    /// `Promise.all`
    All,
    /// `Promise.allSettled`
    AllSettled,
    /// `Promise.race`
    Race,
    /// `Promise.any`
    Any,
    /// Tasks of a DAG document that depend on the same things.
    Layer,
}

/// Language construct of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoopForm {
    /// `for (;;)`
    For,
    /// `while`
    While,
    /// `do … while`
    DoWhile,
    /// `for (… of …)`
    ForOf,
    /// `for (… in …)`
    ForIn,
    /// `for await (… of …)`
    ForAwait,
    /// A callback of `map`, `forEach`, `filter`, `reduce` and the like that calls a tool.
    Callback,
    /// A local function that calls itself.
    Recursion,
}

/// An edge between two nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// The source node.
    pub from: NodeId,
    /// The target node.
    pub to: NodeId,
    /// The meaning of the edge.
    #[serde(flatten)]
    pub link: EdgeLink,
}

/// The meaning of an edge.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum EdgeLink {
    /// Program order between effects.
    Sequence,
    /// Control flow that is taken with this outcome.
    Conditional {
        /// `true`, `false`, `case:<value>`, `default`, `error`.
        outcome: String,
    },
    /// Data flow: a result goes, or could go, into arguments.
    Provides {
        /// How much of the consumer's required input the provider covers.
        coverage: Coverage,
        /// The evidence for the edge.
        basis: EdgeBasis,
        /// The loop that carries the value into a later iteration, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        around: Option<NodeId>,
    },
    /// From a loop to a node of its body.
    Contains,
}

/// How much of a consumer's required input one provider covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// All required members.
    Strict,
    /// Some required members, or the required members are not known.
    Partial,
    /// Only optional members.
    Optional,
}

/// Evidence that one node provides data to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeBasis {
    /// The program passes the value on.
    Data,
    /// The declared output schema matches the declared input schema.
    Schema,
}

/// The arguments of a call, as a tree; nothing is dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Argument {
    /// A value written in the program.
    Literal {
        /// The literal value.
        value: Value,
    },
    /// The result of a node, or a part of it.
    Reference {
        /// The node.
        node: NodeId,
        /// Path into the result.
        path: Vec<PathStep>,
    },
    /// A parameter of the program, or a part of it.
    Parameter {
        /// Name of the parameter; empty for all of `args`.
        name: String,
        /// Path into the parameter.
        path: Vec<PathStep>,
    },
    /// The current item of a loop, or a part of it.
    Item {
        /// The iterated value.
        of: Box<Argument>,
        /// Id of the loop.
        r#loop: NodeId,
        /// Path into the item.
        path: Vec<PathStep>,
    },
    /// A template string.
    Template {
        /// The literal texts and the values between them.
        parts: Vec<Argument>,
    },
    /// A computed value.
    Expression {
        /// The expression as it is written in the program.
        source: String,
        /// The references, parameters and items that it reads.
        reads: Vec<Argument>,
    },
    /// An object.
    Object {
        /// The members, in order.
        fields: Vec<ArgumentField>,
        /// The values that are spread into it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        spreads: Vec<Argument>,
    },
    /// An array.
    Array {
        /// The items, in order.
        items: Vec<Argument>,
    },
}

/// A member of an object argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArgumentField {
    /// Name of the member.
    pub name: String,
    /// Value of the member.
    pub value: Argument,
}

/// One step of a path into a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PathStep {
    /// An array index.
    Index(u64),
    /// A member name.
    Key(String),
    /// Some element, known only at run time. `null` on the wire.
    Any,
}

impl Argument {
    /// An object without members.
    pub fn empty_object() -> Argument {
        Argument::Object { fields: Vec::new(), spreads: Vec::new() }
    }

    /// Calls `visit` for every leaf, those inside templates, items and `reads` included.
    pub fn visit_leaves<'a>(&'a self, visit: &mut dyn FnMut(&'a Argument)) {
        match self {
            Argument::Literal { .. } | Argument::Reference { .. } | Argument::Parameter { .. } => visit(self),
            Argument::Item { of, .. } => {
                visit(self);
                of.visit_leaves(visit);
            }
            Argument::Template { parts } => parts.iter().for_each(|part| part.visit_leaves(visit)),
            Argument::Expression { reads, .. } => {
                visit(self);
                reads.iter().for_each(|read| read.visit_leaves(visit));
            }
            Argument::Object { fields, spreads } => {
                fields.iter().for_each(|field| field.value.visit_leaves(visit));
                spreads.iter().for_each(|spread| spread.visit_leaves(visit));
            }
            Argument::Array { items } => items.iter().for_each(|item| item.visit_leaves(visit)),
        }
    }
}
