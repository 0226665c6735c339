//! Keys of fields: when two fields mean the same.
//!
//! A result field and a parameter fit when they share a key. Keys are the whole name, its end (`converted_amount` is an
//! `amount`), a group of synonyms (`content`, `body`), the id of a tool's subject (`id` of `get_user` is a `user_id`),
//! and, for parameters, phrases of the description. Each key has a strength; the strength of a pair is the product of
//! both sides.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::fields::{FieldKind, InputField, OutputField, ToolFields};

/// Basis on which fields were matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchBasis {
    /// The names have the same words.
    Name,
    /// The field is the id of the other tool's subject.
    Id,
    /// One name is the end of the other, or both have the same end.
    End,
    /// The names are synonyms.
    Alias,
    /// The descriptions agree, or one names the other field.
    Description,
    /// The parameter is generic: `text`, `data`, `amount`.
    Generic,
    /// Only the kind of value agrees.
    Kind,
}

impl MatchBasis {
    /// Text for explanations.
    pub fn describe(self) -> &'static str {
        match self {
            MatchBasis::Name => "same name",
            MatchBasis::Id => "its id",
            MatchBasis::End => "similar name",
            MatchBasis::Alias => "another word for it",
            MatchBasis::Description => "similar description",
            MatchBasis::Generic => "takes any content",
            MatchBasis::Kind => "same kind of value",
        }
    }
}

/// A key of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NameKey {
    pub(crate) text: String,
    pub(crate) strength: f32,
    pub(crate) basis: MatchBasis,
}

/// Minimum strength of a pair of fields to be reported as a mapping.
pub(crate) const MIN_STRENGTH: f32 = 0.4;

/// Strength of a key that is the end of the name.
const END: f32 = 0.8;
/// Strength of a key by synonym.
const ALIAS: f32 = 0.8;
/// Strength of a key with the tool's subject as owner, and of either name in `a_or_b`.
const OF_TOOL: f32 = 0.9;
/// Strength of a key from the description.
const IN_DESCRIPTION: f32 = 0.55;
/// Strength factor of a field that only reports the status of the call.
const STATUS: f32 = 0.3;
/// Maximum number of word pairs of a description that become keys.
const MOST_PHRASES: usize = 12;

/// Keys of a result field of `tool`.
pub(crate) fn output_keys(tool: &ToolFields, output: &OutputField) -> Vec<NameKey> {
    let mut keys = name_keys(tool, &output.words, output.kind);
    if is_status(output) {
        keys.iter_mut().for_each(|key| key.strength *= STATUS);
    }
    strongest(keys)
}

/// Keys of a parameter of `tool`.
pub(crate) fn input_keys(tool: &ToolFields, input: &InputField) -> Vec<NameKey> {
    if input.kind == FieldKind::Boolean {
        // A boolean switch is set by the caller, never from another tool's result.
        return Vec::new();
    }
    let mut keys = name_keys(tool, &input.words, input.kind);
    let described = input.description.iter();
    for (one, next) in described.zip(input.description.iter().skip(1)).take(MOST_PHRASES) {
        keys.push(NameKey {
            text: format!("{one} {next}"),
            strength: IN_DESCRIPTION,
            basis: MatchBasis::Description,
        });
    }
    strongest(keys)
}

fn name_keys(tool: &ToolFields, words: &[String], kind: FieldKind) -> Vec<NameKey> {
    let Some(head) = words.last() else { return Vec::new() };
    let mut keys = vec![NameKey { text: words.join(" "), strength: 1.0, basis: MatchBasis::Name }];
    // `id` and `name` alone do not tell whose they are.
    for from in 1..words.len() {
        if from + 1 < words.len() || !is_owned(head) {
            keys.push(NameKey { text: words[from..].join(" "), strength: END, basis: MatchBasis::End });
        }
    }
    if words.len() == 1 && is_owned(head) {
        keys[0].strength = 0.6;
        for owner in tool.name_words.iter().skip(1) {
            keys.push(NameKey { text: format!("{owner} {head}"), strength: OF_TOOL, basis: MatchBasis::Id });
        }
    }
    // `username_or_id` takes either.
    if words.iter().any(|word| word == "or") {
        for either in words.split(|word| word == "or").filter(|part| !part.is_empty()) {
            keys.push(NameKey { text: either.join(" "), strength: OF_TOOL, basis: MatchBasis::End });
        }
    }
    for group in groups(head, kind) {
        // Ids of two different things do not match; two identifiers of one thing do.
        let owner = if OWNED.contains(&group) { words[..words.len() - 1].join(" ") } else { String::new() };
        let strength = if words.len() == 1 || !owner.is_empty() { ALIAS } else { ALIAS * 0.9 };
        keys.push(NameKey { text: format!("{owner}#{group}"), strength, basis: MatchBasis::Alias });
    }
    keys
}

fn strongest(mut keys: Vec<NameKey>) -> Vec<NameKey> {
    keys.sort_by(|a, b| a.text.cmp(&b.text).then(b.strength.total_cmp(&a.strength)));
    keys.dedup_by(|later, earlier| later.text == earlier.text);
    keys
}

/// Whether the word is meaningless without its owner.
fn is_owned(word: &str) -> bool {
    matches!(word, "id" | "name" | "type" | "code" | "titl" | "descript")
}

/// Whether a result field only reports the status of the call.
pub(crate) fn is_status(output: &OutputField) -> bool {
    let head = output.words.last().map_or("", String::as_str);
    output.kind == FieldKind::Boolean
        || matches!(head, "status" | "success" | "ok" | "valid" | "error" | "code")
}

/// Whether a parameter takes any value of its kind.
pub(crate) fn is_generic(input: &InputField) -> bool {
    let head = input.words.last().map_or("", String::as_str);
    groups(head, input.kind).any(|group| match input.kind {
        FieldKind::Number => group == AMOUNT,
        _ => group == CONTENT,
    })
}

/// Whether a word is for where something is, and not for what it is: `path`, `url`.
pub(crate) fn is_place(word: &str) -> bool {
    GROUP_OF.get(word).is_some_and(|groups| groups.iter().any(|group| PLACES.contains(group)))
}

/// Whether a word says nothing about the subject of a text.
pub(crate) fn is_vague(word: &str) -> bool {
    let member = GROUP_OF.get(word);
    word == "id" || member.is_some_and(|groups| groups.iter().any(|group| *group <= AMOUNT))
}

/// Synonym groups of a word, for a field of this kind.
fn groups(word: &str, kind: FieldKind) -> impl Iterator<Item = usize> {
    let member = GROUP_OF.get(word).map_or(&[][..], Vec::as_slice);
    // A `phone_number` is no amount: only fields of kind number are.
    member.iter().copied().filter(move |group| *group != AMOUNT || kind == FieldKind::Number)
}

/// Index of the group of words for any content.
const CONTENT: usize = 0;
/// Index of the group of words for any amount.
const AMOUNT: usize = 1;
/// Indices of the groups whose words are meaningless without their owner: ids and names.
const OWNED: [usize; 2] = [4, 5];

/// Indices of the groups of words for where something is: paths and addresses.
const PLACES: [usize; 2] = [2, 3];

/// Synonym groups of field names, vague groups first.
const GROUPS: [&str; 12] = [
    "content text body data json csv xml yaml payload message input sentence value document string markdown html output \
     result",
    "amount number num total value price cost sum figure quantity result output",
    "path file filename filepath directory folder",
    "url uri link href website",
    "id identifier uid uuid key ref",
    "name title label",
    "date day time timestamp datetime",
    "query keyword search term topic q",
    "location place city address",
    "result item list record",
    "user username account login",
    "email mail",
];

static GROUP_OF: LazyLock<HashMap<String, Vec<usize>>> = LazyLock::new(|| {
    let mut found: HashMap<String, Vec<usize>> = HashMap::new();
    for (group, members) in GROUPS.iter().enumerate() {
        for word in members.split(' ') {
            found.entry(super::fields::name_words(word).concat()).or_default().push(group);
        }
    }
    found
});

/// The best key of both sides: the strength of the pair, and its basis.
pub(crate) fn best_shared_key(output: &[NameKey], input: &[NameKey]) -> Option<(f32, MatchBasis)> {
    let pairs = output.iter().filter_map(|given| {
        let wanted = input.iter().find(|wanted| wanted.text == given.text)?;
        Some((given.strength * wanted.strength, given.basis.max(wanted.basis)))
    });
    pairs.max_by(|a, b| a.0.total_cmp(&b.0))
}
