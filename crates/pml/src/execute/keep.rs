//! Upkeep of runs: renews the leases of this process, resumes due runs, deletes old ones.

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::Caller;
use pml_model::RunState;
use pml_store::{Store, UnattendedRun};

use super::RunRegistry;
use super::{LEASE_MS, ResumeOutcome, RunHandle, resume};
use crate::clock::now_ms;
use crate::problem::Problem;

/// 4 s: the interval at which a process renews the leases of its runs. It must be well below `LEASE_MS`.
const RENEWAL: Duration = Duration::from_secs(4);

/// Resumes due runs and removes old ones, until the program ends.
pub(crate) async fn upkeep_task(runs: Arc<RunRegistry>, resumes: bool) {
    let (mut purged, mut details_dropped_to) = (None, 0);
    let (mut changes, mut seen) = (runs.store.changes(), None);
    loop {
        if purged.is_none_or(|purged: tokio::time::Instant| purged.elapsed() >= Duration::from_secs(60)) {
            purged = Some(tokio::time::Instant::now());
            purge(&runs, &mut details_dropped_to).await;
            runs.speculator.drop_expired();
        }
        if resumes
            && !runs.is_closing()
            && let Err(problem) = see_to_due(&runs, changes.version(), &mut seen).await
        {
            tracing::warn!(%problem, "runs that are due could not be looked for");
        }
        tokio::select! {
            () = changes.changed() => {}
            // A timer may become due without a change in the database.
            () = tokio::time::sleep(LOOK) => {}
            () = runs.stop.cancelled() => return,
        }
    }
}

/// 100 ms: the interval at which due runs are looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Renews the leases of this process's runs. It is a separate task, because nothing may delay it.
pub(crate) async fn lease_renewal_task(runs: Arc<RunRegistry>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(RENEWAL) => renew(&runs).await,
            // This is cancelled only after the runs have been suspended; their leases must hold until then.
            () = runs.stop.cancelled() => return,
        }
    }
}

async fn renew(runs: &RunRegistry) {
    let handles: Vec<Arc<RunHandle>> = runs.lock().values().cloned().collect();
    if handles.is_empty() {
        return;
    }
    let leases = handles.iter().map(|handle| handle.lease.clone()).collect::<Vec<_>>();
    match runs.store.renew_leases(&leases, now_ms() + LEASE_MS).await {
        Ok(lost) => {
            handles
                .iter()
                .filter(|handle| lost.contains(&handle.id))
                .for_each(|handle| handle.stops.lost.cancel());
        }
        Err(error) => tracing::warn!(%error, "the runs of this process could not be kept"),
    }
}

/// 90 days: how long the last allowed arguments are kept, about as long as people can be expected to remember them.
const ALLOWED_KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1_000;

async fn purge(runs: &RunRegistry, details_dropped_to: &mut i64) {
    if let Err(error) = purge_old(runs, details_dropped_to).await {
        tracing::warn!(%error, "old results could not be removed");
    }
}

async fn purge_old(runs: &RunRegistry, details_dropped_to: &mut i64) -> Result<(), pml_store::Error> {
    let milliseconds = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let (config, now) = (runs.settings.config(), now_ms());
    runs.store.forget_allowed_arguments(now - ALLOWED_KEPT_MS).await?;
    runs.store.purge_ended_runs(now, milliseconds(config.runs.keep_results)).await?;
    if let Some(keep) = config.memory.keep_traces {
        let before = now - milliseconds(keep);
        *details_dropped_to = runs.store.drop_trace_details(*details_dropped_to, before).await?;
    }
    Ok(())
}

/// Resumes due runs. `seen` is when the database was last read completely, and its version then: most of the time
/// nothing has changed and no timer is due.
async fn see_to_due(
    runs: &Arc<RunRegistry>,
    version: i64,
    seen: &mut Option<DueCheck>,
) -> Result<(), Problem> {
    let now = now_ms();
    let before = *seen;
    // After the machine slept, this process's own leases have expired, and no other process has a better claim to them.
    if before.is_some_and(|before| now - before.orphans_at > LEASE_MS / 2) {
        renew(runs).await;
    }
    let (found, next) = look(&runs.store, version, before, now).await?;
    *seen = Some(next);
    let automatic = runs.settings.config().runs.resume;
    for found in found {
        let wanted = automatic || found.state != RunState::Interrupted;
        if wanted && !runs.is_closing() && runs.resuming().insert(found.run.clone()) {
            let here = Arc::clone(runs);
            runs.drivers.spawn(async move {
                take_up(&here, &found).await;
                here.resuming().remove(&found.run);
            });
        }
    }
    Ok(())
}

async fn take_up(runs: &Arc<RunRegistry>, found: &UnattendedRun) {
    match resume(runs, &found.principal, &found.run, Caller::silent()).await {
        Ok(ResumeOutcome::Running(handle)) => tracing::info!(run = %handle.id, "a run was taken up again"),
        Ok(ResumeOutcome::Asks { .. }) => {
            tracing::warn!(run = %found.run, "a run waits for an answer about calls in doubt");
        }
        Ok(ResumeOutcome::HeldElsewhere | ResumeOutcome::Over(_)) => {}
        Err(problem) => tracing::warn!(run = %found.run, %problem, "a run could not be taken up again"),
    }
}

#[derive(Debug, Clone, Copy)]
struct DueCheck {
    version: i64,
    next_wake: Option<i64>,
    orphans_at: i64,
}

/// 1 s: the interval at which the owners of runs are checked for being alive.
const ORPHANS_MS: i64 = 1_000;

async fn look(
    store: &Store,
    version: i64,
    seen: Option<DueCheck>,
    now: i64,
) -> Result<(Vec<UnattendedRun>, DueCheck), pml_store::Error> {
    let orphans_due = seen.is_none_or(|seen| now - seen.orphans_at >= ORPHANS_MS);
    if orphans_due {
        store.release_orphaned_runs(now).await?;
    }
    let quiet = seen.filter(|seen| {
        seen.version == version && !orphans_due && seen.next_wake.is_none_or(|wake| wake > now)
    });
    if let Some(seen) = quiet {
        return Ok((Vec::new(), seen));
    }
    store.expire_runs(now).await?;
    store.end_expired_rules(now).await?;
    let found = store.due_runs(now).await?;
    let orphans_at = if orphans_due { now } else { seen.map_or(now, |seen| seen.orphans_at) };
    Ok((found, DueCheck { version, next_wake: store.next_wake_at().await?, orphans_at }))
}
