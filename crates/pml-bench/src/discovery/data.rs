//! The data sets: catalogues of tools, labelled requests, and recorded executions.

use std::path::Path;

use pml::problem::Problem;
use pml_graph::lexical::{LexicalIndex, ToolDocument};
use pml_graph::rank::ScoredItem;
use serde::Deserialize;
use serde_json::{Value, json};

use super::score::{self, RankingScore};
use crate::lines::json_lines;

/// A tool of a catalogue.
#[derive(Debug, Deserialize)]
pub(crate) struct BenchTool {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) server: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) input_schema: Value,
    #[serde(default)]
    pub(super) output_schema: Value,
    /// A description or an example of the result, where there is no schema.
    #[serde(default)]
    output_info: Option<String>,
    #[serde(default)]
    output_example: Value,
}

/// A labelled request or a recorded execution.
#[derive(Debug, Deserialize)]
pub(crate) struct BenchRequest {
    pub(crate) id: String,
    pub(crate) query: String,
    #[serde(default)]
    pub(crate) gold: Vec<String>,
    #[serde(default)]
    gold_groups: Vec<Vec<String>>,
    #[serde(default)]
    pub(crate) role: Option<String>,
    /// The number of a recorded execution among those of its kind.
    #[serde(default)]
    pub(super) k: Option<u32>,
    #[serde(default)]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) intent_key: Option<String>,
    #[serde(default)]
    pub(crate) seq: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) links: Vec<(String, String)>,
    #[serde(default)]
    pub(crate) edges: Vec<(usize, usize)>,
    #[serde(default = "yes")]
    pub(crate) clean: bool,
}

pub(super) fn yes() -> bool {
    true
}

/// A moment in an execution: the tools used so far, and the next ones.
#[derive(Debug, Deserialize)]
pub(super) struct BenchMoment {
    pub(super) id: String,
    pub(super) query: String,
    pub(super) context: Vec<String>,
    pub(super) targets: Vec<String>,
}

impl BenchRequest {
    /// The right tools: groups of which any member will do.
    pub(super) fn groups(&self) -> Vec<Vec<String>> {
        if self.gold_groups.is_empty() {
            self.gold.iter().map(|item| vec![item.clone()]).collect()
        } else {
            self.gold_groups.clone()
        }
    }

    pub(crate) fn has_role(&self, role: &str) -> bool {
        self.role.as_deref() == Some(role)
    }
}

/// A catalogue and its requests.
#[derive(Debug)]
pub(super) struct BenchSet {
    pub(super) tools: Vec<BenchTool>,
    pub(super) index: LexicalIndex,
    pub(super) requests: Vec<BenchRequest>,
}

impl BenchSet {
    pub(super) fn read(data: &Path, name: &str) -> Result<BenchSet, Problem> {
        let tools = read_tools(&data.join(name).join("tools.jsonl"))?;
        let index = index(&tools);
        Ok(BenchSet { tools, index, requests: json_lines(&data.join(name).join("dev.jsonl"))? })
    }

    /// The ids of the tools of a ranking.
    pub(super) fn ids(&self, ranked: &[ScoredItem]) -> impl Iterator<Item = &str> {
        ranked.iter().map(|one| self.tools[one.item].id.as_str())
    }

    /// The score of a ranking against the right groups.
    pub(super) fn score(&self, ranked: &[ScoredItem], groups: &[Vec<String>]) -> RankingScore {
        score::ranking(&self.ids(ranked).collect::<Vec<_>>(), groups)
    }

    /// The index of a tool in the catalogue.
    pub(super) fn place(&self, id: &str) -> Option<usize> {
        self.tools.iter().position(|tool| tool.id == id)
    }
}

/// The moments of a set.
pub(super) fn read_moments(data: &Path, name: &str) -> Result<Vec<BenchMoment>, Problem> {
    json_lines(&data.join(name).join("next_dev.jsonl"))
}

/// The tools of a file.
pub(crate) fn read_tools(path: &Path) -> Result<Vec<BenchTool>, Problem> {
    json_lines(path)
}

/// The definitions of a server's tools, as the server would list them.
pub(crate) fn definitions_of_server(catalogue: &Path, server: &str) -> Result<Vec<Value>, Problem> {
    let tools = read_tools(catalogue)?;
    Ok(tools.iter().filter(|tool| tool.server == server).map(definition).collect())
}

/// The definition of a tool. A tool without a schema takes any arguments.
pub(super) fn definition(tool: &BenchTool) -> Value {
    let input = if tool.input_schema.is_object() { &tool.input_schema } else { &json!({ "type": "object" }) };
    let mut definition = json!({ "name": tool.name, "description": tool.description, "inputSchema": input });
    if tool.output_schema.is_object() {
        definition["outputSchema"] = tool.output_schema.clone();
    }
    definition
}

/// The lexical index of a catalogue.
pub(super) fn index(tools: &[BenchTool]) -> LexicalIndex {
    index_of(tools.iter())
}

/// The lexical index of some tools.
pub(super) fn index_of<'t>(tools: impl Iterator<Item = &'t BenchTool>) -> LexicalIndex {
    let tools: Vec<(&BenchTool, BenchToolTexts<'_>)> = tools.map(|tool| (tool, tool_texts(tool))).collect();
    LexicalIndex::build(
        tools
            .iter()
            .map(|(tool, (names, descriptions, outputs))| document(tool, names, descriptions, outputs)),
    )
}

/// The indexed document of a tool.
pub(super) fn document<'t>(
    tool: &'t BenchTool,
    names: &[&'t str],
    descriptions: &[&'t str],
    outputs: &'t str,
) -> ToolDocument<'t> {
    ToolDocument {
        server: &tool.server,
        name: &tool.name,
        description: tool.description.as_deref().unwrap_or_default(),
        parameter_names: names.to_vec(),
        parameter_descriptions: descriptions.to_vec(),
        outputs,
    }
}

/// Names of parameters, their descriptions, and the text about the result.
type BenchToolTexts<'t> = (Vec<&'t str>, Vec<&'t str>, String);

/// The texts of a tool's parameters and result.
pub(super) fn tool_texts(tool: &BenchTool) -> BenchToolTexts<'_> {
    let properties = tool.input_schema["properties"].as_object();
    let names = properties.into_iter().flat_map(|all| all.keys().map(String::as_str)).collect();
    let descriptions = properties
        .into_iter()
        .flat_map(|all| all.values())
        .filter_map(|property| property["description"].as_str())
        .collect();
    let outputs = match (&tool.output_schema, &tool.output_info, &tool.output_example) {
        (Value::Object(_), _, _) => {
            let mut words = String::new();
            pml::catalogue::collect_words(&tool.output_schema, &mut words);
            words
        }
        (_, Some(info), _) => info.clone(),
        (_, None, Value::Null) => String::new(),
        (_, None, example) => example.to_string(),
    };
    (names, descriptions, outputs)
}

impl BenchTool {
    /// The text to embed.
    pub(super) fn text(&self) -> String {
        pml_graph::vectors::document_text(
            &self.server,
            &self.name,
            self.description.as_deref().unwrap_or_default(),
        )
    }
}
