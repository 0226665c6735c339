//! What came of speculated calls, by principal and tool.

use std::collections::BTreeMap;

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

/// What came of the speculated calls that were made with one confidence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConfidenceOutcomes {
    /// Results that programs asked for and got.
    pub hits: u64,
    /// Results that programs asked for and that could not be used.
    pub misses: u64,
    /// Results that no program asked for.
    pub wasted: u64,
}

/// The counts of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSpeculation {
    /// The tool, as `server:tool`.
    pub tool: String,
    /// What came of its calls.
    pub counts: SpeculationCounts,
    /// The same by the confidence of the calls, in per cent.
    pub by_confidence: BTreeMap<u8, ConfidenceOutcomes>,
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
            let mut tools: Vec<ToolSpeculation> = connection
                .prepare_cached(
                    "SELECT tool, hits, misses, wasted, differing, saved_us FROM speculation
                     WHERE principal = ?1 ORDER BY tool",
                )?
                .query_map([&principal.0], read_counts)?
                .collect::<Result<_, _>>()?;
            let mut by_confidence = connection.prepare_cached(
                "SELECT tool, confidence, hits, misses, wasted FROM speculation_confidence
                 WHERE principal = ?1 ORDER BY tool, confidence",
            )?;
            for outcomes in by_confidence.query_map([&principal.0], read_outcomes)? {
                let (tool, confidence, outcomes) = outcomes?;
                // Both are written together, so there are counts of every tool.
                if let Some(counted) = tools.iter_mut().find(|counted| counted.tool == tool) {
                    counted.by_confidence.insert(confidence, outcomes);
                }
            }
            Ok(tools)
        })
    }
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|count| u64::try_from(count).unwrap_or(0))
}

fn read_counts(row: &Row<'_>) -> rusqlite::Result<ToolSpeculation> {
    let counts = SpeculationCounts {
        hits: count(row, 1)?,
        misses: count(row, 2)?,
        wasted: count(row, 3)?,
        differing: count(row, 4)?,
        saved_us: count(row, 5)?,
    };
    Ok(ToolSpeculation { tool: row.get(0)?, counts, by_confidence: BTreeMap::new() })
}

fn read_outcomes(row: &Row<'_>) -> rusqlite::Result<(String, u8, ConfidenceOutcomes)> {
    let confidence = u8::try_from(count(row, 1)?).unwrap_or(u8::MAX);
    let outcomes =
        ConfidenceOutcomes { hits: count(row, 2)?, misses: count(row, 3)?, wasted: count(row, 4)? };
    Ok((row.get(0)?, confidence, outcomes))
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn add(connection: &Connection, principal: &Principal, counted: &ToolSpeculation) -> rusqlite::Result<()> {
    add_counts(connection, principal, counted)?;
    let mut add = connection.prepare_cached(
        "INSERT INTO speculation_confidence (principal, tool, confidence, hits, misses, wasted)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (principal, tool, confidence) DO UPDATE SET hits = hits + ?4, misses = misses + ?5,
             wasted = wasted + ?6",
    )?;
    for (confidence, outcomes) in &counted.by_confidence {
        let ConfidenceOutcomes { hits, misses, wasted } = *outcomes;
        let (confidence, hits) = (i64::from(*confidence), number(hits));
        add.execute(params![principal.0, counted.tool, confidence, hits, number(misses), number(wasted)])?;
    }
    Ok(())
}

fn add_counts(
    connection: &Connection,
    principal: &Principal,
    ToolSpeculation { tool, counts, .. }: &ToolSpeculation,
) -> rusqlite::Result<()> {
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
