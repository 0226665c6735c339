//! Reports on the tasks of a DAG: their status, their results, and the result of the run.

use pml_model::ErrorCode;
use std::collections::HashSet;

use pml_model::RunState;
use pml_model::json::Fields;
use pml_model::question::{LayerQuestion, LayerResult};
use serde_json::value::RawValue;

use super::schedule::TaskEnd;
use super::{DagRun, TaskProgress};
use crate::execute::delivery::CallFailure;
use crate::execute::ending::RunEnding;
use crate::plan::{Bounds, DagTask, PlannedCapability, PlannedTool};
use crate::report::{RunFailure, RunReport, preview};

/// The tasks of a DAG run, and which of them have run.
#[derive(Debug)]
pub struct DagTasks {
    /// All tasks.
    pub tasks: Vec<DagTask>,
    /// Whether each task has run.
    pub has_run: Vec<bool>,
    /// Whether each task failed.
    pub failed: Vec<bool>,
    /// The tools that the tasks may call.
    pub tools: Vec<PlannedTool>,
    /// The capabilities that the tasks may call.
    pub nested: Vec<PlannedCapability>,
    /// The resource limits of the run.
    pub limits: Bounds,
}

impl DagRun {
    /// The question after a layer. It covers everything that has ended since the last such question, so that no two of
    /// them are alike.
    pub(super) fn layer(&self, index: usize) -> LayerQuestion {
        let mut ended = self.ended_since_pause.clone();
        ended.sort_unstable();
        LayerQuestion {
            layer_index: u32::try_from(index).unwrap_or(u32::MAX),
            total_layers: u32::try_from(self.schedule.layer_count()).unwrap_or(u32::MAX),
            results: ended.into_iter().map(|task| self.told(task)).collect(),
            next: self.schedule.next_tasks().into_iter().map(|task| self.tasks[task].id.clone()).collect(),
        }
    }

    /// The outcome of each task.
    pub(in crate::execute) fn outcomes(&self) -> Vec<LayerResult> {
        (0..self.tasks.len()).filter(|task| !self.tasks[*task].dropped).map(|task| self.told(task)).collect()
    }

    /// Adds the outcomes of the tasks to the report of a finished run, and the tasks that were reached, in document
    /// order, whether or not they made calls.
    pub(in crate::execute) fn add_to_report(&self, report: &mut RunReport) {
        report.outcomes = self.last_outcomes();
        let begun = (0..self.tasks.len()).filter(|task| self.progress[*task].begun.is_some());
        report.path.nodes = begun.map(|task| self.tasks[task].node).collect();
        if self.plan.is_direct() {
            self.add_tool_result(report);
        }
    }

    /// Adds the tool result of a direct call. A run that ended before the result arrived has none.
    fn add_tool_result(&self, report: &mut RunReport) {
        let error = self.progress.first().and_then(|stood| stood.error.as_ref());
        match (report.state, error) {
            (RunState::Done, _) => report.whole = true,
            (RunState::Failed, Some(error)) if error.code == ErrorCode::ToolError => {
                let result = error.data.clone().and_then(|data| RawValue::from_string(data).ok());
                report.whole = result.is_some();
                report.result = result;
            }
            (_, _) => {}
        }
    }

    /// The outcome of each task once nothing continues.
    fn last_outcomes(&self) -> Vec<LayerResult> {
        let mut outcomes = self.outcomes();
        for outcome in &mut outcomes {
            match outcome.status.as_str() {
                "running" => outcome.status = "cancelled".to_owned(),
                "waiting" => outcome.status = "skipped".to_owned(),
                _ => {}
            }
        }
        outcomes
    }

    /// The tasks, and which of them have run.
    pub(in crate::execute) fn into_tasks(self) -> DagTasks {
        let ends: Vec<Option<TaskEnd>> =
            (0..self.tasks.len()).map(|task| self.schedule.end_of(task)).collect();
        DagTasks {
            has_run: ends.iter().map(|end| matches!(end, Some(TaskEnd::Done | TaskEnd::Failed))).collect(),
            failed: ends.iter().map(|end| *end == Some(TaskEnd::Failed)).collect(),
            tools: self.plan.tools.clone(),
            nested: self.plan.nested.clone(),
            limits: self.plan.limits,
            tasks: self.tasks,
        }
    }

    fn told(&self, task: usize) -> LayerResult {
        let stood = &self.progress[task];
        let status = match self.schedule.end_of(task) {
            Some(TaskEnd::Done) => "success",
            Some(TaskEnd::Failed) => "error",
            Some(TaskEnd::Skipped) => "skipped",
            None if stood.begun.is_some() => "running",
            None => "waiting",
        };
        let shown = match (&stood.value, &stood.error) {
            (_, Some(error)) => Some(format!("{}: {}", error.code, error.message)),
            (Some(value), None) => Some(value.get().to_owned()),
            (None, None) => None,
        };
        LayerResult {
            task_id: self.tasks[task].id.clone(),
            status: status.to_owned(),
            execution_time_ms: stood.begun.zip(stood.ended).map(|(begun, ended)| ended - begun),
            result_preview: shown.as_deref().map(preview),
            result_size: stood.value.as_ref().map(|value| value.get().len()),
        }
    }

    /// The result of a task, or its error.
    pub(in crate::execute) fn result(&self, id: &str) -> Option<Result<&RawValue, &CallFailure>> {
        let is_it = |task: &DagTask| !task.dropped && (task.id == id || task.node.to_string() == id);
        let task = self.tasks.iter().position(is_it)?;
        match &self.progress[task] {
            TaskProgress { value: Some(value), error: None, .. } => Some(Ok(value)),
            TaskProgress { error: Some(error), .. } => Some(Err(error)),
            TaskProgress { .. } => None,
        }
    }

    /// The ids of the tasks.
    pub(in crate::execute) fn ids(&self) -> impl Iterator<Item = &str> {
        self.tasks.iter().filter(|task| !task.dropped).map(|task| task.id.as_str())
    }

    /// The ending of the run: the results of the tasks without dependents.
    pub(super) fn ending(&self) -> RunEnding {
        let failed = (0..self.tasks.len()).find(|task| {
            self.schedule.end_of(*task) == Some(TaskEnd::Failed) && !self.tasks[*task].safe_to_fail
        });
        if let Some(task) = failed {
            return RunEnding::Failed(self.failure(task));
        }
        let kept = |task: &usize| !self.tasks[*task].dropped;
        let waited_for: HashSet<usize> = (0..self.tasks.len())
            .filter(kept)
            .flat_map(|task| self.tasks[task].after.iter().copied())
            .collect();
        let last = (0..self.tasks.len()).filter(kept).filter(|task| !waited_for.contains(task));
        let results: Vec<(&str, &RawValue)> = last
            .filter_map(|task| {
                let id = self.tasks[task].id.as_str();
                Some((id, &**self.results.get(id)?))
            })
            .collect();
        if let ([(_, value)], true) = (results.as_slice(), self.plan.dag().is_some_and(|dag| dag.single)) {
            return RunEnding::Value(value.get().to_owned());
        }
        let (size, most): (usize, _) =
            (results.iter().map(|(_, value)| value.get().len()).sum(), self.plan.limits.result_bytes);
        if size as u64 > most {
            let text =
                format!("the results of the last tasks have {size} bytes together and may have {most}");
            let hint = "read them one by one with `pml_get_task_result`, let a last task make less of them, or raise \
                        `limits.result` in pml.toml";
            return RunEnding::Failed(RunFailure::new(ErrorCode::ResultTooLarge, text).hint(hint));
        }
        let mut object = Fields::default();
        results.into_iter().for_each(|(id, value)| object.set(id.to_owned(), value.to_owned()));
        RunEnding::Value(object.to_raw().get().to_owned())
    }

    fn failure(&self, task: usize) -> RunFailure {
        let skipped = |task: &usize| {
            self.schedule.end_of(*task) == Some(TaskEnd::Skipped) && !self.tasks[*task].dropped
        };
        let skipped = (0..self.tasks.len()).filter(skipped).count();
        let skipped = match skipped {
            0 => String::new(),
            1 => "; 1 task that waits for it was not run".to_owned(),
            more => format!("; {more} tasks that wait for it were not run"),
        };
        let fallback = CallFailure::new(ErrorCode::Unknown, "it does not say why".to_owned());
        let error = self.progress[task].error.as_ref().unwrap_or(&fallback);
        let message = match self.plan.is_direct() {
            true => error.message.clone(),
            false => format!("task `{}` failed: {}{skipped}", self.tasks[task].id, error.message),
        };
        let mut failure = RunFailure::new(error.code, message);
        failure.hint.clone_from(&error.hint);
        failure.node_id = Some(self.tasks[task].node.to_string());
        failure
    }
}
