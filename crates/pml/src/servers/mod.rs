//! The downstream servers: started on demand, supervised, restarted, and ended with the program.
//!
//! Each server is an independent [`ServerHandle`]: a failure of one does not affect the others or their callers.

mod handle;
mod listing;
pub mod resource_uri;
mod usage;
mod watched;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use pml_model::ServerName;
use tokio::sync::mpsc;

pub use handle::{
    ServerEvent, ServerEventKind, ServerHandle, ServerStatus, ServerUnavailable, ServerUseGuard,
};
pub use listing::ToolListing;
pub use usage::CallPurpose;
pub use watched::WatchedResources;

use crate::config;
use crate::sign_in::ServerAuthorizer;

/// All configured servers.
#[derive(Debug)]
pub struct Servers {
    slots: RwLock<BTreeMap<ServerName, Arc<ServerHandle>>>,
    told: mpsc::Sender<ServerEvent>,
}

impl Servers {
    /// No servers yet; `told` receives all their events.
    pub fn new(told: mpsc::Sender<ServerEvent>) -> Servers {
        Servers { slots: RwLock::default(), told }
    }

    /// The server with that name.
    pub fn get(&self, name: &ServerName) -> Option<Arc<ServerHandle>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Every server, sorted by name.
    pub fn all(&self) -> Vec<Arc<ServerHandle>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Changes the servers to `wanted`: unchanged ones keep running, others are ended.
    pub async fn apply(&self, wanted: Vec<ServerSpec>) {
        let ended = {
            let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
            let mut before = std::mem::take(&mut *slots);
            for wanted in wanted {
                let name = wanted.settings.name.clone();
                let slot = match before.remove(&name) {
                    Some(same) if same.is_for(&wanted) => same,
                    Some(other) => {
                        before.insert(name.clone(), other);
                        Arc::new(ServerHandle::new(wanted, self.told.clone()))
                    }
                    None => Arc::new(ServerHandle::new(wanted, self.told.clone())),
                };
                slots.insert(name, slot);
            }
            before
        };
        futures_util::future::join_all(ended.values().map(|slot| slot.close())).await;
    }

    /// Ends every server; returns when all are gone.
    pub async fn close(&self) {
        futures_util::future::join_all(self.all().iter().map(|slot| slot.close())).await;
    }
}

/// The specification of a server.
#[derive(Debug)]
pub struct ServerSpec {
    /// The server's section of the configuration.
    pub settings: config::ServerConfig,
    /// The complete environment of its process.
    pub env: BTreeMap<String, String>,
    /// Whether it may be started, or waits for a person's acceptance.
    pub accepted: bool,
    /// The era it used last, if known.
    pub era: Option<pml_mcp::Era>,
    /// Gives out the tokens of the operator, if people sign in to the server.
    pub authorizer: Option<Arc<ServerAuthorizer>>,
}
