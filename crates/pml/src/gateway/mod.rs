//! PML as an MCP server: dispatches the requests of clients.
//!
//! `pml-mcp` implements the protocol; `flow` decides what happens to an intent or a call. This module resolves names,
//! assembles lists and gives results their wire shape.

mod ask;
mod calls;
mod capability_tools;
mod direct;
mod discover;
mod dry_run;
mod execute;
mod explore;
mod listing;
mod meta_tools;
mod passthrough;
mod reply;
mod request;
mod run_resources;
mod runs;
mod span;
mod suggestions;
mod task_reply;
mod tasks;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::param_headers::MirroredParameter;
use pml_mcp::server::{
    ChangeNotice, ConnectedClient, Handler, HandlerFuture, IncomingRequest, ServerIntroduction,
};
use pml_mcp::{RpcError, code};
use pml_model::json::{Fields, empty_object, raw};
use pml_model::question::Answerer;
use pml_model::{Role, ServerName, ToolId};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::broadcast;

use crate::app::App;
use crate::catalogue::ToolSnapshot;
use crate::config::Expose;
use crate::keys::KeyReach;
use crate::problem::{ErrorCode, Problem};
use crate::telemetry::in_context;

/// The MCP server for clients. Clones share one gateway.
#[derive(Clone)]
pub struct Gateway {
    app: Arc<App>,
    expose_override: Option<Expose>,
    default_answerer: Answerer,
    routes: Arc<passthrough::PassthroughRoutes>,
    listed: Arc<capability_tools::ListedCapabilities>,
}

/// What the ids of sessions are sealed for.
const SESSION: &str = "mcp session";

/// What a client may see, and whose approvals count by default. It depends on the client and on the interface (stdio
/// or HTTP).
struct ClientAccess {
    /// The tools that the client sees.
    expose: Expose,
    /// The tools that its key reaches.
    reach: KeyReach,
    /// The role of its key.
    role: Role,
    /// Whose approval counts where the configuration does not say.
    default_answerer: Answerer,
    /// How long the client waits for a reply.
    patience: Duration,
}

impl ClientAccess {
    /// Whether the client may call a tool. `meta` only lists fewer tools to save context; a list of names also forbids
    /// the others, and so does the scope of a key.
    fn may_call(&self, id: &ToolId) -> bool {
        is_callable(id, &self.expose) && self.reach.holds(id)
    }

    /// Whether a tool is listed to the client.
    fn lists(&self, id: &ToolId) -> bool {
        is_listed(id, &self.expose) && self.reach.holds(id)
    }

    /// Whether the client may see what a server has beside tools.
    fn sees(&self, server: &ServerName) -> bool {
        is_visible(server, &self.expose) && self.reach.holds_all_of(server.as_str())
    }

    fn check_callable(&self, id: &ToolId) -> Result<ToolId, Problem> {
        if self.may_call(id) {
            return Ok(id.clone());
        }
        Err(Problem::new(ErrorCode::UnknownTool, format!("tool `{id}` is not exposed to this client"))
            .hint("add it to `expose` in pml.toml, or use a key that reaches it"))
    }
}

impl Gateway {
    /// A gateway over `app`. `expose` overrides the configuration for all clients. `by` says whose approval counts
    /// where the configuration does not.
    pub fn new(app: Arc<App>, expose: Option<Expose>, by: Answerer) -> Gateway {
        app.spawn_task(crate::flow::prediction_task(Arc::clone(&app)));
        app.spawn_task(crate::flow::repair_task(Arc::clone(&app)));
        let listed = Arc::<capability_tools::ListedCapabilities>::default();
        let announcing =
            capability_tools::announce_changes(Arc::clone(&app), Arc::clone(&listed), expose.clone());
        app.spawn_task(announcing);
        Gateway { app, expose_override: expose, default_answerer: by, routes: Arc::default(), listed }
    }

    fn exposure(&self, client: &ConnectedClient) -> Expose {
        let name = client_name(&self.app, client);
        self.expose_override.clone().unwrap_or_else(|| self.app.config().expose_to(&name).clone())
    }

    fn access(&self, client: &ConnectedClient) -> Result<ClientAccess, Problem> {
        if let Some(key) = client.key {
            // A session outlives the request it was opened with, and its key may have been revoked since.
            self.app.keys.require(key)?;
        }
        Ok(ClientAccess {
            expose: self.exposure(client),
            reach: self.app.keys.reach(client.key),
            role: self.app.keys.role(client.key).unwrap_or(Role::Agent),
            default_answerer: self.default_answerer,
            patience: self.app.config().wait_of(&client_name(&self.app, client)),
        })
    }

    async fn serve(self, request: IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        let span = span::begin_request(&self.app.tools.telemetry, &request);
        let answer = in_context(span.context(), self.dispatch(request)).await;
        span::end_request(span, &answer);
        answer
    }

    async fn dispatch(&self, request: IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        match request.method.as_str() {
            "tools/list" => self.list_tools(&request).await,
            "tools/call" => {
                let caller = request.caller.clone();
                tokio::select! {
                    answer = self.call_tool(request) => answer,
                    () = caller.send_heartbeats(wait::HEARTBEAT) => unreachable!("heartbeats have no end"),
                }
            }
            "tasks/get" | "tasks/update" | "tasks/cancel" => self.task_request(request).await,
            "logging/setLevel" => Ok(empty_object()),
            _ => self.pass_through(request).await,
        }
    }

    async fn task_request(&self, request: IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        let access = self.access(&request.client).map_err(|problem| problem.to_rpc())?;
        match tasks::answer(&self.app, &request, &access).await {
            Some(answer) => answer,
            None => self.pass_through(request).await,
        }
    }

    async fn list_tools(&self, request: &IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        let access = self.access(&request.client).map_err(|problem| problem.to_rpc())?;
        if access.expose != Expose::Meta {
            self.app.tools.ensure_manifests_loaded().await;
        }
        self.listed.watch(&self.app, &request.client.principal, self.expose_override.as_ref()).await;
        let learned =
            capability_tools::definitions(&self.app, &request.client.principal, &access.expose).await;
        let snapshot = self.app.tools.snapshot();
        let own = meta_tools::definitions(&snapshot);
        let shown =
            snapshot.tools.iter().filter(|tool| access.lists(&tool.id)).map(listing::exposed_definition);
        listing::paginate(own.into_iter().chain(learned).chain(shown), "tools", &request.params)
    }

    async fn call_tool(&self, request: IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        let params = Fields::parse(request.params.get()).unwrap_or_default();
        let Some(name) = params.read::<String>("name") else {
            return Err(RpcError::new(code::INVALID_PARAMS, "`tools/call` without `name`"));
        };
        let arguments = params.get("arguments").map_or_else(empty_object, ToOwned::to_owned);
        let door = match self.access(&request.client) {
            Ok(door) => door,
            Err(problem) => return Ok(problem.to_tool_result()),
        };
        if let Some(answer) = ask::answer_retry(&self.app, &request, &door, &name).await {
            return answer;
        }
        if let Some(answer) = meta_tools::call(&self.app, &name, &arguments, &request, &door).await {
            return Ok(answer);
        }
        if let Some(answer) = capability_tools::call(&self.app, &request, &door, &name, &arguments).await {
            return answer;
        }
        let id = match self.resolve(&name, &door).await {
            Ok(id) => id,
            Err(problem) => return Ok(problem.to_tool_result()),
        };
        let mut passing = params;
        for ours in ["name", "arguments", "task"] {
            passing.remove(ours);
        }
        let result = direct::call(&self.app, &request, &door, &id, &arguments, passing).await?;
        Ok(self.qualify_links(&request.client, &id.server, result))
    }

    /// The tool that a client names, if it may call it. An unknown name may belong to a server whose manifest is not
    /// loaded yet, so all manifests are loaded before the name is refused.
    async fn resolve(&self, name: &str, door: &ClientAccess) -> Result<ToolId, Problem> {
        let snapshot = self.app.tools.snapshot();
        if let Ok(tool) = snapshot.resolve_name(name) {
            return door.check_callable(&tool.id);
        }
        // Its definition may be the accepted one again by now; the call finds out.
        if let Some(held) = snapshot.find_quarantined_by_name(name) {
            return door.check_callable(&held.id);
        }
        // The name says which server has the tool, so the other manifests need not be loaded: the call asks that
        // server.
        if let Ok(id) = ToolId::parse(name) {
            if snapshot.servers.iter().any(|server| server.name == id.server) {
                return door.check_callable(&id);
            }
            if let Some(problem) = self.left_out_problem(&id) {
                return Err(problem);
            }
        }
        self.app.tools.ensure_manifests_loaded().await;
        let snapshot = self.app.tools.snapshot();
        let tool =
            snapshot.resolve_name(name).map_err(|unknown| self.unready_problem(name).unwrap_or(unknown))?;
        door.check_callable(&tool.id)
    }

    /// Why the server that a tool name begins with has not listed its tools; `None` where it has.
    fn unready_problem(&self, name: &str) -> Option<Problem> {
        let is_of = |server: &ServerName| {
            name.strip_prefix(server.as_str()).is_some_and(|tool| tool.starts_with("__"))
        };
        self.app
            .tools
            .unready_servers()
            .into_iter()
            .find(|(server, _)| is_of(server))
            .map(|(_, problem)| problem)
    }

    /// Why the server of a tool was left out of the configuration; `None` where it was not.
    fn left_out_problem(&self, id: &ToolId) -> Option<Problem> {
        let config = self.app.config();
        let problem = config.findings.problems.iter().find(|problem| problem.server == id.server.as_str())?;
        Some(Problem::from(&*problem.complaint))
    }
}

/// The name of a client: the one the operator gave its key, else the one the client gives itself.
fn client_name(app: &App, client: &ConnectedClient) -> String {
    let key = client.key.and_then(|key| app.keys.get(key));
    key.map_or_else(|| client.name.clone(), |key| key.client.clone())
}

impl Handler for Gateway {
    fn introduction(&self, _: &ConnectedClient) -> ServerIntroduction {
        let snapshot = self.app.tools.snapshot();
        ServerIntroduction {
            capabilities: capabilities(&snapshot),
            instructions: meta_tools::instructions(&snapshot),
        }
    }

    fn handle(&self, request: IncomingRequest) -> HandlerFuture {
        Box::pin(self.clone().serve(request))
    }

    fn changes(&self) -> broadcast::Receiver<ChangeNotice> {
        self.app.changes()
    }

    fn seal_session(&self, content: &[u8]) -> Option<Vec<u8>> {
        let sealed = self.app.store.seal_carried(SESSION, content);
        sealed.inspect_err(|error| tracing::warn!(%error, "sessions end with this process")).ok()
    }

    fn open_session(&self, sealed: Vec<u8>) -> Option<Vec<u8>> {
        let opened = self.app.store.open_carried(SESSION, sealed);
        opened.inspect_err(|error| tracing::warn!(%error, "a session could not be continued")).ok()?
    }

    fn mirrored_parameters(&self, _: &ConnectedClient, tool: &str) -> Vec<MirroredParameter> {
        let snapshot = self.app.tools.snapshot();
        snapshot.resolve_name(tool).map(|tool| tool.header_parameters.clone()).unwrap_or_default()
    }
}

/// The capabilities to declare: tools, resources and tasks always, for PML itself has them; others if some server
/// declares them or is not known yet.
fn capabilities(snapshot: &ToolSnapshot) -> Box<RawValue> {
    let may_have = |capability: &str| {
        snapshot.servers.iter().any(|server| {
            let declared = server
                .capabilities
                .as_deref()
                .map(|text| Fields::parse(text).is_ok_and(|f| f.get(capability).is_some()));
            declared.unwrap_or(!server.tools_known)
        })
    };
    let mut all = serde_json::Map::new();
    all.insert("tools".into(), json!({ "listChanged": true }));
    all.insert("logging".into(), json!({}));
    all.insert("resources".into(), json!({ "listChanged": true, "subscribe": true }));
    all.insert("extensions".into(), json!({ (task_reply::EXTENSION): {} }));
    for (capability, settings) in [("prompts", json!({ "listChanged": true })), ("completions", json!({}))] {
        if may_have(capability) {
            all.insert(capability.into(), settings);
        }
    }
    raw(&all)
}

fn is_listed(tool: &ToolId, exposure: &Expose) -> bool {
    match exposure {
        Expose::Meta => false,
        Expose::Full => true,
        Expose::Only(_) => is_callable(tool, exposure),
    }
}

/// Whether a client may call a tool. `meta` only lists fewer tools to save context; a list of names also forbids the
/// others.
fn is_callable(id: &ToolId, exposure: &Expose) -> bool {
    match exposure {
        Expose::Meta | Expose::Full => true,
        Expose::Only(names) => {
            let text = id.to_string();
            names.iter().any(|name| *name == text || name.strip_suffix(":*") == Some(id.server.as_str()))
        }
    }
}

/// Whether a client may see anything at all of a server.
fn is_visible(server: &ServerName, exposure: &Expose) -> bool {
    match exposure {
        Expose::Meta | Expose::Full => true,
        Expose::Only(names) => {
            names.iter().any(|name| name.split_once(':').is_some_and(|(named, _)| named == server.as_str()))
        }
    }
}
