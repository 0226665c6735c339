//! How right the best explored path is, beside the plain suggestion, where nothing was learned before.
//!
//! The real gateway is asked over servers that list the tools of a data set. Nothing there says that a tool only reads,
//! so exploration makes up every result.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use pml::problem::Problem;
use pml_mcp::client::Connection;
use serde_json::{Value, json};

use crate::discovery::{self, BenchRequest, BenchTool};
use crate::figure::{BenchFigure, failed};
use crate::gateway::{call, open};
use crate::lines::json_lines;
use crate::programs::Programs;

/// What the labelled links of a set are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkKind {
    /// A result that is an argument of another call.
    DataFlow,
    /// The next step.
    Order,
}

/// The sets. Of `nestful`, rows with faulty labels are left out; of `ultratool`, rows that are meant to be learned from.
const SETS: [(&str, LinkKind); 2] = [("nestful", LinkKind::DataFlow), ("ultratool", LinkKind::Order)];
/// How long the tools of a set may take to be embedded.
const EMBEDDING: Duration = Duration::from_secs(60);

/// Measures all sets; writes the DAGs to `out`.
pub(crate) async fn measure(
    programs: &Programs,
    data: &Path,
    out: Option<&Path>,
) -> Result<Vec<BenchFigure>, Problem> {
    if let Some(out) = out {
        discovery::create_directory(out)?;
    }
    let mut figures = Vec::new();
    for (name, links) in SETS {
        let folder = data.join(name);
        let rows: Vec<BenchRequest> = json_lines(&folder.join("dev.jsonl"))?;
        let is_test = |row: &BenchRequest| row.clean && (row.role.is_none() || row.has_role("test"));
        let rows: Vec<&BenchRequest> = rows.iter().filter(|row| is_test(row)).collect();
        let (scores, written) = ask_all(programs, &folder.join("tools.jsonl"), &rows, links).await?;
        if let Some(out) = out {
            discovery::write_predictions(out, name, &written)?;
        }
        figures.extend(scores.figures(name, rows.len()));
    }
    Ok(figures)
}

/// Node F1 and link F1 of each request.
#[derive(Default)]
struct DagScores {
    suggested: Vec<(f64, f64)>,
    explored: Vec<(f64, f64)>,
}

impl DagScores {
    fn figures(&self, name: &str, rows: usize) -> [BenchFigure; 2] {
        let nodes = |scores: &[(f64, f64)]| 100.0 * discovery::mean(scores.iter().map(|score| score.0));
        let links = |scores: &[(f64, f64)]| 100.0 * discovery::mean(scores.iter().map(|score| score.1));
        let told = |scores: &[(f64, f64)]| format!("{:.1} / {:.1}", nodes(scores), links(scores));
        let (suggested, explored) = (&self.suggested, &self.explored);
        let as_good = nodes(explored) >= nodes(suggested) && links(explored) >= links(suggested);
        [
            BenchFigure::of(
                format!("{name}: node F1 / link F1 of the plain suggestion, {rows} requests"),
                told(suggested),
            ),
            BenchFigure::of(format!("{name}: the same of the best explored path"), told(explored))
                .target("both not below the suggestion", as_good),
        ]
    }
}

async fn ask_all(
    programs: &Programs,
    catalogue: &Path,
    rows: &[&BenchRequest],
    links: LinkKind,
) -> Result<(DagScores, Vec<Value>), Problem> {
    let home = tempfile::tempdir().map_err(failed)?;
    let tools = discovery::read_tools(catalogue)?;
    configure(home.path(), &programs.bench, catalogue, &tools)?;
    let gateway = open(&programs.pml, &["stdio"], home.path()).await?;
    wait_until_embedded(&gateway).await?;
    let ids: HashMap<String, &str> =
        tools.iter().map(|tool| (format!("{}:{}", tool.server, tool.name), tool.id.as_str())).collect();
    let (mut scores, mut written) = (DagScores::default(), Vec::new());
    for row in rows {
        let intent = json!({ "intent": row.query });
        let (_, suggestion) = call(&gateway, "pml_execute", &intent).await?;
        let (_, exploration) = call(&gateway, "pml_explore", &intent).await?;
        let suggested = &suggestion["suggestions"]["suggestedDag"]["dagStructure"];
        let explored = &exploration["viablePaths"][0]["dagStructure"];
        scores.suggested.push(score(row, suggested, &ids, links));
        scores.explored.push(score(row, explored, &ids, links));
        written.push(json!({
            "id": row.id, "suggested": suggested, "explored": explored, "refused": exploration["error"],
            "others": exploration["viablePaths"].as_array().map(|paths| {
                paths.iter().skip(1).map(|path| path["dagStructure"].clone()).collect::<Vec<_>>()
            }),
            "failed": exploration["failedPaths"],
        }));
    }
    gateway.close().await;
    Ok((scores, written))
}

fn configure(home: &Path, bench: &Path, catalogue: &Path, tools: &[BenchTool]) -> Result<(), Problem> {
    let catalogue = std::fs::canonicalize(catalogue).map_err(failed)?;
    let quoted = |path: &Path| serde_json::to_string(path).unwrap_or_default();
    let (command, catalogue) = (quoted(bench), quoted(&catalogue));
    let mut text = "[memory]\nlearn = false\ncache = false\n".to_owned();
    for name in ["fs", "json", "text", "csv", "time", "math"] {
        text.push_str(&format!("[builtin.{name}]\nenabled = false\n"));
    }
    let servers: BTreeSet<&str> = tools.iter().map(|tool| tool.server.as_str()).collect();
    for server in servers {
        text.push_str(&format!(
            "[servers.{server}]\ncommand = {command}\nargs = [\"echo-server\", \"--catalogue\", {catalogue}, \"--server\", \"{server}\"]\n"
        ));
    }
    std::fs::write(home.join("pml.toml"), text).map_err(failed)
}

/// Waits until no text is left to embed: until then a reply says so.
async fn wait_until_embedded(gateway: &Connection) -> Result<(), Problem> {
    let wait = async {
        loop {
            let (_, found) = call(gateway, "pml_discover", &json!({ "intent": "measure" })).await?;
            // Embedding begins shortly after the first request has had the tools listed.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (_, again) = call(gateway, "pml_discover", &json!({ "intent": "measure" })).await?;
            let notes = [&found, &again].map(|page| page["notes"].as_array().into_iter().flatten());
            if !notes.into_iter().flatten().filter_map(Value::as_str).any(|note| note.contains("embedded")) {
                return Ok(());
            }
        }
    };
    let waited = tokio::time::timeout(EMBEDDING, wait).await;
    waited.map_err(|_| failed("the tools of a set were not embedded in time"))?
}

/// Node F1 and link F1 of a DAG document.
fn score(row: &BenchRequest, document: &Value, ids: &HashMap<String, &str>, links: LinkKind) -> (f64, f64) {
    let tasks = read_tasks(document, ids);
    let nodes: HashSet<&str> = tasks.values().map(|task| task.tool.as_str()).collect();
    let pairs = match links {
        LinkKind::DataFlow => edges(&tasks, |task| &task.takes_from),
        LinkKind::Order => without_shortcuts(&edges(&tasks, |task| &task.depends_on)),
    };
    let found: HashSet<(&str, &str)> =
        pairs.iter().map(|(from, to)| (tasks[from].tool.as_str(), tasks[to].tool.as_str())).collect();
    let sequence = row.seq.as_deref().unwrap_or_default();
    let by_place = row.edges.iter().map(|(from, to)| (sequence[*from].as_str(), sequence[*to].as_str()));
    let right: HashSet<(&str, &str)> =
        row.links.iter().map(|(from, to)| (from.as_str(), to.as_str())).chain(by_place).collect();
    (discovery::f1(&nodes, &row.gold.iter().map(String::as_str).collect()), discovery::f1(&found, &right))
}

/// A task of a document.
struct ReadTask {
    /// The tool, as the set names it.
    tool: String,
    depends_on: Vec<String>,
    /// The tasks whose results are arguments.
    takes_from: Vec<String>,
}

fn read_tasks(document: &Value, ids: &HashMap<String, &str>) -> HashMap<String, ReadTask> {
    let tasks = document["tasks"].as_array().into_iter().flatten();
    let read = |task: &Value| {
        let tool = task["tool"].as_str()?;
        let named = |value: &Value| value.as_str().map(str::to_owned);
        let depends_on = task["dependsOn"].as_array().into_iter().flatten().filter_map(named).collect();
        let mut takes_from = Vec::new();
        collect_references(&task["arguments"], &mut takes_from);
        let tool = (*ids.get(tool).unwrap_or(&tool)).to_owned();
        Some((task["id"].as_str()?.to_owned(), ReadTask { tool, depends_on, takes_from }))
    };
    tasks.filter_map(read).collect()
}

/// The tasks that references in an argument name: `{"$ref": "t1.items[0].id"}`.
fn collect_references(argument: &Value, found: &mut Vec<String>) {
    match argument {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let end = reference.find(['.', '[']).unwrap_or(reference.len());
                found.push(reference[..end].to_owned());
            }
            fields.values().for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

fn edges<'t>(
    tasks: &'t HashMap<String, ReadTask>,
    sources: impl Fn(&'t ReadTask) -> &'t Vec<String>,
) -> BTreeSet<(String, String)> {
    let of_task = |(id, task): (&'t String, &'t ReadTask)| {
        let known = sources(task).iter().filter(|from| tasks.contains_key(*from));
        known.map(|from| (from.clone(), id.clone())).collect::<Vec<_>>()
    };
    tasks.iter().flat_map(of_task).collect()
}

/// The edges without those that follow from others: a set labels each step with the next one only, and a document may
/// name every step before.
fn without_shortcuts(edges: &BTreeSet<(String, String)>) -> BTreeSet<(String, String)> {
    let reaches_otherwise = |from: &str, to: &str| {
        let mut open: Vec<&str> =
            edges.iter().filter(|edge| edge.0 == from && edge.1 != to).map(|edge| edge.1.as_str()).collect();
        let mut seen = HashSet::new();
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            if seen.insert(at) {
                open.extend(edges.iter().filter(|edge| edge.0 == at).map(|edge| edge.1.as_str()));
            }
        }
        false
    };
    edges.iter().filter(|(from, to)| !reaches_otherwise(from, to)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(labels: &Value) -> BenchRequest {
        let mut row = json!({ "id": "1", "query": "q" });
        row.as_object_mut().unwrap().extend(labels.as_object().cloned().unwrap());
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn links_are_results_that_are_passed_on_or_the_order_of_steps() {
        let document = json!({ "tasks": [
            { "id": "t1", "tool": "s:a", "arguments": {} },
            { "id": "t2", "tool": "s:b", "arguments": { "x": { "$ref": "t1.items[0]" } }, "dependsOn": ["t1"] },
            { "id": "t3", "tool": "s:c", "arguments": { "y": ["z"] }, "dependsOn": ["t1", "t2"] },
        ] });
        let ids = HashMap::from([("s:a".to_owned(), "a"), ("s:b".to_owned(), "b"), ("s:c".to_owned(), "c")]);
        let flow = row(&json!({ "gold": ["a", "b", "c"], "seq": ["a", "b", "c"], "edges": [[0, 1]] }));
        assert_eq!(score(&flow, &document, &ids, LinkKind::DataFlow), (1.0, 1.0));
        let order = row(&json!({ "gold": ["a", "b"], "links": [["a", "b"], ["b", "c"]] }));
        assert_eq!(score(&order, &document, &ids, LinkKind::Order), (0.8, 1.0));
        assert_eq!(score(&order, &Value::Null, &ids, LinkKind::Order), (0.0, 0.0));
    }
}
