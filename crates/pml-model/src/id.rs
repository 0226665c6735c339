//! Ids of capabilities, shared by traces and capabilities.

use serde::{Deserialize, Serialize};

use crate::{Digest, Principal};

/// Stable id of a capability: a hash of its owner and its identity. It is therefore known before the capability
/// exists.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CapabilityId(String);

/// The error for a text that is not a capability id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a capability: it looks like `cap_` and 32 hexadecimal digits")]
pub struct BadCapabilityId(String);

impl CapabilityId {
    /// Id of the capability with this `identity` that belongs to `principal`.
    pub fn of(principal: &Principal, identity: &str) -> CapabilityId {
        let digest = Digest::of(format!("{principal}\n{identity}").as_bytes());
        CapabilityId(format!("cap_{}", &digest.as_str()[..32]))
    }

    /// Parses the text form.
    ///
    /// # Errors
    /// The text does not have the form of an id.
    pub fn parse(text: &str) -> Result<CapabilityId, BadCapabilityId> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.strip_prefix("cap_") {
            Some(digits) if digits.len() == 32 && digits.bytes().all(is_digit) => {
                Ok(CapabilityId(text.to_owned()))
            }
            _ => Err(BadCapabilityId(crate::name::printable(text))),
        }
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for CapabilityId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_whose_and_what() {
        let mine = CapabilityId::of(&Principal::local(), "abc");
        assert_eq!(CapabilityId::parse(mine.as_str()), Ok(mine.clone()));
        assert_ne!(mine, CapabilityId::of(&Principal("other".to_owned()), "abc"));
        assert_ne!(mine, CapabilityId::of(&Principal::local(), "abd"));
        assert!(CapabilityId::parse("cap_12").is_err());
    }
}
