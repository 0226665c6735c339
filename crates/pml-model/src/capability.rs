//! Capabilities: procedures that succeeded and are kept to be found and used again.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub use crate::id::{BadCapabilityId, CapabilityId};
pub use crate::keeping::{CacheChange, CacheConfig, Invalidation, KeyStrategy};
use crate::paths::LearnedPaths;
use crate::structure::Structure;
use crate::{Digest, Membership, Principal, Publication, RunId, Visibility};

/// A procedure with its name, its state and what was learned of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// The procedure.
    #[serde(flatten)]
    pub procedure: Procedure,
    /// Name for people and programs; unique among those of its owner.
    pub name: String,
    /// Current state.
    pub state: CapabilityState,
    /// Why it is degraded; `None` in any other state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded_because: Option<String>,
    /// The intents of its runs, most recent first.
    pub intents: Vec<CapabilityIntent>,
    /// Usage and success counts.
    #[serde(flatten)]
    pub statistics: CapabilityStatistics,
    /// Learned paths and decisions.
    pub learning: LearnedPaths,
    /// When it first succeeded, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_at: Option<i64>,
    /// When it was first run or created.
    pub created_at: i64,
    /// Whether a run of it that a person approved has succeeded.
    pub approved: bool,
    /// Who sees it.
    #[serde(default)]
    pub visibility: Visibility,
    /// The project and the organisation that it was published in; of no meaning for a private one.
    #[serde(skip)]
    pub published_in: Membership,
}

impl Capability {
    /// How far it is published; `None` if only its owner sees it.
    pub fn publication(&self) -> Option<Publication> {
        let is_published = self.visibility != Visibility::Private;
        is_published.then(|| Publication { visibility: self.visibility, place: self.published_in.clone() })
    }
}

/// The immutable part of a capability: code, parameters, tools.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Procedure {
    /// Stable id of the capability.
    pub id: CapabilityId,
    /// The principal that it belongs to.
    pub owner: Principal,
    /// Name to be used unless one is given. If it is taken, a number is appended.
    pub suggested_name: String,
    /// Purpose, in one sentence.
    pub description: String,
    /// The code, document or call.
    pub source: CapabilitySource,
    /// Hash of the exact source.
    pub code_hash: String,
    /// Hash of the meaning of the source.
    pub identity: String,
    /// Version of the rules that computed `identity`.
    pub analysis_version: u32,
    /// The tools it calls, with their definitions.
    pub tools_used: Vec<ToolUse>,
    /// The capabilities it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<CapabilityId>,
    /// JSON Schema of the parameters; the arguments of the first run are the defaults.
    pub parameters_schema: Value,
    /// Structure found by analysis.
    pub static_structure: Structure,
    /// How it came about.
    pub origin: CapabilityOrigin,
    /// Whether its results may be cached, and for how long.
    pub cache_config: CacheConfig,
    /// The form that takes more values from `args`, until it is proven to be the same program or dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven_lift: Option<Box<UnprovenLift>>,
}

/// A program in which the values that its first intent names are taken from `args`. It replaces the template once a
/// replay of the run has shown that it does the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnprovenLift {
    /// The program.
    pub template: String,
    /// JSON Schema of its parameters, with the lifted values as defaults.
    pub parameters_schema: Value,
    /// The run that it is compared with.
    pub run: RunId,
}

impl Procedure {
    /// Puts the lifted form in force, or drops it.
    pub fn settle_lift(&mut self, proven: bool) {
        let Some(lift) = self.unproven_lift.take() else { return };
        if let (true, CapabilitySource::Code { template, .. }) = (proven, &mut self.source) {
            *template = Some(lift.template);
            self.parameters_schema = lift.parameters_schema;
        }
    }
}

/// The source of a capability.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase", try_from = "WrittenSource")]
pub enum CapabilitySource {
    /// A JavaScript program.
    Code {
        /// The program as written, without secrets.
        code: String,
        /// The program with its literals taken from `args`, if that is possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template: Option<String>,
    },
    /// A DAG document.
    Dag {
        /// The document as written, without secrets.
        dag_structure: Box<RawValue>,
        /// The document with its literals taken from `args`, if that is possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template: Option<Box<RawValue>>,
    },
    /// One tool call.
    Tool {
        /// `server:tool`.
        tool_id: String,
        /// Arguments for what the caller leaves out.
        default_args: Box<RawValue>,
    },
}

/// Wire form of [`CapabilitySource`]. Serde cannot read raw values from an internally tagged enum.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenSource {
    r#type: String,
    code: Option<String>,
    dag_structure: Option<Box<RawValue>>,
    tool_id: Option<String>,
    default_args: Option<Box<RawValue>>,
    template: Option<Box<RawValue>>,
}

impl TryFrom<WrittenSource> for CapabilitySource {
    type Error = String;

    fn try_from(written: WrittenSource) -> Result<CapabilitySource, String> {
        let WrittenSource { r#type, code, dag_structure, tool_id, default_args, template } = written;
        match (r#type.as_str(), code, dag_structure, tool_id, default_args) {
            ("code", Some(code), ..) => {
                let text = template.map(|template| serde_json::from_str(template.get())).transpose();
                Ok(CapabilitySource::Code { code, template: text.map_err(|error| error.to_string())? })
            }
            ("dag", _, Some(dag_structure), ..) => Ok(CapabilitySource::Dag { dag_structure, template }),
            ("tool", _, _, Some(tool_id), Some(default_args)) => {
                Ok(CapabilitySource::Tool { tool_id, default_args })
            }
            _ => Err(format!(
                "`{}` is not what a capability runs: `code`, `dag` or `tool` with what belongs to it",
                crate::name::printable(&r#type)
            )),
        }
    }
}

/// A tool that a capability calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// `server:tool`.
    pub id: String,
    /// Digest of its definition when the capability last succeeded.
    pub digest: Digest,
}

/// State of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CapabilityState {
    /// It was run and has not succeeded yet: a plan.
    Planned,
    /// It is offered and used.
    Active,
    /// It used to succeed and is taken for broken.
    Degraded,
}

impl CapabilityState {
    /// Every state.
    pub const ALL: [CapabilityState; 3] =
        [CapabilityState::Planned, CapabilityState::Active, CapabilityState::Degraded];

    /// The name of the state, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            CapabilityState::Planned => "planned",
            CapabilityState::Active => "active",
            CapabilityState::Degraded => "degraded",
        }
    }

    /// The state with this name.
    pub fn parse(word: &str) -> Option<CapabilityState> {
        CapabilityState::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// How a capability came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CapabilityOrigin {
    /// From a run.
    Emergent,
    /// A person wrote it.
    Manual,
    /// From explorations in which it was viable. It runs by name only until a run of it has succeeded.
    Explored,
    /// From somebody's package. It runs by name only until a run of it has succeeded.
    Imported,
}

/// An intent that a capability was run for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityIntent {
    /// The intent, in the words of the client.
    pub text: String,
    /// Number of successful runs for it.
    pub count: u64,
    /// When the first of them ended.
    pub first_at: i64,
    /// When the last of them ended.
    pub last_at: i64,
}

/// Usage and success counts of a capability.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityStatistics {
    /// Number of uses, cached results included.
    pub usage_count: u64,
    /// Number of successful runs.
    pub success_count: u64,
    /// Number of failed runs.
    pub failure_count: u64,
    /// Number of failures since the last success.
    pub failures_in_a_row: u64,
    /// Mean duration of its successful runs in milliseconds: of all as long as there are ten at most, then an exponential mean.
    pub avg_duration_ms: f64,
    /// When it was last used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<i64>,
}

/// Posterior probability of success after `worked` of `tried` attempts, with a prior of 0.8 that weighs two attempts.
pub fn expected_success(worked: u64, tried: u64) -> f64 {
    weighted_success(worked as f64, tried as f64)
}

fn weighted_success(worked: f64, tried: f64) -> f64 {
    (worked + 1.6) / (tried + 2.0)
}

/// Probability of success from which on [`reliability`] is 1.
const GOOD: f64 = 0.8;

/// Factor from 0 to 1 for the rank of something that succeeded in `worked` of `tried` attempts.
pub fn reliability(worked: u64, tried: u64) -> f64 {
    weighted_reliability(worked as f64, tried as f64)
}

/// As [`reliability`], for attempts that do not all count fully.
pub fn weighted_reliability(worked: f64, tried: f64) -> f64 {
    (weighted_success(worked, tried) / GOOD).min(1.0)
}

impl CapabilityStatistics {
    /// Posterior probability of success. The prior is high, so that one success is enough to be suggested.
    pub fn success_estimate(&self) -> f64 {
        expected_success(self.success_count, self.success_count + self.failure_count)
    }

    /// Share of successful attempts; `None` if there was no attempt.
    pub fn success_rate(&self) -> Option<f64> {
        let tried = self.success_count + self.failure_count;
        (tried > 0).then(|| self.success_count as f64 / tried as f64)
    }

    /// Weight of its usage, from 0 to 1.
    pub fn usage_weight(&self) -> f64 {
        let used = self.usage_count as f64;
        used / (used + 3.0)
    }

    /// Quality as a suggestion, from 0 to 1.
    pub fn quality(&self) -> f64 {
        0.6 * self.success_estimate() + 0.4 * self.usage_weight()
    }
}

/// Number of failures in a row after which a capability is degraded.
pub const DEGRADING_FAILURES: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_is_read_as_it_is_written() {
        for text in [
            r#"{"type":"code","code":"return 1"}"#,
            r#"{"type":"code","code":"return 1","template":"return args.one"}"#,
            r#"{"type":"dag","dagStructure":{"tasks": [1.50]}}"#,
            r#"{"type":"dag","dagStructure":{},"template":{"tasks": []}}"#,
            r#"{"type":"tool","toolId":"fs:read","defaultArgs":{"path": "a"}}"#,
        ] {
            let source: CapabilitySource = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&source).unwrap(), text);
        }
        for text in [r#"{"type":"tool","code":"return 1"}"#, r#"{"type":"other"}"#] {
            assert!(serde_json::from_str::<CapabilitySource>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_success_is_enough_to_be_suggested() {
        let none = CapabilityStatistics::default();
        let once =
            CapabilityStatistics { usage_count: 1, success_count: 1, ..CapabilityStatistics::default() };
        let failing =
            CapabilityStatistics { usage_count: 3, failure_count: 3, ..CapabilityStatistics::default() };
        assert!(
            (once.success_estimate() - 2.6 / 3.0).abs() < 1e-12 && (once.usage_weight() - 0.25).abs() < 1e-12
        );
        assert!((once.quality() - 0.62).abs() < 1e-12);
        assert!(once.quality() > none.quality() && none.quality() > failing.quality() - 0.2);
        assert_eq!((none.success_rate(), failing.success_rate()), (None, Some(0.0)));
    }
}
