//! How messages become bytes: frames of a length (four bytes, little endian) and that many bytes of payload.
//!
//! Both ends use it, and neither trusts the other: a length is looked at before anything is kept for it, and what
//! cannot be read is an error, never a guess.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::message::{Delivery, Event, Program};

/// The longest payload.
pub(crate) const MOST_BYTES: usize = 16 << 20;

const HEADER_BYTES: usize = 4;

/// What the host sends. Read as [`Order`]: the two have the same form.
#[derive(Serialize)]
pub(crate) enum Sent<'a> {
    Begin(&'a Program),
    Deliver(&'a Delivery),
}

/// What the worker reads.
#[derive(Deserialize)]
pub(crate) enum Order {
    Begin(Box<Program>),
    Deliver(Delivery),
}

/// What the worker sends.
#[derive(Serialize, Deserialize)]
pub(crate) enum Said {
    /// It is behind its walls and can begin.
    Ready,
    Event(Event),
}

/// Why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("a frame of {0} bytes, more than {MOST_BYTES}")]
    Long(usize),
    #[error("a frame that is not a message: {0}")]
    Payload(postcard::Error),
}

/// Puts `message` after what is in `out`; leaves `out` as it was when the message is too long.
pub(crate) fn put(out: &mut Vec<u8>, message: &impl Serialize) -> Result<(), Error> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    *out = postcard::to_extend(message, std::mem::take(out)).map_err(Error::Payload)?;
    let bytes = out.len() - start - HEADER_BYTES;
    if bytes > MOST_BYTES {
        out.truncate(start);
        return Err(Error::Long(bytes));
    }
    let header = u32::try_from(bytes).expect("it is at most `MOST_BYTES`").to_le_bytes();
    out[start..start + HEADER_BYTES].copy_from_slice(&header);
    Ok(())
}

/// Bytes as they come in, cut into messages.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    /// Everything before has been read.
    read: usize,
}

impl Incoming {
    /// The buffer to append to, with room for at least `room` bytes.
    pub(crate) fn buffer(&mut self, room: usize) -> &mut Vec<u8> {
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.read = 0;
        } else if self.read > self.bytes.len() / 2 {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.reserve(room);
        &mut self.bytes
    }

    /// The next message, when all of it is there.
    pub(crate) fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        let rest = &self.bytes[self.read..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let bytes = u32::from_le_bytes(*header) as usize;
        if bytes > MOST_BYTES {
            return Err(Error::Long(bytes));
        }
        let Some(payload) = rest.get(..bytes) else { return Ok(None) };
        let (message, left) = postcard::take_from_bytes(payload).map_err(Error::Payload)?;
        if !left.is_empty() {
            return Err(Error::Payload(postcard::Error::DeserializeBadEncoding));
        }
        self.read += HEADER_BYTES + bytes;
        Ok(Some(message))
    }

    /// Whether there are bytes that are no message yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.read == self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(taken: u32) -> Said {
        Said::Event(Event::Quiet { taken, calls: 0, timers: 0 })
    }

    fn taken(incoming: &mut Incoming) -> Vec<u32> {
        let mut all = Vec::new();
        while let Some(said) = incoming.take::<Said>().unwrap() {
            match said {
                Said::Event(Event::Quiet { taken, .. }) => all.push(taken),
                Said::Event(_) | Said::Ready => unreachable!("only quiet was sent"),
            }
        }
        all
    }

    #[test]
    fn messages_come_out_whole_however_they_are_cut() {
        let mut bytes = Vec::new();
        for number in [1, 300, 70_000] {
            put(&mut bytes, &quiet(number)).unwrap();
        }
        for step in 1..=bytes.len() {
            let mut incoming = Incoming::default();
            let mut all = Vec::new();
            for piece in bytes.chunks(step) {
                incoming.buffer(piece.len()).extend_from_slice(piece);
                all.extend(taken(&mut incoming));
            }
            assert_eq!(all, [1, 300, 70_000], "in pieces of {step}");
            assert!(incoming.is_empty());
        }
    }

    #[test]
    fn a_length_is_refused_before_its_bytes_come() {
        let mut incoming = Incoming::default();
        incoming.buffer(4).extend_from_slice(&(1_u32 << 31).to_le_bytes());
        assert_eq!(incoming.take::<Said>().err(), Some(Error::Long(1 << 31)));
    }

    #[test]
    fn bytes_left_over_in_a_frame_are_an_error() {
        let mut bytes = Vec::new();
        put(&mut bytes, &Said::Ready).unwrap();
        bytes[0] += 1;
        bytes.push(0);
        let mut incoming = Incoming::default();
        incoming.buffer(bytes.len()).extend_from_slice(&bytes);
        assert!(incoming.take::<Said>().is_err());
    }

    #[test]
    fn a_message_that_is_too_long_is_not_sent() {
        let mut out = vec![1, 2];
        let text = "x".repeat(MOST_BYTES);
        let error = put(&mut out, &Said::Event(Event::Hint { json: text })).err();
        assert!(matches!(error, Some(Error::Long(_))));
        assert_eq!(out, [1, 2]);
    }
}
