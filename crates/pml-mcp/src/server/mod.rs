//! The server side: clients of either era over stdio or streamable HTTP, with one handler behind them.

pub mod access;
pub mod body;
mod connections;
mod envelope;
pub mod http;
mod listen;
mod replay;
mod reply_limits;
mod run;
mod session;
mod session_id;
pub mod stdio;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use pml_model::{KeyId, Principal};
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::caller::Caller;
use crate::message::RpcError;
use crate::param_headers::MirroredParameter;

/// Serves the requests of all clients.
pub trait Handler: Send + Sync + 'static {
    /// The capabilities and instructions that a client gets when it connects.
    fn introduction(&self, client: &ConnectedClient) -> ServerIntroduction;

    /// Serves one request: every method except those of the protocol itself, such as `initialize` and `ping`.
    fn handle(&self, request: IncomingRequest) -> HandlerFuture;

    /// Subscribes to changes, until the receiver is dropped.
    fn changes(&self) -> broadcast::Receiver<ChangeNotice>;

    /// Seals the content of a session id, so that every replica of this server, and this one after a start, can open it.
    /// `None` if there is nothing to seal with; sessions then end with the process.
    fn seal_session(&self, _content: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// The content of a session id that a replica of this server sealed; `None` if none did.
    fn open_session(&self, _sealed: Vec<u8>) -> Option<Vec<u8>> {
        None
    }

    /// The parameters of a tool that stateless HTTP clients mirror into headers.
    fn mirrored_parameters(&self, client: &ConnectedClient, tool: &str) -> Vec<MirroredParameter>;
}

/// The future result of a request.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<Box<RawValue>, RpcError>> + Send>>;

/// What the server says of itself to a client.
#[derive(Debug)]
pub struct ServerIntroduction {
    /// The MCP capabilities, a JSON object.
    pub capabilities: Box<RawValue>,
    /// Instructions for using the server.
    pub instructions: String,
}

/// The client that sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedClient {
    /// The principal that it acts as.
    pub principal: Principal,
    /// The name that it gives; never a reason to trust it.
    pub name: String,
    /// The client key it was admitted by; `None` without a key of its own.
    pub key: Option<KeyId>,
}

/// The authenticated identity of a client. No other identity can continue what one began, such as a session or a
/// suspended request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The principal that it acts as.
    pub principal: Principal,
    /// The client key it was admitted by; `None` without a key of its own.
    pub key: Option<KeyId>,
}

impl ClientIdentity {
    /// The client of this identity that gives the name `name`.
    fn named_client(&self, name: String) -> ConnectedClient {
        ConnectedClient { principal: self.principal.clone(), name, key: self.key }
    }
}

impl From<Principal> for ClientIdentity {
    /// A client without a key of its own.
    fn from(principal: Principal) -> ClientIdentity {
        ClientIdentity { principal, key: None }
    }
}

/// A request to be handled.
#[derive(Debug)]
pub struct IncomingRequest {
    /// The JSON-RPC method.
    pub method: String,
    /// The parameters, a JSON object.
    pub params: Box<RawValue>,
    /// The client that sent the request.
    pub client: ConnectedClient,
    /// Sends notifications and questions to the client while the request is served.
    pub caller: Caller,
    /// Cancelled when the client no longer waits for the result, for whatever reason.
    pub cancel: CancellationToken,
    /// Cancelled when the client cancelled the request itself, and not when it merely disconnected.
    pub cancelled_by_sender: CancellationToken,
    /// How the request came; `None` if PML makes it itself on behalf of the client.
    pub wire: Option<RequestWire>,
}

/// How a request came.
#[derive(Debug, Clone)]
pub struct RequestWire {
    /// Its JSON-RPC id, as text.
    pub id: String,
    /// The protocol version, where it is known.
    pub version: Option<String>,
    /// What it came over.
    pub transport: RequestTransport,
}

/// What requests come over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestTransport {
    /// Standard input.
    Pipe,
    /// HTTP.
    Tcp,
}

/// A change that clients may subscribe to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeNotice {
    /// The list of tools changed.
    Tools,
    /// The list of prompts changed.
    Prompts,
    /// The list of resources changed.
    Resources,
    /// The resource with this URI changed.
    Resource(String),
}

/// The changes to announce for what a channel of changes gave; `None` at its end. Which changes a receiver missed that
/// fell behind is unknown, so a change of every list is announced.
fn changes_to_announce(received: Result<ChangeNotice, RecvError>) -> Option<Vec<ChangeNotice>> {
    match received {
        Ok(change) => Some(vec![change]),
        Err(RecvError::Lagged(_)) => {
            Some(vec![ChangeNotice::Tools, ChangeNotice::Prompts, ChangeNotice::Resources])
        }
        Err(RecvError::Closed) => None,
    }
}

/// The handler and the state that all transports share.
#[derive(Clone)]
pub struct McpServer {
    handler: Arc<dyn Handler>,
    suspended: Arc<run::SuspendedRequests>,
    requests: Requests,
}

/// The tasks of all active requests; clones share them.
#[derive(Debug, Clone, Default)]
struct Requests {
    tasks: TaskTracker,
    /// Cancelled when requests that do not end by themselves are dropped.
    abandon: CancellationToken,
}

impl Requests {
    /// Runs `work` as a task. Its result is `None` if it was abandoned.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<Option<T>> {
        self.tasks.spawn(self.abandon.clone().run_until_cancelled_owned(work))
    }
}

/// How long cancelled requests get to end in good order, for example by notifying their servers.
const FAREWELL: Duration = Duration::from_secs(2);

impl McpServer {
    /// A server that passes requests to `handler`.
    pub fn new(handler: Arc<dyn Handler>) -> McpServer {
        McpServer { handler, suspended: Arc::default(), requests: Requests::default() }
    }

    /// Waits until every request has ended. Requests that wait for their clients are cancelled, and those that do not
    /// end within `FAREWELL` are abandoned. A transport calls this after it has stopped accepting requests.
    pub async fn close(&self) {
        self.suspended.cancel_all();
        self.requests.tasks.close();
        if tokio::time::timeout(FAREWELL, self.requests.tasks.wait()).await.is_err() {
            tracing::debug!("requests were abandoned at the end");
            self.requests.abandon.cancel();
            self.requests.tasks.wait().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Deaf;

    impl Handler for Deaf {
        fn introduction(&self, _: &ConnectedClient) -> ServerIntroduction {
            ServerIntroduction { capabilities: pml_model::json::empty_object(), instructions: String::new() }
        }

        fn handle(&self, _: IncomingRequest) -> HandlerFuture {
            Box::pin(std::future::pending())
        }

        fn changes(&self) -> broadcast::Receiver<ChangeNotice> {
            broadcast::channel(1).1
        }

        fn mirrored_parameters(&self, _: &ConnectedClient, _: &str) -> Vec<MirroredParameter> {
            Vec::new()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_end_by_itself_is_abandoned() {
        let server = McpServer::new(Arc::new(Deaf));
        let (held, dropped) = tokio::sync::oneshot::channel::<()>();
        let request = server.requests.spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        server.close().await;
        assert!(request.is_finished());
        assert!(dropped.await.is_err(), "what the request held is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_was_cancelled_may_end_in_good_order() {
        let server = McpServer::new(Arc::new(Deaf));
        let (told, heard) = tokio::sync::oneshot::channel();
        server.requests.spawn(async move {
            tokio::time::sleep(FAREWELL / 2).await;
            told.send("said good-bye").unwrap();
        });
        server.close().await;
        assert_eq!(heard.await, Ok("said good-bye"));
    }

    #[test]
    fn a_client_that_missed_changes_lists_everything_again() {
        let (changes, mut behind) = broadcast::channel(1);
        changes.send(ChangeNotice::Resources).unwrap();
        changes.send(ChangeNotice::Resources).unwrap();
        let told = changes_to_announce(behind.try_recv().map_err(|error| match error {
            broadcast::error::TryRecvError::Lagged(missed) => RecvError::Lagged(missed),
            _ => RecvError::Closed,
        }));
        assert_eq!(told.unwrap(), [ChangeNotice::Tools, ChangeNotice::Prompts, ChangeNotice::Resources]);
        assert_eq!(changes_to_announce(Ok(ChangeNotice::Prompts)).unwrap(), [ChangeNotice::Prompts]);
        assert!(changes_to_announce(Err(RecvError::Closed)).is_none());
    }
}
