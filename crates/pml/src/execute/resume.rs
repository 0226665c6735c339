//! Takes runs up again: claims them, reads what was recorded, asks about what nobody knows.

use std::sync::Arc;

use pml_mcp::Caller;
use pml_model::question::{Answer, Onward, Question};
use pml_model::{Digest, Principal, RunId, RunState};
use pml_store::{Audit, Change, Claim, Lease, Recorded, RunKind, Urgency};
use tokio::sync::{mpsc, oneshot, watch};

use super::Runs;
use super::ask::{self, Decided};
use super::dag::Dag;
use super::driver::Parts;
use super::journal::{Delivered, History, Record, Wish};
use super::observe::{Ending, Observer};
use super::remember;
use super::value::told_result;
use super::{
    LEASE_MS, LEAVING, LONGEST_WAIT_MS, PATIENCE, Resumed, TOOL_CHANGED, changed_since_asked, go, no_run,
    standing, take_worker,
};
use crate::approve::Mode;
use crate::clock::now_ms;
use crate::plan::Grant;
use crate::plan::Pause;
use crate::plan::{Asks, DagTask, Granted, Plan, TaskWork};
use crate::problem::{Code, Problem};
use crate::report::{Failure, Progress, Standing};

/// Takes a run up again where its journal ends.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn resume(
    runs: &Arc<Runs>,
    principal: &Principal,
    id: &RunId,
    caller: Caller,
) -> Result<Resumed, Problem> {
    // Before the run is taken: a run that waits for a worker is nobody's, and no lease of it can lapse.
    let worker = match needs_worker(runs, principal, id).await? {
        true => Some(take_worker(runs, PATIENCE).await?),
        false => None,
    };
    let lease = match claim(runs, principal, id).await? {
        Claim::Taken(lease) => lease,
        Claim::Held { .. } => {
            return Ok(runs.here(id).map_or(Resumed::Held, Resumed::Going));
        }
        Claim::Over(state) => return Ok(Resumed::Over(state)),
        Claim::Unknown => return Err(no_run(id)),
    };
    let taken = match load(runs, principal, id).await {
        Ok(recorded) => take_up(runs, &lease, recorded).await,
        Err(problem) => Err(problem),
    };
    let (plan, history) = match taken {
        Ok(TakenUp::Ready(plan, history)) => (plan, history),
        Ok(TakenUp::Asks { id, question }) => return Ok(Resumed::Asks { id, question }),
        Ok(TakenUp::Over(state)) => return Ok(Resumed::Over(state)),
        Err(problem) => {
            give_up(runs, &lease).await;
            return Err(problem);
        }
    };
    let (acks, acked) = mpsc::unbounded_channel();
    Ok(Resumed::Going(go(
        runs,
        Parts {
            runs: Arc::clone(runs),
            principal: principal.clone(),
            plan: Arc::new(*plan),
            lease,
            worker,
            history,
            // What was read before may have been written since.
            ticket: None,
            caller,
            stops: Arc::default(),
            standing: watch::Sender::new(Standing::Running(Progress::default())),
            acks,
            acked,
        },
    )))
}

/// Whether a program is run, and not tasks that get workers of their own when they need them.
async fn needs_worker(runs: &Runs, principal: &Principal, id: &RunId) -> Result<bool, Problem> {
    let row = runs.store.run(principal, id).await?.ok_or_else(|| no_run(id))?;
    Ok(row.kind == RunKind::Code)
}

async fn claim(runs: &Runs, principal: &Principal, id: &RunId) -> Result<Claim, Problem> {
    let now = now_ms();
    Ok(runs.store.claim(principal, id, &runs.process, now + LEASE_MS, now).await?)
}

async fn load(runs: &Runs, principal: &Principal, id: &RunId) -> Result<Recorded, Problem> {
    Ok(runs.store.load(principal, id).await?)
}

/// What was recorded, as its writer meant it.
pub(super) fn understood(recorded: &Recorded) -> Result<(Plan, History), Problem> {
    let id = &recorded.run.id;
    let plan = serde_json::from_slice(&recorded.plan).map_err(|error| unreadable(id, &error))?;
    let history = History::read(recorded.entries.clone()).map_err(|error| unreadable(id, &error))?;
    Ok((plan, history))
}

/// That a record is not one this version can read.
pub(super) fn unreadable(id: &RunId, why: &dyn std::error::Error) -> Problem {
    Problem::new(Code::Storage, format!("the record of run `{id}` cannot be read: {why}"))
}

/// Ends a run whose record cannot be read: trying again would not help.
async fn give_up(runs: &Runs, lease: &Lease) {
    let unreadable = Change {
        state: Some(RunState::Failed),
        error_code: Some("UNREADABLE".to_owned()),
        release: true,
        at: now_ms(),
        ..Change::default()
    };
    if let Err(problem) = change(runs, lease, Vec::new(), unreadable).await {
        tracing::error!(run = %lease.run(), %problem, "a run that cannot be read could not be ended");
    }
}

enum TakenUp {
    Ready(Box<Plan>, History),
    Asks { id: String, question: Question },
    Over(RunState),
}

/// Reads what was recorded, with what was answered meanwhile; asks what has to be asked first.
async fn take_up(runs: &Arc<Runs>, lease: &Lease, recorded: Recorded) -> Result<TakenUp, Problem> {
    let (mut plan, mut history) = understood(&recorded)?;
    let principal = recorded.run.principal.clone();
    if let Some(wish) = &recorded.wish {
        let wish: Wish = serde_json::from_slice(wish).map_err(|error| unreadable(lease.run(), &error))?;
        let state = end(runs, &principal, lease, &plan, &history, &wish.ending(), Vec::new()).await?;
        return Ok(TakenUp::Over(state));
    }
    stricter(runs, &mut plan.tools);
    if plan.engine != pml_sandbox::ENGINE && runs_programs(&plan, &history) {
        let failure = Failure::new(
            "ENGINE_CHANGED",
            format!("the run was begun by `{}` and this is `{}`", plan.engine, pml_sandbox::ENGINE),
        )
        .hint(again_or_not(&history));
        let state =
            end(runs, &principal, lease, &plan, &history, &Ending::Failed(failure), Vec::new()).await?;
        return Ok(TakenUp::Over(state));
    }
    let voided = match (&recorded.voided_by, &recorded.question) {
        (Some(tool), Some((_, Question::Approval(asked)))) => Some((tool, asked)),
        (_, _) => None,
    };
    if let Some((tool, asked)) = voided {
        if !asked.begun {
            let failure = Failure::new(TOOL_CHANGED, changed_since_asked(tool)).hint(Failure::RUN_ANEW);
            let state =
                end(runs, &principal, lease, &plan, &history, &Ending::Failed(failure), Vec::new()).await?;
            return Ok(TakenUp::Over(state));
        }
        let now = now_ms();
        let records = still_open(&history, ask::changed(asked, tool), now);
        history = note(runs, lease, &recorded, &records, Vec::new(), now).await?;
    }
    // Whatever was said to a question that is void counts for nothing.
    match answered(&recorded).filter(|_| voided.is_none()) {
        Some((id, Question::Approval(asked), Answer::Approval(decision))) => {
            let now = now_ms();
            let audit = vec![ask::decided_audit(&principal, lease.run(), id, decision, now)];
            let records = match ask::decided(asked, decision, now) {
                Decided::No(_) if !asked.begun => {
                    let failure = Failure::new("DENIED", denied(decision.reason.as_deref()))
                        .hint("nothing was run; ask for something else");
                    let state =
                        end(runs, &principal, lease, &plan, &history, &Ending::Failed(failure), audit)
                            .await?;
                    return Ok(TakenUp::Over(state));
                }
                Decided::Yes(grants) => {
                    let snapshot = runs.tools.snapshot();
                    let given = |grant: Grant| Record::Granted { grant: grant.bound_to(&snapshot), at: now };
                    grants.into_iter().map(given).collect()
                }
                Decided::No(ends) => still_open(&history, ends, now),
            };
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
                Onward::Continue => None,
                Onward::Replan { plan } => Some(Box::new(
                    serde_json::from_str(plan).map_err(|error| unreadable(lease.run(), &error))?,
                )),
            };
            let what = Delivered::Layer { layer: layer.layer_index, replan };
            history =
                note(runs, lease, &recorded, &[Record::Delivered { at: now, what }], Vec::new(), now).await?;
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
        if let Delivered::Layer { replan: Some(replan), .. } = what {
            stricter(runs, &mut replan.tools);
            by = replan.by.map_or(by, |door| by.stricter(door));
        }
    }
    history.answered = u32::try_from(recorded.answers.len()).unwrap_or(u32::MAX);
    let doubts = history.doubts();
    if doubts.is_empty() {
        return Ok(TakenUp::Ready(Box::new(plan), history));
    }
    let question = Question::InDoubt { calls: doubts, by };
    // The same question keeps its name, so that an answer on its way still counts.
    let id = match &recorded.question {
        Some((id, asked)) if *asked == question && answered(&recorded).is_none() => id.clone(),
        Some(_) | None => Digest::of(format!("{}{}", lease.run(), now_ms()).as_bytes()).short().to_owned(),
    };
    wait_for_word(runs, lease, &recorded, id, question).await
}

/// Makes a tool result of what a person says that a direct call gave.
fn whole(record: &mut Record) {
    if let Record::Delivered { what: Delivered::Result { value, .. }, .. } = record {
        *value = told_result(value);
    }
}

/// Whether another engine would make a difference.
fn runs_programs(plan: &Plan, history: &History) -> bool {
    let is_program = |task: &DagTask| matches!(task.work, TaskWork::Code(_)) && !task.dropped;
    let mut replans = history.deliveries.iter().filter_map(|(_, what)| match what {
        Delivered::Layer { replan: Some(replan), .. } => Some(&replan.tasks),
        _ => None,
    });
    let Some(dag) = plan.dag() else { return true };
    replans.next_back().unwrap_or(&dag.tasks).iter().any(is_program)
}

/// What the run asked and what was said to it.
fn answered(recorded: &Recorded) -> Option<(&str, &Question, &Answer)> {
    let (id, question) = recorded.question.as_ref()?;
    let answer = recorded.answers.iter().find(|answer| answer.question_id == *id)?;
    Some((id, question, &answer.answer))
}

/// That a person did not allow a run to begin.
fn denied(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("a person did not allow the run: {reason}"),
        None => "a person did not allow the run".to_owned(),
    }
}

/// The ends of calls that have none yet.
fn still_open(history: &History, ends: Vec<Delivered>, now: i64) -> Vec<Record> {
    let is_open = |what: &Delivered| {
        let call = what.call().and_then(|call| history.calls.get(call as usize - 1));
        call.is_some_and(|call| call.ended.is_none())
    };
    ends.into_iter().filter(is_open).map(|what| Record::Delivered { at: now, what }).collect()
}

/// Writes down what an answer amounts to; the question is closed.
async fn note(
    runs: &Runs,
    lease: &Lease,
    recorded: &Recorded,
    records: &[Record],
    audit: Vec<Audit>,
    now: i64,
) -> Result<History, Problem> {
    let entries: Vec<_> = records.iter().map(|record| record.entry(now)).collect();
    let closed = Change {
        question: Some(None),
        expires_at: Some(Some(now + LONGEST_WAIT_MS)),
        audit,
        at: now,
        ..Change::default()
    };
    let all = recorded.entries.iter().chain(&entries).cloned().collect();
    change(runs, lease, entries, closed).await?;
    History::read(all).map_err(|error| unreadable(lease.run(), &error))
}

/// Puts the run aside until somebody answers.
async fn wait_for_word(
    runs: &Runs,
    lease: &Lease,
    recorded: &Recorded,
    id: String,
    question: Question,
) -> Result<TakenUp, Problem> {
    let now = now_ms();
    let known = recorded.question.as_ref().is_some_and(|(known, _)| *known == id);
    let audit = match &question {
        Question::Approval(asked) if !known => {
            vec![ask::asked_audit(&recorded.run.principal, lease.run(), &id, asked, now)]
        }
        Question::InDoubt { calls, .. } if !known => {
            vec![ask::doubt_audit(&recorded.run.principal, lease.run(), &id, calls, now)]
        }
        Question::Approval(_) | Question::InDoubt { .. } | Question::Layer(_) => Vec::new(),
    };
    let asks = Change {
        state: Some(RunState::Waiting),
        question: Some(Some((id.clone(), question.clone()))),
        audit,
        release: true,
        at: now,
        ..Change::default()
    };
    change(runs, lease, Vec::new(), asks).await?;
    Ok(TakenUp::Asks { id, question })
}

/// What no longer counts as idempotent is not sent again unasked, and what a person has to allow by now is asked for,
/// whatever was the rule when the run began.
fn stricter(runs: &Runs, tools: &mut [Granted]) {
    let (snapshot, policy) = (runs.tools.snapshot(), runs.settings.policy());
    for granted in tools {
        if let Ok(tool) = snapshot.tool(&granted.id) {
            let verdict = policy.of(&granted.id, &tool.definition.annotations);
            granted.idempotent &= verdict.idempotent;
            if verdict.mode == Mode::Ask && granted.asks.is_none() {
                granted.asks =
                    Some(Asks { scope: verdict.scope.as_str().to_owned(), because: verdict.because });
            }
        }
    }
}

/// Whether running a program anew would repeat something.
fn again_or_not(history: &History) -> &'static str {
    match history.calls.is_empty() {
        true => "run it anew; it has called nothing yet",
        false => "calls were made before: see them with `pml runs show` before you run it anew",
    }
}

/// Ends a run that no driver has.
async fn end(
    runs: &Arc<Runs>,
    principal: &Principal,
    lease: &Lease,
    plan: &Plan,
    history: &History,
    ending: &Ending,
    audit: Vec<Audit>,
) -> Result<RunState, Problem> {
    let mut observer = Observer::new(Arc::new(plan.clone()));
    observer.remember(history);
    let mut report = observer.report(ending, &history.in_doubt(), now_ms());
    let dag = Dag::as_it_stood(&Arc::new(plan.clone()), history);
    if let Some(dag) = &dag {
        dag.add_to(&mut report);
    }
    report.warn(plan);
    let state = report.state;
    let known = remember::is_known(runs, principal, plan).await;
    let memory = remember::memory(
        runs,
        &remember::Over {
            run: lease.run(),
            principal,
            plan,
            observer: &observer,
            report: &report,
            layers: dag.as_ref().map(Dag::layers).unwrap_or_default(),
            active_ms: i64::try_from(history.active_ms(plan.start, plan.limits.park_after_ms))
                .unwrap_or(i64::MAX),
            approved: !history.grants.is_empty(),
        },
        known,
    );
    let over = Change {
        state: Some(state),
        memory,
        outcome: Some(serde_json::to_vec(&report).expect("a report is plain data")),
        error_code: report.error.map(|error| error.code),
        audit,
        release: true,
        at: now_ms(),
        ..Change::default()
    };
    change(runs, lease, Vec::new(), over).await?;
    runs.knowledge.memory.left();
    Ok(state)
}

pub(super) async fn change(
    runs: &Runs,
    lease: &Lease,
    entries: Vec<pml_store::Entry>,
    change: Change,
) -> Result<(), Problem> {
    let (tell, told) = oneshot::channel();
    runs.store.append(lease, entries, Some(change), Urgency::Soon, move |stored| drop(tell.send(stored)));
    match told.await {
        Ok(stored) => Ok(stored?),
        Err(_) => Err(Problem::new(Code::Storage, "the database does not answer any more")),
    }
}

/// Has a DAG wait before its next layer.
///
/// # Errors
/// There is no such run, it never waits before layers, or that cannot be recorded.
pub async fn pause(runs: &Arc<Runs>, principal: &Principal, id: &RunId) -> Result<(), Problem> {
    if let Standing::Over(_) = standing(runs, principal, id).await? {
        return Ok(());
    }
    let (plan, _) = understood(&load(runs, principal, id).await?)?;
    let text = match plan.dag().map(|dag| dag.pause) {
        Some(Pause::Manual) => {
            return Ok(runs.store.want_pause(principal, id).await?);
        }
        // It waits there anyway.
        Some(Pause::PerLayer) => return Ok(()),
        Some(Pause::None | Pause::OnError) => format!("run `{id}` does not wait before layers"),
        None => format!("run `{id}` is a program and has no layers to wait before"),
    };
    Err(Problem::new(Code::InvalidRequest, text)
        .hint("run a DAG with `decisionPoints: \"manual\"` to pause it, or end the run with `pml_abort`"))
}

/// Ends a run.
///
/// # Errors
/// There is no such run, another process has it, or the end cannot be recorded.
pub async fn abort(
    runs: &Arc<Runs>,
    principal: &Principal,
    id: &RunId,
    reason: &str,
) -> Result<Standing, Problem> {
    if let Some(handle) = runs.here(id).filter(|handle| handle.principal == *principal) {
        handle.abort(reason);
        return Ok(handle.wait(LEAVING).await);
    }
    let reason = (!reason.is_empty()).then(|| reason.to_owned());
    stop(runs, principal, id, &Ending::Aborted(reason)).await
}

/// Ends a run that whoever asked for it no longer wants.
///
/// # Errors
/// There is no such run, another process has it, or the end cannot be recorded.
pub async fn cancel(runs: &Arc<Runs>, principal: &Principal, id: &RunId) -> Result<Standing, Problem> {
    if let Some(handle) = runs.here(id).filter(|handle| handle.principal == *principal) {
        handle.cancel();
        return Ok(handle.wait(LEAVING).await);
    }
    stop(runs, principal, id, &Ending::Cancelled).await
}

/// Ends a run that no driver of this process has.
async fn stop(
    runs: &Arc<Runs>,
    principal: &Principal,
    id: &RunId,
    ending: &Ending,
) -> Result<Standing, Problem> {
    match claim(runs, principal, id).await? {
        Claim::Taken(lease) => {
            let (plan, history) = understood(&load(runs, principal, id).await?)?;
            end(runs, principal, &lease, &plan, &history, ending, Vec::new()).await?;
            standing(runs, principal, id).await
        }
        Claim::Over(_) => standing(runs, principal, id).await,
        Claim::Held { .. } => Err(Problem::new(Code::Busy, format!("another process works on run `{id}`"))
            .hint("end it there, or try again when that process has ended")),
        Claim::Unknown => Err(no_run(id)),
    }
}
