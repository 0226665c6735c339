//! Failed sign-ins with a passphrase, counted across processes, so that all of them impose the same delay.

use crate::sql::{Connection, OptionalExtension, params};

use crate::{BlockingStore, Error, Urgency};

/// Whether a sign-in attempt is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInAttempt {
    /// It is checked. It counts as failed until [`BlockingStore::clear_failed_sign_ins`] is called.
    Allowed,
    /// It is refused; another is accepted after this many milliseconds.
    Wait(i64),
}

impl BlockingStore {
    /// Counts an attempt at `door` before its passphrase is checked, so that concurrent attempts count too. `delay`
    /// maps the number of failures in a row to the milliseconds for which further attempts are refused.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn attempt_sign_in(
        &self,
        door: &str,
        now: i64,
        delay: fn(u32) -> i64,
    ) -> Result<SignInAttempt, Error> {
        // The limit is checked with a read first, so that refused attempts write nothing.
        if let Some(wait) =
            self.read(|connection| tried(connection, door))?.and_then(|tried| tried.wait(now, delay))
        {
            return Ok(SignInAttempt::Wait(wait));
        }
        let door = door.to_owned();
        self.change(Urgency::Durable, move |connection| {
            let tried = tried(connection, &door)?.unwrap_or_default();
            if let Some(wait) = tried.wait(now, delay) {
                return Ok(SignInAttempt::Wait(wait));
            }
            let wrong = tried.wrong.saturating_add(1);
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO sign_in (door, wrong, not_before) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![door, wrong, now.saturating_add(delay(wrong))])?;
            Ok(SignInAttempt::Allowed)
        })
    }

    /// Resets the failures at `door`, after a correct passphrase.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn clear_failed_sign_ins(&self, door: &str) -> Result<(), Error> {
        let door = door.to_owned();
        self.write(move |connection| {
            connection.prepare_cached("DELETE FROM sign_in WHERE door = ?1")?.execute([door]).map(drop)
        })
    }
}

#[derive(Default)]
struct FailedSignIns {
    wrong: u32,
    not_before: i64,
}

impl FailedSignIns {
    /// The remaining delay. A clock that was set back must not make it longer than the delay itself.
    fn wait(&self, now: i64, delay: fn(u32) -> i64) -> Option<i64> {
        let wait = self.not_before.saturating_sub(now).min(delay(self.wrong));
        (wait > 0).then_some(wait)
    }
}

fn tried(connection: &Connection, door: &str) -> rusqlite::Result<Option<FailedSignIns>> {
    connection
        .prepare_cached("SELECT wrong, not_before FROM sign_in WHERE door = ?1")?
        .query_row([door], |row| Ok(FailedSignIns { wrong: row.get(0)?, not_before: row.get(1)? }))
        .optional()
}
