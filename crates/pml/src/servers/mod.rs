//! The downstream servers: started when needed, watched, started again, ended with us.
//!
//! Each server is a [`Slot`] that lives on its own: whatever one of them does, the others and the
//! callers of the others do not notice.

mod slot;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use pml_model::ServerName;
use tokio::sync::mpsc;

pub use slot::{InUse, Opened, Slot, Status, Told, Unavailable, What};

use crate::config;

/// All servers that the configuration names.
#[derive(Debug)]
pub struct Servers {
    slots: RwLock<BTreeMap<ServerName, Arc<Slot>>>,
    told: mpsc::Sender<Told>,
}

impl Servers {
    /// No servers yet; `told` hears of everything that happens to them.
    pub fn new(told: mpsc::Sender<Told>) -> Servers {
        Servers { slots: RwLock::default(), told }
    }

    /// The server of that name.
    pub fn get(&self, name: &ServerName) -> Option<Arc<Slot>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Every server, by name.
    pub fn all(&self) -> Vec<Arc<Slot>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Makes the servers those of `wanted`: unchanged ones go on undisturbed, others are ended.
    pub async fn apply(&self, wanted: Vec<Wanted>) {
        let ended = {
            let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
            let mut before = std::mem::take(&mut *slots);
            for wanted in wanted {
                let name = wanted.settings.name.clone();
                let slot = match before.remove(&name) {
                    Some(same) if same.is_for(&wanted) => same,
                    Some(other) => {
                        before.insert(name.clone(), other);
                        Arc::new(Slot::new(wanted, self.told.clone()))
                    }
                    None => Arc::new(Slot::new(wanted, self.told.clone())),
                };
                slots.insert(name, slot);
            }
            before
        };
        futures_util::future::join_all(ended.values().map(|slot| slot.close())).await;
    }

    /// Ends every server; returns when those that were ready are gone.
    pub async fn close(&self) {
        futures_util::future::join_all(self.all().iter().map(|slot| slot.close())).await;
    }
}

/// A server as it should be.
#[derive(Debug)]
pub struct Wanted {
    /// From the configuration.
    pub settings: config::Server,
    /// The whole environment of its process.
    pub env: BTreeMap<String, String>,
    /// Whether it may be started, or waits for a person's word.
    pub accepted: bool,
    /// How it spoke the last time.
    pub era: Option<pml_mcp::Era>,
}
