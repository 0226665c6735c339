//! Writes the rules that a person accepted for a new server into `[permissions]`, and removes them with the server.

use std::ops::Range;
use std::path::Path;

use toml_edit::{DocumentMut, InlineTable, Item, Table, Value, value};

use super::{ConfigFile, block_around, disk, editable, last_value, lines_as_in, parse, save};
use crate::config::ApprovalMode;
use crate::config::error::Error;
use crate::config::paths::Env;

/// A rule to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPermissionRule {
    /// The pattern of tools, such as `github` or `github:search`.
    pub subject: String,
    /// `Auto` for tools that only read; `Hil` for others.
    pub approval: ApprovalMode,
}

impl NewPermissionRule {
    fn value(&self) -> InlineTable {
        let mut table = InlineTable::new();
        match self.approval {
            ApprovalMode::Auto => {
                table.insert("approval_mode", "auto".into());
                table.insert("read_only", true.into());
            }
            ApprovalMode::Hil => {
                table.insert("approval_mode", "hil".into());
            }
        }
        table
    }
}

/// Adds rules to the configuration at `path`, which exists.
///
/// # Errors
/// The configuration is invalid, has a rule for the same tools, or cannot be written.
pub fn add_rules(path: &Path, rules: &[NewPermissionRule]) -> Result<(), Error> {
    let bytes = disk::read(path)?.unwrap_or_default();
    let text = ConfigFile::new(path, bytes, &Env::default())?.text;
    if rules.is_empty() {
        return Ok(());
    }
    let document = parse(path, &text)?;
    let edited = match document.get("permissions") {
        // Subtables may have headers while `[permissions]` itself has none.
        Some(Item::Table(table)) if !table.is_dotted() && !table.is_implicit() => {
            let mut edited = text.clone();
            let end = block_around(&text, header(table)).table.end;
            let gap = if text[..end].ends_with('\n') { "" } else { "\n" };
            edited.insert_str(end, &lines_as_in(&text, &format!("{gap}{}", lines(rules))));
            edited
        }
        None => appended(&text, rules),
        Some(Item::Table(table)) if table.is_implicit() && !table.is_dotted() => appended(&text, rules),
        Some(_) => {
            let mut document = editable(path, &text)?;
            if let Some(table) = document.get_mut("permissions").and_then(Item::as_table_like_mut) {
                for rule in rules {
                    table.insert(&rule.subject, value(rule.value()));
                }
            }
            document.to_string()
        }
    };
    save(path, &text, &edited)
}

fn header(table: &Table) -> Range<usize> {
    let header = table.span().unwrap_or_default();
    header.start..last_value(table).max(header.end)
}

fn appended(text: &str, rules: &[NewPermissionRule]) -> String {
    let gap = if text.is_empty() || text.ends_with("\n\n") || text.ends_with("\n\r\n") { "" } else { "\n" };
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{}", lines_as_in(text, &format!("{end}{gap}[permissions]\n{}", lines(rules))))
}

fn lines(rules: &[NewPermissionRule]) -> String {
    let mut document = DocumentMut::new();
    for rule in rules {
        document.insert(&rule.subject, value(rule.value()));
    }
    document.to_string()
}

/// `text` without the rules for `server` that [`add_rules`] wrote. Any other rule was written by a person and stays.
pub(super) fn without_rules(path: &Path, text: &str, server: &str) -> Result<String, Error> {
    let document = parse(path, text)?;
    let Some(Item::Table(table)) = document.get("permissions") else { return Ok(text.to_owned()) };
    let mut cut = Vec::new();
    for (name, item) in table.iter().filter(|(name, item)| is_ours(name, server, item)) {
        let key = table.key(name).and_then(toml_edit::Key::span);
        if let (Some(key), Some(value)) = (key, item.span()) {
            cut.push(line_around(text, key.start..value.end));
        }
    }
    if !cut.is_empty() && cut.len() == table.len() && !table.is_implicit() && !table.is_dotted() {
        // The table is empty now, so its header goes too.
        cut = vec![block_around(text, header(table)).whole];
    }
    let mut edited = text.to_owned();
    cut.sort_by_key(|range| range.start);
    for range in cut.into_iter().rev() {
        edited.replace_range(range, "");
    }
    Ok(edited)
}

fn is_ours(name: &str, server: &str, item: &Item) -> bool {
    let of_server = name == server || name.strip_prefix(server).is_some_and(|rest| rest.starts_with(':'));
    let Item::Value(Value::InlineTable(said)) = item else { return false };
    let says = |approval: ApprovalMode| {
        let rule = NewPermissionRule { subject: String::new(), approval }.value();
        let text =
            |table: &InlineTable, key: &str| table.get(key).map(|value| value.to_string().trim().to_owned());
        rule.len() == said.len() && rule.iter().all(|(key, _)| text(&rule, key) == text(said, key))
    };
    of_server && !name.contains('*') && (says(ApprovalMode::Auto) || says(ApprovalMode::Hil))
}

/// `range`, extended to whole lines.
fn line_around(text: &str, range: Range<usize>) -> Range<usize> {
    let start = text[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[range.end..].find('\n').map_or(text.len(), |newline| range.end + newline + 1);
    start..end
}
