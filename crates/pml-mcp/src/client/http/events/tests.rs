//! Event streams that are cut, and tokens that do not come, against a server that plays a script.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use pml_model::json::raw;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::caller::Caller;
use crate::client::authorizer::{AuthChallenge, Authorizer, TokenRefusal};
use crate::client::failure::NotSentReason;
use crate::client::http::{PostRequest, RemoteServer};
use crate::client::pending::{ConnectionEvent, RequestClock};

/// A server that gives the next reply of a script to each request and closes the connection.
struct Server {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

async fn serve(replies: Vec<String>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        for index in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let Some(head) = read_request(&mut stream).await else { continue };
            seen.lock().unwrap().push(head);
            let reply = replies.get(index).or(replies.last()).cloned().unwrap_or_default();
            drop(stream.write_all(reply.as_bytes()).await);
        }
    });
    Server { url, heads }
}

/// The head of a request, whose body is read too.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return Some(head.to_owned());
        }
    }
}

impl Server {
    fn link(
        &self,
        authorizer: Option<Arc<dyn Authorizer>>,
    ) -> (HttpTransport, mpsc::Receiver<ConnectionEvent>) {
        let remote = RemoteServer { url: self.url.clone(), headers: Vec::new(), authorizer };
        let (events, heard) = mpsc::channel(8);
        let link = HttpTransport::new(&remote, events, (CancellationToken::new(), TaskTracker::new()));
        (link.unwrap(), heard)
    }

    /// The values of a header, in the order of the requests that have it.
    fn values(&self, header: &str) -> Vec<String> {
        let heads = self.heads.lock().unwrap();
        heads
            .iter()
            .filter_map(|head| head.lines().find_map(|line| line.strip_prefix(header)))
            .map(str::to_owned)
            .collect()
    }
}

async fn call(link: &HttpTransport, patience: Duration) -> Result<Box<RawValue>, RequestFailure> {
    call_until(link, patience, CancellationToken::new()).await
}

async fn call_until(
    link: &HttpTransport,
    patience: Duration,
    cancel: CancellationToken,
) -> Result<Box<RawValue>, RequestFailure> {
    let clock = RequestClock::new(Instant::now() + patience, None);
    let caller = Caller::silent();
    let params = raw(&serde_json::json!({ "name": "t" }));
    link.request(PostRequest {
        id: link.next_id(),
        method: "tools/call",
        params: Some(&params),
        mirrored: &[],
        caller: &caller,
        clock: &clock,
        cancel: &cancel,
    })
    .await
}

fn stream(events: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}")
}

fn status(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_stream_that_is_cut_again_and_again_is_resumed_until_its_answer() {
    let server = serve(vec![
        stream("retry: 50\nid: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"),
        status("503 Service Unavailable"),
        // Connections without an event, without an answer, and with half an event.
        stream(": nothing yet\n\n"),
        String::new(),
        stream("id: 8\ndata: {\"jsonrpc\""),
        stream("id: 8\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"done\":true}}\n\n"),
    ])
    .await;
    let (link, _events) = server.link(None);
    let result = call(&link, LONG).await.unwrap();
    assert_eq!(result.get(), r#"{"done":true}"#);
    assert_eq!(server.values("last-event-id: "), ["7"; 5], "nothing is skipped");
}

#[tokio::test]
async fn a_stream_that_the_server_does_not_know_any_more_ends_the_request() {
    let first = stream("retry: 50\nid: 7\ndata:\n\n");
    let server = serve(vec![first, status("400 Bad Request")]).await;
    let (link, _events) = server.link(None);
    let failure = call(&link, LONG).await.unwrap_err();
    assert!(matches!(failure, RequestFailure::Unknown(LostReason::ServerEnded(_))), "{failure}");
    assert_eq!(server.values("last-event-id: ").len(), 1);
}

/// An authorizer with one token, whose renewal never ends.
#[derive(Debug, Default)]
struct SlowAuthorizer {
    /// Whether the token itself does not come.
    gives_nothing: bool,
    renewals: AtomicUsize,
}

impl Authorizer for SlowAuthorizer {
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, TokenRefusal>> {
        match self.gives_nothing {
            true => std::future::pending().boxed(),
            false => std::future::ready(Ok(Some("good".to_owned()))).boxed(),
        }
    }

    fn replace<'a>(
        &'a self,
        _used: Option<&'a str>,
        _challenge: &'a AuthChallenge,
    ) -> BoxFuture<'a, Result<String, TokenRefusal>> {
        self.renewals.fetch_add(1, Ordering::Relaxed);
        std::future::pending().boxed()
    }
}

#[tokio::test]
async fn a_request_that_waits_for_its_token_was_not_sent() {
    let server = serve(vec![status("401 Unauthorized")]).await;
    let authorizer = SlowAuthorizer { gives_nothing: true, ..SlowAuthorizer::default() };
    let (link, _events) = server.link(Some(Arc::new(authorizer)));
    let failure = call(&link, Duration::from_millis(20)).await.unwrap_err();
    assert!(matches!(failure, RequestFailure::NotSent(NotSentReason::Connect(_))), "{failure}");
    assert_eq!(server.heads.lock().unwrap().len(), 0);

    // The same once the server has refused the token, and so the request.
    let authorizer = Arc::new(SlowAuthorizer::default());
    let (link, _events) = server.link(Some(Arc::clone(&authorizer) as Arc<dyn Authorizer>));
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let called = tokio::spawn(async move { call_until(&link, LONG, cancel).await });
    while authorizer.renewals.load(Ordering::Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.cancel();
    let failure = called.await.unwrap().unwrap_err();
    assert!(matches!(failure, RequestFailure::NotSent(NotSentReason::Cancelled)), "{failure}");
}

#[tokio::test]
async fn a_refused_event_stream_renews_no_token() {
    let server = serve(vec![status("401 Unauthorized")]).await;
    let authorizer = Arc::new(SlowAuthorizer::default());
    let (link, _events) = server.link(Some(Arc::clone(&authorizer) as Arc<dyn Authorizer>));
    let listening = link.clone();
    let listener = tokio::spawn(async move { listening.keep_listening().await });
    while server.values("authorization: ").len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    listener.abort();
    assert_eq!(authorizer.renewals.load(Ordering::Relaxed), 0);
}
