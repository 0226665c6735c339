//! Reads ahead of the run: follows the source of calls, starts reads while it is quiet, and hands out their results.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pml_model::structure::{NodeId, NodeLetter};
use pml_model::{CapabilityId, Digest, ToolId};
use pml_sandbox::WorkerEvent;
use tokio::sync::watch;

use super::super::dag::{DagRun, UpcomingCall};
use super::super::observe::Observer;
use super::super::run::RunEvent;
use super::super::speculation::{
    CallEffects, CalledTool, InlinedPlaces, InlinedStructure, LEAST_CONFIDENCE, NewRead, OutcomeShares,
    Outlook, ReadOffer, RunAhead, Speculator, ToolEffect,
};
use super::{DrivenRun, Driver};
use crate::approve::ToolVerdict;
use crate::epoch::WriteReach;
use crate::execute::delivery::RunDelivery;
use crate::execute::ending::RunEnding;
use crate::execute::issued_call::IssuedCall;
use crate::plan::{Plan, ProgramScope, TaskWork};
use crate::report::{NotAhead, PathDecision};
use crate::tools::Toolset;

/// Confidence that a task runs that only waits for tasks under way: a failure, a replan or an abort keeps it from doing
/// so. Each further step until the task starts multiplies it again.
const NEXT_STEP: f64 = 0.9;

/// 1 s: how often a read for which there was no room is tried again, should no other read end: a budget fills up with time,
/// and calls that somebody waits for leave room when they end.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How often the read for a task of a DAG is made anew because a task beside it slept.
const MOST_SLEPT: u32 = 1;

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
                let held_by = reading.on_issued(&self.observer, issued);
                if let Some(held_by) = held_by.filter(|_| !self.run.is_replaying()) {
                    reading.held_back.insert(issued.call, held_by);
                }
            }
            RunEvent::Quiet { taken } if self.run.is_settled(*taken) => {
                reading.follow(&self.observer);
                self.start_reads(*taken);
            }
            _ => {}
        }
    }

    /// Starts the reads that can be made now, while a program that took so many deliveries is quiet.
    fn start_reads(&mut self, taken: u32) {
        let Some(reading) = &mut self.calls.reading_ahead else { return };
        reading.release_passed(&self.driven);
        let (mut writes, mut nodes) = (Vec::new(), Vec::new());
        for open in self.run.open_calls() {
            let Some(reach) = reading.writes_of(open.handle) else { continue };
            writes.push(reach);
            nodes.extend(reading.place_of(&self.observer, open.call));
        }
        reading.on_changes_under_way(&nodes);
        if !writes.contains(&WriteReach::Everywhere) {
            let calls = self.run.in_flight();
            reading.start_reads(&self.driven, self.work.dag.as_deref(), (&writes, calls), taken);
        }
    }

    /// Starts the reads for which there was no room before, if the program still waits.
    pub(super) fn read_on(&mut self) {
        let refused = self.calls.reading_ahead.as_mut().and_then(|reading| reading.refused_at.take());
        if let Some(taken) = refused.filter(|taken| self.run.is_settled(*taken)) {
            self.start_reads(taken);
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
                self.driven.runs.speculator.drop_early(self.driven.lease.run());
                self.calls.reading_ahead.iter_mut().for_each(ReadingAhead::on_slept);
            }
            _ => {}
        }
    }

    /// Forgets the reads ahead after the plan was replaced.
    pub(super) fn forget_reads(&mut self) {
        if !self.restoring {
            self.driven.runs.speculator.drop_unused(self.driven.lease.run());
        }
        self.calls.reading_ahead = ReadingAhead::new(&self.driven);
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
    /// How often the read for a DAG task was dropped because a task beside it slept.
    slept: HashMap<usize, u32>,
    /// The issued calls that were held back, until they are sent, each with the node that did so.
    held_back: HashMap<u32, NotAhead>,
    /// Changes whenever there may be room for a read again.
    room_returns: watch::Receiver<()>,
    /// The deliveries that the program had taken when there was no room for a read; `None` if there was.
    refused_at: Option<u32>,
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
            slept: HashMap::new(),
            held_back: HashMap::new(),
            room_returns: runs.speculator.room_returns(),
            refused_at: None,
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

    /// The place of a call in the program with its capabilities.
    fn place_of(&self, observer: &Observer, call: u32) -> Option<NodeId> {
        let (calls, node) = observer.call_place(call)?;
        self.places.node(&calls, node)
    }

    /// The program issued a call. Returns what held it back, if that kept it from being made ahead.
    fn on_issued(&mut self, observer: &Observer, issued: &IssuedCall) -> Option<NotAhead> {
        let node = self.place_of(observer, issued.call)?;
        let held_by = self.ahead.as_mut()?.on_issued(node, &issued.arguments)?;
        Some(NotAhead::Behind { node: Some(held_by).filter(|node| self.places.is_of_program(*node)) })
    }

    /// Takes what held back a call that is sent now.
    pub(super) fn take_held_back(&mut self, call: u32) -> Option<NotAhead> {
        self.held_back.remove(&call)
    }

    /// Calls at these nodes, which may change something, are under way.
    fn on_changes_under_way(&mut self, nodes: &[NodeId]) {
        if let Some(ahead) = self.ahead.as_mut().filter(|_| !nodes.is_empty()) {
            ahead.on_changes_under_way(nodes);
        }
    }

    /// What tells that there may be room again; `None` if no read waits for it.
    pub(super) fn awaited_room(&self) -> Option<watch::Receiver<()>> {
        self.refused_at.map(|_| self.room_returns.clone())
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
    /// them. The program took so many deliveries before.
    fn start_reads(
        &mut self,
        of: &DrivenRun,
        dag: Option<&DagRun>,
        (writes, calls): (&[WriteReach], usize),
        taken: u32,
    ) {
        let run = of.lease.run();
        self.room_returns.mark_unchanged();
        let room = self.speculator.room(run, calls, of.plan.limits.concurrent).min(self.left as usize);
        if room == 0 && self.made_before.is_empty() {
            return;
        }
        let ReadingAhead { speculator, effects, ahead, tasks, slept, made_before, left, refused_at, .. } =
            self;
        let (marks, mut room) = (Arc::default(), room);
        let mut offer = |handle: u32, arguments: &str, confidence: f64| {
            let Some(tool) = of.plan.tools.get(handle as usize) else { return ReadOffer::NotNow };
            if writes.iter().any(|reach| reach.covers(&tool.id.server))
                || !speculator.admits(&of.principal, &tool.id, confidence)
            {
                return ReadOffer::NotNow;
            }
            if speculator.has_earlier_read(run, &tool.id, arguments)
                || take_made_before(made_before, &tool.id, &Digest::of(arguments.as_bytes()))
            {
                return ReadOffer::Taken;
            }
            if room == 0 {
                // Further ones may have been made before the pause.
                return if made_before.is_empty() { ReadOffer::Full } else { ReadOffer::NotNow };
            }
            let read = NewRead { principal: &of.principal, run, tool, arguments, confidence, marks: &marks };
            if !speculator.start(&read) {
                *refused_at = Some(taken);
                return ReadOffer::NotNow;
            }
            room -= 1;
            *left -= 1;
            ReadOffer::Taken
        };
        if let Some(ahead) = ahead {
            ahead.offer_reads(|read| offer(read.handle, &read.arguments, read.confidence));
        }
        let known = PlanEffects { plan: &of.plan, effects };
        for call in dag.into_iter().flat_map(|dag| dag.upcoming_calls(|work| known.may_write(work))) {
            let confidence = NEXT_STEP.powi(i32::try_from(call.steps).unwrap_or(i32::MAX));
            // The calls come in the order of their steps.
            if confidence < LEAST_CONFIDENCE {
                break;
            }
            let UpcomingCall { task, handle, ref arguments, .. } = call;
            if !is_speculable(effects, &call)
                || tasks.contains_key(&task)
                || slept.get(&task).is_some_and(|times| *times > MOST_SLEPT)
            {
                continue;
            }
            match offer(handle, arguments, confidence) {
                ReadOffer::Taken => {
                    tasks.insert(task, (handle, Digest::of(arguments.as_bytes())));
                }
                ReadOffer::NotNow => {}
                ReadOffer::Full => break,
            }
        }
    }

    /// Drops the reads that the program will not ask for, which leaves room for others.
    fn release_passed(&mut self, of: &DrivenRun) {
        let passed = self.ahead.as_mut().map(RunAhead::take_passed).unwrap_or_default();
        for (handle, arguments) in passed {
            if let Some(tool) = of.plan.tools.get(handle as usize) {
                let arguments = Digest::of(arguments.as_bytes());
                self.speculator.release((&of.principal, of.lease.run()), &tool.id, &arguments);
            }
        }
    }

    /// The program has slept, and the reads made before were dropped.
    fn on_slept(&mut self) {
        self.tasks.drain().for_each(|(task, _)| *self.slept.entry(task).or_default() += 1);
        self.made_before.clear();
        self.ahead.iter_mut().for_each(RunAhead::on_slept);
    }

    /// Whether a call was made ahead before a pause of the run. Each such read counts for one call.
    fn takes_earlier(&mut self, tool: &ToolId, arguments: &Digest) -> bool {
        take_made_before(&mut self.made_before, tool, arguments)
    }

    /// Drops the read for a DAG task, because one before it has failed.
    fn drop_task(&mut self, of: &DrivenRun, task: usize) {
        if let Some((handle, arguments)) = self.tasks.get(&task)
            && let Some(tool) = of.plan.tools.get(*handle as usize)
        {
            self.speculator.discard((&of.principal, of.lease.run()), &tool.id, arguments);
        }
    }
}

/// Waits until there may be room for a read that found none before.
pub(super) async fn room_returned(awaited: Option<watch::Receiver<()>>) {
    match awaited {
        Some(mut room) => drop(tokio::time::timeout(TRY_AGAIN, room.changed()).await),
        None => std::future::pending().await,
    }
}

/// Takes one of the reads that were made before a pause of the run. Returns `false` if there is none for this call.
fn take_made_before(
    made_before: &mut HashMap<(ToolId, Digest), usize>,
    tool: &ToolId,
    arguments: &Digest,
) -> bool {
    if made_before.is_empty() {
        return false;
    }
    let call = (tool.clone(), arguments.clone());
    let Some(left) = made_before.get_mut(&call) else { return false };
    *left -= 1;
    if *left == 0 {
        made_before.remove(&call);
    }
    true
}

fn is_speculable(effects: &[ToolEffect], call: &UpcomingCall) -> bool {
    match effects.get(call.handle as usize) {
        Some(ToolEffect::ReadsClosed) => true,
        // What another tool returned does not leave the machine before the task itself sends it.
        Some(ToolEffect::ReadsOpen) => !call.from_results,
        Some(ToolEffect::ReadsOnly | ToolEffect::MayChange(_)) | None => false,
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
