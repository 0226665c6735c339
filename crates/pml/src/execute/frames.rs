//! Observes the capabilities that a program calls: the path of each call of one, and its own calls.

use pml_model::ErrorCode;
use std::collections::HashMap;
use std::sync::Arc;

use pml_model::json::raw;
use pml_model::structure::NodeId;
use pml_model::{CapabilityId, RunState};
use pml_sandbox::{ReachedPoint, ThrownError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::operations::{OperationPlace, ReportedOperation};
use super::path::{PathBuilder, Sites};
use crate::plan::{Plan, PlannedCapability, source_line};
use crate::report::{
    CallReport, CapabilityResult, ExecutedPath, PathDecision, RunFailure, RunReport, TaskStatus,
    number_places,
};
use crate::trace::{CallEnding, CallRef, Recorder, TurnTime};

/// The number of capability calls that leave a trace of their own.
const MOST_TRACES: usize = 200;

/// 4 MiB: the limit of all capability results that are kept with a run. They are not in the journal, because a
/// capability call is no tool call.
const MOST_RESULT_BYTES: usize = 4 << 20;

/// One call of a capability.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CapabilityFrame {
    /// The number of the frame, from 1.
    #[serde(skip)]
    pub(super) number: u32,
    /// The number of the calling frame; the run itself is 0.
    #[serde(skip)]
    pub(super) parent: u32,
    /// The index of the capability in the plan.
    place: usize,
    /// The node that represents the call in the run's own structure, and its line.
    pub(super) node: Option<NodeId>,
    pub(super) line: Option<u32>,
    /// The node in the structure of the calling capability, if one calls it.
    #[serde(default)]
    inner: Option<NodeId>,
    pub(super) arguments: Box<RawValue>,
    pub(super) began: i64,
    pub(super) ended: Option<i64>,
    end: Option<Result<Box<RawValue>, RunFailure>>,
    /// The probe sites of the capability. They are not stored, because a finished call reports nothing more.
    #[serde(skip)]
    sites: Arc<Sites>,
    way: PathBuilder,
    pub(super) recorder: Recorder,
}

/// A capability call as the journal keeps it, with the end of the task that it was part of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FrameRecord {
    /// The number of the call within the task, and that of its caller.
    inner: u32,
    outer: u32,
    frame: CapabilityFrame,
    /// The numbers of the tool calls it made, within the run.
    pub(super) calls: Vec<u32>,
}

/// The caller within a run: the frame of the DAG task, and the number that its worker gave to the capability. The
/// program of a run is in no task, and its capability numbers are the run's.
pub(super) type FrameKey = (u32, u32);

/// All capability calls of a run.
#[derive(Debug, Default)]
pub(super) struct CapabilityFrames {
    all: Vec<CapabilityFrame>,
    /// The frame number of each key.
    numbers: HashMap<FrameKey, u32>,
    /// The probe sites of each capability that was called, by index.
    sites: Vec<Option<Arc<Sites>>>,
}

/// The start of a capability call.
pub(super) struct FrameStart<'e> {
    pub(super) caller: FrameKey,
    pub(super) parent: Option<FrameKey>,
    pub(super) nested_index: u32,
    pub(super) point: u32,
    pub(super) context: u32,
    pub(super) arguments: &'e str,
    /// The number of calls made before.
    pub(super) after: u32,
}

/// The start of a task that is a capability.
pub(super) struct StartedTask {
    /// The number of the task's frame.
    pub(super) frame: u32,
    /// The index of the capability in the plan.
    pub(super) place: u32,
    pub(super) node: NodeId,
    /// The arguments, completed with the defaults.
    pub(super) arguments: Box<RawValue>,
    /// When the task started.
    pub(super) at: i64,
}

/// The place in the run's own structure where a top-level capability is called, and the recorder of the calls there.
pub(super) struct RootFrame<'r> {
    pub(super) node: Option<NodeId>,
    pub(super) line: Option<u32>,
    pub(super) recorder: &'r mut Recorder,
}

/// A tool call as the worker reports it.
pub(super) struct ToolCall<'c> {
    /// The number of the call within the run, and within its worker.
    pub(super) call: u32,
    pub(super) order: u32,
    pub(super) point: u32,
    pub(super) context: u32,
    pub(super) tool: &'c str,
    pub(super) arguments: &'c str,
}

/// The place of a tool call.
pub(super) struct CallSite {
    /// The node that represents it in the run's own structure.
    pub(super) node: Option<NodeId>,
    /// The node in the structure of the caller.
    pub(super) inner: Option<NodeId>,
    /// The line in the source of the caller.
    pub(super) line: Option<u32>,
}

/// The place of a node: the nodes whose calls of capabilities lead to it, outermost first, and the node in the structure
/// of the last of them.
pub(crate) type NodePlace = (Vec<NodeId>, NodeId);

/// The path of one call of a capability.
#[derive(Debug, Clone)]
pub(crate) struct FramePath {
    /// The index of the capability in the plan.
    pub(crate) capability: usize,
    /// The nodes that call it and those around it, outermost first.
    pub(crate) place: Vec<NodeId>,
    pub(crate) path: ExecutedPath,
}

impl CapabilityFrames {
    /// The number of frames so far.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    /// Whether a frame has ended.
    pub(super) fn is_over(&self, number: u32) -> bool {
        self.get(number).is_none_or(|frame| frame.ended.is_some())
    }

    /// The nodes that call a frame and those around it, outermost first; empty for the run itself, `None` if one of the
    /// calls has no known place.
    pub(super) fn call_path(&self, number: u32) -> Option<Vec<NodeId>> {
        let Some(frame) = self.get(number) else { return Some(Vec::new()) };
        let mut path = self.call_path(frame.parent)?;
        path.push(if frame.parent == 0 { frame.node? } else { frame.inner? });
        Some(path)
    }

    /// The paths of the frames whose calls have a known place.
    pub(super) fn paths(&self, plan: &Plan) -> Vec<FramePath> {
        let path = |frame: &CapabilityFrame| {
            let place = self.call_path(frame.number)?;
            Some(FramePath { capability: frame.place, place, path: frame.path(plan) })
        };
        self.traced().filter_map(path).collect()
    }

    /// What a frame has reached and decided. Both lists only grow.
    pub(super) fn progress(&self, number: u32) -> Option<(&[NodeId], &[PathDecision])> {
        self.get(number).map(|frame| frame.way.progress())
    }

    /// The place of a pure operation in a frame.
    pub(super) fn operation_place(
        &self,
        plan: &Plan,
        number: u32,
        point: u32,
        context: u32,
    ) -> Option<NodePlace> {
        let frame = self.get(number)?;
        let structure = &frame.planned_capability(plan)?.structure;
        let (node, _) = frame.sites.operation(point, context, structure)?;
        Some((self.call_path(number)?, node))
    }

    /// The frame with that number.
    pub(super) fn get(&self, number: u32) -> Option<&CapabilityFrame> {
        self.all.get((number as usize).checked_sub(1)?)
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut CapabilityFrame> {
        self.all.get_mut((number as usize).checked_sub(1)?)
    }

    /// The frames that leave a trace.
    pub(super) fn traced(&self) -> impl Iterator<Item = &CapabilityFrame> {
        self.all.iter().take(MOST_TRACES)
    }

    /// The results of the frames, as far as they can be kept.
    pub(super) fn results(&self, plan: &Plan) -> Vec<CapabilityResult> {
        let places: Vec<Option<String>> = self.traced().map(CapabilityFrame::place).collect();
        let mut left = MOST_RESULT_BYTES;
        let called = |(frame, id): (&CapabilityFrame, Option<String>)| {
            let (status, result, error) = match &frame.end {
                Some(Ok(value)) => {
                    let fits = left.checked_sub(value.get().len());
                    left = fits.unwrap_or(left);
                    (TaskStatus::Success, fits.map(|_| value.clone()), None)
                }
                Some(Err(failure)) => (TaskStatus::Error, None, Some(failure.clone())),
                None => (TaskStatus::Cancelled, None, None),
            };
            let capability = frame.planned_capability(plan)?.name.clone();
            Some(CapabilityResult { task_id: id?, capability, status, result, error })
        };
        self.traced().zip(number_places(&places)).filter_map(called).collect()
    }

    /// The frame number of the caller; the run itself is 0.
    pub(super) fn number(&self, caller: FrameKey) -> u32 {
        self.numbers.get(&caller).copied().unwrap_or(0)
    }

    /// Handles the start of a capability call.
    pub(super) fn on_start(
        &mut self,
        plan: &Plan,
        root: &mut RootFrame<'_>,
        began: &FrameStart<'_>,
        when: TurnTime,
    ) {
        let Some(nested) = plan.nested.get(began.nested_index as usize) else { return };
        // A program whose worker died starts again and reports the same start again.
        if self.numbers.contains_key(&began.caller) {
            return;
        }
        let number = self.next_number(began.caller);
        let parent = began.parent.map_or(0, |parent| self.number(parent));
        let (which, id) = (CallRef::Frame(number), nested.id.as_str());
        let (node, inner, line) = match self.get_mut(parent) {
            None => {
                root.recorder.record_call(which, root.node, id, began.arguments, when);
                (root.node, None, root.line)
            }
            Some(parent) => {
                let site = parent.sites.call(began.point, began.context, &nested.name);
                let node = site.map(|site| site.node);
                node.into_iter().for_each(|node| parent.way.visit_capability(node, began.after));
                parent.recorder.record_call(which, node, id, began.arguments, when);
                (parent.node, node, parent.line)
            }
        };
        let place = began.nested_index as usize;
        if self.sites.len() <= place {
            self.sites.resize(place + 1, None);
        }
        let sites =
            self.sites[place].get_or_insert_with(|| Arc::new(Sites::new(&nested.program, &nested.structure)));
        self.all.push(CapabilityFrame {
            number,
            parent,
            place,
            node,
            line,
            inner,
            arguments: RawValue::from_string(began.arguments.to_owned())
                .unwrap_or_else(|_| raw(&Value::Null)),
            began: when.at,
            ended: None,
            end: None,
            sites: Arc::clone(sites),
            way: PathBuilder::default(),
            recorder: Recorder::default(),
        });
    }

    fn next_number(&mut self, caller: FrameKey) -> u32 {
        let number = u32::try_from(self.all.len() + 1).unwrap_or(u32::MAX);
        self.numbers.insert(caller, number);
        number
    }

    /// Handles the end of a capability call, as its caller sees it.
    pub(super) fn on_end(
        &mut self,
        plan: &Plan,
        root: &mut Recorder,
        number: u32,
        end: &Result<String, ThrownError>,
        when: TurnTime,
    ) {
        let Some(frame) = self.get(number) else { return };
        let end = match end {
            Ok(json) => Ok(RawValue::from_string(json.clone()).unwrap_or_else(|_| raw(&Value::Null))),
            Err(thrown) => Err(failure(frame.planned_capability(plan), thrown)),
        };
        self.set_end(root, number, end, when);
    }

    /// Sets the result of a capability call.
    pub(super) fn set_end(
        &mut self,
        root: &mut Recorder,
        number: u32,
        end: Result<Box<RawValue>, RunFailure>,
        when: TurnTime,
    ) {
        let Some(parent) = self.get(number).map(|frame| frame.parent) else { return };
        let recorder = self.get_mut(parent).map_or(root, |parent| &mut parent.recorder);
        tell_end(recorder, number, &end, when);
        if let Some(frame) = self.get_mut(number) {
            (frame.ended, frame.end) = (Some(when.at), Some(end));
        }
    }

    /// The capability calls of a task, for the journal; `made` gives the tool calls of a frame.
    pub(super) fn records_of_task(&self, task: u32, made: impl Fn(u32) -> Vec<u32>) -> Vec<FrameRecord> {
        let inner: HashMap<u32, u32> = self
            .numbers
            .iter()
            .filter(|((of, _), _)| *of == task)
            .map(|((_, inner), number)| (*number, *inner))
            .collect();
        let kept = |frame: &CapabilityFrame| {
            Some(FrameRecord {
                inner: *inner.get(&frame.number)?,
                outer: inner.get(&frame.parent).copied().unwrap_or(0),
                frame: frame.clone(),
                calls: made(frame.number),
            })
        };
        self.traced().filter_map(kept).collect()
    }

    /// Restores a frame from the journal and returns its number.
    pub(super) fn restore(
        &mut self,
        plan: &Plan,
        root: &mut Recorder,
        task: u32,
        kept: &FrameRecord,
        turn: impl Fn(i64) -> TurnTime,
    ) -> u32 {
        let number = self.next_number((task, kept.inner));
        let parent = if kept.inner == 0 { 0 } else { self.number((task, kept.outer)) };
        let frame = CapabilityFrame { number, parent, ..kept.frame.clone() };
        if let Some(nested) = frame.planned_capability(plan).filter(|_| parent == 0) {
            let (which, arguments) = (CallRef::Frame(number), frame.arguments.get());
            root.record_call(which, frame.node, nested.id.as_str(), arguments, turn(frame.began));
            if let (Some(end), Some(at)) = (&frame.end, frame.ended) {
                tell_end(root, number, end, turn(at));
            }
        }
        self.all.push(frame);
        number
    }

    /// Assigns a call to the frame `number`, after it was first reported for the run itself.
    pub(super) fn adopt_call(&mut self, number: u32, call: &ToolCall<'_>, root: &mut Recorder) {
        let Some(frame) = self.get_mut(number) else { return };
        let node = frame.sites.call(call.point, call.context, call.tool).map(|site| site.node);
        node.into_iter().for_each(|node| frame.way.visit_call(node, call.order));
        if let Some(call) = root.remove_call(CallRef::Call(call.call)) {
            frame.recorder.adopt_call(call, node);
        }
    }

    /// Handles the probe reports of a capability.
    pub(super) fn reached(&mut self, number: u32, places: &[ReachedPoint]) {
        let Some(frame) = self.get_mut(number) else { return };
        for reached in places {
            frame.way.add_report(reached, &frame.sites);
        }
    }

    /// Handles the result of a pure operation in a capability. Returns the place of the operation.
    pub(super) fn on_operation<'p>(
        &mut self,
        plan: &'p Plan,
        number: u32,
        seen: &ReportedOperation<'_>,
        when: TurnTime,
    ) -> Option<OperationPlace<'p>> {
        let frame = self.get_mut(number)?;
        let nested = plan.nested.get(frame.place)?;
        let (node, tool) = frame.sites.operation(seen.point, seen.context, &nested.structure)?;
        frame.recorder.record_operation(&seen.to_traced(node, tool), when);
        Some(OperationPlace { node_id: frame.node, tool, capability: Some(nested.name.clone()) })
    }

    /// Handles a tool call by a capability.
    pub(super) fn on_call(&mut self, number: u32, call: &ToolCall<'_>, when: TurnTime) -> Option<CallSite> {
        let frame = self.get_mut(number)?;
        let site = frame.sites.call(call.point, call.context, call.tool);
        let (inner, line) = (site.map(|site| site.node), site.map(|site| site.at.line));
        inner.into_iter().for_each(|node| frame.way.visit_call(node, call.order));
        frame.recorder.record_call(CallRef::Call(call.call), inner, call.tool, call.arguments, when);
        Some(CallSite { node: frame.node, inner, line })
    }

    /// Handles the end of a tool call by a capability.
    pub(super) fn on_call_end(&mut self, number: u32, call: u32, ended: &CallEnding<'_>, when: TurnTime) {
        if let Some(frame) = self.get_mut(number) {
            frame.recorder.record_end(CallRef::Call(call), ended, when);
        }
    }
}

/// Reports the end of a capability to the recorder of its caller.
fn tell_end(recorder: &mut Recorder, number: u32, end: &Result<Box<RawValue>, RunFailure>, when: TurnTime) {
    let ended = match end {
        Ok(value) => CallEnding::Result { value, saved_ms: None, age_ms: None },
        Err(failure) => {
            CallEnding::Error { code: failure.code.as_str(), message: &failure.message, data: None }
        }
    };
    recorder.record_end(CallRef::Frame(number), &ended, when);
}

impl CapabilityFrame {
    /// The place of the call, in the form of a task id.
    fn place(&self) -> Option<String> {
        let node = self.node?;
        Some(match self.inner {
            Some(inner) => format!("{node}/{inner}"),
            None => node.to_string(),
        })
    }

    /// The called capability.
    pub(super) fn planned_capability<'p>(&self, plan: &'p Plan) -> Option<&'p PlannedCapability> {
        plan.nested.get(self.place)
    }

    /// The id of the called capability.
    pub(super) fn capability(&self, plan: &Plan) -> Option<CapabilityId> {
        self.planned_capability(plan).map(|nested| nested.id.clone())
    }

    /// The path that it took.
    fn path(&self, plan: &Plan) -> ExecutedPath {
        let Some(nested) = self.planned_capability(plan) else { return ExecutedPath::default() };
        let mut path = self.way.build(&nested.structure);
        if !nested.tasks.is_empty() {
            // As in a run of the document: tasks in document order, all of them started if the document ended normally.
            let all = matches!(self.end, Some(Ok(_)));
            let begun =
                nested.tasks.iter().map(|(node, _)| *node).filter(|node| all || path.nodes.contains(node));
            path.nodes = begun.collect();
        }
        path
    }

    /// The report of the call, as if the capability had run by itself. A call without an end was cancelled when `over`
    /// ended.
    pub(super) fn report(&self, plan: &Plan, tasks: Vec<CallReport>, over: &RunReport) -> RunReport {
        let (state, result, error) = match &self.end {
            Some(Ok(value)) => (RunState::Done, Some(value.clone()), None),
            Some(Err(failure)) => (RunState::Failed, None, Some(failure.clone())),
            None => {
                let failure = RunFailure::new(ErrorCode::Cancelled, "whoever called it did not wait for it");
                (RunState::Cancelled, None, Some(failure))
            }
        };
        let path = self.path(plan);
        let ended_at = self.ended.unwrap_or(over.ended_at);
        RunReport { state, result, error, tasks, path, ..RunReport::empty(self.began, ended_at) }
    }
}

/// The failure of a capability, with messages and lines of its own source.
fn failure(nested: Option<&PlannedCapability>, thrown: &ThrownError) -> RunFailure {
    let code = thrown.code.unwrap_or(ErrorCode::ProgramError);
    let message = match (thrown.name.as_str(), thrown.message.as_str()) {
        ("ToolError" | "CapabilityError" | "Error", message) => message.to_owned(),
        (name, "") => name.to_owned(),
        (name, message) => format!("{name}: {message}"),
    };
    // A DAG document has no source lines that ran.
    let program = nested.filter(|nested| nested.tasks.is_empty());
    let line = program.and_then(|nested| source_line(&nested.program, thrown.line, thrown.column));
    RunFailure { line, ..RunFailure::new(code, message) }
}
