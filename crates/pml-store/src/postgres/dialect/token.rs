//! The tokens of a statement.

use super::Source;

/// A part of a statement that has no parts of its own. Spaces are left out.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Word(String),
    Number(String),
    /// A text with its quotes.
    Text(String),
    /// `?1`, `?2` ….
    Param(usize),
    /// A value that is bound and not given by the caller.
    Bound(Source),
    Symbol(String),
}

impl Token {
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn is(&self, symbol: &str) -> bool {
        matches!(self, Token::Symbol(found) if found == symbol)
    }

    pub(super) fn from_word(word: &str) -> Token {
        Token::Word(word.to_owned())
    }

    pub(super) fn symbol(symbol: &str) -> Token {
        Token::Symbol(symbol.to_owned())
    }
}

/// Symbols of two characters.
const PAIRS: [&str; 6] = ["<>", "<=", ">=", "||", "->", "::"];

pub(super) fn tokenise(sql: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = sql.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' => text_length(rest),
            '"' => 2 + rest[1..].find('"').unwrap_or(rest.len() - 2),
            '?' | '0'..='9' => {
                1 + run_length(&rest[1..], |c| c.is_ascii_digit() || (first != '?' && c == '.'))
            }
            _ if is_word(first) => run_length(rest, |c| is_word(c) || c.is_ascii_digit()),
            _ if PAIRS.iter().any(|pair| rest.starts_with(pair)) => 2,
            _ => first.len_utf8(),
        };
        let (text, after) = rest.split_at(length);
        tokens.push(match first {
            '\'' => Token::Text(text.to_owned()),
            '?' => Token::Param(text[1..].parse().unwrap_or_default()),
            '0'..='9' => Token::Number(text.to_owned()),
            _ if first == '"' || is_word(first) => Token::Word(text.to_owned()),
            _ => Token::Symbol(text.to_owned()),
        });
        rest = after.trim_start();
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn run_length(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// Length of a quoted text; a quote inside is written twice.
fn text_length(text: &str) -> usize {
    let mut length = 1;
    loop {
        length += text[length..].find('\'').map_or(text.len() - length, |at| at + 1);
        if !text[length..].starts_with('\'') || length >= text.len() {
            return length;
        }
        length += 1;
    }
}

/// The index of the bracket that closes the one at `open`.
pub(super) fn close_of(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token.is("(") {
            depth += 1;
        } else if token.is(")") {
            depth -= 1;
            if depth == 0 {
                return at;
            }
        }
    }
    tokens.len() - 1
}

/// The index of the first `word` from `start` on that is in no bracket opened after `start`.
pub(super) fn find(tokens: &[Token], start: usize, word: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token {
            Token::Symbol(symbol) if symbol == "(" => depth += 1,
            Token::Symbol(symbol) if symbol == ")" => depth -= 1,
            Token::Word(found) if depth == 0 && found == word => return Some(at),
            _ => {}
        }
    }
    None
}

/// The parts between the commas that are in no bracket.
pub(super) fn split(tokens: &[Token]) -> Vec<&[Token]> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Symbol(symbol) if symbol == "(" => depth += 1,
            Token::Symbol(symbol) if symbol == ")" => depth -= 1,
            Token::Symbol(symbol) if symbol == "," && depth == 0 => {
                parts.push(&tokens[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[begin..]);
    parts
}

/// The text of a statement and what its parameters stand for, numbered in the order in which they come.
pub(super) fn render(tokens: &[Token]) -> (String, Vec<Source>) {
    let (mut text, mut sources) = (String::new(), Vec::<Source>::new());
    for token in tokens {
        let part = match token {
            Token::Word(part) | Token::Number(part) | Token::Text(part) | Token::Symbol(part) => part.clone(),
            Token::Param(number) => place(&mut sources, Source::Given(*number)),
            Token::Bound(source) => place(&mut sources, source.clone()),
        };
        let joins =
            text.ends_with(['.', '(']) || matches!(part.as_str(), "." | "," | ")") || part.starts_with("::");
        if !text.is_empty() && !joins {
            text.push(' ');
        }
        text.push_str(&part);
    }
    (text, sources)
}

fn place(sources: &mut Vec<Source>, source: Source) -> String {
    let at = sources.iter().position(|known| *known == source).unwrap_or_else(|| {
        sources.push(source);
        sources.len() - 1
    });
    format!("${}", at + 1)
}
