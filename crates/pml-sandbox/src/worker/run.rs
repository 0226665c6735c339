//! What all realms of one run share, and no program can reach: its state, its limits and the way out.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use rquickjs::Ctx;

use super::calls::Calls;
use super::errors::{self, Rejections};
use super::frames::Frames;
use super::heap::Heap;
use super::json::Size;
use super::out::Out;
use super::preview::Names;
use super::random::Random;
use super::realm;
use super::timers::Timers;
use super::world::World;
use crate::message::{Ending, Event, Kind, Level, Limits, MOST_OPERATIONS, Nested, Program};
use crate::wire::MOST_BYTES;

/// What a message holds besides the text that is limited.
const MESSAGE_BYTES: u64 = 64 << 10;

/// One program and all that it calls.
pub(super) struct Run<'js> {
    pub(super) out: Rc<Out>,
    pub(super) rejections: Rc<Rejections>,
    heap: Rc<Heap>,
    pub(super) calls: Calls<'js>,
    pub(super) timers: Timers<'js>,
    pub(super) frames: Frames<'js>,
    pub(super) random: Random,
    /// The time programs see.
    pub(super) now_ms: Cell<i64>,
    /// Point and context the next call comes from.
    pub(super) site: Cell<(u32, u32)>,
    /// The program's own realm.
    pub(super) first: OnceCell<Rc<World<'js>>>,
    /// The programs that can be called.
    pub(super) nested: OnceCell<Vec<Nested>>,
    /// Values are being read for the host: nothing may be called meanwhile.
    reading: Cell<bool>,
    /// Made when a second realm is.
    prelude: OnceCell<Vec<u8>>,
    /// None when the console was cut.
    console_left: Cell<Option<usize>>,
    progress: RefCell<Option<Event>>,
    hint: RefCell<Option<String>>,
    limits: OnceCell<Limits>,
    /// How many operations were told.
    operations: Cell<u32>,
    names: Names,
}

/// Something is being read for the host while this is held.
pub(super) struct Reading<'a>(&'a Cell<bool>);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl<'js> Run<'js> {
    pub(super) fn new(out: &Rc<Out>, heap: &Rc<Heap>, rejections: &Rc<Rejections>) -> Run<'js> {
        Run {
            out: Rc::clone(out),
            rejections: Rc::clone(rejections),
            heap: Rc::clone(heap),
            calls: Calls::default(),
            timers: Timers::default(),
            frames: Frames::default(),
            random: Random::default(),
            now_ms: Cell::new(0),
            site: Cell::new((0, 0)),
            first: OnceCell::new(),
            nested: OnceCell::new(),
            reading: Cell::new(false),
            prelude: OnceCell::new(),
            console_left: Cell::new(Some(0)),
            progress: RefCell::default(),
            hint: RefCell::default(),
            limits: OnceCell::new(),
            operations: Cell::new(0),
            names: Names::default(),
        }
    }

    pub(super) fn begin(&self, program: &Program) {
        // Longer texts could not be sent.
        let most = MOST_BYTES as u64 - MESSAGE_BYTES;
        let mut limits = program.limits.clone();
        for bytes in [&mut limits.argument_bytes, &mut limits.result_bytes, &mut limits.console_bytes] {
            *bytes = (*bytes).min(most);
        }
        self.console_left.set(Some(bytes(limits.console_bytes)));
        self.now_ms.set(program.now_ms);
        self.random.seed(program.seed);
        let is_first = self.limits.set(limits).is_ok() && self.nested.set(program.nested.clone()).is_ok();
        assert!(is_first, "a worker runs one program");
    }

    pub(super) fn limits(&self) -> &Limits {
        self.limits.get().expect("a program has begun")
    }

    /// The program that can be called at `place`.
    pub(super) fn nested(&self, place: u32) -> Option<&Nested> {
        self.nested.get()?.get(place as usize)
    }

    /// The prelude in the engine's own form.
    pub(super) fn prelude(&self, ctx: &Ctx<'js>) -> rquickjs::Result<&[u8]> {
        if self.prelude.get().is_none() {
            let compiled = realm::compiled_prelude(ctx)?;
            assert!(self.prelude.set(compiled).is_ok(), "nobody else was here meanwhile");
        }
        Ok(self.prelude.get().expect("it was set above"))
    }

    /// How large the arguments of a call may be.
    pub(super) fn argument_size(&self) -> Size {
        Size { bytes: bytes(self.limits().argument_bytes), nesting: self.limits().nesting as usize }
    }

    /// How large the value of a program may be.
    pub(super) fn result_size(&self) -> Size {
        Size { bytes: bytes(self.limits().result_bytes), nesting: self.limits().nesting as usize }
    }

    /// Nothing can be called while the result is held.
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
    pub(super) fn console(&self, frame: u32, level: Level, mut text: String) {
        let Some(left) = self.console_left.get() else { return };
        let is_cut = text.len() + 1 > left;
        if is_cut {
            errors::cut(&mut text, left.saturating_sub(1));
        }
        self.console_left.set((!is_cut).then(|| left - text.len() - 1));
        if !is_cut || !text.is_empty() {
            self.out.say(Event::Console { frame, level, text });
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

    /// Whether one operation more is told.
    pub(super) fn tells_operation(&self) -> bool {
        self.operations.get() < MOST_OPERATIONS
    }

    /// Tells what an operation gave.
    pub(super) fn operation(&self, operation: Event) {
        self.operations.set(self.operations.get() + 1);
        self.out.say(operation);
    }

    /// With which names previews may list what objects have.
    pub(super) fn with_names<T>(&self, preview: impl FnOnce(&Names) -> T) -> T {
        match self.heap.is_tight() {
            true => preview(&Names::none()),
            false => preview(&self.names),
        }
    }

    /// Tells what is told once a turn.
    pub(super) fn tell_turn(&self) -> rquickjs::Result<()> {
        if let Some(progress) = self.progress.take() {
            self.out.say(progress);
        }
        if let Some(json) = self.hint.take() {
            self.out.say(Event::Hint { json });
        }
        if let Some(first) = self.first.get() {
            first.tell_reached()?;
        }
        self.frames.worlds().iter().try_for_each(|world| world.tell_reached())
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
