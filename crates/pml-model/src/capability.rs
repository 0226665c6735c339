//! Capabilities: procedures that worked, kept to be found and used again.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub use crate::id::{CapabilityId, NoCapabilityId};
pub use crate::keeping::{CacheChange, CacheConfig, Invalidation, KeyStrategy};
use crate::paths::Learning;
use crate::structure::Structure;
use crate::{Digest, Principal};

/// A procedure, what is known of it and how it does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// What it is.
    #[serde(flatten)]
    pub procedure: Procedure,
    /// How people and programs call it; unique among those of its owner.
    pub name: String,
    /// How it stands.
    pub state: State,
    /// Why it is degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded_because: Option<String>,
    /// What it was run for, most recent first.
    pub intents: Vec<Intent>,
    /// How it does.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// What is known of its ways.
    pub learning: Learning,
    /// When it first worked, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_at: Option<i64>,
    /// When it was first run or made.
    pub created_at: i64,
    /// A run of it that a person allowed has worked.
    pub approved: bool,
}

/// What a capability is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Procedure {
    /// Its name for good.
    pub id: CapabilityId,
    /// Whose it is.
    pub owner: Principal,
    /// How it is called where nobody says otherwise. Taken, so that names stay unique, with a number behind it.
    pub suggested_name: String,
    /// What it is for, in a sentence.
    pub description: String,
    /// What is run.
    pub source: Source,
    /// Hash of the exact source.
    pub code_hash: String,
    /// Hash of what the source means.
    pub identity: String,
    /// Which rules made `identity`.
    pub analysis_version: u32,
    /// The tools it calls.
    pub tools_used: Vec<ToolUse>,
    /// The capabilities it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<CapabilityId>,
    /// What it takes, JSON Schema; what the first run was given stands as defaults.
    pub parameters_schema: Value,
    /// What it can do.
    pub static_structure: Structure,
    /// Who made it.
    pub origin: Origin,
    /// Whether its results may be kept, and for how long.
    pub cache_config: CacheConfig,
}

/// What is run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase", try_from = "WrittenSource")]
pub enum Source {
    /// A program.
    Code {
        /// As it was written, without secrets.
        code: String,
        /// The same program with its literals taken from `args`, where that is possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template: Option<String>,
    },
    /// A DAG document.
    Dag {
        /// As it was written, without secrets.
        dag_structure: Box<RawValue>,
        /// The same document with its literals taken from `args`, where that is possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template: Option<Box<RawValue>>,
    },
    /// One call of a tool.
    Tool {
        /// `server:tool`.
        tool_id: String,
        /// What it is given where the caller does not say otherwise.
        default_args: Box<RawValue>,
    },
}

/// What is run, as it is written. Raw values cannot be read from an enum that carries its tag inside.
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

impl TryFrom<WrittenSource> for Source {
    type Error = String;

    fn try_from(written: WrittenSource) -> Result<Source, String> {
        let WrittenSource { r#type, code, dag_structure, tool_id, default_args, template } = written;
        match (r#type.as_str(), code, dag_structure, tool_id, default_args) {
            ("code", Some(code), ..) => {
                let text = template.map(|template| serde_json::from_str(template.get())).transpose();
                Ok(Source::Code { code, template: text.map_err(|error| error.to_string())? })
            }
            ("dag", _, Some(dag_structure), ..) => Ok(Source::Dag { dag_structure, template }),
            ("tool", _, _, Some(tool_id), Some(default_args)) => Ok(Source::Tool { tool_id, default_args }),
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
    /// Its definition when the capability last worked.
    pub digest: Digest,
}

/// How a capability stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It has been run and has not worked yet: a plan.
    Planned,
    /// It is found and used.
    Active,
    /// It used to work.
    Degraded,
}

impl State {
    /// Every state.
    pub const ALL: [State; 3] = [State::Planned, State::Active, State::Degraded];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Planned => "planned",
            State::Active => "active",
            State::Degraded => "degraded",
        }
    }

    /// The state a word stands for.
    pub fn parse(word: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// Who made a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// It came of being run.
    Emergent,
    /// A person wrote it down.
    Manual,
}

/// Something a capability was run for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// In the words of whoever asked.
    pub text: String,
    /// How often it worked for that.
    pub count: u64,
    /// When it first did.
    pub first_at: i64,
    /// When it last did.
    pub last_at: i64,
}

/// How a capability does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statistics {
    /// How often it was used, answers from caches included.
    pub usage_count: u64,
    /// How often it worked.
    pub success_count: u64,
    /// How often it failed.
    pub failure_count: u64,
    /// How often it has failed since it last worked.
    pub failures_in_a_row: u64,
    /// How long it takes.
    pub avg_duration_ms: f64,
    /// When it was last used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<i64>,
}

/// How likely something is to work that worked so often of the times it was tried.
pub fn expected_success(worked: u64, tried: u64) -> f64 {
    (worked as f64 + 1.6) / (tried as f64 + 2.0)
}

/// What is expected to be good enough to count fully.
const GOOD: f64 = 0.8;

/// How much of what it seems to promise something keeps, from 0 to 1, that worked so often of the times it was tried.
pub fn reliability(worked: u64, tried: u64) -> f64 {
    (expected_success(worked, tried) / GOOD).min(1.0)
}

impl Statistics {
    /// How likely it works, with what is expected of one nobody has tried: one success is enough to be believed.
    pub fn success(&self) -> f64 {
        expected_success(self.success_count, self.success_count + self.failure_count)
    }

    /// How often it worked of the times it was tried.
    pub fn success_rate(&self) -> Option<f64> {
        let tried = self.success_count + self.failure_count;
        (tried > 0).then(|| self.success_count as f64 / tried as f64)
    }

    /// How much use there was of it, from 0 to 1.
    pub fn usage(&self) -> f64 {
        let used = self.usage_count as f64;
        used / (used + 3.0)
    }

    /// How good a suggestion it is, from 0 to 1.
    pub fn quality(&self) -> f64 {
        0.6 * self.success() + 0.4 * self.usage()
    }
}

/// How many failures in a row make a capability degraded.
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
            let source: Source = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&source).unwrap(), text);
        }
        for text in [r#"{"type":"tool","code":"return 1"}"#, r#"{"type":"other"}"#] {
            assert!(serde_json::from_str::<Source>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_success_is_enough_to_be_suggested() {
        let none = Statistics::default();
        let once = Statistics { usage_count: 1, success_count: 1, ..Statistics::default() };
        let failing = Statistics { usage_count: 3, failure_count: 3, ..Statistics::default() };
        assert!((once.success() - 2.6 / 3.0).abs() < 1e-12 && (once.usage() - 0.25).abs() < 1e-12);
        assert!((once.quality() - 0.62).abs() < 1e-12);
        assert!(once.quality() > none.quality() && none.quality() > failing.quality() - 0.2);
        assert_eq!((none.success_rate(), failing.success_rate()), (None, Some(0.0)));
    }
}
