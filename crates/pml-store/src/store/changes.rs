//! The change feed: one task looks at the version of the database for everybody who wants to know of changes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::watcher::Watcher;

/// How often the version is looked at: people do not notice a tenth of a second.
const LOOK: Duration = Duration::from_millis(100);

/// Tells that the database changed.
#[derive(Debug, Clone)]
pub struct Changes(watch::Receiver<i64>);

impl Changes {
    /// Waits for a change that this receiver has not told of yet. Several changes are told as one.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The store is gone, and nothing changes any more.
            std::future::pending::<()>().await;
        }
    }

    /// The version of the database as of the last look, which counts as told from now on.
    pub fn version(&mut self) -> i64 {
        *self.0.borrow_and_update()
    }
}

/// The task, once somebody wants to know. It ends with the last handle of the store.
#[derive(Debug, Default)]
pub(super) struct Feed(Mutex<Option<(watch::Sender<i64>, JoinHandle<()>)>>);

impl Feed {
    pub(super) fn subscribe(&self, watcher: &Arc<Watcher>) -> Changes {
        let mut feed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, _) = feed.get_or_insert_with(|| {
            let sender = watch::Sender::new(watcher.version().unwrap_or_default());
            let task = tokio::spawn(follow(Arc::clone(watcher), sender.clone()));
            (sender, task)
        });
        Changes(sender.subscribe())
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some((_, task)) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

async fn follow(watcher: Arc<Watcher>, sender: watch::Sender<i64>) {
    let mut answers = true;
    loop {
        tokio::time::sleep(LOOK).await;
        // On this thread: it takes microseconds.
        match watcher.version() {
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
