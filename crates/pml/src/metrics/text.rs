//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use super::family::{CounterFamily, HistogramFamily};

/// The values of a metric, each with its labels.
type LabelledValues<'v> = &'v [(Vec<(&'v str, String)>, f64)];

/// Figures as text.
#[derive(Debug, Default)]
pub struct MetricsText(String);

impl MetricsText {
    /// The `Content-Type` of the text.
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// The whole text.
    pub fn into_string(self) -> String {
        self.0
    }

    /// Writes a number that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, values: LabelledValues<'_>) {
        self.head(name, help, "gauge");
        for (labels, value) in values {
            self.sample(name, labels, *value);
        }
    }

    /// Writes a number that only grows.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "counter");
        self.sample(name, &[], value);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    pub(super) fn family(&mut self, name: &str, help: &str, family: &CounterFamily) {
        self.head(name, help, "counter");
        for (labels, value) in family.read() {
            self.sample(name, &labels, value as f64);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    pub(super) fn histogram(&mut self, name: &str, help: &str, family: &HistogramFamily) {
        self.head(name, help, "histogram");
        let bucket = format!("{name}_bucket");
        for series in family.read() {
            let infinite = (f64::INFINITY, series.count);
            for (bound, count) in series.buckets.iter().copied().chain([infinite]) {
                self.sample(&bucket, &[series.label.clone(), ("le", number(bound))], count as f64);
            }
            self.sample(&format!("{name}_sum"), std::slice::from_ref(&series.label), series.sum);
            self.sample(&format!("{name}_count"), &[series.label], series.count as f64);
        }
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, String)], value: f64) {
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
