//! By which model it is told what texts mean: `[embedding]`.

use std::path::{Path, PathBuf};

use url::Url;

use super::error::Complaint;
use super::paths::Env;
use super::reference;
use super::secret::Secret;
use super::section::Section;
use super::variables::{Unexpanded, Variables};

/// Who says what texts mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Embedding {
    /// The model inside the program.
    #[default]
    BuiltIn,
    /// Nobody: tools are found by their words alone.
    None,
    /// A model of the BERT or XLM-R family in a directory.
    Directory(PathBuf),
    /// A service that speaks as OpenAI's does.
    Endpoint(Endpoint),
}

/// A service for texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it is; `/embeddings` is added.
    pub url: Url,
    /// What it calls its model.
    pub name: String,
    /// The bearer token it wants.
    pub key: Option<Secret>,
}

/// Reads it. Relative paths are below `base`.
pub(super) fn embedding(root: &Section<'_>, env: &Env, base: &Path) -> Result<Embedding, Complaint> {
    let Some(table) = root.section("embedding", &reference::keys("embedding"))? else {
        return Ok(Embedding::default());
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
        return Ok(Embedding::Directory(env.resolve(directory, base)));
    }
    let Some(url) = url else {
        return match model {
            None | Some("built-in") => Ok(Embedding::BuiltIn),
            Some("none") => Ok(Embedding::None),
            Some(other) => Err(complaint("model", format!("`embedding.model` is `{other}`"))
                .hint("it may be `built-in` or `none`; for others give `directory` or `url`")),
        };
    };
    let Some(name) = table.text("name")? else {
        return Err(complaint("url", "`embedding.url` stands without `name`".to_owned())
            .hint("give the `name` of the model at that service"));
    };
    let mut variables = Variables::new(env, base);
    let mut expand = |key: &str, text: &str| {
        variables.expand(text).map_err(|Unexpanded { message, hint }| complaint(key, message).hint(hint))
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
    Ok(Embedding::Endpoint(Endpoint { url, name: name.to_owned(), key }))
}
