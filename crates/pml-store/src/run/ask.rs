//! What runs ask, and what is answered.

use pml_model::question::Question;
use pml_model::{Principal, RunId};
use rusqlite::{Connection, OptionalExtension, params};

use super::read::{ROW, answer_place, find, open_question, run_row, wrapped_key};
use super::{Answered, Asking, NewAnswer};
use crate::allowed::Sealed;
use crate::audit::Log;
use crate::writer::Failure;
use crate::{Error, Store, Urgency};

/// The runs whose questions are open, each with its key and what it asks.
pub(super) fn asking_statement() -> String {
    format!(
        "SELECT {ROW}, wrapped, body FROM run INDEXED BY run_asks
            JOIN run_key ON run_key.run = number
            JOIN run_body ON run_body.run = number AND part = 'question'
         WHERE question_id IS NOT NULL AND ended_at IS NULL AND answered = 0 ORDER BY number"
    )
}

impl Store {
    /// The runs of all principals that ask something nobody has answered, the one made first comes
    /// first. What cannot be opened is left out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn asking(&self) -> Result<Vec<Asking>, Error> {
        let sealed: Vec<_> = self.read(|connection| {
            connection
                .prepare_cached(&asking_statement())?
                .query_map([], |row| Ok((run_row(row)?, row.get("wrapped")?, row.get("body")?)))?
                .collect()
        })?;
        let open = |(run, wrapped, body)| -> Option<Asking> {
            let key = self.key(&run, wrapped).ok()??;
            let (id, question): (String, Question) = open_question(&key, &run, body).ok()??;
            Some(Asking { run, id, question })
        };
        Ok(sealed.into_iter().filter_map(open).collect())
    }

    /// Whose a run is.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn whose(&self, id: &RunId) -> Result<Option<Principal>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT principal FROM run WHERE id = ?1")?
                .query_row([id.as_str()], |row| row.get(0).map(Principal))
                .optional()
        })
    }

    /// Answers what a run asks, also while a process works on it. The first answer is the answer;
    /// what comes with it is stored only with that one. A run that may not wait any longer asks nothing.
    ///
    /// # Errors
    /// The answer could not be sealed or stored.
    pub fn answer(&self, principal: &Principal, id: &RunId, new: NewAnswer) -> Result<Answered, Error> {
        let found = self.read(|connection| {
            let Some((number, run)) = find(connection, principal, id)? else { return Ok(None) };
            Ok(Some((number, wrapped_key(connection, number)?, run)))
        })?;
        let Some((number, wrapped, run)) = found else { return Ok(Answered::Unknown) };
        let asks = run.question_id.as_deref() == Some(new.question_id.as_str());
        let Some(key) = self.key(&run, wrapped)?.filter(|_| asks) else { return Ok(Answered::Gone) };
        let text = serde_json::to_vec(&new.answer).expect("an answer is plain data");
        let place = answer_place(id, &new.question_id, principal, new.at);
        let given = Given {
            principal: principal.clone(),
            at: new.at,
            body: super::append::seal(&key, &place, &text)?,
            allowed: self.seal_allowed(principal, new.allowed, new.at)?,
            log: self.log(new.audit)?,
            question_id: new.question_id,
        };
        self.change(Urgency::Durable, move |connection| given.store(connection, number))
    }

    /// Notes that a run which is not over is to wait before its next layer, whichever process works on it.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn want_pause(&self, principal: &Principal, id: &RunId) -> Result<(), Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.change(Urgency::Soon, move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO run_body (run, part, body)
                     SELECT number, 'pause', x'' FROM run
                     WHERE principal = ?1 AND id = ?2 AND ended_at IS NULL
                     ON CONFLICT DO NOTHING",
                )?
                .execute([&principal.0, id.as_str()])?;
            Ok(())
        })
    }
}

/// An answer, sealed.
struct Given {
    question_id: String,
    principal: Principal,
    at: i64,
    body: Vec<u8>,
    allowed: Vec<Sealed>,
    log: Log,
}

impl Given {
    fn store(&self, connection: &Connection, run: i64) -> Result<Answered, Failure> {
        let asks: Option<bool> = connection
            .prepare_cached(
                "SELECT coalesce(question_id = ?2, 0) AND ended_at IS NULL AND coalesce(expires_at > ?3, 1)
                 FROM run WHERE number = ?1",
            )?
            .query_row(params![run, self.question_id, self.at], |row| row.get(0))
            .optional()?;
        if asks != Some(true) {
            return Ok(Answered::Gone);
        }
        let stored = connection
            .prepare_cached(
                "INSERT OR IGNORE INTO answer (run, question_id, principal, at, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![run, self.question_id, self.principal.0, self.at, self.body])?;
        if stored == 0 {
            return Ok(Answered::AlreadyAnswered);
        }
        connection.prepare_cached("UPDATE run SET answered = 1 WHERE number = ?1")?.execute([run])?;
        for allowed in &self.allowed {
            allowed.store(connection, &self.principal)?;
        }
        self.log.store(connection)?;
        Ok(Answered::Stored)
    }
}
