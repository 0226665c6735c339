//! What kind of thing a tool or an argument is about, as far as their names say it: `create_customer` and `customer_id`
//! are about a customer.

use pml_model::ToolId;

/// Words of tool names that say what is done. One is dropped at the beginning of a name, or else at its end.
const VERBS: &[&str] = &[
    "add", "archive", "book", "cancel", "change", "close", "copy", "create", "delete", "describe", "drop",
    "edit", "fetch", "find", "get", "insert", "invite", "list", "load", "look", "lookup", "make", "merge",
    "modify", "move", "new", "open", "patch", "post", "publish", "put", "query", "read", "register",
    "remove", "rename", "replace", "reply", "retrieve", "save", "search", "send", "set", "show", "start",
    "stop", "store", "submit", "update", "upload", "upsert", "view", "write",
];
/// Words after which a name says by what a thing is found, or where it is.
const PREPOSITIONS: &[&str] = &["by", "for", "from", "in", "into", "of", "on", "to", "with"];
/// Words that say how much is told of a thing.
const ASPECTS: &[&str] = &["detail", "info", "information", "data", "record", "status", "entry"];
const ARTICLES: &[&str] = &["a", "an", "the", "one", "all", "single"];
/// The last words of names of ids.
const IDS: &[&str] = &["id", "iid", "number", "key", "uuid", "guid"];

/// A kind of thing, as the words of its name in the singular; empty if the name does not say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Noun(Vec<String>);

impl Noun {
    /// What a tool is about.
    pub(super) fn of_tool(tool: &ToolId) -> Noun {
        let mut words = words(&tool.tool);
        // Servers often repeat their own name in those of their tools.
        if words.len() > 1 && words[0] == tool.server.as_str().to_lowercase() {
            words.remove(0);
        }
        let is_verb = |word: Option<&String>| word.is_some_and(|word| VERBS.contains(&word.as_str()));
        if is_verb(words.first()) {
            words.remove(0);
        } else if is_verb(words.last()) {
            words.pop();
        }
        words.retain(|word| !ARTICLES.contains(&word.as_str()));
        if let Some(end) = words.iter().position(|word| PREPOSITIONS.contains(&word.as_str())) {
            words.truncate(end);
        }
        Noun::of_words(&words)
    }

    /// What an argument names; empty for a bare `id`.
    fn of_argument(name: &str) -> Noun {
        let mut words = words(name);
        match words.pop() {
            Some(last) if words.is_empty() => {
                Noun::of_words(joined_stem(&last).map(str::to_owned).as_slice())
            }
            _ => Noun::of_words(&words),
        }
    }

    fn of_words(words: &[String]) -> Noun {
        let mut words: Vec<String> = words.iter().map(|word| singular(word)).collect();
        if words.len() > 1 && words.last().is_some_and(|last| ASPECTS.contains(&last.as_str())) {
            words.pop();
        }
        // A pull request is the one thing that is commonly named by half of its name.
        if words == ["pull", "request"] || words == ["pr"] {
            words = vec!["pull".to_owned()];
        }
        Noun(words)
    }

    /// Whether an argument of a tool can name a thing of this kind: one with its noun, or a bare `id` of a tool that can
    /// be about such things.
    pub(super) fn is_named_by(&self, argument: &str, tool: &ToolId) -> bool {
        let named = Noun::of_argument(argument);
        if !named.0.is_empty() {
            return named == *self;
        }
        self.is_subject_of(tool)
    }

    /// Whether a tool is about things of this kind, or does not say what it is about.
    pub(super) fn is_subject_of(&self, tool: &ToolId) -> bool {
        let about = Noun::of_tool(tool);
        about.0.is_empty() || about == *self
    }
}

/// Whether a member of this name identifies something.
pub(super) fn is_id_name(name: &str) -> bool {
    let words = words(name);
    let last = words.last().map(|word| singular(word)).unwrap_or_default();
    IDS.contains(&last.as_str()) || (words.len() == 1 && joined_stem(&last).is_some())
}

/// `user` of `userid`, written as one word.
fn joined_stem(word: &str) -> Option<&str> {
    word.strip_suffix("id").filter(|stem| stem.len() > 2)
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in name.chars() {
        if !letter.is_alphanumeric() {
            before = ' ';
            continue;
        }
        let begins = before == ' ' || (letter.is_uppercase() && !before.is_uppercase());
        match words.last_mut().filter(|_| !begins) {
            Some(word) => word.extend(letter.to_lowercase()),
            None => words.push(letter.to_lowercase().collect()),
        }
        before = letter;
    }
    words
}

fn singular(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() > 2) {
        return format!("{stem}y");
    }
    match word.strip_suffix('s') {
        Some(stem)
            if stem.len() > 1 && !stem.ends_with('s') && !stem.ends_with("u") && !stem.ends_with("i") =>
        {
            stem.to_owned()
        }
        _ => word.to_owned(),
    }
}
