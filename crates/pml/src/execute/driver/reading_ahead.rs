//! Reads ahead of the run: follows the source of calls, starts reads while it is quiet, and hands out their results.

use std::sync::Arc;

use pml_model::ToolId;
use pml_model::structure::NodeId;
use pml_sandbox::WorkerEvent;

use super::super::dag::UpcomingCall;
use super::super::run::RunEvent;
use super::super::speculation::{
    CallEffects, NewRead, Outlook, PendingRead, ReadAhead, RunAhead, Speculator, ToolEffect,
};
use super::{DrivenRun, Driver};
use crate::approve::ToolVerdict;
use crate::execute::delivery::RunDelivery;
use crate::execute::ending::RunEnding;
use crate::execute::issued_call::IssuedCall;
use crate::plan::{Plan, ProgramScope};
use crate::report::PathDecision;
use crate::tools::Toolset;

/// Confidence that a task of the next layer runs: only a replan or an abort keeps it from doing so.
const NEXT_LAYER: f64 = 0.9;

impl Driver {
    /// Tells the reads ahead what the program does. While it is quiet, the reads that follow are started; before the run
    /// core hears of it, because it may park the run.
    pub(super) fn read_ahead(&mut self, event: &RunEvent<RunEnding>) {
        let Some(reading) = &mut self.calls.reading_ahead else { return };
        match event {
            RunEvent::Issued(issued) => reading.on_issued(issued),
            RunEvent::Quiet { taken } if self.run.is_settled(*taken) => {
                let (nodes, decisions) = self.observer.path_progress();
                reading.follow(nodes, decisions);
                // What may change something comes first: a read must not overtake it.
                if self.run.open_handles().any(|handle| reading.may_change(handle)) {
                    return;
                }
                let upcoming = self.work.dag.as_ref().map(|dag| dag.upcoming_calls()).unwrap_or_default();
                reading.start_reads(&self.driven, upcoming);
            }
            _ => {}
        }
    }

    /// Tells the reads ahead what the program receives.
    pub(super) fn follow_delivery(&mut self, what: &RunDelivery) {
        let Some(reading) = &mut self.calls.reading_ahead else { return };
        match what {
            RunDelivery::Result { call, value, .. } => {
                if let (Some(program), Some(node)) = (reading.program(), self.observer.node_of(*call)) {
                    program.on_result(node, value.get());
                }
            }
            // A program that waits some time wants to know what is there afterwards.
            RunDelivery::Timer { .. } => reading.drop_unused(&self.driven),
            _ => {}
        }
    }

    /// Forgets the reads ahead after the plan was replaced.
    pub(super) fn forget_reads(&mut self) {
        if let Some(reading) = &mut self.calls.reading_ahead {
            reading.drop_unused(&self.driven);
        }
        self.calls.reading_ahead = ReadingAhead::new(&self.driven);
    }

    /// Tells the reads ahead what a pure operation of the program returned, if that is known in full.
    pub(super) fn follow_operation(&mut self, seen: &WorkerEvent) {
        let WorkerEvent::Operation { frame: 0, point, context, gave, .. } = seen else { return };
        let program = self.calls.reading_ahead.as_mut().and_then(ReadingAhead::program);
        if let Some(program) = program.filter(|_| gave.whole)
            && let Some(node) = self.observer.operation_node(*point, *context)
        {
            program.on_result(node, &gave.json);
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
    /// The calls of DAG tasks that were made ahead.
    tasks: Vec<UpcomingCall>,
    /// How many more reads the run may make ahead.
    left: u32,
    /// How much of the path the program had taken when it was last followed.
    followed: (usize, usize),
}

impl ReadingAhead {
    /// What can be read ahead of a plan; `None` if nothing can.
    pub(super) fn new(of: &DrivenRun) -> Option<ReadingAhead> {
        let (plan, runs) = (&of.plan, &of.runs);
        if plan.limits.speculated_calls == 0 || plan.is_direct() || !plan.opaque.is_empty() {
            return None;
        }
        let effects = tool_effects(plan, &runs.tools);
        let ahead = match plan.program() {
            Some(_) => {
                let known = PlanEffects { plan, effects: &effects };
                let branches = runs.settings.config().speculation.branches;
                let outlook = Outlook::new(&plan.structure, &known)?;
                Some(RunAhead::new(outlook, &plan.arguments, branches))
            }
            // Tasks run as soon as they can, unless the run waits between its layers.
            None if plan.pauses() => None,
            None => return None,
        };
        runs.speculator.load_records(&of.principal);
        Some(ReadingAhead {
            speculator: Arc::clone(&runs.speculator),
            effects,
            ahead,
            tasks: Vec::new(),
            left: plan.limits.speculated_calls,
            followed: (0, 0),
        })
    }

    /// Whether a tool of the plan may change something.
    pub(super) fn may_change(&self, handle: u32) -> bool {
        self.effects.get(handle as usize).is_none_or(|effect| *effect == ToolEffect::MayChange)
    }

    /// The part that follows the program; `None` for a DAG.
    pub(super) fn program(&mut self) -> Option<&mut RunAhead> {
        self.ahead.as_mut()
    }

    /// The program issued a call.
    pub(super) fn on_issued(&mut self, issued: &IssuedCall) {
        if let Some(ahead) = &mut self.ahead
            && let Some(node) = own_node(issued)
        {
            ahead.on_issued(node, &issued.arguments);
        }
    }

    /// The program reached these nodes and made these decisions; each list only grows.
    pub(super) fn follow(&mut self, nodes: &[NodeId], decisions: &[PathDecision]) {
        if let Some(ahead) = &mut self.ahead {
            nodes.iter().skip(self.followed.0).for_each(|node| ahead.on_reached(*node));
            let decided = decisions.iter().skip(self.followed.1);
            decided.for_each(|decided| ahead.on_decided(decided.node, &decided.outcome));
        }
        self.followed = (nodes.len(), decisions.len());
    }

    /// Starts the reads that can be made now. `upcoming` are the calls of the tasks of a DAG that run next.
    pub(super) fn start_reads(&mut self, of: &DrivenRun, upcoming: Vec<UpcomingCall>) {
        let run = of.lease.run();
        let room = self.speculator.room(run).min(self.left as usize);
        if room == 0 {
            return;
        }
        let admitted = |handle: u32, confidence: f64| {
            let tool = of.plan.tools.get(handle as usize);
            tool.is_some_and(|tool| self.speculator.admits(&of.principal, &tool.id, confidence))
        };
        let mut reads = self.ahead.as_mut().map(|ahead| ahead.take_reads(room, admitted)).unwrap_or_default();
        for call in upcoming {
            if reads.len() < room
                && self.is_speculable(&call)
                && !self.tasks.contains(&call)
                && admitted(call.handle, NEXT_LAYER)
            {
                self.tasks.push(call.clone());
                let UpcomingCall { handle, arguments, .. } = call;
                reads.push(ReadAhead { handle, arguments, confidence: NEXT_LAYER });
            }
        }
        for read in reads {
            let Some(tool) = of.plan.tools.get(read.handle as usize) else { continue };
            let (principal, arguments) = (&of.principal, read.arguments);
            let begun = self.speculator.start(&NewRead { principal, run, tool, arguments });
            self.left -= u32::from(begun);
        }
    }

    fn is_speculable(&self, call: &UpcomingCall) -> bool {
        match self.effects.get(call.handle as usize) {
            Some(ToolEffect::ReadsClosed) => true,
            // What another tool returned does not leave the machine before the task itself sends it.
            Some(ToolEffect::ReadsOpen) => !call.from_results,
            Some(ToolEffect::ReadsOnly | ToolEffect::MayChange) | None => false,
        }
    }

    /// The read made for a call, if there is one.
    pub(super) fn take(&self, of: &DrivenRun, issued: &IssuedCall, tool: &ToolId) -> Option<PendingRead> {
        match self.effects.get(issued.handle as usize) {
            Some(ToolEffect::ReadsClosed | ToolEffect::ReadsOpen) => {
                self.speculator.take(of.lease.run(), tool, &issued.digest)
            }
            _ => None,
        }
    }

    /// Drops the results that nobody asked for: time has passed that the program waited for on purpose, or the plan is
    /// another.
    pub(super) fn drop_unused(&mut self, of: &DrivenRun) {
        self.tasks.clear();
        self.speculator.drop_unused(of.lease.run());
    }
}

/// The node of a call that the program itself makes; `None` for calls of capabilities.
fn own_node(issued: &IssuedCall) -> Option<NodeId> {
    NodeId::try_from(issued.node.clone()?).ok()
}

/// What may be done with each tool of a plan, by handle.
fn tool_effects(plan: &Plan, tools: &Toolset) -> Vec<ToolEffect> {
    let (snapshot, policy) = (tools.snapshot(), tools.policy());
    let effect = |verdict: &ToolVerdict| match (verdict.effect_free, verdict.can_speculate()) {
        (_, true) if verdict.open_world => ToolEffect::ReadsOpen,
        (_, true) => ToolEffect::ReadsClosed,
        (true, false) => ToolEffect::ReadsOnly,
        (false, false) => ToolEffect::MayChange,
    };
    let of_tool = |id: &ToolId| match snapshot.tool(id) {
        Ok(tool) => effect(&policy.verdict(id, &tool.definition.annotations)),
        Err(_) => ToolEffect::MayChange,
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
    fn only_reads(&self, sees: &ProgramScope, depth: usize) -> bool {
        let reads = |handle: &u32| {
            self.effects.get(*handle as usize).is_some_and(|effect| *effect != ToolEffect::MayChange)
        };
        // The depth bounds the walk; planning has refused cycles.
        depth > 0
            && sees.tools.iter().all(reads)
            && sees.nested.iter().all(|place| {
                let nested = self.plan.nested.get(*place as usize);
                nested.is_some_and(|nested| self.only_reads(&nested.sees, depth - 1))
            })
    }
}

/// More levels than capabilities may call each other over.
const MOST_DEPTH: usize = 16;

impl CallEffects for PlanEffects<'_> {
    fn tool(&self, tool: &str) -> Option<(u32, ToolEffect)> {
        let place = self.plan.tools.iter().position(|planned| names(&planned.id, tool))?;
        Some((u32::try_from(place).ok()?, self.effects[place]))
    }

    fn capability_only_reads(&self, name: &str) -> bool {
        let called = self.plan.nested.iter().find(|nested| nested.name == name);
        called.is_some_and(|nested| self.only_reads(&nested.sees, MOST_DEPTH))
    }
}
