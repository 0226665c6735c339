//! Identity of a program: hashes of its canonical form and of its source.
//!
//! The canonical form is made in `emit`, from the tree that runs.

use sha2::{Digest, Sha256};

use crate::analysis::ProgramIdentity;

/// Version of the rules for identities and structures. It increases whenever the same source would get another
/// identity, so that stored programs can be identified anew from their source. It also increases whenever an intent
/// would be read as having another place in a program: served intents are checked once per version.
pub const ANALYSIS_VERSION: u32 = 1;

/// The identity of the program `source` with canonical form `canonical`.
pub(crate) fn compute_identity(source: &str, canonical: &str) -> ProgramIdentity {
    ProgramIdentity {
        identity: sha256(canonical),
        code_hash: sha256(source),
        analysis_version: ANALYSIS_VERSION,
    }
}

fn sha256(text: &str) -> String {
    let digits = Sha256::digest(text).into_iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
    digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::compute_identity;

    #[test]
    fn layout_changes_the_code_hash_alone() {
        let one = compute_identity("return 1", "return 1");
        let other = compute_identity("return  1;", "return 1");
        assert_eq!(one.identity, other.identity);
        assert_ne!(one.code_hash, other.code_hash);
        assert_eq!(
            one.code_hash, "486d9affb60dbb0063b03d8e23a6ccf6364ce203dc3a9f56f20e750eb41ecade",
            "SHA-256 in lower-case hexadecimal"
        );
    }
}
