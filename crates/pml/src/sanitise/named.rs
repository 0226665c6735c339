//! Finds secrets in running text by the name before them: `password=…`, `"api_key": "…"`, `--token …`.
//!
//! Prose uses the same words. So the looser the tie between name and value, the more the value itself has to look like
//! a secret.

use std::ops::Range;

use super::appearance::{SAMPLE, SCHEMES, is_path, is_placeholder, is_random, trimmed};
use super::name::{LONGEST, Secrecy, secrecy};

/// Bytes: a long random text at most this far behind a name counts as its value.
const NEAR: usize = 48;

/// Bytes: the least length of a long random text.
const LONG: usize = 40;

/// How a name and a value are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tie {
    /// `name=value`, `"name": value`, `<name>value</name>`: only names and values are written like this.
    Close,
    /// `name: value`, `name = value`: sentences and programs are written like this too.
    Loose,
    /// `--name value`, `name is value`: only words are in between.
    Words,
}

/// Examines the name around `hit` and the text after it. Returns where to continue; everything before `from` has been
/// examined.
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

/// Examines the value of a URL parameter whose name means little elsewhere.
pub(super) fn parameter(bytes: &[u8], start: usize, found: &mut Vec<Range<usize>>) -> usize {
    let end = end_of_word(bytes, start, SAMPLE);
    if end - start < 8 || !is_random(&bytes[start..end]) {
        return start;
    }
    let end = end_of_word(bytes, end, usize::MAX);
    found.push(start..end);
    end
}

/// The complete name that contains `hit`.
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

/// Whether the name denotes a secret, together with the word before it.
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
    // A "page token" is no secret although a `token` is; an "API key" is one although a `key` is not.
    let is = |other: &[u8]| word.eq_ignore_ascii_case(other);
    match spaced {
        true if is(b"key") || is(b"keys") || (is(b"token") && !adjective.is_empty()) => both(),
        _ => secrecy(word) != Secrecy::None,
    }
}

/// How the name is connected to what follows, and where that begins.
fn tie(bytes: &[u8], name: &Range<usize>) -> Option<(Tie, usize)> {
    let before = &bytes[name.start.saturating_sub(2)..name.start];
    let quote = name.start.checked_sub(1).map(|at| bytes[at]).filter(|byte| b"\"'`".contains(byte));
    let quoted = quote.is_some() && bytes.get(name.end) == quote.as_ref();
    let mut at = name.end + usize::from(quoted);
    if before.ends_with(b"<") && bytes.get(at) == Some(&b'>') {
        return Some((Tie::Close, at + 1));
    }
    // As in `password[0]=…`, `config["token"] = …`.
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

/// Recognises `--token abc`, and "the token is abc".
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

/// The complete value of a header that has several parts.
fn header(bytes: &[u8], name: &[u8], start: usize) -> Option<Range<usize>> {
    let name = name.to_ascii_lowercase();
    let cookie = || bytes[start..end_of_word(bytes, start, SAMPLE)].contains(&b'=');
    if name.ends_with(b"cookie") && cookie() {
        return Some(start..end_of_line(bytes, start));
    }
    let value = after_scheme(bytes, start);
    (name.ends_with(b"authorization") && value > start).then(|| value..end_of_line(bytes, value))
}

/// The position after the authorization scheme at `start`, if there is one.
fn after_scheme(bytes: &[u8], start: usize) -> usize {
    let text = &bytes[start..bytes.len().min(start + 24)];
    let Some(space) = text.iter().position(|byte| *byte == b' ') else { return start };
    let known = SCHEMES.iter().any(|scheme| text[..space].eq_ignore_ascii_case(scheme.as_bytes()));
    if known && space + 1 < text.len() { start + space + 1 } else { start }
}

/// The end of the quotation that contains `start`, on the same line.
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

/// The end of the word that contains `start`, or `most` bytes of it. A separator ends the word only if something begins
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

/// Whether `rest` is empty, blank, or a name followed by a sign.
fn begins_member(rest: &[u8]) -> bool {
    let name =
        rest.iter().take(32).take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte)).count();
    match rest.get(name) {
        None => name == 0,
        Some(next) if name == 0 => next.is_ascii_whitespace() || b"\"'{[".contains(next),
        Some(next) => b"=:".contains(next),
    }
}

/// Whether only punctuation follows on the line.
fn is_last(bytes: &[u8], end: usize) -> bool {
    let mut rest = bytes[end..].iter().take(16).skip_while(|byte| b" \t.,;:!)]}\"'`".contains(byte));
    rest.next().is_none_or(|byte| matches!(byte, b'\n' | b'\r'))
}

/// Whether only what introduces a setting precedes it on the line.
fn begins_line(bytes: &[u8], start: usize) -> bool {
    let before = &bytes[start.saturating_sub(48)..start];
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let words = line.split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let introduces = |word: &[u8]| {
        // A word may belong to the name: "API key", "mot de passe".
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

/// Whether the quotation consists of plain words, as after "the secret:". A passphrase looks the same, but its name
/// says so.
fn is_sentence(name: &[u8], text: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii() || b" ,.'-!?".contains(byte);
    text.contains(&b' ')
        && text.iter().all(plain)
        && !name.to_ascii_lowercase().windows(4).any(|part| part == b"pass")
}

fn is_same_word(name: &[u8], text: &[u8]) -> bool {
    trimmed(text).eq_ignore_ascii_case(name)
}

/// Whether it is the working directory, as in `PWD=/home/me`.
fn is_working_directory(name: &[u8], text: &[u8]) -> bool {
    secrecy(name) == Secrecy::Text && is_path(text)
}

/// Finds a long random text shortly behind a name, unless it is labelled as a digest.
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
