//! Resumes runs: claims them, reads their journals, and asks about calls in doubt.

use pml_model::ErrorCode;
use std::sync::Arc;

use pml_mcp::Caller;
use pml_model::question::{Answer, LayerDecision, Question};
use pml_model::{Digest, Principal, RunId, RunState};
use pml_store::{Claim, Lease, NewAuditEntry, RunChange, RunKind, RunRecord, Urgency};
use tokio::sync::{oneshot, watch};

use super::RunRegistry;
use super::ask::{self, ApprovalOutcome};
use super::dag::DagRun;
use super::delivery::RunDelivery;
use super::driver::{AckSender, DriverParts};
use super::ending::{RequestedEnd, RunEnding};
use super::journal::{History, JournalRecord, decode_recorded, unreadable};
use super::observe::Observer;
use super::remember;
use super::value::told_result;
use super::{
    LEASE_MS, LEAVING, LONGEST_WAIT_MS, PATIENCE, ResumeOutcome, TOOL_CHANGED, no_run, run_status,
    spawn_driver, take_worker, tool_changed_message,
};
use crate::approve::CallPermission;
use crate::clock::now_ms;
use crate::plan::Grant;
use crate::plan::Pause;
use crate::plan::{ApprovalReason, DagTask, Plan, PlannedTool, TaskWork};
use crate::problem::Problem;
use crate::report::{RunFailure, RunProgress, RunStatus};

/// Resumes a run where its journal ends.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn resume(
    runs: &Arc<RunRegistry>,
    principal: &Principal,
    id: &RunId,
    caller: Caller,
) -> Result<ResumeOutcome, Problem> {
    // The worker comes before the claim: a run that waits for a worker is unclaimed, so no lease of it can expire.
    let worker = match needs_worker(runs, principal, id).await? {
        true => Some(take_worker(runs, PATIENCE).await?),
        false => None,
    };
    let lease = match claim(runs, principal, id).await? {
        Claim::Taken(lease) => lease,
        Claim::Held { .. } => {
            return Ok(runs.local_handle(id).map_or(ResumeOutcome::HeldElsewhere, ResumeOutcome::Running));
        }
        Claim::Ended(state) => return Ok(ResumeOutcome::Over(state)),
        Claim::Unknown => return Err(no_run(id)),
    };
    let taken = match load(runs, principal, id).await {
        Ok(recorded) => take_up(runs, &lease, recorded).await,
        Err(problem) => Err(problem),
    };
    let (plan, history) = match taken {
        Ok(PreparedResume::Ready(plan, history)) => (plan, history),
        Ok(PreparedResume::Asks { id, question }) => return Ok(ResumeOutcome::Asks { id, question }),
        Ok(PreparedResume::Over(state)) => return Ok(ResumeOutcome::Over(state)),
        Err(problem) => {
            give_up(runs, &lease).await;
            return Err(problem);
        }
    };
    let (acks, acked) = AckSender::for_run(plan.limits.calls);
    Ok(ResumeOutcome::Running(spawn_driver(
        runs,
        DriverParts {
            runs: Arc::clone(runs),
            principal: principal.clone(),
            plan: Arc::new(*plan),
            lease,
            worker,
            history,
            // Values read before the interruption may have been overwritten since, so the result is not cached.
            ticket: None,
            caller,
            stop_signals: Arc::default(),
            status: watch::Sender::new(RunStatus::Running(RunProgress::default())),
            acks,
            acked,
            open_call: None,
            admission: None,
        },
    )))
}

/// Whether the run needs a worker now. The tasks of a DAG get their own workers when they need them.
async fn needs_worker(runs: &RunRegistry, principal: &Principal, id: &RunId) -> Result<bool, Problem> {
    let row = runs.store.run(principal, id).await?.ok_or_else(|| no_run(id))?;
    Ok(row.kind == RunKind::Code)
}

async fn claim(runs: &RunRegistry, principal: &Principal, id: &RunId) -> Result<Claim, Problem> {
    let now = now_ms();
    Ok(runs.store.claim_run(principal, id, &runs.process, now + LEASE_MS, now).await?)
}

async fn load(runs: &RunRegistry, principal: &Principal, id: &RunId) -> Result<RunRecord, Problem> {
    Ok(runs.store.load_run(principal, id).await?)
}

/// Ends a run whose record cannot be read; a retry would not help.
async fn give_up(runs: &RunRegistry, lease: &Lease) {
    let unreadable = RunChange {
        state: Some(RunState::Failed),
        error_code: Some(ErrorCode::Unreadable.to_string()),
        release: true,
        at: now_ms(),
        ..RunChange::default()
    };
    if let Err(problem) = store_change(runs, lease, Vec::new(), unreadable).await {
        tracing::error!(run = %lease.run(), %problem, "a run that cannot be read could not be ended");
    }
}

enum PreparedResume {
    Ready(Box<Plan>, History),
    Asks { id: String, question: Question },
    Over(RunState),
}

/// Reads the record and the answers given meanwhile, and asks the questions that must come first.
async fn take_up(
    runs: &Arc<RunRegistry>,
    lease: &Lease,
    recorded: RunRecord,
) -> Result<PreparedResume, Problem> {
    let (mut plan, mut history) = decode_recorded(&recorded)?;
    let principal = recorded.run.principal.clone();
    if let Some(wish) = &recorded.requested_end {
        let wish: RequestedEnd =
            serde_json::from_slice(wish).map_err(|error| unreadable(lease.run(), &error))?;
        let state = end(runs, &principal, lease, &plan, &history, &wish.into_ending(), Vec::new()).await?;
        return Ok(PreparedResume::Over(state));
    }
    stricter(runs, &mut plan.tools);
    if plan.engine != pml_sandbox::ENGINE && runs_programs(&plan, &history) {
        let failure = RunFailure::new(
            ErrorCode::EngineChanged,
            format!("the run was begun by `{}` and this is `{}`", plan.engine, pml_sandbox::ENGINE),
        )
        .hint(again_or_not(&history));
        let state =
            end(runs, &principal, lease, &plan, &history, &RunEnding::Failed(failure), Vec::new()).await?;
        return Ok(PreparedResume::Over(state));
    }
    let voided = match (&recorded.voided_by, &recorded.question) {
        (Some(tool), Some((_, Question::Approval(asked)))) => Some((tool, asked)),
        (_, _) => None,
    };
    if let Some((tool, asked)) = voided {
        if !asked.begun {
            let failure =
                RunFailure::new(TOOL_CHANGED, tool_changed_message(tool)).hint(RunFailure::RUN_ANEW);
            let state =
                end(runs, &principal, lease, &plan, &history, &RunEnding::Failed(failure), Vec::new())
                    .await?;
            return Ok(PreparedResume::Over(state));
        }
        let now = now_ms();
        let records = still_open(&history, ask::end_changed_calls(asked, tool), now);
        history = note(runs, lease, &recorded, &records, Vec::new(), now).await?;
    }
    // An answer to a voided question does not count.
    match answered(&recorded).filter(|_| voided.is_none()) {
        Some((id, Question::Approval(asked), Answer::Approval(decision))) => {
            let now = now_ms();
            let audit = vec![ask::decided_audit(&principal, lease.run(), id, decision, now)];
            let records = match ask::apply_decision(asked, decision, now) {
                ApprovalOutcome::Denied(_) if !asked.begun => {
                    let failure = RunFailure::new(ErrorCode::Denied, denied(decision.reason.as_deref()))
                        .hint("nothing was run; ask for something else");
                    let state =
                        end(runs, &principal, lease, &plan, &history, &RunEnding::Failed(failure), audit)
                            .await?;
                    return Ok(PreparedResume::Over(state));
                }
                ApprovalOutcome::Granted(grants) => {
                    let snapshot = runs.tools.snapshot();
                    let given =
                        |grant: Grant| JournalRecord::Granted { grant: grant.bound_to(&snapshot), at: now };
                    grants.into_iter().map(given).collect()
                }
                ApprovalOutcome::Denied(ends) => still_open(&history, ends, now),
            };
            history = note(runs, lease, &recorded, &records, audit, now).await?;
        }
        Some((id, Question::SignIn { calls }, Answer::Approval(decision))) => {
            let now = now_ms();
            let audit = vec![ask::decided_audit(&principal, lease.run(), id, decision, now)];
            // Calls without an end are sent again.
            let ends = match decision.approved {
                true => Vec::new(),
                false => ask::end_unsigned_calls(calls, decision.reason.as_deref()),
            };
            let records = still_open(&history, ends, now);
            history = note(runs, lease, &recorded, &records, audit, now).await?;
        }
        Some((_, Question::InDoubt { .. }, Answer::Doubts { calls })) => {
            let now = now_ms();
            if let Ok(mut records) = history.resolve(calls, now) {
                if plan.is_direct() {
                    records.iter_mut().for_each(whole);
                }
                history = note(runs, lease, &recorded, &records, Vec::new(), now).await?;
            }
        }
        Some((_, Question::Layer(layer), Answer::Layer(onward))) => {
            let now = now_ms();
            let replan = match onward {
                LayerDecision::Continue => None,
                LayerDecision::Replan { plan } => Some(Box::new(
                    serde_json::from_str(plan).map_err(|error| unreadable(lease.run(), &error))?,
                )),
            };
            if replan.is_some() {
                // They were made for the tasks that are replaced.
                runs.speculator.drop_unused(lease.run());
            }
            let what = RunDelivery::Layer { layer: layer.layer_index, replan };
            history =
                note(runs, lease, &recorded, &[JournalRecord::Delivered { at: now, what }], Vec::new(), now)
                    .await?;
        }
        // A timer was due, or somebody resumes it: the calls are sent again without an answer.
        None if matches!(recorded.question, Some((_, Question::SignIn { .. }))) => {
            history = note(runs, lease, &recorded, &[], Vec::new(), now_ms()).await?;
        }
        Some(_) | None => {
            if let Some(question) = plan.question.clone().filter(|_| !history.has_begun() && voided.is_none())
            {
                let id = ask::question_id(lease.run(), &question);
                return wait_for_word(runs, lease, &recorded, id, Question::Approval(question)).await;
            }
        }
    }
    let mut by = plan.by;
    for (_, what) in &mut history.deliveries {
        if let RunDelivery::Layer { replan: Some(replan), .. } = what {
            stricter(runs, &mut replan.tools);
            by = replan.by.map_or(by, |door| by.stricter(door));
        }
    }
    history.questions_answered = u32::try_from(recorded.answers.len()).unwrap_or(u32::MAX);
    let doubts = history.calls_in_doubt();
    if doubts.is_empty() {
        return Ok(PreparedResume::Ready(Box::new(plan), history));
    }
    let question = Question::InDoubt { calls: doubts, by };
    // The same question keeps its id, so that an answer on its way still counts.
    let id = match &recorded.question {
        Some((id, asked)) if *asked == question && answered(&recorded).is_none() => id.clone(),
        Some(_) | None => Digest::of(format!("{}{}", lease.run(), now_ms()).as_bytes()).short().to_owned(),
    };
    wait_for_word(runs, lease, &recorded, id, question).await
}

/// Turns the value that a person reported for a direct call into a tool result.
fn whole(record: &mut JournalRecord) {
    if let JournalRecord::Delivered { what: RunDelivery::Result { value, .. }, .. } = record {
        *value = told_result(value);
    }
}

/// Whether another engine version would make a difference.
fn runs_programs(plan: &Plan, history: &History) -> bool {
    let is_program = |task: &DagTask| matches!(task.work, TaskWork::Code(_)) && !task.dropped;
    let mut replans = history.deliveries.iter().filter_map(|(_, what)| match what {
        RunDelivery::Layer { replan: Some(replan), .. } => Some(&replan.tasks),
        _ => None,
    });
    let Some(dag) = plan.dag() else { return true };
    replans.next_back().unwrap_or(&dag.tasks).iter().any(is_program)
}

/// The question of the run and its answer.
fn answered(recorded: &RunRecord) -> Option<(&str, &Question, &Answer)> {
    let (id, question) = recorded.question.as_ref()?;
    let answer = recorded.answers.iter().find(|answer| answer.question_id == *id)?;
    Some((id, question, &answer.answer))
}

/// The message that a person did not allow the run to start.
fn denied(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("a person did not allow the run: {reason}"),
        None => "a person did not allow the run".to_owned(),
    }
}

/// The records for the ends of calls that have no end yet.
fn still_open(history: &History, ends: Vec<RunDelivery>, now: i64) -> Vec<JournalRecord> {
    let is_open = |what: &RunDelivery| {
        let call = what.call().and_then(|call| history.calls.get(call as usize - 1));
        call.is_some_and(|call| call.ended_at.is_none())
    };
    ends.into_iter().filter(is_open).map(|what| JournalRecord::Delivered { at: now, what }).collect()
}

/// Records the consequences of an answer and closes the question.
async fn note(
    runs: &RunRegistry,
    lease: &Lease,
    recorded: &RunRecord,
    records: &[JournalRecord],
    audit: Vec<NewAuditEntry>,
    now: i64,
) -> Result<History, Problem> {
    let entries: Vec<_> = records.iter().map(|record| record.entry(now)).collect();
    let closed = RunChange {
        question: Some(None),
        expires_at: Some(Some(now + LONGEST_WAIT_MS)),
        audit,
        at: now,
        ..RunChange::default()
    };
    let all = recorded.entries.iter().chain(&entries).cloned().collect();
    store_change(runs, lease, entries, closed).await?;
    History::read(all).map_err(|error| unreadable(lease.run(), &error))
}

/// Parks the run until its question is answered.
async fn wait_for_word(
    runs: &RunRegistry,
    lease: &Lease,
    recorded: &RunRecord,
    id: String,
    question: Question,
) -> Result<PreparedResume, Problem> {
    let now = now_ms();
    let known = recorded.question.as_ref().is_some_and(|(known, _)| *known == id);
    let audit = match &question {
        Question::Approval(asked) if !known => {
            vec![ask::asked_audit(&recorded.run.principal, lease.run(), &id, asked, now)]
        }
        Question::InDoubt { calls, .. } if !known => {
            vec![ask::doubt_audit(&recorded.run.principal, lease.run(), &id, calls, now)]
        }
        Question::Approval(_) | Question::InDoubt { .. } | Question::SignIn { .. } | Question::Layer(_) => {
            Vec::new()
        }
    };
    let asks = RunChange {
        state: Some(RunState::Waiting),
        question: Some(Some((id.clone(), question.clone()))),
        audit,
        release: true,
        at: now,
        ..RunChange::default()
    };
    store_change(runs, lease, Vec::new(), asks).await?;
    Ok(PreparedResume::Asks { id, question })
}

/// Applies the present policy to the planned tools where it is stricter: a tool that no longer counts as idempotent is
/// not sent again without asking, and a tool that needs approval by now gets it, whatever the policy was when the run
/// started.
fn stricter(runs: &RunRegistry, tools: &mut [PlannedTool]) {
    let (snapshot, policy) = (runs.tools.snapshot(), runs.settings.policy());
    for granted in tools {
        if let Ok(tool) = snapshot.tool(&granted.id) {
            let verdict = policy.verdict(&granted.id, &tool.definition.annotations);
            granted.idempotent &= verdict.idempotent;
            if verdict.mode == CallPermission::Ask && granted.asks.is_none() {
                granted.asks = Some(ApprovalReason {
                    scope: verdict.scope.as_str().to_owned(),
                    because: verdict.because,
                });
            }
        }
    }
}

/// The hint on whether running a program anew would repeat calls.
fn again_or_not(history: &History) -> &'static str {
    match history.calls.is_empty() {
        true => "run it anew; it has called nothing yet",
        false => "calls were made before: see them with `pml runs show` before you run it anew",
    }
}

/// Ends a run that no driver has.
async fn end(
    runs: &Arc<RunRegistry>,
    principal: &Principal,
    lease: &Lease,
    plan: &Plan,
    history: &History,
    ending: &RunEnding,
    audit: Vec<NewAuditEntry>,
) -> Result<RunState, Problem> {
    runs.speculator.end_run(lease.run());
    let mut observer = Observer::new(Arc::new(plan.clone()));
    observer.restore(history);
    let mut report = observer.build_report(ending, &history.call_numbers_in_doubt(), now_ms());
    let dag = DagRun::restore(&Arc::new(plan.clone()), history);
    if let Some(dag) = &dag {
        dag.add_to_report(&mut report);
    }
    report.add_warnings(plan);
    super::count_run_end(&runs.metrics, plan, &report);
    let state = report.state;
    let known = remember::is_known(runs, principal, plan).await;
    let frames = observer.recorded_frames(&report);
    let memory = remember::build_memory(
        runs,
        &remember::FinishedRun {
            run: lease.run(),
            principal,
            plan,
            recorded: remember::RecordedRun {
                recorder: observer.recorder(),
                frames: &frames,
                report: &report,
            },
            layers: dag.as_ref().map(DagRun::layers).unwrap_or_default(),
            active_ms: i64::try_from(history.active_ms(plan.start, plan.limits.park_after_ms))
                .unwrap_or(i64::MAX),
            approved: !history.grants.is_empty(),
            origin: remember::RunOrigin::Here,
        },
        known,
    );
    let error_message = remember::listed_message(runs, &report, memory.as_deref());
    let learned = remember::counted_for(memory.as_deref(), &report);
    let over = RunChange {
        state: Some(state),
        error_message,
        learned,
        calls: Some(observer.call_counts()),
        savings: Some(report.savings()),
        memory,
        outcome: Some(serde_json::to_vec(&report).expect("a report is plain data")),
        error_code: report.error.map(|error| error.code.to_string()),
        audit,
        release: true,
        at: now_ms(),
        ..RunChange::default()
    };
    store_change(runs, lease, Vec::new(), over).await?;
    runs.knowledge.memory.notify_learning();
    Ok(state)
}

pub(super) async fn store_change(
    runs: &RunRegistry,
    lease: &Lease,
    entries: Vec<pml_store::JournalEntry>,
    change: RunChange,
) -> Result<(), Problem> {
    let (tell, told) = oneshot::channel();
    runs.store
        .append_journal(lease, entries, Some(change), Urgency::Soon, move |stored| drop(tell.send(stored)));
    match told.await {
        Ok(stored) => Ok(stored?),
        Err(_) => Err(Problem::new(ErrorCode::Storage, "the database does not answer any more")),
    }
}

/// Requests that a DAG run waits before its next layer.
///
/// # Errors
/// There is no such run, it never waits before layers, or the request cannot be recorded.
pub async fn pause(runs: &Arc<RunRegistry>, principal: &Principal, id: &RunId) -> Result<(), Problem> {
    if let RunStatus::Finished(_) = run_status(runs, principal, id).await? {
        return Ok(());
    }
    let (plan, _) = decode_recorded(&load(runs, principal, id).await?)?;
    let text = match plan.dag().map(|dag| dag.pause) {
        Some(Pause::Manual) => {
            return Ok(runs.store.request_pause(principal, id).await?);
        }
        // It waits after every layer anyway.
        Some(Pause::PerLayer) => return Ok(()),
        Some(Pause::None | Pause::OnError) => format!("run `{id}` does not wait before layers"),
        None => format!("run `{id}` is a program and has no layers to wait before"),
    };
    Err(Problem::new(ErrorCode::InvalidRequest, text)
        .hint("run a DAG with `decisionPoints: \"manual\"` to pause it, or end the run with `pml_abort`"))
}

/// Aborts a run.
///
/// # Errors
/// There is no such run, another process has it, or the end cannot be recorded.
pub async fn abort(
    runs: &Arc<RunRegistry>,
    principal: &Principal,
    id: &RunId,
    reason: &str,
) -> Result<RunStatus, Problem> {
    if let Some(handle) = runs.local_handle(id).filter(|handle| handle.principal == *principal) {
        handle.abort(reason);
        return Ok(handle.wait(LEAVING).await);
    }
    let reason = (!reason.is_empty()).then(|| reason.to_owned());
    stop(runs, principal, id, &RunEnding::Aborted(reason)).await
}

/// Cancels a run that its client no longer wants.
///
/// # Errors
/// There is no such run, another process has it, or the end cannot be recorded.
pub async fn cancel(
    runs: &Arc<RunRegistry>,
    principal: &Principal,
    id: &RunId,
) -> Result<RunStatus, Problem> {
    if let Some(handle) = runs.local_handle(id).filter(|handle| handle.principal == *principal) {
        handle.cancel();
        return Ok(handle.wait(LEAVING).await);
    }
    stop(runs, principal, id, &RunEnding::Cancelled).await
}

/// Ends a run that no driver of this process has.
async fn stop(
    runs: &Arc<RunRegistry>,
    principal: &Principal,
    id: &RunId,
    ending: &RunEnding,
) -> Result<RunStatus, Problem> {
    match claim(runs, principal, id).await? {
        Claim::Taken(lease) => {
            let (plan, history) = decode_recorded(&load(runs, principal, id).await?)?;
            end(runs, principal, &lease, &plan, &history, ending, Vec::new()).await?;
            run_status(runs, principal, id).await
        }
        Claim::Ended(_) => run_status(runs, principal, id).await,
        Claim::Held { .. } => {
            Err(Problem::new(ErrorCode::Busy, format!("another process works on run `{id}`"))
                .hint("end it there, or try again when that process has ended"))
        }
        Claim::Unknown => Err(no_run(id)),
    }
}
