//! Failures of requests to servers, classified by whether the server can have acted on the request.

use std::time::Duration;

use crate::message::RpcError;

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RequestFailure {
    /// The request did not reach the server: a retry is safe.
    #[error("not sent: {0}")]
    NotSent(#[source] NotSentReason),
    /// The server replied with an error.
    #[error("{0}")]
    Rpc(RpcError),
    /// The request was sent and no usable reply came: whether the server acted is unknown.
    #[error("sent, outcome unknown: {0}")]
    Unknown(#[source] LostReason),
}

/// Why a request was not sent.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotSentReason {
    /// The connection was closed before, for this reason.
    #[error("the connection is closed: {0}")]
    Closed(String),
    /// The server does not read its input.
    #[error("the server did not take the request before the deadline")]
    Stalled,
    /// The caller cancelled before the request was sent.
    #[error("cancelled before it was sent")]
    Cancelled,
    /// The connection could not be made.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The server rejected the credentials, with this HTTP status.
    #[error("the server refused the credentials (HTTP {0})")]
    Unauthorized(u16),
    /// The server wants a sign-in that there is not, for this reason.
    #[error("{0}")]
    SignInRequired(String),
    /// The server limits the rate; retry after this time.
    #[error("the server asks to wait {} s", .0.as_secs())]
    RateLimited(Duration),
    /// The server no longer knows the session.
    #[error("the server ended the session")]
    SessionEnded,
    /// The request exceeds the maximum size of a message.
    #[error("the request is larger than a message may be")]
    TooLarge,
}

/// Why a sent request has no reply.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LostReason {
    /// The server ended or the connection broke.
    #[error("the server ended: {0}")]
    ServerEnded(String),
    /// The deadline passed.
    #[error("no answer before the deadline")]
    Timeout,
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The reply could not be used.
    #[error("unusable answer: {0}")]
    UnusableAnswer(String),
}
