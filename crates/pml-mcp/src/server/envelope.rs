//! The sender of a request: identity, era, capabilities.

use pml_model::json::{Fields, empty_object, raw};
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::caller::{CallerInfo, new_session_number};
use crate::message::{RpcError, code};
use crate::pieces::ChunkedText;
use crate::protocol::{self, Era, MODERN, McpImplementation, meta};
use crate::server::{ClientIdentity, ConnectedClient, McpServer, session::McpSession};

/// The sender of a request, as far as the protocol tells.
pub(crate) struct RequestSender {
    pub(crate) client: ConnectedClient,
    pub(crate) info: CallerInfo,
    /// The protocol version of the request, where it is known.
    pub(crate) version: Option<String>,
}

/// Reads a value from the `_meta` of a request's parameters.
fn from_meta<T>(params: Option<&RawValue>, read: impl FnOnce(&Fields<'_>) -> T) -> Option<T> {
    let fields = Fields::parse(params?.get()).ok()?;
    let meta = Fields::parse(fields.get("_meta")?.get()).ok()?;
    Some(read(&meta))
}

/// The protocol version that a request declares; only stateless requests do.
pub(crate) fn declared_version(params: Option<&RawValue>) -> Option<String> {
    from_meta(params, |meta| meta.read(meta::VERSION))?
}

/// Reads the sender from the `_meta` of a request, if it declares a version there.
pub(crate) fn declared_sender(
    params: Option<&RawValue>,
    identity: &ClientIdentity,
) -> Option<Result<RequestSender, RpcError>> {
    // A text search comes first: requests of legacy clients have no version, and some are large.
    let params = params.filter(|params| params.get().contains(meta::VERSION));
    from_meta(params, |meta| meta.get(meta::VERSION).map(|_| modern_from(meta, identity)))?
}

/// Reads the sender of a stateless request from its `_meta`.
pub(crate) fn modern_sender(
    params: Option<&RawValue>,
    identity: &ClientIdentity,
) -> Result<RequestSender, RpcError> {
    from_meta(params, |meta| modern_from(meta, identity)).ok_or_else(|| missing(meta::VERSION))?
}

/// The error for a stateless request that declares no version.
pub(crate) fn missing_version() -> RpcError {
    missing(meta::VERSION)
}

fn missing(key: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, format!("`_meta` has no `{key}`"))
}

fn modern_from(meta: &Fields<'_>, identity: &ClientIdentity) -> Result<RequestSender, RpcError> {
    let version: String = meta.read(meta::VERSION).ok_or_else(|| missing(meta::VERSION))?;
    if version != MODERN {
        return Err(unsupported_version(&version));
    }
    let capabilities = meta.get(meta::CLIENT_CAPABILITIES).filter(|value| value.get().starts_with('{'));
    let capabilities = capabilities.ok_or_else(|| missing(meta::CLIENT_CAPABILITIES))?.to_owned();
    let name = meta.read::<McpImplementation>(meta::CLIENT_INFO).map_or_else(String::new, |info| info.name);
    let standing = CallerInfo {
        // Stateless requests do not belong together, so each gets a session number of its own.
        session: new_session_number(),
        session_end: CancellationToken::new(),
        era: Era::Modern,
        capabilities,
        progress_token: meta.get(meta::PROGRESS_TOKEN).map(ToOwned::to_owned),
        min_log_rank: meta.read::<String>(meta::LOG_LEVEL).and_then(|level| protocol::log_rank(&level)),
    };
    Ok(RequestSender { client: identity.named_client(name), info: standing, version: Some(version) })
}

/// The sender of a request within a session.
pub(crate) fn legacy_sender(
    params: Option<&RawValue>,
    session: &McpSession,
) -> Result<RequestSender, RpcError> {
    let Some(client) = session.client() else {
        return Err(RpcError::new(code::INVALID_REQUEST, "no session yet: send `initialize` first"));
    };
    let standing = CallerInfo {
        session: session.number(),
        session_end: session.ended().clone(),
        era: Era::Legacy,
        capabilities: client.capabilities,
        progress_token: from_meta(params, |meta| meta.get(meta::PROGRESS_TOKEN).map(ToOwned::to_owned))
            .flatten(),
        min_log_rank: client.min_log_rank,
    };
    let version = client.version;
    Ok(RequestSender { client: session.identity().named_client(client.name), info: standing, version })
}

/// The error for an unsupported version.
pub(crate) fn unsupported_version(version: &str) -> RpcError {
    RpcError::new(code::UNSUPPORTED_VERSION, format!("protocol version `{version}` is not spoken here"))
        .with_data(&json!({ "supported": protocol::supported_versions(), "requested": version }))
}

/// The error for an unknown method.
pub(crate) fn method_not_found(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("method `{method}` is not known here"))
}

/// Whether a stateless client must not use the method, because it is about a session.
pub(crate) fn is_session_method(method: &str) -> bool {
    matches!(
        method,
        "initialize" | "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe"
    )
}

impl McpServer {
    /// The result of `server/discover`.
    pub(crate) fn discover(&self, client: &ConnectedClient) -> ChunkedText {
        let welcome = self.handler.introduction(client);
        let result = json!({
            "supportedVersions": protocol::supported_versions(),
            "capabilities": welcome.capabilities,
            "instructions": welcome.instructions,
        });
        protocol::to_modern_result("server/discover", raw(&result), protocol::own_implementation())
    }

    /// The result of `initialize`; the session is open afterwards.
    pub(crate) fn initialize(
        &self,
        params: Option<&RawValue>,
        session: &McpSession,
    ) -> Result<ChunkedText, RpcError> {
        let text = params.map_or("{}", RawValue::get);
        let fields = Fields::parse(text).unwrap_or_default();
        let asked: String = fields
            .read("protocolVersion")
            .ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "`initialize` without `protocolVersion`"))?;
        let spoken =
            protocol::LEGACY.iter().find(|version| **version == asked).unwrap_or(&protocol::LATEST_LEGACY);
        let name = fields.read::<McpImplementation>("clientInfo").map_or_else(String::new, |info| info.name);
        let capabilities = fields.get("capabilities").map_or_else(empty_object, ToOwned::to_owned);
        session.open(name.clone(), capabilities, Some((*spoken).to_owned()));
        let welcome = self.handler.introduction(&session.identity().named_client(name));
        let result = raw(&json!({
            "protocolVersion": spoken,
            "capabilities": welcome.capabilities,
            "serverInfo": protocol::own_implementation(),
            "instructions": welcome.instructions,
        }));
        Ok(result.into())
    }
}
