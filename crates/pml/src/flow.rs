//! The spine: what happens to an intent, in order.
//!
//! An intent or a call reaches the stages only through here, from whichever door (MCP, HTTP, terminal) it
//! came: every choice about what comes next is made here, and the work is done in the stages.

mod approvals;
mod authority;
mod capabilities;
mod compose;
mod direct;
mod recall;
mod repeated;
mod replan;
mod said;

use std::collections::HashMap;
use std::sync::Arc;

use pml_analysis::render::Report as Misread;
use pml_graph::graph::closeness::Close;
use pml_mcp::Caller;
use pml_model::json::empty_object;
use pml_model::name::printable;
use pml_model::{Principal, RunId, ToolId};
use pml_store::Idempotency;

use crate::app::App;
use crate::catalogue::Tool;
use crate::clock::now_ms;
use crate::discover::{self, Page, Request};
use crate::execute::replay::{self, Recording, Replayed};
use crate::execute::{self, Asked, First, Handle, Overview, Page as ResultPage, Resumed};
use crate::knowledge::cache;
use crate::knowledge::embeddings;
use crate::knowledge::graph::{View, Way};
use crate::knowledge::{Candidate, names_capabilities};
use crate::plan::Bounds;
use crate::plan::Plan;
use crate::planning;
use crate::planning::{Execution, Refused, Setting};
use crate::problem::{Code, Problem};
use crate::report::{Report, Standing};
use crate::runtime::blocking;
use crate::suggest::SuggestedDag;

pub use crate::execute::Wanted;
pub use approvals::{By, Open, answer, asking, asks_nothing, open_question, revoke_rule, rules};
pub use authority::needs_person;
pub use capabilities::{
    Contained, NewCapability, PageOfTraces, Record, capabilities, capability, delete_capability,
    drop_results, dropped_results, forget_intent, keep_results, make_capability, merge_capabilities,
    page_of_traces, recent_traces, record, relearn, rename_capability, trace,
};
pub use direct::{Called, NamedCall, call};
use recall::Recalled;
pub use recall::{Contradicted, Earlier, Missing, Suggested, Suggestion};
pub use replan::replan;
pub use said::{Remembered, Said};

/// An intent comes in; what could serve it, and the asker may see, goes out.
///
/// # Errors
/// The request cannot be understood.
pub async fn discover(
    app: &App,
    (principal, session): (&Principal, Option<&str>),
    request: &Request,
    visible: impl Fn(&Tool) -> bool,
) -> Result<Page, Problem> {
    discover::check(request)?;
    app.tools.ensure_manifests_loaded().await;
    let wanted = app.knowledge.embeddings.wanted(&request.intent).await;
    let capabilities = match request.filter.kind {
        discover::Kind::Tool => Vec::new(),
        discover::Kind::Capability | discover::Kind::All => {
            app.knowledge.find(principal, &request.intent, &wanted).await?
        }
    };
    let close = session.map(|session| close_to(app, principal, session)).unwrap_or_default();
    let mut page = found(app, principal, &wanted, (capabilities, close), request, visible)?;
    page.note(app.knowledge.embeddings.progress());
    page.note_unready(&app.tools.unready());
    Ok(page)
}

/// What hangs together with what was just used in a session.
fn close_to(app: &App, principal: &Principal, session: &str) -> HashMap<String, Close> {
    let used = app.knowledge.memory.context(principal, session);
    let used: Vec<&str> = used.iter().map(String::as_str).collect();
    let graph = app.knowledge.of(principal).graph().filter(|_| !used.is_empty());
    let close = graph.map(|graph| graph.close(&used)).unwrap_or_default();
    close.into_iter().map(|close| (close.id.clone(), close)).collect()
}

/// The tools and capabilities for a request, with all that is remembered of them.
fn found(
    app: &App,
    principal: &Principal,
    wanted: &embeddings::Wanted,
    (capabilities, close): (Vec<Candidate>, HashMap<String, Close>),
    request: &Request,
    visible: impl Fn(&Tool) -> bool,
) -> Result<Page, Problem> {
    let (snapshot, learned) = (app.tools.snapshot(), app.knowledge.of(principal));
    let (observed, uses) = (learned.observed(), learned.uses());
    let vectors = app.knowledge.embeddings.of_tools(&snapshot);
    let past = learned.advice(&snapshot, wanted);
    let known = discover::Recalled {
        capabilities,
        observed: Some(&*observed),
        wanted: Some(wanted),
        vectors: Some(&*vectors),
        past: past.as_ref(),
        uses: Some(&*uses),
        close,
    };
    discover::find(&snapshot, &known, request, visible)
}

/// How tools and capabilities hang together.
///
/// # Errors
/// The database cannot be read.
pub async fn graph(app: &App, principal: &Principal) -> Result<View, Problem> {
    let graph = app.knowledge.graph(principal).await?;
    Ok(blocking(move || graph.view()).await)
}

/// The likeliest ways from one tool or capability to another.
///
/// # Errors
/// One of them is unknown, or the database cannot be read.
pub async fn ways(app: &App, principal: &Principal, from: &str, to: &str) -> Result<Vec<Way>, Problem> {
    let graph = app.knowledge.graph(principal).await?;
    graph.ways(from, to).ok_or_else(|| {
        let (from, to) = (printable(from), printable(to));
        Problem::new(Code::NotFound, format!("`{from}` or `{to}` is no tool or capability"))
            .hint("give tools as `server:tool` and capabilities by id; `pml graph --json` lists them")
    })
}

/// A DAG of tools that could serve an intent; nothing where no tool has to do with it.
pub async fn suggest_dag(
    app: &Arc<App>,
    principal: &Principal,
    intent: &str,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Option<SuggestedDag> {
    let wanted = app.knowledge.embeddings.wanted(intent).await;
    compose::compose(app, principal, intent, &serde_json::Map::new(), &wanted.text, visible).await
}

/// What came of analysing a program or a DAG document.
pub enum Analysed {
    /// A program that was understood, complaints included.
    Program(Box<pml_analysis::Analysis>),
    /// A document that was understood, complaints included.
    Dag(Box<pml_analysis::DagAnalysis>),
    /// Something else.
    NotUnderstood(Misread),
}

/// What a program would do with the tools there are now; nothing is run.
pub async fn analyse(app: &App, source: String) -> Analysed {
    analyse_for(app, &app.principal, source).await
}

async fn analyse_for(app: &App, principal: &Principal, source: String) -> Analysed {
    let catalogue = known_to(app, principal, &source).await;
    // It computes for as long as the program is large: not on a thread that serves others.
    blocking(move || understand(&catalogue, &source)).await
}

/// What a DAG document would do with the tools there are now; nothing is run.
pub async fn analyse_dag(app: &App, document: String) -> Analysed {
    analyse_dag_for(app, &app.principal, document).await
}

/// The tools there are, and the capabilities of the principal that `source` may name.
async fn known_to(app: &App, principal: &Principal, source: &str) -> Arc<pml_analysis::Catalogue> {
    if names_capabilities(source)
        && let Err(error) = app.knowledge.memory.refresh().await
    {
        tracing::warn!(%error, "which capabilities there are could not be read");
    }
    app.knowledge.known_to(principal, source)
}

/// What was learned, as a principal sees it.
struct Whose<'a> {
    app: &'a App,
    principal: &'a Principal,
}

impl planning::Learned for Whose<'_> {
    fn named(&self, name: &str) -> Option<Arc<crate::knowledge::Known>> {
        self.app.knowledge.memory.called(self.principal, name)
    }

    fn catalogue(&self, source: &str) -> Arc<pml_analysis::Catalogue> {
        self.app.knowledge.known_to(self.principal, source)
    }
}

async fn analyse_dag_for(app: &App, principal: &Principal, document: String) -> Analysed {
    let catalogue = known_to(app, principal, &document).await;
    blocking(move || match pml_analysis::analyse_dag(&document, &catalogue) {
        Ok(analysis) => Analysed::Dag(Box::new(analysis)),
        Err(error) => Analysed::NotUnderstood(Misread::from(&error)),
    })
    .await
}

/// What became of asking for a run.
pub enum Executed {
    /// It goes on in this process.
    Going(Arc<Handle>),
    /// It was asked for before, or waits for a person's word; this is how it stands.
    Stands(RunId, Standing),
    /// The same was asked for before and its question is still open; this is how that run stands.
    AsksAlready(RunId, Standing),
    /// The program cannot be run, or may not be.
    Refused(Refused),
    /// Nothing was run: this is what could be.
    Suggested(Box<Suggested>),
    /// Nothing was run: this is what came of it before.
    Known(Box<Known>),
}

/// What came of the same thing before.
pub struct Known {
    /// The run it is told of.
    pub id: RunId,
    /// What there is to tell.
    pub report: Report,
}

/// A program comes in: understood, allowed, started.
///
/// # Errors
/// Nothing can be started or recorded.
pub async fn execute(
    app: &Arc<App>,
    asked: Execution,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<Executed, Problem> {
    discover::check_length(&asked.intent)?;
    if let Some(idempotency) = &asked.idempotency
        && let Some(known) = asked_before(app, &asked.principal, idempotency).await?
    {
        return Ok(known);
    }
    app.tools.ensure_manifests_loaded().await;
    let asked = match recall::recall(app, asked, &visible).await? {
        Recalled::Run(asked) => *asked,
        Recalled::Suggested(suggested) => return Ok(Executed::Suggested(suggested)),
    };
    let mut plan = match planned(app, &asked, &visible).await {
        Ok(plan) => plan,
        Err(refused) => return Ok(Executed::Refused(refused)),
    };
    let request_mark = repeated::mark(app, &asked, &plan).await?;
    if let Some(mark) = &request_mark
        && let Some(open) = repeated::open(app, &asked.principal, mark).await?
    {
        return Ok(open);
    }
    let Execution { principal, session, caller, idempotency, patience, capability, cache, .. } = asked;
    approvals::by_rules(app, &principal, &mut plan).await?;
    let ticket = match cache {
        true => cache::ticket(&app.knowledge, &plan, &principal, capability.as_ref()).await,
        false => None,
    };
    if let Some(ticket) = &ticket
        && let Some(hit) = app.knowledge.cache.get(&app.knowledge, ticket).await
    {
        return Ok(Executed::Known(known(app, &principal, &plan, hit).await?));
    }
    approvals::compare(app, &principal, &mut plan).await?;
    let again = (principal.clone(), idempotency.clone());
    let question = plan.question.clone();
    let asked = Asked { principal, session, plan, caller, idempotency, request_mark, patience, ticket };
    let begun = match question {
        None => execute::start(&app.runs, asked).await.map(Executed::Going),
        Some(question) => execute::ask_first(&app.runs, asked, question).await.map(|first| match first {
            First::Waits(id, standing) => Executed::Stands(id, standing),
            First::Same(id, standing) => Executed::AsksAlready(id, standing),
        }),
    };
    match begun {
        Ok(executed) => Ok(executed),
        // Somebody was quicker with the same key: theirs is the run.
        Err(problem) => match again {
            (principal, Some(idempotency)) => {
                asked_before(app, &principal, &idempotency).await?.ok_or(problem)
            }
            (_, None) => Err(problem),
        },
    }
}

/// A result that was known, as if it had been run.
async fn known(
    app: &Arc<App>,
    principal: &Principal,
    plan: &Plan,
    hit: cache::Hit,
) -> Result<Box<Known>, Problem> {
    let id = execute::new_id()?;
    cache::note_use(&app.knowledge, plan, principal, &id);
    let capability = plan.learn.as_ref().map(|learn| learn.capability_of(principal));
    let next = match &capability {
        Some(capability) => {
            let tools: Vec<String> = plan.tools.iter().map(|tool| tool.id.to_string()).collect();
            let called = plan.nested.iter().map(|nested| nested.id.as_str());
            let ran = tools.iter().map(String::as_str).chain(called).chain([capability.as_str()]).collect();
            app.knowledge.next_after(principal, Some(capability), None, &ran)
        }
        None => Vec::new(),
    };
    let report = Report::known(hit.result, hit.from, capability, next, now_ms());
    Ok(Box::new(Known { id: hit.run.unwrap_or(id), report }))
}

/// What would be run, without running it.
///
/// # Errors
/// It cannot be run, or may not be.
pub(crate) async fn dry(app: &App, asked: &Execution) -> Result<Plan, Problem> {
    app.tools.ensure_manifests_loaded().await;
    planned(app, asked, &|_| true).await.map_err(|refused| refused.problem)
}

/// What was asked for, understood and allowed.
async fn planned(
    app: &App,
    asked: &Execution,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<Plan, Refused> {
    let config = app.config();
    let mut bounds = Bounds::new(&config.limits, &config.runs);
    if let Some(timeout) = asked.timeout {
        bounds.wall_ms = bounds.wall_ms.min(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    }
    let learned = Whose { app, principal: &asked.principal };
    let document = match &asked.work {
        planning::Asked::Code(code) => {
            let analysis = understood(app, &asked.principal, code).await?;
            let (snapshot, policy) = (app.tools.snapshot(), app.policy());
            let setting =
                Setting { snapshot: &snapshot, policy: &policy, bounds, visible, learned: &learned };
            return planning::plan(&setting, *analysis, asked);
        }
        planning::Asked::Dag { document, .. } => document.clone(),
        planning::Asked::Tool { tool, defaults } => planning::delegation(tool, defaults, &asked.arguments)?,
        planning::Asked::Call(tool) => {
            bounds.wall_ms = bounds.wall_ms.max(direct::longest_ms(app, tool));
            planning::delegation(tool, &empty_object(), &asked.arguments)?
        }
        planning::Asked::Capability(_) | planning::Asked::Anything => {
            unreachable!("what is run was found before")
        }
    };
    let analysis = understood_dag(app, &asked.principal, document).await?;
    let (snapshot, policy) = (app.tools.snapshot(), app.policy());
    let setting = Setting { snapshot: &snapshot, policy: &policy, bounds, visible, learned: &learned };
    planning::plan_dag(&setting, *analysis, asked)
}

async fn understood_dag(
    app: &App,
    principal: &Principal,
    document: String,
) -> Result<Box<pml_analysis::DagAnalysis>, Refused> {
    match analyse_dag_for(app, principal, document).await {
        Analysed::Dag(analysis) => planning::without_mistakes(&analysis.complaints).map(|()| analysis),
        Analysed::NotUnderstood(report) => Err(planning::not_understood(&report)),
        Analysed::Program(_) => unreachable!("a document was analysed"),
    }
}

async fn asked_before(
    app: &App,
    principal: &Principal,
    idempotency: &Idempotency,
) -> Result<Option<Executed>, Problem> {
    let known = app.store.by_idempotency_key(principal, &idempotency.key, now_ms()).await?;
    let Some((id, request)) = known else { return Ok(None) };
    if request != idempotency.request {
        return Err(Problem::new(Code::InvalidRequest, "the idempotency key was used for another request")
            .hint("choose a new key for a new request"));
    }
    Ok(Some(match app.runs.here(&id) {
        Some(handle) => Executed::Going(handle),
        None => Executed::Stands(id.clone(), execute::standing(&app.runs, principal, &id).await?),
    }))
}

/// Below this, analysing takes less time than handing it to another thread.
const SMALL_BYTES: usize = 16 * 1024;

async fn understood(
    app: &App,
    principal: &Principal,
    code: &str,
) -> Result<Box<pml_analysis::Analysis>, Refused> {
    let most = app.config().limits.source_bytes;
    if code.len() as u64 > most {
        let text = format!("the program has {} bytes and may have {most}", code.len());
        return Err(Problem::new(Code::TooLarge, text)
            .hint("write less, or raise `limits.source` in pml.toml")
            .into());
    }
    let analysed = if code.len() <= SMALL_BYTES {
        let catalogue = known_to(app, principal, code).await;
        understand(&catalogue, code)
    } else {
        analyse_for(app, principal, code.to_owned()).await
    };
    match analysed {
        Analysed::Program(analysis) => planning::without_mistakes(&analysis.complaints).map(|()| analysis),
        Analysed::NotUnderstood(report) => Err(planning::not_understood(&report)),
        Analysed::Dag(_) => unreachable!("a program was analysed"),
    }
}

fn understand(catalogue: &pml_analysis::Catalogue, source: &str) -> Analysed {
    match pml_analysis::analyse(source, catalogue) {
        Ok(analysis) => Analysed::Program(Box::new(analysis)),
        Err(error) => Analysed::NotUnderstood(Misread::from(&error)),
    }
}

/// A run goes on where its journal ends.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn resume(
    app: &Arc<App>,
    principal: &Principal,
    id: &RunId,
    caller: Caller,
) -> Result<Resumed, Problem> {
    execute::resume(&app.runs, principal, id, caller).await
}

/// How a run stands, wherever it is.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn standing(app: &App, principal: &Principal, id: &RunId) -> Result<Standing, Problem> {
    execute::standing(&app.runs, principal, id).await
}

/// A run of the principal's that goes on in this process.
pub fn run_here(app: &App, principal: &Principal, id: &RunId) -> Option<Arc<Handle>> {
    app.runs.here(id).filter(|handle| handle.principal == *principal)
}

/// How a run stands, call by call.
///
/// # Errors
/// There is no such run, or its records are no longer kept.
pub async fn overview(app: &App, principal: &Principal, id: &RunId) -> Result<Overview, Problem> {
    execute::overview(&app.runs, principal, id).await
}

/// A part of the result of a task.
///
/// # Errors
/// There is no such run or task, the task has no result, or results are no longer kept.
pub async fn task_result(
    app: &App,
    principal: &Principal,
    id: &RunId,
    wanted: &Wanted,
) -> Result<ResultPage, Problem> {
    execute::result(&app.runs, principal, id, wanted).await
}

/// All that is recorded of a run.
///
/// # Errors
/// There is no such run, or its records are no longer kept.
pub async fn recording(app: &App, principal: &Principal, id: &RunId) -> Result<Recording, Problem> {
    replay::recording(&app.runs, principal, id).await
}

/// A recorded run is run again, offline; with `code`, as if that had been its program.
///
/// # Errors
/// The program cannot be run, or no worker can be had.
pub async fn replay(app: &App, recording: &Recording, code: Option<String>) -> Result<Replayed, Problem> {
    let plan = match code {
        None => recording.plan.clone(),
        Some(code) => {
            let analysis = understood(app, &app.principal, &code).await.map_err(|refused| refused.problem)?;
            calls_only_recorded(&recording.plan, &analysis)?;
            recording.plan.clone().with_code(code, *analysis)
        }
    };
    replay::replay(&app.runs, recording, plan).await
}

/// Whether a program that is replayed calls only capabilities that were recorded with the run: what one that is there
/// now would do was never recorded.
fn calls_only_recorded(plan: &Plan, analysis: &pml_analysis::Analysis) -> Result<(), Problem> {
    let lacks = |name: &&String| plan.nested.iter().all(|nested| nested.name != **name);
    let Some(name) = analysis.permissions.capabilities.iter().find(lacks) else { return Ok(()) };
    let text = format!("the recorded run has no capability `{name}`, so nothing can answer a call of it");
    Err(Problem::new(Code::InvalidProgram, text).hint(
        "write out in the program what it does, or run the program anew: `pml execute \"what it is for\" --code FILE`",
    ))
}

/// A DAG run waits before its next layer, wherever it is.
///
/// # Errors
/// There is no such run, it never waits before layers, or that cannot be recorded.
pub async fn pause(app: &Arc<App>, principal: &Principal, id: &RunId) -> Result<(), Problem> {
    execute::pause(&app.runs, principal, id).await
}

/// A run is ended, wherever it is.
///
/// # Errors
/// There is no such run, another process has it, or the end cannot be recorded.
pub async fn abort(
    app: &Arc<App>,
    principal: &Principal,
    id: &RunId,
    reason: &str,
) -> Result<Standing, Problem> {
    execute::abort(&app.runs, principal, id, reason).await
}

/// Whoever asked for a run no longer wants it.
///
/// # Errors
/// There is no such run, another process has it, or the end cannot be recorded.
pub async fn cancel(app: &Arc<App>, principal: &Principal, id: &RunId) -> Result<Standing, Problem> {
    execute::cancel(&app.runs, principal, id).await
}
