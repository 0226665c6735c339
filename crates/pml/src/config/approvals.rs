//! Who is asked, and how: `[approvals]`, and `dynamic` of `[permissions]`.

use std::time::Duration;

use pml_model::question::Answerer;
use pml_store::OpenLimit;

use super::error::Complaint;
use super::node::Value;
use super::reference;
use super::section::Section;

/// How people are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvals {
    /// Whose answers count; where it is not said, it depends on the door.
    pub by: Option<Answerer>,
    /// How long a question waits.
    pub expire: Duration,
    /// How many approvals of one client may be open at a time.
    pub open: u32,
    /// What becomes of programs whose calls cannot be known before they run.
    pub dynamic: Dynamic,
}

/// What becomes of a program whose calls cannot be known before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dynamic {
    /// It runs, and a person is asked at each call that needs one.
    #[default]
    Ask,
    /// It is not run.
    Refuse,
}

/// More than a person answers in one sitting, and far more than a client with a purpose asks at a time.
const OPEN: u32 = 32;
/// How many clients may have all their questions open, whatever names they give: the name is the client's own word.
const CLIENTS: u32 = 8;

const HOUR: Duration = Duration::from_secs(60 * 60);

impl Default for Approvals {
    fn default() -> Approvals {
        Approvals { by: None, expire: 24 * HOUR, open: OPEN, dynamic: Dynamic::Ask }
    }
}

impl Approvals {
    /// How long a question waits, in milliseconds.
    pub fn expire_ms(&self) -> i64 {
        i64::try_from(self.expire.as_millis()).unwrap_or(i64::MAX)
    }

    /// How many approvals may be open at a time.
    pub fn open_limit(&self) -> OpenLimit {
        OpenLimit { per_client: self.open, per_principal: self.open.saturating_mul(CLIENTS) }
    }
}

/// Reads both.
pub(super) fn approvals(root: &Section<'_>) -> Result<Approvals, Complaint> {
    let default = Approvals { dynamic: dynamic(root)?, ..Approvals::default() };
    let Some(table) = root.section("approvals", &reference::keys("approvals"))? else { return Ok(default) };
    Ok(Approvals {
        by: by(&table)?,
        expire: table
            .duration_in("expire", Duration::from_secs(1)..=30 * 24 * HOUR)?
            .unwrap_or(default.expire),
        open: table.count("open", 1..=10_000)?.unwrap_or(default.open),
        ..default
    })
}

fn by(table: &Section<'_>) -> Result<Option<Answerer>, Complaint> {
    match (table.text("by")?, table.get("by")) {
        (Some("human"), _) => Ok(Some(Answerer::Human)),
        (Some("client"), _) => Ok(Some(Answerer::Client)),
        (Some(other), Some(node)) => {
            Err(table.file.complaint(node.at, format!("`{}` is `{other}`", table.path("by"))).hint(
                "write \"human\" (only a person's own word counts) or \"client\" (what a client says counts)",
            ))
        }
        (_, _) => Ok(None),
    }
}

fn dynamic(root: &Section<'_>) -> Result<Dynamic, Complaint> {
    let Some(node) = root.get("permissions") else { return Ok(Dynamic::Ask) };
    let table = Section::open(root.file, node, "permissions")?;
    match table.get("dynamic") {
        Some(node) if is_dynamic("dynamic", &node.value) => match &node.value {
            Value::Text(word) if word == "ask" => Ok(Dynamic::Ask),
            Value::Text(word) if word == "refuse" => Ok(Dynamic::Refuse),
            _ => Err(root
                .file
                .complaint(node.at, "`permissions.dynamic` is neither \"ask\" nor \"refuse\"")
                .hint("\"ask\" runs programs whose calls cannot be known beforehand and asks at each call; \"refuse\" does not")),
        },
        Some(_) | None => Ok(Dynamic::Ask),
    }
}

/// Whether a member of `[permissions]` is this setting and not a rule for a server of that name.
pub(super) fn is_dynamic(key: &str, value: &Value) -> bool {
    key == "dynamic" && !matches!(value, Value::Table(_))
}
