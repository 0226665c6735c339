//! A measured figure, and helpers to compute one.

use std::time::Duration;

use pml::problem::{ErrorCode, Problem};
use serde::Serialize;

/// A measured figure and its target.
#[derive(Debug, Serialize)]
pub(crate) struct BenchFigure {
    what: String,
    measured: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

impl BenchFigure {
    pub(crate) fn of(what: impl Into<String>, measured: impl Into<String>) -> BenchFigure {
        BenchFigure { what: what.into(), measured: measured.into(), target: None, met: None }
    }

    pub(crate) fn target(mut self, target: impl Into<String>, met: bool) -> BenchFigure {
        self.target = Some(target.into());
        self.met = Some(met);
        self
    }

    #[cfg(test)]
    pub(crate) fn met(&self) -> Option<bool> {
        self.met
    }
}

impl std::fmt::Display for BenchFigure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<61} {}", self.what, self.measured)?;
        match (&self.target, self.met) {
            (Some(target), Some(true)) => write!(f, "  (to reach: {target}; reached)"),
            (Some(target), _) => write!(f, "  (to reach: {target}; MISSED)"),
            (None, _) => Ok(()),
        }
    }
}

/// A problem that says why a figure could not be measured.
pub(crate) fn failed(what: impl std::fmt::Display) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, format!("the measurement failed: {what}"))
}

/// The quantile of the samples, `share` from 0 to 1.
pub(crate) fn quantile(samples: &mut [Duration], share: f64) -> Duration {
    samples.sort_unstable();
    let index = ((samples.len().saturating_sub(1)) as f64 * share).round() as usize;
    samples.get(index).copied().unwrap_or_default()
}

pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}
