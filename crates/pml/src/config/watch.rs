//! Notices that a config file changed.
//!
//! It looks once a second instead of asking the system for events: that works the same on every
//! system and file system, sees files that are replaced or do not exist yet, and needs no thread. It
//! only tells; the caller loads again, and keeps the old config where the new one is broken.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pml_model::Digest;

use super::{Source, disk};

/// How often files are looked at; a person who saves a file does not notice the delay.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Watches the files a config was read from.
#[derive(Debug)]
pub struct Watcher {
    files: Vec<Watched>,
    /// What changed and was not told yet.
    untold: Vec<PathBuf>,
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    digest: Option<Digest>,
    /// The file's stamp at the last two looks where they agree. A single stamp proves nothing: the
    /// file may change again within the resolution of the clock that made it.
    stamp: Option<Stamp>,
    settled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    size_bytes: u64,
    /// Which file it is and when anything about it changed, where the system tells.
    identity: Option<(u64, i64, i64)>,
}

impl Watcher {
    /// Watches `sources` for being other than they were when they were read; what happened between
    /// reading and watching is not missed.
    pub fn new(sources: &[Source]) -> Watcher {
        let files = sources.iter().map(|source| Watched {
            path: source.path.clone(),
            digest: source.digest.clone(),
            stamp: None,
            settled: false,
        });
        Watcher { files: files.collect(), untold: Vec::new() }
    }

    /// Waits until files changed and then kept still for one interval, and says which. Dropping the
    /// future loses no change.
    pub async fn changed(&mut self) -> Vec<PathBuf> {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let news = self.poll();
            if news.is_empty() && !self.untold.is_empty() {
                return std::mem::take(&mut self.untold);
            }
            self.untold.extend(news);
            self.untold.sort();
            self.untold.dedup();
        }
    }

    /// Looks once: the files that are other than at the last look. Reads small files, so it blocks
    /// for microseconds.
    pub fn poll(&mut self) -> Vec<PathBuf> {
        self.files.iter_mut().filter_map(|file| file.look().then(|| file.path.clone())).collect()
    }
}

impl Watched {
    fn look(&mut self) -> bool {
        let stamp = stamp(&self.path);
        if self.settled && stamp == self.stamp {
            return false;
        }
        self.settled = stamp == self.stamp;
        self.stamp = stamp;
        // A file that cannot be read now is not a change; the next look tries again.
        let Ok(bytes) = disk::read(&self.path) else { return false };
        let digest = bytes.as_deref().map(Digest::of);
        let changed = digest != self.digest;
        self.digest = digest;
        changed
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some(Stamp {
        modified: metadata.modified().ok(),
        size_bytes: metadata.len(),
        identity: identity(&metadata),
    })
}

#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> Option<(u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((metadata.ino(), metadata.ctime(), metadata.ctime_nsec()))
}

#[cfg(not(unix))]
fn identity(_metadata: &fs::Metadata) -> Option<(u64, i64, i64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &Path, content: Option<&str>) -> Source {
        Source { path: path.to_owned(), digest: content.map(|text| Digest::of(text.as_bytes())) }
    }

    #[test]
    fn every_way_to_change_a_file_is_seen_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pml.toml");
        let mut watcher = Watcher::new(&[source(&path, None)]);
        assert!(watcher.poll().is_empty(), "a file that is still not there");
        for (what, content) in [("created", "aa"), ("same length", "bb"), ("longer", "ccc")] {
            fs::write(&path, content).unwrap();
            assert_eq!(watcher.poll(), std::slice::from_ref(&path), "{what}");
            assert!(watcher.poll().is_empty(), "{what}, second look");
        }
        let other = dir.path().join("other");
        fs::write(&other, "ddd").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(watcher.poll(), std::slice::from_ref(&path), "replaced by rename");
        fs::write(&path, "ddd").unwrap();
        assert!(watcher.poll().is_empty(), "written again with the same content");
        fs::remove_file(&path).unwrap();
        assert_eq!(watcher.poll(), std::slice::from_ref(&path), "removed");
        assert!(watcher.poll().is_empty());
    }

    #[test]
    fn a_change_between_reading_and_watching_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pml.toml");
        fs::write(&path, "new").unwrap();
        assert_eq!(Watcher::new(&[source(&path, Some("old"))]).poll(), [path]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_changes_is_told_once_when_it_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("1"), dir.path().join("2"));
        let mut watcher = Watcher::new(&[source(&one, None), source(&two, None)]);
        let start = tokio::time::Instant::now();
        let burst = async {
            fs::write(&one, "a").unwrap();
            tokio::time::sleep(POLL_INTERVAL + POLL_INTERVAL / 2).await;
            fs::write(&two, "b").unwrap();
            fs::write(&one, "c").unwrap();
        };
        let (changed, ()) = tokio::join!(watcher.changed(), burst);
        assert_eq!(changed, [one, two]);
        assert_eq!(start.elapsed().as_secs(), 3, "the third look found nothing new");
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_wait_loses_no_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1");
        let mut watcher = Watcher::new(&[source(&path, None)]);
        fs::write(&path, "a").unwrap();
        let waited = tokio::time::timeout(POLL_INTERVAL + POLL_INTERVAL / 2, watcher.changed()).await;
        assert!(waited.is_err());
        assert_eq!(watcher.changed().await, [path]);
    }
}
