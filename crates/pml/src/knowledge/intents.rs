//! Checks whether the intents that capabilities are found by fit them.
//!
//! A run checks its own intent when it ends. Intents stored without that check, for example by an earlier version, are
//! checked here in the background: each once per version of the analysis, by the same rule. Checked intents are marked
//! per capability, so an interrupted check continues later.

use pml_analysis::ANALYSIS_VERSION;
use pml_model::{CapabilityId, Principal};
use pml_store::{IntentFit, ServedIntent};
use serde_json::{Map, Value};

use super::{IndexedCapability, Knowledge};
use crate::reuse::{self, Judgement, ReadIntent, ReusableProcedure};
use crate::runtime::run_blocking;

/// The number of capabilities checked before the store is released to other writers.
const TOGETHER: u32 = 50;

/// Judges what an intent, run with these arguments, says beyond what the capability can be given.
pub(crate) fn judge(
    known: &IndexedCapability,
    intent: &ReadIntent,
    arguments: &Map<String, Value>,
) -> Judgement {
    let intents: Vec<&ReadIntent> = known.intents.read().iter().collect();
    judge_beside(known, &intents, intent, arguments)
}

/// Whether an intent may be stored for a capability that was run for it with these arguments.
pub(crate) fn fit(known: &IndexedCapability, intent: &str, arguments: &Map<String, Value>) -> IntentFit {
    match judge(known, &ReadIntent::new(intent), arguments).is_fully_placed() {
        true => IntentFit::Fits(ANALYSIS_VERSION),
        false => IntentFit::Misfit,
    }
}

fn judge_beside(
    known: &IndexedCapability,
    intents: &[&ReadIntent],
    intent: &ReadIntent,
    arguments: &Map<String, Value>,
) -> Judgement {
    let parameters = known.with_first_values();
    // Whether the procedure changes something makes no difference to its constants.
    let procedure =
        ReusableProcedure { parameters: &parameters, intents, examples: &known.examples, reads_only: true };
    reuse::judge(&procedure, known.program.constants(), intent, arguments)
}

/// Checks all intents that were not checked with this version of the analysis.
pub(super) async fn check_all(knowledge: &Knowledge) {
    loop {
        let left = match knowledge.store.capabilities_with_unchecked_intents(ANALYSIS_VERSION, TOGETHER).await
        {
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
    let known = knowledge.memory.find_by_name(principal, id.as_str()).await?;
    let served = knowledge.store.served_intents(principal, id).await?;
    let (fit, unfit) = run_blocking(move || match &known {
        Some(known) => sorted(known, &served),
        // The capability is gone, or belongs to another principal by now.
        None => (served.into_iter().map(|served| served.text).collect(), Vec::new()),
    })
    .await;
    if !unfit.is_empty() {
        tracing::info!(capability = %id, dropped = unfit.len(), "intents that contradict a capability are no longer served by it");
    }
    knowledge.store.record_intent_check(principal, id, ANALYSIS_VERSION, fit, unfit).await
}

/// Separates the intents that fit from those that do not, as if each had been checked when it was first served.
fn sorted(known: &IndexedCapability, served: &[ServedIntent]) -> (Vec<String>, Vec<String>) {
    // The defaults come from the capability's own first intent, whatever it was merged with later.
    let first = served.iter().position(|served| served.own).unwrap_or(0);
    let read: Vec<ReadIntent> = served.iter().map(|served| ReadIntent::new(&served.text)).collect();
    let mut fit: Vec<&ReadIntent> = read.get(first).into_iter().collect();
    let mut unfit = Vec::new();
    let later = served.iter().zip(&read).enumerate().filter(|(at, _)| *at != first);
    for (_, (served, read)) in later {
        let bound = |values: &Map<String, Value>| judge_beside(known, &fit, read, values).is_fully_placed();
        let fits = match served.values.as_slice() {
            // No run for it is recorded: use the arguments that its words alone would give.
            [] => bound(&words_alone(known, &fit, read)),
            runs => runs.iter().any(bound),
        };
        if fits {
            fit.push(read);
        } else {
            unfit.push(served.text.clone());
        }
    }
    (fit.into_iter().map(|read| read.text().to_owned()).collect(), unfit)
}

fn words_alone(
    known: &IndexedCapability,
    intents: &[&ReadIntent],
    intent: &ReadIntent,
) -> Map<String, Value> {
    let parameters = known.with_first_values();
    let procedure =
        ReusableProcedure { parameters: &parameters, intents, examples: &known.examples, reads_only: true };
    reuse::bind(&procedure, intent, &Map::new()).arguments
}
