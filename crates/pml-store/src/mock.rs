//! Real results that stand in for calls that are not made.
//!
//! The rules by which they are judged are in [`pml_model::mocks`]; this module applies them in the transaction that
//! counts.

use crate::sql::{Connection, OptionalExtension, Row, params};
use pml_model::json::canonical_json;
use pml_model::mocks::{MockCounts, MockId, MockOutcome, MockStatus, argument_pattern};
use pml_model::{Digest, Principal, ToolId};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::column::{digest, json_column, unexpected_value};
use crate::vouch::vouched_condition;
use crate::{BlockingStore, Error, Urgency};

/// Maximum size of a recorded result, in bytes: as much as a trace holds.
const MAX_RESULT_BYTES: usize = 10 * 1024;
/// Maximum size of the arguments that a result is recorded for, in bytes.
const MAX_ARGUMENT_BYTES: usize = 4 * 1024;
/// Maximum number of mocks of one tool. A dry run needs one result for each kind of arguments.
const MAX_PER_TOOL: i64 = 20;
/// Maximum number of mocks of one principal: at most 70 MB.
const MAX_PER_PRINCIPAL: i64 = 5_000;

/// A real result to be recorded.
#[derive(Debug, Clone)]
pub struct NewMock {
    /// The principal whose run called the tool.
    pub principal: Principal,
    /// The tool.
    pub tool: ToolId,
    /// Digest of its definition at that time.
    pub digest: Digest,
    /// The arguments, without secrets.
    pub arguments: Box<RawValue>,
    /// The result, without secrets.
    pub result: Box<RawValue>,
}

/// A recorded result.
#[derive(Debug, Clone)]
pub struct StoredMock {
    /// Id of the mock.
    pub id: MockId,
    /// The tool.
    pub tool: ToolId,
    /// Digest of the definition that it was recorded under.
    pub digest: Digest,
    /// Pattern of the arguments.
    pub pattern: String,
    /// The arguments that it was recorded for.
    pub arguments: Value,
    /// The result.
    pub result: Value,
    /// How far it is trusted.
    pub status: MockStatus,
    /// Uses, successes and failures.
    pub counts: MockCounts,
    /// When it was recorded last.
    pub recorded_at: i64,
    /// When it was used last.
    pub used_at: Option<i64>,
}

/// A mock that was found for a call.
#[derive(Debug, Clone)]
pub struct FoundMock {
    /// The mock.
    pub mock: StoredMock,
    /// Whether it was recorded for equal arguments; else for similar ones.
    pub is_equal: bool,
}

/// How often mocks were looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MockLookups {
    /// Found for equal arguments.
    pub equal: u64,
    /// Found for similar arguments.
    pub similar: u64,
    /// Not found.
    pub missing: u64,
}

/// What the mocks of all principals were worth together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MockTotals {
    /// The number of mocks.
    pub mocks: u64,
    /// How often mocks were looked for.
    pub lookups: MockLookups,
    /// Later real results that the status of a mock was compared with.
    pub checked: u64,
    /// Those that agreed with it.
    pub confirmed: u64,
}

/// Which mocks are dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MockScope {
    /// The one with this id.
    One(MockId),
    /// All of one tool.
    Tool(String),
    /// All.
    All,
}

/// The columns that [`stored`] reads.
const COLUMNS: &str = "id, tool, digest, pattern, arguments, result, status, counts, recorded_at, used_at";

impl BlockingStore {
    /// Records real results. A result for arguments that are recorded already judges the mock there is and replaces
    /// it. What is too large is left out; of each tool the least useful mocks give way.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn record_mocks(&self, mocks: Vec<NewMock>, now: i64) -> Result<(), Error> {
        let fits = |mock: &NewMock| {
            mock.result.get().len() <= MAX_RESULT_BYTES && mock.arguments.get().len() <= MAX_ARGUMENT_BYTES
        };
        let rows: Vec<NewRow> = mocks.into_iter().filter(fits).filter_map(NewRow::of).collect();
        if rows.is_empty() {
            return Ok(());
        }
        self.change(Urgency::Lazy, move |connection| {
            rows.iter().try_for_each(|row| record(connection, row, now))?;
            rows.iter().try_for_each(|row| drop_least_useful(connection, row)).map_err(Into::into)
        })
    }

    /// The mock for a call of `tool` under the definition with this digest: one recorded for equal arguments, else the
    /// most trusted one for similar arguments.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn find_mock(
        &self,
        principal: &Principal,
        tool: &ToolId,
        definition: &Digest,
        arguments: &Value,
    ) -> Result<Option<FoundMock>, Error> {
        let id = MockId::of(principal, tool, definition, &arguments_digest(arguments));
        let pattern = argument_pattern(arguments);
        self.read(|connection| {
            let usable = "status IN ('fresh', 'canonical', 'pinned')";
            let sound = vouched_condition("mock", "mock");
            let equal = connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM mock WHERE principal = ?1 AND id = ?2 AND {usable} AND {sound}"
                ))?
                .query_row([principal.0.as_str(), id.as_str()], stored)
                .optional()?;
            if let Some(mock) = equal {
                return Ok(Some(FoundMock { mock, is_equal: true }));
            }
            let similar = connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM mock
                     WHERE principal = ?1 AND tool = ?2 AND digest = ?3 AND pattern = ?4 AND {usable} AND {sound}
                     ORDER BY status = 'pinned' DESC, status = 'canonical' DESC, recorded_at DESC, id LIMIT 1"
                ))?
                .query_row(
                    params![principal.0, tool.to_string(), definition.as_str(), pattern],
                    stored,
                )
                .optional()?;
            Ok(similar.map(|mock| FoundMock { mock, is_equal: false }))
        })
    }

    /// Counts uses of mocks, which may change their status.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn report_mock_uses(
        &self,
        uses: Vec<(Principal, MockId, MockOutcome)>,
        now: i64,
    ) -> Result<(), Error> {
        if uses.is_empty() {
            return Ok(());
        }
        self.change(Urgency::Lazy, move |connection| {
            uses.iter()
                .try_for_each(|(principal, id, outcome)| {
                    let Some(mut mock) = mock_of(connection, principal, id)? else { return Ok(()) };
                    let status = mock.counts.count_use(mock.status, *outcome);
                    set_judgement(connection, principal, id, status, &mock.counts)?;
                    connection
                        .prepare_cached("UPDATE mock SET used_at = ?3 WHERE principal = ?1 AND id = ?2")?
                        .execute(params![principal.0, id.as_str(), now])
                        .map(drop)
                })
                .map_err(|error: rusqlite::Error| error.into())
        })
    }

    /// Adds to the numbers of lookups, by tool.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn add_mock_lookups(&self, lookups: Vec<(Principal, String, MockLookups)>) -> Result<(), Error> {
        if lookups.is_empty() {
            return Ok(());
        }
        self.change(Urgency::Lazy, move |connection| {
            let mut add = connection.prepare_cached(
                "INSERT INTO mock_lookup (principal, tool, equal, similar, missing) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (principal, tool) DO UPDATE SET equal = equal + ?3, similar = similar + ?4,
                     missing = missing + ?5",
            )?;
            for (principal, tool, counted) in &lookups {
                let MockLookups { equal, similar, missing } = counted;
                add.execute(params![principal.0, tool, equal, similar, missing])?;
            }
            Ok(())
        })
    }

    /// How often mocks of each tool were looked for.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn mock_lookups(&self, principal: &Principal) -> Result<Vec<(String, MockLookups)>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT tool, equal, similar, missing FROM mock_lookup WHERE principal = ?1 ORDER BY tool",
                )?
                .query_map([&principal.0], |row| {
                    let lookups =
                        MockLookups { equal: row.get(1)?, similar: row.get(2)?, missing: row.get(3)? };
                    Ok((row.get(0)?, lookups))
                })?
                .collect()
        })
    }

    /// What the mocks of all principals were worth together.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn mock_totals(&self) -> Result<MockTotals, Error> {
        self.read(|connection| {
            let mut totals = MockTotals::default();
            let lookups: Vec<MockLookups> = connection
                .prepare_cached("SELECT equal, similar, missing FROM mock_lookup")?
                .query_map([], |row| {
                    Ok(MockLookups { equal: row.get(0)?, similar: row.get(1)?, missing: row.get(2)? })
                })?
                .collect::<Result<_, _>>()?;
            for MockLookups { equal, similar, missing } in lookups {
                totals.lookups.equal += equal;
                totals.lookups.similar += similar;
                totals.lookups.missing += missing;
            }
            let of_mocks: Vec<MockCounts> = connection
                .prepare_cached(&format!(
                    "SELECT counts FROM mock WHERE {}",
                    vouched_condition("mock", "mock")
                ))?
                .query_map([], |row| json_column(row, 0))?
                .collect::<Result<_, _>>()?;
            for counts in of_mocks {
                totals.mocks += 1;
                totals.checked += counts.checked;
                totals.confirmed += counts.confirmed;
            }
            Ok(totals)
        })
    }

    /// The principal's mocks, by tool, the most recent first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn mocks(&self, principal: &Principal) -> Result<Vec<StoredMock>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM mock WHERE principal = ?1 AND {} ORDER BY tool, recorded_at DESC, id",
                    vouched_condition("mock", "mock")
                ))?
                .query_map([&principal.0], stored)?
                .collect()
        })
    }

    /// A mock by id.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn mock(&self, principal: &Principal, id: &MockId) -> Result<Option<StoredMock>, Error> {
        self.read(|connection| mock_of(connection, principal, id))
    }

    /// Pins a mock, and returns whether there is one.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn pin_mock(&self, principal: &Principal, id: &MockId) -> Result<bool, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.write(move |connection| match mock_of(connection, &principal, &id)? {
            None => Ok(false),
            Some(mock) => {
                set_judgement(connection, &principal, &id, MockStatus::Pinned, &mock.counts).map(|()| true)
            }
        })
    }

    /// Drops mocks, and returns their number. With all mocks the numbers of lookups are dropped too.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn drop_mocks(&self, principal: &Principal, scope: MockScope) -> Result<usize, Error> {
        let principal = principal.0.clone();
        self.write(move |connection| match scope {
            MockScope::One(id) => connection.execute(
                "DELETE FROM mock WHERE principal = ?1 AND id = ?2",
                params![principal, id.as_str()],
            ),
            MockScope::Tool(tool) => connection
                .execute("DELETE FROM mock WHERE principal = ?1 AND tool = ?2", params![principal, tool]),
            MockScope::All => {
                connection.execute("DELETE FROM mock_lookup WHERE principal = ?1", [&principal])?;
                connection.execute("DELETE FROM mock WHERE principal = ?1", [&principal])
            }
        })
    }
}

/// A mock to be recorded, with what is derived from it.
struct NewRow {
    mock: NewMock,
    id: MockId,
    pattern: String,
    arguments_digest: Digest,
    result: Value,
}

impl NewRow {
    /// The row; `None` if arguments or result cannot be parsed, such as those nested too deep.
    fn of(mock: NewMock) -> Option<NewRow> {
        let arguments: Value = serde_json::from_str(mock.arguments.get()).ok()?;
        let result = serde_json::from_str(mock.result.get()).ok()?;
        let arguments_digest = arguments_digest(&arguments);
        Some(NewRow {
            id: MockId::of(&mock.principal, &mock.tool, &mock.digest, &arguments_digest),
            pattern: argument_pattern(&arguments),
            arguments_digest,
            result,
            mock,
        })
    }
}

fn arguments_digest(arguments: &Value) -> Digest {
    let text = arguments.to_string();
    Digest::of(canonical_json(&text).unwrap_or(text).as_bytes())
}

fn record(connection: &Connection, row: &NewRow, now: i64) -> rusqlite::Result<()> {
    let NewRow { mock, id, .. } = row;
    let (mut status, mut counts) = (MockStatus::Fresh, MockCounts::default());
    match mock_of(connection, &mock.principal, id)? {
        Some(known) if known.status == MockStatus::Pinned => {
            let mut counts = known.counts;
            let status = counts.check_against(known.status, &known.result, &row.result);
            return set_judgement(connection, &mock.principal, id, status, &counts);
        }
        Some(known) => {
            counts = known.counts;
            status = counts.check_against(known.status, &known.result, &row.result);
        }
        // A damaged row must not be updated, because that would authenticate it.
        None => drop(
            connection
                .prepare_cached("DELETE FROM mock WHERE principal = ?1 AND id = ?2")?
                .execute(params![mock.principal.0, id.as_str()])?,
        ),
    }
    connection
        .prepare_cached(
            "INSERT INTO mock (principal, id, tool, digest, pattern, arguments_digest, arguments, result, status,
                 counts, recorded_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (principal, id)
             DO UPDATE SET result = ?8, status = ?9, counts = ?10, recorded_at = ?11",
        )?
        .execute(params![
            mock.principal.0,
            id.as_str(),
            mock.tool.to_string(),
            mock.digest.as_str(),
            row.pattern,
            row.arguments_digest.as_str(),
            mock.arguments.get(),
            mock.result.get(),
            status.as_str(),
            written(&counts),
            now
        ])
        .map(drop)
}

/// Drops what is beyond the bounds: of the tool first what is not used or has another definition, then what was not
/// used for longest.
fn drop_least_useful(connection: &Connection, row: &NewRow) -> rusqlite::Result<()> {
    let mock = &row.mock;
    connection
        .prepare_cached(
            "DELETE FROM mock WHERE principal = ?1 AND status <> 'pinned' AND id IN (
                 SELECT id FROM mock WHERE principal = ?1 AND tool = ?2
                 ORDER BY status = 'pinned' DESC, digest = ?3 DESC, status IN ('fresh', 'canonical') DESC,
                     status = 'canonical' DESC, max(recorded_at, coalesce(used_at, 0)) DESC, id
                 LIMIT -1 OFFSET ?4)",
        )?
        .execute(params![mock.principal.0, mock.tool.to_string(), mock.digest.as_str(), MAX_PER_TOOL])?;
    connection
        .prepare_cached(
            "DELETE FROM mock WHERE principal = ?1 AND status <> 'pinned'
                 AND (SELECT count(*) FROM mock WHERE principal = ?1) > ?2 AND id IN (
                 SELECT id FROM mock WHERE principal = ?1
                 ORDER BY status = 'pinned' DESC, max(recorded_at, coalesce(used_at, 0)) DESC, id
                 LIMIT -1 OFFSET ?2)",
        )?
        .execute(params![mock.principal.0, MAX_PER_PRINCIPAL])
        .map(drop)
}

/// A mock by id; `None` if there is none or its row is damaged.
fn mock_of(
    connection: &Connection,
    principal: &Principal,
    id: &MockId,
) -> rusqlite::Result<Option<StoredMock>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM mock WHERE principal = ?1 AND id = ?2 AND {}",
            vouched_condition("mock", "mock")
        ))?
        .query_row([principal.0.as_str(), id.as_str()], stored)
        .optional()
}

fn set_judgement(
    connection: &Connection,
    principal: &Principal,
    id: &MockId,
    status: MockStatus,
    counts: &MockCounts,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE mock SET status = ?3, counts = ?4 WHERE principal = ?1 AND id = ?2")?
        .execute(params![principal.0, id.as_str(), status.as_str(), written(counts)])
        .map(drop)
}

fn written(counts: &MockCounts) -> String {
    serde_json::to_string(counts).expect("counts are plain data")
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredMock> {
    let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
    let tool = ToolId::parse(text(1)?).map_err(|error| unexpected_value(1, error))?;
    let status = text(6)?;
    Ok(StoredMock {
        id: MockId::from_text(text(0)?),
        tool,
        digest: digest(row, 2)?,
        pattern: row.get(3)?,
        arguments: json_column(row, 4)?,
        result: json_column(row, 5)?,
        status: MockStatus::parse(status)
            .ok_or_else(|| unexpected_value(6, format!("`{status}` is no status of a mock")))?,
        counts: json_column(row, 7)?,
        recorded_at: row.get(8)?,
        used_at: row.get(9)?,
    })
}
