//! Reads `WWW-Authenticate`: what a server wants to be shown.

use crate::Scopes;

/// The part of a 401 or 403 that says what is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Where the server describes its authorization servers.
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub scopes: Scopes,
    /// The error code, such as `insufficient_scope`.
    pub error: Option<String>,
}

impl Challenge {
    /// The first challenge of scheme `Bearer` among the header values; empty where there is none.
    pub fn parse<'a>(headers: impl IntoIterator<Item = &'a str>) -> Challenge {
        headers.into_iter().find_map(bearer).unwrap_or_default()
    }

    /// Whether the token was good and its scopes were not enough.
    pub fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// The parameters of the `Bearer` challenge in one header value.
fn bearer(header: &str) -> Option<Challenge> {
    let mut challenge = None::<Challenge>;
    let mut rest = header.trim_start();
    while !rest.is_empty() {
        let (word, after) = token(rest)?;
        if let Some(value) = after.trim_start().strip_prefix('=') {
            // Parameters of other schemes are read over.
            let (value, after) = parameter_value(value.trim_start())?;
            if let Some(challenge) = &mut challenge {
                match word.to_ascii_lowercase().as_str() {
                    "resource_metadata" => challenge.resource_metadata = Some(value),
                    "scope" => challenge.scopes = Scopes::parse(&value),
                    "error" => challenge.error = Some(value),
                    _ => {}
                }
            }
            rest = after.trim_start().trim_start_matches(',').trim_start();
        } else {
            if challenge.is_some() {
                break;
            }
            challenge = word.eq_ignore_ascii_case("bearer").then(Challenge::default);
            rest = after.trim_start().trim_start_matches(',').trim_start();
        }
    }
    challenge
}

fn token(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"!#$%&'*+-.^_`|~/".contains(c));
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (!word.is_empty()).then_some((word, rest))
}

fn parameter_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        return token(text).map(|(word, rest)| (word.to_owned(), rest.trim_start_matches('=')));
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            _ if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some((value, &quoted[at + 1..])),
            _ => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_of_many_shapes_are_read() {
        let full = Challenge::parse([
            "Bearer realm=\"x, y\", error=\"insufficient_scope\", scope=\"a b\", resource_metadata=\"https://a.example/m\"",
        ]);
        assert_eq!(full.resource_metadata.as_deref(), Some("https://a.example/m"));
        assert_eq!(full.scopes, Scopes::parse("a b"));
        assert!(full.is_insufficient_scope());
        let later = Challenge::parse(["Basic realm=\"q\"", "bearer scope=one"]);
        assert_eq!(later.scopes, Scopes::parse("one"));
        let shared =
            Challenge::parse(["Basic realm=\"b\", Bearer scope=\"z\", Digest nonce=\"1\", scope=\"no\""]);
        assert_eq!(shared.scopes, Scopes::parse("z"));
        assert_eq!(Challenge::parse(["Bearer"]), Challenge::default());
        for broken in ["", "Bearer scope=\"open", "=", "Bearer =x", "Bearer scope=\"a\\\"", "\u{e4}"] {
            assert_eq!(Challenge::parse([broken]).scopes, Scopes::default(), "{broken}");
        }
    }
}
