//! Whether the intents that capabilities are found by fit them.
//!
//! A run compares its own intent when it ends. What was stored before that was done, by an earlier version or without
//! comparing, is checked here in the background: each intent once per version of the analysis, by the very same rule. Where
//! this is stopped it goes on later, because what was checked is marked with each capability.

use pml_analysis::ANALYSIS_VERSION;
use pml_model::{CapabilityId, Principal};
use pml_store::{IntentFit, ServedIntent};
use serde_json::{Map, Value};

use super::{Knowledge, Known};
use crate::reuse::{self, Judgement, Procedure};
use crate::runtime::blocking;

/// How many capabilities are checked before others may store something.
const TOGETHER: u32 = 50;

/// What an intent, run with these arguments, says beside what a capability can be given.
pub(crate) fn judge(known: &Known, intent: &str, arguments: &Map<String, Value>) -> Judgement {
    let intents: Vec<&str> = known.intents.iter().map(String::as_str).collect();
    judge_beside(known, &intents, intent, arguments)
}

/// Whether an intent may be remembered for a capability that was run for it with these arguments.
pub(crate) fn fit(known: &Known, intent: &str, arguments: &Map<String, Value>) -> IntentFit {
    match judge(known, intent, arguments).has_place() {
        true => IntentFit::Fits(ANALYSIS_VERSION),
        false => IntentFit::Misfit,
    }
}

fn judge_beside(known: &Known, intents: &[&str], intent: &str, arguments: &Map<String, Value>) -> Judgement {
    let parameters = known.with_first_values();
    // Whether it changes something makes no difference to what it is fixed to.
    let procedure =
        Procedure { parameters: &parameters, intents, examples: &known.examples, reads_only: true };
    reuse::judge(&procedure, known.constants(), intent, arguments)
}

/// Checks all intents that were not checked with this version of the analysis.
pub(super) async fn check_all(knowledge: &Knowledge) {
    loop {
        let left = match knowledge.store.with_unchecked_intents(ANALYSIS_VERSION, TOGETHER).await {
            Ok(left) => left,
            Err(error) => {
                tracing::warn!(%error, "the intents of capabilities could not be checked");
                return;
            }
        };
        if left.is_empty() || knowledge.stop.is_cancelled() {
            return;
        }
        for (principal, id) in left {
            if let Err(error) = check(knowledge, &principal, &id).await {
                tracing::warn!(%error, capability = %id, "the intents of a capability could not be checked");
                return;
            }
        }
    }
}

async fn check(
    knowledge: &Knowledge,
    principal: &Principal,
    id: &CapabilityId,
) -> Result<(), pml_store::Error> {
    let known = knowledge.memory.named(principal, id.as_str()).await?;
    let served = knowledge.store.served_intents(principal, id).await?;
    let (fit, unfit) = blocking(move || match &known {
        Some(known) => sorted(known, &served),
        // It is gone, or is another's by now.
        None => (served.into_iter().map(|served| served.text).collect(), Vec::new()),
    })
    .await;
    if !unfit.is_empty() {
        tracing::info!(capability = %id, dropped = unfit.len(), "intents that contradict a capability are no longer served by it");
    }
    knowledge.store.settle_intents(principal, id, ANALYSIS_VERSION, fit, unfit).await
}

/// The intents that fit and those that do not, as if each had been compared when it was first served.
fn sorted(known: &Known, served: &[ServedIntent]) -> (Vec<String>, Vec<String>) {
    // What the defaults are of is what the procedure does, whatever else it was merged with.
    let first = served.iter().position(|served| served.own).unwrap_or(0);
    let mut fit: Vec<&str> = served.get(first).map(|served| served.text.as_str()).into_iter().collect();
    let mut unfit = Vec::new();
    let later = served.iter().enumerate().filter(|(at, _)| *at != first);
    for (_, served) in later {
        let bound = |values: &Map<String, Value>| judge_beside(known, &fit, &served.text, values).has_place();
        let fits = match served.values.as_slice() {
            // Nothing is known of a run for it: with what the words alone would give.
            [] => bound(&words_alone(known, &fit, &served.text)),
            runs => runs.iter().any(bound),
        };
        if fits {
            fit.push(&served.text);
        } else {
            unfit.push(served.text.clone());
        }
    }
    (fit.into_iter().map(str::to_owned).collect(), unfit)
}

fn words_alone(known: &Known, intents: &[&str], intent: &str) -> Map<String, Value> {
    let parameters = known.with_first_values();
    let procedure =
        Procedure { parameters: &parameters, intents, examples: &known.examples, reads_only: true };
    reuse::bind(&procedure, intent, &Map::new()).arguments
}
