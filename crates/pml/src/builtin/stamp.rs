//! Stamps of files and directories, taken when they are read, so that a cached result can be checked against them
//! later.
//!
//! A [`ReadRecorder`] accompanies a call and takes the stamp of each file and directory before it is read. If one is
//! replaced during the read, its stamp is that of the earlier one, which will not match again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use serde::{Deserialize, Serialize};

/// 2 s: a file that changed less than this before it was read may change again without a visible change of its times,
/// since the clocks of file systems are as coarse as two seconds.
const SETTLED_NS: i128 = 2_000_000_000;
/// The largest number of stamps; a result from more files is not worth checking.
const MOST: usize = 1_000;

/// The state of a path when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStamp {
    path: PathBuf,
    /// Whether a symbolic link was followed.
    follows: bool,
    /// `None` where nothing existed at the path.
    found: Option<FileIdentity>,
}

/// The identity of a file and of its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileIdentity {
    fn of(found: &Metadata) -> FileIdentity {
        FileIdentity {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Whether its last change is at least `SETTLED_NS` ago.
    fn is_settled(&self, now_ns: i128) -> bool {
        let ago = |(seconds, nanoseconds): (i64, i64)| {
            now_ns - (i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds))
        };
        ago(self.modified).min(ago(self.changed)) >= SETTLED_NS
    }
}

/// Whether every stamp still matches.
pub(super) fn stamps_match(root: &Dir, stamps: &[PathStamp]) -> bool {
    stamps.iter().all(|stamp| {
        let found = match stamp.follows {
            true => root.metadata(&stamp.path),
            false => root.symlink_metadata(&stamp.path),
        };
        found.ok().as_ref().map(FileIdentity::of) == stamp.found
    })
}

/// Records the files and directories that calls read.
#[derive(Debug, Clone, Default)]
pub struct ReadRecorder(Arc<Mutex<RecordedReads>>);

#[derive(Debug, Default)]
struct RecordedReads {
    calls: usize,
    stamps: Vec<PathStamp>,
    /// Whether something was read that cannot be checked later.
    is_incomplete: bool,
}

impl ReadRecorder {
    fn lock(&self) -> MutexGuard<'_, RecordedReads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call that begins.
    pub(super) fn begin_call(&self) {
        self.lock().calls += 1;
    }

    /// Records the state of `path`, which is about to be read; `None` where nothing is there.
    pub(super) fn record_path(&self, path: &Path, follows: bool, found: Option<&Metadata>) {
        let found = found.map(FileIdentity::of);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let now = i128::try_from(now).unwrap_or(i128::MAX);
        let mut noted = self.lock();
        noted.is_incomplete |=
            found.as_ref().is_some_and(|found| !found.is_settled(now)) || noted.stamps.len() >= MOST;
        if !noted.is_incomplete {
            noted.stamps.push(PathStamp { path: path.to_owned(), follows, found });
        }
    }

    /// Records a read that cannot be checked later.
    pub(crate) fn record_unknown(&self) {
        self.lock().is_incomplete = true;
    }

    /// Adds what another recorder recorded.
    pub(crate) fn absorb(&self, other: &ReadRecorder) {
        let other = std::mem::take(&mut *other.lock());
        let mut noted = self.lock();
        noted.calls += other.calls;
        noted.stamps.extend(other.stamps);
        noted.is_incomplete |= other.is_incomplete;
    }

    /// The stamps of exactly this many calls; `None` where they are incomplete.
    pub(crate) fn stamps(&self, calls: usize) -> Option<Vec<PathStamp>> {
        let noted = self.lock();
        (!noted.is_incomplete && noted.calls == calls).then(|| noted.stamps.clone())
    }
}
