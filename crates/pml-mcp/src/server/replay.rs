//! The event streams of legacy sessions, kept so that a client whose connection broke can resume them.
//!
//! Every event has an id, `STREAM-EVENT`. A client that comes back with the last id it received (`Last-Event-ID`) gets
//! what followed, and then what is still to come. The request goes on meanwhile: with these versions of the protocol a
//! broken connection cancels nothing.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use futures_util::Stream;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::message::{self, RequestId, RpcError};
use crate::pieces::ChunkedText;
use crate::server::reply_limits::{KEEP_ALIVE, PART_BYTES, QUIET};
use crate::server::run::RequestOutput;
use crate::sse;

/// How long an ended stream can be resumed.
const KEPT: Duration = Duration::from_secs(300);
/// Maximum number of bytes and events that a stream keeps. The last event is kept whatever its size.
const STREAM_BYTES: usize = 1024 * 1024;
const STREAM_EVENTS: usize = 1_000;
/// Maximum number of bytes of all ended streams together.
const ENDED_BYTES: usize = 16 * 1024 * 1024;
/// How many events a connected reader may be behind before the request waits for it.
const BEHIND: u64 = 64;

/// All event streams of an endpoint that can be resumed, by their number.
#[derive(Debug, Default)]
pub(super) struct EventStreams(Mutex<BTreeMap<u64, Arc<EventStream>>>);

impl EventStreams {
    /// Opens a stream of a session.
    pub(super) fn open(&self, session: u64) -> Arc<EventStream> {
        let mut streams = self.lock();
        forget(&mut streams);
        // Numbers are random, so that the id of a stream of an earlier process means nothing here.
        let mut number = random();
        while streams.contains_key(&number) {
            number = random();
        }
        let stream = Arc::new(EventStream {
            number,
            session,
            opened: Instant::now(),
            log: Mutex::default(),
            changed: Notify::new(),
        });
        streams.insert(number, Arc::clone(&stream));
        stream
    }

    /// The stream that an event belongs to, and the number of the event; `None` unless this session has such a stream.
    pub(super) fn find(&self, event_id: &str, session: u64) -> Option<(Arc<EventStream>, u64)> {
        let (stream, event) = event_id.split_once('-')?;
        let (stream, event) = (u64::from_str_radix(stream, 16).ok()?, event.parse().ok()?);
        let mut streams = self.lock();
        forget(&mut streams);
        let stream = streams.get(&stream).filter(|stream| stream.session == session)?;
        // An id that was never given.
        (event < stream.log().next()).then(|| (Arc::clone(stream), event))
    }

    /// Forgets the streams of a session.
    pub(super) fn end_session(&self, session: u64) {
        self.lock().retain(|_, stream| stream.session != session);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<EventStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    u64::from_le_bytes(bytes)
}

/// Forgets the streams that ended long ago, and then the oldest ended ones until the rest is small enough.
fn forget(streams: &mut BTreeMap<u64, Arc<EventStream>>) {
    let mut ended: Vec<(Instant, u64, usize)> = Vec::new();
    streams.retain(|number, stream| {
        let log = stream.log();
        let kept = log.ended.is_none_or(|at| at.elapsed() < KEPT);
        if kept && log.ended.is_some() {
            ended.push((stream.opened, *number, log.bytes));
        }
        kept
    });
    ended.sort_unstable();
    let mut bytes: usize = ended.iter().map(|(_, _, bytes)| bytes).sum();
    for (_, number, size) in ended {
        if bytes <= ENDED_BYTES {
            break;
        }
        streams.remove(&number);
        bytes -= size;
    }
}

/// The event stream of one request.
#[derive(Debug)]
pub(super) struct EventStream {
    number: u64,
    session: u64,
    opened: Instant,
    log: Mutex<EventLog>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct EventLog {
    /// The number of the first event that is kept.
    first: u64,
    events: VecDeque<Event>,
    bytes: usize,
    /// The number of the event that the reader takes next.
    position: u64,
    /// The reader that is connected. A new one takes the place of one whose connection broke unnoticed.
    reader: Option<u64>,
    readers: u64,
    ended: Option<Instant>,
}

/// An encoded event in parts that share their memory with the log.
#[derive(Debug, Clone)]
struct Event {
    parts: Vec<Bytes>,
    bytes: usize,
}

impl EventLog {
    /// The number of the next event.
    fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    fn push(&mut self, event: Event) {
        self.bytes += event.bytes;
        self.events.push_back(event);
        while self.events.len() > 1 && (self.bytes > STREAM_BYTES || self.events.len() > STREAM_EVENTS) {
            // What the connected reader has not taken yet is kept; it is at most a few events behind.
            if self.reader.is_some() && self.position <= self.first {
                break;
            }
            let dropped = self.events.pop_front();
            self.bytes -= dropped.map_or(0, |event| event.bytes);
            self.first += 1;
        }
    }
}

impl EventStream {
    /// Adds an event that only tells the client that this stream can be resumed.
    pub(super) fn prime(&self) {
        let mut log = self.log();
        let event = encode(format!("id: {:x}-{}\ndata: \n\n", self.number, log.next()).into());
        log.push(event);
    }

    /// Adds a message. Waits while a connected reader is far behind.
    pub(super) async fn push(&self, message: impl Into<ChunkedText>) {
        let message = message.into();
        loop {
            let changed = self.changed.notified();
            {
                let log = self.log();
                if log.reader.is_none() || log.next() - log.position < BEHIND {
                    break;
                }
            }
            changed.await;
        }
        let mut log = self.log();
        let id = format!("{:x}-{}", self.number, log.next());
        log.push(encode(sse::encode_event(Some(&id), message)));
        drop(log);
        self.changed.notify_waiters();
    }

    /// Ends the stream.
    pub(super) fn end(&self) {
        self.log().ended.get_or_insert_with(Instant::now);
        self.changed.notify_waiters();
    }

    /// The events from number `from` on, until the stream ends or another reader connects. Events that are no longer
    /// kept are left out; only a client that was away for long and many events misses any.
    pub(super) fn read(self: Arc<Self>, from: u64) -> impl Stream<Item = Result<Bytes, Infallible>> {
        let number = {
            let mut log = self.log();
            log.readers += 1;
            log.position = from;
            log.reader = Some(log.readers);
            log.readers
        };
        self.changed.notify_waiters();
        let reader = Reader { stream: self, number };
        futures_util::stream::unfold((reader, VecDeque::new()), |(reader, mut parts)| async move {
            if parts.is_empty() {
                parts = reader.next_event().await?.into();
            }
            Some((Ok(parts.pop_front()?), (reader, parts)))
        })
    }

    fn log(&self) -> MutexGuard<'_, EventLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a request in a session is replied to.
pub(super) enum SessionReply {
    /// The result came soon and alone.
    Json(Result<ChunkedText, RpcError>),
    /// Everything comes on this stream.
    Stream(Arc<EventStream>),
}

/// Passes the output of a request in a session on: the result alone if it comes first and within [`QUIET`], otherwise
/// everything by an event stream. Goes on when nobody waits for the reply any more.
pub(super) async fn record(
    streams: Arc<EventStreams>,
    session: u64,
    primed: bool,
    id: RequestId,
    mut outputs: mpsc::Receiver<RequestOutput>,
    reply: oneshot::Sender<SessionReply>,
) {
    let first = match tokio::time::timeout(QUIET, outputs.recv()).await {
        Ok(Some(RequestOutput::Result(outcome))) => {
            // A client that is gone does not miss its reply.
            drop(reply.send(SessionReply::Json(outcome)));
            return;
        }
        Ok(first) => Some(first),
        Err(_) => None,
    };
    let stream = streams.open(session);
    if primed {
        stream.prime();
    }
    drop(reply.send(SessionReply::Stream(Arc::clone(&stream))));
    // Without any output, the client has cancelled the request and expects no reply.
    let mut next = match first {
        Some(first) => first,
        None => outputs.recv().await,
    };
    while let Some(output) = next {
        match output {
            RequestOutput::Message(line) => stream.push(line).await,
            RequestOutput::Result(outcome) => stream.push(message::encode_answer(&id, outcome)).await,
        }
        next = outputs.recv().await;
    }
    stream.end();
}

fn encode(event: ChunkedText) -> Event {
    let bytes = event.len();
    Event { parts: event.into_parts(PART_BYTES).collect(), bytes }
}

/// A connection that reads a stream.
struct Reader {
    stream: Arc<EventStream>,
    number: u64,
}

impl Reader {
    async fn next_event(&self) -> Option<Vec<Bytes>> {
        loop {
            let changed = self.stream.changed.notified();
            {
                let mut log = self.stream.log();
                if log.reader != Some(self.number) {
                    return None;
                }
                log.position = log.position.max(log.first);
                let at = usize::try_from(log.position - log.first).ok()?;
                if let Some(event) = log.events.get(at).cloned() {
                    log.position += 1;
                    drop(log);
                    self.stream.changed.notify_waiters();
                    return Some(event.parts);
                }
                if log.ended.is_some() {
                    return None;
                }
            }
            if tokio::time::timeout(KEEP_ALIVE, changed).await.is_err() {
                return Some(sse::keep_alive().into_parts(PART_BYTES).collect());
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut log = self.stream.log();
        if log.reader == Some(self.number) {
            log.reader = None;
        }
        drop(log);
        self.stream.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;

    async fn ids(stream: &Arc<EventStream>, from: u64) -> Vec<u64> {
        let read: Vec<Bytes> = Arc::clone(stream).read(from).map(Result::unwrap).collect().await;
        let text = String::from_utf8(read.concat()).unwrap();
        let prefix = format!("id: {:x}-", stream.number);
        text.lines().filter_map(|line| line.strip_prefix(&prefix)?.parse().ok()).collect()
    }

    #[tokio::test]
    async fn a_stream_is_read_from_any_event_and_more_than_once() {
        let streams = EventStreams::default();
        let stream = streams.open(7);
        stream.prime();
        for message in ["{\"a\":1}", "{\"b\":2}"] {
            stream.push(message.to_owned()).await;
        }
        stream.end();
        assert_eq!(ids(&stream, 0).await, [0, 1, 2]);
        assert_eq!(ids(&stream, 2).await, [2]);
        let last = format!("{:x}-1", stream.number);
        assert_eq!(streams.find(&last, 7).map(|(_, event)| event), Some(1));
        assert!(streams.find(&last, 8).is_none(), "a stream of another session");
        for unknown in ["", "x", "1-", "-1", "1-1", &format!("{:x}-3", stream.number)] {
            assert!(streams.find(unknown, 7).is_none(), "{unknown}");
        }
        streams.end_session(7);
        assert!(streams.find(&last, 7).is_none());
    }

    #[tokio::test]
    async fn without_a_reader_nothing_waits_and_the_last_events_are_kept() {
        let stream = EventStreams::default().open(1);
        for number in 0..STREAM_EVENTS + 100 {
            stream.push(number.to_string()).await;
        }
        stream.push("x".repeat(2 * STREAM_BYTES)).await;
        stream.end();
        assert_eq!(ids(&stream, 5).await, [1_100], "the result is larger than all that is kept");
    }

    #[tokio::test]
    async fn a_slow_reader_holds_the_request_back_until_it_goes() {
        let stream = EventStreams::default().open(1);
        let mut reader = Box::pin(Arc::clone(&stream).read(0));
        for _ in 0..BEHIND {
            stream.push("{}".to_owned()).await;
        }
        assert!(stream.push("{}".to_owned()).now_or_never().is_none());
        reader.next().await.unwrap().unwrap();
        assert!(stream.push("{}".to_owned()).now_or_never().is_some());
        assert!(stream.push("{}".to_owned()).now_or_never().is_none());
        let newer = Box::pin(Arc::clone(&stream).read(BEHIND));
        assert!(reader.next().await.is_none(), "the newer reader has taken its place");
        drop(reader);
        assert!(stream.log().reader.is_some());
        drop(newer);
        assert!(stream.push("{}".to_owned()).now_or_never().is_some(), "nobody reads");
    }

    #[tokio::test]
    async fn large_ended_streams_make_room_from_the_oldest_on() {
        let streams = EventStreams::default();
        let mut opened = Vec::new();
        for _ in 0..5 {
            let stream = streams.open(1);
            stream.push("x".repeat(ENDED_BYTES / 4)).await;
            stream.end();
            opened.push(format!("{:x}-0", stream.number));
        }
        let found = |id: &String| streams.find(id, 1).is_some();
        assert_eq!(opened.iter().map(found).collect::<Vec<_>>(), [false, false, true, true, true]);
    }
}
