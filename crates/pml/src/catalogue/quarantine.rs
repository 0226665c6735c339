//! Quarantined tools: not offered, and why.
//!
//! The definitions in a server's first manifest are accepted with the server. A tool that appears later, or whose
//! definition changes, waits here until a person accepts it: it cannot be found or called.

use std::fmt;
use std::sync::Arc;

use pml_model::{Definition, Digest, ServerName, ToolId};
use pml_store::AcceptedDefinition;
use serde_json::Value;

use super::Offer;
use crate::problem::{ErrorCode, Problem};

/// A quarantined tool.
#[derive(Debug, Clone)]
pub struct QuarantinedTool {
    /// The id, `server:tool`.
    pub id: ToolId,
    /// The name it would have in programs.
    pub identifier: String,
    /// The present definition from its server.
    pub definition: Arc<Definition>,
    /// Why it is quarantined.
    pub reason: QuarantineReason,
}

/// Why a tool is quarantined.
#[derive(Debug, Clone)]
pub enum QuarantineReason {
    /// It appeared after its server was accepted.
    New,
    /// Its definition differs from the accepted one.
    Changed {
        /// The accepted digest.
        accepted: Digest,
        /// The accepted definition, if it is available.
        before: Option<Box<Definition>>,
        /// The members of the definition that differ.
        members: Vec<String>,
    },
    /// Its name can be confused with that of another tool.
    LookAlike {
        /// The id of the other tool.
        other: String,
    },
    /// Its definition cannot be used.
    Unusable(String),
}

impl QuarantineReason {
    /// Whether acceptance by a person makes it usable.
    pub fn needs_acceptance(&self) -> bool {
        matches!(self, QuarantineReason::New | QuarantineReason::Changed { .. })
    }

    /// Why an offer is quarantined, given what is `accepted` of its tool; `None` if it is not.
    pub(super) fn of(
        definition: &Definition,
        accepted: Option<&AcceptedDefinition>,
    ) -> Option<QuarantineReason> {
        let Some(accepted) = accepted else { return Some(QuarantineReason::New) };
        if accepted.digest == definition.digest {
            return None;
        }
        let before = accepted.replaced.clone().map(Box::new);
        let members = before.as_ref().map(|before| differing(before, definition)).unwrap_or_default();
        Some(QuarantineReason::Changed { accepted: accepted.digest.clone(), before, members })
    }
}

impl fmt::Display for QuarantineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuarantineReason::New => f.write_str("it appeared after its server was accepted"),
            QuarantineReason::Changed { members, .. } if members.is_empty() => {
                f.write_str("its definition changed after it was accepted")
            }
            QuarantineReason::Changed { members, .. } => {
                write!(f, "its definition changed after it was accepted ({})", members.join(", "))
            }
            QuarantineReason::LookAlike { other } => write!(f, "its name can be taken for `{other}`"),
            QuarantineReason::Unusable(reason) => f.write_str(reason),
        }
    }
}

impl QuarantinedTool {
    pub(super) fn new(server: &ServerName, offer: Offer, why: QuarantineReason) -> QuarantinedTool {
        let id = ToolId { server: server.clone(), tool: offer.definition.name.clone() };
        QuarantinedTool { id, identifier: offer.identifier, definition: offer.definition, reason: why }
    }

    /// The error for a call of it.
    pub fn problem(&self) -> Problem {
        let text = format!("tool `{}` is held back: {}", self.id, self.reason);
        Problem::new(ErrorCode::Quarantined, text).hint(self.hint())
    }

    /// What acceptance would accept, line by line: the changes, or the complete definition.
    pub fn difference(&self) -> String {
        match &self.reason {
            QuarantineReason::Changed { before: Some(before), .. } => difference(before, &self.definition),
            QuarantineReason::Changed { before: None, .. }
            | QuarantineReason::New
            | QuarantineReason::LookAlike { .. }
            | QuarantineReason::Unusable(_) => {
                let pretty = pretty(&self.definition).unwrap_or_default();
                pretty.lines().map(|line| format!("+{line}\n")).collect()
            }
        }
    }

    /// The hint: what to do about it.
    pub fn hint(&self) -> String {
        if self.reason.needs_acceptance() {
            format!("do without it, or have the user look at it with `pml accept {}`", self.id)
        } else {
            "`pml list` shows what is held back and why".to_owned()
        }
    }
}

/// The differences between two definitions, line by line.
pub fn difference(before: &Definition, after: &Definition) -> String {
    let (Some(before), Some(after)) = (pretty(before), pretty(after)) else { return String::new() };
    similar::TextDiff::from_lines(&before, &after).unified_diff().context_radius(1).to_string()
}

/// A definition as indented JSON.
fn pretty(definition: &Definition) -> Option<String> {
    let value: Value = serde_json::from_str(definition.raw.get()).ok()?;
    serde_json::to_string_pretty(&value).ok()
}

/// The members in which two definitions differ, as far as it matters.
fn differing(before: &Definition, now: &Definition) -> Vec<String> {
    let object = |definition: &Definition| match serde_json::from_str(definition.raw.get()) {
        Ok(Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    };
    let (before, now) = (object(before), object(now));
    let counts = ["description", "inputSchema", "outputSchema", "annotations"];
    let differs = |name: &&str| before.get(*name) != now.get(*name);
    counts.into_iter().filter(differs).map(str::to_owned).collect()
}
