//! The span of an analysis.

use super::{App, PlanRefusal};
use crate::telemetry::{SpanKind, current};

/// Makes a plan within a span.
pub(super) async fn in_analysis_span<T>(
    app: &App,
    planning: impl Future<Output = Result<T, PlanRefusal>>,
) -> Result<T, PlanRefusal> {
    let mut span = app.tools.telemetry.begin("analysis", SpanKind::Internal, current());
    let planned = planning.await;
    if let Err(refused) = &planned {
        span.fail(&refused.problem.code.to_string());
    }
    planned
}
