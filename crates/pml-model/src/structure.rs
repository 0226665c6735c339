//! What a program or a DAG document can do, found before it runs: nodes and the edges between them.
//!
//! A structure shows, approves, learns and predicts; it never runs. Node ids are stable within a
//! plan: `n1` tasks and capabilities, `d1` decisions, `f1`/`j1` fork and join, `l1` loops, `t1` try.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Nodes in the order the program names them, and the edges between them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Structure {
    /// What can happen.
    pub nodes: Vec<Node>,
    /// What follows, feeds or contains what.
    pub edges: Vec<Edge>,
}

impl Structure {
    /// The node called `id`.
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
            if let Link::Provides { basis: Basis::Data, .. } = edge.link {
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
pub enum Letter {
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

/// A node's name within its structure, such as `n1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeId {
    /// What kind of node.
    pub letter: Letter,
    /// Which one of them, from 1.
    pub number: u32,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.letter {
            Letter::N => 'n',
            Letter::D => 'd',
            Letter::F => 'f',
            Letter::J => 'j',
            Letter::L => 'l',
            Letter::T => 't',
        };
        write!(f, "{letter}{}", self.number)
    }
}

impl From<NodeId> for String {
    fn from(id: NodeId) -> String {
        id.to_string()
    }
}

/// A text that names no node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a node id such as `n1`")]
pub struct BadNodeId(String);

impl TryFrom<String> for NodeId {
    type Error = BadNodeId;

    fn try_from(text: String) -> Result<NodeId, BadNodeId> {
        let letter = match text.chars().next() {
            Some('n') => Letter::N,
            Some('d') => Letter::D,
            Some('f') => Letter::F,
            Some('j') => Letter::J,
            Some('l') => Letter::L,
            Some('t') => Letter::T,
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
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// First byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

/// One thing a program can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// What it is.
    #[serde(flatten)]
    pub kind: NodeKind,
    /// Where it stands.
    pub at: Position,
    /// Names its writer gave to what it can lead to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<String>,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum NodeKind {
    /// A call of a tool (`server:tool`), or a pseudo-tool `code:<operation>` with its source.
    Task {
        /// `server:tool` or `code:filter`.
        tool: String,
        /// What it is given. For an operation: what it works on.
        arguments: Argument,
        /// The source of an operation, or of a code task of a DAG document.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// An operation that has no effect: never asks, never fails the run of a DAG.
        #[serde(default, skip_serializing_if = "is_false")]
        pure: bool,
    },
    /// A call of a learned capability.
    Capability {
        /// Its name.
        capability: String,
        /// What it is given.
        arguments: Argument,
    },
    /// A choice.
    Decision {
        /// What is tested, as written.
        condition: String,
        /// By which construct.
        form: DecisionForm,
    },
    /// Several things begin together.
    Fork {
        /// Which of `Promise`'s ways to wait.
        form: ForkForm,
    },
    /// They are waited for.
    Join,
    /// Something that happens any number of times.
    Loop {
        /// What is gone through or tested, as written.
        over: String,
        /// By which construct.
        form: LoopForm,
    },
    /// Work whose failure is handled.
    Try,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl NodeKind {
    /// A call of a tool or a capability; not a pure operation.
    pub fn is_call(&self) -> bool {
        match self {
            NodeKind::Task { tool, .. } => !tool.starts_with("code:"),
            NodeKind::Capability { .. } => true,
            _ => false,
        }
    }

    /// What a task or capability is given.
    pub fn arguments(&self) -> Option<&Argument> {
        match self {
            NodeKind::Task { arguments, .. } | NodeKind::Capability { arguments, .. } => Some(arguments),
            _ => None,
        }
    }
}

/// By which construct a program chooses.
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

/// How the members of a fork are waited for.
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

/// How a program repeats.
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

/// One connection between two nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// Its beginning.
    pub from: NodeId,
    /// Its end.
    pub to: NodeId,
    /// What it means.
    #[serde(flatten)]
    pub link: Link,
}

/// What an edge means.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Link {
    /// Program order between effects.
    Sequence,
    /// Taken with this outcome.
    Conditional {
        /// `true`, `false`, `case:<value>`, `default`, `error`.
        outcome: String,
    },
    /// A result goes, or could go, into arguments.
    Provides {
        /// How much of the consumer's required input comes from there.
        coverage: Coverage,
        /// How we know.
        basis: Basis,
        /// The loop around which the value flows into a later iteration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        around: Option<NodeId>,
    },
    /// A loop and a node of its body.
    Contains,
}

/// How much of a consumer's required input one provider gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// All of it.
    Strict,
    /// Some of it, or it is not known what is required.
    Partial,
    /// Only what is optional.
    Optional,
}

/// How it is known that one node feeds another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The program hands the value on.
    Data,
    /// The declared output could fill the declared input.
    Schema,
}

/// What a call is given, as a tree; nothing is dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Argument {
    /// A value written in the program.
    Literal {
        /// It.
        value: Value,
    },
    /// (Part of) the result of a node.
    Reference {
        /// Which node.
        node: NodeId,
        /// Which part.
        path: Vec<Step>,
    },
    /// (Part of) an argument of the program.
    Parameter {
        /// Which; empty for all of `args`.
        name: String,
        /// Which part.
        path: Vec<Step>,
    },
    /// (Part of) what a loop is at.
    Item {
        /// What the loop goes through.
        of: Box<Argument>,
        /// The loop.
        r#loop: NodeId,
        /// Which part of the item.
        path: Vec<Step>,
    },
    /// A text put together from parts.
    Template {
        /// Literal texts and what stands between them.
        parts: Vec<Argument>,
    },
    /// Something computed.
    Expression {
        /// As written.
        source: String,
        /// What it is computed from: references, parameters and items.
        reads: Vec<Argument>,
    },
    /// An object.
    Object {
        /// Members in order.
        fields: Vec<Field>,
        /// Objects whose members are spread into it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        spreads: Vec<Argument>,
    },
    /// An array.
    Array {
        /// Its items.
        items: Vec<Argument>,
    },
}

/// A member of an object argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Argument,
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// A position in an array.
    Index(u64),
    /// A member.
    Key(String),
    /// Some element; which one is known only when the program runs. `null` on the wire.
    Any,
}

impl Argument {
    /// An object without members.
    pub fn nothing() -> Argument {
        Argument::Object { fields: Vec::new(), spreads: Vec::new() }
    }

    /// Calls `visit` for every leaf, those inside templates, items and `reads` included.
    pub fn leaves<'a>(&'a self, visit: &mut dyn FnMut(&'a Argument)) {
        match self {
            Argument::Literal { .. } | Argument::Reference { .. } | Argument::Parameter { .. } => visit(self),
            Argument::Item { of, .. } => {
                visit(self);
                of.leaves(visit);
            }
            Argument::Template { parts } => parts.iter().for_each(|part| part.leaves(visit)),
            Argument::Expression { reads, .. } => {
                visit(self);
                reads.iter().for_each(|read| read.leaves(visit));
            }
            Argument::Object { fields, spreads } => {
                fields.iter().for_each(|field| field.value.leaves(visit));
                spreads.iter().for_each(|spread| spread.leaves(visit));
            }
            Argument::Array { items } => items.iter().for_each(|item| item.leaves(visit)),
        }
    }
}
