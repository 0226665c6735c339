//! How often somebody tried to sign in with a wrong passphrase, so that all processes make them wait.

use rusqlite::{Connection, OptionalExtension, params};

use crate::{BlockingStore, Error, Urgency};

/// Whether a try is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// It is; it counts as wrong until [`BlockingStore::signed_in`] says otherwise.
    Allowed,
    /// It is not, for so many milliseconds.
    Wait(i64),
}

impl BlockingStore {
    /// Counts a try at `door` before it is looked at, so that many at once are counted too. `delay` says for how many
    /// milliseconds no other is looked at after so many wrong ones in a row.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn attempt_sign_in(
        &self,
        door: &'static str,
        now: i64,
        delay: fn(u32) -> i64,
    ) -> Result<Attempt, Error> {
        // Asking first keeps tries that come too early from writing anything.
        if let Some(wait) =
            self.read(|connection| tried(connection, door))?.and_then(|tried| tried.wait(now, delay))
        {
            return Ok(Attempt::Wait(wait));
        }
        self.change(Urgency::Durable, move |connection| {
            let tried = tried(connection, door)?.unwrap_or_default();
            if let Some(wait) = tried.wait(now, delay) {
                return Ok(Attempt::Wait(wait));
            }
            let wrong = tried.wrong.saturating_add(1);
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO sign_in (door, wrong, not_before) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![door, wrong, now.saturating_add(delay(wrong))])?;
            Ok(Attempt::Allowed)
        })
    }

    /// The last try at `door` was right.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn signed_in(&self, door: &'static str) -> Result<(), Error> {
        self.write(move |connection| {
            connection.prepare_cached("DELETE FROM sign_in WHERE door = ?1")?.execute([door]).map(drop)
        })
    }
}

#[derive(Default)]
struct Tried {
    wrong: u32,
    not_before: i64,
}

impl Tried {
    /// A clock that was set back must not make anybody wait for longer than the delay itself.
    fn wait(&self, now: i64, delay: fn(u32) -> i64) -> Option<i64> {
        let wait = self.not_before.saturating_sub(now).min(delay(self.wrong));
        (wait > 0).then_some(wait)
    }
}

fn tried(connection: &Connection, door: &str) -> rusqlite::Result<Option<Tried>> {
    connection
        .prepare_cached("SELECT wrong, not_before FROM sign_in WHERE door = ?1")?
        .query_row([door], |row| Ok(Tried { wrong: row.get(0)?, not_before: row.get(1)? }))
        .optional()
}
