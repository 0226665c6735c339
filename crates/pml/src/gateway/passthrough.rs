//! Resources, prompts and completions of downstream servers, passed through.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pml_mcp::client::{Connection, OutgoingRequest, RequestFailure};
use pml_mcp::server::{ConnectedClient, IncomingRequest};
use pml_mcp::{RpcError, code};
use pml_model::ServerName;
use pml_model::json::{Fields, empty_object, raw, strip_hidden_characters};
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{Gateway, listing, run_resources};
use crate::catalogue::exposed_names;
use crate::problem::Problem;
use crate::servers::{CallPurpose, ServerHandle, ServerUseGuard, resource_uri};
use crate::telemetry::{add_trace_context, current};

/// How long one server may take to list its prompts or resources.
const LIST_PATIENCE: Duration = Duration::from_secs(10);

/// The meaning of each name and URI that was listed. Clients that see the same servers share what was listed to them,
/// so that no client reaches a server that it does not see by way of the list of another.
#[derive(Debug, Default)]
pub(super) struct PassthroughRoutes {
    prompts: Mutex<HashMap<VisibleServers, PromptRoutes>>,
    resources: Mutex<HashMap<VisibleServers, ResourceRoutes>>,
    templates: Mutex<HashMap<VisibleServers, ResourceRoutes>>,
    /// Resources that are not listed and that results of tools led to.
    linked: Mutex<HashMap<VisibleServers, ResourceRoutes>>,
}

/// The servers that a client sees, sorted by name.
type VisibleServers = Vec<ServerName>;
/// The server of a prompt and its name there, by the name that clients use.
type PromptRoutes = HashMap<String, (ServerName, String)>;
/// The server of a resource, by URI.
type ResourceRoutes = HashMap<String, ServerName>;

/// Maximum number of different sets of visible servers whose lists are remembered.
const MAX_VISIBLE_SETS: usize = 64;

/// Remembers what was listed of a set of servers.
fn remember_routes<T>(all: &Mutex<HashMap<VisibleServers, T>>, servers: VisibleServers, routes: T) {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= MAX_VISIBLE_SETS && !all.contains_key(&servers) {
        all.clear();
    }
    all.insert(servers, routes);
}

/// Maximum number of links that are remembered for a set of visible servers.
const MAX_LINKED: usize = 10_000;

/// What a name or URI means to clients that see these servers.
fn find_route<T: Clone>(
    all: &Mutex<HashMap<VisibleServers, HashMap<String, T>>>,
    servers: &[ServerName],
    name: &str,
) -> Option<T> {
    let all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.get(servers)?.get(name).cloned()
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
                if run_resources::is_own(&uri) {
                    return self.own_resource_request(&request, &uri).await;
                }
                self.resource_request(&request, &uri).await
            }
            "completion/complete" => self.complete(&request).await,
            other => {
                Err(RpcError::new(code::METHOD_NOT_FOUND, format!("method `{other}` is not known here")))
            }
        }
    }

    async fn list_prompts(&self, request: &IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        let servers = self.servers_with("prompts", &request.client);
        let all = self.collect(&servers, "prompts/list").await;
        let mut seen = HashSet::new();
        let prompts: Vec<(ServerName, String, Box<RawValue>)> = all
            .into_iter()
            .filter_map(|(server, item)| Some((server, read_text(&item, "name")?, item)))
            .filter(|(server, own, _)| seen.insert((server.clone(), own.clone())))
            .collect();
        let own: Vec<(&ServerName, &str)> =
            prompts.iter().map(|(server, own, _)| (server, own.as_str())).collect();
        let names = exposed_names(&own, self.app.config().names);
        let mut shown = Vec::with_capacity(prompts.len());
        let mut routes = PromptRoutes::new();
        for ((server, own, item), name) in prompts.into_iter().zip(names) {
            let mut fields = Fields::parse(item.get()).unwrap_or_default();
            fields.set("name", raw(&name));
            shown.push(fields.to_raw());
            routes.insert(name, (server, own));
        }
        remember_routes(&self.routes.prompts, servers, routes);
        listing::paginate(shown.into_iter(), "prompts", &request.params)
    }

    async fn prompt(&self, name: &str, client: &ConnectedClient) -> Result<(ServerName, String), RpcError> {
        for listed in [false, true] {
            let servers = self.servers_with("prompts", client);
            if let Some(route) = find_route(&self.routes.prompts, &servers, name) {
                return Ok(route);
            }
            if !listed {
                self.list_prompts(&list_request("prompts/list", client)).await?;
            }
        }
        Err(RpcError::new(
            code::INVALID_PARAMS,
            format!("no prompt is called `{}`", pml_model::name::printable(name)),
        ))
    }

    async fn list_resources(&self, request: &IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        let servers = self.servers_with("resources", &request.client);
        let all = self.collect(&servers, "resources/list").await;
        let mut routes = ResourceRoutes::new();
        let mut shown = Vec::with_capacity(all.len());
        for (server, item) in all {
            let Some(uri) = read_text(&item, "uri") else { continue };
            match routes.entry(uri) {
                Entry::Vacant(free) => {
                    free.insert(server);
                    shown.push(item);
                }
                // Two servers use this URI: the resource of the second is listed under a URI that names its server.
                Entry::Occupied(taken) if *taken.get() != server => {
                    let mut fields = Fields::parse(item.get()).unwrap_or_default();
                    fields.set("uri", raw(&resource_uri::qualified(&server, taken.key())));
                    shown.push(fields.to_raw());
                }
                Entry::Occupied(_) => {}
            }
        }
        remember_routes(&self.routes.resources, servers, routes);
        listing::paginate(shown.into_iter(), "resources", &request.params)
    }

    async fn list_templates(&self, request: &IncomingRequest) -> Result<Box<RawValue>, RpcError> {
        let servers = self.servers_with("resources", &request.client);
        let all = self.collect(&servers, "resources/templates/list").await;
        let mut routes = ResourceRoutes::new();
        for (server, item) in &all {
            if let Some(template) = read_text(item, "uriTemplate") {
                routes.entry(template).or_insert_with(|| server.clone());
            }
        }
        remember_routes(&self.routes.templates, servers, routes);
        listing::paginate(all.into_iter().map(|(_, item)| item), "resourceTemplates", &request.params)
    }

    async fn own_resource_request(
        &self,
        request: &IncomingRequest,
        uri: &str,
    ) -> Result<Box<RawValue>, RpcError> {
        self.access(&request.client).map_err(|problem| problem.to_rpc())?;
        match request.method.as_str() {
            "resources/read" => run_resources::read(&self.app, request, uri).await,
            // The results of runs do not change.
            _ => Ok(empty_object()),
        }
    }

    /// Sends the request to the server that a qualified URI names or that listed the resource; where none did, to each
    /// server with resources in turn.
    async fn resource_request(
        &self,
        request: &IncomingRequest,
        uri: &str,
    ) -> Result<Box<RawValue>, RpcError> {
        let visible = self.servers_with("resources", &request.client);
        if let Some((server, own)) = resource_uri::parse_qualified(uri)
            && visible.contains(&server)
        {
            let result = self.ask_about_resource(request, &server, &own).await?;
            return Ok(resource_uri::rename_contents(&result, &own, uri));
        }
        let candidates = self.resource_route(&visible, uri).map_or(visible, |server| vec![server]);
        let mut refusal = run_resources::not_found(uri, request.caller.era());
        for server in candidates {
            match self.ask_about_resource(request, &server, uri).await {
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

    /// The server whose resource a URI means, as far as it was listed or a result led to it.
    fn resource_route(&self, visible: &[ServerName], uri: &str) -> Option<ServerName> {
        let listed = find_route(&self.routes.resources, visible, uri);
        listed.or_else(|| find_route(&self.routes.linked, visible, uri))
    }

    /// A tool result of `server` in which each link leads to the resource of that server: one whose URI means the
    /// resource of another server is qualified, as in the list of resources.
    pub(super) fn qualify_links(
        &self,
        client: &ConnectedClient,
        server: &ServerName,
        result: Box<RawValue>,
    ) -> Box<RawValue> {
        // Most results have no links, and some are large.
        if !result.get().contains("\"resource") {
            return result;
        }
        let visible = self.servers_with("resources", client);
        if !visible.contains(server) {
            return result;
        }
        resource_uri::rename_links(&result, |uri| match self.resource_route(&visible, uri) {
            Some(known) if known == *server => None,
            Some(_) => Some(resource_uri::qualified(server, uri)),
            None => {
                self.remember_link(&visible, server, uri);
                None
            }
        })
    }

    fn remember_link(&self, visible: &[ServerName], server: &ServerName, uri: &str) {
        let mut all = self.routes.linked.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_VISIBLE_SETS && !all.contains_key(visible) {
            all.clear();
        }
        let links = all.entry(visible.to_vec()).or_default();
        if links.len() >= MAX_LINKED {
            links.clear();
        }
        links.insert(uri.to_owned(), server.clone());
    }

    /// Reads, watches or stops watching the resource that `server` calls `uri`.
    async fn ask_about_resource(
        &self,
        request: &IncomingRequest,
        server: &ServerName,
        uri: &str,
    ) -> Result<Box<RawValue>, RpcError> {
        if request.method == "resources/read" {
            let mut params = Fields::parse(request.params.get()).unwrap_or_default();
            params.set("uri", raw(&uri));
            return self.forward(request, server, params).await;
        }
        let (in_use, connection) = self.connect(server, &request.cancel).await?;
        let watched = &in_use.server().watched;
        if request.method == "resources/unsubscribe" {
            watched.unwatch(&connection, uri, &request.caller).await;
            return Ok(empty_object());
        }
        watched
            .watch(&connection, uri, &request.caller)
            .await
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
            (None, Some(uri)) => {
                let mut empty = raw(&json!({ "completion": { "values": [] } }));
                for (server, own) in self.completing_servers(&uri, &request.client).await {
                    reference.set("uri", raw(&own));
                    params.set("ref", reference.to_raw());
                    match self.forward(request, &server, params.clone()).await {
                        Ok(result) if has_values(&result) => return Ok(result),
                        Ok(result) => empty = result,
                        Err(error) => tracing::debug!(%server, %error, "a server completed nothing"),
                    }
                }
                Ok(empty)
            }
            (None, None) => {
                Err(RpcError::new(code::INVALID_PARAMS, "`ref` names neither a prompt nor a resource"))
            }
        }
    }

    /// The servers that may complete the parts of a resource template, or of a resource, with their own URIs for it: the
    /// one that listed it; where none did, all that complete anything.
    async fn completing_servers(&self, uri: &str, client: &ConnectedClient) -> Vec<(ServerName, String)> {
        let completing = self.servers_with("completions", client);
        let visible = self.servers_with("resources", client);
        if let Some((server, own)) = resource_uri::parse_qualified(uri)
            && completing.contains(&server)
        {
            return vec![(server, own)];
        }
        let find = || {
            let template = find_route(&self.routes.templates, &visible, uri);
            template.or_else(|| self.resource_route(&visible, uri))
        };
        let mut found = find();
        if found.is_none() {
            let request = list_request("resources/templates/list", client);
            if let Err(error) = self.list_templates(&request).await {
                tracing::debug!(%error, "the templates of resources could not be listed");
            }
            found = find();
        }
        let wanted = |server: &ServerName| found.as_ref().is_none_or(|found| found == server);
        completing.into_iter().filter(wanted).map(|server| (server, uri.to_owned())).collect()
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
        let slot = self.app.tools.servers.get(server);
        let timeout = slot.as_ref().map_or(LIST_PATIENCE, |slot| slot.settings().call_timeout);
        let until = |slot: &Arc<ServerHandle>| Instant::now() + slot.settings().longest_call;
        let call = OutgoingRequest {
            method: &request.method,
            params,
            mirrored: Vec::new(),
            caller: &request.caller,
            deadline: Instant::now() + timeout,
            extension: slot.as_ref().map(|slot| slot.progress_extension(until(slot))),
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
        servers: &[ServerName],
        method: &'static str,
    ) -> Vec<(ServerName, Box<RawValue>)> {
        let asking = servers.iter().map(|server| async move {
            let (_in_use, connection) = self.connect(server, &CancellationToken::new()).await.ok()?;
            let deadline = Instant::now() + LIST_PATIENCE;
            match connection.list(method, deadline).await {
                Ok(items) => Some((server.clone(), items)),
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

/// A request for a complete list, by PML itself on behalf of a client.
fn list_request(method: &str, client: &ConnectedClient) -> IncomingRequest {
    IncomingRequest {
        method: method.into(),
        params: empty_object(),
        client: client.clone(),
        caller: pml_mcp::Caller::silent(),
        cancel: CancellationToken::new(),
        cancelled_by_sender: CancellationToken::new(),
        wire: None,
    }
}

/// Whether a completion names any value.
fn has_values(result: &RawValue) -> bool {
    let completion =
        Fields::parse(result.get()).ok().and_then(|fields| fields.get("completion").map(ToOwned::to_owned));
    let values =
        completion.and_then(|completion| Fields::parse(completion.get()).ok()?.read::<Vec<String>>("values"));
    values.is_some_and(|values| !values.is_empty())
}

fn read_text(item: &RawValue, key: &str) -> Option<String> {
    Fields::parse(item.get()).ok()?.read(key)
}

fn text(params: &RawValue, key: &str) -> Result<String, RpcError> {
    let fields = Fields::parse(params.get()).unwrap_or_default();
    fields.read(key).ok_or_else(|| RpcError::new(code::INVALID_PARAMS, format!("`{key}` is missing")))
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
