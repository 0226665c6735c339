//! The questions that the program asks, asynchronously.
//!
//! Callers know nothing of what answers: it can be exchanged without touching one of them. Questions are asked on
//! threads that may wait. A few methods are synchronous, and say why.

mod audit;
mod capabilities;
mod catalogue;
mod changes;
mod file;
mod learning;
mod people;
mod runs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::spawn_blocking;

use crate::{
    BlockingStore, CacheKey, Change, Entry, Error, Lease, Memory, NewResult, NewRun, Process, Urgency,
};
use changes::Feed;

pub use changes::Changes;

/// The database; clones share it. The last clone to go stores what is queued before it returns.
#[derive(Debug, Clone)]
pub struct Store {
    feed: Arc<Feed>,
    blocking: BlockingStore,
}

impl From<BlockingStore> for Store {
    fn from(blocking: BlockingStore) -> Store {
        Store { feed: Arc::default(), blocking }
    }
}

impl Store {
    /// Opens the database at `path`, makes it where there is none, and brings an older one to the present version.
    ///
    /// # Errors
    /// Those of [`BlockingStore::open`].
    pub async fn open(path: impl Into<PathBuf>) -> Result<Store, Error> {
        let path = path.into();
        Ok(Store::from(waited_for(move || BlockingStore::open(&path)).await?))
    }

    /// The same questions for code that runs on a thread that may wait anyway, such as the one that computes a graph.
    pub fn blocking(&self) -> &BlockingStore {
        &self.blocking
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        self.blocking.path()
    }

    /// See [`BlockingStore::backlog`]; a look at a counter.
    pub fn backlog(&self) -> usize {
        self.blocking.backlog()
    }

    /// Tells of changes by whichever process, at most 100 ms after they were committed. Must be called on a runtime.
    pub fn changes(&self) -> Changes {
        self.feed.subscribe(self.blocking.watcher())
    }

    /// See [`BlockingStore::data_version`]. Synchronous: it takes microseconds, and comes before answers from caches.
    ///
    /// # Errors
    /// Those of [`BlockingStore::data_version`].
    pub fn data_version(&self) -> Result<i64, Error> {
        self.blocking.data_version()
    }

    /// See [`BlockingStore::capability_version`]. Synchronous: it takes microseconds, and comes before every search.
    ///
    /// # Errors
    /// Those of [`BlockingStore::capability_version`].
    pub fn capability_version(&self) -> Result<i64, Error> {
        self.blocking.capability_version()
    }

    /// See [`BlockingStore::cache_drops`]. Synchronous: it takes microseconds, and comes before answers from caches.
    ///
    /// # Errors
    /// Those of [`BlockingStore::cache_drops`].
    pub fn cache_drops(&self) -> Result<i64, Error> {
        self.blocking.cache_drops()
    }

    /// See [`BlockingStore::writes_of_others`]. Synchronous: it takes microseconds, and comes before answers from caches.
    ///
    /// # Errors
    /// Those of [`BlockingStore::writes_of_others`].
    pub fn writes_of_others(&self, process: &Process) -> Result<BTreeMap<String, i64>, Error> {
        self.blocking.writes_of_others(process)
    }

    /// See [`BlockingStore::count_write`]. It queues the change and returns at once.
    pub fn count_write(
        &self,
        process: &Process,
        server: Option<&str>,
        begun: impl FnOnce() + Send + 'static,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        self.blocking.count_write(process, server, begun, done);
    }

    /// See [`BlockingStore::create_run`]. It queues the run and returns at once, so that appends can follow.
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

    /// See [`BlockingStore::append`]. It queues entries in the order of the calls and returns at once.
    pub fn append(
        &self,
        lease: &Lease,
        entries: Vec<Entry>,
        change: Option<Change>,
        urgency: Urgency,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        self.blocking.append(lease, entries, change, urgency, done);
    }

    /// See [`BlockingStore::remember`]. It queues the trace and returns at once.
    pub fn remember(
        &self,
        memory: Memory,
        urgency: Urgency,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        self.blocking.remember(memory, urgency, done);
    }

    /// See [`BlockingStore::cache`]. It queues the result and returns at once.
    pub fn cache(
        &self,
        key: &CacheKey,
        new: &NewResult<'_>,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        self.blocking.cache(key, new, done);
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
        // The program is ending, and nobody waits for this any more.
        Err(_) => std::future::pending().await,
    }
}
