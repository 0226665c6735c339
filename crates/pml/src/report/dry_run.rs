//! The report of a dry run, as it is sent to clients.

use std::collections::BTreeMap;
use std::fmt;

use pml_model::ToolId;
use pml_model::name::printable;
use pml_model::structure::NodeId;
use rust_decimal::Decimal;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{ConsoleLine, RunFailure};
use crate::report::ValueOrigin;

/// What a program would do, found out by running it against answers that are partly made up.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRunReport {
    /// The id to confirm the dry run with: `explorePath` of `pml_execute`.
    pub id: String,
    /// Whether the program returned.
    pub status: DryRunStatus,
    /// Which calls were really made.
    pub mode: DryRunMode,
    /// The seed of made-up values and of the program's random numbers.
    pub seed: u64,
    /// What the program returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub result: Option<Box<RawValue>>,
    /// Why it did not return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunFailure>,
    /// Every call, in the order of issue.
    pub captured_calls: Vec<CapturedCall>,
    /// How long the dry run took, in milliseconds.
    pub execution_time_ms: u64,
    /// Where the outcome depends on made-up values.
    pub warnings: Vec<DryRunWarning>,
    /// What a real run would change.
    pub effects: Vec<DryRunEffect>,
    /// The branches that were taken, and those that were not.
    pub branches: BranchCoverage,
    /// The calls that a real run would make, by server.
    pub estimated_api_calls: BTreeMap<String, u32>,
    /// What these calls would cost, where the operator gives prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<EstimatedCost>,
    /// The paths that exploration found, each the first to take some branch; empty unless branches were explored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<ExploredPath>,
    /// All these paths as one structure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub dag: Option<Value>,
    /// Arguments that only the mocks give: a real run needs them in `context`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What the program printed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub console: Vec<ConsoleLine>,
}

/// What the calls of a real run would cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EstimatedCost {
    /// The sums, one for each currency.
    pub amounts: Vec<CostAmount>,
    /// The calls that have a price.
    pub priced_calls: u32,
    /// The calls that have none, apart from those of built-in servers.
    pub unpriced_calls: u32,
}

/// A sum of money.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CostAmount {
    /// The amount, exact.
    #[serde(serialize_with = "as_number")]
    #[schema(value_type = f64)]
    pub amount: Decimal,
    /// The code of the currency in ISO 4217.
    pub currency: String,
}

fn as_number<S: Serializer>(amount: &Decimal, to: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(amount.to_string()).map_err(S::Error::custom)?.serialize(to)
}

impl fmt::Display for EstimatedCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sums: Vec<String> =
            self.amounts.iter().map(|sum| format!("{} {}", sum.amount, sum.currency)).collect();
        match (sums.is_empty(), self.unpriced_calls) {
            (true, 0) => f.write_str("nothing")?,
            (true, _) => f.write_str("unknown")?,
            (false, _) => write!(f, "{} for {}", sums.join(" + "), calls(self.priced_calls))?,
        }
        match self.unpriced_calls {
            0 => Ok(()),
            1 => f.write_str("; 1 call has no price"),
            more => write!(f, "; {} have no price", calls(more)),
        }
    }
}

fn calls(count: u32) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}

/// Which calls of a dry run are really made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DryRunMode {
    /// None.
    Mocked,
    /// Those of tools that only read, by the operator's word.
    #[default]
    Hybrid,
}

/// How the program of a dry run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DryRunStatus {
    /// It returned.
    Success,
    /// It failed.
    Failed,
}

/// One call of a dry run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapturedCall {
    /// The number of the call, in the order of issue.
    pub call: u32,
    /// The server.
    pub server: String,
    /// The tool within its server.
    pub tool: String,
    /// The arguments, as the program gave them.
    #[schema(value_type = Value)]
    pub args: Box<RawValue>,
    /// The made-up answer; `None` if the answer is real or an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub mock_response: Option<Box<RawValue>>,
    /// The real answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub response: Option<Box<RawValue>>,
    /// The error that the program was given instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunFailure>,
    /// What the answer comes from.
    #[schema(value_type = String)]
    pub origin: ValueOrigin,
    /// Whether the answer depends on earlier calls in a way that is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unknown_state: bool,
    /// When the call was issued on the clock of the program, in milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// How long its answer took, in milliseconds.
    pub duration_ms: u64,
    /// The node that makes the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub node_id: Option<NodeId>,
    /// The source line of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The capability that makes the call, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
}

impl CapturedCall {
    /// Whether the tool was really called.
    pub fn is_real(&self) -> bool {
        self.origin == ValueOrigin::Real
    }
}

/// A place where the outcome depends on a made-up value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRunWarning {
    /// The sentence for people.
    pub message: String,
    /// The tool whose answer was made up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The node that depends on it: a decision or a call; `None` for the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub node_id: Option<NodeId>,
    /// The source line of that node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// A change that a real run would make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRunEffect {
    /// The sentence for people, such as "would delete `a.txt`".
    pub text: String,
    /// The tool that makes the change.
    #[schema(value_type = String)]
    pub tool: ToolId,
    /// The path, for a change of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How many calls make it.
    pub calls: u32,
    /// Whether what is changed depends on made-up values.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
}

/// The branches of a program.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BranchCoverage {
    /// The branches that were taken.
    pub covered: Vec<Branch>,
    /// The branches that were not.
    pub uncovered: Vec<Branch>,
    /// How many times the program was run.
    pub runs: u32,
}

/// A path that exploration found.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExploredPath {
    /// What differs from the first run.
    pub because: Vec<String>,
    /// The decisions on the way, with their outcomes.
    #[schema(value_type = Vec<Object>)]
    pub decisions: Vec<Value>,
    /// Whether the program returned.
    pub status: DryRunStatus,
    /// What a real run on this path would change.
    pub effects: Vec<String>,
}

/// One branch: an outcome of a decision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// The decision.
    #[schema(value_type = String)]
    pub decision: NodeId,
    /// The tested expression, as written.
    pub condition: String,
    /// `true`, `false`, `case:<value>`, `default`, `error`.
    pub outcome: String,
    /// The source line of the decision.
    pub line: u32,
    /// The capability that decides, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// What would reach it, where it was not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_by: Option<String>,
}

impl Branch {
    /// Where it is decided, in words.
    pub fn place(&self) -> String {
        match &self.capability {
            Some(capability) => format!("`{}`, line {}", printable(capability), self.line),
            None => format!("line {}", self.line),
        }
    }
}
