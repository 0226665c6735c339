//! Text in chunks, so that a large part is never copied into a whole.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

/// Minimum size in bytes of a part that keeps its own memory. Smaller parts are copied together, because a write costs
/// more than copying them.
const SHARED_BYTES: usize = 64 * 1024;

/// Text in chunks that are written one after the other.
#[derive(Debug, Default)]
pub(crate) struct ChunkedText {
    before: Vec<Bytes>,
    last: Vec<u8>,
}

impl ChunkedText {
    /// Appends a copy of `text`.
    pub(crate) fn push(&mut self, text: &str) {
        self.last.extend_from_slice(text.as_bytes());
    }

    /// Appends `value` as JSON.
    pub(crate) fn push_json(&mut self, value: &impl Serialize) {
        serde_json::to_writer(&mut self.last, value).expect("types of this program serialise to JSON");
    }

    /// Appends `part`, which keeps its memory if it is large.
    pub(crate) fn share(&mut self, part: Bytes) {
        if part.len() < SHARED_BYTES {
            self.last.extend_from_slice(&part);
            return;
        }
        if !self.last.is_empty() {
            self.before.push(std::mem::take(&mut self.last).into());
        }
        self.before.push(part);
    }

    /// Appends `part`. If it is large and lies within `source`, it shares that memory.
    pub(crate) fn share_part(&mut self, source: &Bytes, part: &str) {
        if part.len() >= SHARED_BYTES && source.as_ptr_range().contains(&part.as_ptr()) {
            self.share(source.slice_ref(part.as_bytes()));
        } else {
            self.push(part);
        }
    }

    /// Appends all of `other`.
    pub(crate) fn append(&mut self, other: ChunkedText) {
        other.before.into_iter().for_each(|piece| self.share(piece));
        if self.last.is_empty() {
            self.last = other.last;
        } else {
            self.last.extend_from_slice(&other.last);
        }
    }

    /// Total number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.before.iter().map(Bytes::len).sum::<usize>() + self.last.len()
    }

    /// The text in chunks of at most `limit` bytes, so that the writer need not hold more.
    pub(crate) fn into_parts(self, limit: usize) -> impl Iterator<Item = Bytes> {
        let last = Some(Bytes::from(self.last)).filter(|last| !last.is_empty());
        self.before.into_iter().chain(last).flat_map(move |mut piece| {
            std::iter::from_fn(move || {
                let part = piece.split_to(piece.len().min(limit));
                (!part.is_empty()).then_some(part)
            })
        })
    }
}

impl From<String> for ChunkedText {
    fn from(text: String) -> ChunkedText {
        ChunkedText { before: Vec::new(), last: text.into_bytes() }
    }
}

impl From<Box<RawValue>> for ChunkedText {
    /// The value, on one line.
    fn from(value: Box<RawValue>) -> ChunkedText {
        let mut pieces = ChunkedText::default();
        pieces.share(to_one_line(value));
        pieces
    }
}

/// Replaces the line breaks between the tokens of a value, in place.
pub(crate) fn to_one_line(value: Box<RawValue>) -> Bytes {
    let mut text = String::from(Box::<str>::from(value)).into_bytes();
    for byte in &mut text {
        // Within a JSON string a line break is written as an escape, so any raw one lies between tokens.
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    Bytes::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: ChunkedText, limit: usize) -> String {
        let length = pieces.len();
        let parts: Vec<Bytes> = pieces.into_parts(limit).collect();
        assert!(parts.iter().all(|part| !part.is_empty() && part.len() <= limit));
        assert_eq!(parts.iter().map(Bytes::len).sum::<usize>(), length);
        String::from_utf8(parts.concat()).unwrap()
    }

    #[test]
    fn small_parts_become_one_piece() {
        let mut pieces = ChunkedText::from("a".to_owned());
        pieces.share(Bytes::from_static(b"b"));
        pieces.append(ChunkedText::from("c".to_owned()));
        assert_eq!(pieces.into_parts(10).collect::<Vec<_>>(), [Bytes::from_static(b"abc")]);
        assert_eq!(ChunkedText::default().into_parts(10).count(), 0);
    }

    #[test]
    fn a_large_part_stays_where_it_is_and_the_order_holds() {
        let large = Bytes::from("x".repeat(SHARED_BYTES));
        let mut inner = ChunkedText::from("b".to_owned());
        inner.share(large.clone());
        inner.push("c");
        let mut pieces = ChunkedText::from("a".to_owned());
        pieces.append(inner);
        pieces.push("d");
        assert_eq!(pieces.before[1].as_ptr(), large.as_ptr());
        assert_eq!(text(pieces, 1000), format!("ab{}cd", "x".repeat(SHARED_BYTES)));
    }

    #[test]
    fn only_what_lies_in_the_source_is_shared() {
        let source = Bytes::from("y".repeat(2 * SHARED_BYTES));
        let (inside, elsewhere) = (std::str::from_utf8(&source[7..]).unwrap(), "z".repeat(SHARED_BYTES));
        let mut pieces = ChunkedText::default();
        pieces.share_part(&source, inside);
        pieces.share_part(&source, &elsewhere);
        assert_eq!(pieces.before[0].as_ptr(), inside.as_ptr());
        assert_eq!(text(pieces, usize::MAX), format!("{inside}{elsewhere}"));
    }

    #[test]
    fn a_value_is_brought_onto_one_line_in_place() {
        let value = RawValue::from_string("{\r\n \"a\\n\": 1\n}".to_owned()).unwrap();
        let at = value.get().as_ptr();
        let line = to_one_line(value);
        assert_eq!(line, "{   \"a\\n\": 1 }");
        assert_eq!(line.as_ptr(), at);
    }
}
