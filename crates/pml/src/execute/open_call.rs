//! A direct call that takes long: it goes on within a run, which its client can ask for.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::tools::CallOutcome;

/// A call that is under way outside any run. The run that takes it over is the only one that goes on with it.
#[derive(Clone)]
pub struct OpenCall {
    call: Arc<Mutex<Option<CallUnderWay>>>,
}

/// The call itself.
pub(crate) struct CallUnderWay {
    /// Ends with the outcome.
    pub(crate) outcome: BoxFuture<'static, CallOutcome>,
    /// Cancels it.
    pub(crate) cancel: CancellationToken,
}

impl OpenCall {
    /// A call that nobody has taken over yet.
    pub(crate) fn new(outcome: BoxFuture<'static, CallOutcome>, cancel: CancellationToken) -> OpenCall {
        OpenCall { call: Arc::new(Mutex::new(Some(CallUnderWay { outcome, cancel }))) }
    }

    /// The call, for whoever goes on with it; `None` if somebody does already.
    pub(crate) fn take(&self) -> Option<CallUnderWay> {
        self.call.lock().take()
    }
}

impl std::fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenCall").finish_non_exhaustive()
    }
}
