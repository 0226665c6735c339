//! Follows the runs of all processes: what is new since the last look.

use crate::sql::{Connection, Row, params};
use pml_model::Principal;

use super::place::entry_context;
use super::read::{ROW, run_row, sealed_entry, wrapped_key};
use super::{JournalEntry, RunRow};
use crate::{BlockingStore, Error};

/// The new runs that one look returns; the rest comes with the next look.
const MOST_RUNS: u32 = 500;
/// The journal entries of a run that one look returns; the rest comes with the next look.
const MOST_ENTRIES: u32 = 1_000;
/// 256 KiB: the largest body that is opened. Whoever follows a run shows the beginning of a result at most.
const MOST_OPENED: i64 = 256 * 1_024;

/// How far a run was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowedRun {
    /// The number of the run.
    pub number: i64,
    /// The number of the last journal entry that was seen.
    pub entry: i64,
    /// The fence under which the follower itself writes the journal; it needs no entries of its own.
    pub own_fence: Option<i64>,
}

/// A run as it is now, with its new journal entries.
#[derive(Debug, Clone)]
pub struct RunNews {
    /// The row of the run.
    pub run: RunRow,
    /// How far the run is followed with this.
    pub seen: FollowedRun,
    /// The journal entries after those seen before. None are left once the records are purged.
    pub entries: Vec<FollowedEntry>,
    /// Whether there are more entries.
    pub has_more: bool,
}

/// A journal entry that is followed.
#[derive(Debug, Clone)]
pub struct FollowedEntry {
    /// The number of the entry.
    pub number: i64,
    /// The entry. Its body is empty unless it is a delivery of moderate size.
    pub entry: JournalEntry,
    /// The size of the body in bytes, about.
    pub body_bytes: i64,
}

/// The runs that have not ended.
#[derive(Debug, Clone)]
pub struct OpenRuns {
    /// The number of the newest run of all.
    pub newest: i64,
    /// The open ones, in the order of their numbers.
    pub runs: Vec<OpenRun>,
}

/// A run that has not ended.
#[derive(Debug, Clone)]
pub struct OpenRun {
    /// Its number.
    pub number: i64,
    /// The number of its last journal entry.
    pub entry: i64,
    /// Its row.
    pub run: RunRow,
}

impl BlockingStore {
    /// The runs of all principals that have not ended.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn open_runs(&self) -> Result<OpenRuns, Error> {
        self.read(|connection| {
            let newest =
                connection.query_row("SELECT coalesce(max(number), 0) FROM run", [], |row| row.get(0))?;
            let runs = connection
                .prepare_cached(&format!(
                    "SELECT {ROW}, number, (SELECT coalesce(max(seq), 0) FROM journal WHERE run = number) AS entry
                     FROM run WHERE ended_at IS NULL AND number <= ?1 ORDER BY number"
                ))?
                .query_map([newest], |row| {
                    Ok(OpenRun { number: row.get("number")?, entry: row.get("entry")?, run: run_row(row)? })
                })?
                .collect::<rusqlite::Result<_>>()?;
            Ok(OpenRuns { newest, runs })
        })
    }

    /// The next runs of all principals that were created after run `number`, each with its number.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn runs_after(&self, number: i64) -> Result<Vec<(i64, RunRow)>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {ROW}, number FROM run WHERE number > ?1 ORDER BY number LIMIT ?2"
                ))?
                .query_map(params![number, MOST_RUNS], numbered_run)?
                .collect()
        })
    }

    /// The principal's runs that have not ended, or ended since then, each with its number; `None` if there are more than
    /// `most` of them or they made more than `most_calls` calls.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn runs_since(
        &self,
        principal: &Principal,
        since: i64,
        (most, most_calls): (usize, u64),
    ) -> Result<Option<Vec<(i64, RunRow)>>, Error> {
        let limit = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
        let found: Vec<(i64, RunRow)> = self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {ROW}, number FROM run WHERE principal = ?1 AND ended_at IS NULL
                     UNION ALL
                     SELECT {ROW}, number FROM run
                     WHERE principal = ?1 AND ended_at >= ?2 AND purged_at IS NULL
                     ORDER BY number LIMIT ?3"
                ))?
                .query_map(params![principal.0, since, limit], numbered_run)?
                .collect()
        })?;
        let calls: u64 = found.iter().map(|(_, run)| u64::from(run.calls)).sum();
        Ok((found.len() <= most && calls <= most_calls).then_some(found))
    }

    /// What is new about these runs. Runs that do not exist any more are left out.
    ///
    /// # Errors
    /// The database cannot be read, or a sealed body cannot be opened.
    pub fn run_news(&self, followed: &[FollowedRun]) -> Result<Vec<RunNews>, Error> {
        let found = self.read(|connection| {
            let mut found = Vec::new();
            for seen in followed {
                found.extend(followed_run(connection, *seen)?);
            }
            Ok(found)
        })?;
        found.into_iter().map(|found| self.opened(found)).collect()
    }

    fn opened(&self, (mut news, wrapped): (RunNews, Option<Vec<u8>>)) -> Result<RunNews, Error> {
        let Some(key) = self.run_key(&news.run, wrapped)? else {
            news.entries.clear();
            return Ok(news);
        };
        for FollowedEntry { number, entry, .. } in &mut news.entries {
            if !entry.body.is_empty() {
                let place = entry_context(&news.run.id, *number, entry);
                entry.body = key.open(&place, std::mem::take(&mut entry.body))?;
            }
        }
        Ok(news)
    }
}

fn numbered_run(row: &Row<'_>) -> rusqlite::Result<(i64, RunRow)> {
    Ok((row.get("number")?, run_row(row)?))
}

fn followed_run(
    connection: &Connection,
    seen: FollowedRun,
) -> rusqlite::Result<Option<(RunNews, Option<Vec<u8>>)>> {
    let mut rows = connection.prepare_cached(&format!("SELECT {ROW} FROM run WHERE number = ?1"))?;
    let Some(run) = rows.query_map([seen.number], run_row)?.next().transpose()? else { return Ok(None) };
    if seen.own_fence == Some(run.fence) {
        let entry = connection
            .prepare_cached("SELECT coalesce(max(seq), 0) FROM journal WHERE run = ?1")?
            .query_row([seen.number], |row| row.get(0))?;
        let seen = FollowedRun { entry, ..seen };
        return Ok(Some((RunNews { run, seen, entries: Vec::new(), has_more: false }, None)));
    }
    let entries: Vec<FollowedEntry> = connection
        .prepare_cached(
            "SELECT seq, kind, call, frame, node, tool, digest, at,
                 CASE WHEN kind = 'delivered' AND length(body) <= ?4 THEN body ELSE x'' END, length(body)
             FROM journal WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        )?
        .query_map(params![seen.number, seen.entry, MOST_ENTRIES, MOST_OPENED], |row| {
            let (number, entry) = sealed_entry(row)?;
            Ok(FollowedEntry { number, entry, body_bytes: row.get(9)? })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let key = if entries.is_empty() { None } else { wrapped_key(connection, seen.number)? };
    let has_more = entries.len() == MOST_ENTRIES as usize;
    let entry = entries.last().map_or(seen.entry, |last| last.number);
    Ok(Some((RunNews { run, seen: FollowedRun { entry, ..seen }, entries, has_more }, key)))
}
