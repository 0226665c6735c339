//! The driver: carries out what the run core decides. It is the only part of a run that waits.
//!
//! Its parts do not know each other: the source of calls (`work`), the calls in flight (`calls`), the journal
//! (`journal_writer`), the pending approvals (`approvals`), and the client (`client`).

mod approvals;
mod asking;
pub(super) mod calls;
mod client;
mod ending;
mod journal_writer;
mod publish;
mod reading_ahead;
mod run_events;
mod sign_ins;
pub(super) mod work;

use pml_model::ErrorCode;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_mcp::Caller;
use pml_model::Principal;
use pml_sandbox::{Worker, WorkerEvent};
use pml_store::{Lease, RunChange, Urgency};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::RunRegistry;
use super::delivery::RunDelivery;
use super::ending::{RequestedEnd, RunEnding};
use super::issued_call::IssuedCall;
use super::journal::{History, JournalRecord};
use super::live::LiveAnswers;
use super::observe::Observer;
use super::open_call::CallUnderWay;
use super::run::{self, Action, RunCore, RunEnd, RunEvent};
use crate::clock::now_ms;
use crate::keys::RunAdmission;
use crate::knowledge::cache::CacheTicket;
use crate::metrics::SandboxEvent;
use crate::plan::Plan;
use crate::report::{RunFailure, RunStatus};
use approvals::RunApprovals;
use calls::{CallsInFlight, EndedCall, PermittedCall};
use client::{ClientNotice, RunClient};
use ending::storage_failure;
use journal_writer::JournalWriter;
pub(super) use journal_writer::{Ack, AckSender};
use reading_ahead::{ReadingAhead, room_returned};
use sign_ins::RunSignIns;
use work::{WorkSource, sleep_until};

/// 5 s: how long calls that may have had an effect are awaited after the run has ended.
const GRACE: Duration = Duration::from_secs(5);

/// The signals that stop a run.
#[derive(Debug, Default)]
pub(super) struct StopSignals {
    /// The client no longer wants the run.
    pub(super) cancel: CancellationToken,
    /// A user aborts the run, with the reason.
    pub(super) abort: watch::Sender<Option<String>>,
    /// The process is ending.
    pub(super) suspend: CancellationToken,
    /// Another driver has taken over the run.
    pub(super) lost: CancellationToken,
}

/// The inputs of a driver.
pub(super) struct DriverParts {
    pub(super) runs: Arc<RunRegistry>,
    pub(super) principal: Principal,
    pub(super) plan: Arc<Plan>,
    pub(super) lease: Lease,
    /// The worker of a program; the tasks of a DAG get theirs when they start.
    pub(super) worker: Option<Worker>,
    pub(super) history: History,
    /// The permission to cache the result, with its cache key.
    pub(super) ticket: Option<CacheTicket>,
    pub(super) caller: Caller,
    pub(super) stop_signals: Arc<StopSignals>,
    pub(super) status: watch::Sender<RunStatus>,
    pub(super) acks: AckSender,
    pub(super) acked: mpsc::Receiver<Ack>,
    /// The call that the run goes on with, if it was made before.
    pub(super) open_call: Option<CallUnderWay>,
    /// Its place among the runs that the budget of its key admits.
    pub(super) admission: Option<RunAdmission>,
}

/// The run that is driven: its principal, its plan, and the lease by which this process has it.
pub(super) struct DrivenRun {
    runs: Arc<RunRegistry>,
    principal: Principal,
    plan: Arc<Plan>,
    lease: Lease,
}

/// The times at which the driver must act whatever else happens.
struct Deadlines {
    /// The deadline of the run.
    run: Instant,
    /// When calls that may have had an effect are no longer awaited; set once the run has ended.
    grace: Option<Instant>,
    /// When to check for a requested pause before the next layer.
    pause_poll: Option<Instant>,
}

/// The driver of one run.
pub(super) struct Driver {
    driven: DrivenRun,
    run: RunCore<RunEnding>,
    observer: Observer,
    work: WorkSource,
    calls: CallsInFlight,
    journal: JournalWriter,
    approvals: RunApprovals,
    sign_ins: RunSignIns,
    client: RunClient,
    /// Those who want to know what the run has shown so far.
    onlookers: LiveAnswers,
    stops: Arc<StopSignals>,
    deadlines: Deadlines,
    /// The permission to cache the result, with its cache key.
    ticket: Option<CacheTicket>,
    /// The times at which the recorded calls were issued.
    recorded_at: Vec<i64>,
    /// The events that follow from the driver's own decisions; they are processed before anything else.
    pending: VecDeque<RunEvent<RunEnding>>,
    /// Whether recorded deliveries are made again. What was read ahead meanwhile was read after them.
    restoring: bool,
    /// The failure that ends the run next.
    failed: Option<RunFailure>,
    /// The requested end, if it is not recorded yet.
    requested_end: Option<RequestedEnd>,
}

/// Whether the run continues in this process.
enum Continuation {
    Continue,
    Leave,
}

impl Driver {
    /// The driver of a run that starts, or continues after `history`.
    pub(super) fn new(parts: DriverParts, onlookers: LiveAnswers) -> Driver {
        let DriverParts { runs, principal, plan, lease, worker, history, .. } = parts;
        let (rules, tools) = run::core_setup(&plan);
        let mut driver = Driver {
            run: RunCore::new(rules, tools, plan.start),
            observer: Observer::new(Arc::clone(&plan)),
            work: WorkSource::new(Arc::clone(&runs)),
            calls: CallsInFlight::new(&history),
            journal: JournalWriter::new(runs.store.clone(), lease.clone(), parts.acks, parts.acked),
            approvals: RunApprovals::new(&plan, &history),
            sign_ins: RunSignIns::new(&history),
            deadlines: Deadlines {
                run: parts.caller.deadline_after(time_left(&plan, &history)),
                grace: None,
                pause_poll: None,
            },
            client: RunClient::new(parts.caller, parts.status),
            onlookers,
            stops: parts.stop_signals,
            ticket: parts.ticket,
            recorded_at: history.calls.iter().map(|call| call.issued_at).collect(),
            pending: VecDeque::new(),
            restoring: true,
            failed: None,
            requested_end: None,
            driven: DrivenRun { runs, principal, plan, lease },
        };
        driver.calls.open_call = parts.open_call;
        driver.calls.reading_ahead = ReadingAhead::new(&driver.driven);
        driver.begin(worker, history);
        driver
    }

    fn begin(&mut self, worker: Option<Worker>, history: History) {
        self.work.begin(&self.driven.plan, worker, &history);
        if let Some(dag) = &mut self.work.dag {
            self.observer.restore(&history);
            dag.begin();
        }
        let by_rules = self.driven.plan.grants.len();
        let replaced = history.replaced_grants.map(|given| by_rules + given);
        let grants = self.driven.plan.grants.iter().cloned().chain(history.grants).collect();
        for action in self.run.restore(grants, history.calls, history.deliveries) {
            if let Action::Deliver { at, what } = action {
                self.deliver(at, &what);
            }
        }
        self.restoring = false;
        self.run.void_grants(replaced.unwrap_or(0));
        self.take_dag_events();
        if let Some(dag) = &mut self.work.dag {
            // Those of an earlier process were published there.
            dag.take_completed_layers();
        }
    }

    /// Takes the events that the tasks of a DAG issue.
    fn take_dag_events(&mut self) {
        let Some(dag) = &mut self.work.dag else { return };
        dag.start_queued_programs(&self.work.frames);
        let (started, events) = (dag.take_started_capabilities(), dag.take_events());
        for begun in &started {
            self.observer.on_task_start(begun);
            if !self.run.is_replaying() {
                self.publish_capability_start((begun.frame, 0));
            }
        }
        for event in events {
            let event = match event {
                RunEvent::FrameOver(what) => RunEvent::FrameOver(self.with_room(what)),
                other => other,
            };
            if let RunEvent::Issued(issued) = &event {
                self.observer.on_task_call_request(issued);
            }
            self.pending.push_back(event);
        }
    }

    /// The end of a task's program with its capability calls, if its result fits beside all other results.
    fn with_room(&mut self, what: RunDelivery) -> RunDelivery {
        let room = self.calls.result_budget(&self.driven.plan);
        let what = match (what, &self.work.dag) {
            (RunDelivery::Frame { frame, value, error, .. }, Some(dag)) => {
                let called = self.observer.frame_records_of(frame);
                let refusal = |value: &RawValue| room.refusal(dag.name_of(frame), value.get().len());
                match value.as_deref().and_then(refusal) {
                    Some(refusal) => RunDelivery::Frame { frame, value: None, error: Some(refusal), called },
                    None => RunDelivery::Frame { frame, value, error, called },
                }
            }
            (other, _) => other,
        };
        self.calls.count(&what);
        what
    }

    /// Drives the run until it has ended, is parked or is lost.
    pub(super) async fn drive(mut self) {
        self.publish_start();
        // A pause requested earlier applies to the layer that starts now.
        self.poll_pause().await;
        loop {
            match self.next_event().await {
                Some(DriverEvent::Event(event)) => {
                    if let Continuation::Leave = self.take(event).await {
                        self.work.kill();
                        return self.calls.cancel_all(&self.driven).await;
                    }
                }
                Some(DriverEvent::Crashed(failure)) => {
                    self.driven.runs.metrics.note_sandbox(SandboxEvent::Crashed);
                    self.begin_again_once(failure).await;
                }
                Some(DriverEvent::AskNow) => self.ask_meanwhile().await,
                Some(DriverEvent::PollAnswer) => self.poll_answer().await,
                Some(DriverEvent::PollPause) => self.poll_pause().await,
                Some(DriverEvent::RoomReturned) => self.read_on(),
                Some(DriverEvent::Lost) => {
                    self.client.set_status(RunStatus::Elsewhere);
                    self.work.kill();
                    return self.calls.cancel_all(&self.driven).await;
                }
                None => {}
            }
        }
    }

    /// Has the run core process an event, and carries out its actions.
    async fn take(&mut self, event: RunEvent<RunEnding>) -> Continuation {
        let now = now_ms();
        self.read_ahead(&event);
        if let RunEvent::Stop(ending) = &event {
            self.requested_end = RequestedEnd::from_ending(ending);
        }
        self.run.stay_awake(self.work.awake_until(now));
        let actions = self.run.on(event, now);
        let asks = actions.iter().any(|action| matches!(action, Action::Ask { .. }));
        for action in actions {
            if let Continuation::Leave = self.act(action, now).await {
                return Continuation::Leave;
            }
        }
        if asks && self.pending.is_empty() {
            self.pending.push_back(RunEvent::Undecided);
        }
        self.journal.write_in_time();
        Continuation::Continue
    }

    async fn next_event(&mut self) -> Option<DriverEvent> {
        if let Some(failure) = self.failed.take() {
            return stop(RunEnding::Failed(failure));
        }
        if let Some(event) = self.pending.pop_front() {
            if let RunEvent::TimerCleared { timer } = event {
                self.work.clear_timer(timer);
            }
            return Some(DriverEvent::Event(event));
        }
        let stopping = self.deadlines.grace.is_some();
        let write_by = self.journal.write_by();
        let mut aborted = self.stops.abort.subscribe();
        let awaited_room = self.calls.reading_ahead.as_ref().and_then(ReadingAhead::awaited_room);
        tokio::select! {
            biased;
            () = self.stops.lost.cancelled() => Some(DriverEvent::Lost),
            () = sleep_until(self.deadlines.grace) => {
                self.deadlines.grace = None;
                Some(DriverEvent::Event(RunEvent::GraceOver))
            }
            () = self.stops.cancel.cancelled(), if !stopping => stop(RunEnding::Cancelled),
            () = self.stops.suspend.cancelled(), if !stopping => stop(RunEnding::Suspended),
            Ok(reason) = aborted.wait_for(Option::is_some), if !stopping => {
                let reason = reason.clone();
                stop(RunEnding::Aborted(reason.filter(|reason| !reason.is_empty())))
            }
            // Before the events of the run: a busy one always has some.
            Some(asked) = self.onlookers.next() => {
                // Whoever asked may have gone meanwhile.
                drop(asked.send(self.observer.live_output()));
                None
            }
            Some(ended) = self.calls.next() => self.answered(ended),
            Some(ack) = self.journal.next_ack() => acked(ack),
            heard = self.work.next(stopping) => self.on_work_event(heard?),
            () = sleep_until(write_by) => {
                self.journal.write();
                None
            }
            () = sleep_until(self.approvals.ask_by), if !stopping => Some(DriverEvent::AskNow),
            () = sleep_until(self.approvals.next_poll), if !stopping => Some(DriverEvent::PollAnswer),
            () = sleep_until(self.deadlines.pause_poll), if !stopping => Some(DriverEvent::PollPause),
            () = room_returned(awaited_room), if !stopping => Some(DriverEvent::RoomReturned),
            // The time for which a server's question to the client is open does not count.
            () = self.client.caller.wait_until_deadline(self.deadlines.run), if !stopping => stop(RunEnding::Failed(self.out_of_time())),
        }
    }

    fn out_of_time(&self) -> RunFailure {
        let time = self.driven.plan.limits.wall_ms;
        RunFailure::new(ErrorCode::Timeout, format!("the run took longer than {time} ms"))
            .hint("do less at once, give `timeoutMs`, or raise `limits.wall` in pml.toml")
    }

    fn answered(&mut self, ended: EndedCall) -> Option<DriverEvent> {
        let tool = self.observer.tool(ended.call)?.to_owned();
        let unsigned = self.sign_ins.take_on(&self.driven, &ended, &tool);
        if let (true, Some(dag)) = (unsigned, &mut self.work.dag) {
            dag.stop_clock(ended.call);
        }
        let what = self.calls.on_call_end(&self.driven, &tool, ended);
        Some(DriverEvent::Event(match unsigned {
            true => RunEvent::NeedsSignIn { what },
            false => RunEvent::Answered(what),
        }))
    }

    /// Starts again in another worker; only once, and only if the program has done nothing yet.
    async fn begin_again_once(&mut self, failure: RunFailure) {
        if self.run.is_untouched() && !self.work.crashed {
            self.work.crashed = true;
            super::renew_workers(&self.driven.runs);
            if let Ok(worker) = super::take_worker(&self.driven.runs, GRACE).await {
                let (rules, tools) = run::core_setup(&self.driven.plan);
                let before =
                    std::mem::replace(&mut self.run, RunCore::new(rules, tools, self.driven.plan.start));
                self.observer = Observer::new(Arc::clone(&self.driven.plan));
                // Grants are recorded and referred to by number, so they must keep their order.
                let grants = before.into_grants().split_off(self.driven.plan.grants.len());
                self.begin(Some(worker), History { grants, ..History::default() });
                return;
            }
        }
        self.failed = Some(failure);
    }

    async fn act(&mut self, action: Action<RunEnding>, now: i64) -> Continuation {
        match action {
            Action::Record(record) => self.record(&record, now),
            Action::Promise { call } => {
                self.journal.push(JournalRecord::Sending { call, at: now }.entry(now));
                self.journal.promise(call, self.driven.runs.settings.config().runs.durable);
            }
            Action::Send(issued) => self.send(issued),
            Action::Deliver { at, what } => self.deliver(at, &what),
            Action::Cancel { call } => self.calls.cancel(call),
            Action::Wake { timer, at } => self.work.set_timer(timer, at),
            Action::Kill => self.work.kill(),
            Action::Grace => {
                self.deadlines.grace = Some(Instant::now() + GRACE);
                self.record_requested_end(now);
            }
            Action::Ask { call } => self.ask(call, now).await,
            Action::Park { wake_at, asking, unsigned } => {
                return self.park(wake_at, (&asking, &unsigned)).await;
            }
            Action::Finish(over) => return self.finish(over, now).await,
            Action::Diverged(divergence) => {
                self.work.kill();
                let failure = RunFailure::new(
                    ErrorCode::Diverged,
                    format!("the program does not do what was recorded: {divergence}"),
                )
                .hint(self.what_was_sent());
                let over = RunEnd { ending: RunEnding::Failed(failure), in_doubt: Vec::new() };
                return self.finish(over, now).await;
            }
        }
        Continuation::Continue
    }

    fn record(&mut self, record: &JournalRecord, now: i64) {
        match record {
            JournalRecord::Delivered { at, what } => {
                self.approvals.keep_result(&self.driven.plan, what);
                self.observer.on_delivery(what, *at);
                if let (Some(dag), Some(_)) = (&mut self.work.dag, self.deadlines.grace) {
                    // During the grace period the DAG only takes note of the delivery; nothing follows from it.
                    dag.deliver(*at, what);
                }
                self.tell_progress();
            }
            JournalRecord::Issued { issued, .. } => {
                if self.work.dag.is_some() {
                    self.observer.on_task_call(issued, now);
                }
                self.tell_progress();
            }
            JournalRecord::Sending { .. }
            | JournalRecord::Resend { .. }
            | JournalRecord::Granted { .. }
            | JournalRecord::Allowed { .. } => {}
        }
        self.publish_record(record, now);
        self.journal.push(record.entry(now));
        if let JournalRecord::Delivered { what: RunDelivery::Pause, .. } = record {
            // In one commit: a recorded pause is no longer requested.
            let taken = RunChange { pause_acknowledged: true, at: now, ..RunChange::default() };
            self.journal.change(taken, Urgency::Soon);
        }
    }

    fn deliver(&mut self, at: i64, what: &RunDelivery) {
        if let RunDelivery::Layer { replan: Some(replan), .. } = what {
            self.driven.plan = Arc::new(self.driven.plan.replanned(replan));
            self.run.set_tools(run::core_setup(&self.driven.plan).1);
            self.observer.set_plan(Arc::clone(&self.driven.plan));
            self.forget_reads();
        }
        self.follow_delivery(what);
        if let Some(dag) = &mut self.work.dag {
            dag.deliver(at, what);
            self.publish_completed_layers();
            self.take_dag_events();
            self.withdraw_moot_question();
            return;
        }
        if self.run.is_replaying() {
            self.observer.expect_delivery(what.clone(), at);
        }
        self.work.deliver_to_worker(at, what);
    }

    /// Sends a call, unless the key of the run is not valid any more. Then the run ends.
    fn send(&mut self, issued: IssuedCall) {
        let tool = &self.driven.plan.tools[issued.handle as usize].id;
        let key = match self.driven.runs.keys.check_call(self.driven.plan.key, tool) {
            Ok(key) => key,
            Err(problem) => {
                let failure =
                    RunFailure::new(problem.code, format!("the run was ended: {}", problem.message));
                self.failed = Some(match &problem.hint {
                    Some(hint) => failure.hint(hint.clone()),
                    None => failure,
                });
                return self.calls.refuse(issued.call, problem);
            }
        };
        let timeout = self.work.dag.as_ref().and_then(|dag| dag.timeout(issued.call));
        let call = PermittedCall {
            grant: self.run.grant(&issued),
            timeout,
            caller: &self.client.caller,
            witness: self.ticket.as_ref().map(|ticket| ticket.witness.clone()),
            key,
            issued,
        };
        self.calls.send(&self.driven, call);
    }

    fn what_was_sent(&self) -> &'static str {
        match self.recorded_at.is_empty() {
            true => "nothing was sent; run it anew",
            false => "nothing more was sent; see with `pml runs show` what was before you run it anew",
        }
    }

    fn notify_client(&mut self, seen: &WorkerEvent) {
        match ClientNotice::of(seen) {
            Some(ClientNotice::Print(level, text)) => self.client.print(level, text),
            Some(ClientNotice::Progress) => self.tell_progress(),
            None => {}
        }
    }

    /// Sends the client the progress of the run, at intervals. The status is always current: whoever stops waiting reads
    /// it, and nothing may follow the last change for long.
    fn tell_progress(&mut self) {
        if self.client.progress(&self.driven.plan, self.observer.progress()) {
            self.publish_progress("running");
        }
        self.publish_status();
    }

    /// Publishes the status within this process: an open question comes before progress.
    fn publish_status(&self) {
        self.client.set_status(match self.approvals.current_question() {
            Some(question) => RunStatus::Waiting {
                question: Some(question),
                wake_at: None,
                in_flight: self.run.in_flight(),
            },
            None => RunStatus::Running(self.observer.progress().clone()),
        });
    }
}

enum DriverEvent {
    Event(RunEvent<RunEnding>),
    /// The worker ended unexpectedly.
    Crashed(RunFailure),
    /// Calls have waited long enough to be asked about, although others are in flight.
    AskNow,
    /// Time to poll for an answer.
    PollAnswer,
    /// Time to check for a requested pause.
    PollPause,
    /// There may be room for a read ahead again.
    RoomReturned,
    /// Another process has taken over the run.
    Lost,
}

fn stop(ending: RunEnding) -> Option<DriverEvent> {
    Some(DriverEvent::Event(RunEvent::Stop(ending)))
}

fn acked(ack: Ack) -> Option<DriverEvent> {
    match ack {
        Ack::Stored(call) => Some(DriverEvent::Event(RunEvent::Stored { call })),
        Ack::Failed(pml_store::Error::Fenced { .. }) => Some(DriverEvent::Lost),
        Ack::Failed(error) => stop(RunEnding::Failed(storage_failure(&error))),
    }
}

/// The time that the run has left. The active time before a resume counts, as far as the journal shows it; parked time
/// does not.
fn time_left(plan: &Plan, history: &History) -> Duration {
    let used = history.active_ms(plan.start, plan.limits.park_after_ms);
    Duration::from_millis(plan.limits.wall_ms.saturating_sub(used))
}
