//! Tells of a cached result as if it had been run.

use std::sync::Arc;

use pml_model::{Principal, RunId};

use crate::app::App;
use crate::clock::now_ms;
use crate::execute;
use crate::knowledge::cache;
use crate::plan::Plan;
use crate::problem::Problem;
use crate::report::RunReport;

/// A cached result in the form of a run.
pub struct CachedRun {
    /// The run that produced the cached result; a new id if that is not recorded.
    pub id: RunId,
    /// The report with the cached result.
    pub report: RunReport,
}

/// Reports a cached result as if it had been run.
pub(super) fn cached_run(
    app: &Arc<App>,
    principal: &Principal,
    plan: &Plan,
    hit: cache::CacheHit,
) -> Result<Box<CachedRun>, Problem> {
    let id = execute::new_run_id()?;
    cache::record_cache_use(&app.knowledge, plan, principal, &id);
    let capability = plan.learn.as_ref().map(|learn| learn.capability_id(principal));
    let next = match &capability {
        Some(capability) => {
            let tools: Vec<String> = plan.tools.iter().map(|tool| tool.id.to_string()).collect();
            let called = plan.nested.iter().map(|nested| nested.id.as_str());
            let ran = tools.iter().map(String::as_str).chain(called).chain([capability.as_str()]).collect();
            app.knowledge.next_after(principal, Some(capability), None, &ran)
        }
        None => Vec::new(),
    };
    let report = RunReport::from_cache(hit.result, hit.source, capability, next, now_ms());
    Ok(Box::new(CachedRun { id: hit.run.unwrap_or(id), report }))
}
