//! Which way a run went.

use pml_model::structure::NodeId;
use serde::{Deserialize, Serialize};

/// Which way a program went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// The nodes it came to.
    pub nodes: Vec<NodeId>,
    /// What its decisions came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decided>,
    /// How often its loops went around.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<Turns>,
}

/// One outcome of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The decision, or the `try` whose handler was entered.
    pub node: NodeId,
    /// `true`, `false`, `case:<value>`, `default`, `error`.
    pub outcome: String,
    /// How often.
    pub times: u64,
}

/// The turns of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// The loop.
    pub node: NodeId,
    /// How many.
    pub turns: u64,
}
