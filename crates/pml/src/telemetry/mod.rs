//! OpenTelemetry: spans of requests, runs and tool calls, sent to a collector over OTLP/HTTP.
//!
//! Off unless `telemetry.otlp_endpoint` is set. Ending a span never waits: it goes to a bounded queue, and one that finds
//! no room is dropped and counted. The trace of a client, from `_meta`, is passed on to tools whether or not spans are sent.

mod context;
mod counts;
mod export;
mod shape;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;

pub(crate) use context::{
    TraceContext, add_trace_context, current, in_context, read_trace_context, trace_context,
};
pub(crate) use counts::SpanCounts;
pub(crate) use export::{SpanReceiver, export_task};
pub(crate) use shape::shape;

/// The spans that may wait to be sent: what a busy gateway makes in some seconds.
const QUEUE: usize = 8_192;

/// Makes spans.
#[derive(Debug, Clone)]
pub(crate) struct Telemetry {
    /// `None` if spans are not sent.
    queue: Option<SpanSender>,
}

/// The end of the queue that spans enter.
#[derive(Debug, Clone)]
struct SpanSender {
    queue: mpsc::Sender<FinishedSpan>,
    counts: Arc<SpanCounts>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AttributeValue {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> AttributeValue {
        AttributeValue::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> AttributeValue {
        AttributeValue::Text(text)
    }
}

impl From<u32> for AttributeValue {
    fn from(number: u32) -> AttributeValue {
        AttributeValue::Number(number.into())
    }
}

impl From<usize> for AttributeValue {
    fn from(number: usize) -> AttributeValue {
        AttributeValue::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for AttributeValue {
    fn from(flag: bool) -> AttributeValue {
        AttributeValue::Flag(flag)
    }
}

/// On which side of a call a span is, by the numbers of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// Within this program.
    Internal = 1,
    /// Serves a request.
    Server = 2,
    /// Makes a request.
    Client = 3,
}

/// A span that has ended.
#[derive(Debug)]
pub(crate) struct FinishedSpan {
    context: TraceContext,
    parent: Option<[u8; 8]>,
    name: String,
    kind: SpanKind,
    /// Nanoseconds since the Unix epoch.
    begin: u128,
    end: u128,
    attributes: Vec<(&'static str, AttributeValue)>,
    /// Whether what it tells of failed.
    failed: bool,
}

/// A span that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct OpenSpan {
    /// The context for what is called within; `None` if there is no trace.
    context: Option<TraceContext>,
    recorded: Option<(SpanSender, FinishedSpan)>,
}

impl Telemetry {
    /// Spans that are received by an [`export_task`]; none are made if `enabled` is false.
    pub(crate) fn new(enabled: bool) -> (Telemetry, Option<SpanReceiver>) {
        if !enabled {
            return (Telemetry { queue: None }, None);
        }
        let (queue, receiver) = mpsc::channel(QUEUE);
        let counts = Arc::<SpanCounts>::default();
        let receiver = SpanReceiver::new(receiver, Arc::clone(&counts));
        (Telemetry { queue: Some(SpanSender { queue, counts }) }, Some(receiver))
    }

    /// What became of the spans; `None` if none are sent.
    pub(crate) fn counts(&self) -> Option<&SpanCounts> {
        self.queue.as_ref().map(|sender| &*sender.counts)
    }

    /// Whether spans are sent.
    pub(crate) fn is_enabled(&self) -> bool {
        self.queue.is_some()
    }

    /// Begins a span within `parent`, else the first one of a trace.
    pub(crate) fn begin(&self, name: &str, kind: SpanKind, parent: Option<TraceContext>) -> OpenSpan {
        // A client that does not sample its trace does not want spans of it.
        let sampled = parent.as_ref().is_none_or(TraceContext::is_sampled);
        let queue = self.queue.as_ref().filter(|_| sampled);
        let context = queue.and_then(|_| TraceContext::child_of(parent.as_ref()));
        let (Some(queue), Some(context)) = (queue, context) else {
            return OpenSpan::of_parent(parent);
        };
        let span = FinishedSpan {
            context: context.clone(),
            parent: parent.as_ref().map(TraceContext::span),
            name: name.to_owned(),
            kind,
            begin: now(),
            end: 0,
            attributes: Vec::new(),
            failed: false,
        };
        OpenSpan { context: Some(context), recorded: Some((queue.clone(), span)) }
    }
}

impl OpenSpan {
    /// No span of its own: what is called within belongs to the span of the client.
    pub(crate) fn of_parent(parent: Option<TraceContext>) -> OpenSpan {
        OpenSpan { context: parent, recorded: None }
    }

    /// The context for what happens within the span.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.context.clone()
    }

    /// Sets an attribute. `value` is not called unless the span is sent.
    pub(crate) fn set<V: Into<AttributeValue>>(&mut self, name: &'static str, value: impl FnOnce() -> V) {
        if let Some((_, span)) = &mut self.recorded {
            span.attributes.push((name, value().into()));
        }
    }

    /// Marks the span as failed, with the kind of the error alone: messages quote arguments and results.
    pub(crate) fn fail(&mut self, kind: &str) {
        if let Some((_, span)) = &mut self.recorded {
            span.attributes.push(("error.type", kind.into()));
            span.failed = true;
        }
    }

    /// Sends no span: what it would tell of did not happen.
    pub(crate) fn discard(mut self) {
        self.recorded = None;
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some((sender, mut span)) = self.recorded.take() {
            span.end = now();
            // Runs go on whether or not anybody looks at their spans.
            if sender.queue.try_send(span).is_err() {
                sender.counts.note_no_room();
            }
        }
    }
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

#[cfg(test)]
mod tests;
