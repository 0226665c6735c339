//! How PML signs in to a remote server, as far as the configuration says.

use url::Url;

use super::error::ConfigComplaint;
use super::secret::Secret;
use super::section::Section;
use super::variables::{ExpandError, VariableExpander};

/// How PML signs in to a server. Nothing has to be set where the server describes itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignInSettings {
    /// The client that was registered for PML at the authorization server.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<Secret>,
    /// The URL of a client metadata document that describes PML.
    pub client_metadata: Option<String>,
    /// The scopes to ask for, instead of those that the server names.
    pub scopes: Vec<String>,
    /// The only authorization server that is used.
    pub issuer: Option<Url>,
    /// The port that the browser is sent back to.
    pub redirect_port: Option<u16>,
}

/// The keys of these settings in the table of a server.
pub(super) const KEYS: &[&str] =
    &["client_id", "client_secret", "client_metadata", "scopes", "issuer", "redirect_port"];

/// Reads the settings of a server; its secret may still have variables.
pub(super) fn read(table: &Section<'_>) -> Result<SignInSettings, ConfigComplaint> {
    let text = |key| Ok::<_, ConfigComplaint>(table.text(key)?.map(ToOwned::to_owned));
    let address = |key: &str| match (table.text(key)?, table.get(key)) {
        (Some(value), Some(node)) => pml_auth::endpoint(key, value).map(Some).map_err(|_| {
            table
                .file
                .complaint(node.at, format!("`{}` is no address that can be used", table.member_path(key)))
                .hint("write it as `https://host/path`")
        }),
        _ => Ok(None),
    };
    let settings = SignInSettings {
        client_id: text("client_id")?,
        client_secret: text("client_secret")?.map(Secret::new),
        client_metadata: address("client_metadata")?.map(String::from),
        scopes: table.texts("scopes")?.into_iter().map(|(scope, _)| scope.to_owned()).collect(),
        issuer: address("issuer")?,
        redirect_port: table.count("redirect_port", 1..=65_535)?.and_then(|port| u16::try_from(port).ok()),
    };
    if let (Some(_), Some(node)) = (&settings.client_secret, table.get("client_secret"))
        && (settings.client_id.is_none() || settings.issuer.is_none())
    {
        // Otherwise the server could name an authorization server of its own choice, which would get the secret.
        return Err(table
            .file
            .complaint(
                node.at,
                format!("`{}` needs `client_id` and `issuer`", table.member_path("client_secret")),
            )
            .hint("`issuer` names the authorization server that the secret is for"));
    }
    Ok(settings)
}

impl SignInSettings {
    /// The settings with the variables of the secret expanded.
    pub(super) fn resolve(self, variables: &mut VariableExpander<'_>) -> Result<SignInSettings, ExpandError> {
        let secret = self.client_secret.map(|secret| variables.expand(secret.reveal())).transpose()?;
        Ok(SignInSettings { client_secret: secret.map(Secret::new), ..self })
    }
}
