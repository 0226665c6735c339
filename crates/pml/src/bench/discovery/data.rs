//! The data sets: catalogues of tools, requests with what is right for them, and recorded executions.

use std::path::Path;

use pml_graph::lexical::{Document, Index};
use pml_graph::rank::Ranked;
use serde::Deserialize;
use serde_json::Value;

use super::super::json_lines;
use super::score::{self, Ranking};
use crate::problem::Problem;

/// A tool of a catalogue.
#[derive(Debug, Deserialize)]
pub(super) struct Tool {
    pub(super) id: String,
    #[serde(default)]
    pub(super) server: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) input_schema: Value,
    #[serde(default)]
    pub(super) output_schema: Value,
    /// What it gives back, in words or by example, where there is no schema.
    #[serde(default)]
    output_info: Option<String>,
    #[serde(default)]
    output_example: Value,
}

/// A request.
#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) id: String,
    pub(super) query: String,
    #[serde(default)]
    pub(super) gold: Vec<String>,
    #[serde(default)]
    gold_groups: Vec<Vec<String>>,
    #[serde(default)]
    pub(super) role: Option<String>,
    /// The number of a recorded execution among those of its kind.
    #[serde(default)]
    pub(super) k: Option<u32>,
    #[serde(default)]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) intent_key: Option<String>,
    #[serde(default)]
    pub(super) seq: Option<Vec<String>>,
    #[serde(default)]
    pub(super) links: Vec<(String, String)>,
    #[serde(default)]
    pub(super) edges: Vec<(usize, usize)>,
    #[serde(default = "yes")]
    pub(super) clean: bool,
}

fn yes() -> bool {
    true
}

/// A moment in an execution: what was used, and what comes next.
#[derive(Debug, Deserialize)]
pub(super) struct Moment {
    pub(super) id: String,
    pub(super) query: String,
    pub(super) context: Vec<String>,
    pub(super) targets: Vec<String>,
}

impl Request {
    /// What is right: groups of which any member will do.
    pub(super) fn groups(&self) -> Vec<Vec<String>> {
        if self.gold_groups.is_empty() {
            self.gold.iter().map(|item| vec![item.clone()]).collect()
        } else {
            self.gold_groups.clone()
        }
    }

    pub(super) fn has_role(&self, role: &str) -> bool {
        self.role.as_deref() == Some(role)
    }
}

/// A catalogue and the requests that go with it.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) tools: Vec<Tool>,
    pub(super) index: Index,
    pub(super) requests: Vec<Request>,
}

impl Set {
    pub(super) fn read(data: &Path, name: &str) -> Result<Set, Problem> {
        let tools = catalogue(&data.join(name).join("tools.jsonl"))?;
        let index = index(&tools);
        Ok(Set { tools, index, requests: json_lines(&data.join(name).join("dev.jsonl"))? })
    }

    /// The tools of a ranking.
    pub(super) fn ids(&self, ranked: &[Ranked]) -> impl Iterator<Item = &str> {
        ranked.iter().map(|one| self.tools[one.item].id.as_str())
    }

    /// How good a ranking is where these groups are right.
    pub(super) fn score(&self, ranked: &[Ranked], groups: &[Vec<String>]) -> Ranking {
        score::ranking(&self.ids(ranked).collect::<Vec<_>>(), groups)
    }

    /// Where in the catalogue a tool is.
    pub(super) fn place(&self, id: &str) -> Option<usize> {
        self.tools.iter().position(|tool| tool.id == id)
    }
}

/// The moments of a set.
pub(super) fn moments(data: &Path, name: &str) -> Result<Vec<Moment>, Problem> {
    json_lines(&data.join(name).join("next_dev.jsonl"))
}

/// The tools of a file.
pub(super) fn catalogue(path: &Path) -> Result<Vec<Tool>, Problem> {
    json_lines(path)
}

/// The words of a catalogue.
pub(super) fn index(tools: &[Tool]) -> Index {
    index_of(tools.iter())
}

/// The words of some tools.
pub(super) fn index_of<'t>(tools: impl Iterator<Item = &'t Tool>) -> Index {
    let tools: Vec<(&Tool, Words<'_>)> = tools.map(|tool| (tool, texts(tool))).collect();
    Index::build(
        tools
            .iter()
            .map(|(tool, (names, descriptions, outputs))| document(tool, names, descriptions, outputs)),
    )
}

/// What is indexed of a tool.
pub(super) fn document<'t>(
    tool: &'t Tool,
    names: &[&'t str],
    descriptions: &[&'t str],
    outputs: &'t str,
) -> Document<'t> {
    Document {
        server: &tool.server,
        name: &tool.name,
        description: tool.description.as_deref().unwrap_or_default(),
        parameter_names: names.to_vec(),
        parameter_descriptions: descriptions.to_vec(),
        outputs,
    }
}

/// Names and descriptions of parameters, and what is given.
type Words<'t> = (Vec<&'t str>, Vec<&'t str>, String);

/// The words of its parameters and of what it gives.
pub(super) fn texts(tool: &Tool) -> Words<'_> {
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
            crate::catalogue::collect_words(&tool.output_schema, &mut words);
            words
        }
        (_, Some(info), _) => info.clone(),
        (_, None, Value::Null) => String::new(),
        (_, None, example) => example.to_string(),
    };
    (names, descriptions, outputs)
}

impl Tool {
    /// What is read of it for its meaning.
    pub(super) fn text(&self) -> String {
        pml_graph::vectors::document_text(
            &self.server,
            &self.name,
            self.description.as_deref().unwrap_or_default(),
        )
    }
}
