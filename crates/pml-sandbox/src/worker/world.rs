//! State that the native functions of one realm share.
//!
//! The program has a realm, and so has every frame (each call of another program). State that all realms share and no
//! program can reach is in [`SandboxRun`].

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rquickjs::{Ctx, Function, Object, Value};

use super::errors::{self, ThrownReader};
use super::json::{JsonProblem, JsonSizeLimit, ValueInspector};
use super::preview::Previewer;
use super::probes::Probes;
use super::run::SandboxRun;
use crate::message::{ConsoleLevel, WorkerEvent};

/// State of one realm.
pub(super) struct RealmState<'js> {
    pub(super) run: Rc<SandboxRun<'js>>,
    /// Number of the realm's frame; 0 for the program itself.
    pub(super) frame: u32,
    /// Nesting depth of the frame; 0 for the program itself.
    pub(super) depth: u32,
    pub(super) probes: Rc<Probes<'js>>,
    /// The program has ended: calls from this realm have no effect any more.
    over: Cell<bool>,
    /// None once the program has ended: the exports keep alive the realm that holds this state.
    kept: RefCell<Option<Rc<PreludeExports<'js>>>>,
}

/// What the prelude returns.
pub(super) struct PreludeExports<'js> {
    pub(super) inspector: ValueInspector<'js>,
    previewer: Previewer<'js>,
    pub(super) thrown_reader: ThrownReader<'js>,
    pub(super) tool_error: Function<'js>,
    pub(super) capability_error: Function<'js>,
    pub(super) type_error: Function<'js>,
    pub(super) range_error: Function<'js>,
}

impl<'js> PreludeExports<'js> {
    pub(super) fn new(ctx: &Ctx<'js>, kept: &Object<'js>) -> rquickjs::Result<PreludeExports<'js>> {
        Ok(PreludeExports {
            inspector: ValueInspector::new(ctx, kept)?,
            previewer: Previewer::new(kept)?,
            thrown_reader: ThrownReader::new(kept)?,
            tool_error: kept.get("toolError")?,
            capability_error: kept.get("capabilityError")?,
            type_error: kept.get("typeError")?,
            range_error: kept.get("rangeError")?,
        })
    }
}

impl<'js> RealmState<'js> {
    pub(super) fn new(run: &Rc<SandboxRun<'js>>, frame: u32, depth: u32) -> RealmState<'js> {
        RealmState {
            run: Rc::clone(run),
            frame,
            depth,
            probes: Rc::new(Probes::new(frame)),
            over: Cell::new(false),
            kept: RefCell::default(),
        }
    }

    /// Stores the exports of the prelude; `drain` makes the prelude report its probe counts.
    pub(super) fn store_exports(&self, kept: PreludeExports<'js>, drain: Function<'js>) {
        self.probes.open(drain);
        self.kept.replace(Some(Rc::new(kept)));
    }

    pub(super) fn exports(&self) -> Rc<PreludeExports<'js>> {
        Rc::clone(self.kept.borrow().as_ref().expect("nothing asks in a realm without its prelude"))
    }

    /// Closes the realm: nothing in it has an effect any more.
    pub(super) fn close(&self) {
        self.over.set(true);
        self.probes.close();
        self.kept.take();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// `value` as JSON. Getters may run code of the program meanwhile, and that code cannot call tools.
    pub(super) fn to_json(
        &self,
        value: Value<'js>,
        size: JsonSizeLimit,
    ) -> Result<Option<String>, JsonProblem> {
        let _reading = self.run.start_reading();
        self.exports().inspector.to_json(value, size)
    }

    /// Name of the engine class of `value`.
    pub(super) fn class_name(&self, value: &Value<'js>) -> String {
        match self.is_over() {
            true => String::new(),
            false => self.exports().inspector.class_name(value).to_owned(),
        }
    }

    /// Remaining bytes of console output; None when the console was cut or the realm is closed.
    pub(super) fn console_bytes_left(&self) -> Option<usize> {
        self.run.output.console_bytes_left().filter(|_| !self.is_over())
    }

    /// Writes to the console as much as fits.
    pub(super) fn write_console(&self, level: ConsoleLevel, text: String) {
        if !self.is_over() {
            self.run.output.write_console(self.frame, level, text);
        }
    }

    /// Records the begin of an operation: all its operands have been evaluated.
    pub(super) fn operation_began(&self, point: u32, context: u32) {
        if !self.is_over() && self.run.operations.is_left() {
            self.probes.operation_began(point, context);
        }
    }

    /// Reports that an operation returned `value`.
    pub(super) fn operation_returned(&self, point: u32, context: u32, value: &Value<'js>) {
        let Some(took) = self.probes.operation_took(point, context) else { return };
        if self.is_over() || !self.run.operations.is_left() {
            return;
        }
        let kept = self.exports();
        let operations = &self.run.operations;
        let gave = operations.with_names(|names| kept.previewer.preview(&kept.inspector, value, names));
        operations.spend();
        self.run.out.send_event(WorkerEvent::Operation { frame: self.frame, point, context, took, gave });
    }

    /// Records an exception that nothing in the program can catch.
    pub(super) fn note_uncaught(&self, ctx: &Ctx<'js>, reason: Value<'js>) {
        errors::note_uncaught(&self.run.rejections, ctx, reason);
    }
}
