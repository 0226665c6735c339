//! What traces show of explored paths, and the paths that become capabilities without having been run.

use std::sync::LazyLock;

use crate::sql::{Connection, Row, params};
use pml_model::Principal;
use pml_model::capability::Procedure;
use pml_model::exploration::{ExploredPath, MisleadingCause, PathOutcome};

use super::capability::{NewProcedure, add_intent, free_name};
use super::identity::resolve_capability;
use crate::column::{capability_id, digest, unexpected_value};
use crate::vouch::{mark_sql, vouched_condition};
use crate::{BlockingStore, Error};

/// The columns of a row, in the order in which [`explored_path`] reads them, after the key.
const COLUMNS: [&str; 11] = [
    "seq",
    "principal",
    "exploration",
    "path",
    "procedure",
    "definitions",
    "intent",
    "outcome",
    "weight",
    "cause",
    "message",
];

impl BlockingStore {
    /// What the latest `limit` traces of the principal's explored paths show, oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn explored_paths(&self, principal: &Principal, limit: u32) -> Result<Vec<ExploredPath>, Error> {
        static SELECT: LazyLock<String> = LazyLock::new(|| {
            format!(
                "SELECT {} FROM explored_path WHERE principal = ?1 AND {} ORDER BY seq DESC LIMIT ?2",
                COLUMNS.join(", "),
                vouched_condition("explored_path", "explored_path")
            )
        });
        let mut found: Vec<ExploredPath> = self.read(|connection| {
            connection
                .prepare_cached(&SELECT)?
                .query_map(params![principal.0, limit], explored_path)?
                .collect()
        })?;
        found.reverse();
        Ok(found)
    }

    /// Makes a procedure that was only explored a capability, under a free name. Returns whether that is new: a
    /// procedure that has a capability keeps it, and one whose capability was deleted gets it back by a run only.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn promote_explored(&self, procedure: Procedure, intent: &str, now: i64) -> Result<bool, Error> {
        let (procedure, intent) = (NewProcedure::encode(procedure), intent.to_owned());
        self.write(move |connection| {
            let was_deleted = connection
                .prepare_cached("SELECT 1 FROM capability_gone WHERE id = ?1")?
                .exists([procedure.id.as_str()])?;
            if was_deleted || resolve_capability(connection, &procedure.owner, &procedure.id)?.is_some() {
                return Ok(false);
            }
            let name = free_name(connection, &procedure.owner, &procedure.suggested_name)?;
            let number = procedure.insert(connection, &name, Some(now), false, now)?;
            if !intent.is_empty() {
                add_intent(connection, number, &intent, 0, now)?;
            }
            Ok(true)
        })
    }
}

/// Stores what the trace at `seq` shows of a path.
pub(super) fn insert_explored(
    connection: &Connection,
    seq: i64,
    principal: &Principal,
    explored: &ExploredPath,
) -> rusqlite::Result<()> {
    static INSERT: LazyLock<String> = LazyLock::new(|| {
        format!(
            "INSERT INTO explored_path ({}, mark) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, {})",
            COLUMNS.join(", "),
            mark_sql("explored_path", &COLUMNS)
        )
    });
    connection
        .prepare_cached(&INSERT)?
        .execute(params![
            seq,
            principal.0,
            explored.exploration_id,
            explored.path_id,
            explored.procedure.as_str(),
            explored.definitions.as_str(),
            explored.masked_intent,
            explored.outcome.as_str(),
            explored.weight,
            explored.cause.map(MisleadingCause::as_str),
            explored.message,
        ])
        .map(drop)
}

fn explored_path(row: &Row<'_>) -> rusqlite::Result<ExploredPath> {
    let outcome = row.get_ref(7)?.as_str()?;
    let cause = row.get_ref(9)?.as_str_or_null()?;
    let unknown = |column, word: &str| unexpected_value(column, format!("`{word}` is not known here"));
    Ok(ExploredPath {
        exploration_id: row.get(2)?,
        path_id: row.get(3)?,
        procedure: capability_id(row, 4)?,
        definitions: digest(row, 5)?,
        masked_intent: row.get(6)?,
        // The trace has them; nothing is decided by them.
        not_chosen: Vec::new(),
        outcome: PathOutcome::parse(outcome).ok_or_else(|| unknown(7, outcome))?,
        weight: row.get(8)?,
        cause: cause
            .map(|cause| MisleadingCause::parse(cause).ok_or_else(|| unknown(9, cause)))
            .transpose()?,
        message: row.get(10)?,
    })
}
