//! Which tasks of a DAG run when: a pure state machine over their numbers.
//!
//! It knows what waits for what and how each task ended, and nothing of what tasks do. What it says to do depends on that
//! alone and not on the order in which tasks that run side by side end, so that a run that is taken up again is brought
//! to where it was by telling it the same ends.

use std::collections::BTreeSet;

use crate::plan::Pause;

/// The first pause before another try; each later one is twice as long.
const FIRST_REST_MS: u64 = 200;
const LONGEST_REST_MS: u64 = 10_000;

/// A task as far as its turn goes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// What it waits for.
    pub(crate) after: Vec<usize>,
    /// What waits for it runs although it failed.
    pub(crate) safe_to_fail: bool,
    /// How often it may be tried again.
    pub(crate) retries: u32,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With a result.
    Done,
    /// Without.
    Failed,
    /// What it waits for failed, so it did not run.
    Skipped,
}

/// What became of one try of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    /// It worked.
    Worked,
    /// It did not, and another try may.
    FailedForNow,
    /// It did not, and another would not.
    Failed,
}

/// Something is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Try this task.
    Start {
        /// Which.
        task: usize,
        /// For the how manieth time, from 1.
        attempt: u32,
    },
    /// Say after this time that it has passed.
    Rest {
        /// Which task waits.
        task: usize,
        /// The try it waits for.
        attempt: u32,
        /// How long.
        ms: u64,
    },
    /// Wait for somebody's word.
    Pause {
        /// The layer that has run.
        layer: usize,
    },
    /// All tasks have ended.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting { missing: usize },
    Running { attempt: u32 },
    Resting { attempt: u32 },
    Ended(End),
}

/// The tasks of a DAG and how they stand.
#[derive(Debug)]
pub(crate) struct Schedule {
    nodes: Vec<Node>,
    dependants: Vec<Vec<usize>>,
    layers: Vec<usize>,
    states: Vec<State>,
    pause: Pause,
    /// Tasks that wait for nothing but their layer's turn or somebody's word.
    ready: BTreeSet<usize>,
    /// Tasks of later layers wait.
    reached: usize,
    /// Somebody's word is waited for, or will be when what runs has ended.
    held: bool,
    paused: bool,
    /// Somebody asked it to wait before the next layer.
    pausing: bool,
    /// Tasks under way, and tasks without an end.
    active: usize,
    open: usize,
}

impl Schedule {
    /// The tasks, none of which has run. Every task must wait only for tasks there are, and for none of those that wait
    /// for it.
    pub(crate) fn new(nodes: Vec<Node>, pause: Pause) -> Schedule {
        Schedule::with(nodes, &[], &[], pause)
    }

    /// Other tasks in place of those that have not run; `ends` tells of which that is known. What comes from now on is in
    /// layers after those that have run, whatever it waits for.
    pub(crate) fn anew(&self, nodes: Vec<Node>, ends: &[Option<End>]) -> Schedule {
        let ran = |task: usize| matches!(ends.get(task), Some(Some(End::Done | End::Failed)));
        let known: Vec<Option<usize>> =
            (0..nodes.len()).map(|task| self.layers.get(task).copied().filter(|_| ran(task))).collect();
        Schedule::with(nodes, ends, &known, self.pause)
    }

    fn with(nodes: Vec<Node>, ends: &[Option<End>], known: &[Option<usize>], pause: Pause) -> Schedule {
        let mut dependants = vec![Vec::new(); nodes.len()];
        for (task, node) in nodes.iter().enumerate() {
            node.after.iter().for_each(|before| dependants[*before].push(task));
        }
        let mut states: Vec<State> =
            nodes.iter().map(|node| State::Waiting { missing: node.after.len() }).collect();
        for (task, end) in ends.iter().enumerate() {
            if let Some(end) = end {
                states[task] = State::Ended(*end);
            }
        }
        let first = known.iter().flatten().max().map_or(0, |last| last + 1);
        let first_of = |task: usize| match (known.get(task).copied().flatten(), &states[task]) {
            (Some(layer), _) => layer,
            // What is not part of the plan any more is in no layer that counts.
            (None, State::Ended(_)) => 0,
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
        };
        for task in 0..schedule.nodes.len() {
            if !schedule.is_open(task) {
                schedule.open -= 1;
                continue;
            }
            let missing =
                schedule.nodes[task].after.iter().filter(|before| schedule.is_open(**before)).count();
            schedule.states[task] = State::Waiting { missing };
            if missing == 0 {
                schedule.ready.insert(task);
            }
        }
        schedule
    }

    fn is_open(&self, task: usize) -> bool {
        !matches!(self.states[task], State::Ended(_))
    }

    /// How a task ended.
    pub(crate) fn end_of(&self, task: usize) -> Option<End> {
        match self.states[task] {
            State::Ended(end) => Some(end),
            State::Waiting { .. } | State::Running { .. } | State::Resting { .. } => None,
        }
    }

    /// The layer of a task, from 0.
    pub(crate) fn layer_of(&self, task: usize) -> usize {
        self.layers[task]
    }

    /// How many layers there are. The tasks of one wait for tasks of earlier ones alone.
    pub(crate) fn layers(&self) -> usize {
        self.layers.iter().max().map_or(0, |last| last + 1)
    }

    /// The tasks that would run next.
    pub(crate) fn next(&self) -> Vec<usize> {
        let first = self.ready.iter().map(|task| self.layers[*task]).min();
        let of_turn = |task: &&usize| self.pause != Pause::PerLayer || Some(self.layers[**task]) == first;
        self.ready.iter().filter(of_turn).copied().collect()
    }

    /// Begins, or goes on after a pause.
    pub(crate) fn go_on(&mut self) -> Vec<Step> {
        self.held = false;
        self.paused = false;
        self.pausing = false;
        self.reached = self.ready.iter().map(|task| self.layers[*task]).min().unwrap_or(self.reached);
        let mut steps = Vec::new();
        // What was skipped because of work that is no longer part of the plan has its end; what waits for it has not.
        let lost: Vec<usize> = self.ready.iter().copied().filter(|task| !self.can_run(*task)).collect();
        lost.into_iter().for_each(|task| self.skip(task));
        self.start_ready(&mut steps);
        self.settle(&mut steps);
        steps
    }

    /// Somebody wants it to wait before the next layer: tasks of later layers than have begun are not started.
    pub(crate) fn pause(&mut self) {
        if self.paused || self.pausing {
            return;
        }
        let begun = |task: &usize| match self.states[*task] {
            State::Running { .. } | State::Resting { .. } | State::Ended(End::Done | End::Failed) => true,
            State::Waiting { .. } | State::Ended(End::Skipped) => false,
        };
        let last = (0..self.nodes.len()).filter(begun).map(|task| self.layers[task]).max();
        self.reached = last.unwrap_or(self.reached);
        self.pausing = true;
    }

    fn can_run(&self, task: usize) -> bool {
        self.nodes[task].after.iter().all(|before| match self.states[*before] {
            State::Ended(End::Done) => true,
            State::Ended(End::Failed) => self.nodes[*before].safe_to_fail,
            State::Ended(End::Skipped)
            | State::Waiting { .. }
            | State::Running { .. }
            | State::Resting { .. } => false,
        })
    }

    /// A try of a task has ended.
    pub(crate) fn tried(&mut self, task: usize, tried: Tried) -> Vec<Step> {
        let State::Running { attempt } = self.states[task] else { return Vec::new() };
        let mut steps = Vec::new();
        if tried == Tried::FailedForNow && attempt <= self.nodes[task].retries {
            self.states[task] = State::Resting { attempt: attempt + 1 };
            let ms = FIRST_REST_MS.saturating_mul(1 << (attempt - 1).min(16)).min(LONGEST_REST_MS);
            steps.push(Step::Rest { task, attempt: attempt + 1, ms });
            return steps;
        }
        self.active -= 1;
        let end = if tried == Tried::Worked { End::Done } else { End::Failed };
        self.end(task, end);
        // Also where nothing is left to run: whoever is asked may want other tasks in place of those that were skipped.
        let waits = matches!(self.pause, Pause::PerLayer | Pause::OnError);
        if end == End::Failed && !self.nodes[task].safe_to_fail && waits {
            self.held = true;
        }
        self.start_ready(&mut steps);
        self.settle(&mut steps);
        steps
    }

    /// The pause before a try is over.
    pub(crate) fn rested(&mut self, task: usize) -> Vec<Step> {
        let State::Resting { attempt } = self.states[task] else { return Vec::new() };
        self.states[task] = State::Running { attempt };
        vec![Step::Start { task, attempt }]
    }

    fn end(&mut self, task: usize, end: End) {
        self.states[task] = State::Ended(end);
        self.open -= 1;
        let passes = end == End::Done || (end == End::Failed && self.nodes[task].safe_to_fail);
        for dependant in std::mem::take(&mut self.dependants[task]) {
            match &mut self.states[dependant] {
                State::Waiting { .. } if !passes => self.skip(dependant),
                State::Waiting { missing } => {
                    *missing -= 1;
                    if *missing == 0 {
                        self.ready.insert(dependant);
                    }
                }
                State::Running { .. } | State::Resting { .. } | State::Ended(_) => {}
            }
        }
    }

    /// Ends a task that cannot run, and all that wait for it.
    fn skip(&mut self, task: usize) {
        let mut lost = vec![task];
        while let Some(task) = lost.pop() {
            if self.is_open(task) {
                self.states[task] = State::Ended(End::Skipped);
                self.ready.remove(&task);
                self.open -= 1;
                lost.extend(std::mem::take(&mut self.dependants[task]));
            }
        }
    }

    fn start_ready(&mut self, steps: &mut Vec<Step>) {
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
            self.states[task] = State::Running { attempt: 1 };
            self.active += 1;
            steps.push(Step::Start { task, attempt: 1 });
        }
    }

    /// Says that it is over, or that it waits, once nothing is under way.
    fn settle(&mut self, steps: &mut Vec<Step>) {
        if self.active > 0 || self.paused {
            return;
        }
        self.paused = true;
        if self.open == 0 && !self.held {
            steps.push(Step::Over);
        } else {
            let ran = |task: &usize| matches!(self.end_of(*task), Some(End::Done | End::Failed));
            let ended = (0..self.nodes.len()).filter(ran);
            let layer = ended.map(|task| self.layers[task]).max().unwrap_or(0);
            steps.push(Step::Pause { layer });
        }
    }
}

/// The layer of each task, `first_of` it at least, in time that grows with the number of dependencies.
fn layers(nodes: &[Node], dependants: &[Vec<usize>], first_of: impl Fn(usize) -> usize) -> Vec<usize> {
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
