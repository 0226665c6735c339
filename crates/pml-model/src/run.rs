//! Runs: executions of a plan, their ids and states.

use serde::{Deserialize, Serialize};

/// Id of a run: 128 random bits, so that it cannot be guessed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

/// The error for a text that is not a run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a run: it looks like `run_` and 32 hexadecimal digits")]
pub struct BadRunId(String);

impl RunId {
    /// The id made from `random` bits.
    pub fn new(random: u128) -> RunId {
        RunId(format!("run_{random:032x}"))
    }

    /// Parses the text form.
    ///
    /// # Errors
    /// The text does not have the form of an id.
    pub fn parse(text: &str) -> Result<RunId, BadRunId> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.strip_prefix("run_") {
            Some(digits) if digits.len() == 32 && digits.bytes().all(is_digit) => Ok(RunId(text.to_owned())),
            _ => Err(BadRunId(crate::name::printable(text))),
        }
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// A process executes it.
    Running,
    /// It waits for an answer or for a time, and no process executes it.
    Waiting,
    /// The process that executed it is gone.
    Interrupted,
    /// It ended with a result.
    Done,
    /// It ended with an error.
    Failed,
    /// The client cancelled it.
    Cancelled,
    /// A person or a client ended it.
    Aborted,
    /// It waited longer than its limit.
    Expired,
}

impl RunState {
    /// Every state.
    pub const ALL: [RunState; 8] = [
        RunState::Running,
        RunState::Waiting,
        RunState::Interrupted,
        RunState::Done,
        RunState::Failed,
        RunState::Cancelled,
        RunState::Aborted,
        RunState::Expired,
    ];

    /// Whether the run has ended, so that nothing of it will change any more.
    pub fn is_over(self) -> bool {
        !matches!(self, RunState::Running | RunState::Waiting | RunState::Interrupted)
    }

    /// The name of the state, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Waiting => "waiting",
            RunState::Interrupted => "interrupted",
            RunState::Done => "done",
            RunState::Failed => "failed",
            RunState::Cancelled => "cancelled",
            RunState::Aborted => "aborted",
            RunState::Expired => "expired",
        }
    }

    /// The state with this name.
    pub fn parse(word: &str) -> Option<RunState> {
        RunState::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl std::fmt::Display for RunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = RunId::new(0xabc);
        assert_eq!(id.as_str(), "run_00000000000000000000000000000abc");
        assert_eq!(RunId::parse(id.as_str()), Ok(id));
        for wrong in [
            "",
            "run_",
            "run_ABC",
            "abc",
            "run_00000000000000000000000000000abg",
            "run_0x0000000000000000000000000000ab",
        ] {
            assert!(RunId::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn states_are_read_as_they_are_written() {
        for state in RunState::ALL {
            assert_eq!(RunState::parse(state.as_str()), Some(state));
        }
        assert_eq!(RunState::parse("Running"), None);
    }
}
