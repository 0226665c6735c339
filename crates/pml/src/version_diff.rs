//! How two versions of a capability differ: lines of code and parameters. Pure.

use serde::Serialize;
use serde_json::Value;

/// The largest number of lines of each text that are compared line by line. The table of the comparison has their product.
const MOST_LINES: usize = 2_000;

/// A line of one text or of both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffLine {
    /// Where it is.
    pub side: DiffSide,
    /// The line.
    pub text: String,
}

/// Where a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffSide {
    /// In both texts.
    Both,
    /// In the earlier text only.
    Removed,
    /// In the later text only.
    Added,
}

/// How the parameters of two versions differ.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ParameterChanges {
    /// The names of new parameters.
    pub added: Vec<String>,
    /// The names of parameters that are gone.
    pub removed: Vec<String>,
    /// The parameters that are no longer the same.
    pub changed: Vec<ParameterChange>,
}

impl ParameterChanges {
    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// A parameter that is no longer the same.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ParameterChange {
    /// Its name.
    pub name: String,
    /// Its schema before, without examples.
    pub before: Value,
    /// Its schema now, without examples.
    pub after: Value,
}

/// The lines of two texts, in order: a shortest sequence of removed and added lines.
pub fn diff_lines(before: &str, after: &str) -> Vec<DiffLine> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let line = |side: DiffSide, text: &str| DiffLine { side, text: text.to_owned() };
    let same_at_start = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let (head, before) = before.split_at(same_at_start);
    let after = &after[same_at_start..];
    let same_at_end =
        before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    let (before, tail) = before.split_at(before.len() - same_at_end);
    let after = &after[..after.len() - same_at_end];
    let mut lines: Vec<DiffLine> = head.iter().map(|text| line(DiffSide::Both, text)).collect();
    for (side, text) in edits(before, after) {
        lines.push(line(side, text));
    }
    lines.extend(tail.iter().map(|text| line(DiffSide::Both, text)));
    lines
}

fn edits<'t>(before: &[&'t str], after: &[&'t str]) -> Vec<(DiffSide, &'t str)> {
    if before.len() > MOST_LINES || after.len() > MOST_LINES {
        let removed = before.iter().map(|text| (DiffSide::Removed, *text));
        return removed.chain(after.iter().map(|text| (DiffSide::Added, *text))).collect();
    }
    // common[i][j]: the longest common subsequence of before[i..] and after[j..].
    let mut common = vec![vec![0_u32; after.len() + 1]; before.len() + 1];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            common[i][j] = match before[i] == after[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut edits = Vec::with_capacity(before.len() + after.len());
    while i < before.len() || j < after.len() {
        if i < before.len() && j < after.len() && before[i] == after[j] {
            edits.push((DiffSide::Both, before[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == after.len() || (i < before.len() && common[i + 1][j] >= common[i][j + 1]) {
            edits.push((DiffSide::Removed, before[i]));
            i += 1;
        } else {
            edits.push((DiffSide::Added, after[j]));
            j += 1;
        }
    }
    edits
}

/// How the parameters of two versions differ. Examples, which come from runs, do not count.
pub fn diff_parameters(before: &Value, after: &Value) -> ParameterChanges {
    let mut changes = ParameterChanges::default();
    let none = serde_json::Map::new();
    let members = |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned();
    let (old, new) = (members(before).unwrap_or_default(), members(after).unwrap_or(none));
    for (name, member) in &new {
        let Some(earlier) = old.get(name) else {
            changes.added.push(name.clone());
            continue;
        };
        let (before, after) = (described(earlier, before, name), described(member, after, name));
        if before != after {
            changes.changed.push(ParameterChange { name: name.clone(), before, after });
        }
    }
    changes.removed = old.keys().filter(|name| !new.contains_key(*name)).cloned().collect();
    changes
}

/// The schema of a parameter without examples, and with whether it has to be given.
fn described(member: &Value, schema: &Value, name: &str) -> Value {
    let mut member = member.clone();
    if let Value::Object(keywords) = &mut member {
        keywords.remove("examples");
        let required = schema.get("required").and_then(Value::as_array);
        if required.is_some_and(|names| names.iter().any(|one| one == name)) {
            keywords.insert("required".to_owned(), Value::Bool(true));
        }
    }
    member
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(before: &str, after: &str) -> String {
        let sign = |side: DiffSide| match side {
            DiffSide::Both => ' ',
            DiffSide::Removed => '-',
            DiffSide::Added => '+',
        };
        diff_lines(before, after).iter().map(|line| format!("{}{}\n", sign(line.side), line.text)).collect()
    }

    #[test]
    fn a_change_keeps_the_lines_around_it() {
        assert_eq!(told("a\nb\nc\nd", "a\nx\nc\ny\nd"), " a\n-b\n+x\n c\n+y\n d\n");
        assert_eq!(told("a", "a"), " a\n");
        assert_eq!(told("", "a\nb"), "+a\n+b\n");
        assert_eq!(told("a\nb", ""), "-a\n-b\n");
    }

    #[test]
    fn a_huge_text_is_replaced_as_a_whole() {
        let many = |text: &str| vec![text; MOST_LINES + 1].join("\n");
        assert_eq!(diff_lines(&many("a"), &many("b")).len(), 2 * (MOST_LINES + 1));
    }

    #[test]
    fn examples_are_no_difference_and_being_required_is_one() {
        let before = json!({ "properties": { "a": { "type": "string", "examples": ["x"] }, "b": {} } });
        let after = json!({ "properties": { "a": { "type": "string" }, "c": {} }, "required": ["a"] });
        let changes = diff_parameters(&before, &after);
        assert_eq!((changes.added, changes.removed), (vec!["c".to_owned()], vec!["b".to_owned()]));
        assert_eq!(changes.changed[0].after, json!({ "type": "string", "required": true }));
        let same = json!({ "properties": { "a": { "type": "string" }, "b": {} } });
        assert!(diff_parameters(&before, &same).is_empty());
    }
}
