//! Resources, prompts and completions of downstream servers, passed through.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pml_mcp::client::{Connection, OutgoingRequest, RequestFailure};
use pml_mcp::server::{ConnectedClient, IncomingRequest};
use pml_mcp::{Era, RpcError, code};
use pml_model::ServerName;
use pml_model::json::{Fields, empty_object, raw, strip_hidden_characters};
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{Gateway, listing};
use crate::config::ToolNaming;
use crate::problem::Problem;
use crate::servers::{CallPurpose, ServerHandle, ServerUseGuard};
use crate::telemetry::{add_trace_context, current};

/// How long one server may take to list its prompts or resources, or to subscribe to a resource.
const LIST_PATIENCE: Duration = Duration::from_secs(10);

/// The server of each prompt and resource that was listed, by the name the client uses.
#[derive(Debug, Default)]
pub(super) struct PassthroughRoutes {
    prompts: Mutex<HashMap<String, (ServerName, String)>>,
    resources: Mutex<HashMap<String, ServerName>>,
}

impl Gateway {
    /// Answers a request about a resource, a prompt or a completion of a downstream server.
    pub(super) async fn pass_through(&self, request: IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        match request.method.as_str() {
            "prompts/list" => self.list_prompts(&request).await,
            "resources/list" => self.list_resources(&request).await,
            "resources/templates/list" => self.list_templates(&request).await,
            "prompts/get" => {
                let name = text(&request.params, "name")?;
                let (server, own) = self.prompt(&name, &request.client).await?;
                let mut params = Fields::parse(request.params.get()).unwrap_or_default();
                params.set("name", raw(&own));
                self.forward(&request, &server, params).await
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                let uri = text(&request.params, "uri")?;
                self.resource_request(&request, &uri).await
            }
            "completion/complete" => self.complete(&request).await,
            other => {
                Err(RpcError::new(code::METHOD_NOT_FOUND, format!("method `{other}` is not known here")))
            }
        }
    }

    async fn list_prompts(&self, request: &IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        let all = self.collect("prompts", "prompts/list", &request.client).await;
        let mut counts: HashMap<String, usize> = HashMap::new();
        let own_name =
            |item: &RawValue| Fields::parse(item.get()).ok().and_then(|f| f.read::<String>("name"));
        for (_, item) in &all {
            *counts.entry(own_name(item).unwrap_or_default()).or_default() += 1;
        }
        let naming = self.app.config().names;
        let mut shown = Vec::with_capacity(all.len());
        let mut routes = HashMap::new();
        for (server, item) in all {
            let Some(own) = own_name(&item) else { continue };
            let name = match naming {
                ToolNaming::Plain if counts[&own] == 1 => own.clone(),
                ToolNaming::Plain | ToolNaming::Qualified => format!("{server}__{own}"),
            };
            let mut fields = Fields::parse(item.get()).unwrap_or_default();
            fields.set("name", raw(&name));
            shown.push(fields.to_raw());
            routes.insert(name, (server, own));
        }
        *self.routes.prompts.lock().unwrap_or_else(PoisonError::into_inner) = routes;
        listing::paginate(shown.into_iter(), "prompts", &request.params)
    }

    async fn prompt(&self, name: &str, client: &ConnectedClient) -> Result<(ServerName, String), RpcError> {
        for listed in [false, true] {
            if let Some(route) = self.routes.prompts.lock().unwrap_or_else(PoisonError::into_inner).get(name)
            {
                return Ok(route.clone());
            }
            if !listed {
                let everything = IncomingRequest {
                    method: "prompts/list".into(),
                    params: empty_object(),
                    client: client.clone(),
                    caller: pml_mcp::Caller::silent(),
                    cancel: CancellationToken::new(),
                    cancelled_by_sender: CancellationToken::new(),
                };
                self.list_prompts(&everything).await?;
            }
        }
        Err(RpcError::new(
            code::INVALID_PARAMS,
            format!("no prompt is called `{}`", pml_model::name::printable(name)),
        ))
    }

    async fn list_resources(&self, request: &IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        let all = self.collect("resources", "resources/list", &request.client).await;
        {
            let mut routes = self.routes.resources.lock().unwrap_or_else(PoisonError::into_inner);
            routes.clear();
            for (server, item) in &all {
                if let Some(uri) = Fields::parse(item.get()).ok().and_then(|f| f.read::<String>("uri")) {
                    routes.entry(uri).or_insert_with(|| server.clone());
                }
            }
        }
        listing::paginate(all.into_iter().map(|(_, item)| item), "resources", &request.params)
    }

    async fn list_templates(&self, request: &IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        let all = self.collect("resources", "resources/templates/list", &request.client).await;
        listing::paginate(all.into_iter().map(|(_, item)| item), "resourceTemplates", &request.params)
    }

    /// Sends the request to the server that listed the resource; where none did, to each server with resources in
    /// turn.
    async fn resource_request(
        &self,
        request: &IncomingRequest,
        uri: &str,
    ) -> Result<Box<RawValue>, RpcError> {
        let known = self.routes.resources.lock().unwrap_or_else(PoisonError::into_inner).get(uri).cloned();
        let access = self.access(&request.client).map_err(|problem| problem.to_rpc())?;
        let candidates = match known.filter(|server| access.sees(server)) {
            Some(server) => vec![server],
            None => self.servers_with("resources", &request.client),
        };
        let mut refusal = not_found(uri, request.caller.era());
        for server in candidates {
            let params = Fields::parse(request.params.get()).unwrap_or_default();
            let outcome = match request.method.as_str() {
                "resources/subscribe" => self.watch(&server, uri).await,
                // Other clients may still watch it, and a superfluous notification does no harm.
                "resources/unsubscribe" => Ok(empty_object()),
                _ => self.forward(request, &server, params).await,
            };
            match outcome {
                Err(error) if matches!(error.code, code::RESOURCE_NOT_FOUND | code::INVALID_PARAMS) => {
                    if error.code == code::INVALID_PARAMS && error.data.is_some() {
                        refusal = error;
                    }
                }
                other => return other,
            }
        }
        Err(refusal)
    }

    async fn watch(&self, server: &ServerName, uri: &str) -> Result<Box<RawValue>, RpcError> {
        let (_in_use, connection) = self.connect(server, &CancellationToken::new()).await?;
        let watched = connection.watch_resource(uri, Instant::now() + LIST_PATIENCE).await;
        watched
            .map(|()| empty_object())
            .map_err(|failure| failure_to_rpc(self.app.tools.servers.get(server), server, failure))
    }

    async fn complete(&self, request: &IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        let mut params = Fields::parse(request.params.get()).unwrap_or_default();
        let given = params.get("ref").map_or_else(empty_object, ToOwned::to_owned);
        let mut reference = Fields::parse(given.get()).unwrap_or_default();
        match (reference.read::<String>("name"), reference.read::<String>("uri")) {
            (Some(name), _) => {
                let (server, own) = self.prompt(&name, &request.client).await?;
                reference.set("name", raw(&own));
                params.set("ref", reference.to_raw());
                self.forward(request, &server, params).await
            }
            (None, Some(_)) => {
                for server in self.servers_with("completions", &request.client) {
                    let params = Fields::parse(request.params.get()).unwrap_or_default();
                    if let Ok(result) = self.forward(request, &server, params).await {
                        return Ok(result);
                    }
                }
                Ok(raw(&json!({ "completion": { "values": [] } })))
            }
            (None, None) => {
                Err(RpcError::new(code::INVALID_PARAMS, "`ref` names neither a prompt nor a resource"))
            }
        }
    }

    async fn forward(
        &self,
        request: &IncomingRequest,
        server: &ServerName,
        mut params: Fields<'_>,
    ) -> Result<Box<RawValue>, RpcError> {
        if let Some(context) = current() {
            add_trace_context(&mut params, &context);
        }
        let (_in_use, connection) = self.connect(server, &request.cancel).await?;
        let timeout =
            self.app.tools.servers.get(server).map_or(LIST_PATIENCE, |slot| slot.settings().call_timeout);
        let call = OutgoingRequest {
            method: &request.method,
            params,
            mirrored: Vec::new(),
            caller: &request.caller,
            deadline: Instant::now() + timeout,
            cancel: &request.cancel,
        };
        connection
            .request(call)
            .await
            .map_err(|failure| failure_to_rpc(self.app.tools.servers.get(server), server, failure))
    }

    /// A connection, and a guard that keeps the server from being stopped as idle meanwhile.
    async fn connect(
        &self,
        server: &ServerName,
        cancel: &CancellationToken,
    ) -> Result<(ServerUseGuard, Arc<Connection>), RpcError> {
        let slot = self.app.tools.servers.get(server);
        let slot =
            slot.ok_or_else(|| RpcError::new(code::INTERNAL_ERROR, format!("server `{server}` is gone")))?;
        let deadline = Instant::now() + slot.settings().start_timeout;
        let in_use = slot.mark_in_use(CallPurpose::Requested);
        let connection =
            slot.connection(deadline, cancel).await.map_err(|unavailable| unavailable.0.to_rpc())?;
        Ok((in_use, connection))
    }

    /// The lists of all servers, each item with its server. A server that fails is left out.
    async fn collect(
        &self,
        capability: &str,
        method: &'static str,
        client: &ConnectedClient,
    ) -> Vec<(ServerName, Box<RawValue>)> {
        let asking = self.servers_with(capability, client).into_iter().map(|server| async move {
            let (_in_use, connection) = self.connect(&server, &CancellationToken::new()).await.ok()?;
            let deadline = Instant::now() + LIST_PATIENCE;
            match connection.list(method, deadline).await {
                Ok(items) => Some((server, items)),
                Err(error) => {
                    tracing::debug!(%server, %error, method, "a server could not list what it has");
                    None
                }
            }
        });
        let listed = futures_util::future::join_all(asking).await;
        let listed = listed.into_iter().flatten();
        listed
            .flat_map(|(server, items)| {
                items.into_iter().map(move |item| (server.clone(), strip_hidden_characters(&item)))
            })
            .collect()
    }

    /// The servers that declare a capability (or last declared it) and of which the client may see something.
    fn servers_with(&self, capability: &str, client: &ConnectedClient) -> Vec<ServerName> {
        let snapshot = self.app.tools.snapshot();
        let Ok(access) = self.access(client) else { return Vec::new() };
        let has = |text: &str| Fields::parse(text).is_ok_and(|fields| fields.get(capability).is_some());
        let having = snapshot.servers.iter().filter(|server| server.capabilities.as_deref().is_some_and(has));
        having.map(|server| server.name.clone()).filter(|server| access.sees(server)).collect()
    }
}

fn text(params: &RawValue, key: &str) -> Result<String, RpcError> {
    let fields = Fields::parse(params.get()).unwrap_or_default();
    fields.read(key).ok_or_else(|| RpcError::new(code::INVALID_PARAMS, format!("`{key}` is missing")))
}

fn not_found(uri: &str, era: Era) -> RpcError {
    let code = if era == Era::Modern { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND };
    let message = format!("no server has a resource `{}`", pml_model::name::printable(uri));
    RpcError::new(code, message).with_data(&json!({ "uri": uri }))
}

fn failure_to_rpc(slot: Option<Arc<ServerHandle>>, server: &ServerName, failure: RequestFailure) -> RpcError {
    match failure {
        RequestFailure::Rpc(error) => error,
        other => {
            let problem = slot
                .map_or_else(|| Problem::of_failure(server.as_str(), &other), |slot| slot.problem(&other));
            RpcError::new(code::INTERNAL_ERROR, problem.to_string()).with_data(&json!({ "error": problem }))
        }
    }
}
