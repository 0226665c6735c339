//! A task that has been read, with what is needed to connect it to others.

use pml_model::structure::Argument;
use serde_json::Value as Json;

use super::text::ByteSpan;
use super::{Reference, Task};
use crate::value::Value;

/// A task with what is needed to connect it to others.
pub(crate) struct TaskRow<'t> {
    pub(crate) at: ByteSpan,
    pub(crate) task: Task,
    /// Its arguments as the structure shows them.
    pub(crate) argument: Argument,
    /// Schema of its input, where known.
    pub(crate) input: Option<&'t Json>,
    /// Its arguments for the sake of their literals; nothing is known of those of code, which may decide by them.
    pub(crate) literals: Value<'static>,
    /// Every reference in its arguments, and where.
    pub(crate) references: Vec<(Reference, ByteSpan)>,
}
