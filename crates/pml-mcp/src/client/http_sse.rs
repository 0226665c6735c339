//! The HTTP transport of 2024-11-05: one event stream from the server, whose first event names the address that takes
//! messages.
//!
//! Such a server answers requests like a process does, on one stream for all of them. So its messages go through a
//! [`StreamTransport`], and this module turns events into lines, and lines into POST requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use pml_model::json::Fields;
use reqwest::Url;
use tokio::io::{AsyncRead, AsyncWriteExt, BufReader, DuplexStream, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{ClientTransport, OpenError, ServerProfile};
use crate::client::failure::RequestFailure;
use crate::client::http::{HttpTransport, Refused, is_event_stream};
use crate::client::pending::ConnectionEvent;
use crate::client::process::StderrTail;
use crate::client::stream::{ProcessEnd, StreamTransport};
use crate::line::{self, LineRead};
use crate::message::MAX_MESSAGE_BYTES;
use crate::protocol::Era;
use crate::sse::{SseDecoder, SseEvent};

/// Bytes between the event stream and the reader of its messages.
const PIPE: usize = 64 * 1024;
/// How long the address for messages may take to come after the stream was opened.
const ENDPOINT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a notification may take to be accepted before the next message is sent.
const NOTIFICATION_PATIENCE: Duration = Duration::from_secs(2);

impl ClientTransport {
    /// Negotiates the version. A server that refuses a handshake by POST is asked for an event stream, as the
    /// specification says; the transport that it knows is returned.
    pub(super) async fn negotiate(
        self,
        known_era: Option<Era>,
        deadline: Instant,
        events: mpsc::Sender<ConnectionEvent>,
        (stop, tasks): (&CancellationToken, &TaskTracker),
    ) -> Result<(ClientTransport, ServerProfile), OpenError> {
        let refused = match self.agree(known_era, deadline).await {
            Ok(about) => return Ok((self, about)),
            Err(refused) => refused,
        };
        let ClientTransport::Http(http) = &self else { return Err(refused) };
        if !http.may_be_older() {
            return Err(refused);
        }
        http.forget_version();
        match open(http, events, (stop.clone(), tasks.clone())).await {
            Ok(link) => {
                let link = ClientTransport::Stream(link);
                let about = link.initialize(deadline).await?;
                Ok((link, about))
            }
            Err(reason) => {
                tracing::debug!(reason, "it does not know the older transport either");
                Err(refused)
            }
        }
    }
}

/// Opens the event stream of the server that `http` leads to. Fails if it has none of this kind, or names an address
/// that is not its own.
async fn open(
    http: &HttpTransport,
    events: mpsc::Sender<ConnectionEvent>,
    (stop, tasks): (CancellationToken, TaskTracker),
) -> Result<StreamTransport, String> {
    let response = http.get(None, Refused::NewToken).await.map_err(|failure| failure.to_string())?;
    if !is_event_stream(&response) {
        return Err("it has no event stream".to_owned());
    }
    let mut stream = EventStream { chunks: response.bytes_stream(), decoder: SseDecoder::default() };
    let opening = tokio::time::timeout(ENDPOINT_PATIENCE, stream.endpoint());
    let (endpoint, more) =
        opening.await.map_err(|_| "its event stream names no address for messages".to_owned())??;
    let endpoint = own_address(http.url(), &endpoint)?;

    let (ours, theirs) = tokio::io::duplex(PIPE);
    let (reader, writer) = tokio::io::split(ours);
    let (lines, messages) = tokio::io::split(theirs);
    let (exited, exit) = watch::channel(None);
    let ending = ProcessEnd { exit, stderr_tail: StderrTail::default() };
    let link = StreamTransport::start(reader, writer, events, (stop.clone(), tasks.clone()), ending);
    let reading = stop.clone();
    tasks.spawn(async move {
        if let Some(reason) = reading.run_until_cancelled(stream.pass_on(more, messages)).await {
            drop(exited.send(Some(reason)));
        }
    });
    let poster = Poster { http: http.clone(), endpoint: Arc::new(endpoint), link: link.clone(), stop, tasks };
    let posting = poster.stop.clone();
    poster.tasks.clone().spawn(async move {
        posting.run_until_cancelled(poster.run(lines)).await;
    });
    Ok(link)
}

/// The address for messages. One at another host would get the credentials of this one.
fn own_address(server: &str, endpoint: &str) -> Result<Url, String> {
    let server = Url::parse(server).map_err(|error| error.to_string())?;
    let endpoint =
        server.join(endpoint).map_err(|error| format!("its event stream names no address: {error}"))?;
    if endpoint.origin() != server.origin() {
        let other = pml_model::name::printable(&endpoint.origin().ascii_serialization());
        return Err(format!("its event stream has messages sent to another server, `{other}`"));
    }
    Ok(endpoint)
}

/// The events of a response.
struct EventStream<S> {
    chunks: S,
    decoder: SseDecoder,
}

impl<S: Stream<Item = reqwest::Result<Bytes>> + Unpin> EventStream<S> {
    /// The next events; the reason for the end of the stream where there are none.
    async fn next(&mut self) -> Result<Vec<SseEvent>, String> {
        let mut events = Vec::new();
        while events.is_empty() {
            let Some(Ok(chunk)) = self.chunks.next().await else {
                return Err("the end of its event stream".to_owned());
            };
            let pushed = self.decoder.push(&chunk, MAX_MESSAGE_BYTES, |event| events.push(event));
            pushed.map_err(|_| "an event longer than a message may be".to_owned())?;
        }
        Ok(events)
    }

    /// The address for messages, and the events after it.
    async fn endpoint(&mut self) -> Result<(String, Vec<SseEvent>), String> {
        loop {
            let mut events = self.next().await?.into_iter();
            // A stream of the newer transport begins with messages.
            while let Some(event) = events.next() {
                match event.kind.as_str() {
                    "endpoint" => return Ok((event.data, events.collect())),
                    "" | "message" if !event.data.is_empty() => {
                        return Err("its event stream does not begin with an address".to_owned());
                    }
                    _ => {}
                }
            }
        }
    }

    /// Writes each message as a line. Returns why it ended.
    async fn pass_on(mut self, first: Vec<SseEvent>, mut messages: WriteHalf<DuplexStream>) -> String {
        let mut events = Ok(first);
        loop {
            let ready = match events {
                Ok(ready) => ready,
                Err(reason) => {
                    // The reader of the messages sees the end of its stream.
                    drop(messages.shutdown().await);
                    return reason;
                }
            };
            for event in ready.into_iter().filter(|event| matches!(event.kind.as_str(), "" | "message")) {
                // JSON has no line breaks within its texts, so those of the event are between its parts.
                let line = event.data.replace(['\n', '\r'], " ") + "\n";
                if messages.write_all(line.as_bytes()).await.is_err() {
                    return "the end of its connection".to_owned();
                }
            }
            events = self.next().await;
        }
    }
}

/// Posts the messages to the server.
struct Poster {
    http: HttpTransport,
    endpoint: Arc<Url>,
    link: StreamTransport,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Poster {
    async fn run(self, lines: impl AsyncRead + Unpin) {
        let mut lines = BufReader::new(lines);
        let mut buffer = Vec::new();
        while let Ok(LineRead::Whole) = line::read_line(&mut lines, &mut buffer, MAX_MESSAGE_BYTES).await {
            let Ok(body) = String::from_utf8(std::mem::take(&mut buffer)) else { continue };
            let (http, endpoint, link) = (self.http.clone(), Arc::clone(&self.endpoint), self.link.clone());
            match request_id(&body) {
                // Some servers accept a request only when they have answered it.
                Some(id) => {
                    let stop = self.stop.clone();
                    let posting = async move {
                        if let Err(failure) = post(&http, &endpoint, body).await {
                            link.fail(id, failure);
                        }
                    };
                    self.tasks.spawn(async move { stop.run_until_cancelled(posting).await });
                }
                // Whatever follows may depend on it: nothing may come before `notifications/initialized`.
                None => {
                    let posting = tokio::time::timeout(NOTIFICATION_PATIENCE, post(&http, &endpoint, body));
                    if let Ok(Err(error)) = posting.await {
                        tracing::debug!(%error, "a message did not reach the server");
                    }
                }
            }
        }
    }
}

/// The id of a message that is a request of ours.
fn request_id(message: &str) -> Option<u64> {
    let fields = Fields::parse(message).ok()?;
    fields.get("method")?;
    fields.read("id")
}

async fn post(http: &HttpTransport, endpoint: &Url, body: String) -> Result<(), RequestFailure> {
    let response = http.post_message(endpoint.clone(), body).await?;
    if response.status().is_success() { Ok(()) } else { Err(http.refused(response).await) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_the_server_itself_only() {
        let server = "https://mcp.example:8443/v1/sse?x=1";
        for (endpoint, address) in [
            ("/messages?session=1", "https://mcp.example:8443/messages?session=1"),
            ("messages/1", "https://mcp.example:8443/v1/messages/1"),
            ("https://mcp.example:8443/m", "https://mcp.example:8443/m"),
        ] {
            assert_eq!(own_address(server, endpoint).unwrap().as_str(), address);
        }
        for elsewhere in
            ["https://mcp.example/m", "http://mcp.example:8443/m", "//other.example/m", "file:///etc"]
        {
            assert!(own_address(server, elsewhere).is_err(), "{elsewhere}");
        }
    }

    #[test]
    fn requests_are_told_from_answers_and_notifications() {
        assert_eq!(request_id(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#), Some(7));
        assert_eq!(request_id(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#), None);
        assert_eq!(request_id(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), None);
    }
}
