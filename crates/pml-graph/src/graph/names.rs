//! When two fields mean the same: the keys under which a field can be found.
//!
//! A result's field and a parameter fit when they share a key. Keys are the whole name, its end
//! (`converted_amount` is an `amount`), a group of words that stand for one thing (`content`, `body`),
//! the id of what a tool is about (`id` of `get_user` is a `user_id`), and, for parameters, what the
//! description says goes in. Each key has a strength; a pair is as strong as the product of both sides.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::fields::{Input, Kind, Output, Tool};

/// How a field was matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// The names have the same words.
    Name,
    /// It is the id of what the other tool is about.
    Id,
    /// One name is the end of the other, or both end alike.
    End,
    /// The names are words for one thing.
    Alias,
    /// The descriptions agree, or one names the other field.
    Description,
    /// The parameter takes whatever there is: `text`, `data`, `amount`.
    Generic,
    /// Nothing but the kind of value agrees.
    Kind,
}

impl How {
    /// In words, for explanations.
    pub fn words(self) -> &'static str {
        match self {
            How::Name => "same name",
            How::Id => "its id",
            How::End => "similar name",
            How::Alias => "another word for it",
            How::Description => "similar description",
            How::Generic => "takes any content",
            How::Kind => "same kind of value",
        }
    }
}

/// A key of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) strength: f32,
    pub(crate) how: How,
}

/// Below this, two fields have too little in common to be told as a mapping.
pub(crate) const MIN_STRENGTH: f32 = 0.4;

const END: f32 = 0.8;
const ALIAS: f32 = 0.8;
const OF_TOOL: f32 = 0.9;
const IN_DESCRIPTION: f32 = 0.55;
/// What a field that only tells how the call went is worth to others.
const STATUS: f32 = 0.3;
/// How many pairs of words of a description become keys.
const MOST_PHRASES: usize = 12;

/// The keys of a field of a result of `tool`.
pub(crate) fn output_keys(tool: &Tool, output: &Output) -> Vec<Key> {
    let mut keys = name_keys(tool, &output.words, output.kind);
    if is_status(output) {
        keys.iter_mut().for_each(|key| key.strength *= STATUS);
    }
    strongest(keys)
}

/// The keys of a parameter of `tool`.
pub(crate) fn input_keys(tool: &Tool, input: &Input) -> Vec<Key> {
    if input.kind == Kind::Boolean {
        // A switch is set by whoever asks, never by another tool's result.
        return Vec::new();
    }
    let mut keys = name_keys(tool, &input.words, input.kind);
    let described = input.description.iter();
    for (one, next) in described.zip(input.description.iter().skip(1)).take(MOST_PHRASES) {
        keys.push(Key { text: format!("{one} {next}"), strength: IN_DESCRIPTION, how: How::Description });
    }
    strongest(keys)
}

fn name_keys(tool: &Tool, words: &[String], kind: Kind) -> Vec<Key> {
    let Some(head) = words.last() else { return Vec::new() };
    let mut keys = vec![Key { text: words.join(" "), strength: 1.0, how: How::Name }];
    // `id` and `name` alone say nothing about whose they are.
    for from in 1..words.len() {
        if from + 1 < words.len() || !is_owned(head) {
            keys.push(Key { text: words[from..].join(" "), strength: END, how: How::End });
        }
    }
    if words.len() == 1 && is_owned(head) {
        keys[0].strength = 0.6;
        for owner in tool.name.iter().skip(1) {
            keys.push(Key { text: format!("{owner} {head}"), strength: OF_TOOL, how: How::Id });
        }
    }
    // `username_or_id` takes either.
    if words.iter().any(|word| word == "or") {
        for either in words.split(|word| word == "or").filter(|part| !part.is_empty()) {
            keys.push(Key { text: either.join(" "), strength: OF_TOOL, how: How::End });
        }
    }
    for group in groups(head, kind) {
        // The ids of two different things are not each other; two identifiers of one thing are.
        let owner = if OWNED.contains(&group) { words[..words.len() - 1].join(" ") } else { String::new() };
        let strength = if words.len() == 1 || !owner.is_empty() { ALIAS } else { ALIAS * 0.9 };
        keys.push(Key { text: format!("{owner}#{group}"), strength, how: How::Alias });
    }
    keys
}

fn strongest(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort_by(|a, b| a.text.cmp(&b.text).then(b.strength.total_cmp(&a.strength)));
    keys.dedup_by(|later, earlier| later.text == earlier.text);
    keys
}

/// Whether the word is nothing without its owner.
fn is_owned(word: &str) -> bool {
    matches!(word, "id" | "name" | "type" | "code" | "titl" | "descript")
}

/// Whether a field of a result only tells how the call went.
pub(crate) fn is_status(output: &Output) -> bool {
    let head = output.words.last().map_or("", String::as_str);
    output.kind == Kind::Boolean || matches!(head, "status" | "success" | "ok" | "valid" | "error" | "code")
}

/// Whether a parameter takes whatever there is of its kind.
pub(crate) fn is_generic(input: &Input) -> bool {
    let head = input.words.last().map_or("", String::as_str);
    groups(head, input.kind).any(|group| match input.kind {
        Kind::Number => group == AMOUNT,
        _ => group == CONTENT,
    })
}

/// Whether a word says nothing about what a text speaks of.
pub(crate) fn is_vague(word: &str) -> bool {
    let member = GROUP_OF.get(word);
    word == "id" || member.is_some_and(|groups| groups.iter().any(|group| *group <= AMOUNT))
}

/// The groups of a word, as a field of this kind means it.
fn groups(word: &str, kind: Kind) -> impl Iterator<Item = usize> {
    let member = GROUP_OF.get(word).map_or(&[][..], Vec::as_slice);
    // A `phone_number` is no amount: only numbers are.
    member.iter().copied().filter(move |group| *group != AMOUNT || kind == Kind::Number)
}

const CONTENT: usize = 0;
const AMOUNT: usize = 1;
/// The groups of words that are nothing without their owner: ids and names.
const OWNED: [usize; 2] = [4, 5];

/// Words that stand for one thing in the names of fields, the vague groups first.
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
            found.entry(super::fields::words(word).concat()).or_default().push(group);
        }
    }
    found
});

/// The best key that both sides have: how well they fit by it, and in which way.
pub(crate) fn shared(output: &[Key], input: &[Key]) -> Option<(f32, How)> {
    let pairs = output.iter().filter_map(|given| {
        let wanted = input.iter().find(|wanted| wanted.text == given.text)?;
        Some((given.strength * wanted.strength, given.how.max(wanted.how)))
    });
    pairs.max_by(|a, b| a.0.total_cmp(&b.0))
}
