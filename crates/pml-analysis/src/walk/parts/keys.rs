//! Reuses memory for member names.

use pml_model::structure::PathStep;

/// Recycled strings: every member access needs a path step.
#[derive(Default)]
pub(crate) struct KeyPool {
    spare: Vec<String>,
}

impl KeyPool {
    /// The step to a member; return it with [`KeyPool::put_back`].
    pub(crate) fn take(&mut self, name: &str) -> PathStep {
        let mut key = self.spare.pop().unwrap_or_default();
        key.push_str(name);
        PathStep::Key(key)
    }

    pub(crate) fn put_back(&mut self, step: PathStep) {
        if let PathStep::Key(mut key) = step {
            key.clear();
            self.spare.push(key);
        }
    }
}
