//! Keeps what follows from runs in step with them, as long as the program runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pml_mcp::server::Change;
use pml_model::Principal;
use pml_store::{Dropped, Store};
use tokio::sync::broadcast::error::RecvError;

use super::{Knowledge, Learned, Observed, check, intents};
use crate::clock::now_ms;

/// How many traces are learned from at a time.
const TOGETHER: usize = 500;
/// How long a trace waits for others: whoever runs one thing often runs another, and learning would take its time.
const TOGETHER_WITHIN: Duration = Duration::from_millis(100);
/// How often it is read at most what tools were seen to give.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// How often it is looked whether other processes left something to learn from.
const LOOK: Duration = Duration::from_secs(5);
/// How often results whose time is over are dropped.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Learns from what runs leave behind, as long as the program runs.
pub(crate) async fn learning_task(knowledge: Arc<Knowledge>) {
    let mut looks = tokio::time::interval(LOOK);
    let mut changes = knowledge.store.changes();
    let (mut seen, mut observed) = (None, None);
    let mut expired = Instant::now();
    drop_expired(&knowledge).await;
    loop {
        tokio::select! {
            () = knowledge.stop.cancelled() => return,
            () = knowledge.memory.left.notified() => tokio::time::sleep(TOGETHER_WITHIN).await,
            _ = looks.tick() => {}
        }
        let learned = learn_all(&knowledge).await;
        intents::check_all(&knowledge).await;
        // Another process may have learned it.
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

/// Drops results whose time is over; they are not given out anyway.
async fn drop_expired(knowledge: &Knowledge) {
    for (principal, _) in knowledge.principals() {
        let because = "its time was over";
        let dropped = knowledge.store.drop_cached(&principal, Dropped::Expired, because, now_ms()).await;
        if let Err(error) = dropped {
            tracing::debug!(%error, "results whose time is over could not be dropped");
        }
    }
}

/// Reads again what became of the calls of tools, for everybody whose knowledge is held in memory.
async fn observe(knowledge: &Knowledge) {
    for (principal, learned) in knowledge.principals() {
        if let Err(error) = read_observed(&knowledge.store, &principal, &learned).await {
            tracing::debug!(%error, "what tools were seen to give could not be read");
        }
    }
}

async fn read_observed(
    store: &Store,
    principal: &Principal,
    learned: &Learned,
) -> Result<(), pml_store::Error> {
    let uses = store.tool_uses(principal).await?;
    *learned.uses.write() = Arc::new(uses.into_iter().collect());
    let seen = store.observed_all(principal).await?.into_iter();
    let seen: Observed = seen.map(|(tool, digest, schema)| ((tool, digest), schema)).collect();
    learned.is_read.store(true, Ordering::Release);
    let mut observed = learned.observed.write();
    // The same value stays the same allocation: what is made from it is told by that.
    if **observed != seen {
        *observed = Arc::new(seen);
    }
    Ok(())
}

/// Compares what was learned with the tools there are, whenever these change.
pub(crate) async fn checking_task(knowledge: Arc<Knowledge>) {
    let mut changes = knowledge.tools.changes();
    loop {
        check::check(&knowledge).await;
        loop {
            tokio::select! {
                () = knowledge.stop.cancelled() => return,
                change = changes.recv() => match change {
                    Ok(Change::Tools) | Err(RecvError::Lagged(_)) => break,
                    Ok(_) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

/// Learns from everything that is left, and says whether there was anything. Nothing is lost where this is not reached: the
/// traces stay, marked as new.
pub(crate) async fn learn_all(knowledge: &Knowledge) -> bool {
    let mut any = false;
    loop {
        match knowledge.store.learn(TOGETHER, now_ms()).await {
            Ok(learned) => {
                any |= learned.traces > 0;
                if !learned.left {
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
