//! One client over standard input and output.

use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pml_model::json::empty_object;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::message::{self, Id, MAX_MESSAGE_BYTES, Message, Notification, Request, RpcError, code};
use crate::pieces::Pieces;
use crate::protocol::Era;
use crate::server::envelope::Sender;
use crate::server::listen::{Filter, session_message};
use crate::server::run::Output;
use crate::server::session::{self, CallOff, Session};
use crate::server::{Change, Identity, Server, envelope};

/// Messages that may wait for a client that does not read.
const QUEUE: usize = 1024;
/// How long requests and answers that are under way get at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serves the client until it closes its end or `stop` is cancelled; requests still under way are
/// then cancelled.
pub async fn serve(server: Server, identity: Identity, stop: CancellationToken) {
    let (lines, mut incoming) = mpsc::channel(64);
    let (outgoing, to_write) = mpsc::channel(QUEUE);
    std::thread::spawn(move || read(std::io::stdin().lock(), &lines));
    let writing = std::thread::spawn(move || write(std::io::stdout().lock(), to_write));
    let changes = server.handler.changes();
    let connection = Arc::new(Connection {
        server,
        session: Session::new(identity),
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
    if tokio::time::timeout(FAREWELL, connection.tasks.wait()).await.is_err() {
        tracing::debug!("requests were abandoned at the end");
    }
    drop(connection);
    // The thread ends with the last sender; what was answered is on its way before we leave.
    let written = tokio::task::spawn_blocking(move || writing.join());
    if tokio::time::timeout(FAREWELL, written).await.is_err() {
        tracing::debug!("the client does not take what was answered");
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

fn write(mut output: impl Write, mut lines: mpsc::Receiver<Pieces>) {
    while let Some(mut ready) = lines.blocking_recv() {
        ready.push("\n");
        // What is ready goes out in one write, unless some of it is large.
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

struct Connection {
    server: Server,
    session: Session,
    outgoing: mpsc::Sender<Pieces>,
    subscriptions: Mutex<HashMap<Id, Filter>>,
    tasks: TaskTracker,
}

impl Connection {
    fn take(self: &Arc<Self>, line: &[u8]) {
        match Message::parse(line) {
            Ok(Message::Request(request)) => {
                // Noted before anything else is read: the next line may cancel it.
                let begun = self.session.begin(&request.id);
                let connection = Arc::clone(self);
                self.tasks.spawn(async move { connection.request(request, begun).await });
            }
            Ok(Message::Notification(notification)) => self.notified(&notification),
            Ok(Message::Response(response)) => self.session.answered(response),
            Err(error) => {
                let line = message::response(Message::salvage_id(line).as_ref(), &Err(error.to_rpc()));
                if self.outgoing.try_send(line.into()).is_err() {
                    tracing::debug!("the client is gone or does not read");
                }
            }
        }
    }

    fn notified(&self, notification: &Notification) {
        if let Some(id) = session::cancelled(notification) {
            self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            self.session.cancel(&id);
        }
    }

    async fn request(&self, request: Request, begun: Option<CallOff>) {
        let Some(off) = begun else {
            let error = RpcError::new(code::INVALID_REQUEST, format!("request id {} is in use", request.id));
            return self.reply(&request.id, Err(error)).await;
        };
        let answered = match self.own(&request).await {
            Own::Answered(outcome) => Some(outcome),
            Own::Subscribed => None,
            Own::Handlers(sender) => self.run(&request, *sender, &off).await,
        };
        self.session.finish(&request.id);
        if let Some(outcome) = answered
            && !off.cancel.is_cancelled()
        {
            self.reply(&request.id, outcome).await;
        }
    }

    /// Answers what belongs to the protocol itself.
    async fn own(&self, request: &Request) -> Own {
        let params = request.params.as_deref();
        match envelope::declared(params, self.session.identity()) {
            Some(Ok(sender)) => return self.modern(request, sender).await,
            Some(Err(error)) => return Own::Answered(Err(error)),
            None => {}
        }
        match request.method.as_str() {
            "server/discover" => Own::Answered(Err(envelope::missing_version())),
            "initialize" => Own::Answered(self.server.initialize(params, &self.session)),
            "ping" => Own::Answered(Ok(empty_object().into())),
            method => match self.session.note(method, params) {
                Ok(()) => match envelope::legacy(params, &self.session) {
                    Ok(sender) => Own::Handlers(Box::new(sender)),
                    Err(error) => Own::Answered(Err(error)),
                },
                Err(error) => Own::Answered(Err(error)),
            },
        }
    }

    async fn modern(&self, request: &Request, sender: Sender) -> Own {
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
            method if envelope::is_gone(method) => Own::Answered(Err(envelope::method_not_found(method))),
            _ => Own::Handlers(Box::new(sender)),
        }
    }

    async fn run(
        &self,
        request: &Request,
        sender: Sender,
        off: &CallOff,
    ) -> Option<Result<Pieces, RpcError>> {
        let session = (sender.standing.era == Era::Legacy).then_some(&self.session);
        let running = match self.server.start(request, sender, off) {
            Ok(running) => running,
            Err(error) => return Some(Err(error)),
        };
        let (out, mut outputs) = mpsc::channel(16);
        let driving = async move { self.server.drive(running, request, session, &off.cancel, &out).await };
        let sending = async {
            while let Some(output) = outputs.recv().await {
                match output {
                    Output::Message(line) if !off.cancel.is_cancelled() => self.send(line).await,
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

    async fn reply(&self, id: &Id, outcome: Result<Pieces, RpcError>) {
        self.send(message::answer(id, outcome)).await;
    }

    async fn send(&self, line: impl Into<Pieces>) {
        if self.outgoing.send(line.into()).await.is_err() {
            tracing::debug!("the client is gone");
        }
    }
}

/// Who answers a request.
enum Own {
    Answered(Result<Pieces, RpcError>),
    Subscribed,
    Handlers(Box<Sender>),
}
