//! The audit log.

use super::Store;
use crate::{AuditEntry, AuditVerification, BlockingStore, Error, NewAuditEntry};

impl Store {
    /// Appends entries to the audit log and waits until they would survive a loss of power.
    ///
    /// # Errors
    /// Those of [`BlockingStore::append_audit`].
    pub async fn append_audit(&self, entries: Vec<NewAuditEntry>) -> Result<(), Error> {
        self.ask(move |store| store.append_audit(entries)).await
    }

    /// Audit entries of all principals: up to `limit` of those after number `after`, in order.
    ///
    /// # Errors
    /// Those of [`BlockingStore::audit_entries`].
    pub async fn audit_entries(&self, after: i64, limit: u32) -> Result<Vec<AuditEntry>, Error> {
        self.ask(move |store| store.audit_entries(after, limit)).await
    }

    /// Verifies the audit log: no entry was changed, removed, inserted, moved or cut off.
    ///
    /// # Errors
    /// Those of [`BlockingStore::verify_audit`].
    pub async fn verify_audit(&self) -> Result<AuditVerification, Error> {
        self.ask(BlockingStore::verify_audit).await
    }
}
