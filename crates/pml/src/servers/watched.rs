//! The resources of one server that clients watch. They outlive its connections: after a restart each is subscribed to
//! again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use pml_mcp::client::{Connection, RequestFailure};
use pml_mcp::{Caller, RpcError, code};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// The resources that clients watch, each with its watchers.
#[derive(Debug, Default)]
pub struct WatchedResources {
    /// Locked while the server is asked, so that it hears of one subscription and its end in that order.
    watchers: Mutex<HashMap<String, Vec<Watcher>>>,
}

/// A session, or a `subscriptions/listen` request, that watches a resource.
#[derive(Debug)]
struct Watcher {
    session: u64,
    gone: CancellationToken,
}

/// How long a server may take to subscribe to a resource or to end that.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of watched resources of one server.
const MAX_WATCHED: usize = 1_000;

impl WatchedResources {
    /// Whether a client that is still there watches a resource.
    pub fn has_watchers(&self) -> bool {
        let here = |watchers: &Vec<Watcher>| watchers.iter().any(|watcher| !watcher.gone.is_cancelled());
        // Where it is locked, a client just begins or ends a subscription.
        self.watchers.try_lock().map_or(true, |watchers| watchers.values().any(here))
    }

    /// Has `caller` watch a resource until it ends that or is gone. The server is asked if nobody watched it before.
    ///
    /// # Errors
    /// The server refuses, or cannot be reached.
    pub async fn watch(
        &self,
        connection: &Connection,
        uri: &str,
        caller: &Caller,
    ) -> Result<(), RequestFailure> {
        let mut all = self.watchers.lock().await;
        drop_gone(&mut all, connection).await;
        if !all.contains_key(uri) {
            if all.len() >= MAX_WATCHED {
                let full =
                    format!("clients watch {MAX_WATCHED} of its resources already, which is the limit");
                return Err(RequestFailure::Rpc(RpcError::new(code::INTERNAL_ERROR, full)));
            }
            connection.watch_resource(uri, Instant::now() + PATIENCE).await?;
        }
        let watchers = all.entry(uri.to_owned()).or_default();
        if !watchers.iter().any(|watcher| watcher.session == caller.session()) {
            watchers.push(Watcher { session: caller.session(), gone: caller.session_end().clone() });
        }
        Ok(())
    }

    /// Has `caller` watch a resource no longer. The server is told if nobody else does.
    pub async fn unwatch(&self, connection: &Connection, uri: &str, caller: &Caller) {
        let mut all = self.watchers.lock().await;
        if let Some(watchers) = all.get_mut(uri) {
            watchers.retain(|watcher| watcher.session != caller.session());
        }
        drop_gone(&mut all, connection).await;
    }

    /// Subscribes again on the connection of a server that was restarted. Returns the resources that are watched, each
    /// of which may have changed meanwhile.
    pub async fn renew(&self, connection: &Connection) -> Vec<String> {
        let mut all = self.watchers.lock().await;
        all.retain(|_, watchers| {
            watchers.retain(|watcher| !watcher.gone.is_cancelled());
            !watchers.is_empty()
        });
        let mut renewed = Vec::with_capacity(all.len());
        for uri in all.keys() {
            match connection.watch_resource(uri, Instant::now() + PATIENCE).await {
                Ok(()) => renewed.push(uri.clone()),
                Err(error) => tracing::warn!(uri, %error, "a resource can no longer be watched"),
            }
        }
        renewed
    }
}

/// Ends the subscriptions that nobody needs any more.
async fn drop_gone(all: &mut HashMap<String, Vec<Watcher>>, connection: &Connection) {
    let mut ended = Vec::new();
    all.retain(|uri, watchers| {
        watchers.retain(|watcher| !watcher.gone.is_cancelled());
        if watchers.is_empty() {
            ended.push(uri.clone());
        }
        !watchers.is_empty()
    });
    for uri in ended {
        if let Err(error) = connection.unwatch_resource(&uri, Instant::now() + PATIENCE).await {
            tracing::debug!(uri, %error, "a server did not end a subscription");
        }
    }
}
