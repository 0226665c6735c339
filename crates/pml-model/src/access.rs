//! What the holder of a client key, or a person, may do: a role, a scope, an expiry and a budget.
//!
//! A role says which kinds of requests are admitted. It never widens whose rows they see: that is the principal's matter.

use serde::{Deserialize, Serialize};

use crate::{Principal, ToolId};

/// What kinds of requests are admitted. Each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Finds and runs things, and reads what became of them.
    Agent,
    /// Manages what was learned, too.
    Member,
    /// Answers questions and revokes rules, too.
    Approver,
    /// Manages the gateway, too: restarts servers, reads figures of everybody.
    Admin,
}

impl Role {
    /// Every role, the least first.
    pub const ALL: [Role; 4] = [Role::Agent, Role::Member, Role::Approver, Role::Admin];

    /// The text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::Member => "member",
            Role::Approver => "approver",
            Role::Admin => "admin",
        }
    }

    /// The role with this text form.
    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a client key permits. It is stored as JSON, so that a key made by one version is read by every later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyRights {
    /// The role of its holder.
    pub role: Role,
    /// The tools that it reaches.
    #[serde(default, skip_serializing_if = "ToolScope::is_everything")]
    pub tools: ToolScope,
    /// When it expires, in milliseconds since the Unix epoch; `None` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// What it may use up.
    #[serde(default, skip_serializing_if = "KeyBudget::is_unlimited")]
    pub budget: KeyBudget,
}

impl KeyRights {
    /// The rights of a role, without any restriction.
    pub fn of_role(role: Role) -> KeyRights {
        KeyRights { role, tools: ToolScope::default(), expires_at: None, budget: KeyBudget::default() }
    }

    /// Whether the key has expired.
    pub fn is_expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// A set of tools: `server:tool`, or `server:*` for all tools of a server. Empty for every tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolScope(Vec<String>);

/// The error for a text that names no tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no tools: write `server:tool`, or `server:*` for all tools of a server")]
pub struct BadToolScope(String);

impl ToolScope {
    /// The scope of these names.
    ///
    /// # Errors
    /// One of them is no name of tools.
    pub fn parse(names: impl IntoIterator<Item = String>) -> Result<ToolScope, BadToolScope> {
        let mut all: Vec<String> = Vec::new();
        for name in names {
            if ToolId::parse(&name).is_err() {
                return Err(BadToolScope(crate::name::printable(&name)));
            }
            if !all.contains(&name) {
                all.push(name);
            }
        }
        Ok(ToolScope(all))
    }

    /// Whether it holds every tool.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it holds the tool.
    pub fn holds(&self, tool: &ToolId) -> bool {
        self.is_everything()
            || self.0.iter().any(|name| {
                name.split_once(':').is_some_and(|(server, named)| {
                    server == tool.server.as_str() && (named == "*" || named == tool.tool)
                })
            })
    }

    /// Whether it holds any tool of the server.
    pub fn holds_some_of(&self, server: &str) -> bool {
        self.is_everything()
            || self.0.iter().any(|name| name.split_once(':').is_some_and(|(named, _)| named == server))
    }

    /// Whether it holds everything that the server offers, now and later.
    pub fn holds_all_of(&self, server: &str) -> bool {
        self.is_everything() || self.0.iter().any(|name| name.strip_suffix(":*") == Some(server))
    }

    /// The names, as given.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

/// What a key may use up. `None` is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyBudget {
    /// Runs that are under way at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_at_once: Option<u32>,
    /// Tool calls in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_minute: Option<u32>,
    /// Seconds of processor time that programs use in 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds_per_day: Option<u32>,
    /// Bytes that the records of its runs take in the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
}

impl KeyBudget {
    /// Whether there is no limit.
    pub fn is_unlimited(&self) -> bool {
        *self == KeyBudget::default()
    }
}

/// The most characters of the name of a principal.
const MAX_PRINCIPAL_CHARACTERS: usize = 64;

/// The error for a text that is no name of a principal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name for a person: it has 1 to {MAX_PRINCIPAL_CHARACTERS} lower-case letters, digits, `.`, `_`, `-` and `@`, and begins with a letter or digit"
)]
pub struct BadPrincipal(String);

impl Principal {
    /// The principal with this name. Names are lower case, so that no two people have names that look the same.
    ///
    /// # Errors
    /// The text is no name.
    pub fn parse(name: &str) -> Result<Principal, BadPrincipal> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let inner = |byte: u8| plain(byte) || matches!(byte, b'.' | b'_' | b'-' | b'@');
        let good = name.len() <= MAX_PRINCIPAL_CHARACTERS
            && name.bytes().next().is_some_and(plain)
            && name.bytes().all(inner);
        match good {
            true => Ok(Principal(name.to_owned())),
            false => Err(BadPrincipal(crate::name::printable(name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(text: &str) -> ToolId {
        ToolId::parse(text).unwrap()
    }

    #[test]
    fn roles_are_read_as_written_and_each_may_more_than_the_one_before() {
        for (place, role) in Role::ALL.into_iter().enumerate() {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert!(Role::ALL[..place].iter().all(|lesser| *lesser < role));
        }
        assert_eq!(Role::parse("root"), None);
    }

    #[test]
    fn a_scope_holds_what_it_names_and_nothing_else() {
        let scope = ToolScope::parse(["fs:read".to_owned(), "git:*".to_owned()]).unwrap();
        for held in ["fs:read", "git:log", "git:status"] {
            assert!(scope.holds(&tool(held)), "{held}");
        }
        for other in ["fs:write", "fs:reader", "gi:t", "github:log"] {
            assert!(!scope.holds(&tool(other)), "{other}");
        }
        assert!(scope.holds_some_of("fs") && !scope.holds_all_of("fs") && scope.holds_all_of("git"));
        assert!(!scope.holds_some_of("time"));
        assert!(ToolScope::default().holds(&tool("any:thing")) && ToolScope::default().holds_all_of("any"));
        for bad in ["fs", "", ":read", "fs:", "f s:read"] {
            assert!(ToolScope::parse([bad.to_owned()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn rights_are_small_where_nothing_is_restricted_and_are_read_again() {
        let plain = serde_json::to_string(&KeyRights::of_role(Role::Agent)).unwrap();
        assert_eq!(plain, r#"{"role":"agent"}"#);
        let budget = KeyBudget { runs_at_once: Some(2), ..KeyBudget::default() };
        let tools = ToolScope::parse(["fs:*".to_owned()]).unwrap();
        let rights = KeyRights { role: Role::Member, tools, expires_at: Some(7), budget };
        let text = serde_json::to_string(&rights).unwrap();
        assert_eq!(serde_json::from_str::<KeyRights>(&text).unwrap(), rights);
        assert!(!rights.is_expired(6) && rights.is_expired(7));
    }

    #[test]
    fn names_of_principals_cannot_be_mistaken() {
        for good in ["ann", "bob.smith", "a@example.org", "7", "local"] {
            assert_eq!(Principal::parse(good).unwrap().0, good);
        }
        for bad in ["", "Ann", "-x", ".a", "a b", "a/b", "a\n", "ä", &"x".repeat(65)] {
            assert!(Principal::parse(bad).is_err(), "{bad:?}");
        }
    }
}
