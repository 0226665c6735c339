//! Replays a recorded run offline: the journal answers the calls, nothing is sent, nothing is stored.

use std::sync::Arc;

use pml_model::json::{Fields, raw};
use pml_model::{Principal, RunId, ToolId};
use pml_sandbox::Delivery;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::RunRegistry;
use super::delivery::RunDelivery;
use super::ending::{RunEnding, fault_failure};
use super::journal::{History, LoggedCall, decode_recorded, unreadable};
use super::observe::Observer;
use super::run::{self, Action, RunCore, RunEvent};
use super::worker_event::run_event;
use super::{PATIENCE, no_run, take_worker};
use crate::plan::Plan;
use crate::problem::{ErrorCode, Problem};
use crate::repair::{ProgramEdit, map_arguments, map_result};
use crate::report::{RunFailure, RunReport};

/// Everything recorded about a run: enough to replay it anywhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    /// The version of the recording format.
    pub schema_version: u32,
    /// The id of the recorded run.
    pub run: RunId,
    /// The plan that was executed.
    pub plan: Plan,
    /// The calls, in the order of issue.
    calls: Vec<RecordedCall>,
    /// The deliveries, in their order.
    deliveries: Vec<RecordedDelivery>,
    /// The report; `None` if the run had not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<RunReport>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct RecordedCall {
    tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    arguments: Box<RawValue>,
    at: i64,
    ended: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct RecordedDelivery {
    at: i64,
    what: RunDelivery,
}

/// The version of the recording format that this code writes and reads.
const SCHEMA_VERSION: u32 = 1;

/// The outcome of a replay.
#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ReplayOutcome {
    /// The program did the same and ended the same way.
    Same {
        /// The report of the replay.
        report: Box<RunReport>,
    },
    /// The program did the same and ended differently.
    Differs {
        /// The report of the replay.
        report: Box<RunReport>,
        /// The report of the recorded run.
        recorded: Box<RunReport>,
    },
    /// The program did the same up to the end of the record.
    Unfinished {
        /// The report of the replay.
        report: Box<RunReport>,
    },
    /// The program diverged from the record.
    Diverged {
        /// The first difference, as text.
        divergence: String,
    },
}

/// Reads the recording of a run.
///
/// # Errors
/// There is no such run, or its records are no longer kept.
pub async fn recording(runs: &RunRegistry, principal: &Principal, id: &RunId) -> Result<Recording, Problem> {
    let recorded = runs.store.load_run(principal, id).await.map_err(|error| match error {
        pml_store::Error::UnknownRun { .. } => no_run(id),
        gone @ pml_store::Error::RecordsExpired { .. } => Problem::new(ErrorCode::Gone, gone.to_string())
            .hint("`keep_results` in pml.toml says how long they are kept"),
        other => Problem::from(other),
    })?;
    let (plan, history) = decode_recorded(&recorded)?;
    let report = match &recorded.outcome {
        Some(outcome) => Some(serde_json::from_slice(outcome).map_err(|error| unreadable(id, &error))?),
        None => None,
    };
    Recording::new(id.clone(), plan, history, report).map_err(|error| unreadable(id, &error))
}

impl Recording {
    fn new(
        run: RunId,
        plan: Plan,
        history: History,
        report: Option<RunReport>,
    ) -> Result<Recording, serde_json::Error> {
        let call = |call: LoggedCall| {
            Ok(RecordedCall {
                tool: call.tool,
                node: call.node,
                arguments: RawValue::from_string(call.arguments)?,
                at: call.issued_at,
                ended: call.ended_at.is_some(),
            })
        };
        let delivery = |(at, what)| RecordedDelivery { at, what };
        Ok(Recording {
            schema_version: SCHEMA_VERSION,
            run,
            plan,
            calls: history.calls.into_iter().map(call).collect::<Result<_, serde_json::Error>>()?,
            deliveries: history.deliveries.into_iter().map(delivery).collect(),
            report,
        })
    }

    /// Parses an exported recording.
    ///
    /// # Errors
    /// The text is no recording, or one of another version.
    pub fn parse(text: &str) -> Result<Recording, Problem> {
        let wrong = |what: String| {
            Problem::new(ErrorCode::InvalidRequest, format!("the file is not a recorded run: {what}"))
                .hint("`pml runs export` writes one")
        };
        let recording: Recording = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if recording.schema_version != SCHEMA_VERSION {
            return Err(wrong(format!("its version is {}", recording.schema_version)));
        }
        Ok(recording)
    }

    /// The number of calls that the run made.
    pub fn calls(&self) -> u32 {
        u32::try_from(self.calls.len()).unwrap_or(u32::MAX)
    }

    /// The tools that were called, with the arguments of each call, in the order of issue.
    pub fn called(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.calls.iter().map(|call| (call.tool.as_str(), &*call.arguments))
    }

    /// The recording of the same calls by a program that takes these arguments.
    #[must_use]
    pub(crate) fn with_arguments(&self, arguments: Box<RawValue>) -> Recording {
        let mut with = self.clone();
        with.plan.arguments = arguments;
        with
    }

    /// The recording as it would be if the tools had been as they are now: the calls of each tool with its edits applied,
    /// and with the defaults of `parameters` as arguments of the program, because it takes them. `None` if a call of such a
    /// tool failed: what it would do now is not known.
    pub(crate) fn following(
        &self,
        edits: &[(ToolId, Vec<ProgramEdit>)],
        parameters: &serde_json::Value,
    ) -> Option<Recording> {
        let mut mapped = self.clone();
        if parameters.get("properties").is_some() {
            mapped.plan.arguments = with_defaults(&self.plan.arguments, parameters)?;
        }
        for (tool, edits) in edits {
            let renamed = edits.iter().find_map(|edit| match edit {
                ProgramEdit::RenameTool { to, identifier } => Some((to, identifier)),
                _ => None,
            });
            let name = tool.to_string();
            for (place, call) in mapped.calls.iter_mut().enumerate().filter(|(_, call)| call.tool == name) {
                let given = serde_json::from_str(call.arguments.get()).ok()?;
                call.arguments = raw(&map_arguments(edits, &given));
                if let Some((to, _)) = renamed {
                    call.tool = to.to_string();
                }
                for delivery in &mut mapped.deliveries {
                    match &mut delivery.what {
                        RunDelivery::Result { call, value, .. } if *call as usize == place + 1 => {
                            *value = raw(&map_result(edits, &serde_json::from_str(value.get()).ok()?));
                        }
                        RunDelivery::Error { call, .. } if *call as usize == place + 1 => return None,
                        _ => {}
                    }
                }
            }
            if let Some((to, identifier)) = renamed {
                for planned in mapped.plan.tools.iter_mut().filter(|planned| planned.id == *tool) {
                    planned.id = to.clone();
                    planned.names = vec![to.tool.clone(), identifier.clone()];
                }
            }
        }
        Some(mapped)
    }

    fn logged(&self) -> Vec<LoggedCall> {
        let logged = |call: &RecordedCall| LoggedCall {
            tool: call.tool.clone(),
            frame: 0,
            node: call.node.clone(),
            digest: pml_model::Digest::of(call.arguments.get().as_bytes()),
            arguments: call.arguments.get().to_owned(),
            issued_at: call.at,
            sending_at: None,
            ended_at: call.ended.then_some(call.at),
            grant_index: None,
        };
        self.calls.iter().map(logged).collect()
    }
}

/// The arguments of the run, completed with the values that stood in the program.
pub(crate) fn with_defaults(given: &RawValue, schema: &serde_json::Value) -> Option<Box<RawValue>> {
    let mut arguments = Fields::parse(given.get()).ok()?;
    for (name, member) in schema.get("properties")?.as_object()? {
        if let Some(default) = member.get("default").filter(|_| arguments.get(name).is_none()) {
            arguments.set(name.clone(), raw(default));
        }
    }
    Some(arguments.to_raw())
}

/// Replays `recording` with `plan`, which is its own or one for changed code.
///
/// # Errors
/// No worker is available, or the recording belongs to another engine version.
pub async fn replay(runs: &RunRegistry, recording: &Recording, plan: Plan) -> Result<ReplayOutcome, Problem> {
    if plan.engine != pml_sandbox::ENGINE {
        return Err(Problem::new(
            ErrorCode::InvalidRequest,
            format!("the run was recorded with `{}` and this is `{}`", plan.engine, pml_sandbox::ENGINE),
        ));
    }
    let Some(program) = plan.program().cloned() else {
        return Err(Problem::new(
            ErrorCode::InvalidRequest,
            "the run is one of tasks, not of a program, and has nothing to replay",
        )
        .hint("`pml runs show` tells what its tasks did"));
    };
    let mut worker = take_worker(runs, PATIENCE).await?;
    let plan = Arc::new(plan);
    let (rules, tools) = run::core_setup(&plan);
    let mut run: RunCore<RunEnding> = RunCore::new(rules, tools, plan.start);
    let mut observer = Observer::new(Arc::clone(&plan));
    worker.begin_program(&plan.for_worker(&program));
    let deliveries = recording.deliveries.iter().map(|given| (given.at, given.what.clone())).collect();
    for action in run.restore(Vec::new(), recording.logged(), deliveries) {
        if let Action::Deliver { at, what } = action {
            observer.expect_delivery(what.clone(), at);
            worker.deliver(&Delivery { now_ms: at, what: what.for_worker() });
        }
    }
    let ended_at = recording.report.as_ref().map_or(plan.start, |report| report.ended_at);
    let report = |observer: &Observer, ending: &RunEnding| {
        Box::new(observer.build_report(ending, &[], ended_at).without_measured_times())
    };
    let last = recording.deliveries.last().map_or(plan.start, |given| given.at);
    loop {
        let seen = match worker.next_event().await {
            Ok(seen) => seen,
            Err(fault) => {
                let failure = fault_failure(&plan, &fault);
                return Ok(compare(report(&observer, &RunEnding::Failed(failure)), recording));
            }
        };
        observer.on_event(&seen, last);
        let issued_at = |call: u32| recording.calls.get(call as usize - 1).map_or(last, |call| call.at);
        let Some(event) = run_event(&mut observer, seen, issued_at) else { continue };
        let quiet = matches!(event, RunEvent::Quiet { .. });
        for action in run.on(event, last) {
            match action {
                Action::Diverged(divergence) => {
                    return Ok(ReplayOutcome::Diverged { divergence: divergence.to_string() });
                }
                Action::Finish(over) => return Ok(compare(report(&observer, &over.ending), recording)),
                // What would come next was not recorded.
                Action::Send(_) | Action::Promise { .. } | Action::Ask { .. } | Action::Park { .. } => {
                    return Ok(unfinished(report(&observer, &RunEnding::Suspended), recording));
                }
                Action::Record(_)
                | Action::Deliver { .. }
                | Action::Cancel { .. }
                | Action::Wake { .. }
                | Action::Kill
                | Action::Grace => {}
            }
        }
        if quiet && !run.is_replaying() {
            return Ok(unfinished(report(&observer, &RunEnding::Suspended), recording));
        }
    }
}

/// The outcome if the record ends before the program does. If the run itself was ended by a limit or a request, that is
/// the same end.
fn unfinished(report: Box<RunReport>, recording: &Recording) -> ReplayOutcome {
    match &recording.report {
        Some(recorded) if recorded.result.is_some() => {
            ReplayOutcome::Differs { report, recorded: Box::new(recorded.clone()) }
        }
        Some(_) | None => ReplayOutcome::Unfinished { report },
    }
}

fn compare(report: Box<RunReport>, recording: &Recording) -> ReplayOutcome {
    let Some(recorded) = &recording.report else { return ReplayOutcome::Unfinished { report } };
    let text = |report: &RunReport| report.result.as_ref().map(|result| result.get().to_owned());
    // Whether a call was in doubt does not depend on the program.
    let error =
        |report: &RunReport| report.error.clone().map(|error| RunFailure { in_doubt: Vec::new(), ..error });
    if text(&report) == text(recorded) && error(&report) == error(recorded) && report.path == recorded.path {
        ReplayOutcome::Same { report }
    } else {
        ReplayOutcome::Differs { report, recorded: Box::new(recorded.clone()) }
    }
}
