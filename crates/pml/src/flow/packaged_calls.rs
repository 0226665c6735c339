//! What the programs of a package call, by analysis. What the package itself says of that is compared, never believed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pml_analysis::{AnalysisCapability, AnalysisCatalogue, Permissions};
use pml_model::Principal;
use pml_model::capability::CapabilitySource;
use pml_model::json::raw;
use pml_model::name::printable;

use crate::app::App;
use crate::package::{PackageContent, PackagedCapability};
use crate::problem::{ErrorCode, Problem};
use crate::runtime::run_blocking;

/// What one packaged capability calls.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PackagedCalls {
    /// `server:tool`.
    pub(super) tools: BTreeSet<String>,
    /// Names of capabilities.
    pub(super) capabilities: BTreeSet<String>,
}

/// What each capability of a package calls, by name. A call of another capability means the one in the package.
///
/// # Errors
/// A program cannot be parsed, two capabilities have one name, one calls what the package does not hold before it, or the
/// package does not list a tool that is called.
pub(super) async fn packaged_calls(
    app: &App,
    principal: &Principal,
    content: &PackageContent,
) -> Result<BTreeMap<String, PackagedCalls>, Problem> {
    let tools = app.knowledge.catalogue_for(principal, "");
    let own = content.capabilities.iter();
    let own = own.map(|one| AnalysisCapability::new(one.name.clone(), raw(&one.parameters_schema)));
    let catalogue = Arc::new(tools.with_capabilities(own, Vec::new()));
    let mut found = BTreeMap::new();
    for one in &content.capabilities {
        let calls = calls(&catalogue, one).await?;
        check_capabilities(one, &calls, &found)?;
        if found.insert(one.name.clone(), calls).is_some() {
            let text = format!("the package has two capabilities called `{}`", printable(&one.name));
            return Err(dishonest(&text));
        }
    }
    check_tools(content, &found)?;
    Ok(found)
}

async fn calls(
    catalogue: &Arc<AnalysisCatalogue>,
    one: &PackagedCapability,
) -> Result<PackagedCalls, Problem> {
    let (catalogue, source) = (Arc::clone(catalogue), one.source.clone());
    let permissions = run_blocking(move || permissions(&catalogue, &source)).await;
    let Permissions { declared, capabilities, .. } = permissions.map_err(|why| {
        let text = format!("capability `{}` of the package is refused: {why}", printable(&one.name));
        Problem::new(ErrorCode::InvalidProgram, text)
    })?;
    Ok(PackagedCalls { tools: declared, capabilities })
}

/// What a source calls as it is written; the form that takes arguments is compared with it when it is imported.
fn permissions(catalogue: &AnalysisCatalogue, source: &CapabilitySource) -> Result<Permissions, String> {
    match source {
        CapabilitySource::Code { code, .. } => pml_analysis::analyse(code, catalogue)
            .map(|analysis| analysis.permissions)
            .map_err(|error| error.to_string()),
        CapabilitySource::Dag { dag_structure, .. } => {
            pml_analysis::analyse_dag(dag_structure.get(), catalogue)
                .map(|analysis| analysis.permissions)
                .map_err(|error| error.to_string())
        }
        CapabilitySource::Tool { tool_id, .. } => {
            Ok(Permissions { declared: BTreeSet::from([tool_id.clone()]), ..Permissions::default() })
        }
    }
}

/// A capability may call those of the package that come before it, and no others: a name that only the importing side
/// knows could be anything there.
fn check_capabilities(
    one: &PackagedCapability,
    calls: &PackagedCalls,
    before: &BTreeMap<String, PackagedCalls>,
) -> Result<(), Problem> {
    match calls.capabilities.iter().find(|called| !before.contains_key(*called)) {
        None => Ok(()),
        Some(called) => {
            let (name, called) = (printable(&one.name), printable(called));
            Err(dishonest(&format!(
                "capability `{name}` of the package calls `{called}`, which is not in the package before it"
            )))
        }
    }
}

/// The list of tools is what the person who decides looks at, so it has to be complete.
fn check_tools(content: &PackageContent, found: &BTreeMap<String, PackagedCalls>) -> Result<(), Problem> {
    let listed: BTreeSet<&str> = content.tools.iter().map(|tool| tool.id.as_str()).collect();
    for (name, calls) in found {
        if let Some(tool) = calls.tools.iter().find(|tool| !listed.contains(tool.as_str())) {
            let (name, tool) = (printable(name), printable(tool));
            return Err(dishonest(&format!(
                "capability `{name}` of the package calls `{tool}`, which the package does not list"
            )));
        }
    }
    Ok(())
}

/// The refusal of a package whose parts contradict each other.
pub(super) fn dishonest(text: &str) -> Problem {
    Problem::new(ErrorCode::InvalidProgram, text)
        .hint("do not import it; show it to the person who signed the package")
}
