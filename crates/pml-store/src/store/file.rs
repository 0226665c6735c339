//! The database file itself: its integrity, the processes that use it, and backups.

use std::path::Path;

use super::Store;
use crate::{BackupReport, BlockingStore, Error, IntegrityReport, KeyInBackup, ProcessIdentity};

impl Store {
    /// Copies the database to a new file while other processes go on using it.
    ///
    /// # Errors
    /// Those of [`BlockingStore::backup`].
    pub async fn backup(&self, to: &Path, key: KeyInBackup) -> Result<BackupReport, Error> {
        let to = to.to_owned();
        self.ask(move |store| store.backup(&to, key)).await
    }

    /// Waits until all changes that were queued before are stored.
    ///
    /// # Errors
    /// Those of [`BlockingStore::flush`].
    pub async fn flush(&self) -> Result<(), Error> {
        self.ask(BlockingStore::flush).await
    }

    /// Records that a process has the database open. Returns the processes that were recorded and ended without
    /// [`BlockingStore::unregister_processes`].
    ///
    /// # Errors
    /// Those of [`BlockingStore::register_process`].
    pub async fn register_process(
        &self,
        process: &ProcessIdentity,
        now: i64,
    ) -> Result<Vec<ProcessIdentity>, Error> {
        let process = process.clone();
        self.ask(move |store| store.register_process(&process, now)).await
    }

    /// Records that processes have closed the database, or that their unclean end was dealt with.
    ///
    /// # Errors
    /// Those of [`BlockingStore::unregister_processes`].
    pub async fn unregister_processes(&self, processes: Vec<ProcessIdentity>) -> Result<(), Error> {
        self.ask(move |store| store.unregister_processes(processes)).await
    }

    /// Checks the structure of the file. If it is damaged, the store refuses all further writes.
    ///
    /// # Errors
    /// Those of [`BlockingStore::quick_check`].
    pub async fn quick_check(&self) -> Result<(), Error> {
        self.ask(BlockingStore::quick_check).await
    }

    /// Checks every page of the file and every row that has a mark.
    ///
    /// # Errors
    /// Those of [`BlockingStore::check_integrity`].
    pub async fn check_integrity(&self) -> Result<IntegrityReport, Error> {
        self.ask(BlockingStore::check_integrity).await
    }
}
