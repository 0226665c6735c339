//! Splits a request into sentences, clauses and steps.
//!
//! A sentence ends where punctuation or a list says so. A clause is the part of a sentence up to where a reader would
//! pause. A step is one thing that is asked for: the clauses from one verb to the next. "Read and parse a JSON file,
//! then post it" asks for three things. Tools are searched for each step separately, so its words must make sense alone:
//! a verb without an object gets the object of the next step.

use std::ops::Range;

use crate::literals::{IntentLiteral, LiteralClass, literals};

/// Verbs that a step can begin with.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "add", "analyse", "analyze", "append", "apply", "ask", "assign", "attach", "book", "build", "buy",
    "calculate", "call", "cancel", "change", "check", "clean", "clear", "clone", "close", "collect", "combine",
    "commit", "compare", "compress", "compute", "convert", "copy", "count", "create", "crop", "decode",
    "decrypt", "delete", "deploy", "describe", "detect", "display", "download", "draw", "edit", "email",
    "encode", "encrypt", "estimate", "evaluate", "execute", "export", "extract", "fetch", "fill", "filter",
    "find", "fix", "format", "forward", "generate", "get", "give", "group", "hash", "identify", "import",
    "insert", "install", "join", "keep", "list", "load", "locate", "log", "look", "mail", "make", "measure",
    "merge", "move", "notify", "open", "order", "organize", "parse", "pay", "pick", "play", "plot", "post",
    "predict", "prepare", "print", "publish", "pull", "push", "put", "query", "rank", "read", "recommend",
    "reduce", "remind", "remove", "rename", "render", "replace", "reply", "report", "request", "reserve",
    "resize", "resolve", "retrieve", "return", "reverse", "rotate", "round", "run", "save", "scan", "schedule",
    "score", "scrape", "search", "select", "send", "set", "share", "show", "sign", "simplify", "solve", "sort",
    "split", "start", "stop", "store", "subscribe", "suggest", "sum", "summarise", "summarize", "sync", "tag",
    "take", "tell", "test", "track", "transfer", "transform", "translate", "trim", "turn", "unzip", "update",
    "upload", "upper", "validate", "verify", "view", "write", "zip",
];

/// Words between clauses that add something to what came before.
const ADDING: &[&str] = &["and", "et", "plus", "please"];

/// Words between clauses that begin something new.
const CONTINUING: &[&str] = &[
    "then",
    "additionally",
    "finally",
    "lastly",
    "afterwards",
    "next",
    "also",
    "puis",
    "ensuite",
    "enfin",
    "finalement",
];

/// Maximum number of clauses; the rest of a long text belongs to the last.
const MOST_CLAUSES: usize = 200;

/// Maximum number of steps. A longer text is read as one request.
const MOST_STEPS: usize = 8;

/// A clause of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// The byte range, up to the beginning of the next clause.
    pub span: Range<usize>,
    /// Whether it begins a sentence, or something new: after "then", not after "and" or a comma.
    pub begins_anew: bool,
}

/// The clauses of `text`, of which these are the literals. No literal is cut, except for names.
pub fn clauses(text: &str, literals: &[IntentLiteral]) -> Vec<Clause> {
    let mut cuts = cuts(text, literals);
    cuts.truncate(MOST_CLAUSES);
    let ends: Vec<usize> = cuts.iter().skip(1).map(|cut| cut.0).chain([text.len()]).collect();
    let clause =
        |((start, begins_anew), end): ((usize, bool), usize)| Clause { span: start..end, begins_anew };
    cuts.into_iter().zip(ends).map(clause).collect()
}

/// Offsets of clause boundaries, each with whether something new begins there.
fn cuts(text: &str, literals: &[IntentLiteral]) -> Vec<(usize, bool)> {
    let within = |at: usize| {
        let cuttable = |one: &IntentLiteral| one.class == LiteralClass::Name;
        literals.iter().any(|one| !cuttable(one) && one.span.start < at && at < one.span.end)
    };
    let mut found: Vec<(usize, bool)> = vec![(0, true)];
    let mut cut = |start: usize, end: usize, anew: bool| {
        let after = text[end..].trim_start_matches([',', ' ', '\n', '\r', '\t']);
        let at = text.len() - after.len();
        if at == end || within(start) || at == text.len() {
            return;
        }
        let anew = anew || found.last().is_some_and(|last| last.0 == start && last.1);
        match found.last_mut() {
            Some(last) if last.0 == at => last.1 |= anew,
            _ => found.push((at, anew)),
        }
    };
    let mut word = (0, "");
    let mut before = "";
    for (at, c) in text.char_indices() {
        if c.is_alphanumeric() {
            if word.1.is_empty() {
                word.0 = at;
            }
            word.1 = &text[word.0..at + c.len_utf8()];
            continue;
        }
        if let Some(anew) = connects(before, word.1) {
            cut(word.0, at, anew);
        }
        if !word.1.is_empty() {
            before = word.1;
        }
        word.1 = "";
        let end = at + c.len_utf8();
        if c == ',' || ends_sentence(&text[..at], c, &text[end..]) {
            cut(at, end, c != ',');
        }
    }
    found
}

/// Whether a clause begins after the word: something new (`Some(true)`), or more of the same.
fn connects(before: &str, word: &str) -> Option<bool> {
    let lower = word.to_lowercase();
    match lower.as_str() {
        "that" => before.eq_ignore_ascii_case("after").then_some(true),
        _ if ADDING.contains(&lower.as_str()) => Some(false),
        _ if CONTINUING.contains(&lower.as_str()) => Some(true),
        _ => None,
    }
}

/// The steps of `text`, in its words; the whole text where it asks for one thing.
pub fn steps(text: &str, clauses: &[Clause]) -> Vec<String> {
    let steps: Vec<String> = spans_of_steps(text, clauses)
        .into_iter()
        .map(|span| step_text(&text[span]))
        .filter(|step| !step.is_empty())
        .collect();
    let steps = with_objects(steps);
    if steps.len() < 2 || steps.len() > MOST_STEPS { vec![text.trim().to_owned()] } else { steps }
}

/// The byte ranges of the steps of `text`, one after the other; a single one where it asks for one thing.
pub fn step_spans(text: &str) -> Vec<Range<usize>> {
    let mut spans = spans_of_steps(text, &clauses(text, &literals(text)));
    if spans.len() < 2 || spans.len() > MOST_STEPS {
        return std::iter::once(0..text.len()).collect();
    }
    // Words before the first step belong to it.
    spans[0].start = 0;
    spans
}

/// A step without the words and punctuation that join it to the next one.
pub fn without_joints(step: &str) -> &str {
    let mut step = step;
    loop {
        step = step.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '.' | ':'));
        let last = step.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        if last == 0 || !is_connecting(&bare(&step[last..])) {
            return step;
        }
        step = &step[..last];
    }
}

fn spans_of_steps(text: &str, clauses: &[Clause]) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for Clause { span, .. } in clauses {
        let mut words = text[span.clone()].split_whitespace().map(bare);
        let first = words.find(|word| !is_connecting(word));
        match spans.last_mut() {
            // A clause without a verb, such as the second name of a list, belongs to the current step.
            Some(step) if !first.as_deref().is_some_and(|word| VERBS.contains(&word)) => step.end = span.end,
            None if first.is_none() => {}
            _ => spans.push(span.clone()),
        }
    }
    spans
}

/// The text of a step without the words and punctuation that join it to the next one.
fn step_text(text: &str) -> String {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    loop {
        let joining = match words.as_slice() {
            [.., after, that] if bare(after) == "after" && bare(that) == "that" => 2,
            [.., last] if is_connecting(&bare(last)) => 1,
            _ => break,
        };
        words.truncate(words.len() - joining);
    }
    words.join(" ").trim_end_matches([',', ';', '.', ':']).to_owned()
}

/// Gives each verb that stands alone the object of the next step that has one.
fn with_objects(mut steps: Vec<String>) -> Vec<String> {
    let mut object: Option<String> = None;
    for step in steps.iter_mut().rev() {
        match (step.split_once(' '), &object) {
            (Some((_, rest)), _) => object = Some(rest.to_owned()),
            (None, Some(object)) => *step = format!("{step} {object}"),
            (None, None) => {}
        }
    }
    steps
}

fn is_connecting(word: &str) -> bool {
    ADDING.contains(&word) || CONTINUING.contains(&word)
}

fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// Sentences, lines and list items of `text`.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end =
            rest.char_indices().find(|(at, c)| ends_sentence(&rest[..*at], *c, &rest[at + c.len_utf8()..]));
        let end = end.map_or(rest.len(), |(at, c)| at + c.len_utf8());
        let (sentence, after) = rest.split_at(end);
        rest = after;
        Some(sentence)
    })
}

/// Whether `c` ends a sentence. A full stop, colon or hyphen inside a word (`v1.2`, `12:30`, `e-mail`) does not.
fn ends_sentence(before: &str, c: char, after: &str) -> bool {
    let space_follows = after.chars().next().is_none_or(char::is_whitespace);
    match c {
        '\n' | ';' | '—' | '–' | '•' | '。' | '！' | '？' | '；' => true,
        '.' | '!' | '?' | ':' => space_follows,
        '-' | '*' => space_follows && before.chars().next_back().is_none_or(char::is_whitespace),
        c => c.is_whitespace() && is_numbered(after),
    }
}

/// Whether `text` begins like a list item: `2) …` or `(2) …`.
fn is_numbered(text: &str) -> bool {
    let text = text.strip_prefix('(').unwrap_or(text);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    matches!(digits, 1 | 2) && text[digits..].starts_with(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_of(text: &str) -> Vec<String> {
        steps(text, &clauses(text, &literals(text)))
    }

    #[test]
    fn a_request_is_cut_where_another_step_begins() {
        for (text, expected) in [
            ("read and parse a JSON file, then post it", "read a JSON file | parse a JSON file | post it"),
            ("what time is it in Paris", "what time is it in Paris"),
            ("Read data.json. Then send it to Ann and Bob", "Read data.json | send it to Ann and Bob"),
            ("list the files, sort them and count", "list the files | sort them | count"),
            ("the search and rescue team", "the search and rescue team"),
            ("convert the PDF to text", "convert the PDF to text"),
            ("say 'stop, then read it' and open the door", "say 'stop, then read it' | open the door"),
            ("please read a.txt and b.txt; after that, delete both", "read a.txt and b.txt | delete both"),
            ("After that, read a.txt. Finally, count the lines.", "read a.txt | count the lines"),
            ("", ""),
            ("🙂", "🙂"),
        ] {
            assert_eq!(steps_of(text).join(" | "), expected);
        }
    }

    #[test]
    fn spans_of_steps_cover_the_text() {
        for (text, expected) in [
            ("Please read a csv file and sum a column", "Please read a csv file | sum a column"),
            ("what time is it in Paris", "what time is it in Paris"),
            ("list the files, then delete what is old.", "list the files | delete what is old"),
            ("", ""),
        ] {
            let spans = step_spans(text);
            assert!(spans.windows(2).all(|pair| pair[0].end == pair[1].start), "{spans:?}");
            assert_eq!((spans[0].start, spans[spans.len() - 1].end), (0, text.len()));
            let parts: Vec<&str> = spans.into_iter().map(|span| without_joints(&text[span])).collect();
            assert_eq!(parts.join(" | "), expected);
        }
    }

    #[test]
    fn a_long_text_is_one_request() {
        assert_eq!(steps_of(&"read the file. ".repeat(50)).len(), 1);
    }

    #[test]
    fn a_request_falls_into_sentences_lines_and_points() {
        for (text, expected) in [
            ("Fly to v1.2 street. Then e-mail Ann!", "Fly to v1.2 street. | Then e-mail Ann!"),
            ("- buy milk\n- send mail", "buy milk | send mail"),
            ("weather tomorrow — news today; stocks?", "weather tomorrow — | news today; | stocks?"),
            ("查天气。发邮件", "查天气。 | 发邮件"),
            (
                "Do this: 1) buy milk, 2) send mail at 12:30",
                "Do this: | 1) buy milk, | 2) send mail at 12:30",
            ),
            ("costs (2) as much as v(1) in 1990) or (x)", "costs | (2) as much as v(1) in 1990) or (x)"),
        ] {
            let found = sentences(text).map(str::trim).filter(|sentence| !matches!(*sentence, "" | "-"));
            assert_eq!(found.collect::<Vec<_>>().join(" | "), expected);
        }
    }
}
