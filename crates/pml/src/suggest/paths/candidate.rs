//! A way to serve an intent: a DAG document with what it calls.

use std::collections::HashSet;
use std::fmt;

use pml_model::ToolId;
use serde_json::{Map, Value, json};

use crate::suggest::escape_braces;

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
    /// Made-up values for what the request does not say, by parameter of the document.
    pub(crate) made_up: Map<String, Value>,
    /// Values that the caller dictates for the trial alone, by parameter of the document.
    pub(crate) dictated: Map<String, Value>,
    /// Whether it was read from the request as a whole: a capability that serves it, or the DAG that would be suggested.
    pub(crate) is_whole: bool,
    /// What it would call next if its chains of calls might be longer.
    pub(crate) beyond: Vec<String>,
}

impl CandidatePath {
    /// A document that serves the intent as a whole with this probability; `None` if a task calls nothing.
    pub(crate) fn from_document(
        document: Value,
        probability: f64,
        warning: Option<String>,
    ) -> Option<CandidatePath> {
        let tasks = document["tasks"].as_array()?.iter();
        let callees = tasks.map(PathCallee::of_task).collect::<Option<Vec<PathCallee>>>()?;
        let (warnings, cost) = (warning.into_iter().collect(), -probability.max(f64::MIN_POSITIVE).ln());
        Some(CandidatePath {
            document,
            callees,
            warnings,
            probability,
            cost,
            made_up: Map::new(),
            dictated: Map::new(),
            is_whole: true,
            beyond: Vec::new(),
        })
    }

    /// Takes a required argument that the request does not say from a parameter of the document, for which `value` was
    /// made up. Whoever runs the path has to give it.
    pub(crate) fn open_argument(&mut self, task: &str, argument: &str, value: Value) {
        let taken = |made_up: &Map<String, Value>| made_up.contains_key(argument);
        let parameter = match taken(&self.made_up) {
            false => argument.to_owned(),
            true => format!("{task}_{argument}"),
        };
        let tasks = self.document["tasks"].as_array_mut().into_iter().flatten();
        for of_task in tasks.filter(|of_task| of_task["id"] == task) {
            of_task["arguments"][argument] = json!({ "$ref": format!("args.{parameter}") });
        }
        self.made_up.insert(parameter, value);
    }

    /// Takes the values that the caller dictates for the trial from parameters of the document. Whoever runs the path
    /// has to give them.
    pub(crate) fn take_dictated(&mut self, values: &Map<String, Value>) {
        for (name, value) in values {
            let parameter = match self.made_up.contains_key(name) {
                false => name.clone(),
                true => format!("given_{name}"),
            };
            let written = escape_braces(value.clone());
            let reference = json!({ "$ref": format!("args.{parameter}") });
            let tasks = self.document["tasks"].as_array_mut().into_iter().flatten();
            let replaced = tasks.map(|task| replace_all(&mut task["arguments"], &written, &reference));
            if replaced.sum::<usize>() > 0 {
                self.dictated.insert(parameter, value.clone());
            }
        }
    }

    /// What has to be given to run it.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &String> {
        self.made_up.keys().chain(self.dictated.keys())
    }

    /// The number of calls in the longest chain.
    pub(crate) fn depth(&self) -> usize {
        self.depths().into_iter().max().unwrap_or(0)
    }

    /// The place of each task in its chain, from 1.
    fn depths(&self) -> Vec<usize> {
        let mut depths: Vec<usize> = Vec::new();
        for task in self.tasks() {
            let on = task["dependsOn"].as_array();
            let before = self.tasks().iter().zip(&depths);
            let below = before.filter(|(other, _)| on.is_some_and(|on| on.contains(&other["id"])));
            depths.push(below.map(|(_, depth)| *depth).max().unwrap_or(0) + 1);
        }
        depths
    }

    /// The beginning of a path whose chains are longer than allowed: its tasks up to that depth. Those beyond are named,
    /// because they are not tried.
    pub(crate) fn cut_at(mut self, max_depth: usize) -> CandidatePath {
        let depths = self.depths();
        if depths.iter().all(|depth| *depth <= max_depth) {
            return self;
        }
        let tasks = self.document["tasks"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let (kept, beyond): (Vec<_>, Vec<_>) = depths
            .into_iter()
            .zip(tasks.into_iter().zip(self.callees))
            .partition(|(depth, _)| *depth <= max_depth);
        let (tasks, callees): (Vec<Value>, Vec<PathCallee>) = kept.into_iter().map(|(_, task)| task).unzip();
        self.document["tasks"] = tasks.into();
        self.callees = callees;
        self.beyond = beyond.into_iter().map(|(_, (_, callee))| callee.to_string()).collect();
        self
    }

    /// The tool that the task with this id calls.
    pub(crate) fn tool_of(&self, task: &str) -> Option<&ToolId> {
        let mut tasks = self.tasks().iter().zip(&self.callees);
        match tasks.find(|(of_task, _)| of_task["id"] == task)?.1 {
            PathCallee::Tool(id) => Some(id),
            PathCallee::Capability(_) => None,
        }
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

/// Replaces a value wherever it is, and returns how often.
fn replace_all(within: &mut Value, value: &Value, new: &Value) -> usize {
    if within == value {
        *within = new.clone();
        return 1;
    }
    match within {
        Value::Object(members) => members.values_mut().map(|member| replace_all(member, value, new)).sum(),
        Value::Array(items) => items.iter_mut().map(|item| replace_all(item, value, new)).sum(),
        _ => 0,
    }
}
