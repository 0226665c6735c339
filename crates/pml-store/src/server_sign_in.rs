//! Sign-ins to remote servers: the tokens of each person for each server, sealed.
//!
//! A refresh token is often good for one use, and any number of processes share the database. One of them claims the
//! renewal, the others wait until the version changes. A claim ends by itself, so a process that dies blocks nobody
//! for long.

use crate::sql::{Connection, OptionalExtension, params};
use pml_model::{Principal, ServerName};
use serde_json::json;

use crate::audit::NewAuditEntry;
use crate::seal::{AuthenticatedData, SealKey};
use crate::writer::WriteFailure;
use crate::{BlockingStore, Error, Urgency};

/// A stored sign-in.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerSignIn {
    /// Grows with each change.
    pub version: i64,
    /// What was stored.
    pub body: String,
}

impl std::fmt::Debug for ServerSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerSignIn").field("version", &self.version).finish_non_exhaustive()
    }
}

impl BlockingStore {
    /// The sign-in of a person to a server. One that cannot be opened counts as none: whoever can alter a row could
    /// delete it as well.
    ///
    /// # Errors
    /// The database cannot be read, or the key file cannot be used.
    pub fn server_sign_in(
        &self,
        principal: &Principal,
        server: &ServerName,
    ) -> Result<Option<ServerSignIn>, Error> {
        let Some((version, body)) = self.read(|connection| sealed(connection, principal, server))? else {
            return Ok(None);
        };
        let keys = self.inner.authenticator.master.keys(|| Ok(true))?;
        let body = keys.sign_ins.open_data(&context(principal, server, version), body);
        let body = body.and_then(|body| String::from_utf8(body).ok());
        Ok(body.map(|body| ServerSignIn { version, body }))
    }

    /// Stores the sign-in of a person in place of an earlier one, with an audit entry.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change cannot be stored.
    pub fn put_server_sign_in(
        &self,
        principal: &Principal,
        server: &ServerName,
        body: String,
        now: i64,
    ) -> Result<(), Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let log = self.begin_audit()?;
        let (principal, server) = (principal.clone(), server.clone());
        self.change(Urgency::Durable, move |connection| {
            let before = sealed(connection, &principal, &server)?;
            let version = before.map_or(0, |(version, _)| version) + 1;
            write(connection, &keys.sign_ins, (&principal, &server), (version, &body))?;
            let body = json!({ "server": server });
            let entry = NewAuditEntry { at: now, principal, run: None, kind: "signed in to server", body };
            log.append(connection, std::iter::once(entry))?;
            Ok(())
        })
    }

    /// Claims the renewal of a sign-in until `until`. Returns whether this process renews it: no other does, and its
    /// version is still `version`.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn claim_sign_in_renewal(
        &self,
        principal: &Principal,
        server: &ServerName,
        version: i64,
        (now, until): (i64, i64),
    ) -> Result<bool, Error> {
        let (principal, server) = (principal.clone(), server.clone());
        self.write(move |connection| {
            // A claim further ahead than two renewals take comes from a clock that was set back since.
            let furthest = until.saturating_add(until.saturating_sub(now));
            let claimed = connection
                .prepare_cached(
                    "UPDATE server_sign_in SET renewing_until = ?5
                     WHERE principal = ?1 AND server = ?2 AND version = ?3
                       AND (renewing_until <= ?4 OR renewing_until > ?6)",
                )?
                .execute(params![principal.0, server.as_str(), version, now, until, furthest])?;
            Ok(claimed == 1)
        })
    }

    /// Replaces a sign-in and ends the claim on its renewal, unless it was changed since `version`. Returns the new
    /// version; `None` where it was changed or removed.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change cannot be stored.
    pub fn replace_server_sign_in(
        &self,
        principal: &Principal,
        server: &ServerName,
        version: i64,
        body: String,
    ) -> Result<Option<i64>, Error> {
        let keys = self.inner.authenticator.master.keys(|| Ok(true))?;
        let (principal, server) = (principal.clone(), server.clone());
        self.change(Urgency::Durable, move |connection| {
            let before = sealed(connection, &principal, &server)?;
            if before.map(|(before, _)| before) != Some(version) {
                return Ok(None);
            }
            write(connection, &keys.sign_ins, (&principal, &server), (version + 1, &body))?;
            Ok(Some(version + 1))
        })
    }

    /// Removes the sign-in of a person to a server, with an audit entry. Returns whether there was one.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn remove_server_sign_in(
        &self,
        principal: &Principal,
        server: &ServerName,
        now: i64,
    ) -> Result<bool, Error> {
        let log = self.begin_audit()?;
        let (principal, server) = (principal.clone(), server.clone());
        self.change(Urgency::Durable, move |connection| {
            let removed = connection
                .prepare_cached("DELETE FROM server_sign_in WHERE principal = ?1 AND server = ?2")?
                .execute(params![principal.0, server.as_str()])?;
            if removed == 0 {
                return Ok(false);
            }
            let body = json!({ "server": server });
            let entry = NewAuditEntry { at: now, principal, run: None, kind: "signed out of server", body };
            log.append(connection, std::iter::once(entry))?;
            Ok(true)
        })
    }
}

fn sealed(
    connection: &Connection,
    principal: &Principal,
    server: &ServerName,
) -> rusqlite::Result<Option<(i64, Vec<u8>)>> {
    connection
        .prepare_cached("SELECT version, body FROM server_sign_in WHERE principal = ?1 AND server = ?2")?
        .query_row(params![principal.0, server.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

fn write(
    connection: &Connection,
    key: &SealKey,
    (principal, server): (&Principal, &ServerName),
    (version, body): (i64, &str),
) -> Result<(), WriteFailure> {
    let body = key.seal_data(&context(principal, server, version), body.as_bytes())?;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO server_sign_in (principal, server, version, renewing_until, body)
             VALUES (?1, ?2, ?3, 0, ?4)",
        )?
        .execute(params![principal.0, server.as_str(), version, body])?;
    Ok(())
}

/// The authenticated context of a body: everything that is stored beside it.
fn context(principal: &Principal, server: &ServerName, version: i64) -> AuthenticatedData {
    AuthenticatedData::new().text("server sign-in").text(&principal.0).text(server.as_str()).number(version)
}
