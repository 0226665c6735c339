//! The stdio transport of the server: one client over standard input and output.

use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pml_model::json::empty_object;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::message::{
    self, MAX_MESSAGE_BYTES, RequestId, RpcError, RpcMessage, RpcNotification, RpcRequest, code,
};
use crate::pieces::ChunkedText;
use crate::protocol::Era;
use crate::server::envelope::RequestSender;
use crate::server::listen::{SubscriptionFilter, session_message};
use crate::server::run::RequestOutput;
use crate::server::session::{self, McpSession, RequestCancellation};
use crate::server::{
    ChangeNotice, ClientIdentity, McpServer, RequestTransport, changes_to_announce, envelope,
};

/// Maximum number of messages that wait for a client that does not read.
const QUEUE: usize = 1024;
/// How long active requests and queued replies get at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serves the client until it closes its end or `stop` is cancelled. Active requests are then cancelled; all of them
/// have ended when this returns.
pub async fn serve(server: McpServer, identity: ClientIdentity, stop: CancellationToken) {
    let (lines, mut incoming) = mpsc::channel(64);
    let (outgoing, to_write) = mpsc::channel(QUEUE);
    // Not joined: a blocking read of standard input cannot be cancelled. The thread ends with the client or the
    // process.
    std::thread::spawn(move || read(std::io::stdin().lock(), &lines));
    let writing = std::thread::spawn(move || write(std::io::stdout().lock(), to_write));
    let changes = server.handler.changes();
    let connection = Arc::new(StdioConnection {
        server,
        session: McpSession::new(identity),
        outgoing,
        subscriptions: Mutex::default(),
    });
    let (mut requests, mut announcing) = (JoinSet::new(), JoinSet::new());
    announcing.spawn(Arc::clone(&connection).announce(changes));
    loop {
        tokio::select! {
            line = incoming.recv() => match line {
                Some(line) => connection.take(&line, &mut requests),
                None => break,
            },
            Some(_) = requests.join_next() => {}
            () = stop.cancelled() => break,
        }
    }
    announcing.shutdown().await;
    connection.session.end();
    let ending = async { while requests.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL, ending).await.is_err() {
        tracing::debug!("requests were abandoned at the end");
        requests.shutdown().await;
    }
    connection.server.close().await;
    drop(connection);
    // The thread ends with the last sender. Waiting for it makes sure that queued replies are written.
    let written = tokio::task::spawn_blocking(move || writing.join());
    if tokio::time::timeout(FAREWELL, written).await.is_err() {
        tracing::debug!("the client does not take what was answered");
    }
}

/// Reads lines on a thread of its own. Standard input needs a blocking thread anyway, and a dedicated one has less
/// latency than a pool.
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

fn write(mut output: impl Write, mut lines: mpsc::Receiver<ChunkedText>) {
    while let Some(mut ready) = lines.blocking_recv() {
        ready.push("\n");
        // All queued lines go out in one write, unless some are large.
        while let Ok(next) = lines.try_recv() {
            ready.append(next);
            ready.push("\n");
        }
        let mut parts = ready.into_parts(usize::MAX);
        if parts.try_for_each(|part| output.write_all(&part)).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

struct StdioConnection {
    server: McpServer,
    session: McpSession,
    outgoing: mpsc::Sender<ChunkedText>,
    subscriptions: Mutex<HashMap<RequestId, SubscriptionFilter>>,
}

impl StdioConnection {
    fn take(self: &Arc<Self>, line: &[u8], requests: &mut JoinSet<()>) {
        match RpcMessage::parse(line) {
            Ok(RpcMessage::Request(request)) => {
                // Registered before the next line is read, because that may cancel it.
                let begun = self.session.begin_request(&request.id);
                // Opened before the next line is read too: clients send requests without waiting for the reply.
                let opened = begun.as_ref().and_then(|_| self.open_session(&request));
                let connection = Arc::clone(self);
                requests.spawn(async move { connection.request(request, begun, opened).await });
            }
            Ok(RpcMessage::Notification(notification)) => self.notified(&notification),
            Ok(RpcMessage::Response(response)) => {
                if !self.session.deliver_answer(response) {
                    tracing::debug!("an answer to no open question was dropped");
                }
            }
            Err(error) => {
                let line = message::encode_response(
                    RpcMessage::salvage_id(line).as_ref(),
                    &Err(error.to_rpc_error()),
                );
                if self.outgoing.try_send(line.into()).is_err() {
                    tracing::debug!("the client is gone or does not read");
                }
            }
        }
    }

    fn notified(&self, notification: &RpcNotification) {
        if let Some(id) = session::cancelled_request(notification) {
            self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            self.session.cancel_request(&id);
        }
    }

    /// The answer to an `initialize`; `None` if the request is another one.
    fn open_session(&self, request: &RpcRequest) -> Option<Result<ChunkedText, RpcError>> {
        let params = request.params.as_deref();
        let is_modern = || envelope::declared_sender(params, self.session.identity()).is_some();
        if request.method != "initialize" || is_modern() {
            return None;
        }
        Some(self.server.initialize(params, &self.session))
    }

    async fn request(
        &self,
        request: RpcRequest,
        begun: Option<RequestCancellation>,
        opened: Option<Result<ChunkedText, RpcError>>,
    ) {
        let Some(off) = begun else {
            let error = RpcError::new(code::INVALID_REQUEST, format!("request id {} is in use", request.id));
            return self.reply(&request.id, Err(error)).await;
        };
        let routing = match opened {
            Some(outcome) => RequestRouting::Answered(outcome),
            None => self.own(&request).await,
        };
        let answered = match routing {
            RequestRouting::Answered(outcome) => Some(outcome),
            RequestRouting::Subscribed => None,
            RequestRouting::Handlers(sender) => self.run(&request, *sender, &off).await,
        };
        self.session.finish_request(&request.id);
        if let Some(outcome) = answered
            && !off.cancel.is_cancelled()
        {
            self.reply(&request.id, outcome).await;
        }
    }

    /// Answers the methods of the protocol itself, and routes all others.
    async fn own(&self, request: &RpcRequest) -> RequestRouting {
        let params = request.params.as_deref();
        match envelope::declared_sender(params, self.session.identity()) {
            Some(Ok(sender)) => return self.modern(request, sender).await,
            Some(Err(error)) => return RequestRouting::Answered(Err(error)),
            None => {}
        }
        match request.method.as_str() {
            "server/discover" => RequestRouting::Answered(Err(envelope::missing_version())),
            "ping" => RequestRouting::Answered(Ok(empty_object().into())),
            method => match self.session.apply_session_method(method, params) {
                Ok(()) => match envelope::legacy_sender(params, &self.session) {
                    Ok(sender) => RequestRouting::Handlers(Box::new(sender)),
                    Err(error) => RequestRouting::Answered(Err(error)),
                },
                Err(error) => RequestRouting::Answered(Err(error)),
            },
        }
    }

    async fn modern(&self, request: &RpcRequest, sender: RequestSender) -> RequestRouting {
        match request.method.as_str() {
            "server/discover" => RequestRouting::Answered(Ok(self.server.discover(&sender.client))),
            "subscriptions/listen" => {
                let filter = self
                    .server
                    .accept_subscription(
                        SubscriptionFilter::from_params(request.params.as_deref()),
                        &sender.client,
                    )
                    .await;
                self.send(filter.acknowledgement(&request.id)).await;
                self.subscriptions
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(request.id.clone(), filter);
                RequestRouting::Subscribed
            }
            method if envelope::is_session_method(method) => {
                RequestRouting::Answered(Err(envelope::method_not_found(method)))
            }
            _ => RequestRouting::Handlers(Box::new(sender)),
        }
    }

    async fn run(
        &self,
        request: &RpcRequest,
        sender: RequestSender,
        off: &RequestCancellation,
    ) -> Option<Result<ChunkedText, RpcError>> {
        let session = (sender.info.era == Era::Legacy).then_some(&self.session);
        let running = match self.server.start_request(request, sender, RequestTransport::Pipe, off) {
            Ok(running) => running,
            Err(error) => return Some(Err(error)),
        };
        let (out, mut outputs) = mpsc::channel(16);
        let driving =
            async move { self.server.drive_request(running, request, session, &off.cancel, &out).await };
        let sending = async {
            while let Some(output) = outputs.recv().await {
                match output {
                    RequestOutput::Message(line) if !off.cancel.is_cancelled() => self.send(line).await,
                    RequestOutput::Message(_) => {}
                    RequestOutput::Result(outcome) => return Some(outcome),
                }
            }
            None
        };
        let ((), outcome) = tokio::join!(driving, sending);
        outcome
    }

    /// Sends change notifications to the client, in the form it subscribed to.
    async fn announce(self: Arc<Self>, mut changes: broadcast::Receiver<ChangeNotice>) {
        loop {
            let Some(received) = changes_to_announce(changes.recv().await) else { return };
            for change in received {
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
    }

    async fn reply(&self, id: &RequestId, outcome: Result<ChunkedText, RpcError>) {
        self.send(message::encode_answer(id, outcome)).await;
    }

    async fn send(&self, line: impl Into<ChunkedText>) {
        if self.outgoing.send(line.into()).await.is_err() {
            tracing::debug!("the client is gone");
        }
    }
}

/// Where a request is answered.
enum RequestRouting {
    Answered(Result<ChunkedText, RpcError>),
    Subscribed,
    Handlers(Box<RequestSender>),
}
