//! Runs a recorded run again, offline: the journal answers, nothing is sent, nothing is stored.

use std::sync::Arc;

use pml_model::{Principal, RunId};
use pml_sandbox::{Delivery, Event as Seen};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::driver::for_worker;
use super::journal::{Delivered, History, LoggedCall};
use super::observe::{CallSeen, Ending, Observer, faulted};
use super::plan::Plan;
use super::report::{Failure, Report};
use super::resume::{understood, unreadable};
use super::run::{Action, Event, Run};
use super::{PATIENCE, no_run, take_worker};
use crate::app::{App, blocking};
use crate::problem::{Code, Problem};

/// All that was recorded of a run: enough to run it again anywhere.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    /// Of this shape.
    pub schema_version: u32,
    /// Which run it was.
    pub run: RunId,
    /// What was run.
    pub plan: Plan,
    /// The calls it made, in their order.
    calls: Vec<RecordedCall>,
    /// What it was given, in this order.
    deliveries: Vec<RecordedDelivery>,
    /// What came of it, where it came to an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedCall {
    tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    arguments: Box<RawValue>,
    at: i64,
    ended: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedDelivery {
    at: i64,
    what: Delivered,
}

/// The shape of recordings.
const SCHEMA_VERSION: u32 = 1;

/// What running it again showed.
#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Replayed {
    /// It did the same and came to the same end.
    Same {
        /// What it did.
        report: Box<Report>,
    },
    /// It did the same and came to another end.
    Differs {
        /// What came of it now.
        report: Box<Report>,
        /// What came of it then.
        recorded: Box<Report>,
    },
    /// It did the same as far as was recorded.
    Unfinished {
        /// What it did.
        report: Box<Report>,
    },
    /// It asked for something else.
    Diverged {
        /// Where.
        divergence: String,
    },
}

/// Reads what is recorded of a run.
///
/// # Errors
/// There is no such run, or its records are no longer kept.
pub async fn recording(app: &App, principal: &Principal, id: &RunId) -> Result<Recording, Problem> {
    let (store, whose, run) = (app.store.clone(), principal.clone(), id.clone());
    let recorded = blocking(move || store.load(&whose, &run)).await.map_err(|error| match error {
        pml_store::Error::NoRun { .. } => no_run(id),
        other => Problem::from(other),
    })?;
    let (plan, history) = understood(&recorded)?;
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
        report: Option<Report>,
    ) -> Result<Recording, serde_json::Error> {
        let call = |call: LoggedCall| {
            Ok(RecordedCall {
                tool: call.tool,
                node: call.node,
                arguments: RawValue::from_string(call.arguments)?,
                at: call.at,
                ended: call.ended.is_some(),
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

    /// Reads an exported recording.
    ///
    /// # Errors
    /// It is not one, or one of another version.
    pub fn parse(text: &str) -> Result<Recording, Problem> {
        let wrong = |what: String| {
            Problem::new(Code::InvalidRequest, format!("the file is not a recorded run: {what}"))
                .hint("`pml runs export` writes one")
        };
        let recording: Recording = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if recording.schema_version != SCHEMA_VERSION {
            return Err(wrong(format!("its version is {}", recording.schema_version)));
        }
        Ok(recording)
    }

    /// How many calls it made.
    pub fn calls(&self) -> u32 {
        u32::try_from(self.calls.len()).unwrap_or(u32::MAX)
    }

    fn logged(&self) -> Vec<LoggedCall> {
        let logged = |call: &RecordedCall| LoggedCall {
            tool: call.tool.clone(),
            frame: 0,
            node: call.node.clone(),
            digest: pml_model::Digest::of(call.arguments.get().as_bytes()),
            arguments: call.arguments.get().to_owned(),
            at: call.at,
            sending: None,
            ended: call.ended.then_some(call.at),
            allowed: None,
        };
        self.calls.iter().map(logged).collect()
    }
}

/// Runs `recording` again with `plan`, which is its own or one for changed code.
///
/// # Errors
/// No worker can be had, or it is another engine's.
pub async fn replay(app: &App, recording: &Recording, plan: Plan) -> Result<Replayed, Problem> {
    if plan.engine != pml_sandbox::ENGINE {
        return Err(Problem::new(
            Code::InvalidRequest,
            format!("the run was recorded with `{}` and this is `{}`", plan.engine, pml_sandbox::ENGINE),
        ));
    }
    let Some(program) = plan.program().cloned() else {
        return Err(Problem::new(
            Code::InvalidRequest,
            "the run is one of tasks, not of a program, and has nothing to replay",
        )
        .hint("`pml runs show` tells what its tasks did"));
    };
    let mut worker = take_worker(app, PATIENCE).await?;
    let plan = Arc::new(plan);
    let (rules, tools) = plan.rules();
    let mut run: Run<Ending> = Run::new(rules, tools, plan.start);
    let mut observer = Observer::new(Arc::clone(&plan));
    worker.begin(&plan.for_worker(&program));
    let deliveries = recording.deliveries.iter().map(|given| (given.at, given.what.clone())).collect();
    for action in run.replay(Vec::new(), recording.logged(), deliveries) {
        if let Action::Deliver { at, what } = action {
            observer.will_be_delivered(what.clone(), at);
            worker.deliver(&Delivery { now_ms: at, what: for_worker(&what) });
        }
    }
    let ended_at = recording.report.as_ref().map_or(plan.start, |report| report.ended_at);
    let report = |observer: &Observer, ending: &Ending| {
        Box::new(observer.report(ending, &[], ended_at).without_measured_times())
    };
    let last = recording.deliveries.last().map_or(plan.start, |given| given.at);
    loop {
        let seen = match worker.next().await {
            Ok(seen) => seen,
            Err(fault) => {
                let failure = faulted(&plan, &fault);
                return Ok(compare(report(&observer, &Ending::Failed(failure)), recording));
            }
        };
        observer.see(&seen, last);
        let event = match seen {
            Seen::Call { call, frame, point, context, handle, arguments } => {
                let at = recording.calls.get(call as usize - 1).map_or(last, |call| call.at);
                let seen = CallSeen { call, frame, point, context, handle, arguments };
                Event::Issued(observer.issued(&seen, at))
            }
            Seen::Timer { timer, delay_ms } => {
                Event::TimerSet { timer: u64::from(timer), delay_ms, from: None }
            }
            Seen::TimerCleared { timer } => Event::TimerCleared { timer: u64::from(timer) },
            Seen::Quiet { taken, .. } => Event::Quiet { taken },
            Seen::Ended(ending) => Event::Ended(observer.ending(&ending)),
            _ => continue,
        };
        let quiet = matches!(event, Event::Quiet { .. });
        for action in run.on(event, last) {
            match action {
                Action::Diverged(divergence) => {
                    return Ok(Replayed::Diverged { divergence: divergence.to_string() });
                }
                Action::Finish(over) => return Ok(compare(report(&observer, &over.ending), recording)),
                // What would come next was not recorded.
                Action::Send(_) | Action::Promise { .. } | Action::Ask { .. } | Action::Park { .. } => {
                    return Ok(unfinished(report(&observer, &Ending::Suspended), recording));
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
            return Ok(unfinished(report(&observer, &Ending::Suspended), recording));
        }
    }
}

/// The record ends before the program does. Where the run itself did too, by a limit or by somebody's wish, that is the
/// same end.
fn unfinished(report: Box<Report>, recording: &Recording) -> Replayed {
    match &recording.report {
        Some(recorded) if recorded.result.is_some() => {
            Replayed::Differs { report, recorded: Box::new(recorded.clone()) }
        }
        Some(_) | None => Replayed::Unfinished { report },
    }
}

fn compare(report: Box<Report>, recording: &Recording) -> Replayed {
    let Some(recorded) = &recording.report else { return Replayed::Unfinished { report } };
    let text = |report: &Report| report.result.as_ref().map(|result| result.get().to_owned());
    // Whether a call was in doubt is not the program's doing.
    let error = |report: &Report| report.error.clone().map(|error| Failure { in_doubt: Vec::new(), ..error });
    if text(&report) == text(recorded) && error(&report) == error(recorded) && report.path == recorded.path {
        Replayed::Same { report }
    } else {
        Replayed::Differs { report, recorded: Box::new(recorded.clone()) }
    }
}
