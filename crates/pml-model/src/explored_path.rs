//! What a trace shows of an explored path.

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::id::CapabilityId;

/// What a trace shows of an explored path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExploredPath {
    /// Id of the exploration that found the path.
    pub exploration_id: String,
    /// Id of the path within it, as `explorePath` takes it.
    pub path_id: String,
    /// The procedure of the path: the same for the same tools in the same wiring, whatever the values.
    pub procedure: CapabilityId,
    /// Digest of the definitions of its tools. What was seen with other definitions is no evidence.
    pub definitions: Digest,
    /// The intent, with its values replaced by what they are.
    pub masked_intent: String,
    /// The paths that were offered beside it; empty unless this one was chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_chosen: Vec<String>,
    /// What became of it.
    pub outcome: PathOutcome,
    /// How much that counts, from 0 to 1.
    pub weight: f64,
    /// Why exploring it misled; only of [`PathOutcome::Misleading`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<MisleadingCause>,
    /// The failure, in the words of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What became of an explored path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathOutcome {
    /// Explored: it returned.
    Viable,
    /// Explored: it failed.
    Failed,
    /// Chosen: the run succeeded.
    Worked,
    /// Chosen: the run failed, although the path was viable.
    Misleading,
    /// Chosen: the run was prevented, which is no evidence either way.
    Undecided,
}

impl PathOutcome {
    /// Every outcome.
    pub const ALL: [PathOutcome; 5] = [
        PathOutcome::Viable,
        PathOutcome::Failed,
        PathOutcome::Worked,
        PathOutcome::Misleading,
        PathOutcome::Undecided,
    ];

    /// The name of the outcome, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            PathOutcome::Viable => "viable",
            PathOutcome::Failed => "failed",
            PathOutcome::Worked => "worked",
            PathOutcome::Misleading => "misleading",
            PathOutcome::Undecided => "undecided",
        }
    }

    /// The outcome with this name.
    pub fn parse(word: &str) -> Option<PathOutcome> {
        PathOutcome::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }
}

/// Why exploring a path misled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MisleadingCause {
    /// The call that failed was not made when exploring, or worked on made-up values there.
    Mock,
    /// A tool has another definition than when exploring.
    ToolChange,
    /// The call that failed had worked when exploring.
    Tool,
}

impl MisleadingCause {
    /// Every cause.
    pub const ALL: [MisleadingCause; 3] =
        [MisleadingCause::Mock, MisleadingCause::ToolChange, MisleadingCause::Tool];

    /// The name of the cause, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            MisleadingCause::Mock => "mock",
            MisleadingCause::ToolChange => "tool_change",
            MisleadingCause::Tool => "tool",
        }
    }

    /// The cause with this name.
    pub fn parse(word: &str) -> Option<MisleadingCause> {
        MisleadingCause::ALL.into_iter().find(|cause| cause.as_str() == word)
    }
}
