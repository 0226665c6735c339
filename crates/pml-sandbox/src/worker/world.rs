//! What the functions of one realm share, and what the prelude keeps for us.
//!
//! The program has a realm, and so has every frame: each call of another program. What they share, which no program
//! can reach, is the [`Run`].

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use rquickjs::{Ctx, Function, Object, Value};

use super::errors::{self, Teller};
use super::json::{Look, Problem, Size};
use super::preview::Previewer;
use super::run::Run;
use crate::message::{Event, Level, Reached};

/// One realm's world.
pub(super) struct World<'js> {
    pub(super) run: Rc<Run<'js>>,
    /// The number of its frame; the program itself is 0.
    pub(super) frame: u32,
    /// How many programs are around it.
    pub(super) depth: u32,
    reached: RefCell<Vec<Reached>>,
    /// Operations that have begun, each within the one before. What threw stays until the turn is over.
    operations: RefCell<Vec<Began>>,
    /// Its program has ended: what is left of it has no effect.
    over: Cell<bool>,
    /// Given up when it is over, for it holds the realm that holds this.
    kept: RefCell<Option<Rc<Kept<'js>>>>,
}

/// An operation that has begun.
struct Began {
    point: u32,
    context: u32,
    at: Instant,
}

/// What the prelude gives back.
pub(super) struct Kept<'js> {
    pub(super) look: Look<'js>,
    previewer: Previewer<'js>,
    pub(super) teller: Teller<'js>,
    pub(super) tool_error: Function<'js>,
    pub(super) capability_error: Function<'js>,
    pub(super) type_error: Function<'js>,
    pub(super) range_error: Function<'js>,
    drain: Function<'js>,
}

impl<'js> Kept<'js> {
    pub(super) fn new(ctx: &Ctx<'js>, kept: &Object<'js>) -> rquickjs::Result<Kept<'js>> {
        Ok(Kept {
            look: Look::new(ctx, kept)?,
            previewer: Previewer::new(kept)?,
            teller: Teller::new(kept)?,
            tool_error: kept.get("toolError")?,
            capability_error: kept.get("capabilityError")?,
            type_error: kept.get("typeError")?,
            range_error: kept.get("rangeError")?,
            drain: kept.get("drain")?,
        })
    }
}

impl<'js> World<'js> {
    pub(super) fn new(run: &Rc<Run<'js>>, frame: u32, depth: u32) -> World<'js> {
        World {
            run: Rc::clone(run),
            frame,
            depth,
            reached: RefCell::default(),
            operations: RefCell::default(),
            over: Cell::new(false),
            kept: RefCell::default(),
        }
    }

    pub(super) fn keep(&self, kept: Kept<'js>) {
        self.kept.replace(Some(Rc::new(kept)));
    }

    pub(super) fn kept(&self) -> Rc<Kept<'js>> {
        Rc::clone(self.kept.borrow().as_ref().expect("nothing asks in a realm without its prelude"))
    }

    /// Nothing in it has an effect any more.
    pub(super) fn close(&self) {
        self.over.set(true);
        self.kept.take();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// `value` as JSON. Meanwhile members of it may be code, which may not call tools.
    pub(super) fn json(&self, value: Value<'js>, size: Size) -> Result<Option<String>, Problem> {
        let _reading = self.run.reading();
        self.kept().look.json(value, size)
    }

    /// The name of the kind of object `value` is.
    pub(super) fn kind(&self, value: &Value<'js>) -> String {
        match self.is_over() {
            true => String::new(),
            false => self.kept().look.name(value).to_owned(),
        }
    }

    /// How many bytes the console takes yet; none when it was cut, or nobody listens.
    pub(super) fn console_left(&self) -> Option<usize> {
        self.run.console_left().filter(|_| !self.is_over())
    }

    /// Writes to the console what still has room.
    pub(super) fn console(&self, level: Level, text: String) {
        if !self.is_over() {
            self.run.console(self.frame, level, text);
        }
    }

    pub(super) fn reached(&self, reached: Reached) {
        self.reached.borrow_mut().push(reached);
    }

    /// An operation begins: all that it works on has been evaluated.
    pub(super) fn operation_began(&self, point: u32, context: u32) {
        if !self.is_over() && self.run.tells_operation() {
            self.operations.borrow_mut().push(Began { point, context, at: Instant::now() });
        }
    }

    /// An operation that has begun gave `value`.
    pub(super) fn operation_gave(&self, point: u32, context: u32, value: &Value<'js>) {
        let now = Instant::now();
        let mut operations = self.operations.borrow_mut();
        let is_it = |began: &Began| (began.point, began.context) == (point, context);
        let Some(place) = operations.iter().rposition(is_it) else { return };
        let took = now.saturating_duration_since(operations[place].at);
        // Those that began within it have ended, or thrown.
        operations.truncate(place);
        drop(operations);
        if self.is_over() || !self.run.tells_operation() {
            return;
        }
        let kept = self.kept();
        let gave = self.run.with_names(|names| kept.previewer.preview(&kept.look, value, names));
        self.run.operation(Event::Operation { frame: self.frame, point, context, took, gave });
    }

    /// Takes note of an exception that nothing in the program can catch.
    pub(super) fn uncaught(&self, ctx: &Ctx<'js>, reason: Value<'js>) {
        errors::uncaught(&self.run.rejections, ctx, reason);
    }

    /// Tells what probes saw.
    pub(super) fn tell_reached(&self) -> rquickjs::Result<()> {
        self.operations.borrow_mut().clear();
        self.kept().drain.call::<_, ()>(())?;
        let places = self.reached.take();
        if !places.is_empty() {
            self.run.out.say(Event::Reached { frame: self.frame, places });
        }
        Ok(())
    }
}
