//! What functions change of which no call is seen.
//!
//! A function kept in a list or an object may be called in a way that is not understood. What it changes is then not what
//! it seems to be, and nothing may be claimed of it: the program is followed once more with that known.

use oxc_semantic::SymbolId;
use rustc_hash::FxHashSet;

use super::Walk;
use super::value::{Value, one_of};

impl<'a> Walk<'a, '_> {
    /// The variables changed by functions that nothing was seen to call: they may be called in a way that was not
    /// understood, from a list or an object they are kept in.
    pub(super) fn changed_unseen(&self) -> FxHashSet<SymbolId> {
        let unseen = self.survey.changed.iter().filter(|(_, function)| !self.visited[*function as usize]);
        unseen.map(|(symbol, _)| *symbol).collect()
    }

    /// A value that may as well be, or hold, something else.
    pub(super) fn not_only(&mut self, value: Value<'a>) -> Value<'a> {
        match value {
            Value::Object(index) => {
                self.state.change(index, |record| record.extra.push(Value::Unknown));
                Value::Object(index)
            }
            // These are followed, or make a program opaque: what they are must not be lost.
            Value::Function(_)
            | Value::Class(_)
            | Value::Promise(..)
            | Value::Global(_)
            | Value::Mcp
            | Value::Server(_)
            | Value::Tool(..)
            | Value::Capabilities
            | Value::Capability(_) => value,
            other => one_of([other, Value::Unknown]),
        }
    }
}
