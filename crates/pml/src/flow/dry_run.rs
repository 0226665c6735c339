//! Dry runs: the real program against tools that are not all called.

use std::sync::Arc;
use std::time::Duration;

use pml_model::ToolId;
use serde_json::Value;

use super::Suggestions;
use crate::app::App;
use crate::planning::{PlanRefusal, RunRequest};
use crate::problem::{ErrorCode, Problem};
use crate::report::{DryRunMode, DryRunReport};

/// How a dry run is made.
#[derive(Debug, Clone, Default)]
pub struct DryRunOptions {
    /// Which calls are really made.
    pub mode: DryRunMode,
    /// The caller's own answers and arguments, as received: `{tools, args}`, or a flat map of tools.
    pub mocks: Option<Value>,
    /// Runs the program again with other made-up values, until every branch was taken or it has run this often;
    /// `None` runs it once.
    pub explore_branches: Option<u32>,
    /// The seed of made-up values and of the program's random numbers.
    pub seed: u64,
    /// A time limit for all runs together.
    pub timeout: Option<Duration>,
}

/// The outcome of a request for a dry run.
pub enum DryRunOutcome {
    /// The report.
    Report(Box<DryRunReport>),
    /// The program cannot be run, or the policy denies it.
    Refused(PlanRefusal),
    /// Nothing serves the intent: these are the candidates.
    Suggested(Box<Suggestions>),
}

/// Runs a request dry: nothing is changed, stored or learned.
///
/// # Errors
/// The request cannot be understood, or no worker is available.
pub async fn dry_run(
    _app: &Arc<App>,
    _asked: RunRequest,
    _options: DryRunOptions,
    _visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<DryRunOutcome, Problem> {
    Err(Problem::new(ErrorCode::InvalidRequest, "dry runs are not available yet"))
}
