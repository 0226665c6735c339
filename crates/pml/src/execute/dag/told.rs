//! What there is to tell of the tasks of a DAG: how they stand, what they gave, and what came of it all.

use std::collections::HashSet;

use pml_model::RunState;
use pml_model::json::Fields;
use pml_model::question::{Layer, LayerResult};
use serde_json::value::RawValue;

use super::schedule::End;
use super::{Dag, Stood};
use crate::execute::journal::CallError;
use crate::execute::observe::Ending;
use crate::execute::results::Tasks;
use crate::plan::DagTask;
use crate::report::{Failure, Report, preview};

impl Dag {
    /// What there is to say about it after a layer: of all that has ended since somebody's word was last waited for, so
    /// that no two such questions are alike.
    pub(super) fn layer(&self, index: usize) -> Layer {
        let mut ended = self.since.clone();
        ended.sort_unstable();
        Layer {
            layer_index: u32::try_from(index).unwrap_or(u32::MAX),
            total_layers: u32::try_from(self.schedule.layers()).unwrap_or(u32::MAX),
            results: ended.into_iter().map(|task| self.told(task)).collect(),
            next: self.schedule.next().into_iter().map(|task| self.tasks[task].id.clone()).collect(),
        }
    }

    /// What there is to tell of each task.
    pub(in crate::execute) fn outcomes(&self) -> Vec<LayerResult> {
        (0..self.tasks.len()).filter(|task| !self.tasks[*task].dropped).map(|task| self.told(task)).collect()
    }

    /// Adds to what is told of a run that is over: what became of its tasks, and which were come to, in the order of the
    /// document, whether or not they made calls.
    pub(in crate::execute) fn add_to(&self, report: &mut Report) {
        report.outcomes = self.last_outcomes();
        let begun = (0..self.tasks.len()).filter(|task| self.stood[*task].begun.is_some());
        report.path.nodes = begun.map(|task| self.tasks[task].node).collect();
        if self.plan.is_direct() {
            self.add_tool_result(report);
        }
    }

    /// Adds what the tool of a direct call answered. A run that was ended before it heard of that has no result.
    fn add_tool_result(&self, report: &mut Report) {
        let error = self.stood.first().and_then(|stood| stood.error.as_ref());
        match (report.state, error) {
            (RunState::Done, _) => report.whole = true,
            (RunState::Failed, Some(error)) if error.code == "TOOL_ERROR" => {
                let result = error.data.clone().and_then(|data| RawValue::from_string(data).ok());
                report.whole = result.is_some();
                report.result = result;
            }
            (_, _) => {}
        }
    }

    /// What became of each task when nothing goes on any more.
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

    /// The tasks and which of them have run.
    pub(in crate::execute) fn into_tasks(self) -> Tasks {
        let ends: Vec<Option<End>> = (0..self.tasks.len()).map(|task| self.schedule.end_of(task)).collect();
        Tasks {
            has_run: ends.iter().map(|end| matches!(end, Some(End::Done | End::Failed))).collect(),
            failed: ends.iter().map(|end| *end == Some(End::Failed)).collect(),
            tools: self.plan.tools.clone(),
            nested: self.plan.nested.clone(),
            limits: self.plan.limits,
            tasks: self.tasks,
        }
    }

    fn told(&self, task: usize) -> LayerResult {
        let stood = &self.stood[task];
        let status = match self.schedule.end_of(task) {
            Some(End::Done) => "success",
            Some(End::Failed) => "error",
            Some(End::Skipped) => "skipped",
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
    pub(in crate::execute) fn result(&self, id: &str) -> Option<Result<&RawValue, &CallError>> {
        let is_it = |task: &DagTask| !task.dropped && (task.id == id || task.node.to_string() == id);
        let task = self.tasks.iter().position(is_it)?;
        match &self.stood[task] {
            Stood { value: Some(value), error: None, .. } => Some(Ok(value)),
            Stood { error: Some(error), .. } => Some(Err(error)),
            Stood { .. } => None,
        }
    }

    /// The ids of the tasks.
    pub(in crate::execute) fn ids(&self) -> impl Iterator<Item = &str> {
        self.tasks.iter().filter(|task| !task.dropped).map(|task| task.id.as_str())
    }

    /// What came of it all: the results of those tasks that no other waits for.
    pub(super) fn ending(&self) -> Ending {
        let failed = (0..self.tasks.len())
            .find(|task| self.schedule.end_of(*task) == Some(End::Failed) && !self.tasks[*task].safe_to_fail);
        if let Some(task) = failed {
            return Ending::Failed(self.failure(task));
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
            return Ending::Value(value.get().to_owned());
        }
        let (size, most): (usize, _) =
            (results.iter().map(|(_, value)| value.get().len()).sum(), self.plan.limits.result_bytes);
        if size as u64 > most {
            let text =
                format!("the results of the last tasks have {size} bytes together and may have {most}");
            let hint = "read them one by one with `pml_get_task_result`, let a last task make less of them, or raise \
                        `limits.result` in pml.toml";
            return Ending::Failed(Failure::new("RESULT_TOO_LARGE", text).hint(hint));
        }
        let mut object = Fields::default();
        results.into_iter().for_each(|(id, value)| object.set(id.to_owned(), value.to_owned()));
        Ending::Value(object.to_raw().get().to_owned())
    }

    fn failure(&self, task: usize) -> Failure {
        let skipped =
            |task: &usize| self.schedule.end_of(*task) == Some(End::Skipped) && !self.tasks[*task].dropped;
        let skipped = (0..self.tasks.len()).filter(skipped).count();
        let skipped = match skipped {
            0 => String::new(),
            1 => "; 1 task that waits for it was not run".to_owned(),
            more => format!("; {more} tasks that wait for it were not run"),
        };
        let fallback = CallError::new("UNKNOWN", "it does not say why".to_owned());
        let error = self.stood[task].error.as_ref().unwrap_or(&fallback);
        let message = match self.plan.is_direct() {
            true => error.message.clone(),
            false => format!("task `{}` failed: {}{skipped}", self.tasks[task].id, error.message),
        };
        let mut failure = Failure::new(&error.code, message);
        failure.hint.clone_from(&error.hint);
        failure.node_id = Some(self.tasks[task].node.to_string());
        failure
    }
}
