//! Everything that runs for as long as the program does. Each ends when the app stops.

use std::sync::Arc;
use std::time::Duration;

use super::App;
use crate::accepted::Accepted;
use crate::clock::now_ms;
use crate::config::{Source, Watcher};

/// How soon a database that did not answer is asked again.
const STORE_INTERVAL: Duration = Duration::from_secs(1);

/// How long after the start servers that nobody knows are met: some clients start us only to ask for
/// our version, and what they wait for comes first.
const BEFORE_MEETING: Duration = Duration::from_millis(500);

/// Meets the servers whose tools nobody knows yet, so that they can be found.
pub(crate) async fn load_manifests(app: Arc<App>) {
    tokio::select! {
        () = tokio::time::sleep(BEFORE_MEETING) => app.tools.ensure_manifests_loaded().await,
        () = app.stopping().cancelled() => {}
    }
}

/// Has sandboxes ready for the first program.
pub(crate) async fn warm_up(app: Arc<App>) {
    tokio::select! {
        () = tokio::time::sleep(BEFORE_MEETING) => {
            if let Err(problem) = app.runs.warm_up(app.config().runs.workers) {
                tracing::error!(%problem, "no program can be run");
            }
        }
        () = app.stopping().cancelled() => {}
    }
}

/// Notes that this process keeps the database open. Where another one did and did not end properly, the file may be
/// damaged: that is looked into before anybody trips over it, and away from what clients wait for.
pub(crate) async fn look_after_database(app: Arc<App>) {
    let Some(process) = app.process.clone() else { return };
    // The first write of a process takes milliseconds to prepare, which nobody who just started us should wait for.
    tokio::select! {
        () = tokio::time::sleep(BEFORE_MEETING) => {}
        () = app.stopping().cancelled() => return,
    }
    let ended = match app.store.enter(&process, now_ms()).await {
        Ok(ended) => ended,
        Err(error) => return tracing::warn!(%error, "it is not known how others ended"),
    };
    if ended.is_empty() {
        return;
    }
    let checked = match app.store.quick_check().await {
        Ok(()) => app.store.leave(ended).await,
        Err(error) => Err(error),
    };
    match checked {
        Ok(()) => tracing::info!("a process did not end properly; the database was checked and is sound"),
        Err(error) => {
            tracing::error!(%error, "a process did not end properly, and the database needs attention");
        }
    }
}

/// Takes over changes of configuration files.
pub(crate) async fn follow_config(app: Arc<App>) {
    let accepted = || {
        let path = Accepted::open(&app.settings.paths).path().to_owned();
        let digest = std::fs::read(&path).ok().map(|content| pml_model::Digest::of(&content));
        Source { path, digest }
    };
    let mut accepted_before = accepted();
    loop {
        let mut sources = app.config().sources.clone();
        sources.push(accepted_before);
        let mut watcher = Watcher::new(&sources);
        let changed = tokio::select! {
            changed = watcher.changed() => changed,
            () = app.stopping().cancelled() => return,
        };
        // Read before the list is used: what is accepted meanwhile counts as a change.
        accepted_before = accepted();
        match app.reload().await {
            Ok(()) => tracing::info!(?changed, "the configuration was read again"),
            Err(problem) => {
                tracing::error!(%problem, "the changed configuration is broken; the old one stays in force");
                // Nothing new to see before the file changes once more.
                tokio::select! {
                    _ = watcher.changed() => {}
                    () = app.stopping().cancelled() => return,
                }
            }
        }
    }
}

/// Takes over what other processes learned about servers.
pub(crate) async fn follow_store(app: Arc<App>) {
    let (mut changes, mut seen) = (app.store.changes(), None);
    loop {
        let version = app.store.catalogue_version().await;
        let answers = version.is_ok();
        match version {
            Ok(version) => {
                if seen.is_some_and(|seen| seen != version)
                    && let Err(problem) = app.tools.refresh().await
                {
                    tracing::warn!(%problem, "the catalogue could not be read again");
                }
                seen = Some(version);
            }
            Err(error) => tracing::warn!(%error, "the database does not answer"),
        }
        tokio::select! {
            () = changes.changed() => {}
            () = tokio::time::sleep(STORE_INTERVAL), if !answers => {}
            () = app.stopping().cancelled() => return,
        }
    }
}
