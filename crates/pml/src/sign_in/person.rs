//! A person signs in to a server, or out.

use std::time::Duration;

use pml_auth::{
    Attempt, AuthorizationServer, Client, ClientOrigin, DeviceCode, DevicePoll, Grant, Registration, Scopes,
    SignIn, TokenError, Tokens, endpoint, revocation_request, token_request,
};
use pml_model::Principal;
use pml_model::name::printable;
use pml_store::Store;
use url::Url;

use super::discover::{Authority, discover};
use super::http::AuthHttp;
use super::redirect::RedirectListener;
use super::{body, kept};
use crate::clock::now_ms;
use crate::config::{ServerConfig, SignInSettings};
use crate::problem::{ErrorCode, Problem};

/// 10 min: how long a person may take to sign in.
const PATIENCE: Duration = Duration::from_secs(600);

/// A sign-in to be made.
#[derive(Debug)]
pub struct SignInRequest<'a> {
    /// The server.
    pub server: &'a ServerConfig,
    /// The person.
    pub principal: &'a Principal,
    /// Scopes to ask for beside those that are needed anyway.
    pub scopes: Scopes,
    /// Where the person signs in.
    pub way: SignInWay,
}

/// Where a person signs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInWay {
    /// In a browser on this machine.
    Browser,
    /// On another device.
    Device,
    /// On another device if the authorization server can do that, else in a browser.
    DeviceIfPossible,
}

/// What the person has to do.
#[derive(Debug)]
pub enum SignInPrompt<'a> {
    /// Open an address of this authorization server in a browser of this machine.
    Open {
        /// The authorization server.
        issuer: &'a Url,
        /// The address.
        url: &'a Url,
    },
    /// Open an address anywhere, and type a code there.
    Type {
        /// The authorization server.
        issuer: &'a Url,
        /// The address.
        url: &'a str,
        /// The code.
        code: &'a str,
    },
}

/// Signs a person in to a server and keeps the tokens. `prompt` is told what the person has to do.
///
/// # Errors
/// The server takes no sign-in, the authorization server cannot be used or refuses, or the person takes too long.
pub async fn sign_in(
    store: &Store,
    request: SignInRequest<'_>,
    prompt: impl Fn(&SignInPrompt<'_>),
) -> Result<SignIn, Problem> {
    let SignInRequest { server, principal, scopes, way } = request;
    let address = address(server)?;
    let http = AuthHttp::new(address, &server.sign_in);
    let failed = |why: String| failure(server, &why);
    let authority = discover(&http, address, &server.sign_in).await.map_err(failed)?;
    let before = kept(store, principal, &server.name).await?.map(|(_, before)| before);
    let before =
        before.filter(|before| before.is_for(address) && before.issuer == authority.server.issuer.as_str());
    let asked = asked_scopes(&authority, &server.sign_in, before.as_ref()).and(&scopes);
    let flow = SignInFlow { http: &http, authority: &authority, settings: &server.sign_in, asked: &asked };
    let can_use_device = authority.server.device_endpoint.is_some();
    // Where tokens were refused, the authorization server may have forgotten the client too. A person would get a page of
    // the server that says no, and PML would wait for the redirect in vain, so it registers again.
    let known = before.filter(|before| before.tokens.is_some()).map(|before| before.client);
    let known = known.filter(|client| client.origin == ClientOrigin::Registered);
    let on_device = match way {
        SignInWay::Browser => false,
        SignInWay::Device => true,
        SignInWay::DeviceIfPossible => can_use_device || authority.server.authorization_endpoint.is_none(),
    };
    let going = async {
        if on_device { flow.on_device(known, &prompt).await } else { flow.in_browser(known, &prompt).await }
    };
    let (client, tokens) = tokio::time::timeout(PATIENCE, going)
        .await
        .map_err(|_| failed("nobody signed in within 10 minutes".to_owned()))?
        .map_err(failed)?;
    let sign_in = SignIn {
        server: address.to_string(),
        resource: authority.resource.clone(),
        issuer: authority.server.issuer.to_string(),
        token_endpoint: authority.server.token_endpoint.to_string(),
        revocation_endpoint: authority.server.revocation_endpoint.as_ref().map(Url::to_string),
        client,
        tokens: Some(tokens),
        asked,
        missing: Scopes::default(),
        signed_in_at: now_ms(),
    };
    store.put_server_sign_in(principal, &server.name, body(&sign_in), now_ms()).await?;
    Ok(sign_in)
}

/// Signs a person out: removes the tokens and has the authorization server revoke them. Returns whether there were
/// any, and why they could not be revoked.
///
/// # Errors
/// The server takes no sign-in, or the database cannot be changed.
pub async fn sign_out(
    store: &Store,
    principal: &Principal,
    server: &ServerConfig,
) -> Result<Option<Result<(), String>>, Problem> {
    let http = AuthHttp::new(address(server)?, &server.sign_in);
    let before = kept(store, principal, &server.name).await?;
    // Removed first: whatever the authorization server does, PML has them no more.
    if !store.remove_server_sign_in(principal, &server.name, now_ms()).await? {
        return Ok(None);
    }
    let Some((_, SignIn { tokens: Some(tokens), revocation_endpoint, client, .. })) = before else {
        return Ok(Some(Ok(())));
    };
    let Some(url) = revocation_endpoint.and_then(|url| endpoint("revocation endpoint", &url).ok()) else {
        return Ok(Some(Err("the authorization server revokes none".to_owned())));
    };
    let refresh = tokens.refresh.iter().map(|token| (token, "refresh_token"));
    for (token, hint) in refresh.chain([(&tokens.access, "access_token")]) {
        let reply = http.post(&revocation_request(&url, &client, token, hint)).await;
        match reply {
            Ok(reply) if reply.status == 200 => {}
            Ok(reply) => {
                let why = format!("the authorization server answers HTTP {}", reply.status);
                return Ok(Some(Err(why)));
            }
            Err(why) => return Ok(Some(Err(why))),
        }
    }
    Ok(Some(Ok(())))
}

fn address(server: &ServerConfig) -> Result<&Url, Problem> {
    let Some(address) = server.sign_in_address() else {
        let text = format!("server `{}` takes no sign-in", server.name);
        return Err(Problem::new(ErrorCode::InvalidRequest, text)
            .hint("a sign-in is for a server with `url` and without `bearer` or an `Authorization` header"));
    };
    endpoint("address", address.as_str()).map(|_| address).map_err(|refusal| failure(server, &refusal.0))
}

fn failure(server: &ServerConfig, why: &str) -> Problem {
    Problem::new(
        ErrorCode::LoginRequired,
        format!("signing in to server `{}` failed: {}", server.name, printable(why)),
    )
}

/// The scopes to ask for: those of the configuration, else those that the server names; always those that a request
/// needed. The token that renews is asked for where that is a scope.
fn asked_scopes(authority: &Authority, settings: &SignInSettings, before: Option<&SignIn>) -> Scopes {
    let configured = Scopes::of(settings.scopes.iter().map(String::as_str));
    let mut asked = if configured.is_empty() { authority.scopes.clone() } else { configured };
    if let Some(before) = before.filter(|before| !before.missing.is_empty()) {
        // What was granted stays granted.
        asked = asked.and(&before.asked).and(&before.missing);
    }
    if authority.server.scopes.contains("offline_access") {
        asked = asked.and(&Scopes::parse("offline_access"));
    }
    asked
}

/// What a sign-in goes by.
struct SignInFlow<'a> {
    http: &'a AuthHttp,
    authority: &'a Authority,
    settings: &'a SignInSettings,
    asked: &'a Scopes,
}

impl SignInFlow<'_> {
    fn server(&self) -> &AuthorizationServer {
        &self.authority.server
    }

    /// Signs in through a browser that returns to a port of this machine.
    async fn in_browser(
        &self,
        known: Option<Client>,
        prompt: &impl Fn(&SignInPrompt<'_>),
    ) -> Result<(Client, Tokens), String> {
        let known = known.filter(|client| client.redirect_uri.is_some());
        let listener = self.listen(known.as_ref()).await?;
        let uri = listener.uri();
        let known = known.filter(|client| client.redirect_uri.as_deref() == Some(&uri));
        let client = self.client(known, Some(&uri)).await?;
        let attempt = Attempt::of_random(random()?, random()?);
        let asks = (self.asked, self.authority.resource.as_str());
        let url = attempt.url(self.server(), &client, &uri, asks).ok_or_else(|| {
            format!(
                "authorization server `{}` has no page to sign in at; try `--device`",
                self.server().issuer
            )
        })?;
        prompt(&SignInPrompt::Open { issuer: &self.server().issuer, url: &url });
        let code = listener.code(&attempt, self.server()).await.map_err(|error| error.to_string())?;
        let grant = Grant::Code { code: &code, verifier: &attempt.verifier, redirect_uri: &uri };
        let tokens = self.tokens(&client, grant).await.map_err(|error| error.to_string())?;
        Ok((client, tokens))
    }

    /// Listens on the configured port, else on the one that PML is registered with, else on any.
    async fn listen(&self, known: Option<&Client>) -> Result<RedirectListener, String> {
        if let Some(port) = self.settings.redirect_port {
            return RedirectListener::open(Some(port)).await.map_err(|error| {
                format!("port {port} of this machine, the `redirect_port`, cannot be used: {error}")
            });
        }
        let uri = known.and_then(|client| Url::parse(client.redirect_uri.as_deref()?).ok());
        if let Some(port) = uri.and_then(|uri| uri.port())
            && let Ok(listener) = RedirectListener::open(Some(port)).await
        {
            return Ok(listener);
        }
        let any = RedirectListener::open(None).await;
        any.map_err(|error| format!("no port of this machine can be used: {error}"))
    }

    /// Signs in on another device.
    async fn on_device(
        &self,
        known: Option<Client>,
        prompt: &impl Fn(&SignInPrompt<'_>),
    ) -> Result<(Client, Tokens), String> {
        let known = known.filter(|client| client.redirect_uri.is_none());
        let issuer = &self.server().issuer;
        if self.server().device_endpoint.is_none() {
            return Err(format!("authorization server `{issuer}` knows no sign-in on another device"));
        }
        let client = self.client(known, None).await?;
        let resource = &self.authority.resource;
        let request = DeviceCode::request(self.server(), &client, self.asked, resource);
        let Some(request) = request else { return Err("it has no device endpoint".to_owned()) };
        let device = DeviceCode::read(&self.http.post(&request).await?).map_err(|error| error.to_string())?;
        let url = &device.verification_uri;
        prompt(&SignInPrompt::Type { issuer, url, code: &device.user_code });
        let mut pause = Duration::from_secs(device.interval_s);
        let polling = async {
            loop {
                tokio::time::sleep(pause).await;
                let endpoint = &self.server().token_endpoint;
                let request = token_request(endpoint, &client, Grant::Device(&device.code), resource);
                // A request that does not arrive is made again, like one that came too early.
                let polled = match self.http.post(&request).await {
                    Ok(reply) => DeviceCode::read_poll(&reply, now_ms()),
                    Err(_) => Ok(DevicePoll::SlowDown),
                };
                match polled.map_err(|error| error.to_string())? {
                    DevicePoll::Done(tokens) => return Ok::<Tokens, String>(tokens),
                    DevicePoll::Pending => {}
                    DevicePoll::SlowDown => pause += Duration::from_secs(5),
                }
            }
        };
        let tokens = tokio::time::timeout(Duration::from_secs(device.expires_in_s), polling)
            .await
            .map_err(|_| "the code expired before it was typed".to_owned())??;
        Ok((client, tokens))
    }

    /// PML as a client: the one that was registered for it, else the URL that describes it, else one that it registers.
    async fn client(&self, known: Option<Client>, redirect_uri: Option<&str>) -> Result<Client, String> {
        let server = self.server();
        if let Some(id) = &self.settings.client_id {
            let secret = self.settings.client_secret.as_ref().map(|secret| secret.reveal().to_owned());
            return Ok(Client::configured(server, id.clone(), secret));
        }
        if let (Some(url), true) = (&self.settings.client_metadata, server.takes_client_metadata_urls) {
            return Ok(Client::of_metadata_url(url.clone()));
        }
        if let Some(known) = known {
            return Ok(known);
        }
        let registration = Registration { server, redirect_uri, scopes: self.asked };
        let request = registration.request().ok_or_else(|| {
            format!(
                "authorization server `{}` lets no client register itself; register PML there and set `client_id` (and \
                 `client_secret`, if it gives one) of the server, with `redirect_port` if it wants a fixed address",
                server.issuer
            )
        })?;
        registration.read(&self.http.post(&request).await?).map_err(|refusal| refusal.0)
    }

    async fn tokens(&self, client: &Client, grant: Grant<'_>) -> Result<Tokens, TokenError> {
        let request = token_request(&self.server().token_endpoint, client, grant, &self.authority.resource);
        let reply = self.http.post(&request).await.map_err(TokenError::Temporary)?;
        Tokens::read(&reply, now_ms())
    }
}

fn random() -> Result<[u8; 32], String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes)
}
