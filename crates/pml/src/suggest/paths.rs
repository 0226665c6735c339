//! Candidate paths for an intent: several different DAGs that could serve it, most promising first.
//!
//! Tools and capabilities that could serve the steps of the intent, and tools that could give these what they need,
//! become the calls of a [`CallGraph`]. Its best hyperpaths become DAG documents in which every required argument is a value of the intent
//! or of `context`, or a reference to the result of another task. The module is pure.

mod candidate;
mod direction;
mod links;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};

use pml_graph::call_paths::{
    ArgumentSource, CallGraph, CallOptions, CallPath, GivenArgument, PathCall, PossibleCall, ResultLink,
};
use pml_graph::graph::feeds::value_fit;
use pml_graph::graph::fields::{InputField, ToolFields};
use pml_language::Reading;
use pml_language::literals::{IntentLiteral, LiteralClass};
use serde_json::{Map, Value, json};

use super::values::WantedParameter;
use super::{escape_braces, reference_path, words};
pub(crate) use candidate::{CandidatePath, PathCallee};
use direction::StepDirection;
use links::{FieldLink, field_links};

/// Least fit of a value of the intent with a required parameter, as in [`super::build_dag`].
const LEAST_FIT: f64 = super::MEANT as f64;
/// Least fit of a value with an optional parameter: only a parameter made for such values.
const OPTIONAL_FIT: f64 = 1.0;
/// Least fit of a result with a parameter: below it, two fields have no more in common than their kind.
const LEAST_LINK: f64 = 0.3;
/// Fit of a result of a strand that is named like the parameter (`orders.schema.json` for `schema`), and of the result
/// that a step refers to ("check it").
const NAMED: f64 = 0.9;
/// Factor on a result of a strand that is named like another parameter.
const NAMED_OTHERWISE: f64 = 0.5;
/// Factor on the reliability of a call that is not known to be safe: a path of safe calls can be tried for real.
const UNSAFE: f64 = 0.7;
/// Factor on the probability that a call serves a step, where its strand is about a value of another step.
const OTHER_STEP: f64 = 0.5;
/// Cost of each value of the request that a path has no place for, of each call that is told nothing, and of each step
/// that should work on the result of the one before and does not: as much as a step with the least probability that is
/// suggested (−ln 0.25).
const GAP_COST: f64 = 1.4;
/// Things that calls of the same tool are made for.
const MOST_STRANDS: usize = 3;
/// Hyperpaths looked at.
const LOOKED_AT: usize = 1_000;
/// Most calls in one path.
const MOST_CALLS: usize = 12;

/// A tool or a capability that a path may call.
pub(crate) struct PathTool {
    pub(crate) callee: PathCallee,
    pub(crate) input_schema: Value,
    /// The schema of its result, declared or observed; null if it is not known.
    pub(crate) output_schema: Value,
    pub(crate) fields: ToolFields,
    /// Whether it may be called for real while exploring.
    pub(crate) is_safe: bool,
    /// Whether it is known to change nothing.
    pub(crate) reads_only: bool,
    /// Share of its calls that succeeded.
    pub(crate) reliability: f64,
}

/// A step of the intent.
pub(crate) struct PathStep {
    /// Its words.
    pub(crate) words: String,
    /// Tools that could serve it, with their probabilities: indices into the tools.
    pub(crate) candidates: Vec<(usize, f64)>,
}

/// What is asked for, and what may be called.
pub(crate) struct PathRequest<'r> {
    pub(crate) intent: &'r Reading<'r>,
    pub(crate) context: &'r Map<String, Value>,
    pub(crate) tools: &'r [PathTool],
    pub(crate) steps: &'r [PathStep],
    pub(crate) max_depth: usize,
}

/// The paths found.
#[derive(Debug, Default)]
pub(crate) struct CandidatePaths {
    /// Paths that differ in their tools or in where arguments come from, best first.
    pub(crate) paths: Vec<CandidatePath>,
    /// Paths whose chains of calls are longer than allowed, best first, each cut where it gets too long.
    pub(crate) too_deep: Vec<CandidatePath>,
}

/// The paths, best first; empty where some step cannot be reached from what is given.
pub(crate) fn candidate_paths(request: &PathRequest<'_>) -> CandidatePaths {
    let draft = PathDraft::new(request);
    let mut graph = match CallGraph::new(&draft.options) {
        Ok(graph) => graph,
        Err(error) => {
            tracing::error!(%error, "the graph of possible calls could not be built");
            return CandidatePaths::default();
        }
    };
    let (mut paths, mut too_deep): (Vec<CandidatePath>, Vec<CandidatePath>) = (Vec::new(), Vec::new());
    for path in graph.paths().take(LOOKED_AT) {
        let fits = path.depth() <= request.max_depth && path.calls.len() <= MOST_CALLS;
        let candidate = draft.candidate(&path);
        if candidate.repeats_a_call() {
            continue;
        }
        if fits {
            paths.push(candidate);
        } else {
            too_deep.push(candidate.cut_at(request.max_depth));
        }
    }
    sort_by_cost(&mut paths);
    sort_by_cost(&mut too_deep);
    CandidatePaths { paths, too_deep }
}

/// Puts the cheapest first, each document once.
fn sort_by_cost(paths: &mut Vec<CandidatePath>) {
    let order = |path: &CandidatePath| path.document.to_string();
    paths.sort_by(|one, other| one.cost.total_cmp(&other.cost).then_with(|| order(one).cmp(&order(other))));
    paths.dedup_by(|one, other| one.document == other.document);
}

/// A value at hand.
enum GivenValue<'r> {
    Literal(&'r IntentLiteral),
    Context(&'r str, &'r Value),
    /// A pattern for the files with this word in their names.
    Glob(String),
    Default(Value),
}

/// One of several things of the same kind that the request is about: one of two files, or what a word names in a
/// directory. Tools that read are called for each of them.
struct Strand {
    /// Number of the value it begins with.
    value: usize,
    /// Words that tell what it is.
    words: Vec<String>,
}

/// Everything that could be part of a path.
struct PathDraft<'r> {
    request: &'r PathRequest<'r>,
    values: Vec<GivenValue<'r>>,
    strands: Vec<Strand>,
    options: CallOptions,
    /// The tool of each possible call.
    tool_of: Vec<usize>,
    /// The strand of each possible call.
    strand_of: Vec<Option<usize>>,
}

impl<'r> PathDraft<'r> {
    fn new(request: &'r PathRequest<'r>) -> PathDraft<'r> {
        let literals = request.intent.literals().map(GivenValue::Literal);
        let context = request.context.iter().map(|(name, value)| GivenValue::Context(name, value));
        let mut draft = PathDraft {
            request,
            values: literals.chain(context).collect(),
            strands: Vec::new(),
            options: CallOptions::default(),
            tool_of: Vec::new(),
            strand_of: Vec::new(),
        };
        draft.find_strands();
        for tool in 0..request.tools.len() {
            draft.add_call(tool, None);
            for strand in 0..draft.strands.len() {
                if draft.follows_strand(tool, strand) {
                    draft.add_call(tool, Some(strand));
                }
            }
        }
        draft.add_links();
        draft.options.steps = request.steps.iter().map(|step| draft.calls_for(step)).collect();
        draft
    }

    /// Several files are strands; so are the words that name parameters, where the request names a directory.
    fn find_strands(&mut self) {
        let files: Vec<Strand> = (0..)
            .zip(&self.values)
            .filter_map(|(value, given)| match given {
                GivenValue::Literal(literal)
                    if literal.class == LiteralClass::Path && !is_directory(literal) =>
                {
                    let name = literal.text.rsplit('/').next().unwrap_or_default();
                    Some(Strand { value, words: words(name) })
                }
                _ => None,
            })
            .collect();
        if !files.is_empty() {
            self.strands = files;
        } else if !self.context_gives_place() && self.request.intent.literals().any(is_directory) {
            for word in self.named_parameters() {
                self.strands.push(Strand { value: self.values.len(), words: vec![word.clone()] });
                self.values.push(GivenValue::Glob(word));
            }
        }
        self.strands.truncate(MOST_STRANDS);
    }

    /// Whether the context says where to look, so that nothing is searched for.
    fn context_gives_place(&self) -> bool {
        let is_place = |word: &String| word == "path" || FILE.contains(&word.as_str());
        self.request.context.keys().any(|name| words(name).iter().any(is_place))
    }

    /// Words of the steps that are parameters of tools that could serve them: "the CSV", "the schema".
    fn named_parameters(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for step in self.request.steps {
            let direction = self.direction(step);
            for (tool, _) in &step.candidates {
                for input in self.request.tools[*tool].fields.inputs.iter().filter(|input| input.required) {
                    let name = input.name.to_lowercase();
                    if direction.gives(&name)
                        && !found.contains(&name)
                        && !self.request.context.contains_key(&name)
                    {
                        found.push(name);
                    }
                }
            }
        }
        found
    }

    fn direction(&self, step: &PathStep) -> StepDirection {
        let mut bare = step.words.clone();
        for literal in self.request.intent.literals() {
            bare = bare.replace(&literal.text, " ");
        }
        StepDirection::of(&bare)
    }

    /// Whether a tool is called for one strand alone: it only reads, and it takes one thing.
    fn follows_strand(&self, tool: usize, strand: usize) -> bool {
        let of_tool = &self.request.tools[tool];
        let required = of_tool.fields.inputs.iter().filter(|input| input.required).count();
        let searches = self.is_glob(self.strands[strand].value) && self.pattern_of(tool).is_some();
        of_tool.reads_only && (required == 1 || (required == 0 && searches))
    }

    /// The parameter of a tool that takes a pattern of file names.
    fn pattern_of(&self, tool: usize) -> Option<&str> {
        let inputs = &self.request.tools[tool].fields.inputs;
        let has = |input: &InputField, names: &[&str]| {
            words(&input.name).iter().any(|word| names.contains(&word.as_str()))
        };
        // A pattern without a place to search is one for texts.
        inputs.iter().find(|input| has(input, &["path", "directory", "folder", "dir", "root"]))?;
        inputs.iter().find(|input| has(input, &["pattern", "glob"])).map(|input| input.name.as_str())
    }

    /// Adds the call of a tool in a strand, or outside all of them.
    fn add_call(&mut self, tool: usize, strand: Option<usize>) {
        let call = self.options.calls.len();
        let of_tool = &self.request.tools[tool];
        let begins = strand.map(|strand| self.strands[strand].value);
        let mut required: Vec<String> = of_tool
            .fields
            .inputs
            .iter()
            .filter(|input| input.required)
            .map(|input| input.name.clone())
            .collect();
        // A search can be made without a pattern, and then it finds no strand.
        if let (Some(value), Some(pattern)) = (begins, self.pattern_of(tool))
            && self.is_glob(value)
            && required.iter().all(|name| name != pattern)
        {
            required.push(pattern.to_owned());
        }
        let follows = !self.strands.is_empty() && self.follows_strand(tool, 0);
        for parameter in &required {
            for value in 0..self.values.len() {
                let elsewhere =
                    self.strands.iter().any(|other| other.value == value) && Some(value) != begins;
                let fit = self.fit(tool, parameter, value).unwrap_or_default();
                let is_for_other = elsewhere && (strand.is_some() || follows || self.is_glob(value));
                if fit >= LEAST_FIT && !is_for_other {
                    let parameter = parameter.clone();
                    self.options.given.push(GivenArgument { call, parameter, value, fit: fit.min(1.0) });
                }
            }
            self.add_default(call, tool, parameter);
        }
        let reliability = of_tool.reliability * if of_tool.is_safe { 1.0 } else { UNSAFE };
        self.options.calls.push(PossibleCall { required, reliability });
        self.tool_of.push(tool);
        self.strand_of.push(strand);
    }

    fn is_glob(&self, value: usize) -> bool {
        matches!(self.values[value], GivenValue::Glob(_))
    }

    /// A required parameter with a default can be left to it.
    fn add_default(&mut self, call: usize, tool: usize, parameter: &str) {
        let default = self.request.tools[tool].input_schema["properties"][parameter]["default"].clone();
        if !default.is_null() {
            let (parameter, value) = (parameter.to_owned(), self.values.len());
            self.values.push(GivenValue::Default(default));
            self.options.given.push(GivenArgument { call, parameter, value, fit: LEAST_FIT });
        }
    }

    /// How well a value fits a parameter; `None` where the schema does not allow it, or the context gives another.
    fn fit(&self, tool: usize, parameter: &str, value: usize) -> Option<f64> {
        self.argument(tool, parameter, value)?;
        match &self.values[value] {
            GivenValue::Context(name, _) => (*name == parameter).then_some(1.0),
            _ if self.request.context.contains_key(parameter) => None,
            GivenValue::Literal(literal) => {
                let input = self.request.tools[tool].fields.input(parameter)?;
                let described =
                    self.request.tools[tool].input_schema["properties"][parameter]["description"].as_str();
                let of_place = [words(parameter), words(described.unwrap_or_default())].concat();
                let takes_directory = of_place.iter().any(|word| DIRECTORY.contains(&word.as_str()));
                let takes_file = of_place.iter().any(|word| FILE.contains(&word.as_str()));
                // A directory is no file, a file no directory, and a path within a document neither.
                let is_place = described
                    .is_none_or(|text| words(text).iter().any(|word| PLACE.contains(&word.as_str())))
                    || takes_directory
                    || takes_file;
                let suits = match literal.class {
                    LiteralClass::Path if is_directory(literal) => takes_directory,
                    LiteralClass::Path => is_place && (takes_file || !takes_directory),
                    _ => true,
                };
                suits.then(|| f64::from(value_fit(self.request.intent, literal, input)))
            }
            GivenValue::Glob(_) => (self.pattern_of(tool) == Some(parameter)).then_some(NAMED),
            GivenValue::Default(_) => None,
        }
    }

    /// The value as the argument of a parameter; `None` where the schema does not allow it.
    fn argument(&self, tool: usize, parameter: &str, value: usize) -> Option<Value> {
        let schema = &self.request.tools[tool].input_schema["properties"][parameter];
        match &self.values[value] {
            GivenValue::Literal(literal) => {
                let wanted = WantedParameter { name: parameter, schema, is_named: false };
                wanted.value_of(Some(literal), &literal.text)
            }
            GivenValue::Context(_, value) => Some((*value).clone()),
            GivenValue::Glob(word) => Some(Value::from(format!("*{word}*"))),
            GivenValue::Default(value) => Some(value.clone()),
        }
    }

    /// Adds what calls could take from one another: within a strand, and from any strand outside of all.
    fn add_links(&mut self) {
        let by_pair = field_links(self.request.tools);
        let mut links = Vec::new();
        for from in 0..self.tool_of.len() {
            for to in (0..self.tool_of.len()).filter(|to| *to != from) {
                let joins = self.strand_of[to].is_none() || self.strand_of[to] == self.strand_of[from];
                let pair = (self.tool_of[from], self.tool_of[to]);
                let Some(found) = by_pair.get(&pair).filter(|_| joins) else { continue };
                let most = found.iter().map(|link| link.fit).fold(0.0, f64::max);
                let referred = self.is_referred_to(from, to);
                for FieldLink { parameter, path, fit, share } in found {
                    let fit = if referred && *fit == most { fit.max(NAMED) } else { *fit };
                    let fit = self.strand_fit((from, to), parameter, fit) * share;
                    if fit >= LEAST_LINK {
                        let (parameter, path) = (parameter.clone(), path.clone());
                        links.push(ResultLink { from, to, parameter, path, fit });
                    }
                }
            }
        }
        self.options.links = links;
    }

    /// The fit of a result, with regard to what its strand is about.
    fn strand_fit(&self, (from, to): (usize, usize), parameter: &str, fit: f64) -> f64 {
        let Some(strand) = self.strand_of[from] else { return fit };
        let about = &self.strands[strand].words;
        // Of two results named alike, the one that fits better by itself is better.
        let named = NAMED.max(fit) + (1.0 - NAMED) * fit / 2.0;
        let is_about = |text: &str| words(text).iter().any(|word| about.contains(word));
        let required = &self.options.calls[to].required;
        if is_about(parameter) {
            named.min(1.0)
        } else if required.iter().any(|other| is_about(other)) {
            fit * NAMED_OTHERWISE
        } else if is_about(&self.request.tools[self.tool_of[to]].callee.to_string()) {
            named.min(1.0)
        } else {
            fit
        }
    }

    /// Whether a step that the second tool could serve refers to the one before, which the first could serve.
    fn is_referred_to(&self, from: usize, to: usize) -> bool {
        let serves = |step: &PathStep, call: usize| {
            step.candidates.iter().any(|(tool, _)| *tool == self.tool_of[call])
        };
        let mut pairs = self.request.steps.windows(2);
        pairs.any(|pair| refers_back(&pair[1]) && serves(&pair[0], from) && serves(&pair[1], to))
    }

    /// The calls that could serve a step.
    fn calls_for(&self, step: &PathStep) -> Vec<(usize, f64)> {
        let (said, direction) = (step.words.to_lowercase(), self.direction(step));
        let mut calls = Vec::new();
        for (call, tool) in self.tool_of.iter().enumerate() {
            let Some((_, probability)) = step.candidates.iter().find(|(other, _)| other == tool) else {
                continue;
            };
            let elsewhere =
                self.strand_of[call].is_some_and(|strand| match &self.values[self.strands[strand].value] {
                    GivenValue::Literal(literal) => !step.words.contains(&literal.text),
                    GivenValue::Glob(word) => !said.contains(word.as_str()),
                    _ => false,
                });
            let probability = direction.weigh(*probability, &self.request.tools[*tool].fields);
            let probability = probability.clamp(f64::EPSILON, 1.0);
            calls.push((call, probability * if elsewhere { OTHER_STEP } else { 1.0 }));
        }
        calls
    }

    fn candidate(&self, path: &CallPath) -> CandidatePath {
        let mut tasks: Vec<PathTask> =
            path.calls.iter().enumerate().map(|(at, call)| self.task(at, call, path)).collect();
        let mut unused = self.unused(path);
        unused.retain(|value| !self.place_optional(*value, &mut tasks));
        self.keep_order(path, &mut tasks);
        let first_only =
            path.calls.iter().flat_map(|call| &call.arguments).any(
                |(_, source)| matches!(source, ArgumentSource::Result { path, .. } if path.contains("[]")),
            );
        let told_nothing = tasks.iter().filter(|task| self.is_told_nothing(task)).count();
        // The context may hold more than is needed.
        let said = unused.iter().filter(|value| !matches!(self.values[**value], GivenValue::Context(..)));
        let gap_cost = GAP_COST * (said.count() + told_nothing + self.unused_results(path, &tasks)) as f64;
        let mut warnings: Vec<String> = unused.iter().map(|value| self.no_place(*value)).collect();
        if first_only {
            warnings.push("only the first of several results is passed on".to_owned());
        }
        CandidatePath {
            document: json!({ "tasks": tasks.iter().map(PathTask::document).collect::<Vec<_>>() }),
            callees: tasks.iter().map(|task| task.callee.clone()).collect(),
            warnings,
            probability: self.probability(path) * (-gap_cost).exp(),
            cost: path.cost + gap_cost,
            made_up: Map::new(),
            dictated: Map::new(),
            is_whole: false,
            beyond: Vec::new(),
        }
    }

    /// How many steps refer to the result of the one before ("check it") and do not get it.
    fn unused_results(&self, path: &CallPath, tasks: &[PathTask]) -> usize {
        let place = |call: usize| path.calls.iter().position(|other| other.call == call).unwrap_or_default();
        let is_missed = |(pair, calls): (&[PathStep], &[usize])| {
            refers_back(&pair[1]) && !reaches(tasks, place(calls[1]), place(calls[0]))
        };
        self.request.steps.windows(2).zip(path.steps.windows(2)).filter(|pair| is_missed(*pair)).count()
    }

    fn probability(&self, path: &CallPath) -> f64 {
        let of_step = |(step, call): (&PathStep, &usize)| {
            let tool = self.tool_of[*call];
            let found = step.candidates.iter().find(|(other, _)| *other == tool);
            let fields = &self.request.tools[tool].fields;
            found.map_or(0.0, |(_, probability)| self.direction(step).weigh(*probability, fields))
        };
        self.request.steps.iter().zip(&path.steps).map(of_step).product()
    }

    fn task(&self, at: usize, call: &PathCall, path: &CallPath) -> PathTask {
        let tool = self.tool_of[call.call];
        let id_of = |call: usize| {
            let place = path.calls.iter().position(|other| other.call == call).unwrap_or_default();
            format!("t{}", place + 1)
        };
        let mut arguments = Map::new();
        for (name, source) in &call.arguments {
            let value = match source {
                ArgumentSource::Given(value) => {
                    escape_braces(self.argument(tool, name, *value).unwrap_or_default())
                }
                ArgumentSource::Result { call, path } => {
                    json!({ "$ref": format!("{}{}", id_of(*call), reference_path(path)) })
                }
            };
            arguments.insert(name.clone(), value);
        }
        let depends_on = call.sources().map(id_of).collect();
        let callee = self.request.tools[tool].callee.clone();
        PathTask { id: format!("t{}", at + 1), tool, callee, arguments, depends_on }
    }

    /// Whether a task of a tool with parameters has no argument.
    fn is_told_nothing(&self, task: &PathTask) -> bool {
        task.arguments.is_empty() && !self.request.tools[task.tool].fields.inputs.is_empty()
    }

    /// Values of the request that no call of the path takes.
    fn unused(&self, path: &CallPath) -> Vec<usize> {
        let arguments = path.calls.iter().flat_map(|call| &call.arguments);
        let used: HashSet<usize> = arguments
            .filter_map(|(_, source)| match source {
                ArgumentSource::Given(value) => Some(*value),
                ArgumentSource::Result { .. } => None,
            })
            .collect();
        let is_asked = |value: &usize| !matches!(self.values[*value], GivenValue::Default(_));
        (0..self.values.len()).filter(is_asked).filter(|value| !used.contains(value)).collect()
    }

    /// Binds a value to the optional parameter that it fits best, a directory to every one that it fits; returns
    /// whether there is one.
    fn place_optional(&self, value: usize, tasks: &mut [PathTask]) -> bool {
        let mut places: Vec<(f64, usize, &str)> = Vec::new();
        for (at, task) in tasks.iter().enumerate() {
            for input in &self.request.tools[task.tool].fields.inputs {
                let fit = self.fit(task.tool, &input.name, value).unwrap_or_default();
                if fit >= OPTIONAL_FIT && !task.arguments.contains_key(&input.name) {
                    places.push((fit, at, &input.name));
                }
            }
        }
        places.sort_by(|one, other| other.0.total_cmp(&one.0));
        if !matches!(&self.values[value], GivenValue::Literal(literal) if is_directory(literal)) {
            places.truncate(1);
        }
        for (_, at, name) in &places {
            let argument = self.argument(tasks[*at].tool, name, value).unwrap_or_default();
            tasks[*at].arguments.insert((*name).to_owned(), escape_braces(argument));
        }
        !places.is_empty()
    }

    fn no_place(&self, value: usize) -> String {
        match &self.values[value] {
            GivenValue::Literal(literal) => format!("`{}` is not used", literal.text),
            GivenValue::Context(name, _) => format!("`{name}` of the context is not used"),
            GivenValue::Glob(word) => format!("“{word}” is not looked for"),
            GivenValue::Default(_) => String::new(),
        }
    }

    /// Orders the calls that serve steps as the steps are where one of them may change something.
    fn keep_order(&self, path: &CallPath, tasks: &mut [PathTask]) {
        let place = |call: &usize| path.calls.iter().position(|other| other.call == *call);
        let serving: Vec<usize> = path.steps.iter().filter_map(place).collect();
        for (step, at) in serving.iter().enumerate() {
            for before in serving[..step].iter().filter(|before| *before != at) {
                let changes = |at: usize| !self.request.tools[tasks[at].tool].reads_only;
                let ordered = changes(*before) || changes(*at);
                if ordered && !reaches(tasks, *before, *at) {
                    let id = tasks[*before].id.clone();
                    tasks[*at].depends_on.insert(id);
                }
            }
        }
    }
}

/// Whether a step refers to the result of the one before.
fn refers_back(step: &PathStep) -> bool {
    words(&step.words).iter().any(|word| super::REFERRING.contains(&word.as_str()))
}

/// Words for a directory in names and descriptions of parameters.
const DIRECTORY: &[&str] = &["directory", "directories", "folder", "dir"];
/// Words for a place in a file system, in descriptions of parameters.
const PLACE: &[&str] = &["path", "paths", "root", "disk", "filesystem"];
/// Words for a file.
const FILE: &[&str] = &["file", "files", "filename"];

fn is_directory(literal: &IntentLiteral) -> bool {
    literal.class == LiteralClass::Path && literal.text.ends_with('/')
}

/// A task of a path.
struct PathTask {
    id: String,
    tool: usize,
    callee: PathCallee,
    arguments: Map<String, Value>,
    depends_on: BTreeSet<String>,
}

impl PathTask {
    fn document(&self) -> Value {
        json!({
            "id": self.id,
            self.callee.member(): self.callee.to_string(),
            "arguments": self.arguments,
            "dependsOn": self.depends_on,
        })
    }
}

/// Whether the task at `from` depends on the one at `to`.
fn reaches(tasks: &[PathTask], from: usize, to: usize) -> bool {
    let mut open = vec![from];
    let mut seen = HashSet::new();
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            let below = tasks.iter().enumerate().filter(|(_, task)| tasks[at].depends_on.contains(&task.id));
            open.extend(below.map(|(below, _)| below));
        }
    }
    false
}
