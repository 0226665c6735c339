//! Turns syntax errors into messages that an author can act on.
//!
//! The parser says what it expected. The likely intention is derived from the surrounding text, and only where there is
//! no doubt.

use std::borrow::Cow;

use oxc_span::{LabeledSpan, Span};

use crate::error::Error;
use crate::lines::SourceLines;
use crate::nesting::{self, StrayBracket};
use crate::refuse;

/// An error of the parser.
pub(crate) struct ParserComplaint<'d> {
    message: &'d str,
    at: Span,
    /// Span of the bracket without a partner, or of the first declaration of a name.
    related: Option<Span>,
    help: Option<&'d str>,
}

/// The first error in the source: later ones tend to follow from it.
pub(crate) fn first_complaint<'d>(
    complaints: impl Iterator<Item = (&'d str, &'d [LabeledSpan], Option<&'d str>)>,
) -> Option<ParserComplaint<'d>> {
    let mut all: Vec<ParserComplaint<'d>> =
        complaints.map(|(message, labels, help)| found(message, labels, help)).collect();
    all.sort_by_key(|found| found.at.start);
    // An invalid token is unexpected too; the reason why it is invalid says more.
    let why = all.first().filter(|first| first.message == "Unexpected token").and_then(|first| {
        all.iter().position(|other| other.message != "Unexpected token" && other.at.start <= first.at.end)
    });
    (!all.is_empty()).then(|| all.swap_remove(why.unwrap_or(0)))
}

fn found<'d>(message: &'d str, labels: &'d [LabeledSpan], help: Option<&'d str>) -> ParserComplaint<'d> {
    let span = |label: &LabeledSpan| Span::sized(label.offset(), label.len());
    let twice = message.contains("already been declared") || message.contains("more than once");
    let main = match labels {
        _ if twice => labels.len().saturating_sub(1),
        _ => labels.iter().position(LabeledSpan::primary).unwrap_or(0),
    };
    let related = labels.iter().enumerate().find(|(index, _)| *index != main).map(|(_, label)| span(label));
    ParserComplaint { message, at: labels.get(main).map_or(Span::new(0, 0), span), related, help }
}

/// Converts the parser's error.
pub(crate) fn syntax_error(lines: &SourceLines<'_>, found: &ParserComplaint<'_>) -> Error {
    let text = SourceAround { source: lines.source(), at: found.at };
    if let Some(at) = text.markup(found.message) {
        let hint = "build markup as text: a template in backticks with `${…}` for the values";
        return refuse::unsupported_error(lines, at, "JSX is not supported", Some(hint));
    }
    let hint = text.hint(lines, found);
    error(lines, text.place(found.message), text.message(found.message), hint)
}

/// Assignment to the constant `name`.
pub(crate) fn reassignment_error(lines: &SourceLines<'_>, name: &str, at: Span) -> Error {
    let hint = format!("declare `{name}` with `let`");
    error(lines, at, format!("cannot assign to `{name}`: it is a constant"), Some(hint))
}

/// A second function with one name in a block.
pub(crate) fn redeclaration_error(lines: &SourceLines<'_>, name: &str, first: Span, second: Span) -> Error {
    let first = lines.position(first);
    let hint =
        format!("it is first declared at line {}, column {}; use another name", first.line, first.column);
    error(lines, second, format!("identifier `{name}` has already been declared"), Some(hint))
}

/// A program inside a Markdown code fence. It would even parse, as tagged templates.
pub(crate) fn fenced_source_error(lines: &SourceLines<'_>) -> Option<Error> {
    let source = lines.source();
    let start = source.len() - source.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).len();
    source[start..].starts_with(FENCE).then(|| {
        let at = Span::sized(start as u32, FENCE.len() as u32);
        error(
            lines,
            at,
            "the program is wrapped in a Markdown code fence".to_owned(),
            Some(FENCE_HINT.to_owned()),
        )
    })
}

const NO_SEMICOLON: &str = "Expected a semicolon";
/// Number of `<` before an error that are examined.
const MARKUP_NEAR: usize = 8;
const BEFORE_VALUE: [char; 9] = ['=', '(', '>', '?', ':', '&', '|', ',', '['];
const FENCE: &str = "```";
const FENCE_HINT: &str = "send the code alone, without lines of backticks or text around it";

fn error(lines: &SourceLines<'_>, at: Span, message: String, hint: Option<String>) -> Error {
    let at = lines.position(at);
    Error::Syntax { message, at, excerpt: lines.excerpt(at), hint }
}

/// The source around a position.
struct SourceAround<'s> {
    source: &'s str,
    at: Span,
}

impl<'s> SourceAround<'s> {
    /// Token at the position; one character when the parser names none.
    fn token(&self) -> &'s str {
        let token = self.source.get(self.at.start as usize..self.at.end as usize).unwrap_or("");
        let first = token.lines().next().unwrap_or("");
        first.char_indices().nth(40).map_or(first, |(end, _)| &first[..end])
    }

    /// Text of the line before the position.
    fn before(&self) -> &'s str {
        let before = self.source.get(..self.at.start as usize).unwrap_or("");
        &before[before.rfind(['\n', '\r']).map_or(0, |end| end + 1)..]
    }

    /// Text of the line from the position on.
    fn after(&self) -> &'s str {
        self.source.get(self.at.start as usize..).and_then(|rest| rest.lines().next()).unwrap_or("")
    }

    /// The word before the position, ignoring white space.
    fn word_before(&self) -> &'s str {
        let before = self.before().trim_end();
        &before[before
            .rfind(|c: char| !is_name(c))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8))..]
    }

    fn at_end(&self) -> bool {
        self.source.get(self.at.start as usize..).is_none_or(|rest| rest.trim().is_empty())
    }

    fn message(&self, message: &str) -> String {
        match message {
            "Unexpected token" | "Unexpected end of file" if self.at_end() => {
                "the program ends too early".to_owned()
            }
            "Unexpected token" if self.token().is_empty() => "unexpected text".to_owned(),
            "Unexpected token" => format!("unexpected {}", quoted(self.token())),
            "Unterminated string" if self.begins_string().is_none() => "unterminated template".to_owned(),
            _ if message.starts_with(NO_SEMICOLON) => {
                format!("expected `;` or a new line before {}", quoted(self.next_token()))
            }
            _ if message.starts_with("Invalid Character") => {
                format!("unexpected character {}", quoted(self.token()))
            }
            "HTML comments are not allowed in modules" => "HTML comments are not allowed".to_owned(),
            _ if message.starts_with("`await` is only") => {
                "`await` is only allowed in async functions and outside of functions".to_owned()
            }
            _ if message.starts_with("`for await` loops") => {
                "`for await` is only allowed in async functions and outside of functions".to_owned()
            }
            _ => match message.split_once(" but found `") {
                Some((expected, kind)) if kind != "EOF`" && !self.token().is_empty() => {
                    format!("{} but found {}", plain(expected), quoted(self.token()))
                }
                _ => plain(message),
            },
        }
    }

    /// Span to report. A missing semicolon is reported where it is missing; the token found instead is easier to see.
    fn place(&self, message: &str) -> Span {
        if !message.starts_with(NO_SEMICOLON) {
            return self.at;
        }
        let next = self.next_token();
        let start = next.as_ptr() as usize - self.source.as_ptr() as usize;
        Span::sized(start as u32, next.len() as u32)
    }

    /// The word or character after the position.
    fn next_token(&self) -> &'s str {
        let rest = self.source.get(self.at.start as usize..).unwrap_or("").trim_start();
        let word = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        let length = if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) };
        &rest[..length]
    }

    /// The quote, when a string begins at the position.
    fn begins_string(&self) -> Option<u8> {
        self.source
            .as_bytes()
            .get(self.at.start as usize)
            .copied()
            .filter(|byte| matches!(byte, b'"' | b'\''))
    }

    /// `<div>` shortly before the position, where a value is expected, with its closing tag after it.
    fn markup(&self, message: &str) -> Option<Span> {
        if message.contains("JSX") {
            return Some(self.at);
        }
        let until = self.source.get(..=self.at.start as usize).unwrap_or(self.source);
        until.rmatch_indices('<').take(MARKUP_NEAR).map(|(at, _)| at).find_map(|at| self.tag(at))
    }

    fn tag(&self, at: usize) -> Option<Span> {
        let (before, tag) = (self.source[..at].trim_end(), &self.source[at..]);
        let name = &tag[1..];
        let name = &name[..name.find(|c: char| !is_name(c) && c != '.').unwrap_or(name.len())];
        let value = before.is_empty() || before.ends_with(BEFORE_VALUE) || before.ends_with("return");
        let closed = || tag.split_inclusive('>').next().is_some_and(|tag| tag.ends_with("/>"));
        let ends = || tag.contains(&format!("</{name}>"));
        (value && (closed() || ends())).then(|| Span::sized(at as u32, 1 + name.len() as u32))
    }

    fn hint(&self, lines: &SourceLines<'_>, found: &ParserComplaint<'_>) -> Option<String> {
        let own = self
            .fence()
            .or_else(|| self.character())
            .or_else(|| self.words(found.message))
            .map(str::to_owned);
        own.or_else(|| self.known(lines, found)).or_else(|| self.brackets(lines, found))
    }

    fn fence(&self) -> Option<&'static str> {
        let is_fence = |line: &str| line.trim_start().starts_with(FENCE);
        let first = self.source[..self.at.start as usize].trim_start();
        let prose_before = !first.contains('\n') && self.source.lines().any(is_fence);
        let line = format!("{}{}", self.before(), self.after());
        (prose_before || is_fence(&line)).then_some(FENCE_HINT)
    }

    /// Typographic characters from word processors, and comments of other languages.
    fn character(&self) -> Option<&'static str> {
        Some(match self.source.get(self.at.start as usize..)?.chars().next()? {
            '“' | '”' | '„' | '«' | '»' | '＂' => "use straight quotes: `\"`",
            '‘' | '’' | '‚' | '＇' | '´' => "use straight quotes: `'`",
            '–' | '—' | '−' | '‐' | '‑' | '－' => "use the minus of the keyboard: `-`",
            '…' => "write three dots: `...`",
            '（' | '）' | '｛' | '｝' | '［' | '］' | '，' | '；' | '：' | '＝' => {
                "use the ASCII character"
            }
            '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}' => {
                "remove this invisible character"
            }
            ' ' if self.before().trim() == "#" => "comments begin with `//`",
            _ => return None,
        })
    }

    /// Keywords of other languages.
    fn words(&self, message: &str) -> Option<&'static str> {
        let (before, after, next) = (self.before(), self.after(), self.next_token());
        if before.trim_end().ends_with(':') && after.starts_with('=') {
            return Some("write `=`, not `:=`");
        }
        if message != "Unexpected token"
            && !message.starts_with(NO_SEMICOLON)
            && !message.starts_with("Expected `")
        {
            return None;
        }
        if before.split(|c| !is_name(c)).chain([next]).any(|word| matches!(word, "elif" | "elsif" | "elseif"))
        {
            return Some("write `else if`");
        }
        if before.ends_with(['\'', '"']) && next.starts_with(is_name) && after.starts_with(next) {
            return Some(
                "a quote inside the text ends it: escape it with `\\`, or use other quotes around the text",
            );
        }
        Some(match (self.word_before(), next) {
            ("def" | "fn" | "func" | "fun", _) if is_called(after, next) => {
                "functions are declared with `function`"
            }
            ("mut", _) if before.trim_start().starts_with("let ") => {
                "leave out `mut`: what `let` declares can change"
            }
            ("f", "\"" | "'") => "write text with values in it as a template: `Hello ${name}` in backticks",
            (_, "and") => "write `&&` for `and`",
            (_, "or") => "write `||` for `or`",
            ("not", _) | (_, "not") => "write `!` for `not`",
            (_, "except") => "write `catch`",
            ("if" | "for" | "while" | "switch", _) if message.starts_with("Expected `(`") => {
                "what follows this word stands in parentheses"
            }
            _ => return None,
        })
    }

    /// Hints that follow from the parser's message.
    fn known(&self, lines: &SourceLines<'_>, found: &ParserComplaint<'_>) -> Option<String> {
        let message = found.message;
        let place = |span: Span| {
            let at = lines.position(span);
            format!("line {}, column {}", at.line, at.column)
        };
        if message.starts_with("`await`") || message.starts_with("`for await`") {
            // Namespaces and enums cannot contain it either, and cannot be made async.
            let mut words = self.source[..self.at.start as usize].split(|c| !is_name(c));
            let elsewhere = words.any(|word| matches!(word, "namespace" | "module" | "enum"));
            return (!elsewhere).then(|| "make the function around it `async`".to_owned());
        }
        if message == "Unterminated string" {
            let hint = match self.begins_string() {
                Some(_) => "a string ends on the line it begins; write `\\n`, or a template in backticks",
                None => "a template ends with a backtick; one inside it is written \\`",
            };
            return Some(hint.to_owned());
        }
        if message.contains("already been declared") {
            return Some(format!("it is first declared at {}; use another name", place(found.related?)));
        }
        if message.starts_with("Expected `") {
            let opened = found.related.filter(|_| message.ends_with("`EOF`"))?;
            let bracket = SourceAround { source: self.source, at: opened }.token();
            return Some(match bracket {
                "?" => {
                    format!("the `?` at {} needs a second value: `condition ? value : other`", place(opened))
                }
                _ => format!("the {} at {} is never closed", quoted(bracket), place(opened)),
            });
        }
        if message.starts_with("HTML comments") {
            return Some("comments begin with `//`".to_owned());
        }
        if message.starts_with("Invalid assignment in object") {
            return Some("write `:` between a name and its value".to_owned());
        }
        let help = found.help.filter(|help| !help.starts_with("Try inserting") && !help.contains('\n'))?;
        Some(plain(help))
    }

    /// Unbalanced brackets.
    fn brackets(&self, lines: &SourceLines<'_>, found: &ParserComplaint<'_>) -> Option<String> {
        let place = |at: usize| {
            let at = lines.position(Span::sized(at as u32, 1));
            format!("line {}, column {}", at.line, at.column)
        };
        let name = |at: usize| quoted(&self.source[at..=at]);
        let brackets = nesting::find_unpaired_brackets(self.source);
        if self.at_end() {
            return brackets.open.map(|at| format!("the {} at {} is never closed", name(at), place(at)));
        }
        let StrayBracket { at, open } = brackets.stray.filter(|stray| stray.at == found.at.start as usize)?;
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

/// The token in backticks, with hidden characters escaped.
fn quoted(token: &str) -> String {
    let shown = pml_model::name::printable(token);
    if shown.contains('`') { format!("'{shown}'") } else { format!("`{shown}`") }
}

/// A message of the parser in our style: lower case, no full stop, code in backticks.
fn plain(message: &str) -> String {
    let message = message.trim_end_matches('.').replace("`EOF`", "the end of the program");
    if let Some(reason) = message.strip_prefix("Invalid regular expression: ") {
        return format!("invalid regular expression: {}", plain(reason));
    }
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
