//! How PML identifies itself to an authorization server: as a client that was registered before, by the URL of its
//! metadata, or by registering itself (RFC 7591).

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{AuthReply, AuthRequest, AuthorizationServer, Refusal, Scopes, shown};

/// A client of an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Its identifier.
    pub id: String,
    /// Its secret; public clients have none.
    pub secret: Option<String>,
    /// How it identifies itself at the token endpoint.
    pub auth: ClientAuth,
    /// Where the identifier comes from.
    pub origin: ClientOrigin,
    /// The redirect address that it was registered with.
    pub redirect_uri: Option<String>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("id", &self.id).field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// How a client identifies itself at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// By its identifier alone.
    None,
    /// By its secret in the body.
    Post,
    /// By its secret in the header.
    Basic,
}

/// Where the identifier of a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientOrigin {
    /// From the configuration: it was registered by a person.
    Configured,
    /// It is the URL of a metadata document.
    MetadataUrl,
    /// PML registered itself.
    Registered,
}

impl ClientAuth {
    /// The way that a client with or without a secret uses at `server`.
    fn choose(server: &AuthorizationServer, has_secret: bool) -> ClientAuth {
        let takes = |method: &str| server.auth_methods.iter().any(|known| known == method);
        match has_secret {
            false => ClientAuth::None,
            true if !takes("client_secret_basic") && takes("client_secret_post") => ClientAuth::Post,
            true => ClientAuth::Basic,
        }
    }

    fn of_method(method: &str) -> Option<ClientAuth> {
        match method {
            "none" => Some(ClientAuth::None),
            "client_secret_post" => Some(ClientAuth::Post),
            "client_secret_basic" => Some(ClientAuth::Basic),
            _ => None,
        }
    }
}

impl Client {
    /// The client that a person registered.
    pub fn configured(server: &AuthorizationServer, id: String, secret: Option<String>) -> Client {
        let auth = ClientAuth::choose(server, secret.is_some());
        Client { id, secret, auth, origin: ClientOrigin::Configured, redirect_uri: None }
    }

    /// The client that a metadata document at `url` describes.
    pub fn of_metadata_url(url: String) -> Client {
        Client {
            id: url,
            secret: None,
            auth: ClientAuth::None,
            origin: ClientOrigin::MetadataUrl,
            redirect_uri: None,
        }
    }
}

/// The registration of PML as a client.
#[derive(Debug)]
pub struct Registration<'a> {
    /// The authorization server; it must have a registration endpoint.
    pub server: &'a AuthorizationServer,
    /// Where people are sent back to; `None` for a sign-in on another device.
    pub redirect_uri: Option<&'a str>,
    /// The scopes that will be asked for.
    pub scopes: &'a Scopes,
}

#[derive(Deserialize)]
struct RegisteredClient {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

impl Registration<'_> {
    /// The request; `None` where clients cannot register themselves.
    pub fn request(&self) -> Option<AuthRequest> {
        let url = self.server.registration_endpoint.clone()?;
        let takes_none = self.server.auth_methods.iter().any(|method| method == "none");
        let method = match self.server.auth_methods.first() {
            Some(method) if !takes_none => method.as_str(),
            _ => "none",
        };
        let grant = match self.redirect_uri {
            Some(_) => "authorization_code",
            None => "urn:ietf:params:oauth:grant-type:device_code",
        };
        let mut document = json!({
            "client_name": "PML",
            "grant_types": [grant, "refresh_token"],
            "token_endpoint_auth_method": method,
            "application_type": "native",
        });
        if let Some(uri) = self.redirect_uri {
            document["redirect_uris"] = json!([uri]);
            document["response_types"] = json!(["code"]);
        }
        if !self.scopes.is_empty() {
            document["scope"] = json!(self.scopes.to_string());
        }
        let body = document.to_string();
        Some(AuthRequest { url, content_type: "application/json", authorization: None, body })
    }

    /// Reads the reply to the request.
    ///
    /// # Errors
    /// The registration was refused, or the reply names no usable client.
    pub fn read(&self, reply: &AuthReply) -> Result<Client, Refusal> {
        let issuer = &self.server.issuer;
        if !matches!(reply.status, 200 | 201) {
            let why = crate::reply::error_text(reply);
            return Err(Refusal(format!(
                "authorization server `{issuer}` did not register PML as a client: {why}"
            )));
        }
        let told: RegisteredClient = serde_json::from_slice(&reply.body).map_err(|error| {
            let why = shown(&error.to_string());
            Refusal(format!("the registration at `{issuer}` gave an unusable reply: {why}"))
        })?;
        if told.client_id.is_empty() || told.client_id.len() > 2048 {
            return Err(Refusal(format!(
                "the registration at `{issuer}` gave an unusable client identifier"
            )));
        }
        let auth = match (&told.token_endpoint_auth_method, &told.client_secret) {
            (Some(method), _) => ClientAuth::of_method(method).ok_or_else(|| {
                let method = shown(method);
                Refusal(format!(
                    "authorization server `{issuer}` wants clients to use `{method}`, which PML does not"
                ))
            })?,
            (None, secret) => ClientAuth::choose(self.server, secret.is_some()),
        };
        let secret = told.client_secret.filter(|_| auth != ClientAuth::None);
        Ok(Client {
            id: told.client_id,
            secret,
            auth,
            origin: ClientOrigin::Registered,
            redirect_uri: self.redirect_uri.map(ToOwned::to_owned),
        })
    }
}
