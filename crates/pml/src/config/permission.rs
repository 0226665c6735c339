//! Rules about tools: what the user lets programs do.
//!
//! They are read from `[permissions]` of the user's `pml.toml` and from `mcp-permissions.yaml` beside
//! it. Which rule counts for which tool is not decided here but in [`approve`](crate::approve).

use std::time::Duration;

use pml_model::ServerName;

use super::approvals::is_dynamic;
use super::error::Complaint;
use super::node::{File, Member};
use super::reference;
use super::section::Section;

/// The file beside `pml.toml` that may hold rules too.
pub(super) const YAML_FILE: &str = "mcp-permissions.yaml";

/// The longest time for which what a tool gave may be given again: a day, after which all kept results are old.
const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// What the user says of some tools. What a rule leaves out, a wider rule may say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which tools.
    pub subject: Subject,
    /// Whether a person is asked before a call.
    pub approval: Option<Approval>,
    /// Never called, whatever other rules say.
    pub deny: bool,
    /// What kind of reach the tools have.
    pub scope: Option<Scope>,
    /// They change nothing.
    pub read_only: Option<bool>,
    /// Calling one again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// They reach beyond a closed set of things, such as the web.
    pub open_world: Option<bool>,
    /// What they change is seen by no other server.
    pub isolated: Option<bool>,
    /// What they give depends on their arguments alone.
    pub closed: Option<bool>,
    /// How long what they gave may be given again.
    pub cache_ttl: Option<Duration>,
    /// The rule for people, such as `` `github:search_*` in [permissions] ``.
    pub shown: String,
    /// Its file and line.
    pub place: String,
}

/// Whether a tool may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Without asking anybody.
    Auto,
    /// After a person said yes.
    Ask,
    /// Never.
    Deny,
}

impl Mode {
    /// The word for it in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Auto => "auto",
            Mode::Ask => "hil",
            Mode::Deny => "deny",
        }
    }
}

/// Which tools a rule is about. `github` is about every tool of that server, as `github:*` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The server.
    pub server: Pattern,
    /// The tool, as its server spells it.
    pub tool: Pattern,
}

impl Subject {
    /// Whether it is one tool, by its full name.
    pub fn is_exact(&self) -> bool {
        self.server.is_literal() && self.tool.is_literal()
    }

    /// Whether the tool `tool` of `server` is among them.
    pub fn has(&self, server: &str, tool: &str) -> bool {
        self.server.matches(server) && self.tool.matches(tool)
    }
}

/// A text in which each `*` stands for any characters, also for none. Letters count as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern `text`.
    pub fn new(text: &str) -> Pattern {
        Pattern(text.to_owned())
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for itself alone.
    pub fn is_literal(&self) -> bool {
        !self.0.contains('*')
    }

    /// How many of its characters stand for themselves.
    pub fn literals(&self) -> usize {
        self.0.chars().filter(|c| *c != '*').count()
    }

    /// Whether it stands for `text`.
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == text };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        let Some(text) = text.strip_prefix(first).and_then(|text| text.strip_suffix(last)) else {
            return false;
        };
        // Taking each part where it first appears leaves the most for those that follow.
        let mut left = Some(text);
        for part in middle.split('*') {
            left = left.and_then(|text| text.split_once(part)).map(|(_, after)| after);
        }
        left.is_some()
    }
}

/// Whether a person is asked before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// Nobody is asked.
    Auto,
    /// A person is: `hil`, a human in the loop.
    Hil,
}

/// What kind of reach a tool has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Computes only.
    Minimal,
    /// Reads.
    Readonly,
    /// Writes files.
    Filesystem,
    /// Reaches a network.
    NetworkApi,
    /// Any of these.
    McpStandard,
}

impl Scope {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Minimal => "minimal",
            Scope::Readonly => "readonly",
            Scope::Filesystem => "filesystem",
            Scope::NetworkApi => "network-api",
            Scope::McpStandard => "mcp-standard",
        }
    }

    fn parse(word: &str) -> Option<Scope> {
        match word {
            "minimal" => Some(Scope::Minimal),
            "readonly" => Some(Scope::Readonly),
            "filesystem" => Some(Scope::Filesystem),
            "network-api" => Some(Scope::NetworkApi),
            "mcp-standard" | "standard" | "privileged" => Some(Scope::McpStandard),
            _ => None,
        }
    }
}

/// Which of the two files a rule stands in; they differ in the spellings they take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Toml,
    Yaml,
}

impl Form {
    fn shown(self) -> &'static str {
        match self {
            Form::Toml => "[permissions]",
            Form::Yaml => YAML_FILE,
        }
    }

    fn keys(self) -> Vec<&'static str> {
        let mut keys = reference::keys("permissions.PATTERN");
        if self == Form::Yaml {
            keys.extend(["permissionSet", "isReadOnly"]);
            // The spellings that this file usually has come first in hints.
            keys.sort_by_key(|key| key.contains('_'));
        }
        keys
    }
}

/// Adds the rules in `table` to `rules`. No two may be about the same tools: nobody could tell which
/// of them counts.
pub(super) fn read(table: &Section<'_>, form: Form, rules: &mut Vec<Rule>) -> Result<(), Complaint> {
    for member in table.members() {
        if form == Form::Toml && is_dynamic(&member.key, &member.node.value) {
            continue;
        }
        let rule = rule(table, member, form)?;
        if let Some(other) = rules.iter().find(|other| other.subject == rule.subject) {
            let message =
                format!("`{}` is about the same tools as {} at {}", member.key, other.shown, other.place);
            return Err(table.file.complaint(member.key_at, message).hint("keep one of them"));
        }
        rules.push(rule);
    }
    Ok(())
}

fn rule(table: &Section<'_>, member: &Member, form: Form) -> Result<Rule, Complaint> {
    let file = table.file;
    let subject = subject(file, member)?;
    let rule = Section::strict(file, &member.node, &table.path(&member.key), &form.keys())?;
    let place = file.complaint(member.key_at, "");
    Ok(Rule {
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
        shown: format!("`{}` in {}", member.key, form.shown()),
        place: format!("{}:{}", place.shown, place.line),
    })
}

pub(super) fn subject(file: &File, member: &Member) -> Result<Subject, Complaint> {
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
    Ok(Subject { server: Pattern::new(server), tool: Pattern::new(tool) })
}

fn approval(rule: &Section<'_>) -> Result<Option<Approval>, Complaint> {
    let Some(key) = spelled(rule, &["approval_mode", "approvalMode"])? else { return Ok(None) };
    match rule.text(key)? {
        Some("auto") => Ok(Some(Approval::Auto)),
        Some("hil") => Ok(Some(Approval::Hil)),
        other => Err(unknown_word(rule, key, other, "write \"auto\", or \"hil\" to have a person asked")),
    }
}

fn scope(rule: &Section<'_>) -> Result<Option<Scope>, Complaint> {
    let Some(key) = spelled(rule, &["scope", "permissionSet"])? else { return Ok(None) };
    let word = rule.text(key)?;
    let hint = "write \"minimal\", \"readonly\", \"filesystem\", \"network-api\" or \"mcp-standard\"";
    word.and_then(Scope::parse).map(Some).ok_or_else(|| unknown_word(rule, key, word, hint))
}

fn cache_ttl(rule: &Section<'_>) -> Result<Option<Duration>, Complaint> {
    spelled(rule, &["cache_ttl", "cacheTtl"])?
        .map_or(Ok(None), |key| rule.duration_in(key, Duration::ZERO..=LONGEST_TTL))
}

fn flag(rule: &Section<'_>, spellings: &[&'static str]) -> Result<Option<bool>, Complaint> {
    spelled(rule, spellings)?.map_or(Ok(None), |key| rule.flag(key))
}

/// The one of `spellings` that `rule` uses.
fn spelled(rule: &Section<'_>, spellings: &[&'static str]) -> Result<Option<&'static str>, Complaint> {
    let mut used = spellings.iter().filter_map(|key| Some((*key, rule.member(key)?)));
    match (used.next(), used.next()) {
        (None, _) => Ok(None),
        (Some((key, _)), None) => Ok(Some(key)),
        (Some((key, _)), Some((_, again))) => Err(rule
            .file
            .complaint(again.key_at, format!("`{}` is `{key}` in another spelling", rule.path(&again.key)))
            .hint("keep one of them")),
    }
}

fn unknown_word(rule: &Section<'_>, key: &str, word: Option<&str>, hint: &str) -> Complaint {
    let at = rule.get(key).map_or(rule.at, |node| node.at);
    let message = format!("`{}` is `{}`", rule.path(key), word.unwrap_or_default());
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
            let matches = |text: &&str| Pattern::new(pattern).matches(text);
            assert_eq!(fits.iter().filter(|text| !matches(text)).count(), 0, "{pattern}: {fits:?}");
            assert_eq!(differs.iter().filter(|text| matches(text)).count(), 0, "{pattern}: {differs:?}");
        }
    }
}
