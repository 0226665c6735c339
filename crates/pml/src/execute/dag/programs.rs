//! The tasks that are programs: those under way, and those that wait for a worker.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

use super::frame::TaskFrame;

/// The number of task programs of one run that have workers at a time: other runs of the process need some too.
const PROGRAMS_AT_ONCE: usize = 16;

/// The task programs of a run, by the index of their tasks.
pub(super) struct TaskPrograms {
    frames: HashMap<usize, TaskFrame>,
    /// The programs that wait for a worker, in order.
    queued: VecDeque<usize>,
    /// The programs whose end is recorded; they are not run again.
    finished: HashSet<usize>,
}

impl TaskPrograms {
    /// No program yet. Those in `finished` have ended already.
    pub(super) fn new(finished: HashSet<usize>) -> TaskPrograms {
        TaskPrograms { frames: HashMap::new(), queued: VecDeque::new(), finished }
    }

    pub(super) fn get(&self, task: usize) -> Option<&TaskFrame> {
        self.frames.get(&task)
    }

    pub(super) fn get_mut(&mut self, task: usize) -> Option<&mut TaskFrame> {
        self.frames.get_mut(&task)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &TaskFrame)> {
        self.frames.iter().map(|(task, frame)| (*task, frame))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut TaskFrame)> {
        self.frames.iter_mut().map(|(task, frame)| (*task, frame))
    }

    pub(super) fn is_finished(&self, task: usize) -> bool {
        self.finished.contains(&task)
    }

    /// Queues the program of `task`, which starts at `now`.
    pub(super) fn queue(&mut self, task: usize, now: i64) {
        self.frames.insert(task, TaskFrame::new(now));
        self.queued.push_back(task);
    }

    /// Queues a program again, before all others.
    pub(super) fn queue_again(&mut self, task: usize, again: TaskFrame) {
        self.frames.insert(task, again);
        self.queued.push_front(task);
    }

    /// The next program that may have a worker.
    pub(super) fn next_queued(&mut self) -> Option<usize> {
        if self.is_full() { None } else { self.queued.pop_front() }
    }

    /// Removes a program that has ended.
    pub(super) fn remove(&mut self, task: usize) -> Option<TaskFrame> {
        self.queued.retain(|queued| *queued != task);
        self.frames.remove(&task)
    }

    /// Stops all programs.
    pub(super) fn stop(&mut self) {
        self.frames.values_mut().for_each(TaskFrame::stop);
        self.queued.clear();
    }

    /// The earliest timeout of a program, and its task.
    pub(super) fn deadline(&self) -> Option<(Instant, usize)> {
        self.iter().filter_map(|(task, frame)| Some((frame.deadline?, task))).min()
    }

    /// The number of deliveries to the programs under way.
    pub(super) fn delivered(&self) -> u32 {
        self.frames.values().map(|frame| frame.clock.delivered()).sum()
    }

    /// Whether nothing happens before the next delivery. Programs that wait for a free worker do nothing until another
    /// one ends.
    pub(super) fn is_quiet(&self) -> bool {
        let full = self.is_full();
        let waits = |frame: &TaskFrame| full && frame.is_new();
        let quiet = self.frames.values().all(|frame| frame.is_quiet() || waits(frame));
        quiet && (full || self.queued.is_empty())
    }

    fn is_full(&self) -> bool {
        self.frames.values().filter(|frame| frame.has_worker()).count() >= PROGRAMS_AT_ONCE
    }
}
