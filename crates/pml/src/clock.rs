//! The wall clock, read in one place. Gateways that share a database server go by its clock, so that a time that one of
//! them stores means the same to the others.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pml_store::Store;
use tokio_util::sync::CancellationToken;

/// By how many milliseconds the clock that this process goes by is ahead of the machine's.
static AHEAD_MS: AtomicI64 = AtomicI64::new(0);

/// 1 s: how often the clock is compared with that of the database server.
const COMPARE: Duration = Duration::from_secs(1);

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let here = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    here.saturating_add(AHEAD_MS.load(Ordering::Relaxed))
}

/// Goes by the clock of the database from now on.
pub(crate) fn follow(store: &Store) {
    AHEAD_MS.store(store.clock_ahead_ms(), Ordering::Relaxed);
}

/// Compares the clock with that of the database until the program ends.
pub(crate) async fn follow_clock(store: Store, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(COMPARE) => follow(&store),
            () = stop.cancelled() => return,
        }
    }
}
