//! Finds the authorization server of a remote server.

use pml_auth::{
    AuthReply, AuthorizationServer, Challenge, ProtectedResource, Scopes, authorization_server_urls,
    endpoint, protected_resource_urls,
};
use url::Url;

use super::http::AuthHttp;
use crate::config::SignInSettings;

/// Who authorizes requests to a server, and what they are asked for.
#[derive(Debug)]
pub(super) struct Authority {
    /// The authorization server.
    pub(super) server: AuthorizationServer,
    /// The identifier of the resource.
    pub(super) resource: String,
    /// The scopes that the server names: those of its challenge, else all that it knows.
    pub(super) scopes: Scopes,
}

/// Asks the server at `address` who authorizes requests to it, and that authorization server what it can do.
pub(super) async fn discover(
    http: &AuthHttp,
    address: &Url,
    settings: &SignInSettings,
) -> Result<Authority, String> {
    let (status, challenges) = http.probe().await?;
    let challenge = Challenge::parse(challenges.iter().map(String::as_str));
    let described = describe_resource(http, address, &challenge).await?;
    if described.is_none() && status != 401 {
        return Err(format!("it does not ask for one (HTTP {status})"));
    }
    let (issuers, resource, known) = match described {
        Some(told) => (told.authorization_servers, told.resource, told.scopes),
        None => (Vec::new(), address.to_string(), Scopes::default()),
    };
    let scopes = if challenge.scopes.is_empty() { known } else { challenge.scopes };
    let issuer = match &settings.issuer {
        Some(only) if issuers.is_empty() || issuers.contains(only) => Some(only.clone()),
        Some(only) => {
            return Err(format!("it does not accept tokens of `{only}`, the `issuer` of the configuration"));
        }
        None => issuers.into_iter().next(),
    };
    let server = match &issuer {
        Some(issuer) => describe_issuer(http, issuer).await?.ok_or_else(|| {
            format!(
                "authorization server `{issuer}` has no metadata where RFC 8414 and OpenID Connect put it"
            )
        })?,
        // Servers of 2025-03-26 are their own authorization servers.
        None => {
            let mut origin = endpoint("address", address.as_str()).map_err(|refusal| refusal.0)?;
            origin.set_path("/");
            origin.set_query(None);
            let told = describe_issuer(http, &origin).await?;
            told.unwrap_or_else(|| AuthorizationServer::without_metadata(&origin))
        }
    };
    Ok(Authority { server, resource, scopes })
}

async fn describe_resource(
    http: &AuthHttp,
    address: &Url,
    challenge: &Challenge,
) -> Result<Option<ProtectedResource>, String> {
    let named = challenge.resource_metadata.as_deref().map(|url| endpoint("resource metadata", url));
    let named = named.transpose().map_err(|refusal| refusal.0)?;
    let is_named = named.is_some();
    for url in named.map_or_else(|| protected_resource_urls(address), |url| vec![url]) {
        if let Some(reply) = found(http.get(&url).await?, &url)? {
            return ProtectedResource::parse(&reply.body, address).map(Some).map_err(|refusal| refusal.0);
        }
        if is_named {
            return Err(format!("its resource metadata is not at `{url}`, which it names"));
        }
    }
    Ok(None)
}

async fn describe_issuer(http: &AuthHttp, issuer: &Url) -> Result<Option<AuthorizationServer>, String> {
    for url in authorization_server_urls(issuer) {
        if let Some(reply) = found(http.get(&url).await?, &url)? {
            return AuthorizationServer::parse(&reply.body, issuer).map(Some).map_err(|refusal| refusal.0);
        }
    }
    Ok(None)
}

/// A document, or nothing where there is none.
fn found(reply: AuthReply, url: &Url) -> Result<Option<AuthReply>, String> {
    match reply.status {
        200 => Ok(Some(reply)),
        400..500 => Ok(None),
        status => Err(format!("`{url}` answers HTTP {status}")),
    }
}
