//! Sees to runs while the program runs: keeps our own, takes up those that are due, lets go of old ones.

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::Caller;
use pml_model::RunState;
use pml_store::{Audit, Found, Store};

use super::Runs;
use super::{Handle, LEASE_MS, Resumed, resume};
use crate::clock::now_ms;
use crate::problem::Problem;

/// How often a process says that its runs are its own.
const RENEWAL: Duration = Duration::from_secs(4);

/// Sees to the runs that somebody has to see to: keeps our own, takes up those that are due.
pub(crate) async fn keep(runs: Arc<Runs>, resumes: bool) {
    let mut purged = None;
    let (mut changes, mut seen) = (runs.store.changes(), None);
    loop {
        if purged.is_none_or(|purged: tokio::time::Instant| purged.elapsed() >= Duration::from_secs(60)) {
            purged = Some(tokio::time::Instant::now());
            purge(&runs).await;
        }
        if resumes
            && !runs.is_closing()
            && let Err(problem) = see_to_due(&runs, changes.version(), &mut seen).await
        {
            tracing::warn!(%problem, "runs that are due could not be looked for");
        }
        tokio::select! {
            () = changes.changed() => {}
            // Times come without anything being changed.
            () = tokio::time::sleep(LOOK) => {}
            () = runs.stop.cancelled() => return,
        }
    }
}

/// How often runs that are due are looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Says again and again that our runs are ours. A task of its own: nothing may hold it up.
pub(crate) async fn keep_leases(runs: Arc<Runs>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(RENEWAL) => renew(&runs).await,
            // Runs are left while the program ends, and are ours until then.
            () = runs.stop.cancelled() => return,
        }
    }
}

async fn renew(runs: &Runs) {
    let handles: Vec<Arc<Handle>> = runs.lock().values().cloned().collect();
    if handles.is_empty() {
        return;
    }
    let leases = handles.iter().map(|handle| handle.lease.clone()).collect::<Vec<_>>();
    match runs.store.renew(&leases, now_ms() + LEASE_MS).await {
        Ok(lost) => {
            handles
                .iter()
                .filter(|handle| lost.contains(&handle.id))
                .for_each(|handle| handle.stops.lost.cancel());
        }
        Err(error) => tracing::warn!(%error, "the runs of this process could not be kept"),
    }
}

/// How long it is known what was last allowed: as long as people can be expected to remember it themselves.
const ALLOWED_KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1_000;

async fn purge(runs: &Runs) {
    let keep = i64::try_from(runs.settings.config().runs.keep_results.as_millis()).unwrap_or(i64::MAX);
    let purged = match runs.store.forget_allowed(now_ms() - ALLOWED_KEPT_MS).await {
        Ok(()) => runs.store.purge(now_ms(), keep).await,
        Err(error) => Err(error),
    };
    if let Err(error) = purged {
        tracing::warn!(%error, "old results could not be removed");
    }
}

/// Takes up what is due. `seen` is when the database was last looked at in earnest, and its version then: most of the
/// time nothing has changed and no time has come.
async fn see_to_due(runs: &Arc<Runs>, version: i64, seen: &mut Option<Seen>) -> Result<(), Problem> {
    let now = now_ms();
    let before = *seen;
    // After a sleep of the machine our own leases have lapsed, and nobody has a better right to them.
    if before.is_some_and(|before| now - before.orphans_at > LEASE_MS / 2) {
        renew(runs).await;
    }
    let (found, next) = look(&runs.store, version, before, now).await?;
    *seen = Some(next);
    let automatic = runs.settings.config().runs.resume;
    for found in found {
        let wanted = automatic || found.state != RunState::Interrupted;
        if wanted && !runs.is_closing() && runs.coming().insert(found.run.clone()) {
            let here = Arc::clone(runs);
            runs.drivers.spawn(async move {
                take_up(&here, &found).await;
                here.coming().remove(&found.run);
            });
        }
    }
    Ok(())
}

async fn take_up(runs: &Arc<Runs>, found: &Found) {
    match resume(runs, &found.principal, &found.run, Caller::silent()).await {
        Ok(Resumed::Going(handle)) => tracing::info!(run = %handle.id, "a run was taken up again"),
        Ok(Resumed::Asks { .. }) => {
            tracing::warn!(run = %found.run, "a run waits for a word on calls in doubt");
        }
        Ok(Resumed::Held | Resumed::Over(_)) => {}
        Err(problem) => tracing::warn!(run = %found.run, %problem, "a run could not be taken up again"),
    }
}

/// Ends the runs that may not wait any longer.
async fn expire(store: &Store, now: i64) -> Result<(), pml_store::Error> {
    let expired = |run: Found| Audit {
        at: now,
        principal: run.principal,
        run: Some(run.run),
        kind: "expired",
        body: serde_json::json!({}),
    };
    let gone: Vec<Audit> = store.expire(now).await?.into_iter().map(expired).collect();
    if gone.is_empty() { Ok(()) } else { store.audit(gone).await }
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    version: i64,
    next_wake: Option<i64>,
    orphans_at: i64,
}

/// How often it is looked whether the owners of runs still live.
const ORPHANS_MS: i64 = 1_000;

async fn look(
    store: &Store,
    version: i64,
    seen: Option<Seen>,
    now: i64,
) -> Result<(Vec<Found>, Seen), pml_store::Error> {
    let orphans_due = seen.is_none_or(|seen| now - seen.orphans_at >= ORPHANS_MS);
    if orphans_due {
        store.interrupt_orphans(now).await?;
    }
    let quiet = seen.filter(|seen| {
        seen.version == version && !orphans_due && seen.next_wake.is_none_or(|wake| wake > now)
    });
    if let Some(seen) = quiet {
        return Ok((Vec::new(), seen));
    }
    expire(store, now).await?;
    store.end_expired_rules(now).await?;
    let found = store.due(now).await?;
    let orphans_at = if orphans_due { now } else { seen.map_or(now, |seen| seen.orphans_at) };
    Ok((found, Seen { version, next_wake: store.next_wake().await?, orphans_at }))
}
