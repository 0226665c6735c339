//! `GET /metrics` and `GET /api/metrics`: the same figures, for Prometheus and as JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use pml_store::{KeyUse, MockLookups, MockTotals, OpenRun, ServerHealth};
use serde::Serialize;
use serde_json::Value;
use utoipa::{OpenApi, ToSchema};

use super::reply::{Reply, SCHEMA_VERSION, problem_response};
use crate::app::App;
use crate::clock::now_ms;
use crate::metrics::{MetricFamily, MetricSample, MetricValue, MetricsReport};
use crate::problem::Problem;

#[derive(OpenApi)]
#[openapi(paths(metrics, summary))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/metrics", get(metrics)).route("/api/metrics", get(summary))
}

/// Figures for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "access", responses(
    (status = 200, description = "The text format of Prometheus", body = String, content_type = "text/plain"),
))]
async fn metrics(State(app): State<Arc<App>>) -> Response {
    match report(&app).await {
        Ok(report) => ([(CONTENT_TYPE, MetricsReport::CONTENT_TYPE)], report.to_prometheus()).into_response(),
        Err(problem) => problem_response(&problem),
    }
}

/// The figures of this process, and what is so now in the store.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MetricsReply {
    schema_version: u32,
    items: Vec<MetricItem>,
}

/// A metric.
#[derive(Serialize, ToSchema)]
struct MetricItem {
    /// The name, as in `GET /metrics`.
    name: String,
    /// `counter`, `gauge` or `histogram`.
    kind: &'static str,
    help: String,
    samples: Vec<MetricSampleItem>,
}

/// One value of a metric.
#[derive(Serialize, ToSchema)]
struct MetricSampleItem {
    /// What tells it from the other values of the metric.
    labels: BTreeMap<String, String>,
    /// The number; `null` where there is nothing to divide by, and absent for a histogram.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    value: Option<Value>,
    /// For a histogram: the number of observations.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// For a histogram: their sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    sum: Option<f64>,
}

impl From<&MetricFamily> for MetricItem {
    fn from(family: &MetricFamily) -> MetricItem {
        MetricItem {
            name: family.name.clone(),
            kind: family.kind,
            help: family.help.clone(),
            samples: family.samples.iter().map(MetricSampleItem::from).collect(),
        }
    }
}

impl From<&MetricSample> for MetricSampleItem {
    fn from(sample: &MetricSample) -> MetricSampleItem {
        let (value, count, sum) = match &sample.value {
            MetricValue::Number(value) => (Some(Value::from(*value)), None, None),
            MetricValue::Histogram { count, sum, .. } => (None, Some(*count), Some(*sum)),
        };
        let labels =
            sample.labels.iter().map(|(label, value)| ((*label).to_owned(), value.clone())).collect();
        MetricSampleItem { labels, value, count, sum }
    }
}

/// The same figures as `GET /metrics` has, as JSON.
#[utoipa::path(get, path = "/api/metrics", tag = "access", responses((status = 200, body = MetricsReply)))]
async fn summary(State(app): State<Arc<App>>) -> Result<Reply<MetricsReply>, Problem> {
    let items = report(&app).await?.families().iter().map(MetricItem::from).collect();
    Ok(Reply(MetricsReply { schema_version: SCHEMA_VERSION, items }))
}

async fn report(app: &App) -> Result<MetricsReport, Problem> {
    let mut report = MetricsReport::default();
    app.runs.metrics.report(&mut report);
    add_span_counters(app, &mut report);
    add_gauges(app, &mut report).await?;
    Ok(report)
}

/// Adds what became of spans, if they are sent.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn add_span_counters(app: &App, report: &mut MetricsReport) {
    let Some(counts) = app.tools.telemetry.counts() else { return };
    report.counter("pml_spans_sent_total", "Spans that the collector received.", counts.sent() as f64);
    report.counter(
        "pml_spans_dropped_total",
        "Spans that were not sent, or that the collector did not take.",
        counts.dropped() as f64,
    );
}

/// Adds what is so now, in the store that all processes share and in this process.
async fn add_gauges(app: &App, report: &mut MetricsReport) -> Result<(), Problem> {
    let open = app.store.open_runs().await?.runs;
    let mut by_state: BTreeMap<&str, u32> = [("running", 0), ("waiting", 0), ("interrupted", 0)].into();
    let mut asking = 0;
    for OpenRun { run, .. } in &open {
        *by_state.entry(run.state.as_str()).or_default() += 1;
        asking += u32::from(run.question_id.is_some());
    }
    let states: Vec<_> = by_state
        .into_iter()
        .map(|(state, runs)| (vec![("state", state.to_owned())], f64::from(runs)))
        .collect();
    report.gauge("pml_runs_open", "Runs in the store that have not ended, of all processes.", &states);
    let mut gauge = |name: &str, help: &str, value: f64| report.gauge(name, help, &[(Vec::new(), value)]);
    gauge("pml_questions_open", "Runs in the store that wait for an answer.", f64::from(asking));
    let snapshot = app.tools.snapshot();
    gauge("pml_servers", "Configured servers.", count(snapshot.servers.len()));
    gauge("pml_tools", "Tools that may be called.", count(snapshot.tools.len()));
    gauge("pml_store_backlog_bytes", "Changes that are not written yet.", count(app.store.backlog_bytes()));
    gauge("pml_event_readers", "Readers of /events.", count(app.runs.feed.readers()));
    if let Some(embedding) = app.knowledge.embeddings.progress() {
        gauge("pml_embedding_texts", "Texts that are embedded.", count(embedding.embedded));
        gauge(
            "pml_embedding_texts_remaining",
            "Texts that are not embedded yet.",
            count(embedding.remaining),
        );
    }
    let off = app.knowledge.parts_off();
    let off: Vec<_> = off
        .into_iter()
        .map(|(part, of)| (vec![("part", part.name().replace(' ', "_"))], count(of)))
        .collect();
    report.gauge(
        "pml_learned_parts_off",
        "Principals for whom a learned part is off, because it does not help.",
        &off,
    );
    add_mock_gauges(app, report).await?;
    add_model_gauge(app, report);
    add_key_gauges(app, report).await?;
    if let Some(health) = app.store.server_health() {
        add_server_gauges(&health, report);
    }
    let build = [(vec![("version", env!("PML_VERSION").to_owned())], 1.0)];
    report.gauge("pml_build_info", "The version of this program.", &build);
    Ok(())
}

/// Adds what recorded results were worth for dry runs, those of all principals together.
async fn add_mock_gauges(app: &App, report: &mut MetricsReport) -> Result<(), Problem> {
    app.knowledge.write_mocks().await;
    let MockTotals { mocks, lookups, checked, confirmed } = app.store.mock_totals().await?;
    let MockLookups { equal, similar, missing } = lookups;
    let by_outcome = [("equal", equal), ("similar", similar), ("missing", missing)]
        .map(|(outcome, lookups)| (vec![("outcome", outcome.to_owned())], figure(lookups)));
    report.gauge(
        "pml_mock_lookups",
        "Calls of dry runs for which a recorded result was looked for.",
        &by_outcome,
    );
    let mut gauge = |name: &str, help: &str, value: f64| report.gauge(name, help, &[(Vec::new(), value)]);
    gauge("pml_mocks", "Recorded results.", figure(mocks));
    gauge(
        "pml_mock_hit_rate",
        "Share of the lookups that found a recorded result.",
        figure(equal + similar) / figure(equal + similar + missing),
    );
    gauge(
        "pml_mock_curation_accuracy",
        "Share of later real results that agreed with the status of the recorded one.",
        figure(confirmed) / figure(checked),
    );
    Ok(())
}

/// Adds whether the embedding model is in use.
fn add_model_gauge(app: &App, report: &mut MetricsReport) {
    let embeds = if app.knowledge.embeddings.progress().is_some() { 1.0 } else { 0.0 };
    report.gauge(
        "pml_model_in_use",
        "Whether a trained model is in use.",
        &[(vec![("model", "embedding".to_owned())], embeds)],
    );
}

/// Adds how the database server is doing.
fn add_server_gauges(health: &ServerHealth, report: &mut MetricsReport) {
    let mut gauge = |name: &str, help: &str, value: f64| report.gauge(name, help, &[(Vec::new(), value)]);
    let reachable = if health.is_reachable { 1.0 } else { 0.0 };
    gauge("pml_database_reachable", "Whether the database server answered within the last 5 s.", reachable);
    gauge(
        "pml_database_answer_seconds",
        "How long the database server took to store one row, about a second ago.",
        health.answer_time.as_secs_f64(),
    );
    let ahead_s = f64::from(i32::try_from(health.clock_ahead_ms).unwrap_or(i32::MAX)) / 1_000.0;
    gauge("pml_database_clock_ahead_seconds", "How far its clock is ahead of this machine's.", ahead_s);
    let used = count(health.readers_in_use);
    gauge("pml_database_connections_in_use", "Connections for queries that are in use.", used);
    let most = count(health.most_readers);
    gauge("pml_database_connections_most", "Connections for queries that there are at most.", most);
}

/// Adds what is used of the budgets of keys, in all processes.
async fn add_key_gauges(app: &App, report: &mut MetricsReport) -> Result<(), Problem> {
    let mut figures: Vec<(String, KeyUse)> = Vec::new();
    for key in app.keys.with_budget() {
        figures.push((key.id.to_string(), app.store.key_use(key.id, now_ms()).await?));
    }
    let mut gauge = |name: &str, help: &str, value: fn(&KeyUse) -> f64| {
        let rows: Vec<_> =
            figures.iter().map(|(key, used)| (vec![("key", key.clone())], value(used))).collect();
        if !rows.is_empty() {
            report.gauge(name, help, &rows);
        }
    };
    gauge("pml_key_runs", "Runs of a key with a budget that are under way.", |used| figure(used.runs));
    gauge("pml_key_calls_24h", "Its tool calls in 24 hours.", |used| figure(used.calls_today));
    gauge("pml_key_cpu_seconds_24h", "Its processor time in 24 hours.", |used| {
        figure(used.cpu_ms_today) / 1000.0
    });
    gauge("pml_key_stored_bytes", "Bytes that the records of its runs take.", |used| {
        figure(used.stored_bytes)
    });
    gauge("pml_key_refused_24h", "Its requests and calls that a budget did not admit in 24 hours.", |used| {
        figure(used.refused_today)
    });
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn figure(value: u64) -> f64 {
    value as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn count(value: usize) -> f64 {
    value as f64
}
