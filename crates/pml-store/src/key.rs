//! Client keys: the API keys that identify clients.
//!
//! Only the digest of a key is stored. Each row carries a mark made with the key beside the database. A row that was
//! inserted or altered by other means has no valid mark; it is neither listed nor valid.

use crate::sql::{Connection, Row, params};
use pml_model::{Digest, KeyId, Principal};
use serde_json::json;

use crate::audit::NewAuditEntry;
use crate::column::digest;
use crate::seal::{AuthenticatedData, MarkKey};
use crate::writer::WriteFailure;
use crate::{BlockingStore, Error, Urgency};

/// A client key to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewClientKey {
    /// The principal that its holder acts as.
    pub principal: Principal,
    /// Name of the client that it is for.
    pub client: String,
    /// Digest of the secret key.
    pub digest: Digest,
    /// An answer that the client passes on counts as a person's answer.
    pub interactive: bool,
    /// The client asks its own user before it calls a tool.
    pub asks_itself: bool,
    /// Current time.
    pub now: i64,
}

/// A stored client key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientKey {
    /// Number of the key, never reused.
    pub id: KeyId,
    /// The principal that its holder acts as.
    pub principal: Principal,
    /// Name of the client that it is for.
    pub client: String,
    /// Digest of the secret key.
    pub digest: Digest,
    /// An answer that the client passes on counts as a person's answer.
    pub interactive: bool,
    /// The client asks its own user before it calls a tool.
    pub asks_itself: bool,
    /// When it was stored.
    pub created_at: i64,
    /// When it was revoked; `None` while it is valid.
    pub revoked_at: Option<i64>,
}

impl ClientKey {
    /// The audit entry about it.
    fn audit(&self, kind: &'static str, at: i64) -> NewAuditEntry {
        let body = json!({ "key": self.id, "client": self.client, "interactive": self.interactive,
            "asksItself": self.asks_itself });
        NewAuditEntry { at, principal: self.principal.clone(), run: None, kind, body }
    }

    /// The mark of what the key allows, and to whom it belongs.
    fn mark(&self, marks: &MarkKey) -> String {
        let row = AuthenticatedData::new()
            .number(self.id.0)
            .text(&self.principal.0)
            .text(&self.client)
            .text(self.digest.as_str())
            .number(i64::from(self.interactive))
            .number(i64::from(self.asks_itself))
            .number(self.created_at);
        marks.mark(&row)
    }
}

impl BlockingStore {
    /// Stores a client key, with an audit entry.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change cannot be stored.
    pub fn add_client_key(&self, new: NewClientKey) -> Result<ClientKey, Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let log = self.begin_audit()?;
        self.change(Urgency::Durable, move |connection| {
            let key = add(connection, &keys.clients, new)?;
            log.append(connection, std::iter::once(key.audit("key created", key.created_at)))?;
            Ok(key)
        })
    }

    /// The client keys of all principals, revoked ones included, newest first.
    ///
    /// # Errors
    /// The database cannot be read, or the key file beside it cannot be used.
    pub fn client_keys(&self) -> Result<Vec<ClientKey>, Error> {
        let stored: Vec<(ClientKey, Option<String>)> = self.read(|connection| {
            connection
                .prepare_cached(&format!("SELECT {ROW} FROM client_key ORDER BY number DESC"))?
                .query_map([], client_key)?
                .collect()
        })?;
        if stored.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.inner.authenticator.master.keys(|| Ok(true))?;
        let ours = |(key, mark): (ClientKey, Option<String>)| match mark {
            Some(mark) => (mark == key.mark(&keys.clients)).then_some(key),
            None => key.revoked_at.is_some().then_some(key),
        };
        Ok(stored.into_iter().filter_map(ours).collect())
    }

    /// Revokes a client key, with an audit entry. Returns `None` if there is no such key or it was revoked before.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change cannot be stored.
    pub fn revoke_client_key(
        &self,
        principal: &Principal,
        id: KeyId,
        now: i64,
    ) -> Result<Option<ClientKey>, Error> {
        let (principal, log) = (principal.clone(), self.begin_audit()?);
        self.change(Urgency::Durable, move |connection| {
            let revoked = connection
                .prepare_cached(&format!(
                    "UPDATE client_key SET revoked_at = ?3, mark = NULL
                     WHERE number = ?1 AND principal = ?2 AND revoked_at IS NULL RETURNING {ROW}"
                ))?
                .query_map(params![id.0, principal.0, now], client_key)?
                .next()
                .transpose()?;
            let Some((key, _)) = revoked else { return Ok(None) };
            log.append(connection, std::iter::once(key.audit("key revoked", now)))?;
            Ok(Some(key))
        })
    }
}

/// The columns that [`client_key`] reads.
const ROW: &str = "number, principal, client, digest, interactive, asks_itself, created_at, revoked_at, mark";

/// Reads a client key and its mark.
fn client_key(row: &Row<'_>) -> rusqlite::Result<(ClientKey, Option<String>)> {
    let key = ClientKey {
        id: KeyId(row.get(0)?),
        principal: Principal(row.get(1)?),
        client: row.get(2)?,
        digest: digest(row, 3)?,
        interactive: row.get(4)?,
        asks_itself: row.get(5)?,
        created_at: row.get(6)?,
        revoked_at: row.get(7)?,
    };
    Ok((key, row.get(8)?))
}

fn add(connection: &Connection, marks: &MarkKey, new: NewClientKey) -> Result<ClientKey, WriteFailure> {
    // Client keys are never deleted, so no number is given twice.
    let number = connection
        .prepare_cached("SELECT coalesce(max(number), 0) + 1 FROM client_key")?
        .query_row([], |row| row.get(0))?;
    let key = ClientKey {
        id: KeyId(number),
        principal: new.principal,
        client: new.client,
        digest: new.digest,
        interactive: new.interactive,
        asks_itself: new.asks_itself,
        created_at: new.now,
        revoked_at: None,
    };
    connection
        .prepare_cached(
            "INSERT INTO client_key (number, principal, client, digest, interactive, asks_itself, created_at, mark)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            key.id.0,
            key.principal.0,
            key.client,
            key.digest.as_str(),
            key.interactive,
            key.asks_itself,
            key.created_at,
            key.mark(marks),
        ])?;
    Ok(key)
}
