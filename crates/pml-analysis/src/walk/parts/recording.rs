//! Whether the walk adds to the structure.

/// A walk can be quiet: it adds no nodes. It can be a trial: nothing of it is kept.
#[derive(Default)]
pub(crate) struct WalkMode {
    /// Nesting depth of computations that reach no tool: each is one operation, not a structure.
    quiet: u32,
    /// During a trial, whether a function that reaches a tool was called; `None` outside a trial.
    trial: Option<bool>,
}

impl WalkMode {
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet > 0
    }

    pub(crate) fn enter_quiet(&mut self) {
        self.quiet += 1;
    }

    pub(crate) fn leave_quiet(&mut self) {
        self.quiet -= 1;
    }

    pub(crate) fn is_trial(&self) -> bool {
        self.trial.is_some()
    }

    pub(crate) fn begin_trial(&mut self) {
        self.trial = Some(false);
    }

    /// Ends the trial. Returns whether it called something that reaches a tool.
    pub(crate) fn end_trial(&mut self) -> bool {
        self.trial.take() == Some(true)
    }

    /// Records a call of something that reaches a tool. Returns whether this is a trial, in which it is not followed.
    pub(crate) fn ends_trial(&mut self) -> bool {
        if let Some(reached) = &mut self.trial {
            *reached = true;
            return true;
        }
        false
    }
}
