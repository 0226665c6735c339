//! What a program tells the host besides its calls: console, progress, hint, and the operations it performs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::errors;
use super::heap::HeapMeter;
use super::out::EventWriter;
use super::preview::NameBudget;
use crate::message::{ConsoleLevel, MOST_OPERATIONS, WorkerEvent};

/// The console, and the progress and hint of the present turn.
pub(super) struct ProgramOutput {
    out: Rc<EventWriter>,
    /// Remaining bytes of console output; None when the console was cut.
    console_left: Cell<Option<usize>>,
    progress: RefCell<Option<WorkerEvent>>,
    hint: RefCell<Option<String>>,
}

impl ProgramOutput {
    pub(super) fn new(out: &Rc<EventWriter>) -> ProgramOutput {
        ProgramOutput {
            out: Rc::clone(out),
            console_left: Cell::new(Some(0)),
            progress: RefCell::default(),
            hint: RefCell::default(),
        }
    }

    /// Lets the program print up to `bytes`.
    pub(super) fn open_console(&self, bytes: usize) {
        self.console_left.set(Some(bytes));
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

    /// Sends the progress and the hint of the turn that ends.
    pub(super) fn send_turn_events(&self) {
        if let Some(progress) = self.progress.take() {
            self.out.send_event(progress);
        }
        if let Some(json) = self.hint.take() {
            self.out.send_event(WorkerEvent::Hint { json });
        }
    }
}

/// How many operations may still be reported, and how much of their values is shown.
pub(super) struct OperationBudget {
    heap: Rc<HeapMeter>,
    names: NameBudget,
    left: Cell<u32>,
}

impl OperationBudget {
    pub(super) fn new(heap: &Rc<HeapMeter>) -> OperationBudget {
        let left = Cell::new(MOST_OPERATIONS);
        OperationBudget { heap: Rc::clone(heap), names: NameBudget::default(), left }
    }

    /// Whether one more operation may be reported.
    pub(super) fn is_left(&self) -> bool {
        self.left.get() > 0
    }

    /// Counts an operation that is reported.
    pub(super) fn spend(&self) {
        self.left.set(self.left.get().saturating_sub(1));
    }

    /// Runs `preview` with the names it may list: none when the heap is half full.
    pub(super) fn with_names<T>(&self, preview: impl FnOnce(&NameBudget) -> T) -> T {
        match self.heap.is_half_full() {
            true => preview(&NameBudget::exhausted()),
            false => preview(&self.names),
        }
    }
}
