//! TLS settings: servers are verified with the certificates that this machine trusts.

use std::sync::Arc;

/// The TLS settings for clients.
///
/// # Errors
/// The certificates cannot be read; the text says what to do.
pub(crate) fn tls_client_config() -> Result<rustls::ClientConfig, String> {
    use rustls_platform_verifier::BuilderVerifierExt as _;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verified = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(rustls::ConfigBuilder::with_platform_verifier);
    let config = verified.map_err(|error| {
        format!(
            "the certificates this machine trusts cannot be read: {error}; install them, or name their file in \
             `SSL_CERT_FILE`"
        )
    })?;
    Ok(config.with_no_client_auth())
}
