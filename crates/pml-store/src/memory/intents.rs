//! The intents by which a capability is found: those of its runs, except those found not to fit.
//!
//! A removed intent is also removed from learning in the traces it came from, so that learning everything again does
//! not bring it back.

use crate::sql::{Connection, params};
use pml_model::learning::Lesson;
use pml_model::{CapabilityId, Principal};
use serde_json::{Map, Value};

use super::bump_capability_version;
use super::cache::{self, InvalidationScope};
use super::identity::resolve_capability;
use crate::column::{capability_id, unexpected_value};
use crate::{BlockingStore, Error};

/// Maximum number of runs per intent that are compared; further ones had much the same arguments.
const RUNS: u32 = 20;

/// An intent that a capability was run for, with what is needed to check it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedIntent {
    /// The intent, in the words of the client.
    pub text: String,
    /// Whether the procedure itself served it, and not one that was merged into it.
    pub own: bool,
    /// Version of the analysis that last checked it; 0 if it was not checked.
    pub checked: u32,
    /// The distinct arguments of its runs, by parameter name.
    pub values: Vec<Map<String, Value>>,
}

impl BlockingStore {
    /// Removes an intent from a capability: it no longer finds the capability, and later runs with the same intent do
    /// not bring it back. Returns whether the capability had it.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn forget_intent(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        text: &str,
        now: i64,
    ) -> Result<bool, Error> {
        let (principal, id, text) = (principal.clone(), id.clone(), text.to_owned());
        self.write(move |connection| {
            let Some((number, _)) = resolve_capability(connection, &principal, &id)? else {
                return Ok(false);
            };
            if !remove(connection, number, &text)? {
                return Ok(false);
            }
            connection
                .prepare_cached("INSERT OR IGNORE INTO forgotten_intent (capability, text) VALUES (?1, ?2)")?
                .execute(params![number, text])?;
            bump_capability_version(connection, number)?;
            let because = "an intent of it was forgotten";
            cache::invalidate_results(
                connection,
                &principal,
                InvalidationScope::Capability(&id),
                because,
                now,
            )?;
            Ok(true)
        })
    }

    /// Capabilities of all principals with intents that this version of the analysis has not checked.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn capabilities_with_unchecked_intents(
        &self,
        version: u32,
        limit: u32,
    ) -> Result<Vec<(Principal, CapabilityId)>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT principal, id FROM capability WHERE number IN (
                        SELECT DISTINCT capability FROM capability_intent WHERE checked < ?1 LIMIT ?2)
                     ORDER BY number",
                )?
                .query_map([version, limit], |row| Ok((Principal(row.get(0)?), capability_id(row, 1)?)))?
                .collect()
        })
    }

    /// The intents of a capability, those it served first at the front.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn served_intents(
        &self,
        principal: &Principal,
        id: &CapabilityId,
    ) -> Result<Vec<ServedIntent>, Error> {
        self.read(|connection| {
            let Some((number, _)) = resolve_capability(connection, principal, id)? else {
                return Ok(Vec::new());
            };
            let rows: Vec<(String, bool, u32)> = connection
                .prepare_cached(
                    "SELECT text, checked,
                        NOT EXISTS (SELECT 1 FROM trace WHERE capability = ?1 AND intent = text AND own = 0)
                        OR EXISTS (SELECT 1 FROM trace WHERE capability = ?1 AND intent = text AND own = 1)
                     FROM capability_intent WHERE capability = ?1 ORDER BY first_at, text",
                )?
                .query_map([number], |row| Ok((row.get(0)?, row.get(2)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            rows.into_iter()
                .map(|(text, own, checked)| {
                    let values = values(connection, number, &text)?;
                    Ok(ServedIntent { text, own, checked, values })
                })
                .collect()
        })
    }

    /// Records that this version of the analysis checked these intents of a capability, and removes those that do not
    /// fit. Idempotent.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn record_intent_check(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        version: u32,
        fit: Vec<String>,
        unfit: Vec<String>,
    ) -> Result<(), Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.write(move |connection| {
            let Some((number, _)) = resolve_capability(connection, &principal, &id)? else { return Ok(()) };
            for text in &fit {
                connection
                    .prepare_cached(
                        "UPDATE capability_intent SET checked = ?3 WHERE capability = ?1 AND text = ?2 AND checked < ?3",
                    )?
                    .execute(params![number, text, version])?;
            }
            let mut removed = false;
            for text in &unfit {
                removed |= remove(connection, number, text)?;
            }
            if removed { bump_capability_version(connection, number) } else { Ok(()) }
        })
    }
}

/// Removes an intent, also from the traces that carry it. Returns whether it existed.
fn remove(connection: &Connection, capability: i64, text: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("UPDATE trace SET tells = 0 WHERE capability = ?1 AND intent = ?2 AND tells = 1")?
        .execute(params![capability, text])?;
    let removed = connection
        .prepare_cached("DELETE FROM capability_intent WHERE capability = ?1 AND text = ?2")?
        .execute(params![capability, text])?;
    Ok(removed > 0)
}

/// The distinct arguments of the runs for an intent.
fn values(connection: &Connection, capability: i64, text: &str) -> rusqlite::Result<Vec<Map<String, Value>>> {
    let lessons: Vec<String> = connection
        .prepare_cached(
            "SELECT lesson FROM trace JOIN trace_body ON trace_body.seq = trace.seq
             WHERE capability = ?1 AND intent = ?2 AND tells = 1 AND NOT cached AND parent IS NULL
             ORDER BY trace.seq LIMIT ?3",
        )?
        .query_map(params![capability, text, RUNS], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut found: Vec<Map<String, Value>> = Vec::new();
    for lesson in lessons {
        let Lesson { parameter_values: values, .. } =
            serde_json::from_str(&lesson).map_err(|error| unexpected_value(0, error))?;
        if !found.contains(&values) {
            found.push(values);
        }
    }
    Ok(found)
}
