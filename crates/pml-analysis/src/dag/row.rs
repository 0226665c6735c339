//! A parsed task with the data that connects it to others.

use pml_model::structure::Argument;
use serde_json::Value as Json;

use super::text::ByteSpan;
use super::{DocumentTask, Reference};
use crate::value::AbstractValue;

/// A parsed task with the data that connects it to others.
pub(crate) struct TaskRow<'t> {
    pub(crate) at: ByteSpan,
    pub(crate) task: DocumentTask,
    /// Its arguments, for the structure.
    pub(crate) argument: Argument,
    /// Input schema of its callee; `None` when unknown.
    pub(crate) input: Option<&'t Json>,
    /// Its arguments, for lifting literals; unknown for code tasks, which may decide by them.
    pub(crate) literals: AbstractValue<'static>,
    /// Every reference in its arguments, with its span.
    pub(crate) references: Vec<(Reference, ByteSpan)>,
}
