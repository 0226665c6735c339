//! The smallest useful MCP server, for the cost of a call in which nothing is done.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pml::problem::Problem;
use pml_mcp::param_headers::MirroredParameter;
use pml_mcp::server::{
    ChangeNotice, ConnectedClient, Handler, HandlerFuture, IncomingRequest, McpServer, ServerIntroduction,
    stdio,
};
use pml_mcp::{RpcError, code};
use pml_model::Principal;
use pml_model::json::{Fields, raw};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::discovery::definitions_of_server;

struct EchoBenchServer {
    definitions: Arc<Vec<Value>>,
    changes: broadcast::Sender<ChangeNotice>,
}

/// Serves this many tools on standard input and output until the input ends.
pub(super) async fn serve(tools: usize) {
    serve_definitions((0..tools).map(tool).collect()).await;
}

/// Lists the tools that a data set has of one server. Every call gives back its argument `text`.
pub(super) async fn serve_catalogue(catalogue: &Path, server: &str) -> Result<(), Problem> {
    serve_definitions(definitions_of_server(catalogue, server)?).await;
    Ok(())
}

async fn serve_definitions(definitions: Vec<Value>) {
    let echo = EchoBenchServer { definitions: Arc::new(definitions), changes: broadcast::Sender::new(1) };
    stdio::serve(McpServer::new(Arc::new(echo)), Principal::local().into(), CancellationToken::new()).await;
}

impl Handler for EchoBenchServer {
    fn introduction(&self, _: &ConnectedClient) -> ServerIntroduction {
        ServerIntroduction { capabilities: raw(&json!({ "tools": {} })), instructions: String::new() }
    }

    fn handle(&self, request: IncomingRequest) -> HandlerFuture {
        let definitions = Arc::clone(&self.definitions);
        Box::pin(async move {
            match request.method.as_str() {
                "tools/list" => Ok(raw(&json!({ "tools": *definitions }))),
                "tools/call" => {
                    let arguments: Value = Fields::parse(request.params.get())
                        .unwrap_or_default()
                        .read("arguments")
                        .unwrap_or_default();
                    // A timer takes a millisecond even for a wait of zero.
                    if let Some(wait @ 1..) = arguments["wait_ms"].as_u64() {
                        tokio::time::sleep(Duration::from_millis(wait)).await;
                    }
                    Ok(raw(&json!({ "content": [{ "type": "text", "text": arguments["text"] }] })))
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

fn tool(number: usize) -> Value {
    let name = if number == 0 { "echo".to_owned() } else { format!("echo_{number}") };
    json!({
        "name": name,
        "description": format!("Gives back the text it was given. This is number {number} of the tools that measure the gateway."),
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "what to give back" },
                "wait_ms": { "type": "integer", "minimum": 0, "description": "how long to wait before" }
            },
            "required": ["text"]
        }
    })
}
