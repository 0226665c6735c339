//! How many of the required arguments of a suggested DAG are known, and whether they are right.
//!
//! The tools are those that really serve a request, so that nothing counts here but their arguments: values that the request
//! says, and results of other calls.

use std::collections::{BTreeMap, HashMap};

use pml_analysis::Catalogue;
use pml_model::json::raw;
use pml_model::structure::{Argument, NodeId, NodeKind, Step as PathStep};
use pml_model::{Definition, ServerName};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::{Figure, failed, flow, ingest, json_lines};
use super::Bench;
use super::data;
use crate::catalogue::{Snapshot, Tool};
use crate::config::Naming;
use crate::knowledge::Observed;
use crate::knowledge::graph::{fields_of, output_of};
use crate::problem::Problem;
use crate::suggest::{Step, clauses, suggest};

/// Call sequences of which the arguments are known.
const SET: &str = "nestful";

#[derive(Deserialize)]
struct Row {
    query: String,
    seq: Vec<String>,
    clean: bool,
    ts_code: String,
}

/// What became of the required arguments.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    required: usize,
    right: usize,
    wrong: usize,
    /// Neither said nor a result.
    invented: usize,
}

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<Vec<Figure>, Problem> {
    let folder = bench.data.join(SET);
    let snapshot = snapshot(&data::catalogue(&folder.join("tools.jsonl"))?)?;
    let catalogue = flow::catalogue(&folder.join("tools.jsonl"))?;
    let mut count = Count::default();
    for row in json_lines::<Row>(&folder.join("dev.jsonl"))?.iter().filter(|row| row.clean) {
        let tools: Option<Vec<&Tool>> =
            row.seq.iter().map(|id| snapshot.place(id).map(|place| &snapshot.tools[place])).collect();
        if let (Some(tools), Some(gold)) = (tools, gold(&row.ts_code, &catalogue))
            && tools.len() == gold.len()
        {
            count.add(&tools, &suggested(&row.query, &tools), &gold, &row.query);
        }
    }
    let share = |part: usize| 100.0 * part as f64 / count.required.max(1) as f64;
    Ok(vec![
        Figure::of(
            format!("{SET}: required arguments filled right / wrong / left open / invented"),
            format!(
                "{:.1} % / {:.1} % / {:.1} % / {} of {}",
                share(count.right),
                share(count.wrong),
                share(count.required - count.right - count.wrong),
                count.invented,
                count.required
            ),
        )
        .target("none invented", count.invented == 0),
    ])
}

fn snapshot(tools: &[data::Tool]) -> Result<Snapshot, Problem> {
    let mut servers: BTreeMap<ServerName, Vec<Definition>> = BTreeMap::new();
    for tool in tools {
        let mut definition = json!({
            "name": tool.name, "description": tool.description, "inputSchema": tool.input_schema,
        });
        if tool.output_schema.is_object() {
            definition["outputSchema"] = tool.output_schema.clone();
        }
        let server = ServerName::new(&tool.server).map_err(failed)?;
        servers.entry(server).or_default().push(Definition::parse(raw(&definition)).map_err(failed)?);
    }
    Ok(Snapshot::new(ingest::listings(servers), Naming::Qualified))
}

/// The arguments that each task of the suggested document has.
fn suggested(query: &str, tools: &[&Tool]) -> Vec<Map<String, Value>> {
    let clauses = clauses(query);
    let told = clauses.len() == tools.len();
    let observed = Observed::default();
    let fields: Vec<_> = tools.iter().map(|tool| fields_of(tool, &observed)).collect();
    let steps: Vec<Step<'_>> = tools
        .iter()
        .zip(&fields)
        .enumerate()
        .map(|(at, (tool, fields))| Step {
            words: if told { &clauses[at] } else { query },
            tool,
            fields,
            score: 1.0,
            reads: true,
            said: told,
            others: Vec::new(),
        })
        .collect();
    let dag = suggest(query, &Map::new(), &steps, |tool| output_of(tool, &observed), |_| Vec::new());
    let tasks = dag.dag_structure["tasks"].as_array().cloned().unwrap_or_default();
    tasks.iter().map(|task| task["arguments"].as_object().cloned().unwrap_or_default()).collect()
}

/// The arguments of each call of a program, as a document writes them; nothing of a program that is not understood.
fn gold(program: &str, catalogue: &Catalogue) -> Option<Vec<Map<String, Value>>> {
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

impl Count {
    fn add(
        &mut self,
        tools: &[&Tool],
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
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() < 1e-9,
        _ => one == other,
    }
}

/// Whether a value is a result, or stands in the request.
fn known(value: &Value, query: &str) -> bool {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    // Numbers are said with and without marks between thousands.
    let said = |query: &str| query.to_lowercase().contains(&text.to_lowercase());
    // So are shares, as decimals.
    let share =
        value.as_f64().is_some_and(|number| query.contains(&format!("{}%", (number * 1e6).round() / 1e4)));
    value.get("$ref").is_some() || said(query) || said(&query.replace(',', "")) || share
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
        let tools: [data::Tool; 1] = [serde_json::from_value(tool).unwrap()];
        let snapshot = snapshot(&tools).unwrap();
        let gold = json!({ "x": 1, "y": { "$ref": "t1.id" }, "z": "Lyon", "w": "b" });
        let suggested = json!({ "x": 1.0, "y": { "$ref": "t1.name" }, "w": "made up" });
        let of = |value: Value| vec![value.as_object().cloned().unwrap()];
        let mut count = Count::default();
        count.add(&[&snapshot.tools[0]], &of(suggested), &of(gold), "weather in Lyon");
        assert_eq!(count, Count { required: 4, right: 1, wrong: 2, invented: 1 });
    }
}
