//! Probe counts of one realm since its last report.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use rquickjs::Function;

use super::out::EventWriter;
use crate::message::{ReachedPoint, WorkerEvent};

/// The probes of the program in one realm.
pub(super) struct Probes<'js> {
    /// Number of the realm's frame; 0 for the program itself.
    frame: u32,
    reached: RefCell<Vec<ReachedPoint>>,
    /// Stack of operations that have begun. An operation that threw stays on it until the turn ends.
    operations: RefCell<Vec<OperationStart>>,
    /// Makes the prelude report its counts. Cleared when the program ends, because it keeps its realm alive.
    drain: RefCell<Option<Function<'js>>>,
}

/// An operation that has begun.
struct OperationStart {
    point: u32,
    context: u32,
    at: Instant,
}

impl<'js> Probes<'js> {
    pub(super) fn new(frame: u32) -> Probes<'js> {
        Probes {
            frame,
            reached: RefCell::default(),
            operations: RefCell::default(),
            drain: RefCell::default(),
        }
    }

    /// Stores `drain`, which makes the prelude report its counts.
    pub(super) fn open(&self, drain: Function<'js>) {
        self.drain.replace(Some(drain));
    }

    pub(super) fn close(&self) {
        self.drain.take();
    }

    pub(super) fn reached(&self, reached: ReachedPoint) {
        self.reached.borrow_mut().push(reached);
    }

    /// Records the begin of an operation.
    pub(super) fn operation_began(&self, point: u32, context: u32) {
        self.operations.borrow_mut().push(OperationStart { point, context, at: Instant::now() });
    }

    /// Duration of an operation that ends now; None when its begin was not recorded.
    pub(super) fn operation_took(&self, point: u32, context: u32) -> Option<Duration> {
        let now = Instant::now();
        let mut operations = self.operations.borrow_mut();
        let is_it = |began: &OperationStart| (began.point, began.context) == (point, context);
        let place = operations.iter().rposition(is_it)?;
        let took = now.saturating_duration_since(operations[place].at);
        // Operations that began within it have ended or thrown.
        operations.truncate(place);
        Some(took)
    }

    /// Sends the counts as events.
    pub(super) fn tell(&self, out: &EventWriter) -> rquickjs::Result<()> {
        self.operations.borrow_mut().clear();
        let drain = self.drain.borrow().clone().expect("nothing is told of a program that is over");
        drain.call::<_, ()>(())?;
        let places = self.reached.take();
        if !places.is_empty() {
            out.send_event(WorkerEvent::Reached { frame: self.frame, places });
        }
        Ok(())
    }
}
