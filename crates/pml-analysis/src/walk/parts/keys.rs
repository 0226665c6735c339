//! Memory for the names of members.

use pml_model::structure::Step;

/// Names of members that were asked for, kept for their memory: every member of a program is asked for by a step.
#[derive(Default)]
pub(crate) struct KeyPool {
    spare: Vec<String>,
}

impl KeyPool {
    /// The step to a member, to be given back with [`KeyPool::put_back`].
    pub(crate) fn take(&mut self, name: &str) -> Step {
        let mut key = self.spare.pop().unwrap_or_default();
        key.push_str(name);
        Step::Key(key)
    }

    pub(crate) fn put_back(&mut self, step: Step) {
        if let Step::Key(mut key) = step {
            key.clear();
            self.spare.push(key);
        }
    }
}
