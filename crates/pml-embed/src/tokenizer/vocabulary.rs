//! Vocabulary: pieces by id and by text.
//!
//! The list stays the text it was read from, one piece per line, with a hash table of ids: a map of strings would take
//! ten times the memory and most of the time to load a model.

use std::borrow::Cow;

/// An empty entry of the table.
const FREE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Vocabulary {
    text: Cow<'static, str>,
    /// Offset of each piece, and the end of the last one.
    starts: Vec<u32>,
    /// Open-addressing hash table of piece ids.
    table: Vec<u32>,
    /// Length of the longest piece, in bytes.
    longest: usize,
}

impl Vocabulary {
    pub(crate) fn new(text: Cow<'static, str>) -> Result<Vocabulary, String> {
        let end = u32::try_from(text.len() + 1).map_err(|_| "the vocabulary is too long".to_owned())?;
        let mut starts = vec![0];
        for (at, byte) in text.bytes().enumerate() {
            if byte == b'\n' {
                starts.push(at as u32 + 1);
            }
        }
        // A final line break is not followed by another piece.
        if !text.ends_with('\n') {
            starts.push(end);
        }
        let table = vec![FREE; (starts.len() * 2).next_power_of_two()];
        let mut made = Vocabulary { text, starts, table, longest: 0 };
        for id in 0..made.len() as u32 {
            let place = made.place("", made.piece(id));
            // Of two equal pieces the later one wins.
            made.table[place] = id;
            made.longest = made.longest.max(made.piece(id).len());
        }
        Ok(made)
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    fn piece(&self, id: u32) -> &str {
        &self.text[self.starts[id as usize] as usize..self.starts[id as usize + 1] as usize - 1]
    }

    /// Id of the piece that is `prefix` followed by `rest`.
    pub(crate) fn find(&self, prefix: &str, rest: &str) -> Option<u32> {
        let found = self.table[self.place(prefix, rest)];
        (found != FREE).then_some(found)
    }

    /// Index in the table where a piece is, or would be inserted.
    fn place(&self, prefix: &str, rest: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut place = hash(prefix, rest) & mask;
        while self.table[place] != FREE && self.piece(self.table[place]).strip_prefix(prefix) != Some(rest) {
            place = (place + 1) & mask;
        }
        place
    }
}

/// FNV-1a, with the upper half folded into the lower, the only one that is used.
fn hash(prefix: &str, rest: &str) -> usize {
    let hash = prefix
        .bytes()
        .chain(rest.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (hash ^ (hash >> 32)) as usize
}
