//! The embedding model: `[embedding]`.

use std::path::{Path, PathBuf};

use url::Url;

use super::error::ConfigComplaint;
use super::paths::Env;
use super::reference;
use super::secret::Secret;
use super::section::Section;
use super::variables::{ExpandError, VariableExpander};

/// Where embeddings come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EmbeddingSettings {
    /// The model built into the program.
    #[default]
    BuiltIn,
    /// No embeddings: tools are found by their words alone.
    None,
    /// A model of the BERT or XLM-R family in this directory.
    Directory(PathBuf),
    /// A service with OpenAI's embeddings API.
    Endpoint(EmbeddingEndpoint),
}

/// An embedding service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingEndpoint {
    /// The base URL; `/embeddings` is appended.
    pub url: Url,
    /// The name of the model at the service.
    pub name: String,
    /// The bearer token.
    pub key: Option<Secret>,
}

/// Reads `[embedding]`. Relative paths are resolved against `base`.
pub(super) fn embedding(
    root: &Section<'_>,
    env: &Env,
    base: &Path,
) -> Result<EmbeddingSettings, ConfigComplaint> {
    let Some(table) = root.section("embedding", &reference::keys("embedding"))? else {
        return Ok(EmbeddingSettings::default());
    };
    let (model, directory, url) = (table.text("model")?, table.text("directory")?, table.text("url")?);
    let complaint = |key: &str, message: String| {
        table.file.complaint(table.get(key).map_or(table.at, |node| node.at), message)
    };
    if [model, directory, url].iter().flatten().count() > 1 {
        return Err(complaint("model", "`embedding` names more than one model".to_owned())
            .hint("give one of `model`, `directory` and `url`"));
    }
    for key in ["name", "key"] {
        if url.is_none() && table.get(key).is_some() {
            return Err(complaint(key, format!("`embedding.{key}` stands without `url`"))
                .hint("give the `url` of the service, or remove it"));
        }
    }
    if let Some(directory) = directory {
        return Ok(EmbeddingSettings::Directory(env.resolve(directory, base)));
    }
    let Some(url) = url else {
        return match model {
            None | Some("built-in") => Ok(EmbeddingSettings::BuiltIn),
            Some("none") => Ok(EmbeddingSettings::None),
            Some(other) => Err(complaint("model", format!("`embedding.model` is `{other}`"))
                .hint("it may be `built-in` or `none`; for others give `directory` or `url`")),
        };
    };
    let Some(name) = table.text("name")? else {
        return Err(complaint("url", "`embedding.url` stands without `name`".to_owned())
            .hint("give the `name` of the model at that service"));
    };
    let mut variables = VariableExpander::new(env, base);
    let mut expand = |key: &str, text: &str| {
        variables.expand(text).map_err(|ExpandError { message, hint }| complaint(key, message).hint(hint))
    };
    let url = expand("url", url)?;
    let key = table.text("key")?.map(|key| expand("key", key)).transpose()?.map(Secret::new);
    let plain = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
    };
    let url = Url::parse(&url).ok().filter(plain);
    let url = url.ok_or_else(|| {
        complaint("url", "`embedding.url` is no plain address".to_owned())
            .hint("write it as `https://host/v1`; credentials go into `key`")
    })?;
    Ok(EmbeddingSettings::Endpoint(EmbeddingEndpoint { url, name: name.to_owned(), key }))
}
