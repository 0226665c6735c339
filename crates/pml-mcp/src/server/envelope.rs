//! What a request says about the one who sent it.

use pml_model::json::{Fields, empty_object, raw};
use serde_json::json;
use serde_json::value::RawValue;

use crate::caller::{Standing, new_session};
use crate::message::{RpcError, code};
use crate::pieces::Pieces;
use crate::protocol::{self, Era, Implementation, MODERN, meta};
use crate::server::{Client, Identity, Server, session::Session};

/// A request's sender, as far as the protocol tells.
pub(crate) struct Sender {
    pub(crate) client: Client,
    pub(crate) standing: Standing,
}

/// Reads something from the `_meta` of a request's parameters.
fn from_meta<T>(params: Option<&RawValue>, read: impl FnOnce(&Fields<'_>) -> T) -> Option<T> {
    let fields = Fields::parse(params?.get()).ok()?;
    let meta = Fields::parse(fields.get("_meta")?.get()).ok()?;
    Some(read(&meta))
}

/// The version a request declares for itself; only stateless requests do.
pub(crate) fn declared_version(params: Option<&RawValue>) -> Option<String> {
    from_meta(params, |meta| meta.read(meta::VERSION))?
}

/// Reads the sender of a request from its `_meta`, if it declares a version there.
pub(crate) fn declared(params: Option<&RawValue>, identity: &Identity) -> Option<Result<Sender, RpcError>> {
    // Looked for as text first: an older client's requests have none, and some are large.
    let params = params.filter(|params| params.get().contains(meta::VERSION));
    from_meta(params, |meta| meta.get(meta::VERSION).map(|_| modern_from(meta, identity)))?
}

/// Reads the sender of a stateless request from its `_meta`.
pub(crate) fn modern(params: Option<&RawValue>, identity: &Identity) -> Result<Sender, RpcError> {
    from_meta(params, |meta| modern_from(meta, identity)).ok_or_else(|| missing(meta::VERSION))?
}

/// The refusal of a stateless request that does not say which version it speaks.
pub(crate) fn missing_version() -> RpcError {
    missing(meta::VERSION)
}

fn missing(key: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, format!("`_meta` has no `{key}`"))
}

fn modern_from(meta: &Fields<'_>, identity: &Identity) -> Result<Sender, RpcError> {
    let version: String = meta.read(meta::VERSION).ok_or_else(|| missing(meta::VERSION))?;
    if version != MODERN {
        return Err(unsupported(&version));
    }
    let capabilities = meta.get(meta::CLIENT_CAPABILITIES).filter(|value| value.get().starts_with('{'));
    let capabilities = capabilities.ok_or_else(|| missing(meta::CLIENT_CAPABILITIES))?.to_owned();
    let name = meta.read::<Implementation>(meta::CLIENT_INFO).map_or_else(String::new, |info| info.name);
    let standing = Standing {
        // No request of this era belongs to another, so none may be taken for another.
        session: new_session(),
        era: Era::Modern,
        capabilities,
        progress_token: meta.get(meta::PROGRESS_TOKEN).map(ToOwned::to_owned),
        wants_logs_from: meta.read::<String>(meta::LOG_LEVEL).and_then(|level| protocol::log_rank(&level)),
    };
    Ok(Sender { client: identity.client(name), standing })
}

/// The sender of a request within a session.
pub(crate) fn legacy(params: Option<&RawValue>, session: &Session) -> Result<Sender, RpcError> {
    let Some(client) = session.client() else {
        return Err(RpcError::new(code::INVALID_REQUEST, "no session yet: send `initialize` first"));
    };
    let standing = Standing {
        session: session.number(),
        era: Era::Legacy,
        capabilities: client.capabilities,
        progress_token: from_meta(params, |meta| meta.get(meta::PROGRESS_TOKEN).map(ToOwned::to_owned))
            .flatten(),
        wants_logs_from: client.wants_logs_from,
    };
    Ok(Sender { client: session.identity().client(client.name), standing })
}

/// The refusal of a version that is not spoken here.
pub(crate) fn unsupported(version: &str) -> RpcError {
    RpcError::new(code::UNSUPPORTED_VERSION, format!("protocol version `{version}` is not spoken here"))
        .with_data(&json!({ "supported": protocol::supported_versions(), "requested": version }))
}

/// The refusal of a method that nobody here knows.
pub(crate) fn method_not_found(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("method `{method}` is not known here"))
}

/// Methods that a stateless client must not use, because they are about a session.
pub(crate) fn is_gone(method: &str) -> bool {
    matches!(
        method,
        "initialize" | "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe"
    )
}

impl Server {
    /// The answer to `server/discover`.
    pub(crate) fn discover(&self, client: &Client) -> Pieces {
        let welcome = self.handler.welcome(client);
        let result = json!({
            "supportedVersions": protocol::supported_versions(),
            "capabilities": welcome.capabilities,
            "instructions": welcome.instructions,
        });
        protocol::modern_result("server/discover", raw(&result), protocol::me())
    }

    /// The answer to `initialize`; the session is open afterwards.
    pub(crate) fn initialize(
        &self,
        params: Option<&RawValue>,
        session: &Session,
    ) -> Result<Pieces, RpcError> {
        let text = params.map_or("{}", RawValue::get);
        let fields = Fields::parse(text).unwrap_or_default();
        let asked: String = fields
            .read("protocolVersion")
            .ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "`initialize` without `protocolVersion`"))?;
        let spoken =
            protocol::LEGACY.iter().find(|version| **version == asked).unwrap_or(&protocol::LATEST_LEGACY);
        let name = fields.read::<Implementation>("clientInfo").map_or_else(String::new, |info| info.name);
        let capabilities = fields.get("capabilities").map_or_else(empty_object, ToOwned::to_owned);
        session.open(name.clone(), capabilities);
        let welcome = self.handler.welcome(&session.identity().client(name));
        let result = raw(&json!({
            "protocolVersion": spoken,
            "capabilities": welcome.capabilities,
            "serverInfo": protocol::me(),
            "instructions": welcome.instructions,
        }));
        Ok(result.into())
    }
}
