//! Finds the configured secrets, plain and in the usual encodings.
//!
//! One automaton contains them all, so that searching for many costs no more than searching for one.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};

use super::appearance::{SCHEMES, SHORTEST_PART, is_likely, is_open_address, is_placeholder, is_random};
use super::name::is_secret_name;
use super::shape;
use super::view::{DecodedText, Escapes};

/// How certain it is that a configured value is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Its source or its name says so: it is always redacted.
    Certain,
    /// It may be a secret: it is redacted if it looks like one. A redacted value is neither cached nor mocked, so a
    /// setting that is redacted by mistake has a price.
    Likely,
    /// Only a part of it may be a secret, such as the password in a URL.
    Inside,
}

/// A configured value that may be a secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownSecret {
    certainty: Certainty,
    value: String,
}

impl KnownSecret {
    /// Declares that `value` is a secret with this certainty.
    pub fn new(certainty: Certainty, value: impl Into<String>) -> KnownSecret {
        KnownSecret { certainty, value: value.into() }
    }
}

impl fmt::Debug for KnownSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({:?}, hidden)", self.certainty)
    }
}

/// Bytes: shorter values occur everywhere, and redacting them would protect nothing.
const SHORTEST: usize = 4;

/// How a needle relates to the text around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NeedleFit {
    Anywhere,
    /// Adjacent letters or digits make it another word, which does not match.
    WholeWord,
    /// The adjacent characters hold bits of the secret too, as in base64.
    SharesBits,
}

/// Matches the secrets in texts. Clones share the automaton, which is built on first use: a process needs many
/// matchers at its start, and few of them soon.
#[derive(Debug, Clone, Default)]
pub(super) struct SecretMatcher(Arc<LazyNeedles>);

#[derive(Debug, Default)]
struct LazyNeedles {
    values: Vec<KnownSecret>,
    needles: OnceLock<SecretNeedles>,
}

/// The secrets in all their spellings.
#[derive(Debug)]
struct SecretNeedles {
    automaton: Option<AhoCorasick>,
    fits: Vec<NeedleFit>,
}

impl SecretNeedles {
    /// The needles for those of `values` that must be redacted, and for the secrets inside them.
    fn new(values: &[KnownSecret]) -> SecretNeedles {
        let mut secrets = BTreeSet::new();
        for KnownSecret { certainty, value } in values {
            collect(value.trim(), *certainty, &mut secrets);
        }
        let mut needles = BTreeSet::new();
        for secret in secrets.iter().filter(|secret| secret.len() >= SHORTEST) {
            spell(secret, &mut needles);
        }
        let (needles, fits): (Vec<Vec<u8>>, Vec<NeedleFit>) = needles.into_iter().unzip();
        // Configurations never have too many secrets for an automaton.
        let automaton = (!needles.is_empty())
            .then(|| AhoCorasick::new(&needles).expect("needles of a configuration fit an automaton"));
        SecretNeedles { automaton, fits }
    }

    fn hits<'k>(&'k self, bytes: &'k [u8]) -> impl Iterator<Item = Range<usize>> + 'k {
        let hits = self.automaton.iter().flat_map(move |needles| needles.find_overlapping_iter(bytes));
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
                NeedleFit::WholeWord if is_part(before) || is_part(after) => return None,
                NeedleFit::Anywhere | NeedleFit::WholeWord => {}
                NeedleFit::SharesBits => {
                    range.start -= usize::from(is_digit(before));
                    range.end += usize::from(is_digit(after));
                }
            }
            Some(range)
        })
    }
}

impl SecretMatcher {
    /// A matcher for those of `values` that must be redacted, and the secrets inside them.
    pub(super) fn new(values: impl IntoIterator<Item = KnownSecret>) -> SecretMatcher {
        let values = values.into_iter().collect();
        SecretMatcher(Arc::new(LazyNeedles { values, needles: OnceLock::new() }))
    }

    fn needles(&self) -> &SecretNeedles {
        self.0.needles.get_or_init(|| SecretNeedles::new(&self.0.values))
    }

    /// Whether `bytes` contains one of them.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        let needles = self.needles();
        // Most texts contain none, and that is found faster than the positions.
        needles.automaton.as_ref().is_some_and(|automaton| automaton.is_match(bytes))
            && needles.hits(bytes).next().is_some()
    }

    /// Whether a secret may be wrapped over several lines.
    pub(super) fn may_be_wrapped(&self) -> bool {
        self.needles().automaton.is_some()
    }

    /// Adds the positions of secrets in `bytes`.
    pub(super) fn find(&self, bytes: &[u8], found: &mut Vec<Range<usize>>) {
        found.extend(self.needles().hits(bytes));
    }
}

/// Adds `value`, if it must be redacted, and the secrets inside it: the password of a URL, the token after `Bearer`.
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
        let is_scheme = SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
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
    // User and host are no secrets: of a URL with a login, only the login is one.
    if !address.is_some_and(|address| address.login().is_some() || address.is_open()) {
        whole(value, certainty, secrets);
    }
}

/// Adds `value` itself, if it must be redacted.
fn whole(value: &str, certainty: Certainty, secrets: &mut BTreeSet<String>) {
    let hide = match certainty {
        Certainty::Certain => !is_placeholder(value.as_bytes()),
        Certainty::Likely => is_likely(value),
        Certainty::Inside => false,
    };
    if hide {
        secrets.insert(value.to_owned());
    }
}

/// A value that is a URL.
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

    /// Whether the URL is public apart from its query.
    fn is_open(&self) -> bool {
        is_open_address(self.base)
    }
}

/// Adds every encoding of `secret`. Escapes with alternatives (`\u0041`, `%41`, `&amp;`) are not enumerated: texts are
/// also searched with those decoded, so the secret is decoded in the same way.
fn spell(secret: &str, needles: &mut BTreeSet<(Vec<u8>, NeedleFit)>) {
    if secret.len() < SHORTEST_PART || secret.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        needles.insert((secret.as_bytes().to_vec(), NeedleFit::WholeWord));
    }
    if secret.len() < SHORTEST_PART {
        return;
    }
    let is_word = secret.bytes().all(|byte| byte.is_ascii_alphabetic()) && !is_random(secret.as_bytes());
    let mut add = |needle: Vec<u8>, fit: NeedleFit| {
        // A word is part of other, unrelated words.
        let is_plain = is_word && needle == secret.as_bytes();
        if needle.len() >= SHORTEST_PART && !is_plain {
            needles.insert((needle, fit));
        }
    };
    let mut plain = secret.as_bytes().to_vec();
    while let Some(view) = DecodedText::decode(Escapes::Any, &plain) {
        add(plain, NeedleFit::Anywhere);
        plain = view.bytes;
    }
    add(plain, NeedleFit::Anywhere);
    add(secret.as_bytes().to_vec(), NeedleFit::Anywhere);
    add(secret.replace(' ', "+").into_bytes(), NeedleFit::Anywhere);
    add(
        DecodedText::decode(Escapes::Lines, secret.as_bytes()).map_or_else(Vec::new, |view| view.bytes),
        NeedleFit::Anywhere,
    );
    for digits in ["0123456789abcdef", "0123456789ABCDEF"] {
        let digit = |nibble: u8| digits.as_bytes()[usize::from(nibble)];
        add(
            secret.bytes().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect(),
            NeedleFit::Anywhere,
        );
    }
    let quoted = pml_model::json::raw(&secret);
    let escaped = &quoted.get()[1..quoted.get().len() - 1];
    for bytes in [secret.as_bytes(), escaped.as_bytes()] {
        for before in 0..3 {
            add(base64_core(&BASE64_STANDARD_NO_PAD, before, bytes), NeedleFit::SharesBits);
            add(base64_core(&BASE64_URL_SAFE_NO_PAD, before, bytes), NeedleFit::SharesBits);
        }
    }
}

/// The base64 digits of `secret` that do not depend on its surroundings, when `before` bytes of a group of three
/// precede it.
fn base64_core(engine: &impl Engine, before: usize, secret: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(secret);
    let digits = engine.encode(&bytes).into_bytes();
    // A digit is six bits: take those that begin and end within the secret.
    let (first, last) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    digits[first..last].to_vec()
}
