//! Approval settings: `[approvals]`, and `dynamic` of `[permissions]`.

use std::time::Duration;

use pml_model::question::Answerer;
use pml_store::OpenApprovalLimit;

use super::error::ConfigComplaint;
use super::node::ConfigValue;
use super::reference;
use super::section::Section;

/// Who may answer approvals, and the limits on open ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// Whose answers count; `None` leaves it to the interface (stdio or HTTP).
    pub answerer: Option<Answerer>,
    /// How long a question stays open before it expires.
    pub expire_after: Duration,
    /// The largest number of open approvals of one client.
    pub max_open: u32,
    /// The policy for programs whose calls are not known before they run.
    pub dynamic: DynamicPolicy,
}

/// The policy for programs whose calls are not known before they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DynamicPolicy {
    /// The program runs, and a person is asked at each call that needs approval.
    #[default]
    Ask,
    /// The program is refused.
    Refuse,
}

/// The default of `max_open`: more than a person answers in one sitting, and far more than a sensible client asks at
/// a time.
const OPEN: u32 = 32;
/// The limit per principal, as a multiple of `max_open`. It holds whatever names clients give, since a client chooses
/// its own name.
const CLIENTS: u32 = 8;

const HOUR: Duration = Duration::from_secs(60 * 60);

impl Default for ApprovalSettings {
    fn default() -> ApprovalSettings {
        ApprovalSettings {
            answerer: None,
            expire_after: 24 * HOUR,
            max_open: OPEN,
            dynamic: DynamicPolicy::Ask,
        }
    }
}

impl ApprovalSettings {
    /// The lifetime of a question in milliseconds.
    pub fn expire_ms(&self) -> i64 {
        i64::try_from(self.expire_after.as_millis()).unwrap_or(i64::MAX)
    }

    /// The limits on open approvals, per client and per principal.
    pub fn open_limit(&self) -> OpenApprovalLimit {
        OpenApprovalLimit { per_client: self.max_open, per_principal: self.max_open.saturating_mul(CLIENTS) }
    }
}

/// Reads `[approvals]` and `permissions.dynamic`.
pub(super) fn approvals(root: &Section<'_>) -> Result<ApprovalSettings, ConfigComplaint> {
    let default = ApprovalSettings { dynamic: dynamic(root)?, ..ApprovalSettings::default() };
    let Some(table) = root.section("approvals", &reference::keys("approvals"))? else { return Ok(default) };
    Ok(ApprovalSettings {
        answerer: by(&table)?,
        expire_after: table
            .duration_in("expire", Duration::from_secs(1)..=30 * 24 * HOUR)?
            .unwrap_or(default.expire_after),
        max_open: table.count("open", 1..=10_000)?.unwrap_or(default.max_open),
        ..default
    })
}

fn by(table: &Section<'_>) -> Result<Option<Answerer>, ConfigComplaint> {
    match (table.text("by")?, table.get("by")) {
        (Some("human"), _) => Ok(Some(Answerer::Human)),
        (Some("client"), _) => Ok(Some(Answerer::Client)),
        (Some(other), Some(node)) => Err(table
            .file
            .complaint(node.at, format!("`{}` is `{other}`", table.member_path("by")))
            .hint("write \"human\" (only a person may approve) or \"client\" (a client may approve, too)")),
        (_, _) => Ok(None),
    }
}

fn dynamic(root: &Section<'_>) -> Result<DynamicPolicy, ConfigComplaint> {
    let Some(node) = root.get("permissions") else { return Ok(DynamicPolicy::Ask) };
    let table = Section::open(root.file, node, "permissions")?;
    match table.get("dynamic") {
        Some(node) if is_dynamic_setting("dynamic", &node.value) => match &node.value {
            ConfigValue::Text(word) if word == "ask" => Ok(DynamicPolicy::Ask),
            ConfigValue::Text(word) if word == "refuse" => Ok(DynamicPolicy::Refuse),
            _ => Err(root
                .file
                .complaint(node.at, "`permissions.dynamic` is neither \"ask\" nor \"refuse\"")
                .hint("\"ask\" runs programs whose calls cannot be known beforehand and asks at each call; \"refuse\" does not")),
        },
        Some(_) | None => Ok(DynamicPolicy::Ask),
    }
}

/// Whether a member of `[permissions]` is the setting `dynamic` and not a rule for a server of that name.
pub(super) fn is_dynamic_setting(key: &str, value: &ConfigValue) -> bool {
    key == "dynamic" && !matches!(value, ConfigValue::Table(_))
}
