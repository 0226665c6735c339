//! Marks for unsealed rows: without the key nobody can insert or alter such a row unnoticed.

use ring::{hkdf, hmac};

use super::KEY_BYTES;

/// The key that makes the marks of one kind of row.
pub(crate) struct MarkKey(hmac::Key);

impl MarkKey {
    /// Derives a separate key for each `purpose`. None reveals anything about the others or about the secret.
    pub(super) fn derive(secret: &[u8; KEY_BYTES], purpose: &'static str) -> MarkKey {
        let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, b"pml").extract(secret);
        let purpose = [purpose.as_bytes()];
        let key = secret
            .expand(&purpose, hkdf::HKDF_SHA256.hmac_algorithm())
            .expect("a key has the length of one digest");
        MarkKey(key.into())
    }

    /// Begins the mark of a row whose values come one by one. Rows are checked by the thousand, so nothing is copied.
    pub(crate) fn begin(&self) -> RowMarkBuilder {
        RowMarkBuilder { mac: hmac::Context::with_key(&self.0), pending: [0; PENDING_BYTES], length: 0 }
    }

    /// The mark of a row with this content, as 64 hexadecimal digits.
    pub(crate) fn mark(&self, row: &AuthenticatedData) -> String {
        let tag = hmac::sign(&self.0, &row.0);
        tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The number of bytes that are collected before they are hashed together.
const PENDING_BYTES: usize = 256;

/// The mark of a row under construction. Values are encoded as in [`AuthenticatedData`].
pub(crate) struct RowMarkBuilder {
    mac: hmac::Context,
    /// Short values, to be hashed together: most values of a row are shorter than a call of the hash function is worth.
    pending: [u8; PENDING_BYTES],
    length: usize,
}

impl RowMarkBuilder {
    pub(crate) fn bytes(&mut self, word: &[u8]) {
        self.add(&(word.len() as u64).to_le_bytes());
        self.add(word);
    }

    pub(crate) fn number(&mut self, number: i64) {
        self.add(&number.to_le_bytes());
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some(free) = self.pending.get_mut(self.length..self.length + bytes.len()) {
            free.copy_from_slice(bytes);
            self.length += bytes.len();
            return;
        }
        self.mac.update(&self.pending[..self.length]);
        self.length = 0;
        match self.pending.get_mut(..bytes.len()) {
            Some(free) => {
                free.copy_from_slice(bytes);
                self.length = bytes.len();
            }
            None => self.mac.update(bytes),
        }
    }

    /// The first 16 bytes of the mark: enough, because nobody can try out marks by the million.
    pub(crate) fn finish(mut self) -> [u8; 16] {
        self.mac.update(&self.pending[..self.length]);
        let tag = self.mac.sign();
        *tag.as_ref().first_chunk().expect("the tag has 32 bytes")
    }
}

/// Texts and numbers of a row, encoded with their lengths so that no two rows have the same encoding.
pub(crate) struct AuthenticatedData(pub(super) Vec<u8>);

impl AuthenticatedData {
    pub(crate) fn new() -> AuthenticatedData {
        AuthenticatedData(Vec::with_capacity(256))
    }

    pub(crate) fn text(mut self, word: impl AsRef<[u8]>) -> AuthenticatedData {
        let word = word.as_ref();
        self.0.extend_from_slice(&(word.len() as u64).to_le_bytes());
        self.0.extend_from_slice(word);
        self
    }

    pub(crate) fn number(mut self, number: i64) -> AuthenticatedData {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Adds a text that may be missing.
    pub(crate) fn optional(mut self, word: Option<impl AsRef<[u8]>>) -> AuthenticatedData {
        self.0.push(u8::from(word.is_some()));
        match word {
            Some(word) => self.text(word),
            None => self,
        }
    }
}
