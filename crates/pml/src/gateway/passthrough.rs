//! Resources, prompts and completions of downstream servers, passed through.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pml_mcp::client::{Call, Connection, Failure};
use pml_mcp::server::{Client, Incoming};
use pml_mcp::{Era, RpcError, code};
use pml_model::ServerName;
use pml_model::json::{Fields, empty_object, raw, without_hidden};
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{Gateway, is_visible, listing};
use crate::config::Naming;
use crate::problem::Problem;
use crate::servers::{InUse, Slot};

/// How long one server may take to list what it has.
const LIST_PATIENCE: Duration = Duration::from_secs(10);

/// Where things that clients name by themselves are found.
#[derive(Debug, Default)]
pub(super) struct Routes {
    prompts: Mutex<HashMap<String, (ServerName, String)>>,
    resources: Mutex<HashMap<String, ServerName>>,
}

impl Gateway {
    /// Serves a request that is about something of a downstream server.
    pub(super) async fn pass(&self, request: Incoming) -> Result<Box<RawValue>, RpcError> {
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

    async fn list_prompts(&self, request: &Incoming) -> Result<Box<RawValue>, RpcError> {
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
                Naming::Plain if counts[&own] == 1 => own.clone(),
                Naming::Plain | Naming::Qualified => format!("{server}__{own}"),
            };
            let mut fields = Fields::parse(item.get()).unwrap_or_default();
            fields.set("name", raw(&name));
            shown.push(fields.to_raw());
            routes.insert(name, (server, own));
        }
        *self.routes.prompts.lock().unwrap_or_else(PoisonError::into_inner) = routes;
        listing::page(shown.into_iter(), "prompts", &request.params)
    }

    async fn prompt(&self, name: &str, client: &Client) -> Result<(ServerName, String), RpcError> {
        for listed in [false, true] {
            if let Some(route) = self.routes.prompts.lock().unwrap_or_else(PoisonError::into_inner).get(name)
            {
                return Ok(route.clone());
            }
            if !listed {
                let everything = Incoming {
                    method: "prompts/list".into(),
                    params: empty_object(),
                    client: client.clone(),
                    caller: pml_mcp::Caller::silent(),
                    cancel: CancellationToken::new(),
                    taken_back: CancellationToken::new(),
                };
                self.list_prompts(&everything).await?;
            }
        }
        Err(RpcError::new(
            code::INVALID_PARAMS,
            format!("no prompt is called `{}`", pml_model::name::printable(name)),
        ))
    }

    async fn list_resources(&self, request: &Incoming) -> Result<Box<RawValue>, RpcError> {
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
        listing::page(all.into_iter().map(|(_, item)| item), "resources", &request.params)
    }

    async fn list_templates(&self, request: &Incoming) -> Result<Box<RawValue>, RpcError> {
        let all = self.collect("resources", "resources/templates/list", &request.client).await;
        listing::page(all.into_iter().map(|(_, item)| item), "resourceTemplates", &request.params)
    }

    /// Asks the server that listed the resource; where none did, each that has resources, in turn.
    async fn resource_request(&self, request: &Incoming, uri: &str) -> Result<Box<RawValue>, RpcError> {
        let known = self.routes.resources.lock().unwrap_or_else(PoisonError::into_inner).get(uri).cloned();
        let candidates = match known.filter(|server| is_visible(server, &self.exposure(&request.client))) {
            Some(server) => vec![server],
            None => self.having("resources", &request.client),
        };
        let mut refusal = not_found(uri, request.caller.era());
        for server in candidates {
            let params = Fields::parse(request.params.get()).unwrap_or_default();
            let outcome = match request.method.as_str() {
                "resources/subscribe" => self.watch(&server, uri).await,
                // Nobody else may be watching, but a server that tells too much does no harm.
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
            .map_err(|failure| rpc(self.app.tools.servers.get(server), server, failure))
    }

    async fn complete(&self, request: &Incoming) -> Result<Box<RawValue>, RpcError> {
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
                for server in self.having("completions", &request.client) {
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
        request: &Incoming,
        server: &ServerName,
        params: Fields<'_>,
    ) -> Result<Box<RawValue>, RpcError> {
        let (_in_use, connection) = self.connect(server, &request.cancel).await?;
        let timeout =
            self.app.tools.servers.get(server).map_or(LIST_PATIENCE, |slot| slot.settings().call_timeout);
        let call = Call {
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
            .map_err(|failure| rpc(self.app.tools.servers.get(server), server, failure))
    }

    /// A connection, and the mark that keeps the server from being stopped as idle meanwhile.
    async fn connect(
        &self,
        server: &ServerName,
        cancel: &CancellationToken,
    ) -> Result<(InUse, Arc<Connection>), RpcError> {
        let slot = self.app.tools.servers.get(server);
        let slot =
            slot.ok_or_else(|| RpcError::new(code::INTERNAL_ERROR, format!("server `{server}` is gone")))?;
        let deadline = Instant::now() + slot.settings().start_timeout;
        let in_use = slot.in_use();
        let connection =
            slot.connection(deadline, cancel).await.map_err(|unavailable| unavailable.0.to_rpc())?;
        Ok((in_use, connection))
    }

    /// Everything all servers list, each with its server. One that fails is left out.
    async fn collect(
        &self,
        capability: &str,
        method: &'static str,
        client: &Client,
    ) -> Vec<(ServerName, Box<RawValue>)> {
        let asking = self.having(capability, client).into_iter().map(|server| async move {
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
                items.into_iter().map(move |item| (server.clone(), without_hidden(&item)))
            })
            .collect()
    }

    /// The servers that declared a capability, now or the last time, and of which the client may see
    /// something.
    fn having(&self, capability: &str, client: &Client) -> Vec<ServerName> {
        let snapshot = self.app.tools.snapshot();
        let exposure = self.exposure(client);
        let has = |text: &str| Fields::parse(text).is_ok_and(|fields| fields.get(capability).is_some());
        let having = snapshot.servers.iter().filter(|server| server.capabilities.as_deref().is_some_and(has));
        having.map(|server| server.name.clone()).filter(|server| is_visible(server, &exposure)).collect()
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

fn rpc(slot: Option<Arc<Slot>>, server: &ServerName, failure: Failure) -> RpcError {
    match failure {
        Failure::Rpc(error) => error,
        other => {
            let problem = slot
                .map_or_else(|| Problem::of_failure(server.as_str(), &other), |slot| slot.problem(&other));
            RpcError::new(code::INTERNAL_ERROR, problem.to_string()).with_data(&json!({ "error": problem }))
        }
    }
}
