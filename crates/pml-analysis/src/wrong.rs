//! Syntax errors in words a writer can act on.
//!
//! The parser says what it expected; what was probably meant is told from the text around the place, and
//! only where there is no doubt.

use std::borrow::Cow;

use oxc_span::{LabeledSpan, Span};

use crate::error::Error;
use crate::lines::Lines;
use crate::nesting::{self, Stray};

/// A complaint of the parser.
pub(crate) struct Found<'d> {
    message: &'d str,
    at: Span,
    /// Where the bracket that is missing its partner, or the first declaration of a name, stands.
    related: Option<Span>,
    help: Option<&'d str>,
}

/// The complaint nearest the beginning: later ones tend to follow from it.
pub(crate) fn first<'d>(
    complaints: impl Iterator<Item = (&'d str, &'d [LabeledSpan], Option<&'d str>)>,
) -> Option<Found<'d>> {
    complaints.map(|(message, labels, help)| found(message, labels, help)).min_by_key(|found| found.at.start)
}

fn found<'d>(message: &'d str, labels: &'d [LabeledSpan], help: Option<&'d str>) -> Found<'d> {
    let span = |label: &LabeledSpan| Span::sized(label.offset(), label.len());
    let twice = message.contains("already been declared") || message.contains("more than once");
    let main = match labels {
        _ if twice => labels.len().saturating_sub(1),
        _ => labels.iter().position(LabeledSpan::primary).unwrap_or(0),
    };
    let related = labels.iter().enumerate().find(|(index, _)| *index != main).map(|(_, label)| span(label));
    Found { message, at: labels.get(main).map_or(Span::new(0, 0), span), related, help }
}

/// The complaint as an error.
pub(crate) fn syntax(lines: &Lines<'_>, found: &Found<'_>) -> Error {
    let text = Text { source: lines.source(), at: found.at };
    if text.is_markup(found.message) {
        let hint = "build text with a template: `<b>${name}</b>` in backticks";
        return crate::refuse::unsupported(lines, found.at, "JSX is not supported", Some(hint));
    }
    let hint = text.hint(lines, found);
    error(lines, found.at, text.message(found.message), hint)
}

/// `name = …` where `name` is a constant.
pub(crate) fn reassigned(lines: &Lines<'_>, name: &str, at: Span) -> Error {
    let hint = format!("declare `{name}` with `let`");
    error(lines, at, format!("cannot assign to `{name}`: it is a constant"), Some(hint))
}

/// A program inside a Markdown code fence. It would even parse: as calls of templates.
pub(crate) fn fenced(lines: &Lines<'_>) -> Option<Error> {
    let source = lines.source();
    let start = source.len() - source.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).len();
    source[start..].starts_with(FENCE).then(|| {
        let at = Span::sized(start as u32, FENCE.len() as u32);
        error(lines, at, "the program is wrapped in a Markdown code fence".to_owned(), Some(FENCE_HINT.to_owned()))
    })
}

const FENCE: &str = "```";
const FENCE_HINT: &str = "send the code alone, without the lines of backticks";

fn error(lines: &Lines<'_>, at: Span, message: String, hint: Option<String>) -> Error {
    let at = lines.position(at);
    Error::Syntax { message, at, excerpt: lines.excerpt(at), hint }
}

/// The source, seen from a place in it.
struct Text<'s> {
    source: &'s str,
    at: Span,
}

impl<'s> Text<'s> {
    /// What stands at the place, one character where the parser names none.
    fn token(&self) -> &'s str {
        let token = self.source.get(self.at.start as usize..self.at.end as usize).unwrap_or("");
        let first = token.lines().next().unwrap_or("");
        first.char_indices().nth(40).map_or(first, |(end, _)| &first[..end])
    }

    /// The word that begins at the place.
    fn word(&self) -> &'s str {
        let rest = self.source.get(self.at.start as usize..).unwrap_or("");
        &rest[..rest.find(|c: char| !is_name(c)).unwrap_or(rest.len())]
    }

    /// The text of the line before the place.
    fn before(&self) -> &'s str {
        let before = self.source.get(..self.at.start as usize).unwrap_or("");
        &before[before.rfind(['\n', '\r']).map_or(0, |end| end + 1)..]
    }

    /// The text of the line from the place on.
    fn after(&self) -> &'s str {
        self.source.get(self.at.start as usize..).and_then(|rest| rest.lines().next()).unwrap_or("")
    }

    /// The word that ends before the place, white space between.
    fn word_before(&self) -> &'s str {
        let before = self.before().trim_end();
        &before[before.rfind(|c: char| !is_name(c)).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8))..]
    }

    fn at_end(&self) -> bool {
        self.source.get(self.at.start as usize..).is_none_or(|rest| rest.trim().is_empty())
    }

    fn message(&self, message: &str) -> String {
        match message {
            "Unexpected token" | "Unexpected end of file" if self.at_end() => "the program ends too early".to_owned(),
            "Unexpected token" if self.token().is_empty() => "unexpected text".to_owned(),
            "Unexpected token" => format!("unexpected {}", quoted(self.token())),
            _ if message.starts_with("Expected a semicolon") => {
                format!("expected `;` or a new line before {}", quoted(self.next_token()))
            }
            _ if message.starts_with("Invalid Character") => {
                format!("unexpected character {}", quoted(self.token()))
            }
            _ => plain(message),
        }
    }

    /// The word or character after the place: missing semicolons are reported where they are missing.
    fn next_token(&self) -> &'s str {
        let rest = self.source.get(self.at.start as usize..).unwrap_or("").trim_start();
        let word = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        let length = if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) };
        &rest[..length]
    }

    /// `<div>` where a value is expected.
    fn is_markup(&self, message: &str) -> bool {
        message.contains("JSX")
    }

    fn hint(&self, lines: &Lines<'_>, found: &Found<'_>) -> Option<String> {
        let own = self.fence().or_else(|| self.character()).or_else(|| self.words(found.message)).map(str::to_owned);
        own.or_else(|| self.known(lines, found)).or_else(|| self.brackets(lines, found))
    }

    fn fence(&self) -> Option<&'static str> {
        let line = format!("{}{}", self.before(), self.after());
        line.trim_start().starts_with(FENCE).then_some(FENCE_HINT)
    }

    /// Characters that word processors put in place of others.
    fn character(&self) -> Option<&'static str> {
        Some(match self.source.get(self.at.start as usize..)?.chars().next()? {
            '“' | '”' | '„' | '«' | '»' | '＂' => "use straight quotes: `\"`",
            '‘' | '’' | '‚' | '＇' | '´' => "use straight quotes: `'`",
            '–' | '—' | '−' | '‐' | '‑' | '－' => "use the minus of the keyboard: `-`",
            '…' => "write three dots: `...`",
            '（' | '）' | '｛' | '｝' | '［' | '］' | '，' | '；' | '：' | '＝' => "use the ASCII character",
            '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}' => {
                "remove this invisible character"
            }
            '#' if self.before().trim().is_empty() => "comments begin with `//`",
            _ => return None,
        })
    }

    /// Words of other languages.
    fn words(&self, message: &str) -> Option<&'static str> {
        let after = self.after();
        if self.before().trim_end().ends_with(':') && after.starts_with('=') {
            return Some("write `=`, not `:=`");
        }
        if !message.starts_with("Expected a semicolon") && message != "Unexpected token" {
            return None;
        }
        let next = self.next_token();
        Some(match (self.word_before(), next) {
            ("def" | "fn" | "func" | "fun", _) if is_called(after, next) => "functions are declared with `function`",
            ("elif" | "elsif" | "elseif", _) => "write `else if`",
            (_, "elif" | "elsif" | "elseif") => "write `else if`",
            ("mut", _) if self.before().contains("let ") => "variables declared with `let` can be changed; leave out `mut`",
            ("f" | "r" | "b", "\"" | "'") => "write text with values in it as a template: `Hello ${name}` in backticks",
            (_, "and") => "write `&&` for `and`",
            (_, "or") => "write `||` for `or`",
            ("not", _) => "write `!` for `not`",
            (_, "except") => "write `catch`",
            (_, "then") => "JavaScript has no `then`: put the condition in parentheses and the statements in braces",
            _ => return None,
        })
    }

    /// What the parser's own words allow to say.
    fn known(&self, lines: &Lines<'_>, found: &Found<'_>) -> Option<String> {
        let message = found.message;
        let place = |span: Span| {
            let at = lines.position(span);
            format!("line {}, column {}", at.line, at.column)
        };
        if message.starts_with("`await`") || message.starts_with("`for await`") {
            return Some("make the function around it `async`".to_owned());
        }
        if message == "Unterminated string" {
            return Some(self.unterminated().to_owned());
        }
        if message.contains("already been declared") {
            let first = found.related?;
            return Some(format!("it is first declared at {}; use another name, or assign without declaring", place(first)));
        }
        if message.starts_with("Expected `") && message.ends_with("`EOF`") {
            let opened = found.related?;
            let bracket = Text { source: self.source, at: opened }.token();
            return Some(format!("the {} at {} is never closed", quoted(bracket), place(opened)));
        }
        let help = found.help.filter(|help| !help.starts_with("Try inserting") && !help.contains('\n'))?;
        Some(plain(help))
    }

    fn unterminated(&self) -> &'static str {
        match self.source.as_bytes().get(self.at.start as usize) {
            Some(b'"' | b'\'') => {
                "a string ends on the line it begins; write `\\n`, or a template in backticks for several lines"
            }
            _ => "a template ends with a backtick; write \\` for a backtick inside it",
        }
    }

    /// Brackets that do not match.
    fn brackets(&self, lines: &Lines<'_>, found: &Found<'_>) -> Option<String> {
        let place = |at: usize| {
            let at = lines.position(Span::sized(at as u32, 1));
            format!("line {}, column {}", at.line, at.column)
        };
        let name = |at: usize| quoted(&self.source[at..=at]);
        let brackets = nesting::brackets(self.source);
        if self.at_end() {
            return brackets.open.map(|at| format!("the {} at {} is never closed", name(at), place(at)));
        }
        let Stray { at, open } = brackets.stray.filter(|stray| stray.at == found.at.start as usize)?;
        Some(match open {
            Some(open) => format!("the {} at {} is still open here", name(open), place(open)),
            None => format!("no bracket is open here: remove this {}", name(at)),
        })
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn is_called(after: &str, name: &str) -> bool {
    after.trim_start().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('('))
}

/// In backticks, hidden characters shown.
fn quoted(token: &str) -> String {
    let shown = pml_model::name::printable(token);
    if shown.contains('`') { format!("'{shown}'") } else { format!("`{shown}`") }
}

/// A sentence of the parser in our style: lower case, no full stop, code in backticks.
fn plain(message: &str) -> String {
    let message = message.trim_end_matches('.').replace("`EOF`", "the end of the program");
    let message = requoted(&message);
    let mut characters = message.chars();
    match characters.next() {
        Some(first) if characters.as_str().starts_with(|c: char| c.is_lowercase() || c == ' ') => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => message.into_owned(),
    }
}

/// `'name'` becomes `` `name` ``; an apostrophe stays.
fn requoted(text: &str) -> Cow<'_, str> {
    let quotes: Vec<usize> = text
        .match_indices('\'')
        .map(|(at, _)| at)
        .filter(|at| {
            let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            !(letter(text[..*at].chars().next_back()) && letter(text[at + 1..].chars().next()))
        })
        .collect();
    if quotes.is_empty() || quotes.len() % 2 == 1 || text.contains('`') {
        return Cow::Borrowed(text);
    }
    let mut bytes = text.to_owned();
    for at in quotes {
        bytes.replace_range(at..=at, "`");
    }
    Cow::Owned(bytes)
}
