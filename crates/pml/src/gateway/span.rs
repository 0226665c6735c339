//! The spans of requests, by the semantic conventions of MCP.

use pml_mcp::RpcError;
use pml_mcp::server::{IncomingRequest, RequestTransport, RequestWire};
use pml_model::json::Fields;
use pml_model::name::{printable, truncate_text};
use serde_json::value::RawValue;

use crate::telemetry::{OpenSpan, SpanKind, Telemetry, read_trace_context};
use crate::tools::is_error_result;

/// The longest name of a tool or prompt in a span, in characters. Clients may name anything.
const MAX_NAME: usize = 128;

/// Begins the span of a request, within the trace of the client if it names one.
pub(super) fn begin_request(telemetry: &Telemetry, request: &IncomingRequest) -> OpenSpan {
    let parent = read_trace_context(&request.params);
    if !telemetry.is_enabled() {
        return OpenSpan::of_parent(parent);
    }
    let method = truncate_text(&printable(&request.method), MAX_NAME);
    let target = match request.method.as_str() {
        "tools/call" => named(&request.params).map(|name| ("gen_ai.tool.name", name)),
        "prompts/get" => named(&request.params).map(|name| ("gen_ai.prompt.name", name)),
        _ => None,
    };
    let name = match &target {
        Some((_, target)) => format!("{method} {target}"),
        None => method.clone(),
    };
    let mut span = telemetry.begin(&name, SpanKind::Server, parent);
    span.set("mcp.method.name", || method);
    span.set("mcp.session.id", || request.caller.session().to_string());
    if let Some(RequestWire { id, version, transport }) = &request.wire {
        span.set("jsonrpc.request.id", || truncate_text(&printable(id.trim_matches('"')), MAX_NAME));
        if let Some(version) = version {
            span.set("mcp.protocol.version", || version.as_str());
        }
        span.set("network.transport", || match transport {
            RequestTransport::Pipe => "pipe",
            RequestTransport::Tcp => "tcp",
        });
    }
    span.set("pml.client.name", || truncate_text(&printable(&request.client.name), MAX_NAME));
    if let Some((attribute, target)) = target {
        if attribute == "gen_ai.tool.name" {
            span.set("gen_ai.operation.name", || "execute_tool");
        }
        span.set(attribute, || target);
    }
    span
}

/// Ends the span of a request.
pub(super) fn end_request(mut span: OpenSpan, answer: &Result<Box<RawValue>, RpcError>) {
    match answer {
        Ok(result) if is_error_result(result) => span.fail("tool_error"),
        Ok(_) => {}
        Err(error) => {
            span.set("rpc.response.status_code", || error.code.to_string());
            span.fail(&error.code.to_string());
        }
    }
}

fn named(params: &RawValue) -> Option<String> {
    let name: String = Fields::parse(params.get()).ok()?.read("name")?;
    Some(truncate_text(&printable(&name), MAX_NAME))
}
