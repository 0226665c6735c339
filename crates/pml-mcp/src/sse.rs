//! Server-sent events: decoding from a stream of chunks, and encoding.

use crate::pieces::ChunkedText;

/// One event.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Its name; empty for a message.
    pub(crate) kind: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
    pub(crate) retry_ms: Option<u64>,
}

/// Collects chunks and emits the events they complete.
#[derive(Debug, Default)]
pub(crate) struct SseDecoder {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    after_cr: bool,
    last_id: Option<String>,
    retry_ms: Option<u64>,
}

/// The error for an event that exceeds the size limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventTooLong;

impl SseDecoder {
    /// Feeds a chunk. `each` gets every event that has data, or that only carries an id or a retry delay.
    pub(crate) fn push(
        &mut self,
        chunk: &[u8],
        limit: usize,
        mut each: impl FnMut(SseEvent),
    ) -> Result<(), EventTooLong> {
        let mut rest = chunk;
        while let Some(first) = rest.first() {
            if *first == b'\n' && std::mem::take(&mut self.after_cr) {
                rest = &rest[1..];
                continue;
            }
            self.after_cr = false;
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, more) = rest.split_at(end.unwrap_or(rest.len()));
            if self.line.len() + part.len() + self.event.data.len() > limit {
                return Err(EventTooLong);
            }
            self.line.extend_from_slice(part);
            rest = more;
            if let Some((ending, more)) = more.split_first() {
                self.after_cr = *ending == b'\r';
                rest = more;
                if let Some(event) = self.end_line() {
                    each(event);
                }
            }
        }
        Ok(())
    }

    /// The id of the last event that had one.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The reconnection delay that the server asks for, in milliseconds.
    pub(crate) fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// A decoder for the stream that continues this one on another connection. An event that was cut comes again, whole.
    pub(crate) fn continued(self) -> SseDecoder {
        SseDecoder { last_id: self.last_id, retry_ms: self.retry_ms, ..SseDecoder::default() }
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            // Only now: an event that is cut after its id has not been read.
            if event.id.is_some() {
                self.last_id.clone_from(&event.id);
            }
            let worth_it =
                std::mem::take(&mut self.has_data) || event.id.is_some() || event.retry_ms.is_some();
            return worth_it.then_some(event);
        }
        let mut line = String::from_utf8(line)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let text = line.strip_prefix('\u{feff}').unwrap_or(&line);
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" if std::mem::replace(&mut self.has_data, true) => {
                self.event.data.push('\n');
                self.event.data.push_str(value);
            }
            "data" => {
                // The line is mostly all the data of the event and may be large, so its memory is reused.
                line.drain(..line.len() - value.len());
                self.event.data = line;
            }
            "event" => self.event.kind = value.to_owned(),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => {
                self.event.retry_ms = value.parse().ok();
                self.retry_ms = self.event.retry_ms.or(self.retry_ms);
            }
            _ => {}
        }
        None
    }
}

/// Encodes a message as an event, with the id by which a client resumes the stream. Neither contains line breaks.
pub(crate) fn encode_event(id: Option<&str>, message: impl Into<ChunkedText>) -> ChunkedText {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    let mut event = ChunkedText::from(format!("event: message\n{id}data: "));
    event.append(message.into());
    event.push("\n\n");
    event
}

/// A comment that keeps proxies from cutting an idle stream.
pub(crate) fn keep_alive() -> ChunkedText {
    ChunkedText::from(": keep-alive\n\n".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&str]) -> Vec<SseEvent> {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk.as_bytes(), 1000, |event| events.push(event)).unwrap();
        }
        events
    }

    #[test]
    fn events_survive_any_cut() {
        let text =
            ": hi\n\nevent: message\r\nid: 7\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nretry: 50\nid: 8\ndata:\n\n";
        let whole = decode(&[text]);
        assert_eq!(whole.len(), 2);
        assert_eq!((whole[0].id.as_deref(), whole[0].data.as_str()), (Some("7"), "{\"a\":\n1}"));
        assert_eq!((whole[1].retry_ms, whole[1].data.as_str()), (Some(50), ""));
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(decode(&letters.iter().map(String::as_str).collect::<Vec<_>>()), whole);
    }

    #[test]
    fn a_stream_continues_after_the_last_whole_event() {
        let mut decoder = SseDecoder::default();
        decoder.push(b"retry: 50\nid: 1\ndata: a\n\nid: 2\ndata: b", 1000, |_| {}).unwrap();
        assert_eq!((decoder.last_id(), decoder.retry_ms()), (Some("1"), Some(50)));
        let mut decoder = decoder.continued();
        let mut events = Vec::new();
        decoder.push(b"id: 2\ndata: b\n\n", 1000, |event| events.push(event.data)).unwrap();
        assert_eq!(
            (events, decoder.last_id(), decoder.retry_ms()),
            (vec!["b".to_owned()], Some("2"), Some(50))
        );
    }

    #[test]
    fn an_endless_event_is_refused() {
        assert_eq!(SseDecoder::default().push(&[b'x'; 2000], 1000, |_| {}), Err(EventTooLong));
    }
}
