//! Framing of messages: a length (four bytes, little endian) and that many bytes of payload.
//!
//! Both ends use it, and neither trusts the other: a length is checked before memory is reserved for it, and malformed
//! bytes are an error.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::message::{Delivery, SandboxProgram, WorkerEvent};

/// Maximum size of a payload, in bytes.
pub(crate) const MOST_BYTES: usize = 16 << 20;

/// Bytes of the length before each payload.
const HEADER_BYTES: usize = 4;

/// Message of the host, borrowed for sending. It has the same encoding as [`HostMessage`].
#[derive(Serialize)]
pub(crate) enum HostMessageRef<'a> {
    Begin(&'a SandboxProgram),
    Deliver(&'a Delivery),
}

/// Message of the host, as the worker reads it.
#[derive(Deserialize)]
pub(crate) enum HostMessage {
    Begin(Box<SandboxProgram>),
    Deliver(Delivery),
}

/// Message of the worker.
#[derive(Serialize, Deserialize)]
pub(crate) enum WorkerMessage {
    /// The worker is confined and ready to begin.
    Ready,
    Event(WorkerEvent),
}

/// Reason why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("a frame of {0} bytes, more than {MOST_BYTES}")]
    TooLong(usize),
    #[error("a frame that is not a message: {0}")]
    Payload(postcard::Error),
}

/// Appends `message` to `out`. Leaves `out` unchanged when the message is too long.
pub(crate) fn encode_message(out: &mut Vec<u8>, message: &impl Serialize) -> Result<(), WireError> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    *out = postcard::to_extend(message, std::mem::take(out)).map_err(WireError::Payload)?;
    let bytes = out.len() - start - HEADER_BYTES;
    if bytes > MOST_BYTES {
        out.truncate(start);
        return Err(WireError::TooLong(bytes));
    }
    let header = u32::try_from(bytes).expect("it is at most `MOST_BYTES`").to_le_bytes();
    out[start..start + HEADER_BYTES].copy_from_slice(&header);
    Ok(())
}

/// Splits incoming bytes into messages.
#[derive(Debug, Default)]
pub(crate) struct MessageDecoder {
    bytes: Vec<u8>,
    /// Bytes before this offset have been decoded.
    read: usize,
}

impl MessageDecoder {
    /// The buffer to append to, with room for at least `room` bytes.
    pub(crate) fn read_buffer(&mut self, room: usize) -> &mut Vec<u8> {
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

    /// The next message, or None when it is not complete yet.
    pub(crate) fn next_message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, WireError> {
        let rest = &self.bytes[self.read..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let bytes = u32::from_le_bytes(*header) as usize;
        if bytes > MOST_BYTES {
            return Err(WireError::TooLong(bytes));
        }
        let Some(payload) = rest.get(..bytes) else { return Ok(None) };
        let (message, left) = postcard::take_from_bytes(payload).map_err(WireError::Payload)?;
        if !left.is_empty() {
            return Err(WireError::Payload(postcard::Error::DeserializeBadEncoding));
        }
        self.read += HEADER_BYTES + bytes;
        Ok(Some(message))
    }

    /// Whether all received bytes have been decoded.
    pub(crate) fn is_empty(&self) -> bool {
        self.read == self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(taken: u32) -> WorkerMessage {
        WorkerMessage::Event(WorkerEvent::Quiet { taken, calls: 0, timers: 0 })
    }

    fn taken(incoming: &mut MessageDecoder) -> Vec<u32> {
        let mut all = Vec::new();
        while let Some(said) = incoming.next_message::<WorkerMessage>().unwrap() {
            match said {
                WorkerMessage::Event(WorkerEvent::Quiet { taken, .. }) => all.push(taken),
                WorkerMessage::Event(_) | WorkerMessage::Ready => unreachable!("only quiet was sent"),
            }
        }
        all
    }

    #[test]
    fn messages_come_out_whole_however_they_are_cut() {
        let mut bytes = Vec::new();
        for number in [1, 300, 70_000] {
            encode_message(&mut bytes, &quiet(number)).unwrap();
        }
        for step in 1..=bytes.len() {
            let mut incoming = MessageDecoder::default();
            let mut all = Vec::new();
            for piece in bytes.chunks(step) {
                incoming.read_buffer(piece.len()).extend_from_slice(piece);
                all.extend(taken(&mut incoming));
            }
            assert_eq!(all, [1, 300, 70_000], "in pieces of {step}");
            assert!(incoming.is_empty());
        }
    }

    #[test]
    fn a_length_is_refused_before_its_bytes_come() {
        let mut incoming = MessageDecoder::default();
        incoming.read_buffer(4).extend_from_slice(&(1_u32 << 31).to_le_bytes());
        assert_eq!(incoming.next_message::<WorkerMessage>().err(), Some(WireError::TooLong(1 << 31)));
    }

    #[test]
    fn bytes_left_over_in_a_frame_are_an_error() {
        let mut bytes = Vec::new();
        encode_message(&mut bytes, &WorkerMessage::Ready).unwrap();
        bytes[0] += 1;
        bytes.push(0);
        let mut incoming = MessageDecoder::default();
        incoming.read_buffer(bytes.len()).extend_from_slice(&bytes);
        assert!(incoming.next_message::<WorkerMessage>().is_err());
    }

    #[test]
    fn a_message_that_is_too_long_is_not_sent() {
        let mut out = vec![1, 2];
        let text = "x".repeat(MOST_BYTES);
        let error = encode_message(&mut out, &WorkerMessage::Event(WorkerEvent::Hint { json: text })).err();
        assert!(matches!(error, Some(WireError::TooLong(_))));
        assert_eq!(out, [1, 2]);
    }
}
