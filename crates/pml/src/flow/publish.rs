//! Publishing: who sees a capability beside its owner, and what they see of it.
//!
//! A published capability stays its owner's: others find it, read it, call it and run it, under their own policy and
//! with approvals of their own, and what their runs teach stays theirs. Traces and results are never shared.

use std::sync::Arc;

use pml_model::capability::{Capability, CapabilityState};
use pml_model::learning::LearnedPaths;
use pml_model::name::printable;
use pml_model::structure::NodeKind;
use pml_model::version::is_current_name;
use pml_model::{Membership, Principal, Visibility};

use super::capabilities::{CapabilityRecord, capability, capability_record, full_name};
use crate::app::App;
use crate::clock::now_ms;
use crate::knowledge::IndexedCapability;
use crate::problem::{ErrorCode, Problem};

/// Sets who sees a capability of `owner`. `by` is its owner, or an admin.
///
/// # Errors
/// The owner has no such capability, it has not worked yet or is not in force, or it calls one that fewer people see.
pub async fn publish_capability(
    app: &App,
    owner: &Principal,
    which: &str,
    visibility: Visibility,
    by: &Principal,
) -> Result<Capability, Problem> {
    let found = capability(app, owner, which).await?;
    if visibility != Visibility::Private {
        check_publishable(app, owner, &found, visibility).await?;
    }
    let id = &found.procedure.id;
    if !app.store.publish_capability(owner, id, visibility, by, now_ms()).await? {
        return Err(Problem::new(ErrorCode::NotFound, format!("capability `{id}` is gone")));
    }
    capability(app, owner, id.as_str()).await
}

async fn check_publishable(
    app: &App,
    owner: &Principal,
    found: &Capability,
    visibility: Visibility,
) -> Result<(), Problem> {
    let name = printable(&found.name);
    if !is_current_name(&found.name) {
        let text = format!("`{name}` is a version that is not in force");
        return Err(Problem::new(ErrorCode::InvalidRequest, text)
            .hint("publish the capability by its plain name; others see the version in force"));
    }
    if found.state == CapabilityState::Planned {
        let text = format!("`{name}` has not worked yet");
        return Err(Problem::new(ErrorCode::InvalidRequest, text).hint("publish it after a run that works"));
    }
    for node in &found.procedure.static_structure.nodes {
        let NodeKind::Capability { capability: called, .. } = &node.kind else { continue };
        let called = capability(app, owner, called).await?;
        if called.visibility < visibility {
            let (called_name, is) = (printable(&called.name), called.visibility);
            let text = format!("`{name}` calls `{called_name}`, which is {is}");
            return Err(Problem::new(ErrorCode::InvalidRequest, text).hint(format!(
                "publish that first: `pml capabilities publish {called_name} --to {visibility}`"
            )));
        }
    }
    Ok(())
}

/// The record of a capability that the principal owns, or that somebody else published.
///
/// # Errors
/// There is none, or the database cannot be read.
pub async fn visible_capability(
    app: &App,
    principal: &Principal,
    name: &str,
) -> Result<CapabilityRecord, Problem> {
    match capability_record(app, principal, name).await {
        Err(problem) if problem.code == ErrorCode::NotFound => {
            let known = app.knowledge.memory.find_by_name(principal, name).await?;
            match known.filter(|known| known.is_of_other) {
                Some(known) => published_record(app, &known).await?.ok_or(problem),
                None => Err(problem),
            }
        }
        own => own,
    }
}

/// The capabilities that others published for `principal`, by name.
///
/// # Errors
/// The database cannot be read.
pub async fn published_capabilities(app: &App, principal: &Principal) -> Result<Vec<Capability>, Problem> {
    let mut published = Vec::new();
    for known in app.knowledge.memory.published_for(principal).await? {
        published.extend(app.store.capability(&known.owner, &known.id).await?.map(as_published));
    }
    Ok(published)
}

async fn published_record(
    app: &App,
    known: &Arc<IndexedCapability>,
) -> Result<Option<CapabilityRecord>, Problem> {
    let Some(found) = app.store.capability(&known.owner, &known.id).await? else { return Ok(None) };
    let version = app.store.version_of(&known.owner, &known.id).await?.map_or(1, |(_, version)| version);
    Ok(Some(CapabilityRecord {
        success_rate: found.statistics.success_rate(),
        qualified_name: full_name(&found),
        version,
        contains: Vec::new(),
        cache: pml_store::CacheUsage { entries: 0, hit_count: 0 },
        uses_by_others: None,
        capability: as_published(found),
    }))
}

/// What others see of a capability: none of what its runs were given but the intent that its defaults come from.
fn as_published(mut found: Capability) -> Capability {
    let first = found.intents.iter().map(|intent| intent.first_at).min();
    found.intents.retain(|intent| Some(intent.first_at) == first);
    found.intents.truncate(1);
    found.learning = LearnedPaths::default();
    found.approved = false;
    found.procedure.unproven_lift = None;
    let members = found.procedure.parameters_schema.get_mut("properties");
    let members = members.and_then(serde_json::Value::as_object_mut).into_iter();
    for member in members.flat_map(|members| members.values_mut()) {
        if let Some(member) = member.as_object_mut() {
            member.remove("examples");
        }
    }
    found
}

/// Puts somebody into a project of an organisation. What was published there before is seen by them from then on.
///
/// # Errors
/// A name is not one, or the change cannot be stored.
pub async fn assign_person(
    store: &pml_store::Store,
    who: &Principal,
    to: &Membership,
) -> Result<(), Problem> {
    for name in [&to.org, &to.project] {
        if !Membership::is_name(name) {
            let text = format!("`{}` cannot be the name of a project or an organisation", printable(name));
            return Err(Problem::new(ErrorCode::InvalidRequest, text)
                .hint("use 1 to 64 letters, digits, `.`, `_` and `-`"));
        }
    }
    Ok(store.set_membership(who, to, now_ms()).await?)
}
