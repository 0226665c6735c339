//! A request as capabilities are bound to it.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::planning::RunRequest;
use crate::planning::session::{SESSION_ID, declares_session_id};
use crate::problem::{ErrorCode, Problem};
use crate::reuse::ReadIntent;

/// What the client asks for, read once for all candidates.
pub(super) struct ReadRequest {
    pub(super) intent: ReadIntent,
    /// Without the id of the session.
    pub(super) context: Map<String, Value>,
    session_id: Option<Value>,
}

impl ReadRequest {
    /// # Errors
    /// The context is not a JSON object.
    pub(super) fn new(asked: &RunRequest) -> Result<ReadRequest, Problem> {
        let mut context = context(asked)?;
        let session_id = context.remove(SESSION_ID);
        Ok(ReadRequest { intent: ReadIntent::new(&asked.intent), context, session_id })
    }

    /// An intent without a context.
    pub(super) fn of_intent(intent: &str) -> ReadRequest {
        ReadRequest { intent: ReadIntent::new(intent), context: Map::new(), session_id: None }
    }

    /// The context for a capability with these parameters, which has the id of the session only if one of them is it.
    pub(super) fn context_for(&self, parameters: &Value) -> Cow<'_, Map<String, Value>> {
        let mut context = Cow::Borrowed(&self.context);
        if let Some(id) = self.session_id.as_ref().filter(|_| declares_session_id(parameters)) {
            context.to_mut().insert(SESSION_ID.to_owned(), id.clone());
        }
        context
    }
}

fn context(asked: &RunRequest) -> Result<Map<String, Value>, Problem> {
    serde_json::from_str(asked.arguments.get()).map_err(|_| {
        Problem::new(ErrorCode::InvalidArguments, "`context` is not a JSON object")
            .hint("give the arguments as {\"path\": \"notes.txt\"}")
    })
}
