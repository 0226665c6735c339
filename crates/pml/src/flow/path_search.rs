//! Finds candidate paths for an intent: which tools and capabilities its paths may call, and how these could be
//! connected.

use std::collections::HashSet;
use std::sync::Arc;

use pml_graph::graph::fields::{FieldsDefinition, ToolFields};
use pml_language::Reading;
use pml_model::capability::reliability;
use pml_model::observed::ObservedShape;
use pml_model::{CapabilityId, Principal, ToolId};
use pml_store::{TraceOrder, TraceQuery};
use serde_json::{Map, Value, json};

use super::compose::{StepSearch, compose, reads};
use super::recall::{StepCapability, capabilities_for_step};
use crate::app::App;
use crate::approve::{Effect, Policy};
use crate::catalogue::{CatalogueTool, ToolSnapshot, deprecated};
use crate::execute;
use crate::knowledge::graph::{ToolGraph, fields_of, output_of};
use crate::knowledge::{IndexedCapability, ObservedSchemas, ToolUseCounts};
use crate::problem::{ErrorCode, Problem};
use crate::report::RunStatus;
use crate::suggest::paths::{CandidatePath, PathCallee, PathRequest, PathStep, PathTool, candidate_paths};
use crate::suggest::{MissingArgument, effect, escape_braces};

/// Tools considered for each step: more than a suggestion considers, because wrong ones fail when tried.
const TOOLS_PER_STEP: usize = 6;
/// Capabilities considered for each step, and for the intent as a whole.
const CAPABILITIES_PER_STEP: usize = 2;
/// Least probability of a tool or capability for a step. A wrong path costs a dry run and not a mistake.
const LEAST_STEP: f64 = 0.1;
/// Least probability of a path, so that nothing is tried that has little to do with the request.
const LEAST_PATH: f64 = 0.1;
/// Tools and capabilities in the graph of one exploration.
const MOST_TOOLS: usize = 32;

/// What paths are searched for.
pub(super) struct PathSearch<'a> {
    pub(super) app: &'a Arc<App>,
    pub(super) principal: &'a Principal,
    pub(super) intent: &'a str,
    /// Values that the paths may use, by parameter.
    pub(super) context: &'a Map<String, Value>,
    /// The longest chain of calls.
    pub(super) max_depth: u32,
    pub(super) visible: &'a (dyn Fn(&ToolId) -> bool + Send + Sync),
}

/// The paths found.
pub(super) struct FoundPaths {
    /// Paths read from the request as a whole, likeliest first: learned capabilities that serve it, and the DAG that
    /// would be suggested.
    pub(super) complete: Vec<CandidatePath>,
    /// Paths put together step by step, best first.
    pub(super) paths: Vec<CandidatePath>,
    /// The best path whose chain of calls is longer than allowed, cut where it gets too long.
    pub(super) too_deep: Option<CandidatePath>,
}

/// Everything that paths may call, and which of it could serve which step.
#[derive(Default)]
struct Candidates {
    tools: Vec<PathTool>,
    steps: Vec<PathStep>,
}

impl Candidates {
    /// The place of a tool or capability, which is added if it is not there yet.
    fn place(&mut self, callee: &PathCallee, make: impl FnOnce() -> PathTool) -> usize {
        let known = self.tools.iter().position(|tool| tool.callee == *callee);
        known.unwrap_or_else(|| {
            self.tools.push(make());
            self.tools.len() - 1
        })
    }

    fn unserved_steps(&self) -> Vec<String> {
        let unserved = self.steps.iter().filter(|step| step.candidates.is_empty());
        unserved.map(|step| step.words.clone()).collect()
    }
}

impl PathSearch<'_> {
    /// Candidate paths for the intent.
    ///
    /// # Errors
    /// Nothing that serves the intent can be reached, or the database cannot be read.
    pub(super) async fn find(&self) -> Result<FoundPaths, Problem> {
        let mut complete: Vec<CandidatePath> = self.serving_capabilities().await?;
        let suggested = self.suggested_path().await;
        let is_short = |path: &CandidatePath| path.depth() <= self.max_depth as usize;
        let (suggested, long) = match suggested {
            Some(path) if !is_short(&path) => (None, Some(path.cut_at(self.max_depth as usize))),
            suggested => (suggested, None),
        };
        complete.extend(suggested);
        complete.sort_by(|one, other| one.cost.total_cmp(&other.cost));
        match self.connected_paths().await {
            Ok(found) => Ok(FoundPaths { complete, too_deep: found.too_deep.or(long), ..found }),
            Err(problem)
                if problem.code == ErrorCode::NotFound && (!complete.is_empty() || long.is_some()) =>
            {
                Ok(FoundPaths { complete, paths: Vec::new(), too_deep: long })
            }
            Err(problem) => Err(problem),
        }
    }

    /// The DAG that would be suggested for the intent. Its flow of data is read from the sentence as a whole, so that it
    /// is often right where the fields alone do not decide. What the request does not say is made up for the trial.
    async fn suggested_path(&self) -> Option<CandidatePath> {
        let wanted = self.app.knowledge.embeddings.read_intent(self.intent).await;
        let text = &wanted.text;
        let dag = compose(self.app, self.principal, self.intent, self.context, text, self.visible).await?;
        let mut path = CandidatePath::from_document(dag.dag_structure, dag.confidence, dag.warning)?;
        for MissingArgument { task, name } in &dag.missing {
            let value = self.made_up_argument(path.tool_of(task)?, name)?;
            path.open_argument(task, name, value);
        }
        Some(path)
    }

    /// A value that a tool may be given.
    fn made_up_argument(&self, tool: &ToolId, argument: &str) -> Option<Value> {
        let snapshot = self.app.tools.snapshot();
        let schema: Value =
            serde_json::from_str(snapshot.tool(tool).ok()?.definition.input_schema.get()).ok()?;
        pml_mock::generate_argument(tool, &schema["properties"][argument], 0)
    }

    /// Capabilities that serve the intent as a whole, each as a path of one call.
    async fn serving_capabilities(&self) -> Result<Vec<CandidatePath>, Problem> {
        let found = self.capabilities(self.intent, None).await?;
        let path = |(found, probability): (StepCapability, f64)| {
            let arguments = escape_braces(Value::Object(found.arguments?));
            let task = json!({ "id": "t1", "capability": found.capability.name, "arguments": arguments });
            CandidatePath::from_document(json!({ "tasks": [task] }), probability, None)
        };
        Ok(found.into_iter().filter_map(path).filter(|path| path.probability >= LEAST_PATH).collect())
    }

    /// Paths put together from what could serve the single steps.
    async fn connected_paths(&self) -> Result<FoundPaths, Problem> {
        let snapshot = self.app.tools.snapshot();
        let known = self.app.knowledge.of_principal(self.principal);
        let (observed, uses) = (known.observed(), known.uses());
        let graph = self.app.knowledge.graph(self.principal).await?;
        let mut candidates = self.candidates(&snapshot, (&observed, &uses)).await?;
        let unserved = candidates.unserved_steps();
        if !unserved.is_empty() {
            return Err(nothing_reached(&unserved, &candidates.tools));
        }
        for id in helpers(&graph, &candidates.tools, self.max_depth) {
            let tool = ToolId::parse(&id).ok().and_then(|id| snapshot.tool(&id).ok());
            if let Some(tool) = tool.filter(|tool| self.is_helper(tool))
                && candidates.tools.len() < MOST_TOOLS
            {
                candidates.tools.push(self.path_tool(tool, &observed, &uses));
            }
        }
        let reading = Reading::of(self.intent);
        let mut found = candidate_paths(&PathRequest {
            intent: &reading,
            context: self.context,
            tools: &candidates.tools,
            steps: &candidates.steps,
            max_depth: self.max_depth as usize,
        });
        for path in &found.paths {
            tracing::debug!(cost = path.cost, probability = path.probability, document = %path.document, "a path");
        }
        found.paths.retain(|path| path.probability >= LEAST_PATH);
        let too_deep = found.too_deep.into_iter().find(|path| path.probability >= LEAST_PATH);
        if found.paths.is_empty() && too_deep.is_none() {
            return Err(nothing_reached(&[self.intent.to_owned()], &candidates.tools));
        }
        Ok(FoundPaths { complete: Vec::new(), paths: found.paths, too_deep })
    }

    /// The likeliest tools and capabilities for each step.
    async fn candidates(
        &self,
        snapshot: &Arc<ToolSnapshot>,
        (observed, uses): (&ObservedSchemas, &ToolUseCounts),
    ) -> Result<Candidates, Problem> {
        let policy = self.app.policy();
        let wanted = self.app.knowledge.embeddings.read_intent(self.intent).await;
        let search = StepSearch::new(self.app, self.principal, snapshot, self.visible);
        let searched = search.steps(self.intent, &wanted.text, TOOLS_PER_STEP).await;
        let clauses: Vec<String> = searched.iter().map(|(clause, _)| clause.clone()).collect();
        let mut all = Candidates::default();
        for ((clause, found), asked) in searched.into_iter().zip(effect::asked_effects(&clauses)) {
            let mut likely: Vec<_> = found.into_iter().filter(|(_, score)| *score >= LEAST_STEP).collect();
            let learned = self.capabilities(&clause, asked).await?;
            // What changes nothing does not serve a step that asks for a change.
            let only_reads = |tool: &CatalogueTool| effect::tool_effect(&policy, tool) == Some(Effect::Reads);
            if asked == Some(Effect::Writes) && likely.iter().any(|(tool, _)| !only_reads(tool)) {
                likely.retain(|(tool, _)| !only_reads(tool));
            }
            let mut places = Vec::with_capacity(likely.len() + learned.len());
            for (tool, score) in likely {
                let callee = PathCallee::Tool(tool.id.clone());
                places.push((all.place(&callee, || self.path_tool(tool, observed, uses)), score));
            }
            for (found, score) in learned {
                let output = self.result_schema(&found.capability.id).await?;
                let callee = PathCallee::Capability(found.capability.name.clone());
                places.push((all.place(&callee, || self.path_capability(&found.capability, output)), score));
            }
            all.steps.push(PathStep { words: clause, candidates: places });
        }
        Ok(all)
    }

    /// Capabilities of visible tools that could serve words which ask for that effect, with their probabilities.
    async fn capabilities(
        &self,
        words: &str,
        asked: Option<Effect>,
    ) -> Result<Vec<(StepCapability, f64)>, Problem> {
        let (snapshot, policy) = (self.app.tools.snapshot(), self.app.policy());
        let most = CAPABILITIES_PER_STEP;
        let found = capabilities_for_step(self.app, self.principal, words, self.context, most).await?;
        let weighed = found.into_iter().filter_map(|found| {
            let tools = tools_of(&found.capability, &snapshot)?;
            let suits =
                tools.iter().all(|tool| (self.visible)(&tool.id) && !effect::removes_unasked(words, tool));
            let share = effect::suitability(asked, effect_of(&policy, &tools)).filter(|_| suits)?;
            let probability = found.probability * share * found.capability.reliability();
            (probability >= LEAST_STEP).then_some((found, probability))
        });
        Ok(weighed.collect())
    }

    fn is_helper(&self, tool: &CatalogueTool) -> bool {
        (self.visible)(&tool.id) && reads(self.app, tool) && !deprecated::is_deprecated(tool)
    }

    fn path_tool(&self, tool: &CatalogueTool, observed: &ObservedSchemas, uses: &ToolUseCounts) -> PathTool {
        let parsed = |schema: &str| serde_json::from_str(schema).unwrap_or_default();
        let (calls, failures) =
            uses.get(&tool.id.to_string()).map_or((0, 0), |uses| (uses.calls, uses.failures));
        PathTool {
            callee: PathCallee::Tool(tool.id.clone()),
            input_schema: parsed(tool.definition.input_schema.get()),
            output_schema: output_of(tool, observed).map(|schema| parsed(schema.get())).unwrap_or_default(),
            fields: fields_of(tool, observed),
            is_safe: self.app.policy().verdict(&tool.id, &tool.definition.annotations).can_dry_run(),
            reads_only: reads(self.app, tool),
            reliability: reliability(calls.saturating_sub(failures), calls),
        }
    }

    fn path_capability(&self, known: &IndexedCapability, output_schema: Value) -> PathTool {
        let (snapshot, policy) = (self.app.tools.snapshot(), self.app.policy());
        let tools = tools_of(known, &snapshot).unwrap_or_default();
        let reads_only = tools.iter().all(|tool| reads(self.app, tool));
        // What a capability changed the first time is not what it should change now.
        let input_schema = if reads_only { known.with_first_values() } else { known.parameters.clone() };
        PathTool {
            callee: PathCallee::Capability(known.name.clone()),
            fields: ToolFields::from_definition(&FieldsDefinition {
                id: &known.name,
                name: &known.name,
                description: &known.description,
                input_schema: &input_schema,
                output_schema: Some(&output_schema).filter(|schema| !schema.is_null()),
            }),
            input_schema,
            output_schema,
            is_safe: tools
                .iter()
                .all(|tool| policy.verdict(&tool.id, &tool.definition.annotations).can_dry_run()),
            reads_only,
            reliability: known.reliability(),
        }
    }

    /// The schema of the result of a capability, inferred from its latest successful run; null if none is kept.
    async fn result_schema(&self, capability: &CapabilityId) -> Result<Value, Problem> {
        let latest = TraceQuery {
            capability: Some(capability.clone()),
            order: TraceOrder::Newest,
            limit: 5,
            after: None,
        };
        for trace in self.app.store.traces(self.principal, &latest).await? {
            if trace.error.is_some() || trace.exploratory || trace.parent_trace_id.is_some() {
                continue;
            }
            let status = execute::run_status(&self.app.runs, self.principal, &trace.workflow_id).await;
            if let Ok(RunStatus::Finished(report)) = status
                && let Some(result) = report.result.as_deref()
                && let Ok(result) = serde_json::from_str::<Value>(result.get())
            {
                return Ok(ObservedShape::of(&result).schema());
            }
        }
        Ok(Value::Null)
    }
}

/// The tools of a capability; `None` if one of them is gone.
fn tools_of<'s>(known: &IndexedCapability, snapshot: &'s ToolSnapshot) -> Option<Vec<&'s CatalogueTool>> {
    known.tools.iter().map(|used| snapshot.tool(&ToolId::parse(&used.id).ok()?).ok()).collect()
}

/// The effect of calling all of these tools.
fn effect_of(policy: &Policy, tools: &[&CatalogueTool]) -> Option<Effect> {
    let effects: Vec<Option<Effect>> = tools.iter().map(|tool| effect::tool_effect(policy, tool)).collect();
    if effects.contains(&Some(Effect::Writes)) {
        Some(Effect::Writes)
    } else {
        effects.iter().all(|effect| *effect == Some(Effect::Reads)).then_some(Effect::Reads)
    }
}

/// The tools from which those could get what they need, through as many calls as a path may have.
fn helpers(graph: &ToolGraph, tools: &[PathTool], max_depth: u32) -> Vec<String> {
    let mut layer: Vec<String> = tools.iter().map(|tool| tool.callee.to_string()).collect();
    let mut seen: HashSet<String> = layer.iter().cloned().collect();
    let mut found = Vec::new();
    for _ in 1..max_depth {
        let sources: Vec<String> =
            layer.iter().flat_map(|id| graph.best_sources(id)).map(str::to_owned).collect();
        layer = sources.into_iter().filter(|id| seen.insert(id.clone())).collect();
        found.extend(layer.iter().cloned());
    }
    found
}

fn nothing_reached(steps: &[String], nearest: &[PathTool]) -> Problem {
    let steps: Vec<String> = steps.iter().map(|step| format!("“{step}”")).collect();
    let told = format!("no tools can be put together for {}", steps.join(" and "));
    let nearest: Vec<String> = nearest.iter().take(5).map(|tool| format!("`{}`", tool.callee)).collect();
    let hint = match nearest.is_empty() {
        true => "no tool comes near; add a server that does this".to_owned(),
        false => format!(
            "the nearest tools are {}; give the values they need in `intent` or `context`",
            nearest.join(", ")
        ),
    };
    Problem::new(ErrorCode::NotFound, told).hint(hint)
}
