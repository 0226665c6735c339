//! Finds secrets by their shape: vendor tokens, keys, logins in URLs and headers.
//!
//! One automaton finds the few places that need a closer check. Digests, identifiers and long texts alone are no
//! secrets: something has to say that they are.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex::bytes::Regex;

use super::appearance::{is_placeholder, is_random};
use super::named;

/// Why a place needs a closer check.
#[derive(Debug, Clone, Copy)]
enum TriggerKind {
    /// A name that secrets have.
    Name,
    /// A URL parameter whose name denotes a secret only there.
    Parameter,
    /// The prefix of a vendor token.
    Token,
    /// A URL.
    Address,
    /// A PEM block.
    Block,
    /// An authorization scheme.
    Scheme,
}

/// Parts of names that secrets have.
const NAMES: [&str; 21] = [
    "pass",
    "pwd",
    "secret",
    "token",
    "jeton",
    "credential",
    "creds",
    "authorization",
    "cookie",
    "session",
    "sessid",
    "connect.sid",
    "jwt",
    "otp",
    "cvv",
    "cvc",
    "ssn",
    "pin",
    "mdp",
    "key",
    "socialsecurity",
];

/// URL parameters that hold secrets, although their names mean little elsewhere.
const PARAMETERS: [&str; 13] = [
    "?key=",
    "&key=",
    "?sig=",
    "&sig=",
    "?signature=",
    "&signature=",
    "?code=",
    "&code=",
    "?auth=",
    "&auth=",
    "x-amz-signature=",
    "x-amz-credential=",
    "x-goog-signature=",
];

/// The vendor tokens: their prefixes, and the pattern of the complete token.
const TOKENS: [(&[&str], &str); 17] = [
    (&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"gh[pousr]_[A-Za-z0-9]{20,}"),
    (&["github_pat_"], r"github_pat_[A-Za-z0-9_]{20,}"),
    (&["glpat-", "gldt-", "glrt-", "glptt-", "glsoat-"], r"gl(?:pat|dt|rt|ptt|soat)-[A-Za-z0-9_.-]{16,}"),
    (
        &["xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xoxe.", "xapp-"],
        r"(?:xox[aberps][-.]|xapp-)[A-Za-z0-9.-]{10,}",
    ),
    (&["akia", "asia", "abia", "acca"], r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?:$|[^A-Za-z0-9])"),
    (&["aiza", "ya29."], r"(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,})"),
    (&["sk-"], r"sk-[A-Za-z0-9_-]{20,}"),
    (
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"],
        r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9+/=]{10,}",
    ),
    (&["npm_", "pypi-"], r"(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,})"),
    (
        &["eyj"],
        r"eyJ[A-Za-z0-9_-]{8,}(?:\.eyJ[A-Za-z0-9_-]{8,}|(?:\.[A-Za-z0-9_-]{4,}){2})(?:\.[A-Za-z0-9_-]*)*",
    ),
    (&["hf_", "gsk_", "r8_"], r"(?:hf|gsk|r8)_[A-Za-z0-9]{30,}"),
    (&["pplx-", "xai-", "tvly-"], r"(?:pplx|xai|tvly)-[A-Za-z0-9-]{24,}"),
    (
        &["dop_v1_", "dckr_pat_", "shpat_", "shpss_", "figd_", "glsa_", "lin_api_", "ntn_", "sntrys_"],
        r"(?:dop_v1|dckr_pat|shpat|shpss|figd|glsa|lin_api|ntn|sntrys)_[A-Za-z0-9_=+/-]{20,}",
    ),
    (&["sg.", "hvs.", "hvb."], r"(?:SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|hv[sb]\.[A-Za-z0-9_-]{20,})"),
    (&["tskey-", "xkeysib-", "age-secret-key-"], r"(?:tskey-|xkeysib-|AGE-SECRET-KEY-)[A-Za-z0-9-]{20,}"),
    (&["secret_"], r"secret_[A-Za-z0-9]{40,}"),
    (
        &["hooks.slack.com/services/", "/api/webhooks/"],
        r"(?:hooks\.slack\.com/services|/api/webhooks/[0-9]+)/[A-Za-z0-9_/-]{20,}",
    ),
];

struct Triggers {
    automaton: AhoCorasick,
    reasons: Vec<TriggerKind>,
}

static TRIGGERS: LazyLock<Triggers> = LazyLock::new(|| {
    let tokens = TOKENS.iter().flat_map(|(starts, _)| starts.iter().copied());
    let all: Vec<(&str, TriggerKind)> = (NAMES.into_iter().map(|word| (word, TriggerKind::Name)))
        .chain(PARAMETERS.into_iter().map(|word| (word, TriggerKind::Parameter)))
        .chain(tokens.map(|word| (word, TriggerKind::Token)))
        .chain([("://", TriggerKind::Address), ("-----begin", TriggerKind::Block)])
        .chain([("bearer", TriggerKind::Scheme), ("basic", TriggerKind::Scheme)])
        .collect();
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .ascii_case_insensitive(true)
        .kind(Some(aho_corasick::AhoCorasickKind::DFA))
        .build(all.iter().map(|(word, _)| word))
        .expect("a hundred words fit an automaton");
    Triggers { automaton, reasons: all.into_iter().map(|(_, reason)| reason).collect() }
});

static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let makes: Vec<&str> = TOKENS.iter().map(|(_, pattern)| *pattern).collect();
    Regex::new(&format!(r"(?-u)(?:\b|_)(?:{})", makes.join("|"))).expect("the patterns above are well formed")
});

/// A secret key of AWS, which by itself looks like any forty characters.
static AWS_SECRET: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)(?:^|[^A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?:$|[^A-Za-z0-9/+=])")
        .expect("the pattern above is well formed")
});

static BASE64: LazyLock<GeneralPurpose> = LazyLock::new(|| {
    let any_padding = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(&alphabet::STANDARD, any_padding)
});

/// Whether anything in `bytes` needs a closer check.
pub(super) fn may_be_in(bytes: &[u8]) -> bool {
    TRIGGERS.automaton.is_match(Input::new(bytes).earliest(true))
}

/// Adds the positions of secrets in `bytes`.
pub(super) fn find(bytes: &[u8], found: &mut Vec<Range<usize>>) {
    let (mut at, mut has_token) = (0, false);
    while let Some(hit) = TRIGGERS.automaton.find(Input::new(bytes).span(at..bytes.len())) {
        let next = match TRIGGERS.reasons[hit.pattern().as_usize()] {
            TriggerKind::Name => named::find(bytes, hit.range(), at, found),
            TriggerKind::Parameter => named::parameter(bytes, hit.end(), found),
            TriggerKind::Address => login(bytes, hit.end(), found),
            TriggerKind::Block => block(bytes, hit.start(), found),
            TriggerKind::Scheme => authorization(bytes, hit.range(), found),
            TriggerKind::Token => {
                has_token = true;
                hit.end()
            }
        };
        at = next.max(hit.end());
    }
    if has_token {
        tokens(bytes, found);
    }
}

fn tokens(bytes: &[u8], found: &mut Vec<Range<usize>>) {
    for token in TOKEN.find_iter(bytes) {
        let text = token.as_bytes();
        let has = |is: fn(&u8) -> bool| text.iter().any(is);
        let is_word = !has(u8::is_ascii_uppercase) || !has(u8::is_ascii_lowercase);
        if is_word && !has(u8::is_ascii_digit) {
            continue;
        }
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-=+/".contains(byte);
        let end = token.end() - usize::from(text.last().is_some_and(|last| !is_part(last)));
        found.push(token.start() + usize::from(text[0] == b'_')..end);
        if text.starts_with(b"AKIA") || text.starts_with(b"ASIA") {
            aws_secret(bytes, token.range(), found);
        }
    }
}

/// Finds the AWS secret key close to its access key.
fn aws_secret(bytes: &[u8], access: Range<usize>, found: &mut Vec<Range<usize>>) {
    let (start, end) = (access.start.saturating_sub(160), (access.end + 160).min(bytes.len()));
    for near in [start..access.start, access.end..end] {
        for captures in AWS_SECRET.captures_iter(&bytes[near.clone()]) {
            let Some(key) = captures.get(1) else { continue };
            let has = |is: fn(&u8) -> bool| key.as_bytes().iter().any(is);
            if has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) {
                found.push(near.start + key.start()..near.start + key.end());
            }
        }
    }
}

/// Finds the password, or the token in place of one, in `scheme://user:password@host`.
fn login(bytes: &[u8], start: usize, found: &mut Vec<Range<usize>>) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/?#\"'<>`".contains(byte);
    let end = bytes[start..].iter().position(ends).map_or(bytes.len(), |len| start + len);
    let Some(host) = bytes[start..end].iter().rposition(|byte| *byte == b'@') else {
        return start;
    };
    let login = &bytes[start..start + host];
    let (secret, is_secret) = match login.iter().position(|byte| *byte == b':') {
        Some(colon) => (start + colon + 1, !is_placeholder(&login[colon + 1..])),
        None => (start, login.len() >= 16 && is_random(login)),
    };
    if is_secret {
        found.push(secret..start + host);
    }
    start + host
}

/// Finds a private key from its first line to its last, or to the end of its text.
fn block(bytes: &[u8], start: usize, found: &mut Vec<Range<usize>>) -> usize {
    const KIND: &[u8] = b"PRIVATE KEY";
    let head = &bytes[start..bytes.len().min(start + 64)];
    let Some(kind) = head.windows(KIND.len()).position(|words| words.eq_ignore_ascii_case(KIND)) else {
        return start;
    };
    // The characters of a key, with escaped or plain line ends; anything else ends it.
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-\\ \r\n\t:,".contains(byte);
    let mut end = start + kind + KIND.len();
    while bytes.get(end).is_some_and(is_part) {
        if bytes[end..].starts_with(b"-----END") {
            let line = &bytes[end + 8..bytes.len().min(end + 72)];
            end += 8 + line.windows(5).position(|dashes| dashes == b"-----").map_or(0, |dashes| dashes + 5);
            break;
        }
        end += 1;
    }
    found.push(start..end);
    end
}

/// Finds the credentials after `Bearer` and `Basic`.
fn authorization(bytes: &[u8], scheme: Range<usize>, found: &mut Vec<Range<usize>>) -> usize {
    let spaces = bytes[scheme.end..].iter().take(8).take_while(|byte| **byte == b' ').count();
    if spaces == 0 || (scheme.start > 0 && bytes[scheme.start - 1].is_ascii_alphanumeric()) {
        return scheme.end;
    }
    let start = scheme.end + spaces;
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(byte);
    let len = bytes[start..].iter().position(|byte| !is_part(byte)).unwrap_or(bytes.len() - start);
    let value = &bytes[start..start + len];
    let is_secret = if scheme.len() == "basic".len() {
        BASE64.decode(value).is_ok_and(|login| login.contains(&b':'))
    } else {
        len >= 24 || (len >= 8 && value[..len - 1].iter().any(u8::is_ascii_digit))
    };
    if is_secret {
        found.push(start..start + len);
    }
    start + len
}
