//! Tests of what is removed, what stays, and that neither takes long.

mod ordinary;
mod secret;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::value::RawValue;

use super::*;

/// Configured secrets, with every character that encodings change.
const KNOWN: [&str; 5] = [
    "hunter2-and-more",
    "p@ss/w\"ord&co<é>",
    "kX9?>~?>~kX9",
    "back\\slash\\new\\x41",
    "correct horse battery",
];

fn sanitiser() -> &'static Sanitiser {
    static SANITISER: LazyLock<Sanitiser> = LazyLock::new(|| Sanitiser::new(KNOWN.map(certain)));
    &SANITISER
}

fn certain(value: &str) -> KnownSecret {
    KnownSecret::new(Certainty::Certain, value)
}

fn likely(value: &str) -> KnownSecret {
    KnownSecret::new(Certainty::Likely, value)
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// Checks the sanitised form of a JSON text.
#[track_caller]
fn check(json: &str, expected: &str) {
    let before = raw(json);
    let cleaned = sanitiser().clean_json(&before);
    assert_eq!(cleaned.value.get(), expected);
    assert_eq!(cleaned.changed, json != expected, "{json}");
    let again = sanitiser().clean_json(&cleaned.value);
    assert_eq!((again.value.get(), again.changed), (expected, false), "once more");
}

#[test]
fn secrets_are_taken_out_and_what_is_around_them_stays() {
    let sanitiser = sanitiser();
    let mut wrong = Vec::new();
    for (text, secret) in secret::CASES {
        // The bar keeps secret scanners from reporting this file.
        let (text, secret) = (text.replace('¦', ""), secret.replace('¦', ""));
        assert!(text.contains(&secret), "{text}");
        let expected = text.replacen(&secret, MARK, 1);
        let clean = sanitiser.clean_text(&text);
        if clean != expected {
            wrong.push(format!("{text:?}\n  -> {clean:?}"));
        } else if sanitiser.clean_text(&clean) != expected {
            wrong.push(format!("{expected:?} changes once more: {:?}", sanitiser.clean_text(&clean)));
        }
    }
    assert!(secret::CASES.len() >= 80);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), secret::CASES.len(), wrong.join("\n"));
}

#[test]
fn ordinary_text_stays() {
    let sanitiser = sanitiser();
    let changed: Vec<String> = ordinary::CASES
        .iter()
        .filter_map(|text| match sanitiser.clean_text(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(format!("{text:?}\n  -> {clean:?}")),
        })
        .collect();
    assert!(ordinary::CASES.len() >= 80);
    assert!(changed.is_empty(), "{} of {}:\n{}", changed.len(), ordinary::CASES.len(), changed.join("\n"));
}

/// Every known encoding of `secret`, each inside a longer text.
fn written(secret: &str) -> Vec<String> {
    let percent = |digits: fn(u8) -> String| -> String {
        secret
            .bytes()
            .map(
                |byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { digits(byte) },
            )
            .collect()
    };
    let units = |unit: fn(u16) -> String| -> String { secret.encode_utf16().map(unit).collect() };
    let json = serde_json::to_string(secret).unwrap();
    let json = &json[1..json.len() - 1];
    let html: String = secret.chars().map(|c| format!("&#{};", u32::from(c))).collect();
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut all = vec![
        secret.to_owned(),
        format!("before{secret}after"),
        percent(|byte| format!("%{byte:02x}")),
        percent(|byte| format!("%{byte:02X}")).replace("%20", "+"),
        secret.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        percent(|byte| format!("%25{byte:02X}")),
        json.to_owned(),
        json.replace('/', "\\/"),
        serde_json::to_string(json).unwrap(),
        units(|unit| format!("\\u{unit:04x}")),
        units(|unit| format!("\\u{unit:04X}")),
        secret.chars().map(|c| format!("\\u{{{:x}}}", u32::from(c))).collect(),
        html.replace('&', "&amp;"),
        secret.chars().map(|c| format!("&#x{:X};", u32::from(c))).collect(),
        secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"),
        html,
        hex.to_uppercase(),
        format!("0x{hex}"),
        format!("{}\r\n  {}", &secret[..4], &secret[4..]),
    ];
    for before in ["", "a", "ab", "user:", "{\"x\":\""] {
        let longer = format!("{before}{secret}\"}} and more");
        let whole = BASE64_STANDARD.encode(&longer);
        all.push(format!("{}\n{}", &whole[..12], &whole[12..]));
        all.push(BASE64_STANDARD.encode(format!("{before}{json}\"}}")));
        all.push(BASE64_URL_SAFE_NO_PAD.encode(&longer));
        all.push(whole.replace('+', "%2B").replace('/', "%2F"));
        all.push(whole);
    }
    all
}

/// What is left of `secret` in `text` under any of the encodings; `None` if nothing is.
fn left_of<'a>(secret: &str, text: &str) -> Option<&'a str> {
    let plain =
        [("plain", secret.to_owned()), ("hex", secret.bytes().map(|byte| format!("{byte:02x}")).collect())];
    let lower = text.to_lowercase();
    let simply = plain.into_iter().find(|(_, needle)| lower.contains(&needle.to_lowercase()));
    let decoded = || {
        (0..3).any(|skip| {
            let digits: Vec<u8> =
                text.bytes().filter(|b| b.is_ascii_alphanumeric() || b"+/-_".contains(b)).collect();
            let digits: String = digits
                .iter()
                .map(|b| char::from(*b))
                .map(|c| {
                    if c == '-' {
                        '+'
                    } else if c == '_' {
                        '/'
                    } else {
                        c
                    }
                })
                .collect();
            (0..4).any(|from| {
                let Some(run) = digits.get(from..) else { return false };
                let run = &run[..run.len() / 4 * 4];
                BASE64_STANDARD.decode(run).is_ok_and(|bytes| {
                    bytes
                        .get(skip..)
                        .is_some_and(|bytes| bytes.windows(secret.len()).any(|w| w == secret.as_bytes()))
                })
            })
        })
    };
    simply.map(|(how, _)| how).or_else(|| decoded().then_some("base64"))
}

#[test]
fn known_values_are_found_in_every_encoding() {
    let sanitiser = sanitiser();
    for secret in KNOWN {
        for text in written(secret) {
            let text = format!("GET /x {text} done");
            let clean = sanitiser.clean_text(&text);
            assert!(clean.contains(MARK), "{secret} in {text} -> {clean}");
            assert_eq!(left_of(secret, &clean), None, "{secret} in {text} -> {clean}");
            assert!(clean.starts_with("GET /x ") && clean.ends_with(" done"), "{text} -> {clean}");
            let json =
                serde_json::to_string(&serde_json::json!({ "seen": [text], text.clone(): 1 })).unwrap();
            let inside = sanitiser.clean_json(&raw(&json)).value;
            assert!(inside.get().matches(MARK).count() >= 2, "{json} -> {inside}");
            assert_eq!(left_of(secret, inside.get()), None, "{json} -> {inside}");
        }
    }
}

#[test]
fn secrets_inside_known_values_are_known_too() {
    let sanitiser = Sanitiser::new(
        [
            "postgres://app:Kq7-vvZ2@db/main",
            "Bearer opaque.value",
            "Basic bWU6czNjcjN0LXB3",
            "Server=db;Password=Zw4!kkR;",
        ]
        .map(certain),
    );
    for (text, clean) in [
        ("tried Kq7-vvZ2 twice", "tried [REDACTED] twice"),
        ("got opaque.value here", "got [REDACTED] here"),
        ("login me with s3cr3t-pw", "login me with [REDACTED]"),
        ("used Zw4!kkR today", "used [REDACTED] today"),
        ("postgres://app@db/main", "postgres://app@db/main"),
    ] {
        assert_eq!(sanitiser.clean_text(text), clean);
    }
}

#[test]
fn settings_that_everybody_has_are_no_secrets() {
    let settings = [
        "true",
        "abc12",
        "production",
        "LOCALHOST",
        "/usr/bin",
        "/usr/local/bin:/usr/bin:/bin",
        "~/.cache/pml",
        "C:\\Users\\me",
        "127.0.0.1:8080",
        "10000000",
        "1.24.3",
        "v20.11.1",
        "api.example.com",
        "db.internal:5432",
        "https://api.example.com/v1/messages",
        "http://localhost:8080",
        "me@example.com",
        "us-east-1",
        "en_US.UTF-8",
        "Europe/Paris",
        "streamable-http",
        "./data/store",
        "file:///srv/data",
    ];
    let sanitiser = Sanitiser::new(settings.map(likely));
    for setting in settings {
        assert!(
            matches!(sanitiser.clean_text(&format!("it is {setting} now")), Cow::Borrowed(_)),
            "{setting}"
        );
    }
    for secret in [
        "my.Pass.word1x2y",
        "https://x.example/hook/T0aB1cD2eF3gH4",
        "/K7MDENG/bPxRfiCYZEKEY17",
        "3f2a91bc-77de-4a01-9c55-0b1e2d3f4a5b",
        "ABCD-1234-EFGH-5678",
        "aVeryLongOneInMixedCase",
    ] {
        let sanitiser = Sanitiser::new([likely(secret)]);
        assert_eq!(sanitiser.clean_text(&format!("it is {secret} now")), "it is [REDACTED] now", "{secret}");
    }
}

#[test]
fn what_is_certainly_secret_is_hidden_however_it_looks() {
    for secret in [
        "swordfish",
        "abc123",
        "production",
        "4711",
        "a1b2c",
        "/srv/key",
        "localhost",
        "10000000",
        "correct horse",
    ] {
        let sanitiser = Sanitiser::new([certain(secret)]);
        assert_eq!(sanitiser.clean_text(&format!("it is {secret} now")), "it is [REDACTED] now", "{secret}");
        let cleaned = sanitiser.clean_json(&raw(&format!(r#"{{"x":"{secret}"}}"#)));
        assert_eq!(cleaned.value.get(), r#"{"x":"[REDACTED]"}"#, "{secret}");
    }
    // A short secret, or a word, does not match inside another word.
    for (secret, text) in
        [("4711", "order 147110"), ("a1b2c", "0xa1b2c3"), ("production", "reproductions of it")]
    {
        assert!(matches!(Sanitiser::new([certain(secret)]).clean_text(text), Cow::Borrowed(_)), "{secret}");
    }
    for nothing in ["", "x", "abc", "true", "none", "<token>", "${TOKEN}"] {
        let text = format!("it is {nothing} now");
        assert!(
            matches!(Sanitiser::new([certain(nothing)]).clean_text(&text), Cow::Borrowed(_)),
            "{nothing}"
        );
    }
}

#[test]
fn of_an_address_its_login_and_its_query_are_secret() {
    let address =
        "postgres://reporting:Kq7-vvZ2@db.internal:5432/sales?application_name=reporting&sslkey=Zw4kkR81xPq2";
    for known in [certain(address), likely(address), KnownSecret::new(Certainty::Inside, address)] {
        let sanitiser = Sanitiser::new([known]);
        assert_eq!(sanitiser.clean_text("tried Kq7-vvZ2"), "tried [REDACTED]");
        assert_eq!(sanitiser.clean_text("and Zw4kkR81xPq2"), "and [REDACTED]");
        for stays in ["reporting of sales", "db.internal:5432", "sales"] {
            assert!(matches!(sanitiser.clean_text(stays), Cow::Borrowed(_)), "{stays}");
        }
    }
    let page = Sanitiser::new([likely(
        "https://api.example.com/v1/items?page=overview&api_key=abcdef&x=7d8f9a0b1c2d3e4f",
    )]);
    assert_eq!(page.clean_text("abcdef 7d8f9a0b1c2d3e4f overview"), "[REDACTED] [REDACTED] overview");
    let user = Sanitiser::new([likely("https://x7Kq2mN9pL4w@example.com/repo.git")]);
    assert_eq!(user.clean_text("as x7Kq2mN9pL4w"), "as [REDACTED]");
}

#[test]
fn what_was_taken_out_once_can_be_taken_out_everywhere() {
    let noting = sanitiser().recording_secrets();
    let given = r#"{"password":"p\u00e4ss-w\"ord","pin":47112,"login":{"credentials":{"user":"bob","pass_phrase":"x","key":"9f8e7d6c5b4a39281706"}},"n":1}"#;
    assert!(noting.clean_json(&raw(given)).changed);
    noting.clean_text("api_key=Zk82-hhQ1 was used");
    let noted = noting.recorded_secrets();
    let expected = ["47112", "9f8e7d6c5b4a39281706", "Zk82-hhQ1", "päss-w\"ord", "x"];
    assert_eq!(noted.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let wider = sanitiser().with_secrets(noted);
    for (text, clean) in [
        ("tried päss-w\"ord for bob", "tried [REDACTED] for bob"),
        ("code 47112, order 147112", "code [REDACTED], order 147112"),
        ("Zk82-hhQ1", "[REDACTED]"),
        ("hunter2-and-more", "[REDACTED]"),
    ] {
        assert_eq!(wider.clean_text(text), clean);
    }
    assert_eq!(
        wider.clean_json(&raw(r#"["p\u00e4ss-w\"ord",47112,47113]"#)).value.get(),
        r#"["[REDACTED]","[REDACTED]",47113]"#
    );
    assert!(sanitiser().recording_secrets().recorded_secrets().is_empty());
}

#[test]
fn members_are_secret_by_their_names() {
    let secret = [
        "password",
        "Password",
        "PASSWORD",
        "passwd",
        "db_password",
        "userPassword",
        "new-password",
        "passphrase",
        "password2",
        "password_hash",
        "passwordConfirmation",
        "secret",
        "client_secret",
        "clientSecret",
        "token",
        "access_token",
        "accessToken",
        "refresh_token",
        "id_token",
        "authToken",
        "bot_token",
        "GITHUB_TOKEN",
        "adminToken",
        "csrfToken",
        "X-Amz-Security-Token",
        "api_key",
        "apiKey",
        "API-KEY",
        "x-api-key",
        "OPENAI_API_KEY",
        "aws_secret_access_key",
        "private_key",
        "privateKey",
        "ssh_key",
        "signingKey",
        "authorization",
        "Authorization",
        "Proxy-Authorization",
        "cookie",
        "Set-Cookie",
        "cookies",
        "credential",
        "credentials",
        "session_id",
        "sessionId",
        "Mcp-Session-Id",
        "PHPSESSID",
        "pin",
        "otp",
        "ssn",
        "cvv",
        "jwt",
        "mot_de_passe",
        "DB_PASS",
        "dbPass",
        "mdp",
        "pass\\u0077ord",
        "api.key",
    ];
    for name in secret {
        let cases =
            [("\"abcdef\"", true), ("\"x\"", true), ("{\"a\":[1]}", true), ("null", false), ("true", false)];
        for (value, changes) in cases.into_iter().chain([("\"\"", false), ("[ ]", false), ("{}", false)]) {
            if name.ends_with("ass") || name.ends_with("ASS") {
                continue;
            }
            let becomes = if changes { "\"[REDACTED]\"" } else { value };
            check(&format!("{{\"{name}\": {value} }}"), &format!("{{\"{name}\": {becomes} }}"));
        }
        check(&format!("{{\"{name}\":\"s\"}}"), &format!("{{\"{name}\":\"[REDACTED]\"}}"));
    }
    let plain = [
        "tokens",
        "token_count",
        "max_tokens",
        "maxTokens",
        "totalTokens",
        "token_type",
        "tokenType",
        "author",
        "secretary",
        "key",
        "keys",
        "public_key",
        "primaryKey",
        "nextPageToken",
        "next_page_token",
        "pageToken",
        "continuationToken",
        "progressToken",
        "cursor",
        "password_policy",
        "passwordless",
        "secretName",
        "keyboard",
        "monkey",
        "bypass",
        "compass",
        "passed",
        "passenger",
        "session",
        "spinning",
        "pinned",
        "opinion",
        "cookieConsent",
        "authorization_endpoint",
        "authorizationUrl",
        "tokenizer",
        "stopToken",
        "sort_key",
        "foreignKey",
        "keyword",
        "credentialType",
        "api_key_id",
        "tokenEndpoint",
        "hotspot",
        "assn",
        "description",
        "",
    ];
    for name in plain {
        for value in ["\"plain words\"", "512", "[1,2]", "{\"a\":1}"] {
            let json = format!("{{\"{name}\": {value} }}");
            check(&json, &json);
        }
    }
}

#[test]
fn names_that_mean_two_things_look_at_the_value() {
    check(r#"{"pass":12,"fail":3}"#, r#"{"pass":12,"fail":3}"#);
    check(r#"{"pass":"swordfish"}"#, r#"{"pass":"[REDACTED]"}"#);
    check(r#"{"pwd":"/home/me/work"}"#, r#"{"pwd":"/home/me/work"}"#);
    check(r#"{"pwd":"swordfish"}"#, r#"{"pwd":"[REDACTED]"}"#);
}

#[test]
fn values_are_changed_in_place() {
    check(
        "{ \"n\":10e110, \"big\" :12345678901234567890123,\"é\\u00e9\":\"\\u00e9\\/\",\"token\":-1.50, \"t\":[ ] }",
        "{ \"n\":10e110, \"big\" :12345678901234567890123,\"é\\u00e9\":\"\\u00e9\\/\",\"token\":\"[REDACTED]\", \"t\":[ ] }",
    );
    check(r#""\u00e9 password=abc\u0031\n tail\t""#, r#""\u00e9 password=[REDACTED]\n tail\t""#);
    check(r#"["\ud800 token=abcdef1 \udfff"]"#, r#"["\ud800 token=[REDACTED] \udfff"]"#);
    check(r#"{"hunter2-and-more":1,"x":"hunter2-and-more"}"#, r#"{"[REDACTED]":1,"x":"[REDACTED]"}"#);
    check("[1,\"a\"]", "[1,\"a\"]");
    check("17", "17");
}

#[test]
fn known_numbers_are_taken_out() {
    let cleaned = Sanitiser::new([certain("48151623")]).clean_json(&raw("[48151623,4815162,\"a\"]"));
    assert_eq!(cleaned.value.get(), "[\"[REDACTED]\",4815162,\"a\"]");
}

#[test]
fn pairs_of_name_and_value_are_one_member() {
    check(
        r#"[{"name":"API_KEY","value":"x"},{"value":42,"key":"password"},{"name":"page","value":"x"}]"#,
        r#"[{"name":"API_KEY","value":"[REDACTED]"},{"value":"[REDACTED]","key":"password"},{"name":"page","value":"x"}]"#,
    );
}

#[test]
fn json_in_strings_is_opened() {
    let once = serde_json::json!({ "user": "me", "pin": 1234, "token": "abc", "n": 1 }).to_string();
    let clean = r#"{"user":"me","pin":"[REDACTED]","token":"[REDACTED]","n":1}"#;
    let (mut dirty, mut expected) = (once, clean.to_owned());
    for _ in 0..4 {
        dirty = serde_json::to_string(&serde_json::json!({ "text": dirty })).unwrap();
        expected = serde_json::to_string(&serde_json::json!({ "text": expected })).unwrap();
        check(&dirty, &expected);
    }
    check(r#"{"text":"{\"a\":1,\"list\":[\"b\"]}"}"#, r#"{"text":"{\"a\":1,\"list\":[\"b\"]}"}"#);
    check(
        r#"{"text":"cut {\"password\":\"abc\",\"x"}"#,
        r#"{"text":"cut {\"password\":\"[REDACTED]\",\"x"}"#,
    );
}

#[test]
fn depth_costs_no_stack() {
    let deep = format!("{}{}{}", "[".repeat(100_000), "\"password=abc1\"", "]".repeat(100_000));
    assert_eq!(sanitiser().clean_json(&raw(&deep)).value.get(), deep.replace("abc1", MARK));
    let deep = format!("{{\"token\":{}{}}}", "[{\"a\":".repeat(50_000) + "1", "}]".repeat(50_000));
    assert_eq!(sanitiser().clean_json(&raw(&deep)).value.get(), "{\"token\":\"[REDACTED]\"}");
}

/// The shortest duration of several runs.
fn time(of: impl Fn()) -> Duration {
    let once = |()| {
        let start = Instant::now();
        of();
        start.elapsed()
    };
    [(), ()].map(once).into_iter().min().unwrap()
}

#[test]
fn ten_times_the_text_takes_about_ten_times_as_long() {
    let units = [
        "a",
        "eyJ",
        "eyJ-",
        "eyJ.",
        "password=",
        "password=\"",
        "password='\"",
        "token ",
        "token:",
        "key-",
        "[{(",
        "://",
        "a://b:",
        "@",
        "://@",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n-----END",
        "Bearer ",
        "Basic a",
        "sk-",
        "ghp_",
        "AKIA",
        "AKIAIOSFODNN7EXAMPLE ",
        "\\",
        "\\u005c",
        "%25",
        "&amp;",
        "token is ",
        "cookie: a=b",
        "authorization: bearer ",
        "\\\"",
        "secret,",
        "aB3",
        "pwd=/a",
        "hunter2-and-",
        "\n",
        "token aB3",
        "<token>",
        "--token ",
        "mot de passe : ",
        "xoxb-",
        "?key=",
        "SG.a",
        "authorization: ",
        "token:token:",
        ":token:1",
        "token=(",
        "token: \"token: ",
        "pin:",
        "cookie:",
        "?key=?key=",
        ",token:,",
        "'",
        "`\\`",
    ];
    let sanitiser = sanitiser();
    let begins = ["so ", "{\"", "{`"];
    for (unit, begin) in units.iter().flat_map(|unit| begins.map(|begin| (*unit, begin))) {
        let of = |size: usize| format!("{begin}{}", unit.repeat(size / unit.len()));
        let (small, large) = (of(4_000), of(40_000));
        let text = |text: &str| {
            std::hint::black_box(sanitiser.clean_text(text));
        };
        grows_evenly(unit, || text(&small), || text(&large));
        let (small, large) = (pml_model::json::raw(&small), pml_model::json::raw(&large));
        let json = |value: &RawValue| {
            std::hint::black_box(sanitiser.clean_json(value));
        };
        grows_evenly(unit, || json(&small), || json(&large));
    }
}

/// Fails if the large input takes much more than ten times as long as the small one in every attempt. Quadratic work
/// always takes a hundred times as long; a busy machine only now and then.
#[track_caller]
fn grows_evenly(unit: &str, small: impl Fn(), large: impl Fn()) {
    let ratio = || time(&large).as_secs_f64() / time(&small).as_secs_f64().max(1e-6);
    assert!((0..20).any(|_| ratio() < 40.0), "{unit:?} ten times over takes {:.0} times as long", ratio());
}
