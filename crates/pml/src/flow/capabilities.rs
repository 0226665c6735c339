//! Management of capabilities: list, create, rename, merge and delete them, and configure their result cache.

use std::sync::Arc;

use pml_model::capability::{CacheChange, Capability, CapabilityOrigin, Invalidation, Procedure};
use pml_model::name::{is_inherited, printable};
use pml_model::trace::{EdgeKind, Trace};
use pml_model::version::{parse_qualified_name, qualified_name};
use pml_model::{CapabilityId, Principal, TraceId};
use pml_store::{
    CacheInvalidation, CacheUsage, CapabilityQuery, CreateOutcome, DailySavings, InvalidationScope, NewName,
    RenameOutcome, TraceOrder, TraceQuery,
};
use serde::Serialize;

use super::lift::lift_named_values;
use super::recall::{self, RecallOutcome};
use super::version_names::{put_in_force, version_in_force};
use super::{plan_request, unasked};
use crate::app::App;
use crate::capability::{self, LiftedForm};
use crate::clock::now_ms;
use crate::knowledge::cache;
use crate::planning::{PlanRefusal, Work};
use crate::problem::{ErrorCode, Problem};
use crate::reuse::ArgumentBinding;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The number of called capabilities listed per capability.
const MOST_CONTAINED: u32 = 64;

/// The capabilities of `principal` that match the query.
///
/// # Errors
/// The database cannot be read.
pub async fn capabilities(
    app: &App,
    principal: &Principal,
    wanted: CapabilityQuery,
) -> Result<Vec<Capability>, Problem> {
    Ok(app.store.capabilities(principal, &wanted).await?)
}

/// One capability, by name or id.
///
/// # Errors
/// There is none, or the database cannot be read.
pub async fn capability(app: &App, principal: &Principal, name: &str) -> Result<Capability, Problem> {
    let found = match CapabilityId::parse(name).ok().or_else(|| parse_qualified_name(name)) {
        Some(id) => app.store.capability(principal, &id).await?,
        None => match app.store.capability_named(principal, name).await? {
            Some(found) => Some(found),
            None => version_in_force(app, principal, name).await?,
        },
    };
    found.ok_or_else(|| {
        Problem::new(ErrorCode::NotFound, format!("there is no capability `{}`", printable(name)))
            .hint("`pml capabilities list` shows them")
    })
}

/// A capability with its statistics and related records.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityRecord {
    /// The definition and statistics.
    #[serde(flatten)]
    pub capability: Capability,
    /// The share of runs that succeeded, from 0 to 1; `None` if it never ran.
    pub success_rate: Option<f64>,
    /// The capabilities that it was seen to call, most frequent first.
    pub contains: Vec<ContainedCapability>,
    /// The size and hit counts of its result cache.
    pub cache: CacheUsage,
    /// `org.project.namespace.action.hash`.
    pub qualified_name: String,
    /// The number of this version, from 1.
    pub version: u32,
    /// How often others used it; absent for a private one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses_by_others: Option<u64>,
}

/// A capability that another one calls.
#[derive(Debug, Serialize)]
pub struct ContainedCapability {
    /// The id of the called capability.
    pub id: String,
    /// Its name; `None` if it was deleted.
    pub name: Option<String>,
    /// The number of traces that contain the call.
    pub count: u64,
}

/// The complete record of a capability, by name or id.
///
/// # Errors
/// There is none, or the database cannot be read.
pub async fn capability_record(
    app: &App,
    principal: &Principal,
    name: &str,
) -> Result<CapabilityRecord, Problem> {
    let capability = capability(app, principal, name).await?;
    let (store, id) = (&app.store, &capability.procedure.id);
    let edges =
        store.learned_edges_from(principal, id.as_str(), Some(EdgeKind::Contains), MOST_CONTAINED).await?;
    let mut contains = Vec::with_capacity(edges.len());
    for edge in edges {
        let known = match CapabilityId::parse(&edge.to) {
            Ok(inner) => store.capability(principal, &inner).await?,
            Err(_) => None,
        };
        contains.push(ContainedCapability {
            name: known.map(|known| known.name),
            id: edge.to,
            count: edge.count,
        });
    }
    let cache = store.cache_usage(principal, id, now_ms()).await?;
    let version = store.version_of(principal, id).await?.map_or(1, |(_, version)| version);
    Ok(CapabilityRecord {
        success_rate: capability.statistics.success_rate(),
        qualified_name: full_name(&capability),
        version,
        uses_by_others: store.uses_by_others(principal, id).await?,
        capability,
        contains,
        cache,
    })
}

/// The name of a capability by which it is known among those of everybody.
pub(super) fn full_name(capability: &Capability) -> String {
    let Procedure { owner, tools_used, id, .. } = &capability.procedure;
    let tools: Vec<&str> = tools_used.iter().map(|tool| tool.id.as_str()).collect();
    qualified_name(owner, &tools, &capability.name, id)
}

/// A page of traces.
pub struct TracePage {
    /// The traces on this page.
    pub traces: Vec<Trace>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<TraceId>,
}

/// The page of traces that starts after the trace `wanted.after`.
///
/// # Errors
/// The trace to start after does not exist, or the database cannot be read.
pub async fn page_of_traces(
    app: &App,
    principal: &Principal,
    wanted: TraceQuery,
) -> Result<TracePage, Problem> {
    let limit = wanted.limit;
    // One more row than the page holds shows whether there is another page.
    let wanted = TraceQuery { limit: limit.saturating_add(1), ..wanted };
    if let Some(after) = &wanted.after
        && app.store.trace(principal, after).await?.is_none()
    {
        return Err(Problem::new(ErrorCode::InvalidRequest, "`cursor` is not of a page of these traces")
            .hint("give `nextCursor` of the page before, or leave it out to begin"));
    }
    let mut traces = app.store.traces(principal, &wanted).await?;
    let more = traces.len() > limit as usize;
    traces.truncate(limit as usize);
    let next = traces.last().filter(|_| more).map(|last| last.id.clone());
    Ok(TracePage { traces, next })
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
    let wanted = TraceQuery { capability: Some(id.clone()), order: TraceOrder::Newest, limit, after: None };
    Ok(page_of_traces(app, principal, wanted).await?.traces)
}

/// One trace, by id.
///
/// # Errors
/// There is none, or the database cannot be read.
pub async fn trace(app: &App, principal: &Principal, id: &str) -> Result<Trace, Problem> {
    let found = app.store.trace(principal, &TraceId::from_text(id)).await?;
    found.ok_or_else(|| Problem::new(ErrorCode::NotFound, format!("there is no trace `{}`", printable(id))))
}

/// A capability that a person defines.
pub struct NewCapability {
    /// The work that it runs.
    pub work: Work,
    /// The intent that it serves.
    pub intent: String,
    /// The name; derived from the intent if `None`.
    pub name: Option<String>,
    /// What becomes of a capability that has the name.
    pub taken: TakenName,
}

/// What becomes of a capability whose name another one is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenName {
    /// It keeps the name, and the other does not get it.
    Refuse,
    /// It stays as an earlier version.
    NewVersion,
}

impl TakenName {
    /// What a client wishes that asks for a new version, or does not.
    pub fn wished(new_version: bool) -> TakenName {
        if new_version { TakenName::NewVersion } else { TakenName::Refuse }
    }
}

/// Creates a capability by hand. It is analysed and checked against the policy like any program, but not run.
///
/// # Errors
/// It cannot be run, exists already, or its name is taken.
pub async fn make_capability(
    app: &Arc<App>,
    principal: &Principal,
    new: NewCapability,
) -> Result<CapabilityId, Problem> {
    if let Some(name) = &new.name {
        check_name(name)?;
    }
    crate::discover::check_intent_length(&new.intent)?;
    let procedure = plan_procedure(app, principal, new.work, &new.intent).await?.procedure;
    let id = procedure.id.clone();
    let intent = app.knowledge.memory.sanitiser().clean_text(&new.intent).into_owned();
    let intents = [intent];
    let wanted = new.name.clone().unwrap_or_default();
    let name = match (new.name, new.taken) {
        (None, _) => NewName::Suggested,
        (Some(name), TakenName::Refuse) => NewName::Free(name),
        (Some(name), TakenName::NewVersion) => NewName::VersionOf(name),
    };
    match app.store.create_capability(procedure, name, &intents, now_ms()).await? {
        CreateOutcome::Created => Ok(id),
        CreateOutcome::Existing(id) => {
            Err(Problem::new(ErrorCode::InvalidRequest, format!("the same procedure is there already: {id}"))
                .hint("`pml capabilities rename` gives it another name"))
        }
        CreateOutcome::NameTaken => Err(name_taken(&wanted)),
    }
}

/// The procedure of work that was not run.
pub(super) struct PlannedProcedure {
    pub(super) procedure: Procedure,
    /// The form that takes what the intent names from `args`, if there is one. It is not proven by a run.
    pub(super) lifted: Option<LiftedForm>,
}

/// The procedure of work that is written down and not run: analysed and checked against the policy like any program.
///
/// # Errors
/// It cannot be run, or has a secret in it.
pub(super) async fn plan_procedure(
    app: &Arc<App>,
    principal: &Principal,
    work: Work,
    intent: &str,
) -> Result<PlannedProcedure, Problem> {
    app.tools.ensure_manifests_loaded().await;
    let asked = unasked(principal, intent, work);
    let mut plan =
        plan_request(app, &asked, &|_| true).await.map_err(|PlanRefusal { problem, .. }| problem)?;
    // A run of the same program for the same intent is one of the same capability.
    let catalogue = app.knowledge.catalogue_for(principal, &plan.source);
    lift_named_values(&mut plan, &catalogue);
    let sanitiser = app.knowledge.memory.sanitiser();
    let planned = plan.learn.as_ref().and_then(|learn| {
        let tools = app.knowledge.catalogue_for(principal, &plan.source);
        let cacheable = cache::only_reads(&app.knowledge, &plan);
        let lifted = capability::lifted_form(&plan, learn, &sanitiser, &tools);
        let procedure = capability::build_procedure(
            &plan,
            learn,
            (principal, None),
            None,
            (&sanitiser, &tools, cacheable),
        )?;
        Some(PlannedProcedure { procedure, lifted })
    });
    let mut planned = planned.ok_or_else(|| {
        let text = "the source has a secret in it that cannot be made a parameter";
        Problem::new(ErrorCode::InvalidProgram, text).hint("take it from `args` instead")
    })?;
    planned.procedure.origin = CapabilityOrigin::Manual;
    Ok(planned)
}

/// Configures the result cache of a capability. Results cached before are dropped.
///
/// # Errors
/// There is no such capability, its results can never be cached, or the settings contradict each other.
pub async fn configure_result_cache(
    app: &Arc<App>,
    principal: &Principal,
    which: &str,
    change: &CacheChange,
) -> Result<Capability, Problem> {
    let before = capability(app, principal, which).await?;
    let id = before.procedure.id.clone();
    let config = before.procedure.cache_config.with_change(change);
    if config.is_invalidated_by(Invalidation::ManualOnly) && config.invalidate_on.len() > 1 {
        let text = "`manual_only` contradicts every other event that makes results go";
        return Err(Problem::new(ErrorCode::InvalidRequest, text).hint("give it alone, or leave it out"));
    }
    if change.cacheable == Some(true) {
        only_reads(app, principal, &before).await?;
    }
    if !app.store.set_cache_config(principal, &id, &config, now_ms()).await? {
        return Err(Problem::new(ErrorCode::NotFound, format!("capability `{id}` is gone")));
    }
    capability(app, principal, id.as_str()).await
}

/// Refuses a capability whose result may differ the next time, or that changes something.
async fn only_reads(app: &Arc<App>, principal: &Principal, capability: &Capability) -> Result<(), Problem> {
    app.tools.ensure_manifests_loaded().await;
    let name = &capability.name;
    let known = app.knowledge.memory.find_by_name(principal, capability.procedure.id.as_str()).await?;
    let gone = || Problem::new(ErrorCode::NotFound, format!("capability `{name}` is gone"));
    let known = known.ok_or_else(gone)?;
    let asked = unasked(principal, &capability.procedure.description, Work::Intent);
    let RecallOutcome::Run(asked) =
        recall::request_for_capability(&known, &ArgumentBinding::default(), asked)?
    else {
        return Err(gone());
    };
    let plan = plan_request(app, &asked, &|_| true).await.map_err(|refused| refused.problem)?;
    match cache::cache_lifetime(&app.knowledge, &plan) {
        Ok(_) => Ok(()),
        Err(because) => {
            let text = format!("results of `{name}` are never kept: {because}");
            Err(Problem::new(ErrorCode::InvalidRequest, text).hint(
                "only what reads and depends on nothing but what it is given can be known beforehand; for a tool that \
                 reads elsewhere, `cache_ttl` in [permissions] says how long that is good for",
            ))
        }
    }
}

/// Renames a capability, or makes it the new version of the one that has the name.
///
/// # Errors
/// There is no such capability, or the name is taken or invalid.
pub async fn rename_capability(
    app: &App,
    principal: &Principal,
    which: &str,
    name: &str,
    taken: TakenName,
) -> Result<CapabilityId, Problem> {
    check_name(name)?;
    let found = capability(app, principal, which).await?;
    let id = found.procedure.id;
    let signer = app.store.package_signer(principal, &found.name).await?;
    if taken == TakenName::NewVersion {
        put_in_force(app, principal, name, id.clone()).await?;
    } else {
        match app.store.rename_capability(principal, &id, name).await? {
            RenameOutcome::Done => {}
            RenameOutcome::NameTaken => return Err(name_taken(name)),
            RenameOutcome::Unknown => {
                return Err(Problem::new(ErrorCode::NotFound, format!("capability `{id}` is gone")));
            }
        }
    }
    // Whoever signs a package with the new name later is compared with who signed this one.
    if let Some(signer) = signer {
        app.store.remember_package_signer(principal, name, &signer, now_ms()).await?;
    }
    Ok(id)
}

/// Records that a capability does not serve an intent. Later runs for the same intent do not bring it back.
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
    Err(Problem::new(ErrorCode::NotFound, text).hint(hint))
}

/// Deletes a capability; its traces stay.
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

/// Merges `from` into `into`: the intents and statistics of `from` count for `into`, and `from` is deleted.
///
/// # Errors
/// One of them does not exist, or both are the same.
pub async fn merge_capabilities(
    app: &App,
    principal: &Principal,
    into: &str,
    from: &str,
) -> Result<CapabilityId, Problem> {
    let target = capability(app, principal, into).await?.procedure.id;
    let source = capability(app, principal, from).await?.procedure.id;
    if target == source {
        return Err(Problem::new(ErrorCode::InvalidRequest, "a capability cannot be merged with itself"));
    }
    app.store.merge_capabilities(principal, &target, &source, now_ms()).await?;
    Ok(target)
}

/// Rebuilds everything learned from the traces. Returns the number of traces.
///
/// # Errors
/// The database cannot be written.
pub async fn relearn(app: &App, progress: impl Fn(usize, usize) + Send + 'static) -> Result<usize, Problem> {
    Ok(app.store.relearn_all(now_ms(), progress).await?)
}

/// The log of invalidated cache entries, latest first.
///
/// # Errors
/// The database cannot be read.
pub async fn cache_drop_log(
    app: &App,
    principal: &Principal,
    limit: u32,
) -> Result<Vec<CacheInvalidation>, Problem> {
    Ok(app.store.cache_invalidations(principal, limit).await?)
}

/// The number of all cached results of a principal, and of hits.
///
/// # Errors
/// The database cannot be read.
pub async fn whole_cache_usage(app: &App, principal: &Principal) -> Result<CacheUsage, Problem> {
    Ok(app.store.whole_cache_usage(principal, now_ms()).await?)
}

/// What was saved on each of the last `days` days on which something happened, oldest first.
///
/// # Errors
/// The database cannot be read.
pub async fn daily_savings(
    app: &App,
    principal: &Principal,
    days: u32,
) -> Result<Vec<DailySavings>, Problem> {
    let today = now_ms() / DAY_MS * DAY_MS;
    Ok(app.store.daily_savings(principal, today - i64::from(days.saturating_sub(1)) * DAY_MS).await?)
}

/// Drops all cached results. Returns their number.
///
/// # Errors
/// The database cannot be written.
pub async fn drop_results(app: &App, principal: &Principal) -> Result<u64, Problem> {
    Ok(app.store.invalidate_cache(principal, InvalidationScope::All, "somebody wished it", now_ms()).await?)
}

/// Checks that the name is usable in programs, which call the capability as `capabilities.<name>`.
pub(super) fn check_name(name: &str) -> Result<(), Problem> {
    if is_inherited(name) {
        let text =
            format!("`{name}` cannot be the name of a capability: every JavaScript object has such a member");
        return Err(Problem::new(ErrorCode::InvalidRequest, text).hint("choose another name"));
    }
    if is_capability_name(name) {
        return Ok(());
    }
    Err(Problem::new(
        ErrorCode::InvalidRequest,
        format!("`{}` cannot be the name of a capability", printable(name)),
    )
    .hint("letters, digits and `_`, a letter first, at most 64: programs call it as `capabilities.name`"))
}

/// Whether a capability may have this name.
pub fn is_capability_name(name: &str) -> bool {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    begins
        && name.len() <= 64
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_inherited(name)
}

pub(super) fn name_taken(name: &str) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, format!("another capability is called `{name}`"))
        .hint("choose another name, or make it a new version of that one with `--new-version` (`newVersion`)")
}
