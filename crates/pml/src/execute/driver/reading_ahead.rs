//! Reads ahead of the run: follows the source of calls, starts reads while it is quiet, and hands out their results.

use std::collections::HashMap;
use std::sync::Arc;

use pml_model::structure::{NodeId, NodeLetter};
use pml_model::{CapabilityId, Digest, ToolId};
use pml_sandbox::WorkerEvent;

use super::super::dag::{DagRun, UpcomingCall};
use super::super::observe::Observer;
use super::super::run::RunEvent;
use super::super::speculation::{
    CallEffects, CalledTool, InlinedPlaces, InlinedStructure, LEAST_CONFIDENCE, NewRead, OutcomeShares,
    Outlook, ReadAhead, RunAhead, Speculator, ToolEffect,
};
use super::{DrivenRun, Driver};
use crate::approve::ToolVerdict;
use crate::epoch::WriteReach;
use crate::execute::delivery::RunDelivery;
use crate::execute::ending::RunEnding;
use crate::execute::issued_call::IssuedCall;
use crate::plan::{Plan, ProgramScope, TaskWork};
use crate::report::PathDecision;
use crate::tools::Toolset;

/// Confidence that a task runs that only waits for tasks under way: a failure, a replan or an abort keeps it from doing
/// so. Each further step until the task starts multiplies it again.
const NEXT_STEP: f64 = 0.9;

impl Driver {
    /// Tells the reads ahead what the program does. While it is quiet, the reads that follow are started; before the run
    /// core hears of it, because it may park the run.
    pub(super) fn read_ahead(&mut self, event: &RunEvent<RunEnding>) {
        let Some(reading) = &mut self.calls.reading_ahead else { return };
        match event {
            RunEvent::Issued(issued) => {
                if let Some(tool) = self.driven.plan.tools.get(issued.handle as usize) {
                    reading.takes_earlier(&tool.id, &issued.digest);
                }
                reading.on_issued(&self.observer, issued);
            }
            RunEvent::Quiet { taken } if self.run.is_settled(*taken) => {
                reading.follow(&self.observer);
                let writes: Vec<WriteReach> =
                    self.run.open_handles().filter_map(|handle| reading.writes_of(handle)).collect();
                if writes.contains(&WriteReach::Everywhere) {
                    return;
                }
                let calls = self.run.in_flight();
                reading.start_reads(&self.driven, self.work.dag.as_deref(), (&writes, calls));
            }
            _ => {}
        }
    }

    /// Tells the reads ahead what the program receives.
    pub(super) fn follow_delivery(&mut self, what: &RunDelivery) {
        match what {
            RunDelivery::Result { call, value, .. } => {
                if let Some(reading) = &mut self.calls.reading_ahead
                    && let Some((calls, node)) = self.observer.call_place(*call)
                {
                    reading.on_result(&calls, node, value.get());
                }
            }
            RunDelivery::Error { .. } | RunDelivery::Frame { error: Some(_), .. } => {
                if let (Some(reading), Some(dag)) = (&mut self.calls.reading_ahead, &self.work.dag) {
                    dag.tasks_after_failure(what)
                        .into_iter()
                        .for_each(|task| reading.drop_task(&self.driven, task));
                }
            }
            // A program that waits some time wants to know what is there afterwards.
            RunDelivery::Timer { .. } if !self.restoring => {
                self.drop_unused_reads();
                self.calls.reading_ahead.iter_mut().for_each(ReadingAhead::forget_made);
            }
            _ => {}
        }
    }

    /// Forgets the reads ahead after the plan was replaced.
    pub(super) fn forget_reads(&mut self) {
        if !self.restoring {
            self.drop_unused_reads();
        }
        self.calls.reading_ahead = ReadingAhead::new(&self.driven);
    }

    /// Drops the results that nobody asked for: time has passed that the program waited for on purpose, or the plan is
    /// another.
    fn drop_unused_reads(&self) {
        self.driven.runs.speculator.drop_unused(self.driven.lease.run());
    }

    /// Tells the reads ahead what a capability or a pure operation returned, if that is known in full.
    pub(super) fn follow_value(&mut self, seen: &WorkerEvent) {
        let Some(reading) = &mut self.calls.reading_ahead else { return };
        match seen {
            WorkerEvent::Operation { frame, point, context, gave, .. } if gave.whole => {
                if let Some((calls, node)) = self.observer.operation_place(*frame, *point, *context) {
                    reading.on_result(&calls, node, &gave.json);
                }
            }
            WorkerEvent::FrameEnded { frame, end: Ok(value) } => {
                if let Some((node, calls)) =
                    self.observer.frame_path(*frame).as_deref().and_then(<[_]>::split_last)
                {
                    reading.on_result(calls, *node, value);
                }
            }
            _ => {}
        }
    }
}

/// The reads that one run makes ahead.
pub(super) struct ReadingAhead {
    speculator: Arc<Speculator>,
    /// What may be done with each tool of the plan, by handle.
    effects: Vec<ToolEffect>,
    /// The program, as far as it can be foreseen; `None` for a DAG.
    ahead: Option<RunAhead>,
    /// The DAG tasks whose calls were made ahead, each with its handle and the digest of its arguments.
    tasks: HashMap<usize, (u32, Digest)>,
    /// The reads that were made before a pause of the run and are not asked for yet, by tool and arguments.
    made_before: HashMap<(ToolId, Digest), usize>,
    /// How many more reads the run may make ahead.
    left: u32,
    /// Where the nodes of called capabilities are.
    places: InlinedPlaces,
    followed: FollowedPaths,
}

/// How much of the paths of the program and its capabilities was followed.
#[derive(Default)]
struct FollowedPaths {
    program: PathPosition,
    /// The number of called capabilities that are followed or over.
    frames: u32,
    /// The called capabilities that are not over.
    open: Vec<(u32, PathPosition)>,
}

/// A number of nodes and of decisions.
type PathPosition = (usize, usize);

impl ReadingAhead {
    /// What can be read ahead of a plan; `None` if nothing can.
    pub(super) fn new(of: &DrivenRun) -> Option<ReadingAhead> {
        let (plan, runs) = (&of.plan, &of.runs);
        if plan.limits.speculated_calls == 0 || plan.is_direct() || !plan.opaque.is_empty() {
            return None;
        }
        let effects = tool_effects(plan, &runs.tools);
        let mut places = InlinedPlaces::default();
        let ahead = match plan.program() {
            Some(_) => {
                let known = PlanEffects { plan, effects: &effects };
                let branches = runs.settings.config().speculation.branches;
                let outlook = if plan.nested.is_empty() {
                    Outlook::new(&plan.structure, &known)?
                } else {
                    let inlined = InlinedStructure::new(&plan.structure, &plan.nested);
                    places = inlined.places;
                    Outlook::new(&inlined.structure, &known)?
                };
                Some(RunAhead::new(outlook, &plan.arguments, branches, learned_shares(of, &places)))
            }
            None => None,
        };
        runs.speculator.load_records(&of.principal);
        Some(ReadingAhead {
            speculator: Arc::clone(&runs.speculator),
            effects,
            ahead,
            tasks: HashMap::new(),
            made_before: runs.speculator.unused_reads(of.lease.run()),
            left: plan.limits.speculated_calls.saturating_sub(runs.speculator.reads_made(of.lease.run())),
            places,
            followed: FollowedPaths::default(),
        })
    }

    /// What a tool of the plan may change; `None` if it only reads.
    fn writes_of(&self, handle: u32) -> Option<WriteReach> {
        match self.effects.get(handle as usize) {
            Some(ToolEffect::MayChange(reach)) => Some(reach.clone()),
            Some(_) => None,
            None => Some(WriteReach::Everywhere),
        }
    }

    /// The program received the result of a node, which the nodes in `calls` lead to.
    fn on_result(&mut self, calls: &[NodeId], node: NodeId, result: &str) {
        if let (Some(ahead), Some(node)) = (&mut self.ahead, self.places.node(calls, node)) {
            ahead.on_result(node, result);
        }
    }

    /// The program issued a call.
    fn on_issued(&mut self, observer: &Observer, issued: &IssuedCall) {
        if let Some(ahead) = &mut self.ahead
            && let Some((calls, node)) = observer.call_place(issued.call)
            && let Some(node) = self.places.node(&calls, node)
        {
            ahead.on_issued(node, &issued.arguments);
        }
    }

    /// Follows the program, and the capabilities that it calls, to where they are now.
    fn follow(&mut self, observer: &Observer) {
        let Some(ahead) = &mut self.ahead else { return };
        let (nodes, decisions) = observer.path_progress();
        follow_path(ahead, (nodes, decisions), &mut self.followed.program, Some);
        if self.places.is_empty() {
            return;
        }
        let begun = observer.frames().count();
        self.followed.open.extend((self.followed.frames + 1..=begun).map(|frame| (frame, (0, 0))));
        self.followed.frames = begun;
        self.followed.open.retain_mut(|(frame, followed)| {
            let frames = observer.frames();
            let (Some(calls), Some(path)) = (frames.call_path(*frame), frames.progress(*frame)) else {
                return false;
            };
            follow_path(ahead, path, followed, |node| self.places.node(&calls, node));
            !frames.is_over(*frame)
        });
    }

    /// Starts the reads that can be made now. `writes` is what the `calls` under way may change: a read must not overtake
    /// them.
    fn start_reads(&mut self, of: &DrivenRun, dag: Option<&DagRun>, (writes, calls): (&[WriteReach], usize)) {
        let run = of.lease.run();
        let room = self.speculator.room(run, calls, of.plan.limits.concurrent).min(self.left as usize);
        if room == 0 {
            return;
        }
        let admitted = |handle: u32, confidence: f64| {
            let tool = of.plan.tools.get(handle as usize);
            tool.is_some_and(|tool| {
                !writes.iter().any(|reach| reach.covers(&tool.id.server))
                    && self.speculator.admits(&of.principal, &tool.id, confidence)
            })
        };
        let mut reads = self.ahead.as_mut().map(|ahead| ahead.take_reads(room, admitted)).unwrap_or_default();
        let known = PlanEffects { plan: &of.plan, effects: &self.effects };
        for call in dag.into_iter().flat_map(|dag| dag.upcoming_calls(|work| known.may_write(work))) {
            let confidence = NEXT_STEP.powi(i32::try_from(call.steps).unwrap_or(i32::MAX));
            // The calls come in the order of their steps.
            if reads.len() == room || confidence < LEAST_CONFIDENCE {
                break;
            }
            if self.is_speculable(&call)
                && !self.tasks.contains_key(&call.task)
                && admitted(call.handle, confidence)
            {
                let UpcomingCall { task, handle, arguments, .. } = call;
                self.tasks.insert(task, (handle, Digest::of(arguments.as_bytes())));
                reads.push(ReadAhead { handle, arguments, confidence });
            }
        }
        for read in reads {
            let Some(tool) = of.plan.tools.get(read.handle as usize) else { continue };
            let ReadAhead { arguments, confidence, .. } = read;
            if self.speculator.has_earlier_read(run, &tool.id, &arguments)
                || self.takes_earlier(&tool.id, &Digest::of(arguments.as_bytes()))
            {
                continue;
            }
            let read = NewRead { principal: &of.principal, run, tool, arguments, confidence };
            let begun = self.speculator.start(&read);
            self.left -= u32::from(begun);
        }
    }

    /// Forgets which reads were made: they were dropped.
    fn forget_made(&mut self) {
        self.tasks.clear();
        self.made_before.clear();
    }

    /// Whether a call was made ahead before a pause of the run. Each such read counts for one call.
    fn takes_earlier(&mut self, tool: &ToolId, arguments: &Digest) -> bool {
        if self.made_before.is_empty() {
            return false;
        }
        let left = self.made_before.get_mut(&(tool.clone(), arguments.clone()));
        let Some(left) = left.filter(|left| **left > 0) else { return false };
        *left -= 1;
        true
    }

    /// Drops the read for a DAG task, because one before it has failed.
    fn drop_task(&mut self, of: &DrivenRun, task: usize) {
        if let Some((handle, arguments)) = self.tasks.get(&task)
            && let Some(tool) = of.plan.tools.get(*handle as usize)
        {
            self.speculator.discard((&of.principal, of.lease.run()), &tool.id, arguments);
        }
    }

    fn is_speculable(&self, call: &UpcomingCall) -> bool {
        match self.effects.get(call.handle as usize) {
            Some(ToolEffect::ReadsClosed) => true,
            // What another tool returned does not leave the machine before the task itself sends it.
            Some(ToolEffect::ReadsOpen) => !call.from_results,
            Some(ToolEffect::ReadsOnly | ToolEffect::MayChange(_)) | None => false,
        }
    }
}

/// Tells the reads ahead how a path goes on; `place` gives the node that a node of the path is to them.
fn follow_path(
    ahead: &mut RunAhead,
    (nodes, decisions): (&[NodeId], &[PathDecision]),
    followed: &mut PathPosition,
    place: impl Fn(NodeId) -> Option<NodeId>,
) {
    nodes.iter().skip(followed.0).filter_map(|node| place(*node)).for_each(|node| ahead.on_reached(node));
    for decided in decisions.iter().skip(followed.1) {
        if let Some(node) = place(decided.node) {
            ahead.on_decided(node, &decided.outcome);
        }
    }
    *followed = (nodes.len(), decisions.len());
}

/// What earlier runs of the program, and of the capabilities that it calls, decided.
fn learned_shares(of: &DrivenRun, places: &InlinedPlaces) -> OutcomeShares {
    let mut shares = OutcomeShares::default();
    let memory = &of.runs.knowledge.memory;
    let learned = |id: &CapabilityId| memory.cached_by_name(&of.principal, id.as_str());
    if let Some(own) = of.plan.learn.as_ref().and_then(|learn| learned(&learn.capability_id(&of.principal))) {
        own.decisions.iter().for_each(|decision| shares.add(decision.node_id, decision));
    }
    for (capability, node, inlined) in places.nodes().filter(|(_, node, _)| node.letter == NodeLetter::D) {
        let called = of.plan.nested.get(capability).and_then(|nested| learned(&nested.id));
        let decisions = called.iter().flat_map(|called| &called.decisions);
        decisions.filter(|seen| seen.node_id == node).for_each(|seen| shares.add(inlined, seen));
    }
    shares
}

/// What may be done with each tool of a plan, by handle.
fn tool_effects(plan: &Plan, tools: &Toolset) -> Vec<ToolEffect> {
    let (snapshot, policy) = (tools.snapshot(), tools.policy());
    let effect = |id: &ToolId, verdict: &ToolVerdict| match (verdict.effect_free, verdict.can_speculate()) {
        (_, true) if verdict.open_world => ToolEffect::ReadsOpen,
        (_, true) => ToolEffect::ReadsClosed,
        (true, false) => ToolEffect::ReadsOnly,
        (false, false) => ToolEffect::MayChange(WriteReach::of(&id.server, verdict.isolated)),
    };
    let of_tool = |id: &ToolId| match snapshot.tool(id) {
        Ok(tool) => effect(id, &policy.verdict(id, &tool.definition.annotations)),
        Err(_) => ToolEffect::MayChange(WriteReach::Everywhere),
    };
    plan.tools.iter().map(|tool| of_tool(&tool.id)).collect()
}

/// Whether `text` is the id of the tool.
fn names(id: &ToolId, text: &str) -> bool {
    text.split_once(':').is_some_and(|(server, tool)| id.server.as_str() == server && id.tool == tool)
}

/// The effects of the calls of a plan.
struct PlanEffects<'p> {
    plan: &'p Plan,
    effects: &'p [ToolEffect],
}

impl PlanEffects<'_> {
    /// Whether the work of a task may change something.
    fn may_write(&self, work: &TaskWork) -> bool {
        let mut writes = Vec::new();
        match work {
            TaskWork::Tool { handle } => {
                let effect = self.effects.get(*handle as usize);
                return matches!(effect, None | Some(ToolEffect::MayChange(_)));
            }
            TaskWork::Code(code) => self.add_writes(&code.sees, MOST_DEPTH, &mut writes),
        }
        !writes.is_empty()
    }

    /// Adds what a program may change to `writes`.
    fn add_writes(&self, sees: &ProgramScope, depth: usize, writes: &mut Vec<WriteReach>) {
        // The depth bounds the walk; planning has refused cycles.
        if depth == 0 {
            writes.push(WriteReach::Everywhere);
            return;
        }
        for handle in &sees.tools {
            match self.effects.get(*handle as usize) {
                Some(ToolEffect::MayChange(reach)) => writes.push(reach.clone()),
                Some(_) => {}
                None => writes.push(WriteReach::Everywhere),
            }
        }
        for place in &sees.nested {
            match self.plan.nested.get(*place as usize) {
                Some(nested) => self.add_writes(&nested.sees, depth - 1, writes),
                None => writes.push(WriteReach::Everywhere),
            }
        }
    }
}

/// More levels than capabilities may call each other over.
const MOST_DEPTH: usize = 16;

impl CallEffects for PlanEffects<'_> {
    fn tool(&self, tool: &str) -> Option<CalledTool<'_>> {
        let place = self.plan.tools.iter().position(|planned| names(&planned.id, tool))?;
        let handle = u32::try_from(place).ok()?;
        Some(CalledTool { handle, server: &self.plan.tools[place].id.server, effect: &self.effects[place] })
    }

    fn capability_writes(&self, name: &str) -> Vec<WriteReach> {
        let mut writes = Vec::new();
        match self.plan.nested.iter().find(|nested| nested.name == name) {
            Some(nested) => self.add_writes(&nested.sees, MOST_DEPTH, &mut writes),
            None => writes.push(WriteReach::Everywhere),
        }
        writes
    }
}
