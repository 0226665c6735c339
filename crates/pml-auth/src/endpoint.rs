//! Which addresses may take part in a sign-in.
//!
//! Codes and tokens travel over TLS, or stay on this machine. Whether an address is private is known only when its
//! name is resolved, so the sender of the requests checks that.

use url::{Host, Url};

use crate::{Refusal, shown};

/// The longest address that is accepted, in bytes.
const MAX_URL_BYTES: usize = 2048;

/// Reads the address that a server gave as its `what`.
///
/// # Errors
/// It is no URL, is neither `https` nor on this machine, or has a user, a password or a fragment.
pub fn endpoint(what: &str, text: &str) -> Result<Url, Refusal> {
    if text.len() > MAX_URL_BYTES {
        return Err(Refusal(format!("its {what} is longer than {MAX_URL_BYTES} bytes")));
    }
    let refused = |why: &str| Refusal(format!("its {what} `{}` {why}", shown(text)));
    let url = Url::parse(text).map_err(|error| refused(&format!("is no URL: {error}")))?;
    let is_safe = match url.scheme() {
        "https" => url.has_host(),
        "http" => is_loopback(&url),
        _ => false,
    };
    if !is_safe {
        return Err(refused("is neither `https` nor on this machine"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("has a user name or a password"));
    }
    if url.fragment().is_some() {
        return Err(refused("has a fragment"));
    }
    Ok(url)
}

/// Whether a URL leads to this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.') == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_over_tls_or_stay_on_this_machine() {
        for good in [
            "https://a.example/token",
            "http://127.0.0.1:1/x",
            "http://[::1]/x",
            "http://localhost:9/t",
            "https://10.0.0.1/x?y=1",
        ] {
            assert!(endpoint("token endpoint", good).is_ok(), "{good}");
        }
        for bad in [
            "http://a.example/token",
            "ftp://a.example/",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://u:p@a.example/",
            "https://a.example/#x",
            "http://localhost.evil.example/",
            "http://127.0.0.1.evil.example/",
            "http://10.0.0.1/",
            "/relative",
            "",
        ] {
            assert!(endpoint("token endpoint", bad).is_err(), "{bad}");
        }
        let long = format!("https://a.example/{}", "x".repeat(3000));
        assert!(endpoint("issuer", &long).is_err());
    }
}
