//! Classifies a text by its appearance alone: random, a placeholder, a path, a host, a number or words.

/// The authorization schemes, which precede credentials.
pub(super) const SCHEMES: [&str; 14] = [
    "bearer",
    "basic",
    "digest",
    "token",
    "negotiate",
    "ntlm",
    "hmac",
    "apikey",
    "api-key",
    "aws4-hmac-sha256",
    "oauth",
    "hawk",
    "bot",
    "key",
];

/// Bytes: shorter texts occur by accident inside other words.
pub(super) const SHORTEST_PART: usize = 6;
/// Bytes: a shorter value is a setting, unless something says that it is a secret.
const SHORTEST_LIKELY: usize = 12;

/// Bytes of a text that are examined. Everything that follows a name would be too much: it may be full of names.
pub(super) const SAMPLE: usize = 256;

/// Placeholder values, or values that mean "none".
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

/// The beginnings of code that reads a secret from elsewhere.
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

/// Whether `value` is a placeholder for a secret rather than a secret.
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

/// Whether a word is no natural word: letters with digits or signs among them.
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

/// Whether `value` looks like a secret although nothing says so: long, and no path, host, number or words.
pub(super) fn is_likely(value: &str) -> bool {
    value.len() >= SHORTEST_LIKELY
        && !is_plain_path(value)
        && !value.split(':').all(is_plain_path)
        && !is_number(value)
        && !is_place(value)
        && !is_open_address(value)
        && !is_words(value)
}

/// Whether `value` is a word or a number, which also occurs in unrelated texts.
pub(crate) fn is_common(value: &str) -> bool {
    value.len() < SHORTEST_PART || is_words(value) || is_number(value)
}

/// Whether the value consists of words, as `production`, `my-project`, `claude-3-5-sonnet`, `Grande Bibliothèque`.
fn is_words(value: &str) -> bool {
    let plain = |part: &str| {
        let letters = part.chars().all(char::is_alphabetic) && !is_random(part.as_bytes());
        letters || part.bytes().all(|byte| byte.is_ascii_digit()) || part.len() <= 3
    };
    // Licence keys consist of groups of capitals and digits.
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let has_small = value.chars().any(char::is_lowercase);
    value.split(['-', '_', '.', ' ', ',', ':', '/', '\'']).all(plain) && (has_small || !has_digit)
}

/// Whether `text` is a path of ordinary names.
fn is_plain_path(text: &str) -> bool {
    let drive = text.len() > 2 && text.as_bytes()[0].is_ascii_alphabetic() && text[1..].starts_with(":\\");
    let rooted = ["/", "./", "../", "~/", "\\\\"].iter().any(|root| text.starts_with(root));
    (drive || rooted) && text.split(['/', '\\']).all(is_ordinary_name)
}

/// Whether it is a name as files and hosts have: short, and not a jumble of cases and digits.
fn is_ordinary_name(name: &str) -> bool {
    let has = |is: fn(&u8) -> bool| name.as_bytes().iter().any(is);
    let jumbled = has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && name.len() > 12;
    name.len() <= 32 && !jumbled && !name.contains(['+', '=', '$', '!'])
}

/// Whether the value is a number, version, date or address, as `127.0.0.1:8080`, `1.24.3`, `v2.1.0`,
/// `+33 6 12 34 56 78`, `2026-11-17T10:00:00Z`, `fe80::1:2`.
fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix('v').unwrap_or(value);
    let signs = b".:,-+/ TZ";
    let number = digits.bytes().all(|byte| byte.is_ascii_digit() || signs.contains(&byte));
    number || value.trim_matches(['[', ']']).parse::<std::net::Ipv6Addr>().is_ok()
}

/// Whether the value names a place, as `api.example.com:443`, `me@example.com`, `us-east-1`, `en_US.UTF-8`,
/// `Europe/Paris`.
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

/// Whether the value is a public URL: no login, no query, and a path of ordinary names.
pub(super) fn is_open_address(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else { return false };
    scheme.len() <= 12
        && !rest.contains(['@', '?', '#'])
        && rest.split('/').all(|name| is_ordinary_name(name) && name.len() <= 40)
}

/// Whether `text` is a path of ordinary names, apart from the punctuation of the sentence around it.
pub(super) fn is_path(text: &[u8]) -> bool {
    std::str::from_utf8(trimmed(text)).is_ok_and(is_plain_path)
}

/// `text` without the punctuation of the sentence around it.
pub(super) fn trimmed(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !b".,;:!?)]}".contains(byte)).map_or(0, |last| last + 1);
    &text[..end]
}
