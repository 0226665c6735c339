//! Capabilities that `expose` names, as tools of their own.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use pml_mcp::RpcError;
use pml_mcp::server::{ChangeNotice, IncomingRequest};
use pml_model::json::raw;
use pml_model::{Digest, Principal};
use serde_json::json;
use serde_json::value::RawValue;

use super::ClientAccess;
use super::direct::follow_run;
use super::request::{read_idempotency, session_id};
use crate::app::App;
use crate::config::Expose;
use crate::flow::{self, ExposedCapability};
use crate::planning::{RunRequest, Work};
use crate::problem::{ErrorCode, Problem};

/// The definitions of the capabilities that a client is shown.
pub(super) async fn definitions(app: &App, principal: &Principal, exposure: &Expose) -> Vec<Box<RawValue>> {
    let Expose::Only(names) = exposure else { return Vec::new() };
    match flow::exposed_capabilities(app, principal, names).await {
        Ok(shown) => shown.iter().map(definition).collect(),
        Err(problem) => {
            tracing::warn!(%problem, "capabilities are not listed");
            Vec::new()
        }
    }
}

fn definition(capability: &ExposedCapability) -> Box<RawValue> {
    raw(&json!({
        "name": capability.name,
        "description": capability.description,
        "inputSchema": capability.input_schema,
        "outputSchema": { "type": "object", "properties": { "result": capability.result_schema }, "required": ["result"] },
        "annotations": {
            "readOnlyHint": capability.read_only,
            "idempotentHint": capability.idempotent,
            "openWorldHint": capability.open_world,
        },
    }))
}

/// Runs the capability that a client calls as a tool; `None` if no such capability is exposed to it.
pub(super) async fn call(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
    name: &str,
    arguments: &RawValue,
) -> Option<Result<Box<RawValue>, RpcError>> {
    let Expose::Only(names) = &door.expose else { return None };
    let principal = &request.client.principal;
    let shown = match flow::exposed_capabilities(app, principal, names).await {
        Ok(shown) => shown,
        Err(problem) => return Some(Ok(problem.to_typed_tool_result())),
    };
    let capability = shown.into_iter().find(|one| one.name == name)?;
    let called = run(app, request, door, capability, arguments).await;
    Some(Ok(called.unwrap_or_else(|problem| problem.to_typed_tool_result())))
}

async fn run(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
    capability: ExposedCapability,
    arguments: &RawValue,
) -> Result<Box<RawValue>, Problem> {
    let config = app.config();
    let name = capability.name;
    let asked = RunRequest {
        principal: request.client.principal.clone(),
        session: session_id(request),
        // Its words are no request: values are taken from the arguments alone.
        intent: String::new(),
        idempotency: read_idempotency(&request.params, None, || {
            Digest::of(format!("{name} {arguments}").as_bytes())
        })?,
        work: Work::Capability(name),
        arguments: arguments.to_owned(),
        timeout: None,
        caller: request.caller.clone(),
        max_wait: door.patience,
        answerer: config.approvals.answerer.unwrap_or(door.default_answerer),
        dynamic: config.approvals.dynamic,
        learn: config.memory.learn,
        capability: None,
        key: request.client.key,
        use_cache: config.memory.cache,
        speculate: true,
    };
    let executed = tokio::select! {
        // Its tools need not be exposed: whoever exposes it means what it does. The key has to reach them.
        executed = flow::execute(app, asked, |id| door.reach.holds(id)) => executed?,
        () = request.cancel.cancelled() => {
            return Err(Problem::new(ErrorCode::Cancelled, "the request was cancelled before anything ran"));
        }
    };
    follow_run(app, request, door, (executed, door.patience)).await
}

/// The capabilities that each principal is shown, as their clients know them.
#[derive(Default)]
pub(super) struct ListedCapabilities {
    by_principal: Mutex<HashMap<Principal, Vec<String>>>,
}

impl ListedCapabilities {
    /// Remembers what a principal is shown, so that changes of it are announced.
    pub(super) async fn watch(&self, app: &App, principal: &Principal, expose_override: Option<&Expose>) {
        if !self.by_principal.lock().contains_key(principal) {
            let shown = shown(app, principal, expose_override).await;
            self.by_principal.lock().entry(principal.clone()).or_insert(shown);
        }
    }

    /// Whether any principal is shown something else than before. Remembers what it is.
    async fn have_changed(&self, app: &App, expose_override: Option<&Expose>) -> bool {
        let principals: Vec<Principal> = self.by_principal.lock().keys().cloned().collect();
        let mut changed = false;
        for principal in principals {
            let shown = shown(app, &principal, expose_override).await;
            let before = self.by_principal.lock().insert(principal, shown.clone());
            changed |= before.as_ref() != Some(&shown);
        }
        changed
    }
}

/// All capabilities that any client of a principal may be shown.
async fn shown(app: &App, principal: &Principal, expose_override: Option<&Expose>) -> Vec<String> {
    let config = app.config();
    let of_clients = config.clients.values().filter_map(|client| client.expose.as_ref());
    let all = of_clients.chain([expose_override.unwrap_or(&config.expose)]);
    let names: Vec<String> = all.filter_map(listed_names).flatten().cloned().collect();
    let definitions = definitions(app, principal, &Expose::Only(names)).await;
    definitions.iter().map(|one| one.get().to_owned()).collect()
}

/// Tells clients when the capabilities that they are shown have changed.
pub(super) async fn announce_changes(
    app: Arc<App>,
    listed: Arc<ListedCapabilities>,
    expose_override: Option<Expose>,
) {
    let mut changes = app.store.changes();
    let mut version = app.store.capability_version().ok();
    listed.watch(&app, &app.principal, expose_override.as_ref()).await;
    loop {
        tokio::select! {
            () = changes.changed() => {}
            () = app.stopped() => return,
        }
        let current = app.store.capability_version().ok();
        if current == version {
            continue;
        }
        version = current;
        if listed.have_changed(&app, expose_override.as_ref()).await {
            app.tools.announce(ChangeNotice::Tools);
        }
    }
}

fn listed_names(exposure: &Expose) -> Option<&Vec<String>> {
    match exposure {
        Expose::Only(names) => Some(names),
        Expose::Meta | Expose::Full => None,
    }
}
