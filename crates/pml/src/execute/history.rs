//! Reads runs for people: the calls of a run page by page, and the contents of one call.
//!
//! A page needs the journal entries of its own calls and no others, so that a run with many calls is shown as fast as
//! one with few.

use std::collections::HashMap;
use std::sync::Arc;

use pml_model::name::truncate_text;
use pml_model::structure::{NodeId, NodeKind};
use pml_model::{ErrorCode, Principal, RunId, RunState};
use pml_store::{JournalEntry, JournalEntryKind, RunRow};
use serde_json::value::RawValue;

use super::RunRegistry;
use super::dag::DagRun;
use super::delivery::{CallFailure, RunDelivery};
use super::journal::{History, unreadable};
use super::results::told;
use crate::plan::{Plan, TaskWork};
use crate::problem::Problem;
use crate::report::NotAhead;

/// The characters of an error in a list of calls.
const ERROR_CHARACTERS: usize = 500;

/// One call of a run, as people see it.
#[derive(Debug)]
pub struct PastCall {
    /// The number of the call, in the order of issue.
    pub call: u32,
    /// The node of the run's structure that makes the call.
    pub node: Option<String>,
    /// The call of a capability that this call is part of.
    pub parent: Option<CallingCapability>,
    /// The tool, as `server:tool`.
    pub tool: String,
    /// When the program issued the call.
    pub issued_at: i64,
    /// When its end was recorded.
    pub ended_at: Option<i64>,
    /// The status of the call.
    pub status: PastCallStatus,
    /// The error, if it failed.
    pub error: Option<PastCallError>,
    /// How often it was sent again after it was in doubt.
    pub retries: u32,
    /// How much sooner its result was there because it was made ahead, in milliseconds.
    pub saved_ms: Option<u64>,
    /// The age of its result in milliseconds, if an earlier dry run had read it.
    pub age_ms: Option<u64>,
    /// Why it was not made ahead, if something kept it from being.
    pub not_ahead: Option<NotAhead>,
    /// The layer of the DAG that it belongs to, from 0.
    pub layer: Option<u32>,
    /// The size of its arguments in bytes.
    pub argument_bytes: usize,
    /// The size of its result in bytes.
    pub result_bytes: usize,
}

/// A call of a capability, within which tools are called.
#[derive(Debug, Clone)]
pub struct CallingCapability {
    /// The number of the call of the capability within the run; all calls that it makes have the same.
    pub frame: u32,
    /// The node of the run's structure that calls the capability.
    pub node: String,
    /// The name of the capability.
    pub name: Option<String>,
}

/// The status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastCallStatus {
    /// It returned a result.
    Ok,
    /// It failed.
    Error,
    /// It waits for approval, or for a run that waits.
    Waiting,
    /// It is being made.
    Running,
    /// It was sent, and whether the tool acted is not known.
    InDoubt,
    /// The run ended first: the call was not sent, or was called off.
    Cancelled,
}

/// The error of a call.
#[derive(Debug)]
pub struct PastCallError {
    /// The stable code for programs.
    pub code: ErrorCode,
    /// The message for people.
    pub message: String,
    /// The hint: what to do about it.
    pub hint: Option<String>,
}

/// The contents of one call.
#[derive(Debug)]
pub struct CallContents {
    /// The call.
    pub call: PastCall,
    /// The arguments, as JSON.
    pub arguments: String,
    /// The result.
    pub result: Option<Box<RawValue>>,
    /// The images and other parts for which the result holds handles: the URI of each, and its content block.
    pub parts: Vec<(String, Box<RawValue>)>,
}

/// A page of the calls of a run: those after number `after`, at most `limit`; and whether more follow.
///
/// # Errors
/// There is no such run, or its records are no longer kept.
pub async fn page_of_calls(
    runs: &RunRegistry,
    principal: &Principal,
    id: &RunId,
    after: u32,
    limit: u32,
) -> Result<(Vec<PastCall>, bool), Problem> {
    let (calls, more) = read_calls(runs, principal, id, after, limit).await?;
    Ok((calls.into_iter().map(|contents| contents.call).collect(), more))
}

/// The contents of call number `call`; `None` if the run has no such call.
///
/// # Errors
/// There is no such run, or its records are no longer kept.
pub async fn call_contents(
    runs: &RunRegistry,
    principal: &Principal,
    id: &RunId,
    call: u32,
) -> Result<Option<CallContents>, Problem> {
    let Some(before) = call.checked_sub(1) else { return Ok(None) };
    Ok(read_calls(runs, principal, id, before, 1).await?.0.pop())
}

async fn read_calls(
    runs: &RunRegistry,
    principal: &Principal,
    id: &RunId,
    after: u32,
    limit: u32,
) -> Result<(Vec<CallContents>, bool), Problem> {
    let page = runs.store.run_calls(principal, id, after, limit).await.map_err(|error| told(id, error))?;
    let plan = runs.store.run_plan(principal, id).await.map_err(|error| told(id, error))?;
    let places = plan.as_deref().map(|plan| Places::of_plan(plan, id)).unwrap_or_default();
    let mut calls: Vec<CallContents> = Vec::new();
    for entries in page.entries.chunk_by(|one, other| one.call == other.call) {
        let call = decode_call(&page.run, &places, entries).ok_or_else(|| {
            unreadable(id, &std::io::Error::other("the entries of a call are not what this version writes"))
        })?;
        calls.push(call);
    }
    Ok((calls, page.more))
}

/// What the plan of a run says of the places of its calls.
#[derive(Default)]
struct Places {
    capabilities: HashMap<String, String>,
    layers: HashMap<NodeId, u32>,
    /// The tools whose calls need approval.
    asking: Vec<String>,
}

impl Places {
    /// The places of a plan; none if this version cannot read it, so that the calls are shown all the same.
    fn of_plan(plan: &[u8], id: &RunId) -> Places {
        let plan: Plan = match serde_json::from_slice(plan) {
            Ok(plan) => plan,
            Err(error) => {
                tracing::warn!(%id, %error, "the plan of a run cannot be read");
                return Places::default();
            }
        };
        let mut capabilities = HashMap::new();
        for node in &plan.structure.nodes {
            if let NodeKind::Capability { capability, .. } = &node.kind {
                capabilities.insert(node.id.to_string(), capability.clone());
            }
        }
        for task in plan.dag().into_iter().flat_map(|dag| &dag.tasks) {
            if let TaskWork::Code(code) = &task.work
                && let Some(nested) = code.capability.and_then(|index| plan.nested.get(index as usize))
            {
                capabilities.insert(task.node.to_string(), nested.name.clone());
            }
        }
        let asking = plan.tools.iter().filter(|tool| tool.asks.is_some()).map(|tool| tool.id.to_string());
        let asking = asking.collect();
        let layers =
            DagRun::restore(&Arc::new(plan), &History::default()).map(|dag| dag.layers()).unwrap_or_default();
        Places { capabilities, layers, asking }
    }
}

/// A call from its entries; `None` if they are not those of a call.
fn decode_call(run: &RunRow, places: &Places, entries: &[JournalEntry]) -> Option<CallContents> {
    let issued = entries.iter().find(|entry| entry.kind == JournalEntryKind::Issued)?;
    let arguments = String::from_utf8(issued.body.clone()).ok()?;
    let ended = entries.iter().rev().find(|entry| entry.kind == JournalEntryKind::Delivered);
    let delivered: Option<RunDelivery> =
        ended.map(|entry| serde_json::from_slice(&entry.body)).transpose().ok()?;
    let is = |kind: JournalEntryKind| move |entry: &&JournalEntry| entry.kind == kind;
    let retries = entries.iter().filter(is(JournalEntryKind::Resending)).count();
    let sent = entries.iter().filter(is(JournalEntryKind::Sending)).count() > retries;
    let allowed = entries.iter().any(|entry| entry.kind == JournalEntryKind::Allowed);
    let tool = issued.tool.clone()?;
    let asks = places.asking.contains(&tool) && !allowed;
    let (own, inner) = match issued.node.as_deref().map(|node| (node, node.split_once('/'))) {
        Some((_, Some((own, inner)))) => (Some(own), Some(inner)),
        Some((own, None)) => (Some(own), None),
        None => (None, None),
    };
    let called = own.and_then(|own| places.capabilities.get(own));
    let parent = own.filter(|_| inner.is_some() || called.is_some()).map(|own| CallingCapability {
        frame: issued.frame,
        node: own.to_owned(),
        name: called.cloned(),
    });
    let layer = own
        .and_then(|own| NodeId::try_from(own.to_owned()).ok())
        .and_then(|node| places.layers.get(&node).copied());
    let mut parts = Vec::new();
    let (mut saved_ms, mut age_ms, mut not_ahead) = (None, None, None);
    let (result, error) = match delivered {
        Some(RunDelivery::Result {
            value,
            parts: kept,
            saved_ms: saved,
            age_ms: age,
            not_ahead: why,
            ..
        }) => {
            parts.extend(kept.into_iter().map(|part| (part.uri, part.content)));
            (saved_ms, age_ms, not_ahead) = (saved, age, why);
            (Some(value), None)
        }
        Some(RunDelivery::Error { error, .. }) => (None, Some(error)),
        Some(_) => return None,
        None => (None, None),
    };
    let status = match (&result, &error) {
        (Some(_), _) => PastCallStatus::Ok,
        (None, Some(CallFailure { unknown: true, .. })) => PastCallStatus::InDoubt,
        (None, Some(_)) => PastCallStatus::Error,
        (None, None) => unended_status(run.state, sent, asks),
    };
    let call = PastCall {
        call: issued.call?,
        node: issued.node.clone(),
        parent,
        tool,
        issued_at: issued.at,
        ended_at: ended.map(|entry| entry.at),
        status,
        error: error.map(|error| PastCallError {
            code: error.code,
            message: truncate_text(&error.message, ERROR_CHARACTERS),
            hint: error.hint,
        }),
        retries: u32::try_from(retries).unwrap_or(u32::MAX),
        saved_ms,
        age_ms,
        not_ahead,
        layer,
        argument_bytes: arguments.len(),
        result_bytes: result.as_ref().map_or(0, |result| result.get().len()),
    };
    Some(CallContents { call, arguments, result, parts })
}

/// The status of a call without an end.
fn unended_status(run: RunState, sent: bool, asks: bool) -> PastCallStatus {
    match run {
        RunState::Running if asks => PastCallStatus::Waiting,
        RunState::Running => PastCallStatus::Running,
        _ if sent => PastCallStatus::InDoubt,
        RunState::Waiting | RunState::Interrupted => PastCallStatus::Waiting,
        RunState::Done | RunState::Failed | RunState::Cancelled | RunState::Aborted | RunState::Expired => {
            PastCallStatus::Cancelled
        }
    }
}
