//! The asynchronous interface of the store.
//!
//! Callers do not see the implementation behind it, so it can be exchanged without touching them. Queries run on
//! threads that may block. A few methods are synchronous; their documentation says why.

mod audit;
mod capabilities;
mod catalogue;
mod changes;
mod file;
mod key_use;
mod learning;
mod mocks;
mod packages;
mod people;
mod person;
mod publications;
mod runs;
mod server_sign_in;
mod versions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pml_model::Principal;
use tokio::runtime::RuntimeFlavor;
use tokio::task::spawn_blocking;

use crate::{
    BlockingStore, CacheKey, Error, JournalEntry, Lease, NewCachedResult, NewRun, ProcessIdentity, RunChange,
    RunMemory, ServerHealth, ToolSpeculation, Urgency,
};
use changes::ChangeFeed;

pub use changes::ChangeSubscription;

/// Handle of the database; clones share it. Dropping the last clone blocks until all queued changes are stored.
#[derive(Debug, Clone)]
pub struct Store {
    feed: Arc<ChangeFeed>,
    blocking: BlockingStore,
}

impl From<BlockingStore> for Store {
    fn from(blocking: BlockingStore) -> Store {
        Store { feed: Arc::default(), blocking }
    }
}

impl Store {
    /// Opens the database at `path`, creates it if it is missing, and migrates an older one to the current version.
    ///
    /// # Errors
    /// Those of [`BlockingStore::open`].
    pub async fn open(path: impl Into<PathBuf>) -> Result<Store, Error> {
        let path = path.into();
        Ok(Store::from(waited_for(move || BlockingStore::open(&path)).await?))
    }

    /// Opens a database of a PostgreSQL server. `beside` is a path in the directory of the key file.
    ///
    /// # Errors
    /// Those of [`BlockingStore::open_postgres`].
    pub async fn open_postgres(url: &str, beside: impl Into<PathBuf>) -> Result<Store, Error> {
        let (url, beside) = (url.to_owned(), beside.into());
        Ok(Store::from(waited_for(move || BlockingStore::open_postgres(&url, &beside)).await?))
    }

    /// See [`BlockingStore::current_process`]. Synchronous: it reads one line of the process table.
    ///
    /// # Errors
    /// Those of [`BlockingStore::current_process`].
    pub fn current_process(&self) -> std::io::Result<ProcessIdentity> {
        self.blocking.current_process()
    }

    /// The blocking interface, for code on a thread that may block anyway, such as the one that computes a graph.
    pub fn blocking(&self) -> &BlockingStore {
        &self.blocking
    }

    /// Path of the database file, or address of the database without its password.
    pub fn path(&self) -> &Path {
        self.blocking.path()
    }

    /// See [`BlockingStore::backlog_bytes`]. Synchronous: it reads one counter.
    pub fn backlog_bytes(&self) -> usize {
        self.blocking.backlog_bytes()
    }

    /// Subscribes to changes by any process. They are reported at most 100 ms after the commit. Must be called on a
    /// runtime.
    pub fn changes(&self) -> ChangeSubscription {
        self.feed.subscribe(self.blocking.watcher())
    }

    /// Stops the task behind [`Store::changes`] and waits for it. Subscribers receive no further changes.
    pub async fn end_change_feed(&self) {
        self.feed.close().await;
    }

    /// From now on changes wait for a database server that is away for some seconds only, and then fail: the program is
    /// ending.
    pub fn begin_closing(&self) {
        self.blocking.inner.backend.begin_closing();
    }

    /// Whether gateways on several machines share the database.
    pub fn is_shared(&self) -> bool {
        self.blocking.watcher().is_remote()
    }

    /// See [`BlockingStore::server_health`]. Synchronous: it reads numbers in memory.
    pub fn server_health(&self) -> Option<ServerHealth> {
        self.blocking.server_health()
    }

    /// See [`BlockingStore::clock_ahead_ms`]. Synchronous: it reads one number in memory.
    pub fn clock_ahead_ms(&self) -> i64 {
        self.blocking.clock_ahead_ms()
    }

    /// See [`BlockingStore::seal_carried`]. Synchronous: it takes microseconds once the key is read.
    ///
    /// # Errors
    /// Those of [`BlockingStore::seal_carried`].
    pub fn seal_carried(&self, purpose: &str, content: &[u8]) -> Result<Vec<u8>, Error> {
        self.on_this_thread(|store| store.seal_carried(purpose, content))
    }

    /// See [`BlockingStore::open_carried`]. Synchronous: it takes microseconds once the key is read.
    ///
    /// # Errors
    /// Those of [`BlockingStore::open_carried`].
    pub fn open_carried(&self, purpose: &str, sealed: Vec<u8>) -> Result<Option<Vec<u8>>, Error> {
        self.on_this_thread(|store| store.open_carried(purpose, sealed))
    }

    /// See [`BlockingStore::data_version`]. Synchronous: with a file it takes microseconds, and it precedes
    /// every cache lookup.
    ///
    /// # Errors
    /// Those of [`BlockingStore::data_version`].
    pub fn data_version(&self) -> Result<i64, Error> {
        self.on_this_thread(BlockingStore::data_version)
    }

    /// See [`BlockingStore::capability_version`]. Synchronous: with a file it takes microseconds, and it precedes
    /// every search.
    ///
    /// # Errors
    /// Those of [`BlockingStore::capability_version`].
    pub fn capability_version(&self) -> Result<i64, Error> {
        self.on_this_thread(BlockingStore::capability_version)
    }

    /// See [`BlockingStore::cache_generation`]. Synchronous: with a file it takes microseconds, and it precedes
    /// every cache lookup.
    ///
    /// # Errors
    /// Those of [`BlockingStore::cache_generation`].
    pub fn cache_generation(&self) -> Result<i64, Error> {
        self.on_this_thread(BlockingStore::cache_generation)
    }

    /// See [`BlockingStore::writes_of_others`]. Synchronous: with a file it takes microseconds, and it precedes
    /// every cache lookup.
    ///
    /// # Errors
    /// Those of [`BlockingStore::writes_of_others`].
    pub fn writes_of_others(&self, process: &ProcessIdentity) -> Result<BTreeMap<String, i64>, Error> {
        self.on_this_thread(|store| store.writes_of_others(process))
    }

    /// See [`BlockingStore::count_write`]. Queues the change and returns at once.
    pub fn count_write(
        &self,
        process: &ProcessIdentity,
        server: Option<&str>,
        begun: impl FnOnce() + Send + 'static,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        self.blocking.count_write(process, server, begun, done);
    }

    /// See [`BlockingStore::add_speculation`]. Queues the change and returns at once.
    pub fn add_speculation(&self, counts: Vec<(Principal, ToolSpeculation)>) {
        self.blocking.add_speculation(counts);
    }

    /// See [`BlockingStore::create_run`]. Queues the run and returns at once, so that appends can follow.
    ///
    /// # Errors
    /// Those of [`BlockingStore::create_run`].
    pub fn create_run(
        &self,
        run: NewRun,
        urgency: Urgency,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<Lease, Error> {
        self.blocking.create_run(run, urgency, done)
    }

    /// See [`BlockingStore::append_journal`]. Queues the entries in the order of the calls and returns at once.
    pub fn append_journal(
        &self,
        lease: &Lease,
        entries: Vec<JournalEntry>,
        change: Option<RunChange>,
        urgency: Urgency,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        self.blocking.append_journal(lease, entries, change, urgency, done);
    }

    /// See [`BlockingStore::store_memory`]. Queues the trace and returns at once.
    pub fn store_memory(
        &self,
        memory: RunMemory,
        urgency: Urgency,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        self.blocking.store_memory(memory, urgency, done);
    }

    /// See [`BlockingStore::cache_result`]. Queues the result and returns at once.
    pub fn cache_result(
        &self,
        key: &CacheKey,
        new: &NewCachedResult<'_>,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        self.blocking.cache_result(key, new, done);
    }

    /// Asks on this thread. A file answers within microseconds, which is less than handing the question to another
    /// thread takes. A server may not answer for seconds, so the tasks of this thread go on elsewhere meanwhile.
    fn on_this_thread<T>(&self, question: impl FnOnce(&BlockingStore) -> T) -> T {
        let has_other_threads = || {
            tokio::runtime::Handle::try_current()
                .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
        };
        match self.blocking.watcher().is_remote() && has_other_threads() {
            true => tokio::task::block_in_place(|| question(&self.blocking)),
            false => question(&self.blocking),
        }
    }

    async fn ask<T: Send + 'static>(&self, question: impl FnOnce(&BlockingStore) -> T + Send + 'static) -> T {
        let store = self.blocking.clone();
        waited_for(move || question(&store)).await
    }
}

async fn waited_for<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down, and no caller awaits this result any more.
        Err(_) => std::future::pending().await,
    }
}
