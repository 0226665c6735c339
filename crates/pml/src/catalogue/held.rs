//! Tools that are not offered, and why.
//!
//! What a server told first was accepted with the server. A tool that appears later, or becomes another one, waits here
//! until a person has seen it: nobody finds it and nobody can call it.

use std::fmt;
use std::sync::Arc;

use pml_model::{Definition, Digest, ServerName, ToolId};
use pml_store::AcceptedDefinition;
use serde_json::Value;

use super::Offer;
use crate::problem::{Code, Problem};

/// A tool that is held back.
#[derive(Debug, Clone)]
pub struct HeldBack {
    /// `server:tool`.
    pub id: ToolId,
    /// What programs would call it by.
    pub identifier: String,
    /// What its server says of it now.
    pub definition: Arc<Definition>,
    /// Why it is held back.
    pub why: Why,
}

/// Why a tool is held back.
#[derive(Debug, Clone)]
pub enum Why {
    /// It appeared after its server was accepted.
    New,
    /// It is not what was accepted.
    Changed {
        /// The digest that was accepted.
        accepted: Digest,
        /// The definition that was accepted, where it is at hand.
        before: Option<Box<Definition>>,
        /// The members of the definition that differ.
        members: Vec<String>,
    },
    /// Its name can be taken for that of another tool.
    Alike {
        /// The other one.
        other: String,
    },
    /// Its definition cannot be used.
    Unusable(String),
}

impl Why {
    /// Whether a person's word makes it usable.
    pub fn waits(&self) -> bool {
        matches!(self, Why::New | Why::Changed { .. })
    }

    /// Why an offer is held back, if what is `accepted` of its tool says so.
    pub(super) fn of(definition: &Definition, accepted: Option<&AcceptedDefinition>) -> Option<Why> {
        let Some(accepted) = accepted else { return Some(Why::New) };
        if accepted.digest == definition.digest {
            return None;
        }
        let before = accepted.replaced.clone().map(Box::new);
        let members = before.as_ref().map(|before| differing(before, definition)).unwrap_or_default();
        Some(Why::Changed { accepted: accepted.digest.clone(), before, members })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::New => f.write_str("it appeared after its server was accepted"),
            Why::Changed { members, .. } if members.is_empty() => {
                f.write_str("its definition changed after it was accepted")
            }
            Why::Changed { members, .. } => {
                write!(f, "its definition changed after it was accepted ({})", members.join(", "))
            }
            Why::Alike { other } => write!(f, "its name can be taken for `{other}`"),
            Why::Unusable(reason) => f.write_str(reason),
        }
    }
}

impl HeldBack {
    pub(super) fn new(server: &ServerName, offer: Offer, why: Why) -> HeldBack {
        let id = ToolId { server: server.clone(), tool: offer.definition.name.clone() };
        HeldBack { id, identifier: offer.identifier, definition: offer.definition, why }
    }

    /// What whoever wants to call it is told.
    pub fn problem(&self) -> Problem {
        let text = format!("tool `{}` is held back: {}", self.id, self.why);
        Problem::new(Code::Quarantined, text).hint(self.hint())
    }

    /// What a word for it would accept, line by line: what changed, or all of it.
    pub fn difference(&self) -> String {
        match &self.why {
            Why::Changed { before: Some(before), .. } => difference(before, &self.definition),
            Why::Changed { before: None, .. } | Why::New | Why::Alike { .. } | Why::Unusable(_) => {
                let pretty = pretty(&self.definition).unwrap_or_default();
                pretty.lines().map(|line| format!("+{line}\n")).collect()
            }
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        if self.why.waits() {
            format!("do without it, or have the user look at it with `pml accept {}`", self.id)
        } else {
            "`pml list` shows what is held back and why".to_owned()
        }
    }
}

/// What is different in a definition, line by line.
pub fn difference(before: &Definition, after: &Definition) -> String {
    let (Some(before), Some(after)) = (pretty(before), pretty(after)) else { return String::new() };
    similar::TextDiff::from_lines(&before, &after).unified_diff().context_radius(1).to_string()
}

/// A definition on lines of its own.
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
