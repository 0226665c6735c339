//! Finds the secrets that the configuration holds, plain and in the encodings they travel in.
//!
//! One automaton has them all, so that looking for many costs no more than looking for one.

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};

use super::shape;
use super::view::{Escapes, View};

/// Anything shorter is found by accident.
const SHORTEST: usize = 6;

/// Values that settings have and that say nothing.
const COMMON: [&str; 56] = [
    "anthropic",
    "anonymous",
    "automatic",
    "bearer",
    "browser",
    "chrome",
    "client",
    "config",
    "container",
    "critical",
    "default",
    "development",
    "disable",
    "disabled",
    "docker",
    "enable",
    "enabled",
    "europe",
    "example",
    "external",
    "firefox",
    "github",
    "gitlab",
    "google",
    "headless",
    "internal",
    "localhost",
    "master",
    "memory",
    "minimal",
    "notice",
    "openai",
    "postgres",
    "preview",
    "private",
    "production",
    "project",
    "public",
    "readonly",
    "release",
    "remote",
    "server",
    "silent",
    "sqlite",
    "staging",
    "standard",
    "stderr",
    "stdout",
    "streamable-http",
    "testing",
    "undefined",
    "unknown",
    "verbose",
    "warning",
    "windows",
    "workspace",
];

/// The values to look for.
#[derive(Debug)]
pub(super) struct Known {
    needles: Option<AhoCorasick>,
    /// For each needle, whether the characters beside it hold bits of the secret too.
    shares_bits: Vec<bool>,
}

impl Known {
    /// Those of `values` that are worth hiding, and the secrets inside them.
    pub(super) fn new(values: impl IntoIterator<Item = String>) -> Known {
        let mut secrets = BTreeSet::new();
        for value in values {
            collect(value.trim(), &mut secrets);
        }
        let mut needles = BTreeSet::new();
        for secret in &secrets {
            spell(secret, &mut needles);
        }
        let (needles, shares_bits): (Vec<Vec<u8>>, Vec<bool>) = needles.into_iter().unzip();
        // Too many secrets for an automaton is not a thing that configurations bring about.
        let automaton = (!needles.is_empty())
            .then(|| AhoCorasick::new(&needles).expect("needles of a configuration fit an automaton"));
        Known { needles: automaton, shares_bits }
    }

    /// Whether one of them is in `bytes`.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        self.needles.as_ref().is_some_and(|needles| needles.is_match(bytes))
    }

    /// Whether line ends have to be looked through.
    pub(super) fn may_be_wrapped(&self) -> bool {
        self.needles.is_some()
    }

    /// Adds the places in `bytes` where one of them stands.
    pub(super) fn find(&self, bytes: &[u8], found: &mut Vec<Range<usize>>) {
        let Some(needles) = &self.needles else { return };
        for hit in needles.find_overlapping_iter(bytes) {
            let mut range = hit.range();
            if self.shares_bits[hit.pattern().as_usize()] {
                let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
                range.start -= usize::from(range.start > 0 && is_digit(&bytes[range.start - 1]));
                range.end += usize::from(bytes.get(range.end).is_some_and(is_digit));
            }
            found.push(range);
        }
    }
}

/// Adds `value` and the secrets inside it: the password of an address, the token behind `Bearer`.
fn collect(value: &str, secrets: &mut BTreeSet<String>) {
    let mut inner = Vec::new();
    shape::find(value.as_bytes(), &mut inner);
    secrets.extend(inner.into_iter().filter_map(|range| value.get(range)).filter(is_long).map(str::to_owned));
    if let Some((scheme, rest)) = value.split_once(' ') {
        if shape::SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            secrets.extend(Some(rest.trim()).filter(is_long).map(str::to_owned));
        }
        let login = BASE64_STANDARD.decode(rest).or_else(|_| BASE64_STANDARD_NO_PAD.decode(rest));
        if let Some(login) = login.ok().and_then(|bytes| String::from_utf8(bytes).ok()) {
            secrets.extend(
                login.split_once(':').map(|(_, password)| password).filter(is_long).map(str::to_owned),
            );
            secrets.insert(login);
        }
    }
    if is_worth_hiding(value) {
        secrets.insert(value.to_owned());
    }
}

fn is_long(text: &&str) -> bool {
    text.len() >= SHORTEST
}

/// Adds every way to write `secret`. Escapes with a choice (`\u0041`, `%41`, `&amp;`) are not spelt out: text is
/// also searched with those taken off, so the same is done to the secret.
fn spell(secret: &str, needles: &mut BTreeSet<(Vec<u8>, bool)>) {
    let mut add = |needle: Vec<u8>, shares_bits: bool| {
        if needle.len() >= SHORTEST {
            needles.insert((needle, shares_bits));
        }
    };
    let mut plain = secret.as_bytes().to_vec();
    while let Some(view) = View::without(Escapes::Any, &plain) {
        add(plain, false);
        plain = view.bytes;
    }
    add(plain, false);
    add(secret.as_bytes().to_vec(), false);
    add(secret.replace(' ', "+").into_bytes(), false);
    add(View::without(Escapes::Lines, secret.as_bytes()).map_or_else(Vec::new, |view| view.bytes), false);
    for digits in ["0123456789abcdef", "0123456789ABCDEF"] {
        let digit = |nibble: u8| digits.as_bytes()[usize::from(nibble)];
        add(secret.bytes().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect(), false);
    }
    let quoted = pml_model::json::raw(&secret);
    let escaped = &quoted.get()[1..quoted.get().len() - 1];
    for bytes in [secret.as_bytes(), escaped.as_bytes()] {
        for before in 0..3 {
            add(base64_core(&BASE64_STANDARD_NO_PAD, before, bytes), true);
            add(base64_core(&BASE64_URL_SAFE_NO_PAD, before, bytes), true);
        }
    }
}

/// The digits that `secret` has in base64 whatever surrounds it, when `before` bytes of three stand before it.
fn base64_core(engine: &impl Engine, before: usize, secret: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(secret);
    let digits = engine.encode(&bytes).into_bytes();
    // A digit is six bits: those that begin in the secret and end in it.
    let (first, last) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    digits[first..last].to_vec()
}

/// Whether `value` can be a secret: not short, and not what settings usually say.
fn is_worth_hiding(value: &str) -> bool {
    value.len() >= SHORTEST
        && !COMMON.iter().any(|common| value.eq_ignore_ascii_case(common))
        && !is_plain_path(value)
        && !value.split(':').all(is_plain_path)
        && !is_number_or_address(value)
        && !is_place(value)
        && !is_open_address(value)
}

/// Whether `text` is a path of ordinary names.
pub(super) fn is_plain_path(text: &str) -> bool {
    let drive = text.len() > 2 && text.as_bytes()[0].is_ascii_alphabetic() && text[1..].starts_with(":\\");
    let rooted = ["/", "./", "../", "~/", "\\\\"].iter().any(|root| text.starts_with(root));
    (drive || rooted) && text.split(['/', '\\']).all(is_ordinary_name)
}

/// A name as files and hosts have: short, and not a jumble of cases and digits.
fn is_ordinary_name(name: &str) -> bool {
    let has = |is: fn(&u8) -> bool| name.as_bytes().iter().any(is);
    let jumbled = has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && name.len() > 12;
    name.len() <= 32 && !jumbled && !name.contains(['+', '=', '$', '!'])
}

/// `127.0.0.1:8080`, `1.24.3`, `10000`, `v2.1.0`.
fn is_number_or_address(value: &str) -> bool {
    let digits = value.strip_prefix('v').unwrap_or(value);
    let dotted =
        digits.contains('.') && digits.bytes().all(|byte| byte.is_ascii_digit() || b".:".contains(&byte));
    // Six figures and more are pins and account numbers as well as sizes; those of sizes are round.
    let round =
        digits.len() <= 12 && digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.ends_with("000");
    dotted || round
}

/// `api.example.com:443`, `me@example.com`, `us-east-1`, `en_US.UTF-8`, `Europe/Paris`.
fn is_place(value: &str) -> bool {
    let (host, port) = value.rsplit_once(':').unwrap_or((value, "0"));
    let host = host.split_once('@').map_or(host, |(_, host)| host);
    let label = |label: &str| {
        (1..=20).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let ends_as_domain =
        host.rsplit('.').next().is_some_and(|end| end.bytes().all(|byte| byte.is_ascii_lowercase()));
    let domain = host.contains('.') && host.split('.').all(label) && ends_as_domain;
    let region = value.len() <= 16
        && value.as_bytes().get(2) == Some(&b'-')
        && value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte.is_ascii_digit())
        && value.rsplit('-').next().is_some_and(|end| end.len() == 1);
    let zone = ["Africa/", "America/", "Asia/", "Australia/", "Etc/", "Europe/", "Pacific/"];
    domain && port.parse::<u16>().is_ok()
        || region
        || value.ends_with(".UTF-8")
        || zone.iter().any(|zone| value.starts_with(zone))
}

/// A URL that anybody may know: nobody's login, no query, and a path of ordinary names.
fn is_open_address(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else { return false };
    scheme.len() <= 12
        && !rest.contains(['@', '?', '#'])
        && rest.split('/').all(|name| is_ordinary_name(name) && name.len() <= 40)
}
