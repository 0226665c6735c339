//! A connection over one pair of byte streams: a child process's standard input and output.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use pml_model::json::raw;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::client::failure::{Failure, Lost, NotSent};
use crate::client::pending::{Event, Pending};
use crate::client::process::LastWords;
use crate::line::{self, Line};
use crate::message::{self, Id, LARGE_BYTES, MAX_MESSAGE_BYTES, Message, Request, RpcError, code};

/// Messages that may wait for a server that does not read.
const QUEUE: usize = 256;

/// The sending half and the requests in flight; clones are the same link.
#[derive(Debug, Clone)]
pub(crate) struct StreamLink {
    outgoing: mpsc::Sender<Outgoing>,
    pending: Arc<Pending>,
    closed: watch::Receiver<Option<String>>,
}

/// What else is known when the stream of a process ends.
#[derive(Debug)]
pub(crate) struct Ending {
    /// How the process ended, once it has.
    pub(crate) exit: watch::Receiver<Option<String>>,
    /// What it said last.
    pub(crate) last_words: LastWords,
}

impl Ending {
    /// The reason with the exit status, which mostly follows within a moment, and the last words.
    async fn explain(&mut self, end: StreamEnd) -> String {
        let exited = self.exit.wait_for(Option::is_some);
        let status = match tokio::time::timeout(EXIT_PATIENCE, exited).await {
            Ok(Ok(status)) => status.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        let mut text = match (end, status) {
            // That its output closed says less than how it ended; anything else was the cause of its end.
            (StreamEnd::Closed | StreamEnd::Deaf(_), Some(status)) => format!("it ended with {status}"),
            (StreamEnd::Closed, None) => "it closed its output".to_owned(),
            (StreamEnd::Broken(reason), _) | (StreamEnd::Deaf(reason), None) => reason,
        };
        if let Some(words) = self.last_words.last() {
            text.push_str(&format!("; its last words: {words}"));
        }
        text
    }
}

/// Why nothing more is read from a server.
enum StreamEnd {
    /// It closed its output, mostly by ending.
    Closed,
    /// It closed its input, mostly by ending.
    Deaf(String),
    /// What it wrote cannot be read on.
    Broken(String),
}

/// How long to wait for the exit status after the output has closed.
const EXIT_PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct Outgoing {
    line: String,
    state: Arc<AtomicU8>,
}

const QUEUED: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

impl StreamLink {
    /// Starts reading and writing. `events` hears what the server says on its own account; both
    /// tasks end when the streams do or `stop` is cancelled.
    pub(crate) fn start(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        events: mpsc::Sender<Event>,
        stop: CancellationToken,
        mut ending: Ending,
    ) -> StreamLink {
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let (closing, closed) = watch::channel(None);
        let link = StreamLink { outgoing, pending: Arc::default(), closed };
        let writing = stop.clone();
        let (refusing, refused) = oneshot::channel();
        tokio::spawn(async move {
            tokio::select! {
                error = write(writer, queue) => {
                    // The reading side is gone when it has seen the end first.
                    drop(refusing.send(StreamEnd::Deaf(format!("it takes no input: {error}"))));
                }
                () = writing.cancelled() => {}
            }
        });
        let reading = Reader { link: link.clone(), events };
        tokio::spawn(async move {
            let reason = tokio::select! {
                reason = reading.run(reader) => ending.explain(reason).await,
                Ok(reason) = refused => ending.explain(reason).await,
                () = stop.cancelled() => "PML closed the connection".to_owned(),
            };
            stop.cancel();
            closing.send_replace(Some(reason.clone()));
            reading.link.pending.fail_all(&Failure::Unknown(Lost::Died(reason.clone())));
            // Nobody listens once the server was removed from the configuration.
            drop(reading.events.send(Event::Closed(reason)).await);
        });
        link
    }

    /// Why the connection ended, if it has.
    pub(crate) fn closed(&self) -> Option<String> {
        self.closed.borrow().clone()
    }

    /// A number for the next request.
    pub(crate) fn next_id(&self) -> u64 {
        self.pending.next_id()
    }

    /// Sends a request and waits for its answer, the deadline or the caller's cancellation.
    pub(crate) async fn request(
        &self,
        id: u64,
        method: &str,
        params: Option<&RawValue>,
        caller: &Caller,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Box<RawValue>, Failure> {
        let line = message::request(&Id::number(id), method, params);
        if line.len() > MAX_MESSAGE_BYTES {
            return Err(Failure::NotSent(NotSent::TooLarge));
        }
        let mut answered = self.pending.wait_for(id, caller.clone());
        let state = Arc::new(AtomicU8::new(QUEUED));
        let outgoing = Outgoing { line, state: Arc::clone(&state) };
        // However this future ends, also by being dropped, the request is not left behind.
        let mut unfinished = Unfinished { link: self, id, state, too_slow: false };
        tokio::select! {
            biased;
            room = self.outgoing.reserve() => match room {
                Ok(room) => room.send(outgoing),
                Err(_) => {
                    unfinished.withdraw();
                    return Err(Failure::NotSent(NotSent::Closed(self.closed().unwrap_or_default())));
                }
            },
            () = cancel.cancelled() => {
                unfinished.withdraw();
                return Err(Failure::NotSent(NotSent::Cancelled));
            }
            () = tokio::time::sleep_until(deadline.into()) => {
                unfinished.withdraw();
                return Err(Failure::NotSent(NotSent::Stalled));
            }
        }
        let lost = tokio::select! {
            biased;
            answer = &mut answered => {
                return match answer {
                    Ok(Err(Failure::Unknown(Lost::Died(reason)))) if unfinished.withdraw() => Err(Failure::NotSent(NotSent::Closed(reason))),
                    Ok(outcome) => outcome,
                    Err(_) => Err(Failure::Unknown(Lost::Died("the connection ended".into()))),
                };
            }
            () = cancel.cancelled() => Lost::Cancelled,
            // What was put in the queue after everyone who waited was told of the end.
            reason = ended(self.closed.clone()) => Lost::Died(reason),
            () = caller.patience(deadline) => {
                unfinished.too_slow = true;
                Lost::Timeout
            }
        };
        if let (Lost::Died(reason), true) = (&lost, unfinished.withdraw()) {
            return Err(Failure::NotSent(NotSent::Closed(reason.clone())));
        }
        if unfinished.withdraw() {
            let reason = if matches!(lost, Lost::Timeout) { NotSent::Stalled } else { NotSent::Cancelled };
            return Err(Failure::NotSent(reason));
        }
        Err(Failure::Unknown(lost))
    }

    /// Sends a notification, if the server takes it.
    pub(crate) fn notify(&self, method: &str, params: Option<&RawValue>) {
        self.send(message::notification(method, params));
    }

    fn send(&self, line: String) {
        let state = Arc::new(AtomicU8::new(QUEUED));
        if self.outgoing.try_send(Outgoing { line, state }).is_err() {
            tracing::debug!("a message was dropped: the server is gone or does not read");
        }
    }
}

/// A request that has not been answered yet; tells the server when it is given up.
struct Unfinished<'a> {
    link: &'a StreamLink,
    id: u64,
    state: Arc<AtomicU8>,
    too_slow: bool,
}

impl Unfinished<'_> {
    /// Takes the request back; succeeds only while it is still here.
    fn withdraw(&self) -> bool {
        self.state.compare_exchange(QUEUED, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire).is_ok()
            || self.state.load(Ordering::Acquire) == WITHDRAWN
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: u64,
            reason: &'static str,
        }
        if !self.link.pending.is_open(self.id) {
            return;
        }
        if self.too_slow {
            self.link.pending.give_up(self.id);
        } else {
            self.link.pending.forget(self.id);
        }
        if !self.withdraw() {
            let params = raw(&Cancelled { request_id: self.id, reason: "the caller no longer waits" });
            self.link.notify("notifications/cancelled", Some(&params));
        }
    }
}

async fn ended(mut closed: watch::Receiver<Option<String>>) -> String {
    let reason = match closed.wait_for(Option::is_some).await {
        Ok(reason) => reason.clone(),
        Err(_) => None,
    };
    reason.unwrap_or_else(|| "the connection ended".to_owned())
}

/// Bytes that go to a server in one write, unless one message is larger.
const BATCH: usize = 64 * 1024;

/// Writes for as long as the server takes it; gives the error that ended it.
async fn write(mut writer: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Outgoing>) -> std::io::Error {
    let mut batch = String::new();
    while let Some(next) = queue.recv().await {
        batch.clear();
        next.take_into(&mut batch);
        // What is waiting goes out together: a write costs more than the bytes in it.
        while batch.len() < BATCH
            && let Ok(next) = queue.try_recv()
        {
            next.take_into(&mut batch);
        }
        if let Err(error) = writer.write_all(batch.as_bytes()).await {
            return error;
        }
        batch.shrink_to(BATCH);
    }
    // Every sender is gone, so nobody is left to be told.
    std::future::pending().await
}

impl Outgoing {
    /// Adds the line to a batch, unless it was withdrawn.
    fn take_into(self, batch: &mut String) {
        if self.state.compare_exchange(QUEUED, TAKEN, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            batch.push_str(&self.line);
            batch.push('\n');
        }
    }
}

struct Reader {
    link: StreamLink,
    events: mpsc::Sender<Event>,
}

/// The message a line holds; what is none is skipped.
fn parsed(line: &mut Vec<u8>) -> Option<Message> {
    Message::take(line)
        .inspect_err(|error| {
            let shown = String::from_utf8_lossy(&line[..line.len().min(200)]);
            let line = pml_model::name::printable(&shown);
            tracing::debug!(%error, %line, "a line that is no message was skipped");
        })
        .ok()
}

impl Reader {
    /// Reads until the stream ends; says why it did.
    async fn run(&self, stream: impl AsyncRead + Unpin) -> StreamEnd {
        let mut stream = BufReader::with_capacity(32 * 1024, stream);
        let mut buffer = Vec::new();
        loop {
            match line::read(&mut stream, &mut buffer, MAX_MESSAGE_BYTES).await {
                Ok(Line::Whole) if line::is_blank(&buffer) => {}
                Ok(Line::Whole) => {
                    let message = parsed(&mut buffer);
                    if buffer.capacity() > LARGE_BYTES {
                        // Gone before whoever waits for the message makes something else of it.
                        buffer = Vec::new();
                    }
                    self.take(message).await;
                }
                Ok(Line::End) => return StreamEnd::Closed,
                Ok(Line::TooLong) => {
                    let limit = MAX_MESSAGE_BYTES / (1024 * 1024);
                    return StreamEnd::Broken(format!("it wrote a line longer than {limit} MiB"));
                }
                Err(error) => return StreamEnd::Broken(format!("its output could not be read: {error}")),
            }
        }
    }

    async fn take(&self, message: Option<Message>) {
        match message {
            Some(Message::Response(response)) => self.link.pending.resolve(response),
            Some(Message::Notification(notification)) => {
                if let Some(event) = self.link.pending.route(&notification, None)
                    && self.events.send(event).await.is_err()
                {
                    tracing::debug!("nobody listens to this server any more");
                }
            }
            Some(Message::Request(request)) => self.answer(request),
            None => {}
        }
    }

    /// Answers what a server asks: pings at once, questions by asking the caller they are for.
    fn answer(&self, request: Request) {
        let link = self.link.clone();
        let Some(room) = link.pending.question() else {
            return link.send(message::response(Some(&request.id), &Err(too_many_questions())));
        };
        tokio::spawn(async move {
            let _room = room;
            let outcome = answer(&request.method, request.params, link.pending.only_caller()).await;
            link.send(message::response(Some(&request.id), &outcome));
        });
    }
}

/// The answer to a question beyond those that may be open.
pub(crate) fn too_many_questions() -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "too many questions are open; wait for their answers first")
}

/// The answer to a server's question.
pub(crate) async fn answer(
    method: &str,
    params: Option<Box<RawValue>>,
    caller: Option<Caller>,
) -> Result<Box<RawValue>, RpcError> {
    if method == "ping" {
        return Ok(pml_model::json::empty_object());
    }
    match caller {
        Some(caller) => caller.ask(method, params).await,
        // Some servers ask for the roots before anybody has called them: nobody, no roots.
        None if method == "roots/list" => Ok(raw(&serde_json::json!({ "roots": [] }))),
        None => {
            let message =
                format!("`{method}` cannot be answered: it is not clear whose request it belongs to");
            Err(RpcError::new(code::INVALID_REQUEST, message))
        }
    }
}
