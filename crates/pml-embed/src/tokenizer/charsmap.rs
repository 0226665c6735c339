//! Normalisation table of SentencePiece models, from characters to replacements.
//!
//! It keeps the format of `tokenizer.json`: a length, a double-array trie of that many bytes, and the replacements,
//! each terminated by a zero byte.

use unicode_segmentation::UnicodeSegmentation;

/// Maximum bytes of a grapheme cluster; a longer one is replaced character by character, as in the reference.
const LONGEST_CLUSTER_BYTES: usize = 5;

#[derive(Debug)]
pub(crate) struct Charsmap {
    trie: Vec<u32>,
    replacements: String,
}

impl Charsmap {
    pub(crate) fn new(bytes: &[u8]) -> Result<Charsmap, String> {
        let short = || "the character map is cut short".to_owned();
        let (size, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
        let (trie, replacements) =
            rest.split_at_checked(u32::from_le_bytes(*size) as usize).ok_or_else(short)?;
        let trie = trie.chunks_exact(4).map(|unit| u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]]));
        let replacements = String::from_utf8(replacements.to_vec())
            .map_err(|_| "the replacements of the character map are not text".to_owned())?;
        Ok(Charsmap { trie: trie.collect(), replacements })
    }

    pub(crate) fn normalise(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for cluster in text.graphemes(true) {
            let whole = (cluster.len() <= LONGEST_CLUSTER_BYTES).then(|| self.replacement(cluster)).flatten();
            if let Some(replacement) = whole {
                out.push_str(replacement);
                continue;
            }
            for letter in cluster.chars() {
                match self.replacement(letter.encode_utf8(&mut [0; 4])) {
                    Some(replacement) => out.push_str(replacement),
                    None => out.push(letter),
                }
            }
        }
        out
    }

    /// Replacement of the shortest prefix of `key` that is in the table.
    fn replacement(&self, key: &str) -> Option<&str> {
        let mut place = offset(*self.trie.first()?);
        for byte in key.bytes() {
            place ^= usize::from(byte);
            let unit = *self.trie.get(place)?;
            if unit & LABEL != u32::from(byte) {
                return None;
            }
            place ^= offset(unit);
            if unit & HAS_LEAF != 0 {
                let start = (*self.trie.get(place)? & VALUE) as usize;
                return self.replacements.get(start..)?.split('\0').next();
            }
        }
        None
    }
}

/// Label bits of a unit; the highest bit is set in leaves, which have no label.
const LABEL: u32 = 0x8000_00ff;
/// Bit of a unit that has a leaf among its children.
const HAS_LEAF: u32 = 1 << 8;
/// Value bits of a leaf: the offset of the replacement.
const VALUE: u32 = 0x7fff_ffff;

fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize
}
