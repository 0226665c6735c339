//! Why a request to a server has no result, told by whether the server can have acted on it.

use std::time::Duration;

use crate::message::RpcError;

/// Why there is no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// Nothing reached the server: trying again is safe.
    #[error("not sent: {0}")]
    NotSent(NotSent),
    /// The server answered with an error.
    #[error("{0}")]
    Rpc(RpcError),
    /// It was sent and no answer came: whether the server acted is not known.
    #[error("sent, outcome unknown: {0}")]
    Unknown(Lost),
}

/// Why nothing was sent.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotSent {
    /// The connection had ended before.
    #[error("the connection is closed: {0}")]
    Closed(String),
    /// The server takes nothing in.
    #[error("the server did not take the request before the deadline")]
    Stalled,
    /// The caller changed its mind first.
    #[error("cancelled before it was sent")]
    Cancelled,
    /// No connection could be made.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The server wants other credentials.
    #[error("the server refused the credentials (HTTP {0})")]
    Unauthorized(u16),
    /// The server wants fewer requests.
    #[error("the server asks to wait {} s", .0.as_secs())]
    RateLimited(Duration),
    /// The server no longer knows the session.
    #[error("the server ended the session")]
    SessionEnded,
    /// Larger than a message may be.
    #[error("the request is larger than a message may be")]
    TooLarge,
}

/// What happened instead of an answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Lost {
    /// The server ended.
    #[error("the server ended: {0}")]
    Died(String),
    /// It took too long.
    #[error("no answer before the deadline")]
    Timeout,
    /// The caller changed its mind.
    #[error("cancelled")]
    Cancelled,
    /// The answer could not be used.
    #[error("unusable answer: {0}")]
    Garbage(String),
}
