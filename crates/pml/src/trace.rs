//! Makes the trace of a run: what is kept of it for good.
//!
//! A [`Recorder`] is told of every call and its end, live or from the journal, and at the end turns that into a
//! [`Trace`] without secrets. What depended on what is found in the values as they were; what is kept is what is left of
//! them then.

mod edges;

use std::collections::HashMap;
use std::time::Duration;

use pml_model::json::raw;
use pml_model::structure::{DecisionForm, NodeId, NodeKind, Structure};
use pml_model::trace::{Body, Decision, ErrorType, Failed, Status, TaskResult, Trace};
use pml_model::{Digest, Principal, RunId, RunState, TraceId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error_type;
use crate::execute::{Failure, Path, Report};
use crate::sanitise::Sanitiser;

/// The largest result that is kept whole.
const MOST_BYTES: usize = 10 * 1024;
/// How many calls of one node are kept, and how many of a run: those of a loop are much alike.
const MOST_OF_A_NODE: u32 = 20;
const MOST_CALLS: usize = 500;
/// How many operations of a run are kept, beside its calls.
const MOST_OPERATIONS: usize = 200;
/// How many characters of an error are kept.
const MESSAGE_CHARACTERS: usize = 500;

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Which {
    /// A tool, in the call of that number.
    Call(u32),
    /// A capability, in the frame of that number.
    Frame(u32),
    /// Nothing: a pure operation of the program.
    Operation,
}

/// Is told of the calls of a run. What is read back is of something that is over, and is told of no more.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Recorder {
    calls: Vec<Call>,
    /// Where the calls that are kept stand, by number.
    #[serde(skip)]
    places: HashMap<Which, usize>,
    #[serde(skip)]
    of_node: HashMap<Option<NodeId>, u32>,
    omitted: u32,
    /// How many of what is kept are operations.
    #[serde(skip)]
    operations: usize,
}

/// When something happened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct When {
    /// How often the program had been given something: times are too coarse to tell what came first.
    pub(crate) turn: u64,
    /// In milliseconds since 1970.
    pub(crate) at: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Call {
    which: Which,
    node: Option<NodeId>,
    tool: String,
    arguments: String,
    end: Option<End>,
    asked_at: i64,
    ended_at: Option<i64>,
    /// How often the program had been given something when it asked for this.
    began: u64,
    /// Which of those times it was given this one's end.
    ended: Option<u64>,
    /// How many operations had been seen by then: they begin and end while the program is given nothing.
    #[serde(default)]
    step: u64,
    /// Of an operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<OperationOf>,
    attempt: u32,
}

/// What a pure operation is a part of.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum OperationOf {
    /// A program, which was given nothing between its beginning and its end.
    Program {
        took_us: u64,
        /// What is kept of its result is all of it.
        whole: bool,
    },
    /// A document: it is a task of its own, with a program for it alone.
    Dag,
}

/// A pure operation that has given something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation<'o> {
    pub(crate) node: NodeId,
    /// `code:filter` and the like.
    pub(crate) tool: &'o str,
    /// JSON of what it gave, or of a part of it.
    pub(crate) gave: &'o RawValue,
    pub(crate) whole: bool,
    pub(crate) took: Duration,
}

impl Call {
    /// Whether the program knew the end of this one when it asked for the other.
    fn is_before(&self, other: &Call) -> bool {
        // An end that is delivered comes before all that the program then does; an operation ends one step after it began.
        let step = match self.operation {
            Some(OperationOf::Program { .. }) => self.step + 1,
            Some(OperationOf::Dag) | None => 0,
        };
        self.ended.is_some_and(|ended| (ended, step) <= (other.began, other.step))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum End {
    Result {
        kept: Option<Box<RawValue>>,
        size: usize,
        #[serde(skip)]
        values: edges::Values,
    },
    Error {
        code: String,
        message: String,
        data: Option<String>,
    },
}

impl End {
    fn of(ended: &Ended<'_>) -> End {
        match ended {
            Ended::Result(value) => {
                let size = value.get().len();
                let kept = (size <= MOST_BYTES).then(|| (*value).to_owned());
                // What is small is gone through when it is known to matter.
                let values =
                    if kept.is_some() { edges::Values::default() } else { edges::values(value.get()) };
                End::Result { kept, size, values }
            }
            Ended::Error { code, message, data } => End::Error {
                code: (*code).to_owned(),
                message: (*message).to_owned(),
                data: data.map(str::to_owned),
            },
        }
    }
}

/// How a call ended.
pub(crate) enum Ended<'e> {
    /// With a result.
    Result(&'e RawValue),
    /// With an error.
    Error {
        /// For programs.
        code: &'e str,
        /// For people.
        message: &'e str,
        /// What the tool said beside that; JSON.
        data: Option<&'e str>,
    },
}

impl Recorder {
    /// A call was asked for.
    pub(crate) fn issued(
        &mut self,
        which: Which,
        node: Option<NodeId>,
        tool: &str,
        arguments: &str,
        when: When,
    ) {
        let of_node = self.of_node.entry(node).or_default();
        *of_node += 1;
        if *of_node > MOST_OF_A_NODE || self.calls.len() - self.operations >= MOST_CALLS {
            self.omitted += 1;
            return;
        }
        self.places.insert(which, self.calls.len());
        self.calls.push(Call {
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
        });
    }

    /// An operation gave something.
    pub(crate) fn operation(&mut self, operation: &Operation<'_>, when: When) {
        let of_node = self.of_node.entry(Some(operation.node)).or_default();
        *of_node += 1;
        if *of_node > MOST_OF_A_NODE || self.operations >= MOST_OPERATIONS {
            return;
        }
        let took_us = u64::try_from(operation.took.as_micros()).unwrap_or(u64::MAX);
        self.calls.push(Call {
            which: Which::Operation,
            node: Some(operation.node),
            tool: operation.tool.to_owned(),
            arguments: "{}".to_owned(),
            end: Some(End::Result {
                kept: Some(operation.gave.to_owned()),
                size: operation.gave.get().len(),
                values: edges::Values::default(),
            }),
            asked_at: when.at,
            ended_at: Some(when.at.saturating_add_unsigned(took_us / 1_000)),
            began: when.turn,
            ended: Some(when.turn),
            step: self.operations as u64,
            operation: Some(OperationOf::Program { took_us, whole: operation.whole }),
            attempt: 1,
        });
        self.operations += 1;
    }

    /// A task of a document that is a pure operation ended; it began when those `after` which it comes had.
    pub(crate) fn operation_task(
        &mut self,
        node: NodeId,
        tool: &str,
        after: &[NodeId],
        ended: &Ended<'_>,
        when: When,
    ) {
        let ends = self.calls.iter().filter(|call| call.node.is_some_and(|node| after.contains(&node)));
        let began = ends.filter_map(|call| call.ended).max().unwrap_or(0);
        self.calls.push(Call {
            which: Which::Operation,
            node: Some(node),
            tool: tool.to_owned(),
            arguments: "{}".to_owned(),
            end: Some(End::of(ended)),
            asked_at: when.at,
            ended_at: Some(when.at),
            began,
            ended: Some(when.turn),
            step: 0,
            operation: Some(OperationOf::Dag),
            attempt: 1,
        });
        self.operations += 1;
    }

    /// A call ended.
    pub(crate) fn ended(&mut self, which: Which, ended: &Ended<'_>, when: When) {
        let Some(call) = self.places.get(&which).and_then(|place| self.calls.get_mut(*place)) else {
            return;
        };
        (call.ended_at, call.ended) = (Some(when.at), Some(when.turn));
        call.end = Some(End::of(ended));
    }

    /// A call is not this one's after all, but another's.
    pub(crate) fn give_up(&mut self, which: Which) -> Option<Call> {
        let place = self.places.remove(&which)?;
        self.places.values_mut().filter(|later| **later > place).for_each(|later| *later -= 1);
        let call = self.calls.remove(place);
        self.of_node.entry(call.node).and_modify(|calls| *calls -= 1);
        Some(call)
    }

    /// Takes on a call that another gave up, which stands at this node here.
    pub(crate) fn take_over(&mut self, call: Call, node: Option<NodeId>) {
        self.places.insert(call.which, self.calls.len());
        *self.of_node.entry(node).or_default() += 1;
        self.calls.push(Call { node, ..call });
    }

    /// What is kept of the run.
    pub(crate) fn trace(&self, about: &About<'_>) -> Trace {
        let report = about.report;
        // What was found in the journal later was asked for earlier.
        let mut calls: Vec<&Call> = self.calls.iter().collect();
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
            intent: about.sanitiser.text(about.intent).into_owned(),
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
            body: Body {
                executed_path: report.path.nodes.clone(),
                decisions: decisions(&report.path, about.structure, about.sanitiser),
                edges: edges::between(&calls, about.structure),
                task_results,
                omitted: self.omitted,
                initial_context: Some(bounded(about.sanitiser.json(about.arguments).value)),
            },
        }
    }
}

/// What else there is to say of a run.
pub(crate) struct About<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) principal: &'a Principal,
    pub(crate) session: &'a str,
    pub(crate) intent: &'a str,
    pub(crate) code_hash: &'a str,
    pub(crate) structure: &'a Structure,
    pub(crate) arguments: &'a RawValue,
    /// The tasks of a document, by their nodes.
    pub(crate) tasks: HashMap<NodeId, OfTask>,
    /// The definition a tool had.
    pub(crate) digest: &'a dyn Fn(&str) -> Digest,
    pub(crate) report: &'a Report,
    /// How long it was worked on.
    pub(crate) active_ms: i64,
    /// A person allowed what it did.
    pub(crate) approved: bool,
    pub(crate) sanitiser: &'a Sanitiser,
}

/// The task that a call belongs to.
pub(crate) struct OfTask {
    /// Its name in the document.
    pub(crate) id: String,
    /// Its layer, from 0.
    pub(crate) layer: Option<u32>,
    /// It is one call, which is made again where it fails.
    pub(crate) retried: bool,
    /// How long it took, where it has ended.
    pub(crate) took_ms: Option<i64>,
}

impl About<'_> {
    fn failed(&self, failure: &Failure) -> Failed {
        let kind = error_type::of(&failure.code, &failure.message, None);
        self.error(&failure.code, &failure.message, kind, failure.node_id.clone())
    }

    fn error(&self, code: &str, message: &str, kind: ErrorType, node_id: Option<String>) -> Failed {
        let message = self.sanitiser.text(message);
        Failed {
            code: code.to_owned(),
            message: pml_model::name::shortened(&message, MESSAGE_CHARACTERS),
            error_type: kind,
            node_id,
        }
    }
}

/// What is kept of one call.
fn task(call: &Call, about: &About<'_>) -> TaskResult {
    let arguments = RawValue::from_string(call.arguments.clone()).unwrap_or_else(|_| raw(&json!({})));
    let cleaned = about.sanitiser.json(&arguments);
    let mut altered = cleaned.changed || cleaned.value.get().len() > MOST_BYTES;
    altered |= matches!(call.operation, Some(OperationOf::Program { whole: false, .. }));
    let (result, error) = match &call.end {
        Some(End::Result { kept: Some(value), .. }) => {
            let cleaned = about.sanitiser.json(value);
            altered |= cleaned.changed;
            (Some(cleaned.value), None)
        }
        Some(End::Result { kept: None, size, .. }) => {
            altered = true;
            (Some(truncated(*size)), None)
        }
        Some(End::Error { code, message, data }) => {
            let kind = error_type::of(code, message, data.as_deref());
            (None, Some(about.error(code, message, kind, None)))
        }
        None => (None, None),
    };
    let of = call.node.and_then(|node| about.tasks.get(&node));
    // Of a task that is an operation only the end is told.
    let waited = match call.operation {
        Some(OperationOf::Dag) => of.and_then(|of| of.took_ms).unwrap_or(0),
        Some(OperationOf::Program { .. }) | None => 0,
    };
    TaskResult {
        call: match call.which {
            Which::Call(number) => number,
            Which::Frame(_) | Which::Operation => 0,
        },
        node_id: call.node,
        task_id: of.map(|of| of.id.clone()),
        tool: call.tool.clone(),
        tool_digest: (about.digest)(&call.tool),
        args: bounded(cleaned.value),
        result,
        success: matches!(call.end, Some(End::Result { .. })),
        error,
        started_at: call.asked_at - waited,
        duration_ms: call.ended_at.map(|at| at - call.asked_at + waited),
        duration_us: match call.operation {
            Some(OperationOf::Program { took_us, .. }) => Some(took_us),
            Some(OperationOf::Dag) | None => None,
        },
        // Only tasks that call a tool are tried again; a program comes to a place as often as it likes.
        attempt: if of.is_some_and(|of| of.retried) { call.attempt } else { 1 },
        layer: of.and_then(|of| of.layer),
        altered,
    }
}

/// What a run says of its procedure.
fn status(report: &Report, error: Option<&Failed>) -> Status {
    match report.state {
        RunState::Done if report.has_failures() => Status::Partial,
        RunState::Done => Status::Success,
        RunState::Cancelled | RunState::Aborted => Status::Cancelled,
        RunState::Expired => Status::Blocked,
        RunState::Failed | RunState::Running | RunState::Waiting | RunState::Interrupted => match error {
            Some(error) if error.code == "DIVERGED" => Status::Diverged,
            Some(error) if error_type::is_blocked(error.error_type, &error.code) => Status::Blocked,
            Some(error) if error.code == "TIMEOUT" => Status::Timeout,
            Some(_) | None => Status::Failed,
        },
    }
}

fn decisions(path: &Path, structure: &Structure, sanitiser: &Sanitiser) -> Vec<Decision> {
    let condition = |node: NodeId| match structure.node(node).map(|node| &node.kind) {
        Some(NodeKind::Decision { condition, .. }) => sanitiser.text(condition).into_owned(),
        Some(_) | None => String::new(),
    };
    path.decisions
        .iter()
        .map(|decided| Decision {
            node_id: decided.node,
            condition: condition(decided.node),
            value: value_of(&decided.outcome, structure.node(decided.node).map(|node| &node.kind))
                .filter(|value| sanitiser.text(&value.to_string()) == value.to_string()),
            outcome: sanitiser.text(&decided.outcome).into_owned(),
            times: decided.times,
        })
        .collect()
}

/// What was decided on, as far as its outcome says.
fn value_of(outcome: &str, kind: Option<&NodeKind>) -> Option<Value> {
    let nullish = matches!(kind, Some(NodeKind::Decision { form: DecisionForm::Nullish, .. }));
    match outcome {
        // Its outcome says whether there is something on the left, and not what.
        "true" | "false" if nullish => None,
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => {
            let case = outcome.strip_prefix("case:")?;
            Some(serde_json::from_str(case).unwrap_or_else(|_| Value::String(case.to_owned())))
        }
    }
}

/// A value, where it is small enough to be kept.
fn bounded(value: Box<RawValue>) -> Box<RawValue> {
    if value.get().len() <= MOST_BYTES { value } else { truncated(value.get().len()) }
}

fn truncated(size: usize) -> Box<RawValue> {
    raw(&json!({ "_truncated": true, "_originalSize": size }))
}

#[cfg(test)]
mod tests;
