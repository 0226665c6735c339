//! Calls that no program has asked for yet.
//!
//! They go through the same path as any call, with [`CallMode::Speculative`], so the gate refuses whatever may not be
//! speculated.

use std::sync::Arc;

use pml_mcp::Caller;
use pml_model::json::Fields;
use pml_model::{Digest, Principal, RunId, ToolId};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::builtin::ReadRecorder;
use crate::tools::{self, Authority, CallContext, CallMode, CallOutcome, Permit, Toolset};

/// Makes speculative calls.
pub(super) struct SpeculativeCaller {
    tools: Arc<Toolset>,
    /// Nobody receives the messages of a call that was not asked for.
    silent: Caller,
}

/// A call that no program has asked for yet.
pub(super) struct SpeculativeCall {
    pub(super) principal: Principal,
    pub(super) run: RunId,
    pub(super) tool: ToolId,
    pub(super) definition: Digest,
    /// A JSON object.
    pub(super) arguments: Arc<str>,
    pub(super) cancel: CancellationToken,
    /// Records the files that are read.
    pub(super) witness: Option<ReadRecorder>,
}

impl SpeculativeCaller {
    pub(super) fn new(tools: Arc<Toolset>) -> SpeculativeCaller {
        SpeculativeCaller { tools, silent: Caller::silent() }
    }

    /// Makes a call.
    pub(super) async fn call(&self, call: SpeculativeCall) -> CallOutcome {
        let SpeculativeCall { principal, run, tool, definition, arguments, cancel, witness } = call;
        let context = CallContext {
            principal,
            run: Some(run),
            deadline: None,
            cancel,
            mode: CallMode::Speculative,
            caller: self.silent.clone(),
            authority: Authority::Run(Permit { definition, approval: None }),
            witness,
        };
        let arguments: &RawValue =
            serde_json::from_str(&arguments).expect("it was printed from a JSON value, here or by a worker");
        tools::call(&self.tools, &context, &tool, arguments, Fields::default()).await
    }
}
