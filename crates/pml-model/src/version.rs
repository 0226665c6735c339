//! Versions of capabilities, and the names by which they are known elsewhere.
//!
//! A capability is identified by its id alone. Its name, its version and its qualified name are for people.

use serde::Serialize;

use crate::{CapabilityId, Principal, ToolId};

/// Separates the name of a capability from the number of a version that is not in force.
const MARK: char = '@';
/// The project of every capability, as long as there are no others.
const PROJECT: &str = "default";
/// The namespace of a capability that calls no tool.
const NO_TOOLS: &str = "code";
/// The prefix of ids, which qualified names leave out.
const ID_PREFIX: &str = "cap_";
/// The number of digits of the hash that people are shown.
const SHOWN_DIGITS: usize = 8;

/// One of the versions of a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityVersion {
    /// Its number, from 1.
    pub version: u32,
    /// The capability that it is.
    pub id: CapabilityId,
    /// The name that runs this version: that of the capability for the one in force, with `@` and the number for others.
    pub name: String,
    /// When it became a version, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// Why it was offered, if nobody has put it in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_because: Option<String>,
}

impl CapabilityVersion {
    /// Whether the name of the capability stands for this version.
    pub fn is_current(&self) -> bool {
        is_current_name(&self.name)
    }
}

/// The name of a version that is not in force.
pub fn version_name(name: &str, version: u32) -> String {
    format!("{name}{MARK}{version}")
}

/// The name and the number in the name of a version; `None` for any other text.
pub fn parse_version_name(text: &str) -> Option<(&str, u32)> {
    let (name, version) = text.rsplit_once(MARK)?;
    Some((name, version.parse().ok()?))
}

/// Whether this is the name of a capability that is in force.
pub fn is_current_name(name: &str) -> bool {
    !name.contains(MARK)
}

/// `org.project.namespace.action.hash`: whose it is, what it works with, what it does, and which procedure it is. The hash
/// alone identifies it.
pub fn qualified_name(owner: &Principal, tools: &[&str], name: &str, id: &CapabilityId) -> String {
    let servers =
        tools.iter().filter_map(|tool| ToolId::parse(tool).ok()).map(|tool| tool.server.to_string());
    let namespace = servers.min().unwrap_or_else(|| NO_TOOLS.to_owned());
    let action = parse_version_name(name).map_or(name, |(name, _)| name);
    let hash = id.as_str().strip_prefix(ID_PREFIX).unwrap_or(id.as_str());
    format!("{}.{PROJECT}.{}.{}.{hash}", segment(&owner.0), segment(&namespace), segment(action))
}

/// The qualified name with as much of its hash as people are shown.
pub fn short_qualified_name(qualified: &str) -> &str {
    match qualified.rfind('.') {
        Some(dot) => qualified.get(..dot + 1 + SHOWN_DIGITS).unwrap_or(qualified),
        None => qualified,
    }
}

/// The id of the capability with this qualified name.
pub fn parse_qualified_name(text: &str) -> Option<CapabilityId> {
    let segments: Vec<&str> = text.split('.').collect();
    match segments.as_slice() {
        [_, _, _, _, hash] => CapabilityId::parse(&format!("{ID_PREFIX}{hash}")).ok(),
        _ => None,
    }
}

/// The text as a segment of a qualified name, in which dots separate.
fn segment(text: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qualified_name_is_readable_and_leads_to_its_capability() {
        let ann = Principal("ann@example.org".to_owned());
        let id = CapabilityId::of(&ann, "identity");
        let name = qualified_name(&ann, &["git:log", "fs:read"], "wordCount@2", &id);
        assert!(name.starts_with("ann_example_org.default.fs.wordCount."), "{name}");
        assert_eq!(parse_qualified_name(&name), Some(id.clone()));
        assert_eq!(short_qualified_name(&name).len(), name.len() - 24);
        assert!(qualified_name(&ann, &[], "add", &id).contains(".code.add."));
        for wrong in ["wordCount", "a.b.c.d.e", "a.b.c.d.e.f", ""] {
            assert_eq!(parse_qualified_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_name_of_a_version_is_no_name_of_a_capability_in_force() {
        assert_eq!(parse_version_name(&version_name("wordCount", 3)), Some(("wordCount", 3)));
        assert!(is_current_name("wordCount") && !is_current_name("wordCount@3"));
        assert_eq!(parse_version_name("wordCount@x"), None);
    }
}
