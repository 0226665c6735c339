//! Takes the branches of a program by varying made-up answers and arguments.
//!
//! One run after the other, each with a few values changed: those that conditions mention first, then others, then
//! several at once. The choice depends on nothing but the seed and the earlier runs, so it can be repeated exactly.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use pml_model::structure::{DecisionForm, EdgeBasis, EdgeLink, NodeId, NodeKind, Structure};
use pml_model::{Digest, ToolId};
use serde_json::{Map, Value, json};

use super::aim::{self, Aim};
use super::condition_words::ConditionWords;
use super::places::{BranchId, PlacedCode, branches_of};
use crate::execute::dry_run::{DryCallRecord, DryRunRecord, NodePlace};
use crate::plan::Plan;
use crate::report::{Branch, BranchCoverage, ExecutedPath, PathDecision};

/// The most places of one value that are varied.
const MAX_PLACES: usize = 60;
/// The most members of `args` that are varied.
const MAX_PARAMETERS: usize = 20;
/// 64 KiB: larger results are not varied place by place, since each try has a copy of its own.
const MAX_VARIED_BYTES: usize = 64 << 10;
/// 1 MiB: larger results are not varied at all; their calls are only made to fail or to return nothing.
const MAX_AIMED_BYTES: usize = 1 << 20;
/// What is varied after one run, the most promising first: more than any budget of runs can try.
const MAX_VARIATIONS: usize = 5_000;

/// The rank of a variation that should take a branch by what its condition says.
const MOST_PROMISING: u32 = 9;

/// The answers that differ from the first run, and the changed arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Steering {
    calls: BTreeMap<NodePlace, Steered>,
    /// Changed members of `args`; `None` leaves one out.
    arguments: BTreeMap<String, Option<Value>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Steered {
    Failure,
    Value(Value),
}

/// The answer that exploration wants of a call.
pub(super) enum SteeredAnswer<'s> {
    Failure,
    Value(&'s Value),
}

impl Steering {
    /// The answer for the calls at a place.
    pub(super) fn answer(&self, place: Option<&NodePlace>) -> Option<SteeredAnswer<'_>> {
        Some(match self.calls.get(place?)? {
            Steered::Failure => SteeredAnswer::Failure,
            Steered::Value(value) => SteeredAnswer::Value(value),
        })
    }

    /// Whether the calls at a place are answered differently.
    pub(super) fn steers(&self, place: Option<&NodePlace>) -> bool {
        place.is_some_and(|place| self.calls.contains_key(place))
    }

    /// Whether the program is given arguments that nobody gave.
    pub(super) fn changes_arguments(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// `arguments` with the changes.
    pub(super) fn apply(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let mut changed = arguments.clone();
        for (name, value) in &self.arguments {
            match value {
                Some(value) => changed.insert(name.clone(), value.clone()),
                None => changed.remove(name),
            };
        }
        changed
    }

    /// What differs from the first run, in words.
    pub(super) fn describe(&self, plan: &Plan) -> Vec<String> {
        let tool = |(path, node): &NodePlace| {
            let code = PlacedCode::around(plan, path);
            let tool = match code.and_then(|code| code.structure.node(*node)).map(|node| &node.kind) {
                Some(NodeKind::Task { tool, .. }) => tool.clone(),
                _ => node.to_string(),
            };
            match code.and_then(|code| code.capability) {
                Some(capability) => format!("`{tool}` in `{capability}`"),
                None => format!("`{tool}`"),
            }
        };
        let calls = self.calls.iter().map(|(place, steered)| match steered {
            Steered::Failure => format!("{} fails", tool(place)),
            Steered::Value(value) => {
                let shown = pml_model::name::truncate_text(&value.to_string(), 120);
                format!("{} returns {shown}", tool(place))
            }
        });
        let arguments = self.arguments.iter().map(|(name, value)| match value {
            Some(value) => format!("`args.{name}` is {value}"),
            None => format!("`args.{name}` is missing"),
        });
        calls.chain(arguments).collect()
    }

    /// Identifies what differs from the first run.
    fn digest(&self) -> Digest {
        Digest::of(format!("{self:?}").as_bytes())
    }

    fn with(&self, variation: &Variation) -> Steering {
        let mut steering = self.clone();
        match variation {
            Variation::Fail(call) => {
                steering.calls.insert(call.clone(), Steered::Failure);
            }
            Variation::Return(call, value) => {
                steering.calls.insert(call.clone(), Steered::Value(value.clone()));
            }
            Variation::Place(call, base, place, value) => {
                let mut changed = match steering.calls.get(call) {
                    Some(Steered::Value(known)) => known.clone(),
                    Some(Steered::Failure) | None => Value::clone(base),
                };
                put(&mut changed, place, value.as_ref());
                steering.calls.insert(call.clone(), Steered::Value(changed));
            }
            Variation::Argument(name, value) => {
                steering.arguments.insert(name.clone(), value.clone());
            }
            Variation::Together(all) => {
                for variation in all {
                    steering = steering.with(variation);
                }
            }
        }
        steering
    }
}

/// One change of an answer or argument.
#[derive(Debug, Clone)]
enum Variation {
    Fail(NodePlace),
    Return(NodePlace, Value),
    /// The value of a call with one place in it replaced, or removed.
    Place(NodePlace, Arc<Value>, Vec<Step>, Option<Value>),
    Argument(String, Option<Value>),
    Together(Vec<Variation>),
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

/// A run that took a branch for the first time.
#[derive(Debug)]
pub(super) struct Explored {
    pub(super) steering: Steering,
    pub(super) decisions: BTreeSet<BranchId>,
    pub(super) nodes: BTreeSet<NodeId>,
    /// What can be varied, with how promising it is, the most promising first.
    variations: Vec<(u32, Variation)>,
    /// How many of these were tried.
    tried: usize,
}

/// The search for branches.
pub(super) struct Exploration {
    plan: Arc<Plan>,
    /// A made-up result of each tool.
    made_up: HashMap<ToolId, Value>,
    /// The branches there are.
    all: BTreeSet<BranchId>,
    covered: BTreeSet<BranchId>,
    words: ConditionWords,
    /// The runs that took new branches, the first run first.
    pub(super) paths: Vec<Explored>,
    /// The digests of what was tried.
    tried: HashSet<Digest>,
    pub(super) runs: u32,
    random: u64,
}

impl Exploration {
    pub(super) fn new(plan: Arc<Plan>, seed: u64, made_up: HashMap<ToolId, Value>) -> Exploration {
        let all = all_branches(&plan);
        Exploration {
            words: ConditionWords::of(&plan, &all),
            all,
            plan,
            made_up,
            covered: BTreeSet::new(),
            paths: Vec::new(),
            tried: HashSet::new(),
            runs: 0,
            random: seed ^ 0x9E37_79B9_7F4A_7C15,
        }
    }

    /// Takes note of a run.
    pub(super) fn note(&mut self, steering: &Steering, record: &DryRunRecord) {
        self.runs += 1;
        let path = &record.report.path;
        let taken = |capability: Option<usize>, path: &ExecutedPath| -> Vec<BranchId> {
            let branch = |taken: &PathDecision| BranchId {
                capability,
                node: taken.node,
                outcome: taken.outcome.clone(),
            };
            path.decisions.iter().map(branch).collect()
        };
        let within = record.frames.iter().flat_map(|frame| taken(Some(frame.capability), &frame.path));
        let decisions: BTreeSet<BranchId> = taken(None, path).into_iter().chain(within).collect();
        let is_new = self.paths.is_empty() || decisions.iter().any(|taken| !self.covered.contains(taken));
        self.covered.extend(decisions.iter().cloned());
        self.tried.insert(steering.digest());
        if is_new {
            let variations = self.variations(record);
            let nodes = path.nodes.iter().copied().collect();
            self.paths.push(Explored { steering: steering.clone(), decisions, nodes, variations, tried: 0 });
        }
    }

    /// Whether every branch was taken.
    pub(super) fn is_complete(&self) -> bool {
        self.all.iter().all(|branch| self.covered.contains(branch))
    }

    /// What to try next; `None` if nothing is left to vary, or it is too late.
    pub(super) fn next(&mut self, is_late: &dyn Fn() -> bool) -> Option<Steering> {
        if self.is_complete() {
            return None;
        }
        // The most promising first; among equals those of the latest path, which went furthest.
        for rank in (0..=MOST_PROMISING).rev() {
            for path in self.paths.iter_mut().rev() {
                while let Some((_, variation)) =
                    path.variations.get(path.tried).filter(|(ranked, _)| *ranked == rank)
                {
                    if is_late() {
                        return None;
                    }
                    path.tried += 1;
                    let steering = path.steering.with(variation);
                    if self.tried.insert(steering.digest()) {
                        return Some(steering);
                    }
                }
            }
        }
        self.several_at_once(is_late)
    }

    /// A few variations of one path together, for conditions that test several values.
    fn several_at_once(&mut self, is_late: &dyn Fn() -> bool) -> Option<Steering> {
        for _ in 0..50 {
            if is_late() {
                return None;
            }
            let of_path = self.random_below(self.paths.len())?;
            let likely = self.paths[of_path].variations.len().min(40);
            if likely == 0 {
                continue;
            }
            let mut steering = self.paths[of_path].steering.clone();
            for _ in 0..2 + self.random_below(2)? {
                let index = self.random_below(likely)?;
                steering = steering.with(&self.paths[of_path].variations[index].1);
            }
            if self.tried.insert(steering.digest()) {
                return Some(steering);
            }
        }
        None
    }

    fn random_below(&mut self, below: usize) -> Option<usize> {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.random >> 33).ok()?.checked_rem(below)
    }

    /// What would take the branches that are left, as their conditions are written.
    fn vary_conditions(&self, record: &DryRunRecord, ranked: &mut Vec<(u32, Variation)>) {
        for branch in self.all.iter().filter(|branch| !self.covered.contains(*branch)) {
            let Some(code) = PlacedCode::at(&self.plan, branch.capability) else { continue };
            let Some(NodeKind::Decision { condition, form, .. }) =
                code.structure.node(branch.node).map(|node| &node.kind)
            else {
                continue;
            };
            let condition = written_out(code.source, condition);
            let aims = match (branch.outcome.as_str(), form) {
                ("true", DecisionForm::Nullish) => aim::equal(&condition, &Value::Null),
                ("false", DecisionForm::Nullish) => aim::equal(&condition, &json!("text")),
                ("true", _) => aim::aims(&condition, true),
                ("false", _) => aim::aims(&condition, false),
                ("default", _) => aim::equal(&condition, &json!("none of the cases")),
                (case, _) => match case.strip_prefix("case:") {
                    Some(case) => {
                        let value = aim::literal(case).unwrap_or_else(|| json!(case));
                        aim::equal(&condition, &value)
                    }
                    None => continue,
                },
            };
            let read = code.program.map(|program| &program.decided_by[..]).unwrap_or_default();
            let read = read.iter().find(|read| read.node == branch.node);
            let read = read.map(|read| calls_behind(code.structure, &read.reads)).unwrap_or_default();
            let is_read = |call: &&DryCallRecord| {
                let node = call.place.as_ref().map(|(_, node)| *node);
                call.capability.as_deref() == code.capability && node.is_some_and(|node| read.contains(&node))
            };
            let calls: Vec<&DryCallRecord> = record.calls.iter().filter(is_read).collect();
            let together = self.aimed(&aims, &calls);
            if !together.is_empty() {
                ranked.push((MOST_PROMISING, Variation::Together(together)));
            }
        }
    }

    /// The variations that give chains of names the values they should have.
    fn aimed(&self, aims: &[Aim], read: &[&DryCallRecord]) -> Vec<Variation> {
        let mut together = Vec::new();
        let mut seen = BTreeSet::new();
        let read: Vec<_> = read
            .iter()
            .filter_map(|call| Some((*call, call.place.clone().filter(|place| seen.insert(place.clone()))?)))
            .collect();
        for aim in aims {
            if aim.root == "args" {
                if let [name] = &aim.path[..] {
                    together.push(Variation::Argument(name.clone(), Some(aim.value.clone())));
                }
                continue;
            }
            for (call, at) in &read {
                let base = match &call.end {
                    Some(Ok(value)) if value.get().len() > MAX_AIMED_BYTES => continue,
                    Some(Ok(value)) => serde_json::from_str(value.get()).unwrap_or_default(),
                    Some(Err(_)) | None => self.made_up(&call.tool),
                };
                let mut place: Vec<Step> = Vec::new();
                let mut value = aim.value.clone();
                // The variable of a loop is an element of the list that the loop goes through.
                match self.words.loops.iter().find(|(name, _)| *name == aim.root) {
                    Some((_, list)) => {
                        place.extend(list.iter().cloned().map(Step::Key));
                        for name in aim.path.iter().rev() {
                            value = json!({ name: value });
                        }
                        value = json!([value]);
                    }
                    None => place.extend(aim.path.iter().cloned().map(Step::Key)),
                }
                together.push(Variation::Place(at.clone(), Arc::new(base), place, Some(value)));
            }
        }
        together
    }

    /// What could be varied after a run, the most promising first.
    fn variations(&self, record: &DryRunRecord) -> Vec<(u32, Variation)> {
        let mut ranked: Vec<(u32, Variation)> = Vec::new();
        let mut seen = BTreeSet::new();
        let is_open = |branch: &&BranchId| branch.outcome == "error" && !self.covered.contains(*branch);
        let failing: BTreeSet<Option<&str>> = self
            .all
            .iter()
            .filter(is_open)
            .filter_map(|branch| Some(PlacedCode::at(&self.plan, branch.capability)?.capability))
            .collect();
        for call in &record.calls {
            let Some(place) = &call.place else { continue };
            // What fails in a capability may be handled by the program that calls it.
            let fails = failing.contains(&None) || failing.contains(&call.capability.as_deref());
            if !seen.insert(place) {
                continue;
            }
            ranked.push((if fails { 8 } else { 1 }, Variation::Fail(place.clone())));
            let Some(Ok(value)) = &call.end else {
                let made_up = self.made_up(&call.tool);
                ranked.push((6, Variation::Return(place.clone(), made_up.clone())));
                self.vary_value(place, &Arc::new(made_up), &mut ranked);
                continue;
            };
            if value.get().len() > MAX_VARIED_BYTES {
                ranked.push((0, Variation::Return(place.clone(), Value::Null)));
                continue;
            }
            let Ok(value) = serde_json::from_str::<Value>(value.get()) else { continue };
            self.vary_value(place, &Arc::new(value), &mut ranked);
        }
        self.vary_arguments(&mut ranked);
        self.vary_conditions(record, &mut ranked);
        // Stable: within a rank the order of the program.
        ranked.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        ranked.truncate(MAX_VARIATIONS);
        ranked
    }

    fn made_up(&self, tool: &ToolId) -> Value {
        self.made_up.get(tool).cloned().unwrap_or_default()
    }

    fn vary_value(&self, call: &NodePlace, value: &Arc<Value>, ranked: &mut Vec<(u32, Variation)>) {
        let mut places = Vec::new();
        collect_places(value, &mut Vec::new(), &mut places);
        for (place, at) in places.iter().take(MAX_PLACES) {
            let mentioned = match place.iter().rev().find_map(|step| match step {
                Step::Key(key) => Some(key),
                Step::Index(_) => None,
            }) {
                Some(key) => self.words.mentions(key),
                None => true,
            };
            let rank = if mentioned { 3 } else { 0 };
            for other in self.words.others(at) {
                ranked.push((
                    rank + 1,
                    Variation::Place(call.clone(), Arc::clone(value), place.clone(), Some(other)),
                ));
            }
            if matches!(place.last(), Some(Step::Key(_))) {
                ranked.push((rank, Variation::Place(call.clone(), Arc::clone(value), place.clone(), None)));
            }
        }
        // Members that conditions mention and the value lacks.
        if let Value::Object(members) = &**value {
            for name in self.words.names.iter().filter(|name| !members.contains_key(*name)) {
                for other in self.words.any_values() {
                    let place = vec![Step::Key(name.clone())];
                    ranked.push((2, Variation::Place(call.clone(), Arc::clone(value), place, Some(other))));
                }
            }
        }
        ranked.push((0, Variation::Return(call.clone(), Value::Null)));
    }

    fn vary_arguments(&self, ranked: &mut Vec<(u32, Variation)>) {
        let given: Map<String, Value> = serde_json::from_str(self.plan.arguments.get()).unwrap_or_default();
        let names: BTreeSet<&String> = given.keys().chain(&self.words.parameters).collect();
        for name in names.into_iter().take(MAX_PARAMETERS) {
            let rank = if self.words.mentions(name) { 3 } else { 0 };
            let values = match given.get(name) {
                Some(value) => self.words.others(value),
                None => self.words.any_values(),
            };
            for value in values {
                ranked.push((rank + 1, Variation::Argument(name.clone(), Some(value))));
            }
            if given.contains_key(name) {
                ranked.push((rank, Variation::Argument(name.clone(), None)));
            }
        }
    }

    /// The branches that were taken and those that were not.
    pub(super) fn coverage(&self) -> BranchCoverage {
        let told = |branch: &BranchId| {
            let code = PlacedCode::at(&self.plan, branch.capability)?;
            let found = code.structure.node(branch.node)?;
            let condition = match &found.kind {
                NodeKind::Decision { condition, .. } => condition.clone(),
                _ => "try".to_owned(),
            };
            Some(Branch {
                decision: branch.node,
                condition,
                outcome: branch.outcome.clone(),
                line: found.at.line,
                capability: code.capability.map(str::to_owned),
                reached_by: None,
            })
        };
        let untold = |branch: &BranchId| {
            let told = told(branch)?;
            let reach = self.what_reaches(branch, &told);
            Some(Branch { reached_by: Some(reach), ..told })
        };
        let covered =
            self.covered.iter().filter(|branch| self.all.contains(*branch)).filter_map(told).collect();
        let uncovered = self.all.iter().filter(|branch| !self.covered.contains(*branch));
        BranchCoverage { covered, uncovered: uncovered.filter_map(untold).collect(), runs: self.runs }
    }

    /// What would take a branch, in words.
    fn what_reaches(&self, id: &BranchId, branch: &Branch) -> String {
        let is_it = |taken: &BranchId| taken.node == id.node && taken.capability == id.capability;
        if !self.paths.iter().any(|path| path.decisions.iter().any(is_it)) && branch.condition != "try" {
            return match &branch.capability {
                Some(capability) => format!("`{capability}` has to reach its line {}", branch.line),
                None => format!("the program has to reach line {}", branch.line),
            };
        }
        match branch.outcome.as_str() {
            "error" => format!("a call in the `try` on line {} has to fail", branch.line),
            "true" => format!("`{}` has to hold", branch.condition),
            "false" => format!("`{}` must not hold", branch.condition),
            "default" => format!("`{}` has to be none of the cases", branch.condition),
            other => {
                let case = other.strip_prefix("case:").unwrap_or(other);
                format!("`{}` has to be {case}", branch.condition)
            }
        }
    }
}

/// The branches of the program, and of the capabilities that it calls.
fn all_branches(plan: &Plan) -> BTreeSet<BranchId> {
    let mut all = BTreeSet::new();
    for capability in std::iter::once(None).chain((0..plan.nested.len()).map(Some)) {
        let Some(code) = PlacedCode::at(plan, capability) else { continue };
        let branches = branches_of(code).into_iter();
        all.extend(branches.map(|(node, outcome)| BranchId { capability, node, outcome }));
    }
    all
}

/// The calls that these nodes are computed from.
fn calls_behind(structure: &Structure, nodes: &[NodeId]) -> Vec<NodeId> {
    let (mut calls, mut open, mut seen) = (Vec::new(), nodes.to_vec(), BTreeSet::new());
    while let Some(node) = open.pop() {
        if !seen.insert(node) {
            continue;
        }
        match structure.node(node) {
            Some(found) if found.kind.is_call() => calls.push(node),
            _ => open.extend(structure.edges.iter().filter(|edge| edge.to == node).filter_map(|edge| {
                matches!(edge.link, EdgeLink::Provides { basis: EdgeBasis::Data, .. }).then_some(edge.from)
            })),
        }
    }
    calls
}

/// A condition in which names that the program gave to expressions are written out.
fn written_out(source: &str, condition: &str) -> String {
    let name = condition.trim().trim_start_matches('!');
    if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return condition.to_owned();
    }
    for keyword in ["const", "let", "var"] {
        let head = format!("{keyword} {name} = ");
        if let Some(at) = source.find(&head) {
            let rest = &source[at + head.len()..];
            let expression = rest.split([';', '\n']).next().unwrap_or_default();
            return condition.replace(name, &format!("({expression})"));
        }
    }
    condition.to_owned()
}

/// The nodes and edges that a set of paths took, as one structure.
pub(super) fn merged(structure: &Structure, paths: &[Explored]) -> Value {
    let taken: BTreeSet<NodeId> = paths.iter().flat_map(|path| &path.nodes).copied().collect();
    let nodes: Vec<Value> = structure
        .nodes
        .iter()
        .filter(|node| taken.contains(&node.id))
        .map(|node| {
            let mut told = json!({ "id": node.id, "line": node.at.line });
            match &node.kind {
                NodeKind::Task { tool, .. } => told["tool"] = json!(tool),
                NodeKind::Capability { capability, .. } => told["capability"] = json!(capability),
                NodeKind::Decision { condition, .. } => told["condition"] = json!(condition),
                _ => {}
            }
            told
        })
        .collect();
    let own = |branch: &&BranchId| branch.capability.is_none();
    let decisions: BTreeSet<(NodeId, &str)> = paths
        .iter()
        .flat_map(|path| path.decisions.iter().filter(own))
        .map(|branch| (branch.node, branch.outcome.as_str()))
        .collect();
    let edges: Vec<Value> = structure
        .edges
        .iter()
        .filter(|edge| taken.contains(&edge.from) && taken.contains(&edge.to))
        .filter_map(|edge| match &edge.link {
            EdgeLink::Sequence => Some(json!({ "from": edge.from, "to": edge.to })),
            EdgeLink::Conditional { outcome } if decisions.contains(&(edge.from, outcome.as_str())) => {
                Some(json!({ "from": edge.from, "to": edge.to, "outcome": outcome }))
            }
            _ => None,
        })
        .collect();
    json!({ "nodes": nodes, "edges": edges })
}

/// The places of a value, itself first.
fn collect_places<'v>(value: &'v Value, place: &mut Vec<Step>, into: &mut Vec<(Vec<Step>, &'v Value)>) {
    if into.len() >= MAX_PLACES {
        return;
    }
    into.push((place.clone(), value));
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                place.push(Step::Key(name.clone()));
                collect_places(member, place, into);
                place.pop();
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().take(2) {
                place.push(Step::Index(index));
                collect_places(item, place, into);
                place.pop();
            }
        }
        _ => {}
    }
}

/// Replaces or removes the value at a place.
fn put(value: &mut Value, place: &[Step], new: Option<&Value>) {
    match (place, value) {
        ([], value) => *value = new.cloned().unwrap_or(Value::Null),
        ([Step::Key(key)], Value::Object(members)) => {
            match new {
                Some(new) => members.insert(key.clone(), new.clone()),
                None => members.remove(key),
            };
        }
        ([Step::Key(key), rest @ ..], Value::Object(members)) => {
            let member = members.entry(key.clone()).or_insert_with(|| json!({}));
            if !member.is_object() && matches!(rest.first(), Some(Step::Key(_))) {
                *member = json!({});
            }
            put(member, rest, new);
        }
        ([Step::Index(index), rest @ ..], Value::Array(items)) => {
            if let Some(item) = items.get_mut(*index) {
                put(item, rest, new);
            }
        }
        _ => {}
    }
}

/// The path that a run took, for display.
pub(super) fn decisions(path: &ExecutedPath) -> Vec<Value> {
    path.decisions.iter().map(|taken| json!({ "decision": taken.node, "outcome": taken.outcome })).collect()
}
