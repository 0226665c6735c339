//! Changes a text a little: by token, by line and by character.

use crate::random::Random;

/// Texts put in anywhere.
const INSERTED: &[&str] = &[
    "await",
    "async",
    "yield",
    "function",
    "class",
    "return",
    "throw",
    "new",
    "delete",
    "typeof",
    "void",
    "in",
    "of",
    "let",
    "const",
    "var",
    "static",
    "get",
    "set",
    "super",
    "this",
    "null",
    "if",
    "else",
    "for",
    "while",
    "do",
    "switch",
    "case",
    "default",
    "break",
    "continue",
    "try",
    "catch",
    "finally",
    "with",
    "import",
    "export",
    "enum",
    "namespace",
    "as",
    "satisfies",
    "declare",
    "abstract",
    "using",
    "eval",
    "arguments",
    "mcp",
    "args",
    "capabilities",
    "pml",
    "console",
    "=>",
    "...",
    "?.",
    "??",
    "&&",
    "||",
    "??=",
    "&&=",
    "**",
    "++",
    "--",
    "!",
    "~",
    "`",
    "${",
    "'",
    "\"",
    "/",
    "//",
    "/*",
    "*/",
    "<!--",
    "-->",
    "#x",
    "@x",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ",",
    ";",
    ":",
    "=",
    "?",
    "\\",
    "\\u0061",
    "\\u{1F600}",
    "\\u{110000}",
    "'\\uD800'",
    "\u{2028}",
    "\u{2029}",
    "\u{feff}",
    "\u{a0}",
    "\u{0}",
    "\u{200d}",
    "\u{301}",
    "😀",
    "1e400",
    "0x",
    "9007199254740993",
    "1n",
    "0b12",
    "1_",
    ".5",
    "08",
    "/a(?<n>b)/v",
    "/[/",
    "`${mcp}`",
    "x: any",
    "<T>",
    "(mcp)",
    "await mcp.fs.read({})",
    "...mcp",
    "mcp[args.x]",
    "() => mcp",
    "async () => { await mcp.fs.read({}) }",
    "if (args.a) ",
    "for (const x of args.a) ",
    "a: ",
    "\n",
    " ",
];

/// A mutation of `text`; `others` lend parts.
pub(crate) fn mutate(text: &str, others: &[String], random: &mut Random) -> String {
    let mut text = text.to_owned();
    for _ in 0..random.below(3) + 1 {
        text = match random.below(14) {
            0 => characters(&text, random),
            1 => lines(&text, random),
            2 => {
                let other: &String = random.one(others);
                splice(&text, other, random)
            }
            _ => tokens(&text, random),
        };
    }
    text
}

/// The tokens of a text, roughly: words, quoted texts, blanks, and signs of up to three characters.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let run = |fits: &dyn Fn(char) -> bool| rest.find(|c| !fits(c)).unwrap_or(rest.len());
        let size = if word(first) {
            run(&word)
        } else if first.is_whitespace() {
            run(&char::is_whitespace)
        } else if matches!(first, '\'' | '"') {
            rest[1..].find([first, '\n']).map_or(1, |at| at + 2)
        } else {
            let signs =
                ["...", "??=", "&&=", "||=", "=>", "?.", "??", "&&", "||", "++", "--", "**", "==", "${"];
            signs.iter().find(|sign| rest.starts_with(**sign)).map_or(first.len_utf8(), |sign| sign.len())
        };
        let (token, after) = rest.split_at(size);
        tokens.push(token);
        rest = after;
    }
    tokens
}

fn tokens(text: &str, random: &mut Random) -> String {
    let mut tokens = split(text);
    if tokens.is_empty() {
        return (*random.one(INSERTED)).to_owned();
    }
    let at = random.below(tokens.len());
    let other = random.below(tokens.len());
    match random.below(9) {
        0 => drop(tokens.remove(at)),
        1 => tokens.insert(at, tokens[at]),
        2 => tokens.swap(at, other),
        3 => tokens.insert(at, *random.one(INSERTED)),
        4 => tokens[at] = *random.one(INSERTED),
        // A word for a word, a sign for a sign: the likeliest change to leave a program.
        5..8 => {
            let kind =
                |token: &str| (token.starts_with(char::is_alphanumeric), token.starts_with(['\'', '"']));
            let alike: Vec<&str> =
                tokens.iter().filter(|token| kind(token) == kind(tokens[at])).copied().collect();
            tokens[at] = *random.one(&alike);
        }
        _ => {
            let (from, to) = (at.min(other), at.max(other).min(at.min(other) + 30));
            let moved: Vec<&str> = tokens[from..to].to_vec();
            let place = random.below(tokens.len() + 1);
            tokens.splice(place..place, moved);
        }
    }
    tokens.concat()
}

fn lines(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.is_empty() {
        return String::new();
    }
    let (at, other) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(3) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(other, lines[at]),
        _ => lines.swap(at, other),
    }
    lines.concat()
}

/// Some lines of `other` put into `text`.
fn splice(text: &str, other: &str, random: &mut Random) -> String {
    let lent: Vec<&str> = other.split_inclusive('\n').collect();
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let place = random.below(lines.len() + 1);
    if !lent.is_empty() {
        let from = random.below(lent.len());
        let to = (from + random.below(11) + 1).min(lent.len());
        lines.splice(place..place, lent[from..to].iter().copied());
    }
    lines.concat()
}

fn characters(text: &str, random: &mut Random) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    if characters.is_empty() {
        return "a".to_owned();
    }
    let (at, other) = (random.below(characters.len()), random.below(characters.len()));
    match random.below(3) {
        0 => drop(characters.remove(at)),
        1 => characters.insert(at, characters[other]),
        _ => {
            characters[at] = char::from_u32(random.below(0x100) as u32).expect("all of these are characters");
        }
    }
    characters.into_iter().collect()
}
