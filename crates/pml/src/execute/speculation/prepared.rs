//! The results of capabilities that were prepared and not asked for yet.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pml_model::{CapabilityId, Digest, Principal};

/// The prepared results, by cache key.
#[derive(Default)]
pub(super) struct PreparedResults(Mutex<HashMap<Digest, PreparedResult>>);

/// The result of a capability that was prepared before anybody asked for it.
pub(super) struct PreparedResult {
    pub(super) principal: Principal,
    pub(super) capability: CapabilityId,
    /// The confidence that it is asked for.
    pub(super) confidence: f64,
    at: Instant,
}

impl PreparedResults {
    /// Records that the result of a capability is kept under `key`.
    pub(super) fn add(&self, (principal, id): (&Principal, &CapabilityId), confidence: f64, key: Digest) {
        let (principal, capability) = (principal.clone(), id.clone());
        let prepared = PreparedResult { principal, capability, confidence, at: Instant::now() };
        self.0.lock().insert(key, prepared);
    }

    /// Takes the record of the result under `key`, if it was prepared.
    pub(super) fn take(&self, key: &Digest) -> Option<PreparedResult> {
        self.0.lock().remove(key)
    }

    /// Takes the records of the results that nobody asked for in time.
    pub(super) fn take_expired(&self, ttl: Duration) -> Vec<PreparedResult> {
        let mut prepared = self.0.lock();
        let expired = prepared.extract_if(|_, prepared| prepared.at.elapsed() > ttl);
        expired.map(|(_, prepared)| prepared).collect()
    }
}
