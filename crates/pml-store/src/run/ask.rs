//! What runs ask, and what is answered.

use std::sync::Arc;

use pml_model::question::{Answer, Onward, Question};
use pml_model::{Digest, Principal, RunId, ToolId};
use rusqlite::{Connection, OptionalExtension, params};

use super::place::{answer_place, seal};
use super::read::{ROW, find, open_question, run_row, voided_by, wrapped_key};
use super::{Answered, Asking, NewAnswer};
use crate::allowed::Sealed;
use crate::audit::Log;
use crate::column::digest;
use crate::rule;
use crate::seal::Keys;
use crate::writer::Failure;
use crate::{BlockingStore, Error, NewRule, Urgency};

/// The runs whose questions are open, each with its key and what it asks.
pub(super) fn asking_statement() -> String {
    format!(
        "SELECT {ROW}, wrapped, body FROM run INDEXED BY run_asks
            JOIN run_key ON run_key.run = number
            JOIN run_body ON run_body.run = number AND part = 'question'
         WHERE question_id IS NOT NULL AND ended_at IS NULL AND answered = 0 ORDER BY number"
    )
}

impl BlockingStore {
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
    /// what comes with it, rules included, is stored only with that one, in the same transaction. A run that may not
    /// wait any longer asks nothing, and a question that showed another definition of a tool is answered by nobody.
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
            body: seal(&key, &place, &text)?,
            shows: new.shows,
            allowed: self.seal_allowed(principal, new.allowed, new.at)?,
            rules: self.new_rules(new.rules)?,
            log: self.log(new.audit)?,
            replans: matches!(new.answer, Answer::Layer(Onward::Replan { .. })),
            question_id: new.question_id,
        };
        self.change(Urgency::Durable, move |connection| given.store(connection, number))
    }

    fn new_rules(&self, rules: Vec<(NewRule, crate::Audit)>) -> Result<Option<NewRules>, Error> {
        if rules.is_empty() {
            return Ok(None);
        }
        let keys = self.inner.voucher.master.keys(|| self.uses_key())?;
        let logged = |(rule, audit)| Ok::<_, Error>((rule, self.log(vec![audit])?));
        Ok(Some(NewRules { keys, rules: rules.into_iter().map(logged).collect::<Result<_, _>>()? }))
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

/// Rules to be, with what vouches for them.
struct NewRules {
    keys: Arc<Keys>,
    rules: Vec<(NewRule, Log)>,
}

/// An answer, sealed.
struct Given {
    question_id: String,
    principal: Principal,
    at: i64,
    body: Vec<u8>,
    shows: Vec<(String, Digest)>,
    allowed: Vec<Sealed>,
    rules: Option<NewRules>,
    /// The run is no longer what was asked for, so that a repeated request does not find it.
    replans: bool,
    log: Log,
}

impl Given {
    fn store(self, connection: &Connection, run: i64) -> Result<Answered, Failure> {
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
        if let Some(tool) = self.changed(connection, run)? {
            return Ok(Answered::Changed { tool });
        }
        let stored = connection
            .prepare_cached(
                "INSERT OR IGNORE INTO answer (run, question_id, principal, at, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![run, self.question_id, self.principal.0, self.at, self.body])?;
        if stored == 0 {
            return Ok(Answered::AlreadyAnswered);
        }
        connection
            .prepare_cached(
                "UPDATE run SET answered = 1, request_mark = CASE WHEN ?2 THEN NULL ELSE request_mark END
                 WHERE number = ?1",
            )?
            .execute(params![run, self.replans])?;
        for allowed in &self.allowed {
            allowed.store(connection, &self.principal)?;
        }
        if let Some(NewRules { keys, rules }) = self.rules {
            for (new, log) in rules {
                rule::add(connection, &keys.rules, new, &log)?;
            }
        }
        self.log.store(connection)?;
        Ok(Answered::Stored)
    }

    /// The tool whose definition is not the one the question shows, or was another in between. Then the question is
    /// void from now on, also where nothing noted that when the definition changed.
    fn changed(&self, connection: &Connection, run: i64) -> rusqlite::Result<Option<String>> {
        if let Some(tool) = voided_by(connection, run)? {
            return Ok(Some(tool));
        }
        let mut present = connection.prepare_cached(
            "SELECT definition.digest FROM tool JOIN definition ON definition.id = tool.definition
             WHERE tool.principal = ?1 AND tool.server = ?2 AND tool.tool = ?3",
        )?;
        for (name, shown) in &self.shows {
            let Ok(id) = ToolId::parse(name) else { continue };
            // Built-in tools have no row: their definitions change with the program alone, and then the call is refused.
            let now = present
                .query_row([self.principal.0.as_str(), id.server.as_str(), &id.tool], |row| digest(row, 0))
                .optional()?;
            if now.is_some_and(|now| now != *shown) {
                connection
                    .prepare_cached("UPDATE run SET voided_by = ?2, answered = 1 WHERE number = ?1")?
                    .execute(params![run, name])?;
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    }
}
