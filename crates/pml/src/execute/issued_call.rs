//! A call that a program issued.

use pml_model::Digest;

use crate::approve::question::value_digest;

/// A call that the program issued.
#[derive(Debug, Clone)]
pub(super) struct IssuedCall {
    /// The number of the call, in the order of issue, from 1.
    pub(super) call: u32,
    /// The frame that issued it: 0 for the program of a run, else a task of a DAG.
    pub(super) frame: u32,
    /// The handle of the tool.
    pub(super) handle: u32,
    /// The node of the structure that the call belongs to.
    pub(super) node: Option<String>,
    /// The arguments: the bytes that are recorded and sent.
    pub(super) arguments: std::sync::Arc<str>,
    /// The digest of those bytes.
    pub(super) digest: Digest,
    /// The digest of the value that the bytes encode, if the call needs approval: a person approves a value, not its
    /// spelling.
    pub(super) value_digest: Option<Digest>,
    /// The index of the grant that allows it.
    pub(super) grant: Option<u32>,
    /// The place of the call in the program of a task.
    pub(super) task_site: Option<TaskCallSite>,
}

impl IssuedCall {
    /// A call that `frame` issues.
    pub(super) fn new(
        call: u32,
        (frame, handle): (u32, u32),
        node: Option<String>,
        arguments: &str,
        asks: bool,
    ) -> IssuedCall {
        IssuedCall {
            call,
            frame,
            handle,
            node,
            arguments: arguments.into(),
            digest: Digest::of(arguments.as_bytes()),
            value_digest: asks.then(|| value_digest(arguments)).flatten(),
            grant: None,
            task_site: None,
        }
    }
}

/// The place of a call in the program of a task, as its worker identifies it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskCallSite {
    /// The number of the capability that makes the call; 0 is the program itself.
    pub(super) frame: u32,
    /// The number of the call among those of this worker.
    pub(super) order: u32,
    /// The point in the program text.
    pub(super) point: u32,
    /// The context: the call of a local function in which the point was reached.
    pub(super) context: u32,
}
