//! Session ids of legacy clients. An id holds what its client declared, sealed, so that any replica of this server can
//! continue the session: behind a proxy each request may reach another one, and the one that opened the session may be
//! gone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pml_model::{KeyId, Principal};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::session::McpSession;
use super::{ClientIdentity, Handler};

/// 4 KiB: the largest sealed id, so that it fits into the headers that proxies accept. A client that declares more has
/// an id that only this process knows.
const MAX_SEALED_BYTES: usize = 4 * 1024;
/// 7 days in milliseconds: how long an id can be opened. A client gets another one by `initialize`.
const LIFETIME_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// The content of a session id.
#[derive(Serialize, Deserialize)]
struct SessionContent {
    principal: Principal,
    key: Option<KeyId>,
    client: String,
    capabilities: Box<RawValue>,
    #[serde(default)]
    version: Option<String>,
    /// The number of the session, the same in every replica.
    number: u64,
    opened_at: i64,
}

/// An id for a session that was just opened.
pub(super) fn make(handler: &dyn Handler, session: &McpSession, now_ms: i64) -> String {
    let sealed = session.client().and_then(|client| {
        let ClientIdentity { principal, key } = session.identity().clone();
        let content = SessionContent {
            principal,
            key,
            client: client.name,
            capabilities: client.capabilities,
            version: client.version,
            number: session.number(),
            opened_at: now_ms,
        };
        let content =
            serde_json::to_vec(&content).ok().filter(|content| content.len() <= MAX_SEALED_BYTES)?;
        handler.seal_session(&content)
    });
    URL_SAFE_NO_PAD.encode(sealed.unwrap_or_else(random_bytes))
}

/// The session of this client that an id stands for; `None` if it stands for none, or for one that is too old.
pub(super) fn open(
    handler: &dyn Handler,
    id: &str,
    identity: &ClientIdentity,
    now_ms: i64,
) -> Option<McpSession> {
    let sealed = URL_SAFE_NO_PAD.decode(id).ok().filter(|sealed| sealed.len() <= 2 * MAX_SEALED_BYTES)?;
    let content: SessionContent = serde_json::from_slice(&handler.open_session(sealed)?).ok()?;
    let is_theirs = content.principal == identity.principal && content.key == identity.key;
    if !is_theirs || now_ms.saturating_sub(content.opened_at) > LIFETIME_MS {
        return None;
    }
    let session = new_session(identity.clone(), content.number);
    session.open(content.client, content.capabilities, content.version);
    Some(session)
}

/// A session of a client as this replica has it.
pub(super) fn new_session(identity: ClientIdentity, number: u64) -> McpSession {
    McpSession::numbered(identity, number, random_number() >> 10)
}

/// A number for a session that any replica may continue: no two replicas give the same one.
pub(super) fn random_number() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    // Also a number of JSON.
    u64::from_le_bytes(bytes) >> 11
}

fn random_bytes() -> Vec<u8> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes.to_vec()
}
