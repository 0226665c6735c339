//! Adds the capabilities that a program calls to its plan, each pinned to its present version.

use std::collections::{BTreeSet, HashMap};

use pml_model::capability::{CapabilitySource, CapabilityState};
use pml_model::json::raw;
use pml_model::structure::NodeId;
use pml_model::{CapabilityId, Principal, ToolId};
use pml_sandbox::MOST_DEPTH;
use serde_json::Value;
use serde_json::value::RawValue;

use super::unfold::{self, UnfoldedDag, unfold};
use super::{PlanRefusal, PlanningContext, approval_handle, grant_declared_tools, refuse_mistakes};
use crate::knowledge::IndexedCapability;
use crate::plan::{ApprovalReason, PlannedCapability, PlannedTool, ProgramScope};
use crate::problem::{ErrorCode, Problem};

/// The number of capabilities one plan may contain, directly or indirectly called.
const MOST: usize = 64;

/// The called capabilities and granted tools collected so far.
pub(super) struct PlanResources<'s> {
    setting: &'s PlanningContext<'s>,
    pub(super) tools: Vec<PlannedTool>,
    pub(super) programs: Vec<PlannedCapability>,
    /// The index of each capability, with the number of levels it spans, itself included.
    places: HashMap<CapabilityId, (u32, u32)>,
}

impl<'s> PlanResources<'s> {
    /// Starts with what the plan contains already.
    pub(super) fn new(
        setting: &'s PlanningContext<'s>,
        tools: Vec<PlannedTool>,
        programs: Vec<PlannedCapability>,
    ) -> PlanResources<'s> {
        let mut nest = PlanResources { setting, tools, programs, places: HashMap::new() };
        // A called capability always has a smaller index than its caller.
        for (place, program) in (0..).zip(&nest.programs) {
            let below = program.sees.nested.iter().filter_map(|place| nest.programs.get(*place as usize));
            let below = below.filter_map(|below| nest.places.get(&below.id)).map(|(_, levels)| *levels).max();
            nest.places.insert(program.id.clone(), (place, below.unwrap_or(0) + 1));
        }
        nest
    }

    /// The indexes of the capabilities that a program calls by these names. `line` gives the line of the first call of
    /// one.
    pub(super) fn add_called(
        &mut self,
        names: &BTreeSet<String>,
        line: impl Fn(&str) -> Option<u32>,
    ) -> Result<Vec<u32>, PlanRefusal> {
        let mut places = Vec::with_capacity(names.len());
        for name in names {
            let (place, _) = self
                .place(None, name, &mut Vec::new())
                .map_err(|problem| PlanRefusal { line: line(name), ..PlanRefusal::from(problem) })?;
            places.push(place);
        }
        Ok(places)
    }

    /// Adds a tool and returns its handle.
    pub(super) fn add_tool(&mut self, granted: PlannedTool) -> u32 {
        let known = self.tools.iter().position(|tool| tool.id == granted.id);
        let handle = known.unwrap_or_else(|| {
            self.tools.push(granted);
            self.tools.len() - 1
        });
        u32::try_from(handle).unwrap_or(u32::MAX)
    }

    /// The index of a capability and its number of levels; `around` are the capabilities that call it, the last one a
    /// capability of `owner`.
    fn place(
        &mut self,
        owner: Option<&Principal>,
        name: &str,
        around: &mut Vec<(CapabilityId, String)>,
    ) -> Result<(u32, u32), Problem> {
        let known = self.setting.capabilities.find_by_name(owner, name);
        let known = known.ok_or_else(|| {
            Problem::new(ErrorCode::InvalidProgram, format!("there is no capability `{name}`"))
                .hint("`pml_discover` finds capabilities by what they are for")
        })?;
        if around.iter().any(|(id, _)| *id == known.id) {
            let text = format!("capabilities call each other in a circle: {}", path(around, &known.name));
            return Err(Problem::new(ErrorCode::InvalidProgram, text)
                .hint("take one of the calls out, or `pml capabilities rename` what is called by mistake"));
        }
        let (place, levels) = match self.places.get(&known.id) {
            Some(found) => *found,
            None => self.add(&known, around)?,
        };
        let depth = u32::try_from(around.len()).unwrap_or(u32::MAX).saturating_add(levels);
        if depth > MOST_DEPTH {
            let text = format!(
                "capabilities call each other more than {MOST_DEPTH} levels deep: {}",
                path(around, &known.name)
            );
            return Err(Problem::new(ErrorCode::InvalidProgram, text).hint("write one of them out"));
        }
        Ok((place, levels))
    }

    fn add(
        &mut self,
        known: &IndexedCapability,
        around: &mut Vec<(CapabilityId, String)>,
    ) -> Result<(u32, u32), Problem> {
        usable(known)?;
        if self.programs.len() >= MOST {
            let text = format!("the program calls more than {MOST} capabilities, those they call included");
            return Err(Problem::new(ErrorCode::TooLarge, text).hint("write some of them out"));
        }
        let within = |problem: Problem| Problem {
            message: format!("capability `{}`: {}", known.name, problem.message),
            ..problem
        };
        let AnalysedCapability { source, analysis, code_hash, tasks, asks } =
            self.ready(known).map_err(within)?;
        if let Some(remark) = analysis.permissions.opaque.first() {
            let text = format!("it may call tools that cannot be known before it runs: {}", remark.what);
            return Err(within(Problem::new(ErrorCode::Denied, text)).hint("run it by itself"));
        }
        let granted = grant_declared_tools(self.setting, &analysis.permissions.declared, |_| None)
            .map_err(|refused| within(refused.problem))?;
        around.push((known.id.clone(), known.name.clone()));
        let (mut nested, mut levels) = (Vec::new(), 0);
        for name in &analysis.permissions.capabilities {
            let (place, below) = self.place(Some(&known.owner), name, around)?;
            nested.push(place);
            levels = levels.max(below);
        }
        around.pop();
        let mut tools: Vec<u32> =
            granted.into_iter().map(|granted| self.add_tool(asked_for(granted, &known.name))).collect();
        for tool in &mut tools {
            if self.tools.get(*tool as usize).is_some_and(|granted| asks.includes(&granted.id)) {
                *tool = u32::try_from(approval_handle(*tool as usize, &mut self.tools)).unwrap_or(u32::MAX);
            }
        }
        let place = u32::try_from(self.programs.len()).unwrap_or(u32::MAX);
        self.programs.push(PlannedCapability {
            id: known.id.clone(),
            name: known.name.clone(),
            code_hash,
            program: analysis.program,
            structure: analysis.structure,
            defaults: defaults(known),
            sees: ProgramScope { tools, nested },
            source,
            tasks,
        });
        self.places.insert(known.id.clone(), (place, levels + 1));
        Ok((place, levels + 1))
    }
}

/// A capability in the form that runs within a program.
struct AnalysedCapability {
    source: String,
    analysis: pml_analysis::Analysis,
    code_hash: String,
    /// The task ids by node; empty unless it is a DAG document.
    tasks: Vec<(NodeId, String)>,
    asks: unfold::ToolsNeedingApproval,
}

impl PlanResources<'_> {
    fn ready(&self, known: &IndexedCapability) -> Result<AnalysedCapability, Problem> {
        let source = match &known.program.source {
            CapabilitySource::Code { code, template } => template.as_ref().unwrap_or(code).clone(),
            CapabilitySource::Tool { tool_id, .. } => {
                holds_defaults(known)?;
                delegating(tool_id)?
            }
            CapabilitySource::Dag { dag_structure, template } => {
                holds_defaults(known)?;
                return self.unfolded(&known.owner, template.as_ref().unwrap_or(dag_structure).get());
            }
        };
        let analysis = self.understood(&known.owner, &source)?;
        let code_hash = analysis.identity.code_hash.clone();
        let asks = unfold::ToolsNeedingApproval::These(BTreeSet::new());
        Ok(AnalysedCapability { source, analysis, code_hash, tasks: Vec::new(), asks })
    }

    fn understood(&self, owner: &Principal, source: &str) -> Result<pml_analysis::Analysis, Problem> {
        let analysis =
            pml_analysis::analyse(source, &self.setting.capabilities.catalogue_for(Some(owner), source))
                .map_err(|error| Problem::new(ErrorCode::InvalidProgram, error.to_string()))?;
        refuse_mistakes(&analysis.complaints).map_err(|refused| refused.problem)?;
        Ok(analysis)
    }

    /// A document as a program with the same behaviour, which reports the nodes of the document.
    fn unfolded(&self, owner: &Principal, document: &str) -> Result<AnalysedCapability, Problem> {
        let dag = pml_analysis::analyse_dag(
            document,
            &self.setting.capabilities.catalogue_for(Some(owner), document),
        )
        .map_err(|error| Problem::new(ErrorCode::InvalidProgram, error.to_string()))?;
        refuse_mistakes(&dag.complaints).map_err(|refused| refused.problem)?;
        let (tasks, most) = (dag.dag.tasks.len(), self.setting.bounds.calls);
        if tasks > most as usize {
            let text = format!("it has {tasks} tasks and a run may make {most} calls");
            return Err(Problem::new(ErrorCode::TooLarge, text).hint("raise `limits.calls` in pml.toml"));
        }
        let unfolded = unfold(&dag.dag)?;
        let mut analysis = self.understood(owner, &unfolded.source)?;
        unfolded.name_sites(&mut analysis.program, &dag.structure);
        analysis.structure = dag.structure;
        let UnfoldedDag { tasks, asks, .. } = unfolded;
        let source = document.to_owned();
        Ok(AnalysedCapability { source, analysis, code_hash: dag.identity.code_hash, tasks, asks })
    }
}

/// The path of calls for an error message, such as `a → b → a`.
fn path(around: &[(CapabilityId, String)], last: &str) -> String {
    let names = around.iter().map(|(_, name)| name.as_str()).chain([last]);
    names.collect::<Vec<_>>().join(" → ")
}

fn usable(known: &IndexedCapability) -> Result<(), Problem> {
    let text = match known.state {
        CapabilityState::Active => return Ok(()),
        CapabilityState::Planned => {
            format!("capability `{}` has not worked yet and cannot be called", known.name)
        }
        CapabilityState::Degraded => format!("capability `{}` is degraded and cannot be called", known.name),
    };
    Err(Problem::new(ErrorCode::InvalidProgram, text)
        .hint(format!("run it by itself until it works; `pml capabilities show {}` tells more", known.name)))
}

/// The source of a program that only calls `tool`.
fn delegating(tool: &str) -> Result<String, Problem> {
    let id = ToolId::parse(tool).map_err(|error| Problem::new(ErrorCode::UnknownTool, error.to_string()))?;
    Ok(format!("return await mcp[{}][{}](args);", raw(&id.server.as_str()), raw(&id.tool)))
}

/// The default values of the capability's parameters.
fn defaults(known: &IndexedCapability) -> Vec<(String, Box<RawValue>)> {
    let members = known.parameters.get("properties").and_then(Value::as_object);
    let default = |(name, member): (&String, &Value)| Some((name.clone(), raw(member.get("default")?)));
    members.into_iter().flatten().filter_map(default).collect()
}

/// Checks that JavaScript keeps every default value exactly.
fn holds_defaults(known: &IndexedCapability) -> Result<(), Problem> {
    let members = known.parameters.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, member) in members {
        if member.get("default").is_some_and(unfold::is_large) {
            let text = format!("its parameter `{name}` is a number that programs cannot hold");
            return Err(Problem::new(ErrorCode::InvalidProgram, text)
                .hint("run it by itself, and give its result to the program in `context`"));
        }
    }
    Ok(())
}

/// A tool that needs approval, with the capability that calls it in the reason.
fn asked_for(granted: PlannedTool, capability: &str) -> PlannedTool {
    let by = |asks: ApprovalReason| ApprovalReason {
        because: format!("{}; capability `{capability}` calls it", asks.because),
        ..asks
    };
    PlannedTool { asks: granted.asks.map(by), ..granted }
}
