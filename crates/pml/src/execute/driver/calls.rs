//! The calls of one run that are under way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use pml_mcp::Caller;
use pml_model::json::Fields;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::super::journal::{Delivered, History};
use super::super::run::Issued;
use super::super::value::{DIRECT_BYTES, Room, delivered, delivered_whole};
use super::DrivenRun;
use crate::builtin::Witness;
use crate::plan::{Grant, Plan};
use crate::problem::{Code, Problem};
use crate::report::Failure;
use crate::tools::{self, Allowed, Authority, Context, Mode, Outcome, Permit};

/// How long servers are given to hear that a call is called off.
const CALLING_OFF: Duration = Duration::from_secs(1);
/// What all results of a run may have together.
const MAX_RECEIVED_BYTES: usize = 64 << 20;

/// The calls under way, and how much all ended ones gave.
pub(super) struct CallsInFlight {
    calls: FuturesUnordered<BoxFuture<'static, (u32, Outcome)>>,
    cancels: HashMap<u32, CancellationToken>,
    /// Bytes of results so far.
    received: usize,
    /// Of a client that hears of its own call alone.
    silent: Caller,
}

/// A call that may be made now.
pub(super) struct Permitted<'c> {
    pub(super) issued: Issued,
    /// What a person allowed, where one had to.
    pub(super) grant: Option<&'c Grant>,
    /// How long it may take.
    pub(super) timeout: Option<Duration>,
    /// Who can be told and asked things meanwhile.
    pub(super) caller: &'c Caller,
    /// Notes the files that are read for it.
    pub(super) witness: Option<Witness>,
}

impl CallsInFlight {
    pub(super) fn new(history: &History) -> CallsInFlight {
        CallsInFlight {
            calls: FuturesUnordered::new(),
            cancels: HashMap::new(),
            received: history.deliveries.iter().map(|(_, what)| what.size()).sum(),
            silent: Caller::silent(),
        }
    }

    /// Makes a call, unless its tool has changed since a person allowed it.
    pub(super) fn send(&mut self, of: &DrivenRun, call: Permitted<'_>) {
        let Permitted { issued, grant, timeout, caller, witness } = call;
        let granted = &of.plan.tools[issued.handle as usize];
        let cancel = CancellationToken::new();
        self.cancels.insert(issued.call, cancel.clone());
        let (toolset, id) = (Arc::clone(&of.runs.tools), granted.id.clone());
        if grant.is_some_and(|grant| grant.is_void(&toolset.snapshot())) {
            let text = format!("the definition of `{id}` changed after a person allowed it to be called");
            let outcome = Outcome::NotSent(Problem::new(Code::ToolChanged, text).hint(Failure::RUN_ANEW));
            self.calls.push(Box::pin(async move { (issued.call, outcome) }));
            return;
        }
        let allowed = |grant: &Grant| Allowed { arguments: grant.arguments.clone(), until: grant.expires_at };
        let context = Context {
            principal: of.principal.clone(),
            run: Some(of.lease.run().clone()),
            deadline: timeout.map(|time| Instant::now() + time),
            cancel,
            mode: Mode::Real,
            // A client that waits for its own call hears and answers what the tool's server says meanwhile.
            caller: match of.plan.is_direct() {
                true => caller.asked_meanwhile(),
                false => self.silent.clone(),
            },
            authority: Authority::Run(Permit {
                definition: granted.digest.clone(),
                allowed: grant.map(allowed),
            }),
            witness,
        };
        self.calls.push(Box::pin(async move {
            let arguments: &RawValue = serde_json::from_str(&issued.arguments)
                .expect("the worker's side has checked that it is JSON");
            (issued.call, tools::call(&toolset, &context, &id, arguments, Fields::default()).await)
        }));
    }

    /// The next call that ended; nothing where none is under way.
    pub(super) async fn next(&mut self) -> Option<(u32, Outcome)> {
        let (call, outcome) = self.calls.next().await?;
        self.cancels.remove(&call);
        Some((call, outcome))
    }

    /// What the program is given of how a call ended.
    pub(super) fn ended(&mut self, of: &DrivenRun, call: u32, tool: &str, outcome: Outcome) -> Delivered {
        let deliver = if of.plan.is_direct() { delivered_whole } else { delivered };
        let what = deliver(of.lease.run(), call, tool, outcome, self.room(&of.plan));
        self.received += what.size();
        what
    }

    /// Counts what was received otherwise than by a call.
    pub(super) fn count(&mut self, what: &Delivered) {
        self.received += what.size();
    }

    /// How much room there is for another result.
    pub(super) fn room(&self, plan: &Plan) -> Room {
        let each = usize::try_from(plan.limits.result_bytes).unwrap_or(usize::MAX);
        Room {
            // The limit is for values that programs work on; a direct call's result goes to its client.
            each: if plan.is_direct() { each.max(DIRECT_BYTES) } else { each },
            all: MAX_RECEIVED_BYTES,
            left: MAX_RECEIVED_BYTES.saturating_sub(self.received),
        }
    }

    /// Calls one off.
    pub(super) fn cancel(&mut self, call: u32) {
        if let Some(cancel) = self.cancels.remove(&call) {
            cancel.cancel();
        }
    }

    /// Calls all off, and gives servers a moment to hear of it.
    pub(super) async fn cancel_all(&mut self, of: &DrivenRun) {
        self.cancels.values().for_each(CancellationToken::cancel);
        let rest = async { while self.calls.next().await.is_some() {} };
        if tokio::time::timeout(CALLING_OFF, rest).await.is_err() {
            tracing::debug!(run = %of.lease.run(), "a call did not end when it was called off");
        }
    }
}
