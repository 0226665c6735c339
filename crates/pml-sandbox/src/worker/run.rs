//! State of one run that all its realms share and no program can reach: pending work, limits and the event writer.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use rquickjs::Ctx;

use super::errors::{self, Rejections};
use super::heap::HeapMeter;
use super::json::JsonSizeLimit;
use super::out::EventWriter;
use super::prelude;
use super::preview::NameBudget;
use super::probes::Probes;
use super::random::SeededRandom;
use super::waiting::{OpenFrames, PendingCalls, ProgramTimers};
use crate::message::{
    ConsoleLevel, MOST_OPERATIONS, NestedProgram, ProgramEnding, SandboxLimits, SandboxProgram, WorkerEvent,
};
use crate::wire::MOST_BYTES;

/// Bytes reserved in a message for everything but the limited text.
const MESSAGE_BYTES: u64 = 64 << 10;

/// A run: one program with its nested programs.
pub(super) struct SandboxRun<'js> {
    pub(super) out: Rc<EventWriter>,
    pub(super) rejections: Rc<Rejections>,
    heap: Rc<HeapMeter>,
    pub(super) calls: PendingCalls<'js>,
    pub(super) timers: ProgramTimers<'js>,
    pub(super) frames: OpenFrames<'js>,
    pub(super) random: SeededRandom,
    /// The time programs see, in milliseconds since the Unix epoch.
    pub(super) now_ms: Cell<i64>,
    /// Point and context of the next call, set by the probe just before it.
    pub(super) call_site: Cell<(u32, u32)>,
    /// Probes of the top-level program.
    pub(super) probes: OnceCell<Rc<Probes<'js>>>,
    /// The nested programs.
    pub(super) nested: OnceCell<Vec<NestedProgram>>,
    /// Whether values are being read for the host. Calls are refused meanwhile.
    reading: Cell<bool>,
    /// The compiled prelude, made together with the second realm.
    prelude: OnceCell<Vec<u8>>,
    /// Remaining bytes of console output; None when the console was cut.
    console_left: Cell<Option<usize>>,
    progress: RefCell<Option<WorkerEvent>>,
    hint: RefCell<Option<String>>,
    limits: OnceCell<SandboxLimits>,
    /// Number of operations reported so far.
    operations: Cell<u32>,
    names: NameBudget,
}

/// Blocks calls while a value is read for the host.
pub(super) struct ReadingGuard<'a>(&'a Cell<bool>);

impl Drop for ReadingGuard<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl<'js> SandboxRun<'js> {
    pub(super) fn new(
        out: &Rc<EventWriter>,
        heap: &Rc<HeapMeter>,
        rejections: &Rc<Rejections>,
    ) -> SandboxRun<'js> {
        SandboxRun {
            out: Rc::clone(out),
            rejections: Rc::clone(rejections),
            heap: Rc::clone(heap),
            calls: PendingCalls::default(),
            timers: ProgramTimers::default(),
            frames: OpenFrames::default(),
            random: SeededRandom::default(),
            now_ms: Cell::new(0),
            call_site: Cell::new((0, 0)),
            probes: OnceCell::new(),
            nested: OnceCell::new(),
            reading: Cell::new(false),
            prelude: OnceCell::new(),
            console_left: Cell::new(Some(0)),
            progress: RefCell::default(),
            hint: RefCell::default(),
            limits: OnceCell::new(),
            operations: Cell::new(0),
            names: NameBudget::default(),
        }
    }

    pub(super) fn begin(&self, program: &SandboxProgram) {
        // A longer text would not fit into a message.
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

    pub(super) fn limits(&self) -> &SandboxLimits {
        self.limits.get().expect("a program has begun")
    }

    /// The nested program with index `place`.
    pub(super) fn nested_program(&self, place: u32) -> Option<&NestedProgram> {
        self.nested.get()?.get(place as usize)
    }

    /// The prelude as bytecode.
    pub(super) fn prelude(&self, ctx: &Ctx<'js>) -> rquickjs::Result<&[u8]> {
        if self.prelude.get().is_none() {
            let compiled = prelude::compiled(ctx)?;
            assert!(self.prelude.set(compiled).is_ok(), "nobody else was here meanwhile");
        }
        Ok(self.prelude.get().expect("it was set above"))
    }

    /// Limits of the arguments of a call.
    pub(super) fn argument_size(&self) -> JsonSizeLimit {
        JsonSizeLimit { bytes: bytes(self.limits().argument_bytes), nesting: self.limits().nesting as usize }
    }

    /// Limits of the value of a program.
    pub(super) fn result_size(&self) -> JsonSizeLimit {
        JsonSizeLimit { bytes: bytes(self.limits().result_bytes), nesting: self.limits().nesting as usize }
    }

    /// Blocks calls until the returned guard is dropped.
    pub(super) fn start_reading(&self) -> ReadingGuard<'_> {
        self.reading.set(true);
        ReadingGuard(&self.reading)
    }

    pub(super) fn is_reading(&self) -> bool {
        self.reading.get()
    }

    /// Remaining bytes of console output; None when the console was cut.
    pub(super) fn console_bytes_left(&self) -> Option<usize> {
        self.console_left.get()
    }

    /// Writes to the console as much as fits. A line costs its text and one byte.
    pub(super) fn write_console(&self, frame: u32, level: ConsoleLevel, mut text: String) {
        let Some(left) = self.console_left.get() else { return };
        let is_cut = text.len() + 1 > left;
        if is_cut {
            errors::truncate_text(&mut text, left.saturating_sub(1));
        }
        self.console_left.set((!is_cut).then(|| left - text.len() - 1));
        if !is_cut || !text.is_empty() {
            self.out.send_event(WorkerEvent::Console { frame, level, text });
        }
        if is_cut {
            self.out.send_event(WorkerEvent::ConsoleCut);
        }
    }

    /// Sets the progress of this turn. Only the last one of a turn is sent.
    pub(super) fn set_progress(&self, progress: WorkerEvent) {
        self.progress.replace(Some(progress));
    }

    /// Sets the hint of this turn. Only the last one of a turn is sent.
    pub(super) fn set_hint(&self, json: String) {
        self.hint.replace(Some(json));
    }

    /// Whether one more operation may be reported.
    pub(super) fn may_send_operation(&self) -> bool {
        self.operations.get() < MOST_OPERATIONS
    }

    /// Reports the value of an operation.
    pub(super) fn send_operation(&self, operation: WorkerEvent) {
        self.operations.set(self.operations.get() + 1);
        self.out.send_event(operation);
    }

    /// Runs `preview` with the names it may list: none when the heap is half full.
    pub(super) fn with_name_budget<T>(&self, preview: impl FnOnce(&NameBudget) -> T) -> T {
        match self.heap.is_half_full() {
            true => preview(&NameBudget::exhausted()),
            false => preview(&self.names),
        }
    }

    /// Sends the events that are sent once per turn.
    pub(super) fn send_turn_events(&self) -> rquickjs::Result<()> {
        if let Some(progress) = self.progress.take() {
            self.out.send_event(progress);
        }
        if let Some(json) = self.hint.take() {
            self.out.send_event(WorkerEvent::Hint { json });
        }
        if let Some(probes) = self.probes.get() {
            probes.tell(&self.out)?;
        }
        self.frames.probes().iter().try_for_each(|probes| probes.tell(&self.out))
    }

    /// Ends the run and the process.
    pub(super) fn end_run(&self, ending: ProgramEnding) -> rquickjs::Result<super::NoReturn> {
        self.send_turn_events()?;
        self.out.send_ending_and_exit(ending)
    }
}

fn bytes(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
