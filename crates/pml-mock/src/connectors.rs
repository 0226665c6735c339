//! Results of well-known services whose servers declare no output schemas.
//!
//! A connector is a JSON file next to this one and a line in [`DOCUMENTS`]:
//!
//! | member | meaning |
//! |---|---|
//! | `servers` | words one of which occurs in the name of a server of the service |
//! | `prefixes` | what the service's tool names may start with; a tool that does belongs to it, whatever its server is called |
//! | `tools` | for each kind of result: `names` of the tools without prefix, `arguments` that a call has for it, and the `result` as a JSON Schema |
//! | `$defs` | schemas that results refer to |
//!
//! Schemas are written as usual, with `examples` for realism. `"x-template": "/{owner}/{repo}"` in a text fills in other
//! members of the object, else arguments. Seeds, variants and repeated arguments come from the schema generator. What
//! a SQL query returns depends on the query: [`sql`] makes a schema from it.

mod sql;

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{MockRequest, names, schema, valid};

/// The connectors there are.
const DOCUMENTS: [(&str, &str); 3] = [
    ("github", include_str!("connectors/github.json")),
    ("slack", include_str!("connectors/slack.json")),
    ("sql", include_str!("connectors/sql.json")),
];

#[derive(Debug, Deserialize)]
struct Connector {
    servers: Vec<String>,
    #[serde(default)]
    prefixes: Vec<String>,
    tools: Vec<KindOfResult>,
    #[serde(default, rename = "$defs")]
    definitions: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct KindOfResult {
    names: Vec<String>,
    #[serde(default)]
    arguments: Vec<String>,
    result: Value,
}

static CONNECTORS: LazyLock<Vec<Connector>> = LazyLock::new(|| {
    let parse = |(_, text): &(&str, &str)| serde_json::from_str(text).ok();
    DOCUMENTS.iter().filter_map(parse).collect()
});

/// The result of a call of a known service; `None` if the tool is not known, or its result would break the schema that
/// the tool has.
pub(crate) fn generate(request: &MockRequest<'_>) -> Option<Value> {
    let schema = CONNECTORS.iter().find_map(|connector| connector.schema(request))?;
    let value = schema::generate(request, &schema)?;
    let fits = request.output_schema.is_none_or(|own| valid::violation(own, &value).is_none());
    fits.then_some(value)
}

impl Connector {
    /// The schema of the result of this call.
    fn schema(&self, request: &MockRequest<'_>) -> Option<Value> {
        let server = names::words(request.tool.server.as_str());
        let tool = request.tool.tool.to_lowercase().replace('-', "_");
        let stripped = self.prefixes.iter().find_map(|prefix| tool.strip_prefix(prefix.as_str()));
        if stripped.is_none() && !self.servers.iter().any(|word| server.contains(word)) {
            return None;
        }
        let name = stripped.unwrap_or(&tool);
        let has = |argument: &String| request.arguments.get(argument).is_some_and(|value| !value.is_null());
        let kind = self
            .tools
            .iter()
            .find(|kind| kind.names.iter().any(|known| known == name) && kind.arguments.iter().all(has))?;
        let result = sql::result(&kind.result, request.arguments).unwrap_or_else(|| kind.result.clone());
        let mut schema = Map::new();
        schema.insert("$defs".to_owned(), Value::Object(self.definitions.clone()));
        schema.insert("allOf".to_owned(), Value::Array(vec![result]));
        Some(Value::Object(schema))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_read_and_its_results_can_be_made() {
        assert_eq!(CONNECTORS.len(), DOCUMENTS.len(), "a document does not parse");
        for ((service, _), connector) in DOCUMENTS.iter().zip(CONNECTORS.iter()) {
            for kind in &connector.tools {
                let arguments: Map<String, Value> = kind
                    .arguments
                    .iter()
                    .map(|name| (name.clone(), Value::from("select id from t")))
                    .collect();
                let tool = format!("{}:{}", connector.servers[0], kind.names[0]);
                let tool = pml_model::ToolId::parse(&tool).unwrap();
                let arguments = Value::Object(arguments);
                for variant in 0..8 {
                    let request = MockRequest {
                        tool: &tool,
                        arguments: &arguments,
                        output_schema: None,
                        seed: 1,
                        variant,
                    };
                    assert!(generate(&request).is_some(), "{service}: {tool}, variant {variant}");
                }
            }
        }
    }
}
