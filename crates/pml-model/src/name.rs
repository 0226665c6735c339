//! Names of servers and tools, and whether two of them could be confused.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name an operator gave a server: ASCII letters, digits, `_` and `-`, at most 64.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(String);

/// Why a text is not a server name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadServerName {
    /// The text is empty.
    #[error("a server needs a name")]
    Empty,
    /// The text is longer than 64 bytes.
    #[error("server name `{0}` is longer than 64 characters")]
    Long(String),
    /// The text has a character outside the allowed set.
    #[error(
        "server name `{name}` contains {character:?}; use ASCII letters, digits, `_` and `-`, such as `{suggestion}`"
    )]
    Character {
        /// The name as given.
        name: String,
        /// The first offending character.
        character: char,
        /// A similar valid name.
        suggestion: String,
    },
    /// The name has a meaning of its own in PML.
    #[error("server name `{0}` is reserved")]
    Reserved(String),
}

/// Names that would shadow globals of PML or of JavaScript programs.
const RESERVED: &[&str] = &["pml", "mcp", "capabilities", "code"];

/// Members that JavaScript itself looks up or finds on objects. A tool, server, capability or parameter of such a name
/// would be confused with them. `then` makes an object a promise wherever it is awaited.
const INHERITED: &[&str] = &[
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "prototype",
    "then",
    "toJSON",
    "toLocaleString",
    "toString",
    "valueOf",
];

/// Whether JavaScript gives a member of this name a meaning of its own on any object.
pub fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name)
}

impl ServerName {
    /// Validates `name`.
    ///
    /// # Errors
    /// The name is empty, too long or reserved, or has a character outside the allowed set.
    pub fn new(name: &str) -> Result<ServerName, BadServerName> {
        if name.is_empty() {
            return Err(BadServerName::Empty);
        }
        if let Some(character) = name.chars().find(|c| !allowed(*c)) {
            return Err(BadServerName::Character {
                name: printable(name),
                character,
                suggestion: suggestion(name),
            });
        }
        if name.len() > 64 {
            return Err(BadServerName::Long(name.to_owned()));
        }
        let lower = name.to_ascii_lowercase();
        let inherited = INHERITED.iter().any(|member| member.eq_ignore_ascii_case(name));
        if inherited || RESERVED.contains(&lower.as_str()) || name.starts_with("pml_") {
            return Err(BadServerName::Reserved(name.to_owned()));
        }
        Ok(ServerName(name.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn suggestion(name: &str) -> String {
    let kept: String = name.chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    let kept = kept.trim_matches('-');
    if kept.is_empty() { "server".to_owned() } else { kept.chars().take(64).collect() }
}

impl TryFrom<String> for ServerName {
    type Error = BadServerName;
    fn try_from(name: String) -> Result<Self, Self::Error> {
        ServerName::new(&name)
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> String {
        name.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One downstream tool: `server:tool`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolId {
    /// Name of the server.
    pub server: ServerName,
    /// Name of the tool, as the server spells it.
    pub tool: String,
}

impl ToolId {
    /// Parses `server:tool`. The tool part may itself contain colons; a server name cannot.
    ///
    /// # Errors
    /// There is no colon, the part before it is not a server name, or nothing follows it.
    pub fn parse(text: &str) -> Result<ToolId, BadToolId> {
        let Some((server, tool)) = text.split_once(':') else {
            return Err(BadToolId::NoServer(printable(text)));
        };
        if tool.is_empty() {
            return Err(BadToolId::NoTool(printable(text)));
        }
        Ok(ToolId { server: ServerName::new(server)?, tool: tool.to_owned() })
    }
}

/// Why a text is not a tool id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadToolId {
    /// The text has no `server:` prefix.
    #[error("tool id `{0}` names no server; write it as `server:tool`")]
    NoServer(String),
    /// Nothing follows the colon.
    #[error("tool id `{0}` names no tool; write it as `server:tool`")]
    NoTool(String),
    /// The part before the colon is not a server name.
    #[error(transparent)]
    Server(#[from] BadServerName),
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.server, self.tool)
    }
}

impl Serialize for ToolId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ToolId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        ToolId::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// The form in which two names that a person could confuse are equal: look-alike letters are folded together, case and
/// surrounding white space are dropped, and `-` and `.` become `_`.
pub fn confusable_skeleton(name: &str) -> String {
    // Case is folded after the skeleton too: the skeleton of `I` is `l`, that of `i` is `i`.
    let lower: String = name.trim().to_lowercase();
    unicode_security::skeleton(&lower)
        .flat_map(char::to_lowercase)
        .map(|c| if c == '-' || c == '.' { '_' } else { c })
        .collect()
}

/// `text` with every character that could mislead a terminal or a reader written as an escape.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || c == '\t' || is_plain(c) {
            out.push(c);
        } else {
            out.extend(c.escape_unicode());
        }
    }
    out
}

/// `text` truncated to this many characters, with `…` if something was cut.
pub fn truncate_text(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// The names most similar to `wanted`, best first, at most three.
pub fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .map(|word| {
            let lower = word.to_lowercase();
            (likeness(&wanted, &lower), word)
        })
        .filter(|(likeness, _)| *likeness > 0.8)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, word)| word).collect()
}

/// The similarity of two names, from 0 to 1. A common server name says nothing about the tool.
fn likeness(wanted: &str, known: &str) -> f64 {
    let (wanted_server, wanted_tool) = wanted.split_once(':').unwrap_or(("", wanted));
    let (server, tool) = known.split_once(':').unwrap_or(("", known));
    let tools = strsim::jaro_winkler(wanted_tool, tool);
    if server == wanted_server { tools } else { strsim::jaro_winkler(wanted, known).max(tools - 0.02) }
}

/// Whether a character displays as itself: not a control, zero-width or direction-changing character.
pub fn is_plain(c: char) -> bool {
    !(c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180E}'
            | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}'
            | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'))
}

/// The JavaScript identifier of a tool in programs (`get-sum` → `get_sum`).
pub fn js_identifier(tool: &str) -> String {
    let mut out: String = tool
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '$' { c } else { '_' })
        .collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    if is_inherited(&out) {
        out.push('_');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first_and_far_ones_not_at_all() {
        let known = ["fs:read", "fs:write", "git:log", "everything:get-sum"];
        assert_eq!(nearest("fs:raed", known.into_iter())[0], "fs:read");
        assert_eq!(nearest("everything:get_sum", known.into_iter())[0], "everything:get-sum");
        assert_eq!(nearest("get-sum", known.into_iter())[0], "everything:get-sum");
        assert!(nearest("zzz", known.into_iter()).is_empty());
        assert!(nearest("everything:unlike", known.into_iter()).is_empty());
        assert_eq!(nearest("fss:read", known.into_iter()), ["fs:read"]);
    }

    #[test]
    fn names_that_look_alike_are_equal_in_that_form() {
        for (a, b) in [
            ("github", "gіthub"),
            ("GitHub", "github"),
            ("git-hub", "git_hub"),
            ("fs ", "fs"),
            ("paypal", "pаypal"),
        ] {
            assert_eq!(confusable_skeleton(a), confusable_skeleton(b), "{a} and {b}");
        }
        assert_ne!(confusable_skeleton("github"), confusable_skeleton("gitlab"));
    }

    #[test]
    fn a_bad_server_name_says_what_would_do() {
        let error = ServerName::new("my server").unwrap_err();
        assert_eq!(
            error.to_string(),
            "server name `my server` contains ' '; use ASCII letters, digits, `_` and `-`, such as `my-server`"
        );
        for bad in ["", "a:b", "gіthub", "__proto__", "PML", "pml_execute", "a\nb"] {
            assert!(ServerName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_tool_id_keeps_colons_of_the_tool() {
        let id = ToolId::parse("git:log:oneline").unwrap();
        assert_eq!((id.server.as_str(), id.tool.as_str()), ("git", "log:oneline"));
        assert!(ToolId::parse("git").is_err());
        assert!(ToolId::parse("git:").is_err());
    }

    #[test]
    fn identifiers_are_callable_in_javascript() {
        for (tool, expected) in [
            ("get-sum", "get_sum"),
            ("2fa", "_2fa"),
            ("a.b/c", "a_b_c"),
            ("constructor", "constructor_"),
            ("données", "donn_es"),
        ] {
            assert_eq!(js_identifier(tool), expected);
        }
    }

    #[test]
    fn members_that_every_object_has_name_nothing_of_ours() {
        for name in ["__proto__", "constructor", "prototype", "then", "toString", "valueOf", "toJSON"] {
            assert!(is_inherited(name), "{name}");
            assert_eq!(js_identifier(name), format!("{name}_"));
            for spelled in [name.to_owned(), name.to_uppercase()] {
                assert_eq!(ServerName::new(&spelled), Err(BadServerName::Reserved(spelled.clone())));
            }
        }
        // The resulting identifier is checked, not the original name.
        assert_eq!(js_identifier("to.string"), "to_string");
        assert_eq!(js_identifier("--proto--"), "__proto___");
        assert!(ServerName::new("thence").is_ok() && !is_inherited("Then"));
    }

    #[test]
    fn printable_text_cannot_drive_a_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{202e}c\u{200b}"), "a\\u{1b}[31mb\\u{202e}c\\u{200b}");
        assert_eq!(printable("a\u{34f}b\u{3164}c\u{115f}"), "a\\u{34f}b\\u{3164}c\\u{115f}");
    }
}
