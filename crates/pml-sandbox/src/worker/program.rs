//! Runs one program with its nested programs, turn by turn.

use std::rc::Rc;

use rquickjs::Ctx;

use super::errors::Rejections;
use super::frames::{self, Realms};
use super::heap::HeapMeter;
use super::out::EventWriter;
use super::realm::{Realm, RealmProgram};
use super::run::SandboxRun;
use super::{calls, timers};
use crate::message::{Delivery, DeliveryPayload, ProgramEnding, SandboxProgram, WorkerEvent};

/// A program that is about to begin, or has begun.
pub(super) struct RunningProgram<'js> {
    run: Rc<SandboxRun<'js>>,
    realms: Realms<'js>,
    taken: u32,
}

impl<'js> RunningProgram<'js> {
    pub(super) fn new(
        ctx: &Ctx<'js>,
        out: &Rc<EventWriter>,
        heap: &Rc<HeapMeter>,
        rejections: &Rc<Rejections>,
    ) -> rquickjs::Result<RunningProgram<'js>> {
        let run = Rc::new(SandboxRun::new(out, heap, rejections));
        let first = Realm::new(ctx, &run, 0, 0)?;
        first.warm_up()?;
        assert!(run.probes.set(Rc::clone(&first.state.probes)).is_ok(), "there is one first realm");
        Ok(RunningProgram { run, realms: Realms::new(first), taken: 0 })
    }

    pub(super) fn begin(&mut self, program: &SandboxProgram) -> rquickjs::Result<()> {
        self.run.begin(program);
        if let Err(thrown) = self.realms.first.begin(&RealmProgram::of_program(program))? {
            match self.run.end_run(ProgramEnding::Thrown(thrown))? {}
        }
        self.settle()
    }

    pub(super) fn deliver(&mut self, delivery: Delivery) -> rquickjs::Result<()> {
        self.taken += 1;
        self.run.now_ms.set(delivery.now_ms);
        match delivery.what {
            DeliveryPayload::Result { call, json } => calls::resolve_call(&self.run, call, json)?,
            DeliveryPayload::Error { call, error } => calls::reject_call(&self.run, call, error)?,
            DeliveryPayload::Timer { timer } => timers::fire_timer(&self.run, timer)?,
        }
        self.settle()
    }

    /// Runs until no job is left, then sends the events of the turn.
    fn settle(&self) -> rquickjs::Result<()> {
        loop {
            self.run.call_site.take();
            while self.realms.first.ctx.execute_pending_job() {
                // A call follows its probe in the same job or not at all, so a leftover call site is stale.
                self.run.call_site.take();
            }
            let over = !self.realms.first.is_pending();
            if over
                || !(frames::begin_waiting_frames(&self.realms)? || frames::end_settled_frames(&self.realms)?)
            {
                break;
            }
        }
        let (calls, timers) = (self.run.calls.open_count(), self.run.timers.set_count());
        let waits = calls > 0 || timers > 0 || self.run.frames.has_open();
        if !(self.realms.first.is_pending() && waits) {
            match self.run.end_run(self.realms.first.ending()?)? {}
        }
        self.run.send_turn_events()?;
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        self.run.out.send_event(WorkerEvent::Quiet {
            taken: self.taken,
            calls: count(calls),
            timers: count(timers),
        });
        Ok(())
    }
}
