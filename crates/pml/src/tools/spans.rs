//! The spans of tool calls, by the semantic conventions of MCP. They hold the shapes of arguments and never values.

use std::time::Duration;

use pml_model::ToolId;
use tracing::Level;

use super::{CallOutcome, ToolError, Toolset};
use crate::config::ServerTransport;
use crate::telemetry::{OpenSpan, SpanKind, current, shape};

/// Begins the span of a call within the current span.
pub(crate) fn begin_call(tools: &Toolset, id: &ToolId, arguments: &str) -> OpenSpan {
    let server = tools.servers.get(&id.server);
    // A built-in server is part of this process.
    let kind = if server.is_some() { SpanKind::Client } else { SpanKind::Internal };
    let mut span = tools.telemetry.begin(&format!("tools/call {}", id.tool), kind, current());
    span.set("mcp.method.name", || "tools/call");
    span.set("gen_ai.operation.name", || "execute_tool");
    span.set("gen_ai.tool.name", || id.tool.as_str());
    span.set("pml.server.name", || id.server.as_str());
    span.set("pml.arguments.size", || arguments.len());
    span.set("pml.arguments.shape", || shape(arguments));
    match server.as_ref().map(|server| &server.settings().transport) {
        Some(ServerTransport::Stdio { .. }) => span.set("network.transport", || "pipe"),
        Some(ServerTransport::Http { url, .. }) => {
            span.set("network.transport", || "tcp");
            span.set("server.address", || url.host_str().unwrap_or_default());
            if let Some(port) = url.port_or_known_default() {
                span.set("server.port", || u32::from(port));
            }
        }
        None => {}
    }
    span
}

/// Ends the span of a call.
pub(crate) fn end_call(mut span: OpenSpan, outcome: &CallOutcome) {
    match outcome {
        CallOutcome::Ok(result) => span.set("pml.result.size", || result.get().len()),
        CallOutcome::ToolError(ToolError::Result(result)) => {
            span.set("pml.result.size", || result.get().len());
            span.fail("tool_error");
        }
        CallOutcome::ToolError(ToolError::Rpc(error)) => {
            span.set("rpc.response.status_code", || error.code.to_string());
            span.fail(&error.code.to_string());
        }
        CallOutcome::NotSent(problem) | CallOutcome::Unknown(problem) => {
            span.fail(&problem.code.to_string());
        }
        CallOutcome::NeedsApproval(_) | CallOutcome::Withheld(_) => span.discard(),
    }
}

/// Logs a call, for who reads logs and has no collector. Values of arguments and results stay out, as in spans.
pub(super) fn log_call(id: &ToolId, arguments: &str, outcome: &CallOutcome, took: Duration) {
    if !tracing::enabled!(Level::DEBUG) {
        return;
    }
    let (status, result_bytes) = match outcome {
        CallOutcome::Ok(result) => ("ok".to_owned(), result.get().len()),
        CallOutcome::ToolError(ToolError::Result(result)) => ("tool_error".to_owned(), result.get().len()),
        CallOutcome::ToolError(ToolError::Rpc(error)) => (error.code.to_string(), 0),
        CallOutcome::NotSent(problem) | CallOutcome::Unknown(problem) => (problem.code.to_string(), 0),
        // There was no call.
        CallOutcome::NeedsApproval(_) | CallOutcome::Withheld(_) => return,
    };
    tracing::debug!(
        server = id.server.as_str(),
        tool = id.tool.as_str(),
        %status,
        duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        arguments = %shape(arguments),
        argument_bytes = arguments.len(),
        result_bytes,
        "a call ended"
    );
}
