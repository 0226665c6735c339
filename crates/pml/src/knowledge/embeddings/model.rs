//! The model of the configuration: in the program, in a directory, or a service.

use std::sync::{Arc, OnceLock};

use super::Vector;
use super::endpoint::Service;
use crate::config::Embedding;
use crate::runtime::blocking;

/// What gives vectors for texts.
#[derive(Debug)]
pub(in crate::knowledge) struct Model {
    embedding: Embedding,
    /// Opened when first needed: a model from a directory takes its time. What cannot be opened is tried again.
    local: Arc<OnceLock<Local>>,
    service: Option<Service>,
}

#[derive(Debug, Clone)]
enum Local {
    BuiltIn(&'static pml_embed::Model),
    Opened(Arc<pml_embed::Model>),
}

impl Local {
    fn model(&self) -> &pml_embed::Model {
        match self {
            Local::BuiltIn(model) => model,
            Local::Opened(model) => model,
        }
    }
}

impl Model {
    pub(super) fn new(embedding: &Embedding) -> Model {
        let service = match embedding {
            Embedding::Endpoint(endpoint) => Some(Service::new(endpoint.clone())),
            Embedding::BuiltIn | Embedding::None | Embedding::Directory(_) => None,
        };
        Model { embedding: embedding.clone(), local: Arc::default(), service }
    }

    /// Whether it is the one of that configuration.
    pub(super) fn is_of(&self, embedding: &Embedding) -> bool {
        self.embedding == *embedding
    }

    /// Whether there is one at all.
    pub(super) fn is_there(&self) -> bool {
        self.embedding != Embedding::None
    }

    /// Whether texts leave the machine to be read.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.service.is_some()
    }

    /// What tells it from every other model.
    pub(super) fn name(&self) -> String {
        match (&self.embedding, self.local.get()) {
            (_, Some(local)) => local.model().id().to_owned(),
            (Embedding::BuiltIn, _) => pml_embed::Model::embedded().id().to_owned(),
            (Embedding::None, _) => "none".to_owned(),
            (Embedding::Directory(path), _) => path.display().to_string(),
            (Embedding::Endpoint(endpoint), _) => format!("{} at {}", endpoint.name, endpoint.url),
        }
    }

    /// Opens it, where that takes long.
    ///
    /// # Errors
    /// It cannot be used; says why.
    pub(in crate::knowledge) async fn open(&self) -> Result<(), String> {
        match &self.embedding {
            Embedding::None | Embedding::Endpoint(_) => Ok(()),
            Embedding::BuiltIn | Embedding::Directory(_) => {
                let (local, embedding) = (Arc::clone(&self.local), self.embedding.clone());
                blocking(move || opened(&local, &embedding).map(drop)).await
            }
        }
    }

    /// What the texts mean.
    ///
    /// # Errors
    /// It cannot be told; says why.
    pub(super) async fn read(&self, texts: Vec<String>) -> Result<Vec<Vector>, String> {
        if let Some(service) = &self.service {
            return service.read(&texts).await;
        }
        let (local, embedding) = (Arc::clone(&self.local), self.embedding.clone());
        blocking(move || {
            let local = opened(&local, &embedding)?;
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            Ok(local.model().embed_all(&texts).into_iter().map(Vector::from).collect())
        })
        .await
    }
}

fn opened(local: &OnceLock<Local>, embedding: &Embedding) -> Result<Local, String> {
    if let Some(known) = local.get() {
        return Ok(known.clone());
    }
    let opened = match embedding {
        Embedding::Directory(path) => {
            let model = pml_embed::Model::open(path).map_err(|error| error.to_string())?;
            Local::Opened(Arc::new(model))
        }
        Embedding::BuiltIn | Embedding::None | Embedding::Endpoint(_) => {
            Local::BuiltIn(pml_embed::Model::embedded())
        }
    };
    Ok(local.get_or_init(|| opened).clone())
}
