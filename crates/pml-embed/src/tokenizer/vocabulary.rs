//! The pieces a model knows, by number and by text.
//!
//! The list stays the text it came as, one piece a line, and is looked up through one table of numbers: a
//! map of strings would cost ten times the room and most of the time it takes to have a model ready.

use std::borrow::Cow;

/// A place of the table that holds no piece.
const FREE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Vocabulary {
    text: Cow<'static, str>,
    /// Where each piece begins, and where one more would.
    starts: Vec<u32>,
    /// Numbers of pieces at the places their hashes say, or the next free one.
    table: Vec<u32>,
    /// Bytes of the longest piece.
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
        // Text that ends with a line break has no piece after it.
        if !text.ends_with('\n') {
            starts.push(end);
        }
        let table = vec![FREE; (starts.len() * 2).next_power_of_two()];
        let mut made = Vocabulary { text, starts, table, longest: 0 };
        for id in 0..made.len() as u32 {
            let place = made.place("", made.piece(id));
            // Of two pieces that are the same, the later one counts.
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

    /// The number of the piece that is `prefix` and `rest`.
    pub(crate) fn find(&self, prefix: &str, rest: &str) -> Option<u32> {
        let found = self.table[self.place(prefix, rest)];
        (found != FREE).then_some(found)
    }

    /// Where in the table a piece is, or would be.
    fn place(&self, prefix: &str, rest: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut place = hash(prefix, rest) & mask;
        while self.table[place] != FREE && self.piece(self.table[place]).strip_prefix(prefix) != Some(rest) {
            place = (place + 1) & mask;
        }
        place
    }
}

/// FNV-1a, with its upper half folded into the lower, which alone is used.
fn hash(prefix: &str, rest: &str) -> usize {
    let hash = prefix
        .bytes()
        .chain(rest.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (hash ^ (hash >> 32)) as usize
}
