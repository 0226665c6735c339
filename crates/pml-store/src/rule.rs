//! What people allowed for later runs too, so that they are not asked the same again.
//!
//! A rule counts until it expires or is revoked. Each carries a mark that only this program makes: one
//! that was put into the database or altered there by other means counts for nothing and is not
//! listed. Whether a rule covers a call is not decided here.

use pml_model::{Digest, Principal, ServerName};
use rusqlite::{Connection, Row, params};
use serde_json::json;

use crate::audit::{Audit, Log};
use crate::column::{digest, optional_digest};
use crate::seal::{Marks, Words};
use crate::vouch::vouched;
use crate::writer::Failure;
use crate::{BlockingStore, Error, Urgency};

/// Who made a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// A person, in a way that no program with a shell or a token has.
    Person,
    /// It was not recorded, or a client did: rules of earlier versions.
    Unknown,
}

/// A rule to be. Only people make rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    /// Whose runs it is for.
    pub principal: Principal,
    /// `server:tool`.
    pub tool: String,
    /// The tool's definition; with another it is another tool.
    pub definition: Digest,
    /// The code it counts for; for any where there is none.
    pub code_hash: Option<String>,
    /// The arguments it counts for; for any where there are none.
    pub arguments: Option<Digest>,
    /// From when on it does not count any more.
    pub expires_at: i64,
    /// By what way it was given.
    pub by: String,
    /// The present time.
    pub now: i64,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRule {
    /// Its number, which no other rule has or had.
    pub number: i64,
    /// Whose runs it is for.
    pub principal: Principal,
    /// `server:tool`.
    pub tool: String,
    /// The tool's definition; with another it is another tool.
    pub definition: Digest,
    /// The code it counts for; for any where there is none.
    pub code_hash: Option<String>,
    /// The arguments it counts for; for any where there are none.
    pub arguments: Option<Digest>,
    /// From when on it does not count any more.
    pub expires_at: i64,
    /// Who made it.
    pub maker: Maker,
    /// By what way it was given.
    pub by: String,
    /// When it was given.
    pub created_at: i64,
    /// When it was taken back, voided or seen to have expired.
    pub revoked_at: Option<i64>,
    /// How often it was used.
    pub uses: i64,
    /// When it was last used.
    pub used_at: Option<i64>,
}

/// A rule that came to its end without anybody's taking it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRule {
    /// Its number.
    pub number: i64,
    /// Whose runs it was for.
    pub principal: Principal,
    /// `server:tool`.
    pub tool: String,
    /// The definition it was for.
    pub definition: Digest,
}

impl EndedRule {
    /// What the audit log is told of it.
    pub(crate) fn audit(&self, kind: &'static str, at: i64) -> Audit {
        let body = json!({ "rule": self.number, "tool": self.tool, "definition": self.definition });
        Audit { at, principal: self.principal.clone(), run: None, kind, body }
    }
}

impl BlockingStore {
    /// The mark of `words`, which nobody makes who does not have the key beside the database. It is the same for every
    /// process on it and after every start.
    ///
    /// # Errors
    /// The key file cannot be used.
    pub fn mark_request(&self, words: &[String]) -> Result<String, Error> {
        let keys = self.inner.voucher.master.keys(|| self.uses_key())?;
        Ok(keys.requests.mark(&words.iter().fold(Words::new(), Words::word)))
    }

    /// Adds a rule and gives its number. `audit` is stored with it.
    ///
    /// # Errors
    /// The key file cannot be used, or the change not be stored.
    pub fn add_rule(&self, rule: NewRule, audit: Vec<Audit>) -> Result<i64, Error> {
        let keys = self.inner.voucher.master.keys(|| self.uses_key())?;
        let log = self.log(audit)?;
        self.change(Urgency::Durable, move |connection| add(connection, &keys.rules, rule, &log))
    }

    /// The principal's rules that count now, oldest first.
    ///
    /// # Errors
    /// The database cannot be read, or the key file not be used.
    pub fn matching_rules(&self, principal: &Principal, now: i64) -> Result<Vec<ApprovalRule>, Error> {
        let mut rules = self.marked(self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {ROW} FROM approval_rule INDEXED BY approval_rule_in_force
                     WHERE principal = ?1 AND revoked_at IS NULL AND expires_at > ?2 AND {} ORDER BY number",
                    vouched("approval_rule", "approval_rule")
                ))?
                .query_map(params![principal.0, now], rule)?
                .collect()
        })?)?;
        // An index may be damaged, too: the rows themselves have to say so.
        rules.retain(|rule| {
            rule.principal == *principal && rule.revoked_at.is_none() && rule.expires_at > now
        });
        Ok(rules)
    }

    /// All rules the principal has or had, newest first.
    ///
    /// # Errors
    /// The database cannot be read, or the key file not be used.
    pub fn rules(&self, principal: &Principal) -> Result<Vec<ApprovalRule>, Error> {
        self.marked(self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {ROW} FROM approval_rule WHERE principal = ?1 AND {} ORDER BY number DESC",
                    vouched("approval_rule", "approval_rule")
                ))?
                .query_map([&principal.0], rule)?
                .collect()
        })?)
    }

    /// Counts a use of a rule, if it counts at this moment, and says whether it does. `audit` is
    /// stored only if it does.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn use_rule(
        &self,
        principal: &Principal,
        number: i64,
        now: i64,
        audit: Vec<Audit>,
    ) -> Result<bool, Error> {
        self.change_rule(
            "UPDATE approval_rule SET uses = uses + 1, used_at = ?3
             WHERE number = ?1 AND principal = ?2 AND revoked_at IS NULL AND expires_at > ?3",
            (principal, number, now),
            self.log(audit)?,
        )
    }

    /// Takes a rule back, and says whether there was anything to take back. `audit` is stored only if
    /// there was.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn revoke_rule(
        &self,
        principal: &Principal,
        number: i64,
        now: i64,
        audit: Vec<Audit>,
    ) -> Result<bool, Error> {
        self.change_rule(
            "UPDATE approval_rule SET revoked_at = ?3, mark = NULL
             WHERE number = ?1 AND principal = ?2 AND revoked_at IS NULL",
            (principal, number, now),
            self.log(audit)?,
        )
    }

    /// Ends the rules that have expired, of whomever, with an entry in the audit log for each.
    ///
    /// # Errors
    /// The change could not be stored, or the key file not be used.
    pub fn end_expired_rules(&self, now: i64) -> Result<Vec<EndedRule>, Error> {
        let any = self.read(|connection| {
            connection
                .prepare_cached("SELECT 1 FROM approval_rule WHERE revoked_at IS NULL AND expires_at <= ?1")?
                .exists([now])
        })?;
        if !any {
            return Ok(Vec::new());
        }
        let log = self.log_within()?;
        self.change(Urgency::Durable, move |connection| {
            let expired: Vec<EndedRule> = connection
                .prepare_cached(
                    "UPDATE approval_rule SET revoked_at = expires_at, mark = NULL
                     WHERE revoked_at IS NULL AND expires_at <= ?1
                     RETURNING number, principal, tool, definition",
                )?
                .query_map([now], ended)?
                .collect::<rusqlite::Result<_>>()?;
            log.tell(connection, expired.iter().map(|rule| rule.audit("rule expired", now)))?;
            Ok(expired)
        })
    }

    /// Whether the principal has rules for tools of a server that nothing has ended yet.
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
        log: Log,
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

    /// The rules among these that were taken back or carry our mark.
    fn marked(&self, rules: Vec<(ApprovalRule, Option<String>)>) -> Result<Vec<ApprovalRule>, Error> {
        if rules.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.inner.voucher.master.keys(|| Ok(true))?;
        let ours = |(rule, mark): (ApprovalRule, Option<String>)| {
            let sound = match mark {
                Some(mark) => mark == mark_of(&keys.rules, &rule),
                None => rule.revoked_at.is_some(),
            };
            if !sound {
                self.inner.voucher.note(format!("approval rule {}", rule.number));
            }
            sound.then_some(rule)
        };
        Ok(rules.into_iter().filter_map(ours).collect())
    }
}

/// Ends the rules for other definitions of a tool than this one: they stay void should theirs come back.
pub(crate) fn void(
    connection: &Connection,
    principal: &str,
    tool: &str,
    definition: &Digest,
    now: i64,
) -> rusqlite::Result<Vec<EndedRule>> {
    connection
        .prepare_cached(
            "UPDATE approval_rule SET revoked_at = ?4, mark = NULL
             WHERE principal = ?1 AND tool = ?2 AND definition <> ?3 AND revoked_at IS NULL
             RETURNING number, principal, tool, definition",
        )?
        .query_map(params![principal, tool, definition.as_str(), now], ended)?
        .collect()
}

fn ended(row: &Row<'_>) -> rusqlite::Result<EndedRule> {
    let (number, principal) = (row.get(0)?, Principal(row.get(1)?));
    Ok(EndedRule { number, principal, tool: row.get(2)?, definition: digest(row, 3)? })
}

/// The columns of [`rule`].
const ROW: &str =
    "number, principal, tool, definition, code_hash, arguments, expires_at, given_by, created_at,
    revoked_at, uses, used_at, maker, mark";

/// A rule with its mark.
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
            Some(_) => Maker::Person,
            None => Maker::Unknown,
        },
    };
    Ok((rule, row.get(13)?))
}

pub(crate) fn add(connection: &Connection, marks: &Marks, new: NewRule, log: &Log) -> Result<i64, Failure> {
    // No rule is ever deleted, so no number comes twice.
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
        maker: Maker::Person,
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

/// Vouches for what a rule allows, and to whom.
fn mark_of(marks: &Marks, rule: &ApprovalRule) -> String {
    let row = Words::new()
        .number(rule.number)
        .word(&rule.principal.0)
        .word(&rule.tool)
        .word(rule.definition.as_str())
        .maybe(rule.code_hash.as_deref())
        .maybe(rule.arguments.as_ref().map(Digest::as_str))
        .number(rule.expires_at)
        .word(&rule.by)
        .number(rule.created_at);
    // Rules of earlier versions were marked without a maker, and stay what they were.
    marks.mark(&match rule.maker {
        Maker::Person => row.word("person"),
        Maker::Unknown => row,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_an_earlier_version_is_kept_without_a_maker_and_cannot_be_given_one() {
        let directory = tempfile::tempdir().unwrap();
        let store = BlockingStore::open(&directory.path().join("pml.db")).unwrap();
        let new = NewRule {
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
        assert_eq!(rule.maker, Maker::Person);
        let earlier = ApprovalRule { maker: Maker::Unknown, ..rule };
        let keys = store.inner.voucher.master.keys(|| Ok(true)).unwrap();
        let (mark, set) = (mark_of(&keys.rules, &earlier), "UPDATE approval_rule SET maker = ?1, mark = ?2");
        let put = |maker: Option<&'static str>| {
            let mark = mark.clone();
            store
                .change(Urgency::Soon, move |connection| Ok(connection.execute(set, params![maker, mark])?))
                .unwrap();
            store.matching_rules(&Principal::local(), 2000).unwrap()
        };
        assert_eq!(put(None), std::slice::from_ref(&earlier));
        assert_eq!(put(Some("person")), [], "its mark does not vouch for a maker");
    }
}
