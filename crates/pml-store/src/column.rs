//! Reads columns into the types of the model. A column that holds an unexpected value is treated as damage.

use crate::sql::Row;
use pml_model::trace::TraceStatus;
use pml_model::{CapabilityId, Digest, RunId, RunState, ServerName};
use rusqlite::types::Type;
use serde::Deserialize;

pub(crate) fn server_name(row: &Row<'_>, column: usize) -> rusqlite::Result<ServerName> {
    ServerName::new(row.get_ref(column)?.as_str()?).map_err(|error| unexpected_value(column, error))
}

pub(crate) fn digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Digest> {
    let text = row.get_ref(column)?.as_str()?;
    Digest::from_hex(text).ok_or_else(|| unexpected_value(column, format!("`{text}` is no digest")))
}

pub(crate) fn optional_digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Digest>> {
    match row.get_ref(column)?.as_str_or_null()? {
        Some(_) => digest(row, column).map(Some),
        None => Ok(None),
    }
}

pub(crate) fn run_id(row: &Row<'_>, column: usize) -> rusqlite::Result<RunId> {
    RunId::parse(row.get_ref(column)?.as_str()?).map_err(|error| unexpected_value(column, error))
}

pub(crate) fn run_state(row: &Row<'_>, column: usize) -> rusqlite::Result<RunState> {
    let word = row.get_ref(column)?.as_str()?;
    RunState::parse(word).ok_or_else(|| unexpected_value(column, format!("`{word}` is no state of a run")))
}

pub(crate) fn trace_status(row: &Row<'_>, column: usize) -> rusqlite::Result<TraceStatus> {
    let word = row.get_ref(column)?.as_str()?;
    TraceStatus::parse(word)
        .ok_or_else(|| unexpected_value(column, format!("`{word}` is no status of a trace")))
}

pub(crate) fn capability_id(row: &Row<'_>, column: usize) -> rusqlite::Result<CapabilityId> {
    CapabilityId::parse(row.get_ref(column)?.as_str()?).map_err(|error| unexpected_value(column, error))
}

/// Reads a column of JSON.
pub(crate) fn json_column<T: for<'a> Deserialize<'a>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|error| unexpected_value(column, error))
}

/// The error for a column that holds an unexpected value.
pub(crate) fn unexpected_value(
    column: usize,
    why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into())
}
