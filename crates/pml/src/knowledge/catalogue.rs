//! The tools in the form for analysis: by the names that programs use, with the observed result schema of each.

use std::sync::Arc;

use pml_analysis::{AnalysisCapability, AnalysisCatalogue, AnalysisTool, UnreadyServer, WithheldTool};
use pml_model::json::raw;
use pml_model::{Principal, ServerName};

use super::{Knowledge, ObservedSchemas};
use crate::catalogue::ToolSnapshot;
use crate::problem::{ErrorCode, Problem};

/// The tools of a snapshot by their program names, and the inputs it was built from.
#[derive(Debug)]
pub(super) struct ProgramCatalogue {
    snapshot: Arc<ToolSnapshot>,
    observed: Arc<ObservedSchemas>,
    known: Arc<AnalysisCatalogue>,
}

impl Knowledge {
    /// The current tools by their program names, and the servers whose tools are unknown.
    pub fn tool_catalogue(&self, principal: &Principal) -> Arc<AnalysisCatalogue> {
        let tools = self.tools_for_programs(principal);
        let unready = self.tools.unready_servers();
        if unready.is_empty() {
            return tools;
        }
        let told = |(server, problem): (ServerName, Problem)| {
            let starting = problem.code == ErrorCode::ServerStarting;
            (server.to_string(), UnreadyServer { starting, message: problem.message, hint: problem.hint })
        };
        Arc::new(tools.with_unready(unready.into_iter().map(told)))
    }

    fn tools_for_programs(&self, principal: &Principal) -> Arc<AnalysisCatalogue> {
        let learned = self.of_principal(principal);
        let (snapshot, observed) = (self.tools.snapshot(), learned.observed());
        let mut programs = learned.programs.lock();
        if let Some(of) = &*programs
            && Arc::ptr_eq(&of.snapshot, &snapshot)
            && Arc::ptr_eq(&of.observed, &observed)
        {
            return Arc::clone(&of.known);
        }
        let ours = |server: &str| self.tools.builtin(server).is_some();
        let known = Arc::new(tools_of(&snapshot, &observed, ours));
        *programs = Some(ProgramCatalogue { snapshot, observed, known: Arc::clone(&known) });
        known
    }

    /// The current tools, and the capabilities of `principal` that `source` may name.
    pub(crate) fn catalogue_for(&self, principal: &Principal, source: &str) -> Arc<AnalysisCatalogue> {
        self.catalogue_within(principal, principal, source)
    }

    /// The current tools, and the capabilities that `source`, a program of `owner` that `principal` runs, may name.
    pub(crate) fn catalogue_within(
        &self,
        principal: &Principal,
        owner: &Principal,
        source: &str,
    ) -> Arc<AnalysisCatalogue> {
        let tools = self.tool_catalogue(principal);
        if !may_call_capabilities(source) {
            return tools;
        }
        let (mentioned, others) = self.memory.mentioned(principal, owner, source);
        let capabilities =
            mentioned.iter().map(|known| AnalysisCapability::new(known.name.clone(), raw(&known.parameters)));
        Arc::new(tools.with_capabilities(capabilities, others))
    }
}

/// Whether a program or a document may call capabilities.
pub(crate) fn may_call_capabilities(source: &str) -> bool {
    source.contains("capabilit")
}

/// The number of observed results after which their schema is used.
const ENOUGH: u64 = 3;

/// The tools of `snapshot` by their program names. Tools without an output schema get the `observed` one. Annotations
/// of foreign servers are not trusted: only tools of servers in `ours` are known to be read-only.
fn tools_of(
    snapshot: &ToolSnapshot,
    observed: &ObservedSchemas,
    ours: impl Fn(&str) -> bool,
) -> AnalysisCatalogue {
    let mut catalogue = AnalysisCatalogue::default();
    for tool in &snapshot.tools {
        let definition = &tool.definition;
        let reads = definition.annotations.read_only_hint == Some(true) && ours(tool.id.server.as_str());
        let seen = || observed.get(&(tool.id.to_string(), definition.digest.clone()));
        let seen = || seen().filter(|seen| seen.count >= ENOUGH).map(|seen| raw(&seen.schema));
        catalogue.add_tool(AnalysisTool::new(
            tool.id.clone(),
            tool.identifier.clone(),
            definition.input_schema.clone(),
            definition.output_schema.clone().or_else(seen),
            reads,
        ));
    }
    for held in &snapshot.quarantined {
        let Problem { message, .. } = held.problem();
        let withheld = WithheldTool { message, hint: held.hint() };
        catalogue.withhold_tool(held.id.server.as_str(), &[&held.id.tool, &held.identifier], &withheld);
    }
    for (server, Problem { message, hint, .. }) in &snapshot.disabled_servers {
        let hint = hint.clone().unwrap_or_default();
        catalogue.withhold_server(server, WithheldTool { message: message.clone(), hint });
    }
    catalogue
}

#[cfg(test)]
mod tests {
    use pml_model::Definition;
    use serde_json::json;

    use super::*;
    use crate::catalogue::{CatalogueServer, ServerOffers, UsableDefinitions, with_identifiers};
    use crate::config::ToolNaming;

    fn listing(server: &str) -> ServerOffers {
        let definition = |name: &str, reads: bool| {
            let text = json!({
                "name": name, "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": reads},
            });
            Definition::parse(raw(&text)).unwrap()
        };
        let server = CatalogueServer {
            name: ServerName::new(server).unwrap(),
            description: None,
            tools_known: true,
            capabilities: None,
        };
        ServerOffers {
            server,
            tools: with_identifiers(vec![definition("get-sum", true), definition("put", false)]),
            accepted: UsableDefinitions::All,
        }
    }

    #[test]
    fn only_our_own_claims_to_read_are_believed() {
        let snapshot = ToolSnapshot::new(vec![listing("mine"), listing("theirs")], ToolNaming::Qualified);
        let made = tools_of(&snapshot, &ObservedSchemas::new(), |server| server == "mine");
        let reads = |server, tool| made.tool(server, tool).map(|tool| tool.read_only);
        assert_eq!(reads("mine", "get_sum"), Some(true));
        assert_eq!(reads("mine", "get-sum"), Some(true), "by its own name as well");
        assert_eq!(reads("mine", "put"), Some(false));
        assert_eq!(reads("theirs", "get_sum"), Some(false));
        assert_eq!(reads("theirs", "get_summ"), None);
        assert!(made.tool("mine", "put").unwrap().output_schema().is_some());
    }
}
