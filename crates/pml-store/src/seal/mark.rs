//! Marks for rows that stand in the open: whoever lacks the key can neither make nor alter such a row
//! unnoticed.

use ring::{hkdf, hmac};

use super::KEY_BYTES;

/// What makes the marks of one kind of row.
pub(crate) struct Marks(hmac::Key);

impl Marks {
    /// A key of its own for each `purpose`, none of which tells anything of the others or of the secret.
    pub(super) fn derive(secret: &[u8; KEY_BYTES], purpose: &'static str) -> Marks {
        let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, b"pml").extract(secret);
        let purpose = [purpose.as_bytes()];
        let key = secret
            .expand(&purpose, hkdf::HKDF_SHA256.hmac_algorithm())
            .expect("a key has the length of one digest");
        Marks(key.into())
    }

    /// Begins the mark of a row whose values come one by one. Rows are checked by the thousand, so nothing is copied.
    pub(crate) fn begin(&self) -> RowMark {
        RowMark(hmac::Context::with_key(&self.0))
    }

    /// The mark of a row that reads so, as 64 hexadecimal digits.
    pub(crate) fn mark(&self, row: &Words) -> String {
        let tag = hmac::sign(&self.0, &row.0);
        tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The mark of a row, in the making. Values are spelled as those of [`Words`].
pub(crate) struct RowMark(hmac::Context);

impl RowMark {
    pub(crate) fn word(&mut self, word: &[u8]) {
        self.0.update(&(word.len() as u64).to_le_bytes());
        self.0.update(word);
    }

    pub(crate) fn number(&mut self, number: i64) {
        self.0.update(&number.to_le_bytes());
    }

    /// The first half of the mark, which is long enough where nobody can try marks out by the million.
    pub(crate) fn short(self) -> [u8; 16] {
        let tag = self.0.sign();
        *tag.as_ref().first_chunk().expect("the tag has 32 bytes")
    }
}

/// Words and numbers in a row, spelled so that no two rows are spelled alike.
pub(crate) struct Words(pub(super) Vec<u8>);

impl Words {
    pub(crate) fn new() -> Words {
        Words(Vec::with_capacity(256))
    }

    pub(crate) fn word(mut self, word: impl AsRef<[u8]>) -> Words {
        let word = word.as_ref();
        self.0.extend_from_slice(&(word.len() as u64).to_le_bytes());
        self.0.extend_from_slice(word);
        self
    }

    pub(crate) fn number(mut self, number: i64) -> Words {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// A word that may be missing.
    pub(crate) fn maybe(mut self, word: Option<impl AsRef<[u8]>>) -> Words {
        self.0.push(u8::from(word.is_some()));
        match word {
            Some(word) => self.word(word),
            None => self,
        }
    }
}
