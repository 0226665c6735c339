//! MCP in both directions and both protocol eras.
//!
//! As a server (stdio, streamable HTTP) this crate passes every request to one [`server::Handler`]. As a client (child
//! process, streamable HTTP) it opens [`client::Connection`]s. Payloads are forwarded as the bytes they arrived in.
//! The crate knows nothing of plans, catalogues or policy.
//!
//! The protocol is implemented from the specification rather than through an SDK. An SDK parses every argument into
//! its own value type, which changes numbers and drops members it does not know.

pub mod caller;
pub mod client;
#[cfg(unix)]
pub mod guard;
mod line;
pub mod message;
pub mod param_headers;
mod pieces;
pub mod protocol;
mod question;
pub mod server;
mod sse;

pub use caller::Caller;
pub use message::{MAX_MESSAGE_BYTES, RequestId, RpcError, code};
pub use protocol::{Era, McpImplementation};
