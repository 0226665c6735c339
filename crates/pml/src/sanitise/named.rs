//! Finds secrets in running text by the name before them: `password=…`, `"api_key": "…"`, `--token …`.
//!
//! Prose uses the same words. So the looser the tie between name and value, the more the value itself has to
//! look like a secret.

use std::ops::Range;

use super::known::is_plain_path;
use super::name::{LONGEST, Secrecy, secrecy};
use super::shape::SCHEMES;

/// How far behind a name a long random text is still taken to be meant.
const NEAR: usize = 48;

/// What a long random text has at least.
const LONG: usize = 40;

/// How much of a text is looked at to decide. All that follows a name would be too much: it may be full of names.
const SAMPLE: usize = 256;

/// Values that stand for one, or say that there is none.
const STAND_INS: [&str; 38] = [
    "any",
    "bytes",
    "empty",
    "expired",
    "facultatif",
    "false",
    "hidden",
    "incorrect",
    "int",
    "invalid",
    "invalide",
    "masked",
    "missing",
    "nil",
    "no",
    "none",
    "null",
    "number",
    "obligatoire",
    "optional",
    "redacted",
    "rejected",
    "required",
    "requis",
    "revoked",
    "set",
    "str",
    "string",
    "true",
    "unauthorized",
    "undefined",
    "unknown",
    "unset",
    "valid",
    "void",
    "wrong",
    "xxx",
    "yes",
];

/// How code begins that gets a secret from elsewhere.
const SOURCES: [&str; 24] = [
    "process.env",
    "import.meta",
    "os.",
    "self.",
    "this.",
    "config.",
    "settings.",
    "env.",
    "env[",
    "options.",
    "opts.",
    "args.",
    "params.",
    "req.",
    "request.",
    "ctx.",
    "cfg.",
    "secrets.",
    "vars.",
    "var.",
    "props.",
    "data.",
    "await ",
    "new ",
];

/// How a name and a value are tied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tie {
    /// `name=value`, `"name": value`, `<name>value</name>`: nothing else writes so.
    Close,
    /// `name: value`, `name = value`: so do sentences and programs.
    Loose,
    /// `--name value`, `name is value`: only words between.
    Words,
}

/// Looks at the name around `hit` and at what follows it. Says where to go on; before `from` all has been seen.
pub(super) fn find(bytes: &[u8], hit: Range<usize>, from: usize, found: &mut Vec<Range<usize>>) -> usize {
    let name = name_around(bytes, &hit, from);
    if !is_secret(bytes, &name) {
        return name.end;
    }
    let Some((tie, start)) = tie(bytes, &name) else {
        return near(bytes, name.end, found).unwrap_or(name.end);
    };
    match value(bytes, &name, tie, start) {
        Some(value) => {
            let end = value.end;
            found.push(value);
            end
        }
        None => near(bytes, name.end, found).unwrap_or(name.end),
    }
}

/// Looks at the value of an address's parameter whose name means little elsewhere.
pub(super) fn parameter(bytes: &[u8], start: usize, found: &mut Vec<Range<usize>>) -> usize {
    let end = end_of_word(bytes, start, SAMPLE);
    if end - start < 8 || !is_random(&bytes[start..end]) {
        return start;
    }
    let end = end_of_word(bytes, end, usize::MAX);
    found.push(start..end);
    end
}

/// Whether `value` stands for a secret rather than being one.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return false };
    let word = text.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}']);
    let is = |other: &str| word.eq_ignore_ascii_case(other);
    let variable = text.strip_prefix('$').is_some_and(|name| {
        name.starts_with(['{', '(']) || name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    });
    let starts_code = SOURCES.iter().any(|source| text.starts_with(source));
    let calls = text.contains("()") || text.ends_with('(') || (text.contains('(') && text.ends_with(')'));
    word.is_empty()
        || STAND_INS.iter().any(|stand_in| is(stand_in))
        || ["<", "{", "[", "%s", "..."].iter().any(|start| text.starts_with(start))
        || word.chars().all(|c| matches!(c, '*' | 'x' | 'X' | '.' | '•' | '-' | '_' | '…'))
        || variable
        || starts_code
        || calls
}

/// Whether a word is one that nobody would say: letters with digits or signs among them.
pub(super) fn is_random(word: &[u8]) -> bool {
    let word = trimmed(word);
    let sample = &word[..word.len().min(SAMPLE)];
    let has = |is: fn(&u8) -> bool| sample.iter().any(is);
    let letters = has(u8::is_ascii_alphabetic);
    let signs = sample.iter().any(|byte| b"!@#$%^*+=~?".contains(byte));
    let cases =
        has(u8::is_ascii_lowercase) && sample[1.min(sample.len())..].iter().any(u8::is_ascii_uppercase);
    (letters && has(u8::is_ascii_digit)) || (signs && sample.len() >= 8) || (cases && sample.len() >= 16)
}

/// The name that `hit` is part of.
fn name_around(bytes: &[u8], hit: &Range<usize>, from: usize) -> Range<usize> {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let before = bytes[from..hit.start].iter().rev().take(LONGEST).take_while(is_part).count();
    let after = bytes[hit.end..].iter().take(LONGEST).take_while(is_part).count();
    let (mut start, mut end) = (hit.start - before, hit.end + after);
    while end > hit.end && !bytes[end - 1].is_ascii_alphanumeric() {
        end -= 1;
    }
    while start < hit.start && !bytes[start].is_ascii_alphanumeric() {
        start += 1;
    }
    if bytes[start..end].eq_ignore_ascii_case(b"session") && bytes[end..].starts_with(b" id") {
        end += 3;
    }
    start..end
}

/// Whether what is named there is a secret, by the name and by the word before it.
fn is_secret(bytes: &[u8], name: &Range<usize>) -> bool {
    let word = &bytes[name.clone()];
    let before = &bytes[name.start.saturating_sub(24)..name.start];
    if word.eq_ignore_ascii_case(b"passe") {
        return before.ends_with(b"mot de ") || before.ends_with(b"Mot de ");
    }
    let spaced = before.last() == Some(&b' ');
    let adjective = before.strip_suffix(b" ").unwrap_or_default();
    let adjective = adjective.rsplit(|byte| !byte.is_ascii_alphanumeric()).next().unwrap_or_default();
    let both = || secrecy(&[adjective, word].concat()) != Secrecy::None;
    // "page token" is none although `token` is; "API key" is one although `key` is not.
    let is = |other: &[u8]| word.eq_ignore_ascii_case(other);
    match spaced {
        true if is(b"key") || is(b"keys") || (is(b"token") && !adjective.is_empty()) => both(),
        _ => secrecy(word) != Secrecy::None,
    }
}

/// How the name is tied to what follows, and where that begins.
fn tie(bytes: &[u8], name: &Range<usize>) -> Option<(Tie, usize)> {
    let before = &bytes[name.start.saturating_sub(2)..name.start];
    let quote = name.start.checked_sub(1).map(|at| bytes[at]).filter(|byte| b"\"'`".contains(byte));
    let quoted = quote.is_some() && bytes.get(name.end) == quote.as_ref();
    let mut at = name.end + usize::from(quoted);
    if before.ends_with(b"<") && bytes.get(at) == Some(&b'>') {
        return Some((Tie::Close, at + 1));
    }
    // `password[0]=…`, `config["token"] = …`.
    at += usize::from(matches!(bytes.get(at), Some(b']')));
    let spaces = blanks(bytes, at);
    at += spaces;
    let sign = match bytes.get(at..).unwrap_or_default() {
        [b'=', b'=', b'=', ..] => 3,
        [b':', b'=', ..] | [b'=', b'>' | b'=', ..] => 2,
        [b':', b':', ..] | [b':', b'/', b'/', ..] => return None,
        [b'=' | b':', ..] => 1,
        rest => return words_between(before, spaces, at, rest),
    };
    let after = blanks(bytes, at + sign);
    let close = bytes[at] == b'=' && spaces == 0 && after == 0 && sign == 1;
    let tie = if close || (quoted && bytes[at] == b':') { Tie::Close } else { Tie::Loose };
    Some((tie, at + sign + after))
}

/// `--token abc`, and "the token is abc".
fn words_between(before: &[u8], spaces: usize, at: usize, rest: &[u8]) -> Option<(Tie, usize)> {
    if spaces == 0 {
        return None;
    }
    let verb = [&b"is "[..], b"est ", b"was "].into_iter().find(|verb| rest.starts_with(verb));
    match verb {
        Some(verb) => Some((Tie::Words, at + verb.len())),
        None => before.ends_with(b"-").then_some((Tie::Words, at)),
    }
}

fn blanks(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).unwrap_or_default().iter().take(8).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The value that begins at `start`, if it is a secret.
fn value(bytes: &[u8], name: &Range<usize>, tie: Tie, start: usize) -> Option<Range<usize>> {
    let word = &bytes[name.clone()];
    let quote = bytes.get(start).copied().filter(|byte| b"\"'`".contains(byte));
    let closed = quote.and_then(|quote| closing(bytes, start + 1, quote).map(|end| start + 1..end));
    if let Some(inside) = closed {
        let text = &bytes[inside.clone()];
        let secret = !text.is_empty()
            && !is_placeholder(text)
            && !is_same_word(word, text)
            && (tie == Tie::Close || !is_sentence(word, text))
            && !is_working_directory(word, text);
        return secret.then(|| after_scheme(bytes, inside.start).min(inside.end)..inside.end);
    }
    let start = start + usize::from(quote.is_some());
    if let Some(header) = header(bytes, word, start) {
        return Some(header);
    }
    let start = after_scheme(bytes, start);
    let end = end_of_word(bytes, start, SAMPLE);
    let text = &bytes[start..end];
    if is_placeholder(text) || is_same_word(word, text) || is_working_directory(word, text) {
        return None;
    }
    let text = trimmed(text);
    let number = text.iter().all(u8::is_ascii_digit);
    let numeric_name = !word.to_ascii_lowercase().ends_with(b"token");
    let is_last = || end - start == SAMPLE || is_last(bytes, start + text.len());
    let secret = match tie {
        Tie::Close => !number || numeric_name || text.len() >= 4,
        Tie::Loose if number => numeric_name && (4..=8).contains(&text.len()) && is_last(),
        Tie::Loose => {
            !is_path(text)
                && ((text.len() >= 8 && is_random(text))
                    || (is_last() && text.len() >= 6 && is_random(text))
                    || (is_last() && begins_line(bytes, name.start)))
        }
        Tie::Words => text.len() >= 8 && is_random(text) && !is_path(text),
    };
    if !secret {
        return None;
    }
    let end = end_of_word(bytes, end, usize::MAX);
    Some(start..start + trimmed(&bytes[start..end]).len())
}

/// The whole of a header whose value has several parts.
fn header(bytes: &[u8], name: &[u8], start: usize) -> Option<Range<usize>> {
    let name = name.to_ascii_lowercase();
    let cookie = || bytes[start..end_of_word(bytes, start, SAMPLE)].contains(&b'=');
    if name.ends_with(b"cookie") && cookie() {
        return Some(start..end_of_line(bytes, start));
    }
    let value = after_scheme(bytes, start);
    (name.ends_with(b"authorization") && value > start).then(|| value..end_of_line(bytes, value))
}

/// Where the value at `start` begins behind the way of authorization, if it names one.
fn after_scheme(bytes: &[u8], start: usize) -> usize {
    let text = &bytes[start..bytes.len().min(start + 24)];
    let Some(space) = text.iter().position(|byte| *byte == b' ') else { return start };
    let known = SCHEMES.iter().any(|scheme| text[..space].eq_ignore_ascii_case(scheme.as_bytes()));
    if known && space + 1 < text.len() { start + space + 1 } else { start }
}

/// Where the quotation that `start` is in ends, on the same line.
fn closing(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start;
    loop {
        match *bytes.get(at)? {
            b'\n' => return None,
            b'\\' => at += 2,
            byte if byte == quote => return Some(at),
            _ => at += 1,
        }
    }
}

fn end_of_line(bytes: &[u8], start: usize) -> usize {
    let ends = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'"' | b'\'');
    bytes[start..].iter().position(ends).map_or(bytes.len(), |len| start + len)
}

/// Where the word that `start` is in ends, or `most` bytes of it. A separator ends it only where something begins
/// behind it.
fn end_of_word(bytes: &[u8], start: usize, most: usize) -> usize {
    let mut at = start;
    while let Some(byte) = bytes.get(at).filter(|_| at - start < most) {
        let ends = match byte {
            b'"' | b'\'' | b'`' | b'<' | b'>' | b'|' => true,
            b',' | b';' | b'&' => begins_member(&bytes[at + 1..]),
            byte => byte.is_ascii_whitespace(),
        };
        if ends {
            break;
        }
        at += 1;
    }
    at
}

/// Whether `rest` is the end, blank, or a name with a sign behind it.
fn begins_member(rest: &[u8]) -> bool {
    let name =
        rest.iter().take(32).take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte)).count();
    match rest.get(name) {
        None => name == 0,
        Some(next) if name == 0 => next.is_ascii_whitespace() || b"\"'{[".contains(next),
        Some(next) => b"=:".contains(next),
    }
}

/// Whether nothing but punctuation follows on the line.
fn is_last(bytes: &[u8], end: usize) -> bool {
    let mut rest = bytes[end..].iter().take(16).skip_while(|byte| b" \t.,;:!)]}\"'`".contains(byte));
    rest.next().is_none_or(|byte| matches!(byte, b'\n' | b'\r'))
}

/// Whether nothing but what introduces a setting stands before it on the line.
fn begins_line(bytes: &[u8], start: usize) -> bool {
    let before = &bytes[start.saturating_sub(48)..start];
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let words = line.split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let introduces = |word: &[u8]| {
        // The name itself may have a word before it: "API key", "mot de passe".
        [
            &b"export"[..],
            b"set",
            b"let",
            b"const",
            b"var",
            b"env",
            b"my",
            b"your",
            b"the",
            b"mot",
            b"de",
            b"api",
        ]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
    };
    words.into_iter().all(introduces)
}

/// A quotation of plain words, as after "the secret:". A passphrase looks the same and is said to be one.
fn is_sentence(name: &[u8], text: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii() || b" ,.'-!?".contains(byte);
    text.contains(&b' ')
        && text.iter().all(plain)
        && !name.to_ascii_lowercase().windows(4).any(|part| part == b"pass")
}

fn is_same_word(name: &[u8], text: &[u8]) -> bool {
    trimmed(text).eq_ignore_ascii_case(name)
}

/// `PWD=/home/me` is where somebody is.
fn is_working_directory(name: &[u8], text: &[u8]) -> bool {
    secrecy(name) == Secrecy::Text && is_path(text)
}

/// Whether `text` is a path of ordinary names.
pub(super) fn is_path(text: &[u8]) -> bool {
    std::str::from_utf8(trimmed(text)).is_ok_and(is_plain_path)
}

/// `text` without the punctuation of the sentence it stands in.
fn trimmed(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !b".,;:!?)]}".contains(byte)).map_or(0, |last| last + 1);
    &text[..end]
}

/// A long random text shortly behind a name, unless it is said to be a digest.
fn near(bytes: &[u8], start: usize, found: &mut Vec<Range<usize>>) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(byte);
    let window = &bytes[start..bytes.len().min(start + NEAR + LONG)];
    let line = window.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut at = 0;
    while at + LONG <= line.len() {
        match line[at..at + LONG].iter().rposition(|byte| !is_part(byte)) {
            Some(gap) => at += gap + 1,
            None => break,
        }
    }
    let sample = line.get(at..at + LONG)?;
    let mut seen = [false; 256];
    sample.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    let varied = seen.iter().filter(|seen| **seen).count() >= 10;
    let digest = [&b"sha"[..], b"digest", b"hash", b"commit", b"checksum", b"md5", b"etag", b"fingerprint"];
    let between = line[..at].to_ascii_lowercase();
    let said = |word: &&[u8]| between.windows(word.len()).any(|part| part == *word);
    if !varied || !is_random(sample) || !sample.iter().any(u8::is_ascii_digit) || digest.iter().any(said) {
        return None;
    }
    let begin = start + at;
    let end = bytes[begin..].iter().position(|byte| !is_part(byte)).map_or(bytes.len(), |len| begin + len);
    found.push(begin..end);
    Some(end)
}
