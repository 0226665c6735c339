//! Approval rules: what people approved for later runs too, so that they are not asked again.
//!
//! A rule is in force until it expires or is revoked. Each row carries a mark made with the key beside the database. A
//! row that was inserted or altered by other means has no valid mark; it is neither in force nor listed. Whether a
//! rule covers a call is not decided here.

use crate::sql::{Connection, Row, params};
use pml_model::{Digest, Principal, ServerName};
use serde_json::json;

use crate::audit::{AuditBatch, NewAuditEntry};
use crate::column::{digest, optional_digest};
use crate::seal::{AuthenticatedData, MarkKey};
use crate::vouch::vouched_condition;
use crate::writer::WriteFailure;
use crate::{BlockingStore, Error, Urgency};

/// Who made a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleMaker {
    /// A person, in a way that is not open to a program with a shell or a token.
    Person,
    /// Not recorded, or a client: rules of earlier versions.
    Unknown,
}

/// A rule to be added. Only people make rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApprovalRule {
    /// The principal whose runs it covers.
    pub principal: Principal,
    /// `server:tool`.
    pub tool: String,
    /// Digest of the tool's definition; the rule does not cover any other definition.
    pub definition: Digest,
    /// Hash of the code it covers; `None` for any code.
    pub code_hash: Option<String>,
    /// Digest of the arguments it covers; `None` for any arguments.
    pub arguments: Option<Digest>,
    /// When it expires.
    pub expires_at: i64,
    /// The channel through which the person gave it.
    pub by: String,
    /// Current time.
    pub now: i64,
}

/// A stored approval rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRule {
    /// Number of the rule, never reused.
    pub number: i64,
    /// The principal whose runs it covers.
    pub principal: Principal,
    /// `server:tool`.
    pub tool: String,
    /// Digest of the tool's definition; the rule does not cover any other definition.
    pub definition: Digest,
    /// Hash of the code it covers; `None` for any code.
    pub code_hash: Option<String>,
    /// Digest of the arguments it covers; `None` for any arguments.
    pub arguments: Option<Digest>,
    /// When it expires.
    pub expires_at: i64,
    /// Who made the rule.
    pub maker: RuleMaker,
    /// The channel through which the person gave it.
    pub by: String,
    /// When it was added.
    pub created_at: i64,
    /// When it was revoked, voided or found expired; `None` until then.
    pub revoked_at: Option<i64>,
    /// Number of calls it has approved.
    pub uses: i64,
    /// When it was last used.
    pub used_at: Option<i64>,
}

/// A rule that ended without being revoked: it expired or was voided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRule {
    /// Number of the rule, as people give it.
    pub number: i64,
    /// The principal whose runs it covered.
    pub principal: Principal,
    /// `server:tool`.
    pub tool: String,
    /// Digest of the definition it covered.
    pub definition: Digest,
}

impl EndedRule {
    /// The audit entry about its end.
    pub(crate) fn audit_entry(&self, kind: &'static str, at: i64) -> NewAuditEntry {
        let body = json!({ "rule": self.number, "tool": self.tool, "definition": self.definition });
        NewAuditEntry { at, principal: self.principal.clone(), run: None, kind, body }
    }
}

impl BlockingStore {
    /// The mark of `words`, which only a holder of the key beside the database can make. It is the same in every
    /// process on this database and after every start.
    ///
    /// # Errors
    /// The key file cannot be used.
    pub fn mark_request(&self, words: &[String]) -> Result<String, Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        Ok(keys.requests.mark(&words.iter().fold(AuthenticatedData::new(), AuthenticatedData::text)))
    }

    /// Seals what a client carries from one request to the next. Every process on this database can open it, also after
    /// a start; `purpose` is authenticated with it.
    ///
    /// # Errors
    /// The key file cannot be used.
    pub fn seal_carried(&self, purpose: &str, content: &[u8]) -> Result<Vec<u8>, Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        keys.carried.seal_data(&AuthenticatedData::new().text(purpose), content)
    }

    /// What was sealed for this purpose; `None` if it was not, or not with this key.
    ///
    /// # Errors
    /// The key file cannot be used.
    pub fn open_carried(&self, purpose: &str, sealed: Vec<u8>) -> Result<Option<Vec<u8>>, Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        Ok(keys.carried.open_data(&AuthenticatedData::new().text(purpose), sealed))
    }

    /// Adds a rule and returns its number. `audit` is stored with it.
    ///
    /// # Errors
    /// The key file cannot be used, or the change cannot be stored.
    pub fn add_rule(&self, rule: NewApprovalRule, audit: Vec<NewAuditEntry>) -> Result<i64, Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let log = self.prepare_audit(audit)?;
        self.change(Urgency::Durable, move |connection| insert_rule(connection, &keys.rules, rule, &log))
    }

    /// The principal's rules that are in force now, oldest first.
    ///
    /// # Errors
    /// The database cannot be read, or the key file cannot be used.
    pub fn rules_in_force(&self, principal: &Principal, now: i64) -> Result<Vec<ApprovalRule>, Error> {
        let mut rules = self.marked(self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {ROW} FROM approval_rule INDEXED BY approval_rule_in_force
                     WHERE principal = ?1 AND revoked_at IS NULL AND expires_at > ?2 AND {} ORDER BY number",
                    vouched_condition("approval_rule", "approval_rule")
                ))?
                .query_map(params![principal.0, now], rule)?
                .collect()
        })?)?;
        // The index may be damaged, so the conditions are checked on the rows themselves.
        rules.retain(|rule| {
            rule.principal == *principal && rule.revoked_at.is_none() && rule.expires_at > now
        });
        Ok(rules)
    }

    /// All rules that the principal has or had, newest first.
    ///
    /// # Errors
    /// The database cannot be read, or the key file cannot be used.
    pub fn rules(&self, principal: &Principal) -> Result<Vec<ApprovalRule>, Error> {
        self.marked(self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {ROW} FROM approval_rule WHERE principal = ?1 AND {} ORDER BY number DESC",
                    vouched_condition("approval_rule", "approval_rule")
                ))?
                .query_map([&principal.0], rule)?
                .collect()
        })?)
    }

    /// Counts a use of a rule if it is in force now, and returns whether it is. `audit` is stored only if it is.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn use_rule(
        &self,
        principal: &Principal,
        number: i64,
        now: i64,
        audit: Vec<NewAuditEntry>,
    ) -> Result<bool, Error> {
        self.change_rule(
            "UPDATE approval_rule SET uses = uses + 1, used_at = ?3
             WHERE number = ?1 AND principal = ?2 AND revoked_at IS NULL AND expires_at > ?3",
            (principal, number, now),
            self.prepare_audit(audit)?,
        )
    }

    /// Revokes a rule and returns whether there was one to revoke. `audit` is stored only if there was.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn revoke_rule(
        &self,
        principal: &Principal,
        number: i64,
        now: i64,
        audit: Vec<NewAuditEntry>,
    ) -> Result<bool, Error> {
        self.change_rule(
            "UPDATE approval_rule SET revoked_at = ?3, mark = NULL
             WHERE number = ?1 AND principal = ?2 AND revoked_at IS NULL",
            (principal, number, now),
            self.prepare_audit(audit)?,
        )
    }

    /// Ends the expired rules of all principals, with an audit entry for each.
    ///
    /// # Errors
    /// The change could not be stored, or the key file cannot be used.
    pub fn end_expired_rules(&self, now: i64) -> Result<Vec<EndedRule>, Error> {
        let any = self.read(|connection| {
            connection
                .prepare_cached("SELECT 1 FROM approval_rule WHERE revoked_at IS NULL AND expires_at <= ?1")?
                .exists([now])
        })?;
        if !any {
            return Ok(Vec::new());
        }
        let log = self.begin_audit()?;
        self.change(Urgency::Durable, move |connection| {
            let mut expired: Vec<EndedRule> = connection
                .prepare_cached(
                    "UPDATE approval_rule SET revoked_at = expires_at, mark = NULL
                     WHERE revoked_at IS NULL AND expires_at <= ?1
                     RETURNING number, principal, tool, definition",
                )?
                .query_map([now], ended)?
                .collect::<rusqlite::Result<_>>()?;
            expired.sort_by_key(|rule| rule.number);
            log.append(connection, expired.iter().map(|rule| rule.audit_entry("rule expired", now)))?;
            Ok(expired)
        })
    }

    /// Whether the principal has rules for tools of this server that have not ended yet.
    pub(crate) fn has_rules(&self, principal: &Principal, server: &ServerName) -> Result<bool, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT 1 FROM approval_rule
                     WHERE principal = ?1 AND revoked_at IS NULL AND substr(tool, 1, length(?2) + 1) = ?2 || ':'",
                )?
                .exists([&principal.0, server.as_str()])
        })
    }

    fn change_rule(
        &self,
        statement: &'static str,
        (principal, number, now): (&Principal, i64, i64),
        log: AuditBatch,
    ) -> Result<bool, Error> {
        let principal = principal.clone();
        self.change(Urgency::Durable, move |connection| {
            let changed = connection.prepare_cached(statement)?.execute(params![number, principal.0, now])?;
            if changed > 0 {
                log.store(connection)?;
            }
            Ok(changed > 0)
        })
    }

    /// The rules among these that were revoked or carry a valid mark.
    fn marked(&self, rules: Vec<(ApprovalRule, Option<String>)>) -> Result<Vec<ApprovalRule>, Error> {
        if rules.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.inner.authenticator.master.keys(|| Ok(true))?;
        let ours = |(rule, mark): (ApprovalRule, Option<String>)| {
            let sound = match mark {
                Some(mark) => mark == mark_of(&keys.rules, &rule),
                None => rule.revoked_at.is_some(),
            };
            if !sound {
                self.inner.authenticator.report_damaged_row(format!("approval rule {}", rule.number));
            }
            sound.then_some(rule)
        };
        Ok(rules.into_iter().filter_map(ours).collect())
    }
}

/// Ends the rules for other definitions of a tool than this one. They stay void even if their definition returns.
pub(crate) fn void_rules(
    connection: &Connection,
    principal: &str,
    tool: &str,
    definition: &Digest,
    now: i64,
) -> rusqlite::Result<Vec<EndedRule>> {
    let mut voided: Vec<EndedRule> = connection
        .prepare_cached(
            "UPDATE approval_rule SET revoked_at = ?4, mark = NULL
             WHERE principal = ?1 AND tool = ?2 AND definition <> ?3 AND revoked_at IS NULL
             RETURNING number, principal, tool, definition",
        )?
        .query_map(params![principal, tool, definition.as_str(), now], ended)?
        .collect::<rusqlite::Result<_>>()?;
    voided.sort_by_key(|rule| rule.number);
    Ok(voided)
}

fn ended(row: &Row<'_>) -> rusqlite::Result<EndedRule> {
    let (number, principal) = (row.get(0)?, Principal(row.get(1)?));
    Ok(EndedRule { number, principal, tool: row.get(2)?, definition: digest(row, 3)? })
}

/// The columns that [`rule`] reads.
const ROW: &str =
    "number, principal, tool, definition, code_hash, arguments, expires_at, given_by, created_at,
    revoked_at, uses, used_at, maker, mark";

/// Reads a rule and its mark.
fn rule(row: &Row<'_>) -> rusqlite::Result<(ApprovalRule, Option<String>)> {
    let rule = ApprovalRule {
        number: row.get(0)?,
        principal: Principal(row.get(1)?),
        tool: row.get(2)?,
        definition: digest(row, 3)?,
        code_hash: row.get(4)?,
        arguments: optional_digest(row, 5)?,
        expires_at: row.get(6)?,
        by: row.get(7)?,
        created_at: row.get(8)?,
        revoked_at: row.get(9)?,
        uses: row.get(10)?,
        used_at: row.get(11)?,
        maker: match row.get::<_, Option<String>>(12)? {
            Some(_) => RuleMaker::Person,
            None => RuleMaker::Unknown,
        },
    };
    Ok((rule, row.get(13)?))
}

pub(crate) fn insert_rule(
    connection: &Connection,
    marks: &MarkKey,
    new: NewApprovalRule,
    log: &AuditBatch,
) -> Result<i64, WriteFailure> {
    // Rules are never deleted, so no number is given twice.
    let number = connection
        .prepare_cached("SELECT coalesce(max(number), 0) + 1 FROM approval_rule")?
        .query_row([], |row| row.get(0))?;
    let rule = ApprovalRule {
        number,
        principal: new.principal,
        tool: new.tool,
        definition: new.definition,
        code_hash: new.code_hash,
        arguments: new.arguments,
        expires_at: new.expires_at,
        maker: RuleMaker::Person,
        by: new.by,
        created_at: new.now,
        revoked_at: None,
        uses: 0,
        used_at: None,
    };
    connection
        .prepare_cached(
            "INSERT INTO approval_rule (number, principal, tool, definition, code_hash, arguments, expires_at,
                given_by, created_at, maker, mark)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'person', ?10)",
        )?
        .execute(params![
            rule.number,
            rule.principal.0,
            rule.tool,
            rule.definition.as_str(),
            rule.code_hash,
            rule.arguments.as_ref().map(Digest::as_str),
            rule.expires_at,
            rule.by,
            rule.created_at,
            mark_of(marks, &rule),
        ])?;
    log.store(connection)?;
    Ok(number)
}

/// The mark of what a rule allows, and to whom.
fn mark_of(marks: &MarkKey, rule: &ApprovalRule) -> String {
    let row = AuthenticatedData::new()
        .number(rule.number)
        .text(&rule.principal.0)
        .text(&rule.tool)
        .text(rule.definition.as_str())
        .optional(rule.code_hash.as_deref())
        .optional(rule.arguments.as_ref().map(Digest::as_str))
        .number(rule.expires_at)
        .text(&rule.by)
        .number(rule.created_at);
    // Rules of earlier versions were marked without a maker; their marks have to stay valid.
    marks.mark(&match rule.maker {
        RuleMaker::Person => row.text("person"),
        RuleMaker::Unknown => row,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_an_earlier_version_is_kept_without_a_maker_and_cannot_be_given_one() {
        let directory = tempfile::tempdir().unwrap();
        let store = BlockingStore::open(&directory.path().join("pml.db")).unwrap();
        let new = NewApprovalRule {
            principal: Principal::local(),
            tool: "a:b".to_owned(),
            definition: Digest::of(b"definition"),
            code_hash: None,
            arguments: None,
            expires_at: 9000,
            by: "client `x`".to_owned(),
            now: 1000,
        };
        store.add_rule(new, Vec::new()).unwrap();
        let [rule] = store.rules(&Principal::local()).unwrap().try_into().unwrap();
        assert_eq!(rule.maker, RuleMaker::Person);
        let earlier = ApprovalRule { maker: RuleMaker::Unknown, ..rule };
        let keys = store.inner.authenticator.master.keys(|| Ok(true)).unwrap();
        let (mark, set) = (mark_of(&keys.rules, &earlier), "UPDATE approval_rule SET maker = ?1, mark = ?2");
        let put = |maker: Option<&'static str>| {
            let mark = mark.clone();
            store
                .change(Urgency::Soon, move |connection| Ok(connection.execute(set, params![maker, mark])?))
                .unwrap();
            store.rules_in_force(&Principal::local(), 2000).unwrap()
        };
        assert_eq!(put(None), std::slice::from_ref(&earlier));
        assert_eq!(put(Some("person")), [], "its mark does not vouch for a maker");
    }
}
