//! Marked text of a generated program, printed as TypeScript or JavaScript, in several styles.
//!
//! Two prints of one text in the same language differ in names, white space and comments only.

use crate::random::Random;

/// Before a bound name, which can be replaced by another.
pub(crate) const NAME: char = '\u{e004}';
/// Before a bound name that stands for a member of that name, too.
pub(crate) const SHORTHAND: char = '\u{e005}';

/// The language printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// With types.
    TypeScript,
    /// Without, and what needs compiling compiled by hand.
    JavaScript,
}

/// How it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// As made.
    Plain,
    /// Other names, white space and comments, by this seed.
    Other(u64),
}

/// The text of a program.
pub(crate) fn print(text: &str, language: Language, look: Look) -> String {
    let mut out = String::with_capacity(text.len());
    let mut random = match look {
        Look::Plain => None,
        Look::Other(seed) => Some(Random::new(seed)),
    };
    let text = in_language(text, language);
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            NAME | SHORTHAND => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                rest = after;
                let printed = if random.is_some() { other(name) } else { name.to_owned() };
                if c == SHORTHAND && random.is_some() {
                    out.push_str(name);
                    out.push_str(": ");
                }
                out.push_str(&printed);
            }
            '⏎' => out.push('\n'),
            '␣' => out.push(' '),
            ' ' => out.push_str(random.as_mut().map_or(" ", blank)),
            '\n' => out.push_str(random.as_mut().map_or("\n", line_end)),
            c => out.push(c),
        }
    }
    out
}

/// Whether JavaScript is more than TypeScript without types: something had to be compiled by hand.
pub(crate) fn compiled(text: &str) -> bool {
    text.contains('«')
}

fn in_language(text: &str, language: Language) -> String {
    let mut out = String::with_capacity(text.len());
    let typed = language == Language::TypeScript;
    let mut keep = true;
    for c in text.chars() {
        match c {
            '‹' | '«' => keep = typed,
            '¦' => keep = !typed,
            '›' | '»' => keep = true,
            c if keep => out.push(c),
            _ => {}
        }
    }
    out
}

/// Another name, for every name another; some of them such as the emitted program might want for itself.
fn other(name: &str) -> String {
    let turned: String = name.chars().rev().collect();
    let prefixes = ["$", "_", "probe", "P", "é", "__pml", "ctx", "C"];
    format!("{}{turned}", prefixes[name.bytes().map(usize::from).sum::<usize>() % prefixes.len()])
}

fn blank(random: &mut Random) -> &'static str {
    ["  ", " /* c */ ", "\t", " ", " ", "\u{a0}"][random.below(6)]
}

fn line_end(random: &mut Random) -> &'static str {
    ["\n", "\n\n", " // it's\n", "\r\n", "\n/* a\n * b */\n", " "][random.below(6)]
}
