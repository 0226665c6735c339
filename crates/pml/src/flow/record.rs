//! Takes the traces of runs that clients made themselves.
//!
//! A batch is read whole before anything of it is stored. Each trace is then taken in a transaction of its own, so that a
//! client whose request was cut off sends it again and nothing counts twice.

use std::sync::Arc;

use pml_model::remote::{BadTrace, ClientTrace, MOST_TRACES};
use pml_model::{CapabilityId, KeyId, Principal, RunId};
use pml_store::{ChainPlace, ClientTraceRow, ContextOwner, NewAuditEntry, TakenTrace};
use serde_json::json;
use serde_json::value::RawValue;

use crate::app::App;
use crate::clock::now_ms;
use crate::execute::ClientRun;
use crate::plan::Plan;
use crate::problem::{ErrorCode, Problem};

/// 4 MiB: the traces of one request.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// What became of a batch of traces.
pub struct TakenTraces {
    /// One for each trace that was taken, in order.
    pub receipts: Vec<TraceReceipt>,
    /// The position of the first trace that is missing, if one is: it and those after it have to be sent.
    pub expected: Option<i64>,
}

/// What became of a trace.
pub struct TraceReceipt {
    /// The position of the trace in its chain.
    pub seq: u64,
    /// Whether it had been taken before.
    pub repeated: bool,
    /// The capability that it counts for.
    pub capability: Option<CapabilityId>,
    /// Why it teaches nothing, if it does not.
    pub warning: Option<String>,
}

/// Takes the traces of a client.
///
/// # Errors
/// A trace is refused, or cannot be stored. Those before it are stored.
pub async fn take_client_traces(
    app: &Arc<App>,
    principal: &Principal,
    key: Option<KeyId>,
    traces: &[Box<RawValue>],
) -> Result<TakenTraces, Problem> {
    if traces.is_empty() || traces.len() > MOST_TRACES {
        let text = format!("a request has 1 to {MOST_TRACES} traces, and this one has {}", traces.len());
        return Err(Problem::new(ErrorCode::InvalidRequest, text));
    }
    if traces.iter().map(|trace| trace.get().len()).sum::<usize>() > MOST_BYTES {
        let text = format!("the traces of a request have at most {MOST_BYTES} bytes");
        return Err(Problem::new(ErrorCode::TooLarge, text).hint("send fewer at a time"));
    }
    let read = traces.iter().enumerate().map(|(place, text)| read_trace(principal, place, text));
    let traces: Vec<(ClientTrace, RunId)> = read.collect::<Result<_, _>>()?;
    let mut taken = TakenTraces { receipts: Vec::with_capacity(traces.len()), expected: None };
    for (place, (trace, workflow)) in traces.iter().enumerate() {
        let run = ClientRun { principal, workflow, trace, received_at: now_ms() };
        match take(app, &run, key).await {
            Ok(Ok(receipt)) => taken.receipts.push(receipt),
            Ok(Err(expected)) => {
                taken.expected = Some(expected);
                break;
            }
            Err(problem) => {
                note_refusal(app, principal, trace, &problem).await?;
                let message = format!("trace {}: {}", place + 1, problem.message);
                return Err(Problem { message, ..problem });
            }
        }
    }
    app.knowledge.memory.notify_learning();
    Ok(taken)
}

fn read_trace(principal: &Principal, place: usize, text: &RawValue) -> Result<(ClientTrace, RunId), Problem> {
    let refused = |error: &BadTrace| {
        let text = pml_model::name::printable(&format!("trace {}: {error}", place + 1));
        Problem::new(ErrorCode::InvalidRequest, text)
    };
    let trace = ClientTrace::read(text).map_err(|error| refused(&error))?;
    let workflow = trace.workflow().map_err(|error| refused(&error))?;
    if trace.user_id.as_ref().is_some_and(|user| *user != principal.0) {
        let text = format!("trace {}: `userId` is not whose key this is", place + 1);
        return Err(Problem::new(ErrorCode::InvalidRequest, text).hint("leave it out"));
    }
    Ok((trace, workflow))
}

/// Takes one trace; an error within is the position of the first one that is missing.
async fn take(
    app: &Arc<App>,
    run: &ClientRun<'_>,
    key: Option<KeyId>,
) -> Result<Result<TraceReceipt, i64>, Problem> {
    let ClientRun { principal, workflow, trace, received_at } = run;
    let row = ClientTraceRow {
        principal: (*principal).clone(),
        client: trace.client.clone(),
        seq: i64::try_from(trace.seq).unwrap_or(i64::MAX),
        previous: trace.previous.clone(),
        hash: trace.hash.clone(),
        at: *received_at,
    };
    match app.store.client_trace_place(&row).await? {
        ChainPlace::Next => {}
        other => return elsewhere(trace, other),
    }
    let owner = ContextOwner { principal: (*principal).clone(), key, workflow: (*workflow).clone() };
    let mut receipt = TraceReceipt { seq: trace.seq, repeated: false, capability: None, warning: None };
    if let Some(plan) = context(app, &owner, *received_at).await? {
        let memory = run.memory(&app.runs, &plan).await?;
        receipt.capability = memory.as_ref().and_then(|memory| memory.trace.capability_id.clone());
        match app.store.take_client_trace(&row, Some(owner), memory).await? {
            TakenTrace::Stored => return Ok(Ok(receipt)),
            TakenTrace::Refused(place) => return elsewhere(trace, place),
            // Another trace of the same run came first.
            TakenTrace::ContextGone => receipt.capability = None,
        }
    }
    let text = format!(
        "nothing is known of `{workflow}` for this key: it was run too long ago, or its trace came before; the trace is \
         kept and teaches nothing"
    );
    tracing::warn!(%workflow, client = trace.client, "a trace came for which no program is known");
    receipt.warning = Some(text);
    match app.store.take_client_trace(&row, None, Some(run.memory_without_plan(&app.runs))).await? {
        TakenTrace::Stored => Ok(Ok(receipt)),
        TakenTrace::Refused(place) => elsewhere(trace, place),
        TakenTrace::ContextGone => unreachable!("no context was to be used up"),
    }
}

/// What was analysed of the program. What an older version kept in another form counts as gone.
async fn context(app: &App, owner: &ContextOwner, now: i64) -> Result<Option<Plan>, Problem> {
    let kept = app.store.learning_context(owner, now).await?;
    Ok(kept.and_then(|plan| serde_json::from_slice(&plan).ok()))
}

/// The answer to a trace that does not continue its chain.
fn elsewhere(trace: &ClientTrace, place: ChainPlace) -> Result<Result<TraceReceipt, i64>, Problem> {
    match place {
        ChainPlace::Taken => {
            Ok(Ok(TraceReceipt { seq: trace.seq, repeated: true, capability: None, warning: None }))
        }
        ChainPlace::Missing { expected } => Ok(Err(expected)),
        ChainPlace::Next | ChainPlace::Forked => Err(Problem::new(
            ErrorCode::TraceForked,
            format!("another trace was taken at position {} of `{}`", trace.seq, trace.client),
        )
        .hint("send traces that were made anew under another `client`")),
    }
}

/// Notes in the audit log that a trace was refused that has the form of one.
async fn note_refusal(
    app: &App,
    principal: &Principal,
    trace: &ClientTrace,
    problem: &Problem,
) -> Result<(), Problem> {
    let body = json!({ "client": trace.client, "seq": trace.seq, "workflowId": trace.workflow_id,
        "hash": trace.hash, "code": problem.code, "because": problem.message });
    let entry =
        NewAuditEntry { at: now_ms(), principal: principal.clone(), run: None, kind: "trace refused", body };
    Ok(app.store.append_audit(vec![entry]).await?)
}
