//! Carries out what the run core decides: the only part of a run that waits.
//!
//! The parts it is made of do not know each other: where calls come from (`work`), the calls under way (`calls`), the
//! journal (`journal_writer`), the approvals that are waited for (`approvals`), and who hears of it all (`client`).

mod approvals;
mod asking;
mod calls;
mod client;
mod ending;
mod hearing;
mod journal_writer;
mod work;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_mcp::Caller;
use pml_model::Principal;
use pml_sandbox::{Event as Seen, Worker};
use pml_store::{Change, Lease, Urgency};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Runs;
use super::journal::{Delivered, History, Record, Wish};
use super::observe::{Ending, Observer};
use super::run::{self, Action, Event, Issued, Over, Run};
use crate::clock::now_ms;
use crate::knowledge::cache::Ticket;
use crate::plan::Plan;
use crate::report::{Failure, Standing};
use crate::tools::Outcome;
use approvals::Approvals;
use calls::{CallsInFlight, Permitted};
use client::{Audible, Client};
use ending::storage;
pub(super) use journal_writer::Ack;
use journal_writer::JournalWriter;
pub(super) use work::for_worker;
use work::{Work, sleep_until};

/// How long calls that may have had an effect are waited for when the run is over.
const GRACE: Duration = Duration::from_secs(5);

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
    pub(super) runs: Arc<Runs>,
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

/// The run that is driven: whose it is, what it does, and by which lease this process has it.
pub(super) struct DrivenRun {
    runs: Arc<Runs>,
    principal: Principal,
    plan: Arc<Plan>,
    lease: Lease,
}

/// When something has to happen whatever else does.
struct Deadlines {
    /// The run is out of time.
    run: Instant,
    /// Calls that may have had an effect are no longer waited for; set once the run is over.
    grace: Option<Instant>,
    /// It is looked whether somebody wants the run to wait before its next layer.
    pause_poll: Option<Instant>,
}

/// One run under way.
pub(super) struct Driver {
    of: DrivenRun,
    run: Run<Ending>,
    observer: Observer,
    work: Work,
    calls: CallsInFlight,
    journal: JournalWriter,
    approvals: Approvals,
    client: Client,
    stops: Arc<Stops>,
    deadlines: Deadlines,
    /// What its result may be kept under.
    ticket: Option<Ticket>,
    /// The times at which recorded calls were asked for.
    recorded_at: Vec<i64>,
    /// What comes of our own deciding, before anything else.
    pending: VecDeque<Event<Ending>>,
    /// What ends the run next.
    failed: Option<Failure>,
    /// How somebody wants it to end, which is not recorded yet.
    requested_end: Option<Wish>,
}

/// Whether the run goes on in this process.
enum Next {
    On,
    Left,
}

impl Driver {
    /// A run that begins, or goes on after what `history` holds.
    pub(super) fn new(parts: Parts) -> Driver {
        let Parts { runs, principal, plan, lease, worker, history, .. } = parts;
        let (rules, tools) = run::rules(&plan);
        let mut driver = Driver {
            run: Run::new(rules, tools, plan.start),
            observer: Observer::new(Arc::clone(&plan)),
            work: Work::new(Arc::clone(&runs)),
            calls: CallsInFlight::new(&history),
            journal: JournalWriter::new(runs.store.clone(), lease.clone(), parts.acks, parts.acked),
            approvals: Approvals::new(&plan, &history),
            client: Client::new(parts.caller, parts.standing),
            stops: parts.stops,
            deadlines: Deadlines { run: deadline(&plan, &history), grace: None, pause_poll: None },
            ticket: parts.ticket,
            recorded_at: history.calls.iter().map(|call| call.at).collect(),
            pending: VecDeque::new(),
            failed: None,
            requested_end: None,
            of: DrivenRun { runs, principal, plan, lease },
        };
        driver.begin(worker, history);
        driver
    }

    fn begin(&mut self, worker: Option<Worker>, history: History) {
        self.work.begin(&self.of.plan, worker, &history);
        if let Some(dag) = &mut self.work.dag {
            self.observer.remember(&history);
            dag.begin();
        }
        let by_rules = self.of.plan.grants.len();
        let replaced = history.replaced_grants.map(|given| by_rules + given);
        let grants = self.of.plan.grants.iter().cloned().chain(history.grants).collect();
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
        let Some(dag) = &mut self.work.dag else { return };
        dag.start_wanted(&self.work.frames);
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
        let room = self.calls.room(&self.of.plan);
        let what = match (what, &self.work.dag) {
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
        self.calls.count(&what);
        what
    }

    /// Goes on until the run is over, put aside or lost.
    pub(super) async fn drive(mut self) {
        // What was asked for before counts for the layer that begins now.
        self.poll_pause().await;
        loop {
            match self.next_event().await {
                Some(Heard::Event(event)) => {
                    if let Next::Left = self.take(event).await {
                        self.work.kill();
                        return self.calls.cancel_all(&self.of).await;
                    }
                }
                Some(Heard::Crashed(failure)) => self.begin_again_once(failure).await,
                Some(Heard::AskNow) => self.ask_meanwhile().await,
                Some(Heard::PollAnswer) => self.poll_answer().await,
                Some(Heard::PollPause) => self.poll_pause().await,
                Some(Heard::Lost) => {
                    self.client.set_status(Standing::Elsewhere);
                    self.work.kill();
                    return self.calls.cancel_all(&self.of).await;
                }
                None => {}
            }
        }
    }

    /// Has the run core decide what an event means, and carries that out.
    async fn take(&mut self, event: Event<Ending>) -> Next {
        let now = now_ms();
        if let Event::Stop(ending) = &event {
            self.requested_end = Wish::behind(ending);
        }
        self.run.stay_awake(self.work.awake_until(now));
        let actions = self.run.on(event, now);
        let asks = actions.iter().any(|action| matches!(action, Action::Ask { .. }));
        for action in actions {
            if let Next::Left = self.act(action, now).await {
                return Next::Left;
            }
        }
        if asks && self.pending.is_empty() {
            self.pending.push_back(Event::Undecided);
        }
        self.journal.write_in_time();
        Next::On
    }

    async fn next_event(&mut self) -> Option<Heard> {
        if let Some(failure) = self.failed.take() {
            return stop(Ending::Failed(failure));
        }
        if let Some(event) = self.pending.pop_front() {
            if let Event::TimerCleared { timer } = event {
                self.work.clear_timer(timer);
            }
            return Some(Heard::Event(event));
        }
        let stopping = self.deadlines.grace.is_some();
        let write_by = self.journal.write_by();
        let mut aborted = self.stops.abort.subscribe();
        tokio::select! {
            biased;
            () = self.stops.lost.cancelled() => Some(Heard::Lost),
            () = sleep_until(self.deadlines.grace) => {
                self.deadlines.grace = None;
                Some(Heard::Event(Event::GraceOver))
            }
            () = self.stops.cancel.cancelled(), if !stopping => stop(Ending::Cancelled),
            () = self.stops.suspend.cancelled(), if !stopping => stop(Ending::Suspended),
            Ok(reason) = aborted.wait_for(Option::is_some), if !stopping => {
                let reason = reason.clone();
                stop(Ending::Aborted(reason.filter(|reason| !reason.is_empty())))
            }
            Some((call, outcome)) = self.calls.next() => self.answered(call, outcome),
            Some(ack) = self.journal.next_ack() => acked(ack),
            heard = self.work.next(stopping) => self.heard(heard?),
            () = sleep_until(write_by) => {
                self.journal.write();
                None
            }
            () = sleep_until(self.approvals.ask_by), if !stopping => Some(Heard::AskNow),
            () = sleep_until(self.approvals.next_poll), if !stopping => Some(Heard::PollAnswer),
            () = sleep_until(self.deadlines.pause_poll), if !stopping => Some(Heard::PollPause),
            () = sleep_until(Some(self.deadlines.run)), if !stopping => stop(Ending::Failed(self.out_of_time())),
        }
    }

    fn out_of_time(&self) -> Failure {
        let time = self.of.plan.limits.wall_ms;
        Failure::new("TIMEOUT", format!("the run took longer than {time} ms"))
            .hint("do less at once, give `timeoutMs`, or raise `limits.wall` in pml.toml")
    }

    fn answered(&mut self, call: u32, outcome: Outcome) -> Option<Heard> {
        let tool = self.observer.tool(call)?.to_owned();
        let what = self.calls.ended(&self.of, call, &tool, outcome);
        Some(Heard::Event(Event::Answered(what)))
    }

    /// Begins again in another worker, once, if the program has done nothing yet.
    async fn begin_again_once(&mut self, failure: Failure) {
        if self.run.is_untouched() && !self.work.crashed {
            self.work.crashed = true;
            super::renew_workers(&self.of.runs);
            if let Ok(worker) = super::take_worker(&self.of.runs, GRACE).await {
                let (rules, tools) = run::rules(&self.of.plan);
                let before = std::mem::replace(&mut self.run, Run::new(rules, tools, self.of.plan.start));
                self.observer = Observer::new(Arc::clone(&self.of.plan));
                // What was allowed was recorded, and is used by its number.
                let grants = before.into_grants().split_off(self.of.plan.grants.len());
                self.begin(Some(worker), History { grants, ..History::default() });
                return;
            }
        }
        self.failed = Some(failure);
    }

    async fn act(&mut self, action: Action<Ending>, now: i64) -> Next {
        match action {
            Action::Record(record) => self.record(&record, now),
            Action::Promise { call } => {
                self.journal.push(Record::Sending { call, at: now }.entry(now));
                self.journal.promise(call, self.of.runs.settings.config().runs.durable);
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
            Action::Park { wake_at, asking } => return self.park(wake_at, &asking).await,
            Action::Finish(over) => return self.finish(over, now).await,
            Action::Diverged(divergence) => {
                self.work.kill();
                let failure = Failure::new(
                    "DIVERGED",
                    format!("the program does not do what was recorded: {divergence}"),
                )
                .hint(self.what_was_sent());
                let over = Over { ending: Ending::Failed(failure), in_doubt: Vec::new() };
                return self.finish(over, now).await;
            }
        }
        Next::On
    }

    fn record(&mut self, record: &Record, now: i64) {
        match record {
            Record::Delivered { at, what } => {
                self.approvals.keep(&self.of.plan, what);
                self.observer.delivered(what, *at);
                if let (Some(dag), Some(_)) = (&mut self.work.dag, self.deadlines.grace) {
                    // Nothing comes of it any more but that it is known.
                    dag.deliver(*at, what);
                }
                self.tell_progress();
            }
            Record::Issued { issued, .. } => {
                if self.work.dag.is_some() {
                    self.observer.note(issued, now);
                }
                self.tell_progress();
            }
            Record::Sending { .. }
            | Record::Again { .. }
            | Record::Granted { .. }
            | Record::Allowed { .. } => {}
        }
        self.journal.push(record.entry(now));
        if let Record::Delivered { what: Delivered::Pause, .. } = record {
            // In one commit: a pause that is recorded is no longer asked for.
            let taken = Change { pause_taken: true, at: now, ..Change::default() };
            self.journal.change(taken, Urgency::Soon);
        }
    }

    fn deliver(&mut self, at: i64, what: &Delivered) {
        if let Delivered::Layer { replan: Some(replan), .. } = what {
            self.of.plan = Arc::new(self.of.plan.replanned(replan));
            self.run.extend(run::rules(&self.of.plan).1);
            self.observer.replanned(Arc::clone(&self.of.plan));
        }
        if let Some(dag) = &mut self.work.dag {
            dag.deliver(at, what);
            self.listen_to_dag();
            self.withdraw_moot_question();
            return;
        }
        if self.run.is_replaying() {
            self.observer.will_be_delivered(what.clone(), at);
        }
        self.work.deliver_to_worker(at, what);
    }

    fn send(&mut self, issued: Issued) {
        let timeout = self.work.dag.as_ref().and_then(|dag| dag.timeout(issued.call));
        let call = Permitted {
            grant: self.run.grant(&issued),
            timeout,
            caller: &self.client.caller,
            witness: self.ticket.as_ref().map(|ticket| ticket.witness.clone()),
            issued,
        };
        self.calls.send(&self.of, call);
    }

    fn what_was_sent(&self) -> &'static str {
        match self.recorded_at.is_empty() {
            true => "nothing was sent; run it anew",
            false => "nothing more was sent; see with `pml runs show` what was before you run it anew",
        }
    }

    fn tell(&mut self, seen: &Seen) {
        match Audible::of(seen) {
            Some(Audible::Print(level, text)) => self.client.print(level, text),
            Some(Audible::Progress) => self.tell_progress(),
            None => {}
        }
    }

    /// Tells whoever waits how far the run has come, now and then.
    fn tell_progress(&mut self) {
        if self.client.progress(&self.of.plan, self.observer.progress()) {
            self.tell_status();
        }
    }

    /// Tells whoever waits in this process how the run stands: what it asks comes before how far it is.
    fn tell_status(&self) {
        self.client.set_status(match self.approvals.open() {
            Some(question) => {
                Standing::Waiting { question: Some(question), wake_at: None, in_flight: self.run.in_flight() }
            }
            None => Standing::Running(self.observer.progress().clone()),
        });
    }
}

enum Heard {
    Event(Event<Ending>),
    /// The worker ended by itself.
    Crashed(Failure),
    /// Calls have waited for a person's approval for long enough, though others are under way.
    AskNow,
    /// It is time to look for an answer.
    PollAnswer,
    /// It is time to look whether somebody wants the run to wait.
    PollPause,
    /// Another process has the run.
    Lost,
}

fn stop(ending: Ending) -> Option<Heard> {
    Some(Heard::Event(Event::Stop(ending)))
}

fn acked(ack: Ack) -> Option<Heard> {
    match ack {
        Ack::Stored(call) => Some(Heard::Event(Event::Stored { call })),
        Ack::Failed(pml_store::Error::Fenced { .. }) => Some(Heard::Lost),
        Ack::Failed(error) => stop(Ending::Failed(storage(&error))),
    }
}

/// When the run is out of time: what it used before counts, as far as its journal tells, and sleeping without a worker
/// does not.
fn deadline(plan: &Plan, history: &History) -> Instant {
    let used = history.active_ms(plan.start, plan.limits.park_after_ms);
    Instant::now() + Duration::from_millis(plan.limits.wall_ms.saturating_sub(used))
}
