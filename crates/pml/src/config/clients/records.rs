//! Which files of clients PML was put into, and how to take that back.
//!
//! A record is written before the file, with a copy of the file. So a change that was made can always be undone, and a
//! record without its change does no harm.

use std::path::{Path, PathBuf};

use pml_clients::EntryTrace;
use pml_model::Digest;
use serde::{Deserialize, Serialize};

use super::{ClientChange, ClientFile, ENTRY, FileContent};
use crate::config::disk;
use crate::config::error::Error;
use crate::config::paths::Paths;

/// A file that PML was put into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The client and scope.
    pub client: String,
    /// The file.
    pub path: PathBuf,
    /// The keys that lead to the servers in it.
    pub(super) keys: Vec<String>,
    /// The copy of the file before; `None` where there was no file.
    pub backup: Option<PathBuf>,
    /// The content after.
    after: Digest,
    trace: StoredTrace,
    /// The servers that were taken out.
    #[serde(default)]
    pub taken_out: Vec<String>,
    /// The directories that were created for the file, the outermost first.
    #[serde(default)]
    directories: Vec<PathBuf>,
}

impl Registration {
    /// Whether it is about the same place. Scopes and projects of a client may share a file.
    fn is_same(&self, other: &Registration) -> bool {
        self.path == other.path && self.keys == other.keys
    }
}

/// An [`EntryTrace`] as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTrace {
    created: usize,
    before: String,
    after: String,
}

/// What [`undo`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoOutcome {
    /// The file is what it was, byte for byte.
    Restored,
    /// The file was created for PML and is removed.
    FileRemoved,
    /// The file has changed since, so only PML's entry was taken out.
    EntryTakenOut,
    /// PML is not in the file any more.
    NothingLeft,
}

/// Writes a change into a client's file, with a record and a copy.
///
/// # Errors
/// The file changed meanwhile, is read-only or cannot be written; then it is what it was.
pub fn register(paths: &Paths, file: &ClientFile, change: &ClientChange) -> Result<Registration, Error> {
    let before = change.before.as_deref();
    let known = read(paths)?
        .into_iter()
        .find(|record| record.path == file.path && record.keys == file.location.shape.path);
    // A second change continues the first: undoing takes both back.
    let continued =
        known.filter(|known| before.is_some_and(|text| Digest::of(text.as_bytes()) == known.after));
    let record = match continued {
        Some(known) => {
            let taken_out = known.taken_out.iter().chain(&change.taken_out).cloned().collect();
            let trace =
                if change.trace == EntryTrace::default() { known.trace } else { (&change.trace).into() };
            Registration { after: Digest::of(change.after.as_bytes()), trace, taken_out, ..known }
        }
        None => Registration {
            client: file.label(),
            path: file.path.clone(),
            keys: file.location.shape.path.clone(),
            backup: before.map(|text| back_up(paths, &file.path, text.as_bytes())).transpose()?,
            after: Digest::of(change.after.as_bytes()),
            trace: (&change.trace).into(),
            taken_out: change.taken_out.clone(),
            directories: disk::missing_directories(&file.path),
        },
    };
    let earlier = update(paths, |records| {
        let earlier = records.iter().position(|known| known.is_same(&record));
        let earlier = earlier.map(|index| records.remove(index));
        records.push(record.clone());
        earlier
    })?;
    let written = disk::replace_unchanged(&file.path, before.map(str::as_bytes), change.after.as_bytes());
    if let Err(error) = written {
        update(paths, |records| {
            records.retain(|known| !known.is_same(&record));
            records.extend(earlier);
        })?;
        return Err(error);
    }
    Ok(record)
}

/// Takes a registration back: restores the file where it is unchanged since, else takes only PML's entry out.
///
/// # Errors
/// The file cannot be read, edited or written; then it is what it was.
pub fn undo(paths: &Paths, record: &Registration, file: &ClientFile) -> Result<UndoOutcome, Error> {
    let outcome = match &file.content {
        FileContent::Missing => UndoOutcome::NothingLeft,
        FileContent::Broken(why) => return Err(file.refused(why)),
        FileContent::Readable { text, .. } if Digest::of(text.as_bytes()) == record.after => {
            restore(record, text)?
        }
        FileContent::Readable { text, .. } => {
            let trace = EntryTrace::from(&record.trace);
            let without = pml_clients::take_out(text, &file.location.shape, ENTRY, &trace);
            match without.map_err(|error| file.refused(&error))? {
                Some(without) => {
                    disk::replace_unchanged(&record.path, Some(text.as_bytes()), without.as_bytes())?;
                    UndoOutcome::EntryTakenOut
                }
                None => UndoOutcome::NothingLeft,
            }
        }
    };
    update(paths, |records| records.retain(|known| !known.is_same(record)))?;
    Ok(outcome)
}

fn restore(record: &Registration, text: &str) -> Result<UndoOutcome, Error> {
    let Some(backup) = &record.backup else {
        disk::remove_unchanged(&record.path, text.as_bytes())?;
        disk::remove_empty(&record.directories);
        return Ok(UndoOutcome::FileRemoved);
    };
    let Some(bytes) = disk::read(backup)? else {
        let message = format!("the copy `{}` is gone", backup.display());
        return Err(Error::refused(message, "take the entry `pml` out by hand"));
    };
    disk::replace_unchanged(&record.path, Some(text.as_bytes()), &bytes)?;
    Ok(UndoOutcome::Restored)
}

/// Copies a file that is about to change; returns the path of the copy.
///
/// # Errors
/// The copy cannot be written.
pub fn back_up(paths: &Paths, path: &Path, bytes: &[u8]) -> Result<PathBuf, Error> {
    let digest = Digest::of(bytes).to_string();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let copy = paths.client_backups().join(format!("{}-{name}", digest.get(..16).unwrap_or(&digest)));
    disk::create(&copy, bytes)?;
    Ok(copy)
}

/// All registrations, oldest first.
///
/// # Errors
/// The list exists and cannot be read.
pub fn read(paths: &Paths) -> Result<Vec<Registration>, Error> {
    let path = paths.client_records();
    let Some(bytes) = disk::read(&path)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("`{}` is damaged: {error}", path.display());
        Error::refused(message, "delete it, and take the entries `pml` out of the files of clients by hand")
    })
}

fn update<T>(paths: &Paths, change: impl FnOnce(&mut Vec<Registration>) -> T) -> Result<T, Error> {
    let path = paths.client_records();
    disk::create_private_dir(&paths.data)?;
    // Without the lock, two concurrent commands would each drop what the other added.
    let lock_path = path.with_extension("lock");
    let lock = std::fs::File::create(&lock_path).map_err(Error::io("create", &lock_path))?;
    lock.lock().map_err(Error::io("lock", &lock_path))?;
    let mut records = read(paths)?;
    let done = change(&mut records);
    let text = serde_json::to_string_pretty(&records)
        .map_err(|error| Error::refused(error.to_string(), "report this as a defect"))?;
    disk::replace(&path, text.as_bytes())?;
    Ok(done)
}

impl From<&EntryTrace> for StoredTrace {
    fn from(trace: &EntryTrace) -> StoredTrace {
        StoredTrace { created: trace.created, before: trace.before.clone(), after: trace.after.clone() }
    }
}

impl From<&StoredTrace> for EntryTrace {
    fn from(trace: &StoredTrace) -> EntryTrace {
        EntryTrace { created: trace.created, before: trace.before.clone(), after: trace.after.clone() }
    }
}
