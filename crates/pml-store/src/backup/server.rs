//! Backups of a database on a server, and restoring one there.
//!
//! Restoring replaces everything in one transaction: whoever looks sees all of the old database or all of the backup.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};

use super::{
    HEAD, KEY, RestoreReport, add_files, create, finish, make_directory, plain, prepare, read, suffixed,
    sync_directory,
};
use crate::copy::{Side, copied_tables, copy_tables};
use crate::postgres::Server;
use crate::vouch::RowAuthenticator;
use crate::{Error, database};

/// Copies a database of a server to a new file, as of one moment.
pub(super) fn copy_to_file(
    server: &Arc<Server>,
    file: &Path,
    authenticator: &Arc<RowAuthenticator>,
) -> Result<Connection, Error> {
    let explain = |error: rusqlite::Error| Error::sqlite(server.name(), &error);
    let connection = server.open_bulk().map_err(explain)?;
    connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").map_err(explain)?;
    let source = Side::of_server(server, connection).within_transaction();
    copy_side_to_file(&source, file, authenticator)
}

fn copy_side_to_file(
    source: &Side,
    file: &Path,
    authenticator: &Arc<RowAuthenticator>,
) -> Result<Connection, Error> {
    let target = Side::of_file(file, database::open_writer(file, authenticator)?);
    copy_tables(source, &target, |_| ())?;
    drop(target);
    let explain = |error: rusqlite::Error| Error::sqlite(file, &error);
    let copy = plain(file, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(explain)?;
    // A backup is one file, without a write-ahead log beside it.
    copy.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(())).map_err(explain)?;
    Ok(copy)
}

/// Replaces a database of a server with a backup. `beside` is a path in the directory of the key file. What was there is
/// kept as a backup, with its key, in a directory whose name ends with `label`.
///
/// # Errors
/// A gateway uses the database, or the file is not a PML backup, is damaged or lacks its key. Nothing is changed then.
pub fn restore_backup_to_server(
    backup: &Path,
    url: &str,
    beside: &Path,
    label: &str,
) -> Result<RestoreReport, Error> {
    let beside = std::path::absolute(beside).map_err(|error| Error::io(beside, error))?;
    let explain = |error: io::Error| Error::io(&beside, error);
    let home = beside.parent().unwrap_or(Path::new("/"));
    make_directory(home).map_err(explain)?;
    let server = Arc::new(Server::parse(url)?);
    let connection = server.open_alone()?;
    let room = home.join(".restoring");
    if room.exists() {
        fs::remove_dir_all(&room).map_err(explain)?;
    }
    make_directory(&room).map_err(explain)?;
    let restored = prepare(backup, &beside, &room).and_then(|(key, damaged_rows)| {
        server.prepare_tables()?;
        let target = Side::of_server(&server, connection).within_transaction();
        let aside = keep_aside(&target, &beside, &home.join(format!("replaced-{label}")))?;
        replace(&target, &room)?;
        exchange_files(&beside, &room, aside.as_deref()).map_err(explain)?;
        Ok(RestoreReport { replaced_files_dir: aside, key, damaged_rows })
    });
    drop(fs::remove_dir_all(&room));
    restored
}

/// Keeps what is in the database as a backup; returns its directory, or `None` if there is nothing.
fn keep_aside(target: &Side, beside: &Path, aside: &Path) -> Result<Option<PathBuf>, Error> {
    let explain = |error: rusqlite::Error| target.explain(&error);
    let mut is_used = false;
    for table in copied_tables().map_err(explain)? {
        is_used |= table.name != "memory" && target.has_rows(&table.name).map_err(explain)?;
    }
    let is_half = target.has_rows("store_copy").map_err(explain)?;
    if !is_used || is_half {
        return Ok(None);
    }
    make_directory(aside).map_err(|error| Error::io(aside, error))?;
    let file = aside.join("pml.db");
    let draft = suffixed(&file, ".draft");
    let refuse = |error: io::Error| Error::io(&draft, error);
    create(&draft).map_err(refuse)?;
    target.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").map_err(explain)?;
    // Rows are copied as they are, so no key is needed here.
    let copy = copy_side_to_file(target, &draft, &RowAuthenticator::beside(&file))?;
    target.run("COMMIT").map_err(explain)?;
    let files = [(KEY, read(beside, KEY)?), (HEAD, read(beside, HEAD)?)];
    add_files(&copy, files).map_err(|error| Error::sqlite(&draft, &error))?;
    drop(copy);
    finish(&draft, &file).map_err(refuse)?;
    Ok(Some(aside.to_owned()))
}

/// Puts the prepared database in the place of the one on the server.
fn replace(target: &Side, room: &Path) -> Result<(), Error> {
    let new = room.join("pml.db");
    let authenticator = RowAuthenticator::beside(&new);
    let source = Side::of_file(&new, database::open_writer(&new, &authenticator)?);
    let fingerprint = authenticator.master.keys(|| Ok(true))?.fingerprint.clone();
    let explain = |error: rusqlite::Error| target.explain(&error);
    let tables = copied_tables().map_err(explain)?;
    let names: Vec<String> = tables.into_iter().map(|table| table.name).collect();
    let names = crate::copy::quoted_list(&names);
    let begin = format!(
        "BEGIN; TRUNCATE {names}, server_state, process, store_copy, row_number;
         INSERT INTO memory (one, version, learned_to, effects_to) VALUES (1, 0, 0, 0)"
    );
    let replaced = target.run(&begin).map_err(explain).and_then(|()| {
        copy_tables(&source, target, |_| ())?;
        let end = format!(
            "UPDATE store SET version = version + 1, key_fingerprint = '{fingerprint}'; NOTIFY pml_changes; COMMIT"
        );
        target.run(&end).map_err(explain)
    });
    if replaced.is_err() {
        // The transaction is gone with a connection that was lost.
        drop(target.run("ROLLBACK"));
    }
    replaced
}

/// Moves the key and the head of the audit log that belong to the backup to where gateways look for them.
fn exchange_files(beside: &Path, room: &Path, aside: Option<&Path>) -> io::Result<()> {
    for name in [KEY, HEAD] {
        let (new, place) = (room.join(name), beside.with_file_name(name));
        if let (Some(aside), true) = (aside, place.exists()) {
            fs::copy(&place, aside.join(name))?;
        }
        match new.exists() {
            true => fs::rename(new, &place)?,
            // Without a head the next gateway names the newest entry.
            false if name == HEAD && place.exists() => fs::remove_file(&place)?,
            false => {}
        }
    }
    sync_directory(beside.parent().unwrap_or(Path::new("/")))
}
