//! Permission rules: what the user lets programs do with tools.
//!
//! They are read from `[permissions]` of the user's `pml.toml` and from `mcp-permissions.yaml` beside it.
//! [`approve`](crate::approve) decides which rule applies to which tool.

use std::time::Duration;

use pml_model::ServerName;
use pml_model::remote::Routing;

use super::approvals::is_dynamic_setting;
use super::error::ConfigComplaint;
use super::node::{ConfigFile, ConfigMember};
use super::reference;
use super::section::Section;

/// The file beside `pml.toml` that may hold rules too.
pub(super) const YAML_FILE: &str = "mcp-permissions.yaml";

/// One day: the longest cache lifetime of a tool's results. All cached results are stale after it.
const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// What the user says about some tools. An attribute that a rule leaves out may come from a wider rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRule {
    /// The tools that the rule covers.
    pub subject: RuleSubject,
    /// Whether a person is asked before a call.
    pub approval: Option<ApprovalMode>,
    /// Never called, whatever other rules say.
    pub deny: bool,
    /// The scope of the tools.
    pub scope: Option<ToolScope>,
    /// The tools change nothing.
    pub read_only: Option<bool>,
    /// The tools are idempotent.
    pub idempotent: Option<bool>,
    /// The tools reach beyond a closed set of things, such as the web.
    pub open_world: Option<bool>,
    /// No other server sees what the tools change.
    pub isolated: Option<bool>,
    /// The results depend on the arguments alone.
    pub closed: Option<bool>,
    /// How long a result may be returned from the cache.
    pub cache_ttl: Option<Duration>,
    /// Whether the tools may be called before a program asks for it.
    pub speculate: Option<bool>,
    /// Where the calls of the tools are made.
    pub routing: Option<Routing>,
    /// The rule for display, such as `` `github:search_*` in [permissions] ``.
    pub label: String,
    /// File and line, for messages.
    pub place: String,
}

/// Whether a program may call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPermission {
    /// Without approval.
    Auto,
    /// With the approval of a person.
    Ask,
    /// Never.
    Deny,
}

impl CallPermission {
    /// The word in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            CallPermission::Auto => "auto",
            CallPermission::Ask => "hil",
            CallPermission::Deny => "deny",
        }
    }
}

/// The tools that a rule covers. `github` covers every tool of that server, like `github:*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSubject {
    /// The pattern of the server name.
    pub server: WildcardPattern,
    /// The pattern of the tool name, as its server spells it.
    pub tool: WildcardPattern,
}

impl RuleSubject {
    /// Whether it names exactly one tool.
    pub fn is_exact(&self) -> bool {
        self.server.is_literal() && self.tool.is_literal()
    }

    /// Whether it covers the tool `tool` of `server`.
    pub fn covers(&self, server: &str, tool: &str) -> bool {
        self.server.matches(server) && self.tool.matches(tool)
    }
}

/// A pattern in which each `*` matches any characters, including none. Matching is case-sensitive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WildcardPattern(String);

impl WildcardPattern {
    /// The pattern `text`.
    pub fn new(text: &str) -> WildcardPattern {
        WildcardPattern(text.to_owned())
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it has no `*`.
    pub fn is_literal(&self) -> bool {
        !self.0.contains('*')
    }

    /// The number of characters other than `*`.
    pub fn literal_count(&self) -> usize {
        self.0.chars().filter(|c| *c != '*').count()
    }

    /// Whether it matches `text`.
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == text };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        let Some(text) = text.strip_prefix(first).and_then(|text| text.strip_suffix(last)) else {
            return false;
        };
        // Matching each part at its first occurrence leaves the most for the parts that follow.
        let mut left = Some(text);
        for part in middle.split('*') {
            left = left.and_then(|text| text.split_once(part)).map(|(_, after)| after);
        }
        left.is_some()
    }
}

/// Whether a person is asked before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalMode {
    /// Called without approval.
    Auto,
    /// A person is asked: `hil`, human in the loop.
    Hil,
}

/// The scope of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolScope {
    /// Only computes.
    Minimal,
    /// Only reads.
    Readonly,
    /// Writes files.
    Filesystem,
    /// Reaches a network.
    NetworkApi,
    /// Any of these.
    McpStandard,
}

impl ToolScope {
    /// The word in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            ToolScope::Minimal => "minimal",
            ToolScope::Readonly => "readonly",
            ToolScope::Filesystem => "filesystem",
            ToolScope::NetworkApi => "network-api",
            ToolScope::McpStandard => "mcp-standard",
        }
    }

    fn parse(word: &str) -> Option<ToolScope> {
        match word {
            "minimal" => Some(ToolScope::Minimal),
            "readonly" => Some(ToolScope::Readonly),
            "filesystem" => Some(ToolScope::Filesystem),
            "network-api" => Some(ToolScope::NetworkApi),
            "mcp-standard" | "standard" | "privileged" => Some(ToolScope::McpStandard),
            _ => None,
        }
    }
}

/// The format of the file that contains a rule; the two accept different spellings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleFormat {
    Toml,
    Yaml,
}

impl RuleFormat {
    fn shown(self) -> &'static str {
        match self {
            RuleFormat::Toml => "[permissions]",
            RuleFormat::Yaml => YAML_FILE,
        }
    }

    fn keys(self) -> Vec<&'static str> {
        let mut keys = reference::keys("permissions.PATTERN");
        if self == RuleFormat::Yaml {
            keys.extend(["permissionSet", "isReadOnly"]);
            // The spellings that are usual in this file come first in hints.
            keys.sort_by_key(|key| key.contains('_'));
        }
        keys
    }
}

/// Adds the rules in `table` to `rules`. Two rules with the same subject are an error, since it would be unclear
/// which applies.
pub(super) fn read_rules(
    table: &Section<'_>,
    form: RuleFormat,
    rules: &mut Vec<PermissionRule>,
) -> Result<(), ConfigComplaint> {
    for member in table.members() {
        if form == RuleFormat::Toml && is_dynamic_setting(&member.key, &member.node.value) {
            continue;
        }
        let rule = rule(table, member, form)?;
        if let Some(other) = rules.iter().find(|other| other.subject == rule.subject) {
            let message =
                format!("`{}` is about the same tools as {} at {}", member.key, other.label, other.place);
            return Err(table.file.complaint(member.key_at, message).hint("keep one of them"));
        }
        rules.push(rule);
    }
    Ok(())
}

fn rule(
    table: &Section<'_>,
    member: &ConfigMember,
    form: RuleFormat,
) -> Result<PermissionRule, ConfigComplaint> {
    let file = table.file;
    let subject = read_subject(file, member)?;
    let rule = Section::open_strict(file, &member.node, &table.member_path(&member.key), &form.keys())?;
    let place = file.complaint(member.key_at, "");
    Ok(PermissionRule {
        subject,
        approval: approval(&rule)?,
        deny: rule.flag("deny")?.unwrap_or(false),
        scope: scope(&rule)?,
        read_only: flag(&rule, &["read_only", "readOnly", "isReadOnly"])?,
        idempotent: rule.flag("idempotent")?,
        open_world: flag(&rule, &["open_world", "openWorld"])?,
        isolated: rule.flag("isolated")?,
        closed: rule.flag("closed")?,
        cache_ttl: cache_ttl(&rule)?,
        speculate: rule.flag("speculate")?,
        routing: routing(&rule)?,
        label: format!("`{}` in {}", member.key, form.shown()),
        place: format!("{}:{}", place.shown_path, place.line),
    })
}

pub(super) fn read_subject(file: &ConfigFile, member: &ConfigMember) -> Result<RuleSubject, ConfigComplaint> {
    let key = member.key.as_str();
    let (server, tool) = key.split_once(':').unwrap_or((key, "*"));
    let fits = if server.contains('*') {
        server.chars().all(|c| c.is_ascii_alphanumeric() || "_-*".contains(c))
    } else {
        ServerName::new(server).is_ok()
    };
    if !fits || tool.is_empty() || tool.trim() != tool {
        return Err(file.complaint(member.key_at, format!("`{key}` names no tools")).hint(
            "write a server (`github`), a tool (`\"github:search\"`) or a pattern (`\"github:get_*\"`)",
        ));
    }
    Ok(RuleSubject { server: WildcardPattern::new(server), tool: WildcardPattern::new(tool) })
}

fn approval(rule: &Section<'_>) -> Result<Option<ApprovalMode>, ConfigComplaint> {
    let Some(key) = spelled(rule, &["approval_mode", "approvalMode"])? else { return Ok(None) };
    match rule.text(key)? {
        Some("auto") => Ok(Some(ApprovalMode::Auto)),
        Some("hil") => Ok(Some(ApprovalMode::Hil)),
        other => Err(unknown_word(rule, key, other, "write \"auto\", or \"hil\" to have a person asked")),
    }
}

/// Where calls are made, as a rule or a server says.
pub(super) fn routing(table: &Section<'_>) -> Result<Option<Routing>, ConfigComplaint> {
    let Some(word) = table.text("routing")? else { return Ok(None) };
    let hint = "write \"server\", or \"client\" for tools that are on the machines of clients";
    Routing::parse(word).map(Some).ok_or_else(|| unknown_word(table, "routing", Some(word), hint))
}

fn scope(rule: &Section<'_>) -> Result<Option<ToolScope>, ConfigComplaint> {
    let Some(key) = spelled(rule, &["scope", "permissionSet"])? else { return Ok(None) };
    let word = rule.text(key)?;
    let hint = "write \"minimal\", \"readonly\", \"filesystem\", \"network-api\" or \"mcp-standard\"";
    word.and_then(ToolScope::parse).map(Some).ok_or_else(|| unknown_word(rule, key, word, hint))
}

fn cache_ttl(rule: &Section<'_>) -> Result<Option<Duration>, ConfigComplaint> {
    spelled(rule, &["cache_ttl", "cacheTtl"])?
        .map_or(Ok(None), |key| rule.duration_in(key, Duration::ZERO..=LONGEST_TTL))
}

fn flag(rule: &Section<'_>, spellings: &[&'static str]) -> Result<Option<bool>, ConfigComplaint> {
    spelled(rule, spellings)?.map_or(Ok(None), |key| rule.flag(key))
}

/// The one of `spellings` that `rule` uses; an error where it uses several.
fn spelled(rule: &Section<'_>, spellings: &[&'static str]) -> Result<Option<&'static str>, ConfigComplaint> {
    let mut used = spellings.iter().filter_map(|key| Some((*key, rule.member(key)?)));
    match (used.next(), used.next()) {
        (None, _) => Ok(None),
        (Some((key, _)), None) => Ok(Some(key)),
        (Some((key, _)), Some((_, again))) => Err(rule
            .file
            .complaint(
                again.key_at,
                format!("`{}` is `{key}` in another spelling", rule.member_path(&again.key)),
            )
            .hint("keep one of them")),
    }
}

fn unknown_word(rule: &Section<'_>, key: &str, word: Option<&str>, hint: &str) -> ConfigComplaint {
    let at = rule.get(key).map_or(rule.at, |node| node.at);
    let message = format!("`{}` is `{}`", rule.member_path(key), word.unwrap_or_default());
    rule.file.complaint(at, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, fits, differs) in [
            ("read", &["read"][..], &["rea", "reads", "Read", ""][..]),
            ("*", &["", "x", "*"], &[]),
            ("search_*", &["search_", "search_code"], &["search", "research_x"]),
            ("*delete*", &["delete", "delete_file", "undelete"], &["delet", "Delete"]),
            ("a*b*c", &["abc", "a1b2c", "abbcc", "abcbc"], &["acb", "ab", "ac"]),
            ("a*a", &["aa", "aba"], &["a", "ab"]),
            ("a**b", &["ab", "axb"], &["a", "b"]),
            ("a*bc*bc", &["abcbc", "a-bc-bc"], &["abc"]),
            ("a.c?", &["a.c?"], &["abcd"]),
            ("é*", &["é", "éa"], &["e"]),
        ] {
            let matches = |text: &&str| WildcardPattern::new(pattern).matches(text);
            assert_eq!(fits.iter().filter(|text| !matches(text)).count(), 0, "{pattern}: {fits:?}");
            assert_eq!(differs.iter().filter(|text| matches(text)).count(), 0, "{pattern}: {differs:?}");
        }
    }
}
