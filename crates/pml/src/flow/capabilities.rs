//! What people do with capabilities: look at them, make, rename, merge and delete them, and say how their results are kept.

use std::sync::Arc;

use pml_mcp::Caller;
use pml_model::capability::{CacheChange, Capability, Invalidation, Origin};
use pml_model::json::empty_object;
use pml_model::name::{is_inherited, printable};
use pml_model::question::Answerer;
use pml_model::trace::{EdgeKind, Trace};
use pml_model::{CapabilityId, Principal, TraceId};
use pml_store::{CacheDrop, CacheUse, Capabilities, Dropped, Made, Order, Renamed, Traces};
use serde::Serialize;

use super::planned;
use super::recall::{self, Recalled};
use crate::app::App;
use crate::capability;
use crate::clock::now_ms;
use crate::config::Dynamic;
use crate::knowledge::cache;
use crate::planning::{Asked, Execution, Refused};
use crate::problem::{Code, Problem};
use crate::reuse::Binding;

/// How many of the capabilities within one are told.
const MOST_CONTAINED: u32 = 64;

/// The capabilities of `principal`.
///
/// # Errors
/// The database cannot be read.
pub async fn capabilities(
    app: &App,
    principal: &Principal,
    wanted: Capabilities,
) -> Result<Vec<Capability>, Problem> {
    Ok(app.store.capabilities(principal, &wanted).await?)
}

/// One, by name or id.
///
/// # Errors
/// There is none, or the database cannot be read.
pub async fn capability(app: &App, principal: &Principal, name: &str) -> Result<Capability, Problem> {
    let found = match CapabilityId::parse(name) {
        Ok(id) => app.store.capability(principal, &id).await?,
        Err(_) => app.store.capability_named(principal, name).await?,
    };
    found.ok_or_else(|| {
        Problem::new(Code::NotFound, format!("there is no capability `{}`", printable(name)))
            .hint("`pml capabilities list` shows them")
    })
}

/// All that is known of a capability.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// What it is and how it does.
    #[serde(flatten)]
    pub capability: Capability,
    /// How often it worked of the times it was tried; nothing where it was not.
    pub success_rate: Option<f64>,
    /// The capabilities that were seen to be called within it, most often first.
    pub contains: Vec<Contained>,
    /// What is kept of its results, and how often that was of use.
    pub cache: CacheUse,
}

/// A capability that another calls.
#[derive(Debug, Serialize)]
pub struct Contained {
    /// Its id.
    pub id: String,
    /// Its name, where it is still there.
    pub name: Option<String>,
    /// In how many traces.
    pub count: u64,
}

/// The whole record of one, by name or id.
///
/// # Errors
/// There is none, or the database cannot be read.
pub async fn record(app: &App, principal: &Principal, name: &str) -> Result<Record, Problem> {
    let capability = capability(app, principal, name).await?;
    let (store, id) = (&app.store, &capability.procedure.id);
    let edges = store.edges_from(principal, id.as_str(), Some(EdgeKind::Contains), MOST_CONTAINED).await?;
    let mut contains = Vec::with_capacity(edges.len());
    for edge in edges {
        let known = match CapabilityId::parse(&edge.to) {
            Ok(inner) => store.capability(principal, &inner).await?,
            Err(_) => None,
        };
        contains.push(Contained { name: known.map(|known| known.name), id: edge.to, count: edge.count });
    }
    let cache = store.cache_use(principal, id, now_ms()).await?;
    Ok(Record { success_rate: capability.statistics.success_rate(), capability, contains, cache })
}

/// A page of traces.
pub struct PageOfTraces {
    /// The traces.
    pub traces: Vec<Trace>,
    /// The cursor of the next page, where there is one.
    pub next: Option<TraceId>,
}

/// A page of traces that begins behind the trace `wanted.after`.
///
/// # Errors
/// There is no such trace to begin behind, or the database cannot be read.
pub async fn page_of_traces(
    app: &App,
    principal: &Principal,
    wanted: Traces,
) -> Result<PageOfTraces, Problem> {
    let limit = wanted.limit;
    // One more than the page has tells whether there is another.
    let wanted = Traces { limit: limit.saturating_add(1), ..wanted };
    if let Some(after) = &wanted.after
        && app.store.trace(principal, after).await?.is_none()
    {
        return Err(Problem::new(Code::InvalidRequest, "`cursor` is not of a page of these traces")
            .hint("give `nextCursor` of the page before, or leave it out to begin"));
    }
    let mut traces = app.store.traces(principal, &wanted).await?;
    let more = traces.len() > limit as usize;
    traces.truncate(limit as usize);
    let next = traces.last().filter(|_| more).map(|last| last.id.clone());
    Ok(PageOfTraces { traces, next })
}

/// The latest traces of a capability.
///
/// # Errors
/// The database cannot be read.
pub async fn recent_traces(
    app: &App,
    principal: &Principal,
    id: &CapabilityId,
    limit: u32,
) -> Result<Vec<Trace>, Problem> {
    let wanted = Traces { capability: Some(id.clone()), order: Order::Newest, limit, after: None };
    Ok(page_of_traces(app, principal, wanted).await?.traces)
}

/// One trace.
///
/// # Errors
/// There is none, or the database cannot be read.
pub async fn trace(app: &App, principal: &Principal, id: &str) -> Result<Trace, Problem> {
    let found = app.store.trace(principal, &TraceId::written(id)).await?;
    found.ok_or_else(|| Problem::new(Code::NotFound, format!("there is no trace `{}`", printable(id))))
}

/// A capability somebody writes down.
pub struct NewCapability {
    /// What is run.
    pub work: Asked,
    /// What it is for.
    pub intent: String,
    /// What it is called; made from the intent otherwise.
    pub name: Option<String>,
}

/// A capability is made by hand: understood and allowed like any program, and not run.
///
/// # Errors
/// It cannot be run, is there already, or its name is taken.
pub async fn make_capability(
    app: &Arc<App>,
    principal: &Principal,
    new: NewCapability,
) -> Result<CapabilityId, Problem> {
    if let Some(name) = &new.name {
        check_name(name)?;
    }
    crate::discover::check_length(&new.intent)?;
    app.tools.ensure_manifests_loaded().await;
    let asked = unasked(principal, &new.intent, new.work);
    let plan = planned(app, &asked, &|_| true).await.map_err(|Refused { problem, .. }| problem)?;
    let sanitiser = app.knowledge.memory.sanitiser();
    let procedure = plan.learn.as_ref().and_then(|learn| {
        let tools = app.knowledge.known_to(principal, &plan.source);
        let cacheable = cache::only_reads(&app.knowledge, &plan);
        capability::procedure(&plan, learn, principal, None, (&sanitiser, &tools, cacheable))
    });
    let Some(mut procedure) = procedure else {
        let text = "the source has a secret in it that cannot be made a parameter";
        return Err(Problem::new(Code::InvalidProgram, text).hint("take it from `args` instead"));
    };
    procedure.origin = Origin::Manual;
    let id = procedure.id.clone();
    let (intent, name) = (sanitiser.text(&new.intent).into_owned(), new.name);
    let wanted = name.clone().unwrap_or_default();
    match app.store.make_capability(procedure, name, &intent, now_ms()).await? {
        Made::New => Ok(id),
        Made::Known(id) => {
            Err(Problem::new(Code::InvalidRequest, format!("the same procedure is there already: {id}"))
                .hint("`pml capabilities rename` gives it another name"))
        }
        Made::NameTaken => Err(taken(&wanted)),
    }
}

/// What nobody waits for and nothing runs of.
fn unasked(principal: &Principal, intent: &str, work: Asked) -> Execution {
    Execution {
        principal: principal.clone(),
        session: String::new(),
        intent: intent.to_owned(),
        work,
        arguments: empty_object(),
        timeout: None,
        caller: Caller::silent(),
        idempotency: None,
        patience: std::time::Duration::ZERO,
        by: Answerer::Human,
        dynamic: Dynamic::Refuse,
        learn: true,
        capability: None,
        cache: false,
    }
}

/// How results of a capability are kept from now on. Those that were kept until then go.
///
/// # Errors
/// There is none, results of it can never be kept, or what is wanted contradicts itself.
pub async fn keep_results(
    app: &Arc<App>,
    principal: &Principal,
    which: &str,
    change: &CacheChange,
) -> Result<Capability, Problem> {
    let before = capability(app, principal, which).await?;
    let id = before.procedure.id.clone();
    let config = before.procedure.cache_config.with(change);
    if config.goes_with(Invalidation::ManualOnly) && config.invalidate_on.len() > 1 {
        let text = "`manual_only` contradicts every other event that makes results go";
        return Err(Problem::new(Code::InvalidRequest, text).hint("give it alone, or leave it out"));
    }
    if change.cacheable == Some(true) {
        only_reads(app, principal, &before).await?;
    }
    if !app.store.set_cache_config(principal, &id, &config, now_ms()).await? {
        return Err(Problem::new(Code::NotFound, format!("capability `{id}` is gone")));
    }
    capability(app, principal, id.as_str()).await
}

/// Refuses what would give another result the next time, or change something.
async fn only_reads(app: &Arc<App>, principal: &Principal, capability: &Capability) -> Result<(), Problem> {
    app.tools.ensure_manifests_loaded().await;
    let name = &capability.name;
    let known = app.knowledge.memory.named(principal, capability.procedure.id.as_str()).await?;
    let gone = || Problem::new(Code::NotFound, format!("capability `{name}` is gone"));
    let known = known.ok_or_else(gone)?;
    let asked = unasked(principal, &capability.procedure.description, Asked::Anything);
    let Recalled::Run(asked) = recall::run(&known, &Binding::default(), asked)? else { return Err(gone()) };
    let plan = planned(app, &asked, &|_| true).await.map_err(|refused| refused.problem)?;
    match cache::keeps(&app.knowledge, &plan) {
        Ok(_) => Ok(()),
        Err(because) => {
            let text = format!("results of `{name}` are never kept: {because}");
            Err(Problem::new(Code::InvalidRequest, text).hint(
                "only what reads and depends on nothing but what it is given can be known beforehand; for a tool that \
                 reads elsewhere, `cache_ttl` in [permissions] says how long that is good for",
            ))
        }
    }
}

/// A capability gets another name.
///
/// # Errors
/// There is none, or the name is taken or no name.
pub async fn rename_capability(
    app: &App,
    principal: &Principal,
    which: &str,
    name: &str,
) -> Result<CapabilityId, Problem> {
    check_name(name)?;
    let id = capability(app, principal, which).await?.procedure.id;
    match app.store.rename_capability(principal, &id, name).await? {
        Renamed::Done => Ok(id),
        Renamed::NameTaken => Err(taken(name)),
        Renamed::Unknown => Err(Problem::new(Code::NotFound, format!("capability `{id}` is gone"))),
    }
}

/// Takes back that a capability serves an intent; later runs for the same do not bring it back.
///
/// # Errors
/// There is no such capability, or it does not serve that intent.
pub async fn forget_intent(
    app: &App,
    principal: &Principal,
    which: &str,
    intent: &str,
) -> Result<CapabilityId, Problem> {
    let found = capability(app, principal, which).await?;
    let id = found.procedure.id;
    if app.store.forget_intent(principal, &id, intent, now_ms()).await? {
        return Ok(id);
    }
    let served: Vec<String> =
        found.intents.iter().map(|intent| format!("\"{}\"", printable(&intent.text))).collect();
    let text = format!("`{}` does not serve the intent \"{}\"", found.name, printable(intent));
    let hint = match served.is_empty() {
        true => "it serves no intent".to_owned(),
        false => format!("give one of these word for word: {}", served.join(", ")),
    };
    Err(Problem::new(Code::NotFound, text).hint(hint))
}

/// A capability is forgotten; its traces stay.
///
/// # Errors
/// There is none.
pub async fn delete_capability(
    app: &App,
    principal: &Principal,
    which: &str,
) -> Result<CapabilityId, Problem> {
    let id = capability(app, principal, which).await?.procedure.id;
    app.store.delete_capability(principal, &id, now_ms()).await?;
    Ok(id)
}

/// What `from` was run for and how it did counts for `into` from now on; `from` is gone.
///
/// # Errors
/// One of them is not there, or both are one.
pub async fn merge_capabilities(
    app: &App,
    principal: &Principal,
    into: &str,
    from: &str,
) -> Result<CapabilityId, Problem> {
    let target = capability(app, principal, into).await?.procedure.id;
    let source = capability(app, principal, from).await?.procedure.id;
    if target == source {
        return Err(Problem::new(Code::InvalidRequest, "a capability cannot be merged with itself"));
    }
    app.store.merge_capabilities(principal, &target, &source, now_ms()).await?;
    Ok(target)
}

/// Everything that was learned is learned anew from the traces; says from how many.
///
/// # Errors
/// The database cannot be written.
pub async fn relearn(app: &App) -> Result<usize, Problem> {
    Ok(app.store.relearn(now_ms()).await?)
}

/// Which kept results were dropped, latest first.
///
/// # Errors
/// The database cannot be read.
pub async fn dropped_results(
    app: &App,
    principal: &Principal,
    limit: u32,
) -> Result<Vec<CacheDrop>, Problem> {
    Ok(app.store.cache_log(principal, limit).await?)
}

/// Drops all kept results; says how many there were.
///
/// # Errors
/// The database cannot be written.
pub async fn drop_results(app: &App, principal: &Principal) -> Result<u64, Problem> {
    Ok(app.store.drop_cached(principal, Dropped::All, "somebody wished it", now_ms()).await?)
}

/// Programs call it as `capabilities.<name>`.
fn check_name(name: &str) -> Result<(), Problem> {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if is_inherited(name) {
        let text =
            format!("`{name}` cannot be the name of a capability: every JavaScript object has such a member");
        return Err(Problem::new(Code::InvalidRequest, text).hint("choose another name"));
    }
    if begins && name.len() <= 64 && characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(());
    }
    Err(Problem::new(
        Code::InvalidRequest,
        format!("`{}` cannot be the name of a capability", printable(name)),
    )
    .hint("letters, digits and `_`, a letter first, at most 64: programs call it as `capabilities.name`"))
}

fn taken(name: &str) -> Problem {
    Problem::new(Code::InvalidRequest, format!("another capability is called `{name}`"))
        .hint("choose another name")
}
