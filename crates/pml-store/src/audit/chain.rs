//! The chain of entries: adding to it, and going along it.

use pml_model::RunId;
use rusqlite::{Connection, Row, params};

use super::{Damage, Line, Verified};
use crate::head::{BEFORE_THE_FIRST, Head, Named, newest};
use crate::seal::{Marks, Words};
use crate::writer::Failure;

/// Adds entries after the newest one. Whoever calls holds the only transaction that writes, so the
/// processes on one file make one chain.
pub(super) fn append(
    connection: &Connection,
    marks: &Marks,
    head: &Head,
    entries: &[Line],
) -> Result<(), Failure> {
    let (mut seq, mut hash) = match newest(connection)? {
        Some(newest) => newest,
        None => {
            head.begin()?;
            (0, BEFORE_THE_FIRST.to_owned())
        }
    };
    let mut insert = connection.prepare_cached(
        "INSERT INTO audit (seq, at, principal, run, kind, body, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for line in entries {
        seq += 1;
        let (principal, run) = (&line.principal.0, line.run.as_ref().map(RunId::as_str));
        let row = Words::new()
            .word(&hash)
            .number(seq)
            .number(line.at)
            .word(principal)
            .maybe(run)
            .word(line.kind)
            .word(&line.body);
        hash = marks.mark(&row);
        insert.execute(params![seq, line.at, principal, run, line.kind, line.body, hash])?;
    }
    head.lags();
    Ok(())
}

pub(super) fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM audit LIMIT 1")?.exists([]).map(|any| !any)
}

/// Goes along the chain from its beginning to the first break.
pub(super) fn verify(connection: &Connection, marks: &Marks, named: &Named) -> rusqlite::Result<Verified> {
    let mut all =
        connection.prepare("SELECT seq, at, principal, run, kind, body, hash FROM audit ORDER BY seq")?;
    let mut rows = all.query([])?;
    let (mut last, mut before) = (0, BEFORE_THE_FIRST.to_owned());
    while let Some(row) = rows.next()? {
        let (seq, expected) = (row.get(0)?, last + 1);
        if seq > expected {
            return Ok(Verified::Broken { seq: expected, why: Damage::Missing });
        }
        let hash = marks.mark(&spelled(row, &before)?);
        if seq != expected || row.get_ref(6)?.as_bytes()? != hash.as_bytes() {
            return Ok(Verified::Broken { seq, why: Damage::Changed });
        }
        if matches!(named, Named::Entry(named, other) if *named == seq && *other != hash) {
            return Ok(Verified::Broken { seq, why: Damage::Replaced });
        }
        (last, before) = (seq, hash);
    }
    Ok(end(last, before, named))
}

/// What a chain without a break comes to that ends with this entry.
pub(super) fn end(last: i64, hash: String, named: &Named) -> Verified {
    match named {
        Named::Entry(seq, _) if *seq > last => Verified::Broken { seq: last + 1, why: Damage::CutOff },
        Named::Nothing if last > 0 => Verified::Broken { seq: last, why: Damage::NoHead },
        Named::Unreadable => Verified::Broken { seq: last, why: Damage::BadHead },
        Named::Entry(..) | Named::Nothing => Verified::Whole { rows: last, head: hash },
    }
}

/// A stored row after an entry with the hash `before`, in the bytes that are really there.
fn spelled(row: &Row<'_>, before: &str) -> rusqlite::Result<Words> {
    Ok(Words::new()
        .word(before)
        .number(row.get(0)?)
        .number(row.get(1)?)
        .word(row.get_ref(2)?.as_bytes()?)
        .maybe(row.get_ref(3)?.as_bytes_or_null()?)
        .word(row.get_ref(4)?.as_bytes()?)
        .word(row.get_ref(5)?.as_bytes()?))
}
