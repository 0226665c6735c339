//! Finds the secrets that the configuration holds, plain and in the encodings they travel in.
//!
//! One automaton has them all, so that looking for many costs no more than looking for one.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};

use super::name::is_secret_name;
use super::view::{Escapes, View};
use super::{named, shape};

/// How certain it is that a value which the configuration holds is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Where it comes from or what it is called says so: it is always hidden.
    Certain,
    /// It may be one: it is hidden if it looks like one. What is hidden is neither cached nor mocked, so a setting that is
    /// hidden by mistake has a price.
    Likely,
    /// Only what is inside of it may be one, such as the password of an address.
    Inside,
}

/// A value of the configuration.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownSecret {
    certainty: Certainty,
    value: String,
}

impl KnownSecret {
    /// That `value` is a secret, or may be one.
    pub fn new(certainty: Certainty, value: impl Into<String>) -> KnownSecret {
        KnownSecret { certainty, value: value.into() }
    }
}

impl fmt::Debug for KnownSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({:?}, hidden)", self.certainty)
    }
}

/// Anything shorter is everywhere, and hiding it would hide nothing.
const SHORTEST: usize = 4;
/// Anything shorter is found by accident inside of other words.
const SHORTEST_PART: usize = 6;
/// Anything shorter is a setting, unless something says that it is a secret.
const SHORTEST_LIKELY: usize = 12;

/// How a needle lies in what it is found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Anywhere,
    /// Letters or digits beside it make it another word.
    WholeWord,
    /// The characters beside it hold bits of the secret too.
    SharesBits,
}

/// The values to look for.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    needles: Option<AhoCorasick>,
    fits: Vec<Fit>,
}

impl Known {
    /// Those of `values` that are to be hidden, and the secrets inside them.
    pub(super) fn new(values: impl IntoIterator<Item = KnownSecret>) -> Known {
        let mut secrets = BTreeSet::new();
        for KnownSecret { certainty, value } in values {
            collect(value.trim(), certainty, &mut secrets);
        }
        let mut needles = BTreeSet::new();
        for secret in secrets.iter().filter(|secret| secret.len() >= SHORTEST) {
            spell(secret, &mut needles);
        }
        let (needles, fits): (Vec<Vec<u8>>, Vec<Fit>) = needles.into_iter().unzip();
        // Too many secrets for an automaton is not a thing that configurations bring about.
        let automaton = (!needles.is_empty())
            .then(|| AhoCorasick::new(&needles).expect("needles of a configuration fit an automaton"));
        Known { needles: automaton, fits }
    }

    /// Whether one of them is in `bytes`.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        // Most texts have none, and that is quicker told than where they are.
        self.needles.as_ref().is_some_and(|needles| needles.is_match(bytes))
            && self.hits(bytes).next().is_some()
    }

    /// Whether line ends have to be looked through.
    pub(super) fn may_be_wrapped(&self) -> bool {
        self.needles.is_some()
    }

    /// Adds the places in `bytes` where one of them stands.
    pub(super) fn find(&self, bytes: &[u8], found: &mut Vec<Range<usize>>) {
        found.extend(self.hits(bytes));
    }

    fn hits<'k>(&'k self, bytes: &'k [u8]) -> impl Iterator<Item = Range<usize>> + 'k {
        let hits = self.needles.iter().flat_map(move |needles| needles.find_overlapping_iter(bytes));
        hits.filter_map(move |hit| {
            let mut range = hit.range();
            let before = range.start.checked_sub(1).map(|at| &bytes[at]);
            let after = bytes.get(range.end);
            let is_part =
                |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            let is_digit = |byte: Option<&u8>| {
                byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte))
            };
            match self.fits[hit.pattern().as_usize()] {
                Fit::WholeWord if is_part(before) || is_part(after) => return None,
                Fit::Anywhere | Fit::WholeWord => {}
                Fit::SharesBits => {
                    range.start -= usize::from(is_digit(before));
                    range.end += usize::from(is_digit(after));
                }
            }
            Some(range)
        })
    }
}

/// Adds `value`, if it is to be hidden, and the secrets inside it: the password of an address, the token behind `Bearer`.
fn collect(value: &str, certainty: Certainty, secrets: &mut BTreeSet<String>) {
    let mut inner = Vec::new();
    shape::find(value.as_bytes(), &mut inner);
    secrets.extend(inner.into_iter().filter_map(|range| value.get(range)).map(str::to_owned));
    let address = Address::of(value);
    if let Some(address) = &address {
        secrets.extend(address.login().map(str::to_owned));
        for (name, value) in address.parameters() {
            let certainty = if is_secret_name(name) { Certainty::Certain } else { Certainty::Likely };
            whole(value, certainty, secrets);
        }
    }
    if let Some((scheme, rest)) = value.split_once(' ') {
        let is_scheme = shape::SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
        // Sentences begin with these words as well.
        if is_scheme && (certainty == Certainty::Certain || is_likely(rest.trim())) {
            secrets.insert(rest.trim().to_owned());
        }
        let login = BASE64_STANDARD.decode(rest).or_else(|_| BASE64_STANDARD_NO_PAD.decode(rest));
        let login = login.ok().filter(|_| is_scheme).and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(login) = login {
            secrets.extend(login.split_once(':').map(|(_, password)| password.to_owned()));
            secrets.insert(login);
        }
    }
    // Who is where is no secret: of an address with a login, only the login is one.
    if !address.is_some_and(|address| address.login().is_some() || address.is_open()) {
        whole(value, certainty, secrets);
    }
}

/// Adds `value` itself, if it is to be hidden.
fn whole(value: &str, certainty: Certainty, secrets: &mut BTreeSet<String>) {
    let hide = match certainty {
        Certainty::Certain => !named::is_placeholder(value.as_bytes()),
        Certainty::Likely => is_likely(value),
        Certainty::Inside => false,
    };
    if hide {
        secrets.insert(value.to_owned());
    }
}

/// A value that is an address.
struct Address<'v> {
    authority: &'v str,
    base: &'v str,
    query: &'v str,
}

impl<'v> Address<'v> {
    fn of(value: &'v str) -> Option<Address<'v>> {
        let (scheme, rest) = value.split_once("://")?;
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if scheme.is_empty() || !scheme.bytes().all(is_scheme) || value.contains(char::is_whitespace) {
            return None;
        }
        let (base, query) = value.split_once(['?', '#']).unwrap_or((value, ""));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        Some(Address { authority, base, query })
    }

    /// The password, or the token in place of a user.
    fn login(&self) -> Option<&'v str> {
        let (login, _) = self.authority.rsplit_once('@')?;
        match login.split_once(':') {
            Some((user, "")) => Some(user),
            Some((_, password)) => Some(password),
            None => Some(login).filter(|login| is_likely(login)),
        }
    }

    fn parameters(&self) -> impl Iterator<Item = (&'v str, &'v str)> {
        self.query.split(['&', ';', '#']).filter_map(|pair| pair.split_once('='))
    }

    /// Whether anybody may know it but for its query.
    fn is_open(&self) -> bool {
        is_open_address(self.base)
    }
}

/// Adds every way to write `secret`. Escapes with a choice (`\u0041`, `%41`, `&amp;`) are not spelt out: text is
/// also searched with those taken off, so the same is done to the secret.
fn spell(secret: &str, needles: &mut BTreeSet<(Vec<u8>, Fit)>) {
    if secret.len() < SHORTEST_PART || secret.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        needles.insert((secret.as_bytes().to_vec(), Fit::WholeWord));
    }
    if secret.len() < SHORTEST_PART {
        return;
    }
    let is_word =
        secret.bytes().all(|byte| byte.is_ascii_alphabetic()) && !named::is_random(secret.as_bytes());
    let mut add = |needle: Vec<u8>, fit: Fit| {
        // A word is part of other words, which are none of ours.
        let is_plain = is_word && needle == secret.as_bytes();
        if needle.len() >= SHORTEST_PART && !is_plain {
            needles.insert((needle, fit));
        }
    };
    let mut plain = secret.as_bytes().to_vec();
    while let Some(view) = View::without(Escapes::Any, &plain) {
        add(plain, Fit::Anywhere);
        plain = view.bytes;
    }
    add(plain, Fit::Anywhere);
    add(secret.as_bytes().to_vec(), Fit::Anywhere);
    add(secret.replace(' ', "+").into_bytes(), Fit::Anywhere);
    add(
        View::without(Escapes::Lines, secret.as_bytes()).map_or_else(Vec::new, |view| view.bytes),
        Fit::Anywhere,
    );
    for digits in ["0123456789abcdef", "0123456789ABCDEF"] {
        let digit = |nibble: u8| digits.as_bytes()[usize::from(nibble)];
        add(secret.bytes().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect(), Fit::Anywhere);
    }
    let quoted = pml_model::json::raw(&secret);
    let escaped = &quoted.get()[1..quoted.get().len() - 1];
    for bytes in [secret.as_bytes(), escaped.as_bytes()] {
        for before in 0..3 {
            add(base64_core(&BASE64_STANDARD_NO_PAD, before, bytes), Fit::SharesBits);
            add(base64_core(&BASE64_URL_SAFE_NO_PAD, before, bytes), Fit::SharesBits);
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

/// Whether `value` looks like a secret although nothing says that it is one: long, and no path, host, number or words.
pub(super) fn is_likely(value: &str) -> bool {
    value.len() >= SHORTEST_LIKELY
        && !is_plain_path(value)
        && !value.split(':').all(is_plain_path)
        && !is_number(value)
        && !is_place(value)
        && !is_open_address(value)
        && !is_words(value)
}

/// Whether `value` is a word or a number, which stands in texts that have nothing to do with it.
pub(crate) fn is_common(value: &str) -> bool {
    value.len() < SHORTEST_PART || is_words(value) || is_number(value)
}

/// `production`, `my-project`, `claude-3-5-sonnet`, `Grande Bibliothèque`.
fn is_words(value: &str) -> bool {
    let plain = |part: &str| {
        let letters = part.chars().all(char::is_alphabetic) && !named::is_random(part.as_bytes());
        letters || part.bytes().all(|byte| byte.is_ascii_digit()) || part.len() <= 3
    };
    // Groups of capitals and digits are how licences are written.
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let has_small = value.chars().any(char::is_lowercase);
    value.split(['-', '_', '.', ' ', ',', ':', '/', '\'']).all(plain) && (has_small || !has_digit)
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

/// `127.0.0.1:8080`, `1.24.3`, `v2.1.0`, `+33 6 12 34 56 78`, `2026-11-17T10:00:00Z`, `fe80::1:2`.
fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix('v').unwrap_or(value);
    let signs = b".:,-+/ TZ";
    let number = digits.bytes().all(|byte| byte.is_ascii_digit() || signs.contains(&byte));
    number || value.trim_matches(['[', ']']).parse::<std::net::Ipv6Addr>().is_ok()
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
