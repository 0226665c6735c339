//! HTTP requests to the hosts the operator allowed.
//!
//! Every hop of a redirect is checked like the first URL. Only what the caller gave is sent: no cookies, no proxy and
//! no credentials from the environment. Responses are cut at a limit while they arrive, and requested without
//! compression, so that the limit counts real bytes.

mod guard;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pml_model::Annotations;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use url::Url;

use super::tool::{
    BuiltinFailure, BuiltinSpec, BuiltinTool, QuotedName, READS, REMOVES, REPLACES, failure, object_schema,
    present,
};
pub use guard::InvalidHostEntry;
use guard::{AddressReach, HostAllowlist, HostLookup, PublicResolver};

use crate::tls;

const DEFAULT_BODY_BYTES: usize = 1024 * 1024;
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const MAX_TIMEOUT_MS: u64 = 120_000;
const MAX_REDIRECTS: usize = 5;
const MAX_URL_BYTES: usize = 8 * 1024;
const MAX_HEADERS: usize = 64;

/// Headers that belong to the connection, not to the caller.
const OWN_HEADERS: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The headers that are kept on a redirect to another origin; any other could be a credential.
const HARMLESS_HEADERS: &[HeaderName] = &[
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_TYPE,
    header::USER_AGENT,
];

/// The tools, restricted to the hosts on the operator's list.
pub(super) fn tools(hosts: &[String]) -> Result<Vec<BuiltinTool>, InvalidHostEntry> {
    let web = Arc::new(HttpFetcher::new(hosts, guard::system_lookup())?);
    Ok(web.tools())
}

/// The state that the requests of one server share.
struct HttpFetcher {
    allowed: HostAllowlist,
    lookup: HostLookup,
    clients: OnceLock<Result<HttpClients, BuiltinFailure>>,
}

struct HttpClients {
    public: Client,
    anywhere: Client,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct HttpArguments {
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "present")]
    body: Option<Box<RawValue>>,
    timeout_ms: Option<u64>,
    max_bytes: Option<usize>,
}

#[derive(Serialize)]
struct HttpAnswer {
    url: String,
    status: u16,
    ok: bool,
    headers: BTreeMap<String, String>,
    body: String,
    encoding: &'static str,
    truncated: bool,
}

/// One request of a chain of redirects.
struct HttpHop {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<String>,
}

impl HttpFetcher {
    fn new(hosts: &[String], lookup: HostLookup) -> Result<HttpFetcher, InvalidHostEntry> {
        Ok(HttpFetcher { allowed: HostAllowlist::parse(hosts)?, lookup, clients: OnceLock::new() })
    }

    fn tools(self: &Arc<HttpFetcher>) -> Vec<BuiltinTool> {
        let body = "Sends a body, as text or as JSON, ";
        [
            (Method::GET, "get", "Fetch a URL", "Fetches a URL.".to_owned(), READS),
            (
                Method::HEAD,
                "head",
                "Fetch headers",
                "Fetches the status and headers of a URL.".to_owned(),
                READS,
            ),
            (Method::POST, "post", "Post to a URL", format!("{body}with POST."), REPLACES),
            (Method::PUT, "put", "Put to a URL", format!("{body}with PUT, to be kept at the URL."), REMOVES),
            (
                Method::PATCH,
                "patch",
                "Patch a URL",
                format!("{body}with PATCH, to change what is there."),
                REPLACES,
            ),
            (
                Method::DELETE,
                "delete",
                "Delete a URL",
                "Asks to delete what is at the URL.".to_owned(),
                REMOVES,
            ),
        ]
        .into_iter()
        .map(|(method, name, title, purpose, effect)| {
            let web = self.clone();
            let spec = spec(&method, name, title, &purpose, effect);
            BuiltinTool::asynchronous(spec, move |arguments| web.clone().ask(method.clone(), arguments))
        })
        .collect()
    }

    async fn ask(
        self: Arc<HttpFetcher>,
        method: Method,
        arguments: HttpArguments,
    ) -> Result<HttpAnswer, BuiltinFailure> {
        let timeout_ms = arguments.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS).clamp(1, MAX_TIMEOUT_MS);
        let limit = arguments.max_bytes.unwrap_or(DEFAULT_BODY_BYTES).clamp(1, MAX_BODY_BYTES);
        let request = HttpHop::new(method, arguments)?;
        let host = request.url.host_str().unwrap_or_default().to_owned();
        let answer =
            tokio::time::timeout(Duration::from_millis(timeout_ms), self.follow(request, limit)).await;
        answer.unwrap_or_else(|_| {
            Err(failure!(
                "host {} did not answer within {timeout_ms} ms; set `timeoutMs` to wait longer",
                QuotedName(&host)
            ))
        })
    }

    async fn follow(&self, mut request: HttpHop, limit: usize) -> Result<HttpAnswer, BuiltinFailure> {
        for _ in 0..=MAX_REDIRECTS {
            let reach = self.allowed.check(&request.url)?;
            let response = self.send(&request, reach).await?;
            match location(&response, &request.url)? {
                None => return answer(response, limit).await,
                Some(next) => request = request.redirected(next, response.status())?,
            }
        }
        Err(failure!("the server redirected more than {MAX_REDIRECTS} times"))
    }

    async fn send(&self, request: &HttpHop, reach: AddressReach) -> Result<Response, BuiltinFailure> {
        let clients =
            self.clients.get_or_init(|| HttpClients::new(&self.lookup)).as_ref().map_err(Clone::clone)?;
        let client = match reach {
            AddressReach::Public => &clients.public,
            AddressReach::Anywhere => &clients.anywhere,
        };
        let mut builder =
            client.request(request.method.clone(), request.url.clone()).headers(request.headers.clone());
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        builder.send().await.map_err(|error| not_reached(&request.url, &error))
    }
}

impl HttpClients {
    fn new(lookup: &HostLookup) -> Result<HttpClients, BuiltinFailure> {
        let tls = tls::tls_client_config().map_err(|error| failure!("{error}"))?;
        let build = |builder: reqwest::ClientBuilder| {
            builder
                .tls_backend_preconfigured(tls.clone())
                .no_proxy()
                .referer(false)
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(Duration::from_secs(10))
                .build()
                .map_err(|error| failure!("no HTTP client can be made: {}", deepest(&error)))
        };
        Ok(HttpClients {
            public: build(Client::builder().dns_resolver(PublicResolver(lookup.clone())))?,
            anywhere: build(Client::builder())?,
        })
    }
}

impl HttpHop {
    fn new(method: Method, arguments: HttpArguments) -> Result<HttpHop, BuiltinFailure> {
        if arguments.url.len() > MAX_URL_BYTES {
            return Err(failure!(
                "the URL is {} bytes; at most {MAX_URL_BYTES} are taken",
                arguments.url.len()
            ));
        }
        let url = Url::parse(&arguments.url)
            .map_err(|error| failure!("{} is no URL: {error}", QuotedName(&arguments.url)))?;
        let mut headers = headers(arguments.headers)?;
        let body = arguments.body.map(|body| match serde_json::from_str::<String>(body.get()) {
            Ok(text) => text,
            Err(_) => {
                headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
                body.get().to_owned()
            }
        });
        if body.is_some() && matches!(method, Method::GET | Method::HEAD) {
            return Err(failure!("a `{method}` request has no body; use `post` to send one"));
        }
        Ok(HttpHop { method, url, headers, body })
    }

    /// The request after a redirect, following the rules of browsers.
    fn redirected(mut self, next: Url, status: StatusCode) -> Result<HttpHop, BuiltinFailure> {
        if self.url.scheme() == "https" && next.scheme() == "http" {
            return Err(failure!("the server redirected from https to http, which is refused"));
        }
        if self.url.origin() != next.origin() {
            let kept = HARMLESS_HEADERS
                .iter()
                .filter_map(|name| Some((name.clone(), self.headers.get(name)?.clone())));
            self.headers = kept.collect();
        }
        let becomes_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.headers.remove(header::CONTENT_TYPE);
            return Ok(HttpHop { method: Method::GET, url: next, headers: self.headers, body: None });
        }
        Ok(HttpHop { url: next, ..self })
    }
}

fn headers(given: BTreeMap<String, String>) -> Result<HeaderMap, BuiltinFailure> {
    if given.len() > MAX_HEADERS {
        return Err(failure!("{} headers are given; at most {MAX_HEADERS} are taken", given.len()));
    }
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("pml/", env!("CARGO_PKG_VERSION"))));
    for (name, value) in given {
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(&value).ok());
        let Some((header, value)) = parsed else {
            return Err(failure!("header {} has characters that cannot be sent", QuotedName(&name)));
        };
        if OWN_HEADERS.contains(&header.as_str()) || header.as_str().starts_with("proxy-") {
            return Err(failure!("header `{header}` is set by the connection itself; leave it out"));
        }
        headers.insert(header, value);
    }
    Ok(headers)
}

/// The target of a redirect; `None` where the response is none.
fn location(response: &Response, url: &Url) -> Result<Option<Url>, BuiltinFailure> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(header::LOCATION) else { return Ok(None) };
    let location = String::from_utf8_lossy(location.as_bytes());
    let next = url.join(&location);
    next.map(Some).map_err(|error| {
        failure!("the server redirected to {}, which is no URL: {error}", QuotedName(&location))
    })
}

async fn answer(mut response: Response, limit: usize) -> Result<HttpAnswer, BuiltinFailure> {
    let (status, url) = (response.status(), response.url().clone());
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in response.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        let held = headers.entry(name.to_string()).or_default();
        let separator = if held.is_empty() { "" } else { ", " };
        *held = format!("{held}{separator}{value}");
    }
    let (mut bytes, mut truncated) = (Vec::new(), false);
    while let Some(chunk) = response.chunk().await.map_err(|error| not_reached(&url, &error))? {
        let room = limit - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            truncated = true;
            break;
        }
    }
    let (body, encoding) = render(bytes, truncated);
    Ok(HttpAnswer {
        url: url.into(),
        status: status.as_u16(),
        ok: status.is_success(),
        headers,
        body,
        encoding,
        truncated,
    })
}

/// The body and its encoding: text where it is UTF-8 (a truncated body ends at the last whole character), else
/// base64.
fn render(mut bytes: Vec<u8>, truncated: bool) -> (String, &'static str) {
    if let Err(error) = std::str::from_utf8(&bytes)
        && truncated
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    match String::from_utf8(bytes) {
        Ok(text) => (text, "utf8"),
        Err(error) => (BASE64.encode(error.into_bytes()), "base64"),
    }
}

fn not_reached(url: &Url, error: &reqwest::Error) -> BuiltinFailure {
    failure!("cannot reach {}: {}", QuotedName(url.host_str().unwrap_or_default()), deepest(error))
}

/// The innermost cause: it says what happened, the outer ones only where.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn spec(
    method: &Method,
    name: &'static str,
    title: &'static str,
    purpose: &str,
    effect: Annotations,
) -> BuiltinSpec {
    let mut properties = json!({
        "url": { "type": "string", "minLength": 1, "maxLength": MAX_URL_BYTES, "description": "An http or https URL of an allowed host." },
        "headers": {
            "type": "object",
            "additionalProperties": { "type": "string" },
            "maxProperties": MAX_HEADERS,
            "description": "Headers to send."
        },
        "timeoutMs": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TIMEOUT_MS,
            "description": "How long the whole request may take; 30000 unless told."
        },
        "maxBytes": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_BODY_BYTES,
            "description": "Most bytes of the answer to give; 1 MiB unless told."
        },
    });
    if !matches!(*method, Method::GET | Method::HEAD) {
        properties["body"] =
            json!({ "description": "What to send: a text as it is, any other value as JSON." });
    }
    // An empty body is allowed but must be given: a missing one is mostly a mistake. There is a single `body`
    // parameter, because model providers refuse schemas with alternatives at their root.
    let required: &[&str] = match *method {
        Method::POST | Method::PUT | Method::PATCH => &["url", "body"],
        _ => &["url"],
    };
    BuiltinSpec {
        name,
        title,
        description: format!("{purpose} {NOTE}").into(),
        effect: Annotations { open_world_hint: Some(true), ..effect },
        input: object_schema(properties, required),
        output: answer_schema(),
    }
}

const NOTE: &str = "Follows redirects between allowed hosts. An answer of 400 and above is an answer: look at \
                    `status` or `ok`.";

fn answer_schema() -> Value {
    object_schema(
        json!({
            "url": { "type": "string", "description": "The URL that answered, after redirects." },
            "status": { "type": "integer", "description": "The status code." },
            "ok": { "type": "boolean", "description": "Whether the status is 200 to 299." },
            "headers": {
                "type": "object",
                "additionalProperties": { "type": "string" },
                "description": "Headers of the answer by lower-case name; repeated ones joined by commas."
            },
            "body": { "type": "string", "description": "The answer in the encoding told." },
            "encoding": {
                "type": "string",
                "enum": ["utf8", "base64"],
                "description": "`base64` when the answer is not UTF-8 text."
            },
            "truncated": { "type": "boolean", "description": "Whether the answer was longer." },
        }),
        &["url", "status", "ok", "headers", "body", "encoding", "truncated"],
    )
}
