//! Result schemas of tools, inferred from their results.

use std::collections::HashMap;

use crate::sql::{Connection, OptionalExtension, params};
use pml_model::learning::ObservedTool;
use pml_model::observed::ObservedShape;
use pml_model::{Digest, Principal};
use serde_json::Value;

use crate::column::{digest, json_column};
use crate::vouch::vouched_condition;
use crate::{BlockingStore, Error};

/// A schema that was inferred from results.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedSchema {
    /// The JSON Schema.
    pub schema: Value,
    /// Number of results it was inferred from.
    pub count: u64,
}

impl From<ObservedShape> for ObservedSchema {
    fn from(shape: ObservedShape) -> ObservedSchema {
        ObservedSchema { schema: shape.schema(), count: shape.count() }
    }
}

impl BlockingStore {
    /// The schema observed for a tool under the definition with this digest.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn observed_schema(
        &self,
        principal: &Principal,
        tool: &str,
        digest: &Digest,
    ) -> Result<Option<ObservedSchema>, Error> {
        let key = (principal.clone(), tool.to_owned(), digest.clone());
        Ok(self.read(|connection| find_observed(connection, &key))?.flatten().map(ObservedSchema::from))
    }

    /// The observed schemas of all tools, by tool and digest of its definition.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn observed_schemas(
        &self,
        principal: &Principal,
    ) -> Result<Vec<(String, Digest, ObservedSchema)>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT tool, digest, shape FROM observed WHERE principal = ?1 AND {}",
                    vouched_condition("observed", "observed")
                ))?
                .query_map([&principal.0], |row| {
                    Ok((
                        row.get(0)?,
                        digest(row, 1)?,
                        ObservedSchema::from(json_column::<ObservedShape>(row, 2)?),
                    ))
                })?
                .collect()
        })
    }
}

/// The observed shape; `Some(None)` if the row is damaged.
pub(super) fn find_observed(
    connection: &Connection,
    (principal, tool, digest): &ObservedTool,
) -> rusqlite::Result<Option<Option<ObservedShape>>> {
    connection
        .prepare_cached(&format!(
            "SELECT shape, {} FROM observed WHERE principal = ?1 AND tool = ?2 AND digest = ?3",
            vouched_condition("observed", "observed")
        ))?
        .query_row([principal.0.as_str(), tool, digest.as_str()], |row| {
            if row.get(1)? { json_column(row, 0).map(Some) } else { Ok(None) }
        })
        .optional()
}

/// Stores the observed shapes of tools.
pub(super) fn put_observed(
    connection: &Connection,
    observed: HashMap<ObservedTool, ObservedShape>,
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
