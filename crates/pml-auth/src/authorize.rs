//! The part of a sign-in that happens in a browser: the address that a person opens, and the redirect that returns.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use url::{Url, form_urlencoded};

use crate::{AuthorizationServer, Client, Scopes, shown};

/// The secrets of one sign-in: the verifier of PKCE, and the state that ties the redirect to it.
pub struct Attempt {
    /// The verifier of PKCE.
    pub verifier: String,
    /// The state.
    pub state: String,
}

impl Attempt {
    /// An attempt from random bytes.
    pub fn of_random(verifier: [u8; 32], state: [u8; 32]) -> Attempt {
        Attempt { verifier: URL_SAFE_NO_PAD.encode(verifier), state: URL_SAFE_NO_PAD.encode(state) }
    }

    /// The address that the person opens; `None` where the server has no authorization endpoint.
    pub fn url(
        &self,
        server: &AuthorizationServer,
        client: &Client,
        redirect_uri: &str,
        (scopes, resource): (&Scopes, &str),
    ) -> Option<Url> {
        let mut url = server.authorization_endpoint.clone()?;
        let challenge = digest::digest(&digest::SHA256, self.verifier.as_bytes());
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", redirect_uri)
                .append_pair("state", &self.state)
                .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(challenge))
                .append_pair("code_challenge_method", "S256")
                .append_pair("resource", resource);
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.to_string());
            }
            if scopes.contains("offline_access") {
                query.append_pair("prompt", "consent");
            }
        }
        Some(url)
    }
}

/// Why a redirect gives no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// It does not belong to this sign-in; the right one may still come.
    #[error("the request does not belong to this sign-in")]
    Foreign,
    /// It came from another authorization server than the one that was asked.
    #[error("the redirect came from issuer `{0}`, not from the authorization server that was asked")]
    WrongIssuer(String),
    /// The authorization server gave no code.
    #[error("the authorization server refused: {0}")]
    Refused(String),
}

/// The code in the query of a redirect.
///
/// # Errors
/// The redirect belongs to another sign-in, comes from another issuer, or says that there is no code.
pub fn read_redirect(
    query: &str,
    attempt: &Attempt,
    server: &AuthorizationServer,
) -> Result<String, RedirectError> {
    let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let one = |name: &str| {
        let mut found = pairs.iter().filter(|(key, _)| key == name);
        let first = found.next().map(|(_, value)| value.as_str());
        if found.next().is_some() { None } else { first }
    };
    if one("state") != Some(attempt.state.as_str()) {
        return Err(RedirectError::Foreign);
    }
    // RFC 9207: a code of another server must not be sent to this one.
    match one("iss") {
        Some(issuer) if issuer == server.issuer_text => {}
        None if !server.names_issuer_in_redirects => {}
        other => return Err(RedirectError::WrongIssuer(shown(other.unwrap_or("(none)")))),
    }
    if let Some(error) = one("error") {
        let why = one("error_description").map(|text| format!(" ({})", shown(text))).unwrap_or_default();
        return Err(RedirectError::Refused(format!("{}{why}", shown(error))));
    }
    match one("code") {
        Some(code) if !code.is_empty() => Ok(code.to_owned()),
        _ => Err(RedirectError::Refused("the redirect has no code".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // RFC 7636 appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let attempt = Attempt { verifier, state: "s".to_owned() };
        let server = AuthorizationServer::without_metadata(&Url::parse("https://as.example").unwrap());
        let client = Client::configured(&server, "c".to_owned(), None);
        let asked = (&Scopes::parse("a b"), "https://r.example/mcp");
        let url = attempt.url(&server, &client, "http://127.0.0.1:1/callback", asked).unwrap();
        assert_eq!(
            url.as_str(),
            "https://as.example/authorize?response_type=code&client_id=c&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback\
             &state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256\
             &resource=https%3A%2F%2Fr.example%2Fmcp&scope=a+b"
        );
    }

    #[test]
    fn only_the_redirect_of_this_sign_in_and_issuer_counts() {
        let attempt = Attempt::of_random([1; 32], [2; 32]);
        let mut server = AuthorizationServer::without_metadata(&Url::parse("https://as.example").unwrap());
        let state = attempt.state.clone();
        let read = |query: String, server: &AuthorizationServer| read_redirect(&query, &attempt, server);
        assert_eq!(read(format!("code=x&state={state}"), &server).as_deref(), Ok("x"));
        assert_eq!(read("code=x&state=other".to_owned(), &server), Err(RedirectError::Foreign));
        assert_eq!(read("code=x".to_owned(), &server), Err(RedirectError::Foreign));
        assert_eq!(read(format!("code=x&state={state}&state={state}"), &server), Err(RedirectError::Foreign));
        let wrong = read(format!("code=x&state={state}&iss=https://evil.example"), &server);
        assert!(matches!(wrong, Err(RedirectError::WrongIssuer(_))));
        // The issuer is a text, not an address: no two spellings of it are the same.
        assert!(read(format!("code=x&state={state}&iss=https://as.example/"), &server).is_err());
        let refused = read(format!("error=access_denied&error_description=no&state={state}"), &server);
        assert_eq!(refused, Err(RedirectError::Refused("access_denied (no)".to_owned())));
        assert!(read(format!("code=x&code=y&state={state}"), &server).is_err());
        server.names_issuer_in_redirects = true;
        assert!(read(format!("code=x&state={state}"), &server).is_err());
        assert!(read(format!("code=x&state={state}&iss=https://as.example"), &server).is_ok());
    }
}
