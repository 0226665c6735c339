//! Runs a program or a DAG dry: the real program in the real sandbox, decided by the run core like any run.
//!
//! It is no run: nothing is stored, journalled, traced or learned, and nobody is asked. Every call goes through
//! `tools::call` in mode [`CallMode::Dry`]; what that withholds is answered by an [`AnswerSource`]. Answers are
//! delivered in the order of the calls and timers fire at once on a virtual clock, so that the same answers always
//! give the same dry run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use pml_mcp::Caller;
use pml_model::json::{Fields, raw};
use pml_model::structure::NodeId;
use pml_model::{ErrorCode, Principal, RunId, ToolId};
use pml_sandbox::WorkerEvent;
use serde_json::value::RawValue;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::dag::FrameMessage;
use super::delivery::{CallFailure, RunDelivery};
use super::driver::calls::wait_for_budget;
use super::driver::work::{WorkEvent, WorkSource, sleep_until};
use super::ending::{RunEnding, fault_failure};
pub(crate) use super::frames::{FramePath, NodePlace};
use super::issued_call::IssuedCall;
use super::journal::{History, JournalRecord};
use super::observe::Observer;
use super::run::{self, Action, RunCore, RunEvent};
use super::speculation::EarlierRead;
use super::value::{ResultBudget, outcome_delivery};
use super::worker_event::run_event;
use super::{PATIENCE, RunRegistry, new_run_id, take_worker};
use crate::builtin::ReadRecorder;
use crate::epoch::EpochMark;
use crate::knowledge::cache;
use crate::plan::{Pause, Plan, PlannedWork};
use crate::problem::Problem;
use crate::report::{RunFailure, RunReport, ValueOrigin};
use crate::tools::{self, Authority, CallContext, CallMode, CallOutcome, DryPermit, DrySending};
use crate::trace::Recorder;

/// 64 MiB: the limit of all results together, as for a run.
const MAX_RECEIVED_BYTES: usize = 64 << 20;
/// What helps where the limit of runs ends a dry run.
pub(crate) const WALL_HINT: &str = "do less at once, or raise `limits.wall` in pml.toml";

/// When a dry run ends at the latest, and what to tell the caller then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DryDeadline {
    pub(crate) at: Instant,
    /// The time that all of it may take.
    pub(crate) limit: Duration,
    /// What the caller can do about it.
    pub(crate) hint: &'static str,
}

/// Answers the calls that a dry run does not make.
pub(crate) trait AnswerSource: Send {
    /// Which of the calls may reach its tool.
    fn sending(&mut self, call: &DryCall<'_>) -> DrySending;

    /// The answer to a call that was not sent. Calls come in the order of issue.
    fn answer<'s>(&'s mut self, call: &'s DryCall<'_>) -> BoxFuture<'s, DryAnswer>;

    /// Whether the answer of a call that was really made may be out of date, because the dry run only pretended to
    /// change something at its server.
    fn is_stale(&self, tool: &ToolId) -> bool;
}

/// A call of a dry run.
#[derive(Debug)]
pub(crate) struct DryCall<'c> {
    /// The number of the call, in the order of issue.
    pub(crate) number: u32,
    pub(crate) tool: &'c ToolId,
    pub(crate) arguments: &'c RawValue,
    /// The node of the program that makes the call; `None` if it is not known.
    pub(crate) node: Option<NodeId>,
    /// The place of the call, also within a capability.
    pub(crate) place: Option<NodePlace>,
    /// Whether a capability makes the call, and not the program itself.
    pub(crate) within_capability: bool,
}

/// A made-up answer.
#[derive(Debug)]
pub(crate) struct DryAnswer {
    /// What the tool would return, as an MCP result or as the value that the program sees.
    pub(crate) content: DryContent,
    pub(crate) origin: ValueOrigin,
    /// Whether the answer depends on earlier calls in a way that is not known.
    pub(crate) unknown_state: bool,
}

/// The content of a made-up answer.
#[derive(Debug)]
pub(crate) enum DryContent {
    /// The value that the program receives.
    Value(Box<RawValue>),
    /// A complete MCP tool result, which may be marked as an error.
    ToolResult(Box<RawValue>),
    /// The call fails with this message.
    Failure(String),
}

/// One call of a finished dry run.
#[derive(Debug, Clone)]
pub(crate) struct DryCallRecord {
    pub(crate) call: u32,
    pub(crate) tool: ToolId,
    pub(crate) arguments: Box<RawValue>,
    /// The value that the program received, or why it failed; `None` if the program ended first.
    pub(crate) end: Option<Result<Box<RawValue>, RunFailure>>,
    pub(crate) origin: ValueOrigin,
    pub(crate) unknown_state: bool,
    pub(crate) at: i64,
    pub(crate) duration: Duration,
    /// The node of the program that makes the call, or that calls the capability which does.
    pub(crate) node: Option<NodeId>,
    /// The place of the call, also within a capability.
    pub(crate) place: Option<NodePlace>,
    pub(crate) line: Option<u32>,
    pub(crate) capability: Option<String>,
    /// The read, for the run that confirms the dry run; `None` if the tool was not called or gave no result.
    pub(crate) read: Option<EarlierRead>,
}

impl DryCallRecord {
    /// Whether the program got a value that no tool returned, and that is not what the dry run itself had written.
    pub(crate) fn is_made_up(&self) -> bool {
        match self.origin {
            ValueOrigin::Real | ValueOrigin::Given | ValueOrigin::Overlay => false,
            ValueOrigin::Recorded
            | ValueOrigin::Connector
            | ValueOrigin::Schema
            | ValueOrigin::Placeholder => true,
        }
    }
}

/// A finished dry run.
#[derive(Debug)]
pub(crate) struct DryRunRecord {
    /// How the program ended, with its path.
    pub(crate) report: RunReport,
    /// Its calls, in the order of issue.
    pub(crate) calls: Vec<DryCallRecord>,
    /// The paths of the capabilities that it called, in the order of their starts.
    pub(crate) frames: Vec<FramePath>,
    /// What a trace of it is built from.
    pub(crate) recorder: Recorder,
}

/// Makes a plan one that can be run dry: it asks nobody, pauses nowhere, sleeps nowhere and teaches nothing.
pub(crate) fn dry_plan(mut plan: Plan, seed: u64) -> Plan {
    plan.tools.iter_mut().for_each(|tool| tool.asks = None);
    plan.question = None;
    plan.grants.clear();
    plan.learn = None;
    plan.seed = seed;
    plan.limits.speculated_calls = 0;
    plan.limits.park_after_ms = u64::MAX;
    if let PlannedWork::Dag(dag) = &mut plan.work {
        dag.pause = Pause::None;
    }
    plan
}

/// Runs `plan`, which [`dry_plan`] made, against `answers`, until `deadline` at the latest.
///
/// # Errors
/// No worker is available.
pub(crate) async fn run_dry(
    runs: &Arc<RunRegistry>,
    principal: &Principal,
    plan: &Arc<Plan>,
    answers: &mut dyn AnswerSource,
    deadline: DryDeadline,
) -> Result<DryRunRecord, Problem> {
    let mut work = WorkSource::new(Arc::clone(runs));
    let worker = match plan.program() {
        Some(_) => Some(take_worker(runs, PATIENCE).await?),
        None => None,
    };
    let limit = Duration::from_millis(plan.limits.wall_ms);
    let wall = DryDeadline { at: Instant::now() + limit, limit, hint: WALL_HINT };
    let deadline = if wall.at < deadline.at { wall } else { deadline };
    work.begin(plan, worker, &History::default());
    let (rules, tools) = run::core_setup(plan);
    let cancel = CancellationToken::new();
    let dry = DryDriver {
        of: DryContext {
            runs: Arc::clone(runs),
            principal: principal.clone(),
            plan: Arc::clone(plan),
            id: new_run_id()?,
            silent: Caller::silent(),
            _cancel: cancel.clone().drop_guard(),
            cancel,
        },
        answers,
        core: RunCore::new(rules, tools, plan.start),
        observer: Observer::new(Arc::clone(plan)),
        work,
        events: VecDeque::new(),
        clock: VirtualClock { now: plan.start, ..VirtualClock::default() },
        calls: DryCalls::default(),
    };
    Ok(dry.drive(deadline).await)
}

/// A call in flight: issued, and its tool's own answer if that is there.
struct OpenCall {
    issued: IssuedCall,
    since: Instant,
    outcome: Option<CallOutcome>,
    /// How long the call took.
    took: Duration,
    /// The write epoch before the call; `None` if it is unknown.
    mark: Option<EpochMark>,
    /// The files that the call reads.
    witness: ReadRecorder,
}

/// What a dry run is about, and for whom.
struct DryContext {
    runs: Arc<RunRegistry>,
    principal: Principal,
    plan: Arc<Plan>,
    /// Names the dry run to tools; no such run is stored.
    id: RunId,
    silent: Caller,
    cancel: CancellationToken,
    _cancel: DropGuard,
}

/// The clock of the program, which only timers move.
#[derive(Default)]
struct VirtualClock {
    /// Milliseconds since the Unix epoch.
    now: i64,
    /// The due times of timers, with their numbers.
    timers: BTreeSet<(i64, u64)>,
    /// Deliveries made to the program.
    delivered: u32,
    /// Deliveries that it had taken when it was last quiet; `None` before that.
    taken: Option<u32>,
}

impl VirtualClock {
    /// Moves to the next timer, if the program waits for nothing else.
    fn advance(&mut self) -> Option<u64> {
        if self.taken != Some(self.delivered) {
            return None;
        }
        let (at, timer) = self.timers.pop_first()?;
        self.now = self.now.max(at);
        Some(timer)
    }

    fn clear(&mut self, timer: u64) {
        self.timers.retain(|(_, set)| *set != timer);
    }
}

/// The calls of a dry run.
#[derive(Default)]
struct DryCalls {
    in_flight: FuturesUnordered<BoxFuture<'static, (u32, CallOutcome)>>,
    open: BTreeMap<u32, OpenCall>,
    records: BTreeMap<u32, DryCallRecord>,
    /// Bytes of results so far.
    received: usize,
}

/// The driver of a dry run.
struct DryDriver<'d> {
    of: DryContext,
    answers: &'d mut dyn AnswerSource,
    core: RunCore<RunEnding>,
    observer: Observer,
    work: WorkSource,
    events: VecDeque<RunEvent<RunEnding>>,
    clock: VirtualClock,
    calls: DryCalls,
}

impl DryDriver<'_> {
    async fn drive(mut self, deadline: DryDeadline) -> DryRunRecord {
        if let Some(dag) = &mut self.work.dag {
            dag.begin();
        }
        self.take_dag_events();
        loop {
            let event = match self.next_event(deadline).await {
                Some(event) => event,
                None => continue,
            };
            for action in self.core.on(event, self.clock.now) {
                if let Some(ending) = self.act(action) {
                    return self.finish(&ending);
                }
            }
        }
    }

    async fn next_event(&mut self, deadline: DryDeadline) -> Option<RunEvent<RunEnding>> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if self.calls.open.first_key_value().is_some_and(|(_, call)| call.outcome.is_some()) {
            let (_, call) = self.calls.open.pop_first()?;
            return Some(RunEvent::Answered(self.settle(call).await));
        }
        // A timer fires once nothing else can happen before it.
        if self.calls.open.is_empty()
            && let Some(timer) = self.clock.advance()
        {
            return Some(RunEvent::TimerDue { timer });
        }
        tokio::select! {
            biased;
            Some((call, outcome)) = self.calls.in_flight.next() => {
                if let Some(open) = self.calls.open.get_mut(&call) {
                    (open.outcome, open.took) = (Some(outcome), open.since.elapsed());
                }
                None
            }
            heard = self.work.next(false) => self.on_work_event(heard?),
            () = sleep_until(Some(deadline.at)) => Some(RunEvent::Stop(RunEnding::Failed(out_of_time(deadline)))),
        }
    }

    fn on_work_event(&mut self, heard: WorkEvent) -> Option<RunEvent<RunEnding>> {
        match heard {
            WorkEvent::Worker(Ok(seen)) => self.on_worker_event(seen),
            WorkEvent::Worker(Err(fault)) => {
                self.work.forget_worker();
                Some(RunEvent::Stop(RunEnding::Failed(fault_failure(&self.of.plan, &fault))))
            }
            WorkEvent::Task((task, message)) => {
                self.on_task_message(task, message);
                None
            }
            WorkEvent::TaskTimedOut(task) => {
                if let Some(dag) = &mut self.work.dag {
                    dag.fail_timed_out(task);
                }
                self.take_dag_events();
                None
            }
            WorkEvent::Timer(timer) => Some(RunEvent::TimerDue { timer }),
        }
    }

    fn on_worker_event(&mut self, seen: WorkerEvent) -> Option<RunEvent<RunEnding>> {
        self.observer.on_event(&seen, self.clock.now);
        let now = self.clock.now;
        let event = run_event(&mut self.observer, seen, |_| now)?;
        self.follow(&event);
        Some(event)
    }

    /// Follows what an event of the program or of a task means to the clock and the worker.
    fn follow(&mut self, event: &RunEvent<RunEnding>) {
        match event {
            RunEvent::Quiet { taken } => self.clock.taken = Some(*taken),
            RunEvent::TimerCleared { timer } => self.clock.clear(*timer),
            RunEvent::Ended(_) => self.work.forget_worker(),
            _ => {}
        }
    }

    fn on_task_message(&mut self, task: usize, message: FrameMessage) {
        let Some(dag) = &mut self.work.dag else { return };
        if let Some((frame, node, seen)) = dag.on_frame_message(task, message) {
            self.observer.on_task_event(frame, node, &seen, self.clock.now);
        }
        self.take_dag_events();
    }

    fn take_dag_events(&mut self) {
        let Some(dag) = &mut self.work.dag else { return };
        dag.start_queued_programs(&self.work.frames);
        dag.take_started_capabilities().iter().for_each(|begun| self.observer.on_task_start(begun));
        for event in dag.take_events() {
            if let RunEvent::Issued(issued) = &event {
                self.observer.on_task_call_request(issued);
            }
            self.follow(&event);
            self.events.push_back(event);
        }
    }

    /// Carries out an action; returns the ending if the dry run is over.
    fn act(&mut self, action: Action<RunEnding>) -> Option<RunEnding> {
        match action {
            Action::Record(record) => self.record(&record),
            // Nothing that could be in doubt is sent, so nothing has to be on disk first.
            Action::Promise { call } => self.events.push_back(RunEvent::Stored { call }),
            Action::Send(issued) => self.send(issued),
            Action::Deliver { at, what } => self.deliver(at, &what),
            Action::Cancel { call } => {
                self.calls.open.remove(&call);
            }
            Action::Wake { timer, at } => {
                self.clock.timers.insert((at, timer));
            }
            Action::Grace => self.events.push_back(RunEvent::GraceOver),
            Action::Kill => self.work.kill(),
            Action::Finish(over) => return Some(over.ending),
            Action::Diverged(divergence) => {
                let failure = RunFailure::new(ErrorCode::Diverged, divergence.to_string());
                return Some(RunEnding::Failed(failure));
            }
            Action::Ask { .. } | Action::Park { .. } => {
                let text = "the dry run waits for something that only a run can wait for";
                return Some(RunEnding::Failed(RunFailure::new(ErrorCode::Deadlock, text)));
            }
        }
        None
    }

    fn record(&mut self, record: &JournalRecord) {
        match record {
            JournalRecord::Delivered { at, what } => self.observer.on_delivery(what, *at),
            JournalRecord::Issued { issued, .. } if self.work.dag.is_some() => {
                self.observer.on_task_call(issued, self.clock.now);
            }
            JournalRecord::Issued { .. }
            | JournalRecord::Sending { .. }
            | JournalRecord::Resend { .. }
            | JournalRecord::Granted { .. }
            | JournalRecord::Allowed { .. } => {}
        }
    }

    fn deliver(&mut self, at: i64, what: &RunDelivery) {
        self.clock.delivered += 1;
        if let Some(dag) = &mut self.work.dag {
            dag.deliver(at, what);
            self.take_dag_events();
            return;
        }
        self.work.deliver_to_worker(at, what);
    }

    /// Starts a call: it is checked like any call, and sent only if it has no effect.
    fn send(&mut self, issued: IssuedCall) {
        let granted = &self.of.plan.tools[issued.handle as usize];
        let arguments = raw_arguments(&issued);
        let call = DryCall {
            number: issued.call,
            tool: &granted.id,
            arguments: &arguments,
            node: self.observer.node_of(issued.call),
            place: self.place_of(issued.call),
            within_capability: self.observer.caller_of(issued.call).is_some(),
        };
        let witness = ReadRecorder::default();
        let mark = self.of.runs.tools.epoch.mark_for_server(&granted.id.server).ok();
        let sending = self.answers.sending(&call);
        let context = CallContext {
            principal: self.of.principal.clone(),
            run: Some(self.of.id.clone()),
            deadline: None,
            cancel: self.of.cancel.clone(),
            mode: CallMode::Dry(sending),
            caller: self.of.silent.clone(),
            authority: Authority::DryRun(DryPermit {
                definition: granted.digest.clone(),
                key: self.of.plan.key,
            }),
            witness: Some(witness.clone()),
        };
        let (toolset, id, number) = (Arc::clone(&self.of.runs.tools), granted.id.clone(), issued.call);
        self.calls.records.insert(
            number,
            DryCallRecord {
                call: number,
                tool: id.clone(),
                arguments: arguments.clone(),
                end: None,
                origin: ValueOrigin::Real,
                unknown_state: false,
                at: self.clock.now,
                duration: Duration::ZERO,
                node: call.node,
                place: call.place.clone(),
                line: self.observer.line_of(number),
                capability: self.observer.caller_of(number).map(str::to_owned),
                read: None,
            },
        );
        let (since, took) = (Instant::now(), Duration::ZERO);
        self.calls.open.insert(number, OpenCall { issued, since, outcome: None, took, mark, witness });
        let (keys, key) = (Arc::clone(&self.of.runs.keys), self.of.plan.key);
        self.calls.in_flight.push(Box::pin(async move {
            // A call that is made counts for the key of the client like that of a run; one that is withheld costs
            // nothing.
            if tools::reaches_tool(&toolset, &id, context.mode) {
                match keys.check_call(key, &id) {
                    Ok(Some(key)) => wait_for_budget(&keys, &key, &context.cancel).await,
                    Ok(None) => {}
                    Err(problem) => return (number, CallOutcome::NotSent(problem)),
                }
            }
            (number, tools::call(&toolset, &context, &id, &arguments, Fields::default()).await)
        }));
    }

    /// The delivery for a call whose turn has come, made up if its tool was not called.
    async fn settle(&mut self, call: OpenCall) -> RunDelivery {
        let read = self.read_of(&call);
        let OpenCall { issued, since, outcome, .. } = call;
        let tool = self.of.plan.tools[issued.handle as usize].id.clone();
        let (origin, unknown_state, what) = match outcome {
            Some(CallOutcome::Withheld(_)) | None => {
                let arguments = raw_arguments(&issued);
                let asked = DryCall {
                    number: issued.call,
                    tool: &tool,
                    arguments: &arguments,
                    node: self.observer.node_of(issued.call),
                    place: self.place_of(issued.call),
                    within_capability: self.observer.caller_of(issued.call).is_some(),
                };
                let answer = self.answers.answer(&asked).await;
                (answer.origin, answer.unknown_state, self.made_up(issued.call, &tool, answer.content))
            }
            Some(outcome) => {
                let is_reply = matches!(outcome, CallOutcome::Ok(_) | CallOutcome::ToolError(_));
                let stale = is_reply && self.answers.is_stale(&tool);
                (ValueOrigin::Real, stale, self.delivery(issued.call, &tool, outcome))
            }
        };
        self.calls.received += what.size();
        if let Some(record) = self.calls.records.get_mut(&issued.call) {
            record.origin = origin;
            record.unknown_state = unknown_state;
            record.duration = since.elapsed();
            record.read = read.filter(|_| !unknown_state);
            record.end = match &what {
                RunDelivery::Result { value, .. } => Some(Ok(value.clone())),
                RunDelivery::Error { error, .. } => {
                    let failure = RunFailure::new(error.code, error.message.clone());
                    Some(Err(RunFailure { hint: error.hint.clone(), ..failure }))
                }
                _ => None,
            };
        }
        what
    }

    /// The read that a call made, if its tool returned something that can be kept.
    fn read_of(&self, call: &OpenCall) -> Option<EarlierRead> {
        let granted = &self.of.plan.tools[call.issued.handle as usize];
        match &call.outcome {
            Some(CallOutcome::Ok(result)) if result.get().len() <= cache::MOST_BYTES => Some(EarlierRead {
                tool: granted.id.clone(),
                arguments: Arc::clone(&call.issued.arguments),
                definition: granted.digest.clone(),
                mark: call.mark?,
                began: call.since,
                took: call.took,
                result: result.clone(),
                witness: call.witness.clone(),
            }),
            _ => None,
        }
    }

    fn made_up(&self, call: u32, tool: &ToolId, content: DryContent) -> RunDelivery {
        match content {
            DryContent::ToolResult(result) => self.delivery(call, tool, tools::ended(result)),
            DryContent::Value(value) => match self.budget().refusal(&tool.to_string(), value.get().len()) {
                Some(error) => RunDelivery::Error { call, error },
                None => RunDelivery::Result {
                    call,
                    value,
                    parts: Vec::new(),
                    saved_ms: None,
                    age_ms: None,
                    not_ahead: None,
                },
            },
            DryContent::Failure(message) => {
                RunDelivery::Error { call, error: CallFailure::new(ErrorCode::ToolError, message) }
            }
        }
    }

    fn delivery(&self, call: u32, tool: &ToolId, outcome: CallOutcome) -> RunDelivery {
        outcome_delivery(&self.of.id, call, &tool.to_string(), outcome, self.budget())
    }

    fn budget(&self) -> ResultBudget {
        ResultBudget {
            each: usize::try_from(self.of.plan.limits.result_bytes).unwrap_or(usize::MAX),
            all: MAX_RECEIVED_BYTES,
            left: MAX_RECEIVED_BYTES.saturating_sub(self.calls.received),
        }
    }

    fn finish(mut self, ending: &RunEnding) -> DryRunRecord {
        self.work.kill();
        let mut report = self.observer.build_report(ending, &[], self.clock.now);
        if let Some(dag) = &self.work.dag {
            dag.add_to_report(&mut report);
        }
        report.add_warnings(&self.of.plan);
        DryRunRecord {
            report,
            calls: std::mem::take(&mut self.calls.records).into_values().collect(),
            frames: self.observer.frames().paths(&self.of.plan),
            recorder: self.observer.recorder().clone(),
        }
    }

    /// The place of a call. The code of a task of a DAG belongs to its task.
    fn place_of(&self, call: u32) -> Option<NodePlace> {
        let within = self.observer.call_place(call).filter(|(path, _)| !path.is_empty());
        within.or_else(|| Some((Vec::new(), self.observer.node_of(call)?)))
    }
}

fn out_of_time(deadline: DryDeadline) -> RunFailure {
    let text = format!("the dry run took longer than it may, at most {} ms", deadline.limit.as_millis());
    RunFailure::new(ErrorCode::Timeout, text).hint(deadline.hint)
}

fn raw_arguments(issued: &IssuedCall) -> Box<RawValue> {
    RawValue::from_string(issued.arguments.to_string()).unwrap_or_else(|_| raw(&()))
}
