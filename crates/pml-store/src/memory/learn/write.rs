//! Writes what was learned.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use crate::sql::{Connection, params};
use pml_model::CapabilityId;
use pml_model::learning::{DegradedCapability, IntentCount, LearnedCapability, LearningChanges};

use crate::memory::edge::add_edges;
use crate::memory::observed::put_observed;
use crate::memory::tool_use::{add_argument_patterns, add_call_counts};
use crate::memory::{cache, next_version};
use crate::vouch::changed_mark_sql;

/// Target of the changes of a batch.
pub(super) struct LearningWriter<'a> {
    pub(super) connection: &'a Connection,
    /// Numbers of the capabilities, by id.
    pub(super) numbers: HashMap<CapabilityId, i64>,
    /// Traces up to this position have had their effects beyond the numbers.
    pub(super) effects_to: i64,
    pub(super) now: i64,
}

impl LearningWriter<'_> {
    /// Writes all changes of a batch and returns the ids of the changed capabilities. Each trace is given by its
    /// position and its previous priority.
    pub(super) fn store(
        &self,
        traces: &[(i64, Option<f64>)],
        changes: LearningChanges,
    ) -> rusqlite::Result<Vec<CapabilityId>> {
        self.put_priorities(traces, &changes.priorities)?;
        add_edges(self.connection, changes.edges)?;
        put_observed(self.connection, changes.observed)?;
        add_call_counts(self.connection, changes.tool_uses)?;
        add_argument_patterns(self.connection, changes.argument_patterns)?;
        let changed = changes.capabilities.keys().cloned().collect();
        self.put_capabilities(changes.capabilities)?;
        self.add_intents(&changes.intents)?;
        changes.degraded.iter().try_for_each(|degraded| self.drop_results(degraded))?;
        Ok(changed)
    }

    fn put_priorities(&self, traces: &[(i64, Option<f64>)], priorities: &[f64]) -> rusqlite::Result<()> {
        for ((seq, before), priority) in traces.iter().zip(priorities) {
            if *before != Some(*priority) {
                self.connection
                    .prepare_cached("UPDATE trace SET priority = ?2 WHERE seq = ?1")?
                    .execute(params![seq, priority])?;
            }
        }
        Ok(())
    }

    fn put_capabilities(
        &self,
        capabilities: BTreeMap<CapabilityId, LearnedCapability>,
    ) -> rusqlite::Result<()> {
        if capabilities.is_empty() {
            return Ok(());
        }
        let version = next_version(self.connection)?;
        for (id, learned) in capabilities {
            if let Some(number) = self.numbers.get(&id) {
                put_capability(self.connection, *number, &learned, version)?;
            }
        }
        Ok(())
    }

    fn add_intents(&self, intents: &BTreeMap<(CapabilityId, String), IntentCount>) -> rusqlite::Result<()> {
        static UPSERT: LazyLock<String> = LazyLock::new(|| {
            let (count, first_at, last_at) = (
                ("count", "count + excluded.count"),
                ("first_at", "min(first_at, excluded.first_at)"),
                ("last_at", "max(last_at, excluded.last_at)"),
            );
            format!(
                "INSERT INTO capability_intent (capability, text, count, first_at, last_at)
                 SELECT ?1, ?2, ?3, ?4, ?5
                 WHERE NOT EXISTS (SELECT 1 FROM forgotten_intent WHERE capability = ?1 AND text = ?2)
                 ON CONFLICT DO UPDATE SET count = {}, first_at = {}, last_at = {}, mark = {}",
                count.1,
                first_at.1,
                last_at.1,
                changed_mark_sql("capability_intent", &[count, first_at, last_at])
            )
        });
        let mut upsert = self.connection.prepare_cached(&UPSERT)?;
        for ((id, text), intent) in intents {
            if let Some(number) = self.numbers.get(id) {
                upsert.execute(params![number, text, intent.count, intent.first_at, intent.last_at])?;
            }
        }
        Ok(())
    }

    /// Drops the cache entries of a capability that becomes degraded, once.
    fn drop_results(&self, degraded: &DegradedCapability) -> rusqlite::Result<()> {
        let Some(number) = self.numbers.get(&degraded.capability) else { return Ok(()) };
        if degraded.seq <= self.effects_to {
            return Ok(());
        }
        let which = (&degraded.capability, *number);
        cache::invalidate_unless_manual(
            self.connection,
            &degraded.principal,
            which,
            "it failed repeatedly",
            self.now,
        )
    }
}

fn put_capability(
    connection: &Connection,
    number: i64,
    learned: &LearnedCapability,
    version: i64,
) -> rusqlite::Result<()> {
    let text = |value: serde_json::Result<String>| value.expect("what is learned is plain data");
    let statistics = &learned.statistics;
    static UPDATE: LazyLock<String> = LazyLock::new(|| {
        let changed = [
            ("usage_count", "?2"),
            ("success_count", "?3"),
            ("failure_count", "?4"),
            ("failures_in_a_row", "?5"),
            ("avg_duration_ms", "?6"),
            ("last_used", "?7"),
            ("failing", "?8"),
            ("worked_seq", "?9"),
            ("learning", "?10"),
            ("examples", "?11"),
        ];
        let set: String = changed.iter().map(|(column, value)| format!("{column} = {value}, ")).collect();
        let mark = changed_mark_sql("capability", &changed);
        format!("UPDATE capability SET {set}version = ?12, mark = {mark} WHERE number = ?1")
    });
    connection
        .prepare_cached(&UPDATE)?
        .execute(params![
            number,
            statistics.usage_count,
            statistics.success_count,
            statistics.failure_count,
            statistics.failures_in_a_row,
            statistics.avg_duration_ms,
            statistics.last_used,
            learned.failing_because,
            learned.last_success_seq,
            text(serde_json::to_string(&learned.learning)),
            text(serde_json::to_string(&learned.examples)),
            version,
        ])
        .map(drop)
}
