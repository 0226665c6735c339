//! The processor time of another process, where the system reports it.

use std::collections::HashMap;
use std::time::Duration;

/// The processor time of each thread of a process until now.
pub(super) struct ThreadTimes(HashMap<String, Duration>);

impl ThreadTimes {
    /// The times of a process; `None` where the system does not report them.
    pub(super) fn of(pid: u32) -> Option<ThreadTimes> {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let time = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            let time = Duration::from_nanos(text.split_ascii_whitespace().next()?.parse().ok()?);
            Some((thread.file_name().to_string_lossy().into_owned(), time))
        };
        let times: HashMap<String, Duration> = threads.flatten().filter_map(time).collect();
        (!times.is_empty()).then_some(ThreadTimes(times))
    }

    /// The time that the threads took since `earlier`. What threads took that have ended meanwhile is not known.
    pub(super) fn since(&self, earlier: &ThreadTimes) -> Duration {
        let before = |thread: &String| earlier.0.get(thread).copied().unwrap_or_default();
        self.0.iter().map(|(thread, time)| time.saturating_sub(before(thread))).sum()
    }
}

/// The child processes of this one.
pub(super) fn children() -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let of = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).ok();
    let all = threads.flatten().filter_map(of).collect::<Vec<_>>().join(" ");
    all.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time_and_going_back_takes_none() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let start = ThreadTimes::of(child.id()).unwrap();
        let worked = loop {
            let now = ThreadTimes::of(child.id()).unwrap();
            if now.since(&start) > Duration::ZERO {
                break now;
            }
            std::thread::yield_now();
        };
        assert_eq!(start.since(&worked), Duration::ZERO);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
