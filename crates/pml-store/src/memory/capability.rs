//! Capabilities as rows: how a procedure becomes one, and how they are read.

use crate::sql::{Connection, OptionalExtension, Row, params};
use pml_model::capability::{
    CacheConfig, Capability, CapabilityId, CapabilityIntent, CapabilityState, CapabilityStatistics,
    Procedure, ToolUse,
};
use pml_model::{Membership, Principal};
use serde_json::{Map, Value};

use super::identity::resolve_capability;
use super::{bump_capability_version, next_version, publication, release};
use crate::column::{capability_id, json_column, unexpected_value};
use crate::vouch::vouched_condition;
use crate::{BlockingStore, Error};

/// Maximum number of intents that are read with a capability.
const INTENTS: u32 = 50;

/// Filter, order and page of a list of capabilities.
#[derive(Debug, Clone)]
pub struct CapabilityQuery {
    /// Only capabilities in this state.
    pub state: Option<CapabilityState>,
    /// Most recently used first; sorted by name otherwise.
    pub recent: bool,
    /// Maximum number of capabilities.
    pub limit: u32,
    /// Number of capabilities to skip.
    pub offset: u32,
}

/// Changes of capabilities, of all principals.
#[derive(Debug, Clone)]
pub struct CapabilityChanges {
    /// The version up to which changes are included.
    pub version: i64,
    /// Capabilities that are new or changed.
    pub changed: Vec<Capability>,
    /// Ids of deleted capabilities.
    pub gone: Vec<CapabilityId>,
    /// Everybody who was put into a project, whenever that was.
    pub members: Vec<(Principal, Membership)>,
}

impl BlockingStore {
    /// A capability by id. The id of one that was merged into another returns that other.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn capability(&self, principal: &Principal, id: &CapabilityId) -> Result<Option<Capability>, Error> {
        self.read(|connection| match resolve_capability(connection, principal, id)? {
            // The index may be damaged, so the row it leads to has to match the query.
            Some((number, true)) => Ok(find(connection, "capability.number = ?1", [number])?
                .filter(|found| found.procedure.id == *id && found.procedure.owner == *principal)),
            Some((number, false)) => find(connection, "capability.number = ?1", [number]),
            None => Ok(None),
        })
    }

    /// The principal's capability of this name.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn capability_named(&self, principal: &Principal, name: &str) -> Result<Option<Capability>, Error> {
        self.read(|connection| {
            let condition = "capability.principal = ?1 AND capability.name = ?2";
            Ok(find(connection, condition, [principal.0.as_str(), name])?
                .filter(|found| found.name == name && found.procedure.owner == *principal))
        })
    }

    /// The principal's capabilities, one page.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn capabilities(
        &self,
        principal: &Principal,
        wanted: &CapabilityQuery,
    ) -> Result<Vec<Capability>, Error> {
        let state = if wanted.state.is_some() { "state = ?2" } else { "?2 IS NULL" };
        let order = if wanted.recent { "last_used DESC, name" } else { "name" };
        self.read(|connection| {
            let statement = format!(
                "{SELECT} WHERE capability.principal = ?1 AND {state} AND {} ORDER BY {order} LIMIT ?3 OFFSET ?4",
                is_sound()
            );
            let wanted = params![principal.0, wanted.state.map(CapabilityState::as_str), wanted.limit, wanted.offset];
            connection
                .prepare_cached(&statement)?
                .query_map(wanted, |row| capability(connection, row))?
                .collect()
        })
    }

    /// A number that grows whenever a capability of any principal changes.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn capability_version(&self) -> Result<i64, Error> {
        self.read(version)
    }

    /// The capabilities of all principals that changed after version `since`; all of them if that is 0.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn capabilities_since(&self, since: i64) -> Result<CapabilityChanges, Error> {
        self.read(|connection| {
            let changed = connection
                .prepare_cached(&format!(
                    "{SELECT} WHERE version > ?1 AND {} ORDER BY capability.number",
                    is_sound()
                ))?
                .query_map([since], |row| capability(connection, row))?
                .collect::<rusqlite::Result<_>>()?;
            let gone = connection
                .prepare_cached("SELECT id FROM capability_gone WHERE version > ?1 ORDER BY id")?
                .query_map([since], |row| capability_id(row, 0))?
                .collect::<rusqlite::Result<_>>()?;
            let members = publication::members(connection)?;
            Ok(CapabilityChanges { version: version(connection)?, changed, gone, members })
        })
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT version FROM memory")?.query_row([], |row| row.get(0))
}

fn find(
    connection: &Connection,
    condition: &str,
    params: impl crate::sql::Params,
) -> rusqlite::Result<Option<Capability>> {
    connection
        .prepare_cached(&format!("{SELECT} WHERE {condition} AND {}", is_sound()))?
        .query_row(params, |row| capability(connection, row))
        .optional()
}

/// The columns that [`capability`] reads.
const SELECT: &str = "SELECT capability.number, capability.id, name, state, degraded_because, usage_count,
    success_count, failure_count, failures_in_a_row, avg_duration_ms, last_used, learning, promoted_at, created_at,
    approved, examples, tools, procedure, cache,
    (SELECT count(*) FROM capability_publication AS published WHERE published.capability = capability.number)
    FROM capability JOIN capability_procedure ON capability_procedure.capability = capability.number";

/// SQL condition that the rows of a capability and its procedure are undamaged.
fn is_sound() -> String {
    let parts = ["capability", "capability_procedure"].map(|table| vouched_condition(table, table));
    parts.join(" AND ")
}

fn capability(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<Capability> {
    let state = row.get_ref(3)?.as_str()?;
    let mut procedure: Procedure = json_column(row, 17)?;
    if procedure.id != capability_id(row, 1)? {
        return Err(unexpected_value(17, "it is the procedure of another capability"));
    }
    procedure.tools_used = json_column::<Vec<ToolUse>>(row, 16)?;
    add_examples(&mut procedure.parameters_schema, json_column(row, 15)?);
    if row.get_ref(18)?.as_str_or_null()?.is_some() {
        procedure.cache_config = json_column(row, 18)?;
    }
    // Most are private, and need no second query.
    let published = match row.get::<_, i64>(19)? {
        0 => None,
        _ => publication::publication(connection, row.get(0)?)?,
    };
    let (visibility, published_in) =
        published.map(|published| (published.visibility, published.place)).unwrap_or_default();
    Ok(Capability {
        procedure,
        name: row.get(2)?,
        state: CapabilityState::parse(state)
            .ok_or_else(|| unexpected_value(3, format!("`{state}` is no state of a capability")))?,
        degraded_because: row.get(4)?,
        intents: intents(connection, row.get(0)?)?,
        statistics: CapabilityStatistics {
            usage_count: row.get(5)?,
            success_count: row.get(6)?,
            failure_count: row.get(7)?,
            failures_in_a_row: row.get(8)?,
            avg_duration_ms: row.get(9)?,
            last_used: row.get(10)?,
        },
        learning: json_column(row, 11)?,
        promoted_at: row.get(12)?,
        created_at: row.get(13)?,
        approved: row.get(14)?,
        visibility,
        published_in,
    })
}

/// Adds earlier arguments to the schema of the parameters, as examples.
fn add_examples(schema: &mut Value, examples: Map<String, Value>) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (name, values) in examples {
        if let Some(Value::Object(property)) = properties.get_mut(&name) {
            property.insert("examples".to_owned(), values);
        }
    }
}

/// The latest intents, and always the first one: the default arguments come from it.
fn intents(connection: &Connection, capability: i64) -> rusqlite::Result<Vec<CapabilityIntent>> {
    let intent = |row: &Row<'_>| {
        Ok(CapabilityIntent {
            text: row.get(0)?,
            count: row.get(1)?,
            first_at: row.get(2)?,
            last_at: row.get(3)?,
        })
    };
    connection
        .prepare_cached(&format!(
            "WITH own AS (SELECT * FROM capability_intent WHERE capability = ?1)
             SELECT text, count, first_at, last_at FROM own
             WHERE (text IN (SELECT text FROM own ORDER BY last_at DESC, text LIMIT ?2)
                OR text = (SELECT text FROM own ORDER BY first_at, text LIMIT 1)) AND {}
             ORDER BY last_at DESC, text",
            vouched_condition("capability_intent", "own")
        ))?
        .query_map([capability, i64::from(INTENTS)], intent)?
        .collect()
}

/// The cache policy of a capability.
pub(super) fn cache_config(connection: &Connection, capability: i64) -> rusqlite::Result<CacheConfig> {
    connection
        .prepare_cached(
            "SELECT coalesce(cache, procedure -> '$.cacheConfig') FROM capability_procedure WHERE capability = ?1",
        )?
        .query_row([capability], |row| json_column(row, 0))
}

/// Adds an intent by which a capability is found; learning counts its runs. `checked` is the version of the analysis
/// that found it to fit.
pub(super) fn add_intent(
    connection: &Connection,
    capability: i64,
    text: &str,
    checked: u32,
    at: i64,
) -> rusqlite::Result<()> {
    let added = connection
        .prepare_cached(
            "INSERT INTO capability_intent (capability, text, count, first_at, last_at, checked)
             SELECT ?1, ?2, 0, ?3, ?3, ?4
             WHERE NOT EXISTS (SELECT 1 FROM forgotten_intent WHERE capability = ?1 AND text = ?2)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![capability, text, at, checked])?;
    if added > 0 { bump_capability_version(connection, capability) } else { Ok(()) }
}

/// Records that a run approved by a person succeeded.
pub(super) fn mark_approved(connection: &Connection, capability: i64) -> rusqlite::Result<()> {
    let changed = connection
        .prepare_cached("UPDATE capability SET approved = 1 WHERE number = ?1 AND approved = 0")?
        .execute([capability])?;
    if changed > 0 { bump_capability_version(connection, capability) } else { Ok(()) }
}

/// Records the definitions of its tools with which a run succeeded.
pub(super) fn record_tool_definitions(
    connection: &Connection,
    capability: i64,
    definitions: &[ToolUse],
) -> rusqlite::Result<()> {
    let before: Vec<ToolUse> = connection
        .prepare_cached("SELECT tools FROM capability_procedure WHERE capability = ?1")?
        .query_row([capability], |row| json_column(row, 0))?;
    let now = |tool: &ToolUse| definitions.iter().find(|other| other.id == tool.id).unwrap_or(tool).clone();
    let tools: Vec<ToolUse> = before.iter().map(now).collect();
    if tools == before {
        return Ok(());
    }
    let tools = serde_json::to_string(&tools).expect("names and digests are plain data");
    connection
        .prepare_cached("UPDATE capability_procedure SET tools = ?2 WHERE capability = ?1")?
        .execute(params![capability, tools])?;
    bump_capability_version(connection, capability)
}

impl BlockingStore {
    /// Puts the lifted form of a capability's program in force if it is `proven`, and drops it otherwise. Idempotent.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn settle_lift(&self, principal: &Principal, id: &CapabilityId, proven: bool) -> Result<(), Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.write(move |connection| {
            let Some((number, true)) = resolve_capability(connection, &principal, &id)? else {
                return Ok(());
            };
            let mut procedure: Procedure = connection
                .prepare_cached("SELECT procedure FROM capability_procedure WHERE capability = ?1")?
                .query_row([number], |row| json_column(row, 0))?;
            if procedure.unproven_lift.is_none() {
                return Ok(());
            }
            procedure.settle_lift(proven);
            let procedure = serde_json::to_string(&procedure).expect("a procedure is plain data");
            connection
                .prepare_cached("UPDATE capability_procedure SET procedure = ?2 WHERE capability = ?1")?
                .execute(params![number, procedure])?;
            bump_capability_version(connection, number)
        })
    }
}

/// A procedure to be stored, serialised.
pub(super) struct NewProcedure {
    pub(super) id: CapabilityId,
    pub(super) owner: Principal,
    pub(super) suggested_name: String,
    tools: String,
    procedure: String,
}

impl NewProcedure {
    pub(super) fn encode(procedure: Procedure) -> NewProcedure {
        let text = |value: serde_json::Result<String>| value.expect("a procedure is plain data");
        NewProcedure {
            tools: text(serde_json::to_string(&procedure.tools_used)),
            procedure: text(serde_json::to_string(&procedure)),
            id: procedure.id,
            owner: procedure.owner,
            suggested_name: procedure.suggested_name,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.tools.len() + self.procedure.len()
    }

    /// Stores the procedure unless it exists. Returns the number of the capability that its runs count for, and
    /// whether that is its own rather than one it was merged into.
    pub(super) fn insert_or_update(
        &self,
        connection: &Connection,
        promoted_at: Option<i64>,
        approved: bool,
        now: i64,
    ) -> rusqlite::Result<(i64, bool)> {
        let Some((number, own)) = resolve_capability(connection, &self.owner, &self.id)? else {
            let name = free_name(connection, &self.owner, &self.suggested_name)?;
            return Ok((self.insert(connection, &name, promoted_at, approved, now)?, true));
        };
        // Approving one procedure does not approve another one that it was merged into.
        let approved = approved && own;
        let mut changed = 0;
        if own && promoted_at.is_some() {
            changed += self.replace_plan(connection, number)?;
        }
        changed += connection
            .prepare_cached(
                "UPDATE capability SET promoted_at = coalesce(promoted_at, ?2), approved = max(approved, ?3)
                 WHERE number = ?1 AND ((promoted_at IS NULL AND CAST(?2 AS INTEGER) IS NOT NULL) OR approved < ?3)",
            )?
            .execute(params![number, promoted_at, approved])?;
        if own && promoted_at.is_some() {
            changed += connection
                .prepare_cached(
                    "UPDATE capability_procedure SET tools = ?2 WHERE capability = ?1 AND tools <> ?2",
                )?
                .execute(params![number, self.tools])?;
        }
        if changed > 0 {
            bump_capability_version(connection, number)?;
        }
        Ok((number, own))
    }

    /// Replaces a procedure that never worked by one that did. Both have the same meaning, but the defaults have to
    /// come from the run whose intent is stored.
    fn replace_plan(&self, connection: &Connection, number: i64) -> rusqlite::Result<usize> {
        connection
            .prepare_cached(
                "UPDATE capability_procedure SET procedure = ?2 WHERE capability = ?1 AND procedure <> ?2
                 AND (SELECT promoted_at IS NULL FROM capability WHERE number = ?1)",
            )?
            .execute(params![number, self.procedure])
    }

    /// Stores it as a new capability under a name that is free.
    pub(super) fn insert(
        &self,
        connection: &Connection,
        name: &str,
        promoted_at: Option<i64>,
        approved: bool,
        now: i64,
    ) -> rusqlite::Result<i64> {
        let version = next_version(connection)?;
        connection
            .prepare_cached(
                "INSERT INTO capability (id, principal, name, created_at, promoted_at, approved, version)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![self.id.as_str(), self.owner.0, name, now, promoted_at, approved, version])?;
        let number = connection.last_insert_rowid();
        connection
            .prepare_cached(
                "INSERT INTO capability_procedure (capability, tools, procedure) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![number, self.tools, self.procedure])?;
        connection
            .prepare_cached("DELETE FROM capability_gone WHERE id = ?1")?
            .execute([self.id.as_str()])?;
        if release::has_versions(connection, &self.owner, name)? {
            // The one in force was deleted, and its name is in use again.
            release::numbered(connection, &self.owner, name, number, now)?;
        }
        Ok(number)
    }
}

/// The number of the principal's capability of this name.
pub(super) fn number_by_name(
    connection: &Connection,
    principal: &Principal,
    name: &str,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT number FROM capability WHERE principal = ?1 AND name = ?2")?
        .query_row([principal.0.as_str(), name], |row| row.get(0))
        .optional()
}

/// The wanted name, or if it is taken the same with a number appended.
pub(super) fn free_name(
    connection: &Connection,
    principal: &Principal,
    wanted: &str,
) -> rusqlite::Result<String> {
    let between = if wanted.ends_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
    let numbered = |number: u64| match number {
        1 => wanted.to_owned(),
        _ => format!("{wanted}{between}{number}"),
    };
    let is_taken = |number| {
        Ok::<_, rusqlite::Error>(number_by_name(connection, principal, &numbered(number))?.is_some())
    };
    // Many capabilities may want the same name, so the first free number is found by bisection.
    let (mut taken, mut free) = (0, 1);
    while is_taken(free)? {
        (taken, free) = (free, free * 2);
    }
    while free - taken > 1 {
        let middle = taken + (free - taken) / 2;
        if is_taken(middle)? { taken = middle } else { free = middle }
    }
    Ok(numbered(free))
}
