//! `/api/servers`: the servers and their state; one with its tools; restarting one, and accepting its command.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::{get, post};
use pml_mcp::server::access::Admission;
use pml_model::learning::CallCounts;
use pml_model::name::{printable, truncate_text};
use pml_model::{Definition, Digest, Principal, ServerName, ToolId};
use serde::{Deserialize, Serialize};
use utoipa::{OpenApi, ToSchema};

use super::extract::{ApiJson, ApiPath};
use super::reply::{Reply, SCHEMA_VERSION};
use crate::accepted::AcceptedCommands;
use crate::app::App;
use crate::catalogue::ToolSnapshot;
use crate::config::{self, DeclaredTransport, ServerConfig};
use crate::problem::{ErrorCode, Problem, unknown_server};
use crate::sanitise::Sanitiser;
use crate::servers::ServerStatus;

/// 10 s: how long a restart is waited for; a server that takes longer is shown as starting.
const RESTART_WAIT: Duration = Duration::from_secs(10);
/// The characters of the description of a tool; its definition has all.
const DESCRIPTION_CHARACTERS: usize = 300;

#[derive(OpenApi)]
#[openapi(paths(list, show, restart, accept))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/servers", get(list))
        .route("/api/servers/{name}", get(show))
        .route("/api/servers/{name}/restart", post(restart))
        .route("/api/servers/{name}/accept", post(accept))
}

/// All servers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ServersReply {
    schema_version: u32,
    items: Vec<ServerItem>,
}

/// A server.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ServerItem {
    name: String,
    state: ServerStateName,
    /// Why it is down or off.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    transport: TransportName,
    /// The command, or the address, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    how: Option<String>,
    /// Whether its tools are known: a server that was never started has not listed them.
    tools_known: bool,
    /// How many tools it has, those in quarantine included.
    tool_count: usize,
    /// The command that waits to be accepted before it is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_command: Option<PendingCommand>,
}

/// The state of a server.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ServerStateName {
    /// It is started when it is needed.
    Idle,
    Starting,
    Ready,
    Down,
    AwaitingAcceptance,
    /// A person has to run `pml login`.
    SignInRequired,
    Closed,
    /// The configuration turns it off.
    Disabled,
    /// It is a part of PML.
    BuiltIn,
    /// A part of PML that cannot be used here.
    Off,
}

/// How a server is reached.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum TransportName {
    Stdio,
    Http,
    /// It is a part of PML.
    Builtin,
}

/// A tool of a server.
#[derive(Serialize, ToSchema)]
struct ServerTool {
    id: String,
    description: String,
    policy: ToolPolicy,
    /// Whether it waits to be accepted, and cannot be called before.
    quarantined: bool,
    /// Calls, according to the traces.
    calls: u64,
    /// Calls that failed and for which the tool is to blame.
    failures: u64,
}

/// Whether a tool may be called.
#[derive(Serialize, ToSchema)]
struct ToolPolicy {
    /// `auto`, `hil` (needs approval) or `deny`.
    verdict: &'static str,
    reason: String,
}

/// A command that waits to be accepted.
#[derive(Serialize, ToSchema)]
struct PendingCommand {
    /// The digest of the whole command, which an acceptance names.
    #[schema(value_type = String)]
    launch: Digest,
    /// The command with its arguments, without secrets.
    command: String,
    /// The names of the variables that it gets.
    variables: Vec<String>,
}

/// Lists the servers.
#[utoipa::path(get, path = "/api/servers", tag = "servers", responses((status = 200, body = ServersReply)))]
async fn list(State(app): State<Arc<App>>) -> Reply<ServersReply> {
    Reply(ServersReply { schema_version: SCHEMA_VERSION, items: Overview::new(&app).items() })
}

/// Shows one server with its tools.
#[utoipa::path(get, path = "/api/servers/{name}", tag = "servers", params(("name" = String, Path, description = "The name of the server")), responses((status = 200, body = ServerReply)))]
async fn show(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
) -> Result<Reply<ServerReply>, Problem> {
    one(&app, &principal, &name).await
}

/// Everything that the items are made from.
struct Overview<'a> {
    app: &'a App,
    snapshot: Arc<ToolSnapshot>,
    sanitiser: Arc<Sanitiser>,
}

impl<'a> Overview<'a> {
    fn new(app: &'a App) -> Overview<'a> {
        Overview { app, snapshot: app.tools.snapshot(), sanitiser: app.knowledge.memory.sanitiser() }
    }

    fn items(&self) -> Vec<ServerItem> {
        let config = self.app.config();
        let mut counts: HashMap<&ServerName, usize> = HashMap::new();
        let held = self.snapshot.quarantined.iter().map(|held| &held.id.server);
        for server in self.snapshot.tools.iter().map(|tool| &tool.id.server).chain(held) {
            *counts.entry(server).or_default() += 1;
        }
        let count = |name: &ServerName| counts.get(name).copied().unwrap_or_default();
        let mut items: Vec<ServerItem> =
            config.servers.iter().map(|server| self.configured(server, count(&server.name))).collect();
        let is_built_in = |name: &ServerName| self.app.tools.builtin(name.as_str()).is_some();
        let built_in = self.snapshot.servers.iter().filter(|server| is_built_in(&server.name));
        items.extend(built_in.map(|server| ServerItem {
            name: server.name.to_string(),
            state: ServerStateName::BuiltIn,
            error: None,
            transport: TransportName::Builtin,
            how: server.description.clone(),
            tools_known: true,
            tool_count: count(&server.name),
            pending_command: None,
        }));
        items.extend(self.snapshot.disabled_servers.iter().map(|(name, why)| ServerItem {
            name: name.clone(),
            state: ServerStateName::Off,
            error: Some(why.message.clone()),
            transport: TransportName::Builtin,
            how: None,
            tools_known: false,
            tool_count: 0,
            pending_command: None,
        }));
        items
    }

    fn configured(&self, server: &ServerConfig, tool_count: usize) -> ServerItem {
        let status = self.app.tools.servers.get(&server.name).map(|handle| handle.status());
        let (state, error) = match status {
            _ if !server.enabled => (ServerStateName::Disabled, None),
            None | Some(ServerStatus::Closed) => (ServerStateName::Closed, None),
            Some(ServerStatus::Idle) => (ServerStateName::Idle, None),
            Some(ServerStatus::Starting) => (ServerStateName::Starting, None),
            Some(ServerStatus::Ready(_)) => (ServerStateName::Ready, None),
            Some(ServerStatus::Down { reason, .. }) => {
                (ServerStateName::Down, Some(self.sanitiser.clean_text(&reason).into_owned()))
            }
            Some(ServerStatus::SignInRequired { reason }) => {
                (ServerStateName::SignInRequired, Some(self.sanitiser.clean_text(&reason).into_owned()))
            }
            Some(ServerStatus::AwaitingAcceptance) => (ServerStateName::AwaitingAcceptance, None),
        };
        let how = describe(&server.declared, &self.sanitiser);
        let pending = matches!(state, ServerStateName::AwaitingAcceptance).then(|| PendingCommand {
            launch: config::launch_digest(server),
            command: how.clone(),
            variables: variables(&server.declared),
        });
        let listed = self.snapshot.servers.iter().find(|known| known.name == server.name);
        ServerItem {
            name: server.name.to_string(),
            state,
            error,
            transport: match server.declared {
                DeclaredTransport::Stdio { .. } => TransportName::Stdio,
                DeclaredTransport::Http { .. } => TransportName::Http,
            },
            how: Some(how),
            tools_known: listed.is_some_and(|known| known.tools_known),
            tool_count,
            pending_command: pending,
        }
    }

    /// The tools of a server, with how often `calls` says that each was called.
    fn tools(&self, server: &str, calls: &HashMap<String, CallCounts>) -> Vec<ServerTool> {
        let used = self.snapshot.tools.iter().filter(|tool| tool.id.server.as_str() == server);
        let used = used.map(|tool| self.tool(&tool.id, &tool.definition, calls));
        let held = self.snapshot.quarantined.iter().filter(|held| held.id.server.as_str() == server);
        let held = held.map(|held| self.tool(&held.id, &held.definition, calls));
        used.chain(held.map(|tool| ServerTool { quarantined: true, ..tool })).collect()
    }

    fn tool(&self, id: &ToolId, definition: &Definition, calls: &HashMap<String, CallCounts>) -> ServerTool {
        let verdict = self.app.policy().verdict(id, &definition.annotations);
        let counts = calls.get(&id.to_string()).copied().unwrap_or_default();
        let description = definition.description.as_deref().unwrap_or_default().trim();
        ServerTool {
            id: id.to_string(),
            description: printable(&truncate_text(description, DESCRIPTION_CHARACTERS)),
            policy: ToolPolicy { verdict: verdict.mode.as_str(), reason: verdict.because },
            quarantined: false,
            calls: counts.calls,
            failures: counts.failures,
        }
    }
}

/// How a server is started or reached, without secrets.
fn describe(declared: &DeclaredTransport, sanitiser: &Sanitiser) -> String {
    let text = match declared {
        DeclaredTransport::Stdio { command, args, .. } => {
            [std::slice::from_ref(command), args].concat().join(" ")
        }
        DeclaredTransport::Http { url, .. } => url.clone(),
    };
    printable(&sanitiser.clean_text(&text))
}

/// The names of the variables or headers that a server gets.
fn variables(declared: &DeclaredTransport) -> Vec<String> {
    match declared {
        DeclaredTransport::Stdio { env, .. } => env.keys().cloned().collect(),
        DeclaredTransport::Http { headers, .. } => headers.keys().cloned().collect(),
    }
}

/// A server with its tools.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ServerReply {
    schema_version: u32,
    #[serde(flatten)]
    server: ServerItem,
    tools: Vec<ServerTool>,
}

async fn one(app: &App, principal: &Principal, name: &str) -> Result<Reply<ServerReply>, Problem> {
    let calls = app.store.tool_call_counts(principal).await?.into_iter().collect();
    let overview = Overview::new(app);
    let (mut known, mut found) = (Vec::new(), None);
    for server in overview.items() {
        known.push(server.name.clone());
        found = found.or((server.name == name).then_some(server));
    }
    let Some(server) = found else { return Err(unknown_server(name, known.iter().map(String::as_str))) };
    let tools = overview.tools(name, &calls);
    Ok(Reply(ServerReply { schema_version: SCHEMA_VERSION, server, tools }))
}

fn find<'c>(servers: &'c [ServerConfig], name: &str) -> Result<&'c ServerConfig, Problem> {
    let known = || servers.iter().map(|server| server.name.as_str());
    servers.iter().find(|server| server.name.as_str() == name).ok_or_else(|| unknown_server(name, known()))
}

/// Ends a server and starts it anew; calls under way fail.
#[utoipa::path(post, path = "/api/servers/{name}/restart", tag = "servers", params(("name" = String, Path, description = "The name of the server")), responses((status = 200, body = ServerReply)))]
async fn restart(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
) -> Result<Reply<ServerReply>, Problem> {
    let config = app.config();
    let server = find(&config.servers, &name)?;
    let refused = |why: &str| {
        Err(Problem::new(ErrorCode::InvalidRequest, format!("server `{}` {why}", printable(&name))))
    };
    let Some(handle) = app.tools.servers.get(&server.name).filter(|_| server.enabled) else {
        return refused("is turned off by the configuration");
    };
    if !handle.restart().await {
        return refused("waits to be accepted");
    }
    // Whether it started in time is what the reply tells.
    drop(tokio::time::timeout(RESTART_WAIT, handle.wait_until_started()).await);
    one(&app, &principal, &name).await
}

/// The command that is accepted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AcceptServerBody {
    /// `pendingCommand.launch` as it was shown.
    #[schema(value_type = String)]
    launch: Digest,
}

/// Accepts the command of a server as it was shown; a person's session only.
#[utoipa::path(post, path = "/api/servers/{name}/accept", tag = "servers", params(("name" = String, Path, description = "The name of the server")), request_body = AcceptServerBody, responses((status = 200, body = ServerReply)))]
async fn accept(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Extension(admitted): Extension<Admission>,
    ApiPath(name): ApiPath<String>,
    ApiJson(body): ApiJson<AcceptServerBody>,
) -> Result<Reply<ServerReply>, Problem> {
    let Admission::Session(_) = admitted else {
        return Err(Problem::new(ErrorCode::Denied, "only a person who has signed in can accept commands")
            .hint("accept it in the dashboard, or with `pml accept`"));
    };
    {
        let config = app.config();
        let server = find(&config.servers, &name)?;
        if config::launch_digest(server) != body.launch {
            let text = format!("the command of `{}` is not the one that was shown", printable(&name));
            return Err(Problem::new(ErrorCode::ToolChanged, text).hint("look at it again"));
        }
    }
    AcceptedCommands::open(&app.settings.paths).accept(std::iter::once(body.launch))?;
    app.reload().await?;
    one(&app, &principal, &name).await
}
