//! The key that signs packages. Others check signatures with its public half, which names this database to them.

use ring::hkdf;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use super::KEY_BYTES;

/// Signs packages. It is derived from the master key, so it is the same in every process and after every start.
pub(crate) struct PackageKey(Ed25519KeyPair);

/// The length of the secret that an Ed25519 key is made of.
struct SeedLength;

impl hkdf::KeyType for SeedLength {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

impl PackageKey {
    pub(super) fn derive(secret: &[u8; KEY_BYTES]) -> PackageKey {
        let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, b"pml").extract(secret);
        let mut seed = [0; KEY_BYTES];
        secret
            .expand(&[b"package"], SeedLength)
            .and_then(|expanded| expanded.fill(&mut seed))
            .expect("a seed is shorter than what can be made");
        PackageKey(Ed25519KeyPair::from_seed_unchecked(&seed).expect("every seed of this length makes a key"))
    }

    pub(crate) fn public(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    pub(crate) fn sign(&self, content: &[u8]) -> Vec<u8> {
        self.0.sign(content).as_ref().to_vec()
    }
}

/// Whether the holder of the public key's other half signed this content.
pub(crate) fn is_signed(public: &[u8], content: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ED25519, public).verify(content, signature).is_ok()
}
