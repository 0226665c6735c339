//! Sends spans to a collector, in batches, as OTLP/HTTP with JSON.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::context::to_hex;
use super::{AttributeValue, FinishedSpan, SpanCounts};
use crate::config::TelemetryCollector;
use crate::tls;

/// The spans of one request to the collector.
const BATCH: usize = 512;
/// 1 s: how long a span waits for others to be sent with it. A full batch does not wait.
pub(super) const GATHER: Duration = Duration::from_secs(1);
/// 10 s: how long a collector that failed is left alone.
const BACKOFF: Duration = Duration::from_secs(10);
/// 5 s: how long the collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// 2 s: how long the last spans may take when the program ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// The spans that wait to be sent.
#[derive(Debug)]
pub(crate) struct SpanReceiver {
    queue: mpsc::Receiver<FinishedSpan>,
    counts: Arc<SpanCounts>,
}

impl SpanReceiver {
    pub(super) fn new(queue: mpsc::Receiver<FinishedSpan>, counts: Arc<SpanCounts>) -> SpanReceiver {
        SpanReceiver { queue, counts }
    }

    /// Waits for spans, and then for others to be sent with them, unless there are enough; with `failing`, until the
    /// collector may be back. Once the program ends it waits for nothing; without spans there are no more then.
    pub(super) async fn next_batch(&mut self, failing: bool, stop: &CancellationToken) -> Vec<FinishedSpan> {
        let mut batch = Vec::new();
        tokio::select! {
            _ = self.queue.recv_many(&mut batch, BATCH) => {}
            () = stop.cancelled() => {}
        }
        let pause = match batch.len() {
            0 => Duration::ZERO,
            _ if failing => BACKOFF,
            BATCH => Duration::ZERO,
            _ => GATHER,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => {}
        }
        while batch.len() < BATCH
            && let Ok(span) = self.queue.try_recv()
        {
            batch.push(span);
        }
        batch
    }

    /// All spans until the last sender is gone.
    #[cfg(test)]
    pub(super) async fn drain(mut self) -> Vec<FinishedSpan> {
        let mut spans = Vec::new();
        while self.queue.recv_many(&mut spans, BATCH).await > 0 {}
        spans
    }
}

/// Sends spans to the collector until the program ends, one batch after the other.
pub(crate) async fn export_task(
    collector: TelemetryCollector,
    mut spans: SpanReceiver,
    stop: CancellationToken,
) {
    let mut exporter = match Exporter::new(&collector) {
        Ok(exporter) => exporter,
        Err(error) => return tracing::error!(%error, "spans cannot be sent"),
    };
    // A batch that is on its way when the program ends is waited for: sent again, it would arrive twice.
    let sending = async {
        loop {
            let batch = spans.next_batch(exporter.failing, &stop).await;
            if batch.is_empty() {
                return;
            }
            if exporter.send(&batch).await {
                spans.counts.note_sent(batch.len());
            } else {
                spans.counts.note_not_sent(batch.len());
                if stop.is_cancelled() {
                    return;
                }
            }
        }
    };
    let out_of_time = async {
        stop.cancelled().await;
        tokio::time::sleep(FAREWELL).await;
    };
    tokio::select! {
        () = sending => {}
        () = out_of_time => tracing::debug!("the last spans could not be sent in time"),
    }
}

/// The connection to the collector.
struct Exporter {
    client: reqwest::Client,
    url: String,
    headers: HeaderMap,
    /// Whether the last batch could not be sent.
    failing: bool,
}

impl Exporter {
    fn new(collector: &TelemetryCollector) -> Result<Exporter, String> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::tls_client_config()?)
            // A redirect could send the spans elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .build()
            .map_err(|error| format!("no HTTP client can be made: {error}"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &collector.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
            let mut value = HeaderValue::from_str(value.reveal()).map_err(|error| error.to_string())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let url = format!("{}/v1/traces", collector.endpoint.as_str().trim_end_matches('/'));
        Ok(Exporter { client, url, headers, failing: false })
    }

    /// Sends a batch, and logs when sending begins to fail and when it works again. A batch that cannot be sent is lost.
    async fn send(&mut self, spans: &[FinishedSpan]) -> bool {
        let sent = self.post(spans).await;
        let (url, failed_before) = (&self.url, self.failing);
        self.failing = sent.is_err();
        match sent {
            Ok(()) if failed_before => tracing::info!(url, "the collector receives spans again"),
            Err(error) if !failed_before => {
                tracing::warn!(url, %error, "the collector receives no spans; they are dropped until it does");
            }
            Ok(()) | Err(_) => {}
        }
        !self.failing
    }

    async fn post(&self, spans: &[FinishedSpan]) -> Result<(), String> {
        let request =
            self.client.post(&self.url).headers(self.headers.clone()).body(encode(spans).to_string());
        let answer = request.send().await.map_err(|error| error.to_string())?;
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(format!("status {}", answer.status().as_u16()))
        }
    }
}

/// An export request of OTLP.
pub(super) fn encode(spans: &[FinishedSpan]) -> Value {
    let version = env!("PML_VERSION");
    let attributes = [
        ("service.name", AttributeValue::from("pml")),
        ("service.version", version.into()),
        ("process.pid", std::process::id().into()),
    ];
    json!({ "resourceSpans": [{
        "resource": { "attributes": attributes.iter().map(|(name, value)| attribute(name, value)).collect::<Vec<_>>() },
        "scopeSpans": [{
            "scope": { "name": "pml", "version": version },
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
        }],
    }] })
}

fn span(span: &FinishedSpan) -> Value {
    let mut encoded = json!({
        "traceId": to_hex(&span.context.trace()),
        "spanId": to_hex(&span.context.span()),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": span.begin.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": span.attributes.iter().map(|(name, value)| attribute(name, value)).collect::<Vec<_>>(),
        // 2 is an error; otherwise the status stays unset, as the conventions want it.
        "status": if span.failed { json!({ "code": 2 }) } else { json!({}) },
    });
    if let Some(parent) = &span.parent {
        encoded["parentSpanId"] = to_hex(parent).into();
    }
    encoded
}

fn attribute(name: &str, value: &AttributeValue) -> Value {
    let value = match value {
        AttributeValue::Text(text) => json!({ "stringValue": text }),
        // 64-bit numbers are strings in the JSON of protocol buffers.
        AttributeValue::Number(number) => json!({ "intValue": number.to_string() }),
        AttributeValue::Flag(flag) => json!({ "boolValue": flag }),
    };
    json!({ "key": name, "value": value })
}
