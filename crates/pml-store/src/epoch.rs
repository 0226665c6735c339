//! Write epochs: how many calls may have written, counted across processes.
//!
//! Each process counts its own writes and reads the counts of the others: it knows of its own writes sooner than the
//! database does. Sums never decrease, not even when a process ends.

use std::collections::BTreeMap;

use crate::sql::{Connection, params};

use crate::{BlockingStore, Error, ProcessIdentity, Urgency};

impl BlockingStore {
    /// Counts one more write of `process`: on `server`, or on every server. Returns at once; the commit may wait some
    /// milliseconds for others. `begun` is called right before the change is made: writes up to then can share it.
    pub fn count_write(
        &self,
        process: &ProcessIdentity,
        server: Option<&str>,
        begun: impl FnOnce() + Send + 'static,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        let (process, server) = (process.clone(), server.unwrap_or_default().to_owned());
        let work = move |connection: &Connection| {
            begun();
            count(connection, &process, &server)
        };
        self.inner.writer.enqueue(0, Urgency::Lazy, work, done);
    }

    /// Number of writes of all processes other than `process`, by server. Writes that count for every server are under
    /// the empty name.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn writes_of_others(&self, process: &ProcessIdentity) -> Result<BTreeMap<String, i64>, Error> {
        self.read(|connection| writes_of_others(connection, process))
    }
}

pub(crate) fn writes_of_others(
    connection: &Connection,
    process: &ProcessIdentity,
) -> rusqlite::Result<BTreeMap<String, i64>> {
    connection
        .prepare_cached(
            "SELECT server, sum(writes) FROM write_epoch WHERE NOT (pid = ?1 AND started = ?2)
             GROUP BY server",
        )?
        .query_map(params![process.pid, process.started], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn count(connection: &Connection, process: &ProcessIdentity, server: &str) -> rusqlite::Result<()> {
    let counted = connection
        .prepare_cached(
            "UPDATE write_epoch SET writes = writes + 1 WHERE pid = ?1 AND started = ?2 AND server = ?3",
        )?
        .execute(params![process.pid, process.started, server])?;
    if counted > 0 {
        return Ok(());
    }
    // The first write of a process is a good moment to tidy up after those that have ended.
    keep_sums_of_ended(connection, process)?;
    add(connection, process.pid, &process.started, server, 1)
}

/// Merges the counts of ended processes, so that the table does not grow with every process.
fn keep_sums_of_ended(connection: &Connection, own: &ProcessIdentity) -> rusqlite::Result<()> {
    let rows: Vec<(ProcessIdentity, String, i64)> = connection
        .prepare_cached("SELECT pid, started, server, writes FROM write_epoch WHERE pid <> 0")?
        .query_map([], |row| {
            Ok((ProcessIdentity { pid: row.get(0)?, started: row.get(1)? }, row.get(2)?, row.get(3)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    for (process, server, writes) in rows {
        if process == *own || connection.may_be_alive(&process)? {
            continue;
        }
        connection
            .prepare_cached("DELETE FROM write_epoch WHERE pid = ?1 AND started = ?2 AND server = ?3")?
            .execute(params![process.pid, process.started, server])?;
        add(connection, 0, "", &server, writes)?;
    }
    Ok(())
}

fn add(connection: &Connection, pid: u32, started: &str, server: &str, writes: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO write_epoch (pid, started, server, writes) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (pid, started, server) DO UPDATE SET writes = writes + ?4",
        )?
        .execute(params![pid, started, server, writes])?;
    Ok(())
}
