//! Expands `${VAR}` and `${file:path}` in a server's settings.
//!
//! `$$` is a dollar sign, and a dollar sign before anything else stands for itself. An undefined or empty variable is
//! an error: a server must not be started with an empty password because a name was misspelled. An expanded value is
//! never expanded again.

use std::path::{Path, PathBuf};

use pml_model::Digest;

use super::ConfigSource;
use super::disk;
use super::paths::Env;
use crate::sanitise::{Certainty, KnownSecret, is_secret_name};

/// 64 KiB: the largest secret file; more than any key or certificate chain.
const MAX_SECRET_BYTES: usize = 64 * 1024;

/// Why a text cannot be expanded; names the variable.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExpandError {
    pub(super) message: String,
    pub(super) hint: String,
}

/// Expands the texts of one file and records which other files it read.
pub(super) struct VariableExpander<'e> {
    env: &'e Env,
    base: PathBuf,
    pub(super) files_read: Vec<ConfigSource>,
    /// The values that were inserted, which may be secret.
    pub(super) inserted_secrets: Vec<KnownSecret>,
}

impl<'e> VariableExpander<'e> {
    /// An expander that resolves relative paths against `base`.
    pub(super) fn new(env: &'e Env, base: &Path) -> VariableExpander<'e> {
        VariableExpander { env, base: base.to_owned(), files_read: Vec::new(), inserted_secrets: Vec::new() }
    }

    /// `text` with its variables replaced.
    pub(super) fn expand(&mut self, text: &str) -> Result<String, ExpandError> {
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(dollar) = rest.find('$') {
            out.push_str(&rest[..dollar]);
            rest = &rest[dollar + 1..];
            if let Some(after) = rest.strip_prefix('{') {
                let (name, after) = after.split_once('}').ok_or_else(unclosed)?;
                let value = self.value(name)?;
                // A value in a file of its own is meant to be secret.
                let certainty = if name.starts_with("file:") || is_secret_name(name) {
                    Certainty::Certain
                } else {
                    Certainty::Likely
                };
                out.push_str(&value);
                self.inserted_secrets.push(KnownSecret::new(certainty, value));
                rest = after;
            } else {
                out.push('$');
                rest = rest.strip_prefix('$').unwrap_or(rest);
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn value(&mut self, name: &str) -> Result<String, ExpandError> {
        if let Some(path) = name.strip_prefix("file:") {
            return self.file(path);
        }
        if !is_variable_name(name) {
            return Err(unknown_form(name));
        }
        match self.env.get(name) {
            Some("") => Err(unexpanded(
                format!("the variable `{name}` is empty"),
                format!("set `{name}` to a value, or remove `${{{name}}}`"),
            )),
            Some(value) => Ok(value.to_owned()),
            None => Err(unexpanded(
                format!("the variable `{name}` is not set"),
                format!("set `{name}` in the environment PML is started in"),
            )),
        }
    }

    fn file(&mut self, path: &str) -> Result<String, ExpandError> {
        let resolved = self.env.resolve(path, &self.base);
        let shown = self.env.display_path(&resolved);
        let bad = |what: &str, hint: &str| Err(unexpanded(format!("the file `{shown}` {what}"), hint));
        let bytes = match disk::read(&resolved) {
            Ok(bytes) => bytes,
            Err(error) => return bad("cannot be read", &error.to_string()),
        };
        self.files_read
            .push(ConfigSource { path: resolved.clone(), digest: bytes.as_deref().map(Digest::of) });
        let Some(bytes) = bytes else {
            return bad("does not exist", "put the secret into it, with mode 600");
        };
        if bytes.len() > MAX_SECRET_BYTES {
            return bad(
                "is larger than 64 KiB",
                "a file named by `${file:…}` holds one secret and nothing else",
            );
        }
        match String::from_utf8(bytes) {
            // Editors and `echo` end a file with a newline that is no part of the secret.
            Ok(text) if !text.trim_end_matches(['\r', '\n']).is_empty() => {
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            Ok(_) => bad("is empty", "put the secret into it"),
            Err(_) => bad("is not UTF-8", "a file named by `${file:…}` holds one secret as text"),
        }
    }
}

fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn unknown_form(name: &str) -> ExpandError {
    let mut hint = "write `${VAR}`, `${file:path}`, or `$$` for a dollar sign".to_owned();
    if name.starts_with("keychain:") {
        // Keychains are not supported: they need a user session, which a server started by a client or at boot does
        // not have. The result would depend on how PML was started.
        hint =
            "the system keychain is not read; write `${VAR}`, or `${file:path}` with the secret in a file of mode 600"
                .to_owned();
    }
    unexpanded(format!("`${{{name}}}` is not a form of variable"), hint)
}

fn unclosed() -> ExpandError {
    unexpanded("`${` has no closing `}`".to_owned(), "write `$$` for a dollar sign")
}

fn unexpanded(message: String, hint: impl Into<String>) -> ExpandError {
    ExpandError { message, hint: hint.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secret"), "s3cret $HOME ${TOKEN}\r\n").unwrap();
        std::fs::write(dir.path().join("empty"), "\n").unwrap();
        std::fs::write(dir.path().join("binary"), [0xff, 0xfe]).unwrap();
        let home = dir.path().to_str().unwrap();
        let env = Env::from_iter([("HOME", home), ("TOKEN", "abc"), ("TWICE", "${TOKEN}"), ("EMPTY", "")]);
        VariableExpander::new(&env, dir.path())
            .expand(text)
            .map_err(|error| format!("{}; {}", error.message, error.hint))
    }

    #[test]
    fn variables_expand_once_and_dollars_stay() {
        for (text, expected) in [
            ("plain", "plain"),
            ("Bearer ${TOKEN}", "Bearer abc"),
            ("${TOKEN}${TOKEN}", "abcabc"),
            ("${TWICE}", "${TOKEN}"),
            ("$TOKEN $(id) $", "$TOKEN $(id) $"),
            ("$${TOKEN} $$ $$$$", "${TOKEN} $ $$"),
            ("$$${TOKEN}", "$abc"),
            ("${file:secret}", "s3cret $HOME ${TOKEN}"),
            ("${file:~/secret}", "s3cret $HOME ${TOKEN}"),
        ] {
            assert_eq!(expand(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_is_named() {
        let forms = "write `${VAR}`, `${file:path}`, or `$$` for a dollar sign";
        for (text, expected) in [
            (
                "${NONE}",
                "the variable `NONE` is not set; set `NONE` in the environment PML is started in".into(),
            ),
            (
                "${EMPTY}",
                "the variable `EMPTY` is empty; set `EMPTY` to a value, or remove `${EMPTY}`".into(),
            ),
            ("${TOKEN:-x}", format!("`${{TOKEN:-x}}` is not a form of variable; {forms}")),
            ("${input:key}", format!("`${{input:key}}` is not a form of variable; {forms}")),
            ("${}", format!("`${{}}` is not a form of variable; {forms}")),
            (
                "${keychain:github}",
                "`${keychain:github}` is not a form of variable; the system keychain is not read; write \
                 `${VAR}`, or `${file:path}` with the secret in a file of mode 600"
                    .into(),
            ),
            ("${TOKEN", "`${` has no closing `}`; write `$$` for a dollar sign".into()),
            (
                "${file:~/none}",
                "the file `~/none` does not exist; put the secret into it, with mode 600".into(),
            ),
            ("${file:empty}", "the file `~/empty` is empty; put the secret into it".into()),
            (
                "${file:binary}",
                "the file `~/binary` is not UTF-8; a file named by `${file:…}` holds one secret as text"
                    .into(),
            ),
        ] {
            assert_eq!(expand(text), Err(expected), "{text}");
        }
    }
}
