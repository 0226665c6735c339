//! Keeps the HTTP listener reachable however many connections others hold open.
//!
//! The number of connections is limited. When the limit is reached, a new connection replaces the one that can best
//! be spared: first connections on which no credentials were presented (oldest first), then idle ones. A connection
//! that serves an admitted request is never closed to make room, so replies and event streams are not cut. A few
//! places are reserved for newcomers, so that `/health` is answered even if every other place is taken by clients.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http::{Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

/// The most connections that may serve admitted requests at once, where the limit of open files allows it. Far more
/// than clients of one person need; each costs a file descriptor and some KiB.
const MOST: usize = 1_000;
/// Places beyond the limit for connections that are not admitted yet.
const RESERVED: usize = 16;
/// File descriptors left to everything else: the database, and three pipes for each server and sandbox worker.
const OTHER_FILES: usize = 256;
/// How long a peer may take nothing of what is sent to it.
const WRITE_STALL: Duration = Duration::from_secs(30);

/// The connections of one listener.
pub(super) struct Connections {
    limit: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Grows with every change of a phase, so that the oldest can be told.
    clock: u64,
    open: HashMap<u64, Open>,
}

struct Open {
    phase: Phase,
    since: u64,
    evict: CancellationToken,
}

/// What a connection is used for now; in the order in which connections make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// No request yet, or one that was not admitted by a token or session.
    Unproven,
    /// Between two requests of an admitted client.
    Idle,
    /// Serving an admitted request, or sending the reply to it.
    Serving,
}

impl Connections {
    /// As many as this process can have files open for.
    pub(super) fn for_this_process() -> Arc<Connections> {
        Connections::limited_to((open_files().saturating_sub(OTHER_FILES) / 2).clamp(RESERVED, MOST))
    }

    fn limited_to(limit: usize) -> Arc<Connections> {
        Arc::new(Connections { limit, table: Mutex::default() })
    }

    /// A place for a new connection; `None` if none can be spared.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Arc<Peer>> {
        let mut table = self.table();
        if table.open.len() >= self.limit + RESERVED {
            let spare = table.open.iter().filter(|(_, open)| open.phase < Phase::Serving);
            let id = *spare.min_by_key(|(_, open)| (open.phase, open.since))?.0;
            if let Some(evicted) = table.open.remove(&id) {
                evicted.evict.cancel();
            }
        }
        let id = table.tick();
        let evicted = CancellationToken::new();
        table.open.insert(id, Open { phase: Phase::Unproven, since: id, evict: evicted.clone() });
        Some(Arc::new(Peer { connections: Arc::clone(self), id, evicted }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn enter(&mut self, id: u64, phase: Phase) {
        let since = self.tick();
        if let Some(open) = self.open.get_mut(&id) {
            (open.phase, open.since) = (phase, since);
        }
    }
}

/// One connection. Requests carry it among their extensions.
pub(super) struct Peer {
    connections: Arc<Connections>,
    id: u64,
    evicted: CancellationToken,
}

impl Peer {
    /// Returns when the connection has to make room for another.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// The present request was admitted by a token or a session. `false` if there are too many of those already.
    pub(super) fn prove(&self) -> bool {
        let mut table = self.connections.table();
        let serving = table.open.values().filter(|open| open.phase == Phase::Serving).count();
        if serving >= self.connections.limit {
            return false;
        }
        table.enter(self.id, Phase::Serving);
        true
    }

    fn begin(&self) {
        self.connections.table().enter(self.id, Phase::Unproven);
    }

    fn end(&self) {
        let mut table = self.connections.table();
        if table.open.get(&self.id).is_some_and(|open| open.phase == Phase::Serving) {
            table.enter(self.id, Phase::Idle);
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.connections.table().open.remove(&self.id);
    }
}

/// Serves the requests of one connection, and notes what it is used for.
pub(super) struct Watched<S> {
    pub(super) inner: S,
    pub(super) peer: Arc<Peer>,
}

impl<S> hyper::service::Service<Request<Incoming>> for Watched<S>
where
    S: hyper::service::Service<Request<Incoming>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<WatchedBody>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.peer.begin();
        request.extensions_mut().insert(Arc::clone(&self.peer));
        let end = End(Arc::clone(&self.peer));
        let response = self.inner.call(request);
        Box::pin(async move { Ok(response.await?.map(|body| WatchedBody { body, _end: end })) })
    }
}

/// Notes the end of a request, whatever became of it.
struct End(Arc<Peer>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The body of a reply: with it the request ends.
pub(super) struct WatchedBody {
    body: Body,
    _end: End,
}

impl hyper::body::Body for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        hyper::body::Body::is_end_stream(&self.body)
    }

    fn size_hint(&self) -> SizeHint {
        hyper::body::Body::size_hint(&self.body)
    }
}

/// A socket that fails when its peer takes nothing for [`WRITE_STALL`] while something waits to be sent.
pub(super) struct Socket {
    stream: TcpStream,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream) -> Socket {
        Socket { stream, stalled: None }
    }

    fn written<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_STALL)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its reply")))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// How many files this process may have open.
fn open_files() -> usize {
    #[cfg(unix)]
    if let Ok((soft, _)) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE) {
        return usize::try_from(soft).unwrap_or(usize::MAX);
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(connections: &Arc<Connections>, count: usize) -> Vec<Arc<Peer>> {
        (0..count).map(|_| connections.admit().unwrap()).collect()
    }

    fn gone(peers: &[Arc<Peer>]) -> Vec<usize> {
        (0..peers.len()).filter(|&at| peers[at].evicted.is_cancelled()).collect()
    }

    #[test]
    fn the_oldest_connection_without_credentials_makes_room_first() {
        let connections = Connections::limited_to(4);
        let peers = fill(&connections, 4 + RESERVED);
        assert!(peers[0].prove() && peers[2].prove() && peers[3].prove());
        peers[3].end();
        let new = connections.admit().unwrap();
        assert_eq!(gone(&peers), [1], "neither the admitted ones nor the idle one");
        // Sending something new starts the wait anew.
        peers[4].begin();
        let newer = connections.admit().unwrap();
        assert_eq!(gone(&peers), [1, 5]);
        assert!(!new.evicted.is_cancelled() && !newer.evicted.is_cancelled());
    }

    #[test]
    fn idle_connections_make_room_after_that_and_serving_ones_never() {
        let connections = Connections::limited_to(20);
        let peers = fill(&connections, 20 + RESERVED);
        for peer in &peers {
            // Sixteen of them are too many to be served, and have ended when others come.
            peer.prove();
        }
        assert!(!peers[35].prove(), "no more than the limit are served at once");
        peers[7].end();
        peers[3].end();
        let _newcomers = fill(&connections, RESERVED);
        assert_eq!(gone(&peers), (20..36).collect::<Vec<_>>());
        let more: Vec<_> = (0..RESERVED + 2).map(|_| connections.admit()).collect();
        assert!(more.iter().all(Option::is_some), "newcomers replace newcomers");
        for peer in more.iter().flatten() {
            peer.prove();
        }
        let _last = fill(&connections, 1);
        assert!(gone(&peers).iter().all(|at| *at >= 20 || [3, 7].contains(at)), "{:?}", gone(&peers));
    }

    #[test]
    fn a_connection_that_ends_leaves_its_place() {
        let connections = Connections::limited_to(1);
        for _ in 0..100 {
            let peer = connections.admit().unwrap();
            assert!(peer.prove());
        }
        assert!(connections.table().open.is_empty());
    }
}
