//! The path that a run took through its structure.

use pml_model::structure::NodeId;
use serde::{Deserialize, Serialize};

/// The path that a program took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedPath {
    /// The nodes that it reached.
    pub nodes: Vec<NodeId>,
    /// The outcomes of its decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<PathDecision>,
    /// The number of turns of its loops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopTurns>,
}

/// One outcome of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathDecision {
    /// The node of the decision, or of the `try` whose handler was entered.
    pub node: NodeId,
    /// `true`, `false`, `case:<value>`, `default`, `error`.
    pub outcome: String,
    /// Number of occurrences.
    pub times: u64,
}

/// The turns of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopTurns {
    /// The node of the loop.
    pub node: NodeId,
    /// Number of turns of the loop.
    pub turns: u64,
}
