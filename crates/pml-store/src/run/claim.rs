//! Who works on a run: claiming, keeping, and finding those nobody works on. And answers, for which
//! a run may be waiting.
//!
//! Each decision and what follows from it share a transaction, so of several processes that want a
//! run one gets it. What finds runs finds those of all principals: it serves the program itself.

use pml_model::question::Answer;
use pml_model::{Principal, RunId, RunState};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::read::{answer_place, find, owner, run_id, state, wrapped_key};
use super::{Answered, Claim, Found, Lease};
use crate::state::may_run;
use crate::writer::Failure;
use crate::{Error, Process, Store, Urgency};

impl Store {
    /// Takes a run for `owner`, if nobody works on it: it was given up, its owner has ended, or the
    /// lease has lapsed. A run that is taken is running.
    ///
    /// # Errors
    /// The change could not be stored, or the key of the run not be opened; the run is as it was.
    pub fn claim(
        &self,
        principal: &Principal,
        id: &RunId,
        owner: &Process,
        lease_until: i64,
        now: i64,
    ) -> Result<Claim, Error> {
        let found = self.read(|connection| {
            let Some((number, run)) = find(connection, principal, id)? else { return Ok(None) };
            Ok(Some((number, wrapped_key(connection, number)?, run)))
        })?;
        let Some((number, wrapped, run)) = found else { return Ok(Claim::Unknown) };
        let Some(key) = self.key(&run, wrapped)? else { return Ok(Claim::Over(run.state)) };
        let owner = owner.clone();
        let taken = self.change(Urgency::Soon, move |connection| {
            Ok(take(connection, number, &owner, lease_until, now)?)
        })?;
        Ok(match taken {
            Taking::Taken { fence, next } => Claim::Taken(Lease::new(run.id, fence, key, next)),
            Taking::Held { by, until } => Claim::Held { by, until },
            Taking::Over(state) => Claim::Over(state),
        })
    }

    /// Keeps runs until `until`, and says which of them are ours no longer.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn renew(&self, leases: &[Lease], until: i64) -> Result<Vec<RunId>, Error> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let leases = leases.to_vec();
        self.write(move |connection| {
            let mut renew = connection.prepare_cached(
                "UPDATE run SET lease_until = ?3 WHERE id = ?1 AND fence = ?2 AND owner_pid IS NOT NULL",
            )?;
            let mut lost = Vec::new();
            for lease in &leases {
                if renew.execute(params![lease.run().as_str(), lease.fence(), until])? == 0 {
                    lost.push(lease.run().clone());
                }
            }
            Ok(lost)
        })
    }

    /// Releases the runs whose owners have ended or let their leases lapse, and gives them. Those that
    /// were running are interrupted from now on; each is given to one process alone.
    ///
    /// # Errors
    /// The database cannot be read, or the change not be stored.
    pub fn interrupt_orphans(&self, now: i64) -> Result<Vec<Found>, Error> {
        // Nearly always there are none, and then nobody has to wait for us.
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

    /// The runs that can be worked on: interrupted ones, and waiting ones whose time has come or whose
    /// question is answered.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn due(&self, now: i64) -> Result<Vec<Found>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT principal, id, state FROM run INDEXED BY run_open
                     WHERE ended_at IS NULL AND owner_pid IS NULL
                        AND (state = 'interrupted' OR state = 'waiting' AND (wake_at <= ?1 OR EXISTS (
                            SELECT 1 FROM answer
                            WHERE answer.run = run.number AND answer.question_id = run.question_id)))
                     ORDER BY number",
                )?
                .query_map([now], found)?
                .collect()
        })
    }

    /// When the next run that nobody works on is due or has waited for too long.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn next_wake(&self) -> Result<Option<i64>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT min(min(coalesce(wake_at, expires_at), coalesce(expires_at, wake_at)))
                     FROM run INDEXED BY run_open
                     WHERE ended_at IS NULL AND owner_pid IS NULL",
                )?
                .query_row([], |row| row.get(0))
        })
    }

    /// Ends the runs that nobody works on and that may not wait any longer, and gives them.
    ///
    /// # Errors
    /// The database cannot be read, or the change not be stored.
    pub fn expire(&self, now: i64) -> Result<Vec<Found>, Error> {
        const OVERDUE: &str = "ended_at IS NULL AND owner_pid IS NULL AND expires_at <= ?1";
        let any = self.read(|connection| {
            connection
                .prepare_cached(&format!("SELECT 1 FROM run INDEXED BY run_open WHERE {OVERDUE} LIMIT 1"))?
                .exists([now])
        })?;
        if !any {
            return Ok(Vec::new());
        }
        self.write(move |connection| {
            let expired: Vec<Found> = connection
                .prepare_cached(&format!(
                    "UPDATE run SET state = 'expired', ended_at = ?1, updated_at = ?1, wake_at = NULL,
                        question_id = NULL, fence = fence + 1
                     WHERE {OVERDUE} RETURNING principal, id, state"
                ))?
                .query_map([now], found)?
                .collect::<rusqlite::Result<_>>()?;
            for run in &expired {
                connection
                    .prepare_cached(
                        "DELETE FROM run_body
                         WHERE run = (SELECT number FROM run WHERE id = ?1) AND part = 'question'",
                    )?
                    .execute([run.run.as_str()])?;
            }
            Ok(expired)
        })
    }

    /// Answers what a run asks. The first answer is the answer.
    ///
    /// # Errors
    /// The answer could not be sealed or stored.
    pub fn answer(
        &self,
        principal: &Principal,
        id: &RunId,
        question_id: &str,
        answer: &Answer,
        now: i64,
    ) -> Result<Answered, Error> {
        let found = self.read(|connection| {
            let Some((number, run)) = find(connection, principal, id)? else { return Ok(None) };
            Ok(Some((number, wrapped_key(connection, number)?, run)))
        })?;
        let Some((number, wrapped, run)) = found else { return Ok(Answered::Unknown) };
        let asks = run.question_id.as_deref() == Some(question_id);
        let Some(key) = self.key(&run, wrapped)?.filter(|_| asks) else { return Ok(Answered::Gone) };
        let text = serde_json::to_vec(answer).expect("an answer is plain data");
        let place = answer_place(id, question_id, principal, now);
        let body = super::append::seal(&key, &place, &text)?;
        let (principal, question_id) = (principal.clone(), question_id.to_owned());
        self.change(Urgency::Durable, move |connection| {
            put_answer(connection, number, &question_id, &principal, &body, now)
        })
    }
}

enum Taking {
    Taken { fence: i64, next: i64 },
    Held { by: Process, until: i64 },
    Over(RunState),
}

fn take(
    connection: &Connection,
    run: i64,
    new_owner: &Process,
    lease_until: i64,
    now: i64,
) -> rusqlite::Result<Taking> {
    let (state, owner) = connection
        .prepare_cached("SELECT state, owner_pid, owner_started, lease_until FROM run WHERE number = ?1")?
        .query_row([run], |row| Ok((state(row, 0)?, owner(row, 1)?)))?;
    if state.is_over() {
        return Ok(Taking::Over(state));
    }
    if let Some((by, until)) = owner.filter(|(owner, until)| is_held(owner, *until, now)) {
        return Ok(Taking::Held { by, until });
    }
    let fence = connection
        .prepare_cached(
            "UPDATE run SET state = 'running', owner_pid = ?2, owner_started = ?3, lease_until = ?4,
                fence = fence + 1, wake_at = NULL, updated_at = ?5
             WHERE number = ?1 RETURNING fence",
        )?
        .query_row(params![run, new_owner.pid, new_owner.started, lease_until, now], |row| row.get(0))?;
    let next = connection
        .prepare_cached("SELECT coalesce(max(seq), 0) + 1 FROM journal WHERE run = ?1")?
        .query_row([run], |row| row.get(0))?;
    Ok(Taking::Taken { fence, next })
}

fn is_held(owner: &Process, until: i64, now: i64) -> bool {
    until > now && may_run(owner)
}

/// The numbers of the runs whose owners do not hold them any more.
fn orphans(connection: &Connection, now: i64) -> rusqlite::Result<Vec<i64>> {
    let mut owned = connection.prepare_cached(
        "SELECT number, owner_pid, owner_started, lease_until FROM run INDEXED BY run_open
         WHERE ended_at IS NULL AND owner_pid IS NOT NULL ORDER BY owner_pid, owner_started, number",
    )?;
    let mut rows = owned.query([])?;
    let (mut orphans, mut asked) = (Vec::new(), None::<(Process, bool)>);
    while let Some(row) = rows.next()? {
        let Some((owner, until)) = owner(row, 1)? else { continue };
        // The process table is asked once for each process, not for each run.
        let runs = match &asked {
            Some((process, runs)) if *process == owner => *runs,
            _ => asked.insert((owner.clone(), may_run(&owner))).1,
        };
        if !runs || until <= now {
            orphans.push(row.get(0)?);
        }
    }
    Ok(orphans)
}

fn found(row: &Row<'_>) -> rusqlite::Result<Found> {
    Ok(Found { principal: Principal(row.get(0)?), run: run_id(row, 1)?, state: state(row, 2)? })
}

fn put_answer(
    connection: &Connection,
    run: i64,
    question_id: &str,
    principal: &Principal,
    body: &[u8],
    now: i64,
) -> Result<Answered, Failure> {
    let asks: Option<bool> = connection
        .prepare_cached(
            "SELECT coalesce(question_id = ?2, 0) AND ended_at IS NULL FROM run WHERE number = ?1",
        )?
        .query_row(params![run, question_id], |row| row.get(0))
        .optional()?;
    if asks != Some(true) {
        return Ok(Answered::Gone);
    }
    let stored = connection
        .prepare_cached(
            "INSERT OR IGNORE INTO answer (run, question_id, principal, at, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![run, question_id, principal.0, now, body])?;
    Ok(if stored == 0 { Answered::AlreadyAnswered } else { Answered::Stored })
}
