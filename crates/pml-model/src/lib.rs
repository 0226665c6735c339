//! The domain types that PML's crates share, with their invariants.
//!
//! Nothing here reads a file, a clock or a socket. Constructors validate, so every value of these types is valid, and
//! it means the same in every crate.

mod access;
pub mod capability;
mod error_code;
pub mod exploration;
mod explored_path;
mod id;
pub mod json;
mod keeping;
pub mod learning;
pub mod mocks;
pub mod name;
pub mod observed;
mod paths;
pub mod question;
pub mod run;
pub mod structure;
pub mod tool;
pub mod trace;
pub mod version;
mod visibility;

pub use access::{BadPrincipal, BadToolScope, KeyBudget, KeyRights, Role, ToolScope};
pub use error_code::ErrorCode;
pub use id::CapabilityId;
pub use name::{ServerName, ToolId};
pub use run::{RunId, RunState};
pub use tool::{Annotations, Definition, Digest};
pub use trace::TraceId;
pub use visibility::{Membership, Publication, Visibility};

/// Who acts: a user or a key; `local` on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Principal(pub String);

impl Principal {
    /// The only principal of a machine without client keys.
    pub fn local() -> Principal {
        Principal("local".to_owned())
    }
}

/// Number of a client key. Numbers are not secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct KeyId(pub i64);

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::fmt::Display for Principal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
