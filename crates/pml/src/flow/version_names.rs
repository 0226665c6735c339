//! The names of versions and of capabilities among those of everybody: what they stand for, and which version has one.

use pml_model::capability::Capability;
use pml_model::version::{parse_qualified_name, parse_version_name};
use pml_model::{CapabilityId, Principal};
use pml_store::VersionOutcome;

use crate::app::App;
use crate::clock::now_ms;
use crate::problem::{ErrorCode, Problem};

/// Puts a capability in force under a name, and returns its id and the number of the version that it is.
pub(super) async fn put_in_force(
    app: &App,
    principal: &Principal,
    name: &str,
    id: CapabilityId,
) -> Result<(CapabilityId, u32), Problem> {
    match app.store.put_version_in_force(principal, name, &id, now_ms()).await? {
        VersionOutcome::InForce(version) => Ok((id, version)),
        VersionOutcome::VersionOf(other) => {
            let text = format!("it is a version of `{other}` and cannot be one of `{name}` as well");
            Err(Problem::new(ErrorCode::InvalidRequest, text)
                .hint("rename it first: a version that gets a name of its own is no version any more"))
        }
        VersionOutcome::Unknown => {
            Err(Problem::new(ErrorCode::NotFound, format!("capability `{id}` is gone")))
        }
    }
}

/// The capability in force, where `name` has its version in it.
pub(super) async fn version_in_force(
    app: &App,
    principal: &Principal,
    name: &str,
) -> Result<Option<Capability>, Problem> {
    let Some((family, version)) = parse_version_name(name) else { return Ok(None) };
    let Some(found) = app.store.capability_named(principal, family).await? else { return Ok(None) };
    let number = app.store.version_of(principal, &found.procedure.id).await?.map_or(1, |(_, number)| number);
    Ok((number == version).then_some(found))
}

/// The id, where a qualified name or that of the version in force is given; any other name as it is.
pub(super) async fn resolve_alias(app: &App, principal: &Principal, name: &str) -> Result<String, Problem> {
    if let Some(id) = parse_qualified_name(name) {
        return Ok(id.as_str().to_owned());
    }
    let in_force = version_in_force(app, principal, name).await?;
    Ok(in_force.map_or_else(|| name.to_owned(), |found| found.procedure.id.as_str().to_owned()))
}
