//! Questions about the file itself: whether it is sound, who uses it, and copies of it.

use std::path::Path;

use super::Store;
use crate::{BackedUp, BlockingStore, Error, Integrity, KeyInBackup, Process};

impl Store {
    /// Copies the database to a new file, while others go on using it.
    ///
    /// # Errors
    /// Those of [`BlockingStore::backup`].
    pub async fn backup(&self, to: &Path, key: KeyInBackup) -> Result<BackedUp, Error> {
        let to = to.to_owned();
        self.ask(move |store| store.backup(&to, key)).await
    }

    /// Waits until all that was given to be stored before is.
    ///
    /// # Errors
    /// Those of [`BlockingStore::flush`].
    pub async fn flush(&self) -> Result<(), Error> {
        self.ask(BlockingStore::flush).await
    }

    /// Notes that a process keeps the database open, and gives those that did so and ended without
    /// [`BlockingStore::leave`].
    ///
    /// # Errors
    /// Those of [`BlockingStore::enter`].
    pub async fn enter(&self, process: &Process, now: i64) -> Result<Vec<Process>, Error> {
        let process = process.clone();
        self.ask(move |store| store.enter(&process, now)).await
    }

    /// Notes that processes no longer keep the database open, or that their end was looked into.
    ///
    /// # Errors
    /// Those of [`BlockingStore::leave`].
    pub async fn leave(&self, processes: Vec<Process>) -> Result<(), Error> {
        self.ask(move |store| store.leave(processes)).await
    }

    /// Looks whether the structure of the file is sound. If it is not, nothing more is written to it.
    ///
    /// # Errors
    /// Those of [`BlockingStore::quick_check`].
    pub async fn quick_check(&self) -> Result<(), Error> {
        self.ask(BlockingStore::quick_check).await
    }

    /// Looks at every page and at every row that has a mark.
    ///
    /// # Errors
    /// Those of [`BlockingStore::check`].
    pub async fn check(&self) -> Result<Integrity, Error> {
        self.ask(BlockingStore::check).await
    }
}
