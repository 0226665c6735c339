//! The tools on the machine of a client, as it tells them with a request: names and schemas.
//!
//! They count for that one request. This gateway never calls them, so they need nobody's acceptance here: whether they
//! may be called is decided where they are.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use pml_model::json::Fields;
use pml_model::name::js_identifier;
use pml_model::{Definition, ServerName, ToolId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{CatalogueServer, CatalogueTool, ToolSnapshot};
use crate::problem::{ErrorCode, Problem};

/// The tools that one request may tell.
const MOST_TOOLS: usize = 512;
/// 1 MiB: the bytes of all definitions that one request may tell.
const MOST_BYTES: usize = 1 << 20;
/// The members of a definition that are read; nothing else of it is kept.
const MEMBERS: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// A client that runs programs itself, with the tools that it has.
#[derive(Debug, Default)]
pub struct ClientTools {
    tools: BTreeMap<ServerName, Vec<Arc<Definition>>>,
}

/// The tools of the gateway and those of a client together.
#[derive(Debug)]
pub(crate) struct OverlaidTools {
    pub(crate) snapshot: ToolSnapshot,
    /// The servers that only the client has.
    pub(crate) only_client: BTreeSet<ServerName>,
}

impl ClientTools {
    /// Reads what a client says of itself.
    pub(crate) fn parse(text: &RawValue) -> Result<ClientTools, Problem> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Announcement<'a> {
            #[serde(borrow, default)]
            tools: Vec<&'a RawValue>,
        }
        let wrong = |why: String| {
            Problem::new(ErrorCode::InvalidRequest, format!("`pml/client` cannot be read: {why}"))
                .hint(r#"write {"tools": [{"server": "files", "name": "read", "inputSchema": {…}}]}"#)
        };
        if text.get().len() > MOST_BYTES {
            return Err(wrong(format!("it has more than {MOST_BYTES} bytes")));
        }
        // Serde would also accept an array with the values of the fields in order.
        if !text.get().starts_with('{') {
            return Err(wrong("it is not an object".to_owned()));
        }
        let told: Announcement<'_> =
            serde_json::from_str(text.get()).map_err(|error| wrong(error.to_string()))?;
        if told.tools.len() > MOST_TOOLS {
            return Err(wrong(format!("it has more than {MOST_TOOLS} tools")));
        }
        let mut tools: BTreeMap<ServerName, Vec<Arc<Definition>>> = BTreeMap::new();
        for tool in told.tools {
            let given = Fields::parse(tool.get()).map_err(|error| wrong(error.to_string()))?;
            let server = given.read::<String>("server").unwrap_or_default();
            let server = ServerName::new(&server).map_err(|error| wrong(error.to_string()))?;
            let mut kept = Fields::default();
            for member in MEMBERS {
                if let Some(value) = given.get(member) {
                    kept.set(member, value.to_owned());
                }
            }
            let definition = Definition::parse(kept.to_raw()).map_err(|error| wrong(error.to_string()))?;
            tools.entry(server).or_default().push(Arc::new(definition));
        }
        Ok(ClientTools { tools })
    }

    /// The tools of `own` and those of the client. Where the gateway knows a server of that name, the client's tools
    /// count only as far as `is_of_client` says that they are its own.
    pub(crate) fn overlay(
        &self,
        own: &ToolSnapshot,
        is_of_client: impl Fn(&ToolId, &Definition) -> bool,
    ) -> OverlaidTools {
        let known: HashSet<&ServerName> = own.servers.iter().map(|server| &server.name).collect();
        let (mut tools, mut servers) = (Vec::new(), own.servers.clone());
        let mut only_client = BTreeSet::new();
        for (server, definitions) in &self.tools {
            if !known.contains(server) {
                only_client.insert(server.clone());
                servers.push(CatalogueServer {
                    name: server.clone(),
                    description: None,
                    tools_known: true,
                    capabilities: None,
                });
            }
            let mut identifiers = HashSet::new();
            for definition in definitions {
                let id = ToolId { server: server.clone(), tool: definition.name.clone() };
                let counts = only_client.contains(server) || is_of_client(&id, definition);
                let identifier = js_identifier(&definition.name);
                // Of two tools that a program could not tell apart, the first one counts.
                if counts && identifiers.insert(identifier.clone()) {
                    tools.push(CatalogueTool {
                        id,
                        identifier,
                        exposed_name: String::new(),
                        definition: Arc::clone(definition),
                        defined_at: 0,
                        first_seen_at: 0,
                        header_parameters: Vec::new(),
                    });
                }
            }
        }
        let told: HashSet<ToolId> = tools.iter().map(|tool| tool.id.clone()).collect();
        tools.extend(own.tools.iter().filter(|tool| !told.contains(&tool.id)).map(|tool| CatalogueTool {
            id: tool.id.clone(),
            identifier: tool.identifier.clone(),
            exposed_name: tool.exposed_name.clone(),
            definition: Arc::clone(&tool.definition),
            defined_at: tool.defined_at,
            first_seen_at: tool.first_seen_at,
            header_parameters: tool.header_parameters.clone(),
        }));
        tools.sort_by(|a, b| (&a.id.server, &a.id.tool).cmp(&(&b.id.server, &b.id.tool)));
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        let by_id = tools.iter().enumerate().map(|(index, tool)| (tool.id.clone(), index)).collect();
        let snapshot = ToolSnapshot {
            tools,
            servers,
            quarantined: Vec::new(),
            disabled_servers: own.disabled_servers.clone(),
            by_id,
            by_exposed: HashMap::new(),
            index: OnceLock::new(),
            kinds: OnceLock::new(),
        };
        OverlaidTools { snapshot, only_client }
    }
}

#[cfg(test)]
mod tests {
    use pml_model::json::raw;
    use serde_json::json;

    use super::*;
    use crate::config::ToolNaming;

    #[test]
    fn a_client_adds_its_tools_and_takes_none_of_the_gateway() {
        let told = |server: &str| json!({ "server": server, "name": "read", "description": "of the client" });
        let own = ClientTools::parse(&raw(&json!({ "tools": [told("shared"), told("mine")] }))).unwrap();
        let own = own.overlay(&ToolSnapshot::new(Vec::new(), ToolNaming::Qualified), |_, _| false).snapshot;
        let told = json!({ "tools": [told("mine"), told("shared"), told("files"),
            { "server": "files", "name": "read_", "secret": 1 }, { "server": "files", "name": "read-" }] });
        let OverlaidTools { snapshot, only_client } =
            ClientTools::parse(&raw(&told)).unwrap().overlay(&own, |id, _| id.server.as_str() == "shared");
        let names: Vec<String> = snapshot.tools.iter().map(|tool| tool.id.to_string()).collect();
        assert_eq!(names, ["files:read", "files:read_", "mine:read", "shared:read"]);
        assert_eq!(only_client.iter().map(ServerName::as_str).collect::<Vec<_>>(), ["files"]);
        let kept = snapshot.tool(&ToolId::parse("files:read_").unwrap()).unwrap();
        assert!(!kept.definition.raw.get().contains("secret"));
    }

    #[test]
    fn what_is_no_list_of_tools_is_refused() {
        for text in [
            json!([]),
            json!({ "tools": {} }),
            json!({ "tools": [{ "name": "read" }] }),
            json!({ "tools": [{ "server": "files" }] }),
            json!({ "tools": [{ "server": "a b", "name": "read" }] }),
            json!({ "values": [] }),
            json!({ "tools": vec![json!({ "server": "files", "name": "read" }); MOST_TOOLS + 1] }),
        ] {
            assert!(ClientTools::parse(&raw(&text)).is_err(), "{text}");
        }
    }
}
