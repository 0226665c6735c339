//! Why a model could not be read from a directory.

use std::path::PathBuf;

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that a model has is not there, or cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("`{}` is damaged or not of a model: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A sound model of a kind that cannot be run here.
    #[error("`{}` asks for {what}, which is not supported", path.display())]
    Unsupported {
        /// The file that says so.
        path: PathBuf,
        /// What it asks for.
        what: String,
    },
}

impl Error {
    /// What can be done about it.
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
