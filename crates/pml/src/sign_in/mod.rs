//! Signing in to remote servers: finding who authorizes, asking the person, keeping and renewing tokens.
//!
//! What servers say is read by [`pml_auth`]. Tokens are kept sealed in the database and are sent to the address that
//! they were asked for, nowhere else; tokens of PML's own clients are never passed on. Sign-ins belong to the operator
//! (`local`), and all runs use them, like the credentials in the configuration.

mod authorizer;
mod discover;
mod http;
mod person;
mod redirect;

use pml_auth::SignIn;
use pml_model::{Principal, ServerName};
use pml_store::Store;

pub use authorizer::ServerAuthorizer;
pub use person::{SignInPrompt, SignInRequest, SignInWay, sign_in, sign_out};

use crate::clock::now_ms;
use crate::config::ServerConfig;
use crate::problem::Problem;

/// The state of the sign-in to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInState {
    /// Nobody signed in, or the server has another address since.
    None,
    /// There are tokens.
    SignedIn,
    /// There were tokens, and a person has to sign in again.
    Ended,
    /// A request needed scopes that the tokens do not have.
    ScopesMissing,
}

impl SignInState {
    /// As the name of a state, for people and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            SignInState::None => "signed out",
            SignInState::SignedIn => "signed in",
            SignInState::Ended => "sign-in ended",
            SignInState::ScopesMissing => "signed in, scopes missing",
        }
    }
}

/// The state of the sign-in to `server`; `None` for a server that nobody signs in to.
///
/// # Errors
/// The database cannot be read.
pub async fn state(
    store: &Store,
    principal: &Principal,
    server: &ServerConfig,
) -> Result<Option<SignInState>, Problem> {
    let Some(address) = server.sign_in_address() else { return Ok(None) };
    let kept = kept(store, principal, &server.name).await?.map(|(_, kept)| kept);
    let state = match kept.filter(|kept| kept.is_for(address)) {
        None => SignInState::None,
        Some(SignIn { tokens: None, .. }) => SignInState::Ended,
        Some(SignIn { tokens: Some(tokens), .. })
            if tokens.refresh.is_none() && tokens.has_ended(now_ms()) =>
        {
            SignInState::Ended
        }
        Some(kept) if !kept.missing.is_empty() => SignInState::ScopesMissing,
        Some(_) => SignInState::SignedIn,
    };
    Ok(Some(state))
}

/// Whether a person signed in to `server` after `at`.
pub(crate) async fn signed_in_since(
    store: &Store,
    principal: &Principal,
    server: &ServerName,
    at: i64,
) -> Result<bool, pml_store::Error> {
    let kept = kept(store, principal, server).await?;
    Ok(kept.is_some_and(|(_, sign_in)| sign_in.tokens.is_some() && sign_in.signed_in_at >= at))
}

/// The sign-in that is kept for a server, with its version.
async fn kept(
    store: &Store,
    principal: &Principal,
    server: &ServerName,
) -> Result<Option<(i64, SignIn)>, pml_store::Error> {
    let stored = store.server_sign_in(principal, server).await?;
    // One that a later version wrote differently counts as none.
    Ok(stored.and_then(|stored| Some((stored.version, serde_json::from_str(&stored.body).ok()?))))
}

/// A sign-in as it is stored.
fn body(sign_in: &SignIn) -> String {
    serde_json::to_string(sign_in).expect("texts and numbers are plain data")
}
