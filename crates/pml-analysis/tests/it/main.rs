//! Programs in, structures out: everything here goes through the public functions.

mod fixtures;
mod gold;
mod identity;

use pml_analysis::{Analysis, AnalysisCapability, AnalysisCatalogue, AnalysisTool};
use pml_model::{ServerName, ToolId};
use serde_json::value::RawValue;

/// The tools and capabilities the fixtures name.
fn catalogue() -> AnalysisCatalogue {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        server: Option<String>,
        name: Option<String>,
        capability: Option<String>,
        #[serde(default)]
        read_only: bool,
        input_schema: Box<RawValue>,
        output_schema: Option<Box<RawValue>>,
    }
    let text = std::fs::read_to_string(here("fixtures/tools.json")).expect("the fixtures' tools");
    let entries: Vec<Entry> = serde_json::from_str(&text).expect("valid tools");
    let mut catalogue = AnalysisCatalogue::default();
    for entry in entries {
        match (entry.server, entry.name, entry.capability) {
            (Some(server), Some(tool), _) => {
                let mut identifier = pml_model::name::js_identifier(&tool);
                if identifier != tool && catalogue.tool(&server, &identifier).is_some() {
                    identifier.push_str("_2");
                }
                let id = ToolId { server: ServerName::new(&server).expect("a server name"), tool };
                catalogue.add_tool(AnalysisTool::new(
                    id,
                    identifier,
                    entry.input_schema,
                    entry.output_schema,
                    entry.read_only,
                ));
            }
            (_, _, Some(capability)) => {
                catalogue.add_capability(AnalysisCapability::new(capability, entry.input_schema));
            }
            _ => panic!("an entry of tools.json is neither a tool nor a capability"),
        }
    }
    catalogue
}

fn here(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path)
}

fn analysed(source: &str) -> Result<Analysis, pml_analysis::Error> {
    pml_analysis::analyse(source, &catalogue())
}
