//! What a person last allowed each tool to be called with, so that the next question can say what is different.
//!
//! It is sealed with a key of its own, made of the one beside the database, and not with the key of the run it was for:
//! that one is destroyed with the run's results, within the hour where nobody says otherwise, and what is different is
//! asked for by later runs. What cannot be opened counts as never allowed: whoever can alter a row can take it out, too.

use pml_model::{Digest, Principal};
use rusqlite::{Connection, OptionalExtension, params};

use crate::column::digest;
use crate::seal::{Key, Words};
use crate::{BlockingStore, Error, Urgency};

/// What a person allowed a tool to be called with, in one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// `server:tool`.
    pub tool: String,
    /// The tool's definition then.
    pub definition: Digest,
    /// The arguments of each call, JSON.
    pub arguments: Vec<String>,
}

impl BlockingStore {
    /// What was last allowed for each of `tools`; nothing of those for which nothing was.
    ///
    /// # Errors
    /// The database cannot be read, or the key file not be used.
    pub fn last_allowed(&self, principal: &Principal, tools: &[String]) -> Result<Vec<Allowed>, Error> {
        let sealed = self.read(|connection| {
            let mut one = connection.prepare_cached(
                "SELECT tool, definition, at, body FROM allowed WHERE principal = ?1 AND tool = ?2",
            )?;
            let mut row = |tool: &String| {
                one.query_row(params![principal.0, tool], |row| {
                    let (tool, definition) = (row.get(0)?, digest(row, 1)?);
                    Ok(Sealed { tool, definition, at: row.get(2)?, body: row.get(3)? })
                })
                .optional()
            };
            tools.iter().filter_map(|tool| row(tool).transpose()).collect::<rusqlite::Result<Vec<_>>>()
        })?;
        if sealed.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.inner.voucher.master.keys(|| Ok(true))?;
        Ok(sealed.into_iter().filter_map(|sealed| sealed.open(&keys.allowed, principal)).collect())
    }

    /// Forgets what was last allowed at that time or earlier.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn forget_allowed(&self, until: i64) -> Result<(), Error> {
        let any = self.read(|connection| {
            connection.prepare_cached("SELECT 1 FROM allowed WHERE at <= ?1")?.exists([until])
        })?;
        if !any {
            return Ok(());
        }
        self.change(Urgency::Soon, move |connection| {
            // Unlike that of a run, the key stays: the bodies may not lie about in free pages.
            connection.execute_batch("PRAGMA secure_delete = ON")?;
            let forgotten = connection
                .prepare_cached("DELETE FROM allowed WHERE at <= ?1")
                .and_then(|mut delete| delete.execute([until]));
            connection.execute_batch("PRAGMA secure_delete = OFF")?;
            forgotten?;
            Ok(())
        })
    }

    /// Seals what was allowed, ready to be stored in the transaction of the answer that allows it.
    pub(crate) fn seal_allowed(
        &self,
        principal: &Principal,
        allowed: Vec<Allowed>,
        at: i64,
    ) -> Result<Vec<Sealed>, Error> {
        if allowed.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.inner.voucher.master.keys(|| self.uses_key())?;
        let seal = |Allowed { tool, definition, arguments }: Allowed| {
            let body = serde_json::to_vec(&arguments).expect("texts are plain data");
            let body = keys.allowed.seal_words(&words(principal, &tool, &definition, at), &body)?;
            Ok(Sealed { tool, definition, at, body })
        };
        allowed.into_iter().map(seal).collect()
    }
}

/// What was allowed, sealed.
pub(crate) struct Sealed {
    tool: String,
    definition: Digest,
    at: i64,
    body: Vec<u8>,
}

impl Sealed {
    fn open(self, key: &Key, principal: &Principal) -> Option<Allowed> {
        let Sealed { tool, definition, at, body } = self;
        let body = key.open_words(&words(principal, &tool, &definition, at), body)?;
        Some(Allowed { tool, definition, arguments: serde_json::from_slice(&body).ok()? })
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

/// All that is stored beside a body belongs to its place.
fn words(principal: &Principal, tool: &str, definition: &Digest, at: i64) -> Words {
    Words::new().word("allowed").word(&principal.0).word(tool).word(definition.as_str()).number(at)
}
