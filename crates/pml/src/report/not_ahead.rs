//! Why a call was not made before its program asked for it.

use std::fmt;

use pml_model::structure::NodeId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a call was not made ahead, or the result of the read was not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "reason", rename_all = "camelCase")]
pub enum NotAhead {
    /// Something may have been changed since the read.
    Written,
    /// The read was older than results may be.
    Expired,
    /// The tool has another definition since the read, or may no longer be called ahead.
    Changed,
    /// The read failed, or was not answered in time.
    Unanswered,
    /// The call stands behind another that may change what it reads.
    Behind {
        /// The node of the other call; `None` if that is within a capability.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>)]
        node: Option<NodeId>,
    },
}

/// Text to follow "not ahead:".
impl fmt::Display for NotAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAhead::Written => f.write_str("written since it was read"),
            NotAhead::Expired => f.write_str("the read expired"),
            NotAhead::Changed => f.write_str("its tool changed since it was read"),
            NotAhead::Unanswered => f.write_str("the read failed or took too long"),
            NotAhead::Behind { node: Some(node) } => write!(f, "stands behind {node}, which may change it"),
            NotAhead::Behind { node: None } => f.write_str("stands behind a call that may change it"),
        }
    }
}
