//! Takes the redirect that ends a sign-in in a browser, on a port of this machine.
//!
//! Any program and any web page on the machine can reach the port, so a request counts only if it carries the state of
//! the sign-in, and nothing that it carries is shown.

use std::io;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use pml_auth::{Attempt, AuthorizationServer, RedirectError, read_redirect};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The path that the browser is sent to.
const PATH: &str = "/callback";
/// The longest request head that is read, in bytes: codes have a few hundred.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// 5 s: how long a browser may take to send a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(5);
/// Connections that are read at the same time; browsers open some that they do not use.
const MAX_CONNECTIONS: usize = 16;
/// The pause after a connection could not be taken.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listens for the redirect of one sign-in.
#[derive(Debug)]
pub(super) struct RedirectListener {
    listener: TcpListener,
    port: u16,
}

impl RedirectListener {
    /// Listens on `port` of this machine, or on a free one.
    pub(super) async fn open(port: Option<u16>) -> io::Result<RedirectListener> {
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        Ok(RedirectListener { listener, port })
    }

    /// The address that the browser is sent to.
    pub(super) fn uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the redirect of `attempt`; its code.
    pub(super) async fn code(
        self,
        attempt: &Attempt,
        server: &AuthorizationServer,
    ) -> Result<String, RedirectError> {
        let mut open = FuturesUnordered::new();
        loop {
            let query = tokio::select! {
                accepted = self.listener.accept(), if open.len() < MAX_CONNECTIONS => {
                    match accepted {
                        Ok((stream, _)) => open.push(tokio::time::timeout(HEAD_PATIENCE, read_query(stream))),
                        // Without a free descriptor it fails at once, again and again, until one is free.
                        Err(error) => {
                            tracing::debug!(%error, "a connection of the browser could not be taken");
                            tokio::time::sleep(ACCEPT_PAUSE).await;
                        }
                    }
                    continue;
                }
                Some(read) = open.next() => read,
            };
            let Ok(Some((query, stream))) = query else { continue };
            let outcome = query
                .as_deref()
                .map_or(Err(RedirectError::Foreign), |query| read_redirect(query, attempt, server));
            let (status, text) = match &outcome {
                Ok(_) => ("200 OK", "PML has what it needs. You can close this page."),
                Err(RedirectError::Foreign) => ("400 Bad Request", "This request belongs to no sign-in."),
                Err(_) => ("200 OK", "The sign-in failed. The terminal says why."),
            };
            drop(tokio::time::timeout(HEAD_PATIENCE, reply(stream, status, text)).await);
            match outcome {
                Err(RedirectError::Foreign) => {}
                other => return other,
            }
        }
    }
}

/// The query of a request for [`PATH`], if it is one; nothing where no request came.
async fn read_query(mut stream: TcpStream) -> Option<(Option<String>, TcpStream)> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MAX_HEAD_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let target = head.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let query = target.and_then(|target| target.strip_prefix(PATH)?.strip_prefix('?'));
    let query = query.map(ToOwned::to_owned);
    Some((query, stream))
}

async fn reply(mut stream: TcpStream, status: &str, text: &str) -> io::Result<()> {
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>PML</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}
