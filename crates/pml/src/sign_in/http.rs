//! Requests to authorization servers, at addresses that a remote server named.
//!
//! Such an address may lie on the host of the server itself or of the configured issuer; anywhere else it has to be
//! public, so that a server cannot have PML knock on doors of a private network. Redirects are not followed, since
//! they would take codes and secrets elsewhere.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use pml_auth::{AuthReply, AuthRequest, MAX_REPLY_BYTES, is_loopback};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, RequestBuilder, Response};
use url::{Host, Url};

use crate::config::SignInSettings;
use crate::public_address::is_public;
use crate::tls;

/// 20 s: how long one request may take, with connecting.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the end of a probe's session may take.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);
/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// What a server says to a request without a token.
struct ProbeReply {
    status: u16,
    challenges: Vec<String>,
    session: Option<HeaderValue>,
}

/// Sends the requests of one server's sign-ins.
#[derive(Debug)]
pub(super) struct AuthHttp {
    server: Url,
    /// The hosts that the operator named: they may have any address.
    named: BTreeSet<String>,
    clients: OnceLock<Result<HttpClients, String>>,
}

#[derive(Debug)]
struct HttpClients {
    public: Client,
    anywhere: Client,
    /// For this machine: past any proxy.
    here: Client,
}

impl AuthHttp {
    pub(super) fn new(server: &Url, settings: &SignInSettings) -> AuthHttp {
        let hosts = [Some(server), settings.issuer.as_ref()];
        let named = hosts.into_iter().flatten().filter_map(|url| Some(url.host_str()?.to_owned())).collect();
        AuthHttp { server: server.clone(), named, clients: OnceLock::new() }
    }

    /// Gets a document; its status and body.
    pub(super) async fn get(&self, url: &Url) -> Result<AuthReply, String> {
        let request = self.client(url)?.get(url.clone()).header(ACCEPT, "application/json");
        read(url, request).await
    }

    /// Sends a request of the protocol.
    pub(super) async fn post(&self, request: &AuthRequest) -> Result<AuthReply, String> {
        let url = &request.url;
        let mut builder = self.client(url)?.post(url.clone()).header(ACCEPT, "application/json");
        builder = builder.header(CONTENT_TYPE, request.content_type).body(request.body.clone());
        if let Some(authorization) = &request.authorization {
            let mut value = HeaderValue::from_str(authorization)
                .map_err(|_| "the client secret does not fit into a header".to_owned())?;
            value.set_sensitive(true);
            builder = builder.header(AUTHORIZATION, value);
        }
        read(url, builder).await
    }

    /// Asks the server itself without a token: the status, and its `WWW-Authenticate`. Some servers let anybody open a
    /// session, and want a token for its tools only.
    pub(super) async fn probe(&self) -> Result<(u16, Vec<String>), String> {
        let opening = serde_json::json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "pml", "version": env!("CARGO_PKG_VERSION") },
        });
        let opened = self.probe_with("initialize", &opening, None).await?;
        if opened.status == 401 {
            return Ok((opened.status, opened.challenges));
        }
        let session = opened.session.clone();
        let listed = self.probe_with("tools/list", &serde_json::json!({}), session.as_ref()).await;
        if let Some(session) = &session {
            self.end_session(session).await;
        }
        let told = listed.map(|listed| if listed.status == 401 { listed } else { opened })?;
        Ok((told.status, told.challenges))
    }

    /// Ends the session of a probe, which nobody uses.
    async fn end_session(&self, session: &HeaderValue) {
        let Ok(client) = self.client(&self.server) else { return };
        let request = client.delete(self.server.clone()).header(SESSION, session).timeout(SHORT_PATIENCE);
        if let Err(error) = send(&self.server, request).await {
            tracing::debug!(error, "the session of a probe was not ended");
        }
    }

    async fn probe_with(
        &self,
        method: &str,
        params: &serde_json::Value,
        session: Option<&HeaderValue>,
    ) -> Result<ProbeReply, String> {
        let body = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let url = &self.server;
        let mut request = self
            .client(url)?
            .post(url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(body.to_string());
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        let response = send(url, request).await?;
        let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let challenges = values.filter_map(|value| value.to_str().ok()).map(ToOwned::to_owned).collect();
        let session = response.headers().get(SESSION).cloned();
        Ok(ProbeReply { status: response.status().as_u16(), challenges, session })
    }

    /// The client for an address, by where that may lie.
    fn client(&self, url: &Url) -> Result<&Client, String> {
        let clients = self.clients.get_or_init(HttpClients::new).as_ref().map_err(Clone::clone)?;
        let is_named = url.host_str().is_some_and(|host| self.named.contains(host));
        if is_named || (is_loopback(url) && is_loopback(&self.server)) {
            return Ok(if is_loopback(url) { &clients.here } else { &clients.anywhere });
        }
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) | None => None,
        };
        if is_loopback(url) || literal.is_some_and(|address| !is_public(address)) {
            return Err(not_public(url.host_str().unwrap_or_default()));
        }
        Ok(&clients.public)
    }
}

impl HttpClients {
    fn new() -> Result<HttpClients, String> {
        let tls = tls::tls_client_config()?;
        let build = |builder: reqwest::ClientBuilder| {
            builder
                .tls_backend_preconfigured(tls.clone())
                .referer(false)
                .redirect(reqwest::redirect::Policy::none())
                .timeout(PATIENCE)
                .user_agent(concat!("pml/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|error| format!("no HTTP client can be made: {error}"))
        };
        Ok(HttpClients {
            public: build(Client::builder().dns_resolver(PublicResolver))?,
            anywhere: build(Client::builder())?,
            here: build(Client::builder().no_proxy())?,
        })
    }
}

async fn send(url: &Url, request: RequestBuilder) -> Result<Response, String> {
    request.send().await.map_err(|error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        format!("cannot reach `{}`: {cause}", url.host_str().unwrap_or_default())
    })
}

async fn read(url: &Url, request: RequestBuilder) -> Result<AuthReply, String> {
    let mut response = send(url, request).await?;
    let status = response.status();
    if status.is_redirection() {
        return Err(format!("`{url}` redirects, which is not followed"));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| format!("`{url}` broke off: {error}"))? {
        if body.len() + chunk.len() > MAX_REPLY_BYTES {
            return Err(format!("`{url}` sends more than {MAX_REPLY_BYTES} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(AuthReply { status: status.as_u16(), body })
}

fn not_public(host: &str) -> String {
    format!("`{host}` is not at a public address; `issuer` in the settings of the server allows it")
}

/// Resolves a name to its public addresses only, for the connection that is about to be made: a name whose address
/// changes between a check and its use gains nothing.
#[derive(Debug)]
struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(not_public(&host).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_send_requests_into_a_private_network() {
        let refused = |server: &str, issuer: Option<&str>, to: &str| {
            let issuer = issuer.map(|issuer| Url::parse(issuer).unwrap());
            let settings = SignInSettings { issuer, ..SignInSettings::default() };
            let http = AuthHttp::new(&Url::parse(server).unwrap(), &settings);
            http.client(&Url::parse(to).unwrap()).is_err()
        };
        let public = "https://mcp.example/mcp";
        for private in [
            "http://127.0.0.1:9/x",
            "http://localhost/x",
            "https://10.1.2.3/x",
            "https://169.254.169.254/latest",
            "https://[fd00::1]/x",
            "https://192.168.1.1/x",
        ] {
            assert!(refused(public, None, private), "{private}");
            assert!(!refused(public, Some(private), private), "{private}");
        }
        assert!(!refused(public, None, "https://as.example/x"));
        assert!(!refused("http://127.0.0.1:1/mcp", None, "http://localhost:2/x"));
        assert!(refused("http://127.0.0.1:1/mcp", None, "https://10.0.0.1/x"));
        assert!(!refused("https://10.0.0.1/mcp", None, "https://10.0.0.1/token"));
    }
}
