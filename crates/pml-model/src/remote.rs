//! Client-routed runs on the wire: what a server tells a client to run itself, and the trace that the client sends back.
//!
//! A trace comes from another machine, so nothing of it is believed. [`ClientTrace::check`] refuses what no client could
//! have measured; whether it fits the program that was analysed is checked where that is known. The traces of a client
//! form a chain: each carries the hash of the one before, so that loss and reordering are seen.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::{Fields, canonical_json, raw};
use crate::structure::NodeId;
use crate::trace::{EdgeKind, TraceEdge};
use crate::{Digest, RunId};

/// The traces of one request.
pub const MOST_TRACES: usize = 256;
/// 7 days in milliseconds: longer than any run may take.
const LONGEST_MS: f64 = 7.0 * 24.0 * 60.0 * 60.0 * 1_000.0;
/// The calls of one trace: as many as are kept of a run.
const MOST_CALLS: usize = 500;
/// The decisions, and the nodes of the path, of one trace.
const MOST_NODES: usize = 2_000;
/// Bytes of the arguments and of the result of one call.
const MOST_VALUE_BYTES: usize = 64 * 1024;
/// Bytes of a message.
const MOST_TEXT_BYTES: usize = 4 * 1024;
/// Bytes of the name that a client gives itself.
const MOST_NAME_BYTES: usize = 64;
/// How often one decision may have had one outcome.
const MOST_TIMES: u64 = 1_000_000;
/// The position of a trace: every number up to it is exact in JSON.
const LAST_SEQ: u64 = 1 << 53;

/// Where the calls of a tool are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Routing {
    /// By the gateway that has the tool.
    #[default]
    Server,
    /// By the client, on its own machine.
    Client,
}

impl Routing {
    /// The word in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Routing::Server => "server",
            Routing::Client => "client",
        }
    }

    /// The routing with this name.
    pub fn parse(word: &str) -> Option<Routing> {
        [Routing::Server, Routing::Client].into_iter().find(|routing| routing.as_str() == word)
    }

    /// Whether the gateway makes the calls.
    pub fn is_server(&self) -> bool {
        *self == Routing::Server
    }
}

/// What a client is told to run itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecuteLocally {
    /// The id that the trace of the run has to carry.
    pub workflow_id: RunId,
    /// The program, as the client sent it.
    pub code: String,
    /// The tools that the program may call.
    pub tools_used: Vec<String>,
    /// Those of them that are on the machine of the client.
    pub client_tools: Vec<String>,
    /// What analysis found.
    pub dag: DagSummary,
    /// How long analysis took, in milliseconds.
    pub execution_time_ms: f64,
}

/// What analysis found in a program, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DagSummary {
    /// Always `dag`.
    pub mode: DagMode,
    /// The places that call a tool.
    pub tasks_count: usize,
    /// How many of them follow each other at most.
    pub layers_count: usize,
    /// The tools that are called.
    pub tools_discovered: Vec<String>,
}

/// The form of a program that is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DagMode {
    /// Its calls form a graph.
    Dag,
}

/// What a client says of a run that it made itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientTrace {
    /// The id that came with the program.
    pub workflow_id: String,
    /// The capability, if the client knows it; may be empty.
    #[serde(default)]
    pub capability_id: String,
    /// Whether the program returned a result.
    pub success: bool,
    /// The failure of a program that did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long the run took, in milliseconds.
    pub duration_ms: f64,
    /// The calls, in the order in which they were issued.
    pub task_results: Vec<ClientCall>,
    /// The outcomes of decisions.
    #[serde(default)]
    pub decisions: Vec<ClientDecision>,
    /// When the run ended, as RFC 3339.
    pub timestamp: String,
    /// The person, if the client names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The name of the client's queue of traces.
    pub client: String,
    /// The position of the trace in the queue, from 1.
    pub seq: u64,
    /// The hash of the trace before it; empty for the first.
    pub previous: String,
    /// The hash of this trace: see [`chain_hash`].
    pub hash: String,
    /// Dependencies between the calls.
    #[serde(default)]
    pub edges: Vec<TraceEdge>,
    /// The nodes that were reached.
    #[serde(default)]
    pub executed_path: Vec<NodeId>,
}

/// A call that a client made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientCall {
    /// The client's name for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The node that made it, if the client knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// The tool, as `server:tool`.
    pub tool: String,
    /// The arguments, or what is told in their place.
    #[serde(default = "nothing")]
    pub args: Box<RawValue>,
    /// The result, or what is told in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// Whether the call succeeded.
    pub success: bool,
    /// The failure of a call that did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
    /// How long after the start of the run it was issued, in milliseconds. Without it, after the call before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<f64>,
}

/// An outcome of a decision, as a client observed it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientDecision {
    /// The decision, or the `try` whose handler was entered.
    pub node_id: NodeId,
    /// `true`, `false`, `case:<value>`, `default`, `error`.
    pub outcome: String,
    /// The number of times.
    #[serde(default = "once")]
    pub times: u64,
}

fn nothing() -> Box<RawValue> {
    raw(&serde_json::json!({}))
}

fn once() -> u64 {
    1
}

/// Why a trace is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTrace {
    /// It does not have the form of a trace.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// A member has a value that no client can have measured.
    #[error("`{member}` {why}")]
    Member {
        /// The member.
        member: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

fn bad(member: &'static str, why: impl Into<String>) -> BadTrace {
    BadTrace::Member { member, why: why.into() }
}

/// The hash of a trace: over the hash of the one before, and the canonical form of all its members but `hash`.
///
/// # Errors
/// The text is not a JSON object.
pub fn chain_hash(previous: &str, trace: &RawValue) -> Result<Digest, BadTrace> {
    let unreadable = |error: &dyn std::fmt::Display| BadTrace::Unreadable(error.to_string());
    let mut members = Fields::parse(trace.get()).map_err(|error| unreadable(&error))?;
    members.remove("hash");
    let canonical = canonical_json(members.to_raw().get()).map_err(|error| unreadable(&error))?;
    Ok(Digest::of(format!("{previous}\n{canonical}").as_bytes()))
}

impl ClientTrace {
    /// Reads a trace and checks everything about it that needs no other knowledge.
    ///
    /// # Errors
    /// It has another form, a value out of range, or another hash than it says.
    pub fn read(text: &RawValue) -> Result<ClientTrace, BadTrace> {
        let trace: ClientTrace =
            serde_json::from_str(text.get()).map_err(|error| BadTrace::Unreadable(error.to_string()))?;
        trace.check()?;
        match chain_hash(&trace.previous, text)?.as_str() == trace.hash {
            true => Ok(trace),
            false => Err(bad("hash", "is not that of the trace")),
        }
    }

    /// The id that came with the program.
    ///
    /// # Errors
    /// It does not have the form of one.
    pub fn workflow(&self) -> Result<RunId, BadTrace> {
        RunId::parse(&self.workflow_id).map_err(|error| bad("workflowId", format!("is refused: {error}")))
    }

    fn check(&self) -> Result<(), BadTrace> {
        self.workflow()?;
        let in_time = |ms: f64| ms.is_finite() && (0.0..=LONGEST_MS).contains(&ms);
        if !in_time(self.duration_ms) {
            return Err(bad("durationMs", "is not a time from 0 to 7 days"));
        }
        if self.success == self.error.is_some() {
            return Err(bad("error", "must be there exactly if `success` is false"));
        }
        if self.error.as_ref().is_some_and(|text| text.len() > MOST_TEXT_BYTES) {
            return Err(bad("error", "is too long"));
        }
        if !is_timestamp(&self.timestamp) {
            return Err(bad("timestamp", "is not a time such as `2026-01-13T12:00:00Z`"));
        }
        if !self.capability_id.is_empty() && crate::CapabilityId::parse(&self.capability_id).is_err() {
            return Err(bad("capabilityId", "is neither empty nor the id of a capability"));
        }
        self.check_place()?;
        self.check_path()?;
        if self.task_results.len() > MOST_CALLS {
            return Err(bad("taskResults", format!("has more than {MOST_CALLS} calls")));
        }
        // Clocks are read at different moments, so calls may seem to end a little after their run.
        let latest = self.duration_ms + 1_000.0;
        let within = |ms: f64| ms.is_finite() && (0.0..=latest).contains(&ms);
        let mut before = 0.0;
        self.task_results.iter().try_for_each(|call| {
            if !within(call.duration_ms) {
                return Err(bad("taskResults.durationMs", "is not a time within the run"));
            }
            if let Some(started) = call.started_ms {
                if !within(started) || started < before {
                    return Err(bad("taskResults.startedMs", "is not a time within the run, in order"));
                }
                before = started;
            }
            call.check()
        })
    }

    /// The place in the chain.
    fn check_place(&self) -> Result<(), BadTrace> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if self.client.is_empty() || self.client.len() > MOST_NAME_BYTES || !self.client.bytes().all(is_name)
        {
            return Err(bad("client", "is not a name of up to 64 letters, digits, `-`, `_` and `.`"));
        }
        if self.seq == 0 || self.seq > LAST_SEQ {
            return Err(bad("seq", "is not a position from 1"));
        }
        let is_hash = |text: &str| {
            text.len() == 64
                && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        if !is_hash(&self.hash) {
            return Err(bad("hash", "is not 64 hexadecimal digits"));
        }
        match (self.seq, self.previous.as_str()) {
            (1, "") => Ok(()),
            (1, _) => Err(bad("previous", "must be empty for the first trace")),
            (_, previous) if is_hash(previous) => Ok(()),
            (_, _) => Err(bad("previous", "is not 64 hexadecimal digits")),
        }
    }

    fn check_path(&self) -> Result<(), BadTrace> {
        if self.executed_path.len() > MOST_NODES || self.decisions.len() > MOST_NODES {
            return Err(bad("executedPath", format!("has more than {MOST_NODES} nodes")));
        }
        if self.decisions.iter().any(|made| made.times == 0 || made.times > MOST_TIMES) {
            return Err(bad("decisions.times", format!("is not a number from 1 to {MOST_TIMES}")));
        }
        if self.decisions.iter().any(|made| made.outcome.len() > MOST_VALUE_BYTES) {
            return Err(bad("decisions.outcome", "is too long"));
        }
        let calls = self.task_results.len() as u64;
        let fits = |edge: &TraceEdge| {
            edge.from < edge.to
                && u64::from(edge.to) < calls
                && matches!(edge.kind, EdgeKind::Dependency | EdgeKind::Sequence)
        };
        if self.edges.len() > MOST_CALLS * 8 || !self.edges.iter().all(fits) {
            return Err(bad("edges", "does not go from an earlier call to a later one"));
        }
        Ok(())
    }
}

impl ClientCall {
    fn check(&self) -> Result<(), BadTrace> {
        if crate::ToolId::parse(&self.tool).is_err() {
            return Err(bad("taskResults.tool", "is not a tool, written `server:tool`"));
        }
        if self.args.get().len() > MOST_VALUE_BYTES
            || self.result.as_ref().is_some_and(|result| result.get().len() > MOST_VALUE_BYTES)
        {
            return Err(bad("taskResults", format!("has a value of more than {MOST_VALUE_BYTES} bytes")));
        }
        if !self.args.get().starts_with('{') {
            return Err(bad("taskResults.args", "is not an object"));
        }
        let texts = [&self.task_id, &self.error];
        if texts.into_iter().flatten().any(|text| text.len() > MOST_TEXT_BYTES) {
            return Err(bad("taskResults", "has a text that is too long"));
        }
        match (self.success, &self.error) {
            (true, Some(_)) => Err(bad("taskResults.error", "belongs to a call that succeeded")),
            (false, _) if self.result.is_some() => {
                Err(bad("taskResults.result", "belongs to a call that failed"))
            }
            (_, _) => Ok(()),
        }
    }
}

/// Whether a text has the form of RFC 3339. The time itself is not believed: what counts is when a trace arrives.
fn is_timestamp(text: &str) -> bool {
    let form = b"0000-00-00T00:00:00";
    let fits = |(byte, form): (u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        other => byte == *other,
    };
    (form.len() + 1..=form.len() + 17).contains(&text.len())
        && text.bytes().zip(form).all(fits)
        && text.bytes().skip(form.len()).all(|byte| byte.is_ascii_digit() || b".Z+-:".contains(&byte))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sealed(mut trace: Value) -> Box<RawValue> {
        let previous = trace["previous"].as_str().unwrap_or_default().to_owned();
        let hash = chain_hash(&previous, &raw(&trace)).unwrap();
        trace["hash"] = json!(hash);
        raw(&trace)
    }

    fn plain() -> Value {
        json!({
            "workflowId": format!("run_{:032x}", 7), "capabilityId": "", "success": true, "durationMs": 12.5,
            "taskResults": [{ "tool": "files:read", "args": {}, "result": "x", "success": true, "durationMs": 3 }],
            "decisions": [], "timestamp": "2026-01-13T00:00:00Z", "client": "c-1", "seq": 1, "previous": "",
        })
    }

    #[test]
    fn a_trace_is_read_whole_and_hashed_whatever_its_spacing() {
        let text = sealed(plain());
        let trace = ClientTrace::read(&text).unwrap();
        assert_eq!((trace.seq, trace.task_results.len()), (1, 1));
        let value: Value = serde_json::from_str(text.get()).unwrap();
        let spaced = RawValue::from_string(serde_json::to_string_pretty(&value).unwrap()).unwrap();
        assert_eq!(ClientTrace::read(&spaced).unwrap().hash, trace.hash);
    }

    #[test]
    fn what_no_client_can_have_measured_is_refused() {
        let with = |change: fn(&mut Value)| {
            let mut trace = plain();
            change(&mut trace);
            ClientTrace::read(&sealed(trace)).map(|_| ()).map_err(|error| error.to_string())
        };
        let refused: Vec<fn(&mut Value)> = vec![
            |trace| trace["durationMs"] = json!(-1),
            |trace| trace["durationMs"] = json!(1e300),
            |trace| trace["workflowId"] = json!("run_1"),
            |trace| trace["error"] = json!("both"),
            |trace| trace["success"] = json!(false),
            |trace| trace["seq"] = json!(0),
            |trace| trace["seq"] = json!(2),
            |trace| trace["client"] = json!("a/b"),
            |trace| trace["usageCount"] = json!(1_000_000),
            |trace| trace["taskResults"][0]["tool"] = json!("no tool"),
            |trace| trace["taskResults"][0]["durationMs"] = json!(1e9),
            |trace| trace["taskResults"][0]["args"] = json!([]),
            |trace| trace["taskResults"][0]["error"] = json!("no"),
            |trace| trace["edges"] = json!([{ "from": 0, "to": 1, "type": "dependency" }]),
            |trace| trace["decisions"] = json!([{ "nodeId": "d1", "outcome": "true", "times": 0 }]),
            |trace| trace["executedPath"] = json!(["x1"]),
        ];
        for (place, change) in refused.into_iter().enumerate() {
            assert!(with(change).is_err(), "case {place}");
        }
        assert_eq!(with(|_| {}), Ok(()));
        let mut forged: Value = serde_json::from_str(sealed(plain()).get()).unwrap();
        forged["success"] = json!(false);
        forged["error"] = json!("changed after it was hashed");
        assert_eq!(
            ClientTrace::read(&raw(&forged)).unwrap_err().to_string(),
            "`hash` is not that of the trace"
        );
    }
}
