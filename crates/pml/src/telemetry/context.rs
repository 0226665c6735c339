//! W3C Trace Context, in the `_meta` of MCP requests and in the headers of others.

use std::fmt;
use std::sync::Arc;

use pml_mcp::protocol::edit_meta;
use pml_model::json::{Fields, raw};
use serde_json::value::RawValue;

/// The member of `_meta` with the trace and the span.
const TRACE_PARENT: &str = "traceparent";
/// The member of `_meta` with what other systems note about the trace.
const TRACE_STATE: &str = "tracestate";
/// 512 characters: the longest `tracestate` that the standard has everybody pass on.
const MAX_STATE: usize = 512;

/// A place in a trace: what happens next there is within this span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceContext {
    trace: [u8; 16],
    span: [u8; 8],
    flags: u8,
    /// The `tracestate`, passed on as it came.
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// A new span within `parent`, else of a new trace; `None` if the system gives no random numbers.
    pub(super) fn child_of(parent: Option<&TraceContext>) -> Option<TraceContext> {
        let span = random()?;
        Some(match parent {
            Some(parent) => TraceContext { span, ..parent.clone() },
            None => TraceContext { trace: random()?, span, flags: 1, state: None },
        })
    }

    /// Reads a `traceparent`: version, trace, span and flags.
    pub(crate) fn parse(text: &str) -> Option<TraceContext> {
        let mut parts = text.split('-');
        let version: [u8; 1] = hex(parts.next()?)?;
        let context = TraceContext {
            trace: hex(parts.next()?)?,
            span: hex(parts.next()?)?,
            flags: hex::<1>(parts.next()?)?[0],
            state: None,
        };
        // Later versions may have more parts; 255 is none.
        let is_valid = match version[0] {
            0 => parts.next().is_none(),
            255 => false,
            _ => true,
        };
        (is_valid && context.trace != [0; 16] && context.span != [0; 8]).then_some(context)
    }

    pub(super) fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    pub(super) fn trace(&self) -> [u8; 16] {
        self.trace
    }

    pub(super) fn span(&self) -> [u8; 8] {
        self.span
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The other flags belong to later versions, and version 00 has them zero.
        write!(f, "00-{}-{}-{:02x}", to_hex(&self.trace), to_hex(&self.span), self.flags & 1)
    }
}

tokio::task_local! {
    static CURRENT: Option<TraceContext>;
}

/// Does something within a span, so that what it begins is part of the same trace. Not an `async fn`: that would hold
/// `work` twice.
pub(crate) fn in_context<T>(
    context: Option<TraceContext>,
    work: impl Future<Output = T>,
) -> impl Future<Output = T> {
    CURRENT.scope(context, work)
}

/// The span that this task is within.
pub(crate) fn current() -> Option<TraceContext> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

/// The trace context in the `_meta` of a request's parameters.
pub(crate) fn read_trace_context(params: &RawValue) -> Option<TraceContext> {
    // A cheap text search first: few requests carry a context and some are large.
    if !params.get().contains(TRACE_PARENT) {
        return None;
    }
    let params = Fields::parse(params.get()).ok()?;
    let meta = Fields::parse(params.get("_meta")?.get()).ok()?;
    trace_context(&meta.read::<String>(TRACE_PARENT)?, meta.read::<String>(TRACE_STATE).as_deref())
}

/// The trace context that a `traceparent` and a `tracestate` name.
pub(crate) fn trace_context(parent: &str, state: Option<&str>) -> Option<TraceContext> {
    let mut context = TraceContext::parse(parent)?;
    context.state = state.filter(|state| !state.is_empty() && state.len() <= MAX_STATE).map(Arc::from);
    Some(context)
}

/// Adds the trace context to the `_meta` of a request.
pub(crate) fn add_trace_context(params: &mut Fields<'_>, context: &TraceContext) {
    edit_meta(params, |meta| {
        meta.set(TRACE_PARENT, raw(&context.to_string()));
        if let Some(state) = &context.state {
            meta.set(TRACE_STATE, raw(&state.as_ref()));
        }
    });
}

fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok()?;
    // All zeros means that there is no id.
    bytes[N - 1] |= 1;
    Some(bytes)
}

pub(super) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads lower-case digits, as the standard wants them.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
