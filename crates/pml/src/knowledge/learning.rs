//! Keeps what is learned in sync with the runs, as long as the program runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pml_mcp::server::ChangeNotice;
use pml_model::Principal;
use pml_store::{InvalidationScope, Store};
use tokio::sync::broadcast::error::RecvError;

use super::{ArgumentPatternCounts, Knowledge, ObservedSchemas, PrincipalKnowledge, check, intents};
use crate::clock::now_ms;

/// The number of traces learned from in one batch.
const TOGETHER: usize = 500;
/// 100 ms: how long a trace waits for others. Runs often come in quick succession, and learning would slow down the
/// next one.
const TOGETHER_WITHIN: Duration = Duration::from_millis(100);
/// 1 s: the shortest interval between two reads of the observed tool results.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// 5 s: the interval at which traces of other processes are looked for.
const LOOK: Duration = Duration::from_secs(5);
/// One day: the interval at which expired results are dropped.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Learns from the traces of runs, as long as the program runs.
pub(crate) async fn learning_task(knowledge: Arc<Knowledge>) {
    let mut looks = tokio::time::interval(LOOK);
    let mut changes = knowledge.store.changes();
    let (mut seen, mut observed) = (None, None);
    let mut expired = Instant::now();
    drop_expired(&knowledge).await;
    loop {
        tokio::select! {
            () = knowledge.stop.cancelled() => return,
            () = knowledge.memory.learning_due.notified() => tokio::time::sleep(TOGETHER_WITHIN).await,
            _ = looks.tick() => {}
        }
        let learned = learn_all(&knowledge).await;
        // The next runs go by what was learned, whether or not anybody searches meanwhile.
        if learned && let Err(error) = knowledge.memory.refresh().await {
            tracing::debug!(%error, "what was learned could not be indexed");
        }
        knowledge.write_mocks().await;
        intents::check_all(&knowledge).await;
        // Another process may have learned from them.
        let changed = Some(changes.version()).filter(|version| seen != Some(*version));
        let fresh =
            knowledge.principals().iter().any(|(_, learned)| !learned.is_read.load(Ordering::Acquire));
        if (learned || changed.is_some() || fresh)
            && observed.is_none_or(|at: Instant| at.elapsed() > BETWEEN_LOOKS)
        {
            (seen, observed) = (changed.or(seen), Some(Instant::now()));
            observe(&knowledge).await;
        }
        if expired.elapsed() > DAY {
            expired = Instant::now();
            drop_expired(&knowledge).await;
        }
    }
}

/// Drops expired results, which are never returned anyway.
async fn drop_expired(knowledge: &Knowledge) {
    for (principal, _) in knowledge.principals() {
        let because = "its time was over";
        let dropped =
            knowledge.store.invalidate_cache(&principal, InvalidationScope::Expired, because, now_ms()).await;
        if let Err(error) = dropped {
            tracing::debug!(%error, "results whose time is over could not be dropped");
        }
    }
}

/// Reads the tool call statistics again, for every principal whose knowledge is in memory.
async fn observe(knowledge: &Knowledge) {
    for (principal, learned) in knowledge.principals() {
        if let Err(error) = read_observed(&knowledge.store, &principal, &learned).await {
            tracing::debug!(%error, "what tools were seen to give could not be read");
        }
    }
}

/// Reads the tool call statistics of a principal again, and judges what they teach.
///
/// # Errors
/// The database cannot be read.
pub(crate) async fn judge_calls(
    knowledge: &Knowledge,
    principal: &Principal,
) -> Result<(), pml_store::Error> {
    learn_all(knowledge).await;
    read_observed(&knowledge.store, principal, &knowledge.of_principal(principal)).await
}

async fn read_observed(
    store: &Store,
    principal: &Principal,
    learned: &PrincipalKnowledge,
) -> Result<(), pml_store::Error> {
    let uses = store.tool_call_counts(principal).await?;
    *learned.uses.write() = Arc::new(uses.into_iter().collect());
    let mut patterns = ArgumentPatternCounts::new();
    for (tool, pattern, counts) in store.argument_pattern_counts(principal).await? {
        patterns.entry(tool).or_default().insert(pattern, counts);
    }
    *learned.patterns.write() = Arc::new(patterns);
    let seen = store.observed_schemas(principal).await?.into_iter();
    let seen: ObservedSchemas = seen.map(|(tool, digest, schema)| ((tool, digest), schema)).collect();
    learned.judge_calls(store, principal).await?;
    learned.is_read.store(true, Ordering::Release);
    let mut observed = learned.observed.write();
    // An equal value keeps its allocation, because derived data is compared by pointer.
    if **observed != seen {
        *observed = Arc::new(seen);
    }
    Ok(())
}

/// Checks the capabilities against the tools, whenever these change.
pub(crate) async fn checking_task(knowledge: Arc<Knowledge>) {
    let mut changes = knowledge.tools.changes();
    loop {
        check::check(&knowledge).await;
        loop {
            tokio::select! {
                () = knowledge.stop.cancelled() => return,
                change = changes.recv() => match change {
                    Ok(ChangeNotice::Tools) | Err(RecvError::Lagged(_)) => break,
                    Ok(_) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

/// Learns from all remaining traces, and returns whether there were any. Nothing is lost if this is not reached: the
/// traces stay marked as new.
pub(crate) async fn learn_all(knowledge: &Knowledge) -> bool {
    let mut any = false;
    loop {
        match knowledge.store.learn_traces(TOGETHER, now_ms()).await {
            Ok(learned) => {
                any |= learned.traces > 0;
                if !learned.has_more {
                    return any;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "nothing could be learned from the last runs; it is tried again");
                return any;
            }
        }
    }
}
