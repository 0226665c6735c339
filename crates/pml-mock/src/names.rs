//! Plausible values for the names of fields and for formats.
//!
//! The first row of a table one of whose words occurs in the name decides. A row is added by writing it: the most
//! special ones come first.

use crate::random::Random;

/// A way to make a text.
#[derive(Clone, Copy)]
enum Maker {
    OneOf(&'static [&'static str]),
    Email,
    Url,
    Uuid,
    Date,
    DateTime,
    Time,
    Sha,
    Id,
    Path,
    Address,
    Numbered(&'static str),
}

const PEOPLE: &[&str] =
    &["Ana Silva", "Jonas Weber", "Mei Tanaka", "Omar Haddad", "Lucie Martin", "Tom Okafor"];
const LOGINS: &[&str] = &["ana-silva", "jweber", "mei-t", "omar-h", "lucie-m", "tom-okafor"];
const THINGS: &[&str] = &["billing", "search-index", "onboarding", "invoices", "weekly-report", "inventory"];
const SENTENCES: &[&str] = &[
    "The nightly import stopped after 1,204 of 3,000 rows.",
    "Please review the figures for the second quarter.",
    "Retrying the request with a longer timeout solved it.",
    "The new version is available for all teams.",
    "Three of the five reports are finished.",
];
const TITLES: &[&str] = &[
    "Import stops on empty rows",
    "Quarterly figures",
    "Longer timeout for uploads",
    "Release notes",
    "Open questions",
];

/// Words of a field's name, and how texts under such a name are made.
const TEXTS: &[(&[&str], Maker)] = &[
    (&["email", "mail"], Maker::Email),
    (&["url", "uri", "link", "href", "homepage", "website", "endpoint"], Maker::Url),
    (&["uuid", "guid"], Maker::Uuid),
    (&["timezone", "tz"], Maker::OneOf(&["Europe/Paris", "America/New_York", "Asia/Tokyo", "UTC"])),
    (&["timestamp", "datetime", "created", "updated", "modified", "at", "since", "until"], Maker::DateTime),
    (&["date", "day", "birthday", "deadline", "due"], Maker::Date),
    (&["time"], Maker::Time),
    (&["sha", "hash", "digest", "checksum", "commit", "etag"], Maker::Sha),
    (&["filename", "file", "path", "filepath", "directory", "folder", "dir"], Maker::Path),
    (&["mime", "mimetype"], Maker::OneOf(&["text/plain", "application/json", "text/csv"])),
    (&["ip", "ipv4"], Maker::OneOf(&["192.0.2.17", "198.51.100.4", "203.0.113.80"])),
    (
        &["host", "hostname", "domain"],
        Maker::OneOf(&["api.example.com", "files.example.org", "db.example.net"]),
    ),
    (
        &["phone", "mobile", "fax"],
        Maker::OneOf(&["+33 1 55 01 02 03", "+49 30 5550 1234", "+1 212 555 0147"]),
    ),
    (&["currency"], Maker::OneOf(&["EUR", "USD", "GBP", "JPY"])),
    (&["country"], Maker::OneOf(&["France", "Germany", "Japan", "Brazil"])),
    (&["city", "town"], Maker::OneOf(&["Lyon", "Berlin", "Osaka", "Porto"])),
    (&["street", "address"], Maker::Address),
    (&["zip", "postcode", "postal"], Maker::OneOf(&["69003", "10115", "75011"])),
    (
        &["company", "organization", "organisation", "org", "vendor"],
        Maker::OneOf(&["Northwind", "Acme", "Globex"]),
    ),
    (&["locale", "lang"], Maker::OneOf(&["en", "fr", "de"])),
    (&["language"], Maker::OneOf(&["English", "French", "German"])),
    (&["branch", "ref"], Maker::OneOf(&["main", "develop", "release-2"])),
    (&["version"], Maker::OneOf(&["1.4.2", "2.0.0", "0.9.7"])),
    (&["status", "state"], Maker::OneOf(&["active", "open", "completed", "pending"])),
    (&["type", "kind", "category"], Maker::OneOf(&["standard", "report", "task"])),
    (&["priority", "severity", "level"], Maker::OneOf(&["medium", "high", "low"])),
    (&["color", "colour"], Maker::OneOf(&["#1f77b4", "#2ca02c", "#d62728"])),
    (&["encoding", "charset"], Maker::OneOf(&["utf-8"])),
    (&["unit", "units"], Maker::OneOf(&["kg", "m", "s"])),
    (&["format", "extension"], Maker::OneOf(&["json", "csv", "pdf"])),
    (&["cursor", "page", "token"], Maker::Numbered("page-")),
    (&["login", "username", "user", "author", "owner", "assignee", "creator"], Maker::OneOf(LOGINS)),
    (&["id", "key", "identifier", "number", "no", "code", "sku"], Maker::Id),
    (&["firstname", "first", "given"], Maker::OneOf(&["Ana", "Jonas", "Mei", "Omar"])),
    (&["lastname", "last", "family", "surname"], Maker::OneOf(&["Silva", "Weber", "Tanaka", "Haddad"])),
    (&["title", "subject", "headline", "heading"], Maker::OneOf(TITLES)),
    (
        &[
            "description",
            "body",
            "content",
            "text",
            "message",
            "summary",
            "comment",
            "note",
            "notes",
            "abstract",
            "reason",
            "details",
            "snippet",
            "output",
            "result",
            "answer",
        ],
        Maker::OneOf(SENTENCES),
    ),
    (&["tag", "tags", "label", "labels", "topic", "topics", "keyword", "keywords"], Maker::OneOf(THINGS)),
    (
        &["repo", "repository", "project", "channel", "table", "database", "bucket", "queue"],
        Maker::OneOf(THINGS),
    ),
    (&["name", "displayname", "fullname"], Maker::OneOf(THINGS)),
];

/// Words of an object that is a person: its `name` is a person's.
const PERSONS: &[&str] = &[
    "user", "users", "author", "owner", "person", "people", "member", "members", "contact", "contacts",
    "customer", "assignee", "creator", "sender", "employee",
];

/// Words of a field's name, and the range of its numbers. The values of fractions are between the same bounds.
const NUMBERS: &[(&[&str], i64, i64)] = &[
    (&["latitude", "lat"], -60, 60),
    (&["longitude", "lon", "lng"], -150, 150),
    (&["year"], 2019, 2025),
    (&["month"], 1, 12),
    (&["day"], 1, 28),
    (&["hour"], 0, 23),
    (&["minute", "second"], 0, 59),
    (&["age"], 20, 70),
    (&["port"], 8_000, 8_999),
    (&["percent", "percentage"], 1, 99),
    (&["probability", "confidence", "score", "ratio", "rate", "similarity"], 0, 1),
    (&["rating", "stars"], 1, 5),
    (&["temperature", "temp"], -5, 30),
    (&["price", "amount", "total", "cost", "balance", "revenue", "salary"], 10, 900),
    (&["timestamp", "created", "updated", "modified", "expires", "at"], 1_704_000_000, 1_735_000_000),
    (&["ms", "millis", "milliseconds", "duration", "latency", "elapsed"], 20, 1_800),
    (&["bytes", "size"], 512, 65_536),
    (&["width", "height"], 320, 1_920),
    (&["status", "code"], 200, 200),
    (&["id"], 10_000, 99_999),
    (&["number"], 12, 480),
    (&["page", "index", "offset", "position"], 0, 3),
];

/// Words of flags that are false where things go as they should.
const USUALLY_FALSE: &[&str] = &[
    "error",
    "errors",
    "failed",
    "failure",
    "truncated",
    "deleted",
    "archived",
    "removed",
    "disabled",
    "empty",
    "more",
    "draft",
    "locked",
    "expired",
    "incomplete",
    "missing",
    "conflict",
    "private",
    "hidden",
    "bot",
];
/// Words of flags that are true where things go as they should.
const USUALLY_TRUE: &[&str] = &[
    "ok",
    "success",
    "successful",
    "succeeded",
    "exists",
    "found",
    "valid",
    "active",
    "enabled",
    "available",
    "done",
    "created",
    "updated",
    "public",
    "ready",
    "passed",
    "healthy",
];

/// The lower-case words of a name: `htmlUrl`, `html_url` and `HTML-URL` are `html`, `url`.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_is_lower = false;
    for c in name.chars() {
        let starts = !c.is_alphanumeric() || (c.is_uppercase() && before_is_lower);
        if starts && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before_is_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn has(words: &[String], any: &[&str]) -> bool {
    words.iter().any(|word| any.contains(&word.as_str()))
}

/// A text for a field of this name in an object of that name.
pub(crate) fn text(parent: &str, name: &str, random: &mut Random) -> String {
    let own = words(name);
    if has(&own, &["name", "names"]) && (has(&words(parent), PERSONS) || has(&own, PERSONS)) {
        return random.pick(PEOPLE).to_owned();
    }
    // The last word of a name is its noun: `file_content` is a content, `content_file` a file.
    let noun = own.last().cloned().unwrap_or_default();
    let singular = noun.strip_suffix('s').unwrap_or(&noun).to_owned();
    let row = |wanted: &[String]| TEXTS.iter().find(|(known, _)| has(wanted, known));
    match row(&[noun, singular]).or_else(|| row(&own)) {
        Some((_, maker)) => make(*maker, random),
        None => make(Maker::OneOf(THINGS), random),
    }
}

/// A text unlike the usual one for its field.
pub(crate) fn other_text(random: &mut Random) -> String {
    format!("other-{}", random.hex(6))
}

/// A number for a field of this name.
pub(crate) fn number(name: &str, integer: bool, random: &mut Random) -> f64 {
    let own = words(name);
    let (_, low, high) = NUMBERS.iter().find(|(known, ..)| has(&own, known)).unwrap_or(&(&[], 1, 100));
    let whole = random.between(*low, *high);
    if integer || low == high {
        return whole as f64;
    }
    let span = (high - low) as f64;
    // Two digits after the point, as amounts and measurements have.
    ((*low as f64 + span * (random.between(0, 10_000) as f64 / 10_000.0)) * 100.0).round() / 100.0
}

/// A flag for a field of this name.
pub(crate) fn boolean(name: &str, random: &mut Random) -> bool {
    let own = words(name);
    if has(&own, USUALLY_FALSE) { false } else { has(&own, USUALLY_TRUE) || random.below(2) == 0 }
}

/// A text of a JSON Schema format; `None` for formats that are not known.
pub(crate) fn of_format(format: &str, random: &mut Random) -> Option<String> {
    let maker = match format {
        "email" | "idn-email" => Maker::Email,
        "date-time" => Maker::DateTime,
        "date" => Maker::Date,
        "time" => Maker::Time,
        "uri" | "iri" | "url" => Maker::Url,
        "uri-reference" | "iri-reference" => Maker::OneOf(&["/items/17", "/reports/2024"]),
        "uri-template" => Maker::OneOf(&["/items/{id}"]),
        "uuid" => Maker::Uuid,
        "ipv4" => Maker::OneOf(&["192.0.2.17", "198.51.100.4", "203.0.113.80"]),
        "ipv6" => Maker::OneOf(&["2001:db8::17", "2001:db8::4:80"]),
        "hostname" | "idn-hostname" => Maker::OneOf(&["api.example.com", "files.example.org"]),
        "duration" => Maker::OneOf(&["PT15M", "P3D", "PT2H30M"]),
        "json-pointer" => Maker::OneOf(&["/items/0", "/name"]),
        "relative-json-pointer" => Maker::OneOf(&["1/name", "0/items"]),
        "regex" => Maker::OneOf(&["^[a-z]+$", "[0-9]{4}"]),
        "byte" | "base64" => Maker::OneOf(&["UmVwb3J0IDE3", "RXhhbXBsZQ=="]),
        _ => return None,
    };
    Some(make(maker, random))
}

/// Texts of common forms, to be tried against a pattern.
pub(crate) fn common(random: &mut Random) -> Vec<String> {
    let makers = [
        Maker::DateTime,
        Maker::Date,
        Maker::Time,
        Maker::Uuid,
        Maker::Email,
        Maker::Url,
        Maker::Sha,
        Maker::Id,
        Maker::Path,
        Maker::OneOf(LOGINS),
        Maker::OneOf(&["1.4.2", "2.0.0"]),
        Maker::OneOf(&["EUR", "USD"]),
        Maker::OneOf(&["fr", "en"]),
        Maker::OneOf(&["#1f77b4"]),
        Maker::OneOf(&["192.0.2.17"]),
    ];
    makers.into_iter().map(|maker| make(maker, random)).collect()
}

/// A name for a member that a schema does not name.
pub(crate) fn key(index: usize) -> String {
    match THINGS.get(index) {
        Some(thing) => (*thing).to_owned(),
        None => format!("item-{index}"),
    }
}

fn make(maker: Maker, random: &mut Random) -> String {
    match maker {
        Maker::OneOf(choices) => random.pick(choices).to_owned(),
        Maker::Email => format!("{}@example.com", random.pick(LOGINS)),
        Maker::Url => format!("https://example.com/{}/{}", random.pick(THINGS), random.between(10, 999)),
        Maker::Uuid => uuid(random),
        Maker::Date => date(random),
        Maker::DateTime => format!("{}T{}", date(random), time(random)),
        Maker::Time => time(random),
        Maker::Sha => random.hex(40),
        Maker::Id => random.hex(12),
        Maker::Path => {
            format!("{}/{}.csv", random.pick(&["reports", "data", "exports"]), random.pick(THINGS))
        }
        Maker::Address => {
            format!("{} {}", random.between(1, 120), random.pick(&["Rue Moncey", "Hauptstr.", "Elm Street"]))
        }
        Maker::Numbered(prefix) => format!("{prefix}{}", random.between(2, 9)),
    }
}

/// A version 4 UUID.
fn uuid(random: &mut Random) -> String {
    let variant = random.pick(&['8', '9', 'a', 'b']);
    let (a, b, c) = (random.hex(8), random.hex(4), random.hex(3));
    let (d, e) = (random.hex(3), random.hex(12));
    format!("{a}-{b}-4{c}-{variant}{d}-{e}")
}

/// A day of 2024 or 2025. No clock is read: the same seed gives the same day next year.
fn date(random: &mut Random) -> String {
    format!("{}-{:02}-{:02}", random.between(2024, 2025), random.between(1, 12), random.between(1, 28))
}

fn time(random: &mut Random) -> String {
    format!("{:02}:{:02}:{:02}Z", random.between(0, 23), random.between(0, 59), random.between(0, 59))
}
