//! Signing in on another device (RFC 8628), for machines without a browser.

use serde::Deserialize;

use crate::token::{form_request, refusal};
use crate::{
    AuthReply, AuthRequest, AuthorizationServer, Client, Scopes, TokenError, Tokens, endpoint, shown,
};

/// A sign-in that a person confirms on another device.
#[derive(Clone, PartialEq, Eq)]
pub struct DeviceCode {
    /// What tokens are asked for with.
    pub code: String,
    /// What the person types.
    pub user_code: String,
    /// Where the person types it.
    pub verification_uri: String,
    /// The time between two requests for the tokens, in seconds.
    pub interval_s: u64,
    /// How long the code is good, in seconds.
    pub expires_in_s: u64,
}

/// What came of a request for the tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DevicePoll {
    /// The person signed in.
    Done(Tokens),
    /// The person has not finished.
    Pending,
    /// As `Pending`, and requests come too fast.
    SlowDown,
}

#[derive(Deserialize)]
struct DeviceReply {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    interval: Option<u64>,
    expires_in: Option<u64>,
}

impl DeviceCode {
    /// The request that begins the sign-in; `None` where the server has no such endpoint.
    pub fn request(
        server: &AuthorizationServer,
        client: &Client,
        scopes: &Scopes,
        resource: &str,
    ) -> Option<AuthRequest> {
        let endpoint = server.device_endpoint.as_ref()?;
        let scopes = scopes.to_string();
        let mut form = vec![("resource", resource)];
        if !scopes.is_empty() {
            form.push(("scope", &scopes));
        }
        Some(form_request(endpoint, client, &form))
    }

    /// Reads the reply to the request.
    ///
    /// # Errors
    /// It refuses the sign-in, or cannot be used.
    pub fn read(reply: &AuthReply) -> Result<DeviceCode, TokenError> {
        if reply.status != 200 {
            return Err(refusal(reply));
        }
        let told: DeviceReply = serde_json::from_slice(&reply.body)
            .map_err(|error| TokenError::Unusable(shown(&error.to_string())))?;
        let address = told.verification_uri_complete.as_deref().unwrap_or(&told.verification_uri);
        let checked = endpoint("verification address", address)
            .map_err(|refusal| TokenError::Unusable(refusal.to_string()))?;
        Ok(DeviceCode {
            code: told.device_code,
            user_code: shown(&told.user_code),
            verification_uri: checked.into(),
            interval_s: told.interval.unwrap_or(5).clamp(1, 60),
            expires_in_s: told.expires_in.unwrap_or(600).clamp(1, 3600),
        })
    }

    /// Reads the reply to a request for the tokens.
    ///
    /// # Errors
    /// The sign-in was refused or expired, or the reply cannot be used.
    pub fn read_poll(reply: &AuthReply, now: i64) -> Result<DevicePoll, TokenError> {
        match Tokens::read(reply, now) {
            Ok(tokens) => Ok(DevicePoll::Done(tokens)),
            Err(TokenError::Refused { code, .. }) if code == "authorization_pending" => {
                Ok(DevicePoll::Pending)
            }
            Err(TokenError::Refused { code, .. }) if code == "slow_down" => Ok(DevicePoll::SlowDown),
            Err(TokenError::Temporary(_)) => Ok(DevicePoll::SlowDown),
            Err(error) => Err(error),
        }
    }
}
