//! Detects changes of configuration files.
//!
//! It polls once a second instead of using system events: that works the same on every system and file system, sees
//! files that are replaced or do not exist yet, and needs no thread. It only reports; the caller reloads, and keeps
//! the old configuration where the new one is invalid.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pml_model::Digest;

use super::{ConfigSource, disk};

/// 1 s: how often files are polled; a person who saves a file does not notice the delay.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Watches the files that a configuration was read from.
#[derive(Debug)]
pub struct ConfigWatcher {
    files: Vec<WatchedFile>,
    /// Files that changed and were not reported yet.
    unreported: Vec<PathBuf>,
}

#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    digest: Option<Digest>,
    /// The file's stamp, once two polls in a row agree. A single stamp proves nothing: the file may change again
    /// within the resolution of its clock.
    stamp: Option<WatchStamp>,
    is_settled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct WatchStamp {
    modified: Option<SystemTime>,
    size_bytes: u64,
    /// Inode and change time, where the system has them.
    identity: Option<(u64, i64, i64)>,
}

impl ConfigWatcher {
    /// Watches `sources` for changes since they were read, including those before this call.
    pub fn new(sources: &[ConfigSource]) -> ConfigWatcher {
        let files = sources.iter().map(|source| WatchedFile {
            path: source.path.clone(),
            digest: source.digest.clone(),
            stamp: None,
            is_settled: false,
        });
        ConfigWatcher { files: files.collect(), unreported: Vec::new() }
    }

    /// Waits until files have changed and then stayed unchanged for one interval, and returns them. Dropping the
    /// future loses no change.
    pub async fn changed(&mut self) -> Vec<PathBuf> {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let news = self.poll();
            if news.is_empty() && !self.unreported.is_empty() {
                return std::mem::take(&mut self.unreported);
            }
            self.unreported.extend(news);
            self.unreported.sort();
            self.unreported.dedup();
        }
    }

    /// Polls once and returns the files that changed since the last poll. Reads small files, so it blocks for
    /// microseconds.
    pub fn poll(&mut self) -> Vec<PathBuf> {
        self.files.iter_mut().filter_map(|file| file.look().then(|| file.path.clone())).collect()
    }
}

impl WatchedFile {
    fn look(&mut self) -> bool {
        let stamp = stamp(&self.path);
        if self.is_settled && stamp == self.stamp {
            return false;
        }
        self.is_settled = stamp == self.stamp;
        self.stamp = stamp;
        // An unreadable file is not a change; the next poll tries again.
        let Ok(bytes) = disk::read(&self.path) else { return false };
        let digest = bytes.as_deref().map(Digest::of);
        let changed = digest != self.digest;
        self.digest = digest;
        changed
    }
}

fn stamp(path: &Path) -> Option<WatchStamp> {
    let metadata = fs::metadata(path).ok()?;
    Some(WatchStamp {
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

    fn source(path: &Path, content: Option<&str>) -> ConfigSource {
        ConfigSource { path: path.to_owned(), digest: content.map(|text| Digest::of(text.as_bytes())) }
    }

    #[test]
    fn every_way_to_change_a_file_is_seen_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pml.toml");
        let mut watcher = ConfigWatcher::new(&[source(&path, None)]);
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
        assert_eq!(ConfigWatcher::new(&[source(&path, Some("old"))]).poll(), [path]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_changes_is_told_once_when_it_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("1"), dir.path().join("2"));
        let mut watcher = ConfigWatcher::new(&[source(&one, None), source(&two, None)]);
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
        let mut watcher = ConfigWatcher::new(&[source(&path, None)]);
        fs::write(&path, "a").unwrap();
        let waited = tokio::time::timeout(POLL_INTERVAL + POLL_INTERVAL / 2, watcher.changed()).await;
        assert!(waited.is_err());
        assert_eq!(watcher.changed().await, [path]);
    }
}
