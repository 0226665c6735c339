//! The run core: a pure transition function that decides what happens next in a run.
//!
//! [`RunCore::on`] takes an event and returns actions; it waits for nothing, reads no clock and sends nothing. It does
//! not know where calls come from (a program in a worker, the tasks of a DAG) or how a call is made. A resumed run
//! starts with its journal: recorded deliveries are made again, the calls that the program then issues are compared
//! with the recorded ones, and nothing is sent before both agree to the end.

mod event;
mod replay;
mod send_queue;

use std::collections::BTreeMap;

use super::delivery::RunDelivery;
use super::issued_call::IssuedCall;
use super::journal::JournalRecord;
use super::program_clock::ProgramClock;
use crate::plan::{Grant, Plan, PlannedTool};
pub(super) use event::{Action, Divergence, RunEnd, RunEvent};
use replay::ReplayState;
use send_queue::SendQueue;

/// The concurrency limits of a run, and when it is parked.
#[derive(Debug, Clone, Copy)]
pub(super) struct CoreLimits {
    /// The number of concurrent calls.
    pub(super) concurrent: usize,
    /// The number of concurrent calls to one server.
    pub(super) concurrent_per_server: usize,
    /// Milliseconds: a run that only waits for timers further away than this is parked and releases its worker.
    pub(super) park_after_ms: i64,
}

/// What the run core knows about a tool handle.
#[derive(Debug, Clone)]
pub(super) struct CoreTool {
    /// The tool, as `server:tool`.
    pub(super) tool: String,
    /// The server: the part of `tool` before the colon.
    pub(super) server: String,
    /// Whether the tool is idempotent.
    pub(super) idempotent: bool,
    /// Whether its calls need approval.
    pub(super) asks: bool,
}

/// The parts of a plan that the run core needs.
pub(super) fn core_setup(plan: &Plan) -> (CoreLimits, Vec<CoreTool>) {
    let rules = CoreLimits {
        concurrent: plan.limits.concurrent,
        concurrent_per_server: plan.limits.concurrent_per_server,
        park_after_ms: i64::try_from(plan.limits.park_after_ms).unwrap_or(i64::MAX),
    };
    let rule = |granted: &PlannedTool| CoreTool {
        tool: granted.id.to_string(),
        server: granted.id.server.to_string(),
        idempotent: granted.idempotent,
        asks: granted.asks.is_some(),
    };
    (rules, plan.tools.iter().map(rule).collect())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallStage {
    /// Waits for approval.
    Asking,
    /// Waits for its turn within the concurrency limits.
    Waiting,
    /// Waits until the journal entry that announces the sending is on disk.
    Promised,
    /// Sent; its end is awaited.
    Sent,
    /// Not sent: its server needs a sign-in first.
    Unsigned,
}

#[derive(Debug)]
struct OpenCall {
    issued: IssuedCall,
    stage: CallStage,
}

/// The state of a run.
#[derive(Debug)]
pub(super) struct RunCore<E> {
    rules: CoreLimits,
    tools: Vec<CoreTool>,
    /// The calls without an end.
    calls: BTreeMap<u32, OpenCall>,
    send_queue: SendQueue,
    /// The grants, each with the number of calls it may still be used for.
    grants: Vec<(Grant, u32)>,
    /// When each set timer is due.
    timers: BTreeMap<u64, i64>,
    /// The number of the last call that was issued.
    issued: u32,
    clock: ProgramClock,
    replay: Option<ReplayState>,
    paused: bool,
    /// Until then the run is not parked, because a client waits here for something that is not in the journal.
    awake_until: Option<i64>,
    ending: Option<E>,
    closed: bool,
}

impl<E> RunCore<E> {
    /// A new run that starts at `start`.
    pub(super) fn new(rules: CoreLimits, tools: Vec<CoreTool>, start: i64) -> RunCore<E> {
        RunCore {
            rules,
            tools,
            calls: BTreeMap::new(),
            send_queue: SendQueue::default(),
            grants: Vec::new(),
            timers: BTreeMap::new(),
            issued: 0,
            clock: ProgramClock::new(start),
            replay: None,
            paused: false,
            awake_until: None,
            ending: None,
            closed: false,
        }
    }

    /// Voids the first `first` grants: they belong to a plan that a replan replaced.
    pub(super) fn void_grants(&mut self, first: usize) {
        self.grants.iter_mut().take(first).for_each(|(_, left)| *left = 0);
    }

    /// Whether the program has issued nothing and received nothing.
    pub(super) fn is_untouched(&self) -> bool {
        self.issued == 0 && self.clock.delivered() == 0 && self.timers.is_empty()
    }

    /// Processes an event that happened at `now` and returns the actions to carry out.
    pub(super) fn on(&mut self, event: RunEvent<E>, now: i64) -> Vec<Action<E>> {
        let mut actions = Vec::new();
        match event {
            RunEvent::Issued(issued) => self.on_issued(issued, now, &mut actions),
            RunEvent::TimerSet { timer, delay_ms, from } => {
                self.on_timer(timer, (delay_ms, from), now, &mut actions);
            }
            RunEvent::Paused => self.paused = true,
            RunEvent::PauseRequested => self.on_pause(now, &mut actions),
            RunEvent::FrameOver(what) => self.on_frame_over(what, now, &mut actions),
            RunEvent::TimerCleared { timer } => {
                self.timers.remove(&timer);
            }
            RunEvent::Quiet { taken } => self.on_quiet(taken, now, &mut actions),
            RunEvent::Stored { call } => self.on_stored(call, &mut actions),
            RunEvent::Answered(what) => self.on_answered(what, now, &mut actions),
            RunEvent::NeedsSignIn { what } => self.on_needs_sign_in(what, now, &mut actions),
            RunEvent::TimerDue { timer } => {
                if self.ending.is_none() && self.timers.remove(&timer).is_some() {
                    actions.push(Action::Record(JournalRecord::Delivered {
                        at: now,
                        what: RunDelivery::Timer { timer },
                    }));
                    actions.push(self.deliver(now, RunDelivery::Timer { timer }));
                }
            }
            RunEvent::Granted(grant) => self.on_granted(grant, now, &mut actions),
            RunEvent::Undecided => self.park_if_idle(now, &mut actions),
            RunEvent::Ended(ending) => match self.missing() {
                Some(divergence) => actions.push(Action::Diverged(divergence)),
                None => self.end(ending, false, now, &mut actions),
            },
            RunEvent::Stop(ending) => self.end(ending, true, now, &mut actions),
            RunEvent::GraceOver => self.give_up(&mut actions),
        }
        actions
    }

    fn on_issued(&mut self, issued: IssuedCall, now: i64, actions: &mut Vec<Action<E>>) {
        self.issued = issued.call;
        if self.ending.is_some() {
            return;
        }
        match &mut self.replay {
            Some(replay) => {
                let tool = &self.tools[issued.handle as usize].tool;
                actions.extend(replay.compare(issued, tool).map(Action::Diverged));
            }
            None => self.take_on(issued, now, actions),
        }
    }

    /// Takes on a new call: it is recorded, and sent when its turn comes.
    fn take_on(&mut self, issued: IssuedCall, now: i64, actions: &mut Vec<Action<E>>) {
        self.record(&issued, actions);
        self.queue(issued, now, actions);
        self.pump(actions);
    }

    fn record(&self, issued: &IssuedCall, actions: &mut Vec<Action<E>>) {
        let tool = self.tools[issued.handle as usize].tool.clone();
        actions.push(Action::Record(JournalRecord::Issued { tool, issued: issued.clone() }));
    }

    /// Queues a call, or has it wait for approval first.
    fn queue(&mut self, mut issued: IssuedCall, now: i64, actions: &mut Vec<Action<E>>) {
        let number = issued.call;
        if self.tools[issued.handle as usize].asks && issued.grant.is_none() {
            issued.grant = self.use_grant(&issued, now, actions);
        }
        let stage = match issued.grant {
            None if self.tools[issued.handle as usize].asks => {
                actions.push(Action::Ask { call: number });
                CallStage::Asking
            }
            Some(_) | None => {
                self.line_up(&issued);
                CallStage::Waiting
            }
        };
        self.calls.insert(number, OpenCall { issued, stage });
    }

    fn line_up(&mut self, issued: &IssuedCall) {
        self.send_queue.push(&self.tools[issued.handle as usize].server, issued.call);
    }

    /// Uses up one call of a grant that covers this one.
    fn use_grant(&mut self, issued: &IssuedCall, now: i64, actions: &mut Vec<Action<E>>) -> Option<u32> {
        let tool = &self.tools[issued.handle as usize].tool;
        let allows = |(grant, left): &(Grant, u32)| {
            *left > 0 && grant.allows(tool, (issued.call, issued.value_digest.as_ref()), now)
        };
        let index = self.grants.iter().position(allows)?;
        self.grants[index].1 -= 1;
        let grant = u32::try_from(index).ok()?;
        actions.push(Action::Record(JournalRecord::Allowed { call: issued.call, grant, at: now }));
        Some(grant)
    }

    fn on_granted(&mut self, grant: Grant, now: i64, actions: &mut Vec<Action<E>>) {
        if self.ending.is_some() {
            return;
        }
        actions.push(Action::Record(JournalRecord::Granted { grant: grant.clone(), at: now }));
        let left = grant.calls;
        self.grants.push((grant, left));
        for number in self.calls_awaiting_approval() {
            let Some(issued) = self.calls.get(&number).map(|call| call.issued.clone()) else { continue };
            if let Some(grant) = self.use_grant(&issued, now, actions) {
                let issued = IssuedCall { grant: Some(grant), ..issued };
                self.line_up(&issued);
                self.calls.insert(number, OpenCall { issued, stage: CallStage::Waiting });
            }
        }
        self.pump(actions);
    }

    /// The calls that wait for approval.
    pub(super) fn calls_awaiting_approval(&self) -> Vec<u32> {
        self.calls_at(CallStage::Asking)
    }

    fn calls_at(&self, stage: CallStage) -> Vec<u32> {
        self.calls.iter().filter(|(_, call)| call.stage == stage).map(|(number, _)| *number).collect()
    }

    /// The number of calls under way.
    pub(super) fn in_flight(&self) -> usize {
        let waits = |call: &&OpenCall| matches!(call.stage, CallStage::Asking | CallStage::Unsigned);
        self.calls.len() - self.calls.values().filter(waits).count()
    }

    /// All calls without an end, also those that wait for approval.
    pub(super) fn open_calls(&self) -> impl Iterator<Item = &IssuedCall> {
        self.calls.values().map(|call| &call.issued)
    }

    /// Whether a program that took so many deliveries waits for something from outside, and not only because it is being
    /// replayed, ends or sleeps.
    pub(super) fn is_settled(&self, taken: u32) -> bool {
        taken == self.clock.delivered()
            && self.replay.is_none()
            && self.ending.is_none()
            && self.timers.is_empty()
    }

    /// The issued call with that number, while it has no end.
    pub(super) fn issued(&self, call: u32) -> Option<&IssuedCall> {
        self.calls.get(&call).map(|call| &call.issued)
    }

    /// The grant that allows a call.
    pub(super) fn grant(&self, issued: &IssuedCall) -> Option<&Grant> {
        self.grants.get(issued.grant? as usize).map(|(grant, _)| grant)
    }

    /// Whether any grant was given.
    pub(super) fn was_allowed(&self) -> bool {
        !self.grants.is_empty()
    }

    /// All grants, used up or not, in their order.
    pub(super) fn into_grants(self) -> Vec<Grant> {
        self.grants.into_iter().map(|(grant, _)| grant).collect()
    }

    /// Sends the calls whose turn has come.
    fn pump(&mut self, actions: &mut Vec<Action<E>>) {
        while let Some(number) = self.send_queue.next(&self.rules, |number| self.calls.contains_key(&number))
        {
            let Some(call) = self.calls.get_mut(&number) else { return };
            // An idempotent call can be repeated after a crash, so it is sent at once. Any other call is announced in
            // the journal first, so that after a crash it is known to be in doubt.
            if self.tools[call.issued.handle as usize].idempotent {
                call.stage = CallStage::Sent;
                actions.push(Action::Send(call.issued.clone()));
            } else {
                call.stage = CallStage::Promised;
                actions.push(Action::Promise { call: number });
            }
        }
    }

    fn on_stored(&mut self, number: u32, actions: &mut Vec<Action<E>>) {
        if self.ending.is_some() {
            return;
        }
        if let Some(call) = self.calls.get_mut(&number)
            && call.stage == CallStage::Promised
        {
            call.stage = CallStage::Sent;
            actions.push(Action::Send(call.issued.clone()));
        }
    }

    fn on_answered(&mut self, what: RunDelivery, now: i64, actions: &mut Vec<Action<E>>) {
        let (RunDelivery::Result { call: number, .. } | RunDelivery::Error { call: number, .. }) = &what
        else {
            return;
        };
        if self.forget(*number).is_none() {
            return;
        }
        actions.push(Action::Record(JournalRecord::Delivered { at: now, what: what.clone() }));
        if self.ending.is_some() {
            self.finish_if_done(actions);
            return;
        }
        actions.push(self.deliver(now, what));
        self.pump(actions);
    }

    /// Has a call that was not sent wait for a sign-in. Whatever else goes on meanwhile goes on; then the run is parked.
    fn on_needs_sign_in(&mut self, what: RunDelivery, now: i64, actions: &mut Vec<Action<E>>) {
        let Some(number) = what.call() else { return };
        let Some(call) = self.calls.get_mut(&number) else { return };
        if self.ending.is_some() || call.stage != CallStage::Sent {
            return self.on_answered(what, now, actions);
        }
        call.stage = CallStage::Unsigned;
        let tool = &self.tools[call.issued.handle as usize];
        self.send_queue.release(&tool.server);
        if !tool.idempotent {
            // It was announced and not sent: without this record it would be in doubt.
            actions.push(Action::Record(JournalRecord::Resend { call: number, at: now }));
        }
        self.pump(actions);
        self.park_if_idle(now, actions);
    }

    /// Handles the end of a frame: its queued calls are dropped, its idempotent calls are cancelled, and its other sent
    /// calls are awaited, although nothing needs their results, so that they do not stay in doubt.
    fn on_frame_over(&mut self, what: RunDelivery, now: i64, actions: &mut Vec<Action<E>>) {
        let RunDelivery::Frame { frame, .. } = what else { return };
        if self.ending.is_some() {
            return;
        }
        if let Some(replay) = &mut self.replay {
            replay.over.push(what);
            return;
        }
        // The upper 32 bits of a timer's number are its frame.
        self.timers.retain(|timer, _| timer >> 32 != u64::from(frame));
        actions.push(Action::Record(JournalRecord::Delivered { at: now, what: what.clone() }));
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
                CallStage::Sent if !idempotent => continue,
                CallStage::Sent => actions.push(Action::Cancel { call: number }),
                // Its announcement may be on disk, but it was never sent: without this record it would be in doubt.
                CallStage::Promised => {
                    actions.push(Action::Record(JournalRecord::Resend { call: number, at: now }));
                }
                CallStage::Asking | CallStage::Waiting | CallStage::Unsigned => {}
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
            replay.over.push(RunDelivery::Pause);
            return;
        }
        actions.push(Action::Record(JournalRecord::Delivered { at: now, what: RunDelivery::Pause }));
        actions.push(self.deliver(now, RunDelivery::Pause));
    }

    /// Removes a call that is no longer awaited.
    fn forget(&mut self, number: u32) -> Option<OpenCall> {
        let call = self.calls.remove(&number)?;
        if let CallStage::Promised | CallStage::Sent = call.stage {
            self.send_queue.release(&self.tools[call.issued.handle as usize].server);
        }
        Some(call)
    }

    /// Keeps the run from being parked until `until`.
    pub(super) fn stay_awake(&mut self, until: Option<i64>) {
        self.awake_until = until;
    }

    /// Replaces the tools after a replan added some.
    pub(super) fn set_tools(&mut self, tools: Vec<CoreTool>) {
        self.tools = tools;
    }

    fn deliver(&mut self, at: i64, what: RunDelivery) -> Action<E> {
        self.paused &= !matches!(what, RunDelivery::Layer { .. });
        self.clock.on_delivery(at);
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
        // Timers count from the program's own clock, so that a resumed run wakes at the intended time. No timer takes
        // longer than its delay, even if the system clock was set back meanwhile.
        let at = from
            .unwrap_or(self.clock.now())
            .min(now)
            .saturating_add(i64::try_from(delay_ms).unwrap_or(i64::MAX));
        self.timers.insert(timer, at);
        actions.push(Action::Wake { timer, at });
    }

    fn on_quiet(&mut self, taken: u32, now: i64, actions: &mut Vec<Action<E>>) {
        self.clock.on_quiet(taken);
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
        // First find out whether the issued calls need approval.
        if !actions.iter().any(|action| matches!(action, Action::Ask { .. })) {
            self.park_if_idle(now, actions);
        }
    }

    /// Parks the run if nothing is left to do before an answer or a distant timer.
    fn park_if_idle(&mut self, now: i64, actions: &mut Vec<Action<E>>) {
        // This runs after every delivery, so it must not iterate over all calls.
        if self.send_queue.is_busy() {
            return;
        }
        let (asking, unsigned) = (self.calls_awaiting_approval(), self.calls_at(CallStage::Unsigned));
        let idle = self.replay.is_none()
            && !self.closed
            && self.ending.is_none()
            && self.calls.len() == asking.len() + unsigned.len()
            && self.clock.is_quiet();
        let wake_at = self.timers.values().min().copied();
        let far = wake_at.is_none_or(|next| next > now.saturating_add(self.rules.park_after_ms));
        let awake = self.awake_until.is_some_and(|until| wake_at.is_none_or(|wake| until <= wake));
        let waits = wake_at.is_some() || !asking.is_empty() || !unsigned.is_empty() || self.paused;
        if idle && far && !awake && waits {
            actions.push(Action::Kill);
            actions.push(Action::Park { wake_at, asking, unsigned });
            self.closed = true;
        }
    }

    fn end(&mut self, ending: E, kill: bool, now: i64, actions: &mut Vec<Action<E>>) {
        if self.ending.is_some() || self.closed {
            return;
        }
        self.ending = Some(ending);
        self.timers.clear();
        self.send_queue.clear();
        if kill {
            actions.push(Action::Kill);
        }
        let (tools, mut cancelled, mut unkept) = (&self.tools, Vec::new(), Vec::new());
        self.calls.retain(|number, call| {
            let keep = call.stage == CallStage::Sent && !tools[call.issued.handle as usize].idempotent;
            match call.stage {
                CallStage::Sent if !keep => cancelled.push(*number),
                // The announcement may be on disk, but the call was never sent.
                CallStage::Promised => unkept.push(*number),
                CallStage::Sent | CallStage::Waiting | CallStage::Asking | CallStage::Unsigned => {}
            }
            keep
        });
        actions
            .extend(unkept.into_iter().map(|call| Action::Record(JournalRecord::Resend { call, at: now })));
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
            actions.push(Action::Finish(RunEnd { ending, in_doubt: Vec::new() }));
        }
    }

    fn give_up(&mut self, actions: &mut Vec<Action<E>>) {
        let Some(ending) = self.ending.take() else { return };
        let in_doubt: Vec<u32> = self.calls.keys().copied().collect();
        actions.extend(in_doubt.iter().map(|call| Action::Cancel { call: *call }));
        self.calls.clear();
        self.closed = true;
        actions.push(Action::Finish(RunEnd { ending, in_doubt }));
    }
}

#[cfg(test)]
mod tests;
