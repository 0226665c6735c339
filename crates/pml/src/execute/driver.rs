//! Carries out what the run core decides: the only part of a run that waits.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use pml_mcp::Caller;
use pml_model::json::{Fields, raw};
use pml_model::question::{Answer, Approval, Question};
use pml_model::{Digest, Principal, RunState, ToolId};
use pml_sandbox::{Delivery, Event as Seen, Fault, Level, What, Worker};
use pml_store::{Audit, Change, Entry, Heard as HeardAnswer, Lease, StoredAnswer, Urgency};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::ask::{self, Decided, Refused};
use super::dag::schedule::Pause;
use super::dag::{Dag, Frames, Said, Word};
use super::journal::{CallError, Delivered, Grant, History, Record, Wish};
use super::observe::{CallSeen, Ending, Observer, faulted};
use super::plan::Plan;
use super::remember;
use super::report::{Failure, Report, Standing};
use super::run::{Action, Event, Issued, Over, Run};
use super::value::{DIRECT_BYTES, Room, delivered, delivered_whole};
use crate::app::{App, blocking, now_ms};
use crate::approve::differs;
use crate::approve::question::{by_rule, counting, value_digest};
use crate::cache::Ticket;
use crate::catalogue::Why;
use crate::config::Durable;
use crate::problem::{Code, Problem, storage_code};
use crate::tools::{self, Authority, Context, Mode, Outcome, Permit};

/// How long calls that may have had an effect are waited for when the run is over.
const GRACE: Duration = Duration::from_secs(5);
/// How long servers are given to hear that a call is called off.
const CALLING_OFF: Duration = Duration::from_secs(1);
/// What all results of a run may have together.
const MAX_RECEIVED_BYTES: usize = 64 << 20;
/// How long an entry that nobody waits for may stay unwritten, and how many may.
const WRITE_WITHIN: Duration = Duration::from_millis(4);
const TOGETHER: usize = 64;
/// How long a question waits for the rest of the run to come to rest.
const ASK_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked whether a question is answered.
const LOOK: Duration = Duration::from_millis(100);
/// How often a client hears of progress at most.
const BETWEEN_PROGRESS: Duration = Duration::from_millis(100);

/// How a run can be told to stop.
#[derive(Debug, Default)]
pub(super) struct Stops {
    /// Whoever asked no longer wants it.
    pub(super) cancel: CancellationToken,
    /// Somebody ends it, and says why.
    pub(super) abort: watch::Sender<Option<String>>,
    /// The process ends.
    pub(super) suspend: CancellationToken,
    /// Another driver has the run.
    pub(super) lost: CancellationToken,
}

/// What a driver is made of.
pub(super) struct Parts {
    pub(super) app: Arc<App>,
    pub(super) principal: Principal,
    pub(super) plan: Arc<Plan>,
    pub(super) lease: Lease,
    /// For a program; the tasks of a DAG get theirs when they begin.
    pub(super) worker: Option<Worker>,
    pub(super) history: History,
    /// What its result may be kept under.
    pub(super) ticket: Option<Ticket>,
    pub(super) caller: Caller,
    pub(super) stops: Arc<Stops>,
    pub(super) standing: watch::Sender<Standing>,
    pub(super) acks: mpsc::UnboundedSender<Ack>,
    pub(super) acked: mpsc::UnboundedReceiver<Ack>,
}

/// One run under way.
pub(super) struct Driver {
    app: Arc<App>,
    principal: Principal,
    plan: Arc<Plan>,
    lease: Lease,
    ticket: Option<Ticket>,
    caller: Caller,
    /// Whom servers that are called can tell and ask nothing.
    silent: Caller,
    stops: Arc<Stops>,
    standing: watch::Sender<Standing>,
    observer: Observer,
    run: Run<Ending>,
    worker: Option<Worker>,
    /// The tasks, where the run is one of tasks.
    dag: Option<Box<Dag>>,
    frames: Frames,
    frames_said: mpsc::UnboundedReceiver<Said>,
    calls: FuturesUnordered<BoxFuture<'static, (u32, Outcome)>>,
    called_off: HashMap<u32, CancellationToken>,
    timers: BTreeSet<(i64, u64)>,
    grace: Option<Instant>,
    deadline: Instant,
    /// Bytes of results so far.
    received: usize,
    unwritten: Vec<Entry>,
    /// When that is to be written at the latest.
    write_by: Option<Instant>,
    acks: mpsc::UnboundedSender<Ack>,
    acked: mpsc::UnboundedReceiver<Ack>,
    /// The times at which recorded calls were asked for.
    recorded_at: Vec<i64>,
    told: Option<Instant>,
    /// Results so far, where a person may have to see what they are used for.
    results: Vec<(u32, Box<RawValue>)>,
    /// What comes of our own deciding, before anything else.
    pending: VecDeque<Event<Ending>>,
    /// When the calls that wait for a person's word are asked for at the latest.
    ask_by: Option<Instant>,
    /// What is asked, where the run goes on meanwhile, and when it is next looked whether it is answered.
    asked: Option<(String, Approval)>,
    look_at: Option<Instant>,
    /// When it is next looked whether somebody wants the run to wait before its next layer.
    look_for_pause_at: Option<Instant>,
    questions: u32,
    refused: Refused,
    /// A worker has crashed before.
    crashed: bool,
    /// What ends the run next.
    failed: Option<Failure>,
    /// How somebody wants it to end, which is not recorded yet.
    wish: Option<Wish>,
}

/// What the journal says.
#[derive(Debug)]
pub(super) enum Ack {
    Stored(u32),
    Failed(pml_store::Error),
}

/// Whether the run goes on in this process.
enum Next {
    On,
    Left,
}

impl Driver {
    /// A run that begins, or goes on after what `history` holds.
    pub(super) fn new(parts: Parts) -> Driver {
        let (rules, tools) = parts.plan.rules();
        let (frames, frames_said) = Frames::new(Arc::clone(&parts.app));
        let mut driver = Driver {
            dag: None,
            frames,
            frames_said,
            run: Run::new(rules, tools, parts.plan.start),
            observer: Observer::new(Arc::clone(&parts.plan)),
            deadline: deadline(&parts.plan, &parts.history),
            received: parts.history.deliveries.iter().map(|(_, what)| what.size()).sum(),
            recorded_at: parts.history.calls.iter().map(|call| call.at).collect(),
            app: parts.app,
            principal: parts.principal,
            plan: parts.plan,
            lease: parts.lease,
            ticket: parts.ticket,
            caller: parts.caller,
            silent: Caller::silent(),
            stops: parts.stops,
            standing: parts.standing,
            worker: None,
            calls: FuturesUnordered::new(),
            called_off: HashMap::new(),
            timers: BTreeSet::new(),
            grace: None,
            unwritten: Vec::new(),
            write_by: None,
            acks: parts.acks,
            acked: parts.acked,
            told: None,
            results: Vec::new(),
            pending: VecDeque::new(),
            ask_by: None,
            asked: None,
            look_for_pause_at: None,
            look_at: None,
            questions: parts.history.answered,
            refused: Refused::default(),
            crashed: false,
            failed: None,
            wish: None,
        };
        driver.begin(parts.worker, parts.history);
        driver
    }

    fn begin(&mut self, worker: Option<Worker>, history: History) {
        self.remember(&history);
        if let (Some(mut worker), Some(program)) = (worker, self.plan.program()) {
            worker.begin(&self.plan.for_worker(program));
            self.worker = Some(worker);
        }
        if let Some(dag) = self.plan.dag() {
            let mut dag = Box::new(Dag::new(&self.plan, dag, &history));
            self.observer.remember(&history);
            dag.begin();
            self.dag = Some(dag);
        }
        let by_rules = self.plan.grants.len();
        let replaced = history.replaced_grants.map(|given| by_rules + given);
        let grants = self.plan.grants.iter().cloned().chain(history.grants).collect();
        for action in self.run.replay(grants, history.calls, history.deliveries) {
            if let Action::Deliver { at, what } = action {
                self.deliver(at, &what);
            }
        }
        self.run.void_grants(replaced.unwrap_or(0));
        self.listen_to_dag();
    }

    /// Takes in what the tasks of a DAG ask for.
    fn listen_to_dag(&mut self) {
        let Some(dag) = &mut self.dag else { return };
        dag.start_wanted(&self.frames);
        dag.begun().iter().for_each(|begun| self.observer.task_began(begun));
        for event in dag.said() {
            let event = match event {
                Event::FrameOver(what) => Event::FrameOver(self.with_room(what)),
                other => other,
            };
            if let Event::Issued(issued) = &event {
                self.observer.asked_for(issued);
            }
            self.pending.push_back(event);
        }
    }

    /// The end of a program with what it called, if what it returned has room beside all other results.
    fn with_room(&mut self, what: Delivered) -> Delivered {
        let room = self.room();
        let what = match (what, &self.dag) {
            (Delivered::Frame { frame, value, error, .. }, Some(dag)) => {
                let called = self.observer.called_by(frame);
                let refusal = |value: &RawValue| room.refusal(dag.name_of(frame), value.get().len());
                match value.as_deref().and_then(refusal) {
                    Some(refusal) => Delivered::Frame { frame, value: None, error: Some(refusal), called },
                    None => Delivered::Frame { frame, value, error, called },
                }
            }
            (other, _) => other,
        };
        self.received += what.size();
        what
    }

    fn room(&self) -> Room {
        let each = usize::try_from(self.plan.limits.result_bytes).unwrap_or(usize::MAX);
        Room {
            // The limit is for values that programs work on; a direct call's result goes to its client.
            each: if self.plan.is_direct() { each.max(DIRECT_BYTES) } else { each },
            all: MAX_RECEIVED_BYTES,
            left: MAX_RECEIVED_BYTES.saturating_sub(self.received),
        }
    }

    /// What a person was told and said before, where they may be asked again.
    fn remember(&mut self, history: &History) {
        if !self.plan.asks() {
            return;
        }
        for (at, what) in &history.deliveries {
            self.keep(what);
            if let Some(call) = what.call().filter(|_| what.is_denied())
                && let Some(logged) = history.calls.get(call as usize - 1)
                && logged.allowed.is_none()
            {
                self.refused.add(&logged.tool, value_digest(&logged.arguments), *at);
            }
        }
    }

    fn keep(&mut self, what: &Delivered) {
        if let Delivered::Result { call, value, .. } = what
            && self.plan.asks()
        {
            self.results.push((*call, value.clone()));
        }
    }

    /// Goes on until the run is over, put aside or lost.
    pub(super) async fn drive(mut self) {
        // What was asked for before counts for the layer that begins now.
        self.look_for_pause().await;
        loop {
            let event = self.next_event().await;
            match event {
                Some(Heard::Event(event)) => {
                    let now = now_ms();
                    if let Event::Stop(ending) = &event {
                        self.wish = Wish::behind(ending);
                    }
                    let late = self.dag.as_ref().and_then(|dag| dag.deadline());
                    self.run.stay_awake(late.map(|(at, _)| now.saturating_add(ms_until(at))));
                    let actions = self.run.on(event, now);
                    let asks = actions.iter().any(|action| matches!(action, Action::Ask { .. }));
                    for action in actions {
                        if let Next::Left = self.act(action, now).await {
                            self.call_off().await;
                            return;
                        }
                    }
                    if asks && self.pending.is_empty() {
                        self.pending.push_back(Event::Undecided);
                    }
                    self.write_in_time();
                }
                Some(Heard::Crashed(failure)) => self.once_more(failure).await,
                Some(Heard::AskNow) => self.ask_meanwhile().await,
                Some(Heard::Look) => self.look_for_answer().await,
                Some(Heard::LookForPause) => self.look_for_pause().await,
                Some(Heard::Lost) => {
                    self.standing.send_replace(Standing::Elsewhere);
                    self.call_off().await;
                    return;
                }
                None => {}
            }
        }
    }

    async fn next_event(&mut self) -> Option<Heard> {
        if let Some(failure) = self.failed.take() {
            return self.stop(Ending::Failed(failure));
        }
        if let Some(event) = self.pending.pop_front() {
            if let Event::TimerCleared { timer } = event {
                self.timers.retain(|(_, set)| *set != timer);
            }
            return Some(Heard::Event(event));
        }
        let late = self.dag.as_ref().and_then(|dag| dag.deadline());
        let due = self.timers.first().map(|(at, _)| *at);
        let deadline = Some(self.deadline);
        let (grace, stopping) = (self.grace, self.grace.is_some());
        let mut aborted = self.stops.abort.subscribe();
        tokio::select! {
            biased;
            () = self.stops.lost.cancelled() => Some(Heard::Lost),
            () = sleep_until(grace) => {
                self.grace = None;
                Some(Heard::Event(Event::GraceOver))
            }
            () = self.stops.cancel.cancelled(), if !stopping => self.stop(Ending::Cancelled),
            () = self.stops.suspend.cancelled(), if !stopping => self.stop(Ending::Suspended),
            Ok(reason) = aborted.wait_for(Option::is_some), if !stopping => {
                let reason = reason.clone();
                self.stop(Ending::Aborted(reason.filter(|reason| !reason.is_empty())))
            }
            Some((call, outcome)) = self.calls.next() => {
                self.called_off.remove(&call);
                self.answered(call, outcome)
            }
            Some(ack) = self.acked.recv() => self.acked(ack),
            seen = next_of(&mut self.worker) => self.seen(seen),
            Some((task, word)) = self.frames_said.recv() => {
                self.task_said(task, word);
                None
            }
            () = sleep_until(late.map(|(at, _)| at)), if !stopping => {
                if let (Some(dag), Some((_, task))) = (&mut self.dag, late) {
                    dag.out_of_time(task);
                }
                self.listen_to_dag();
                None
            }
            () = sleep_until_ms(due) => {
                let (_, timer) = self.timers.pop_first()?;
                Some(Heard::Event(Event::TimerDue { timer }))
            }
            () = sleep_until(self.write_by) => {
                self.write();
                None
            }
            () = sleep_until(self.ask_by), if !stopping => {
                Some(Heard::AskNow)
            }
            () = sleep_until(self.look_at), if !stopping => {
                Some(Heard::Look)
            }
            () = sleep_until(self.look_for_pause_at), if !stopping => {
                Some(Heard::LookForPause)
            }
            () = sleep_until(deadline), if !stopping => self.stop(Ending::Failed(self.out_of_time())),
        }
    }

    fn stop(&self, ending: Ending) -> Option<Heard> {
        Some(Heard::Event(Event::Stop(ending)))
    }

    fn out_of_time(&self) -> Failure {
        let time = self.plan.limits.wall_ms;
        Failure::new("TIMEOUT", format!("the run took longer than {time} ms"))
            .hint("do less at once, give `timeoutMs`, or raise `limits.wall` in pml.toml")
    }

    fn answered(&mut self, call: u32, outcome: Outcome) -> Option<Heard> {
        let tool = self.observer.tool(call)?.to_owned();
        let deliver = if self.plan.is_direct() { delivered_whole } else { delivered };
        let what = deliver(self.lease.run(), call, &tool, outcome, self.room());
        self.received += what.size();
        Some(Heard::Event(Event::Answered(what)))
    }

    fn acked(&mut self, ack: Ack) -> Option<Heard> {
        match ack {
            Ack::Stored(call) => Some(Heard::Event(Event::Stored { call })),
            Ack::Failed(pml_store::Error::Fenced { .. }) => Some(Heard::Lost),
            Ack::Failed(error) => self.stop(Ending::Failed(storage(&error))),
        }
    }

    /// What the worker says, as the run core understands it.
    fn seen(&mut self, seen: Result<Seen, Fault>) -> Option<Heard> {
        let seen = match seen {
            Ok(seen) => seen,
            Err(fault) => return self.fault(&fault),
        };
        // While the past is gone through again nobody is told anew.
        if !self.run.is_replaying() {
            self.tell(&seen);
        }
        self.observer.see(&seen, now_ms());
        let event = match seen {
            Seen::Call { call, frame, point, context, handle, arguments } => {
                let at = self.recorded_at.get(call as usize - 1).copied().unwrap_or_else(now_ms);
                let seen = CallSeen { call, frame, point, context, handle, arguments };
                Event::Issued(self.observer.issued(&seen, at))
            }
            Seen::Timer { timer, delay_ms } => {
                Event::TimerSet { timer: u64::from(timer), delay_ms, from: None }
            }
            Seen::TimerCleared { timer } => {
                let timer = u64::from(timer);
                self.timers.retain(|(_, set)| *set != timer);
                Event::TimerCleared { timer }
            }
            Seen::Quiet { taken, .. } => Event::Quiet { taken },
            Seen::Ended(ending) => {
                self.worker = None;
                Event::Ended(self.observer.ending(&ending))
            }
            Seen::Console { .. }
            | Seen::ConsoleCut
            | Seen::Progress { .. }
            | Seen::Hint { .. }
            | Seen::FrameBegan { .. }
            | Seen::FrameEnded { .. }
            | Seen::Operation { .. }
            | Seen::Reached { .. } => {
                return None;
            }
        };
        Some(Heard::Event(event))
    }

    /// What the program of a task says.
    fn task_said(&mut self, task: usize, word: Word) {
        let Some(dag) = &mut self.dag else { return };
        let time = dag.time_of(task).filter(|_| self.run.is_replaying());
        if let Some((frame, node, seen)) = dag.heard(task, word) {
            if !self.run.is_replaying() {
                self.tell(&seen);
            }
            self.observer.see_in_task(frame, node, &seen, time.unwrap_or_else(now_ms));
        }
        self.listen_to_dag();
    }

    fn fault(&mut self, fault: &Fault) -> Option<Heard> {
        self.worker = None;
        if let Fault::Broke(how) = fault {
            tracing::error!(run = %self.lease.run(), how, "a sandbox worker broke its protocol and was killed");
        }
        let failure = faulted(&self.plan, fault);
        match fault {
            Fault::Died { .. } => Some(Heard::Crashed(failure)),
            Fault::Cpu | Fault::Broke(_) => self.stop(Ending::Failed(failure)),
        }
    }

    /// Begins again in another worker, once, if the program has done nothing yet.
    async fn once_more(&mut self, failure: Failure) {
        if self.run.is_untouched() && !self.crashed {
            self.crashed = true;
            super::renew_workers(&self.app);
            if let Ok(worker) = super::take_worker(&self.app, GRACE).await {
                let (rules, tools) = self.plan.rules();
                let before = std::mem::replace(&mut self.run, Run::new(rules, tools, self.plan.start));
                self.observer = Observer::new(Arc::clone(&self.plan));
                self.timers.clear();
                // What was allowed was recorded, and is used by its number.
                let grants = before.into_grants().split_off(self.plan.grants.len());
                self.begin(Some(worker), History { grants, ..History::default() });
                return;
            }
        }
        self.failed = Some(failure);
    }

    async fn act(&mut self, action: Action<Ending>, now: i64) -> Next {
        match action {
            Action::Record(record) => {
                match &record {
                    Record::Delivered { at, what } => {
                        self.keep(what);
                        self.observer.delivered(what, *at);
                        if let (Some(dag), Some(_)) = (&mut self.dag, self.grace) {
                            // Nothing comes of it any more but that it is known.
                            dag.deliver(*at, what);
                        }
                        self.tell_progress();
                    }
                    Record::Issued { issued, .. } => {
                        if self.dag.is_some() {
                            self.observer.note(issued, now);
                        }
                        self.tell_progress();
                    }
                    Record::Sending { .. }
                    | Record::Again { .. }
                    | Record::Granted { .. }
                    | Record::Allowed { .. } => {}
                }
                self.unwritten.push(record.entry(now));
                if let Record::Delivered { what: Delivered::Pause, .. } = record {
                    // In one commit: a pause that is recorded is no longer asked for.
                    let taken = Change { pause_taken: true, at: now, ..Change::default() };
                    self.change_now(taken, Urgency::Soon);
                }
            }
            Action::Promise { call } => {
                self.unwritten.push(Record::Sending { call, at: now }.entry(now));
                self.promise(call);
            }
            Action::Send(issued) => self.send(issued),
            Action::Deliver { at, what } => self.deliver(at, &what),
            Action::Cancel { call } => {
                if let Some(token) = self.called_off.remove(&call) {
                    token.cancel();
                }
            }
            Action::Wake { timer, at } => {
                self.timers.insert((at, timer));
            }
            Action::Kill => self.kill(),
            Action::Grace => {
                self.grace = Some(Instant::now() + GRACE);
                self.record_wish(now);
            }
            Action::Ask { call } => self.ask(call, now).await,
            Action::Park { wake_at, asking } => return self.park(wake_at, &asking).await,
            Action::Finish(over) => return self.finish(over, now).await,
            Action::Diverged(divergence) => {
                self.kill();
                let failure = Failure::new(
                    "DIVERGED",
                    format!("the program does not do what was recorded: {divergence}"),
                )
                .hint(self.again_or_not());
                let over = Over { ending: Ending::Failed(failure), in_doubt: Vec::new() };
                return self.finish(over, now).await;
            }
        }
        Next::On
    }

    /// Ends all that computes for the run.
    fn kill(&mut self) {
        self.worker = None;
        if let Some(dag) = &mut self.dag {
            dag.stop();
        }
    }

    fn deliver(&mut self, at: i64, what: &Delivered) {
        if let Delivered::Layer { replan: Some(replan), .. } = what {
            self.plan = Arc::new(self.plan.replanned(replan));
            self.run.extend(self.plan.rules().1);
            self.observer.replanned(Arc::clone(&self.plan));
        }
        if let Some(dag) = &mut self.dag {
            dag.deliver(at, what);
            self.listen_to_dag();
            self.withdraw_question();
            return;
        }
        if self.run.is_replaying() {
            self.observer.will_be_delivered(what.clone(), at);
        }
        let Some(worker) = &mut self.worker else { return };
        worker.deliver(&Delivery { now_ms: at, what: for_worker(what) });
    }

    fn send(&mut self, issued: Issued) {
        let granted = &self.plan.tools[issued.handle as usize];
        let cancel = CancellationToken::new();
        self.called_off.insert(issued.call, cancel.clone());
        let context = Context {
            principal: self.principal.clone(),
            run: Some(self.lease.run().clone()),
            step: Some(issued.call),
            attempt: 1,
            deadline: self
                .dag
                .as_ref()
                .and_then(|dag| dag.timeout(issued.call))
                .map(|time| Instant::now() + time),
            cancel,
            mode: Mode::Real,
            // A client that waits for its own call hears and answers what the tool's server says meanwhile.
            caller: match self.plan.is_direct() {
                true => self.caller.asked_meanwhile(),
                false => self.silent.clone(),
            },
            authority: Authority::Run(Permit {
                definition: granted.digest.clone(),
                allowed: self.run.grant(&issued).map(|grant| tools::Allowed {
                    arguments: grant.arguments.clone(),
                    until: grant.expires_at,
                }),
            }),
            witness: self.ticket.as_ref().map(|ticket| ticket.witness.clone()),
        };
        let (app, id) = (Arc::clone(&self.app), granted.id.clone());
        if self.run.grant(&issued).is_some_and(|grant| grant.is_void(&app.catalogue.snapshot())) {
            let text = format!("the definition of `{id}` changed after a person allowed it to be called");
            let outcome = Outcome::NotSent(Problem::new(Code::ToolChanged, text).hint(Failure::RUN_ANEW));
            self.calls.push(Box::pin(async move { (issued.call, outcome) }));
            return;
        }
        self.calls.push(Box::pin(async move {
            let arguments: &RawValue = serde_json::from_str(&issued.arguments)
                .expect("the worker's side has checked that it is JSON");
            (issued.call, tools::call(&app, &context, &id, arguments, Fields::default()).await)
        }));
    }

    fn again_or_not(&self) -> &'static str {
        match self.recorded_at.is_empty() {
            true => "nothing was sent; run it anew",
            false => "nothing more was sent; see with `pml runs show` what was before you run it anew",
        }
    }

    /// Collects what may wait a little: many small entries cost more than few large ones.
    fn write_in_time(&mut self) {
        if self.unwritten.len() >= TOGETHER {
            self.write();
        } else if !self.unwritten.is_empty() && self.write_by.is_none() {
            self.write_by = Some(Instant::now() + WRITE_WITHIN);
        }
    }

    /// Hands what is not written yet to the store.
    fn write(&mut self) {
        self.write_by = None;
        if self.unwritten.is_empty() {
            return;
        }
        let acks = self.acks.clone();
        let stored = move |stored| {
            if let Err(error) = stored {
                // A run that is over no longer listens.
                drop(acks.send(Ack::Failed(error)));
            }
        };
        self.app.store.append(&self.lease, std::mem::take(&mut self.unwritten), None, Urgency::Soon, stored);
    }

    /// Writes that `call` is about to be sent, and hears when that is on disk.
    fn promise(&mut self, call: u32) {
        let urgency = match self.app.config().runs.durable {
            Durable::Full => Urgency::Durable,
            Durable::Normal => Urgency::Soon,
        };
        self.write_by = None;
        let acks = self.acks.clone();
        self.app.store.append(
            &self.lease,
            std::mem::take(&mut self.unwritten),
            None,
            urgency,
            move |stored| {
                let ack = stored.map_or_else(Ack::Failed, |()| Ack::Stored(call));
                drop(acks.send(ack));
            },
        );
    }

    /// Writes everything and waits until it is stored.
    async fn settle(&mut self, change: Change) -> Result<(), pml_store::Error> {
        self.write_by = None;
        let (stored, told) = oneshot::channel();
        self.app.store.append(
            &self.lease,
            std::mem::take(&mut self.unwritten),
            Some(change),
            Urgency::Soon,
            move |outcome| drop(stored.send(outcome)),
        );
        told.await
            .unwrap_or_else(|_| Err(pml_store::Error::Stopped { path: self.app.store.path().to_owned() }))
    }

    async fn park(&mut self, wake_at: Option<i64>, asking: &[u32]) -> Next {
        let asked = match (&self.asked, asking) {
            // What was asked stays asked; the rest comes after it.
            (Some(asked), _) => Some(asked.clone()),
            (None, []) => None,
            (None, calls) => Some(self.question(calls).await),
        };
        let now = now_ms();
        let new = self.asked.is_none().then_some(asked.as_ref()).flatten();
        let question = match &asked {
            Some((id, asked)) => Some((id.clone(), Question::Approval(asked.clone()))),
            None => self
                .dag
                .as_ref()
                .and_then(|dag| dag.paused())
                .map(|layer| (ask::layer_id(self.lease.run(), &layer), Question::Layer(layer))),
        };
        let change = Change {
            state: Some(RunState::Waiting),
            wake_at: Some(wake_at),
            question: Some(question.clone()),
            expires_at: question.as_ref().map(|_| Some(now + self.app.config().approvals.expire_ms())),
            calls: Some(self.observer.progress().calls),
            audit: new.map(|(id, asked)| self.asked_audit(id, asked, now)).into_iter().collect(),
            release: true,
            at: now,
            ..Change::default()
        };
        let standing = match self.settle(change).await {
            Ok(()) => Standing::Waiting { question, wake_at, in_flight: 0 },
            Err(error) => {
                tracing::error!(run = %self.lease.run(), %error, "a run could not be put aside");
                Standing::Elsewhere
            }
        };
        self.standing.send_replace(standing);
        Next::Left
    }

    /// A call waits for a person's word, unless it is known what they would say.
    async fn ask(&mut self, call: u32, now: i64) {
        let Some(issued) = self.run.issued(call) else { return };
        let granted = &self.plan.tools[issued.handle as usize];
        let (tool, value) = (granted.id.to_string(), issued.value.clone());
        if self.refused.covers(&tool, value.as_ref()) {
            let error = CallError::denied(&tool, None);
            // Before it is found that nothing else is to be done.
            self.pending.push_front(Event::Answered(Delivered::Error { call, error }));
            return;
        }
        if self.is_another_by_now(&granted.id, &granted.digest) {
            let error = CallError::tool_changed(&tool);
            self.pending.push_front(Event::Answered(Delivered::Error { call, error }));
            return;
        }
        let definition = granted.digest.clone();
        let (store, whose) = (self.app.store.clone(), self.principal.clone());
        let rules = blocking(move || store.matching_rules(&whose, now)).await.unwrap_or_else(|error| {
            // A person is asked instead.
            tracing::warn!(%error, "standing approvals could not be read");
            Vec::new()
        });
        let now_by = self.app.config().approvals.by;
        let rules = counting(rules, now_by.map_or(self.plan.by, |by| self.plan.by.stricter(by)));
        let code = self.plan.approved_hash();
        if let Some((rule, grant)) = by_rule(&rules, (&tool, &definition), &code, value.as_ref(), 1, now) {
            let audit = vec![ask::rule_audit(&self.principal, self.lease.run(), &grant, now)];
            let (store, whose) = (self.app.store.clone(), self.principal.clone());
            // It may have been taken back since it was read.
            if let Ok(true) = blocking(move || store.use_rule(&whose, rule, now, audit)).await {
                let grant = grant.bound_to(&self.app.catalogue.snapshot());
                self.pending.push_front(Event::Granted(grant));
                return;
            }
        }
        if let Some(dag) = &mut self.dag {
            dag.stop_clock(call);
        }
        if self.questions >= ask::MOST_QUESTIONS {
            let error = CallError::too_many_questions(&tool, ask::MOST_QUESTIONS);
            self.pending.push_front(Event::Answered(Delivered::Error { call, error }));
            return;
        }
        if self.asked.is_none() {
            if let Err(problem) = self.make_room(now).await {
                let error = CallError::too_many_open(&tool, &problem);
                self.pending.push_front(Event::Answered(Delivered::Error { call, error }));
                return;
            }
            self.ask_by.get_or_insert_with(|| Instant::now() + ASK_WITHIN);
        }
    }

    /// Whether a tool has another definition than it had when the run was planned: nobody is asked about that one.
    fn is_another_by_now(&self, tool: &ToolId, planned: &Digest) -> bool {
        let snapshot = self.app.catalogue.snapshot();
        match snapshot.tool(tool) {
            Ok(tool) => tool.definition.digest != *planned,
            Err(_) => snapshot.held(tool).is_some_and(|held| matches!(held.why, Why::Changed { .. })),
        }
    }

    /// Makes room for a question, if the client has not too many open.
    async fn make_room(&mut self, now: i64) -> Result<(), Problem> {
        let (store, whose) = (self.app.store.clone(), self.principal.clone());
        let open = blocking(move || store.open_approvals(&whose, now)).await.unwrap_or_else(|error| {
            // A question that cannot be stored either ends the run.
            tracing::warn!(%error, "the open questions could not be counted");
            Vec::new()
        });
        let limit = self.app.config().approvals.open_limit();
        self.app.runs.reserve_question(self.lease.run(), &self.plan.session, open, limit)
    }

    /// What is asked about these calls, under its name.
    async fn question(&mut self, calls: &[u32]) -> (String, Approval) {
        let calls: Vec<&Issued> = calls.iter().filter_map(|call| self.run.issued(*call)).collect();
        let snapshot = self.app.catalogue.snapshot();
        let says = |tool: &str, digest: &Digest| snapshot.description(tool, digest);
        let mut asked = ask::about(&self.plan, &self.observer, &calls, &self.results, says);
        let (store, whose, tools) = (self.app.store.clone(), self.principal.clone(), differs::tools(&asked));
        match blocking(move || store.last_allowed(&whose, &tools)).await {
            Ok(last) => differs::fill(&mut asked, &last),
            // The question has all that is asked without it.
            Err(error) => tracing::warn!(%error, "what was allowed before could not be read"),
        }
        (ask::question_id(self.lease.run(), &asked), asked)
    }

    fn asked_audit(&self, id: &str, asked: &Approval, now: i64) -> Audit {
        ask::asked_audit(&self.principal, self.lease.run(), id, asked, now)
    }

    /// Asks while other calls are still under way.
    async fn ask_meanwhile(&mut self) {
        self.ask_by = None;
        let calls = self.run.asking();
        if calls.is_empty() || self.asked.is_some() {
            return;
        }
        let (id, asked) = self.question(&calls).await;
        let now = now_ms();
        let change = Change {
            question: Some(Some((id.clone(), Question::Approval(asked.clone())))),
            audit: vec![self.asked_audit(&id, &asked, now)],
            at: now,
            ..Change::default()
        };
        if let Err(error) = self.settle(change).await {
            drop(self.acks.send(Ack::Failed(error)));
            return;
        }
        self.questions += 1;
        self.asked = Some((id, asked));
        self.look_at = Some(Instant::now() + LOOK);
        self.tell_standing();
    }

    /// Tells whoever waits in this process how the run stands: what it asks comes before how far it is.
    fn tell_standing(&self) {
        let standing = match self.asked.clone() {
            Some((id, asked)) => Standing::Waiting {
                question: Some((id, Question::Approval(asked))),
                wake_at: None,
                in_flight: self.run.in_flight(),
            },
            None => Standing::Running(self.observer.progress().clone()),
        };
        self.standing.send_replace(standing);
    }

    /// Takes a question back where whoever wanted the calls has ended without them.
    fn withdraw_question(&mut self) {
        let Some((_, asked)) = &self.asked else { return };
        let asking = self.run.asking();
        if asked.calls.iter().filter_map(|asked| asked.call).any(|call| asking.contains(&call)) {
            return;
        }
        (self.asked, self.look_at) = (None, None);
        self.app.runs.release_question(self.lease.run());
        self.change_now(Change { question: Some(None), at: now_ms(), ..Change::default() }, Urgency::Soon);
        self.tell_standing();
    }

    /// Looks whether somebody wants the run to wait before its next layer; once is enough, because it is put aside then.
    async fn look_for_pause(&mut self) {
        if self.plan.dag().is_none_or(|dag| dag.pause != Pause::Manual) {
            return;
        }
        let (store, lease) = (self.app.store.clone(), self.lease.clone());
        match blocking(move || store.is_pause_wanted(&lease)).await {
            Ok(true) => {
                self.look_for_pause_at = None;
                self.pending.push_front(Event::Pause);
                return;
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(run = %self.lease.run(), %error, "whether a run is to wait could not be read");
            }
        }
        self.look_for_pause_at = Some(Instant::now() + LOOK);
    }

    async fn look_for_answer(&mut self) {
        // Set anew each time, and not by each event: a busy run has events more often than this.
        self.look_at = self.asked.is_some().then(|| Instant::now() + LOOK);
        let (store, lease) = (self.app.store.clone(), self.lease.clone());
        let decision = match blocking(move || store.heard(&lease)).await {
            Ok(Some(HeardAnswer::Answer(StoredAnswer { answer: Answer::Approval(decision), .. }))) => {
                decision
            }
            Ok(Some(HeardAnswer::Changed { tool })) => return self.void_question(&tool),
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(run = %self.lease.run(), %error, "the answer to a run's question could not be read");
                return;
            }
        };
        let Some((id, asked)) = self.asked.take() else { return };
        self.look_at = None;
        self.app.runs.release_question(self.lease.run());
        if let Some(dag) = &mut self.dag {
            dag.restart_clocks();
        }
        let now = now_ms();
        match ask::decided(&asked, &decision, now) {
            Decided::Yes(grants) => {
                let snapshot = self.app.catalogue.snapshot();
                let given = |grant: Grant| Event::Granted(grant.bound_to(&snapshot));
                self.pending.extend(grants.into_iter().map(given));
            }
            Decided::No(ends) => {
                for call in &asked.calls {
                    self.refused.add(&call.tool, ask::value_of(call), now);
                }
                self.pending.extend(ends.into_iter().map(Event::Answered));
            }
        }
        let audit = vec![ask::decided_audit(&self.principal, self.lease.run(), &id, &decision, now)];
        self.change_now(Change { question: Some(None), audit, at: now, ..Change::default() }, Urgency::Soon);
        self.ask_by = Some(Instant::now() + ASK_WITHIN);
        self.tell_standing();
    }

    /// Ends the calls in question whose tool has another definition by now; what else is asked for is asked anew.
    fn void_question(&mut self, tool: &str) {
        let Some((_, asked)) = self.asked.take() else { return };
        self.look_at = None;
        self.app.runs.release_question(self.lease.run());
        if let Some(dag) = &mut self.dag {
            dag.restart_clocks();
        }
        self.pending.extend(ask::changed(&asked, tool).into_iter().map(Event::Answered));
        self.change_now(Change { question: Some(None), at: now_ms(), ..Change::default() }, Urgency::Soon);
        self.ask_by = Some(Instant::now() + ASK_WITHIN);
        self.tell_standing();
    }

    /// Writes down how the run is to end before its calls are waited for.
    fn record_wish(&mut self, now: i64) {
        if let Some(wish) = self.wish.take() {
            let wish = serde_json::to_vec(&wish).expect("a wish is plain data");
            let change = Change { wish: Some(wish), at: now, ..Change::default() };
            self.change_now(change, Urgency::Durable);
        }
    }

    /// Changes how the run stands, with what is written next.
    fn change_now(&mut self, change: Change, urgency: Urgency) {
        self.write_by = None;
        let acks = self.acks.clone();
        let stored = move |stored| {
            if let Err(error) = stored {
                drop(acks.send(Ack::Failed(error)));
            }
        };
        let entries = std::mem::take(&mut self.unwritten);
        self.app.store.append(&self.lease, entries, Some(change), urgency, stored);
    }

    async fn finish(&mut self, over: Over<Ending>, now: i64) -> Next {
        self.kill();
        if let Ending::Suspended = over.ending {
            return self.suspend(&over.in_doubt).await;
        }
        let mut report = self.observer.report(&over.ending, &over.in_doubt, now);
        if let Some(dag) = &self.dag {
            dag.add_to(&mut report);
        }
        report.warn(&self.plan);
        let (app, principal, plan) = (Arc::clone(&self.app), self.principal.clone(), Arc::clone(&self.plan));
        let known = remember::is_known(&app, &principal, &plan).await;
        let memory = self.memory(&report, known);
        if let Some(memory) = &memory {
            remember::tell(&app, memory, &plan, &mut report);
        }
        let change = Change {
            state: Some(report.state),
            wake_at: Some(None),
            memory,
            outcome: Some(raw(&report).get().as_bytes().to_vec()),
            error_code: report.error.as_ref().map(|error| error.code.clone()),
            calls: Some(self.observer.progress().calls),
            release: true,
            at: now_ms(),
            ..Change::default()
        };
        match self.settle(change).await {
            Ok(()) => {
                if let Some(ticket) = &self.ticket {
                    self.app.cache.put(&self.app, &self.plan, ticket, self.lease.run(), &report);
                }
                self.app.memory.left();
            }
            Err(pml_store::Error::Fenced { .. }) => {
                self.standing.send_replace(Standing::Elsewhere);
                return Next::Left;
            }
            Err(error) => {
                // What is not on disk has not happened, for whoever is told. That it failed takes less room.
                report.state = RunState::Failed;
                report.result = None;
                report.error = Some(storage(&error));
                let change = Change {
                    state: Some(RunState::Failed),
                    error_code: Some(storage_code(&error).text()),
                    release: true,
                    at: now_ms(),
                    ..Change::default()
                };
                if self.settle(change).await.is_err() {
                    self.standing.send_replace(Standing::Interrupted);
                    return Next::Left;
                }
            }
        }
        self.standing.send_replace(Standing::Over(Arc::new(report)));
        Next::Left
    }

    /// What the run leaves behind.
    fn memory(&self, report: &Report, known: bool) -> Option<Box<pml_store::Memory>> {
        let wall = Duration::from_millis(self.plan.limits.wall_ms);
        let active = wall.saturating_sub(self.deadline.saturating_duration_since(Instant::now()));
        let over = remember::Over {
            run: self.lease.run(),
            principal: &self.principal,
            plan: &self.plan,
            observer: &self.observer,
            report,
            layers: self.dag.as_ref().map(|dag| dag.layers()).unwrap_or_default(),
            active_ms: i64::try_from(active.as_millis()).unwrap_or(i64::MAX),
            approved: self.run.was_allowed(),
        };
        remember::memory(&self.app, &over, known)
    }

    /// Leaves the run to another process.
    async fn suspend(&mut self, in_doubt: &[u32]) -> Next {
        let change = Change {
            state: Some(RunState::Interrupted),
            calls: Some(self.observer.progress().calls),
            release: true,
            at: now_ms(),
            ..Change::default()
        };
        if let Err(error) = self.settle(change).await {
            tracing::error!(run = %self.lease.run(), %error, ?in_doubt, "a run could not be left in good order");
        }
        self.standing.send_replace(Standing::Elsewhere);
        Next::Left
    }

    /// Gives servers a moment to hear that calls are called off.
    async fn call_off(&mut self) {
        self.kill();
        self.called_off.values().for_each(CancellationToken::cancel);
        let rest = async { while self.calls.next().await.is_some() {} };
        if tokio::time::timeout(CALLING_OFF, rest).await.is_err() {
            tracing::debug!(run = %self.lease.run(), "a call did not end when it was called off");
        }
    }

    fn tell(&mut self, seen: &Seen) {
        match seen {
            Seen::Console { level, text, .. } => {
                let level = match level {
                    Level::Debug => "debug",
                    Level::Log | Level::Info => "info",
                    Level::Warn => "warning",
                    Level::Error => "error",
                };
                self.caller.log(&raw(&serde_json::json!({ "level": level, "logger": "pml", "data": text })));
            }
            Seen::Progress { .. } => self.tell_progress(),
            _ => {}
        }
    }

    /// Tells whoever waits how far the run has come, now and then.
    fn tell_progress(&mut self) {
        let now = Instant::now();
        if self.told.is_some_and(|told| now - told < BETWEEN_PROGRESS) {
            return;
        }
        self.told = Some(now);
        // Of a direct call the tool tells how far it is.
        if self.caller.wants_progress() && !self.plan.is_direct() {
            self.caller.progress(&raw(&self.observer.progress().for_client()));
        }
        self.tell_standing();
    }
}

enum Heard {
    Event(Event<Ending>),
    /// The worker ended by itself.
    Crashed(Failure),
    /// Calls have waited for a person's word for long enough, though others are under way.
    AskNow,
    /// It is time to look for an answer.
    Look,
    /// It is time to look whether somebody wants the run to wait.
    LookForPause,
    /// Another process has the run.
    Lost,
}

/// The store's own words name files of this machine; they are for the log.
fn storage(error: &pml_store::Error) -> Failure {
    tracing::error!(%error, "a run could not be recorded");
    let why = match error {
        pml_store::Error::Full { .. } => ": no space is left",
        pml_store::Error::Busy { .. } => ": the database is held by another process",
        pml_store::Error::TooLarge { .. } => ": something in it is too large",
        pml_store::Error::Corrupt { .. } => ": the database is damaged",
        _ => "",
    };
    Failure::new(&storage_code(error).text(), format!("the run could not be recorded{why}"))
        .hint("what was sent is in the journal as far as it goes: `pml runs show` tells")
}

/// When the run is out of time: what it used before counts, as far as its journal tells, and sleeping without a worker
/// does not.
fn deadline(plan: &Plan, history: &History) -> Instant {
    let used = history.active_ms(plan.start, plan.limits.park_after_ms);
    Instant::now() + Duration::from_millis(plan.limits.wall_ms.saturating_sub(used))
}

/// As a worker is given it.
pub(super) fn for_worker(what: &Delivered) -> What {
    match what {
        Delivered::Result { call, value, .. } => What::Result { call: *call, json: value.get().to_owned() },
        Delivered::Error { call, error } => What::Error { call: *call, error: error.for_worker() },
        Delivered::Timer { timer } => What::Timer { timer: u32::try_from(*timer).unwrap_or(u32::MAX) },
        Delivered::Frame { .. } | Delivered::Layer { .. } | Delivered::Pause => {
            unreachable!("only the tasks of a DAG are given that")
        }
    }
}

fn ms_until(instant: Instant) -> i64 {
    i64::try_from(instant.saturating_duration_since(Instant::now()).as_millis()).unwrap_or(i64::MAX)
}

async fn next_of(worker: &mut Option<Worker>) -> Result<Seen, Fault> {
    match worker {
        Some(worker) => worker.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}

async fn sleep_until_ms(at: Option<i64>) {
    match at {
        Some(at) => {
            let wait = u64::try_from(at.saturating_sub(now_ms())).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        None => std::future::pending().await,
    }
}
