//! Gives out the tokens for one server and renews them.
//!
//! In a process one request renews and the others wait; between processes the claim in the database decides which one
//! does. New tokens are stored before they are used: a refresh token is often good for one use, and one that is used
//! and lost needs a person.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use pml_auth::{Challenge, Grant, SignIn, TokenError, Tokens, endpoint, token_request};
use pml_mcp::client::{AuthChallenge, Authorizer, TokenRefusal};
use pml_model::{Principal, ServerName};
use pml_store::Store;
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;
use url::Url;

use super::http::AuthHttp;
use super::{body, kept};
use crate::clock::now_ms;
use crate::config::ServerConfig;

/// 30 s: how long the claim on a renewal lasts; a request to the token endpoint takes at most 20 s.
const CLAIM_MS: i64 = 30_000;
/// How long a request waits for the renewal of another process, and how often it looks.
const RENEWAL_PATIENCE: Duration = Duration::from_secs(35);
const RENEWAL_POLL: Duration = Duration::from_millis(50);

/// Gives out the tokens for one server.
#[derive(Debug)]
pub struct ServerAuthorizer {
    inner: Arc<AuthorizerInner>,
    /// The renewals under way. A renewal goes on when the request that began it is cancelled.
    renewals: TaskTracker,
}

struct AuthorizerInner {
    store: Store,
    principal: Principal,
    server: ServerName,
    address: Url,
    http: AuthHttp,
    /// Held while tokens are renewed; the last renewal that failed.
    renewing: Mutex<Option<FailedRenewal>>,
}

/// A renewal that failed for now.
struct FailedRenewal {
    /// The token that it was to replace.
    used: String,
    ended: Instant,
    refusal: TokenRefusal,
}

impl std::fmt::Debug for AuthorizerInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthorizerInner").field("server", &self.server).finish_non_exhaustive()
    }
}

impl ServerAuthorizer {
    /// The tokens of `principal` for `server`; `None` for a server that nobody signs in to.
    pub fn new(store: Store, principal: Principal, server: &ServerConfig) -> Option<ServerAuthorizer> {
        let address = server.sign_in_address()?.clone();
        let http = AuthHttp::new(&address, &server.sign_in);
        let name = server.name.clone();
        let inner =
            AuthorizerInner { store, principal, server: name, address, http, renewing: Mutex::default() };
        Some(ServerAuthorizer { inner: Arc::new(inner), renewals: TaskTracker::new() })
    }

    /// Waits for renewals under way, whose tokens would be lost otherwise.
    pub async fn close(&self) {
        self.renewals.close();
        self.renewals.wait().await;
    }

    /// Keeps the missing scopes. It is done also when the request that needs them is cancelled, because it holds the claim
    /// on a renewal for a moment.
    async fn missing_noted(&self, told: Challenge) -> TokenRefusal {
        let inner = Arc::clone(&self.inner);
        let noting = self.renewals.spawn(async move { inner.note_missing(&told).await });
        noting.await.unwrap_or_else(|error| TokenRefusal::Unavailable(error.to_string()))
    }

    /// Renews the tokens unless they are no longer `used`; the token that is good then.
    async fn renewed(&self, used: String) -> Result<String, TokenRefusal> {
        let inner = Arc::clone(&self.inner);
        let renewal = self.renewals.spawn(async move { inner.renew(&used).await });
        renewal.await.unwrap_or_else(|error| Err(TokenRefusal::Unavailable(error.to_string())))
    }
}

impl Authorizer for ServerAuthorizer {
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, TokenRefusal>> {
        async {
            let Some((_, sign_in)) = self.inner.current().await? else { return Ok(None) };
            let tokens = present(&sign_in)?;
            if !tokens.ends_soon(now_ms()) || (tokens.refresh.is_none() && !tokens.has_ended(now_ms())) {
                return Ok(Some(tokens.access.clone()));
            }
            match self.renewed(tokens.access.clone()).await {
                // A token endpoint that fails does not end a token that is still good.
                Err(TokenRefusal::Unavailable(_)) if !tokens.has_ended(now_ms()) => {
                    Ok(Some(tokens.access.clone()))
                }
                renewed => renewed.map(Some),
            }
        }
        .boxed()
    }

    fn replace<'a>(
        &'a self,
        used: Option<&'a str>,
        challenge: &'a AuthChallenge,
    ) -> BoxFuture<'a, Result<String, TokenRefusal>> {
        async move {
            let Some((_, sign_in)) = self.inner.current().await? else {
                return Err(TokenRefusal::SignInRequired("nobody has signed in".to_owned()));
            };
            let told = Challenge::parse(challenge.headers.iter().map(String::as_str));
            let tokens = present(&sign_in)?;
            if used != Some(tokens.access.as_str()) {
                // Somebody signed in or renewed the tokens since.
                return Ok(tokens.access.clone());
            }
            if told.is_insufficient_scope() || challenge.status == 403 {
                return Err(self.missing_noted(told).await);
            }
            self.renewed(tokens.access.clone()).await
        }
        .boxed()
    }
}

impl AuthorizerInner {
    /// The sign-in that is kept for this address.
    async fn current(&self) -> Result<Option<(i64, SignIn)>, TokenRefusal> {
        let kept = kept(&self.store, &self.principal, &self.server).await;
        let kept = kept.map_err(|error| TokenRefusal::Unavailable(error.to_string()))?;
        Ok(kept.filter(|(_, sign_in)| sign_in.is_for(&self.address)))
    }

    async fn renew(&self, used: &str) -> Result<String, TokenRefusal> {
        let began = Instant::now();
        let mut last_failure = self.renewing.lock().await;
        // A failure that this request waited for is its own: asking again would only take as long once more.
        let failed = last_failure.take().filter(|failed| failed.used == used && failed.ended >= began);
        if let Some(failed) = failed {
            let refusal = failed.refusal.clone();
            *last_failure = Some(failed);
            return Err(refusal);
        }
        let renewed = self.renew_claimed(used, began + RENEWAL_PATIENCE).await;
        if let Err(refusal @ TokenRefusal::Unavailable(_)) = &renewed {
            let refusal = refusal.clone();
            *last_failure = Some(FailedRenewal { used: used.to_owned(), ended: Instant::now(), refusal });
        }
        renewed
    }

    async fn renew_claimed(&self, used: &str, give_up_at: Instant) -> Result<String, TokenRefusal> {
        loop {
            let Some((version, sign_in)) = self.current().await? else {
                return Err(TokenRefusal::SignInRequired("the sign-in was removed".to_owned()));
            };
            let tokens = present(&sign_in)?;
            if tokens.access != used {
                return Ok(tokens.access.clone());
            }
            let Some(refresh) = tokens.refresh.clone() else {
                let why = "its token has ended, and the authorization server gave none to renew it with";
                return Err(self.end(version, sign_in, why.to_owned()).await);
            };
            if self.has_claimed(version, give_up_at).await? {
                return self.exchange(version, sign_in, &refresh).await;
            }
        }
    }

    /// Claims the renewal of this version. Where another process has the claim, this waits a moment instead.
    async fn has_claimed(&self, version: i64, give_up_at: Instant) -> Result<bool, TokenRefusal> {
        let now = now_ms();
        let times = (now, now + CLAIM_MS);
        let claimed = self.store.claim_sign_in_renewal(&self.principal, &self.server, version, times).await;
        match claimed {
            Ok(true) => Ok(true),
            Ok(false) if Instant::now() < give_up_at => {
                tokio::time::sleep(RENEWAL_POLL).await;
                Ok(false)
            }
            Ok(false) => {
                let why = "another process renews the tokens and does not finish".to_owned();
                Err(TokenRefusal::Unavailable(why))
            }
            Err(error) => Err(TokenRefusal::Unavailable(error.to_string())),
        }
    }

    /// Asks for new tokens and stores them. This process has the claim.
    async fn exchange(
        &self,
        version: i64,
        mut sign_in: SignIn,
        refresh: &str,
    ) -> Result<String, TokenRefusal> {
        match self.ask(&sign_in, refresh).await {
            Ok(tokens) => {
                let access = tokens.access.clone();
                sign_in.renew(tokens);
                match self.store_again(version, &sign_in).await {
                    Ok(true) => Ok(access),
                    Ok(false) => self.newer().await,
                    Err(error) => Err(TokenRefusal::Unavailable(error.to_string())),
                }
            }
            Err(error) if error.ends_the_sign_in() => {
                let why = format!("the authorization server does not renew the tokens ({error})");
                Err(self.end(version, sign_in, why).await)
            }
            Err(error) => {
                // The claim ends with the new version; who comes next tries again.
                if let Err(error) = self.store_again(version, &sign_in).await {
                    tracing::warn!(%error, "the claim on a renewal ends by itself");
                }
                Err(TokenRefusal::Unavailable(format!("the tokens cannot be renewed now: {error}")))
            }
        }
    }

    /// The token of a person who signed in again during the renewal.
    async fn newer(&self) -> Result<String, TokenRefusal> {
        match self.current().await? {
            Some((_, sign_in)) => Ok(present(&sign_in)?.access.clone()),
            None => Err(TokenRefusal::SignInRequired("the sign-in was removed".to_owned())),
        }
    }

    async fn ask(&self, sign_in: &SignIn, refresh: &str) -> Result<Tokens, TokenError> {
        let endpoint = endpoint("token endpoint", &sign_in.token_endpoint)
            .map_err(|refusal| TokenError::Unusable(refusal.0))?;
        let request = token_request(&endpoint, &sign_in.client, Grant::Refresh(refresh), &sign_in.resource);
        let reply = self.http.post(&request).await.map_err(TokenError::Temporary)?;
        Tokens::read(&reply, now_ms())
    }

    /// Keeps that the tokens are of no use any more, so that nobody tries them again.
    async fn end(&self, version: i64, mut sign_in: SignIn, why: String) -> TokenRefusal {
        sign_in.tokens = None;
        if let Err(error) = self.store_again(version, &sign_in).await {
            tracing::warn!(%error, "it could not be stored that a sign-in ended");
        }
        TokenRefusal::SignInRequired(why)
    }

    /// Keeps the scopes that a request needed, so that the next sign-in asks for them.
    async fn note_missing(&self, told: &Challenge) -> TokenRefusal {
        if let Err(error) = self.add_missing(told).await {
            tracing::warn!(%error, "the missing scopes could not be stored");
        }
        TokenRefusal::SignInRequired(match told.scopes.is_empty() {
            true => "the request needs more scopes than were granted".to_owned(),
            false => format!("the request needs the scopes `{}`, which were not granted", told.scopes),
        })
    }

    /// Adds to the missing scopes. It takes the claim on a renewal: whoever writes without it has a renewal under way
    /// lose its new tokens.
    async fn add_missing(&self, told: &Challenge) -> Result<(), TokenRefusal> {
        let give_up_at = Instant::now() + RENEWAL_PATIENCE;
        while let Some((version, mut sign_in)) = self.current().await? {
            let missing = sign_in.missing.clone().and(&told.scopes);
            if missing == sign_in.missing {
                break;
            }
            if !self.has_claimed(version, give_up_at).await? {
                continue;
            }
            sign_in.missing = missing;
            let stored = self.store_again(version, &sign_in).await;
            if stored.map_err(|error| TokenRefusal::Unavailable(error.to_string()))? {
                break;
            }
        }
        Ok(())
    }

    /// Stores the sign-in unless it was changed since `version`. Returns whether it was stored.
    async fn store_again(&self, version: i64, sign_in: &SignIn) -> Result<bool, pml_store::Error> {
        let body = body(sign_in);
        let stored = self.store.replace_server_sign_in(&self.principal, &self.server, version, body);
        stored.await.map(|stored| stored.is_some())
    }
}

fn present(sign_in: &SignIn) -> Result<&Tokens, TokenRefusal> {
    let ended = || TokenRefusal::SignInRequired("the sign-in has ended".to_owned());
    sign_in.tokens.as_ref().ok_or_else(ended)
}
