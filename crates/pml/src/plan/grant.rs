//! What a person allowed a run to do.

use pml_model::Digest;
use serde::{Deserialize, Serialize};

use crate::catalogue::Snapshot;

/// What a person allowed a run to do. It is for that run alone and counts only as long as the tool's definition is the
/// one the person saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// `server:tool`.
    pub tool: String,
    /// Its definition then.
    pub definition: Digest,
    /// Since when it had that definition, where that is known: one that comes back is not the one that was allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defined_at: Option<i64>,
    /// Of the arguments, in canonical form; none where any may be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Digest>,
    /// The only call it is for, where it is for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// How many calls.
    pub calls: u32,
    /// Until when, in milliseconds since 1970.
    pub expires_at: i64,
    /// Who allowed it.
    pub by: String,
}

impl Grant {
    /// The same, for the tool as it is now.
    #[must_use]
    pub(crate) fn bound_to(self, snapshot: &Snapshot) -> Grant {
        Grant { defined_at: snapshot.defined_at(&self.tool, &self.definition), ..self }
    }

    /// Whether the tool had another definition since, also if it is what it was.
    pub(crate) fn is_void(&self, snapshot: &Snapshot) -> bool {
        self.defined_at.is_some_and(|at| snapshot.defined_at(&self.tool, &self.definition) != Some(at))
    }

    /// Whether it is for this call.
    pub(crate) fn allows(&self, tool: &str, (call, value): (u32, Option<&Digest>), now: i64) -> bool {
        self.tool == tool
            && now < self.expires_at
            && self.call.is_none_or(|only| only == call)
            && self.arguments.as_ref().is_none_or(|arguments| value == Some(arguments))
    }
}
