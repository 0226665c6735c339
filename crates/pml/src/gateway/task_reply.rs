//! How a run is told as a task.
//!
//! Only a client that declares the extension with its request is told of one.

use pml_mcp::Era;
use pml_mcp::server::IncomingRequest;
use pml_model::RunId;
use pml_model::json::{Fields, raw};
use pml_store::RunRow;
use serde_json::Value;
use serde_json::value::RawValue;

use super::reply;
use crate::app::App;
use crate::report::RunStatus;

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// 1 s: how often a client should ask for a task.
const POLL_INTERVAL_MS: u64 = 1_000;

/// Whether a client takes tasks as answers to this request.
pub(super) fn is_declared(request: &IncomingRequest) -> bool {
    let capabilities = Fields::parse(request.caller.capabilities().get()).unwrap_or_default();
    let extensions: Value = capabilities.read("extensions").unwrap_or_default();
    request.caller.era() == Era::Modern && extensions.get(EXTENSION).is_some()
}

/// The task that a run is to its client; `None` where the client is told otherwise, because the run is over or asks
/// something, or the client does not know tasks.
pub(super) async fn created(
    app: &App,
    request: &IncomingRequest,
    id: &RunId,
    standing: Option<&RunStatus>,
) -> Option<Box<RawValue>> {
    let standing = standing?;
    let goes_on = matches!(
        standing,
        RunStatus::Running(_)
            | RunStatus::Interrupted
            | RunStatus::Elsewhere
            | RunStatus::Waiting { question: None, .. }
    );
    if !goes_on || !is_declared(request) {
        return None;
    }
    // A run that cannot be read is told as it is told to others.
    let row = app.store.run(&request.client.principal, id).await.ok()??;
    let mut task = envelope(app, &row, "working", &reply::progress_of(standing));
    task.set("resultType", raw(&"task"));
    Some(task.to_raw())
}

/// What all answers about a task have.
pub(super) fn envelope(app: &App, row: &RunRow, status: &str, message: &str) -> Fields<'static> {
    // What a run leaves is kept for a time after its end; until then nobody knows how long that is from its beginning.
    let kept = i64::try_from(app.config().runs.keep_results.as_millis()).unwrap_or(i64::MAX);
    let ttl = row.ended_at.map(|ended| (ended - row.created_at).max(0).saturating_add(kept));
    let mut task = Fields::default();
    task.set("taskId", raw(&row.id));
    task.set("status", raw(&status));
    if !message.is_empty() {
        task.set("statusMessage", raw(&message));
    }
    task.set("createdAt", raw(&timestamp(row.created_at)));
    task.set("lastUpdatedAt", raw(&timestamp(row.updated_at)));
    task.set("ttlMs", raw(&ttl));
    task.set("pollIntervalMs", raw(&POLL_INTERVAL_MS));
    task
}

/// A time of day in UTC, as in ISO 8601.
fn timestamp(at: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(at).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
