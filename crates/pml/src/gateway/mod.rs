//! PML as an MCP server: which requests of clients mean what.
//!
//! The protocol itself is `pml-mcp`'s business; what happens to an intent or a call is `flow`'s.
//! Here names are resolved, lists are put together and results take their wire shape.

mod ask;
mod direct;
mod execute;
mod listing;
mod meta_tools;
mod passthrough;
mod reply;
mod runs;

use std::sync::Arc;

use pml_mcp::param_headers::Mirrored;
use pml_mcp::server::{Answer, Change, Client, Handler, Incoming, Welcome};
use pml_mcp::{RpcError, code};
use pml_model::json::{Fields, empty_object, raw};
use pml_model::question::Answerer;
use pml_model::{ServerName, ToolId};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::broadcast;

use crate::app::App;
use crate::catalogue::Snapshot;
use crate::config::Expose;
use crate::problem::{Code, Problem};

/// The gateway as clients see it; clones are the same gateway.
#[derive(Clone)]
pub struct Gateway {
    app: Arc<App>,
    expose: Option<Expose>,
    by: Answerer,
    routes: Arc<passthrough::Routes>,
}

/// What differs from door to door.
struct Door {
    /// Which tools are seen.
    expose: Expose,
    /// Whose word counts where the configuration does not say.
    by: Answerer,
}

impl Gateway {
    /// A gateway over `app`; `expose` overrides the configuration for all clients, and where that does not say whose
    /// word counts when a person has to be asked, `by` does.
    pub fn new(app: Arc<App>, expose: Option<Expose>, by: Answerer) -> Gateway {
        Gateway { app, expose, by, routes: Arc::default() }
    }

    fn exposure(&self, client: &Client) -> Expose {
        let name = client_name(&self.app, client);
        self.expose.clone().unwrap_or_else(|| self.app.config().expose_to(&name).clone())
    }

    async fn serve(self, request: Incoming) -> Result<Box<RawValue>, RpcError> {
        match request.method.as_str() {
            "tools/list" => self.list_tools(&request).await,
            "tools/call" => self.call_tool(request).await,
            "logging/setLevel" => Ok(empty_object()),
            _ => self.pass(request).await,
        }
    }

    async fn list_tools(&self, request: &Incoming) -> Result<Box<RawValue>, RpcError> {
        let exposure = self.exposure(&request.client);
        if exposure != Expose::Meta {
            self.app.tools.ensure_manifests_loaded().await;
        }
        let snapshot = self.app.tools.snapshot();
        let own = meta_tools::definitions(&snapshot);
        let shown = snapshot.tools.iter().filter(|tool| is_listed(&tool.id, &exposure)).map(listing::shown);
        listing::page(own.into_iter().chain(shown), "tools", &request.params)
    }

    async fn call_tool(&self, request: Incoming) -> Result<Box<RawValue>, RpcError> {
        let params = Fields::parse(request.params.get()).unwrap_or_default();
        let Some(name) = params.read::<String>("name") else {
            return Err(RpcError::new(code::INVALID_PARAMS, "`tools/call` without `name`"));
        };
        let arguments = params.get("arguments").map_or_else(empty_object, ToOwned::to_owned);
        let door = Door { expose: self.exposure(&request.client), by: self.by };
        if let Some(answer) = ask::retried(&self.app, &request, &door, &name).await {
            return answer;
        }
        if let Some(answer) = meta_tools::call(&self.app, &name, &arguments, &request, &door).await {
            return Ok(answer);
        }
        let id = match self.resolve(&name, &request.client).await {
            Ok(id) => id,
            Err(problem) => return Ok(problem.to_tool_result()),
        };
        let mut passing = params;
        for ours in ["name", "arguments", "task"] {
            passing.remove(ours);
        }
        direct::call(&self.app, &request, &door, &id, &arguments, passing).await
    }

    /// The tool a client means, if it may call it. A name nobody knows may belong to a server that
    /// nobody has met.
    async fn resolve(&self, name: &str, client: &Client) -> Result<ToolId, Problem> {
        let exposure = self.exposure(client);
        let snapshot = self.app.tools.snapshot();
        if let Ok(tool) = snapshot.named(name) {
            return allowed(&tool.id, &exposure);
        }
        // It may have become again what was accepted, which the call finds out.
        if let Some(held) = snapshot.held_named(name) {
            return allowed(&held.id, &exposure);
        }
        // Where the name says whose tool it is, the others need not be waited for: the call asks its server.
        if let Ok(id) = ToolId::parse(name) {
            if snapshot.servers.iter().any(|server| server.name == id.server) {
                return allowed(&id, &exposure);
            }
            if let Some(problem) = self.left_out(&id) {
                return Err(problem);
            }
        }
        self.app.tools.ensure_manifests_loaded().await;
        let snapshot = self.app.tools.snapshot();
        let tool = snapshot.named(name).map_err(|unknown| self.unready(name).unwrap_or(unknown))?;
        allowed(&tool.id, &exposure)
    }

    /// Why the server that the name of a tool begins with has not listed its tools, where it has not.
    fn unready(&self, name: &str) -> Option<Problem> {
        let is_of = |server: &ServerName| {
            name.strip_prefix(server.as_str()).is_some_and(|tool| tool.starts_with("__"))
        };
        self.app.tools.unready().into_iter().find(|(server, _)| is_of(server)).map(|(_, problem)| problem)
    }

    /// Why the server of a tool is left out of the configuration, where it is.
    fn left_out(&self, id: &ToolId) -> Option<Problem> {
        let config = self.app.config();
        let problem = config.problems.iter().find(|problem| problem.server == id.server.as_str())?;
        Some(Problem::from(&*problem.complaint))
    }
}

/// The name of a client: that of its key, which the operator gave it, else the one it gives itself.
fn client_name(app: &App, client: &Client) -> String {
    let key = client.key.and_then(|key| app.keys.get(key));
    key.map_or_else(|| client.name.clone(), |key| key.client.clone())
}

fn allowed(id: &ToolId, exposure: &Expose) -> Result<ToolId, Problem> {
    if is_callable(id, exposure) {
        return Ok(id.clone());
    }
    Err(Problem::new(Code::UnknownTool, format!("tool `{id}` is not exposed to this client"))
        .hint("add it to `expose` in pml.toml"))
}

impl Handler for Gateway {
    fn welcome(&self, _: &Client) -> Welcome {
        let snapshot = self.app.tools.snapshot();
        Welcome { capabilities: capabilities(&snapshot), instructions: meta_tools::instructions(&snapshot) }
    }

    fn handle(&self, request: Incoming) -> Answer {
        Box::pin(self.clone().serve(request))
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.app.changes()
    }

    fn mirrored(&self, _: &Client, tool: &str) -> Vec<Mirrored> {
        let snapshot = self.app.tools.snapshot();
        snapshot.named(tool).map(|tool| tool.mirrored.clone()).unwrap_or_default()
    }
}

/// What is declared: tools always, and what some server has or, not yet known, may have.
fn capabilities(snapshot: &Snapshot) -> Box<RawValue> {
    let may_have = |capability: &str| {
        snapshot.servers.iter().any(|server| {
            let declared = server
                .capabilities
                .as_deref()
                .map(|text| Fields::parse(text).is_ok_and(|f| f.get(capability).is_some()));
            declared.unwrap_or(!server.known)
        })
    };
    let mut all = serde_json::Map::new();
    all.insert("tools".into(), json!({ "listChanged": true }));
    all.insert("logging".into(), json!({}));
    for (capability, settings) in [
        ("prompts", json!({ "listChanged": true })),
        ("resources", json!({ "listChanged": true, "subscribe": true })),
        ("completions", json!({})),
    ] {
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

/// Listing less saves a client's context; only a list of names takes tools away from it.
fn is_callable(id: &ToolId, exposure: &Expose) -> bool {
    match exposure {
        Expose::Meta | Expose::Full => true,
        Expose::Only(names) => {
            let text = id.to_string();
            names.iter().any(|name| *name == text || name.strip_suffix(":*") == Some(id.server.as_str()))
        }
    }
}

/// Whether a client may see anything of a server.
fn is_visible(server: &ServerName, exposure: &Expose) -> bool {
    match exposure {
        Expose::Meta | Expose::Full => true,
        Expose::Only(names) => {
            names.iter().any(|name| name.split_once(':').is_some_and(|(named, _)| named == server.as_str()))
        }
    }
}
