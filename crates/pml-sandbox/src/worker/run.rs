//! State of one run that all its realms share and no program can reach: pending work, limits and the event writer.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use rquickjs::Ctx;

use super::errors::Rejections;
use super::heap::HeapMeter;
use super::json::JsonSizeLimit;
use super::out::EventWriter;
use super::output::{OperationBudget, ProgramOutput};
use super::prelude;
use super::probes::Probes;
use super::random::SeededRandom;
use super::waiting::{OpenFrames, PendingCalls, ProgramTimers};
use crate::message::{NestedProgram, ProgramEnding, SandboxLimits, SandboxProgram};
use crate::wire::MOST_BYTES;

/// Bytes reserved in a message for everything but the limited text.
const MESSAGE_BYTES: u64 = 64 << 10;

/// A run: one program with its nested programs.
pub(super) struct SandboxRun<'js> {
    pub(super) out: Rc<EventWriter>,
    pub(super) rejections: Rc<Rejections>,
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
    limits: OnceCell<SandboxLimits>,
    pub(super) output: ProgramOutput,
    pub(super) operations: OperationBudget,
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
            limits: OnceCell::new(),
            output: ProgramOutput::new(out),
            operations: OperationBudget::new(heap),
        }
    }

    pub(super) fn begin(&self, program: &SandboxProgram) {
        // A longer text would not fit into a message.
        let most = MOST_BYTES as u64 - MESSAGE_BYTES;
        let mut limits = program.limits.clone();
        for bytes in [&mut limits.argument_bytes, &mut limits.result_bytes, &mut limits.console_bytes] {
            *bytes = (*bytes).min(most);
        }
        self.output.open_console(bytes(limits.console_bytes));
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

    /// Sends the events that are sent once per turn.
    pub(super) fn send_turn_events(&self) -> rquickjs::Result<()> {
        self.output.send_turn_events();
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
