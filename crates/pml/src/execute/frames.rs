//! Capabilities that a program calls, as they are watched: which way each call of one went, and what it called in turn.

use std::sync::Arc;

use pml_model::json::raw;
use pml_model::structure::NodeId;
use pml_model::{CapabilityId, RunState};
use pml_sandbox::{Reached, Thrown};
use serde_json::Value;
use serde_json::value::RawValue;

use super::path::{Path, Sites, Way};
use super::plan::{Nested, Plan, source_line};
use super::report::{Failure, Report, Task};
use crate::trace::{Ended, Recorder, When, Which};

/// How many calls of capabilities leave a trace of their own.
const MOST_TRACES: usize = 200;

/// One call of a capability.
#[derive(Debug)]
pub(super) struct Frame {
    /// Its number, from 1.
    pub(super) number: u32,
    /// The frame that calls it; the program itself is 0.
    pub(super) parent: u32,
    /// Which capability, by its place.
    place: usize,
    /// The node that stands for it in the program's own structure, and its line.
    pub(super) node: Option<NodeId>,
    pub(super) line: Option<u32>,
    pub(super) arguments: Box<RawValue>,
    pub(super) began: i64,
    pub(super) ended: Option<i64>,
    end: Option<Result<Box<RawValue>, Failure>>,
    sites: Arc<Sites>,
    way: Way,
    pub(super) recorder: Recorder,
}

/// All calls of capabilities.
#[derive(Debug, Default)]
pub(super) struct Frames {
    all: Vec<Frame>,
    /// Of each capability that was called.
    sites: Vec<Option<Arc<Sites>>>,
}

/// A call that begins.
pub(super) struct Began<'e> {
    pub(super) number: u32,
    pub(super) parent: u32,
    pub(super) place: u32,
    pub(super) point: u32,
    pub(super) context: u32,
    pub(super) arguments: &'e str,
    /// How many calls had been made before.
    pub(super) after: u32,
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

    /// A capability is called; `first` are the sites and the way of the program itself, and `recorder` its calls.
    pub(super) fn began(
        &mut self,
        plan: &Plan,
        (first, way, recorder): (&Sites, &mut Way, &mut Recorder),
        began: &Began<'_>,
        when: When,
    ) {
        let Some(nested) = plan.nested.get(began.place as usize) else { return };
        let id = nested.id.as_str();
        let find = |sites: &Sites| {
            let site = sites.call(began.point, began.context, &nested.name)?;
            Some((site.node, site.at.line))
        };
        let (node, line) = match self.get_mut(began.parent) {
            None => {
                let site = find(first);
                let node = site.map(|(node, _)| node);
                node.into_iter().for_each(|node| way.capability(node, began.after));
                recorder.issued(Which::Frame(began.number), node, id, began.arguments, when);
                (node, site.map(|(_, line)| line))
            }
            Some(parent) => {
                let node = find(&parent.sites).map(|(node, _)| node);
                node.into_iter().for_each(|node| parent.way.capability(node, began.after));
                parent.recorder.issued(Which::Frame(began.number), node, id, began.arguments, when);
                (parent.node, parent.line)
            }
        };
        let place = began.place as usize;
        if self.sites.len() <= place {
            self.sites.resize(place + 1, None);
        }
        let sites =
            self.sites[place].get_or_insert_with(|| Arc::new(Sites::new(&nested.program, &nested.structure)));
        self.all.push(Frame {
            number: began.number,
            parent: began.parent,
            place,
            node,
            line,
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

    /// A capability has ended.
    pub(super) fn ended(
        &mut self,
        plan: &Plan,
        first: &mut Recorder,
        number: u32,
        end: &Result<String, Thrown>,
        when: When,
    ) {
        let Some(frame) = self.get_mut(number) else { return };
        let end = match end {
            Ok(json) => Ok(RawValue::from_string(json.clone()).unwrap_or_else(|_| raw(&Value::Null))),
            Err(thrown) => Err(failure(frame.nested(plan), thrown)),
        };
        frame.ended = Some(when.at);
        frame.end = Some(end.clone());
        let parent = frame.parent;
        let recorder = self.get_mut(parent).map_or(first, |parent| &mut parent.recorder);
        let ended = match &end {
            Ok(value) => Ended::Result(value),
            Err(failure) => Ended::Error { code: &failure.code, message: &failure.message, data: None },
        };
        recorder.ended(Which::Frame(number), &ended, when);
    }

    /// Probes of a capability reported.
    pub(super) fn reached(&mut self, number: u32, places: &[Reached]) {
        let Some(frame) = self.get_mut(number) else { return };
        for reached in places {
            frame.way.take(reached, &frame.sites);
        }
    }

    /// A capability calls a tool.
    pub(super) fn issued(
        &mut self,
        number: u32,
        (call, point, context): (u32, u32, u32),
        (tool, arguments): (&str, &str),
        when: When,
    ) -> Option<Place> {
        let frame = self.get_mut(number)?;
        let site = frame.sites.call(point, context, tool);
        let (inner, line) = (site.map(|site| site.node), site.map(|site| site.at.line));
        inner.into_iter().for_each(|node| frame.way.call(node, call));
        frame.recorder.issued(Which::Call(call), inner, tool, arguments, when);
        Some(Place { node: frame.node, inner, line })
    }

    /// A call of a tool ended that a capability made.
    pub(super) fn answered(&mut self, number: u32, call: u32, ended: &Ended<'_>, when: When) {
        if let Some(frame) = self.get_mut(number) {
            frame.recorder.ended(Which::Call(call), ended, when);
        }
    }
}

impl Frame {
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
        self.nested(plan).map(|nested| self.way.path(&nested.structure)).unwrap_or_default()
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
    let line = nested.and_then(|nested| source_line(&nested.program, thrown.line, thrown.column));
    Failure { line, ..Failure::new(code, message) }
}
