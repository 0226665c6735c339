//! Forgets runs with everything that came of them: records, traces, what was learned, recorded and cached results, and
//! the embeddings of what was asked for.
//!
//! What is left is what there would be if they had never been, except for the audit log: it only grows, and it notes that
//! something was forgotten. Learned numbers are reset in the same transaction and learned again from the traces that are
//! left.

use std::collections::BTreeSet;

use pml_model::capability::{CapabilityId, CapabilityOrigin};
use pml_model::{Digest, Principal, RunId};
use serde::Deserialize;
use serde_json::json;

use crate::column::{capability_id, json_column, run_id};
use crate::memory::cache::{InvalidationScope, invalidate_results};
use crate::memory::{bump_capability_version, learn, manage};
use crate::run::delete_runs;
use crate::sql::{Connection, params};
use crate::writer::WriteFailure;
use crate::{BlockingStore, Error, NewAuditEntry, Urgency};

/// Results are recorded up to this long after the end of their run, in milliseconds.
const RECORDED_AFTER_MS: i64 = 60_000;

/// Which runs are forgotten: those that meet all conditions that are given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForgetScope {
    /// This run.
    pub run: Option<RunId>,
    /// Those of this person. Without any other condition, everything else that they left goes too.
    pub user: Option<Principal>,
    /// Those that were created at this time or later, in milliseconds since the Unix epoch.
    pub since: Option<i64>,
    /// Those that were created before this time, in milliseconds since the Unix epoch.
    pub before: Option<i64>,
}

/// How much is forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForgottenCounts {
    /// Runs.
    pub runs: u64,
    /// Their traces, and those that have no run.
    pub traces: u64,
    /// Capabilities that were learned from nothing else.
    pub capabilities: u64,
    /// Recorded results of tools.
    pub mocks: u64,
    /// Cached results.
    pub cached_results: u64,
}

/// The tables of a person that are neither runs nor traces nor follow from them.
const OF_PERSON: [&str; 12] = [
    "mock",
    "mock_lookup",
    "vector",
    "allowed",
    "speculation",
    "cached_result",
    "cache_drop",
    "approval_rule",
    "package_signer",
    "capability_alias",
    "learning_context",
    "client_trace",
];

impl BlockingStore {
    /// What [`BlockingStore::forget`] would forget: runs and traces.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn count_forgettable(&self, scope: &ForgetScope) -> Result<ForgottenCounts, Error> {
        let (runs, traces) = (scope.runs(), scope.traces());
        self.read(|connection| {
            Ok(ForgottenCounts {
                runs: count(connection, &format!("SELECT count(*) FROM run WHERE {runs}"))?,
                traces: count(connection, &format!("SELECT count(*) FROM trace WHERE {traces}"))?,
                ..ForgottenCounts::default()
            })
        })
    }

    /// Forgets runs and everything that came of them, and learns anew from what is left.
    ///
    /// # Errors
    /// A run has not ended, or a change could not be stored. Nothing is forgotten then.
    pub fn forget(&self, scope: &ForgetScope, now: i64) -> Result<ForgottenCounts, Error> {
        let log = self.begin_audit()?;
        let scope = scope.clone();
        let forgotten = self.change(Urgency::Durable, move |connection| {
            scope.refuse_open_runs(connection)?;
            let forgotten = scope.forget(connection, now)?;
            log.append(connection, std::iter::once(scope.audit_entry(forgotten, now)))?;
            Ok(forgotten)
        })?;
        while self.learn_traces(learn::CHUNK, now)?.has_more {}
        Ok(forgotten)
    }
}

/// A capability that traces are about to be taken from.
struct Affected {
    number: i64,
    id: CapabilityId,
    principal: Principal,
}

impl ForgetScope {
    /// Whether everything of a person goes.
    fn is_whole_person(&self) -> bool {
        self.user.is_some() && self.run.is_none() && self.since.is_none() && self.before.is_none()
    }

    /// The SQL condition for rows of `run`.
    fn runs(&self) -> String {
        self.condition("id", "created_at")
    }

    /// The SQL condition for rows of `trace`. A trace is stored when its run ends, and what counts is when that began:
    /// otherwise a run would lose its record and leave its trace, or the other way round.
    fn traces(&self) -> String {
        self.condition(
            "run",
            "coalesce((SELECT began.created_at FROM run AS began WHERE began.id = trace.run), trace.created_at)",
        )
    }

    /// The SQL condition for rows with a column `principal`.
    fn condition(&self, run_column: &str, created_at: &str) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let run = self.run.as_ref().map(|run| format!("{run_column} = {}", quoted(run.as_str())));
        let user = self.user.as_ref().map(|user| format!("principal = {}", quoted(&user.0)));
        let since = self.since.map(|since| format!("{created_at} >= {since}"));
        let before = self.before.map(|before| format!("{created_at} < {before}"));
        let all: Vec<String> = [run, user, since, before].into_iter().flatten().collect();
        // Without a condition nothing is meant.
        if all.is_empty() { "1 = 0".to_owned() } else { all.join(" AND ") }
    }

    fn refuse_open_runs(&self, connection: &Connection) -> Result<(), WriteFailure> {
        let condition = self.runs();
        let mut open = connection.prepare(&format!(
            "SELECT id FROM run WHERE ended_at IS NULL AND {condition} ORDER BY number LIMIT 1"
        ))?;
        let first = open.query_map([], |row| run_id(row, 0))?.next().transpose()?;
        match first {
            Some(run) => Err(Error::RunNotEnded { run }.into()),
            None => Ok(()),
        }
    }

    fn forget(&self, connection: &Connection, now: i64) -> rusqlite::Result<ForgottenCounts> {
        let (runs, traces) = (self.runs(), self.traces());
        let people = principals(connection, &runs, &traces, self.user.as_ref())?;
        let affected = self.affected(connection, &traces)?;
        let mut counts = ForgottenCounts {
            traces: count(connection, &format!("SELECT count(*) FROM trace WHERE {traces}"))?,
            ..ForgottenCounts::default()
        };
        forget_vectors(connection, &runs, &traces)?;
        counts.mocks = forget_recorded(connection, &runs)?;
        forget_intents(connection, &traces)?;
        forget_traces(connection, &traces)?;
        for person in &people {
            let all = InvalidationScope::All;
            counts.cached_results += invalidate_results(connection, person, all, "runs were forgotten", now)?;
        }
        counts.capabilities = self.forget_capabilities(connection, affected, now)?;
        counts.runs = delete_runs(connection, &runs)?;
        if let (Some(person), true) = (&self.user, self.is_whole_person()) {
            counts.mocks += forget_person(connection, person)?;
        }
        learn::reset(connection)?;
        Ok(counts)
    }

    /// The capabilities that traces are taken from; all of a person if everything of theirs goes.
    fn affected(&self, connection: &Connection, traces: &str) -> rusqlite::Result<Vec<Affected>> {
        let which = match (&self.user, self.is_whole_person()) {
            (Some(_), true) => self.runs(),
            _ => format!("number IN (SELECT capability FROM trace WHERE {traces})"),
        };
        connection
            .prepare(&format!("SELECT number, id, principal FROM capability WHERE {which}"))?
            .query_map([], |row| {
                Ok(Affected {
                    number: row.get(0)?,
                    id: capability_id(row, 1)?,
                    principal: Principal(row.get(2)?),
                })
            })?
            .collect()
    }

    /// Deletes the capabilities that came of nothing but forgotten runs, and returns their number.
    fn forget_capabilities(
        &self,
        connection: &Connection,
        affected: Vec<Affected>,
        now: i64,
    ) -> rusqlite::Result<u64> {
        let mut deleted = 0;
        for Affected { number, id, principal } in affected {
            if self.is_whole_person() || is_left_without_trace(connection, number)? {
                manage::delete(connection, &principal, &id, number, now)?;
                deleted += 1;
            } else {
                bump_capability_version(connection, number)?;
            }
        }
        Ok(deleted)
    }

    fn audit_entry(&self, forgotten: ForgottenCounts, now: i64) -> NewAuditEntry {
        let ForgottenCounts { runs, traces, capabilities, mocks, cached_results } = forgotten;
        NewAuditEntry {
            at: now,
            principal: Principal::local(),
            run: None,
            kind: "forgotten",
            body: json!({
                "run": self.run.as_ref().map(RunId::as_str), "user": self.user.as_ref().map(|user| &user.0),
                "since": self.since, "before": self.before, "runs": runs, "traces": traces,
                "capabilities": capabilities, "mocks": mocks, "cachedResults": cached_results,
            }),
        }
    }
}

fn count(connection: &Connection, sql: &str) -> rusqlite::Result<u64> {
    connection.prepare(sql)?.query_row([], |row| row.get(0))
}

/// The people whose runs or traces are forgotten.
fn principals(
    connection: &Connection,
    runs: &str,
    traces: &str,
    user: Option<&Principal>,
) -> rusqlite::Result<BTreeSet<Principal>> {
    let sql =
        format!("SELECT principal FROM run WHERE {runs} UNION SELECT principal FROM trace WHERE {traces}");
    let mut found: BTreeSet<Principal> = connection
        .prepare(&sql)?
        .query_map([], |row| Ok(Principal(row.get(0)?)))?
        .collect::<rusqlite::Result<_>>()?;
    found.extend(user.cloned());
    Ok(found)
}

/// Deletes the embeddings of what was asked for. Should anything else have the same text, its embedding is computed
/// again.
fn forget_vectors(connection: &Connection, runs: &str, traces: &str) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT principal, intent FROM run WHERE {runs}
         UNION SELECT principal, intent FROM trace WHERE {traces}"
    );
    let texts: Vec<(String, String)> = connection
        .prepare(&sql)?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut delete = connection.prepare_cached("DELETE FROM vector WHERE principal = ?1 AND text = ?2")?;
    for (principal, text) in texts {
        delete.execute([principal.as_str(), Digest::of(text.as_bytes()).as_str()])?;
    }
    Ok(())
}

/// Deletes the results of tools and the approved arguments that were recorded while the runs went on; returns the number
/// of results.
fn forget_recorded(connection: &Connection, runs: &str) -> rusqlite::Result<u64> {
    let within = |table: &str, at: &str| {
        format!(
            "DELETE FROM {table} WHERE EXISTS (
                SELECT 1 FROM (SELECT principal, created_at, ended_at FROM run WHERE {runs}) AS gone
                WHERE gone.principal = {table}.principal AND {table}.{at} >= gone.created_at
                    AND {table}.{at} <= gone.ended_at + {RECORDED_AFTER_MS})"
        )
    };
    connection.prepare(&within("allowed", "at"))?.execute([])?;
    connection.prepare(&within("mock", "recorded_at"))?.execute([]).map(|deleted| deleted as u64)
}

/// Deletes the intents of capabilities that only forgotten traces have.
fn forget_intents(connection: &Connection, traces: &str) -> rusqlite::Result<()> {
    let sql = format!(
        "DELETE FROM capability_intent
         WHERE (capability, text) IN (SELECT capability, intent FROM trace WHERE {traces})
            AND NOT EXISTS (
                SELECT 1 FROM (SELECT capability, intent FROM trace WHERE NOT ({traces})) AS kept
                WHERE kept.capability = capability_intent.capability AND kept.intent = capability_intent.text)"
    );
    connection.prepare(&sql)?.execute([]).map(drop)
}

fn forget_traces(connection: &Connection, traces: &str) -> rusqlite::Result<()> {
    for table in ["explored_path", "trace_body"] {
        let sql = format!("DELETE FROM {table} WHERE seq IN (SELECT seq FROM trace WHERE {traces})");
        connection.prepare(&sql)?.execute([])?;
    }
    connection.prepare(&format!("DELETE FROM trace WHERE {traces}"))?.execute([]).map(drop)
}

/// The part of a stored procedure that says where it is from.
#[derive(Deserialize)]
struct Origin {
    origin: CapabilityOrigin,
}

/// Whether a capability was learned from runs and no trace of it is left.
fn is_left_without_trace(connection: &Connection, number: i64) -> rusqlite::Result<bool> {
    if connection.prepare_cached("SELECT 1 FROM trace WHERE capability = ?1 LIMIT 1")?.exists([number])? {
        return Ok(false);
    }
    let mut procedure =
        connection.prepare_cached("SELECT procedure FROM capability_procedure WHERE capability = ?1")?;
    let origin = procedure.query_map([number], |row| json_column::<Origin>(row, 0))?.next().transpose()?;
    Ok(origin.is_some_and(|found| match found.origin {
        CapabilityOrigin::Emergent | CapabilityOrigin::Explored => true,
        CapabilityOrigin::Manual | CapabilityOrigin::Imported => false,
    }))
}

/// Deletes what else a person left; returns the number of recorded results.
fn forget_person(connection: &Connection, person: &Principal) -> rusqlite::Result<u64> {
    let mut mocks = 0;
    for table in OF_PERSON {
        let deleted = connection
            .prepare(&format!("DELETE FROM {table} WHERE principal = ?1"))?
            .execute(params![person.0])?;
        if table == "mock" {
            mocks = deleted as u64;
        }
    }
    Ok(mocks)
}
