//! A `pml serve` in a home of its own, and requests to it.

use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use pml::problem::Problem;
use pml_mcp::client::{Connection, RemoteServer, ServerTarget};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::figure::failed;
use crate::gateway::command;
use crate::programs::Programs;

/// A `pml serve` that is running.
pub(super) struct ServedGateway {
    child: Child,
    /// Host and port.
    authority: String,
    /// The link that opens the dashboard for reading.
    pub(super) link: String,
    token: String,
    /// Connections that wait for a request.
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    /// What reads the output of the gateway and drives its connections.
    tasks: TaskTracker,
}

impl ServedGateway {
    pub(super) async fn start(programs: &Programs, home: &Path) -> Result<ServedGateway, Problem> {
        let mut command = command(&programs.pml, home);
        command.args(["serve", "--listen", "127.0.0.1:0"]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        let stdout = child.stdout.take().ok_or_else(|| failed("the gateway has no output"))?;
        let (mut lines, mut link) = (BufReader::new(stdout).lines(), String::new());
        let token = loop {
            let line = lines.next_line().await.map_err(failed)?;
            let line = line.ok_or_else(|| failed("`pml serve` ended"))?;
            if let Some(opened) = line.strip_prefix("Dashboard: ") {
                opened.clone_into(&mut link);
            }
            if let Some((_, rest)) = line.split_once("Bearer ") {
                break rest.trim_end_matches(['"', ' ']).to_owned();
            }
        };
        // The rest is of no interest, but a full pipe would stop the gateway.
        let tasks = TaskTracker::new();
        tasks.spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let authority = link.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let authority = authority.ok_or_else(|| failed("`pml serve` printed no link"))?.to_owned();
        Ok(ServedGateway { child, authority, link, token, idle: Mutex::default(), tasks })
    }

    /// Ends the gateway as a person would, and waits for it.
    pub(super) async fn stop(mut self) {
        if let Some(pid) = self.child.id() {
            let mut kill = tokio::process::Command::new("kill");
            kill.arg(pid.to_string()).status().await.ok();
        }
        if tokio::time::timeout(Duration::from_secs(20), self.child.wait()).await.is_err() {
            self.child.kill().await.ok();
        }
        drop(self.idle);
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// An MCP client of the gateway.
    pub(super) async fn agent(&self) -> Result<Connection, Problem> {
        let headers = vec![("Authorization".to_owned(), format!("Bearer {}", self.token))];
        let remote = RemoteServer { url: format!("http://{}/mcp", self.authority), headers, authorizer: None };
        // Notifications of the server are dropped.
        let (events, _) = mpsc::channel(1);
        let (target, patience) = (ServerTarget::Remote(remote), Duration::from_secs(30));
        Connection::open("bench", &target, None, patience, events, &TaskTracker::new()).await.map_err(failed)
    }

    pub(super) async fn get(&self, path: &str) -> Result<Vec<u8>, Problem> {
        self.ask(Method::GET, path, None).await
    }

    pub(super) async fn get_json(&self, path: &str) -> Result<Value, Problem> {
        serde_json::from_slice(&self.get(path).await?).map_err(failed)
    }

    /// Sends a request over a connection that is kept. An answer other than 200 is a failure.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Vec<u8>, Problem> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Host", &self.authority)
            .header("Authorization", format!("Bearer {}", self.token))
            .header("Content-Type", "application/json");
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(Full::new(Bytes::from(body))).map_err(failed)?;
        let mut sender = self.connection().await?;
        let response =
            sender.send_request(request).await.map_err(|error| failed(format!("{path}: {error}")))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(failed)?.to_bytes();
        self.keep(sender);
        match status.as_u16() {
            200 => Ok(body.to_vec()),
            _ => Err(failed(format!("{path}: {status} {}", String::from_utf8_lossy(&body)))),
        }
    }

    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>, Problem> {
        let kept = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        if let Some(mut sender) = kept
            && sender.ready().await.is_ok()
        {
            return Ok(sender);
        }
        let stream = TcpStream::connect(&self.authority).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(failed)?;
        self.tasks.spawn(connection);
        Ok(sender)
    }

    fn keep(&self, sender: SendRequest<Full<Bytes>>) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(sender);
        }
    }
}
