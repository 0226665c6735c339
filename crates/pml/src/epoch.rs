//! The write epoch: a number that is another one whenever something may have been changed by a call.
//!
//! What was read before a write may not be what would be read after it, on whichever server: a `git:checkout` changes what
//! `fs:read` gives. So every call that is not known to read only counts before it is sent and once more when it has ended,
//! however it ended. Whoever keeps what was read keeps the [`Mark`] of the moment its reading began with it, and uses it
//! only while the mark is the same. Servers that their operator declared `isolated` count for themselves alone.
//!
//! Writes of this process count at once; those of other processes on the same database as soon as they are stored, some
//! milliseconds later. Calls that only read cost nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pml_model::ServerName;
use pml_store::{Process, Store};

/// The epoch of all servers.
pub struct Epoch {
    store: Store,
    process: Process,
    own: Mutex<HashMap<Reach, u64>>,
    /// What others wrote, and the state of the database it was read in.
    others: Mutex<Option<(i64, BTreeMap<String, i64>)>>,
    /// For which counts one more is on its way into the database, and not there yet.
    queued: Mutex<HashMap<Reach, Arc<AtomicBool>>>,
}

/// How far a write may have reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Any server.
    Everywhere,
    /// An isolated one, alone.
    Only(ServerName),
}

/// A moment, told from another by what was written in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark {
    own: u64,
    others: i64,
}

impl Mark {
    /// How often anybody was about to write or had written, up to that moment; every process counts alike.
    pub fn writes(self) -> i64 {
        self.others.saturating_add_unsigned(self.own)
    }
}

impl Epoch {
    /// The epoch as `process` sees it.
    pub fn new(store: Store, process: Process) -> Epoch {
        Epoch { store, process, own: Mutex::default(), others: Mutex::default(), queued: Mutex::default() }
    }

    /// The mark of this moment for what is read from `server`. Takes some microseconds, and longer only where the database
    /// changed meanwhile.
    ///
    /// # Errors
    /// The database cannot be read, so nobody knows what others wrote.
    pub fn for_server(&self, server: &ServerName) -> Result<Mark, pml_store::Error> {
        let own = {
            let own = lock(&self.own);
            let count = |reach: &Reach| own.get(reach).copied().unwrap_or_default();
            count(&Reach::Everywhere) + count(&Reach::Only(server.clone()))
        };
        let version = self.store.data_version()?;
        let mut others = lock(&self.others);
        if others.as_ref().is_none_or(|(seen, _)| *seen != version) {
            *others = Some((version, self.store.writes_of_others(&self.process)?));
        }
        let count = |name: &str| others.as_ref().and_then(|(_, all)| all.get(name)).copied().unwrap_or(0);
        Ok(Mark { own, others: count("") + count(server.as_str()) })
    }

    /// Counts a call that may change something, now and when what is returned goes.
    #[must_use = "the call counts as over when this goes"]
    pub fn writing(&self, reach: Reach) -> Writing<'_> {
        self.count(&reach);
        Writing { epoch: self, reach }
    }

    /// Waits until other processes can see what this one wrote.
    pub async fn settle(&self) {
        let waits = lock(&self.queued).values().any(|queued| queued.load(Ordering::SeqCst));
        if waits && let Err(error) = self.store.flush().await {
            tracing::warn!(%error, "other processes do not hear of a write");
        }
    }

    fn count(&self, reach: &Reach) {
        *lock(&self.own).entry(reach.clone()).or_default() += 1;
        let queued = Arc::clone(lock(&self.queued).entry(reach.clone()).or_default());
        // One that others cannot have seen yet stands for this one too.
        if queued.swap(true, Ordering::SeqCst) {
            return;
        }
        let server = match reach {
            Reach::Everywhere => None,
            Reach::Only(server) => Some(server.as_str()),
        };
        let (begun, ended) = (Arc::clone(&queued), queued);
        let begun = move || begun.store(false, Ordering::SeqCst);
        self.store.count_write(&self.process, server, begun, move |stored| {
            if let Err(error) = stored {
                ended.store(false, Ordering::SeqCst);
                tracing::warn!(%error, "other processes do not hear of a write");
            }
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that may change something and is under way.
pub struct Writing<'e> {
    epoch: &'e Epoch,
    reach: Reach,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.epoch.count(&self.reach);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> ServerName {
        ServerName::new(name).unwrap()
    }

    fn open(path: &std::path::Path) -> Store {
        Store::from(pml_store::BlockingStore::open(path).unwrap())
    }

    fn epoch(store: &Store, pid: u32) -> Epoch {
        Epoch::new(store.clone(), Process { pid, started: "here".to_owned() })
    }

    fn marks(epoch: &Epoch) -> [Mark; 2] {
        ["a", "alone"].map(|name| epoch.for_server(&server(name)).unwrap())
    }

    #[test]
    fn a_write_counts_before_and_after_and_an_isolated_one_for_its_server_alone() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&dir.path().join("pml.db"));
        let epoch = epoch(&store, 1);
        let before = marks(&epoch);
        assert_eq!(marks(&epoch), before);
        let writing = epoch.writing(Reach::Everywhere);
        let during = marks(&epoch);
        drop(writing);
        let after = marks(&epoch);
        for name in [0, 1] {
            assert!(
                before[name] != during[name] && during[name] != after[name] && before[name] != after[name]
            );
        }
        drop(epoch.writing(Reach::Only(server("alone"))));
        let isolated = marks(&epoch);
        assert_eq!(isolated[0], after[0]);
        assert_ne!(isolated[1], after[1]);
    }

    #[test]
    fn own_writes_stay_counted_once_when_they_are_stored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pml.db");
        let store = open(&path);
        let epoch = epoch(&store, 1);
        drop(epoch.writing(Reach::Everywhere));
        let mark = marks(&epoch);
        store.blocking().flush().unwrap();
        assert_eq!(marks(&epoch), mark);
    }

    #[test]
    fn the_writes_of_another_process_count_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pml.db");
        let (ours, theirs) = (open(&path), open(&path));
        let (mine, other) = (epoch(&ours, 1), epoch(&theirs, 2));
        let before = marks(&mine);
        for reach in [Reach::Everywhere, Reach::Only(server("alone"))] {
            drop(other.writing(reach));
        }
        theirs.blocking().flush().unwrap();
        let after = marks(&mine);
        assert_ne!(after[0], before[0]);
        assert!(after[1].others > after[0].others, "{after:?}");
    }
}
