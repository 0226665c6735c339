//! Questions of runs, and their answers.

use std::sync::Arc;

use crate::sql::{Connection, OptionalExtension, params};
use pml_model::question::{Answer, LayerDecision, Question};
use pml_model::{Digest, Principal, RunId, ToolId};

use super::place::{answer_context, seal_body};
use super::read::{ROW, find_run, open_question, run_row, voided_by, wrapped_key};
use super::{AnswerOutcome, AskingMark, AskingRun, NewAnswer};
use crate::allowed::SealedArguments;
use crate::audit::AuditBatch;
use crate::column::digest;
use crate::rule;
use crate::seal::DerivedKeys;
use crate::writer::WriteFailure;
use crate::{BlockingStore, Error, NewApprovalRule, Urgency};

/// Query for the runs of a principal with open questions, each with its wrapped key and sealed question. The index
/// holds only open questions, and `approvals.open` keeps them few.
pub(super) fn asking_statement() -> String {
    format!(
        "SELECT {ROW}, wrapped, body FROM run INDEXED BY run_asks
            JOIN run_key ON run_key.run = number
            JOIN run_body ON run_body.run = number AND part = 'question'
         WHERE question_id IS NOT NULL AND ended_at IS NULL AND answered = 0
            AND principal = ?1 ORDER BY number"
    )
}

impl BlockingStore {
    /// The runs of a principal with an unanswered question, oldest first. Questions that cannot be opened are left
    /// out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn asking_runs(&self, principal: &Principal) -> Result<Vec<AskingRun>, Error> {
        let sealed: Vec<_> = self.read(|connection| {
            connection
                .prepare_cached(&asking_statement())?
                .query_map([&principal.0], |row| Ok((run_row(row)?, row.get("wrapped")?, row.get("body")?)))?
                .collect()
        })?;
        let open = |(run, wrapped, body)| -> Option<AskingRun> {
            let key = self.run_key(&run, wrapped).ok()??;
            let (id, question): (String, Question) = open_question(&key, &run, body).ok()??;
            Some(AskingRun { run, id, question })
        };
        Ok(sealed.into_iter().filter_map(open).collect())
    }

    /// Whether the questions of [`BlockingStore::asking_runs`] are the same as before, without opening any.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn asking_mark(&self, principal: &Principal) -> Result<AskingMark, Error> {
        self.read(|connection| {
            // The id of a question is a digest of what it asks.
            let mut statement = connection.prepare_cached(
                "SELECT id, question_id, updated_at, expires_at FROM run INDEXED BY run_asks
                 WHERE question_id IS NOT NULL AND ended_at IS NULL AND answered = 0
                    AND principal = ?1 ORDER BY number",
            )?;
            let mut mark = AskingMark { digest: Digest::of(principal.0.as_bytes()), runs: 0 };
            let rows = statement.query_map([&principal.0], |row| {
                let (run, question): (String, String) = (row.get(0)?, row.get(1)?);
                let (updated, expires): (i64, Option<i64>) = (row.get(2)?, row.get(3)?);
                Ok(format!("{run} {question} {updated} {expires:?}"))
            })?;
            for row in rows {
                let row = row?;
                mark.digest = Digest::of(format!("{} {row}", mark.digest).as_bytes());
                mark.runs += 1;
            }
            Ok(mark)
        })
    }

    /// The principal that a run belongs to; `None` if there is no such run.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn run_principal(&self, id: &RunId) -> Result<Option<Principal>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT principal FROM run WHERE id = ?1")?
                .query_row([id.as_str()], |row| row.get(0).map(Principal))
                .optional()
        })
    }

    /// Stores the answer to a run's question, also while a process executes the run. The first answer counts.
    /// Everything that comes with it, rules included, is stored only with the first answer, in the same transaction.
    /// An expired run asks nothing, and a question that showed another definition of a tool cannot be answered.
    ///
    /// # Errors
    /// The answer could not be sealed or stored.
    pub fn store_answer(
        &self,
        principal: &Principal,
        id: &RunId,
        new: NewAnswer,
    ) -> Result<AnswerOutcome, Error> {
        let found = self.read(|connection| {
            let Some((number, run)) = find_run(connection, principal, id)? else { return Ok(None) };
            Ok(Some((number, wrapped_key(connection, number)?, run)))
        })?;
        let Some((number, wrapped, run)) = found else { return Ok(AnswerOutcome::Unknown) };
        let asks = run.question_id.as_deref() == Some(new.question_id.as_str());
        let Some(key) = self.run_key(&run, wrapped)?.filter(|_| asks) else {
            return Ok(AnswerOutcome::NotAsked);
        };
        let text = serde_json::to_vec(&new.answer).expect("an answer is plain data");
        let place = answer_context(id, &new.question_id, principal, new.at);
        let given = SealedNewAnswer {
            principal: principal.clone(),
            at: new.at,
            body: seal_body(&key, &place, &text)?,
            shows: new.shown_definitions,
            allowed: self.seal_allowed(principal, new.allowed, new.at)?,
            rules: self.new_rules(new.rules)?,
            log: self.prepare_audit(new.audit)?,
            replans: matches!(new.answer, Answer::Layer(LayerDecision::Replan { .. })),
            question_id: new.question_id,
        };
        self.change(Urgency::Durable, move |connection| given.store(connection, number))
    }

    fn new_rules(
        &self,
        rules: Vec<(NewApprovalRule, crate::NewAuditEntry)>,
    ) -> Result<Option<NewRules>, Error> {
        if rules.is_empty() {
            return Ok(None);
        }
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let logged = |(rule, audit)| Ok::<_, Error>((rule, self.prepare_audit(vec![audit])?));
        Ok(Some(NewRules { keys, rules: rules.into_iter().map(logged).collect::<Result<_, _>>()? }))
    }

    /// Requests that a run which has not ended pauses before its next layer, in whichever process it runs.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn request_pause(&self, principal: &Principal, id: &RunId) -> Result<(), Error> {
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

/// Approval rules to be stored with an answer, and the key that marks them.
struct NewRules {
    keys: Arc<DerivedKeys>,
    rules: Vec<(NewApprovalRule, AuditBatch)>,
}

/// An answer to be stored, sealed.
struct SealedNewAnswer {
    question_id: String,
    principal: Principal,
    at: i64,
    body: Vec<u8>,
    shows: Vec<(String, Digest)>,
    allowed: Vec<SealedArguments>,
    rules: Option<NewRules>,
    /// The answer makes the run differ from its request, so a repeated request must not find it any more.
    replans: bool,
    log: AuditBatch,
}

impl SealedNewAnswer {
    fn store(self, connection: &Connection, run: i64) -> Result<AnswerOutcome, WriteFailure> {
        let asks: Option<bool> = connection
            .prepare_cached(
                "SELECT coalesce(question_id = ?2, FALSE) AND ended_at IS NULL AND coalesce(expires_at > ?3, TRUE)
                 FROM run WHERE number = ?1",
            )?
            .query_row(params![run, self.question_id, self.at], |row| row.get(0))
            .optional()?;
        if asks != Some(true) {
            return Ok(AnswerOutcome::NotAsked);
        }
        if let Some(tool) = self.changed(connection, run)? {
            return Ok(AnswerOutcome::DefinitionChanged { tool });
        }
        let stored = connection
            .prepare_cached(
                "INSERT OR IGNORE INTO answer (run, question_id, principal, at, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![run, self.question_id, self.principal.0, self.at, self.body])?;
        if stored == 0 {
            return Ok(AnswerOutcome::AlreadyAnswered);
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
                rule::insert_rule(connection, &keys.rules, new, &log)?;
            }
        }
        self.log.store(connection)?;
        Ok(AnswerOutcome::Stored)
    }

    /// The tool whose definition is not the one the question shows, or was another one in between. The question is
    /// void from now on, even if that was not recorded when the definition changed.
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
            // Built-in tools have no row: their definitions change only with the program, and then the call itself is
            // refused.
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
