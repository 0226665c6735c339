//! Backups: what is in them, that they can be put back, and what keeps a bad one from being put back.

use std::fs;
use std::path::{Path, PathBuf};

use pml_store::{AuditVerification, BlockingStore, Error, KeyInBackup, restore_backup};

use super::memory::{get, learn, memory, remember, trace};
use super::{create, fixture, id, listing, me, new_run, told, tool};

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn key_of(database: &Path) -> PathBuf {
    database.with_file_name("seal.key")
}

/// Something of everything a backup has to bring back.
fn fill(store: &BlockingStore) {
    store.record_manifest(&me(), listing("fs", vec![tool("read", "d")]), 1).unwrap();
    create(store, new_run(1)).unwrap();
    store.append_audit(told("on")).unwrap();
    remember(store, memory("p", trace(5)));
    learn(store);
}

#[track_caller]
fn assert_filled(store: &BlockingStore) {
    assert_eq!(store.manifests(&me()).unwrap()[0].tools[0].definition.name, "read");
    assert_eq!(store.load_run(&me(), &id(1)).unwrap().plan, b"plan of 1");
    assert!(matches!(store.verify_audit().unwrap(), AuditVerification::Whole { rows: 1, .. }));
    assert_eq!(get(store, "p").statistics.success_count, 1);
    let whole = store.check_integrity().unwrap();
    assert!(whole.file_errors.is_empty() && whole.damaged_rows.is_empty(), "{whole:?}");
}

#[test]
fn a_backup_that_is_made_while_others_write_is_put_back_elsewhere() {
    let fixture = fixture();
    fill(&fixture.store);
    let writer = fixture.store.clone();
    let writing = std::thread::spawn(move || {
        for number in 100..160 {
            create(&writer, new_run(number)).unwrap();
        }
    });
    let backup = fixture.path.with_file_name("copy.db");
    let made = fixture.store.backup(&backup, KeyInBackup::Included).unwrap();
    writing.join().unwrap();
    assert_eq!((made.bytes, made.damaged_rows), (fs::metadata(&backup).unwrap().len(), 0));
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&backup).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
    let left: Vec<_> = fs::read_dir(fixture.path.parent().unwrap())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("copy.db"))
        .collect();
    assert_eq!(left, ["copy.db"], "one file is all of it");

    let elsewhere = tempfile::tempdir().unwrap();
    let database = elsewhere.path().join("data/pml.db");
    let restored = restore_backup(&backup, &database, "now").unwrap();
    assert_eq!((restored.replaced_files_dir, restored.key), (None, KeyInBackup::Included));
    let key = fs::read(key_of(&fixture.path)).unwrap();
    assert_eq!(fs::read(key_of(&database)).unwrap(), key);
    assert!(!holds(&fs::read(&database).unwrap(), &key), "the key stays out of the database");
    assert_filled(&BlockingStore::open(&database).unwrap());
}

#[test]
fn what_was_there_is_kept_aside() {
    let fixture = fixture();
    fill(&fixture.store);
    let backup = fixture.path.with_file_name("copy.db");
    fixture.store.backup(&backup, KeyInBackup::Included).unwrap();
    create(&fixture.store, new_run(2)).unwrap();
    let path = fixture.path.clone();
    drop(fixture.store);
    let restored = restore_backup(&backup, &path, "2026-11-17").unwrap();
    let aside = restored.replaced_files_dir.unwrap();
    assert_eq!(aside, path.with_file_name("replaced-2026-11-17"));
    let store = BlockingStore::open(&path).unwrap();
    assert_filled(&store);
    assert!(matches!(store.load_run(&me(), &id(2)), Err(Error::UnknownRun { .. })));
    let old = BlockingStore::open(&aside.join("pml.db")).unwrap();
    assert!(old.load_run(&me(), &id(2)).is_ok(), "with all that belongs to it");
}

#[test]
fn nothing_is_put_back_while_the_database_is_used() {
    let fixture = fixture();
    fill(&fixture.store);
    let backup = fixture.path.with_file_name("copy.db");
    fixture.store.backup(&backup, KeyInBackup::Included).unwrap();
    let refused = restore_backup(&backup, &fixture.path, "now").unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    assert_filled(&fixture.store);
    drop(fixture.store);
    restore_backup(&backup, &fixture.path, "now").unwrap();
}

#[test]
fn without_its_key_a_backup_is_put_back_where_the_key_is() {
    let fixture = fixture();
    fill(&fixture.store);
    let backup = fixture.path.with_file_name("copy.db");
    fixture.store.backup(&backup, KeyInBackup::LeftOut).unwrap();
    assert!(!holds(&fs::read(&backup).unwrap(), &fs::read(key_of(&fixture.path)).unwrap()));
    let elsewhere = tempfile::tempdir().unwrap();
    let database = elsewhere.path().join("pml.db");
    let missing = restore_backup(&backup, &database, "now").unwrap_err();
    assert!(matches!(missing, Error::KeyMissing { .. }), "{missing}");
    let other = BlockingStore::open(&database).unwrap();
    other.record_manifest(&me(), listing("git", vec![tool("log", "d")]), 1).unwrap();
    drop(other);
    let wrong = loop {
        match restore_backup(&backup, &database, "now").unwrap_err() {
            // A process that another test starts has the lock until it runs its own program.
            Error::InUse { .. } => std::thread::sleep(std::time::Duration::from_millis(20)),
            wrong => break wrong,
        }
    };
    assert!(wrong.to_string().contains("another key"), "{wrong}");
    assert_eq!(BlockingStore::open(&database).unwrap().manifests(&me()).unwrap()[0].server.as_str(), "git");
    drop(fixture.store);
    let restored = restore_backup(&backup, &fixture.path, "now").unwrap();
    assert_eq!(restored.key, KeyInBackup::LeftOut);
    assert_filled(&BlockingStore::open(&fixture.path).unwrap());
}

#[test]
fn what_is_no_sound_backup_changes_nothing() {
    let fixture = fixture();
    fill(&fixture.store);
    let good = fixture.path.with_file_name("copy.db");
    fixture.store.backup(&good, KeyInBackup::Included).unwrap();
    let refused = fixture.store.backup(&good, KeyInBackup::Included).unwrap_err();
    assert!(matches!(refused, Error::Backup { .. }), "a backup is never written over: {refused}");
    drop(fixture.store);
    let whole = fs::read(&good).unwrap();
    let text = b"Dear Sir or Madam, ".repeat(99);
    let cut = whole[..whole.len() / 2].to_vec();
    let mut noisy = whole.clone();
    let middle = noisy.len() / 2;
    noisy[middle..middle + 9000].fill(0x5A);
    for (name, bytes) in [("text", text.to_vec()), ("empty", Vec::new()), ("cut", cut), ("noisy", noisy)] {
        let bad = fixture.path.with_file_name(name);
        fs::write(&bad, bytes).unwrap();
        let refused = restore_backup(&bad, &fixture.path, "now").unwrap_err();
        assert!(matches!(refused, Error::NotADatabase { .. } | Error::Corrupt { .. }), "{name}: {refused}");
    }
    let missing = restore_backup(Path::new("/nowhere/copy.db"), &fixture.path, "now").unwrap_err();
    assert!(matches!(missing, Error::Backup { .. }), "{missing}");
    assert!(!fixture.path.with_file_name("replaced-now").exists());
    assert!(!fixture.path.with_file_name(".restoring").exists());
    assert_filled(&BlockingStore::open(&fixture.path).unwrap());
}
