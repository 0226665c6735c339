//! Which tools of different servers are nearly the same, so that one result can stand for all of them.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::catalogue::CatalogueTool;

/// The lowest share of words that two descriptions have in common.
const COMMON_WORDS: f64 = 0.8;

/// Tools that stand for others, by name.
#[derive(Default)]
pub(super) struct AlikeTools<'s>(HashMap<String, Vec<(usize, &'s CatalogueTool)>>);

impl<'s> AlikeTools<'s> {
    /// The place of an earlier tool that is nearly the same as this one, which is at `place`; remembers this one where
    /// there is none.
    pub(super) fn place_of_alike(&mut self, place: usize, tool: &'s CatalogueTool) -> Option<usize> {
        let known = self.0.entry(plain_name(&tool.definition.name)).or_default();
        let alike = known.iter().find(|(_, other)| are_alike(tool, other)).map(|(place, _)| *place);
        if alike.is_none() {
            known.push((place, tool));
        }
        alike
    }
}

/// A name without case and separators: `readFile` and `read_file` are one.
fn plain_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether two tools of the same name are nearly the same: of different servers, with the same parameters, described in
/// nearly the same words. Tools without a description are never taken for the same.
fn are_alike(one: &CatalogueTool, other: &CatalogueTool) -> bool {
    one.id.server != other.id.server
        && common_words(description(one), description(other)) >= COMMON_WORDS
        && parameters(one) == parameters(other)
}

fn description(tool: &CatalogueTool) -> &str {
    tool.definition.description.as_deref().unwrap_or_default()
}

/// The Jaccard similarity of the words of two texts; 0 where there are none.
fn common_words(one: &str, other: &str) -> f64 {
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (one, other) = (words(one), words(other));
    one.intersection(&other).count() as f64 / one.union(&other).count().max(1) as f64
}

fn parameters(tool: &CatalogueTool) -> BTreeSet<String> {
    let schema: Value = serde_json::from_str(tool.definition.input_schema.get()).unwrap_or_default();
    schema["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{common_words, plain_name};

    #[test]
    fn names_are_compared_without_case_and_separators() {
        assert_eq!(plain_name("readFile"), plain_name("read_file"));
        assert_ne!(plain_name("read_file"), plain_name("read_files"));
    }

    #[test]
    fn descriptions_are_compared_by_their_words() {
        assert_eq!(common_words("Reads a file.", "reads a FILE"), 1.0);
        assert!(common_words("Reads a file from disk", "Deletes a file from disk") < 0.8);
        assert_eq!(common_words("", ""), 0.0);
    }
}
