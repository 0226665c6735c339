//! One client over standard input and output.

use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use pml_model::Principal;
use pml_model::json::{Fields, empty_object};
use serde_json::value::RawValue;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::message::{self, Id, MAX_MESSAGE_BYTES, Message, Notification, Request, RpcError, code};
use crate::protocol::{self, Era};
use crate::server::listen::{Filter, session_message};
use crate::server::run::Output;
use crate::server::session::Session;
use crate::server::{Change, Client, Server, envelope};

/// Messages that may wait for a client that does not read.
const QUEUE: usize = 1024;

/// Serves the client until it closes its end or `stop` is cancelled; requests still under way are
/// then cancelled.
pub async fn serve(server: Server, principal: Principal, stop: CancellationToken) {
    let (lines, mut incoming) = mpsc::channel(64);
    let (outgoing, to_write) = mpsc::channel(QUEUE);
    std::thread::spawn(move || read(std::io::stdin().lock(), &lines));
    let writing = std::thread::spawn(move || write(std::io::stdout().lock(), to_write));
    let changes = server.handler.changes();
    let connection = Arc::new(Connection {
        server,
        session: Session::new(principal),
        outgoing,
        subscriptions: Mutex::default(),
        tasks: TaskTracker::new(),
    });
    let announcing = connection.tasks.spawn(Arc::clone(&connection).announce(changes));
    loop {
        tokio::select! {
            line = incoming.recv() => match line {
                Some(line) => connection.take(&line),
                None => break,
            },
            () = stop.cancelled() => break,
        }
    }
    announcing.abort();
    connection.session.end();
    connection.tasks.close();
    connection.tasks.wait().await;
    drop(connection);
    // The thread ends with the last sender; what was answered is on its way before we leave.
    if tokio::task::spawn_blocking(move || writing.join()).await.is_err() {
        tracing::debug!("the writing thread was abandoned");
    }
}

/// Reads lines on a thread of its own: standard input cannot be awaited without one anyway, and a
/// thread that only reads answers sooner than a pool.
fn read(input: impl BufRead, lines: &mpsc::Sender<Vec<u8>>) {
    let mut input = input;
    loop {
        let mut line = Vec::new();
        let limit = MAX_MESSAGE_BYTES as u64 + 1;
        match input.by_ref().take(limit).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') && line.len() > MAX_MESSAGE_BYTES {
            tracing::error!("the client sent a line longer than {MAX_MESSAGE_BYTES} bytes; closing");
            return;
        }
        if !crate::line::is_blank(&line) && lines.blocking_send(line).is_err() {
            return;
        }
    }
}

fn write(mut output: impl Write, mut lines: mpsc::Receiver<String>) {
    while let Some(mut line) = lines.blocking_recv() {
        line.push('\n');
        // What is ready goes out in one write.
        while let Ok(next) = lines.try_recv() {
            line.push_str(&next);
            line.push('\n');
        }
        if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

struct Connection {
    server: Server,
    session: Session,
    outgoing: mpsc::Sender<String>,
    subscriptions: Mutex<HashMap<Id, Filter>>,
    tasks: TaskTracker,
}

impl Connection {
    fn take(self: &Arc<Self>, line: &[u8]) {
        match Message::parse(line) {
            Ok(Message::Request(request)) => {
                let connection = Arc::clone(self);
                self.tasks.spawn(async move { connection.request(request).await });
            }
            Ok(Message::Notification(notification)) => self.notified(&notification),
            Ok(Message::Response(response)) => self.session.answered(response),
            Err(error) => {
                let line = message::response(Message::salvage_id(line).as_ref(), &Err(error.to_rpc()));
                if self.outgoing.try_send(line).is_err() {
                    tracing::debug!("the client is gone or does not read");
                }
            }
        }
    }

    fn notified(&self, notification: &Notification) {
        if notification.method == "notifications/cancelled" {
            let id = notification
                .params
                .as_ref()
                .and_then(|p| Fields::parse(p.get()).ok()?.read::<Id>("requestId"));
            if let Some(id) = id {
                self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                self.session.cancel(&id);
            }
        }
    }

    async fn request(&self, request: Request) {
        let Some(cancel) = self.session.begin(&request.id) else {
            let error = RpcError::new(code::INVALID_REQUEST, format!("request id {} is in use", request.id));
            return self.reply(&request.id, &Err(error)).await;
        };
        let answered = match self.own(&request).await {
            Own::Answered(outcome) => Some(outcome),
            Own::Subscribed => None,
            Own::Handlers(era) => self.run(&request, era, &cancel).await,
        };
        self.session.finish(&request.id);
        if let Some(outcome) = answered
            && !cancel.is_cancelled()
        {
            self.reply(&request.id, &outcome).await;
        }
    }

    /// Answers what belongs to the protocol itself.
    async fn own(&self, request: &Request) -> Own {
        let params = request.params.as_deref();
        if envelope::declared_version(params).is_some() || request.method == "server/discover" {
            return self.modern(request).await;
        }
        match request.method.as_str() {
            "initialize" => Own::Answered(self.server.initialize(params, &self.session)),
            "ping" => Own::Answered(Ok(empty_object())),
            "logging/setLevel" => match log_rank(params) {
                Ok(rank) => {
                    self.session.set_log_level(rank);
                    Own::Handlers(Era::Legacy)
                }
                Err(error) => Own::Answered(Err(error)),
            },
            "resources/subscribe" => {
                if let Some(uri) = uri_of(params) {
                    self.session.watch(uri);
                }
                Own::Handlers(Era::Legacy)
            }
            "resources/unsubscribe" => {
                if let Some(uri) = uri_of(params) {
                    self.session.unwatch(&uri);
                }
                Own::Handlers(Era::Legacy)
            }
            _ => Own::Handlers(Era::Legacy),
        }
    }

    async fn modern(&self, request: &Request) -> Own {
        let sender = match envelope::modern(request.params.as_deref(), self.session.principal()) {
            Ok(sender) => sender,
            Err(error) => return Own::Answered(Err(error)),
        };
        match request.method.as_str() {
            "server/discover" => Own::Answered(Ok(self.server.discover(&sender.client))),
            "subscriptions/listen" => {
                let filter = self.server.accept(Filter::of(request.params.as_deref()), &sender.client).await;
                self.send(filter.acknowledgement(&request.id)).await;
                self.subscriptions
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(request.id.clone(), filter);
                Own::Subscribed
            }
            method if envelope::is_gone(method) => Own::Answered(Err(method_not_found(method))),
            _ => Own::Handlers(Era::Modern),
        }
    }

    async fn run(
        &self,
        request: &Request,
        era: Era,
        cancel: &CancellationToken,
    ) -> Option<Result<Box<RawValue>, RpcError>> {
        let params = request.params.as_deref();
        let (sender, session) = match era {
            Era::Modern => (envelope::modern(params, self.session.principal()), None),
            Era::Legacy => (envelope::legacy(params, &self.session), Some(&self.session)),
        };
        let running = match sender.and_then(|sender| self.server.start(request, sender, cancel)) {
            Ok(running) => running,
            Err(error) => return Some(Err(error)),
        };
        let (out, mut outputs) = mpsc::channel(16);
        let driving = self.server.drive(running, session, &out);
        let sending = async {
            while let Some(output) = outputs.recv().await {
                match output {
                    Output::Message(line) if !cancel.is_cancelled() => self.send(line).await,
                    Output::Message(_) => {}
                    Output::Result(outcome) => return Some(outcome),
                }
            }
            None
        };
        let ((), outcome) = tokio::join!(driving, sending);
        outcome
    }

    /// Tells the client of changes, in the form it asked for.
    async fn announce(self: Arc<Self>, mut changes: broadcast::Receiver<Change>) {
        loop {
            let change = match changes.recv().await {
                Ok(change) => change,
                // What was missed is unknown, so the list clients care most about is announced.
                Err(broadcast::error::RecvError::Lagged(_)) => Change::Tools,
                Err(broadcast::error::RecvError::Closed) => return,
            };
            let mut lines: Vec<String> = {
                let subscriptions = self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
                subscriptions.iter().filter_map(|(id, filter)| filter.message(&change, id)).collect()
            };
            if self.session.client().is_some() {
                lines.extend(session_message(&change, &self.session));
            }
            for line in lines {
                self.send(line).await;
            }
        }
    }

    async fn reply(&self, id: &Id, outcome: &Result<Box<RawValue>, RpcError>) {
        self.send(message::response(Some(id), outcome)).await;
    }

    async fn send(&self, line: String) {
        if self.outgoing.send(line).await.is_err() {
            tracing::debug!("the client is gone");
        }
    }
}

/// Who answers a request.
enum Own {
    Answered(Result<Box<RawValue>, RpcError>),
    Subscribed,
    Handlers(Era),
}

pub(crate) fn method_not_found(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("method `{method}` is not known here"))
}

pub(crate) fn uri_of(params: Option<&RawValue>) -> Option<String> {
    Fields::parse(params?.get()).ok()?.read("uri")
}

pub(crate) fn log_rank(params: Option<&RawValue>) -> Result<usize, RpcError> {
    let level: String = params.and_then(|p| Fields::parse(p.get()).ok()?.read("level")).unwrap_or_default();
    protocol::log_rank(&level)
        .ok_or_else(|| RpcError::new(code::INVALID_PARAMS, format!("`{level}` is not a log level")))
}

impl Server {
    /// The part of a filter that can be honoured: resources are watched where their server allows.
    pub(crate) async fn accept(&self, mut filter: Filter, client: &Client) -> Filter {
        for uri in std::mem::take(&mut filter.resource_subscriptions) {
            let mut params = Fields::default();
            params.set("uri", pml_model::json::raw(&uri));
            let request = crate::server::Incoming {
                method: "resources/subscribe".into(),
                params: params.to_raw(),
                client: client.clone(),
                caller: crate::Caller::silent(),
                cancel: CancellationToken::new(),
            };
            match self.handler.handle(request).await {
                Ok(_) => drop(filter.resource_subscriptions.insert(uri)),
                Err(error) => tracing::debug!(%error, uri, "a resource cannot be watched"),
            }
        }
        filter
    }
}
