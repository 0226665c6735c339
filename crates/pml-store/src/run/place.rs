//! The authenticated context of each sealed body of a run, and sealing.

use pml_model::{Principal, RunId};

use super::JournalEntry;
use crate::Error;
use crate::connection::MAX_BODY_BYTES;
use crate::seal::{SealContext, SealKey};

/// Seals a body, if it is within the size limit.
pub(super) fn seal_body(key: &SealKey, place: &SealContext, body: &[u8]) -> Result<Vec<u8>, Error> {
    if body.len() > MAX_BODY_BYTES {
        let (what, run) = place.describe();
        return Err(Error::TooLarge { run, what, bytes: body.len(), limit: MAX_BODY_BYTES });
    }
    key.seal(place, body)
}

pub(super) fn plan_context(run: &RunId) -> SealContext {
    SealContext::new("the plan", run)
}

pub(super) fn outcome_context(run: &RunId) -> SealContext {
    SealContext::new("the outcome", run)
}

pub(super) fn requested_end_context(run: &RunId) -> SealContext {
    SealContext::new("the wish to end", run)
}

pub(super) fn question_context(run: &RunId, id: &str) -> SealContext {
    SealContext::new("the question", run).text(id)
}

/// The context of an entry's body holds all other fields of the entry, so that none can be altered unnoticed.
pub(super) fn entry_context(run: &RunId, number: i64, entry: &JournalEntry) -> SealContext {
    SealContext::new("an entry", run)
        .number(number)
        .text(entry.kind.as_str())
        .optional(entry.call, |place, call| place.number(i64::from(call)))
        .number(i64::from(entry.frame))
        .optional(entry.node.as_deref(), SealContext::text)
        .optional(entry.tool.as_deref(), SealContext::text)
        .optional(entry.digest.as_ref(), |place, digest| place.text(digest.as_str()))
        .number(entry.at)
}

pub(super) fn answer_context(run: &RunId, question: &str, principal: &Principal, at: i64) -> SealContext {
    SealContext::new("an answer", run).text(question).text(&principal.0).number(at)
}
