//! Questions about the audit log.

use super::Store;
use crate::{Audit, AuditRow, BlockingStore, Error, Verified};

impl Store {
    /// Adds entries to the log, and waits until they would survive a loss of power.
    ///
    /// # Errors
    /// Those of [`BlockingStore::audit`].
    pub async fn audit(&self, entries: Vec<Audit>) -> Result<(), Error> {
        self.ask(move |store| store.audit(entries)).await
    }

    /// Entries of the log, of all principals: up to `limit` of those after number `after`, in order.
    ///
    /// # Errors
    /// Those of [`BlockingStore::audit_rows`].
    pub async fn audit_rows(&self, after: i64, limit: u32) -> Result<Vec<AuditRow>, Error> {
        self.ask(move |store| store.audit_rows(after, limit)).await
    }

    /// Whether the log is what was written: nothing changed, taken out, put in, moved or cut off.
    ///
    /// # Errors
    /// Those of [`BlockingStore::verify_audit`].
    pub async fn verify_audit(&self) -> Result<Verified, Error> {
        self.ask(BlockingStore::verify_audit).await
    }
}
