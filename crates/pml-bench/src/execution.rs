//! Requests to `pml::flow` for measurements.

use std::time::Duration;

use pml::app::App;
use pml::config::DynamicPolicy;
use pml::planning::{RunRequest, Work};
use pml_mcp::Caller;
use pml_model::json::empty_object;
use pml_model::question::Answerer;

/// A run request for `work` with default options.
pub(crate) fn execution(app: &App, work: Work) -> RunRequest {
    RunRequest {
        principal: app.principal.clone(),
        session: "bench".to_owned(),
        intent: "measure".to_owned(),
        work,
        arguments: empty_object(),
        timeout: None,
        caller: Caller::silent(),
        idempotency: None,
        max_wait: Duration::from_secs(60),
        answerer: Answerer::Human,
        dynamic: DynamicPolicy::Refuse,
        learn: true,
        capability: None,
        key: None,
        use_cache: false,
        speculate: true,
    }
}
