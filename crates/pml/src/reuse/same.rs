//! The decision whether a request asks for a learned procedure.
//!
//! Everything that asks this question calls [`same_procedure`]: the search for candidates with the intents as they
//! are, and the binding of arguments with what fills a parameter replaced by its slot. Today the words alone decide.
//! A reader that was taught with examples enters here: it has the same inputs, and whatever it says of paraphrases,
//! what the words rule out (a negation, an opposite, another role) stays below [`super::SURE`].

use super::similar::{self, IntentPiece};
use super::values::Strictness;
use super::vocabulary;

/// What there is to decide by.
pub(super) struct SameProcedureQuestion<'q> {
    /// An intent that the procedure served; values that have been placed are slots.
    pub(super) served: &'q [IntentPiece<'q>],
    /// The request, in the same form.
    pub(super) asked: &'q [IntentPiece<'q>],
    /// The text of the served intent.
    pub(super) served_text: &'q str,
    /// The text of the request.
    pub(super) asked_text: &'q str,
    /// How the procedure must be asked for: one that changes something must be asked for in the same words.
    pub(super) strictness: Strictness,
}

/// How likely the request asks for the procedure, from 0 to 1. From [`super::SURE`] on, nothing differs.
pub(super) fn same_procedure(question: &SameProcedureQuestion<'_>) -> f64 {
    let similarity = similar::compare(question.served, question.asked, question.strictness);
    if is_only_a_question(question) { similarity.min(0.5) } else { similarity }
}

/// Whether the request is a question about what the procedure would do: a question is no order, unless it asks whether
/// one could do it.
fn is_only_a_question(question: &SameProcedureQuestion<'_>) -> bool {
    let asks = |text: &str| text.trim_end().ends_with('?');
    let requests = || {
        let words = question.asked.iter().filter_map(IntentPiece::word);
        words.into_iter().any(|word| vocabulary::REQUESTING.contains(&super::fold::fold(&word.raw).as_str()))
    };
    question.strictness == Strictness::Writes
        && asks(question.asked_text)
        && !asks(question.served_text)
        && !requests()
}
