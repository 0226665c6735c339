//! Versions of capabilities: which there are, how two of them differ, and which one is in force.

use pml_model::capability::{Capability, CapabilitySource, CapabilityState};
use pml_model::name::printable;
use pml_model::version::CapabilityVersion;
use pml_model::{Principal, ToolId};
use serde::Serialize;

use super::capabilities::{capability, full_name};
use super::version_names::put_in_force;
use crate::app::App;
use crate::approve::Effect;
use crate::problem::{ErrorCode, Problem};
use crate::version_diff::{DiffLine, ParameterChanges, diff_lines, diff_parameters};

/// The versions of a capability, latest first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionList {
    /// The name of the capability.
    pub name: String,
    /// Its versions.
    pub versions: Vec<VersionRecord>,
}

/// A version of a capability.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionRecord {
    /// Its number, id, and the name that runs it.
    #[serde(flatten)]
    pub version: CapabilityVersion,
    /// Whether the name of the capability stands for it.
    pub current: bool,
    /// `org.project.namespace.action.hash`.
    pub qualified_name: String,
    /// The state of the capability that it is.
    pub state: CapabilityState,
    /// The number of runs that worked.
    pub success_count: u64,
    /// The number of runs that failed.
    pub failure_count: u64,
}

/// How two versions of a capability differ.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionDiff {
    /// The name of the capability.
    pub name: String,
    /// The number of the version that is compared.
    pub from: u32,
    /// The number of the version that it is compared with.
    pub to: u32,
    /// Why `to` was offered, if nobody has put it in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_because: Option<String>,
    /// The lines of the code of both.
    pub code: Vec<DiffLine>,
    /// The parameters that differ.
    pub parameters: ParameterChanges,
    /// The tools that only one of them calls.
    pub effects: Vec<EffectChange>,
}

/// A tool that only one of two versions calls.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectChange {
    /// `server:tool`.
    pub tool: String,
    /// Whether the later version calls it, or the earlier one did.
    pub added: bool,
    /// What calling it does: `reads` or `writes`; `None` if nobody says, or the tool is gone.
    pub effect: Option<&'static str>,
    /// Whether it needs approval, in the words of the configuration; `None` if the tool is gone.
    pub approval: Option<&'static str>,
}

/// The versions of a capability, by name or id.
///
/// # Errors
/// There is none, or the database cannot be read.
pub async fn capability_versions(
    app: &App,
    principal: &Principal,
    which: &str,
) -> Result<VersionList, Problem> {
    let (name, versions) = family(app, principal, which).await?;
    let mut records = Vec::with_capacity(versions.len());
    for version in versions {
        let known = capability(app, principal, version.id.as_str()).await?;
        records.push(VersionRecord {
            current: version.is_current(),
            qualified_name: full_name(&known),
            state: known.state,
            success_count: known.statistics.success_count,
            failure_count: known.statistics.failure_count,
            version,
        });
    }
    Ok(VersionList { name, versions: records })
}

/// How two versions of a capability differ: the one in force and the latest other one, unless numbers are given.
///
/// # Errors
/// There is no such capability or version, or it has only one.
pub async fn diff_versions(
    app: &App,
    principal: &Principal,
    which: &str,
    from: Option<u32>,
    to: Option<u32>,
) -> Result<VersionDiff, Problem> {
    let (name, versions) = family(app, principal, which).await?;
    let current = versions.iter().find(|version| version.is_current());
    let (from, to) = match (from, to) {
        (Some(from), Some(to)) => (from, to),
        (Some(from), None) => (from, current.map_or(from, |current| current.version)),
        (None, to) => {
            let current = current.map_or(0, |current| current.version);
            let mut others = versions.iter().map(|version| version.version);
            let other = to.or_else(|| others.find(|other| *other != current));
            let other = other.ok_or_else(|| only_one(&name, "compare it with"))?;
            (current.min(other), current.max(other))
        }
    };
    let (before, after) = (find(&name, &versions, from)?, find(&name, &versions, to)?);
    let offered_because = after.offered_because.clone();
    let (before, after) = (
        capability(app, principal, before.id.as_str()).await?,
        capability(app, principal, after.id.as_str()).await?,
    );
    app.tools.ensure_manifests_loaded().await;
    let parameters = |capability: &Capability| capability.procedure.parameters_schema.clone();
    Ok(VersionDiff {
        code: diff_lines(&source_text(&before.procedure.source), &source_text(&after.procedure.source)),
        parameters: diff_parameters(&parameters(&before), &parameters(&after)),
        effects: effects(app, &before, &after),
        offered_because,
        name,
        from,
        to,
    })
}

/// Puts another version of a capability in force: the given one, or the one before. Whatever was learned of it counts
/// again, and what it may do is decided at each run, as ever.
///
/// # Errors
/// There is no such capability or version, or it has only one.
pub async fn roll_back(
    app: &App,
    principal: &Principal,
    which: &str,
    version: Option<u32>,
) -> Result<u32, Problem> {
    let (name, versions) = family(app, principal, which).await?;
    let version = match version {
        Some(version) => find(&name, &versions, version)?,
        None => {
            let current = versions.iter().find(|version| version.is_current());
            let current = current.map_or(u32::MAX, |current| current.version);
            // An offered version is ahead of the one in force, or nobody has looked at it.
            let earlier =
                |version: &&CapabilityVersion| version.version < current && version.offered_because.is_none();
            versions.iter().find(earlier).ok_or_else(|| only_one(&name, "go back to"))?
        }
    };
    put_in_force(app, principal, &name, version.id.clone()).await.map(|(_, version)| version)
}

/// The name and the versions of a capability, latest first. One that never had a second version is version 1.
async fn family(
    app: &App,
    principal: &Principal,
    which: &str,
) -> Result<(String, Vec<CapabilityVersion>), Problem> {
    let found = match capability(app, principal, which).await {
        Ok(found) => found,
        Err(problem) => {
            // The version in force may have been deleted.
            let versions = app.store.capability_versions(principal, which).await?;
            return if versions.is_empty() { Err(problem) } else { Ok((which.to_owned(), versions)) };
        }
    };
    let id = found.procedure.id;
    if let Some((name, _)) = app.store.version_of(principal, &id).await? {
        let versions = app.store.capability_versions(principal, &name).await?;
        return Ok((name, versions));
    }
    let only = CapabilityVersion {
        version: 1,
        id,
        name: found.name.clone(),
        created_at: found.created_at,
        offered_because: None,
    };
    Ok((found.name, vec![only]))
}

fn find<'v>(
    name: &str,
    versions: &'v [CapabilityVersion],
    version: u32,
) -> Result<&'v CapabilityVersion, Problem> {
    versions.iter().find(|one| one.version == version).ok_or_else(|| {
        let there: Vec<String> = versions.iter().rev().map(|one| one.version.to_string()).collect();
        let text = format!("`{}` has no version {version}", printable(name));
        Problem::new(ErrorCode::NotFound, text).hint(format!("it has {}", there.join(", ")))
    })
}

fn only_one(name: &str, what: &str) -> Problem {
    let text = format!("`{}` has no other version to {what}", printable(name));
    Problem::new(ErrorCode::InvalidRequest, text)
        .hint("new code under a name that is taken becomes a version with `--new-version`")
}

/// What a capability runs, as text: the form that takes arguments, if there is one.
pub(super) fn source_text(source: &CapabilitySource) -> String {
    match source {
        CapabilitySource::Code { code, template } => template.as_ref().unwrap_or(code).clone(),
        CapabilitySource::Dag { dag_structure, template } => {
            let text = template.as_ref().unwrap_or(dag_structure).get();
            let value = serde_json::from_str::<serde_json::Value>(text);
            value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| text.to_owned())
        }
        CapabilitySource::Tool { tool_id, default_args } => format!("{tool_id} {}", default_args.get()),
    }
}

fn effects(app: &App, before: &Capability, after: &Capability) -> Vec<EffectChange> {
    let (snapshot, policy) = (app.tools.snapshot(), app.policy());
    let of = |capability: &Capability| -> Vec<String> {
        capability.procedure.tools_used.iter().map(|tool| tool.id.clone()).collect()
    };
    let (before, after) = (of(before), of(after));
    let change = |tool: &String, added: bool| {
        let found = ToolId::parse(tool).ok().and_then(|id| snapshot.tool(&id).ok());
        let annotations = found.map(|found| &found.definition.annotations);
        EffectChange {
            effect: found.zip(annotations).and_then(|(found, hints)| {
                policy.effect(&found.id, hints).map(|effect| match effect {
                    Effect::Reads => "reads",
                    Effect::Writes => "writes",
                })
            }),
            approval: found
                .zip(annotations)
                .map(|(found, hints)| policy.verdict(&found.id, hints).mode.as_str()),
            tool: tool.clone(),
            added,
        }
    };
    let added = after.iter().filter(|tool| !before.contains(tool)).map(|tool| change(tool, true));
    let removed = before.iter().filter(|tool| !after.contains(tool)).map(|tool| change(tool, false));
    added.chain(removed).collect()
}
