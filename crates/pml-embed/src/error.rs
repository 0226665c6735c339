//! Errors of reading a model from a directory.

use std::path::PathBuf;

/// Reason why a model could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A required file is missing or cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A file has invalid content.
    #[error("`{}` is damaged or not of a model: {reason}", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A valid model of a kind that is not supported.
    #[error("`{}` asks for {what}, which is not supported", path.display())]
    Unsupported {
        /// Path of the file that requires it.
        path: PathBuf,
        /// The unsupported feature.
        what: String,
    },
}

impl Error {
    /// Advice on how to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Unreadable { .. } => {
                "a model is a directory with `config.json`, `model.safetensors` (one file), and `tokenizer.json` or `vocab.txt`"
            }
            Error::Malformed { .. } => "fetch the files of the model again, all from the same place",
            Error::Unsupported { .. } => {
                "take a sentence embedding model of the BERT or XLM-R family, with mean or first-token pooling"
            }
        }
    }
}
