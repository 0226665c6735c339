//! A way to serve an intent: a DAG document with what it calls.

use std::collections::HashSet;
use std::fmt;

use pml_model::ToolId;
use serde_json::Value;

/// The tool or capability that a task of a path calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathCallee {
    /// A tool.
    Tool(ToolId),
    /// A capability, by its name.
    Capability(String),
}

impl PathCallee {
    /// What the task of a DAG document calls.
    fn of_task(task: &Value) -> Option<PathCallee> {
        let tool = task["tool"].as_str().map(|id| ToolId::parse(id).ok().map(PathCallee::Tool));
        tool.unwrap_or_else(|| Some(PathCallee::Capability(task["capability"].as_str()?.to_owned())))
    }

    /// The member of a task that names it.
    pub(super) fn member(&self) -> &'static str {
        match self {
            PathCallee::Tool(_) => "tool",
            PathCallee::Capability(_) => "capability",
        }
    }
}

impl fmt::Display for PathCallee {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathCallee::Tool(id) => id.fmt(out),
            PathCallee::Capability(name) => name.fmt(out),
        }
    }
}

/// One way to serve the intent.
#[derive(Debug, Clone)]
pub(crate) struct CandidatePath {
    /// The DAG document.
    pub(crate) document: Value,
    /// What each task calls.
    pub(crate) callees: Vec<PathCallee>,
    /// What speaks against it: values without a place, a list of which only the first element is used.
    pub(crate) warnings: Vec<String>,
    /// The probability that its tools serve the steps, and that its gaps do not matter.
    pub(crate) probability: f64,
    /// Its cost, which orders the paths.
    pub(crate) cost: f64,
}

impl CandidatePath {
    /// A document that serves the intent with this probability; `None` if a task calls nothing.
    pub(crate) fn from_document(
        document: Value,
        probability: f64,
        warning: Option<String>,
    ) -> Option<CandidatePath> {
        let tasks = document["tasks"].as_array()?.iter();
        let callees = tasks.map(PathCallee::of_task).collect::<Option<Vec<PathCallee>>>()?;
        let (warnings, cost) = (warning.into_iter().collect(), -probability.max(f64::MIN_POSITIVE).ln());
        Some(CandidatePath { document, callees, warnings, probability, cost })
    }

    /// The number of calls in the longest chain.
    pub(crate) fn depth(&self) -> usize {
        let mut depths: Vec<(&Value, usize)> = Vec::new();
        for task in self.tasks() {
            let on = task["dependsOn"].as_array();
            let below = depths.iter().filter(|(id, _)| on.is_some_and(|on| on.contains(id)));
            let depth = below.map(|(_, depth)| *depth).max().unwrap_or(0) + 1;
            depths.push((&task["id"], depth));
        }
        depths.into_iter().map(|(_, depth)| depth).max().unwrap_or(0)
    }

    fn tasks(&self) -> &[Value] {
        self.document["tasks"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether two tasks make the same call.
    pub(super) fn repeats_a_call(&self) -> bool {
        let mut seen = HashSet::new();
        self.tasks().iter().any(|task| !seen.insert(call_text(task)))
    }

    /// What is called, in the order of the tasks.
    pub(crate) fn callee_names(&self) -> Vec<String> {
        self.callees.iter().map(ToString::to_string).collect()
    }

    /// What is called, in an order that is the same for all paths that call the same.
    pub(crate) fn sorted_callees(&self) -> Vec<String> {
        let mut names = self.callee_names();
        names.sort_unstable();
        names
    }

    /// Each task with everything it depends on, whatever the tasks are called. Tasks of two paths that are equal in
    /// this make the same call.
    pub(crate) fn wirings(&self) -> Vec<String> {
        let mut wirings: Vec<String> = Vec::new();
        for task in self.tasks() {
            let mut wiring = call_text(task);
            // Tasks come after those they take something from.
            for (other, of_other) in self.tasks().iter().zip(&wirings) {
                let id = other["id"].as_str().unwrap_or_default();
                wiring =
                    wiring.replace(&format!("{{\"$ref\":\"{id}."), &format!("<{of_other}>{{\"$ref\":\"."));
                wiring =
                    wiring.replace(&format!("{{\"$ref\":\"{id}\""), &format!("<{of_other}>{{\"$ref\":\"\""));
            }
            wirings.push(wiring);
        }
        wirings
    }
}

/// What a task calls, with its arguments.
fn call_text(task: &Value) -> String {
    format!("{} {} {}", task["tool"], task["capability"], task["arguments"])
}
