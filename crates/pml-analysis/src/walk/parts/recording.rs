//! Whether what is walked becomes part of the structure.

/// Walking can be quiet, so that it adds no nodes, and it can be a trial, of which nothing is kept.
#[derive(Default)]
pub(crate) struct WalkMode {
    /// How many computations that reach no tool we are in: each is one operation, not a structure.
    quiet: u32,
    /// Whether a function was come to that reaches a tool, while something is followed only to see that.
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

    /// Whether the trial came to something that reaches a tool.
    pub(crate) fn end_trial(&mut self) -> bool {
        self.trial.take() == Some(true)
    }

    /// Something that reaches a tool is called. Whether this is a trial, in which it is not followed.
    pub(crate) fn ends_trial(&mut self) -> bool {
        if let Some(reached) = &mut self.trial {
            *reached = true;
            return true;
        }
        false
    }
}
