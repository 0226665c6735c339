//! What a transport asks for tokens.
//!
//! The transport knows when a token is refused, and nothing of where tokens come from.

use futures_util::future::BoxFuture;

/// Gives out the tokens for the requests to one server.
pub trait Authorizer: std::fmt::Debug + Send + Sync {
    /// The token for the next request, still good for a while; `None` if there is none, and the server may not need one.
    ///
    /// # Errors
    /// There was a token, and only a person can get the next one; or it cannot be had now.
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, TokenRefusal>>;

    /// Another token in place of `used`, which the server refused with these `WWW-Authenticate` headers.
    ///
    /// # Errors
    /// There is no other token.
    fn replace<'a>(
        &'a self,
        used: Option<&'a str>,
        challenge: &'a AuthChallenge,
    ) -> BoxFuture<'a, Result<String, TokenRefusal>>;
}

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// A person has to sign in.
    #[error("{0}")]
    SignInRequired(String),
    /// The tokens cannot be renewed now; a later attempt may succeed.
    #[error("{0}")]
    Unavailable(String),
}

/// How a server refused a request for its token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthChallenge {
    /// The HTTP status: 401 or 403.
    pub status: u16,
    /// The values of `WWW-Authenticate`.
    pub headers: Vec<String>,
}
