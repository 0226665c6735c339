//! Writes every direct call, and every call that a dry run makes, to the audit log without delaying its reply.
//!
//! A call puts a short entry into a bounded queue; one task stores the queued entries in one commit. If the queue stays
//! full, the call is refused: a call that cannot be audited is not made. A refusal is stored before it is reported,
//! since nothing else is waited for then.

use std::time::Duration;

use pml_model::{Digest, KeyId, Principal, ToolId};
use pml_store::{NewAuditEntry, Store};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::DirectCaller;
use crate::approve::question::value_digest;
use crate::approve::{CallPermission, ToolVerdict};
use crate::problem::{ErrorCode, Problem};
use crate::runtime::run_blocking;

/// The capacity of the queue: more entries than a gateway can produce between two commits.
const QUEUE: usize = 4096;
/// 100 ms: the pause of the task after a commit, so that a busy gateway commits a few times a second and an idle one at
/// once.
const REST: Duration = Duration::from_millis(100);
/// 5 s: how long a call waits for room in the queue.
const PATIENCE: Duration = Duration::from_secs(5);
/// 1 s: the pause before the task retries to store a batch.
const BEFORE_RETRY: Duration = Duration::from_secs(1);
/// Bytes: larger arguments are digested at once, so that the queue stays small.
const SMALL_BYTES: usize = 4 * 1024;

/// The queue of audit entries and the task that stores them.
#[derive(Debug)]
pub(crate) struct CallAudit {
    store: Store,
    queue: mpsc::Sender<AuditedCall>,
    closing: CancellationToken,
    task: TaskTracker,
}

/// A call outside any run and the decision about it.
#[derive(Debug)]
pub(crate) struct AuditedCall {
    pub(crate) at: i64,
    pub(crate) principal: Principal,
    pub(crate) tool: ToolId,
    pub(crate) definition: Digest,
    pub(crate) arguments: AuditedArguments,
    pub(crate) caller: AuditedCaller,
    pub(crate) decision: DirectDecision,
}

/// Who makes a call.
#[derive(Debug)]
pub(crate) enum AuditedCaller {
    /// A client, by the name of the tool.
    Client(DirectCaller),
    /// A dry run, for a client with this key.
    DryRun { key: Option<KeyId> },
}

/// The decision about a direct call.
#[derive(Debug)]
pub(crate) enum DirectDecision {
    /// The tool needs no approval.
    Auto,
    /// The tool needs approval, and the client counts as having asked its user.
    AskedByClient,
    /// The call is refused, for this reason.
    Denied(String),
}

impl DirectDecision {
    /// The decision that a call made under this verdict implies.
    pub(crate) fn of(verdict: &ToolVerdict) -> DirectDecision {
        match verdict.mode {
            CallPermission::Auto => DirectDecision::Auto,
            CallPermission::Ask => DirectDecision::AskedByClient,
            CallPermission::Deny => DirectDecision::Denied(verdict.because.clone()),
        }
    }
}

/// The arguments of a call, which the entry contains as a digest.
#[derive(Debug)]
pub(crate) enum AuditedArguments {
    Small(Box<RawValue>),
    Digest(Option<Digest>),
}

impl AuditedArguments {
    pub(crate) fn of(arguments: &RawValue) -> AuditedArguments {
        match arguments.get().len() <= SMALL_BYTES {
            true => AuditedArguments::Small(arguments.to_owned()),
            false => AuditedArguments::Digest(value_digest(arguments.get())),
        }
    }

    fn digest(&self) -> Option<Digest> {
        match self {
            AuditedArguments::Small(arguments) => value_digest(arguments.get()),
            AuditedArguments::Digest(digest) => digest.clone(),
        }
    }
}

impl AuditedCall {
    /// The audit log entry. It contains only the digest of the arguments, because they may hold secrets.
    fn entry(&self) -> NewAuditEntry {
        let mut body = json!({ "tool": self.tool, "definition": self.definition,
            "arguments": self.arguments.digest() });
        let (kind, key, asked) = match &self.caller {
            AuditedCaller::Client(client) => {
                body["client"] = json!(client.client);
                ("direct call", client.key, client.asked_by_client)
            }
            AuditedCaller::DryRun { key } => ("dry run read", *key, None),
        };
        let (decision, because) = match &self.decision {
            DirectDecision::Auto => ("auto", None),
            DirectDecision::AskedByClient => {
                ("asked by the client", asked.map(|asked| asked.reason().to_owned()))
            }
            DirectDecision::Denied(because) => ("denied", Some(because.clone())),
        };
        body["decision"] = json!(decision);
        if let Some(key) = key {
            body["key"] = json!(key);
        }
        if let Some(because) = because {
            body["because"] = json!(because);
        }
        NewAuditEntry { at: self.at, principal: self.principal.clone(), run: None, kind, body }
    }
}

impl CallAudit {
    /// Starts the task that stores the entries.
    pub(crate) fn start(store: Store) -> CallAudit {
        let (queue, entries) = mpsc::channel(QUEUE);
        let (closing, task) = (CancellationToken::new(), TaskTracker::new());
        task.spawn(keep(store.clone(), entries, closing.clone()));
        task.close();
        CallAudit { store, queue, closing, task }
    }

    /// Queues a call for the audit log.
    ///
    /// # Errors
    /// The log cannot be written, or the program is ending; then the call must not be made.
    pub(crate) async fn record_call(&self, call: AuditedCall) -> Result<(), Problem> {
        if let DirectDecision::Denied(_) = call.decision {
            return Ok(self.store.append_audit(vec![call.entry()]).await?);
        }
        let call = match self.queue.try_send(call) {
            Ok(()) => return Ok(()),
            Err(mpsc::error::TrySendError::Full(call) | mpsc::error::TrySendError::Closed(call)) => call,
        };
        match self.queue.send_timeout(call, PATIENCE).await {
            Ok(()) => Ok(()),
            Err(_) => {
                Err(Problem::new(ErrorCode::Storage, "the audit log cannot be written, so no tool is called")
                    .hint("`pml doctor` checks the database"))
            }
        }
    }

    /// Stores the queued entries; further ones are refused.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.task.wait().await;
    }
}

async fn keep(store: Store, mut entries: mpsc::Receiver<AuditedCall>, closing: CancellationToken) {
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

/// Stores a batch, retrying until it is stored or the program ends.
async fn write(store: &Store, batch: Vec<AuditedCall>, closing: &CancellationToken) {
    // A batch is large enough to be built on a thread that serves no requests.
    let rows: Vec<NewAuditEntry> = run_blocking(move || batch.iter().map(AuditedCall::entry).collect()).await;
    loop {
        let Err(error) = store.append_audit(rows.clone()).await else { return };
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
