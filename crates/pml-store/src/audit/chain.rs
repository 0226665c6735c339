//! The hash chain of audit entries: appending and verifying.

use crate::sql::{Connection, Row, params};
use pml_model::RunId;

use super::{AuditDamage, AuditVerification, EncodedAuditEntry};
use crate::head::{AuditHead, AuditHeadFile, BEFORE_THE_FIRST, newest_entry};
use crate::seal::{AuthenticatedData, MarkKey};
use crate::writer::WriteFailure;

/// Appends entries after the newest one. The caller holds the write transaction, so all processes on one file extend
/// one chain.
pub(super) fn append(
    connection: &Connection,
    marks: &MarkKey,
    head: &AuditHeadFile,
    entries: &[EncodedAuditEntry],
) -> Result<(), WriteFailure> {
    let (mut seq, mut hash) = match newest_entry(connection)? {
        Some(newest) => newest,
        None => {
            head.create_if_missing()?;
            (0, BEFORE_THE_FIRST.to_owned())
        }
    };
    let mut insert = connection.prepare_cached(
        "INSERT INTO audit (seq, at, principal, run, kind, body, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for line in entries {
        seq += 1;
        let (principal, run) = (&line.principal.0, line.run.as_ref().map(RunId::as_str));
        let row = AuthenticatedData::new()
            .text(&hash)
            .number(seq)
            .number(line.at)
            .text(principal)
            .optional(run)
            .text(line.kind)
            .text(&line.body);
        hash = marks.mark(&row);
        insert.execute(params![seq, line.at, principal, run, line.kind, line.body, hash])?;
    }
    head.mark_stale();
    Ok(())
}

pub(super) fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM audit LIMIT 1")?.exists([]).map(|any| !any)
}

/// Verifies the chain from its beginning to the first break.
pub(super) fn verify(
    connection: &Connection,
    marks: &MarkKey,
    named: &AuditHead,
) -> rusqlite::Result<AuditVerification> {
    let mut all =
        connection.prepare("SELECT seq, at, principal, run, kind, body, hash FROM audit ORDER BY seq")?;
    let mut rows = all.query([])?;
    let (mut last, mut before) = (0, BEFORE_THE_FIRST.to_owned());
    while let Some(row) = rows.next()? {
        let (seq, expected) = (row.get(0)?, last + 1);
        if seq > expected {
            return Ok(AuditVerification::Broken { seq: expected, why: AuditDamage::Missing });
        }
        let hash = marks.mark(&spelled(&row, &before)?);
        if seq != expected || row.get_ref(6)?.as_bytes()? != hash.as_bytes() {
            return Ok(AuditVerification::Broken { seq, why: AuditDamage::Changed });
        }
        if matches!(named, AuditHead::Entry(named, other) if *named == seq && *other != hash) {
            return Ok(AuditVerification::Broken { seq, why: AuditDamage::Replaced });
        }
        (last, before) = (seq, hash);
    }
    Ok(verify_end(last, before, named))
}

/// The result for an unbroken chain that ends with this entry, by what the head file names.
pub(super) fn verify_end(last: i64, hash: String, named: &AuditHead) -> AuditVerification {
    match named {
        AuditHead::Entry(seq, _) if *seq > last => {
            AuditVerification::Broken { seq: last + 1, why: AuditDamage::CutOff }
        }
        AuditHead::Missing if last > 0 => AuditVerification::Broken { seq: last, why: AuditDamage::NoHead },
        AuditHead::Unreadable => AuditVerification::Broken { seq: last, why: AuditDamage::BadHead },
        AuditHead::Entry(..) | AuditHead::Missing => AuditVerification::Whole { rows: last, head: hash },
    }
}

/// The authenticated content of a stored row after an entry with the hash `before`, from the raw column bytes.
fn spelled(row: &Row<'_>, before: &str) -> rusqlite::Result<AuthenticatedData> {
    Ok(AuthenticatedData::new()
        .text(before)
        .number(row.get(0)?)
        .number(row.get(1)?)
        .text(row.get_ref(2)?.as_bytes()?)
        .optional(row.get_ref(3)?.as_bytes_or_null()?)
        .text(row.get_ref(4)?.as_bytes()?)
        .text(row.get_ref(5)?.as_bytes()?))
}
