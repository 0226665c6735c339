//! The audit log.

use pml_model::{Principal, RunId};

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

    /// Audit entries of a principal: up to `limit` of those before number `before`, newest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::audit_entries_before`].
    pub async fn audit_entries_before(
        &self,
        principal: &Principal,
        before: i64,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.audit_entries_before(&principal, before, limit)).await
    }

    /// Audit entries of a principal about a run, oldest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::audit_entries_of_run`].
    pub async fn audit_entries_of_run(
        &self,
        principal: &Principal,
        run: &RunId,
    ) -> Result<Vec<AuditEntry>, Error> {
        let (principal, run) = (principal.clone(), run.clone());
        self.ask(move |store| store.audit_entries_of_run(&principal, &run)).await
    }

    /// Verifies the audit log: no entry was changed, removed, inserted, moved or cut off.
    ///
    /// # Errors
    /// Those of [`BlockingStore::verify_audit`].
    pub async fn verify_audit(&self) -> Result<AuditVerification, Error> {
        self.ask(BlockingStore::verify_audit).await
    }
}
