//! Progress bars for long work, on a terminal only.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// 300 ms: work that takes less shows no bar.
const DELAY: Duration = Duration::from_millis(300);
/// 100 ms: how often a bar is drawn at most.
const INTERVAL: Duration = Duration::from_millis(100);
/// The cells of the bar itself.
const CELLS: usize = 24;

/// A bar on standard error, which disappears when dropped. It draws nothing where standard error is no terminal.
#[derive(Debug)]
pub struct ProgressBar {
    label: String,
    began: Instant,
    is_terminal: bool,
    /// When it was last drawn; `None` if it was not yet.
    drawn: Mutex<Option<Instant>>,
}

impl ProgressBar {
    /// A bar for the work that `label` names.
    pub fn new(label: impl Into<String>) -> ProgressBar {
        let is_terminal = std::io::stderr().is_terminal();
        ProgressBar { label: label.into(), began: Instant::now(), is_terminal, drawn: Mutex::default() }
    }

    /// Shows how far the work is. Without a `total` the bar shows the time instead.
    pub fn show(&self, done: usize, total: Option<usize>) {
        if !self.is_terminal || self.began.elapsed() < DELAY {
            return;
        }
        let mut drawn = self.drawn.lock();
        if drawn.is_some_and(|last| last.elapsed() < INTERVAL) {
            return;
        }
        *drawn = Some(Instant::now());
        let line = bar(&self.label, done, total, self.began.elapsed());
        // The end of the line is cleared: what was there before may have been longer.
        write(&format!("\r{line}\u{1b}[K"));
    }

    /// Waits for some work, and meanwhile shows what `progress` tells: how much is done, and of how much.
    pub async fn during<T>(
        &self,
        progress: impl Fn() -> (usize, Option<usize>),
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(INTERVAL) => {
                    let (done, total) = progress();
                    self.show(done, total);
                }
            }
        }
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.drawn.lock().is_some() {
            write("\r\u{1b}[K");
        }
    }
}

fn bar(label: &str, done: usize, total: Option<usize>, time: Duration) -> String {
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{label} {} s", time.as_secs());
    };
    let done = done.min(total);
    let full = CELLS * done / total;
    let cells = "█".repeat(full) + &"░".repeat(CELLS - full);
    format!("{label} {cells} {done}/{total} {}%", 100 * done / total)
}

fn write(text: &str) {
    let mut stream = std::io::stderr().lock();
    // A terminal that is gone needs no bar.
    if stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).is_err() {
        tracing::debug!("nobody sees the progress");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        let time = Duration::from_secs(3);
        assert_eq!(bar("x", 0, Some(8), time), "x ░░░░░░░░░░░░░░░░░░░░░░░░ 0/8 0%");
        assert_eq!(bar("x", 6, Some(8), time), "x ██████████████████░░░░░░ 6/8 75%");
        assert_eq!(bar("x", 9, Some(8), time), "x ████████████████████████ 8/8 100%");
        assert_eq!(bar("x", 2, None, time), "x 3 s");
        assert_eq!(bar("x", 2, Some(0), time), "x 3 s");
    }
}
