//! The calls of one run that are in flight.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use pml_mcp::Caller;
use pml_model::ToolId;
use pml_model::json::Fields;
use pml_store::ClientKey;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::super::journal::History;
use super::super::speculation::{AskedCall, ClaimedResult, SpeculationMiss};
use super::super::value::{DIRECT_BYTES, ResultBudget, outcome_delivery, whole_result_delivery};
use super::DrivenRun;
use super::reading_ahead::ReadingAhead;
use crate::builtin::ReadRecorder;
use crate::execute::delivery::RunDelivery;
use crate::execute::issued_call::IssuedCall;
use crate::execute::open_call::CallUnderWay;
use crate::keys::ClientKeys;
use crate::plan::{Grant, Plan};
use crate::problem::{ErrorCode, Problem};
use crate::report::{NotAhead, RunFailure};
use crate::telemetry::{OpenSpan, in_context};
use crate::tools::{self, Authority, CallApproval, CallContext, CallMode, CallOutcome, Permit, Toolset};

/// 1 s: how long servers may take to receive the cancellation of a call.
const CALLING_OFF: Duration = Duration::from_secs(1);
/// 64 MiB: the limit of all results of a run together.
const MAX_RECEIVED_BYTES: usize = 64 << 20;

/// The calls in flight, and the size of the results so far.
pub(super) struct CallsInFlight {
    calls: FuturesUnordered<BoxFuture<'static, EndedCall>>,
    cancels: HashMap<u32, CancellationToken>,
    /// Bytes of results so far.
    received: usize,
    /// The reads made before the program asks for them; `None` if there are none to make.
    pub(super) reading_ahead: Option<ReadingAhead>,
    /// The only call of the run, if it was made before the run began.
    pub(super) open_call: Option<CallUnderWay>,
    /// The caller for programs whose client no longer waits or cannot be asked.
    silent: Caller,
}

/// A call that has ended.
pub(super) struct EndedCall {
    pub(super) call: u32,
    pub(super) outcome: CallOutcome,
    /// How long it took since the program was allowed to make it.
    pub(super) took: Duration,
    pub(super) ahead: AheadResult,
}

/// What became of the read ahead of a call.
pub(super) enum AheadResult {
    /// Its result is that of the call.
    Used {
        /// How much sooner the call ended.
        saved: Duration,
        /// The age of the result, if a dry run had read it.
        age: Option<Duration>,
    },
    /// The call was made itself, for this reason.
    NotUsed(NotAhead),
    /// There was none, and nothing is known to have held it back.
    None,
}

/// A call that may be made now.
pub(super) struct PermittedCall<'c> {
    pub(super) issued: IssuedCall,
    /// The grant, if the call needed approval.
    pub(super) grant: Option<&'c Grant>,
    /// The timeout of the call.
    pub(super) timeout: Option<Duration>,
    /// The receiver of progress and log messages, which can also be asked questions.
    pub(super) caller: &'c Caller,
    /// Records the files that are read for the call.
    pub(super) witness: Option<ReadRecorder>,
    /// The key whose budget the call counts against.
    pub(super) key: Option<Arc<ClientKey>>,
}

impl CallsInFlight {
    pub(super) fn new(history: &History) -> CallsInFlight {
        CallsInFlight {
            calls: FuturesUnordered::new(),
            cancels: HashMap::new(),
            received: history.deliveries.iter().map(|(_, what)| what.size()).sum(),
            reading_ahead: None,
            open_call: None,
            silent: Caller::silent(),
        }
    }

    /// Ends a call that is not sent.
    pub(super) fn refuse(&mut self, call: u32, problem: Problem) {
        let outcome = CallOutcome::NotSent(problem);
        let ended = EndedCall { call, outcome, took: Duration::ZERO, ahead: AheadResult::None };
        self.calls.push(Box::pin(async move { ended }));
    }

    /// Sends a call, unless its tool has changed since a person approved it.
    pub(super) fn send(&mut self, of: &DrivenRun, call: PermittedCall<'_>) {
        let PermittedCall { issued, grant, timeout, caller, witness, key } = call;
        if let Some(CallUnderWay { outcome, cancel }) = self.open_call.take() {
            self.cancels.insert(issued.call, cancel);
            let began = Instant::now();
            self.calls.push(Box::pin(async move {
                let outcome = outcome.await;
                EndedCall { call: issued.call, outcome, took: began.elapsed(), ahead: AheadResult::None }
            }));
            return;
        }
        let granted = &of.plan.tools[issued.handle as usize];
        let cancel = CancellationToken::new();
        self.cancels.insert(issued.call, cancel.clone());
        let (toolset, id) = (Arc::clone(&of.runs.tools), granted.id.clone());
        let span = begin_span(&toolset, &id, &issued);
        if grant.is_some_and(|grant| grant.is_void(&toolset.snapshot())) {
            let text = format!("the definition of `{id}` changed after a person allowed it to be called");
            let outcome =
                CallOutcome::NotSent(Problem::new(ErrorCode::ToolChanged, text).hint(RunFailure::RUN_ANEW));
            tools::end_call(span, &outcome);
            let ended =
                EndedCall { call: issued.call, outcome, took: Duration::ZERO, ahead: AheadResult::None };
            self.calls.push(Box::pin(async move { ended }));
            return;
        }
        let allowed =
            |grant: &Grant| CallApproval { arguments: grant.arguments.clone(), expires_at: grant.expires_at };
        let context = CallContext {
            principal: of.principal.clone(),
            run: Some(of.lease.run().clone()),
            deadline: None,
            cancel,
            mode: CallMode::Real,
            // The client of a direct call receives and answers the messages of the tool's server meanwhile; that of a
            // program answers the questions.
            caller: match of.plan.is_direct() {
                true => caller.with_inline_questions(),
                false if caller.can_be_asked() => caller.for_questions_only(),
                false => self.silent.clone(),
            },
            authority: Authority::Run(Permit {
                definition: granted.digest.clone(),
                approval: grant.map(allowed),
            }),
            witness,
        };
        let (run, speculator) = (of.lease.run(), &of.runs.speculator);
        let ahead = speculator.take(run, &id, &issued.digest);
        let held_back = self.reading_ahead.as_mut().and_then(|reading| reading.take_held_back(issued.call));
        let not_made = match ahead {
            None if speculator.has_expired(run, &id, &issued.digest) => Some(NotAhead::Expired),
            _ => held_back,
        };
        let runs = Arc::clone(&of.runs);
        self.calls.push(Box::pin(async move {
            if let Some(key) = &key {
                wait_for_budget(&runs.keys, key, &context.cancel).await;
            }
            let began = Instant::now();
            let arguments: &RawValue = serde_json::from_str(&issued.arguments)
                .expect("the worker's side has checked that it is JSON");
            let parent = span.context();
            let call = || {
                // The time of the call begins with the call: what was waited for its read ahead does not count.
                let deadline = timeout.map(|time| Instant::now() + time);
                let context = CallContext { deadline, ..context.clone() };
                let (toolset, id) = (&toolset, &id);
                in_context(parent.clone(), async move {
                    tools::call(toolset, &context, id, arguments, Fields::default()).await
                })
            };
            let claimed = match (ahead, &context.run) {
                (Some(read), Some(run)) => {
                    let asker = AskedCall {
                        principal: &context.principal,
                        run,
                        witness: context.witness.as_ref(),
                        cancel: &context.cancel,
                        timeout,
                    };
                    runs.speculator.claim(&asker, read, call).await
                }
                _ => ClaimedResult::Called(call().await, None),
            };
            let mut span = span;
            let (outcome, ahead) = match claimed {
                ClaimedResult::Ahead(hit) => {
                    span.set("pml.call.speculated", || true);
                    (CallOutcome::Ok(hit.result), AheadResult::Used { saved: hit.saved, age: hit.age })
                }
                ClaimedResult::Called(outcome, miss) => {
                    let reason = miss.map(reason).or(not_made);
                    (outcome, reason.map_or(AheadResult::None, AheadResult::NotUsed))
                }
            };
            tools::end_call(span, &outcome);
            EndedCall { call: issued.call, outcome, took: began.elapsed(), ahead }
        }));
    }

    /// The next call that ended; `None` if none is in flight.
    pub(super) async fn next(&mut self) -> Option<EndedCall> {
        let ended = self.calls.next().await?;
        self.cancels.remove(&ended.call);
        Some(ended)
    }

    /// The delivery to the program for the end of a call.
    pub(super) fn on_call_end(&mut self, of: &DrivenRun, tool: &str, ended: EndedCall) -> RunDelivery {
        let deliver = if of.plan.is_direct() { whole_result_delivery } else { outcome_delivery };
        let EndedCall { call, outcome, took, ahead } = ended;
        if let Ok(tool) = ToolId::parse(tool) {
            of.runs.metrics.note_call(&tool, outcome.status(), took);
        }
        let mut what = deliver(of.lease.run(), call, tool, outcome, self.result_budget(&of.plan));
        if let RunDelivery::Result { saved_ms, age_ms, not_ahead, .. } = &mut what {
            let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            match ahead {
                AheadResult::Used { saved, age } => (*saved_ms, *age_ms) = (Some(ms(saved)), age.map(ms)),
                AheadResult::NotUsed(reason) => *not_ahead = Some(reason),
                AheadResult::None => {}
            }
        }
        self.received += what.size();
        what
    }

    /// Counts a result that did not come from a call in flight.
    pub(super) fn count(&mut self, what: &RunDelivery) {
        self.received += what.size();
    }

    /// The size limits for the next result.
    pub(super) fn result_budget(&self, plan: &Plan) -> ResultBudget {
        let each = usize::try_from(plan.limits.result_bytes).unwrap_or(usize::MAX);
        ResultBudget {
            // The limit applies to values that programs work on; the result of a direct call goes to its client.
            each: if plan.is_direct() { each.max(DIRECT_BYTES) } else { each },
            all: MAX_RECEIVED_BYTES,
            left: MAX_RECEIVED_BYTES.saturating_sub(self.received),
        }
    }

    /// Cancels a call.
    pub(super) fn cancel(&mut self, call: u32) {
        if let Some(cancel) = self.cancels.remove(&call) {
            cancel.cancel();
        }
    }

    /// Cancels all calls, and gives the servers a moment to receive that.
    pub(super) async fn cancel_all(&mut self, of: &DrivenRun) {
        self.cancels.values().for_each(CancellationToken::cancel);
        let rest = async { while self.calls.next().await.is_some() {} };
        if tokio::time::timeout(CALLING_OFF, rest).await.is_err() {
            tracing::debug!(run = %of.lease.run(), "a call did not end when it was called off");
        }
    }
}

/// Why a read was of no use, as a report tells it.
fn reason(miss: SpeculationMiss) -> NotAhead {
    match miss {
        SpeculationMiss::Written => NotAhead::Written,
        SpeculationMiss::Unanswered => NotAhead::Unanswered,
        SpeculationMiss::Changed => NotAhead::Changed,
        SpeculationMiss::Expired => NotAhead::Expired,
    }
}

/// Waits until the budget of the key allows one more call. The program just waits longer for the call, so nothing that
/// it did is lost; the time limit of the run holds meanwhile.
pub(in crate::execute) async fn wait_for_budget(
    keys: &ClientKeys,
    key: &ClientKey,
    cancel: &CancellationToken,
) {
    while let Err(pause) = keys.admit_call(key) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = cancel.cancelled() => return,
        }
    }
}

/// Begins the span of a call of the run.
fn begin_span(tools: &Toolset, id: &ToolId, issued: &IssuedCall) -> OpenSpan {
    let mut span = tools::begin_call(tools, id, &issued.arguments);
    span.set("pml.call.number", || issued.call);
    if let Some(node) = &issued.node {
        span.set("pml.node.id", || node.as_str());
    }
    span
}
