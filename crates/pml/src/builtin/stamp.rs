//! What files and directories were when they were looked at, so that a result made of them is known to be theirs still.
//!
//! A [`Witness`] goes with a call and notes each file and directory before it is read. Should one be replaced while it is
//! read, what was noted is the earlier one, which is not found again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use serde::{Deserialize, Serialize};

/// A file that changed less than this before it was read may change again without its times showing it: clocks of file
/// systems are as coarse as two seconds.
const SETTLED_NS: i128 = 2_000_000_000;
/// How many files and directories are noted; a result of more is not worth comparing.
const MOST: usize = 1_000;

/// What stood at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    path: PathBuf,
    /// Of a symbolic link, what it points to.
    follows: bool,
    /// Nothing where nothing was there.
    found: Option<Identity>,
}

/// Which file it is, and which state of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(found: &Metadata) -> Identity {
        Identity {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Whether its last change is long enough ago.
    fn is_settled(&self, now_ns: i128) -> bool {
        let ago = |(seconds, nanoseconds): (i64, i64)| {
            now_ns - (i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds))
        };
        ago(self.modified).min(ago(self.changed)) >= SETTLED_NS
    }
}

/// Whether everything is still what it was.
pub(super) fn hold(root: &Dir, stamps: &[Stamp]) -> bool {
    stamps.iter().all(|stamp| {
        let found = match stamp.follows {
            true => root.metadata(&stamp.path),
            false => root.symlink_metadata(&stamp.path),
        };
        found.ok().as_ref().map(Identity::of) == stamp.found
    })
}

/// Notes what calls look at.
#[derive(Debug, Clone, Default)]
pub struct Witness(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    calls: usize,
    stamps: Vec<Stamp>,
    /// Something was looked at of which it cannot be told whether it is still the same.
    unsure: bool,
}

impl Witness {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins.
    pub(super) fn begin(&self) {
        self.noted().calls += 1;
    }

    /// What is about to be read stands at `path`; nothing where nothing is there.
    pub(super) fn saw(&self, path: &Path, follows: bool, found: Option<&Metadata>) {
        let found = found.map(Identity::of);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let now = i128::try_from(now).unwrap_or(i128::MAX);
        let mut noted = self.noted();
        noted.unsure |=
            found.as_ref().is_some_and(|found| !found.is_settled(now)) || noted.stamps.len() >= MOST;
        if !noted.unsure {
            noted.stamps.push(Stamp { path: path.to_owned(), follows, found });
        }
    }

    /// Something was looked at that cannot be compared later.
    pub(super) fn cannot_tell(&self) {
        self.noted().unsure = true;
    }

    /// All that was looked at in exactly so many calls; nothing where that is not known.
    pub(crate) fn stamps(&self, calls: usize) -> Option<Vec<Stamp>> {
        let noted = self.noted();
        (!noted.unsure && noted.calls == calls).then(|| noted.stamps.clone())
    }
}
