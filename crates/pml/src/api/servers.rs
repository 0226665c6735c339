//! `/api/servers`: the servers, their state and their tools; restarting one, and accepting its command.

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
#[openapi(paths(list, restart, accept))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/servers", get(list))
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

/// A server with its tools.
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
    tools: Vec<ServerTool>,
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

/// Lists the servers with their tools.
#[utoipa::path(get, path = "/api/servers", tag = "servers", responses((status = 200, body = ServersReply)))]
async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Result<Reply<ServersReply>, Problem> {
    let items = Overview::read(&app, &principal).await?.items();
    Ok(Reply(ServersReply { schema_version: SCHEMA_VERSION, items }))
}

/// Everything that the items are made from.
struct Overview<'a> {
    app: &'a App,
    snapshot: Arc<ToolSnapshot>,
    counts: HashMap<String, CallCounts>,
    sanitiser: Arc<Sanitiser>,
}

impl<'a> Overview<'a> {
    async fn read(app: &'a App, principal: &Principal) -> Result<Overview<'a>, Problem> {
        Ok(Overview {
            app,
            snapshot: app.tools.snapshot(),
            counts: app.store.tool_call_counts(principal).await?.into_iter().collect(),
            sanitiser: app.knowledge.memory.sanitiser(),
        })
    }

    fn items(&self) -> Vec<ServerItem> {
        let config = self.app.config();
        let mut items: Vec<ServerItem> =
            config.servers.iter().map(|server| self.configured(server)).collect();
        let is_built_in = |name: &ServerName| self.app.tools.builtin(name.as_str()).is_some();
        let built_in = self.snapshot.servers.iter().filter(|server| is_built_in(&server.name));
        items.extend(built_in.map(|server| ServerItem {
            name: server.name.to_string(),
            state: ServerStateName::BuiltIn,
            error: None,
            transport: TransportName::Builtin,
            how: server.description.clone(),
            tools_known: true,
            tools: self.tools(&server.name),
            pending_command: None,
        }));
        items.extend(self.snapshot.disabled_servers.iter().map(|(name, why)| ServerItem {
            name: name.clone(),
            state: ServerStateName::Off,
            error: Some(why.message.clone()),
            transport: TransportName::Builtin,
            how: None,
            tools_known: false,
            tools: Vec::new(),
            pending_command: None,
        }));
        items
    }

    fn configured(&self, server: &ServerConfig) -> ServerItem {
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
            tools: self.tools(&server.name),
            pending_command: pending,
        }
    }

    fn tools(&self, server: &ServerName) -> Vec<ServerTool> {
        let used = self.snapshot.tools_of(server).map(|tool| self.tool(&tool.id, &tool.definition, false));
        let held = self.snapshot.quarantined.iter().filter(|held| held.id.server == *server);
        used.chain(held.map(|held| self.tool(&held.id, &held.definition, true))).collect()
    }

    fn tool(&self, id: &ToolId, definition: &Definition, quarantined: bool) -> ServerTool {
        let verdict = self.app.policy().verdict(id, &definition.annotations);
        let counts = self.counts.get(&id.to_string()).copied().unwrap_or_default();
        let description = definition.description.as_deref().unwrap_or_default().trim();
        ServerTool {
            id: id.to_string(),
            description: printable(&truncate_text(description, DESCRIPTION_CHARACTERS)),
            policy: ToolPolicy { verdict: verdict.mode.as_str(), reason: verdict.because },
            quarantined,
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

/// A server.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ServerReply {
    schema_version: u32,
    #[serde(flatten)]
    server: ServerItem,
}

async fn one(app: &App, principal: &Principal, name: &str) -> Result<Reply<ServerReply>, Problem> {
    let config = app.config();
    let server = find(&config.servers, name)?;
    let server = Overview::read(app, principal).await?.configured(server);
    Ok(Reply(ServerReply { schema_version: SCHEMA_VERSION, server }))
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
