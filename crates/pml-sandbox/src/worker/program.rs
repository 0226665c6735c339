//! One program and all that it calls, turn by turn.

use std::rc::Rc;

use rquickjs::Ctx;

use super::errors::Rejections;
use super::heap::Heap;
use super::out::Out;
use super::realm::{Realm, Text};
use super::run::Run;
use super::{calls, frames, timers};
use crate::message::{Delivery, Ending, Event, Program, What};

/// A program that is ready to begin, or has begun.
pub(super) struct Running<'js> {
    run: Rc<Run<'js>>,
    /// The program's own realm.
    first: Realm<'js>,
    taken: u32,
}

impl<'js> Running<'js> {
    pub(super) fn new(
        ctx: &Ctx<'js>,
        out: &Rc<Out>,
        heap: &Rc<Heap>,
        rejections: &Rc<Rejections>,
    ) -> rquickjs::Result<Running<'js>> {
        let run = Rc::new(Run::new(out, heap, rejections));
        let first = Realm::new(ctx, &run, 0, 0)?;
        first.warm_up()?;
        assert!(run.first.set(Rc::clone(&first.world)).is_ok(), "there is one first realm");
        Ok(Running { run, first, taken: 0 })
    }

    pub(super) fn begin(&mut self, program: &Program) -> rquickjs::Result<()> {
        self.run.begin(program);
        if let Err(thrown) = self.first.begin(&Text::of(program))? {
            match self.run.end(Ending::Thrown(thrown))? {}
        }
        self.settle()
    }

    pub(super) fn deliver(&mut self, delivery: Delivery) -> rquickjs::Result<()> {
        self.taken += 1;
        self.run.now_ms.set(delivery.now_ms);
        match delivery.what {
            What::Result { call, json } => calls::result(&self.run, call, json)?,
            What::Error { call, error } => calls::error(&self.run, call, error)?,
            What::Timer { timer } => timers::fire(&self.run, timer)?,
        }
        self.settle()
    }

    /// Runs until nothing is left to do, and says what there is to say.
    fn settle(&self) -> rquickjs::Result<()> {
        loop {
            self.run.site.take();
            while self.first.ctx.execute_pending_job() {
                // A call that follows its probe does so in the same job, or not at all.
                self.run.site.take();
            }
            let over = !self.first.is_pending();
            if over || !(frames::begin(&self.first)? || frames::settle(&self.first)?) {
                break;
            }
        }
        let (calls, timers) = (self.run.calls.open(), self.run.timers.set());
        let waits = calls > 0 || timers > 0 || self.run.frames.any();
        if !(self.first.is_pending() && waits) {
            match self.run.end(self.first.ending()?)? {}
        }
        self.run.tell_turn()?;
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        self.run.out.say(Event::Quiet { taken: self.taken, calls: count(calls), timers: count(timers) });
        Ok(())
    }
}
