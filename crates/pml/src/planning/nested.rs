//! The capabilities that a program calls, made ready to run with it: each pinned to what it is now.

use std::collections::{BTreeSet, HashMap};

use pml_model::capability::{Source, State};
use pml_model::json::raw;
use pml_model::structure::NodeId;
use pml_model::{CapabilityId, ToolId};
use pml_sandbox::MOST_DEPTH;
use serde_json::Value;
use serde_json::value::RawValue;

use super::unfold::{self, Unfolded, unfold};
use super::{Refused, Setting, asking, grantables, without_mistakes};
use crate::knowledge::Known;
use crate::plan::{Asks, Granted, Nested, Sees};
use crate::problem::{Code, Problem};

/// How many capabilities one run may have ready, those that they call included.
const MOST: usize = 64;

/// The capabilities that are called so far, and the tools that are granted.
pub(super) struct Nest<'s> {
    setting: &'s Setting<'s>,
    pub(super) tools: Vec<Granted>,
    pub(super) programs: Vec<Nested>,
    /// Where each stands, and how many levels it has itself.
    places: HashMap<CapabilityId, (u32, u32)>,
}

impl<'s> Nest<'s> {
    /// What there is already.
    pub(super) fn new(setting: &'s Setting<'s>, tools: Vec<Granted>, programs: Vec<Nested>) -> Nest<'s> {
        let mut nest = Nest { setting, tools, programs, places: HashMap::new() };
        // What is called stands before what calls it.
        for (place, program) in (0..).zip(&nest.programs) {
            let below = program.sees.nested.iter().filter_map(|place| nest.programs.get(*place as usize));
            let below = below.filter_map(|below| nest.places.get(&below.id)).map(|(_, levels)| *levels).max();
            nest.places.insert(program.id.clone(), (place, below.unwrap_or(0) + 1));
        }
        nest
    }

    /// The places of the capabilities that a program calls by these names. `line` is where it first calls one.
    pub(super) fn called(
        &mut self,
        names: &BTreeSet<String>,
        line: impl Fn(&str) -> Option<u32>,
    ) -> Result<Vec<u32>, Refused> {
        let mut places = Vec::with_capacity(names.len());
        for name in names {
            let (place, _) = self
                .place(name, &mut Vec::new())
                .map_err(|problem| Refused { line: line(name), ..Refused::from(problem) })?;
            places.push(place);
        }
        Ok(places)
    }

    /// The handle of a tool.
    pub(super) fn grant(&mut self, granted: Granted) -> u32 {
        let known = self.tools.iter().position(|tool| tool.id == granted.id);
        let handle = known.unwrap_or_else(|| {
            self.tools.push(granted);
            self.tools.len() - 1
        });
        u32::try_from(handle).unwrap_or(u32::MAX)
    }

    /// Where a capability stands and how many levels it has; `around` are those that call it.
    fn place(&mut self, name: &str, around: &mut Vec<(CapabilityId, String)>) -> Result<(u32, u32), Problem> {
        let known = self.setting.learned.named(name);
        let known = known.ok_or_else(|| {
            Problem::new(Code::InvalidProgram, format!("there is no capability `{name}`"))
                .hint("`pml_discover` finds capabilities by what they are for")
        })?;
        if around.iter().any(|(id, _)| *id == known.id) {
            let text = format!("capabilities call each other in a circle: {}", path(around, &known.name));
            return Err(Problem::new(Code::InvalidProgram, text)
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
            return Err(Problem::new(Code::InvalidProgram, text).hint("write one of them out"));
        }
        Ok((place, levels))
    }

    fn add(
        &mut self,
        known: &Known,
        around: &mut Vec<(CapabilityId, String)>,
    ) -> Result<(u32, u32), Problem> {
        usable(known)?;
        if self.programs.len() >= MOST {
            let text = format!("the program calls more than {MOST} capabilities, those they call included");
            return Err(Problem::new(Code::TooLarge, text).hint("write some of them out"));
        }
        let within = |problem: Problem| Problem {
            message: format!("capability `{}`: {}", known.name, problem.message),
            ..problem
        };
        let Ready { source, analysis, code_hash, tasks, asks } = self.ready(known).map_err(within)?;
        if let Some(remark) = analysis.permissions.opaque.first() {
            let text = format!("it may call tools that cannot be known before it runs: {}", remark.what);
            return Err(within(Problem::new(Code::Denied, text)).hint("run it by itself"));
        }
        let granted = grantables(self.setting, &analysis.permissions.declared, |_| None)
            .map_err(|refused| within(refused.problem))?;
        around.push((known.id.clone(), known.name.clone()));
        let (mut nested, mut levels) = (Vec::new(), 0);
        for name in &analysis.permissions.capabilities {
            let (place, below) = self.place(name, around)?;
            nested.push(place);
            levels = levels.max(below);
        }
        around.pop();
        let mut tools: Vec<u32> =
            granted.into_iter().map(|granted| self.grant(asked_for(granted, &known.name))).collect();
        for tool in &mut tools {
            if self.tools.get(*tool as usize).is_some_and(|granted| asks.about(&granted.id)) {
                *tool = u32::try_from(asking(*tool as usize, &mut self.tools)).unwrap_or(u32::MAX);
            }
        }
        let place = u32::try_from(self.programs.len()).unwrap_or(u32::MAX);
        self.programs.push(Nested {
            id: known.id.clone(),
            name: known.name.clone(),
            code_hash,
            program: analysis.program,
            structure: analysis.structure,
            defaults: defaults(known),
            sees: Sees { tools, nested },
            source,
            tasks,
        });
        self.places.insert(known.id.clone(), (place, levels + 1));
        Ok((place, levels + 1))
    }
}

/// A capability as it is run within a program.
struct Ready {
    source: String,
    analysis: pml_analysis::Analysis,
    code_hash: String,
    /// The names of its tasks, where it is a document.
    tasks: Vec<(NodeId, String)>,
    asks: unfold::Asks,
}

impl Nest<'_> {
    fn ready(&self, known: &Known) -> Result<Ready, Problem> {
        let source = match &known.source {
            Source::Code { code, template } => template.as_ref().unwrap_or(code).clone(),
            Source::Tool { tool_id, .. } => {
                holds_defaults(known)?;
                delegating(tool_id)?
            }
            Source::Dag { dag_structure, template } => {
                holds_defaults(known)?;
                return self.unfolded(template.as_ref().unwrap_or(dag_structure).get());
            }
        };
        let analysis = self.understood(&source)?;
        let code_hash = analysis.identity.code_hash.clone();
        let asks = unfold::Asks::These(BTreeSet::new());
        Ok(Ready { source, analysis, code_hash, tasks: Vec::new(), asks })
    }

    fn understood(&self, source: &str) -> Result<pml_analysis::Analysis, Problem> {
        let analysis = pml_analysis::analyse(source, &self.setting.learned.catalogue(source))
            .map_err(|error| Problem::new(Code::InvalidProgram, error.to_string()))?;
        without_mistakes(&analysis.complaints).map_err(|refused| refused.problem)?;
        Ok(analysis)
    }

    /// A document, as the program that does the same and tells of it as the document would.
    fn unfolded(&self, document: &str) -> Result<Ready, Problem> {
        let dag = pml_analysis::analyse_dag(document, &self.setting.learned.catalogue(document))
            .map_err(|error| Problem::new(Code::InvalidProgram, error.to_string()))?;
        without_mistakes(&dag.complaints).map_err(|refused| refused.problem)?;
        let (tasks, most) = (dag.dag.tasks.len(), self.setting.bounds.calls);
        if tasks > most as usize {
            let text = format!("it has {tasks} tasks and a run may make {most} calls");
            return Err(Problem::new(Code::TooLarge, text).hint("raise `limits.calls` in pml.toml"));
        }
        let unfolded = unfold(&dag.dag)?;
        let mut analysis = self.understood(&unfolded.source)?;
        unfolded.name_sites(&mut analysis.program, &dag.structure);
        analysis.structure = dag.structure;
        let Unfolded { tasks, asks, .. } = unfolded;
        let source = document.to_owned();
        Ok(Ready { source, analysis, code_hash: dag.identity.code_hash, tasks, asks })
    }
}

/// Such as `a → b → a`.
fn path(around: &[(CapabilityId, String)], last: &str) -> String {
    let names = around.iter().map(|(_, name)| name.as_str()).chain([last]);
    names.collect::<Vec<_>>().join(" → ")
}

fn usable(known: &Known) -> Result<(), Problem> {
    let text = match known.state {
        State::Active => return Ok(()),
        State::Planned => format!("capability `{}` has not worked yet and cannot be called", known.name),
        State::Degraded => format!("capability `{}` is degraded and cannot be called", known.name),
    };
    Err(Problem::new(Code::InvalidProgram, text)
        .hint(format!("run it by itself until it works; `pml capabilities show {}` tells more", known.name)))
}

/// A program over a tool.
fn delegating(tool: &str) -> Result<String, Problem> {
    let id = ToolId::parse(tool).map_err(|error| Problem::new(Code::UnknownTool, error.to_string()))?;
    Ok(format!("return await mcp[{}][{}](args);", raw(&id.server.as_str()), raw(&id.tool)))
}

/// What it is given where its caller leaves something out.
fn defaults(known: &Known) -> Vec<(String, Box<RawValue>)> {
    let members = known.parameters.get("properties").and_then(Value::as_object);
    let default = |(name, member): (&String, &Value)| Some((name.clone(), raw(member.get("default")?)));
    members.into_iter().flatten().filter_map(default).collect()
}

/// Makes sure that what it takes anyway is the same in a program.
fn holds_defaults(known: &Known) -> Result<(), Problem> {
    let members = known.parameters.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, member) in members {
        if member.get("default").is_some_and(unfold::is_large) {
            let text = format!("its parameter `{name}` is a number that programs cannot hold");
            return Err(Problem::new(Code::InvalidProgram, text)
                .hint("run it by itself, and give its result to the program in `context`"));
        }
    }
    Ok(())
}

/// A tool that a person is asked about, with who calls it.
fn asked_for(granted: Granted, capability: &str) -> Granted {
    let by = |asks: Asks| Asks {
        because: format!("{}; capability `{capability}` calls it", asks.because),
        ..asks
    };
    Granted { asks: granted.asks.map(by), ..granted }
}
