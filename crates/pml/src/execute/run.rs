//! What happens next in a run: a pure transition function.
//!
//! [`Run::on`] takes an event and says what is to be done; it waits for nothing, reads no clock and sends
//! nothing. Where the calls come from (a program in a worker, the tasks of a DAG) is not its business, nor is how a
//! call is made. A run that is resumed starts with its journal: what was delivered is delivered again, what the program
//! then asks for is compared with what it asked for, and nothing is sent before both agree to the end.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use pml_model::Digest;

use super::journal::{Delivered, LoggedCall, Record};
use crate::approve::question::value_digest;
use crate::plan::{Grant, Granted, Plan};

/// What a run may do at once, and when it is put aside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Calls at one time.
    pub(super) concurrent: usize,
    /// Calls at one time to one server.
    pub(super) concurrent_per_server: usize,
    /// A run that only waits for timers further away than this gives its worker back.
    pub(super) park_after_ms: i64,
}

/// What a tool's handle means to the run.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// `server:tool`.
    pub(super) tool: String,
    /// The part before the colon.
    pub(super) server: String,
    /// Calling it twice is calling it once.
    pub(super) idempotent: bool,
    /// A person has to allow its calls.
    pub(super) asks: bool,
}

/// What the run core has to know of a plan.
pub(super) fn rules(plan: &Plan) -> (Rules, Vec<Rule>) {
    let rules = Rules {
        concurrent: plan.limits.concurrent,
        concurrent_per_server: plan.limits.concurrent_per_server,
        park_after_ms: i64::try_from(plan.limits.park_after_ms).unwrap_or(i64::MAX),
    };
    let rule = |granted: &Granted| Rule {
        tool: granted.id.to_string(),
        server: granted.id.server.to_string(),
        idempotent: granted.idempotent,
        asks: granted.asks.is_some(),
    };
    (rules, plan.tools.iter().map(rule).collect())
}

/// A call the program asked for.
#[derive(Debug, Clone)]
pub(super) struct Issued {
    /// Its number, in the order they were asked for, from 1.
    pub(super) call: u32,
    /// Who asks: 0 for the program of a run, else a task of a DAG.
    pub(super) frame: u32,
    /// Which tool.
    pub(super) handle: u32,
    /// The node of the structure it belongs to.
    pub(super) node: Option<String>,
    /// What it is called with: the bytes that are recorded and sent.
    pub(super) arguments: std::sync::Arc<str>,
    /// Of those bytes.
    pub(super) digest: Digest,
    /// Of the value they spell, where a person has to allow the call: what is allowed is a value, not a spelling.
    pub(super) value: Option<Digest>,
    /// By which grant it is made.
    pub(super) grant: Option<u32>,
    /// Where in the program of a task it stands.
    pub(super) within: Option<Within>,
}

/// Where in the program of a task a call stands, in the words of the worker that runs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Within {
    /// The capability that makes it; 0 is the program itself.
    pub(super) frame: u32,
    /// Its number among the calls of this worker.
    pub(super) order: u32,
    /// The place in the text.
    pub(super) point: u32,
    /// How it was come to.
    pub(super) context: u32,
}

/// Something happened.
#[derive(Debug)]
pub(super) enum Event<E> {
    /// The program asked for a call.
    Issued(Issued),
    /// The program asked to be woken; counted from its own time, where that is not the run's.
    TimerSet { timer: u64, delay_ms: u64, from: Option<i64> },
    /// It no longer does.
    TimerCleared { timer: u64 },
    /// It waits for somebody's word on how to go on.
    Paused,
    /// Somebody wants it to wait before its next layer.
    Pause,
    /// A part of it that asks for calls of its own is over, with this.
    FrameOver(Delivered),
    /// The program has taken this many deliveries and has nothing left to do.
    Quiet { taken: u32 },
    /// The program is over.
    Ended(E),
    /// That this call is about to be sent is on disk.
    Stored { call: u32 },
    /// A call has an end.
    Answered(Delivered),
    /// A timer is due.
    TimerDue { timer: u64 },
    /// A person allowed something.
    Granted(Grant),
    /// Nobody knows yet what a person says to the calls that wait for their word.
    Undecided,
    /// The program is not to go on.
    Stop(E),
    /// Calls that were still waited for have had their time.
    GraceOver,
}

/// Something is to be done, in the order given.
#[derive(Debug)]
pub(super) enum Action<E> {
    /// Keep this; with the next commit is soon enough.
    Record(Record),
    /// Keep that this call is about to be sent, and say so when it is on disk.
    Promise { call: u32 },
    /// Make this call.
    Send(Issued),
    /// Give this to the program.
    Deliver { at: i64, what: Delivered },
    /// Tell the server that nobody waits for this call any more.
    Cancel { call: u32 },
    /// Say when it is this time.
    Wake { timer: u64, at: i64 },
    /// A call waits for a person's word.
    Ask { call: u32 },
    /// Put the run aside: until then, until these calls are decided on, or whichever is first.
    Park { wake_at: Option<i64>, asking: Vec<u32> },
    /// End the program.
    Kill,
    /// Wait a little for calls whose end should be known.
    Grace,
    /// The run is over.
    Finish(Over<E>),
    /// The program is not the one that was recorded.
    Diverged(Divergence),
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct Over<E> {
    /// Why.
    pub(super) ending: E,
    /// Calls that were sent and whose end is not known, and that may have had an effect.
    pub(super) in_doubt: Vec<u32>,
}

/// Where a program does not do what was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Divergence {
    /// It makes another call.
    Other { call: u32, recorded: String, now: String },
    /// It makes the same call with other arguments.
    Arguments { call: u32, tool: String },
    /// It does not make a call that was made.
    Missing { call: u32, recorded: String },
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Divergence::Other { call, recorded, now } => {
                write!(f, "call {call} was `{recorded}` and is now `{now}`")
            }
            Divergence::Arguments { call, tool } => {
                write!(f, "call {call}, `{tool}`, is made with other arguments than were recorded")
            }
            Divergence::Missing { call, recorded } => {
                write!(f, "call {call}, `{recorded}`, is no longer made")
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for a person's word.
    Asking,
    /// It waits for its turn.
    Waiting,
    /// It waits for the journal.
    Promised,
    /// Its end is waited for.
    Sent,
}

#[derive(Debug)]
struct Call {
    issued: Issued,
    stage: Stage,
}

/// A run as it stands.
#[derive(Debug)]
pub(super) struct Run<E> {
    rules: Rules,
    tools: Vec<Rule>,
    /// Calls without an end.
    calls: BTreeMap<u32, Call>,
    /// By server, in the order they were asked for.
    waiting: BTreeMap<String, VecDeque<u32>>,
    /// What a person allowed, and how often it may still be used.
    grants: Vec<(Grant, u32)>,
    /// Calls under way, by server and in all.
    at_once: HashMap<String, usize>,
    under_way: usize,
    /// When those that are set are due.
    timers: BTreeMap<u64, i64>,
    issued: u32,
    delivered: u32,
    taken: Option<u32>,
    /// The program's time at its start and after each delivery.
    times: Vec<i64>,
    replay: Option<Replay>,
    paused: bool,
    /// Until then somebody waits here for something the journal does not hold.
    awake_until: Option<i64>,
    ending: Option<E>,
    closed: bool,
}

#[derive(Debug)]
struct Replay {
    calls: Vec<LoggedCall>,
    /// Those that were asked for again, or need not be because who asked has ended.
    seen: Vec<bool>,
    deliveries: u32,
    timers: HashSet<u64>,
    /// Calls without an end, to be made once the program stands where it stood.
    held: Vec<(Issued, bool)>,
    /// The ends of parts that came meanwhile, and whether somebody wants it to wait.
    over: Vec<Delivered>,
}

impl Issued {
    /// A call that `frame` asks for.
    pub(super) fn new(
        call: u32,
        (frame, handle): (u32, u32),
        node: Option<String>,
        arguments: &str,
        asks: bool,
    ) -> Issued {
        Issued {
            call,
            frame,
            handle,
            node,
            arguments: arguments.into(),
            digest: Digest::of(arguments.as_bytes()),
            value: asks.then(|| value_digest(arguments)).flatten(),
            grant: None,
            within: None,
        }
    }
}

impl<E> Run<E> {
    /// A run that begins at `start`.
    pub(super) fn new(rules: Rules, tools: Vec<Rule>, start: i64) -> Run<E> {
        Run {
            rules,
            tools,
            calls: BTreeMap::new(),
            waiting: BTreeMap::new(),
            grants: Vec::new(),
            at_once: HashMap::new(),
            under_way: 0,
            timers: BTreeMap::new(),
            issued: 0,
            delivered: 0,
            taken: None,
            times: vec![start],
            replay: None,
            paused: false,
            awake_until: None,
            ending: None,
            closed: false,
        }
    }

    /// Takes up what was recorded. Call it first, once.
    pub(super) fn replay(
        &mut self,
        grants: Vec<Grant>,
        calls: Vec<LoggedCall>,
        deliveries: Vec<(i64, Delivered)>,
    ) -> Vec<Action<E>> {
        self.grants = grants
            .into_iter()
            .map(|grant| {
                let left = grant.calls;
                (grant, left)
            })
            .collect();
        for used in calls.iter().filter_map(|call| call.allowed) {
            if let Some((_, left)) = self.grants.get_mut(used as usize) {
                *left = left.saturating_sub(1);
            }
        }
        if calls.is_empty() && deliveries.is_empty() {
            return Vec::new();
        }
        let timers = deliveries.iter().filter_map(|(_, what)| match what {
            Delivered::Timer { timer } => Some(*timer),
            _ => None,
        });
        let over: HashSet<u32> = deliveries
            .iter()
            .filter_map(|(_, what)| match what {
                Delivered::Frame { frame, .. } => Some(*frame),
                _ => None,
            })
            .collect();
        self.replay = Some(Replay {
            seen: calls.iter().map(|call| over.contains(&call.frame)).collect(),
            calls,
            deliveries: u32::try_from(deliveries.len()).unwrap_or(u32::MAX),
            timers: timers.collect(),
            held: Vec::new(),
            over: Vec::new(),
        });
        deliveries.into_iter().map(|(at, what)| self.deliver(at, what)).collect()
    }

    /// The first grants allow nothing any more: they were for a plan that another one has replaced.
    pub(super) fn void_grants(&mut self, first: usize) {
        self.grants.iter_mut().take(first).for_each(|(_, left)| *left = 0);
    }

    /// The program is still being brought to where it stood.
    pub(super) fn is_replaying(&self) -> bool {
        self.replay.is_some()
    }

    /// The program has asked for nothing and was given nothing.
    pub(super) fn is_untouched(&self) -> bool {
        self.issued == 0 && self.delivered == 0 && self.timers.is_empty()
    }

    /// Takes in what happened at `now` and says what is to be done.
    pub(super) fn on(&mut self, event: Event<E>, now: i64) -> Vec<Action<E>> {
        let mut actions = Vec::new();
        match event {
            Event::Issued(issued) => self.on_issued(issued, now, &mut actions),
            Event::TimerSet { timer, delay_ms, from } => {
                self.on_timer(timer, (delay_ms, from), now, &mut actions);
            }
            Event::Paused => self.paused = true,
            Event::Pause => self.on_pause(now, &mut actions),
            Event::FrameOver(what) => self.on_frame_over(what, now, &mut actions),
            Event::TimerCleared { timer } => {
                self.timers.remove(&timer);
            }
            Event::Quiet { taken } => self.on_quiet(taken, now, &mut actions),
            Event::Stored { call } => self.on_stored(call, &mut actions),
            Event::Answered(what) => self.on_answered(what, now, &mut actions),
            Event::TimerDue { timer } => {
                if self.ending.is_none() && self.timers.remove(&timer).is_some() {
                    actions.push(Action::Record(Record::Delivered {
                        at: now,
                        what: Delivered::Timer { timer },
                    }));
                    actions.push(self.deliver(now, Delivered::Timer { timer }));
                }
            }
            Event::Granted(grant) => self.on_granted(grant, now, &mut actions),
            Event::Undecided => self.park_if_idle(now, &mut actions),
            Event::Ended(ending) => match self.missing() {
                Some(divergence) => actions.push(Action::Diverged(divergence)),
                None => self.end(ending, false, now, &mut actions),
            },
            Event::Stop(ending) => self.end(ending, true, now, &mut actions),
            Event::GraceOver => self.give_up(&mut actions),
        }
        actions
    }

    fn on_issued(&mut self, mut issued: Issued, now: i64, actions: &mut Vec<Action<E>>) {
        self.issued = issued.call;
        if self.ending.is_some() {
            return;
        }
        let Some(replay) = &mut self.replay else {
            self.take_on(issued, now, actions);
            return;
        };
        let index = issued.call as usize - 1;
        let Some(logged) = replay.calls.get(index) else {
            replay.held.push((issued, false));
            return;
        };
        replay.seen[index] = true;
        let tool = &self.tools[issued.handle as usize].tool;
        if logged.tool != *tool {
            let (recorded, now) = (logged.tool.clone(), tool.clone());
            actions.push(Action::Diverged(Divergence::Other { call: issued.call, recorded, now }));
        } else if logged.digest != issued.digest {
            actions.push(Action::Diverged(Divergence::Arguments { call: issued.call, tool: tool.clone() }));
        } else if logged.ended.is_none() {
            issued.grant = logged.allowed;
            replay.held.push((issued, true));
        }
    }

    /// A new call: recorded, and made when its turn comes.
    fn take_on(&mut self, issued: Issued, now: i64, actions: &mut Vec<Action<E>>) {
        self.record(&issued, actions);
        self.queue(issued, now, actions);
        self.pump(actions);
    }

    fn record(&self, issued: &Issued, actions: &mut Vec<Action<E>>) {
        let tool = self.tools[issued.handle as usize].tool.clone();
        actions.push(Action::Record(Record::Issued { tool, issued: issued.clone() }));
    }

    /// Has a call wait for its turn, or for a person's word first.
    fn queue(&mut self, mut issued: Issued, now: i64, actions: &mut Vec<Action<E>>) {
        let number = issued.call;
        if self.tools[issued.handle as usize].asks && issued.grant.is_none() {
            issued.grant = self.use_grant(&issued, now, actions);
        }
        let stage = match issued.grant {
            None if self.tools[issued.handle as usize].asks => {
                actions.push(Action::Ask { call: number });
                Stage::Asking
            }
            Some(_) | None => {
                self.line_up(&issued);
                Stage::Waiting
            }
        };
        self.calls.insert(number, Call { issued, stage });
    }

    fn line_up(&mut self, issued: &Issued) {
        let server = &self.tools[issued.handle as usize].server;
        match self.waiting.get_mut(server) {
            Some(queue) => queue.push_back(issued.call),
            None => drop(self.waiting.insert(server.clone(), VecDeque::from([issued.call]))),
        }
    }

    /// Uses up one call of a grant that allows this one.
    fn use_grant(&mut self, issued: &Issued, now: i64, actions: &mut Vec<Action<E>>) -> Option<u32> {
        let tool = &self.tools[issued.handle as usize].tool;
        let allows = |(grant, left): &(Grant, u32)| {
            *left > 0 && grant.allows(tool, (issued.call, issued.value.as_ref()), now)
        };
        let index = self.grants.iter().position(allows)?;
        self.grants[index].1 -= 1;
        let grant = u32::try_from(index).ok()?;
        actions.push(Action::Record(Record::Allowed { call: issued.call, grant, at: now }));
        Some(grant)
    }

    fn on_granted(&mut self, grant: Grant, now: i64, actions: &mut Vec<Action<E>>) {
        if self.ending.is_some() {
            return;
        }
        actions.push(Action::Record(Record::Granted { grant: grant.clone(), at: now }));
        let left = grant.calls;
        self.grants.push((grant, left));
        for number in self.asking() {
            let Some(issued) = self.calls.get(&number).map(|call| call.issued.clone()) else { continue };
            if let Some(grant) = self.use_grant(&issued, now, actions) {
                let issued = Issued { grant: Some(grant), ..issued };
                self.line_up(&issued);
                self.calls.insert(number, Call { issued, stage: Stage::Waiting });
            }
        }
        self.pump(actions);
    }

    /// The calls that wait for a person's word.
    pub(super) fn asking(&self) -> Vec<u32> {
        let asking = self.calls.iter().filter(|(_, call)| call.stage == Stage::Asking);
        asking.map(|(number, _)| *number).collect()
    }

    /// How many calls are under way.
    pub(super) fn in_flight(&self) -> usize {
        self.calls.len() - self.asking().len()
    }

    /// What a call was asked for with.
    pub(super) fn issued(&self, call: u32) -> Option<&Issued> {
        self.calls.get(&call).map(|call| &call.issued)
    }

    /// What allows a call.
    pub(super) fn grant(&self, issued: &Issued) -> Option<&Grant> {
        self.grants.get(issued.grant? as usize).map(|(grant, _)| grant)
    }

    /// Whether anybody allowed anything.
    pub(super) fn was_allowed(&self) -> bool {
        !self.grants.is_empty()
    }

    /// Everything that was allowed, used up or not, in its order.
    pub(super) fn into_grants(self) -> Vec<Grant> {
        self.grants.into_iter().map(|(grant, _)| grant).collect()
    }

    /// Makes the calls whose turn has come: the oldest first, but none waits for a server that is not its own.
    fn pump(&mut self, actions: &mut Vec<Action<E>>) {
        while self.under_way < self.rules.concurrent {
            let free = self.waiting.iter().filter(|(server, queue)| {
                !queue.is_empty()
                    && self.at_once.get(*server).copied().unwrap_or(0) < self.rules.concurrent_per_server
            });
            let Some(server) = free.min_by_key(|(_, queue)| queue[0]).map(|(server, _)| server.clone())
            else {
                return;
            };
            let Some(number) = self.waiting.get_mut(&server).and_then(VecDeque::pop_front) else { return };
            let Some(call) = self.calls.get_mut(&number) else { continue };
            *self.at_once.entry(server).or_default() += 1;
            self.under_way += 1;
            if self.tools[call.issued.handle as usize].idempotent {
                call.stage = Stage::Sent;
                actions.push(Action::Send(call.issued.clone()));
            } else {
                call.stage = Stage::Promised;
                actions.push(Action::Promise { call: number });
            }
        }
    }

    fn on_stored(&mut self, number: u32, actions: &mut Vec<Action<E>>) {
        if self.ending.is_some() {
            return;
        }
        if let Some(call) = self.calls.get_mut(&number)
            && call.stage == Stage::Promised
        {
            call.stage = Stage::Sent;
            actions.push(Action::Send(call.issued.clone()));
        }
    }

    fn on_answered(&mut self, what: Delivered, now: i64, actions: &mut Vec<Action<E>>) {
        let (Delivered::Result { call: number, .. } | Delivered::Error { call: number, .. }) = &what else {
            return;
        };
        if self.forget(*number).is_none() {
            return;
        }
        actions.push(Action::Record(Record::Delivered { at: now, what: what.clone() }));
        if self.ending.is_some() {
            self.finish_if_done(actions);
            return;
        }
        actions.push(self.deliver(now, what));
        self.pump(actions);
    }

    /// A part of the run is over: what it asked for and is not under way is dropped, what only reads is called off, and
    /// the end of what changes things is waited for though nobody needs it.
    fn on_frame_over(&mut self, what: Delivered, now: i64, actions: &mut Vec<Action<E>>) {
        let Delivered::Frame { frame, .. } = what else { return };
        if self.ending.is_some() {
            return;
        }
        if let Some(replay) = &mut self.replay {
            replay.over.push(what);
            return;
        }
        self.timers.retain(|timer, _| timer >> 32 != u64::from(frame));
        actions.push(Action::Record(Record::Delivered { at: now, what: what.clone() }));
        let theirs: Vec<u32> = self
            .calls
            .iter()
            .filter(|(_, call)| call.issued.frame == frame)
            .map(|(number, _)| *number)
            .collect();
        for number in theirs {
            let Some(call) = self.calls.get(&number) else { continue };
            let idempotent = self.tools[call.issued.handle as usize].idempotent;
            match call.stage {
                Stage::Sent if !idempotent => continue,
                Stage::Sent => actions.push(Action::Cancel { call: number }),
                Stage::Promised => actions.push(Action::Record(Record::Again { call: number, at: now })),
                Stage::Asking | Stage::Waiting => {}
            }
            self.forget(number);
        }
        actions.push(self.deliver(now, what));
        self.pump(actions);
    }

    fn on_pause(&mut self, now: i64, actions: &mut Vec<Action<E>>) {
        if self.ending.is_some() {
            return;
        }
        if let Some(replay) = &mut self.replay {
            replay.over.push(Delivered::Pause);
            return;
        }
        actions.push(Action::Record(Record::Delivered { at: now, what: Delivered::Pause }));
        actions.push(self.deliver(now, Delivered::Pause));
    }

    /// A call is not waited for any more.
    fn forget(&mut self, number: u32) -> Option<Call> {
        let call = self.calls.remove(&number)?;
        if let Stage::Promised | Stage::Sent = call.stage {
            self.under_way -= 1;
            if let Some(at_once) = self.at_once.get_mut(&self.tools[call.issued.handle as usize].server) {
                *at_once -= 1;
            }
        }
        Some(call)
    }

    /// Until when the run is not put aside, unless it is woken earlier.
    pub(super) fn stay_awake(&mut self, until: Option<i64>) {
        self.awake_until = until;
    }

    /// More tools than there were.
    pub(super) fn extend(&mut self, tools: Vec<Rule>) {
        self.tools = tools;
    }

    fn deliver(&mut self, at: i64, what: Delivered) -> Action<E> {
        self.paused &= !matches!(what, Delivered::Layer { .. });
        self.delivered += 1;
        self.times.push(at);
        Action::Deliver { at, what }
    }

    fn on_timer(
        &mut self,
        timer: u64,
        (delay_ms, from): (u64, Option<i64>),
        now: i64,
        actions: &mut Vec<Action<E>>,
    ) {
        if self.ending.is_some() || self.replay.as_ref().is_some_and(|replay| replay.timers.contains(&timer))
        {
            return;
        }
        // Counted from the program's own time, so that a resumed run is woken when it was going to be; but no timer
        // takes longer than it was set for, also where the clock was set back meanwhile.
        let step = self.taken.map_or(0, |taken| taken as usize + 1).min(self.times.len() - 1);
        let at = from
            .unwrap_or(self.times[step])
            .min(now)
            .saturating_add(i64::try_from(delay_ms).unwrap_or(i64::MAX));
        self.timers.insert(timer, at);
        actions.push(Action::Wake { timer, at });
    }

    fn on_quiet(&mut self, taken: u32, now: i64, actions: &mut Vec<Action<E>>) {
        self.taken = Some(taken);
        if self.ending.is_some() {
            return;
        }
        if self.replay.as_ref().is_some_and(|replay| taken >= replay.deliveries) {
            if let Some(divergence) = self.missing() {
                actions.push(Action::Diverged(divergence));
                return;
            }
            if let Some(replay) = self.replay.take() {
                self.go_on_after(replay, now, actions);
            }
        }
        // Whether what is asked for needs a person is found out first.
        if !actions.iter().any(|action| matches!(action, Action::Ask { .. })) {
            self.park_if_idle(now, actions);
        }
    }

    /// Makes the calls that were left, but for those of parts that have ended by now: nobody waits for them.
    fn go_on_after(&mut self, replay: Replay, now: i64, actions: &mut Vec<Action<E>>) {
        let is_over = |issued: &Issued| {
            replay
                .over
                .iter()
                .any(|what| matches!(what, Delivered::Frame { frame, .. } if *frame == issued.frame))
        };
        for (issued, recorded) in replay.held {
            if !recorded {
                self.record(&issued, actions);
            }
            if !is_over(&issued) {
                self.queue(issued, now, actions);
            }
        }
        for what in replay.over {
            match what {
                Delivered::Pause => self.on_pause(now, actions),
                over => self.on_frame_over(over, now, actions),
            }
        }
        self.pump(actions);
    }

    /// Puts the run aside where nothing is to be done before a person's word or a timer that is far away.
    fn park_if_idle(&mut self, now: i64, actions: &mut Vec<Action<E>>) {
        // Told after every delivery, so it must not cost what going through all calls costs.
        if self.under_way > 0 {
            return;
        }
        let asking = self.asking();
        let idle = self.replay.is_none()
            && !self.closed
            && self.ending.is_none()
            && self.calls.len() == asking.len()
            && self.taken == Some(self.delivered);
        let wake_at = self.timers.values().min().copied();
        let far = wake_at.is_none_or(|next| next > now.saturating_add(self.rules.park_after_ms));
        let awake = self.awake_until.is_some_and(|until| wake_at.is_none_or(|wake| until <= wake));
        if idle && far && !awake && (wake_at.is_some() || !asking.is_empty() || self.paused) {
            actions.push(Action::Kill);
            actions.push(Action::Park { wake_at, asking });
            self.closed = true;
        }
    }

    /// A call that was recorded and that the program has not made.
    fn missing(&self) -> Option<Divergence> {
        let replay = self.replay.as_ref()?;
        let index = replay.seen.iter().position(|seen| !seen)?;
        let call = u32::try_from(index + 1).unwrap_or(u32::MAX);
        Some(Divergence::Missing { call, recorded: replay.calls[index].tool.clone() })
    }

    fn end(&mut self, ending: E, kill: bool, now: i64, actions: &mut Vec<Action<E>>) {
        if self.ending.is_some() || self.closed {
            return;
        }
        self.ending = Some(ending);
        self.timers.clear();
        self.waiting.clear();
        if kill {
            actions.push(Action::Kill);
        }
        let (tools, mut cancelled, mut unkept) = (&self.tools, Vec::new(), Vec::new());
        self.calls.retain(|number, call| {
            let keep = call.stage == Stage::Sent && !tools[call.issued.handle as usize].idempotent;
            match call.stage {
                Stage::Sent if !keep => cancelled.push(*number),
                // Its promise may be on disk, and it was not kept.
                Stage::Promised => unkept.push(*number),
                Stage::Sent | Stage::Waiting | Stage::Asking => {}
            }
            keep
        });
        actions.extend(unkept.into_iter().map(|call| Action::Record(Record::Again { call, at: now })));
        actions.extend(cancelled.into_iter().map(|call| Action::Cancel { call }));
        if !self.calls.is_empty() {
            actions.push(Action::Grace);
        }
        self.finish_if_done(actions);
    }

    fn finish_if_done(&mut self, actions: &mut Vec<Action<E>>) {
        if self.calls.is_empty()
            && let Some(ending) = self.ending.take()
        {
            self.closed = true;
            actions.push(Action::Finish(Over { ending, in_doubt: Vec::new() }));
        }
    }

    fn give_up(&mut self, actions: &mut Vec<Action<E>>) {
        let Some(ending) = self.ending.take() else { return };
        let in_doubt: Vec<u32> = self.calls.keys().copied().collect();
        actions.extend(in_doubt.iter().map(|call| Action::Cancel { call: *call }));
        self.calls.clear();
        self.closed = true;
        actions.push(Action::Finish(Over { ending, in_doubt }));
    }
}

#[cfg(test)]
mod tests;
