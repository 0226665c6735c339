//! What tools were seen to return.

use std::collections::HashMap;

use pml_model::learning::ObservedTool;
use pml_model::observed::Shape;
use pml_model::{Digest, Principal};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use crate::column::{digest, json};
use crate::vouch::vouched;
use crate::{BlockingStore, Error};

/// A schema that was inferred from results.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedSchema {
    /// JSON Schema.
    pub schema: Value,
    /// From how many results.
    pub count: u64,
}

impl From<Shape> for ObservedSchema {
    fn from(shape: Shape) -> ObservedSchema {
        ObservedSchema { schema: shape.schema(), count: shape.count() }
    }
}

impl BlockingStore {
    /// What a tool was seen to return while its definition was the one with this digest.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn observed(
        &self,
        principal: &Principal,
        tool: &str,
        digest: &Digest,
    ) -> Result<Option<ObservedSchema>, Error> {
        let key = (principal.clone(), tool.to_owned(), digest.clone());
        Ok(self.read(|connection| find(connection, &key))?.flatten().map(ObservedSchema::from))
    }

    /// What all tools were seen to return, by tool and digest of its definition.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn observed_all(
        &self,
        principal: &Principal,
    ) -> Result<Vec<(String, Digest, ObservedSchema)>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT tool, digest, shape FROM observed WHERE principal = ?1 AND {}",
                    vouched("observed", "observed")
                ))?
                .query_map([&principal.0], |row| {
                    Ok((row.get(0)?, digest(row, 1)?, ObservedSchema::from(json::<Shape>(row, 2)?)))
                })?
                .collect()
        })
    }
}

/// What is known; `Some(None)` where that is damaged.
pub(super) fn find(
    connection: &Connection,
    (principal, tool, digest): &ObservedTool,
) -> rusqlite::Result<Option<Option<Shape>>> {
    connection
        .prepare_cached(&format!(
            "SELECT shape, {} FROM observed WHERE principal = ?1 AND tool = ?2 AND digest = ?3",
            vouched("observed", "observed")
        ))?
        .query_row([principal.0.as_str(), tool, digest.as_str()], |row| {
            if row.get(1)? { json(row, 0).map(Some) } else { Ok(None) }
        })
        .optional()
}

/// Stores what is known now of what tools return.
pub(super) fn put_observed(
    connection: &Connection,
    observed: HashMap<ObservedTool, Shape>,
) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached(
        "INSERT OR REPLACE INTO observed (principal, tool, digest, shape) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for ((principal, tool, digest), shape) in observed {
        let text = serde_json::to_string(&shape).expect("a shape is plain data");
        put.execute(params![principal.0, tool, digest.as_str(), text])?;
    }
    Ok(())
}
