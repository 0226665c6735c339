//! Sessions of people at the dashboard. They are rows, so that every gateway of a database knows them, also after a
//! start. A cookie is stored as its digest alone, and a row that this module did not write opens no session.

use crate::sql::{Connection, OptionalExtension, Row, params};
use pml_model::{Digest, Principal};

use crate::column::{digest, optional_digest};
use crate::seal::{AuthenticatedData, MarkKey};
use crate::{BlockingStore, Error, Urgency};

/// The session of somebody who signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DashboardSession {
    /// The digest of the cookie.
    pub cookie: Digest,
    /// Who signed in.
    pub principal: Principal,
    /// The digest of the second secret, which requests that change something carry.
    pub csrf: Digest,
    /// The fingerprint of the passphrase that it was started with.
    pub passphrase: Option<Digest>,
    /// When it was started.
    pub started_at: i64,
    /// When it was last used.
    pub used_at: i64,
}

impl DashboardSession {
    fn mark(&self, marks: &MarkKey) -> String {
        let row = AuthenticatedData::new()
            .text("dashboard session")
            .text(self.cookie.as_str())
            .text(&self.principal.0)
            .text(self.csrf.as_str())
            .optional(self.passphrase.as_ref().map(Digest::as_str))
            .number(self.started_at);
        marks.mark(&row)
    }
}

impl BlockingStore {
    /// Stores a session. Those not used since `idle_before` are removed, and the ones unused for longest beyond `most`.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change cannot be stored.
    pub fn start_dashboard_session(
        &self,
        session: DashboardSession,
        most: usize,
        idle_before: i64,
    ) -> Result<(), Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let others = i64::try_from(most.saturating_sub(1)).unwrap_or(i64::MAX);
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "DELETE FROM dashboard_session WHERE used_at < ?1 OR cookie NOT IN (
                        SELECT cookie FROM dashboard_session ORDER BY used_at DESC, started_at DESC LIMIT ?2)",
                )?
                .execute(params![idle_before, others])?;
            connection
                .prepare_cached(
                    "INSERT INTO dashboard_session (cookie, principal, csrf, passphrase, started_at, used_at, mark)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute(params![
                    session.cookie.as_str(),
                    session.principal.0,
                    session.csrf.as_str(),
                    session.passphrase.as_ref().map(Digest::as_str),
                    session.started_at,
                    session.used_at,
                    session.mark(&keys.clients),
                ])
                .map(drop)
        })
    }

    /// The session with this cookie.
    ///
    /// # Errors
    /// The database cannot be read, or the key file beside it cannot be used.
    pub fn dashboard_session(&self, cookie: &Digest) -> Result<Option<DashboardSession>, Error> {
        let found = self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT cookie, principal, csrf, passphrase, started_at, used_at, mark
                     FROM dashboard_session WHERE cookie = ?1",
                )?
                .query_row([cookie.as_str()], session)
                .optional()
        })?;
        let Some((found, mark)) = found else { return Ok(None) };
        let keys = self.inner.authenticator.master.keys(|| Ok(true))?;
        Ok((mark == found.mark(&keys.clients)).then_some(found))
    }

    /// Notes that a session was used. Queues the change and returns at once.
    pub fn touch_dashboard_session(&self, cookie: &Digest, now: i64) {
        let cookie = cookie.clone();
        let touch = move |connection: &Connection| {
            connection
                .prepare_cached(
                    "UPDATE dashboard_session SET used_at = ?2 WHERE cookie = ?1 AND used_at < ?2",
                )?
                .execute(params![cookie.as_str(), now])
                .map(drop)
        };
        // What is lost here ends a session some minutes earlier.
        self.inner.writer.enqueue(0, Urgency::Lazy, touch, drop);
    }

    /// Ends a session.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub fn end_dashboard_session(&self, cookie: &Digest) -> Result<(), Error> {
        let cookie = cookie.clone();
        self.write(move |connection| {
            connection
                .prepare_cached("DELETE FROM dashboard_session WHERE cookie = ?1")?
                .execute([cookie.as_str()])
                .map(drop)
        })
    }
}

fn session(row: &Row<'_>) -> rusqlite::Result<(DashboardSession, String)> {
    let session = DashboardSession {
        cookie: digest(row, 0)?,
        principal: Principal(row.get(1)?),
        csrf: digest(row, 2)?,
        passphrase: optional_digest(row, 3)?,
        started_at: row.get(4)?,
        used_at: row.get(5)?,
    };
    Ok((session, row.get(6)?))
}
