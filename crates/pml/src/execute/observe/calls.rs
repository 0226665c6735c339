//! The calls of a run, as they were observed.

use crate::report::{CallReport, number_places};

/// A call, and what its report does not say.
#[derive(Debug)]
pub(super) struct ObservedCall {
    pub(super) report: CallReport,
    /// The node of the call; one within a capability follows that of the capability, after a `/`.
    pub(super) node_path: Option<String>,
    /// The source line of the call.
    pub(super) line: Option<u32>,
    /// The frame that made the call; 0 is the program or DAG itself.
    pub(super) made_by: u32,
    /// The hint for a call that failed.
    pub(super) hint: Option<String>,
}

impl ObservedCall {
    /// A call that has just been issued.
    pub(super) fn new(
        report: CallReport,
        node_path: Option<String>,
        line: Option<u32>,
        made_by: u32,
    ) -> Self {
        ObservedCall { report, node_path, line, made_by, hint: None }
    }
}

/// The calls in order of issue. Their numbers start at 1.
#[derive(Debug, Default)]
pub(super) struct ObservedCalls(Vec<ObservedCall>);

impl ObservedCalls {
    pub(super) fn push(&mut self, call: ObservedCall) {
        self.0.push(call);
    }

    pub(super) fn get(&self, call: u32) -> Option<&ObservedCall> {
        self.0.get((call as usize).checked_sub(1)?)
    }

    pub(super) fn get_mut(&mut self, call: u32) -> Option<&mut ObservedCall> {
        self.0.get_mut((call as usize).checked_sub(1)?)
    }

    /// The frame that made a call.
    pub(super) fn frame_of(&self, call: u32) -> u32 {
        self.get(call).map_or(0, |call| call.made_by)
    }

    /// The numbers of the calls that `frame` made.
    pub(super) fn made_by(&self, frame: u32) -> Vec<u32> {
        let own = (1..).zip(&self.0).filter(|(_, call)| call.made_by == frame);
        own.map(|(number, _)| number).collect()
    }

    /// The reports, each with the place of its call: the node, numbered where several calls share it.
    pub(super) fn placed_reports(&self) -> impl Iterator<Item = (CallReport, Option<String>)> {
        let places: Vec<Option<&str>> = self.0.iter().map(|call| call.node_path.as_deref()).collect();
        self.0.iter().map(|call| call.report.clone()).zip(number_places(&places))
    }
}
