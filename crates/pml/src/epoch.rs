//! The write epoch: a number that changes whenever a call may have changed something.
//!
//! What was read before a write may differ after it, on any server: a `git:checkout` changes what `fs:read` returns. So
//! every call that is not known to be read-only counts before it is sent and again when it has ended, however it ended.
//! A cache entry stores the [`EpochMark`] from before its first read and is valid only while the mark is unchanged.
//! Servers that their operator declared `isolated` have a count of their own.
//!
//! Writes of this process count at once; those of other processes on the same database as soon as they are stored, some
//! milliseconds later. Read-only calls cost nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pml_model::ServerName;
use pml_store::{ProcessIdentity, Store};

/// The epoch of all servers.
pub struct Epoch {
    store: Store,
    process: ProcessIdentity,
    own: Mutex<HashMap<WriteReach, u64>>,
    /// The counts of other processes, and the database version at which they were read.
    others: Mutex<Option<(i64, BTreeMap<String, i64>)>>,
    /// The counts whose increment is queued for the database and not stored yet.
    queued: Mutex<HashMap<WriteReach, Arc<AtomicBool>>>,
}

/// The servers that a write may have affected.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WriteReach {
    /// Any server.
    Everywhere,
    /// Only this isolated server.
    Only(ServerName),
}

impl WriteReach {
    /// The reach of a write at `server`.
    pub fn of(server: &ServerName, isolated: bool) -> WriteReach {
        if isolated { WriteReach::Only(server.clone()) } else { WriteReach::Everywhere }
    }

    /// Whether reads from `server` may be affected.
    pub fn covers(&self, server: &ServerName) -> bool {
        match self {
            WriteReach::Everywhere => true,
            WriteReach::Only(only) => only == server,
        }
    }
}

/// The state of the epoch at one moment; equal marks mean that nothing was written in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(test, derive(Default))]
pub struct EpochMark {
    own: u64,
    others: i64,
}

impl EpochMark {
    /// The number of started and finished writes up to that moment; all processes count alike.
    pub fn writes(self) -> i64 {
        self.others.saturating_add_unsigned(self.own)
    }

    /// The number of writes of other processes up to that moment.
    pub fn writes_of_others(self) -> i64 {
        self.others
    }
}

impl Epoch {
    /// The process that this epoch belongs to.
    pub fn process(&self) -> &ProcessIdentity {
        &self.process
    }

    /// The epoch as `process` sees it.
    pub fn new(store: Store, process: ProcessIdentity) -> Epoch {
        Epoch { store, process, own: Mutex::default(), others: Mutex::default(), queued: Mutex::default() }
    }

    /// The present mark for reads from `server`. It takes some microseconds, and longer only if the database changed
    /// meanwhile.
    ///
    /// # Errors
    /// The database cannot be read, so the writes of other processes are unknown.
    pub fn mark_for_server(&self, server: &ServerName) -> Result<EpochMark, pml_store::Error> {
        let own = {
            let own = lock(&self.own);
            let count = |reach: &WriteReach| own.get(reach).copied().unwrap_or_default();
            count(&WriteReach::Everywhere) + count(&WriteReach::Only(server.clone()))
        };
        let version = self.store.data_version()?;
        // Asked without the lock: a server that does not answer must not hold up whoever needs the counts.
        if lock(&self.others).as_ref().is_none_or(|(seen, _)| *seen != version) {
            let counts = self.store.writes_of_others(&self.process)?;
            *lock(&self.others) = Some((version, counts));
        }
        let others = lock(&self.others);
        let count = |name: &str| others.as_ref().and_then(|(_, all)| all.get(name)).copied().unwrap_or(0);
        Ok(EpochMark { own, others: count("") + count(server.as_str()) })
    }

    /// Counts a call that may change something, now and when the guard is dropped.
    #[must_use = "the call counts as over when this goes"]
    pub fn begin_write(&self, reach: WriteReach) -> WriteGuard<'_> {
        self.count(&reach);
        WriteGuard { epoch: self, reach }
    }

    /// Waits until other processes can see the writes of this one.
    pub async fn flush_writes(&self) {
        let waits = lock(&self.queued).values().any(|queued| queued.load(Ordering::SeqCst));
        if waits && let Err(error) = self.store.flush().await {
            tracing::warn!(%error, "other processes do not hear of a write");
        }
    }

    fn count(&self, reach: &WriteReach) {
        *lock(&self.own).entry(reach.clone()).or_default() += 1;
        let queued = Arc::clone(lock(&self.queued).entry(reach.clone()).or_default());
        // An increment that is not stored yet covers this write too.
        if queued.swap(true, Ordering::SeqCst) {
            return;
        }
        let server = match reach {
            WriteReach::Everywhere => None,
            WriteReach::Only(server) => Some(server.as_str()),
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

/// A call under way that may change something.
pub struct WriteGuard<'e> {
    epoch: &'e Epoch,
    reach: WriteReach,
}

impl Drop for WriteGuard<'_> {
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
        Epoch::new(store.clone(), ProcessIdentity { pid, started: "here".to_owned() })
    }

    fn marks(epoch: &Epoch) -> [EpochMark; 2] {
        ["a", "alone"].map(|name| epoch.mark_for_server(&server(name)).unwrap())
    }

    #[test]
    fn a_write_counts_before_and_after_and_an_isolated_one_for_its_server_alone() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&dir.path().join("pml.db"));
        let epoch = epoch(&store, 1);
        let before = marks(&epoch);
        assert_eq!(marks(&epoch), before);
        let writing = epoch.begin_write(WriteReach::Everywhere);
        let during = marks(&epoch);
        drop(writing);
        let after = marks(&epoch);
        for name in [0, 1] {
            assert!(
                before[name] != during[name] && during[name] != after[name] && before[name] != after[name]
            );
        }
        drop(epoch.begin_write(WriteReach::Only(server("alone"))));
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
        drop(epoch.begin_write(WriteReach::Everywhere));
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
        for reach in [WriteReach::Everywhere, WriteReach::Only(server("alone"))] {
            drop(other.begin_write(reach));
        }
        theirs.blocking().flush().unwrap();
        let after = marks(&mine);
        assert_ne!(after[0], before[0]);
        assert!(after[1].others > after[0].others, "{after:?}");
    }
}
