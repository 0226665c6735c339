//! The transport over one pair of byte streams: standard input and output of a child process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use pml_model::json::raw;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::caller::Caller;
use crate::client::failure::{LostReason, NotSentReason, RequestFailure};
use crate::client::pending::{ConnectionEvent, PendingRequests, RequestClock};
use crate::client::process::StderrTail;
use crate::line::{self, LineRead};
use crate::message::{
    self, LARGE_BYTES, MAX_MESSAGE_BYTES, RequestId, RpcError, RpcMessage, RpcRequest, code,
};

/// Maximum number of messages that wait for a server that does not read.
const QUEUE: usize = 256;

/// The sending half and the pending requests; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct StreamTransport {
    outgoing: mpsc::Sender<OutgoingLine>,
    pending: Arc<PendingRequests>,
    closed: watch::Receiver<Option<String>>,
}

/// What is known of the process when its stream ends.
#[derive(Debug)]
pub(crate) struct ProcessEnd {
    /// How the process ended, once it has.
    pub(crate) exit: watch::Receiver<Option<String>>,
    /// The last lines of its standard error.
    pub(crate) stderr_tail: StderrTail,
}

impl ProcessEnd {
    /// The reason with the exit status, which mostly follows within a moment, and the last line of standard error.
    async fn explain(&mut self, end: StreamEnd) -> String {
        let exited = self.exit.wait_for(Option::is_some);
        let status = match tokio::time::timeout(EXIT_PATIENCE, exited).await {
            Ok(Ok(status)) => status.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        let mut text = match (end, status) {
            // The exit status says more than a closed stream does; any other reason was the cause of the exit.
            (StreamEnd::Closed | StreamEnd::Deaf(_), Some(status)) => format!("it ended with {status}"),
            (StreamEnd::Closed, None) => "it closed its output".to_owned(),
            (StreamEnd::Broken(reason), _) | (StreamEnd::Deaf(reason), None) => reason,
        };
        if let Some(words) = self.stderr_tail.last() {
            text.push_str(&format!("; its last words: {words}"));
        }
        text
    }
}

/// Why reading from a server ended.
enum StreamEnd {
    /// The server closed its output, mostly by ending.
    Closed,
    /// The server closed its input, mostly by ending.
    Deaf(String),
    /// The output of the server cannot be parsed any further.
    Broken(String),
}

/// How long to wait for the exit status after the output has closed.
const EXIT_PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct OutgoingLine {
    line: String,
    state: Arc<AtomicU8>,
}

const QUEUED: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

impl StreamTransport {
    /// Starts the reading and the writing task. `events` gets the events that the server reports on its own. Both
    /// tasks, and those that answer its questions, belong to `tasks` and end when the streams do or `stop` is
    /// cancelled.
    pub(crate) fn start(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        events: mpsc::Sender<ConnectionEvent>,
        (stop, tasks): (CancellationToken, TaskTracker),
        mut ending: ProcessEnd,
    ) -> StreamTransport {
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let (closing, closed) = watch::channel(None);
        let link = StreamTransport { outgoing, pending: Arc::default(), closed };
        let writing = stop.clone();
        let (refusing, refused) = oneshot::channel();
        tasks.spawn(async move {
            tokio::select! {
                error = write(writer, queue) => {
                    // The receiver is gone if the reading task has seen the end first.
                    drop(refusing.send(StreamEnd::Deaf(format!("it takes no input: {error}"))));
                }
                () = writing.cancelled() => {}
            }
        });
        let reading = StreamReader { link: link.clone(), events, stop: stop.clone(), tasks: tasks.clone() };
        tasks.spawn(async move {
            let reason = tokio::select! {
                reason = reading.run(reader) => ending.explain(reason).await,
                Ok(reason) = refused => ending.explain(reason).await,
                () = stop.cancelled() => "PML closed the connection".to_owned(),
            };
            stop.cancel();
            closing.send_replace(Some(reason.clone()));
            reading.link.pending.fail_all(&RequestFailure::Unknown(LostReason::ServerEnded(reason.clone())));
            // Does not wait for room: the receiver that would have to make it may be waiting for this task. A receiver
            // that is behind learns of the end because `events` closes here too.
            if reading.events.try_send(ConnectionEvent::Closed(reason)).is_err() {
                tracing::debug!("nobody listens to this server, or not fast enough");
            }
        });
        link
    }

    /// Why the connection ended; `None` while it is open.
    pub(crate) fn closed_reason(&self) -> Option<String> {
        self.closed.borrow().clone()
    }

    /// A number for the next request.
    pub(crate) fn next_id(&self) -> u64 {
        self.pending.next_id()
    }

    /// Sends a request and waits for its response, the deadline or the caller's cancellation.
    pub(crate) async fn request(
        &self,
        id: u64,
        method: &str,
        params: Option<&RawValue>,
        caller: &Caller,
        clock: &Arc<RequestClock>,
        cancel: &CancellationToken,
    ) -> Result<Box<RawValue>, RequestFailure> {
        let line = message::encode_request(&RequestId::from_number(id), method, params);
        if line.len() > MAX_MESSAGE_BYTES {
            return Err(RequestFailure::NotSent(NotSentReason::TooLarge));
        }
        let mut answered = self.pending.register(id, caller.clone(), Arc::clone(clock));
        let state = Arc::new(AtomicU8::new(QUEUED));
        let outgoing = OutgoingLine { line, state: Arc::clone(&state) };
        // However this future ends, also by being dropped, the guard removes the request.
        let mut unfinished = StreamRequestGuard { link: self, id, state, too_slow: false };
        tokio::select! {
            biased;
            room = self.outgoing.reserve() => match room {
                Ok(room) => room.send(outgoing),
                Err(_) => {
                    unfinished.withdraw();
                    return Err(RequestFailure::NotSent(NotSentReason::Closed(self.closed_reason().unwrap_or_default())));
                }
            },
            () = cancel.cancelled() => {
                unfinished.withdraw();
                return Err(RequestFailure::NotSent(NotSentReason::Cancelled));
            }
            () = tokio::time::sleep_until(clock.deadline().into()) => {
                unfinished.withdraw();
                return Err(RequestFailure::NotSent(NotSentReason::Stalled));
            }
        }
        let lost = tokio::select! {
            // The response first: an answered request counts as answered, whatever else ends at the same time.
            biased;
            answer = &mut answered => {
                return match answer {
                    Ok(Err(RequestFailure::Unknown(LostReason::ServerEnded(reason)))) if unfinished.withdraw() => Err(RequestFailure::NotSent(NotSentReason::Closed(reason))),
                    Ok(outcome) => outcome,
                    Err(_) => Err(RequestFailure::Unknown(LostReason::ServerEnded("the connection ended".into()))),
                };
            }
            () = cancel.cancelled() => LostReason::Cancelled,
            // Covers requests that were queued after all pending ones had been failed.
            reason = ended(self.closed.clone()) => LostReason::ServerEnded(reason),
            () = caller.wait_until(|| clock.deadline()) => {
                unfinished.too_slow = true;
                LostReason::Timeout
            }
        };
        // A line that can still be withdrawn never reached the server, so a retry is safe.
        if let (LostReason::ServerEnded(reason), true) = (&lost, unfinished.withdraw()) {
            return Err(RequestFailure::NotSent(NotSentReason::Closed(reason.clone())));
        }
        if unfinished.withdraw() {
            let reason = if matches!(lost, LostReason::Timeout) {
                NotSentReason::Stalled
            } else {
                NotSentReason::Cancelled
            };
            return Err(RequestFailure::NotSent(reason));
        }
        Err(RequestFailure::Unknown(lost))
    }

    /// Fails a request that did not reach the server, or not for certain.
    pub(crate) fn fail(&self, id: u64, failure: RequestFailure) {
        self.pending.fail(id, failure);
    }

    /// Sends a notification; it is dropped if the queue is full or the server is gone.
    pub(crate) fn notify(&self, method: &str, params: Option<&RawValue>) {
        self.send(message::encode_notification(method, params));
    }

    fn send(&self, line: String) {
        let state = Arc::new(AtomicU8::new(QUEUED));
        if self.outgoing.try_send(OutgoingLine { line, state }).is_err() {
            tracing::debug!("a message was dropped: the server is gone or does not read");
        }
    }
}

/// An unanswered request. Dropping the guard cancels it at the server.
struct StreamRequestGuard<'a> {
    link: &'a StreamTransport,
    id: u64,
    state: Arc<AtomicU8>,
    too_slow: bool,
}

impl StreamRequestGuard<'_> {
    /// Withdraws the request from the queue; `false` if it was sent already.
    fn withdraw(&self) -> bool {
        self.state.compare_exchange(QUEUED, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire).is_ok()
            || self.state.load(Ordering::Acquire) == WITHDRAWN
    }
}

impl Drop for StreamRequestGuard<'_> {
    fn drop(&mut self) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct CancelledParams {
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
            let params = raw(&CancelledParams { request_id: self.id, reason: "the caller no longer waits" });
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

/// Maximum number of bytes per write, unless one message is larger.
const BATCH: usize = 64 * 1024;

/// Writes until the server stops reading; returns the error that ended it.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<OutgoingLine>,
) -> std::io::Error {
    let mut batch = String::new();
    while let Some(next) = queue.recv().await {
        batch.clear();
        next.take_into(&mut batch);
        // All queued messages go out together: a write costs more than the bytes in it.
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
    // Every sender is gone, so no one needs the reason.
    std::future::pending().await
}

impl OutgoingLine {
    /// Adds the line to a batch, unless it was withdrawn.
    fn take_into(self, batch: &mut String) {
        if self.state.compare_exchange(QUEUED, TAKEN, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            batch.push_str(&self.line);
            batch.push('\n');
        }
    }
}

struct StreamReader {
    link: StreamTransport,
    events: mpsc::Sender<ConnectionEvent>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Parses the message of a line; `None` if it is not a message.
fn parsed(line: &mut Vec<u8>) -> Option<RpcMessage> {
    RpcMessage::parse_from_buffer(line)
        .inspect_err(|error| {
            let shown = String::from_utf8_lossy(&line[..line.len().min(200)]);
            let line = pml_model::name::printable(&shown);
            tracing::debug!(%error, %line, "a line that is no message was skipped");
        })
        .ok()
}

impl StreamReader {
    /// Reads until the stream ends; returns why it did.
    async fn run(&self, stream: impl AsyncRead + Unpin) -> StreamEnd {
        let mut stream = BufReader::with_capacity(32 * 1024, stream);
        let mut buffer = Vec::new();
        loop {
            match line::read_line(&mut stream, &mut buffer, MAX_MESSAGE_BYTES).await {
                Ok(LineRead::Whole) if line::is_blank(&buffer) => {}
                Ok(LineRead::Whole) => {
                    let message = parsed(&mut buffer);
                    if buffer.capacity() > LARGE_BYTES {
                        // Freed before the receiver of the message builds something else from it.
                        buffer = Vec::new();
                    }
                    self.take(message).await;
                }
                Ok(LineRead::End) => return StreamEnd::Closed,
                Ok(LineRead::TooLong) => {
                    let limit = MAX_MESSAGE_BYTES / (1024 * 1024);
                    return StreamEnd::Broken(format!("it wrote a line longer than {limit} MiB"));
                }
                Err(error) => return StreamEnd::Broken(format!("its output could not be read: {error}")),
            }
        }
    }

    async fn take(&self, message: Option<RpcMessage>) {
        match message {
            Some(RpcMessage::Response(response)) => self.link.pending.deliver_response(response),
            Some(RpcMessage::Notification(notification)) => {
                if let Some(event) = self.link.pending.route_notification(&notification, None)
                    && self.events.send(event).await.is_err()
                {
                    tracing::debug!("nobody listens to this server any more");
                }
            }
            Some(RpcMessage::Request(request)) => self.answer_request(request),
            None => {}
        }
    }

    /// Answers a request of the server: pings at once, questions by asking their caller.
    fn answer_request(&self, request: RpcRequest) {
        let link = self.link.clone();
        let Some(room) = link.pending.question_permit() else {
            return link.send(message::encode_response(Some(&request.id), &Err(too_many_questions())));
        };
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let _room = room;
            let answering = answer_question(&request.method, request.params, link.pending.only_caller());
            // A person may take long to answer, and the answer is useless once the connection has ended.
            if let Some(outcome) = stop.run_until_cancelled(answering).await {
                link.send(message::encode_response(Some(&request.id), &outcome));
            }
        });
    }
}

/// The error for a question beyond the limit of open ones.
pub(crate) fn too_many_questions() -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "too many questions are open; wait for their answers first")
}

/// Answers a question of a server.
pub(crate) async fn answer_question(
    method: &str,
    params: Option<Box<RawValue>>,
    caller: Option<Caller>,
) -> Result<Box<RawValue>, RpcError> {
    if method == "ping" {
        return Ok(pml_model::json::empty_object());
    }
    match caller {
        Some(caller) => caller.ask(method, params).await,
        // Some servers request the roots before any call: without a caller there are no roots.
        None if method == "roots/list" => Ok(raw(&serde_json::json!({ "roots": [] }))),
        None => {
            let message =
                format!("`{method}` cannot be answered: it is not clear whose request it belongs to");
            Err(RpcError::new(code::INVALID_REQUEST, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::caller::{CallerInfo, CallerMessage, new_session_number};
    use crate::protocol::Era;

    struct Talk {
        link: StreamTransport,
        server: tokio::io::DuplexStream,
        events: mpsc::Receiver<ConnectionEvent>,
        stop: CancellationToken,
        tasks: TaskTracker,
    }

    /// A connection to a server that the test plays, with room for one event.
    fn talk() -> Talk {
        let (ours, server) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(ours);
        let (heard, events) = mpsc::channel(1);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (_, exit) = watch::channel(Some("exit status: 0".to_owned()));
        let ending = ProcessEnd { exit, stderr_tail: StderrTail::default() };
        let link = StreamTransport::start(reader, writer, heard, (stop.clone(), tasks.clone()), ending);
        tasks.close();
        Talk { link, server, events, stop, tasks }
    }

    const CHANGED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";

    #[tokio::test]
    async fn a_listener_that_is_behind_keeps_no_connection_from_ending() {
        let mut talk = talk();
        talk.server.write_all(CHANGED).await.unwrap();
        drop(talk.server);
        // There is no room for the end beside the change, and nobody reads before every task has ended.
        talk.tasks.wait().await;
        assert_eq!(talk.events.recv().await, Some(ConnectionEvent::ToolsChanged));
        assert_eq!(talk.events.recv().await, None, "the end of the events tells of the end");
        assert_eq!(talk.link.closed_reason().as_deref(), Some("it ended with exit status: 0"));
    }

    #[tokio::test]
    async fn a_question_that_nobody_answers_ends_with_the_connection() {
        let mut talk = talk();
        let (caller, mut asked) = Caller::new(CallerInfo {
            session: new_session_number(),
            session_end: CancellationToken::new(),
            era: Era::Legacy,
            capabilities: RawValue::from_string(r#"{"elicitation":{}}"#.into()).unwrap(),
            progress_token: None,
            min_log_rank: None,
        });
        let clock = RequestClock::new(Instant::now(), None);
        let _open = talk.link.pending.register(talk.link.next_id(), caller, clock);
        let question = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\"}\n";
        talk.server.write_all(question).await.unwrap();
        let Some(CallerMessage::Ask { answer, .. }) = asked.recv().await else { panic!("it is asked") };
        talk.stop.cancel();
        talk.tasks.wait().await;
        assert!(answer.is_closed(), "nobody waits for the answer");
    }
}
