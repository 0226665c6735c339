//! What came of speculated calls, by principal and tool.

use crate::sql::{Connection, Row, params};
use pml_model::Principal;

use crate::{BlockingStore, Error, Urgency};

/// What came of speculated calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpeculationCounts {
    /// Results that programs asked for and got.
    pub hits: u64,
    /// Results that programs asked for and that could not be used.
    pub misses: u64,
    /// Results that no program asked for.
    pub wasted: u64,
    /// Results that differed from those of the same calls made later.
    pub differing: u64,
    /// Microseconds that programs did not have to wait.
    pub saved_us: u64,
}

impl std::ops::AddAssign for SpeculationCounts {
    fn add_assign(&mut self, other: SpeculationCounts) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.wasted += other.wasted;
        self.differing += other.differing;
        self.saved_us += other.saved_us;
    }
}

/// The counts of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpeculation {
    /// The tool, as `server:tool`.
    pub tool: String,
    /// What came of its calls.
    pub counts: SpeculationCounts,
}

impl BlockingStore {
    /// Adds to the counts of tools. Returns at once; the commit may wait for others.
    pub fn add_speculation(&self, counts: Vec<(Principal, ToolSpeculation)>) {
        let work = move |connection: &Connection| {
            counts.iter().try_for_each(|(principal, counted)| add(connection, principal, counted))
        };
        self.inner.writer.enqueue(0, Urgency::Lazy, work, |stored| {
            if let Err(error) = stored {
                tracing::warn!(%error, "what came of speculated calls could not be stored");
            }
        });
    }

    /// The counts of a principal, by tool.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn speculation(&self, principal: &Principal) -> Result<Vec<ToolSpeculation>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT tool, hits, misses, wasted, differing, saved_us FROM speculation
                     WHERE principal = ?1 ORDER BY tool",
                )?
                .query_map([&principal.0], counted)?
                .collect()
        })
    }
}

fn counted(row: &Row<'_>) -> rusqlite::Result<ToolSpeculation> {
    let count = |column: usize| row.get::<_, i64>(column).map(|count| u64::try_from(count).unwrap_or(0));
    Ok(ToolSpeculation {
        tool: row.get(0)?,
        counts: SpeculationCounts {
            hits: count(1)?,
            misses: count(2)?,
            wasted: count(3)?,
            differing: count(4)?,
            saved_us: count(5)?,
        },
    })
}

fn add(connection: &Connection, principal: &Principal, counted: &ToolSpeculation) -> rusqlite::Result<()> {
    let ToolSpeculation { tool, counts } = counted;
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "INSERT INTO speculation (principal, tool, hits, misses, wasted, differing, saved_us)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (principal, tool) DO UPDATE SET hits = hits + ?3, misses = misses + ?4,
                 wasted = wasted + ?5, differing = differing + ?6, saved_us = saved_us + ?7",
        )?
        .execute(params![
            principal.0,
            tool,
            number(counts.hits),
            number(counts.misses),
            number(counts.wasted),
            number(counts.differing),
            number(counts.saved_us)
        ])
        .map(drop)
}
