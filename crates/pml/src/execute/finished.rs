//! The notice that a run has ended, for whoever prepares what usually follows it.

use pml_model::{KeyId, Principal};
use serde_json::value::RawValue;

use crate::report::NextSuggestion;

/// A run that has ended with a result, for whoever prepares what usually follows it.
#[derive(Debug)]
pub(crate) struct FinishedRunNotice {
    pub(crate) principal: Principal,
    /// The key of its client.
    pub(crate) key: Option<KeyId>,
    pub(crate) session: String,
    /// The arguments of the run.
    pub(crate) arguments: Box<RawValue>,
    /// What usually follows.
    pub(crate) next: Vec<NextSuggestion>,
}

/// The notices that may wait; more runs than that end without a prediction.
pub(super) const NOTICES: usize = 32;
