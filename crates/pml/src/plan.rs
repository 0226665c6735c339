//! Turns a request into a plan.
//!
//! Analysis is `pml-analysis`'s business; here it gets what it has to know about the tools there are.

use pml_analysis::{Catalogue, Tool};

use crate::catalogue::Snapshot;

/// The tools of `snapshot` as programs may name them. What a server claims about its tools is not
/// believed: only the tools of servers that are `ours` are known to change nothing.
pub fn catalogue(snapshot: &Snapshot, ours: impl Fn(&str) -> bool) -> Catalogue {
    let mut catalogue = Catalogue::default();
    for tool in &snapshot.tools {
        let definition = &tool.definition;
        let reads = definition.annotations.read_only_hint == Some(true) && ours(tool.id.server.as_str());
        catalogue.add(Tool::new(
            tool.id.clone(),
            tool.identifier.clone(),
            definition.input_schema.clone(),
            definition.output_schema.clone(),
            reads,
        ));
    }
    catalogue
}

#[cfg(test)]
mod tests {
    use pml_model::{Definition, ServerName};
    use serde_json::json;

    use super::*;
    use crate::catalogue::{Listing, Naming, Server, with_identifiers};

    fn listing(server: &str) -> Listing {
        let definition = |name: &str, reads: bool| {
            let text = json!({
                "name": name, "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": reads},
            });
            Definition::parse(pml_model::json::raw(&text)).unwrap()
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
        }
    }

    #[test]
    fn only_our_own_claims_to_read_are_believed() {
        let snapshot = Snapshot::new(vec![listing("mine"), listing("theirs")], Naming::Qualified);
        let made = catalogue(&snapshot, |server| server == "mine");
        let reads = |server, tool| made.tool(server, tool).map(|tool| tool.read_only);
        assert_eq!(reads("mine", "get_sum"), Some(true));
        assert_eq!(reads("mine", "get-sum"), Some(true), "by its own name as well");
        assert_eq!(reads("mine", "put"), Some(false));
        assert_eq!(reads("theirs", "get_sum"), Some(false));
        assert_eq!(reads("theirs", "get_summ"), None);
        assert!(made.tool("mine", "put").unwrap().output().is_some());
    }
}
