//! Turns a request into a plan.
//!
//! Analysis is `pml-analysis`'s business; here it gets what it has to know about the tools there are.

use std::time::Duration;

use pml_analysis::render::Report;
use pml_analysis::{Analysis, Catalogue, Complaint, Severity, Tool};
use pml_mcp::Caller;
use pml_model::json::Fields;
use pml_model::question::Answerer;
use pml_model::{Principal, ToolId};
use pml_store::Idempotency;
use serde_json::value::RawValue;

use crate::app::now_ms;
use crate::approve::question::before;
use crate::approve::{Mode, Policy, Refusal, Verdict};
use crate::catalogue::{self, Snapshot};
use crate::config::Dynamic;
use crate::execute::{Asks, Bounds, Granted, Plan};
use crate::problem::{Code, Problem};

/// A program to be run.
pub struct Execution {
    /// Who asks.
    pub principal: Principal,
    /// In which session.
    pub session: String,
    /// What it is for.
    pub intent: String,
    /// The program.
    pub code: String,
    /// Its `args`, a JSON object.
    pub arguments: Box<RawValue>,
    /// How long it may take, where that is less than it might.
    pub timeout: Option<Duration>,
    /// Who hears of it meanwhile.
    pub caller: Caller,
    /// What makes a repeated request the same run.
    pub idempotency: Option<Idempotency>,
    /// How long it may wait for its turn.
    pub patience: Duration,
    /// Whose word counts where a person has to be asked.
    pub by: Answerer,
    /// What becomes of it where its calls cannot be known beforehand.
    pub dynamic: Dynamic,
}

/// Why a program is not run.
#[derive(Debug)]
pub struct Refused {
    /// The first reason.
    pub problem: Problem,
    /// The line it is about.
    pub line: Option<u32>,
    /// All reasons, as a person reads them.
    pub all: Vec<String>,
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Refused {
        Refused { all: vec![problem.to_string()], problem, line: None }
    }
}

/// The tools of `snapshot` as programs may name them. What a server claims about its tools is not
/// believed: only the tools of servers that are `ours` are known to change nothing.
pub fn catalogue(snapshot: &Snapshot, ours: impl Fn(&str) -> bool) -> Catalogue {
    let mut catalogue = Catalogue::default();
    for tool in &snapshot.tools {
        let definition = &tool.definition;
        let reads = definition.annotations.read_only_hint == Some(true) && ours(tool.id.server.as_str());
        catalogue.add(Tool::new(
            tool.id.clone(),
            tool.identifier.clone(),
            definition.input_schema.clone(),
            definition.output_schema.clone(),
            reads,
        ));
    }
    catalogue
}

/// The analysis, unless it found mistakes: a program that would fail is not run.
pub(crate) fn without_mistakes(analysis: Box<Analysis>) -> Result<Box<Analysis>, Refused> {
    let mistakes = |complaint: &&Complaint| complaint.severity == Severity::Error;
    let all: Vec<String> = analysis
        .complaints
        .iter()
        .filter(mistakes)
        .map(|complaint| {
            let hint = complaint.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("line {}: {}{hint}", complaint.at.line, complaint.message)
        })
        .collect();
    let Some(first) = analysis.complaints.iter().find(mistakes) else { return Ok(analysis) };
    let mut problem = Problem::new(Code::InvalidProgram, first.message.clone());
    problem.hint.clone_from(&first.hint);
    Err(Refused { problem, line: Some(first.at.line), all })
}

/// Why a text is no program.
pub(crate) fn not_understood(report: &Report) -> Refused {
    let mut problem = Problem::new(Code::InvalidProgram, report.message.clone());
    problem.hint.clone_from(&report.hint);
    Refused { all: vec![problem.to_string()], problem, line: report.at.map(|at| at.line) }
}

/// What is run, if the rules allow it: every tool the program can call must be one it may call, or one that a person can
/// allow it to call. Whoever may be asked is asked once, before anything runs, about all that is known by then.
pub(crate) fn plan(
    snapshot: &Snapshot,
    policy: &Policy,
    analysis: Analysis,
    asked: &Execution,
    bounds: Bounds,
    visible: impl Fn(&ToolId) -> bool,
) -> Result<Plan, Refused> {
    let opaque = &analysis.permissions.opaque;
    if let Some(remark) = opaque.first().filter(|_| asked.dynamic == Dynamic::Refuse) {
        let text = format!("the program may call tools that cannot be known before it runs: {}", remark.what);
        let problem = Problem::new(Code::Denied, text).hint("write each call out, as `mcp.server.tool(…)`");
        return Err(Refused { line: Some(remark.at.line), ..Refused::from(problem) });
    }
    given(&asked.arguments, bounds.argument_bytes)?;
    let mut granted = Vec::with_capacity(analysis.permissions.declared.len());
    let mut refused = Vec::new();
    for name in &analysis.permissions.declared {
        let id = ToolId::parse(name).map_err(|error| Problem::new(Code::UnknownTool, error.to_string()))?;
        let tool = snapshot.tool(&id)?;
        if !visible(&id) {
            let problem = Problem::new(Code::Denied, format!("tool `{id}` is not exposed to this client"));
            return Err(problem.hint("add it to `expose` in pml.toml").into());
        }
        let verdict = policy.of(&id, &tool.definition.annotations);
        refused.extend(verdict.refusal(&id));
        granted.push(grantable(tool, &verdict));
    }
    if let Some(first) = refused.first() {
        let problem = Problem::new(Code::Denied, first.to_string()).hint(Refusal::HINT);
        let line = first_line(&analysis, &first.tool.to_string());
        return Err(Refused { problem, line, all: refused.iter().map(ToString::to_string).collect() });
    }
    let opaque: Vec<String> =
        opaque.iter().map(|remark| format!("line {}: {}", remark.at.line, remark.what)).collect();
    if !opaque.is_empty() {
        granted.extend(all_others(snapshot, policy, &granted, visible));
    }
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| {
        Problem::new(Code::Sandbox, format!("the system gives no random numbers: {error}"))
    })?;
    let mut plan = Plan::new(
        asked.intent.clone(),
        asked.code.clone(),
        analysis,
        asked.arguments.clone(),
        granted,
        bounds,
        (u64::from_le_bytes(seed), now_ms()),
    );
    plan.by = asked.by;
    plan.opaque = opaque;
    plan.question = before(&plan, |tool| snapshot.description(&tool.id.to_string(), &tool.digest));
    Ok(plan)
}

/// What a run sees of a tool.
fn grantable(tool: &catalogue::Tool, verdict: &Verdict) -> Granted {
    Granted {
        id: tool.id.clone(),
        names: names(tool),
        digest: tool.definition.digest.clone(),
        idempotent: verdict.idempotent,
        asks: (verdict.mode == Mode::Ask)
            .then(|| Asks { scope: verdict.scope.as_str().to_owned(), because: verdict.because.clone() }),
    }
}

/// What a program whose calls cannot be known may come to call: whatever it sees and no rule forbids.
fn all_others<'a>(
    snapshot: &'a Snapshot,
    policy: &'a Policy,
    declared: &[Granted],
    visible: impl Fn(&ToolId) -> bool + 'a,
) -> Vec<Granted> {
    let others = snapshot
        .tools
        .iter()
        .filter(|tool| visible(&tool.id) && declared.iter().all(|known| known.id != tool.id));
    others
        .filter_map(|tool| {
            let verdict = policy.of(&tool.id, &tool.definition.annotations);
            verdict.refusal(&tool.id).is_none().then(|| grantable(tool, &verdict))
        })
        .collect()
}

fn names(tool: &catalogue::Tool) -> Vec<String> {
    let mut names = vec![tool.id.tool.clone()];
    if tool.identifier != tool.id.tool {
        names.push(tool.identifier.clone());
    }
    names
}

fn first_line(analysis: &Analysis, tool: &str) -> Option<u32> {
    let sites = analysis.program.sites.iter().filter(|site| site.tool.as_deref() == Some(tool));
    sites.map(|site| site.at.line).min()
}

/// Whether what the program is given can be given to it. What it makes of it is its own affair: it runs as it was submitted.
fn given(arguments: &RawValue, most: u64) -> Result<(), Problem> {
    let size = arguments.get().len();
    if size as u64 > most {
        let text = format!("the arguments of the program have {size} bytes and may have {most}");
        return Err(
            Problem::new(Code::TooLarge, text).hint("give less, or raise `limits.arguments` in pml.toml")
        );
    }
    Fields::parse(arguments.get()).map_err(|_| {
        Problem::new(Code::InvalidArguments, "the arguments of the program are not a JSON object")
            .hint("give them as `context`, such as {\"path\": \"notes.txt\"}")
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use pml_model::{Definition, ServerName};
    use serde_json::json;

    use super::*;
    use crate::catalogue::{Listing, Naming, Server, with_identifiers};

    fn listing(server: &str) -> Listing {
        let definition = |name: &str, reads: bool| {
            let text = json!({
                "name": name, "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": reads},
            });
            Definition::parse(pml_model::json::raw(&text)).unwrap()
        };
        let server = Server {
            name: ServerName::new(server).unwrap(),
            description: None,
            known: true,
            capabilities: None,
        };
        Listing {
            server,
            tools: with_identifiers(vec![definition("get-sum", true), definition("put", false)]),
        }
    }

    #[test]
    fn only_our_own_claims_to_read_are_believed() {
        let snapshot = Snapshot::new(vec![listing("mine"), listing("theirs")], Naming::Qualified);
        let made = catalogue(&snapshot, |server| server == "mine");
        let reads = |server, tool| made.tool(server, tool).map(|tool| tool.read_only);
        assert_eq!(reads("mine", "get_sum"), Some(true));
        assert_eq!(reads("mine", "get-sum"), Some(true), "by its own name as well");
        assert_eq!(reads("mine", "put"), Some(false));
        assert_eq!(reads("theirs", "get_sum"), Some(false));
        assert_eq!(reads("theirs", "get_summ"), None);
        assert!(made.tool("mine", "put").unwrap().output().is_some());
    }
}
