//! The arguments that a person last approved for each tool, so that the next question can show what differs.
//!
//! They are sealed with a key derived from the master key, not with the key of their run. The key of a run is
//! destroyed with the run's records, within the hour by default, while later runs need the comparison. Arguments that
//! cannot be opened count as never approved: whoever can alter a row could delete it as well.

use crate::sql::{Connection, OptionalExtension, params};
use pml_model::{Digest, Principal};

use crate::column::digest;
use crate::seal::{AuthenticatedData, SealKey};
use crate::{BlockingStore, Error, Urgency};

/// The arguments that a person approved for a tool, in one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedArguments {
    /// `server:tool`.
    pub tool: String,
    /// Digest of the tool's definition at that time.
    pub definition: Digest,
    /// The arguments of each call, as JSON.
    pub arguments: Vec<String>,
}

impl BlockingStore {
    /// The arguments last approved for each of `tools`; tools without an approval are left out.
    ///
    /// # Errors
    /// The database cannot be read, or the key file cannot be used.
    pub fn last_allowed_arguments(
        &self,
        principal: &Principal,
        tools: &[String],
    ) -> Result<Vec<AllowedArguments>, Error> {
        let sealed = self.read(|connection| {
            let mut one = connection.prepare_cached(
                "SELECT tool, definition, at, body FROM allowed WHERE principal = ?1 AND tool = ?2",
            )?;
            let mut row = |tool: &String| {
                one.query_row(params![principal.0, tool], |row| {
                    let (tool, definition) = (row.get(0)?, digest(row, 1)?);
                    Ok(SealedArguments { tool, definition, at: row.get(2)?, body: row.get(3)? })
                })
                .optional()
            };
            tools.iter().filter_map(|tool| row(tool).transpose()).collect::<rusqlite::Result<Vec<_>>>()
        })?;
        if sealed.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.inner.authenticator.master.keys(|| Ok(true))?;
        Ok(sealed.into_iter().filter_map(|sealed| sealed.open(&keys.allowed, principal)).collect())
    }

    /// Deletes the arguments that were approved at that time or earlier.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn forget_allowed_arguments(&self, until: i64) -> Result<(), Error> {
        let any = self.read(|connection| {
            connection.prepare_cached("SELECT 1 FROM allowed WHERE at <= ?1")?.exists([until])
        })?;
        if !any {
            return Ok(());
        }
        self.change(Urgency::Soon, move |connection| {
            // Unlike the key of a run, this key is kept: the bodies must not remain in free pages.
            connection.execute_batch("PRAGMA secure_delete = ON")?;
            let forgotten = connection
                .prepare_cached("DELETE FROM allowed WHERE at <= ?1")
                .and_then(|mut delete| delete.execute([until]));
            connection.execute_batch("PRAGMA secure_delete = OFF")?;
            forgotten?;
            Ok(())
        })
    }

    /// Seals approved arguments, to be stored in the transaction of the answer that approves them.
    pub(crate) fn seal_allowed(
        &self,
        principal: &Principal,
        allowed: Vec<AllowedArguments>,
        at: i64,
    ) -> Result<Vec<SealedArguments>, Error> {
        if allowed.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let seal = |AllowedArguments { tool, definition, arguments }: AllowedArguments| {
            let body = serde_json::to_vec(&arguments).expect("texts are plain data");
            let body = keys.allowed.seal_data(&words(principal, &tool, &definition, at), &body)?;
            Ok(SealedArguments { tool, definition, at, body })
        };
        allowed.into_iter().map(seal).collect()
    }
}

/// Approved arguments, sealed.
pub(crate) struct SealedArguments {
    tool: String,
    definition: Digest,
    at: i64,
    body: Vec<u8>,
}

impl SealedArguments {
    fn open(self, key: &SealKey, principal: &Principal) -> Option<AllowedArguments> {
        let SealedArguments { tool, definition, at, body } = self;
        let body = key.open_data(&words(principal, &tool, &definition, at), body)?;
        Some(AllowedArguments { tool, definition, arguments: serde_json::from_slice(&body).ok()? })
    }

    pub(crate) fn store(&self, connection: &Connection, principal: &Principal) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO allowed (principal, tool, definition, at, body)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![principal.0, self.tool, self.definition.as_str(), self.at, self.body])
            .map(drop)
    }
}

/// The authenticated context of a body: everything that is stored beside it.
fn words(principal: &Principal, tool: &str, definition: &Digest, at: i64) -> AuthenticatedData {
    AuthenticatedData::new()
        .text("allowed")
        .text(&principal.0)
        .text(tool)
        .text(definition.as_str())
        .number(at)
}
