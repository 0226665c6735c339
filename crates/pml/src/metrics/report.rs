//! The figures as they are told: collected once, and written as JSON or in the text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use super::family::{CounterFamily, HistogramFamily};

/// The values of a metric, each with its labels.
type LabelledValues<'v> = &'v [(Vec<(&'static str, String)>, f64)];

/// All figures at one moment.
#[derive(Debug, Default)]
pub struct MetricsReport {
    families: Vec<MetricFamily>,
}

/// One metric.
#[derive(Debug)]
pub struct MetricFamily {
    /// The name.
    pub name: String,
    /// What it counts or measures, in one sentence.
    pub help: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The values, each with its own labels.
    pub samples: Vec<MetricSample>,
}

/// One value of a metric.
#[derive(Debug)]
pub struct MetricSample {
    /// The labels that tell it from the other values of the metric.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: MetricValue,
}

/// A value.
#[derive(Debug)]
pub enum MetricValue {
    /// A number; not a number where there is nothing to divide by.
    Number(f64),
    /// Observations.
    Histogram {
        /// The bounds, each with the number of observations not above it.
        buckets: Vec<(f64, u64)>,
        /// The number of observations.
        count: u64,
        /// Their sum.
        sum: f64,
    },
}

impl MetricsReport {
    /// The `Content-Type` of the text.
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// All metrics, in the order in which they were added.
    pub fn families(&self) -> &[MetricFamily] {
        &self.families
    }

    /// The text format of Prometheus.
    pub fn to_prometheus(&self) -> String {
        let mut text = PrometheusText::default();
        self.families.iter().for_each(|family| text.family(family));
        text.0
    }

    /// Adds a number that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, values: LabelledValues<'_>) {
        let number = |(labels, value): &(Vec<(&'static str, String)>, f64)| (labels.clone(), *value);
        self.numbers(name, help, "gauge", values.iter().map(number));
    }

    /// Adds a number that only grows.
    pub(crate) fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.numbers(name, help, "counter", std::iter::once((Vec::new(), value)));
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    pub(super) fn family(&mut self, name: &str, help: &str, family: &CounterFamily) {
        let values = family.read().into_iter().map(|(labels, value)| (labels, value as f64));
        self.numbers(name, help, "counter", values);
    }

    fn numbers(
        &mut self,
        name: &str,
        help: &str,
        kind: &'static str,
        values: impl Iterator<Item = (Vec<(&'static str, String)>, f64)>,
    ) {
        let sample = |(labels, value)| MetricSample { labels, value: MetricValue::Number(value) };
        self.add(name, help, kind, values.map(sample).collect());
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, family: &HistogramFamily) {
        let samples = family.read().into_iter().map(|series| MetricSample {
            labels: vec![series.label],
            value: MetricValue::Histogram { buckets: series.buckets, count: series.count, sum: series.sum },
        });
        self.add(name, help, "histogram", samples.collect());
    }

    fn add(&mut self, name: &str, help: &str, kind: &'static str, samples: Vec<MetricSample>) {
        self.families.push(MetricFamily { name: name.to_owned(), help: help.to_owned(), kind, samples });
    }
}

/// Figures in the text format of Prometheus.
#[derive(Default)]
struct PrometheusText(String);

impl PrometheusText {
    fn family(&mut self, family: &MetricFamily) {
        let MetricFamily { name, help, kind, samples } = family;
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        for sample in samples {
            match &sample.value {
                MetricValue::Number(value) => self.sample(name, &sample.labels, *value),
                MetricValue::Histogram { buckets, count, sum } => {
                    self.histogram(name, &sample.labels, (buckets.as_slice(), *count, *sum));
                }
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    fn histogram(
        &mut self,
        name: &str,
        labels: &[(&'static str, String)],
        (buckets, count, sum): (&[(f64, u64)], u64, f64),
    ) {
        let bucket = format!("{name}_bucket");
        for (bound, below) in buckets.iter().copied().chain([(f64::INFINITY, count)]) {
            let labels: Vec<_> = labels.iter().cloned().chain([("le", number(bound))]).collect();
            self.sample(&bucket, &labels, below as f64);
        }
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, count as f64);
    }

    fn sample(&mut self, name: &str, labels: &[(&'static str, String)], value: f64) {
        let value = number(value);
        if labels.is_empty() {
            return self.line(format_args!("{name} {value}\n"));
        }
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        self.line(format_args!("{name}{{{}}} {value}\n", labels.join(",")));
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("a string has room");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    if value.is_infinite() { "+Inf".to_owned() } else { value.to_string() }
}
