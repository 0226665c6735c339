//! The scheduler of a DAG: a pure state machine over task indexes.
//!
//! It knows the dependencies and how each task ended, and nothing about what tasks do. Its steps depend on that alone,
//! not on the order in which concurrent tasks end. So a resumed run reaches its former state by being given the same
//! ends.

use std::collections::BTreeSet;

use crate::plan::Pause;

/// Milliseconds: the backoff before the first retry; it doubles with each further one.
const FIRST_REST_MS: u64 = 200;
/// Milliseconds: the longest backoff.
const LONGEST_REST_MS: u64 = 10_000;

/// The scheduling properties of a task.
#[derive(Debug, Clone, Default)]
pub struct ScheduledTask {
    /// The indexes of the tasks it depends on.
    pub after: Vec<usize>,
    /// Whether its dependents run even if it fails.
    pub safe_to_fail: bool,
    /// The number of retries after the first attempt.
    pub retries: u32,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskEnd {
    /// It returned a result.
    Done,
    /// It failed.
    Failed,
    /// It did not run, because a dependency failed.
    Skipped,
}

/// The outcome of one attempt of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The attempt succeeded.
    Succeeded,
    /// The attempt failed, and a retry may succeed.
    FailedTransiently,
    /// The attempt failed, and a retry would fail too.
    Failed,
}

/// A step to carry out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleStep {
    /// Start an attempt of this task.
    Start {
        /// Index of the task in the document.
        task: usize,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// Wait this long, then report that the time has passed.
    Rest {
        /// The index of the waiting task.
        task: usize,
        /// The number of the attempt it waits for.
        attempt: u32,
        /// The backoff, in milliseconds.
        ms: u64,
    },
    /// Wait for an answer.
    Pause {
        /// The index of the layer that has run.
        layer: usize,
    },
    /// All tasks have ended.
    Over,
}

/// A task that has not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitingTask {
    pub(crate) task: usize,
    /// 1 if only tasks under way, an answer or the turn of its layer are in the way.
    pub(crate) steps: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskState {
    Waiting { missing: usize },
    Running { attempt: u32 },
    Resting { attempt: u32 },
    Ended(TaskEnd),
}

/// The tasks of a DAG and their states.
#[derive(Debug)]
pub struct Schedule {
    nodes: Vec<ScheduledTask>,
    dependants: Vec<Vec<usize>>,
    layers: Vec<usize>,
    states: Vec<TaskState>,
    pause: Pause,
    /// The tasks that wait only for their layer's turn or for an answer.
    ready: BTreeSet<usize>,
    /// The latest layer whose tasks may start.
    reached: usize,
    /// Whether the run waits for an answer, or will once the active tasks have ended.
    held: bool,
    paused: bool,
    /// Whether a client requested a pause before the next layer.
    pausing: bool,
    /// The number of active tasks, and of tasks without an end.
    active: usize,
    open: usize,
    /// The number of tasks without an end in each layer.
    open_in_layer: Vec<usize>,
    /// The layers of which the last task has ended, until somebody takes note.
    completed_layers: Vec<usize>,
}

impl Schedule {
    /// The schedule of tasks of which none has run. Every dependency must exist, and there must be no cycle.
    pub fn new(nodes: Vec<ScheduledTask>, pause: Pause) -> Schedule {
        Schedule::with(nodes, &[], &[], pause)
    }

    /// The schedule with the tasks that have not run replaced; `ends` gives the ends of those that have. New tasks come
    /// in layers after those that have run, whatever they depend on.
    pub(crate) fn with_tasks(&self, nodes: Vec<ScheduledTask>, ends: &[Option<TaskEnd>]) -> Schedule {
        let ran = |task: usize| matches!(ends.get(task), Some(Some(TaskEnd::Done | TaskEnd::Failed)));
        let known: Vec<Option<usize>> =
            (0..nodes.len()).map(|task| self.layers.get(task).copied().filter(|_| ran(task))).collect();
        Schedule::with(nodes, ends, &known, self.pause)
    }

    fn with(
        nodes: Vec<ScheduledTask>,
        ends: &[Option<TaskEnd>],
        known: &[Option<usize>],
        pause: Pause,
    ) -> Schedule {
        let mut dependants = vec![Vec::new(); nodes.len()];
        for (task, node) in nodes.iter().enumerate() {
            node.after.iter().for_each(|before| dependants[*before].push(task));
        }
        let mut states: Vec<TaskState> =
            nodes.iter().map(|node| TaskState::Waiting { missing: node.after.len() }).collect();
        for (task, end) in ends.iter().enumerate() {
            if let Some(end) = end {
                states[task] = TaskState::Ended(*end);
            }
        }
        let first = known.iter().flatten().max().map_or(0, |last| last + 1);
        let first_of = |task: usize| match (known.get(task).copied().flatten(), &states[task]) {
            (Some(layer), _) => layer,
            // A task that is no longer part of the plan is in no layer that counts.
            (None, TaskState::Ended(_)) => 0,
            (None, _) => first,
        };
        let layers = layers(&nodes, &dependants, first_of);
        let mut schedule = Schedule {
            open: nodes.len(),
            nodes,
            dependants,
            layers,
            states,
            pause,
            ready: BTreeSet::new(),
            reached: 0,
            held: false,
            paused: false,
            pausing: false,
            active: 0,
            open_in_layer: Vec::new(),
            completed_layers: Vec::new(),
        };
        schedule.open_in_layer = vec![0; schedule.layer_count()];
        for task in 0..schedule.nodes.len() {
            if !schedule.is_open(task) {
                schedule.open -= 1;
                continue;
            }
            schedule.open_in_layer[schedule.layers[task]] += 1;
            let missing =
                schedule.nodes[task].after.iter().filter(|before| schedule.is_open(**before)).count();
            schedule.states[task] = TaskState::Waiting { missing };
            if missing == 0 {
                schedule.ready.insert(task);
            }
        }
        schedule
    }

    fn is_open(&self, task: usize) -> bool {
        !matches!(self.states[task], TaskState::Ended(_))
    }

    /// How a task ended; `None` if it has not.
    pub(crate) fn end_of(&self, task: usize) -> Option<TaskEnd> {
        match self.states[task] {
            TaskState::Ended(end) => Some(end),
            TaskState::Waiting { .. } | TaskState::Running { .. } | TaskState::Resting { .. } => None,
        }
    }

    /// The layer of a task, from 0.
    pub(crate) fn layer_of(&self, task: usize) -> usize {
        self.layers[task]
    }

    /// The number of layers. The tasks of a layer depend only on tasks of earlier layers.
    pub(crate) fn layer_count(&self) -> usize {
        self.layers.iter().max().map_or(0, |last| last + 1)
    }

    /// The tasks that would run next.
    pub(crate) fn next_tasks(&self) -> Vec<usize> {
        let first = self.ready.iter().map(|task| self.layers[*task]).min();
        let of_turn = |task: &&usize| self.pause != Pause::PerLayer || Some(self.layers[**task]) == first;
        self.ready.iter().filter(of_turn).copied().collect()
    }

    /// The tasks that have not started, in the order of their layers, each with the number of steps until it starts.
    /// `holds_back` says of a task that whatever comes after it must not be looked at before it has ended.
    pub(crate) fn waiting_tasks(&self, holds_back: &dyn Fn(usize) -> bool) -> Vec<WaitingTask> {
        let mut order: Vec<usize> = (0..self.nodes.len()).filter(|task| self.is_open(*task)).collect();
        order.sort_by_key(|task| self.layers[*task]);
        // The steps until each task has started, and whether it may be looked at; a task that has ended is 0 steps away.
        let mut steps = vec![0; self.nodes.len()];
        let mut is_held = vec![false; self.nodes.len()];
        let mut holding_layer = None;
        let mut waiting = Vec::new();
        for task in order {
            let before = || self.nodes[task].after.iter().copied().filter(|before| self.is_open(*before));
            is_held[task] = before().any(|before| is_held[before] || holds_back(before))
                || (self.pause == Pause::PerLayer
                    && holding_layer.is_some_and(|layer| layer < self.layers[task]));
            if holds_back(task) && holding_layer.is_none() {
                holding_layer = Some(self.layers[task]);
            }
            if matches!(self.states[task], TaskState::Waiting { .. }) {
                steps[task] = 1 + before().map(|before| steps[before]).max().unwrap_or_default();
                if !is_held[task] {
                    waiting.push(WaitingTask { task, steps: steps[task] });
                }
            }
        }
        waiting
    }

    /// Starts, or continues after a pause.
    pub fn go_on(&mut self) -> Vec<ScheduleStep> {
        self.held = false;
        self.paused = false;
        self.pausing = false;
        self.reached = self.ready.iter().map(|task| self.layers[*task]).min().unwrap_or(self.reached);
        let mut steps = Vec::new();
        // A task skipped because of work that left the plan has its end; its dependents do not have theirs yet.
        let lost: Vec<usize> = self.ready.iter().copied().filter(|task| !self.can_run(*task)).collect();
        lost.into_iter().for_each(|task| self.skip(task));
        self.start_ready(&mut steps);
        self.settle(&mut steps);
        steps
    }

    /// Requests a pause before the next layer: tasks of later layers than those already started do not start.
    pub(crate) fn request_pause(&mut self) {
        if self.paused || self.pausing {
            return;
        }
        let begun = |task: &usize| match self.states[*task] {
            TaskState::Running { .. }
            | TaskState::Resting { .. }
            | TaskState::Ended(TaskEnd::Done | TaskEnd::Failed) => true,
            TaskState::Waiting { .. } | TaskState::Ended(TaskEnd::Skipped) => false,
        };
        let last = (0..self.nodes.len()).filter(begun).map(|task| self.layers[task]).max();
        self.reached = last.unwrap_or(self.reached);
        self.pausing = true;
    }

    fn can_run(&self, task: usize) -> bool {
        self.nodes[task].after.iter().all(|before| match self.states[*before] {
            TaskState::Ended(TaskEnd::Done) => true,
            TaskState::Ended(TaskEnd::Failed) => self.nodes[*before].safe_to_fail,
            TaskState::Ended(TaskEnd::Skipped)
            | TaskState::Waiting { .. }
            | TaskState::Running { .. }
            | TaskState::Resting { .. } => false,
        })
    }

    /// Handles the end of an attempt.
    pub fn on_attempt_ended(&mut self, task: usize, tried: AttemptOutcome) -> Vec<ScheduleStep> {
        let TaskState::Running { attempt } = self.states[task] else { return Vec::new() };
        let mut steps = Vec::new();
        if tried == AttemptOutcome::FailedTransiently && attempt <= self.nodes[task].retries {
            self.states[task] = TaskState::Resting { attempt: attempt + 1 };
            let ms = FIRST_REST_MS.saturating_mul(1 << (attempt - 1).min(16)).min(LONGEST_REST_MS);
            steps.push(ScheduleStep::Rest { task, attempt: attempt + 1, ms });
            return steps;
        }
        self.active -= 1;
        let end = if tried == AttemptOutcome::Succeeded { TaskEnd::Done } else { TaskEnd::Failed };
        self.end(task, end);
        // This holds even if nothing is left to run: the answer may replace the tasks that were skipped.
        let waits = matches!(self.pause, Pause::PerLayer | Pause::OnError);
        if end == TaskEnd::Failed && !self.nodes[task].safe_to_fail && waits {
            self.held = true;
        }
        self.start_ready(&mut steps);
        self.settle(&mut steps);
        steps
    }

    /// Handles the end of a backoff.
    pub(crate) fn rested(&mut self, task: usize) -> Vec<ScheduleStep> {
        let TaskState::Resting { attempt } = self.states[task] else { return Vec::new() };
        self.states[task] = TaskState::Running { attempt };
        vec![ScheduleStep::Start { task, attempt }]
    }

    fn end(&mut self, task: usize, end: TaskEnd) {
        self.states[task] = TaskState::Ended(end);
        self.close(task);
        let passes = end == TaskEnd::Done || (end == TaskEnd::Failed && self.nodes[task].safe_to_fail);
        for dependant in std::mem::take(&mut self.dependants[task]) {
            match &mut self.states[dependant] {
                TaskState::Waiting { .. } if !passes => self.skip(dependant),
                TaskState::Waiting { missing } => {
                    *missing -= 1;
                    if *missing == 0 {
                        self.ready.insert(dependant);
                    }
                }
                TaskState::Running { .. } | TaskState::Resting { .. } | TaskState::Ended(_) => {}
            }
        }
    }

    fn close(&mut self, task: usize) {
        self.open -= 1;
        let layer = self.layers[task];
        self.open_in_layer[layer] -= 1;
        if self.open_in_layer[layer] == 0 {
            self.completed_layers.push(layer);
        }
    }

    /// The layers that were completed since the last call of this function.
    pub(crate) fn take_completed_layers(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.completed_layers)
    }

    /// Ends a task that cannot run, and everything that depends on it.
    fn skip(&mut self, task: usize) {
        let mut lost = vec![task];
        while let Some(task) = lost.pop() {
            if self.is_open(task) {
                self.states[task] = TaskState::Ended(TaskEnd::Skipped);
                self.ready.remove(&task);
                self.close(task);
                lost.extend(std::mem::take(&mut self.dependants[task]));
            }
        }
    }

    fn start_ready(&mut self, steps: &mut Vec<ScheduleStep>) {
        if self.held || self.paused {
            return;
        }
        let starting: Vec<usize> = if self.pause == Pause::PerLayer || self.pausing {
            self.ready.iter().copied().filter(|task| self.layers[*task] <= self.reached).collect()
        } else {
            std::mem::take(&mut self.ready).into_iter().collect()
        };
        for task in starting {
            self.ready.remove(&task);
            self.states[task] = TaskState::Running { attempt: 1 };
            self.active += 1;
            steps.push(ScheduleStep::Start { task, attempt: 1 });
        }
    }

    /// Adds the step for the end or the pause, once no task is active.
    fn settle(&mut self, steps: &mut Vec<ScheduleStep>) {
        if self.active > 0 || self.paused {
            return;
        }
        self.paused = true;
        if self.open == 0 && !self.held {
            steps.push(ScheduleStep::Over);
        } else {
            let ran = |task: &usize| matches!(self.end_of(*task), Some(TaskEnd::Done | TaskEnd::Failed));
            let ended = (0..self.nodes.len()).filter(ran);
            let layer = ended.map(|task| self.layers[task]).max().unwrap_or(0);
            steps.push(ScheduleStep::Pause { layer });
        }
    }
}

/// The layer of each task, at least `first_of` it, in time linear in the number of dependencies.
fn layers(
    nodes: &[ScheduledTask],
    dependants: &[Vec<usize>],
    first_of: impl Fn(usize) -> usize,
) -> Vec<usize> {
    let mut layers: Vec<usize> = (0..nodes.len()).map(first_of).collect();
    let mut missing: Vec<usize> = nodes.iter().map(|node| node.after.len()).collect();
    let mut ready: Vec<usize> = (0..nodes.len()).filter(|task| missing[*task] == 0).collect();
    while let Some(task) = ready.pop() {
        for dependant in &dependants[task] {
            layers[*dependant] = layers[*dependant].max(layers[task] + 1);
            missing[*dependant] -= 1;
            if missing[*dependant] == 0 {
                ready.push(*dependant);
            }
        }
    }
    layers
}

#[cfg(test)]
mod tests;
