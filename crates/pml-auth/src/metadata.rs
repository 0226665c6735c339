//! The documents in which servers describe themselves: protected resources (RFC 9728) and authorization servers
//! (RFC 8414, OpenID Connect Discovery).

use serde::Deserialize;
use url::Url;

use crate::{Refusal, Scopes, endpoint, shown};

/// The most authorization servers of one resource that are looked at.
const MAX_SERVERS: usize = 8;

/// Where the description of the MCP server at `server` may stand, best first.
pub fn protected_resource_urls(server: &Url) -> Vec<Url> {
    well_known(server, "oauth-protected-resource")
}

/// Where the description of an authorization server may stand, best first.
pub fn authorization_server_urls(issuer: &Url) -> Vec<Url> {
    let mut urls: Vec<Url> = Vec::new();
    let path = issuer.path().trim_end_matches('/');
    for name in ["oauth-authorization-server", "openid-configuration"] {
        urls.push(at(issuer, &format!("/.well-known/{name}{path}")));
    }
    if !path.is_empty() {
        urls.push(at(issuer, &format!("{path}/.well-known/openid-configuration")));
    }
    urls
}

fn well_known(url: &Url, name: &str) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let root = at(url, &format!("/.well-known/{name}"));
    if path.is_empty() { vec![root] } else { vec![at(url, &format!("/.well-known/{name}{path}")), root] }
}

fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// What an MCP server says of who authorizes requests to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedResource {
    /// Its identifier, which tokens are asked for.
    pub resource: String,
    /// The issuers of tokens for it.
    pub authorization_servers: Vec<Url>,
    /// The scopes that it knows.
    pub scopes: Scopes,
}

#[derive(Deserialize)]
struct ResourceDocument {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

impl ProtectedResource {
    /// Reads the description of the MCP server at `server`.
    ///
    /// # Errors
    /// It is no such document, describes something else, or names no usable authorization server.
    pub fn parse(body: &[u8], server: &Url) -> Result<ProtectedResource, Refusal> {
        let document: ResourceDocument = read(body, "resource metadata")?;
        // A server that describes another resource would have PML ask for tokens of that one.
        let resource = Url::parse(&document.resource).ok().filter(|resource| covers(resource, server));
        if resource.is_none() {
            let text = format!(
                "its resource metadata is about `{}`, not about `{server}`",
                shown(&document.resource)
            );
            return Err(Refusal(text));
        }
        let mut authorization_servers = Vec::new();
        for issuer in document.authorization_servers.iter().take(MAX_SERVERS) {
            authorization_servers.push(endpoint("authorization server", issuer)?);
        }
        if authorization_servers.is_empty() {
            return Err(Refusal("its resource metadata names no authorization server".to_owned()));
        }
        Ok(ProtectedResource {
            resource: document.resource,
            authorization_servers,
            scopes: Scopes::of(document.scopes_supported.iter().map(String::as_str)),
        })
    }
}

/// Whether `resource` identifies the server, or a part of its origin that the server lies in.
fn covers(resource: &Url, server: &Url) -> bool {
    let (own, whole) = (server.path().trim_end_matches('/'), resource.path().trim_end_matches('/'));
    resource.origin() == server.origin()
        && own.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What an authorization server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationServer {
    /// Its identifier.
    pub issuer: Url,
    /// Its identifier as it writes it, which redirects repeat to the letter.
    pub issuer_text: String,
    /// Where people are sent to sign in.
    pub authorization_endpoint: Option<Url>,
    /// Where tokens are given out.
    pub token_endpoint: Url,
    /// Where clients register themselves.
    pub registration_endpoint: Option<Url>,
    /// Where tokens are revoked.
    pub revocation_endpoint: Option<Url>,
    /// Where a sign-in on another device begins.
    pub device_endpoint: Option<Url>,
    /// The scopes that it knows.
    pub scopes: Scopes,
    /// How clients may identify themselves at the token endpoint.
    pub auth_methods: Vec<String>,
    /// Whether a client may be identified by the URL of its metadata.
    pub takes_client_metadata_urls: bool,
    /// Whether every redirect from it names the issuer.
    pub names_issuer_in_redirects: bool,
}

#[derive(Deserialize)]
struct ServerDocument {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    code_challenge_methods_supported: Option<Vec<String>>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    client_id_metadata_document_supported: bool,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AuthorizationServer {
    /// Reads the description of `issuer`.
    ///
    /// # Errors
    /// It is no such document, is about another issuer, has an endpoint that cannot be used, or no PKCE with S256.
    pub fn parse(body: &[u8], issuer: &Url) -> Result<AuthorizationServer, Refusal> {
        let document: ServerDocument = read(body, "authorization server metadata")?;
        // Mix-up: metadata that names another issuer would redirect codes to it.
        if Url::parse(&document.issuer).ok().as_ref() != Some(issuer) {
            let text = format!(
                "the metadata of authorization server `{issuer}` names the issuer `{}`",
                shown(&document.issuer)
            );
            return Err(Refusal(text));
        }
        let optional = |what, text: Option<String>| text.map(|text| endpoint(what, &text)).transpose();
        let authorization_endpoint = optional("authorization endpoint", document.authorization_endpoint)?;
        let methods = document.code_challenge_methods_supported.unwrap_or_default();
        if authorization_endpoint.is_some() && !methods.iter().any(|method| method == "S256") {
            let text =
                format!("authorization server `{issuer}` does not say that it supports PKCE with S256");
            return Err(Refusal(text));
        }
        let token_endpoint = document
            .token_endpoint
            .ok_or_else(|| Refusal(format!("authorization server `{issuer}` names no token endpoint")))?;
        Ok(AuthorizationServer {
            issuer: issuer.clone(),
            issuer_text: document.issuer,
            authorization_endpoint,
            token_endpoint: endpoint("token endpoint", &token_endpoint)?,
            registration_endpoint: optional("registration endpoint", document.registration_endpoint)?,
            revocation_endpoint: optional("revocation endpoint", document.revocation_endpoint)?,
            device_endpoint: optional(
                "device authorization endpoint",
                document.device_authorization_endpoint,
            )?,
            scopes: Scopes::of(document.scopes_supported.iter().map(String::as_str)),
            // RFC 8414: `client_secret_basic` where nothing is said.
            auth_methods: document
                .token_endpoint_auth_methods_supported
                .unwrap_or_else(|| vec!["client_secret_basic".to_owned()]),
            takes_client_metadata_urls: document.client_id_metadata_document_supported,
            names_issuer_in_redirects: document.authorization_response_iss_parameter_supported,
        })
    }

    /// The authorization server that MCP servers of 2025-03-26 without any metadata have at their own origin.
    pub fn without_metadata(origin: &Url) -> AuthorizationServer {
        AuthorizationServer {
            issuer: at(origin, "/"),
            issuer_text: origin.origin().ascii_serialization(),
            authorization_endpoint: Some(at(origin, "/authorize")),
            token_endpoint: at(origin, "/token"),
            registration_endpoint: Some(at(origin, "/register")),
            revocation_endpoint: None,
            device_endpoint: None,
            scopes: Scopes::default(),
            auth_methods: vec!["none".to_owned(), "client_secret_post".to_owned()],
            takes_client_metadata_urls: false,
            names_issuer_in_redirects: false,
        }
    }
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8], what: &str) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal(format!("its {what} cannot be read: {}", shown(&error.to_string()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn documents_are_looked_for_in_both_forms_of_path() {
        let texts = |urls: Vec<Url>| urls.into_iter().map(String::from).collect::<Vec<_>>();
        assert_eq!(
            texts(protected_resource_urls(&url("https://a.example/mcp?x=1"))),
            [
                "https://a.example/.well-known/oauth-protected-resource/mcp",
                "https://a.example/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(
            texts(authorization_server_urls(&url("https://a.example/tenant/1/"))),
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant/1",
                "https://a.example/.well-known/openid-configuration/tenant/1",
                "https://a.example/tenant/1/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            texts(authorization_server_urls(&url("https://a.example"))),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn a_resource_that_describes_another_is_refused() {
        let server = url("https://a.example/mcp/v1");
        let told = |resource: &str| {
            let body =
                format!(r#"{{"resource":"{resource}","authorization_servers":["https://as.example"]}}"#);
            ProtectedResource::parse(body.as_bytes(), &server)
        };
        for good in ["https://a.example/mcp/v1", "https://a.example/mcp", "https://a.example"] {
            assert_eq!(told(good).unwrap().resource, good);
        }
        for bad in [
            "https://b.example/mcp/v1",
            "https://a.example/mc",
            "http://a.example/mcp/v1",
            "https://a.example:1/mcp/v1",
            "x",
        ] {
            assert!(told(bad).is_err(), "{bad}");
        }
        for bad in [
            r#"{"resource":"https://a.example/mcp"}"#,
            r#"{"resource":"https://a.example/mcp","authorization_servers":["http://as.example"]}"#,
            "[]",
            "",
        ] {
            assert!(ProtectedResource::parse(bad.as_bytes(), &server).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_authorization_server_speaks_for_its_own_issuer_alone() {
        let issuer = url("https://as.example");
        let parse =
            |body: serde_json::Value| AuthorizationServer::parse(body.to_string().as_bytes(), &issuer);
        let good = serde_json::json!({
            "issuer": "https://as.example", "authorization_endpoint": "https://as.example/a",
            "token_endpoint": "https://as.example/t", "code_challenge_methods_supported": ["S256"],
        });
        assert_eq!(parse(good.clone()).unwrap().auth_methods, ["client_secret_basic"]);
        let with = |key: &str, value: serde_json::Value| {
            let mut document = good.clone();
            document[key] = value;
            parse(document)
        };
        assert!(with("issuer", "https://evil.example".into()).is_err());
        assert!(with("token_endpoint", "http://as.example/t".into()).is_err());
        assert!(with("authorization_endpoint", "javascript:alert(1)".into()).is_err());
        assert!(with("code_challenge_methods_supported", serde_json::json!(["plain"])).is_err());
        assert!(with("revocation_endpoint", "http://10.0.0.1/r".into()).is_err());
    }
}
