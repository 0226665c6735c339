//! Client keys: the API keys that identify clients.
//!
//! Only the digest of a key is stored. Each row carries a mark made with the key beside the database. A row that was
//! inserted or altered by other means has no valid mark; it is neither listed nor valid.

use crate::sql::{Connection, Row, params};
use pml_model::{Digest, KeyId, KeyRights, Principal, Role};
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
    /// Role, scope, expiry and budget.
    pub rights: KeyRights,
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
    /// Role, scope, expiry and budget. A key from before there were roles may do what its principal may.
    pub rights: KeyRights,
    /// When it was stored.
    pub created_at: i64,
    /// When it was revoked; `None` while it is valid.
    pub revoked_at: Option<i64>,
}

impl ClientKey {
    /// The audit entry about it.
    fn audit(&self, kind: &'static str, at: i64) -> NewAuditEntry {
        let body = json!({ "key": self.id, "client": self.client, "interactive": self.interactive,
            "asksItself": self.asks_itself, "rights": self.rights });
        NewAuditEntry { at, principal: self.principal.clone(), run: None, kind, body }
    }

    /// The mark of what the key allows, and to whom it belongs. `rights` is the text that is stored, if any is.
    fn mark(&self, marks: &MarkKey, rights: Option<&str>) -> String {
        let row = AuthenticatedData::new()
            .number(self.id.0)
            .text(&self.principal.0)
            .text(&self.client)
            .text(self.digest.as_str())
            .number(i64::from(self.interactive))
            .number(i64::from(self.asks_itself))
            .number(self.created_at);
        let row = match rights {
            Some(rights) => row.text(rights),
            None => row,
        };
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
        let stored: Vec<StoredKey> = self.read(|connection| {
            connection
                .prepare_cached(&format!("SELECT {ROW} FROM client_key ORDER BY number DESC"))?
                .query_map([], client_key)?
                .collect()
        })?;
        if stored.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.inner.authenticator.master.keys(|| Ok(true))?;
        Ok(stored.into_iter().filter_map(|stored| stored.authentic(&keys.clients)).collect())
    }

    /// Replaces a client key: stores `digest` as a new key with the same rights, and revokes the old one, or lets it
    /// expire at `old_until`. Returns the old and the new key; `None` if there is no such key that is valid.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change cannot be stored.
    pub fn rotate_client_key(
        &self,
        id: KeyId,
        digest: Digest,
        old_until: Option<i64>,
        now: i64,
    ) -> Result<Option<(ClientKey, ClientKey)>, Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let log = self.begin_audit()?;
        self.change(Urgency::Durable, move |connection| {
            let stored = connection
                .prepare_cached(&format!(
                    "SELECT {ROW} FROM client_key WHERE number = ?1 AND revoked_at IS NULL"
                ))?
                .query_map([id.0], client_key)?
                .next()
                .transpose()?;
            let Some(mut old) = stored.and_then(|stored| stored.authentic(&keys.clients)) else {
                return Ok(None);
            };
            let new = NewClientKey {
                principal: old.principal.clone(),
                client: old.client.clone(),
                digest,
                interactive: old.interactive,
                asks_itself: old.asks_itself,
                rights: old.rights.clone(),
                now,
            };
            let new = add(connection, &keys.clients, new)?;
            match old_until {
                Some(until) => {
                    let earlier = old.rights.expires_at.map_or(until, |at| at.min(until));
                    old.rights.expires_at = Some(earlier);
                    let rights = rights_text(&old.rights);
                    connection
                        .prepare_cached("UPDATE client_key SET rights = ?2, mark = ?3 WHERE number = ?1")?
                        .execute(params![old.id.0, rights, old.mark(&keys.clients, Some(&rights))])?;
                }
                None => {
                    old.revoked_at = Some(now);
                    connection
                        .prepare_cached(
                            "UPDATE client_key SET revoked_at = ?2, mark = NULL WHERE number = ?1",
                        )?
                        .execute(params![old.id.0, now])?;
                }
            }
            log.append(
                connection,
                [old.audit("key replaced", now), new.audit("key created", now)].into_iter(),
            )?;
            Ok(Some((old, new)))
        })
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
            let Some(key) = revoked.and_then(|stored| stored.key) else { return Ok(None) };
            log.append(connection, std::iter::once(key.audit("key revoked", now)))?;
            Ok(Some(key))
        })
    }
}

/// The columns that [`client_key`] reads.
const ROW: &str =
    "number, principal, client, digest, interactive, asks_itself, created_at, revoked_at, rights, mark";

/// A row with what vouches for it.
struct StoredKey {
    /// `None` if its rights cannot be read, for example because a later version of PML stored them.
    key: Option<ClientKey>,
    rights: Option<String>,
    mark: Option<String>,
}

impl StoredKey {
    /// The key, if this program stored it: a valid key has a mark, a revoked one has none.
    fn authentic(self, marks: &MarkKey) -> Option<ClientKey> {
        let StoredKey { key, rights, mark } = self;
        key.filter(|key| match mark {
            Some(mark) => mark == key.mark(marks, rights.as_deref()),
            None => key.revoked_at.is_some(),
        })
    }
}

fn client_key(row: &Row<'_>) -> rusqlite::Result<StoredKey> {
    let text: Option<String> = row.get(8)?;
    let rights = match &text {
        Some(text) => serde_json::from_str(text).ok(),
        None => Some(KeyRights::of_role(Role::Admin)),
    };
    let digest = digest(row, 3)?;
    let key = match rights {
        Some(rights) => Some(ClientKey {
            id: KeyId(row.get(0)?),
            principal: Principal(row.get(1)?),
            client: row.get(2)?,
            digest,
            interactive: row.get(4)?,
            asks_itself: row.get(5)?,
            rights,
            created_at: row.get(6)?,
            revoked_at: row.get(7)?,
        }),
        None => None,
    };
    Ok(StoredKey { key, rights: text, mark: row.get(9)? })
}

/// The stored form of the rights of a key.
fn rights_text(rights: &KeyRights) -> String {
    serde_json::to_string(rights).expect("rights have no keys but texts")
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
        rights: new.rights,
        created_at: new.now,
        revoked_at: None,
    };
    let rights = rights_text(&key.rights);
    connection
        .prepare_cached(
            "INSERT INTO client_key (number, principal, client, digest, interactive, asks_itself, created_at, rights,
                mark)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            key.id.0,
            key.principal.0,
            key.client,
            key.digest.as_str(),
            key.interactive,
            key.asks_itself,
            key.created_at,
            rights,
            key.mark(marks, Some(&rights)),
        ])?;
    Ok(key)
}
