//! The ids of capabilities, which traces and capabilities both refer to.

use serde::{Deserialize, Serialize};

use crate::{Digest, Principal};

/// The name of a capability that never changes: a hash of whose it is and what it is, so that it is known before there
/// is one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CapabilityId(String);

/// Not the id of a capability.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a capability: it looks like `cap_` and 32 hexadecimal digits")]
pub struct NoCapabilityId(String);

impl CapabilityId {
    /// The id of what `principal` has under this identity.
    pub fn of(principal: &Principal, identity: &str) -> CapabilityId {
        let digest = Digest::of(format!("{principal}\n{identity}").as_bytes());
        CapabilityId(format!("cap_{}", &digest.as_str()[..32]))
    }

    /// Reads an id as it is written.
    ///
    /// # Errors
    /// It is not written like one.
    pub fn parse(text: &str) -> Result<CapabilityId, NoCapabilityId> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.strip_prefix("cap_") {
            Some(digits) if digits.len() == 32 && digits.bytes().all(is_digit) => {
                Ok(CapabilityId(text.to_owned()))
            }
            _ => Err(NoCapabilityId(crate::name::printable(text))),
        }
    }

    /// As it is written.
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
