//! Pending work of a run: tool calls, timers, and frames.
//!
//! Plain tables, indexed by number. Each entry has the frame it belongs to; when a frame ends, its entries are dropped.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use rquickjs::{Function, Value};

use super::probes::Probes;

/// Calls without an end, and the number of calls so far.
#[derive(Default)]
pub(super) struct PendingCalls<'js> {
    pub(super) made: Cell<u32>,
    pub(super) open: RefCell<HashMap<u32, OpenCall<'js>>>,
}

/// A tool call without an end.
pub(super) struct OpenCall<'js> {
    /// The frame that made it.
    pub(super) frame: u32,
    pub(super) tool: Rc<str>,
    pub(super) resolve: Function<'js>,
    pub(super) reject: Function<'js>,
    /// Makes the error that the call may be rejected with.
    pub(super) tool_error: Function<'js>,
}

impl PendingCalls<'_> {
    pub(super) fn made_count(&self) -> u32 {
        self.made.get()
    }

    pub(super) fn open_count(&self) -> usize {
        self.open.borrow().len()
    }

    /// Adds the frames that wait for a call.
    pub(super) fn collect_waiting_frames(&self, waiting: &mut HashSet<u32>) {
        waiting.extend(self.open.borrow().values().map(|open| open.frame));
    }

    /// Drops the calls that `frame` made.
    pub(super) fn forget_frame(&self, frame: u32) {
        self.open.borrow_mut().retain(|_, open| open.frame != frame);
    }
}

/// Timers that are set.
#[derive(Default)]
pub(super) struct ProgramTimers<'js> {
    /// Number of timers set so far; each turn of an interval counts.
    pub(super) made: Cell<u32>,
    /// Timers by id, which is the number they first had and the one the program knows.
    pub(super) set: RefCell<HashMap<u32, ProgramTimer<'js>>>,
    /// From the current number of a timer to its id.
    pub(super) ids: RefCell<HashMap<u32, u32>>,
}

/// A timer that is set.
pub(super) struct ProgramTimer<'js> {
    /// The frame that set it.
    pub(super) frame: u32,
    pub(super) number: u32,
    pub(super) then: Function<'js>,
    pub(super) given: Vec<Value<'js>>,
    /// Period in milliseconds; None for a timer that fires once.
    pub(super) every_ms: Option<u64>,
}

/// The callback of a timer that is due.
pub(super) struct DueTimer<'js> {
    pub(super) then: Function<'js>,
    pub(super) given: Vec<Value<'js>>,
    pub(super) every_ms: Option<u64>,
}

impl<'js> ProgramTimers<'js> {
    pub(super) fn set_count(&self) -> usize {
        self.ids.borrow().len()
    }

    /// Adds the frames that wait for a timer.
    pub(super) fn collect_waiting_frames(&self, waiting: &mut HashSet<u32>) {
        waiting.extend(self.set.borrow().values().map(|timer| timer.frame));
    }

    /// The callback of timer `id`. The timer is removed unless it is an interval.
    pub(super) fn due(&self, id: u32) -> Option<DueTimer<'js>> {
        let mut set = self.set.borrow_mut();
        let timer = set.get(&id)?;
        let due = DueTimer { then: timer.then.clone(), given: timer.given.clone(), every_ms: timer.every_ms };
        if due.every_ms.is_none() {
            set.remove(&id);
        }
        Some(due)
    }
}

/// Frames without an end, and the number of frames so far.
#[derive(Default)]
pub(super) struct OpenFrames<'js> {
    pub(super) made: Cell<u32>,
    pub(super) ended: Cell<u32>,
    pub(super) open: RefCell<BTreeMap<u32, OpenFrame<'js>>>,
}

/// A call of one program by another, without an end.
pub(super) struct OpenFrame<'js> {
    pub(super) nested: u32,
    pub(super) arguments: String,
    /// The frame that called it.
    pub(super) caller: u32,
    /// Nesting depth of the frame.
    pub(super) depth: u32,
    pub(super) resolve: Function<'js>,
    pub(super) reject: Function<'js>,
    /// Makes the error that the call may be rejected with, in the caller's realm.
    pub(super) capability_error: Function<'js>,
    /// None until the frame begins.
    pub(super) probes: Option<Rc<Probes<'js>>>,
}

impl<'js> OpenFrames<'js> {
    /// Probes of the frames that have begun, in order.
    pub(super) fn probes(&self) -> Vec<Rc<Probes<'js>>> {
        self.open.borrow().values().filter_map(|frame| frame.probes.clone()).collect()
    }

    /// Whether any frame has not ended.
    pub(super) fn has_open(&self) -> bool {
        !self.open.borrow().is_empty()
    }
}
