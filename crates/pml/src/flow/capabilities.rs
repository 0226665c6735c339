//! What people do with capabilities: look at them, make, rename, merge and delete them.

use std::sync::Arc;

use pml_mcp::Caller;
use pml_model::capability::{Capability, Origin};
use pml_model::json::empty_object;
use pml_model::name::printable;
use pml_model::question::Answerer;
use pml_model::trace::{EdgeKind, Trace};
use pml_model::{CapabilityId, Principal, TraceId};
use pml_store::{CacheDrop, Capabilities, Dropped, Made, Order, Renamed, Traces};
use serde::Serialize;

use super::planned;
use crate::app::{App, blocking, now_ms};
use crate::cache;
use crate::capability;
use crate::config::Dynamic;
use crate::plan::{Asked, Execution, Refused};
use crate::problem::{Code, Problem};

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
    let (store, whose) = (app.store.clone(), principal.clone());
    Ok(blocking(move || store.capabilities(&whose, &wanted)).await?)
}

/// One, by name or id.
///
/// # Errors
/// There is none, or the database cannot be read.
pub async fn capability(app: &App, principal: &Principal, name: &str) -> Result<Capability, Problem> {
    let (store, whose, wanted) = (app.store.clone(), principal.clone(), name.to_owned());
    let found = blocking(move || match CapabilityId::parse(&wanted) {
        Ok(id) => store.capability(&whose, &id),
        Err(_) => store.capability_named(&whose, &wanted),
    })
    .await?;
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
    let (store, whose, id) = (app.store.clone(), principal.clone(), capability.procedure.id.clone());
    let contains = blocking(move || {
        let edges = store.edges_from(&whose, id.as_str(), Some(EdgeKind::Contains), MOST_CONTAINED)?;
        let mut contains = Vec::with_capacity(edges.len());
        for edge in edges {
            let known = match CapabilityId::parse(&edge.to) {
                Ok(inner) => store.capability(&whose, &inner)?,
                Err(_) => None,
            };
            contains.push(Contained { name: known.map(|known| known.name), id: edge.to, count: edge.count });
        }
        Ok::<_, pml_store::Error>(contains)
    })
    .await?;
    Ok(Record { success_rate: capability.statistics.success_rate(), capability, contains })
}

/// Traces, newest or most surprising first.
///
/// # Errors
/// The database cannot be read.
pub async fn traces(app: &App, principal: &Principal, wanted: Traces) -> Result<Vec<Trace>, Problem> {
    let (store, whose) = (app.store.clone(), principal.clone());
    Ok(blocking(move || store.traces(&whose, &wanted)).await?)
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
    traces(app, principal, wanted).await
}

/// One trace.
///
/// # Errors
/// There is none, or the database cannot be read.
pub async fn trace(app: &App, principal: &Principal, id: &str) -> Result<Trace, Problem> {
    let (store, whose, wanted) = (app.store.clone(), principal.clone(), TraceId::written(id));
    let found = blocking(move || store.trace(&whose, &wanted)).await?;
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
    app.get_acquainted().await;
    let asked = Execution {
        principal: principal.clone(),
        session: String::new(),
        intent: new.intent.clone(),
        work: new.work,
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
    };
    let plan = planned(app, &asked, &|_| true).await.map_err(|Refused { problem, .. }| problem)?;
    let sanitiser = app.memory.sanitiser();
    let procedure = plan.learn.as_ref().and_then(|learn| {
        let tools = app.known_to(principal, &plan.source);
        let cacheable = cache::only_reads(app, &plan);
        capability::procedure(&plan, learn, principal, None, (&sanitiser, &tools, cacheable))
    });
    let Some(mut procedure) = procedure else {
        let text = "the source has a secret in it that cannot be made a parameter";
        return Err(Problem::new(Code::InvalidProgram, text).hint("take it from `args` instead"));
    };
    procedure.origin = Origin::Manual;
    let id = procedure.id.clone();
    let (store, intent, name) = (app.store.clone(), sanitiser.text(&new.intent).into_owned(), new.name);
    let wanted = name.clone().unwrap_or_default();
    match blocking(move || store.make_capability(procedure, name, &intent, now_ms())).await? {
        Made::New => Ok(id),
        Made::Known(id) => {
            Err(Problem::new(Code::InvalidRequest, format!("the same procedure is there already: {id}"))
                .hint("`pml capabilities rename` gives it another name"))
        }
        Made::NameTaken => Err(taken(&wanted)),
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
    let (store, whose, of, new) = (app.store.clone(), principal.clone(), id.clone(), name.to_owned());
    match blocking(move || store.rename_capability(&whose, &of, &new)).await? {
        Renamed::Done => Ok(id),
        Renamed::NameTaken => Err(taken(name)),
        Renamed::Unknown => Err(Problem::new(Code::NotFound, format!("capability `{id}` is gone"))),
    }
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
    let (store, whose, of) = (app.store.clone(), principal.clone(), id.clone());
    blocking(move || store.delete_capability(&whose, &of, now_ms())).await?;
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
    let (store, whose, of) = (app.store.clone(), principal.clone(), target.clone());
    blocking(move || store.merge_capabilities(&whose, &of, &source, now_ms())).await?;
    Ok(target)
}

/// Everything that was learned is learned anew from the traces; says from how many.
///
/// # Errors
/// The database cannot be written.
pub async fn relearn(app: &App) -> Result<usize, Problem> {
    let store = app.store.clone();
    Ok(blocking(move || store.relearn(now_ms())).await?)
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
    let (store, whose) = (app.store.clone(), principal.clone());
    Ok(blocking(move || store.cache_log(&whose, limit)).await?)
}

/// Drops all kept results; says how many there were.
///
/// # Errors
/// The database cannot be written.
pub async fn drop_results(app: &App, principal: &Principal) -> Result<u64, Problem> {
    let (store, whose) = (app.store.clone(), principal.clone());
    Ok(blocking(move || store.drop_cached(&whose, Dropped::All, "somebody wished it", now_ms())).await?)
}

/// Programs call it as `capabilities.<name>`.
fn check_name(name: &str) -> Result<(), Problem> {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
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
