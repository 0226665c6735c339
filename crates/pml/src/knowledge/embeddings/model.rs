//! The configured model: built in, in a directory, or a remote service.

use std::sync::{Arc, OnceLock};

use super::Vector;
use super::endpoint::EmbeddingService;
use crate::config::EmbeddingSettings;
use crate::runtime::run_blocking;

/// The model that computes embeddings.
#[derive(Debug)]
pub(in crate::knowledge) struct EmbeddingModel {
    embedding: EmbeddingSettings,
    /// Opened on first use, because loading a model from a directory takes long. A failed open is retried.
    local: Arc<OnceLock<LocalModel>>,
    service: Option<EmbeddingService>,
}

#[derive(Debug, Clone)]
enum LocalModel {
    BuiltIn(&'static pml_embed::TransformerModel),
    Opened(Arc<pml_embed::TransformerModel>),
}

impl LocalModel {
    fn model(&self) -> &pml_embed::TransformerModel {
        match self {
            LocalModel::BuiltIn(model) => model,
            LocalModel::Opened(model) => model,
        }
    }
}

impl EmbeddingModel {
    pub(super) fn new(embedding: &EmbeddingSettings) -> EmbeddingModel {
        let service = match embedding {
            EmbeddingSettings::Endpoint(endpoint) => Some(EmbeddingService::new(endpoint.clone())),
            EmbeddingSettings::BuiltIn | EmbeddingSettings::None | EmbeddingSettings::Directory(_) => None,
        };
        EmbeddingModel { embedding: embedding.clone(), local: Arc::default(), service }
    }

    /// Whether it is the model of that configuration.
    pub(super) fn is_of(&self, embedding: &EmbeddingSettings) -> bool {
        self.embedding == *embedding
    }

    /// Whether a model is configured at all.
    pub(super) fn is_configured(&self) -> bool {
        self.embedding != EmbeddingSettings::None
    }

    /// Whether texts are sent to a remote service.
    pub(super) fn is_remote(&self) -> bool {
        self.service.is_some()
    }

    /// The unique name of the model.
    pub(super) fn name(&self) -> String {
        match (&self.embedding, self.local.get()) {
            (_, Some(local)) => local.model().id().to_owned(),
            (EmbeddingSettings::BuiltIn, _) => pml_embed::TransformerModel::embedded().id().to_owned(),
            (EmbeddingSettings::None, _) => "none".to_owned(),
            (EmbeddingSettings::Directory(path), _) => path.display().to_string(),
            (EmbeddingSettings::Endpoint(endpoint), _) => format!("{} at {}", endpoint.name, endpoint.url),
        }
    }

    /// Opens the model, if that takes long.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub(in crate::knowledge) async fn open(&self) -> Result<(), String> {
        match &self.embedding {
            EmbeddingSettings::None | EmbeddingSettings::Endpoint(_) => Ok(()),
            EmbeddingSettings::BuiltIn | EmbeddingSettings::Directory(_) => {
                let (local, embedding) = (Arc::clone(&self.local), self.embedding.clone());
                run_blocking(move || opened(&local, &embedding).map(drop)).await
            }
        }
    }

    /// Computes the embeddings of the texts.
    ///
    /// # Errors
    /// The reason why it failed.
    pub(super) async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vector>, String> {
        if let Some(service) = &self.service {
            return service.embed(&texts).await;
        }
        let (local, embedding) = (Arc::clone(&self.local), self.embedding.clone());
        run_blocking(move || {
            let local = opened(&local, &embedding)?;
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            Ok(local.model().embed_all(&texts).into_iter().map(Vector::from).collect())
        })
        .await
    }
}

fn opened(local: &OnceLock<LocalModel>, embedding: &EmbeddingSettings) -> Result<LocalModel, String> {
    if let Some(known) = local.get() {
        return Ok(known.clone());
    }
    let opened = match embedding {
        EmbeddingSettings::Directory(path) => {
            let model = pml_embed::TransformerModel::open(path).map_err(|error| error.to_string())?;
            LocalModel::Opened(Arc::new(model))
        }
        EmbeddingSettings::BuiltIn | EmbeddingSettings::None | EmbeddingSettings::Endpoint(_) => {
            LocalModel::BuiltIn(pml_embed::TransformerModel::embedded())
        }
    };
    Ok(local.get_or_init(|| opened).clone())
}
