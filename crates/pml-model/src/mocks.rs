//! Recorded results as mocks: what they were recorded for, when they are trusted, and when no longer.
//!
//! A mock is a real result that stands in for a call that is not made. What happens downstream judges it. The rules
//! are pure: the store applies them in the transaction that counts.

mod pattern;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::trace::{ErrorType, UNPROVEN_WEIGHT};
use crate::{Digest, Principal, ToolId};

pub use pattern::{adapt_result, argument_pattern, same_shape};

/// Number of judged uses from which a mock can be canonical.
const CANONICAL_USES: u64 = 5;
/// The share of judged uses that a canonical mock exceeds with its successes.
const CANONICAL_SUCCESS: f64 = 0.9;

/// Id of a mock: a hash of whose it is and what it was recorded for, so that recording again replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MockId(String);

impl MockId {
    /// Id of the mock of a call of `tool`, under the definition with `digest`, with these arguments.
    pub fn of(principal: &Principal, tool: &ToolId, digest: &Digest, arguments: &Digest) -> MockId {
        let hash = Digest::of(format!("{principal}\n{tool}\n{digest}\n{arguments}").as_bytes());
        MockId(format!("mock_{}", &hash.as_str()[..16]))
    }

    /// An id from its text form. Such a mock need not exist.
    pub fn from_text(text: &str) -> MockId {
        MockId(text.to_owned())
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for MockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far a mock is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MockStatus {
    /// Recorded, and not used often enough to be judged.
    Fresh,
    /// Used at least five times, more than nine in ten of them with success.
    Canonical,
    /// Something downstream found it invalid. It is not used.
    Deprecated,
    /// What it names was not found downstream. It is not used.
    Stale,
    /// A person keeps it as it is: it is preferred, never judged and never dropped.
    Pinned,
}

impl MockStatus {
    /// Every status.
    pub const ALL: [MockStatus; 5] = [
        MockStatus::Fresh,
        MockStatus::Canonical,
        MockStatus::Deprecated,
        MockStatus::Stale,
        MockStatus::Pinned,
    ];

    /// The name of the status, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            MockStatus::Fresh => "fresh",
            MockStatus::Canonical => "canonical",
            MockStatus::Deprecated => "deprecated",
            MockStatus::Stale => "stale",
            MockStatus::Pinned => "pinned",
        }
    }

    /// The status with this name.
    pub fn parse(word: &str) -> Option<MockStatus> {
        MockStatus::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether such a mock answers calls.
    pub fn is_usable(self) -> bool {
        match self {
            MockStatus::Fresh | MockStatus::Canonical | MockStatus::Pinned => true,
            MockStatus::Deprecated | MockStatus::Stale => false,
        }
    }

    /// How much a mocked call counts in learning, compared with a real one.
    pub fn training_weight(self) -> f64 {
        match self {
            MockStatus::Canonical | MockStatus::Pinned => 1.0,
            MockStatus::Fresh | MockStatus::Deprecated | MockStatus::Stale => UNPROVEN_WEIGHT,
        }
    }
}

/// What happened downstream of a mock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MockOutcome {
    /// The run went on to its end with it.
    Success,
    /// What was given the mock, or a part of it, failed.
    Failure(ErrorType),
}

/// How often a mock was used, and with what success.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MockCounts {
    /// Uses.
    pub uses: u64,
    /// Uses after which nothing failed.
    pub successes: u64,
    /// Failures downstream, by class.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<ErrorType, u64>,
    /// Later real results that its status was compared with.
    pub checked: u64,
    /// Those that agreed with its status.
    pub confirmed: u64,
}

impl MockCounts {
    /// Failures for which the mock may be to blame.
    fn blamed(&self) -> u64 {
        self.failures.iter().filter(|(kind, _)| is_to_blame(**kind)).map(|(_, count)| count).sum()
    }

    /// Counts a use and returns the status that the mock has then.
    pub fn count_use(&mut self, status: MockStatus, outcome: MockOutcome) -> MockStatus {
        self.uses += 1;
        match outcome {
            MockOutcome::Success => self.successes += 1,
            MockOutcome::Failure(kind) => *self.failures.entry(kind).or_default() += 1,
        }
        match (status, outcome) {
            (MockStatus::Pinned | MockStatus::Deprecated | MockStatus::Stale, _) => status,
            (_, MockOutcome::Failure(ErrorType::Validation)) => MockStatus::Deprecated,
            (_, MockOutcome::Failure(ErrorType::NotFound)) => MockStatus::Stale,
            (MockStatus::Fresh | MockStatus::Canonical, _) => self.standing(),
        }
    }

    fn standing(&self) -> MockStatus {
        let judged = self.successes + self.blamed();
        let share = self.successes as f64 / judged.max(1) as f64;
        if judged >= CANONICAL_USES && share > CANONICAL_SUCCESS {
            MockStatus::Canonical
        } else {
            MockStatus::Fresh
        }
    }

    /// Compares the status of a mock with a later real result for the same arguments, and returns the status that it
    /// has then. A result that is as the mock said clears it; another one replaces it, which starts its counts anew.
    pub fn check_against(&mut self, status: MockStatus, mock: &Value, real: &Value) -> MockStatus {
        let is_right = match status {
            MockStatus::Fresh | MockStatus::Canonical | MockStatus::Pinned | MockStatus::Deprecated => {
                same_shape(mock, real) == status.is_usable()
            }
            // The thing is gone or replaced.
            MockStatus::Stale => mock != real,
        };
        self.checked += 1;
        self.confirmed += u64::from(is_right);
        match status {
            MockStatus::Pinned => MockStatus::Pinned,
            MockStatus::Canonical if same_shape(mock, real) => MockStatus::Canonical,
            MockStatus::Fresh if same_shape(mock, real) => MockStatus::Fresh,
            MockStatus::Fresh | MockStatus::Canonical | MockStatus::Deprecated | MockStatus::Stale => {
                *self =
                    MockCounts { checked: self.checked, confirmed: self.confirmed, ..MockCounts::default() };
                MockStatus::Fresh
            }
        }
    }
}

/// Whether a mock can have caused such a failure. The others happen to real results too.
fn is_to_blame(kind: ErrorType) -> bool {
    match kind {
        ErrorType::Validation | ErrorType::NotFound | ErrorType::Internal | ErrorType::Unknown => true,
        ErrorType::Timeout
        | ErrorType::Permission
        | ErrorType::Network
        | ErrorType::RateLimit
        | ErrorType::Cancelled => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(outcomes: &[MockOutcome]) -> (MockStatus, MockCounts) {
        let mut counts = MockCounts::default();
        let status =
            outcomes.iter().fold(MockStatus::Fresh, |status, outcome| counts.count_use(status, *outcome));
        (status, counts)
    }

    const OK: MockOutcome = MockOutcome::Success;

    fn failed(kind: ErrorType) -> MockOutcome {
        MockOutcome::Failure(kind)
    }

    #[test]
    fn five_successes_make_a_mock_canonical() {
        assert_eq!(after(&[OK; 4]).0, MockStatus::Fresh);
        assert_eq!(after(&[OK; 5]).0, MockStatus::Canonical);
        // Nine of ten are not more than nine in ten.
        let unknown = failed(ErrorType::Unknown);
        assert_eq!(after(&[&[unknown], [OK; 9].as_slice()].concat()).0, MockStatus::Fresh);
        assert_eq!(after(&[&[unknown], [OK; 10].as_slice()].concat()).0, MockStatus::Canonical);
        assert_eq!(after(&[[OK; 5].as_slice(), &[unknown]].concat()).0, MockStatus::Fresh);
    }

    #[test]
    fn what_is_not_its_fault_changes_nothing() {
        for kind in [
            ErrorType::Network,
            ErrorType::Timeout,
            ErrorType::Permission,
            ErrorType::RateLimit,
            ErrorType::Cancelled,
        ] {
            let (status, counts) = after(&[[OK; 5].as_slice(), &[failed(kind); 7]].concat());
            assert_eq!(status, MockStatus::Canonical, "{kind:?}");
            assert_eq!((counts.uses, counts.successes, counts.failures[&kind]), (12, 5, 7));
        }
    }

    #[test]
    fn what_is_its_fault_ends_its_use() {
        for (kind, expected) in
            [(ErrorType::Validation, MockStatus::Deprecated), (ErrorType::NotFound, MockStatus::Stale)]
        {
            let (status, mut counts) = after(&[[OK; 8].as_slice(), &[failed(kind)]].concat());
            assert_eq!(status, expected);
            assert!(!status.is_usable());
            assert_eq!(counts.count_use(status, OK), expected, "a later success does not bring it back");
            assert_eq!(counts.count_use(MockStatus::Pinned, failed(kind)), MockStatus::Pinned);
        }
    }

    #[test]
    fn a_later_real_result_confirms_a_status_or_not() {
        let check = |status: MockStatus, real: Value| {
            let mut counts = MockCounts { uses: 7, ..MockCounts::default() };
            let next = counts.check_against(status, &json!({"id": 1}), &real);
            (next, counts.confirmed, counts.uses)
        };
        assert_eq!(check(MockStatus::Canonical, json!({"id": 2})), (MockStatus::Canonical, 1, 7));
        assert_eq!(check(MockStatus::Canonical, json!({"id": "two"})), (MockStatus::Fresh, 0, 0));
        assert_eq!(check(MockStatus::Deprecated, json!({"key": 2})), (MockStatus::Fresh, 1, 0));
        assert_eq!(check(MockStatus::Deprecated, json!({"id": 1})), (MockStatus::Fresh, 0, 0));
        assert_eq!(check(MockStatus::Stale, json!({"id": 2})), (MockStatus::Fresh, 1, 0));
        assert_eq!(check(MockStatus::Stale, json!({"id": 1})), (MockStatus::Fresh, 0, 0));
        assert_eq!(check(MockStatus::Pinned, json!({"id": 2})), (MockStatus::Pinned, 1, 7));
    }
}
