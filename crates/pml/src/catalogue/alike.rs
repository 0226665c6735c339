//! Which tools of different servers do the same, so that one result can stand for all of them.
//!
//! Two tools are alike if they have the same name, take the same arguments, return the same, have the same effect
//! according to their servers, and are described in nearly the same words. Anything less would offer a tool in place
//! of another that it cannot replace.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::CatalogueTool;

/// The lowest share of words that two descriptions have in common.
const COMMON_WORDS: f64 = 0.8;

/// Members of a schema that say nothing about what is valid.
const REMARKS: [&str; 5] = ["description", "title", "examples", "$comment", "$schema"];

/// Members of a schema whose members are schemas by name.
const NAMED_SCHEMAS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// For each tool the first one that is alike, which is itself where there is none before it.
pub(super) fn first_alike(tools: &[CatalogueTool]) -> Vec<usize> {
    let mut by_name: HashMap<String, Vec<DescribedTool<'_>>> = HashMap::new();
    let mut firsts = Vec::with_capacity(tools.len());
    for (item, tool) in tools.iter().enumerate() {
        let known = by_name.entry(plain_name(&tool.definition.name)).or_default();
        let described = DescribedTool {
            item,
            tool,
            words: words(tool.definition.description.as_deref().unwrap_or_default()),
        };
        match known.iter().find(|other| are_alike(&described, other)) {
            Some(alike) => firsts.push(alike.item),
            None => {
                firsts.push(item);
                known.push(described);
            }
        }
    }
    firsts
}

/// A tool with the words of its description.
struct DescribedTool<'t> {
    item: usize,
    tool: &'t CatalogueTool,
    words: BTreeSet<String>,
}

/// A name without case and separators: `readFile` and `read_file` are one.
fn plain_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether two tools of the same name are alike. Tools without a description never are.
fn are_alike(one: &DescribedTool<'_>, other: &DescribedTool<'_>) -> bool {
    let (a, b) = (&one.tool.definition, &other.tool.definition);
    one.tool.id.server != other.tool.id.server
        && a.annotations == b.annotations
        && common_words(&one.words, &other.words) >= COMMON_WORDS
        && shape_of(a.input_schema.get()) == shape_of(b.input_schema.get())
        && a.output_schema.as_ref().map(|schema| shape_of(schema.get()))
            == b.output_schema.as_ref().map(|schema| shape_of(schema.get()))
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The Jaccard similarity of two sets of words; 0 where there are none.
fn common_words(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    one.intersection(other).count() as f64 / one.union(other).count().max(1) as f64
}

/// A schema without remarks.
fn shape_of(schema: &str) -> Value {
    shape(&serde_json::from_str(schema).unwrap_or_default())
}

fn shape(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !REMARKS.contains(&name.as_str()));
            let member = |(name, value): (&String, &Value)| {
                let value = match (name.as_str(), value) {
                    // A property may be called `title`: what is named here is no remark.
                    (name, Value::Object(schemas)) if NAMED_SCHEMAS.contains(&name) => {
                        schemas.iter().map(|(name, schema)| (name.clone(), shape(schema))).collect()
                    }
                    ("required", Value::Array(names)) => sorted(names),
                    // Values, not schemas.
                    ("enum" | "const" | "default", value) => value.clone(),
                    (_, value) => shape(value),
                };
                (name.clone(), value)
            };
            Value::Object(kept.map(member).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(shape).collect(),
        other => other.clone(),
    }
}

fn sorted(names: &[Value]) -> Value {
    let mut names = names.to_vec();
    names.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
    Value::Array(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_compared_without_case_and_separators() {
        assert_eq!(plain_name("readFile"), plain_name("read_file"));
        assert_ne!(plain_name("read_file"), plain_name("read_files"));
    }

    #[test]
    fn descriptions_are_compared_by_their_words() {
        let common = |one: &str, other: &str| common_words(&words(one), &words(other));
        assert!(common("Reads a file.", "reads a FILE") > 0.99);
        assert!(common("Reads a file from disk", "Deletes a file from disk") < COMMON_WORDS);
        assert!(common("", "") < COMMON_WORDS);
    }

    #[test]
    fn schemas_are_compared_without_remarks() {
        let schema = |title: &str, of_title: &str, required: [&str; 2]| {
            json!({
                "type": "object", "title": title, "required": required,
                "properties": { "title": { "type": of_title, "description": title }, "n": { "enum": [1, 2] } },
            })
        };
        let one = shape(&schema("One", "string", ["n", "title"]));
        assert_eq!(one, shape(&schema("Other", "string", ["title", "n"])));
        assert_ne!(one, shape(&schema("One", "number", ["n", "title"])));
        assert!(one["properties"]["title"]["type"] == "string", "{one}");
    }
}
