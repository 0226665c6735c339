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

/// Maximum number of connections that serve admitted requests at once, if the limit of open files allows it. Far more
/// than the clients of one person need; each costs a file descriptor and some KiB.
const MOST: usize = 1_000;
/// Places beyond the limit for connections that are not admitted yet.
const RESERVED: usize = 16;
/// File descriptors left for everything else: the database, and three pipes per server and sandbox worker.
const OTHER_FILES: usize = 256;
/// How long a peer may refuse to take any sent bytes before the connection is closed.
const WRITE_STALL: Duration = Duration::from_secs(30);

/// The connections of one listener.
pub(super) struct Connections {
    limit: usize,
    table: Mutex<ConnectionTable>,
}

#[derive(Default)]
struct ConnectionTable {
    /// Grows with every change of a phase, so that the oldest connection can be found.
    clock: u64,
    open: HashMap<u64, OpenConnection>,
}

struct OpenConnection {
    phase: ConnectionPhase,
    since: u64,
    evict: CancellationToken,
}

/// What a connection is used for now, in the order in which connections are evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionPhase {
    /// No request yet, or one that was not admitted by a token or session.
    Unproven,
    /// Between two requests of an admitted client.
    Idle,
    /// Serving an admitted request, or sending the reply to it.
    Serving,
}

impl Connections {
    /// The limit that follows from the number of files this process may open.
    pub(super) fn for_this_process() -> Arc<Connections> {
        Connections::limited_to((open_files().saturating_sub(OTHER_FILES) / 2).clamp(RESERVED, MOST))
    }

    fn limited_to(limit: usize) -> Arc<Connections> {
        Arc::new(Connections { limit, table: Mutex::default() })
    }

    /// A place for a new connection; `None` if no connection can be evicted.
    pub(super) fn admit_connection(self: &Arc<Self>) -> Option<Arc<PeerConnection>> {
        let mut table = self.table();
        if table.open.len() >= self.limit + RESERVED {
            let spare = table.open.iter().filter(|(_, open)| open.phase < ConnectionPhase::Serving);
            let id = *spare.min_by_key(|(_, open)| (open.phase, open.since))?.0;
            if let Some(evicted) = table.open.remove(&id) {
                evicted.evict.cancel();
            }
        }
        let id = table.tick();
        let evicted = CancellationToken::new();
        table.open.insert(
            id,
            OpenConnection { phase: ConnectionPhase::Unproven, since: id, evict: evicted.clone() },
        );
        Some(Arc::new(PeerConnection { connections: Arc::clone(self), id, evicted }))
    }

    fn table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionTable {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn enter(&mut self, id: u64, phase: ConnectionPhase) {
        let since = self.tick();
        if let Some(open) = self.open.get_mut(&id) {
            (open.phase, open.since) = (phase, since);
        }
    }
}

/// One connection. Requests carry it in their extensions.
pub(super) struct PeerConnection {
    connections: Arc<Connections>,
    id: u64,
    evicted: CancellationToken,
}

impl PeerConnection {
    /// Returns when the connection is evicted to make room for another.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Records that the current request was admitted by a token or a session. Returns `false` if too many are served
    /// already.
    pub(super) fn admit_request(&self) -> bool {
        let mut table = self.connections.table();
        let serving = table.open.values().filter(|open| open.phase == ConnectionPhase::Serving).count();
        if serving >= self.connections.limit {
            return false;
        }
        table.enter(self.id, ConnectionPhase::Serving);
        true
    }

    fn begin(&self) {
        self.connections.table().enter(self.id, ConnectionPhase::Unproven);
    }

    fn end(&self) {
        let mut table = self.connections.table();
        if table.open.get(&self.id).is_some_and(|open| open.phase == ConnectionPhase::Serving) {
            table.enter(self.id, ConnectionPhase::Idle);
        }
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        self.connections.table().open.remove(&self.id);
    }
}

/// Serves the requests of one connection, and tracks its phase.
pub(super) struct WatchedService<S> {
    pub(super) inner: S,
    pub(super) peer: Arc<PeerConnection>,
}

impl<S> hyper::service::Service<Request<Incoming>> for WatchedService<S>
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
        let end = RequestEndGuard(Arc::clone(&self.peer));
        let response = self.inner.call(request);
        Box::pin(async move { Ok(response.await?.map(|body| WatchedBody { body, _end: end })) })
    }
}

/// Records the end of a request, however it ends.
struct RequestEndGuard(Arc<PeerConnection>);

impl Drop for RequestEndGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The body of a reply; the request ends when it is dropped.
pub(super) struct WatchedBody {
    body: Body,
    _end: RequestEndGuard,
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

/// A socket that fails when its peer takes no bytes for [`WRITE_STALL`] while data waits to be sent.
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

/// The number of files that this process may have open.
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

    fn fill(connections: &Arc<Connections>, count: usize) -> Vec<Arc<PeerConnection>> {
        (0..count).map(|_| connections.admit_connection().unwrap()).collect()
    }

    fn gone(peers: &[Arc<PeerConnection>]) -> Vec<usize> {
        (0..peers.len()).filter(|&at| peers[at].evicted.is_cancelled()).collect()
    }

    #[test]
    fn the_oldest_connection_without_credentials_makes_room_first() {
        let connections = Connections::limited_to(4);
        let peers = fill(&connections, 4 + RESERVED);
        assert!(peers[0].admit_request() && peers[2].admit_request() && peers[3].admit_request());
        peers[3].end();
        let new = connections.admit_connection().unwrap();
        assert_eq!(gone(&peers), [1], "neither the admitted ones nor the idle one");
        // Beginning another request makes a connection the newest again.
        peers[4].begin();
        let newer = connections.admit_connection().unwrap();
        assert_eq!(gone(&peers), [1, 5]);
        assert!(!new.evicted.is_cancelled() && !newer.evicted.is_cancelled());
    }

    #[test]
    fn idle_connections_make_room_after_that_and_serving_ones_never() {
        let connections = Connections::limited_to(20);
        let peers = fill(&connections, 20 + RESERVED);
        for peer in &peers {
            // Sixteen of them exceed the limit, and have ended when others come.
            peer.admit_request();
        }
        assert!(!peers[35].admit_request(), "no more than the limit are served at once");
        peers[7].end();
        peers[3].end();
        let _newcomers = fill(&connections, RESERVED);
        assert_eq!(gone(&peers), (20..36).collect::<Vec<_>>());
        let more: Vec<_> = (0..RESERVED + 2).map(|_| connections.admit_connection()).collect();
        assert!(more.iter().all(Option::is_some), "newcomers replace newcomers");
        for peer in more.iter().flatten() {
            peer.admit_request();
        }
        let _last = fill(&connections, 1);
        assert!(gone(&peers).iter().all(|at| *at >= 20 || [3, 7].contains(at)), "{:?}", gone(&peers));
    }

    #[test]
    fn a_connection_that_ends_leaves_its_place() {
        let connections = Connections::limited_to(1);
        for _ in 0..100 {
            let peer = connections.admit_connection().unwrap();
            assert!(peer.admit_request());
        }
        assert!(connections.table().open.is_empty());
    }
}
