//! Whether a tool is deprecated, and which tool replaces it, according to its definition.

use serde_json::Value;

use crate::catalogue::{CatalogueTool, ToolSnapshot};

/// The factor of the score of a deprecated tool without replacement.
pub(crate) const LEFT: f64 = 0.5;

/// Whether its definition says that a tool is deprecated: by a member of that name, or in its description.
pub(crate) fn is_deprecated(tool: &CatalogueTool) -> bool {
    let told = tool.definition.description.as_deref().is_some_and(says_so);
    told || tool.definition.title.as_deref().is_some_and(says_so) || flagged(tool)
}

/// `deprecated: true` in the definition, its annotations or its `_meta`. The protocol has no such member, but servers
/// send it.
fn flagged(tool: &CatalogueTool) -> bool {
    if !tool.definition.raw.get().contains("\"deprecated\"") {
        return false;
    }
    let raw: Value = serde_json::from_str(tool.definition.raw.get()).unwrap_or_default();
    let is = |value: &Value| value["deprecated"] == true || value["deprecated"].is_string();
    is(&raw) || is(&raw["annotations"]) || is(&raw["_meta"])
}

/// Words by which descriptions refer to the tool itself.
const ITSELF: [&str; 7] = ["this", "it", "tool", "function", "method", "endpoint", "command"];

/// Whether a text says that the tool is deprecated, and not something it deals with: "lists deprecated packages".
fn says_so(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut from = 0;
    while let Some(at) = lower[from..].find("deprecated").map(|at| from + at) {
        let (before, after) = (lower[..at].trim_end(), &lower[at + "deprecated".len()..]);
        // The word opens a sentence, stands in brackets or ends a sentence: "DEPRECATED: use …", "this is
        // deprecated".
        let opens = before.is_empty() || before.ends_with(['.', '!', '(', '[', '*', ':', '-', '—', '\n']);
        let marked =
            after.trim_start_matches(['*', ' ']).starts_with([':', ']', ')', '.', ',', ';', '!', '-', '—']);
        let whole = after.trim().is_empty();
        let mut words =
            before.split_whitespace().rev().skip_while(|word| matches!(*word, "is" | "now" | "has" | "been"));
        let of_itself = words.next().is_some_and(|word| ITSELF.contains(&word));
        if (opens && (marked || whole)) || of_itself {
            return true;
        }
        from = at + "deprecated".len();
    }
    false
}

/// The tool of the same server that the description of a deprecated tool names.
pub(crate) fn replacement<'s>(snapshot: &'s ToolSnapshot, tool: &CatalogueTool) -> Option<&'s CatalogueTool> {
    let description = tool.definition.description.as_deref()?;
    let named = |name: &str| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        description.match_indices(name).any(|(at, _)| {
            let (before, after) = (&description[..at], &description[at + name.len()..]);
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    };
    let others = snapshot
        .tools
        .iter()
        .filter(|other| other.id.server == tool.id.server && other.id != tool.id && !is_deprecated(other));
    // The longest name wins: a short one such as `read` occurs in every description.
    others.filter(|other| named(&other.definition.name)).max_by_key(|other| other.definition.name.len())
}

#[cfg(test)]
mod tests {
    use super::says_so;

    #[test]
    fn descriptions_say_that_a_tool_is_deprecated() {
        for text in [
            "Read the complete contents of a file as text. DEPRECATED: Use read_text_file instead.",
            "[Deprecated] Old search",
            "**Deprecated**: use `search_v2`",
            "This tool is deprecated and will be removed",
            "(deprecated) lists files",
            "Deprecated.",
            "It has been deprecated in favour of `b`",
        ] {
            assert!(says_so(text), "{text}");
        }
        for text in [
            "Lists deprecated packages",
            "Finds packages that are deprecated",
            "Marks a version as deprecated",
            "Checks whether a package is deprecated",
            "Reads",
        ] {
            assert!(!says_so(text), "{text}");
        }
    }
}
