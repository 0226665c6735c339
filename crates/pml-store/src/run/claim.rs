//! Leases of runs: claiming, renewing, and finding runs without a live owner.
//!
//! Each decision and its effects share a transaction, so exactly one of several competing processes gets a run. The
//! methods that find runs cover all principals, because they serve the program itself.

use std::time::Instant;

use crate::sql::{Connection, OwnerPresence, Row, params};
use pml_model::{Principal, RunId, RunState};

use super::append::record_claim;
use super::read::{find_run, owner, wrapped_key};
use super::{Claim, Lease, UnattendedRun};
use crate::column::{run_id, run_state};
use crate::{BlockingStore, Error, NewAuditEntry, ProcessIdentity, Urgency};

/// Query for the runs that can be resumed. Of the waiting runs it reads only those that are due.
pub(super) const DUE: &str = "SELECT principal, id, state FROM run WHERE number IN (
        SELECT number FROM run INDEXED BY run_interrupted WHERE state = 'interrupted' AND owner_pid IS NULL
        UNION ALL
        SELECT number FROM run INDEXED BY run_wakes
        WHERE wake_at IS NOT NULL AND ended_at IS NULL AND owner_pid IS NULL AND wake_at <= ?1
            AND state = 'waiting'
        UNION ALL
        SELECT number FROM run INDEXED BY run_asks
        WHERE question_id IS NOT NULL AND ended_at IS NULL AND answered = 1 AND owner_pid IS NULL
            AND state = 'waiting')
    ORDER BY number";

/// Query for the time at which the next unowned run is due or expires.
pub(super) const NEXT_WAKE: &str = "SELECT min(at) FROM (
        SELECT min(wake_at) AS at FROM run INDEXED BY run_wakes
        WHERE wake_at IS NOT NULL AND ended_at IS NULL AND owner_pid IS NULL
        UNION ALL
        SELECT min(expires_at) FROM run INDEXED BY run_expires
        WHERE expires_at IS NOT NULL AND ended_at IS NULL AND owner_pid IS NULL) AS next";

/// Query for the numbers of the unowned runs that have expired.
pub(super) const OVERDUE: &str = "SELECT number FROM run INDEXED BY run_expires
    WHERE expires_at IS NOT NULL AND ended_at IS NULL AND owner_pid IS NULL AND expires_at <= ?1";

/// Query for the runs with an owner, alive or not, sorted by process.
pub(super) const OWNED: &str = "SELECT number, owner_pid, owner_started, lease_until
    FROM run INDEXED BY run_owned
    WHERE ended_at IS NULL AND owner_pid IS NOT NULL ORDER BY owner_pid, owner_started, number";

impl BlockingStore {
    /// Claims a run for `owner` if no process works on it: it was released, its owner has ended, or its lease has
    /// lapsed. A claimed run is running.
    ///
    /// # Errors
    /// The change could not be stored, or the key of the run could not be opened. The run is unchanged then.
    pub fn claim_run(
        &self,
        principal: &Principal,
        id: &RunId,
        owner: &ProcessIdentity,
        lease_until: i64,
        now: i64,
    ) -> Result<Claim, Error> {
        let found = self.read(|connection| {
            let Some((number, run)) = find_run(connection, principal, id)? else { return Ok(None) };
            Ok(Some((number, wrapped_key(connection, number)?, run)))
        })?;
        let Some((number, wrapped, run)) = found else { return Ok(Claim::Unknown) };
        let Some(key) = self.run_key(&run, wrapped)? else { return Ok(Claim::Ended(run.state)) };
        let owner = owner.clone();
        let taken = self.change(Urgency::Soon, move |connection| {
            Ok(take(connection, number, &owner, lease_until, now)?)
        })?;
        Ok(match taken {
            ClaimAttempt::Taken { fence, next } => Claim::Taken(Lease::new(run.id, fence, key, next)),
            ClaimAttempt::Held { by, until } => Claim::Held { by, until },
            ClaimAttempt::Over(state) => Claim::Ended(state),
        })
    }

    /// Extends leases to `until` and returns the runs whose lease was lost.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn renew_leases(&self, leases: &[Lease], until: i64) -> Result<Vec<RunId>, Error> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let leases = leases.to_vec();
        let asked_at = Instant::now();
        self.write(move |connection| {
            // The change may have waited for a server that was away, and a lease counts from when it is stored.
            let waited_ms = i64::try_from(asked_at.elapsed().as_millis()).unwrap_or(i64::MAX);
            let waited_ms = if waited_ms < 1_000 { 0 } else { waited_ms };
            let mut renew = connection.prepare_cached(
                "UPDATE run SET lease_until = ?3 WHERE id = ?1 AND fence = ?2 AND owner_pid IS NOT NULL",
            )?;
            let until = until.saturating_add(waited_ms);
            let mut lost = Vec::new();
            for lease in &leases {
                if renew.execute(params![lease.run().as_str(), lease.fence(), until])? == 0 {
                    lost.push(lease.run().clone());
                }
            }
            Ok(lost)
        })
    }

    /// Releases the runs whose owners have ended or let their leases lapse, and returns them. Those that were running
    /// become interrupted. Each run is returned to exactly one process.
    ///
    /// # Errors
    /// The database cannot be read, or the change cannot be stored.
    pub fn release_orphaned_runs(&self, now: i64) -> Result<Vec<UnattendedRun>, Error> {
        // Nearly always there are none, and then no write lock has to be taken.
        if self.read(|connection| orphans(connection, now))?.is_empty() {
            return Ok(Vec::new());
        }
        self.write(move |connection| {
            let mut release = connection.prepare_cached(
                "UPDATE run SET owner_pid = NULL, owner_started = NULL, lease_until = NULL, fence = fence + 1,
                    state = CASE state WHEN 'running' THEN 'interrupted' ELSE state END, updated_at = ?2
                 WHERE number = ?1 RETURNING principal, id, state",
            )?;
            let orphans = orphans(connection, now)?;
            orphans.into_iter().map(|number| release.query_row(params![number, now], found)).collect()
        })
    }

    /// The runs that can be resumed: interrupted ones, and waiting ones that are due or whose question is answered.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn due_runs(&self, now: i64) -> Result<Vec<UnattendedRun>, Error> {
        self.read(|connection| connection.prepare_cached(DUE)?.query_map([now], found)?.collect())
    }

    /// When the next unowned run is due or expires; `None` if there is none.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn next_wake_at(&self) -> Result<Option<i64>, Error> {
        self.read(|connection| connection.prepare_cached(NEXT_WAKE)?.query_row([], |row| row.get(0)))
    }

    /// Ends the unowned runs that have expired, with an audit entry for each, and returns them.
    ///
    /// # Errors
    /// The database cannot be read, or the change cannot be stored.
    pub fn expire_runs(&self, now: i64) -> Result<Vec<UnattendedRun>, Error> {
        let any = self.read(|connection| connection.prepare_cached(OVERDUE)?.exists([now]))?;
        if !any {
            return Ok(Vec::new());
        }
        let log = self.begin_audit()?;
        self.change(Urgency::Durable, move |connection| {
            let expired: Vec<UnattendedRun> = connection
                .prepare_cached(&format!(
                    "UPDATE run SET state = 'expired', ended_at = ?1, updated_at = ?1, wake_at = NULL,
                        question_id = NULL, answered = 0, fence = fence + 1
                     WHERE number IN ({OVERDUE}) RETURNING principal, id, state"
                ))?
                .query_map([now], found)?
                .collect::<rusqlite::Result<_>>()?;
            expired.iter().try_for_each(|run| drop_question(connection, &run.run))?;
            log.append(connection, expired.iter().map(|run| expiry_entry(run, now)))?;
            Ok(expired)
        })
    }
}

/// Deletes the question of a run that has ended.
fn drop_question(connection: &Connection, run: &RunId) -> rusqlite::Result<()> {
    for statement in [
        "DELETE FROM question_tool WHERE run = (SELECT number FROM run WHERE id = ?1)",
        "DELETE FROM run_body WHERE run = (SELECT number FROM run WHERE id = ?1) AND part = 'question'",
    ] {
        connection.prepare_cached(statement)?.execute([run.as_str()])?;
    }
    Ok(())
}

fn expiry_entry(run: &UnattendedRun, now: i64) -> NewAuditEntry {
    NewAuditEntry {
        at: now,
        principal: run.principal.clone(),
        run: Some(run.run.clone()),
        kind: "expired",
        body: serde_json::json!({}),
    }
}

enum ClaimAttempt {
    Taken { fence: i64, next: i64 },
    Held { by: ProcessIdentity, until: i64 },
    Over(RunState),
}

fn take(
    connection: &Connection,
    run: i64,
    new_owner: &ProcessIdentity,
    lease_until: i64,
    now: i64,
) -> rusqlite::Result<ClaimAttempt> {
    let (state, owner) = connection
        .prepare_cached("SELECT state, owner_pid, owner_started, lease_until FROM run WHERE number = ?1")?
        .query_row([run], |row| Ok((run_state(row, 0)?, owner(row, 1)?)))?;
    if state.is_over() {
        return Ok(ClaimAttempt::Over(state));
    }
    if let Some((by, until)) = owner
        && holds(connection.owner_presence(&by)?, until, now)
    {
        return Ok(ClaimAttempt::Held { by, until });
    }
    let fence: i64 = connection
        .prepare_cached(
            "UPDATE run SET state = 'running', owner_pid = ?2, owner_started = ?3, lease_until = ?4,
                fence = fence + 1, wake_at = NULL, updated_at = ?5
             WHERE number = ?1 RETURNING fence",
        )?
        .query_row(params![run, new_owner.pid, new_owner.started, lease_until, now], |row| row.get(0))?;
    record_claim(connection, run, fence, now)?;
    let next = connection
        .prepare_cached("SELECT coalesce(max(seq), 0) + 1 FROM journal WHERE run = ?1")?
        .query_row([run], |row| row.get(0))?;
    Ok(ClaimAttempt::Taken { fence, next })
}

/// The numbers of the runs whose owners no longer hold them.
fn orphans(connection: &Connection, now: i64) -> rusqlite::Result<Vec<i64>> {
    let mut owned = connection.prepare_cached(OWNED)?;
    let mut rows = owned.query([])?;
    let (mut orphans, mut asked) = (Vec::new(), None::<(ProcessIdentity, OwnerPresence)>);
    while let Some(row) = rows.next()? {
        let Some((owner, until)) = owner(&row, 1)? else { continue };
        // Liveness is checked once per process, not once per run.
        let presence = match &asked {
            Some((process, presence)) if *process == owner => *presence,
            _ => {
                let presence = connection.owner_presence(&owner)?;
                asked.insert((owner.clone(), presence)).1
            }
        };
        if !holds(presence, until, now) {
            orphans.push(row.get(0)?);
        }
    }
    Ok(orphans)
}

/// Whether a run belongs to its owner.
fn holds(owner: OwnerPresence, lease_until: i64, now: i64) -> bool {
    match owner {
        OwnerPresence::Gone => false,
        OwnerPresence::Present => lease_until > now,
        OwnerPresence::MayReturn => true,
    }
}

fn found(row: &Row<'_>) -> rusqlite::Result<UnattendedRun> {
    Ok(UnattendedRun { principal: Principal(row.get(0)?), run: run_id(row, 1)?, state: run_state(row, 2)? })
}
