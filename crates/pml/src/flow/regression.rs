//! Tests capabilities against the runs that they were learned from, offline: no tool is called.
//!
//! The present program has to make the calls of a recorded run again, with the same bytes, and end the same way. Each of
//! these calls has to be valid for the tools that are there now.

use pml_model::capability::{Capability, CapabilitySource};
use pml_model::json::{Fields, raw};
use pml_model::trace::{Trace, TraceStatus};
use pml_model::{CapabilityId, Principal, RunId, ToolId};
use pml_store::{TraceOrder, TraceQuery};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::capabilities::capability;
use crate::app::App;
use crate::execute::replay::{self, Recording, ReplayOutcome};
use crate::problem::{ErrorCode, Problem};

/// The number of latest traces among which recorded runs are looked for.
const LOOKED_AT: u32 = 50;
/// The largest number of runs that one capability is tested with.
const MOST_RUNS: usize = 5;

/// How a capability did in its test.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityTest {
    /// Its name.
    pub name: String,
    /// The runs it was tested with, latest first; empty if the record of none is kept.
    pub replays: Vec<ReplayTest>,
}

/// How one recorded run went again.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayTest {
    /// The recorded run.
    pub run: RunId,
    /// Whether it was replayed with the program that the capability runs now, and not with the one that was recorded.
    pub present_form: bool,
    /// Why it does not go as it was recorded; `None` if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl CapabilityTest {
    /// The runs that did not go as they were recorded.
    pub fn failures(&self) -> impl Iterator<Item = &ReplayTest> {
        self.replays.iter().filter(|replay| replay.failure.is_some())
    }
}

/// Tests a capability, by name or id.
///
/// # Errors
/// There is none, or no worker is available.
pub async fn test_capability(
    app: &App,
    principal: &Principal,
    which: &str,
) -> Result<CapabilityTest, Problem> {
    let capability = capability(app, principal, which).await?;
    app.tools.ensure_manifests_loaded().await;
    let mut replays = Vec::new();
    for recording in recorded_runs(app, principal, &capability.procedure.id).await? {
        let form = present_form(&capability, &recording);
        let present_form = form.is_some();
        let form = form.unwrap_or_else(|| as_recorded(&recording));
        let failure = failure(app, principal, form, &recording).await?;
        replays.push(ReplayTest { run: recording.run.clone(), present_form, failure });
    }
    Ok(CapabilityTest { name: capability.name, replays })
}

/// The recorded runs of a capability that show what it is to do: its golden ones, and the latest others whose records are
/// kept.
pub(super) async fn recorded_runs(
    app: &App,
    principal: &Principal,
    id: &CapabilityId,
) -> Result<Vec<Recording>, Problem> {
    let query =
        TraceQuery { capability: Some(id.clone()), order: TraceOrder::Newest, limit: LOOKED_AT, after: None };
    let traces = app.store.traces(principal, &query).await?;
    let mut runs = app.store.golden_runs(principal, id).await?;
    for trace in traces.iter().filter(|trace| is_example(trace)) {
        if !runs.contains(&trace.workflow_id) {
            runs.push(trace.workflow_id.clone());
        }
    }
    let mut recordings = Vec::new();
    for run in &runs {
        let recording = match replay::recording(&app.runs, principal, run).await {
            Ok(recording) => recording,
            // Records are kept for a while only.
            Err(problem) if matches!(problem.code, ErrorCode::UnknownRun | ErrorCode::Gone) => {
                continue;
            }
            Err(problem) => return Err(problem),
        };
        // A run of tasks has no program that could be run again.
        if recording.plan.program().is_none() {
            continue;
        }
        recordings.push(recording);
        if recordings.len() == MOST_RUNS {
            break;
        }
    }
    Ok(recordings)
}

/// Whether the run of a trace shows what the capability is to do.
fn is_example(trace: &Trace) -> bool {
    trace.status == TraceStatus::Success
        && !trace.cached
        && !trace.exploratory
        && trace.parent_trace_id.is_none()
}

/// Why the capability does not do now what was recorded; `None` if it does.
async fn failure(
    app: &App,
    principal: &Principal,
    (program, arguments): (String, Box<RawValue>),
    recording: &Recording,
) -> Result<Option<String>, Problem> {
    let snapshot = app.tools.snapshot();
    for (tool, arguments) in recording.called() {
        let Ok(id) = ToolId::parse(tool) else { continue };
        let checked = snapshot
            .tool(&id)
            .and_then(|tool| app.tools.validators.check(&tool.id, &tool.definition, arguments));
        if let Err(problem) = checked {
            return Ok(Some(problem.message));
        }
    }
    let recording = recording.with_arguments(arguments);
    let replayed = match super::replay(app, principal, &recording, Some(program)).await {
        Ok(replayed) => replayed,
        Err(problem) if problem.code == ErrorCode::InvalidProgram => return Ok(Some(problem.message)),
        Err(problem) => return Err(problem),
    };
    Ok(match replayed {
        ReplayOutcome::Same { .. } => None,
        ReplayOutcome::Differs { .. } => Some("the calls are as recorded, the result is not".to_owned()),
        ReplayOutcome::Unfinished { .. } => Some("it makes more calls than were recorded".to_owned()),
        ReplayOutcome::Diverged { divergence } => Some(divergence),
    })
}

/// The program that was recorded, as it is analysed now.
fn as_recorded(recording: &Recording) -> (String, Box<RawValue>) {
    (recording.plan.source.clone(), recording.plan.arguments.clone())
}

/// The program that the capability runs now, with the arguments with which it has to do what the recorded run did;
/// `None` if the values that stood in the recorded program cannot be told.
fn present_form(capability: &Capability, recording: &Recording) -> Option<(String, Box<RawValue>)> {
    let CapabilitySource::Code { code, template } = &capability.procedure.source else { return None };
    let plan = &recording.plan;
    let Some(template) = template else {
        return (plan.source == *code).then(|| as_recorded(recording));
    };
    let learn = plan.learn.as_ref()?;
    let written: Vec<(&str, Value)> = match &learn.lifted {
        _ if learn.capability.is_some() => Vec::new(),
        Some(lifted) if lifted.source == *template => lifted.written_values().collect(),
        // Its values have other names than the parameters.
        Some(_) => return None,
        None => {
            let literals = learn.literals.iter();
            literals.filter_map(|literal| Some((literal.name.as_str(), literal.value.clone()?))).collect()
        }
    };
    let arguments = with_written_values(&plan.arguments, &written, &capability.procedure.parameters_schema)?;
    Some((template.clone(), arguments))
}

/// The arguments, completed with the values that stood in the recorded program, and with the defaults of the parameters.
fn with_written_values(given: &RawValue, written: &[(&str, Value)], schema: &Value) -> Option<Box<RawValue>> {
    let mut arguments = Fields::parse(given.get()).ok()?;
    for (name, value) in written {
        if arguments.get(name).is_none() {
            arguments.set((*name).to_owned(), raw(value));
        }
    }
    replay::with_defaults(&arguments.to_raw(), schema)
}
