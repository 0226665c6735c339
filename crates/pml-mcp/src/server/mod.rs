//! The server side: clients of either era over stdio or streamable HTTP, one handler behind them.

pub mod access;
pub mod body;
mod connections;
mod envelope;
pub mod http;
mod listen;
mod run;
mod session;
pub mod stdio;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pml_model::{KeyId, Principal};
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::message::RpcError;
use crate::param_headers::Mirrored;

/// What serves the requests of all clients.
pub trait Handler: Send + Sync + 'static {
    /// How the server presents itself to a client.
    fn welcome(&self, client: &Client) -> Welcome;

    /// Serves one request: everything but the protocol's own housekeeping.
    fn handle(&self, request: Incoming) -> Answer;

    /// Tells of changes, for as long as the receiver is kept.
    fn changes(&self) -> broadcast::Receiver<Change>;

    /// The parameters of a tool that stateless HTTP clients mirror into headers.
    fn mirrored(&self, client: &Client, tool: &str) -> Vec<Mirrored>;
}

/// The result of a request, in time.
pub type Answer = Pin<Box<dyn Future<Output = Result<Box<RawValue>, RpcError>> + Send>>;

/// How the server presents itself.
#[derive(Debug)]
pub struct Welcome {
    /// Its capabilities, a JSON object.
    pub capabilities: Box<RawValue>,
    /// How it is meant to be used.
    pub instructions: String,
}

/// Who is on the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Whose authority it acts under.
    pub principal: Principal,
    /// What it calls itself; never a reason to trust it.
    pub name: String,
    /// The key it was let in by, where it has one of its own.
    pub key: Option<KeyId>,
}

/// Who a client has proved to be. What one identity began, such as a session or a request that waits
/// for an answer, no other can go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Whose authority it acts under.
    pub principal: Principal,
    /// The key it was let in by, where it has one of its own.
    pub key: Option<KeyId>,
}

impl Identity {
    /// The client of this identity that calls itself `name`.
    fn client(&self, name: String) -> Client {
        Client { principal: self.principal.clone(), name, key: self.key }
    }
}

impl From<Principal> for Identity {
    /// A client without a key of its own.
    fn from(principal: Principal) -> Identity {
        Identity { principal, key: None }
    }
}

/// One request.
#[derive(Debug)]
pub struct Incoming {
    /// Which operation.
    pub method: String,
    /// Its parameters: a JSON object.
    pub params: Box<RawValue>,
    /// Who asks.
    pub client: Client,
    /// How the asker can be told or asked something meanwhile.
    pub caller: Caller,
    /// Cancelled when the asker no longer waits.
    pub cancel: CancellationToken,
    /// Cancelled when it does not because it said so, and not because it is gone.
    pub taken_back: CancellationToken,
}

/// Something clients may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// One resource.
    Resource(String),
}

/// The handler and what all transports share.
#[derive(Clone)]
pub struct Server {
    handler: Arc<dyn Handler>,
    suspended: Arc<run::Suspended>,
}

impl Server {
    /// A server that answers with `handler`.
    pub fn new(handler: Arc<dyn Handler>) -> Server {
        Server { handler, suspended: Arc::default() }
    }
}
