//! The asynchronous interface: it answers as the blocking one does, and tells of changes by anybody.

use super::{new_place, open_at};
use std::time::Duration;

use pml_store::{RunQuery, Store};

use super::{id, me, new_run};

/// Long enough for any machine: a test that waits for this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

async fn open() -> (tempfile::TempDir, Store) {
    let (directory, path) = new_place();
    let store = tokio::task::spawn_blocking(move || open_at(&path)).await.unwrap().unwrap();
    (directory, Store::from(store))
}

#[tokio::test]
async fn it_answers_as_the_blocking_store_does() {
    let (_directory, store) = open().await;
    let (done, stored) = tokio::sync::oneshot::channel();
    store.create_run(new_run(1), pml_store::Urgency::Soon, |outcome| drop(done.send(outcome))).unwrap();
    stored.await.unwrap().unwrap();
    let filter = RunQuery { state: None, before: None, limit: 10 };
    let runs = store.runs(&me(), &filter).await.unwrap();
    assert_eq!(runs, store.blocking().runs(&me(), &filter).unwrap());
    assert_eq!(runs.len(), 1);
    assert_eq!(store.run(&me(), &id(1)).await.unwrap().as_ref(), runs.first());
    assert!(store.run(&me(), &id(2)).await.unwrap().is_none());
}

#[tokio::test]
async fn changes_of_other_handles_are_told() {
    let (directory, store) = open().await;
    let mut changes = store.changes();
    let before = changes.version();
    // A handle of its own is to the database what another process is.
    let other = open_at(&directory.path().join("pml.db")).unwrap();
    other.request_pause(&me(), &id(1)).unwrap();
    other.reset_learning().unwrap();
    tokio::time::timeout(PATIENCE, changes.changed()).await.unwrap();
    assert_ne!(changes.version(), before);
}

#[tokio::test]
async fn everybody_is_told_of_a_change() {
    let (_directory, store) = open().await;
    let (mut one, mut another) = (store.changes(), store.clone().changes());
    store.reset_learning().await.unwrap();
    tokio::time::timeout(PATIENCE, one.changed()).await.unwrap();
    tokio::time::timeout(PATIENCE, another.changed()).await.unwrap();
}

#[tokio::test]
async fn a_change_that_was_told_is_not_told_again() {
    let (_directory, store) = open().await;
    let mut changes = store.changes();
    store.reset_learning().await.unwrap();
    tokio::time::timeout(PATIENCE, changes.changed()).await.unwrap();
    // Nothing is written meanwhile, so this wait has to run out. It is long enough for several looks.
    assert!(tokio::time::timeout(Duration::from_millis(500), changes.changed()).await.is_err());
}
