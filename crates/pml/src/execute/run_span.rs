//! The span of a run: the time in which this process works on it.

use std::sync::Arc;

use super::RunHandle;
use super::driver::Driver;
use crate::plan::Plan;
use crate::report::RunStatus;
use crate::telemetry::{OpenSpan, SpanKind, Telemetry, current, in_context};

/// Begins the span of a run within the request that started or resumed it.
pub(super) fn begin_run(telemetry: &Telemetry, handle: &RunHandle, plan: &Plan) -> OpenSpan {
    let mut span = telemetry.begin("run", SpanKind::Internal, current());
    span.set("pml.run.id", || handle.id.to_string());
    span.set("pml.run.kind", || match plan.dag() {
        None => "program",
        Some(dag) if dag.single => "tool",
        Some(_) => "dag",
    });
    span
}

/// Drives a run within its span.
pub(super) async fn drive_in_span(driver: Driver, mut span: OpenSpan, handle: Arc<RunHandle>) {
    in_context(span.context(), driver.drive()).await;
    match handle.status() {
        RunStatus::Finished(report) => {
            span.set("pml.run.status", || report.state.as_str());
            span.set("pml.run.calls", || report.tasks.len());
            if let Some(failure) = &report.error {
                span.fail(&failure.code.to_string());
            }
        }
        RunStatus::Waiting { .. } => span.set("pml.run.status", || "waiting"),
        RunStatus::Running(_) | RunStatus::Interrupted | RunStatus::Elsewhere => {
            span.set("pml.run.status", || "interrupted");
        }
    }
}
