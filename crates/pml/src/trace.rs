//! Builds the trace of a run: what is kept of it for good.
//!
//! A [`Recorder`] receives every call and its end, live or from the journal, and finally builds a [`Trace`] without
//! secrets. Data flow is found in the original values; the trace contains the sanitised ones.

mod edges;

use pml_model::ErrorCode;
use std::collections::HashMap;
use std::time::Duration;

use pml_model::json::raw;
use pml_model::structure::{DecisionForm, NodeId, NodeKind, Structure};
use pml_model::trace::{DecisionOutcome, ErrorType, TaskResult, Trace, TraceBody, TraceFailure, TraceStatus};
use pml_model::{Digest, Principal, RunId, RunState, TraceId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error_type;
use crate::report::{ExecutedPath, RunFailure, RunReport};
use crate::sanitise::Sanitiser;

/// 10 KiB: the largest result that is kept complete.
const MOST_BYTES: usize = 10 * 1024;
/// The number of calls kept per node: the calls of a loop are much alike.
const MOST_OF_A_NODE: u32 = 20;
/// The number of calls kept per run.
const MOST_CALLS: usize = 500;
/// The number of operations kept per run, beside its calls.
const MOST_OPERATIONS: usize = 200;
/// The number of characters kept of an error message.
const MESSAGE_CHARACTERS: usize = 500;

/// What a call refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum CallRef {
    /// A tool, in the call with that number.
    Call(u32),
    /// A capability, in the frame with that number.
    Frame(u32),
    /// A pure operation of the program, which calls nothing.
    Operation,
}

/// Records the calls of a run. A recorder restored from storage belongs to a finished run and receives nothing more.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Recorder {
    calls: Vec<TracedCall>,
    /// The indexes of the recorded calls.
    #[serde(skip)]
    places: HashMap<CallRef, usize>,
    #[serde(skip)]
    of_node: HashMap<Option<NodeId>, u32>,
    omitted: u32,
    /// The number of operations among the recorded calls.
    #[serde(skip)]
    operations: usize,
}

/// The time of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnTime {
    /// The number of deliveries to the program before it: the clock is too coarse to order events.
    pub(crate) turn: u64,
    /// Milliseconds since the Unix epoch.
    pub(crate) at: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TracedCall {
    which: CallRef,
    node: Option<NodeId>,
    tool: String,
    arguments: String,
    end: Option<TracedEnd>,
    asked_at: i64,
    ended_at: Option<i64>,
    /// The number of deliveries before the program issued it.
    began: u64,
    /// The number of the delivery that ended it.
    ended: Option<u64>,
    /// The number of operations seen by then: operations start and end between two deliveries.
    #[serde(default)]
    step: u64,
    /// The origin; `None` unless this is an operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<OperationOrigin>,
    attempt: u32,
    /// How much sooner its result was there because the call was made ahead, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    saved_ms: Option<u64>,
    /// How old its result was, in milliseconds; `None` unless it is that of an earlier dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    age_ms: Option<u64>,
}

/// What a pure operation is part of.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum OperationOrigin {
    /// A program, which received nothing between the operation's start and end.
    Program {
        took_us: u64,
        /// Whether the recorded result is complete.
        whole: bool,
    },
    /// A DAG document, in which it is a task of its own.
    Dag,
}

/// A pure operation that returned a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TracedOperation<'o> {
    pub(crate) node: NodeId,
    /// The operation, such as `code:filter`.
    pub(crate) tool: &'o str,
    /// The JSON of its result, or of a part of it.
    pub(crate) gave: &'o RawValue,
    pub(crate) whole: bool,
    pub(crate) took: Duration,
}

impl TracedCall {
    /// Whether the program knew the end of this call when it issued the other.
    fn is_before(&self, other: &TracedCall) -> bool {
        // A delivered end precedes everything the program does next; an operation ends one step after it starts.
        let step = match self.operation {
            Some(OperationOrigin::Program { .. }) => self.step + 1,
            Some(OperationOrigin::Dag) | None => 0,
        };
        self.ended.is_some_and(|ended| (ended, step) <= (other.began, other.step))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum TracedEnd {
    Result {
        kept: Option<Box<RawValue>>,
        size: usize,
        #[serde(skip)]
        values: edges::ValueHashes,
    },
    Error {
        code: String,
        message: String,
        data: Option<String>,
    },
}

impl TracedEnd {
    fn of(ended: &CallEnding<'_>) -> TracedEnd {
        match ended {
            CallEnding::Result { value, .. } => {
                let size = value.get().len();
                let kept = (size <= MOST_BYTES).then(|| (*value).to_owned());
                // Small values are searched later, if they turn out to matter.
                let values =
                    if kept.is_some() { edges::ValueHashes::default() } else { edges::values(value.get()) };
                TracedEnd::Result { kept, size, values }
            }
            CallEnding::Error { code, message, data } => TracedEnd::Error {
                code: (*code).to_owned(),
                message: (*message).to_owned(),
                data: data.map(str::to_owned),
            },
        }
    }
}

/// How a call ended.
pub(crate) enum CallEnding<'e> {
    /// With a result.
    Result {
        /// The value that the program received.
        value: &'e RawValue,
        /// How much sooner it was there because the call was made ahead, in milliseconds; `None` if it was not.
        saved_ms: Option<u64>,
        /// How old it was, in milliseconds; `None` unless it is that of an earlier dry run.
        age_ms: Option<u64>,
    },
    /// With an error.
    Error {
        /// The stable code for programs.
        code: &'e str,
        /// The message for people.
        message: &'e str,
        /// The tool's own error data, as JSON.
        data: Option<&'e str>,
    },
}

impl Recorder {
    /// Records an issued call.
    pub(crate) fn record_call(
        &mut self,
        which: CallRef,
        node: Option<NodeId>,
        tool: &str,
        arguments: &str,
        when: TurnTime,
    ) {
        let of_node = self.of_node.entry(node).or_default();
        *of_node += 1;
        if *of_node > MOST_OF_A_NODE || self.calls.len() - self.operations >= MOST_CALLS {
            self.omitted += 1;
            return;
        }
        self.places.insert(which, self.calls.len());
        self.calls.push(TracedCall {
            which,
            node,
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
            end: None,
            asked_at: when.at,
            ended_at: None,
            began: when.turn,
            ended: None,
            step: self.operations as u64,
            operation: None,
            attempt: *of_node,
            saved_ms: None,
            age_ms: None,
        });
    }

    /// Records the result of an operation.
    pub(crate) fn record_operation(&mut self, operation: &TracedOperation<'_>, when: TurnTime) {
        let of_node = self.of_node.entry(Some(operation.node)).or_default();
        *of_node += 1;
        if *of_node > MOST_OF_A_NODE || self.operations >= MOST_OPERATIONS {
            return;
        }
        let took_us = u64::try_from(operation.took.as_micros()).unwrap_or(u64::MAX);
        self.calls.push(TracedCall {
            which: CallRef::Operation,
            node: Some(operation.node),
            tool: operation.tool.to_owned(),
            arguments: "{}".to_owned(),
            end: Some(TracedEnd::Result {
                kept: Some(operation.gave.to_owned()),
                size: operation.gave.get().len(),
                values: edges::ValueHashes::default(),
            }),
            asked_at: when.at,
            ended_at: Some(when.at.saturating_add_unsigned(took_us / 1_000)),
            began: when.turn,
            ended: Some(when.turn),
            step: self.operations as u64,
            operation: Some(OperationOrigin::Program { took_us, whole: operation.whole }),
            attempt: 1,
            saved_ms: None,
            age_ms: None,
        });
        self.operations += 1;
    }

    /// Records the end of a task that is a pure operation; it started when the tasks it comes `after` had ended.
    pub(crate) fn record_operation_task(
        &mut self,
        node: NodeId,
        tool: &str,
        after: &[NodeId],
        ended: &CallEnding<'_>,
        when: TurnTime,
    ) {
        let ends = self.calls.iter().filter(|call| call.node.is_some_and(|node| after.contains(&node)));
        let began = ends.filter_map(|call| call.ended).max().unwrap_or(0);
        self.calls.push(TracedCall {
            which: CallRef::Operation,
            node: Some(node),
            tool: tool.to_owned(),
            arguments: "{}".to_owned(),
            end: Some(TracedEnd::of(ended)),
            asked_at: when.at,
            ended_at: Some(when.at),
            began,
            ended: Some(when.turn),
            step: 0,
            operation: Some(OperationOrigin::Dag),
            attempt: 1,
            saved_ms: None,
            age_ms: None,
        });
        self.operations += 1;
    }

    /// Records the end of a call.
    pub(crate) fn record_end(&mut self, which: CallRef, ended: &CallEnding<'_>, when: TurnTime) {
        let Some(call) = self.places.get(&which).and_then(|place| self.calls.get_mut(*place)) else {
            return;
        };
        (call.ended_at, call.ended) = (Some(when.at), Some(when.turn));
        call.end = Some(TracedEnd::of(ended));
        (call.saved_ms, call.age_ms) = match ended {
            CallEnding::Result { saved_ms, age_ms, .. } => (*saved_ms, *age_ms),
            CallEnding::Error { .. } => (None, None),
        };
    }

    /// Removes a call that turned out to belong to another recorder.
    pub(crate) fn remove_call(&mut self, which: CallRef) -> Option<TracedCall> {
        let place = self.places.remove(&which)?;
        self.places.values_mut().filter(|later| **later > place).for_each(|later| *later -= 1);
        let call = self.calls.remove(place);
        self.of_node.entry(call.node).and_modify(|calls| *calls -= 1);
        Some(call)
    }

    /// Adds a call that another recorder removed, at this node.
    pub(crate) fn adopt_call(&mut self, call: TracedCall, node: Option<NodeId>) {
        self.places.insert(call.which, self.calls.len());
        *self.of_node.entry(node).or_default() += 1;
        self.calls.push(TracedCall { node, ..call });
    }

    /// Builds the trace of the run.
    pub(crate) fn build_trace(&self, about: &TraceContext<'_>) -> Trace {
        let report = about.report;
        // Calls that were found in the journal later were issued earlier.
        let mut calls: Vec<&TracedCall> = self.calls.iter().collect();
        calls.sort_by_key(|call| call.began);
        let task_results: Vec<TaskResult> = calls.iter().map(|call| task(call, about)).collect();
        let error = report.error.as_ref().map(|failure| about.failed(failure));
        Trace {
            id: TraceId::of(about.run),
            workflow_id: about.run.clone(),
            principal: about.principal.clone(),
            session: about.session.to_owned(),
            capability_id: None,
            plan_hash: about.code_hash.to_owned(),
            intent: about.sanitiser.clean_text(about.intent).into_owned(),
            status: status(report, error.as_ref()),
            error,
            duration_ms: about.active_ms,
            created_at: report.ended_at,
            parent_trace_id: None,
            learn_seq: None,
            priority: None,
            cached: false,
            exploratory: false,
            approved: about.approved,
            body: TraceBody {
                executed_path: report.path.nodes.clone(),
                decisions: decisions(&report.path, about.structure, about.sanitiser),
                edges: edges::between(&calls, about.structure),
                task_results,
                omitted: self.omitted,
                initial_context: Some(bounded(about.sanitiser.clean_json(about.arguments).value)),
                mock_ratio: 0.0,
                explored: None,
            },
        }
    }
}

/// Further input for the trace.
pub(crate) struct TraceContext<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) principal: &'a Principal,
    pub(crate) session: &'a str,
    pub(crate) intent: &'a str,
    pub(crate) code_hash: &'a str,
    pub(crate) structure: &'a Structure,
    pub(crate) arguments: &'a RawValue,
    /// The tasks of a DAG document, by node.
    pub(crate) tasks: HashMap<NodeId, TaskInfo>,
    /// The definition digest of a tool.
    pub(crate) digest: &'a dyn Fn(&str) -> Digest,
    pub(crate) report: &'a RunReport,
    /// How long the run was active, in milliseconds.
    pub(crate) active_ms: i64,
    /// Whether a person approved its calls.
    pub(crate) approved: bool,
    pub(crate) sanitiser: &'a Sanitiser,
}

/// The task that a call belongs to.
pub(crate) struct TaskInfo {
    /// The id of the task in the document.
    pub(crate) id: String,
    /// The layer of the task, from 0.
    pub(crate) layer: Option<u32>,
    /// Whether it is a single call that is retried when it fails.
    pub(crate) retried: bool,
    /// Its duration in milliseconds; `None` if it has not ended.
    pub(crate) took_ms: Option<i64>,
}

impl TraceContext<'_> {
    fn failed(&self, failure: &RunFailure) -> TraceFailure {
        let kind = error_type::of(failure.code.as_str(), &failure.message, None);
        self.error(failure.code.as_str(), &failure.message, kind, failure.node_id.clone())
    }

    fn error(&self, code: &str, message: &str, kind: ErrorType, node_id: Option<String>) -> TraceFailure {
        let message = self.sanitiser.clean_text(message);
        TraceFailure {
            code: code.to_owned(),
            message: pml_model::name::truncate_text(&message, MESSAGE_CHARACTERS),
            error_type: kind,
            node_id,
        }
    }
}

/// The trace entry of one call.
fn task(call: &TracedCall, about: &TraceContext<'_>) -> TaskResult {
    let arguments = RawValue::from_string(call.arguments.clone()).unwrap_or_else(|_| raw(&json!({})));
    let cleaned = about.sanitiser.clean_json(&arguments);
    let mut altered = cleaned.changed || cleaned.value.get().len() > MOST_BYTES;
    altered |= matches!(call.operation, Some(OperationOrigin::Program { whole: false, .. }));
    let (result, error) = match &call.end {
        Some(TracedEnd::Result { kept: Some(value), .. }) => {
            let cleaned = about.sanitiser.clean_json(value);
            altered |= cleaned.changed;
            (Some(cleaned.value), None)
        }
        Some(TracedEnd::Result { kept: None, size, .. }) => {
            altered = true;
            (Some(truncated(*size)), None)
        }
        Some(TracedEnd::Error { code, message, data }) => {
            let kind = error_type::of(code, message, data.as_deref());
            (None, Some(about.error(code, message, kind, None)))
        }
        None => (None, None),
    };
    let of = call.node.and_then(|node| about.tasks.get(&node));
    // For a task that is an operation, only the end is recorded.
    let waited = match call.operation {
        Some(OperationOrigin::Dag) => of.and_then(|of| of.took_ms).unwrap_or(0),
        Some(OperationOrigin::Program { .. }) | None => 0,
    };
    TaskResult {
        call: match call.which {
            CallRef::Call(number) => number,
            CallRef::Frame(_) | CallRef::Operation => 0,
        },
        node_id: call.node,
        task_id: of.map(|of| of.id.clone()),
        tool: call.tool.clone(),
        tool_digest: (about.digest)(&call.tool),
        args: bounded(cleaned.value),
        result,
        success: matches!(call.end, Some(TracedEnd::Result { .. })),
        error,
        started_at: call.asked_at - waited,
        duration_ms: call.ended_at.map(|at| at - call.asked_at + waited),
        duration_us: match call.operation {
            Some(OperationOrigin::Program { took_us, .. }) => Some(took_us),
            Some(OperationOrigin::Dag) | None => None,
        },
        // Only tasks that call a tool are retried; a program may reach a place any number of times.
        attempt: if of.is_some_and(|of| of.retried) { call.attempt } else { 1 },
        layer: of.and_then(|of| of.layer),
        altered,
        speculated: call.saved_ms.is_some(),
        saved_ms: call.saved_ms,
        age_ms: call.age_ms,
        mocked: false,
        mock_weight: None,
    }
}

/// The status of the procedure that the run shows.
fn status(report: &RunReport, error: Option<&TraceFailure>) -> TraceStatus {
    match report.state {
        RunState::Done if report.has_failures() => TraceStatus::Partial,
        RunState::Done => TraceStatus::Success,
        RunState::Cancelled | RunState::Aborted => TraceStatus::Cancelled,
        RunState::Expired => TraceStatus::Blocked,
        RunState::Failed | RunState::Running | RunState::Waiting | RunState::Interrupted => match error {
            Some(error) if error.code == ErrorCode::Diverged.as_str() => TraceStatus::Diverged,
            Some(error) if error_type::is_blocked(error.error_type, &error.code) => TraceStatus::Blocked,
            Some(error) if error.code == ErrorCode::Timeout.as_str() => TraceStatus::Timeout,
            Some(_) | None => TraceStatus::Failed,
        },
    }
}

fn decisions(path: &ExecutedPath, structure: &Structure, sanitiser: &Sanitiser) -> Vec<DecisionOutcome> {
    let condition = |node: NodeId| match structure.node(node).map(|node| &node.kind) {
        Some(NodeKind::Decision { condition, .. }) => sanitiser.clean_text(condition).into_owned(),
        Some(_) | None => String::new(),
    };
    path.decisions
        .iter()
        .map(|decided| DecisionOutcome {
            node_id: decided.node,
            condition: condition(decided.node),
            value: value_of(&decided.outcome, structure.node(decided.node).map(|node| &node.kind))
                .filter(|value| sanitiser.clean_text(&value.to_string()) == value.to_string()),
            outcome: sanitiser.clean_text(&decided.outcome).into_owned(),
            times: decided.times,
        })
        .collect()
}

/// The value that was decided on, as far as the outcome reveals it.
fn value_of(outcome: &str, kind: Option<&NodeKind>) -> Option<Value> {
    let nullish = matches!(kind, Some(NodeKind::Decision { form: DecisionForm::Nullish, .. }));
    match outcome {
        // The outcome says whether the left side has a value, not which.
        "true" | "false" if nullish => None,
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => {
            let case = outcome.strip_prefix("case:")?;
            Some(serde_json::from_str(case).unwrap_or_else(|_| Value::String(case.to_owned())))
        }
    }
}

/// The value, if it is small enough to be kept.
fn bounded(value: Box<RawValue>) -> Box<RawValue> {
    if value.get().len() <= MOST_BYTES { value } else { truncated(value.get().len()) }
}

fn truncated(size: usize) -> Box<RawValue> {
    raw(&json!({ "_truncated": true, "_originalSize": size }))
}

#[cfg(test)]
mod tests;
