//! Capabilities that a program calls, as they are watched: which way each call of one went, and what it called in turn.

use std::collections::HashMap;
use std::sync::Arc;

use pml_model::json::raw;
use pml_model::structure::NodeId;
use pml_model::{CapabilityId, RunState};
use pml_sandbox::{Reached, Thrown};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::operations::{OperationPlace, OperationSeen};
use super::path::{Path, Sites, Way};
use super::plan::{Nested, Plan, source_line};
use super::report::{Called, Failure, Report, Task, TaskStatus, numbered};
use crate::trace::{Ended, Recorder, When, Which};

/// How many calls of capabilities leave a trace of their own.
const MOST_TRACES: usize = 200;

/// What all results of capabilities that are kept with a run have together. They are not in its journal: calling a
/// capability is no call of a tool.
const MOST_RESULT_BYTES: usize = 4 << 20;

/// One call of a capability.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Frame {
    /// Its number, from 1.
    #[serde(skip)]
    pub(super) number: u32,
    /// The frame that calls it; the run itself is 0.
    #[serde(skip)]
    pub(super) parent: u32,
    /// Which capability, by its place.
    place: usize,
    /// The node that stands for it in the program's own structure, and its line.
    pub(super) node: Option<NodeId>,
    pub(super) line: Option<u32>,
    /// Where another capability calls it: the node in that one's structure.
    #[serde(default)]
    inner: Option<NodeId>,
    pub(super) arguments: Box<RawValue>,
    pub(super) began: i64,
    pub(super) ended: Option<i64>,
    end: Option<Result<Box<RawValue>, Failure>>,
    /// Where its reports belong; one that is over has no more of them.
    #[serde(skip)]
    sites: Arc<Sites>,
    way: Way,
    pub(super) recorder: Recorder,
}

/// A call of a capability as the journal keeps it, with the end of the task it was a part of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Its number within the task, and that of who called it.
    inner: u32,
    outer: u32,
    frame: Frame,
    /// The calls it made, by their numbers in the run.
    pub(super) calls: Vec<u32>,
}

/// Who calls in a run: the task of a DAG, by its frame, and the capability, by the number its worker has for it. The
/// program of a run is in no task, and numbers of its capabilities are the run's.
pub(super) type Caller = (u32, u32);

/// All calls of capabilities.
#[derive(Debug, Default)]
pub(super) struct Frames {
    all: Vec<Frame>,
    /// Their numbers.
    numbers: HashMap<Caller, u32>,
    /// Of each capability that was called.
    sites: Vec<Option<Arc<Sites>>>,
}

/// A call that begins.
pub(super) struct Began<'e> {
    pub(super) caller: Caller,
    pub(super) parent: Option<Caller>,
    pub(super) place: u32,
    pub(super) point: u32,
    pub(super) context: u32,
    pub(super) arguments: &'e str,
    /// How many calls had been made before.
    pub(super) after: u32,
}

/// Where in the run's own structure a capability is called that no other one calls, and who is told of the calls there.
pub(super) struct Root<'r> {
    pub(super) node: Option<NodeId>,
    pub(super) line: Option<u32>,
    pub(super) recorder: &'r mut Recorder,
}

/// A call of a tool as the worker tells of it.
pub(super) struct ToolCall<'c> {
    /// Its number in the run, and among the calls of its worker.
    pub(super) call: u32,
    pub(super) order: u32,
    pub(super) point: u32,
    pub(super) context: u32,
    pub(super) tool: &'c str,
    pub(super) arguments: &'c str,
}

/// Where a tool is called.
pub(super) struct Place {
    /// The node that stands for it in the program's own structure.
    pub(super) node: Option<NodeId>,
    /// The node in the structure of who calls.
    pub(super) inner: Option<NodeId>,
    /// The line in the text of who calls.
    pub(super) line: Option<u32>,
}

impl Frames {
    /// The one of that number.
    pub(super) fn get(&self, number: u32) -> Option<&Frame> {
        self.all.get((number as usize).checked_sub(1)?)
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Frame> {
        self.all.get_mut((number as usize).checked_sub(1)?)
    }

    /// Those that leave a trace.
    pub(super) fn traced(&self) -> impl Iterator<Item = &Frame> {
        self.all.iter().take(MOST_TRACES)
    }

    /// What they came to, as far as that can be kept.
    pub(super) fn results(&self, plan: &Plan) -> Vec<Called> {
        let places: Vec<Option<String>> = self.traced().map(Frame::place).collect();
        let mut left = MOST_RESULT_BYTES;
        let called = |(frame, id): (&Frame, Option<String>)| {
            let (status, result, error) = match &frame.end {
                Some(Ok(value)) => {
                    let fits = left.checked_sub(value.get().len());
                    left = fits.unwrap_or(left);
                    (TaskStatus::Success, fits.map(|_| value.clone()), None)
                }
                Some(Err(failure)) => (TaskStatus::Error, None, Some(failure.clone())),
                None => (TaskStatus::Cancelled, None, None),
            };
            let capability = frame.nested(plan)?.name.clone();
            Some(Called { task_id: id?, capability, status, result, error })
        };
        self.traced().zip(numbered(&places)).filter_map(called).collect()
    }

    /// The number of who calls; the run itself is 0.
    pub(super) fn number(&self, caller: Caller) -> u32 {
        self.numbers.get(&caller).copied().unwrap_or(0)
    }

    /// A capability is called.
    pub(super) fn began(&mut self, plan: &Plan, root: &mut Root<'_>, began: &Began<'_>, when: When) {
        let Some(nested) = plan.nested.get(began.place as usize) else { return };
        // A program whose worker died begins again, and says the same again.
        if self.numbers.contains_key(&began.caller) {
            return;
        }
        let number = self.next_number(began.caller);
        let parent = began.parent.map_or(0, |parent| self.number(parent));
        let (which, id) = (Which::Frame(number), nested.id.as_str());
        let (node, inner, line) = match self.get_mut(parent) {
            None => {
                root.recorder.issued(which, root.node, id, began.arguments, when);
                (root.node, None, root.line)
            }
            Some(parent) => {
                let site = parent.sites.call(began.point, began.context, &nested.name);
                let node = site.map(|site| site.node);
                node.into_iter().for_each(|node| parent.way.capability(node, began.after));
                parent.recorder.issued(which, node, id, began.arguments, when);
                (parent.node, node, parent.line)
            }
        };
        let place = began.place as usize;
        if self.sites.len() <= place {
            self.sites.resize(place + 1, None);
        }
        let sites =
            self.sites[place].get_or_insert_with(|| Arc::new(Sites::new(&nested.program, &nested.structure)));
        self.all.push(Frame {
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
            way: Way::default(),
            recorder: Recorder::default(),
        });
    }

    fn next_number(&mut self, caller: Caller) -> u32 {
        let number = u32::try_from(self.all.len() + 1).unwrap_or(u32::MAX);
        self.numbers.insert(caller, number);
        number
    }

    /// A capability has ended, as the program that called it sees it.
    pub(super) fn ended(
        &mut self,
        plan: &Plan,
        root: &mut Recorder,
        number: u32,
        end: &Result<String, Thrown>,
        when: When,
    ) {
        let Some(frame) = self.get(number) else { return };
        let end = match end {
            Ok(json) => Ok(RawValue::from_string(json.clone()).unwrap_or_else(|_| raw(&Value::Null))),
            Err(thrown) => Err(failure(frame.nested(plan), thrown)),
        };
        self.came_to(root, number, end, when);
    }

    /// A capability came to this.
    pub(super) fn came_to(
        &mut self,
        root: &mut Recorder,
        number: u32,
        end: Result<Box<RawValue>, Failure>,
        when: When,
    ) {
        let Some(parent) = self.get(number).map(|frame| frame.parent) else { return };
        let recorder = self.get_mut(parent).map_or(root, |parent| &mut parent.recorder);
        tell_end(recorder, number, &end, when);
        if let Some(frame) = self.get_mut(number) {
            (frame.ended, frame.end) = (Some(when.at), Some(end));
        }
    }

    /// The capabilities that a task called, for the journal; `made` are the calls that one of that number made.
    pub(super) fn kept(&self, task: u32, made: impl Fn(u32) -> Vec<u32>) -> Vec<Kept> {
        let inner: HashMap<u32, u32> = self
            .numbers
            .iter()
            .filter(|((of, _), _)| *of == task)
            .map(|((_, inner), number)| (*number, *inner))
            .collect();
        let kept = |frame: &Frame| {
            Some(Kept {
                inner: *inner.get(&frame.number)?,
                outer: inner.get(&frame.parent).copied().unwrap_or(0),
                frame: frame.clone(),
                calls: made(frame.number),
            })
        };
        self.traced().filter_map(kept).collect()
    }

    /// Takes up what the journal kept, and gives its number.
    pub(super) fn take_up(
        &mut self,
        plan: &Plan,
        root: &mut Recorder,
        task: u32,
        kept: &Kept,
        turn: impl Fn(i64) -> When,
    ) -> u32 {
        let number = self.next_number((task, kept.inner));
        let parent = if kept.inner == 0 { 0 } else { self.number((task, kept.outer)) };
        let frame = Frame { number, parent, ..kept.frame.clone() };
        if let Some(nested) = frame.nested(plan).filter(|_| parent == 0) {
            let (which, arguments) = (Which::Frame(number), frame.arguments.get());
            root.issued(which, frame.node, nested.id.as_str(), arguments, turn(frame.began));
            if let (Some(end), Some(at)) = (&frame.end, frame.ended) {
                tell_end(root, number, end, turn(at));
            }
        }
        self.all.push(frame);
        number
    }

    /// A call belongs to the capability of that number, though it was first told of the run itself.
    pub(super) fn take_over(&mut self, number: u32, call: &ToolCall<'_>, root: &mut Recorder) {
        let Some(frame) = self.get_mut(number) else { return };
        let node = frame.sites.call(call.point, call.context, call.tool).map(|site| site.node);
        node.into_iter().for_each(|node| frame.way.call(node, call.order));
        if let Some(call) = root.give_up(Which::Call(call.call)) {
            frame.recorder.take_over(call, node);
        }
    }

    /// Probes of a capability reported.
    pub(super) fn reached(&mut self, number: u32, places: &[Reached]) {
        let Some(frame) = self.get_mut(number) else { return };
        for reached in places {
            frame.way.take(reached, &frame.sites);
        }
    }

    /// A pure operation of a capability gave something. Says where it stands.
    pub(super) fn operation<'p>(
        &mut self,
        plan: &'p Plan,
        number: u32,
        seen: &OperationSeen<'_>,
        when: When,
    ) -> Option<OperationPlace<'p>> {
        let frame = self.get_mut(number)?;
        let nested = plan.nested.get(frame.place)?;
        let (node, tool) = frame.sites.operation(seen.point, seen.context, &nested.structure)?;
        frame.recorder.operation(&seen.at(node, tool), when);
        Some(OperationPlace { node_id: frame.node, tool, capability: Some(nested.name.clone()) })
    }

    /// A capability calls a tool.
    pub(super) fn issued(&mut self, number: u32, call: &ToolCall<'_>, when: When) -> Option<Place> {
        let frame = self.get_mut(number)?;
        let site = frame.sites.call(call.point, call.context, call.tool);
        let (inner, line) = (site.map(|site| site.node), site.map(|site| site.at.line));
        inner.into_iter().for_each(|node| frame.way.call(node, call.order));
        frame.recorder.issued(Which::Call(call.call), inner, call.tool, call.arguments, when);
        Some(Place { node: frame.node, inner, line })
    }

    /// A call of a tool ended that a capability made.
    pub(super) fn answered(&mut self, number: u32, call: u32, ended: &Ended<'_>, when: When) {
        if let Some(frame) = self.get_mut(number) {
            frame.recorder.ended(Which::Call(call), ended, when);
        }
    }
}

/// Tells whoever called a capability what it came to.
fn tell_end(recorder: &mut Recorder, number: u32, end: &Result<Box<RawValue>, Failure>, when: When) {
    let ended = match end {
        Ok(value) => Ended::Result(value),
        Err(failure) => Ended::Error { code: &failure.code, message: &failure.message, data: None },
    };
    recorder.ended(Which::Frame(number), &ended, when);
}

impl Frame {
    /// Where it is called, as its result is asked for.
    fn place(&self) -> Option<String> {
        let node = self.node?;
        Some(match self.inner {
            Some(inner) => format!("{node}/{inner}"),
            None => node.to_string(),
        })
    }

    /// The capability.
    pub(super) fn nested<'p>(&self, plan: &'p Plan) -> Option<&'p Nested> {
        plan.nested.get(self.place)
    }

    /// The same, by id.
    pub(super) fn capability(&self, plan: &Plan) -> Option<CapabilityId> {
        self.nested(plan).map(|nested| nested.id.clone())
    }

    /// Which way it went.
    fn path(&self, plan: &Plan) -> Path {
        let Some(nested) = self.nested(plan) else { return Path::default() };
        let mut path = self.way.path(&nested.structure);
        if !nested.tasks.is_empty() {
            // As with a run of the document: in its order, and all of them have begun where it came to its end.
            let all = matches!(self.end, Some(Ok(_)));
            let begun =
                nested.tasks.iter().map(|(node, _)| *node).filter(|node| all || path.nodes.contains(node));
            path.nodes = begun.collect();
        }
        path
    }

    /// What there is to tell of it, as if it had been run by itself. One without an end was given up when `over` was.
    pub(super) fn report(&self, plan: &Plan, tasks: Vec<Task>, over: &Report) -> Report {
        let (state, result, error) = match &self.end {
            Some(Ok(value)) => (RunState::Done, Some(value.clone()), None),
            Some(Err(failure)) => (RunState::Failed, None, Some(failure.clone())),
            None => {
                let failure = Failure::new("CANCELLED", "whoever called it did not wait for it");
                (RunState::Cancelled, None, Some(failure))
            }
        };
        let path = self.path(plan);
        let ended_at = self.ended.unwrap_or(over.ended_at);
        Report { state, result, error, tasks, path, ..Report::empty(self.began, ended_at) }
    }
}

/// Why a capability failed, in the words and lines of its own text.
fn failure(nested: Option<&Nested>, thrown: &Thrown) -> Failure {
    let code = thrown.code.as_deref().unwrap_or("PROGRAM_ERROR");
    let message = match (thrown.name.as_str(), thrown.message.as_str()) {
        ("ToolError" | "CapabilityError" | "Error", message) => message.to_owned(),
        (name, "") => name.to_owned(),
        (name, message) => format!("{name}: {message}"),
    };
    // A document has no lines that were run.
    let program = nested.filter(|nested| nested.tasks.is_empty());
    let line = program.and_then(|nested| source_line(&nested.program, thrown.line, thrown.column));
    Failure { line, ..Failure::new(code, message) }
}
