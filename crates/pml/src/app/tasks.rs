//! The background tasks. They live as long as the program and end when the app stops.

use std::sync::Arc;
use std::time::Duration;

use super::App;
use crate::accepted::AcceptedCommands;
use crate::clock::now_ms;
use crate::config::{ConfigSource, ConfigWatcher};

/// 1 s: the pause before a database that did not answer is polled again.
const STORE_INTERVAL: Duration = Duration::from_secs(1);

/// 500 ms: the delay after the start before unknown servers are connected. Some clients start PML only to ask for its
/// version, and the requests they wait for come first.
const BEFORE_MEETING: Duration = Duration::from_millis(500);

/// Loads the manifests of servers whose tools are unknown, so that discovery can find those tools.
pub(crate) async fn load_manifests(app: Arc<App>) {
    let meeting = async {
        tokio::time::sleep(BEFORE_MEETING).await;
        app.tools.ensure_manifests_loaded().await;
    };
    app.stopping().run_until_cancelled(meeting).await;
}

/// Starts sandbox workers before the first program needs one.
pub(crate) async fn warm_up(app: Arc<App>) {
    tokio::select! {
        () = tokio::time::sleep(BEFORE_MEETING) => {
            if let Err(problem) = app.runs.ensure_pool(app.config().runs.workers) {
                tracing::error!(%problem, "no program can be run");
            }
        }
        () = app.stopping().cancelled() => {}
    }
}

/// Registers this process as a user of the database. If an earlier process did not end properly, the file may be
/// damaged; then this checks it in the background, before a request runs into the damage.
pub(crate) async fn check_database_after_crash(app: Arc<App>) {
    let Some(process) = app.process.clone() else { return };
    // The first write of a process takes milliseconds to prepare. A client that just started PML should not wait for
    // it.
    tokio::select! {
        () = tokio::time::sleep(BEFORE_MEETING) => {}
        () = app.stopping().cancelled() => return,
    }
    let ended = match app.store.register_process(&process, now_ms()).await {
        Ok(ended) => ended,
        Err(error) => return tracing::warn!(%error, "it is not known how others ended"),
    };
    if ended.is_empty() {
        return;
    }
    let checked = match app.store.quick_check().await {
        Ok(()) => app.store.unregister_processes(ended).await,
        Err(error) => Err(error),
    };
    match checked {
        Ok(()) => tracing::info!("a process did not end properly; the database was checked and is sound"),
        Err(error) => {
            tracing::error!(%error, "a process did not end properly, and the database needs attention");
        }
    }
}

/// Applies changes of the configuration files.
pub(crate) async fn follow_config(app: Arc<App>) {
    let accepted = || {
        let path = AcceptedCommands::open(&app.settings.paths).path().to_owned();
        let digest = std::fs::read(&path).ok().map(|content| pml_model::Digest::of(&content));
        ConfigSource { path, digest }
    };
    let mut accepted_before = accepted();
    loop {
        let mut sources = app.config().findings.sources.clone();
        sources.push(accepted_before);
        let mut watcher = ConfigWatcher::new(&sources);
        let changed = tokio::select! {
            changed = watcher.changed() => changed,
            () = app.stopping().cancelled() => return,
        };
        // Read before the list is used: a command accepted in between then counts as a change.
        accepted_before = accepted();
        match app.reload().await {
            Ok(()) => tracing::info!(?changed, "the configuration was read again"),
            Err(problem) => {
                tracing::error!(%problem, "the changed configuration is broken; the old one stays in force");
                // Nothing can be new until the file changes again.
                tokio::select! {
                    _ = watcher.changed() => {}
                    () = app.stopping().cancelled() => return,
                }
            }
        }
    }
}

/// Applies what other processes learned about servers.
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
