//! The share of required arguments of a suggested DAG that are bound, and whether they are right.
//!
//! The tools are the right ones for each request, so that only arguments count: values of the request and results of
//! other calls.

use std::collections::{BTreeMap, HashMap};

use pml::catalogue::{CatalogueTool, ToolSnapshot};
use pml::config::ToolNaming;
use pml::knowledge::ObservedSchemas;
use pml::knowledge::graph::{fields_of, output_of};
use pml::problem::Problem;
use pml::suggest::{SuggestStep, build_dag};
use pml_analysis::AnalysisCatalogue;
use pml_language::Reading;
use pml_model::json::raw;
use pml_model::structure::{Argument, NodeId, NodeKind, PathStep};
use pml_model::{Definition, ServerName};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::DiscoveryBench;
use super::data;
use crate::figure::{BenchFigure, failed};
use crate::lines::json_lines;
use crate::{flow, ingest};

/// Sets of call sequences with known arguments. The rules for values of a request were written with the first in view,
/// and for none of the others.
const SETS: [&str; 2] = ["nestful", "sealtools"];

#[derive(Deserialize)]
struct ArgumentsBenchRow {
    query: String,
    seq: Vec<String>,
    #[serde(default = "data::yes")]
    clean: bool,
    /// The calls as a program.
    #[serde(default)]
    ts_code: Option<String>,
    /// Or their arguments, in which `API_call_0` is the result of the first call.
    #[serde(default)]
    args: Vec<Map<String, Value>>,
}

/// Counts of required arguments by outcome.
#[derive(Debug, Default, PartialEq, Eq)]
struct ArgumentCounts {
    required: usize,
    right: usize,
    wrong: usize,
    /// Arguments that are neither in the request nor a result.
    invented: usize,
}

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    SETS.iter().map(|set| measure_set(bench, set)).collect()
}

fn measure_set(bench: &DiscoveryBench<'_>, set: &str) -> Result<BenchFigure, Problem> {
    let folder = bench.data.join(set);
    let mut tools = data::read_tools(&folder.join("tools.jsonl"))?;
    tools.iter_mut().for_each(|tool| make_usable(tool, set));
    let snapshot = snapshot(&tools)?;
    let rows: Vec<ArgumentsBenchRow> = json_lines(&folder.join("dev.jsonl"))?;
    let catalogue = match rows.iter().any(|row| row.ts_code.is_some()) {
        true => flow::catalogue(&folder.join("tools.jsonl"))?,
        false => AnalysisCatalogue::default(),
    };
    let mut count = ArgumentCounts::default();
    for row in rows.iter().filter(|row| row.clean) {
        let tool = |id: &String| {
            let place = snapshot.index_of(id).or_else(|| snapshot.index_of(&format!("{set}:{id}")))?;
            Some(&snapshot.tools[place])
        };
        let tools: Option<Vec<&CatalogueTool>> = row.seq.iter().map(tool).collect();
        let gold = match &row.ts_code {
            Some(program) => gold(program, &catalogue),
            None => Some(row.args.iter().map(with_references).collect()),
        };
        if let (Some(tools), Some(gold)) = (tools, gold)
            && tools.len() == gold.len()
        {
            count.add(&tools, &suggested(&row.query, &tools), &gold, &row.query);
        }
    }
    let share = |part: usize| 100.0 * part as f64 / count.required.max(1) as f64;
    Ok(BenchFigure::of(
        format!("{set}: required arguments filled right / wrong / left open / invented"),
        format!(
            "{:.1} % / {:.1} % / {:.1} % / {} of {}",
            share(count.right),
            share(count.wrong),
            share(count.required - count.right - count.wrong),
            count.invented,
            count.required
        ),
    )
    .target("none invented", count.invented == 0))
}

/// Gives a tool without a server one, and its schema the names of JSON Schema for types.
fn make_usable(tool: &mut data::BenchTool, set: &str) {
    if ServerName::new(&tool.server).is_err() || !tool.id.contains(':') {
        tool.server = set.to_owned();
    }
    for property in tool.input_schema["properties"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        let named = match property["type"].as_str() {
            Some("str") => "string",
            Some("int") => "integer",
            Some("float") => "number",
            Some("bool") => "boolean",
            Some("list") => "array",
            Some("dict") => "object",
            _ => continue,
        };
        property["type"] = named.into();
    }
}

/// The arguments of a call, with the results of others as references.
fn with_references(arguments: &Map<String, Value>) -> Map<String, Value> {
    let written = |value: &Value| {
        let call = value.as_str().and_then(|text| text.strip_prefix("API_call_"));
        let call: Option<usize> = call.and_then(|number| number.parse().ok());
        call.map_or_else(|| value.clone(), |call| json!({ "$ref": format!("t{}", call + 1) }))
    };
    arguments.iter().map(|(name, value)| (name.clone(), written(value))).collect()
}

fn snapshot(tools: &[data::BenchTool]) -> Result<ToolSnapshot, Problem> {
    let mut servers: BTreeMap<ServerName, Vec<Definition>> = BTreeMap::new();
    for tool in tools {
        let server = ServerName::new(&tool.server).map_err(failed)?;
        let definition = Definition::parse(raw(&data::definition(tool))).map_err(failed)?;
        servers.entry(server).or_default().push(definition);
    }
    Ok(ToolSnapshot::new(ingest::listings(servers), ToolNaming::Qualified))
}

/// The arguments of each task of the suggested DAG.
fn suggested(query: &str, tools: &[&CatalogueTool]) -> Vec<Map<String, Value>> {
    let request = Reading::of(query);
    let clauses = request.steps();
    let told = clauses.len() == tools.len();
    let observed = ObservedSchemas::default();
    let fields: Vec<_> = tools.iter().map(|tool| fields_of(tool, &observed)).collect();
    let steps: Vec<SuggestStep<'_>> = tools
        .iter()
        .zip(&fields)
        .enumerate()
        .map(|(at, (tool, fields))| SuggestStep {
            words: if told { &clauses[at] } else { query },
            tool,
            fields,
            score: 1.0,
            reads_only: true,
            from_intent: told,
            alternatives: Vec::new(),
        })
        .collect();
    let dag = build_dag(&request, &Map::new(), &steps, |tool| output_of(tool, &observed), |_| Vec::new());
    let tasks = dag.dag_structure["tasks"].as_array().cloned().unwrap_or_default();
    tasks.iter().map(|task| task["arguments"].as_object().cloned().unwrap_or_default()).collect()
}

/// The arguments of each call of a program, as a DAG document writes them; `None` where the program cannot be
/// analysed.
fn gold(program: &str, catalogue: &AnalysisCatalogue) -> Option<Vec<Map<String, Value>>> {
    let structure = pml_analysis::analyse(program, catalogue).ok()?.structure;
    let (mut calls, mut numbers) = (Vec::new(), HashMap::new());
    for node in &structure.nodes {
        if let NodeKind::Task { arguments: Argument::Object { fields, .. }, .. } = &node.kind
            && node.kind.is_call()
        {
            let written = |value: &Argument| written(value, &numbers);
            calls.push(
                fields
                    .iter()
                    .filter_map(|field| Some((field.name.clone(), written(&field.value)?)))
                    .collect(),
            );
            numbers.insert(node.id, calls.len());
        }
    }
    Some(calls)
}

fn written(argument: &Argument, numbers: &HashMap<NodeId, usize>) -> Option<Value> {
    match argument {
        Argument::Literal { value } => Some(value.clone()),
        Argument::Reference { node, path } => {
            let mut to = format!("t{}", numbers.get(node)?);
            for step in path {
                match step {
                    PathStep::Key(key) => to.push_str(&format!(".{key}")),
                    PathStep::Index(index) => to.push_str(&format!("[{index}]")),
                    PathStep::Any => return None,
                }
            }
            Some(json!({ "$ref": to }))
        }
        Argument::Array { items } => items.iter().map(|item| written(item, numbers)).collect(),
        _ => None,
    }
}

impl ArgumentCounts {
    fn add(
        &mut self,
        tools: &[&CatalogueTool],
        suggested: &[Map<String, Value>],
        gold: &[Map<String, Value>],
        query: &str,
    ) {
        for ((tool, suggested), gold) in tools.iter().zip(suggested).zip(gold) {
            let schema: Value = serde_json::from_str(tool.definition.input_schema.get()).unwrap_or_default();
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for (name, gold) in required.filter_map(|name| Some((name, gold.get(name)?))) {
                self.required += 1;
                let Some(value) = suggested.get(name) else { continue };
                if same(value, gold) {
                    self.right += 1;
                } else {
                    self.wrong += 1;
                    self.invented += usize::from(!known(value, query));
                }
            }
        }
    }
}

fn same(one: &Value, other: &Value) -> bool {
    // A reference to a whole result stands for any part of it.
    if let (Some(one), Some(other)) = (one["$ref"].as_str(), other["$ref"].as_str())
        && !other.contains(['.', '['])
    {
        return one.split(['.', '[']).next() == Some(other);
    }
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() < 1e-9,
        _ => one == other,
    }
}

/// Whether a value is a result or one of the request. Texts have to stand there as whole words, and numbers as numbers: a
/// `2` is not known from `2024`.
fn known(value: &Value, query: &str) -> bool {
    match value {
        Value::Object(members) if members.contains_key("$ref") => true,
        Value::Object(members) => members.values().all(|value| known(value, query)),
        Value::Array(items) => items.iter().all(|item| known(item, query)),
        Value::Number(number) => number.as_f64().is_some_and(|number| says_number(query, number)),
        Value::String(text) => match text.parse::<f64>() {
            Ok(number) => says_number(query, number) || says_words(query, text),
            Err(_) => says_words(query, text),
        },
        Value::Bool(_) | Value::Null => says_words(query, &value.to_string()),
    }
}

/// Whether a text occurs in a request, not as a part of a longer word.
fn says_words(query: &str, text: &str) -> bool {
    let (query, text) = (query.to_lowercase(), text.to_lowercase());
    let joins = |one: Option<char>, other: Option<char>| {
        one.zip(other).is_some_and(|(one, other)| one.is_alphanumeric() && other.is_alphanumeric())
    };
    !text.is_empty()
        && query.match_indices(&text).any(|(at, found)| {
            let (before, after) = (&query[..at], &query[at + found.len()..]);
            !joins(before.chars().next_back(), text.chars().next())
                && !joins(text.chars().next_back(), after.chars().next())
        })
}

/// Whether a number stands in a request, also with thousands separators or as a percentage.
fn says_number(query: &str, wanted: f64) -> bool {
    let same = |one: f64, other: f64| (one - other).abs() <= 1e-9 * one.abs().max(1.0);
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '%');
    query.split(|c: char| !is_part(c)).any(|written| {
        let percent = written.trim_end_matches(['.', ',']).ends_with('%');
        let digits: String = written.trim_matches(['.', ',', '%']).replace(',', "");
        let of = |text: &str| text.parse::<f64>().ok();
        // Without spaces between them, `1,2,3` are three numbers.
        let each = written.split(',').filter_map(|text| of(text.trim_matches(['.', '%'])));
        of(&digits)
            .into_iter()
            .chain(each)
            .any(|said| same(said.abs(), wanted.abs()) || (percent && same(said.abs() / 100.0, wanted.abs())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_right_wrong_open_or_invented() {
        let tool = json!({
            "id": "a:b", "server": "a", "name": "b",
            "input_schema": { "type": "object", "required": ["x", "y", "z", "w"] },
        });
        let tools: [data::BenchTool; 1] = [serde_json::from_value(tool).unwrap()];
        let snapshot = snapshot(&tools).unwrap();
        let gold = json!({ "x": 1, "y": { "$ref": "t1.id" }, "z": "Lyon", "w": "b" });
        let suggested = json!({ "x": 1.0, "y": { "$ref": "t1.name" }, "w": "made up" });
        let of = |value: Value| vec![value.as_object().cloned().unwrap()];
        let mut count = ArgumentCounts::default();
        count.add(&[&snapshot.tools[0]], &of(suggested), &of(gold), "weather in Lyon");
        assert_eq!(count, ArgumentCounts { required: 4, right: 1, wrong: 2, invented: 1 });
    }

    #[test]
    fn a_value_is_known_by_itself_and_not_by_a_part_of_another() {
        let query = "Take 1,500 of the 20% in 2024, for New York and 3.5 km";
        for value in [
            json!(1500),
            json!(20),
            json!(0.2),
            json!("new york"),
            json!(3.5),
            json!("2024"),
            json!([20, 3.5]),
        ] {
            assert!(known(&value, query), "{value}");
        }
        for value in [json!(2), json!(5), json!("ew York"), json!(true), json!([20, 7])] {
            assert!(!known(&value, query), "{value}");
        }
    }
}
