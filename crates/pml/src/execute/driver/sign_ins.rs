//! The calls of one run that wait for a person to sign in to their servers.
//!
//! Such a call was not sent. It is sent again when the run is resumed, and waits again if that is still needed.

use std::collections::BTreeMap;

use pml_model::question::{CallAwaitingSignIn, Question};
use pml_model::{ErrorCode, Principal, ToolId};

use super::DrivenRun;
use super::calls::EndedCall;
use crate::clock::now_ms;
use crate::execute::ask;
use crate::execute::journal::History;
use crate::execute::run::RunCore;
use crate::sign_in;
use crate::tools::CallOutcome;

/// The calls that wait for a sign-in.
pub(super) struct RunSignIns {
    /// By number of the call.
    waiting: BTreeMap<u32, UnsignedCall>,
    /// The number of questions that this run asked before.
    answered: u32,
}

/// A call that was not sent.
struct UnsignedCall {
    tool: ToolId,
    because: String,
    /// When it was found out.
    at: i64,
}

impl RunSignIns {
    pub(super) fn new(history: &History) -> RunSignIns {
        RunSignIns { waiting: BTreeMap::new(), answered: history.questions_answered }
    }

    /// Whether a call that has ended waits for a sign-in instead. The client of a direct call is told at once, and a run
    /// that has asked too often is not made to wait again.
    pub(super) fn take_on(&mut self, of: &DrivenRun, ended: &EndedCall, tool: &str) -> bool {
        let CallOutcome::NotSent(problem) = &ended.outcome else { return false };
        let asks = !of.plan.is_direct() && self.answered < ask::MOST_QUESTIONS;
        let tool = ToolId::parse(tool).ok().filter(|_| asks && problem.code == ErrorCode::LoginRequired);
        let Some(tool) = tool else { return false };
        let unsigned = UnsignedCall { tool, because: problem.message.clone(), at: now_ms() };
        self.waiting.insert(ended.call, unsigned);
        true
    }

    /// Whether somebody has signed in while the rest of the run went on, so that one of these calls can be sent again.
    pub(super) async fn can_go_on(&self, of: &DrivenRun, calls: &[u32]) -> bool {
        for unsigned in calls.iter().filter_map(|number| self.waiting.get(number)) {
            let (store, server) = (&of.runs.store, &unsigned.tool.server);
            match sign_in::signed_in_since(store, &Principal::local(), server, unsigned.at).await {
                Ok(true) => return true,
                Ok(false) => {}
                // The person is asked, and an answer has the call sent again.
                Err(error) => tracing::warn!(%error, "whether somebody signed in could not be read"),
            }
        }
        false
    }

    /// The question about these calls, with its id. Asked again after an answer, it is another one.
    pub(super) fn question<E>(&self, of: &DrivenRun, run: &RunCore<E>, calls: &[u32]) -> (String, Question) {
        let calls = calls.iter().filter_map(|number| {
            let UnsignedCall { tool, because, .. } = self.waiting.get(number)?;
            Some(CallAwaitingSignIn {
                call: *number,
                node: run.issued(*number).and_then(|issued| issued.node.clone()),
                tool: tool.to_string(),
                server: tool.server.to_string(),
                because: because.clone(),
            })
        });
        let question = Question::SignIn { calls: calls.collect() };
        (ask::sign_in_id(of.lease.run(), &question, self.answered), question)
    }
}
