//! What the functions of one program share: its state, the way out, and what the prelude keeps for us.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use rquickjs::{Ctx, Function, Object, Value};

use super::calls::Calls;
use super::errors::{self, Rejections, Teller};
use super::json::{Look, Problem, Size};
use super::out::Out;
use super::random::Random;
use super::timers::Timers;
use crate::message::{Ending, Event, Kind, Level, Limits, Program, Reached};
use crate::wire::MOST_BYTES;

/// What a frame holds besides the text that is limited.
const FRAME_BYTES: u64 = 64 << 10;

/// One program's world.
pub(super) struct World<'js> {
    pub(super) out: Rc<Out>,
    pub(super) rejections: Rc<Rejections>,
    pub(super) calls: Calls<'js>,
    pub(super) timers: Timers<'js>,
    pub(super) random: Random,
    /// The time the program sees.
    pub(super) now_ms: Cell<i64>,
    /// Point and context the next tool call comes from.
    pub(super) site: Cell<(u32, u32)>,
    /// Values are being read for the host: no tool may be called meanwhile.
    reading: Cell<bool>,
    /// None when the console was cut.
    console_left: Cell<Option<usize>>,
    progress: RefCell<Option<Event>>,
    hint: RefCell<Option<String>>,
    reached: RefCell<Vec<Reached>>,
    limits: OnceCell<Limits>,
    kept: OnceCell<Kept<'js>>,
}

/// What the prelude gives back.
pub(super) struct Kept<'js> {
    pub(super) look: Look<'js>,
    pub(super) teller: Teller<'js>,
    pub(super) tool_error: Function<'js>,
    pub(super) type_error: Function<'js>,
    pub(super) range_error: Function<'js>,
    drain: Function<'js>,
}

impl<'js> Kept<'js> {
    pub(super) fn new(ctx: &Ctx<'js>, kept: &Object<'js>) -> rquickjs::Result<Kept<'js>> {
        Ok(Kept {
            look: Look::new(ctx, kept)?,
            teller: Teller::new(kept)?,
            tool_error: kept.get("toolError")?,
            type_error: kept.get("typeError")?,
            range_error: kept.get("rangeError")?,
            drain: kept.get("drain")?,
        })
    }
}

/// Something is being read for the host while this is held.
pub(super) struct Reading<'a>(&'a Cell<bool>);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl<'js> World<'js> {
    pub(super) fn new(out: &Rc<Out>, rejections: &Rc<Rejections>) -> World<'js> {
        World {
            out: Rc::clone(out),
            rejections: Rc::clone(rejections),
            calls: Calls::default(),
            timers: Timers::default(),
            random: Random::default(),
            now_ms: Cell::new(0),
            site: Cell::new((0, 0)),
            reading: Cell::new(false),
            console_left: Cell::new(Some(0)),
            progress: RefCell::default(),
            hint: RefCell::default(),
            reached: RefCell::default(),
            limits: OnceCell::new(),
            kept: OnceCell::new(),
        }
    }

    pub(super) fn keep(&self, kept: Kept<'js>) {
        assert!(self.kept.set(kept).is_ok(), "the prelude runs once");
    }

    pub(super) fn kept(&self) -> &Kept<'js> {
        self.kept.get().expect("the prelude ran before any program")
    }

    pub(super) fn begin(&self, program: &Program) {
        // Longer texts could not be sent.
        let most = MOST_BYTES as u64 - FRAME_BYTES;
        let mut limits = program.limits.clone();
        for bytes in [&mut limits.argument_bytes, &mut limits.result_bytes, &mut limits.console_bytes] {
            *bytes = (*bytes).min(most);
        }
        self.console_left.set(Some(bytes(limits.console_bytes)));
        self.now_ms.set(program.now_ms);
        self.random.seed(program.seed);
        assert!(self.limits.set(limits).is_ok(), "a worker runs one program");
    }

    pub(super) fn limits(&self) -> &Limits {
        self.limits.get().expect("a program has begun")
    }

    /// How large the arguments of a call may be.
    pub(super) fn argument_size(&self) -> Size {
        Size { bytes: bytes(self.limits().argument_bytes), nesting: self.limits().nesting as usize }
    }

    /// How large the value of the program may be.
    pub(super) fn result_size(&self) -> Size {
        Size { bytes: bytes(self.limits().result_bytes), nesting: self.limits().nesting as usize }
    }

    /// `value` as JSON. Meanwhile members of it may be code, which may not call tools.
    pub(super) fn json(&self, value: Value<'js>, size: Size) -> Result<Option<String>, Problem> {
        let _reading = self.reading();
        self.kept().look.json(value, size)
    }

    /// No tool can be called while the result is held.
    pub(super) fn reading(&self) -> Reading<'_> {
        self.reading.set(true);
        Reading(&self.reading)
    }

    pub(super) fn is_reading(&self) -> bool {
        self.reading.get()
    }

    /// How many bytes the console takes yet; none when it was cut.
    pub(super) fn console_left(&self) -> Option<usize> {
        self.console_left.get()
    }

    /// Writes to the console what still has room; a line costs its text and its end.
    pub(super) fn console(&self, level: Level, mut text: String) {
        let Some(left) = self.console_left.get() else { return };
        let is_cut = text.len() + 1 > left;
        if is_cut {
            errors::cut(&mut text, left.saturating_sub(1));
        }
        self.console_left.set((!is_cut).then(|| left - text.len() - 1));
        if !is_cut || !text.is_empty() {
            self.out.say(Event::Console { level, text });
        }
        if is_cut {
            self.out.say(Event::ConsoleCut);
        }
    }

    /// The last one of a turn is told: those before were never to be seen.
    pub(super) fn progress(&self, progress: Event) {
        self.progress.replace(Some(progress));
    }

    /// The last one of a turn is told.
    pub(super) fn hint(&self, json: String) {
        self.hint.replace(Some(json));
    }

    pub(super) fn reached(&self, reached: Reached) {
        self.reached.borrow_mut().push(reached);
    }

    /// Takes note of an exception that nothing in the program can catch.
    pub(super) fn uncaught(&self, ctx: &Ctx<'js>, reason: Value<'js>) {
        errors::uncaught(&self.rejections, ctx, reason);
    }

    /// Tells what is told once a turn.
    pub(super) fn tell_turn(&self) -> rquickjs::Result<()> {
        self.kept().drain.call::<_, ()>(())?;
        if let Some(progress) = self.progress.take() {
            self.out.say(progress);
        }
        if let Some(json) = self.hint.take() {
            self.out.say(Event::Hint { json });
        }
        let reached = self.reached.take();
        if !reached.is_empty() {
            self.out.say(Event::Reached(reached));
        }
        Ok(())
    }

    /// Ends the run.
    pub(super) fn end(&self, ending: Ending) -> rquickjs::Result<super::Never> {
        self.tell_turn()?;
        self.out.end(ending)
    }
}

fn bytes(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// The kinds of places by the numbers the prelude gives them.
pub(super) const KINDS: [Kind; 8] =
    [Kind::Is, Kind::Has, Kind::Case, Kind::Loop, Kind::Turn, Kind::Caught, Kind::Did, Kind::Fork];

/// The levels of the console by the numbers the prelude gives them.
pub(super) const LEVELS: [Level; 5] = [Level::Debug, Level::Log, Level::Info, Level::Warn, Level::Error];
