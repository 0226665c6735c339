//! How servers that are reached over TLS are known: by the certificates this machine trusts.

use std::sync::Arc;

/// Settings for clients.
///
/// # Errors
/// The certificates cannot be read; says what to do.
pub(crate) fn trusted() -> Result<rustls::ClientConfig, String> {
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
