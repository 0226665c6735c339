//! Writes every direct call into the audit log, off the way of its reply.
//!
//! A call leaves a short entry in a bounded queue; one task stores what has gathered there in one commit. A
//! queue that stays full refuses the call: what cannot be audited is not done. A refusal is stored before it is
//! told, since nobody waits for more than that.

use std::time::Duration;

use pml_model::{Digest, Principal, ToolId};
use pml_store::{Audit, Store};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Direct;
use crate::approve::question::value_digest;
use crate::approve::{Mode, Verdict};
use crate::problem::{Code, Problem};
use crate::runtime::blocking;

/// How many entries may wait: more than a gateway can let through between two commits.
const QUEUE: usize = 4096;
/// How long the task rests after a commit, so that busy gateways commit a few times a second and an idle one at
/// once.
const REST: Duration = Duration::from_millis(100);
/// How long a call waits for room in the queue.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the task waits before it tries again to store what could not be stored.
const BEFORE_RETRY: Duration = Duration::from_secs(1);
/// Arguments larger than this are digested at once, so that the queue stays small.
const SMALL_BYTES: usize = 4 * 1024;

/// The queue, and the task that stores what is in it.
#[derive(Debug)]
pub(crate) struct CallAudit {
    store: Store,
    queue: mpsc::Sender<DirectCall>,
    closing: CancellationToken,
    task: TaskTracker,
}

/// A direct call and what was decided about it.
#[derive(Debug)]
pub(crate) struct DirectCall {
    pub(crate) at: i64,
    pub(crate) principal: Principal,
    pub(crate) tool: ToolId,
    pub(crate) definition: Digest,
    pub(crate) arguments: Given,
    pub(crate) by: Direct,
    pub(crate) decision: Decision,
}

/// What was decided about a call.
#[derive(Debug)]
pub(crate) enum Decision {
    /// Nobody has to be asked about the tool.
    Auto,
    /// Somebody has to be, and the client counts as having asked.
    AskedByClient,
    /// It may not be made, for this reason.
    Denied(String),
}

impl Decision {
    /// What it means that a call is made under this verdict.
    pub(crate) fn of(verdict: &Verdict) -> Decision {
        match verdict.mode {
            Mode::Auto => Decision::Auto,
            Mode::Ask => Decision::AskedByClient,
            Mode::Deny => Decision::Denied(verdict.because.clone()),
        }
    }
}

/// The arguments of a call, on their way to a digest.
#[derive(Debug)]
pub(crate) enum Given {
    Small(Box<RawValue>),
    Digest(Option<Digest>),
}

impl Given {
    pub(crate) fn of(arguments: &RawValue) -> Given {
        match arguments.get().len() <= SMALL_BYTES {
            true => Given::Small(arguments.to_owned()),
            false => Given::Digest(value_digest(arguments.get())),
        }
    }

    fn digest(&self) -> Option<Digest> {
        match self {
            Given::Small(arguments) => value_digest(arguments.get()),
            Given::Digest(digest) => digest.clone(),
        }
    }
}

impl DirectCall {
    /// The entry of the log. Arguments are told by their digest alone: they may hold secrets.
    fn entry(&self) -> Audit {
        let (decision, because) = match &self.decision {
            Decision::Auto => ("auto", None),
            Decision::AskedByClient => {
                ("asked by the client", self.by.asked_by_client.map(|asked| asked.reason().to_owned()))
            }
            Decision::Denied(because) => ("denied", Some(because.clone())),
        };
        let mut body = json!({ "tool": self.tool, "definition": self.definition,
            "arguments": self.arguments.digest(), "client": self.by.client, "decision": decision });
        if let Some(key) = self.by.key {
            body["key"] = json!(key);
        }
        if let Some(because) = because {
            body["because"] = json!(because);
        }
        Audit { at: self.at, principal: self.principal.clone(), run: None, kind: "direct call", body }
    }
}

impl CallAudit {
    /// Starts the task.
    pub(crate) fn start(store: Store) -> CallAudit {
        let (queue, entries) = mpsc::channel(QUEUE);
        let (closing, task) = (CancellationToken::new(), TaskTracker::new());
        task.spawn(keep(store.clone(), entries, closing.clone()));
        task.close();
        CallAudit { store, queue, closing, task }
    }

    /// Has a call written down.
    ///
    /// # Errors
    /// The log cannot be written, or the program is about to end; then the call must not be made.
    pub(crate) async fn note(&self, call: DirectCall) -> Result<(), Problem> {
        if let Decision::Denied(_) = call.decision {
            return Ok(self.store.audit(vec![call.entry()]).await?);
        }
        let call = match self.queue.try_send(call) {
            Ok(()) => return Ok(()),
            Err(mpsc::error::TrySendError::Full(call) | mpsc::error::TrySendError::Closed(call)) => call,
        };
        match self.queue.send_timeout(call, PATIENCE).await {
            Ok(()) => Ok(()),
            Err(_) => {
                Err(Problem::new(Code::Storage, "the audit log cannot be written, so no tool is called")
                    .hint("`pml doctor` checks the database"))
            }
        }
    }

    /// Stores what is queued; nothing more is taken.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.task.wait().await;
    }
}

async fn keep(store: Store, mut entries: mpsc::Receiver<DirectCall>, closing: CancellationToken) {
    loop {
        let first = tokio::select! {
            first = entries.recv() => first,
            () = closing.cancelled() => {
                entries.close();
                entries.recv().await
            }
        };
        let Some(first) = first else { return };
        let mut batch = vec![first];
        while batch.len() < QUEUE
            && let Ok(next) = entries.try_recv()
        {
            batch.push(next);
        }
        let rest = Instant::now() + REST;
        write(&store, batch, &closing).await;
        tokio::select! {
            () = tokio::time::sleep_until(rest) => {}
            () = closing.cancelled() => {}
        }
    }
}

/// Stores a batch, again and again until it is stored or the program ends.
async fn write(store: &Store, batch: Vec<DirectCall>, closing: &CancellationToken) {
    // A batch is large enough to be written out on a thread that serves no requests.
    let rows: Vec<Audit> = blocking(move || batch.iter().map(DirectCall::entry).collect()).await;
    loop {
        let Err(error) = store.audit(rows.clone()).await else { return };
        tracing::error!(%error, calls = rows.len(), "direct calls could not be written into the audit log");
        if closing.is_cancelled() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(BEFORE_RETRY) => {}
            () = closing.cancelled() => {}
        }
    }
}
