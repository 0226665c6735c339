//! Grants: what a person allowed a run to do.

use pml_model::Digest;
use serde::{Deserialize, Serialize};

use crate::catalogue::ToolSnapshot;

/// A permission that a person gave to one run. It is valid for that run alone, and only while the tool keeps the
/// definition that the person saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The tool, as `server:tool`.
    pub tool: String,
    /// The digest of the definition that the person saw.
    pub definition: Digest,
    /// When the tool got that definition, if known. A definition that was replaced and later restored is not the one
    /// that was allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defined_at: Option<i64>,
    /// The digest of the allowed arguments in canonical form; `None` allows any arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Digest>,
    /// The number of the only call that the grant covers; `None` covers any call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// How many calls the grant covers.
    pub calls: u32,
    /// When the grant expires, in milliseconds since the Unix epoch.
    pub expires_at: i64,
    /// Who allowed it: the person or program that answered, or the standing rule and its author.
    pub by: String,
}

impl Grant {
    /// Binds the grant to the tool's definition in `snapshot`.
    #[must_use]
    pub(crate) fn bound_to(self, snapshot: &ToolSnapshot) -> Grant {
        Grant { defined_at: snapshot.defined_at(&self.tool, &self.definition), ..self }
    }

    /// Whether the tool's definition was replaced since the grant, even if it was restored later.
    pub(crate) fn is_void(&self, snapshot: &ToolSnapshot) -> bool {
        self.defined_at.is_some_and(|at| snapshot.defined_at(&self.tool, &self.definition) != Some(at))
    }

    /// Whether the grant covers this call at the time `now`.
    pub(crate) fn allows(&self, tool: &str, (call, value): (u32, Option<&Digest>), now: i64) -> bool {
        self.tool == tool
            && now < self.expires_at
            && self.call.is_none_or(|only| only == call)
            && self.arguments.as_ref().is_none_or(|arguments| value == Some(arguments))
    }
}
