//! Cached embeddings of texts.
//!
//! Rows are keyed by the model and the digest of the text, so that no embedding is computed twice and models are never
//! mixed.

use std::collections::HashMap;

use crate::sql::params;
use pml_model::{Digest, Principal};

use crate::column::{digest, unexpected_value};
use crate::{BlockingStore, Error, Urgency};

/// The embedding of one text, quantised: each component is an integer from −127 to 127 times `scale`.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    /// Factor of the quantised components.
    pub scale: f32,
    /// The quantised components.
    pub numbers: Vec<i8>,
}

impl BlockingStore {
    /// All embeddings that `model` gave for texts of the principal.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn vectors(
        &self,
        principal: &Principal,
        model: &str,
    ) -> Result<HashMap<Digest, StoredVector>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT text, vector FROM vector WHERE principal = ?1 AND model = ?2")?
                .query_map(params![principal.0, model], |row| {
                    let bytes = row.get_ref(1)?.as_blob()?;
                    let vector = StoredVector::from_bytes(bytes)
                        .ok_or_else(|| unexpected_value(1, "a vector without a scale".to_owned()))?;
                    Ok((digest(row, 0)?, vector))
                })?
                .collect()
        })
    }

    /// Stores embeddings that `model` gave.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn store_vectors(
        &self,
        principal: &Principal,
        model: &str,
        vectors: Vec<(Digest, StoredVector)>,
    ) -> Result<(), Error> {
        let (principal, model) = (principal.clone(), model.to_owned());
        self.change(Urgency::Lazy, move |connection| {
            let mut put = connection.prepare_cached(
                "INSERT OR REPLACE INTO vector (principal, model, text, vector) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for (text, vector) in &vectors {
                put.execute(params![principal.0, model, text.as_str(), vector.to_bytes()])?;
            }
            Ok(())
        })
    }

    /// Deletes the embeddings that `model` gave for these texts.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn forget_vectors(
        &self,
        principal: &Principal,
        model: &str,
        texts: Vec<Digest>,
    ) -> Result<(), Error> {
        let (principal, model) = (principal.clone(), model.to_owned());
        self.change(Urgency::Lazy, move |connection| {
            let mut delete = connection
                .prepare_cached("DELETE FROM vector WHERE principal = ?1 AND model = ?2 AND text = ?3")?;
            for text in &texts {
                delete.execute(params![principal.0, model, text.as_str()])?;
            }
            Ok(())
        })
    }

    /// Deletes the principal's embeddings of all models other than `model`, and returns their number.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn forget_vectors_of_other_models(&self, principal: &Principal, model: &str) -> Result<usize, Error> {
        let any = self.read(|connection| {
            connection
                .prepare_cached("SELECT 1 FROM vector WHERE principal = ?1 AND model <> ?2")?
                .exists(params![principal.0, model])
        })?;
        if !any {
            return Ok(0);
        }
        let (principal, model) = (principal.clone(), model.to_owned());
        self.change(Urgency::Lazy, move |connection| {
            let mut delete =
                connection.prepare_cached("DELETE FROM vector WHERE principal = ?1 AND model <> ?2")?;
            Ok(delete.execute(params![principal.0, model])?)
        })
    }
}

impl StoredVector {
    fn to_bytes(&self) -> Vec<u8> {
        let numbers = self.numbers.iter().map(|number| number.cast_unsigned());
        self.scale.to_le_bytes().into_iter().chain(numbers).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<StoredVector> {
        let (scale, numbers) = bytes.split_first_chunk::<4>()?;
        let numbers = numbers.iter().map(|number| number.cast_signed()).collect();
        Some(StoredVector { scale: f32::from_le_bytes(*scale), numbers })
    }
}
