//! People who sign in beside the operator of the gateway.
//!
//! A row that was inserted or altered by other means than this module has no valid mark; nobody signs in with it.

use crate::sql::{Connection, Row, params};
use pml_model::{Principal, Role};
use serde_json::json;

use crate::audit::NewAuditEntry;
use crate::seal::{AuthenticatedData, MarkKey};
use crate::{BlockingStore, Error, Urgency};

/// A person who signs in.
#[derive(Clone, PartialEq, Eq)]
pub struct Person {
    /// The principal that they act as.
    pub principal: Principal,
    /// What they may do.
    pub role: Role,
    /// The hash of their passphrase.
    pub passphrase: String,
    /// When they were added.
    pub created_at: i64,
    /// When their passphrase or role was last changed.
    pub changed_at: i64,
}

impl std::fmt::Debug for Person {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Person")
            .field("principal", &self.principal)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl Person {
    fn audit(&self, kind: &'static str, at: i64) -> NewAuditEntry {
        let body = json!({ "person": self.principal, "role": self.role });
        NewAuditEntry { at, principal: self.principal.clone(), run: None, kind, body }
    }

    fn mark(&self, marks: &MarkKey) -> String {
        let row = AuthenticatedData::new()
            .text("person")
            .text(&self.principal.0)
            .text(self.role.as_str())
            .text(&self.passphrase)
            .number(self.created_at)
            .number(self.changed_at);
        marks.mark(&row)
    }
}

impl BlockingStore {
    /// Adds a person, with an audit entry. Returns whether there was none of that name.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change cannot be stored.
    pub fn add_person(&self, person: Person) -> Result<bool, Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let log = self.begin_audit()?;
        self.change(Urgency::Durable, move |connection| {
            let added = connection
                .prepare_cached(
                    "INSERT INTO person (principal, role, passphrase, created_at, changed_at, mark)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (principal) DO NOTHING",
                )?
                .execute(params![
                    person.principal.0,
                    person.role.as_str(),
                    person.passphrase,
                    person.created_at,
                    person.changed_at,
                    person.mark(&keys.clients),
                ])?;
            if added == 1 {
                log.append(connection, std::iter::once(person.audit("person added", person.created_at)))?;
            }
            Ok(added == 1)
        })
    }

    /// Changes the passphrase of a person, with an audit entry. Returns whether there is one of that name.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change cannot be stored.
    pub fn set_person_passphrase(
        &self,
        principal: &Principal,
        hash: String,
        now: i64,
    ) -> Result<bool, Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let (principal, log) = (principal.clone(), self.begin_audit()?);
        self.change(Urgency::Durable, move |connection| {
            let known = authentic(connection, &keys.clients)?;
            let Some(known) = known.into_iter().find(|known| known.principal == principal) else {
                return Ok(false);
            };
            let person = Person { passphrase: hash, changed_at: now, ..known };
            connection
                .prepare_cached(
                    "UPDATE person SET passphrase = ?2, changed_at = ?3, mark = ?4 WHERE principal = ?1",
                )?
                .execute(params![principal.0, person.passphrase, now, person.mark(&keys.clients)])?;
            log.append(connection, std::iter::once(person.audit("passphrase changed", now)))?;
            Ok(true)
        })
    }

    /// Removes a person and revokes their keys, with an audit entry. What they own stays. Returns how many keys were
    /// revoked; `None` if there is nobody of that name.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub fn remove_person(&self, principal: &Principal, now: i64) -> Result<Option<usize>, Error> {
        let (principal, log) = (principal.clone(), self.begin_audit()?);
        self.change(Urgency::Durable, move |connection| {
            let removed =
                connection.prepare_cached("DELETE FROM person WHERE principal = ?1")?.execute([&principal.0])?;
            if removed == 0 {
                return Ok(None);
            }
            let revoked = connection
                .prepare_cached(
                    "UPDATE client_key SET revoked_at = ?2, mark = NULL WHERE principal = ?1 AND revoked_at IS NULL",
                )?
                .execute(params![principal.0, now])?;
            let body = json!({ "person": principal, "keysRevoked": revoked });
            let entry = NewAuditEntry { at: now, principal, run: None, kind: "person removed", body };
            log.append(connection, std::iter::once(entry))?;
            Ok(Some(revoked))
        })
    }

    /// Sets the passphrase of the operator of gateways that share a database, with an audit entry.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change cannot be stored.
    pub fn set_operator_passphrase(&self, hash: String, now: i64) -> Result<(), Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let log = self.begin_audit()?;
        let operator = Person {
            principal: Principal::local(),
            role: Role::Admin,
            passphrase: hash,
            created_at: now,
            changed_at: now,
        };
        self.change(Urgency::Durable, move |connection| {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO person (principal, role, passphrase, created_at, changed_at, mark)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    operator.principal.0,
                    operator.role.as_str(),
                    operator.passphrase,
                    now,
                    now,
                    operator.mark(&keys.clients),
                ])?;
            log.append(connection, std::iter::once(operator.audit("passphrase changed", now)))?;
            Ok(())
        })
    }

    /// The hash of the passphrase of the operator of gateways that share a database; `None` if none is set there.
    ///
    /// # Errors
    /// The database cannot be read, or the key file beside it cannot be used.
    pub fn operator_passphrase(&self) -> Result<Option<String>, Error> {
        let all = self.everybody()?;
        Ok(all
            .into_iter()
            .find(|person| person.principal == Principal::local())
            .map(|known| known.passphrase))
    }

    /// The people who may sign in beside the operator, by name.
    ///
    /// # Errors
    /// The database cannot be read, or the key file beside it cannot be used.
    pub fn people(&self) -> Result<Vec<Person>, Error> {
        let mut all = self.everybody()?;
        all.retain(|person| person.principal != Principal::local());
        Ok(all)
    }

    fn everybody(&self) -> Result<Vec<Person>, Error> {
        let is_empty = self.read(|connection| {
            Ok(!connection.prepare_cached("SELECT 1 FROM person LIMIT 1")?.exists([])?)
        })?;
        if is_empty {
            return Ok(Vec::new());
        }
        let keys = self.inner.authenticator.master.keys(|| Ok(true))?;
        self.read(|connection| authentic(connection, &keys.clients))
    }
}

/// The rows that this module wrote.
fn authentic(connection: &Connection, marks: &MarkKey) -> rusqlite::Result<Vec<Person>> {
    let stored: Vec<Option<(Person, String)>> = connection
        .prepare_cached(
            "SELECT principal, role, passphrase, created_at, changed_at, mark FROM person ORDER BY principal",
        )?
        .query_map([], person)?
        .collect::<rusqlite::Result<_>>()?;
    let ours = |(person, mark): (Person, String)| (mark == person.mark(marks)).then_some(person);
    Ok(stored.into_iter().flatten().filter_map(ours).collect())
}

fn person(row: &Row<'_>) -> rusqlite::Result<Option<(Person, String)>> {
    let role: String = row.get(1)?;
    let Some(role) = Role::parse(&role) else { return Ok(None) };
    let person = Person {
        principal: Principal(row.get(0)?),
        role,
        passphrase: row.get(2)?,
        created_at: row.get(3)?,
        changed_at: row.get(4)?,
    };
    Ok(Some((person, row.get(5)?)))
}
