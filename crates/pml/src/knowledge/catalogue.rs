//! The tools there are as analysis knows them: by the names that programs use, with what each was seen to give.

use std::sync::Arc;

use pml_analysis::{Capability, Catalogue, Tool, Unready, Withheld};
use pml_model::json::raw;
use pml_model::{Principal, ServerName};

use super::{Knowledge, Observed};
use crate::catalogue::Snapshot;
use crate::problem::{Code, Problem};

/// The tools of a moment as programs name them, and what they were made from.
#[derive(Debug)]
pub(super) struct Programs {
    snapshot: Arc<Snapshot>,
    observed: Arc<Observed>,
    known: Arc<Catalogue>,
}

impl Knowledge {
    /// The tools of this moment as programs name them, and which servers are not ready to say what theirs are.
    pub fn known_tools(&self, principal: &Principal) -> Arc<Catalogue> {
        let tools = self.tools_for_programs(principal);
        let unready = self.tools.unready();
        if unready.is_empty() {
            return tools;
        }
        let told = |(server, problem): (ServerName, Problem)| {
            let starting = problem.code == Code::ServerStarting;
            (server.to_string(), Unready { starting, message: problem.message, hint: problem.hint })
        };
        Arc::new(tools.with_unready(unready.into_iter().map(told)))
    }

    fn tools_for_programs(&self, principal: &Principal) -> Arc<Catalogue> {
        let learned = self.of(principal);
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
        *programs = Some(Programs { snapshot, observed, known: Arc::clone(&known) });
        known
    }

    /// The tools of this moment, and the capabilities of `principal` that `source` may name.
    pub(crate) fn known_to(&self, principal: &Principal, source: &str) -> Arc<Catalogue> {
        let tools = self.known_tools(principal);
        if !names_capabilities(source) {
            return tools;
        }
        let (mentioned, others) = self.memory.mentioned(principal, source);
        let capabilities =
            mentioned.iter().map(|known| Capability::new(known.name.clone(), raw(&known.parameters)));
        Arc::new(tools.with_capabilities(capabilities, others))
    }
}

/// Whether a program or a document may call capabilities.
pub(crate) fn names_capabilities(source: &str) -> bool {
    source.contains("capabilit")
}

/// How many results say what those of a tool look like.
const ENOUGH: u64 = 3;

/// The tools of `snapshot` as programs may name them, with what those that do not say were `observed` to give. What a server claims about its tools is not
/// believed: only the tools of servers that are `ours` are known to change nothing.
fn tools_of(snapshot: &Snapshot, observed: &Observed, ours: impl Fn(&str) -> bool) -> Catalogue {
    let mut catalogue = Catalogue::default();
    for tool in &snapshot.tools {
        let definition = &tool.definition;
        let reads = definition.annotations.read_only_hint == Some(true) && ours(tool.id.server.as_str());
        let seen = || observed.get(&(tool.id.to_string(), definition.digest.clone()));
        let seen = || seen().filter(|seen| seen.count >= ENOUGH).map(|seen| raw(&seen.schema));
        catalogue.add(Tool::new(
            tool.id.clone(),
            tool.identifier.clone(),
            definition.input_schema.clone(),
            definition.output_schema.clone().or_else(seen),
            reads,
        ));
    }
    for held in &snapshot.held_back {
        let Problem { message, .. } = held.problem();
        let withheld = Withheld { message, hint: held.hint() };
        catalogue.withhold(held.id.server.as_str(), &[&held.id.tool, &held.identifier], &withheld);
    }
    for (server, Problem { message, hint, .. }) in &snapshot.off {
        let hint = hint.clone().unwrap_or_default();
        catalogue.withhold_server(server, Withheld { message: message.clone(), hint });
    }
    catalogue
}

#[cfg(test)]
mod tests {
    use pml_model::Definition;
    use serde_json::json;

    use super::*;
    use crate::catalogue::{Accepted, Listing, Server, with_identifiers};
    use crate::config::Naming;

    fn listing(server: &str) -> Listing {
        let definition = |name: &str, reads: bool| {
            let text = json!({
                "name": name, "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": reads},
            });
            Definition::parse(raw(&text)).unwrap()
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
            accepted: Accepted::All,
        }
    }

    #[test]
    fn only_our_own_claims_to_read_are_believed() {
        let snapshot = Snapshot::new(vec![listing("mine"), listing("theirs")], Naming::Qualified);
        let made = tools_of(&snapshot, &Observed::new(), |server| server == "mine");
        let reads = |server, tool| made.tool(server, tool).map(|tool| tool.read_only);
        assert_eq!(reads("mine", "get_sum"), Some(true));
        assert_eq!(reads("mine", "get-sum"), Some(true), "by its own name as well");
        assert_eq!(reads("mine", "put"), Some(false));
        assert_eq!(reads("theirs", "get_sum"), Some(false));
        assert_eq!(reads("theirs", "get_summ"), None);
        assert!(made.tool("mine", "put").unwrap().output().is_some());
    }
}
