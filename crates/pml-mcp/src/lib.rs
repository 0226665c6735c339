//! Speaks MCP in both directions and both protocol eras.
//!
//! As a server (stdio, streamable HTTP) it hands every request to one [`server::Handler`]; as a
//! client (child process, streamable HTTP) it opens [`client::Connection`]s. Payloads pass through
//! as the bytes they came in. It knows nothing of plans, catalogues or policy.
//!
//! The protocol is spoken from the specification rather than through an SDK: an SDK parses every
//! argument into its own value type, which changes numbers and drops members it does not know.

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
pub use message::{Id, MAX_MESSAGE_BYTES, RpcError, code};
pub use protocol::{Era, Implementation};
