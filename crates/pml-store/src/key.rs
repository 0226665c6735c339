//! The keys by which clients are known.
//!
//! Only the digest of a key is stored. Each row carries a mark that only this program makes: a key that
//! was put into the database or altered there by other means is not listed and counts for nothing.

use pml_model::{Digest, KeyId, Principal};
use rusqlite::{Connection, Row, params};
use serde_json::json;

use crate::audit::Audit;
use crate::column::digest;
use crate::seal::{Marks, Words};
use crate::writer::Failure;
use crate::{BlockingStore, Error, Urgency};

/// A key to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Under whose authority its holder acts.
    pub principal: Principal,
    /// The name of the client it is for.
    pub client: String,
    /// The digest of the key itself.
    pub digest: Digest,
    /// What the client's user answers counts as a person's answer.
    pub interactive: bool,
    /// The client asks its own user before it calls a tool.
    pub asks_itself: bool,
    /// The present time.
    pub now: i64,
}

/// A key that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientKey {
    /// Its number, which no other key has or had.
    pub id: KeyId,
    /// Under whose authority its holder acts.
    pub principal: Principal,
    /// The name of the client it is for.
    pub client: String,
    /// The digest of the key itself.
    pub digest: Digest,
    /// What the client's user answers counts as a person's answer.
    pub interactive: bool,
    /// The client asks its own user before it calls a tool.
    pub asks_itself: bool,
    /// When it was made.
    pub created_at: i64,
    /// When it was revoked.
    pub revoked_at: Option<i64>,
}

impl ClientKey {
    /// What the audit log is told of it.
    fn audit(&self, kind: &'static str, at: i64) -> Audit {
        let body = json!({ "key": self.id, "client": self.client, "interactive": self.interactive,
            "asksItself": self.asks_itself });
        Audit { at, principal: self.principal.clone(), run: None, kind, body }
    }

    /// Vouches for what the key is good for, and to whom it belongs.
    fn mark(&self, marks: &Marks) -> String {
        let row = Words::new()
            .number(self.id.0)
            .word(&self.principal.0)
            .word(&self.client)
            .word(self.digest.as_str())
            .number(i64::from(self.interactive))
            .number(i64::from(self.asks_itself))
            .number(self.created_at);
        marks.mark(&row)
    }
}

impl BlockingStore {
    /// Stores a key, with an entry in the audit log.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change not be stored.
    pub fn add_key(&self, new: NewKey) -> Result<ClientKey, Error> {
        let keys = self.inner.voucher.master.keys(|| self.uses_key())?;
        let log = self.log_within()?;
        self.change(Urgency::Durable, move |connection| {
            let key = add(connection, &keys.clients, new)?;
            log.tell(connection, std::iter::once(key.audit("key created", key.created_at)))?;
            Ok(key)
        })
    }

    /// All keys of all principals, revoked ones included, newest first.
    ///
    /// # Errors
    /// The database cannot be read, or the key file beside it not be used.
    pub fn keys(&self) -> Result<Vec<ClientKey>, Error> {
        let stored: Vec<(ClientKey, Option<String>)> = self.read(|connection| {
            connection
                .prepare_cached(&format!("SELECT {ROW} FROM client_key ORDER BY number DESC"))?
                .query_map([], client_key)?
                .collect()
        })?;
        if stored.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.inner.voucher.master.keys(|| Ok(true))?;
        let ours = |(key, mark): (ClientKey, Option<String>)| match mark {
            Some(mark) => (mark == key.mark(&keys.clients)).then_some(key),
            None => key.revoked_at.is_some().then_some(key),
        };
        Ok(stored.into_iter().filter_map(ours).collect())
    }

    /// Revokes a key, with an entry in the audit log. `None` where there is no such key or it was revoked
    /// before.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change not be stored.
    pub fn revoke_key(&self, principal: &Principal, id: KeyId, now: i64) -> Result<Option<ClientKey>, Error> {
        let (principal, log) = (principal.clone(), self.log_within()?);
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
            log.tell(connection, std::iter::once(key.audit("key revoked", now)))?;
            Ok(Some(key))
        })
    }
}

/// The columns of [`client_key`].
const ROW: &str = "number, principal, client, digest, interactive, asks_itself, created_at, revoked_at, mark";

/// A key with its mark.
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

fn add(connection: &Connection, marks: &Marks, new: NewKey) -> Result<ClientKey, Failure> {
    // No key is ever deleted, so no number comes twice.
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
