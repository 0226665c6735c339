//! What the sealed bodies of a run belong to, and sealing them.

use pml_model::{Principal, RunId};

use super::Entry;
use crate::Error;
use crate::connection::MAX_BODY_BYTES;
use crate::seal::{Key, Place};

/// Seals a body that is not too large to be stored.
pub(super) fn seal(key: &Key, place: &Place, body: &[u8]) -> Result<Vec<u8>, Error> {
    if body.len() > MAX_BODY_BYTES {
        let (what, run) = place.of();
        return Err(Error::TooLarge { run, what, bytes: body.len(), limit: MAX_BODY_BYTES });
    }
    key.seal(place, body)
}

pub(super) fn plan_place(run: &RunId) -> Place {
    Place::new("the plan", run)
}

pub(super) fn outcome_place(run: &RunId) -> Place {
    Place::new("the outcome", run)
}

pub(super) fn wish_place(run: &RunId) -> Place {
    Place::new("the wish to end", run)
}

pub(super) fn question_place(run: &RunId, id: &str) -> Place {
    Place::new("the question", run).word(id)
}

/// Everything that is stored of an entry beside its body belongs to the place of the body.
pub(super) fn entry_place(run: &RunId, number: i64, entry: &Entry) -> Place {
    Place::new("an entry", run)
        .number(number)
        .word(entry.kind.as_str())
        .maybe(entry.call, |place, call| place.number(i64::from(call)))
        .number(i64::from(entry.frame))
        .maybe(entry.node.as_deref(), Place::word)
        .maybe(entry.tool.as_deref(), Place::word)
        .maybe(entry.digest.as_ref(), |place, digest| place.word(digest.as_str()))
        .number(entry.at)
}

pub(super) fn answer_place(run: &RunId, question: &str, principal: &Principal, at: i64) -> Place {
    Place::new("an answer", run).word(question).word(&principal.0).number(at)
}
