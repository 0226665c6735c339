//! A server with the tools of a built-in one that take some time, as those of a distant server do.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pml::builtin::{BuiltinServer, BuiltinSettings, servers};
use pml::problem::Problem;
use pml_mcp::param_headers::MirroredParameter;
use pml_mcp::server::{
    ChangeNotice, ConnectedClient, Handler, HandlerFuture, IncomingRequest, McpServer, ServerIntroduction,
    stdio,
};
use pml_mcp::{RpcError, code};
use pml_model::Principal;
use pml_model::json::{Fields, empty_object, raw};
use serde_json::json;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::figure::failed;

struct DelayedServer {
    built_in: Arc<BuiltinServer>,
    delay: Duration,
    changes: broadcast::Sender<ChangeNotice>,
}

/// Serves the tools of the built-in server `name` on standard input and output until the input ends.
///
/// # Errors
/// There is no such server, or its directory cannot be opened.
pub(super) async fn serve(name: &str, root: &Path, delay: Duration) -> Result<(), Problem> {
    let settings = BuiltinSettings { fs_root: Some(root.to_owned()), ..BuiltinSettings::default() };
    let all = servers(&settings).map_err(failed)?;
    let built_in = all.into_iter().find(|server| server.name() == name);
    let built_in =
        Arc::new(built_in.ok_or_else(|| failed(format!("no built-in server is called `{name}`")))?);
    let served = DelayedServer { built_in, delay, changes: broadcast::Sender::new(1) };
    stdio::serve(McpServer::new(Arc::new(served)), Principal::local().into(), CancellationToken::new()).await;
    Ok(())
}

impl Handler for DelayedServer {
    fn introduction(&self, _: &ConnectedClient) -> ServerIntroduction {
        ServerIntroduction { capabilities: raw(&json!({ "tools": {} })), instructions: String::new() }
    }

    fn handle(&self, request: IncomingRequest) -> HandlerFuture {
        let (built_in, delay) = (Arc::clone(&self.built_in), self.delay);
        Box::pin(async move {
            match request.method.as_str() {
                "tools/list" => {
                    let tools: Vec<_> = built_in.definitions().into_iter().map(|tool| tool.raw).collect();
                    Ok(raw(&json!({ "tools": tools })))
                }
                "tools/call" => {
                    let params = Fields::parse(request.params.get()).unwrap_or_default();
                    let name: String = params.read("name").unwrap_or_default();
                    let arguments = params.get("arguments").map_or_else(empty_object, ToOwned::to_owned);
                    tokio::time::sleep(delay).await;
                    let called = built_in.call(&name, &arguments).await;
                    called.map_err(|unknown| RpcError::new(code::INVALID_PARAMS, unknown.to_string()))
                }
                other => Err(RpcError::new(code::METHOD_NOT_FOUND, other)),
            }
        })
    }

    fn changes(&self) -> broadcast::Receiver<ChangeNotice> {
        self.changes.subscribe()
    }

    fn mirrored_parameters(&self, _: &ConnectedClient, _: &str) -> Vec<MirroredParameter> {
        Vec::new()
    }
}
