//! Fields that every request of a client has, whichever tool it calls: session, idempotency key, arguments.

use pml_mcp::server::IncomingRequest;
use pml_model::Digest;
use pml_model::json::Fields;
use pml_store::Idempotency;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::catalogue::ClientTools;
use crate::planning::session::session_of;
use crate::problem::{ErrorCode, Problem};

/// The member of `_meta` with the idempotency key: a repeated request with the same key gets the same run.
const IDEMPOTENCY_KEY: &str = "pml/idempotencyKey";
/// The member of `_meta` by which a client says that it runs programs itself, and with which tools.
const CLIENT: &str = "pml/client";
/// The longest idempotency key, in bytes.
const MAX_KEY_BYTES: usize = 200;

/// The id of the session that a request is made in; runs are recorded with it.
pub(super) fn session_id(request: &IncomingRequest) -> String {
    format!("{}/{}", request.client.name, trace_or_connection(request))
}

/// The id of the session that a request with this context is made in.
pub(super) fn session_id_in(request: &IncomingRequest, context: &RawValue) -> String {
    session_of(&request.client.name, context, || trace_or_connection(request))
}

/// What tells the sessions of a client apart that does not name them: its trace, else its connection.
fn trace_or_connection(request: &IncomingRequest) -> String {
    match trace_id(&request.params) {
        Some(trace) => format!("trace-{trace}"),
        None => request.caller.session().to_string(),
    }
}

/// The trace that a request belongs to, as W3C Trace Context writes it in `_meta`: version, trace, span and flags.
fn trace_id(params: &RawValue) -> Option<String> {
    if !params.get().contains("traceparent") {
        return None;
    }
    let params = Fields::parse(params.get()).ok()?;
    let meta = Fields::parse(params.get("_meta")?.get()).ok()?;
    let parent: String = serde_json::from_str(meta.get("traceparent")?.get()).ok()?;
    let trace = parent.split('-').nth(1)?;
    let is_id = trace.len() == 32
        && trace.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && trace.bytes().any(|byte| byte != b'0');
    is_id.then(|| trace.to_owned())
}

/// Parses the arguments of one of PML's own tools.
pub(super) fn parse_arguments<'a, T: Deserialize<'a>>(
    tool: &str,
    arguments: &'a RawValue,
    hint: &str,
) -> Result<T, Problem> {
    let wrong = |text: String| {
        Problem::new(ErrorCode::InvalidArguments, format!("the arguments of `{tool}` are {text}")).hint(hint)
    };
    // Serde would also accept an array with the values of the fields in order.
    if !arguments.get().starts_with('{') {
        return Err(wrong("not a JSON object".to_owned()));
    }
    serde_json::from_str(arguments.get()).map_err(|error| wrong(format!("wrong: {error}")))
}

/// The client's own tools, if it runs programs itself.
pub(super) fn read_client_tools(params: &RawValue) -> Result<Option<ClientTools>, Problem> {
    // A cheap text search first. The slash may be escaped.
    if !params.get().contains("pml") || !params.get().contains("client\"") {
        return Ok(None);
    }
    let params = Fields::parse(params.get()).unwrap_or_default();
    let meta = params.get("_meta").map(|meta| Fields::parse(meta.get()).unwrap_or_default());
    meta.and_then(|meta| meta.get(CLIENT).map(ClientTools::parse)).transpose()
}

/// The idempotency key of a request: in `_meta`, where programs put it, or in `options`, where agents can. `digest`
/// is of what the request asks for.
pub(super) fn read_idempotency(
    params: &RawValue,
    option: Option<&str>,
    digest: impl FnOnce() -> Digest,
) -> Result<Option<Idempotency>, Problem> {
    let wrong = |text: String| Problem::new(ErrorCode::InvalidRequest, text);
    let (name, key) = match (idempotency_key_in_meta(params), option) {
        (Some(beside), Some(option)) if beside != option => {
            return Err(wrong("`options.idempotencyKey` and `pml/idempotencyKey` differ".to_owned())
                .hint("give the key once"));
        }
        (Some(key), _) => (IDEMPOTENCY_KEY, key),
        (None, Some(key)) => ("options.idempotencyKey", key.to_owned()),
        (None, None) => return Ok(None),
    };
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        return Err(wrong(format!("`{name}` is not a text of 1 to {MAX_KEY_BYTES} bytes")));
    }
    Ok(Some(Idempotency { key, request: digest() }))
}

/// The idempotency key in `_meta`; empty where it is not a string.
fn idempotency_key_in_meta(params: &RawValue) -> Option<String> {
    // A cheap text search first: few requests carry a key and some are large. The slash may be escaped.
    if !params.get().contains("idempotencyKey") {
        return None;
    }
    let params = Fields::parse(params.get()).unwrap_or_default();
    let meta = Fields::parse(params.get("_meta")?.get()).unwrap_or_default();
    meta.get(IDEMPOTENCY_KEY).map(|key| serde_json::from_str(key.get()).unwrap_or_default())
}
