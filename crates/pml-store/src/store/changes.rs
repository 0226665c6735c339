//! The change feed: one task polls the version of the database for all subscribers.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::watcher::VersionWatcher;

/// A subscription to changes of the database.
#[derive(Debug, Clone)]
pub struct ChangeSubscription(watch::Receiver<i64>);

impl ChangeSubscription {
    /// Waits for a change that this subscription has not reported yet. Several changes are reported as one.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The store is closed, so nothing changes any more.
            std::future::pending::<()>().await;
        }
    }

    /// The version of the database at the last poll. It counts as reported from now on.
    pub fn version(&mut self) -> i64 {
        *self.0.borrow_and_update()
    }
}

/// The polling task, started with the first subscriber. It ends with the last handle of the store.
#[derive(Debug, Default)]
pub(super) struct ChangeFeed(Mutex<Option<(watch::Sender<i64>, JoinHandle<()>)>>);

impl ChangeFeed {
    pub(super) fn subscribe(&self, watcher: &Arc<VersionWatcher>) -> ChangeSubscription {
        let mut feed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, _) = feed.get_or_insert_with(|| {
            let sender = watch::Sender::new(watcher.data_version().unwrap_or_default());
            let task = tokio::spawn(follow(Arc::clone(watcher), sender.clone()));
            (sender, task)
        });
        ChangeSubscription(sender.subscribe())
    }
}

impl ChangeFeed {
    /// Stops the task and waits for it. A later subscriber starts another.
    pub(super) async fn close(&self) {
        let feed = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((_, task)) = feed {
            task.abort();
            // The only error is that the task was aborted, which is intended.
            drop(task.await);
        }
    }
}

impl Drop for ChangeFeed {
    fn drop(&mut self) {
        if let Some((_, task)) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

async fn follow(watcher: Arc<VersionWatcher>, sender: watch::Sender<i64>) {
    let (mut answers, mut follower) = (true, watcher.follow());
    loop {
        follower.possible_change().await;
        // A file is asked on this thread, although that blocks: it takes microseconds.
        let version = if watcher.is_remote() {
            let watcher = Arc::clone(&watcher);
            super::waited_for(move || watcher.data_version()).await
        } else {
            watcher.data_version()
        };
        match version {
            Ok(version) => {
                answers = true;
                sender.send_if_modified(|seen| std::mem::replace(seen, version) != version);
            }
            Err(error) => {
                if std::mem::take(&mut answers) {
                    tracing::warn!(%error, "the database does not answer");
                }
            }
        }
    }
}
