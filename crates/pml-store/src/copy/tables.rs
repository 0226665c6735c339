//! Copies rows in the order of their keys, a chunk at a time, and compares both sides afterwards.
//!
//! Each chunk is stored together with the place that it ends at, so a copy that was interrupted goes on from there.

use pml_model::Digest;
use ring::digest::{Context, SHA256};
use rusqlite::types::{Value, ValueRef};
use serde::{Deserialize, Serialize};

use super::plan::{COUNTED, CopiedTable, PREPARED, copied_tables};
use super::side::Side;
use crate::Error;

/// Rows of a chunk at the beginning, and at most.
const FIRST_ROWS: usize = 64;
const MOST_ROWS: usize = 2_000;

/// Size of a chunk in bytes to aim at: rows may have many megabytes.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// How much of a table was copied, and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableReport {
    /// Name of the table.
    pub table: String,
    /// Number of its rows.
    pub rows: u64,
    /// Sum of the digests of all rows. It is the same in every database.
    pub digest: Digest,
}

/// What a copy is doing.
#[derive(Debug, Clone, Copy)]
pub struct CopyProgress<'a> {
    /// Name of the table.
    pub table: &'a str,
    /// Number of its rows that were copied, or compared, since this began.
    pub rows: u64,
    /// Whether the rows are being compared: everything was copied.
    pub is_comparing: bool,
}

/// Where a copy stands.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    table: String,
    after: Option<Vec<KeyPart>>,
}

/// A value of a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum KeyPart {
    Number(i64),
    Text(String),
}

/// Copies everything from one side to the other and compares both. `begun` is whether the target holds the beginning of
/// this very copy.
pub(crate) fn copy_tables(
    from: &Side,
    to: &Side,
    mut progress: impl FnMut(CopyProgress<'_>),
) -> Result<Vec<TableReport>, Error> {
    let tables = copied_tables().map_err(|error| from.explain(&error))?;
    let mut place = begin(from, to, &tables)?;
    let first = tables.iter().position(|table| table.name == place.table).unwrap_or(0);
    for table in &tables[first..] {
        if place.table != table.name {
            place = Place { table: table.name.clone(), after: None };
        }
        copy_table(from, to, table, &mut place, &mut progress)?;
    }
    for table in tables.iter().filter(|table| table.is_numbered) {
        let last = from.last_number(table).map_err(|error| from.explain(&error))?;
        to.set_last_number(table, last).map_err(|error| to.explain(&error))?;
    }
    let compared: Result<Vec<TableReport>, Error> =
        tables.iter().map(|table| compare(from, to, table, &mut progress)).collect();
    let compared = compared?;
    to.run("DELETE FROM store_copy").map_err(|error| to.explain(&error))?;
    Ok(compared)
}

/// Where the copy begins or goes on. A target with other content is refused.
fn begin(from: &Side, to: &Side, tables: &[CopiedTable]) -> Result<Place, Error> {
    let explain = |error: rusqlite::Error| to.explain(&error);
    let source = from.name.display().to_string();
    let begun = to.query("SELECT source, place FROM store_copy", &[]).map_err(explain)?;
    if let Some([Value::Text(earlier), Value::Text(place)]) = begun.first().map(Vec::as_slice) {
        let path = to.name.clone();
        if *earlier != source {
            return Err(Error::IncompleteCopy { path, source_name: earlier.clone() });
        }
        let unreadable = |_| Error::IncompleteCopy { path, source_name: source };
        return serde_json::from_str(place).map_err(unreadable);
    }
    for table in tables {
        let is_filled = match table.name == PREPARED {
            true => !to
                .query(&format!("SELECT 1 FROM {PREPARED} WHERE version > 0 OR learned_to > 0"), &[])
                .map_err(explain)?
                .is_empty(),
            false => to.has_rows(&table.name).map_err(explain)?,
        };
        if is_filled {
            return Err(Error::NotEmpty { path: to.name.clone(), table: table.name.clone() });
        }
    }
    let place = Place { table: tables[0].name.clone(), after: None };
    to.together(|| {
        to.run(&format!("DELETE FROM {PREPARED}"))?;
        let values = [Value::Text(source), Value::Text(place.text())];
        to.change("INSERT INTO store_copy (one, source, place) VALUES (1, ?1, ?2)", &values)
    })
    .map_err(explain)?;
    Ok(place)
}

fn copy_table(
    from: &Side,
    to: &Side,
    table: &CopiedTable,
    place: &mut Place,
    progress: &mut impl FnMut(CopyProgress<'_>),
) -> Result<(), Error> {
    let (mut limit, mut copied) = (FIRST_ROWS, 0);
    let mut after: Option<Vec<Value>> =
        place.after.as_ref().map(|parts| parts.iter().map(KeyPart::value).collect());
    if table.name == COUNTED && after.is_none() {
        to.run(&format!("DELETE FROM {COUNTED}")).map_err(|error| to.explain(&error))?;
    }
    loop {
        let rows = from.rows(table, after.as_deref(), limit).map_err(|error| from.explain(&error))?;
        let Some(last) = rows.last() else { return Ok(()) };
        let key = table.key_of(last);
        place.after = Some(key.iter().map(KeyPart::of).collect());
        to.together(|| {
            to.insert(table, &rows)?;
            to.change("UPDATE store_copy SET place = ?1", &[Value::Text(place.text())])
        })
        .map_err(|error| to.explain(&error))?;
        copied += rows.len() as u64;
        progress(CopyProgress { table: &table.name, rows: copied, is_comparing: false });
        limit = next_limit(limit, &rows);
        after = Some(key);
    }
}

/// Compares the rows of a table of both sides.
fn compare(
    from: &Side,
    to: &Side,
    table: &CopiedTable,
    progress: &mut impl FnMut(CopyProgress<'_>),
) -> Result<TableReport, Error> {
    let expected = digest(from, table, progress)?;
    let found = digest(to, table, progress)?;
    match expected == found {
        true => Ok(expected),
        false => Err(Error::CopyDiffers { path: to.name.clone(), table: table.name.clone() }),
    }
}

/// Number of rows and digest of a table.
pub(super) fn digest(
    side: &Side,
    table: &CopiedTable,
    progress: &mut impl FnMut(CopyProgress<'_>),
) -> Result<TableReport, Error> {
    let (mut limit, mut count, mut after) = (FIRST_ROWS, 0, None::<Vec<Value>>);
    let mut sum = [0; 4];
    loop {
        let rows = side.rows(table, after.as_deref(), limit).map_err(|error| side.explain(&error))?;
        let Some(last) = rows.last() else { break };
        after = Some(table.key_of(last));
        rows.iter().for_each(|row| add_row(&mut sum, row));
        count += rows.len() as u64;
        progress(CopyProgress { table: &table.name, rows: count, is_comparing: true });
        limit = next_limit(limit, &rows);
    }
    let hex: String = sum.iter().map(|part: &u64| format!("{part:016x}")).collect();
    let digest = Digest::from_hex(&hex).expect("these are 64 hexadecimal digits");
    Ok(TableReport { table: table.name.clone(), rows: count, digest })
}

/// Adds the digest of a row. A sum does not depend on the order of the rows: PostgreSQL, whose texts cannot hold the
/// character 0, sorts texts that have it differently.
fn add_row(sum: &mut [u64; 4], row: &[Value]) {
    let mut content = Context::new(&SHA256);
    row.iter().for_each(|value| add(&mut content, ValueRef::from(value)));
    for (part, bytes) in sum.iter_mut().zip(content.finish().as_ref().chunks_exact(8)) {
        let bytes = bytes.try_into().expect("a chunk has eight bytes");
        *part = part.wrapping_add(u64::from_le_bytes(bytes));
    }
}

/// Adds a value with its kind and length, so that no two rows have the same encoding.
fn add(content: &mut Context, value: ValueRef<'_>) {
    let mut part = |kind: u8, bytes: &[u8]| {
        content.update(&[kind]);
        content.update(&(bytes.len() as u64).to_le_bytes());
        content.update(bytes);
    };
    match value {
        ValueRef::Null => part(b'n', &[]),
        ValueRef::Integer(number) => part(b'i', &number.to_le_bytes()),
        ValueRef::Real(number) => part(b'r', &number.to_bits().to_le_bytes()),
        ValueRef::Text(text) => part(b't', text),
        ValueRef::Blob(bytes) => part(b'b', bytes),
    }
}

fn next_limit(limit: usize, rows: &[Vec<Value>]) -> usize {
    let size = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        Value::Null | Value::Integer(_) | Value::Real(_) => 8,
    };
    let bytes: usize = rows.iter().flatten().map(size).sum();
    match bytes {
        bytes if bytes > CHUNK_BYTES => (limit / 4).max(1),
        bytes if bytes < CHUNK_BYTES / 4 => (limit * 2).min(MOST_ROWS),
        _ => limit,
    }
}

impl Place {
    fn text(&self) -> String {
        serde_json::to_string(self).expect("a place is plain data")
    }
}

impl KeyPart {
    fn of(value: &Value) -> KeyPart {
        match value {
            Value::Integer(number) => KeyPart::Number(*number),
            Value::Text(text) => KeyPart::Text(text.clone()),
            // Keys are numbers and texts.
            Value::Null | Value::Real(_) | Value::Blob(_) => KeyPart::Text(String::new()),
        }
    }

    fn value(&self) -> Value {
        match self {
            KeyPart::Number(number) => Value::Integer(*number),
            KeyPart::Text(text) => Value::Text(text.clone()),
        }
    }
}
